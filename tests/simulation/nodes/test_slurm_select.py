"""Slurm's choice of nodes: what real Slurm chose, its log's first jobs one after another, and small cases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucsched import ArrivingJob, ClusterWorkload, Job, Node, Request, Resources, Span
from aucsched.auction.check import AwardChecker
from aucsched.bidgen.candidates import FreeView
from aucsched.cluster.resources.allocation import StartingJob, resources_of
from aucsched.cluster.resources.demand import Demand
from aucsched.simulation.nodes.node_machine import Machine
from aucsched.simulation.nodes.select import SwitchFit
from aucsched.simulation.workloads.named_clusters import EvenCluster

#: Slurm 22.05.8, 256 nodes of 12 cores and 3 GPUs, 16 a leaf, 8 leaves a switch, CR_Core: the jobs that it
#: started before the first one ended, in its order. Cores, nodes, GPUs a node, contiguous → nodes, cores of
#: each as value×times.
_SLURM_STARTED = """\
72 18 2 -   1-18                         12x4 11 1x13
36  5 3 c   19-23                        12x2 10 1x2
84 11 3 c   24-34                        12x6 8 1x4
96  - - -   5-8,17-18,21-23,30-32        1 11x2 1 11x2 2 11x2 4 11x2
36  5 2 -   35-39                        12x2 10 1x2
96 24 1 c   37-60                        2 11x2 12x4 8 1x16
24  3 3 c   61-63                        12 11 1
24  6 1 -   8-13                         10x2 1x4
60 15 - -   49-60,62-64                  11x4 6 1x10
84 21 3 -   65-85                        12x5 9 1x15
60  8 1 -   53-60                        5 10x5 4 1
60 15 3 c   86-100                       12x4 2 1x10
60  - - -   33-34,44,59-60,63-64         11x2 2 6 9 10 11
72 18 1 -   14-15,113-128                1x2 12x4 11 1x11
60  - - -   9-11,44-48                   1 10 3 2 11x4
12  3 3 c   101-103                      10 1x2
96  - - -   11-16,70-74                  7 10x4 11 3 11x3 2
84  - - c   74-81                        9 11x6 9
84  - - -   81-85,90-93                  2 11x4 10 11x2 6
24  6 - c   93-98                        5 11 5 1x3
12  - - -   95-96                        6x2
24  3 3 -   104-106                      12 11 1
"""


def machine_of(cluster: EvenCluster, *jobs: ArrivingJob) -> Machine:
    return Machine(
        ClusterWorkload(
            name="", nodes=cluster.build_nodes(), switches=cluster.build_switches(), jobs=tuple(jobs)
        )
    )


def asked(cores: int, nodes: int | None = None, gpus: int = 0, *, contiguous: bool = False) -> Request:
    return Request(
        cores=cores,
        nodes=None if nodes is None else Span(minimum=nodes, maximum=nodes),
        gres_per_node={"gpu": Span(minimum=gpus, maximum=gpus)} if gpus else {},
        contiguous=contiguous,
    )


def demand_of(machine: Machine, request: Request, index: int = 0) -> Demand:
    demand = machine.reader.read(Job(id=str(index), priority=1, request=request), index)
    assert isinstance(demand, Demand)
    return demand


def taken(machine: Machine, request: Request, index: int = 0) -> dict[int, int] | None:
    """Start a job where Slurm's selection puts it; return its cores by node, numbered from 1."""
    demand = demand_of(machine, request, index)
    view = FreeView(machine.columns, machine.columns.free)
    allocation = SwitchFit(machine.columns, machine.topology).allocation(demand, view)
    if allocation is None:
        return None
    machine.start(StartingJob(demand=demand, allocation=allocation), 0.0)
    return dict(zip((allocation.nodes + 1).tolist(), allocation.held.cores.tolist(), strict=True))


def _numbers(text: str) -> list[int]:
    ends = [part.split("-") for part in text.split(",")]
    return [number for part in ends for number in range(int(part[0]), int(part[-1]) + 1)]


def _repeated(parts: Sequence[str]) -> list[int]:
    pairs = [part.split("x") for part in parts]
    return [int(pair[0]) for pair in pairs for _ in range(int(pair[1]) if len(pair) > 1 else 1)]


def test_jobs_go_where_real_slurm_put_them() -> None:
    """Soner: Slurm's backfill (7.1)."""
    machine = machine_of(EvenCluster(nodes=256))
    for index, line in enumerate(_SLURM_STARTED.splitlines()):
        cores, nodes, gpus, contiguous, where, *each = line.split()
        request = asked(
            int(cores),
            None if nodes == "-" else int(nodes),
            0 if gpus == "-" else int(gpus),
            contiguous=contiguous == "c",
        )
        wanted = dict(zip(_numbers(where), _repeated(each), strict=True))
        assert taken(machine, request, index) == wanted, line


def allocation_in(machine: Machine, free: Sequence[int], request: Request) -> dict[int, int] | None:
    """Return where a job is put while this many cores are free on each node."""
    machine.running.clear()
    machine.columns.free.cores[:] = free
    return taken(machine, request)


def test_a_job_for_cores_goes_to_the_leaf_with_the_fewest_usable_nodes() -> None:
    # Leaf 1 has 2 nodes left with most cores, leaf 2 three nodes that hold the job as well.
    free = [0] * 14 + [12, 12] + [0] * 13 + [4, 4, 4]
    machine = machine_of(EvenCluster(nodes=32))
    assert allocation_in(machine, free, asked(12)) == {15: 12}
    free[14:16] = [4, 4]
    assert allocation_in(machine, free, asked(12)) == {15: 4, 16: 4, 30: 4}


def test_the_lowest_switch_with_enough_nodes_then_the_fullest_leaf_below_it() -> None:
    # Below the first switch of the second level 20 nodes are usable, below the other 24: 18 nodes go to the
    # first, where the leaf with the most nodes comes first.
    free = np.zeros(256, np.int64)
    free[[0, 1, 2, 3, *range(16, 32), *range(128, 152)]] = 4
    found = allocation_in(machine_of(EvenCluster(nodes=256)), free.tolist(), asked(18, 18))
    assert found is not None
    assert sorted(found) == [1, 2, *range(17, 33)]


def test_a_nearer_leaf_is_taken_before_one_as_good_that_is_further() -> None:
    # The second leaf to take: leaf 9 fits as well as leaf 10, below the same switch as the first taken.
    free = np.zeros(256, np.int64)
    free[[16, 17, 18]] = 1  # leaf 2, below switch 1
    free[[128, 129]] = 1  # leaf 9, below switch 2
    free[[144, 145, 146]] = 1  # leaf 10, below switch 2
    found = allocation_in(machine_of(EvenCluster(nodes=256)), free.tolist(), asked(3))
    assert found == {129: 1, 130: 1, 145: 1}


def test_poor_nodes_are_left_out_until_the_job_fits() -> None:
    machine = machine_of(EvenCluster(nodes=8))
    assert allocation_in(machine, [1, 1, 2, 4, 1, 4, 0, 0], asked(8, 2)) == {4: 4, 6: 4}
    assert allocation_in(machine, [1, 1, 2, 4, 1, 3, 0, 0], asked(8, 2)) is None


def test_a_job_on_one_node_needs_one_that_holds_it() -> None:
    assert allocation_in(machine_of(EvenCluster(nodes=4)), [2, 5, 12, 5], asked(5, 1)) == {2: 5}


def test_of_a_range_as_many_nodes_as_there_are() -> None:
    request = Request(cores=6, nodes=Span(minimum=2, maximum=5))
    assert allocation_in(machine_of(EvenCluster(nodes=4)), [4, 0, 4, 4], request) == {1: 4, 3: 1, 4: 1}


def test_contiguous_jobs_take_the_run_with_the_fewest_cores() -> None:
    machine = machine_of(EvenCluster(nodes=8))
    request = asked(4, 2, contiguous=True)
    assert allocation_in(machine, [12, 12, 0, 3, 3, 0, 2, 1], request) == {4: 3, 5: 1}
    assert allocation_in(machine, [12, 0, 12, 0, 2, 1, 0, 12], request) is None


def test_unequal_nodes_lose_no_contiguous_job() -> None:
    # Slurm leaves out all that have 6 cores but the last, and is left with two that are no neighbours.
    free = [6, 6, 12, 6, 6, 6]
    nodes = tuple(
        Node(name=f"n{place}", total=Resources(cores=cores), free=Resources(cores=cores))
        for place, cores in enumerate(free)
    )
    machine = Machine(ClusterWorkload(name="", nodes=nodes, jobs=()))
    assert allocation_in(machine, [6, 6, 12, 6, 6, 0], asked(18, 2, contiguous=True)) is None
    assert allocation_in(machine, free, asked(18, 2, contiguous=True)) == {2: 6, 3: 12}


def test_without_switches_runs_count_for_every_job() -> None:
    machine = machine_of(EvenCluster(nodes=8, tree=False))
    assert allocation_in(machine, [2, 0, 12, 12, 0, 3, 3, 3], asked(9)) == {6: 3, 7: 3, 8: 3}
    assert allocation_in(machine, [2, 0, 12, 12, 0, 3, 3, 3], asked(3)) == {6: 3}
    assert allocation_in(machine, [2, 0, 5, 5, 0, 3, 3, 3], asked(12)) == {1: 2, 3: 5, 4: 5}


@pytest.mark.parametrize("tree", [True, False])
@given(data=st.data())
def test_what_is_chosen_keeps_the_request_and_cores_alone_always_fit(tree: bool, data: st.DataObject) -> None:
    cluster = EvenCluster(nodes=40, cores=4, gpus=2, tree=tree)
    machine = machine_of(cluster)
    free = data.draw(st.lists(st.integers(0, 4), min_size=40, max_size=40))
    gpus = data.draw(st.lists(st.integers(0, 2), min_size=40, max_size=40))
    machine.columns.free.cores[:], machine.columns.free.gres["gpu"][:] = free, gpus
    nodes = data.draw(st.none() | st.integers(1, 12))
    cores = data.draw(st.integers(nodes or 1, 4 * (nodes or 20)))
    each = data.draw(st.integers(0, 2)) if nodes else 0
    request = asked(cores, nodes, each, contiguous=data.draw(st.booleans()))
    demand = demand_of(machine, request)
    view = FreeView(machine.columns, machine.columns.free)
    allocation = SwitchFit(machine.columns, machine.topology).allocation(demand, view)
    if allocation is None:
        assert nodes or request.contiguous or sum(free) < cores
        return
    assert (allocation.held.cores <= np.array(free)[allocation.nodes]).all()
    held = resources_of(demand, allocation, machine.columns.names)
    AwardChecker(machine.snapshot).check(demand.job, held)
