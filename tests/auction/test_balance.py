"""What an auction adds to keep a balanced mix: shares, kept cores, worths, and the order of first bids."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucsched import Job, Node, Request, Resources, Snapshot, Span
from aucsched.auction.balance import Balance, balance_of
from aucsched.auction.job_classes import ClassDemand, ClassMix, JobClass, ask_of, shape_held
from aucsched.auction.state import StepState
from aucsched.bidgen.families.registry import claims_of, columns_of
from aucsched.bidgen.first_fit import Cluster
from aucsched.bidgen.generate import BidOptions, generate_bids
from aucsched.cluster.nodes import Switch
from aucsched.cluster.resources.capacity import Capacity, Resource
from aucsched.cluster.resources.columns import Columns
from aucsched.cluster.resources.demand import Demand, DemandReader
from aucsched.topology.tree import Topology, linear, tree

GPU = (("gpu", 1),)


def node(place: int, cores: int, gres: Mapping[str, int]) -> Node:
    amount = Resources(cores=cores, gres=dict(gres))
    return Node(name=f"n{place:02}", total=amount, free=amount)


def on_nodes(cores: int, nodes: int, gpus: int = 0) -> Request:
    gres = {"gpu": Span.exactly(gpus)} if gpus else {}
    return Request(cores=cores, nodes=Span.exactly(nodes), gres_per_node=gres)


def anywhere(cores: int) -> Request:
    return Request(cores=cores)


def machine(
    requests: list[Request],
    *,
    nodes: int = 10,
    cores: int = 12,
    gres: Mapping[str, int] | None = None,
    limits: list[int] | None = None,
) -> tuple[Columns, list[Demand], ClassDemand]:
    """Return a machine, its jobs and what waits: all of them."""
    jobs = [
        Job(
            id=str(place),
            priority=1000 - place,
            request=request,
            time_limit_s=None if limits is None else limits[place],
        )
        for place, request in enumerate(requests)
    ]
    there = {"gpu": 3} if gres is None else gres
    snapshot = Snapshot(nodes=tuple(node(place, cores, there) for place in range(nodes)), jobs=tuple(jobs))
    columns = columns_of(snapshot)
    reader = DemandReader(snapshot, columns)
    read = [reader.read(job, place) for place, job in enumerate(jobs)]
    demands = [demand for demand in read if isinstance(demand, Demand)]
    assert len(demands) == len(jobs)
    backlog = ClassDemand(columns)
    for demand in demands:
        backlog.note(demand, 1)
    return columns, demands, backlog


def balance_for(
    columns: Columns,
    demands: list[Demand],
    backlog: ClassDemand,
    *,
    held: Mapping[JobClass, int] | None = None,
    topology: Topology | None = None,
    waits: Mapping[str, float] | None = None,
    **given: bool,
) -> Balance:
    state = StepState(columns=columns, topology=topology or linear(len(columns.names)), now=0.0)
    since = {job: -wait_s for job, wait_s in (waits or {}).items()}
    return balance_of(state, demands, ClassMix(backlog, held or {}, since), **given)


def test_a_shape_is_the_gres_and_the_rounded_cores_of_a_node() -> None:
    columns, demands, _ = machine([on_nodes(36, 5, 1), anywhere(36), on_nodes(40, 10)])
    asks = [ask_of(demand, columns) for demand in demands]
    assert [ask.shape for ask in asks] == [JobClass(GPU, 8), JobClass((), 0), JobClass((), 4)]
    # 36 cores fill three nodes of 12; the even part of 36 on 5 is 8.
    assert [(ask.nodes, ask.each) for ask in asks] == [(5, 8), (3, 12), (10, 4)]
    assert [ask.gres for ask in asks] == [(("gpu", 5),), (), ()]
    assert [ask.shape.fills_gaps for ask in asks] == [False, True, False]


def test_a_job_of_cores_for_each_node_counts_all_of_them() -> None:
    columns, demands, _ = machine([Request(nodes=Span.exactly(3), cores_per_node=6)])
    ask = ask_of(demands[0], columns)
    assert (ask.cores, ask.each, ask.shape) == (18, 6, JobClass((), 8))


def test_what_a_running_job_holds_has_the_shape_of_its_request() -> None:
    columns, demands, _ = machine([on_nodes(36, 5, 1)])
    assert shape_held(8, {"gpu": 1, "other": 0}) == ask_of(demands[0], columns).shape


def test_rooms_are_the_share_of_the_waiting_work_less_what_is_held() -> None:
    # 10 nodes of 12 cores: 4 cores on 10 nodes for 3600 s, 8 cores on 5 nodes for 1200 s.
    columns, demands, backlog = machine([on_nodes(40, 10), on_nodes(40, 5)], limits=[3600, 1200])
    span = (40 * 3600 + 40 * 1200) / 120
    assert backlog.span_s() == pytest.approx(span)
    share = (1.05 + 600 / span) / span
    rooms = backlog.rooms({JobClass((), 8): 2}, 600.0)
    assert rooms[JobClass((), 4)] == pytest.approx(36_000 * share)
    assert rooms[JobClass((), 8)] == pytest.approx(6_000 * share - 2)
    backlog.note(demands[1], -1)
    assert backlog.rooms({}, 600.0).keys() == {JobClass((), 4)}
    assert columns.total.cores.sum() == 120


def test_the_scarcest_resource_decides_for_how_long_the_machine_is_full() -> None:
    _, _, backlog = machine([on_nodes(40, 10, 3)], limits=[900])
    assert backlog.span_s() == pytest.approx(900)  # All 30 GPUs for 900 s; a third of the cores.
    assert backlog.is_gres_scarce()
    _, _, idle = machine([on_nodes(10, 10, 1), anywhere(60)], limits=[900, 900])
    assert not idle.is_gres_scarce()  # A third of the GPUs, 70 of 120 cores.


@pytest.mark.parametrize("kinds", [{"gpu": 3}, {"gpu:a100": 2, "gpu:v100": 1}])
def test_gres_count_over_all_types_where_the_request_names_none(kinds: dict[str, int]) -> None:
    columns, demands, backlog = machine([on_nodes(10, 10, 1)], gres=kinds, limits=[300])
    assert backlog.dominant_share(ask_of(demands[0], columns)) == pytest.approx(10 / 30)
    assert backlog.span_s() == pytest.approx(100)


def test_first_bids_go_from_the_scarcest_shape_to_jobs_that_fill_gaps_in_the_queues_order() -> None:
    requests = [
        anywhere(12),
        on_nodes(8, 2),
        on_nodes(8, 1),
        on_nodes(4, 1, 2),
        on_nodes(8, 1, 2),
        on_nodes(4, 1),
    ]
    columns, demands, backlog = machine(requests * 20, limits=[100] * 120)
    order = balance_for(columns, demands, backlog).order(demands)
    kinds = [place % 6 for place in order]
    # Two GPUs and 8 cores, two and 4, none and 8, none and 4 (kinds 1 and 5 are one shape), gaps.
    assert kinds == [4] * 20 + [3] * 20 + [2] * 20 + [1, 5] * 20 + [0] * 20
    assert order[:3] == [4, 10, 16]


def test_near_the_end_the_longest_of_a_shape_go_first_and_shapes_stay_apart() -> None:
    limits = [100, 300, 200, 300]
    requests = [on_nodes(40, 5, 1), on_nodes(40, 5, 1), on_nodes(40, 5), on_nodes(40, 5)]
    columns, demands, backlog = machine(requests, limits=limits)
    assert 300 < backlog.span_s() * 3 < 3 * 300 * 3
    near = balance_for(columns, demands, backlog)
    assert near.is_draining is (backlog.span_s() < 300)
    columns, demands, backlog = machine(requests * 2, limits=limits * 2)
    near = balance_for(columns, demands, backlog)
    assert not near.is_draining
    assert near.order(demands) == [1, 5, 0, 4, 3, 7, 2, 6]


def test_a_drained_machine_has_no_rows_and_the_longest_first() -> None:
    columns, demands, backlog = machine(
        [anywhere(12), on_nodes(4, 1, 3), on_nodes(8, 1)], limits=[50, 70, 60]
    )
    balance = balance_for(columns, demands, backlog)
    assert balance.is_draining
    assert not balance.shares.rooms
    assert not balance.kept
    assert balance.order(demands) == [1, 2, 0]


def test_drain_can_be_asked_for_where_rows_would_keep_an_empty_machine_idle() -> None:
    columns, demands, backlog = machine([on_nodes(40, 10, 3), anywhere(12)] * 20, limits=[100] * 40)
    assert balance_for(columns, demands, backlog).shares.rooms
    forced = balance_for(columns, demands, backlog, drain=True)
    assert forced.is_draining
    assert not forced.shares.rooms
    assert not forced.kept


def test_share_rows_take_the_nodes_of_their_shapes_bids_only() -> None:
    requests = [on_nodes(8, 2, 1), on_nodes(24, 3), anywhere(12), on_nodes(4, 1, 1)] * 10
    columns, demands, backlog = machine(requests, limits=[100] * 40)
    held = {JobClass(GPU, 4): 1}
    balance = balance_for(columns, demands, backlog, held=held)
    four = str(JobClass(GPU, 4))
    assert balance.shares.rooms.keys() == {four, str(JobClass((), 8))}
    rooms = backlog.rooms(held, 100.0)
    assert balance.shares.rooms[four] == int(rooms[JobClass(GPU, 4)])
    bids = generate_bids(
        tuple(demands), Cluster(columns, linear(len(columns.names))), BidOptions(max_bids_per_job=4)
    )
    table = bids.table
    expected = [
        len(table.node[table.entries(bid)]) * (table.job[bid] % 4 in (0, 3)) for bid in range(len(table))
    ]
    claims = {claim.resource: claim for claim in claims_of(table, balance.on(columns))}
    assert claims[Resource("shares", four)].amount.tolist() == expected
    assert claims[Resource("shares", four)].capacity.tolist() == [int(rooms[JobClass(GPU, 4)])]
    assert sum(expected) > 0


def test_no_share_is_below_the_widest_job_of_its_shape_in_sight() -> None:
    # Two short jobs in a long queue of others: their share is a fraction of a node.
    requests = [on_nodes(8, 2, 3), on_nodes(12, 3, 3), *[on_nodes(80, 10)] * 50]
    columns, demands, backlog = machine(requests, limits=[10, 10, *[1000] * 50])
    rare = JobClass((("gpu", 3),), 4)
    assert backlog.rooms({}, 1000.0)[rare] < 1
    for held, room in ((0, 3), (1, 2), (5, 0)):
        rows = balance_for(columns, demands, backlog, held={rare: held}).shares
        assert rows.rooms[str(rare)] == room


def test_jobs_of_cores_alone_leave_the_cores_of_the_largest_shape_beside_free_gres() -> None:
    requests = [on_nodes(80, 10, 2), on_nodes(40, 10, 1), anywhere(24)] * 10
    columns, demands, backlog = machine(requests, limits=[100] * 30)
    columns.free.gres["gpu"][:3] = 0
    columns.free.cores[5] = 4
    balance = balance_for(columns, demands, backlog)
    least, most = balance.kept
    assert least.left.tolist() == [12, 12, 12, 8, 8, 0, 8, 8, 8, 8]
    assert most.left.tolist() == [12, 12, 12, 4, 4, 0, 4, 4, 4, 4]
    bids = generate_bids(
        tuple(demands), Cluster(columns, linear(len(columns.names))), BidOptions(max_bids_per_job=4)
    )
    table = bids.table
    job = np.repeat(table.job, table.lengths)
    claims = {claim.resource: claim for claim in claims_of(table, balance.on(columns))}
    for row in ("least", "most"):
        amounts = claims[Resource("kept_cores", row)].amount
        assert amounts.tolist() == [
            int(cores) if place % 3 == 2 else 0 for cores, place in zip(table.cores, job, strict=True)
        ]
        assert amounts.sum() > 0


def test_no_cores_are_kept_where_gres_are_left_over_anyway() -> None:
    requests = [on_nodes(40, 10, 1), anywhere(120), anywhere(120)] * 10
    columns, demands, backlog = machine(requests, limits=[100] * 30)
    assert balance_for(columns, demands, backlog).kept == ()


def test_worth_is_the_dominant_share_times_what_is_hard_to_place_and_falls_along_the_window() -> None:
    requests = [anywhere(24), on_nodes(24, 6), on_nodes(24, 3), on_nodes(24, 6, 1), on_nodes(24, 6, 3)]
    columns, demands, backlog = machine(requests * 10, limits=[100] * 50)
    given = balance_for(columns, demands, backlog)
    # Integers in parts of 2⁻²⁰.
    all_worth = np.array([given.worth(str(place)) for place in range(50)]) / 2**20
    worth = all_worth[:5] / (2 - np.arange(5) / 50)
    assert all_worth[45] / all_worth[0] == pytest.approx((2 - 45 / 50) / 2, rel=1e-4)
    gap, four, eight, one, three = worth.tolist()
    assert gap == pytest.approx(24 / 120, rel=1e-4)
    assert four / gap == pytest.approx(3 * 1.5**2, rel=1e-4)
    assert gap < four < eight < one < three
    # Three GPUs on 6 of 10 nodes are 18 of 30: more than the cores' share.
    assert three / one == pytest.approx(0.6 / 0.2 * 3**2, rel=1e-4)


@given(
    gpus=st.lists(st.integers(0, 3), min_size=10, max_size=10),
    cores=st.lists(st.integers(0, 12), min_size=10, max_size=10),
    asked=st.integers(0, 3),
    each=st.sampled_from([1, 4, 8]),
    count=st.integers(1, 6),
)
def test_a_first_bid_leaves_the_fewest_gres_and_stands_close_together(
    gpus: list[int], cores: list[int], asked: int, each: int, count: int
) -> None:
    columns, demands, backlog = machine([on_nodes(each * count, count, asked)] * 30, limits=[100] * 30)
    free = Capacity(cores=np.array(cores), memory=columns.free.memory, gres={"gpu": np.array(gpus)})
    usable = np.flatnonzero((free.cores >= 1) & (free.gres["gpu"] >= asked))
    (found,) = balance_for(columns, demands, backlog).nodes_for(demands[0], usable, free.cores[usable], free)
    holding = [place for place in usable.tolist() if cores[place] >= each]
    assert sorted(found.tolist()) == holding
    if len(holding) < count:
        return
    spare = {place: (gpus[place] - asked, cores[place] // each) for place in holding}
    best = sorted(spare.values())[:count]
    ways = [way for way in combinations(holding, count) if sorted(spare[place] for place in way) == best]
    taken = sorted(found[:count].tolist())
    assert tuple(taken) in ways
    last = [place for place in taken if spare[place] == best[-1]]
    spans = [
        max(tied) - min(tied)
        for tied in ([place for place in way if spare[place] == best[-1]] for way in ways)
    ]
    assert last[-1] - last[0] == min(spans)


@pytest.mark.parametrize(
    ("request_", "usable", "taken"),
    [
        (on_nodes(24, 2), [0, 3, 5, 8], [0, 3]),
        (on_nodes(24, 2), [3, 5, 8], [5, 8]),
        (anywhere(24), [0, 3, 5, 8], [0, 3]),
    ],
    ids=["nodes", "no-closer-pair", "gaps"],
)
def test_of_equal_nodes_those_below_the_lowest_switch_are_taken(
    request_: Request, usable: list[int], taken: list[int]
) -> None:
    columns, demands, backlog = machine([request_] * 60, limits=[100] * 60)
    names = columns.names
    leaves = (Switch(name="a", nodes=tuple(names[:5])), Switch(name="b", nodes=tuple(names[5:])))
    switches = tree((*leaves, Switch(name="root", switches=("a", "b"))), names)
    balance = balance_for(columns, demands, backlog, topology=switches)
    units = columns.free.cores[usable]
    found = next(iter(balance.nodes_for(demands[0], np.array(usable), units, columns.free)))
    assert sorted(found[:2].tolist()) == taken


@given(
    gpus=st.lists(st.integers(0, 3), min_size=9, max_size=9),
    cores=st.lists(st.integers(0, 12), min_size=9, max_size=9),
    wanted=st.integers(1, 60),
)
def test_a_job_that_fills_gaps_takes_a_short_stretch_with_the_fewest_gres(
    gpus: list[int], cores: list[int], wanted: int
) -> None:
    columns, demands, backlog = machine([anywhere(wanted)] * 60, nodes=9, limits=[100] * 60)
    free = Capacity(cores=np.array(cores), memory=columns.free.memory, gres={"gpu": np.array(gpus)})
    usable = np.flatnonzero(free.cores >= 1)
    (found,) = balance_for(columns, demands, backlog).nodes_for(demands[0], usable, free.cores[usable], free)
    if free.cores.sum() < wanted:
        assert sorted(found.tolist()) == usable.tolist()
        return
    count = int(np.searchsorted(np.cumsum(free.cores[found]), wanted)) + 1
    taken = found[:count].tolist()
    most = next(most for most in range(4) if free.cores[free.gres["gpu"] <= most].sum() >= wanted)
    among = [place for place in usable.tolist() if gpus[place] <= most]
    lengths = [
        last - first
        for first in range(len(among))
        for last in range(first + 1, len(among) + 1)
        if free.cores[among[first:last]].sum() >= wanted
    ]
    assert max(gpus[place] for place in taken) <= most
    assert count == min(lengths)
    places = sorted(among.index(place) for place in taken)
    assert places == list(range(places[0], places[0] + count))


def test_uneven_nodes_are_for_draining_only() -> None:
    columns, demands, backlog = machine([on_nodes(24, 3)] * 30, limits=[100] * 30)
    free = columns.free.copy()
    free.cores[:8] = 6
    usable, units = np.arange(10), free.cores
    (even,) = balance_for(columns, demands, backlog).nodes_for(demands[0], usable, units, free)
    assert even.tolist() == [8, 9]
    drained = balance_for(columns, demands, backlog, drain=True)
    (found,) = drained.nodes_for(demands[0], usable, units, free)
    assert found.tolist() == [8, 9, *range(8)]


def test_cores_per_task_are_counted_in_units() -> None:
    request = Request(cores=24, nodes=Span.exactly(3), cores_per_task=4)
    columns, demands, backlog = machine([request] * 30, limits=[100] * 30)
    usable, units = np.arange(10), np.array([1, 2, 4] * 3 + [2])
    (found,) = balance_for(columns, demands, backlog).nodes_for(demands[0], usable, units, columns.free)
    assert sorted(found.tolist()) == [1, 2, 4, 5, 7, 8, 9]
    assert units[found[:3]].tolist() == [2, 2, 2]


def test_a_job_is_overdue_that_has_waited_longer_than_the_youngest_would_if_it_came_last() -> None:
    requests = [anywhere(12), on_nodes(24, 3, 2), on_nodes(40, 10, 1), on_nodes(80, 10)] * 10
    columns, demands, backlog = machine(requests, limits=[100] * 40)
    youngest = 50.0
    limit = 1.06 * (backlog.span_s() + youngest)
    waits = {demand.job.id: youngest for demand in demands}
    waits |= {"4": limit + 1, "5": limit + 1, "6": limit}
    balance = balance_for(columns, demands, backlog, waits=waits)
    assert balance.overdue == {"4", "5"}
    # First of all, and in no row.
    assert balance.order(demands)[:3] == [4, 5, 1]
    assert "5" not in balance.shares.shapes
    assert "9" in balance.shares.shapes
    assert all("4" not in kept.jobs and "8" in kept.jobs for kept in balance.kept)
    # Whose wait is not known may be the youngest.
    del waits["7"]
    assert balance_for(columns, demands, backlog, waits=waits).overdue == {"4", "5", "6"}
    assert not balance_for(columns, demands, backlog).overdue


def test_a_contiguous_job_takes_the_shortest_run_among_nodes_with_the_fewest_gres() -> None:
    request = dataclasses.replace(on_nodes(8, 2), contiguous=True)
    columns, demands, backlog = machine([request] * 60, nodes=12, limits=[100] * 60)
    free = columns.free.copy()
    free.gres["gpu"][:] = [0, 0, 0, 3, 0, 0, 3, 2, 2, 2, 2, 0]
    usable = np.arange(12)
    balance = balance_for(columns, demands, backlog)
    (found,) = balance.nodes_for(demands[0], usable, free.cores, free)
    assert found.tolist() == [4, 5]
    without = np.array([0, 2, 3, 6, 7, 8, 9, 10])
    (found,) = balance.nodes_for(demands[0], without, free.cores[without], free)
    assert found.tolist() == [7, 8]
    alone = np.array([0, 2, 5])
    assert list(balance.nodes_for(demands[0], alone, free.cores[alone], free)) == []


def test_a_contiguous_job_that_fills_gaps_is_tried_on_nodes_with_ever_more_gres() -> None:
    request = dataclasses.replace(anywhere(24), contiguous=True)
    columns, demands, backlog = machine([request] * 60, nodes=4, limits=[100] * 60)
    free = columns.free.copy()
    free.gres["gpu"][:] = [0, 3, 1, 0]
    tried = balance_for(columns, demands, backlog).nodes_for(demands[0], np.arange(4), free.cores, free)
    assert [nodes.tolist() for nodes in tried] == [[0, 3], [0, 2, 3], [0, 1, 2, 3]]


def test_a_job_of_gres_over_all_nodes_is_tried_on_nodes_that_have_some() -> None:
    columns, demands, backlog = machine([Request(cores=4, gres_total={"gpu": Span.exactly(4)})] * 60, nodes=4)
    free = columns.free.copy()
    free.gres["gpu"][:2] = 0
    tried = balance_for(columns, demands, backlog).nodes_for(demands[0], np.arange(4), free.cores, free)
    assert [nodes.tolist() for nodes in tried] == [[2, 3], [0, 1, 2, 3]]
    # Four GPUs of nodes with three each: two nodes.
    assert ask_of(demands[0], columns).nodes == 2


def test_an_empty_window_has_no_shares() -> None:
    columns, _, backlog = machine([on_nodes(4, 1)])
    balance = balance_for(columns, [], backlog)
    assert (balance.order([]), dict(balance.shares.rooms), balance.kept) == ([], {}, ())
