"""The papers' figures and examples (Soner), and the exactness of sums of priorities."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_snapshots import random_snapshot
from support.build import ALONE, figure_4_3, section_1_2, snapshot, tree

from aucsched import InputError, Schedule, schedule
from aucsched.auction.options import StepOptions
from aucsched.bidgen.families.registry import columns_of
from aucsched.bidgen.first_fit import Cluster
from aucsched.bidgen.generate import BidOptions, generate_bids
from aucsched.bidgen.table import BidTable
from aucsched.bidgen.windows import general_nodesets, runs
from aucsched.cluster.jobs import JobType
from aucsched.cluster.resources.capacity import IntArray
from aucsched.cluster.resources.demand import Demand, DemandReader
from aucsched.models.auction_model import CORRECTED, PRINTED, TABLE_4_4, Constants, preference_f
from aucsched.topology.tree import topology_of

BOTH = pytest.mark.parametrize("model", ["aucsched2", "aucsched3"])

FIGURE_4_4 = "4/1 8/2 2/2 4/0 0/0 4/2 1/2 2/1 2/1 2/0 0/0 4/1"


def started(result: Schedule) -> list[str]:
    return sorted(award.job for award in result.started)


def figure_4_4_nodes() -> list[dict[str, Any]]:
    pairs = [tuple(map(int, pair.split("/"))) for pair in FIGURE_4_4.split()]
    return [
        {
            "name": f"n{place:02d}",
            "cores": 8,
            "free_cores": cores,
            "gres": {"gpu": 2},
            "free_gres": {"gpu": gpus},
        }
        for place, (cores, gpus) in enumerate(pairs, start=1)
    ]


def nodesets(cores: IntArray, gres: IntArray, count: int) -> list[tuple[int, int, int]]:
    """Return first and last node of each nodeset for a count g of a gres, and its free cores."""
    first, last = runs((cores > 0) & (gres >= count))
    ends = zip(first.tolist(), last.tolist(), strict=True)
    return [(start, end, int(cores[start : end + 1].sum())) for start, end in ends]


def test_figure_4_4_has_exactly_these_eight_nodesets() -> None:
    """Soner: nodesets (4.1).

    Soner: figure 4.4 nodesets.
    """
    cores, gpus = np.array([[*map(int, pair.split("/"))] for pair in FIGURE_4_4.split()]).T
    found = [
        (first + 1, last + 1, total, g) for g in (0, 1, 2) for first, last, total in nodesets(cores, gpus, g)
    ]
    assert found == [
        (1, 4, 18, 0),
        (6, 10, 11, 0),
        (12, 12, 4, 0),
        (1, 3, 14, 1),
        (6, 9, 9, 1),
        (12, 12, 4, 1),
        (2, 3, 10, 2),
        (6, 7, 5, 2),
    ]


def test_figure_4_4_counts_eight_general_nodesets() -> None:
    cluster = snapshot(figure_4_4_nodes(), [])
    columns, topology = columns_of(cluster), topology_of(cluster)
    assert general_nodesets(columns, columns.free, topology, use_switches=False) == 8
    assert (
        schedule(snapshot(figure_4_4_nodes(), [{"cores": 1}]), model="aucsched2", **ALONE).sizes.nodesets == 8
    )


@pytest.mark.parametrize(
    ("job", "gpus"),
    [
        ({"cores": 9}, 0),
        ({"cores": 9, "contiguous": True}, 0),
        ({"nodes": 3, "cores": 6}, 0),
        ({"nodes": 2, "cores": 4, "gres_per_node": {"gpu": 1}}, 1),
        ({"nodes": 2, "cores_per_node": 2, "gres_per_node": {"gpu": 1}}, 1),
        ({"nodes": 2, "cores_per_node": 2, "gres_per_node": {"gpu": 1}, "contiguous": True}, 1),
    ],
)
def test_classes_of_bids_are_those_of_section_4_1(job: dict[str, Any], gpus: int) -> None:
    """A stands at an end of a nodeset, B inside of one, C joins nodesets; for the three types of jobs.

    Soner: bids of class A, B, C, job types 1 to 3 (4.1).
    """
    cluster = snapshot(figure_4_4_nodes(), [job])
    columns = columns_of(cluster)
    demand = DemandReader(cluster, columns).read(cluster.jobs[0], 0)
    assert isinstance(demand, Demand)
    options = BidOptions(use_switches=False, order="figure-4.5")
    table = generate_bids((demand,), Cluster(columns, topology_of(cluster)), options).table
    free, gres = np.array([[*map(int, pair.split("/"))] for pair in FIGURE_4_4.split()]).T
    # The job's own: of nodes that have its least cores, too, for type 3.
    usable = np.where(free >= job.get("cores_per_node", 1), free, 0)
    sets = [range(first, last + 1) for first, last, _ in nodesets(usable, gres, gpus)]
    classes, fewest = set(), len(free)
    for bid in range(len(table)):
        nodes = table.node[table.indptr[bid] : table.indptr[bid + 1]].tolist()
        own = [one for one in sets if nodes[0] in one]
        is_one_run = nodes == list(range(nodes[0], nodes[-1] + 1)) and nodes[-1] in own[0]
        at_an_end = nodes[0] == own[0].start or nodes[-1] == own[0].stop - 1
        found = (0 if at_an_end else 1) if is_one_run else 2
        assert table.bid_class[bid] == found
        assert free[nodes].sum() >= job.get("cores", 0)
        assert len(nodes) == job.get("nodes", len(nodes))
        classes.add(found)
        fewest = min(fewest, len(nodes)) if found == 0 else fewest
    assert 0 in classes
    assert (2 in classes) is not job.get("contiguous", False)
    if "nodes" not in job:
        # n1 and n2 hold 12 cores; no node and no other pair at an end of a nodeset holds 9.
        assert fewest == 2


def test_a_range_of_gpus_takes_the_most_that_are_free() -> None:
    """Section 5.2: bids have z_min <= R <= z_max; (5.7) prefers more; less is taken where no more is free.

    Soner: GPU ranges, --gres=gpu:X-Y (5.2).
    """
    nodes = [
        {"name": f"n{free}", "cores": 4, "gres": {"gpu": 4}, "free_gres": {"gpu": free}} for free in range(5)
    ]

    def given(least: int, most: int, **job: Any) -> list[int]:
        jobs = [{"nodes": 1, "cores_per_node": 1, "gres_per_node": {"gpu": [least, most]}, **job}]
        result = schedule(snapshot(nodes, jobs), model="aucsched2", **ALONE)
        return [held.gres["gpu"] for award in result.started for held in award.nodes.values()]

    assert given(1, 3) == [3]
    assert given(1, 3, required_nodes="n2") == [2]
    assert given(3, 4, required_nodes="n2") == []
    assert given(2, 2) == [2]


def test_switches_end_nodesets_and_duplicates_are_dropped() -> None:
    """Soner: nodesets below every switch (6.1)."""
    nodes = [{"name": f"n{place}", "cores": 1} for place in range(6)]
    cluster = snapshot(nodes, [], topology=tree([str(node["name"]) for node in nodes], 2))
    columns, topology = columns_of(cluster), topology_of(cluster)
    # The whole row below the root, and each leaf's pair.
    assert general_nodesets(columns, columns.free, topology, use_switches=True) == 4


@BOTH
@pytest.mark.parametrize("topology", [{"kind": "linear"}, tree(["n1", "n2", "n3", "n4"], 2)])
def test_section_1_2_starts_all_three_jobs(model: Any, topology: dict[str, Any]) -> None:
    """Soner: AUCSCHED2 (chapter 5)."""
    result = schedule(section_1_2(topology=topology), model=model, **ALONE)
    assert started(result) == ["J1", "J2", "J3"]
    assert result.status == "optimal"
    cores_of_first = next(award for award in result.started if award.job == "J1").nodes.values()
    assert [use.cores for use in cores_of_first] == [6, 6, 6, 6]


@BOTH
def test_figure_4_3_starts_three_jobs(model: Any) -> None:
    options: dict[str, Any] = {"model": model, "strategy": "exact", "time_limit_s": 60}
    # The model over its bids.
    result = schedule(figure_4_3(), award_alone=True, **options, **ALONE)
    assert len(result.started) == 3
    assert result.objective.priority == 1000 + 999 + 998
    # By counts all four may start: where they do, each on its own, is an award too.
    assert len(schedule(figure_4_3(), **options, **ALONE).started) == 4


def one_core_nodes(count: int) -> list[dict[str, Any]]:
    return [{"name": f"n[0-{count - 1}]", "cores": 1}]


@BOTH
def test_a_thousand_priorities_near_four_billion_leave_the_last_waiting(model: Any) -> None:
    jobs = [{"cores": 1, "priority": 4_294_901_760 - rank} for rank in range(1000)]
    result = schedule(snapshot(one_core_nodes(999), jobs), model=model, window=1000, time_limit_s=60, **ALONE)
    assert result.status == "optimal"
    assert [(refusal.job, refusal.reason) for refusal in result.pending] == [("J1000", "outbid")]


@BOTH
@pytest.mark.parametrize(("wide", "expected"), [(8_000_000_001, ["J1"]), (7_999_999_999, ["J2", "J3"])])
def test_one_wide_job_against_two_narrow_ones_is_decided_by_the_last_unit(
    model: Any, wide: int, expected: list[str]
) -> None:
    """Soner: equations (6.8)-(6.13) proof for pairs of jobs."""
    jobs = [
        {"cores": 2, "priority": wide},
        {"cores": 1, "priority": 4_000_000_000},
        {"cores": 1, "priority": 4_000_000_000},
    ]
    result = schedule(snapshot(one_core_nodes(2), jobs), model=model, **ALONE)
    assert started(result) == expected
    assert result.status == "optimal"


@BOTH
def test_equal_priorities_start_as_many_as_fit(model: Any) -> None:
    jobs = [{"cores": 2, "priority": 7} for _ in range(5)]
    result = schedule(snapshot(one_core_nodes(7), jobs), model=model, **ALONE)
    assert len(result.started) == 3
    assert result.objective.priority == 21


@BOTH
def test_wide_gaps_between_priorities_stop_no_low_job(model: Any) -> None:
    jobs = [{"cores": 1, "priority": priority} for priority in (10_000, 100, 1)]
    result = schedule(snapshot(one_core_nodes(3), jobs), model=model, **ALONE)
    assert started(result) == ["J1", "J2", "J3"]


@BOTH
def test_fractions_of_priorities_decide(model: Any) -> None:
    jobs = [{"cores": 2, "priority": 0.3}, {"cores": 1, "priority": 0.1}, {"cores": 1, "priority": 0.2}]
    tied = schedule(snapshot(one_core_nodes(2), jobs), model=model, **ALONE)
    # 0.1 + 0.2 is 0.3 exactly, though not in floating point: preference decides, not the rounding.
    assert float(tied.objective.priority) == 0.3
    jobs[2]["priority"] = 0.2000000000000001
    assert started(schedule(snapshot(one_core_nodes(2), jobs), model=model, **ALONE)) == ["J2", "J3"]


def test_two_bids_that_differ_in_level_only_take_the_lower_level() -> None:
    """Soner: AUCSCHED3 (chapter 6)."""
    names = [f"n{place}" for place in range(6)]
    nodes = [{"name": name, "cores": 1, "free_cores": int(name not in {"n0", "n3"})} for name in names]
    cluster = snapshot(nodes, [{"nodes": 2, "cores": 2}], topology=tree(names, 3))
    result = schedule(cluster, model="aucsched3", **ALONE)
    assert result.started[0].bid.level == 0
    assert set(result.started[0].nodes) in ({"n1", "n2"}, {"n4", "n5"})


def test_equal_priorities_do_not_switch_topology_off() -> None:
    """Soner: equations (6.1)-(6.4)."""
    names = [f"n{place}" for place in range(8)]
    nodes = [{"name": name, "cores": 1, "free_cores": int(name not in {"n0", "n5"})} for name in names]
    jobs = [{"nodes": 2, "cores": 2, "priority": 5} for _ in range(3)]
    result = schedule(snapshot(nodes, jobs, topology=tree(names, 2)), model="aucsched3", **ALONE)
    assert sorted(award.bid.level or 0 for award in result.started) == [0, 0, 1]


def test_no_gpus_anywhere_are_no_division_by_zero() -> None:
    """Soner: equation (6.5)."""
    result = schedule(snapshot(one_core_nodes(2), [{"cores": 1}]), model="aucsched3", weights="paper")
    assert started(result) == ["J1"]


@pytest.mark.parametrize("priorities", [[2**53, 1], [10**16, 10**16]])
def test_weights_beyond_two_to_the_53_are_refused_as_one_objective_of_floats(
    priorities: list[int], tmp_path: Path
) -> None:
    cluster = snapshot(one_core_nodes(2), [{"cores": 1, "priority": priority} for priority in priorities])
    with pytest.raises(InputError, match="above 2\\^53"):
        schedule(cluster, weights="paper")
    with pytest.raises(InputError, match="above 2\\^53"):
        schedule(cluster, export=str(tmp_path / "a.mps"))
    assert schedule(cluster).objective.priority == sum(priorities)


@pytest.mark.parametrize("strategy", ["exact", "anytime"])
@pytest.mark.parametrize("base", [2**32, 10**6])
def test_tiers_of_priorities_are_exact_however_large(base: int, strategy: Any) -> None:
    """A job of a higher tier counts more than all of the lower ones, which stay apart by 1."""
    first = [base - place for place in range(40)]
    second = [base - place + sum(first) for place in range(40)]
    third = [base - place + sum([*first, *second]) * 1000 for place in range(40)]
    jobs = [{"cores": 1 + place % 2, "priority": one} for place, one in enumerate([*first, *second, *third])]
    result = schedule(snapshot([{"name": "n", "cores": 90}], jobs), strategy=strategy, work_limit=20, **ALONE)
    # Forty of the third tier take 60 cores; of the second the twenty of one core each and five of two.
    ones, twos = second[::2], second[1::2]
    assert result.objective.priority == sum([*third, *ones, *twos[:5]])
    assert result.objective.bound is not None
    assert result.objective.bound >= result.objective.priority


def bids_of(jobs: list[dict[str, Any]], **options: Any) -> tuple[BidTable, int]:
    cluster = snapshot(figure_4_4_nodes(), jobs)
    columns = columns_of(cluster)
    reader = DemandReader(cluster, columns)
    demands = tuple(
        one for place, job in enumerate(cluster.jobs) if isinstance(one := reader.read(job, place), Demand)
    )
    bids = generate_bids(
        demands, Cluster(columns, topology_of(cluster)), BidOptions(use_switches=False, **options)
    )
    return bids.table, len(columns.names)


@pytest.mark.parametrize(
    "job",
    [
        {"cores": 5},
        {"nodes": 2, "cores": 3},
        {"nodes": 2, "cores_per_node": 1, "gres_per_node": {"gpu": [0, 2]}},
        {"cores": 3, "gres_per_node": {"gpu": [1, 2]}},
    ],
)
def test_preference_ranks_a_above_b_above_c_at_equal_gres(job: dict[str, Any]) -> None:
    """Soner: equation (5.7)."""
    table, nodes = bids_of([job])
    preference = preference_f(table, nodes, CORRECTED)
    assert len(set(table.bid_class.tolist())) == 3
    for ratio in np.unique(table.gres_ratio):
        same = table.gres_ratio == ratio
        ranges = [
            (
                preference[same & (table.bid_class == code)].min(),
                preference[same & (table.bid_class == code)].max(),
            )
            for code in range(3)
            if (same & (table.bid_class == code)).any()
        ]
        assert all(better[0] > worse[1] for better, worse in pairwise(ranges))


def test_the_printed_table_ranks_c_above_b_for_types_two_and_three() -> None:
    """Soner: table 5.2 constants."""
    table, nodes = bids_of([{"nodes": 2, "cores": 3}])
    preference = preference_f(table, nodes, PRINTED)
    assert preference[table.bid_class == 2].max() > preference[table.bid_class == 1].max()


@given(seed=st.integers(0, 10**6), order=st.sampled_from(["spec", "figure-4.5"]))
@settings(max_examples=100, deadline=None)
def test_preference_stays_in_the_ranges_of_4_11(seed: int, order: str) -> None:
    """Soner: preference constants (4.2).

    Soner: equations (4.11), (4.12).
    """
    cluster = random_snapshot(seed)
    columns = columns_of(cluster)
    reader = DemandReader(cluster, columns)
    found = [reader.read(job, place) for place, job in enumerate(cluster.jobs)]
    jobs = [one for one in found if isinstance(one, Demand)]
    demands = tuple(replace(demand, index=place) for place, demand in enumerate(jobs))
    options = BidOptions(use_switches=False, order=order)
    table = generate_bids(demands, Cluster(columns, topology_of(cluster)), options).table
    assert (table.nodesets >= 1).all()
    assert (table.nodesets <= table.general_nodesets).all()
    preference = preference_f(table, len(columns.names), TABLE_4_4)
    is_type_one = np.array([one.job.request.type is JobType.CORES for one in table.demands], np.bool_)[
        table.job
    ]
    for bid_class, (low, high) in enumerate([(0.75, 1), (0.5, 0.75), (0, 0.5)]):
        of_class = preference[is_type_one & (table.bid_class == bid_class)]
        assert ((of_class > low) & (of_class < high)).all()
    # Table 4.4 puts types 2 and 3 at the ends of the intervals: A is 1 and B a half, and C below it.
    assert (preference[~is_type_one & (table.bid_class == 0)] == 1).all()
    assert (preference[~is_type_one & (table.bid_class == 1)] == 0.5).all()
    spread = preference[~is_type_one & (table.bid_class == 2)]
    assert ((spread > 0) & (spread < 0.5)).all()
    for constants in (CORRECTED, PRINTED):
        assert (preference_f(table, len(columns.names), constants) > 0).all()


@pytest.mark.parametrize(
    ("table", "type_1", "types_2_and_3"),
    [
        (TABLE_4_4, "0 0.25 0.5 / 0.25 0.25 0.25 / 0 0 0.25 / 0 0 0", "0 0.5 0.5 / 0 0 0 / 0 0 0.5 / 0 0 0"),
        (
            PRINTED,
            "0 0.25 0.4 / 0.25 0.25 0.25 / 0 0 0.25 / 0.1 0.1 0.1",
            "0 0.5 0.4 / 0 0 0 / 0 0 0.1 / 0.1 0.1 0.1",
        ),
    ],
)
def test_tables_4_4_and_5_2_are_the_printed_ones(table: Constants, type_1: str, types_2_and_3: str) -> None:
    """Soner: table 4.4 constants, k1 to k4 of the classes A, B and C; there is no k4 in 4.4.

    Soner: table 5.2 constants.
    """
    for is_type_one, text in ((True, type_1), (False, types_2_and_3)):
        by_constant = [[float(cell) for cell in line.split()] for line in text.split(" / ")]
        assert list(table[is_type_one]) == list(zip(*by_constant, strict=True))


def test_a_bid_on_every_other_node_of_one_nodeset_comes_from_one_nodeset() -> None:
    nodes = [{"name": f"n{place:02d}", "cores": 2, "features": ["a"] * (place % 2)} for place in range(40)]
    cluster = snapshot(nodes, [{"nodes": 9, "cores_per_node": 1, "features": ["a"]}])
    columns = columns_of(cluster)
    demand = DemandReader(cluster, columns).read(cluster.jobs[0], 0)
    assert isinstance(demand, Demand)
    table = generate_bids(
        (demand,), Cluster(columns, topology_of(cluster)), BidOptions(use_switches=False)
    ).table
    # Nine blocks of one node each, all of them within the one maximal run of free nodes.
    assert (table.general_nodesets, set(table.nodesets.tolist())) == (1, {1})
    assert np.allclose(preference_f(table, 40, TABLE_4_4), 1 - 0.5 - 0.5 / 2)


@pytest.mark.parametrize("cap", [15, 60])
def test_figure_4_5_has_spread_bids_among_those_of_their_class(cap: int) -> None:
    """Soner: spread bids (sections 1.2, 8.3: bids "spanning a large number of nodes")."""
    nodes = [{"name": f"n{place:03d}", "cores": 12} for place in range(200)]
    cluster = snapshot(nodes, [{"cores": 48}])
    columns = columns_of(cluster)
    demand = DemandReader(cluster, columns).read(cluster.jobs[0], 0)
    assert isinstance(demand, Demand)
    options = BidOptions(use_switches=False, order="figure-4.5", max_bids_per_job=cap)
    table = generate_bids((demand,), Cluster(columns, topology_of(cluster)), options).table
    assert len(table) == cap
    assert {4, 8, 16} <= set(table.lengths[table.bid_class == 0].tolist())


def test_aucsched1_has_no_spread_bids_by_figure_4_5() -> None:
    """Spread bids are "a design choice we made in AUCSCHED2" (pages 84 and 85)."""
    wide = snapshot([{"name": f"n{place:03d}", "cores": 12} for place in range(200)], [{"cores": 48}])
    demand = DemandReader(wide, columns := columns_of(wide)).read(wide.jobs[0], 0)
    assert isinstance(demand, Demand)
    first = StepOptions(model="aucsched1", bid_order="figure-4.5", max_bids_per_job=60)
    second = StepOptions(model="aucsched2", bid_order="figure-4.5", max_bids_per_job=60)
    for options, lengths in ((first, {4}), (second, {4, 8, 16})):
        table = generate_bids((demand,), Cluster(columns, topology_of(wide)), options.bids).table
        assert set(table.lengths.tolist()) >= lengths
        assert (max(table.lengths.tolist()) == 4) == (options is first)


def test_a_high_priority_job_does_not_starve_the_bids_of_late_ones() -> None:
    table, _ = bids_of([{"cores": 1}] * 10, max_bids=12)
    assert np.bincount(table.job).tolist() == [3, *[1] * 9]


def test_caps_hold_and_no_bid_stands_twice() -> None:
    table, _ = bids_of([{"cores": 3}, {"nodes": 2, "cores_per_node": 1}], max_bids_per_job=9)
    assert np.bincount(table.job).tolist() == [9, 9]
    contents = {
        (
            int(table.job[bid]),
            table.node[table.entries(bid)].tobytes(),
            table.cores[table.entries(bid)].tobytes(),
        )
        for bid in range(len(table))
    }
    assert len(contents) == len(table)


def test_jobs_beyond_the_cap_of_bids_say_so() -> None:
    result = schedule(snapshot(one_core_nodes(4), [{"cores": 1}] * 5), max_bids=3, **ALONE)
    # The fourth starts on what the three that bid leave.
    assert [award.job for award in result.started] == ["J1", "J2", "J3", "J4"]
    assert [refusal.reason for refusal in result.pending] == ["bid_cap"]
