"""Jobs on blocks, rings and three-dimensional tori: what starts is legal, and what could start does."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from support.block_rule import legal_sets

from aucsched import schedule
from aucsched.auction.check import AwardChecker, check_schedule
from aucsched.auction.options import StepOptions
from aucsched.auction.state import state_of
from aucsched.auction.strategies import keeps_whole
from aucsched.bidgen.first_fit import Cluster
from aucsched.bidgen.generate import BidOptions, generate_bids
from aucsched.cluster.errors import AwardError, InputError, OptionError
from aucsched.cluster.jobs import Job, Request, RunningJob, Span
from aucsched.cluster.network import Network, PlacementSize, Unit
from aucsched.cluster.nodes import Node, NodeState, Resources, Switch
from aucsched.cluster.snapshot import Snapshot
from aucsched.cluster.workload import ArrivingJob, ClusterWorkload
from aucsched.reports.machine_layout import layout_of
from aucsched.simulation.negotiated.plays import play_of
from aucsched.simulation.nodes.node_policies import NodeOptions, play
from aucsched.topology.tree import topology_of
from aucsched.topology.units import blocks, rings, toruses

CORES = 4


def machine(network: Network, busy: set[str], jobs: list[Job]) -> Snapshot:
    """Return a snapshot of nodes of four cores; some are down, some taken by a running job."""
    down = set(sorted(busy)[::2])
    nodes = [
        Node(name=name, cores=CORES, state=NodeState.DOWN if name in down else NodeState.IDLE)
        if name not in busy - down
        else Node(name=name, total=Resources(cores=CORES), free=Resources(cores=0), state=NodeState.ALLOCATED)
        for name in network.members
    ]
    held = {name: Resources(cores=CORES) for name in sorted(busy - down)}
    running = [RunningJob(id="r", nodes=held)] if held else []
    return Snapshot(nodes=nodes, jobs=jobs, network=network, running=running)


def job(name: str, nodes: int, priority: int = 1, **members: Any) -> Job:
    request = Request(nodes=nodes, cores_per_node=CORES, **members)
    return Job(id=name, priority=priority, request=request, time_limit_s=3600)


def by_block(network: Network, names: Any) -> tuple[int, ...]:
    return tuple(sum(name in names for name in unit.nodes) for unit in network.units)


def random_blocks(rng: Random) -> tuple[Network, set[str]]:
    base = rng.randint(2, 4)
    sizes = (base, *(base << doubling for doubling in (1, 2) if rng.random() < 0.6))
    names = iter(f"n{place}" for place in range(100))
    units = [
        Unit(name=f"b{place}", nodes=[next(names) for _ in range(rng.randint(base - 1, base + 1))])
        for place in range(rng.randint(2, 4))
    ]
    network = blocks(sizes, units)
    return network, {name for name in network.members if rng.random() < 0.3}


def random_job(rng: Random, name: str, most: int) -> Job:
    segment = rng.choice((None, None, 1, 2, 3, 5))
    if segment is None:
        return job(name, rng.randint(1, most), rng.randint(1, 9))
    return job(
        name,
        segment * rng.randint(1, max(1, most // segment)),
        rng.randint(1, 9),
        segment=segment,
        spread_segments=rng.random() < 0.3,
        consolidate_segments=rng.random() < 0.3,
    )


def options_of(one: Job) -> dict[str, Any]:
    request = one.request
    return {
        "segment": request.segment,
        "spread": request.spread_segments,
        "consolidated": request.consolidate_segments,
    }


@pytest.mark.parametrize("model", ["aucsched1", "aucsched2", "aucsched3"])
def test_awards_on_blocks_are_those_of_enumeration(model: Any) -> None:
    rng = Random(model)
    alone = started = 0
    for _ in range(60):
        network, busy = random_blocks(rng)
        most = len(network.members)
        jobs = [random_job(rng, f"j{place}", most) for place in range(6)]
        free = by_block(network, set(network.members) - busy)
        for one in (*jobs, None):
            waiting = jobs if one is None else [one]
            found = schedule(machine(network, busy, waiting), model=model)
            for award in found.started:
                mine = next(other for other in jobs if other.id == award.job)
                counts = by_block(network, award.nodes)
                assert counts in legal_sets(
                    network.sizes, free, mine.request.fewest_nodes, **options_of(mine)
                )
            started += len(found.started)
            if one is not None:
                legal = legal_sets(network.sizes, free, one.request.fewest_nodes, **options_of(one))
                assert bool(found.started) == bool(legal), (network, free, one)
                alone += bool(legal)
    assert alone > 100
    assert started > 200


def best_of(
    network: Network, jobs: list[Job], free: tuple[int, ...], taken: tuple[bool, ...], shut: tuple[bool, ...]
) -> int:
    """Return the greatest sum of priorities by enumeration; blocks are taken by somebody, or one's alone."""
    if not jobs:
        return 0
    one, *others = jobs
    alone = one.request.exclusive_topo
    open_ = tuple(
        0 if closed or (alone and used) else count
        for count, used, closed in zip(free, taken, shut, strict=True)
    )
    best = best_of(network, others, free, taken, shut)
    for way in legal_sets(network.sizes, open_, one.request.fewest_nodes, **options_of(one)):
        left = tuple(count - mine for count, mine in zip(free, way, strict=True))
        now_taken = tuple(used or bool(mine) for used, mine in zip(taken, way, strict=True))
        now_shut = tuple(closed or (alone and bool(mine)) for closed, mine in zip(shut, way, strict=True))
        best = max(best, int(one.priority) + best_of(network, others, left, now_taken, now_shut))
    return best


def test_jobs_alone_on_their_blocks_start_as_enumeration_says() -> None:
    rng = Random(24)
    started = with_others = 0
    for case in range(60):
        network, busy = random_blocks(rng)
        jobs = [random_job(rng, f"j{place}", 8) for place in range(3)]
        jobs = [
            replace(one, request=replace(one.request, exclusive_topo=True)) if rng.random() < 0.6 else one
            for one in jobs
        ]
        snapshot = machine(network, busy, jobs)
        running = busy - set(sorted(busy)[::2])
        free = by_block(network, set(network.members) - busy)
        taken = tuple(bool(count) for count in by_block(network, running))
        for some in (*([one] for one in jobs), jobs):
            waiting = replace(snapshot, jobs=some)
            found = schedule(waiting, promise="none", reserve=0)
            check_schedule(waiting, found)
            value = sum(int(one.priority) for one in some if one.id in {won.job for won in found.started})
            assert value == best_of(network, some, free, taken, (False,) * len(free)), (case, waiting)
        alone = {one.id for one in jobs if one.request.exclusive_topo}
        started += sum(award.job in alone for award in found.started)
        with_others += len(found.started) > 1 and any(award.job in alone for award in found.started)
        for award in found.started:
            mine = next(one for one in jobs if one.id == award.job)
            assert len(award.nodes) == mine.request.fewest_nodes
    assert started > 25
    assert with_others > 8


def test_the_checker_refuses_another_job_on_blocks_that_are_ones_alone() -> None:
    network = blocks((4,), [Unit(name=f"b{n}", nodes=[f"n{n}{k}" for k in range(4)]) for n in range(2)])
    snapshot = machine(network, set(), [job("1", 2, exclusive_topo=True), job("2", 1)])
    found = schedule(snapshot)
    first, second = sorted(found.started, key=lambda award: award.job)
    beside = next(unit for unit in network.units if set(first.nodes) < set(unit.nodes))
    free = next(name for name in beside.nodes if name not in first.nodes)
    moved = replace(second, nodes={free: Resources(cores=CORES)})
    with pytest.raises(AwardError, match="job 1 is not alone on its blocks: job 2 is there"):
        check_schedule(snapshot, replace(found, started=(first, moved)))
    running = RunningJob(id="r", nodes={free: Resources(cores=CORES)})
    nodes = [replace(one, free=Resources(cores=0)) if one.name == free else one for one in snapshot.nodes]
    later = replace(snapshot, nodes=nodes, running=[running])
    with pytest.raises(AwardError, match="job 1 is not alone on its blocks: job r is there"):
        check_schedule(later, found)


@pytest.mark.parametrize(("cores", "starts"), [(6, 2), (16, 4), (17, 0)])
def test_a_job_alone_without_a_node_count_gets_whole_nodes_of_one_block(cores: int, starts: int) -> None:
    network = blocks((4, 8), [Unit(name=f"b{n}", nodes=[f"n{n}{k}" for k in range(4)]) for n in range(3)])
    one = Job(id="1", priority=1, request=Request(cores=cores, exclusive_topo=True), time_limit_s=60)
    snapshot = machine(network, {"n00", "n01"}, [one])
    found = schedule(snapshot)
    assert [len(award.nodes) for award in found.started] == ([starts] if starts else [])
    check_schedule(snapshot, found)
    ring = rings([Unit(name="r", nodes=[f"n{place}" for place in range(6)])])
    on_ring = machine(ring, set(), [one, job("2", 1)])
    assert [award.job for award in schedule(on_ring).started] == ["1"], "the ring is its own"


def test_a_job_alone_on_a_block_needs_its_memory_on_its_own_nodes_only() -> None:
    network = blocks((2,), [Unit(name="b", nodes=["n0", "n1"])])
    request = Request(cores=2, nodes=Span.exactly(1), memory_mib_per_node=2000, exclusive_topo=True)
    one = Job(id="1", priority=1, request=request, time_limit_s=60)
    snapshot = machine(network, set(), [one])
    memory = {"n0": 4000, "n1": 1000}
    nodes = [
        replace(node, total=has, free=has)
        for node in snapshot.nodes
        for has in [replace(node.total, memory_mib=memory[node.name])]
    ]
    state = state_of(replace(snapshot, nodes=nodes))
    demand = state.reader.demand(one)
    assert demand is not None
    table = generate_bids(
        (demand,), Cluster(columns=state.columns, topology=state.topology), BidOptions()
    ).table
    dealt = table.with_cores(np.arange(len(table)), table.cores)
    assert table.memory is not None
    assert dealt.memory is not None
    assert dealt.memory.tolist() == table.memory.tolist() == [2000, 0]


def test_a_job_that_must_be_alone_is_told_that_no_block_is_empty() -> None:
    network = blocks((4, 8), [Unit(name=f"b{n}", nodes=[f"n{n}{k}" for k in range(4)]) for n in range(2)])
    snapshot = machine(network, {"n00", "n01", "n10", "n11"}, [job("1", 1, exclusive_topo=True)])
    found = schedule(snapshot)
    assert "no block without other jobs has 1 free node; block b1 has 0" in found.pending[0].detail


def test_the_checker_is_as_strict_as_enumeration() -> None:
    rng = Random(5)
    refused = allowed = 0
    for _ in range(300):
        network, _ = random_blocks(rng)
        one = random_job(rng, "j", len(network.members))
        checker = AwardChecker(machine(network, set(), [one]))
        names = rng.sample(network.members, min(one.request.fewest_nodes, len(network.members)))
        if rng.random() < 0.7:
            start = rng.randint(0, len(network.members) - len(names))
            names = list(network.members[start : start + len(names)])
        if len(names) < one.request.fewest_nodes:
            continue
        counts = by_block(network, names)
        legal = legal_sets(network.sizes, counts, len(names), **options_of(one))
        held = {name: Resources(cores=CORES) for name in names}
        if counts in legal:
            checker.check(one, held)
            allowed += 1
        else:
            with pytest.raises(AwardError):
                checker.check(one, held)
            refused += 1
    assert refused > 50
    assert allowed > 50


def test_required_nodes_are_among_a_jobs_blocks() -> None:
    network = blocks((4, 8), [Unit(name=f"b{n}", nodes=[f"n{n}{k}" for k in range(4)]) for n in range(4)])
    wanted = job("1", 6, required_nodes=["n21", "n30"])
    found = schedule(machine(network, set(), [wanted]))
    assert {"n21", "n30"} <= set(found.started[0].nodes)
    assert by_block(network, found.started[0].nodes)[:2] == (0, 0)
    apart = job("1", 6, required_nodes=["n01", "n30"])
    assert not schedule(machine(network, set(), [apart])).started


def test_nodes_in_no_block_serve_jobs_that_may_use_no_other() -> None:
    names = ["x0", "x1", "x2"]
    network = blocks((2,), [Unit(name="b", nodes=["n0", "n1"])], outside=names)
    snapshot = machine(network, set(), [job("1", 3)])
    assert not schedule(snapshot).started
    nodes = [replace(node, partitions=("out",)) if node.name in names else node for node in snapshot.nodes]
    outside = replace(snapshot, nodes=nodes, jobs=[replace(job("1", 3), partition="out")])
    assert set(schedule(outside).started[0].nodes) == set(names)


def test_a_ring_is_given_by_arcs() -> None:
    network = rings([Unit(name="r", nodes=[f"n{place}" for place in range(8)])])
    found = schedule(machine(network, {"n2"}, [job("1", 6)]))
    assert set(found.started[0].nodes) == {"n3", "n4", "n5", "n6", "n7", "n0"}
    assert not schedule(machine(network, set(), [job("1", 8, segment=4)])).started
    assert not schedule(machine(network, {"n2", "n5"}, [job("1", 6)])).started


def test_a_job_for_cores_alone_has_consecutive_nodes_of_a_ring() -> None:
    network = rings([Unit(name="r", nodes=[f"n{place}" for place in range(8)])])
    snapshot = machine(network, set(), [replace(job("1", 1), request=Request(cores=2 * CORES))])
    found = schedule(snapshot)
    uses = list(found.started[0].nodes.values())
    for names, is_legal in ((("n7", "n0"), True), (("n0", "n2"), False)):
        award = replace(found.started[0], nodes=dict(zip(names, uses, strict=True)))
        with nullcontext() if is_legal else pytest.raises(AwardError, match="is not on arcs of 2 nodes"):
            check_schedule(snapshot, replace(found, started=(award,)))


def test_a_torus_is_given_by_placements() -> None:
    size = PlacementSize(dims=(2, 2, 1))
    torus = Unit(name="t", dims=(4, 4, 2), nodes=[f"n{place}" for place in range(32)], placements=(size,))
    network = toruses([torus])
    found = schedule(machine(network, {"n0"}, [job("1", 4), job("2", 8, segment=4), job("3", 3)]))
    assert [len(award.nodes) for award in sorted(found.started, key=lambda one: one.job)] == [4, 8]
    assert not schedule(machine(network, set(), [job("1", 8)])).started
    (waits,) = schedule(machine(network, set(), [job("1", 3)])).pending
    assert waits.detail == "when all is empty the torus' placements have 4 nodes, not 3"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"nodes": 4}, "no block has 4 free nodes; block b1 has 3"),
        ({"nodes": 8}, "no group of 2 blocks has 8 free nodes; b0 to b1 have 6"),
        ({"nodes": 8, "segment": 4}, "no block has 4 free nodes; block b1 has 3"),
        ({"nodes": 9, "segment": 3}, "blocks with 10 free nodes hold no segments of 3 nodes as asked"),
        (
            {"nodes": 10, "segment": 2, "spread_segments": True},
            "when all is empty blocks with 16 free nodes hold no segments of 2 nodes as asked",
        ),
    ],
)
def test_a_job_that_waits_is_told_what_blocks_lack(asked: dict[str, Any], words: str) -> None:
    network = blocks((4, 8), [Unit(name=f"b{n}", nodes=[f"n{n}{k}" for k in range(4)]) for n in range(4)])
    busy = {"n00", "n10", "n20", "n21", "n30", "n31"}
    found = schedule(machine(network, busy, [job("1", **asked)]))
    assert words in found.pending[0].detail


def test_ipsched_refuses_more_nodes_than_a_block_has() -> None:
    network = blocks((4, 8), [Unit(name=f"b{n}", nodes=[f"n{n}{k}" for k in range(4)]) for n in range(2)])
    request = Request(nodes=3, cores=12)
    jobs = [replace(job("1", 3), request=request), replace(job("2", 6), request=Request(nodes=6, cores=24))]
    found = schedule(machine(network, {"n00"}, jobs), model="ipsched")
    assert [award.job for award in found.started] == ["1"]
    assert "ipsched has no blocks" in found.pending[0].detail
    workload = ClusterWorkload(
        nodes=[Node(name=name, cores=CORES) for name in network.members],
        network=network,
        jobs=[ArrivingJob(job=one, arrival_s=0, run_time_s=9) for one in jobs],
    )
    never = play(workload, NodeOptions(policy="ipsched")).record.never
    assert "ipsched has no blocks" in never[1]
    on_ring = rings([Unit(name="r", nodes=network.members)])
    alone = [replace(job("1", 1), request=Request(cores=8)), replace(job("2", 1), request=Request(cores=4))]
    for pending in schedule(machine(on_ring, {"n00"}, alone), model="ipsched").pending:
        assert "ipsched has no blocks" in pending.detail
    assert not schedule(machine(on_ring, {"n00"}, alone), model="ipsched").started


def test_what_is_wholly_free_stays_so_where_it_is_asked_for() -> None:
    leaves = [Switch(name=f"s{n}", nodes=[f"n{n}{k}" for k in range(4)]) for n in range(2)]
    nodes = [
        Node(name=name, cores=CORES, state=NodeState.DOWN if name in {"n12", "n13"} else NodeState.IDLE)
        for leaf in leaves
        for name in leaf.nodes
    ]
    top = Switch(name="top", switches=["s0", "s1"])
    snapshot = Snapshot(nodes=nodes, switches=[*leaves, top], jobs=[job("1", 2)])
    plain, kept = schedule(snapshot), schedule(snapshot, keep_whole=True)
    assert set(plain.started[0].nodes) == {"n00", "n01"}
    assert set(kept.started[0].nodes) == {"n10", "n11"}


def test_shares_of_what_is_broken_count_blocks_first() -> None:
    network = blocks((2, 4), [Unit(name=f"b{n}", nodes=[f"n{n}{k}" for k in range(2)]) for n in range(4)])
    topology = topology_of(machine(network, set(), []))
    is_empty = np.array([True] * 7 + [False])
    shares = topology.broken_shares(np.array([0, 1, 3, 4, 5]), np.array([0, 1, 2, 4, 6]), is_empty)
    # Blocks 0 to 2 are wholly free, so is the first pair; the machine is not.
    all_of_them = 4 + 2 / 4 + 1 / 16
    assert shares * all_of_them == pytest.approx([1 + 1 / 4, 2 + 1 / 4, 1, 0])


def test_slurms_stand_in_takes_the_blocks_that_slurm_would() -> None:
    network = blocks((4, 8), [Unit(name=f"b{n}", nodes=[f"n{n}{k}" for k in range(4)]) for n in range(4)])
    jobs = [
        ArrivingJob(job=replace(job(f"{n}", n), priority=9 - n), arrival_s=n, run_time_s=100)
        for n in (3, 4, 6)
    ]
    workload = ClusterWorkload(
        nodes=[Node(name=name, cores=CORES) for name in network.members], network=network, jobs=jobs
    )
    found = play(workload, NodeOptions(policy="backfill-slurm", backfill_interval_s=0))
    where = [
        by_block(network, [network.members[n] for n in one.allocation.nodes.tolist()]) for one in found.played
    ]
    assert where == [(0, 0, 0, 3), (0, 0, 4, 0), (2, 4, 0, 0)]


@pytest.mark.parametrize(
    "policy", ["easy", "reservations", "backfill-slurm", "backfill-planned", "aucsched3"]
)
def test_simulated_jobs_are_alone_on_their_blocks(policy: Any) -> None:
    network = blocks((4, 8), [Unit(name=f"b{n}", nodes=[f"n{n}{k}" for k in range(4)]) for n in range(4)])
    rng = Random(8)
    jobs = []
    for place in range(30):
        one = random_job(rng, f"j{place}", 9)
        alone = replace(one.request, exclusive_topo=rng.random() < 0.4)
        moment = rng.uniform(0, 2000)
        jobs.append(ArrivingJob(job=replace(one, request=alone), arrival_s=moment, run_time_s=300))
    jobs.sort(key=lambda one: one.arrival_s)
    nodes = [Node(name=name, cores=CORES) for name in network.members]
    found = play(ClusterWorkload(nodes=nodes, network=network, jobs=jobs), NodeOptions(policy=policy))
    spans = []
    for ran in found.played:
        own = ran.allocation.own
        mine = ran.allocation.nodes if own is None else ran.allocation.nodes[own > 0]
        assert len(mine) == ran.demand.job.request.fewest_nodes
        spans.append(
            (ran.start_s, ran.start_s + ran.run_s, ran.demand.job.request.exclusive_topo, set(mine // 4))
        )
    pairs = [
        (a, b) for a in spans for b in spans if a is not b and a[2] and max(a[0], b[0]) < min(a[1], b[1])
    ]
    assert pairs
    assert all(not a[3] & b[3] for a, b in pairs)


def test_negotiations_refuse_blocks() -> None:
    network = blocks((4,), [Unit(name="b", nodes=["n0", "n1"])])
    nodes = [Node(name=name, cores=CORES) for name in network.members]
    jobs = [ArrivingJob(job=job("1", 1), arrival_s=0, run_time_s=100)]
    with pytest.raises(InputError, match=r"topology.kind: .* do not know the rules .* blocks"):
        play_of(ClusterWorkload(nodes=nodes, network=network, jobs=jobs), None)


def test_pictures_have_a_row_for_each_block() -> None:
    network = blocks((4, 8), [Unit(name=f"b{n}", nodes=[f"n{n}{k}" for k in range(4)]) for n in range(4)])
    layout = layout_of(machine(network, set(), []), 8.0, 8.0)
    assert [label for _, _, label in layout.labels] == ["b0", "b1", "b2", "b3"]


def test_the_papers_weights_leave_no_room_for_what_is_whole() -> None:
    with pytest.raises(OptionError, match="keep_whole: it has lexicographic weights only"):
        StepOptions(keep_whole=True, weights="paper")
    network = blocks((4, 8), [Unit(name=f"b{n}", nodes=[f"n{n}{k}" for k in range(4)]) for n in range(4)])
    state = state_of(machine(network, set(), []))
    cluster = Cluster(columns=state.columns, topology=state.topology, guards=())
    assert keeps_whole(cluster, StepOptions())
    assert not keeps_whole(cluster, StepOptions(weights="paper"))
