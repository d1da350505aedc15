"""Node-level simulations: what a start may be, what becomes of every job, figures of small machines."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_snapshots import random_snapshot
from support.build import snapshot
from support.contended import OnOnePlace
from support.optimum import fits_alone

from aucsched.auction.attempt import attempt
from aucsched.auction.options import StepOptions
from aucsched.auction.queue import queue_of
from aucsched.auction.strategies import AttemptResult
from aucsched.bidgen.candidates import FreeView
from aucsched.bidgen.families.registry import columns_of
from aucsched.bidgen.first_fit import Cluster
from aucsched.bidgen.generate import place_alone
from aucsched.cluster.errors import AwardError, OptionError
from aucsched.cluster.jobs import Job, Request, Span
from aucsched.cluster.nodes import Node, NodeState, Resources, Switch
from aucsched.cluster.resources.allocation import Allocation, StartingJob
from aucsched.cluster.resources.capacity import Capacity
from aucsched.cluster.resources.demand import Demand, DemandReader
from aucsched.cluster.workload import ArrivingJob, ClusterWorkload
from aucsched.simulation.nodes.kernel import NodeKernel
from aucsched.simulation.nodes.node_machine import Machine
from aucsched.simulation.nodes.node_policies import NODE_POLICIES, NodeOptions, play
from aucsched.simulation.nodes.node_queue import NodePolicy, NodeQueue
from aucsched.simulation.nodes.node_result import NodeSimulation

AUCTIONS = ("ipsched", "aucsched1", "aucsched2", "aucsched3")


def machine(count: int = 8, cores: int = 4, gpus: int = 2, leaf: int = 4) -> dict[str, Any]:
    """Return equal nodes below leaves of ``leaf`` nodes and a root."""
    has = Resources(cores=cores, gres={"gpu": gpus} if gpus else {})
    nodes = tuple(Node(name=f"n{place}", total=has, free=has) for place in range(count))
    leaves = tuple(
        Switch(name=f"leaf{start}", nodes=tuple(node.name for node in nodes[start : start + leaf]))
        for start in range(0, count, leaf)
    )
    root = Switch(name="root", switches=tuple(switch.name for switch in leaves))
    return {"nodes": nodes, "switches": (*leaves, root)}


def job(
    name: str, arrival: float = 0, run: float = 100, limit: int | None = 100, **request: Any
) -> ArrivingJob:
    """Return an arriving job; a whole number of nodes or GPUs is exact."""
    nodes, gpus, factor = request.pop("nodes", None), request.pop("gpus", None), request.pop("factor", None)
    priority, user = request.pop("priority", 1000 - int(name)), request.pop("user", "")
    asked = Request(
        nodes=None if nodes is None else Span.exactly(nodes),
        gres_per_node={} if gpus is None else {"gpu": Span.exactly(gpus) if isinstance(gpus, int) else gpus},
        **request,
    )
    return ArrivingJob(
        job=Job(id=name, priority=priority, request=asked, time_limit_s=limit, user=user),
        arrival_s=arrival,
        run_time_s=run,
        gres_run_time_factor=factor,
    )


def played(
    policy: str, *jobs: ArrivingJob, cluster: dict[str, Any] | None = None, **options: Any
) -> NodeSimulation:
    """Play jobs on a small machine."""
    workload = ClusterWorkload(name="test", jobs=jobs, **(machine() if cluster is None else cluster))
    return play(workload, NodeOptions(policy=policy, **options))


def starts(result: NodeSimulation) -> dict[str, float]:
    """Return each started job's time of start."""
    return {one.demand.job.id: one.start_s for one in result.played}


def nodes_of(result: NodeSimulation, name: str) -> list[int]:
    """Return the nodes that a job ran on."""
    return next(one.allocation.nodes.tolist() for one in result.played if one.demand.job.id == name)


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        ("fcfs", {"1": 0, "2": 100, "3": 200}),
        ("easy", {"1": 0, "2": 100, "3": 2}),
        # Slurm looks behind a blocked job every 30 s.
        ("backfill-slurm", {"1": 0, "2": 100, "3": 30}),
    ],
)
def test_a_narrow_job_passes_a_blocked_wide_one_only_when_backfilling(
    policy: str, wanted: dict[str, float]
) -> None:
    # 32 cores: job 1 holds 24 until 100; job 2 wants all of them; job 3 fits beside job 1 and ends in time.
    jobs = (
        job("1", cores=24),
        job("2", arrival=1, cores=32),
        job("3", arrival=2, run=50, limit=50, cores=8),
    )
    assert starts(played(policy, *jobs)) == wanted


@pytest.mark.parametrize("policy", ["easy", "backfill-slurm", "aucsched3"])
def test_no_job_delays_a_reservation(policy: str) -> None:
    # Job 3 would outlast job 2's start at 100 on nodes that job 2 needs.
    jobs = (
        job("1", cores=24),
        job("2", arrival=1, cores=32),
        job("3", arrival=2, run=150, limit=150, cores=8),
    )
    assert starts(played(policy, *jobs)) == {"1": 0, "2": 100, "3": 200}


@pytest.mark.parametrize("policy", ["ipsched", "aucsched1", "aucsched2", "aucsched3"])
def test_winners_keep_the_place_that_was_counted_on_for_a_reservation(policy: str) -> None:
    # Job 3 starts when job 1 ends, beside job 2: that shares a node with its reservation, and stays long.
    jobs = (
        job("1", cores=4, nodes=1),
        job("2", cores=2, nodes=1, run=1000, limit=1000),
        job("3", cores=4, nodes=2),
    )
    assert starts(played(policy, *jobs, cluster=machine(count=2))) == {"1": 0, "2": 0, "3": 100}


def test_reservations_alone_never_keep_an_empty_machine_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_bids_beside_reservations(
        demands: tuple[Demand, ...], cluster: Cluster, options: StepOptions, **more: Any
    ) -> AttemptResult:
        return attempt(() if cluster.guards else demands, cluster, options, **more)

    monkeypatch.setattr("aucsched.auction.decide.attempt", no_bids_beside_reservations)
    # Two narrow jobs are worth more than the wide one: that is reserved for now.
    jobs = (job("1", cores=32), *(job(name, cores=16, priority=800) for name in "23"))
    result = played("aucsched3", *jobs, work_limit=20, promise="none")
    assert starts(result) == {"2": 0, "3": 0, "1": 100}


def test_without_a_reservation_an_auction_lets_narrow_jobs_pass_a_wide_one_for_ever() -> None:
    stream = [job(str(place), arrival=50 * (place - 2), cores=16) for place in range(3, 20)]
    jobs = (job("1", cores=16), job("2", arrival=1, cores=32), *stream)
    starved = starts(played("aucsched3", *jobs, reserve=0))
    assert starved["2"] == max(starved.values())
    assert starts(played("aucsched3", *jobs, reserve=1))["2"] == 100


@given(seed=st.integers(0, 10**6))
@settings(max_examples=80, deadline=None)
def test_what_is_held_back_before_an_auction_could_start_nowhere(seed: int) -> None:
    cluster = random_snapshot(seed)
    jobs = [
        replace(job, request=replace(job.request, contiguous=True)) if place % 2 else job
        for place, job in enumerate(cluster.jobs)
    ]
    cluster = replace(cluster, jobs=tuple(jobs))
    columns = columns_of(cluster)
    view = FreeView(columns, columns.free)
    for demand in queue_of(cluster, DemandReader(cluster, columns), StepOptions()).window:
        assert view.could_hold(demand) or not fits_alone(cluster, demand.job)


def test_contiguous_jobs_need_neighbours() -> None:
    cluster = machine()
    cluster["nodes"] = tuple(
        replace(node, state=NodeState.DOWN) if node.name == "n3" else node for node in cluster["nodes"]
    )
    jobs = (
        *(job(str(nodes), nodes=nodes, cores=nodes, contiguous=True) for nodes in (3, 4, 5)),
        *(job(str(cores), cores=cores, contiguous=True) for cores in (16, 17)),
        job("7", nodes=5, cores=5),
    )
    made = Machine(ClusterWorkload(name="", jobs=jobs, **cluster))
    view = FreeView(made.columns, made.columns.free)
    read = [made.reader.read(arriving.job, place) for place, arriving in enumerate(jobs)]
    held = [isinstance(one, Demand) and view.could_hold(one) for one in read]
    assert held == [True, True, False, True, False, True]


@given(
    free=st.lists(st.integers(0, 8), min_size=3, max_size=12),
    counts=st.tuples(st.integers(1, 6), st.integers(0, 3)),
    cores=st.integers(1, 40),
)
def test_neighbours_have_the_cores_on_as_many_nodes_as_a_job_may_have(
    free: list[int], counts: tuple[int, int], cores: int
) -> None:
    fewest, more = counts
    nodes = [{"name": f"n{place:02}", "cores": 8, "free_cores": each} for place, each in enumerate(free)]
    cores = max(cores, fewest + more)
    wanted = {"nodes": [fewest, fewest + more], "cores": cores, "contiguous": True}
    cluster = snapshot(nodes, [wanted])
    columns = columns_of(cluster)
    read = DemandReader(cluster, columns).read(cluster.jobs[0], 0)
    sets = (
        free[first : first + length]
        for length in range(fewest, fewest + more + 1)
        for first in range(len(free) - length + 1)
    )
    fits = any(min(some) > 0 and sum(some) >= cores for some in sets)
    assert (isinstance(read, Demand) and FreeView(columns, columns.free).could_hold(read)) == fits


def test_a_job_that_fits_a_leaf_gets_one() -> None:
    result = played("aucsched3", job("1", cores=4), job("2", cores=16))
    assert nodes_of(result, "2") in ([0, 1, 2, 3], [4, 5, 6, 7])


def test_slurm_takes_the_leaf_with_the_fewest_usable_nodes() -> None:
    # The first leaf has two nodes left, the second four: a job of 8 goes where nothing is left over.
    result = played("backfill-slurm", job("1", cores=8), job("2", cores=8))
    assert {len(nodes_of(result, "1")), len(nodes_of(result, "2"))} == {2}
    assert max(nodes_of(result, "1") + nodes_of(result, "2")) == 3


@pytest.mark.parametrize(("selection", "wanted"), [("first", [0]), ("best", [2]), ("next", [4])])
def test_selections_differ_where_they_should(selection: str, wanted: list[int]) -> None:
    # Nodes 0 and 1 are empty again, node 2 has one core left, 3 is full: then a job of one core comes.
    jobs = (
        job("1", run=10, limit=10, cores=8),
        job("2", cores=3, nodes=1),
        job("3", cores=4, nodes=1),
        job("4", arrival=20, cores=1),
    )
    result = played("easy", *jobs, selection=selection)
    assert nodes_of(result, "2") == [2]
    assert nodes_of(result, "4") == wanted


def test_next_fit_goes_on_behind_the_last_job_and_around_the_end() -> None:
    """The chapter: selections of nodes: first, best, next fit."""
    jobs = [job(str(place), arrival=place, run=0.5, limit=1, cores=12) for place in range(1, 4)]
    result = played("easy", *jobs, selection="next")
    assert [nodes_of(result, name) for name in ("1", "2", "3")] == [[0, 1, 2], [3, 4, 5], [0, 6, 7]]


@pytest.mark.parametrize("policy", sorted(NODE_POLICIES))
def test_every_job_is_done_or_reported_with_its_reason(policy: str) -> None:
    jobs = (
        job("1", cores=33),
        job("2", cores=4, gpus=3),
        job("3", cores=12, nodes=3),
        job("4", cores=1, priority=0),
        job("5", cores=20, contiguous=True),
        job("6", nodes=2, cores_per_node=2, cores=4),
        job("7", cores=8),
    )
    result = played(policy, *jobs, work_limit=1 if policy in AUCTIONS else None)
    done = set(starts(result))
    never = {one["job"]: one["reason"] for one in result.to_dict()["never_started"]}
    assert done | set(never) == {str(number) for number in range(1, 8)}
    assert not done & set(never)
    assert {"1", "2", "4"} <= set(never)
    assert "held" in never["4"]
    assert set(never) - {"1", "2", "4"} == ({"5", "6"} if policy == "ipsched" else set())


def test_a_job_is_killed_at_its_time_limit() -> None:
    result = played("fcfs", job("1", run=500, limit=60, cores=32), job("2", cores=32))
    assert starts(result)["2"] == 60
    assert result.workload.killed == {0}


def test_more_gpus_shorten_a_job_that_says_so() -> None:
    # Soner (7.1): 100 s at one GPU, factor 1, two allocated: 50 s. An auction bids for most GPUs first.
    wide = job("1", cores=4, nodes=1, gpus=Span(minimum=1, maximum=2), factor=1.0)
    result = played("aucsched3", wide, work_limit=5)
    assert result.played[0].allocation.held.gres["gpu"].sum() == 2
    assert result.played[0].run_s == 50
    assert played("backfill-slurm", wide).played[0].run_s == 100
    # The theoretical run time counts the fewest GPUs for every policy.
    assert result.metrics["theoretical_runtime_s"] == 100 * 4 / 32


@pytest.mark.parametrize("policy", ["easy", "backfill-slurm", "aucsched3"])
def test_passes_at_an_interval_start_jobs_at_its_multiples_only(policy: str) -> None:
    jobs = [job(str(place), arrival=3.5 * place, run=20, limit=30, cores=16) for place in range(1, 9)]
    result = played(policy, *jobs, interval_s=5.0)
    assert all(start % 5 == 0 for start in starts(result).values())
    assert len(result.played) == 8


def test_metrics_of_one_job_by_hand() -> None:
    """Soner: emulation of a cluster by Slurm (7.2, 8.3, 8.4.1).

    Soner: metrics (7.4).
    """
    # 6 nodes of 8 in two leaves of 4; 24 of 32 cores for 100 s; 6 of 16 GPUs.
    result = played("backfill-slurm", job("1", cores=24, nodes=6, gpus=1))
    values = result.metrics
    assert nodes_of(result, "1") == [0, 1, 2, 3, 4, 5]
    assert values["cpu_utilization"] == 0.75
    assert values["gpu_utilization"] == 6 / 16
    assert (values["level_mean"], values["span_mean"], values["spread_mean"]) == (1, 6, 1)
    assert (values["fragmentation_mean"], values["packing_factor_mean"]) == (1, 1)
    assert values["level_job_shares"] == {"0": 0.0, "1": 1.0}


def test_fragmentation_of_figure_7_1() -> None:
    """Soner: figure 7.1 fragmentation and spread."""
    # J1 on nodes 2, 4, 6, 8: four blocks, span 7; J2 on 12, 13, 20, 21: two blocks, span 10.
    result = played("fcfs", job("1", cores=16), cluster=machine(24, leaf=24))
    one = result.played[0]
    allocations = [
        Allocation(nodes=np.array(nodes), held=one.allocation.held)
        for nodes in ([2, 4, 6, 8], [12, 13, 20, 21])
    ]
    both = (
        type(one)(demand=one.demand, allocation=held, start_s=0, run_s=100, killed=False)
        for held in allocations
    )
    object.__setattr__(result, "played", tuple(both))
    assert result.blocks.tolist() == [4, 2]
    assert result.span.tolist() == [7, 10]


def test_linear_machines_have_no_level() -> None:
    cluster = {**machine(), "switches": None}
    values = played("easy", job("1", cores=8), cluster=cluster).metrics
    assert values["level_mean"] is None
    assert values["span_mean"] == 2


def test_multifactor_lets_large_jobs_pass_small_ones() -> None:
    """Soner: basic and multifactor priority (8.2)."""
    jobs = (job("1", cores=32), job("2", arrival=1, cores=4), job("3", arrival=2, cores=32))
    assert starts(played("fcfs", *jobs))["2"] == 100
    assert starts(played("fcfs", *jobs, order="multifactor")) == {"1": 0, "3": 100, "2": 200}


def test_the_same_run_gives_the_same_bytes() -> None:
    jobs = [job(str(place), arrival=place, cores=4 * (1 + place % 5)) for place in range(1, 12)]
    texts = set()
    for _ in range(2):
        result = played("aucsched3", *jobs, work_limit=8)
        document = {**result.to_dict(), "seconds": 0}
        texts.add(json.dumps(document) + result.jobs_csv())
    assert len(texts) == 1


def test_the_kernel_refuses_starts_that_break_a_rule() -> None:
    """Policies that cheat: twice the capacity, too few cores, a hole in a contiguous job."""
    workload = ClusterWorkload(name="", jobs=(job("1", cores=8, contiguous=True),), **machine())

    def hold(nodes: list[int], cores: list[int]) -> Allocation:
        none = np.zeros(len(nodes), np.int64)
        held = Capacity(cores=np.array(cores), memory=none, gres={"gpu": none.copy()})
        return Allocation(nodes=np.array(nodes), held=held)

    for allocation, message in (
        (hold([0], [8]), "given twice"),
        (hold([0], [4]), "4 cores instead of 8"),
        (hold([0, 2], [4, 4]), "not contiguous"),
    ):
        with pytest.raises(AwardError, match=message):
            NodeKernel(workload, Machine(workload), OnOnePlace(allocation), NodeQueue()).played()
    fair = NodeKernel(workload, Machine(workload), OnOnePlace(hold([0, 1], [4, 4])), NodeQueue()).played()
    assert len(fair.played) == 1


@pytest.mark.parametrize(("interval_s", "starts"), [(None, [0, 50]), (7.0, [0, 56])])
def test_a_policy_is_asked_when_it_wants_to_be(interval_s: float | None, starts: list[float]) -> None:
    # Nothing happens between 0 and 1000.
    workload = ClusterWorkload(
        name="", jobs=(job("1", run=1000, limit=1000, cores=1), job("2", run=10, cores=1)), **machine()
    )

    class Patient(NodePolicy):
        alarm: float | None = 50.0

        def __init__(self, machine: Machine) -> None:
            self.machine = machine

        def step(self, now: float, queue: NodeQueue) -> list[StartingJob]:
            columns, topology = self.machine.columns, self.machine.topology
            placed = [(one, place_alone(one, columns, topology)) for one in queue.first(1)]
            return [
                StartingJob(demand=one, allocation=allocation)
                for one, allocation in placed
                if allocation is not None and now >= 50 * one.index
            ]

    on = Machine(workload)
    record = NodeKernel(workload, on, Patient(on), NodeQueue(), interval_s=interval_s).played()
    assert [one.start_s for one in record.played.values()] == starts


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "conservative"}, "counts processors"),
        ({"policy": "moldable"}, "counts processors"),
        ({"policy": "evolving"}, "plays dynamic-esp and quadflow"),
        ({"policy": "nope"}, "nope is not a policy"),
        ({"policy": "easy", "window": 5}, "--window needs"),
        ({"policy": "aucsched3", "selection": "best"}, "--selection needs"),
        ({"policy": "easy", "order": "sjf"}, "is for logs"),
    ],
)
def test_options_that_would_be_ignored_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        NodeOptions(**options)


@st.composite
def _jobs(draw: st.DrawFn) -> list[ArrivingJob]:
    found = []
    for place in range(draw(st.integers(1, 8))):
        count = draw(st.integers(1, 4))
        request: dict[str, Any] = {"cores": count * draw(st.integers(1, 4))}
        if draw(st.booleans()):
            request["nodes"] = count
            if draw(st.booleans()):
                request["gpus"] = draw(st.integers(1, 2))
        run, extra = draw(st.integers(1, 50)), draw(st.integers(0, 20))
        request["contiguous"] = draw(st.booleans())
        found.append(job(str(place), arrival=5 * place, run=run, limit=run + extra, **request))
    return found


@settings(max_examples=25, deadline=None)
@given(_jobs(), st.sampled_from(["fcfs", "easy", "backfill-slurm", "aucsched2", "aucsched3"]))
def test_no_job_is_lost_and_none_starts_before_it_comes(jobs: list[ArrivingJob], policy: str) -> None:
    result = played(policy, *jobs)
    assert len(result.played) + len(result.record.never) == len(jobs)
    for one in result.played:
        assert one.start_s >= jobs[one.demand.index].arrival_s
    assert result.empty.free.cores.tolist() == result.empty.total.cores.tolist()
    assert "CPU utilisation" in result.to_text("test")
