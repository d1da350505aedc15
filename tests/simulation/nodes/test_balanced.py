"""Simulations that keep a balanced mix: what it brings, and that no job is left behind."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.run import aucsched, refused

from aucsched import ArrivingJob, ClusterWorkload, Job, Node, Request, Resources, Span
from aucsched.cluster.nodes import Switch
from aucsched.simulation.nodes.node_policies import NodeOptions, play
from aucsched.simulation.workloads.named_clusters import (
    EvenCluster,
    make_workload,
    stream,
    theoretical_s,
    uniform_arrivals,
)
from aucsched.simulation.workloads.soner import ALL_KINDS, WorkloadMix, draw_jobs

BALANCED = NodeOptions(policy="aucsched3", reserve=0, balance=True)


def node(place: int, cores: int = 12, gpus: int = 3) -> Node:
    amount = Resources(cores=cores, gres={"gpu": gpus} if gpus else {})
    return Node(name=f"n{place}", total=amount, free=amount)


def workload(requests: list[Request], nodes: tuple[Node, ...], limit_s: int = 100) -> ClusterWorkload:
    jobs = [
        ArrivingJob(
            job=Job(id=str(place), priority=1000 - place, request=request, time_limit_s=limit_s),
            arrival_s=0.0,
            run_time_s=float(limit_s),
        )
        for place, request in enumerate(requests)
    ]
    return ClusterWorkload(name="", nodes=nodes, jobs=tuple(jobs))


def on_nodes(cores: int, nodes: int, gpus: int = 0, *, contiguous: bool = False) -> Request:
    gres = {"gpu": Span.exactly(gpus)} if gpus else {}
    return Request(cores=cores, nodes=Span.exactly(nodes), gres_per_node=gres, contiguous=contiguous)


def mixed(jobs: int, nodes: int, contiguous: float, seed: int = 1) -> ClusterWorkload:
    """Jobs like those of table 8.6's workload 3, on fewer nodes."""
    cluster = EvenCluster(nodes=nodes)
    kinds = WorkloadMix(
        kinds=ALL_KINDS,
        jobs=jobs,
        contiguous=contiguous,
        divisors=(4, 8),
        ranges=False,
        most_whole_nodes=nodes // 16,
    )
    drafts = draw_jobs(kinds, cluster, seed, "balanced")
    within_s = float(theoretical_s(drafts, cluster)) / 4
    arrivals = uniform_arrivals(len(drafts), within_s, stream(seed, "arrivals"))
    return make_workload("mixed", cluster, list(zip(arrivals, drafts, strict=True)), ())


@pytest.mark.parametrize(
    ("jobs", "nodes", "contiguous", "points"), [(200, 96, 0.0, 0.075), (150, 40, 1.0, 0.07)]
)
def test_a_balanced_mix_uses_more_of_the_machine(
    jobs: int, nodes: int, contiguous: float, points: float
) -> None:
    made = mixed(jobs, nodes, contiguous)
    balanced = play(made, replace(BALANCED, window=150))
    plain = play(made, replace(BALANCED, window=100, balance=None, strategy="greedy"))
    slurm = play(made, NodeOptions(policy="backfill-slurm"))
    used = [result.metrics["cpu_utilization"] for result in (balanced, plain, slurm)]
    assert len(balanced.played) == len(made.jobs)
    assert used[0] > max(used[1:]) + points, used


def test_the_same_run_twice_is_the_same() -> None:
    made = mixed(120, 96, 0.5)
    first, again = (play(made, BALANCED) for _ in range(2))
    assert [(one.start_s, one.allocation.nodes.tolist()) for one in first.played] == [
        (one.start_s, one.allocation.nodes.tolist()) for one in again.played
    ]


def test_a_job_that_fits_only_unevenly_starts_on_the_empty_machine() -> None:
    # 20 cores on 2 nodes of 16 and 4: no node could give an even part of 10 but the first.
    made = workload(
        [on_nodes(20, 2)] * 3, (node(0, cores=16, gpus=0), node(1, cores=4, gpus=0)), limit_s=5000
    )
    result = play(made, BALANCED)
    assert len(result.played) == 3
    assert sorted(one.start_s for one in result.played) == [0, 5000, 10000]


def parted(name: str, first: int, count: int, gpus: str) -> tuple[Node, ...]:
    amount = Resources(cores=12, gres={gpus: 3})
    places = range(first, first + count)
    return tuple(Node(name=f"n{one}", total=amount, free=amount, partitions=(name,)) for one in places)


@pytest.mark.parametrize("contiguous", [False, True])
def test_jobs_of_one_shape_start_wherever_each_may_stand(contiguous: bool) -> None:
    # Two kinds of GPUs in two partitions: jobs of one partition stand beside those of the other, and those
    # that take any kind in both, while the queue holds more than the machine could run at once.
    nodes = (*parted("p", 0, 4, "gpu:a"), *parted("q", 4, 4, "gpu:b"))
    request = replace(on_nodes(16, 4, contiguous=contiguous), gres_per_node={"gpu": Span.exactly(3)})
    made = workload([request] * 12, nodes)
    for partitions in (("p", "q"), ("p,q",)):
        jobs = tuple(
            replace(one, job=replace(one.job, partition=partitions[place % len(partitions)]))
            for place, one in enumerate(made.jobs)
        )
        result = play(replace(made, jobs=jobs), BALANCED)
        starts = sorted(one.start_s for one in result.played)
        assert starts == [100.0 * (place // 2) for place in range(12)], partitions


@pytest.mark.parametrize(
    "asked",
    [
        Request(cores=8, nodes=Span.exactly(2), memory_mib_per_core=1000),
        Request(cores=8, gres_total={"gpu": Span.exactly(6)}),
    ],
)
def test_nodes_are_left_that_have_cores_but_no_memory_or_gpus(asked: Request) -> None:
    poor = [
        replace(node(place), total=(lack := Resources(cores=12, memory_mib=1000)), free=lack)
        for place in (0, 1)
    ]
    full = Resources(cores=12, memory_mib=12_000, gres={"gpu": 3})
    rich = [replace(node(place), total=full, free=full) for place in (2, 3)]
    result = play(workload([asked] * 9, (*poor, *rich)), BALANCED)
    now = [one.allocation.nodes.tolist() for one in result.played if one.start_s == 0]
    assert now, "none starts though all could"
    assert all(nodes == [2, 3] for nodes in now)


GPU_RANGE = Request(
    cores=12, nodes=Span(minimum=2, maximum=4), gres_per_node={"gpu": Span(minimum=1, maximum=2)}
)
REQUESTS = st.one_of(
    st.builds(lambda cores: Request(cores=cores), st.integers(1, 60)),
    st.builds(
        lambda cores, together: Request(cores=cores, contiguous=together), st.integers(1, 30), st.booleans()
    ),
    st.builds(
        lambda nodes, each, gpus, together: on_nodes(nodes * each, nodes, gpus, contiguous=together),
        st.integers(1, 5), st.integers(1, 12), st.integers(0, 3), st.booleans(),
    ),
    st.builds(
        lambda nodes: Request(cores=nodes, nodes=Span.exactly(nodes), exclusive=True), st.integers(1, 5)
    ),
    st.builds(
        lambda low, more: Request(
            cores=12,
            nodes=Span(minimum=2, maximum=4),
            gres_per_node={"gpu": Span(minimum=low, maximum=low + more)},
        ),
        st.integers(1, 2), st.integers(0, 1),
    ),
    st.builds(lambda gpus: Request(cores=4, gres_total={"gpu": Span.exactly(gpus)}), st.integers(1, 9)),
)  # fmt: skip


@given(
    requests=st.lists(REQUESTS, min_size=1, max_size=14),
    sizes=st.lists(st.tuples(st.integers(4, 16), st.integers(0, 3)), min_size=5, max_size=9),
    reserve=st.integers(0, 2),
    window=st.sampled_from([2, 5, 100]),
    policy=st.sampled_from(["aucsched1", "aucsched2", "aucsched3"]),
)
@settings(max_examples=40, deadline=None)
@example(
    requests=[*[Request(cores=1)] * 4, Request(cores=21), GPU_RANGE, Request(cores=23)],
    sizes=[(6, 0), (6, 0), (9, 3), (16, 3), (11, 2), (16, 3)],
    reserve=2,
    window=100,
    policy="aucsched3",
)
def test_every_job_is_played_that_the_plain_auction_plays(
    requests: list[Request], sizes: list[tuple[int, int]], reserve: int, window: int, policy: str
) -> None:
    nodes = tuple(node(place, cores, gpus) for place, (cores, gpus) in enumerate(sizes))
    made = workload(requests, nodes)
    options = NodeOptions(policy=policy, reserve=reserve, window=window, strategy="greedy")
    balanced = play(made, replace(options, balance=True))
    for reserved in {0, reserve}:
        plain = play(made, replace(options, reserve=reserved))
        assert balanced.record.never.keys() == plain.record.never.keys()
        assert len(plain.played) + len(plain.record.never) == len(requests)
    assert len(balanced.played) + len(balanced.record.never) == len(requests)


@pytest.mark.parametrize("longest_s", [1000, 10_000])
def test_jobs_behind_those_that_bid_in_vain_bid_too(longest_s: int) -> None:
    # From 1 s on six nodes are free, three below each leaf: the first jobs that wait, which want four
    # below one, ask for more than twice what is free.
    nodes = tuple(node(place, cores=4, gpus=0) for place in range(8))
    leaves = [Switch(name=f"leaf{at}", nodes=tuple(f"n{at + place}" for place in range(4))) for at in (0, 4)]
    switches = (*leaves, Switch(name="root", switches=("leaf0", "leaf4")))
    busy = [replace(on_nodes(4, 1), required_nodes=(name,)) for name in ("n3", "n7")]
    wide = [replace(on_nodes(16, 4), max_switches=1)] * 5
    made = workload([*busy, *wide, replace(on_nodes(12, 3), max_switches=1)], nodes, limit_s=1000)
    jobs = [replace(one, arrival_s=float(place > 1)) for place, one in enumerate(made.jobs)]
    # Where what waits is done before the longest job is, the machine is drained.
    jobs[2] = replace(jobs[2], job=replace(jobs[2].job, time_limit_s=longest_s))
    result = play(replace(made, switches=switches, jobs=tuple(jobs)), BALANCED)
    assert [one.start_s for one in result.played if one.demand.job.id == "7"] == [1]


def test_the_command_balances(tmp_path: Path) -> None:
    made = tmp_path / "mix.json"
    arguments = ("soner", "--id", "v", "--nodes", "24", "--hours", "0.2", "--max-cores", "24", "--seed", "1")
    assert aucsched("workload", *arguments, "-o", made).returncode == 0
    ran = aucsched("simulate", made, "--policy", "aucsched3", "--balance", "--format", "json")
    assert json.loads(ran.stdout)["balance"] is True
    quick = aucsched("simulate", made, "--policy", "aucsched1", "--strategy", "greedy", "--format", "json")
    assert json.loads(quick.stdout)["strategy"] == "greedy"
    for line in (
        "--policy backfill-slurm --balance",
        "--policy ipsched --balance",
        "--policy easy --strategy greedy",
        "--policy aucsched2 --strategy greedy --weights paper",
        "--policy aucsched3 --balance --weights paper",
        "--policy aucsched3 --balance --work-limit 3",
        "--policy aucsched3 --balance --on-timeout discard",
    ):
        assert refused("simulate", made, *line.split())
