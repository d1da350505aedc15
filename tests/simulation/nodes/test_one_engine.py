"""The first pass of a simulation and ``schedule`` on the same state with the same options: the same award."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from random_snapshots import random_snapshot

from aucsched import ArrivingJob, ClusterWorkload, Snapshot
from aucsched.auction.impossible import ImpossibleRequests
from aucsched.auction.options import AUCTIONS, MODELS, StepOptions
from aucsched.auction.state import state_of
from aucsched.auction.step import run_step
from aucsched.bidgen.families.registry import columns_of
from aucsched.cluster.limits import Limit
from aucsched.cluster.resources.allocation import StartingJob, add_allocation, resources_of
from aucsched.cluster.resources.demand import Demand
from aucsched.models.solve import reduced_program
from aucsched.models.solve.solver import SolveReport, solve
from aucsched.simulation.nodes.auction import NodeAuction
from aucsched.simulation.nodes.kernel import NodeKernel
from aucsched.simulation.nodes.node_machine import Machine
from aucsched.simulation.nodes.node_queue import NodeQueue

#: Every strategy that a model has, under a work limit where it has one.
STRATEGIES: dict[str, tuple[dict[str, Any], ...]] = {
    "ipsched": ({"strategy": "exact", "work_limit": 3},),
    "aucsched1": ({"strategy": "exact", "work_limit": 3}, {"strategy": "greedy"}),
    "aucsched2": (
        {"strategy": "exact", "work_limit": 3},
        {"strategy": "anytime", "work_limit": 3},
        {"strategy": "greedy"},
    ),
    "aucsched3": (
        {"strategy": "exact", "work_limit": 3},
        {"strategy": "anytime", "work_limit": 3},
        {"strategy": "greedy"},
    ),
}
#: Options whose meaning must not depend on who asks.
OTHERS: tuple[dict[str, Any], ...] = (
    {},
    {"reserve": 1},
    {"reserve": 2, "window": 4},
    {"objective": "priority_cores"},
    {"max_bids": 20, "max_bids_per_job": 3},
    {"on_timeout": "discard"},
)


@pytest.fixture(autouse=True)
def _solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solve a program once if both engines state it, array for array: under a work limit HiGHS repeats."""
    known: dict[bytes, SolveReport] = {}

    def solved(*asked: Any) -> SolveReport:
        program = pickle.dumps(asked)
        if program not in known:
            known[program] = solve(*asked)
        return known[program]

    monkeypatch.setattr(reduced_program, "solve", solved)


def _empty(seed: int) -> tuple[Snapshot, ClusterWorkload]:
    """Return a random queue on an empty machine, as a snapshot and as a workload."""
    found = random_snapshot(seed)
    nodes = tuple(replace(node, free=node.total) for node in found.nodes)
    licenses = {name: replace(one, free=one.total) for name, one in found.licenses.items()}
    workload = ClusterWorkload(
        name="",
        nodes=nodes,
        switches=found.switches,
        partitions=found.partitions,
        licenses=licenses,
        jobs=tuple(ArrivingJob(job=job, arrival_s=0, run_time_s=1) for job in found.jobs),
    )
    return replace(workload.snapshot(), time=0.0), workload


def _first_pass(workload: ClusterWorkload, options: StepOptions) -> dict[str, object]:
    machine, queue = Machine(workload), NodeQueue()
    # Jobs that can never run are in no queue of a simulation.
    impossible = ImpossibleRequests(replace(state_of(workload.snapshot()), reader=machine.reader))
    policy = NodeAuction(machine, options)
    for number, arriving in enumerate(workload.jobs):
        job = arriving.job
        demand = machine.reader.read(job, number)
        waits = job.hold is None and job.priority and not job.unsupported and not policy.refuses(job)
        if isinstance(demand, Demand) and waits and not impossible.why(demand):
            queue.add(demand)
    starts = policy.step(0.0, queue)
    names = machine.columns.names
    return {start.demand.job.id: resources_of(start.demand, start.allocation, names) for start in starts}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("part", range(3))
def test_a_first_pass_awards_what_schedule_awards(model: str, part: int) -> None:
    """Soner: figures 3.1, 3.2, 4.1 steps of a scheduler."""
    started = 0
    for seed in range(part, 75, 3):
        snapshot, workload = _empty(seed)
        strategies = STRATEGIES[model]
        options = StepOptions(
            model=model,  # type: ignore[arg-type]
            **strategies[seed // 3 % len(strategies)],
            **_other(seed, model),
        )
        awarded = {award.job: dict(award.nodes) for award in run_step(snapshot, options).started}
        assert _first_pass(workload, options) == awarded, seed
        started += len(awarded)
    assert started > 20


@pytest.mark.parametrize("balance", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_a_first_pass_within_limits_awards_what_schedule_awards(model: str, balance: bool) -> None:
    if balance and model not in AUCTIONS:
        pytest.skip("it places without bids")
    started = limited = 0
    for seed in range(30):
        snapshot, workload = _empty(seed)
        cores = sum(node.free.cores for node in snapshot.nodes)
        limits = (
            Limit(name="all", most={"cores": max(1, cores // 3), "jobs": 4}),
            Limit(name="each", per="user", most={"jobs": 2}),
        )
        snapshot, workload = replace(snapshot, limits=limits), replace(workload, limits=limits)
        strategies = STRATEGIES[model]
        other = {} if balance else _other(seed, model)
        options = StepOptions(model=model, balance=balance, **strategies[seed % len(strategies)], **other)  # type: ignore[arg-type]
        found = run_step(snapshot, options)
        awarded = {award.job: dict(award.nodes) for award in found.started}
        assert _first_pass(workload, options) == awarded, seed
        started += len(awarded)
        limited += sum(refusal.reason == "limit" for refusal in found.pending)
    assert started > 10
    assert limited


@pytest.mark.parametrize("model", AUCTIONS)
@pytest.mark.parametrize("part", range(3))
def test_a_first_balanced_pass_awards_what_schedule_awards(model: str, part: int) -> None:
    started = shared = 0
    for seed in range(part, 75, 3):
        snapshot, workload = _empty(seed)
        # Each job several times: shares are then below what waits, and some of it is beyond the window.
        jobs = tuple(replace(job, id=f"{job.id}-{again}") for again in range(2) for job in snapshot.jobs)
        arriving = tuple(ArrivingJob(job=job, arrival_s=0, run_time_s=1) for job in jobs)
        snapshot, workload = replace(snapshot, jobs=jobs), replace(workload, jobs=arriving)
        strategies = STRATEGIES[model]
        strategy = strategies[seed // 3 % len(strategies)]
        caps = ("max_bids", "max_bids_per_job") if strategy["strategy"] == "greedy" else ()
        other = {
            name: value for name, value in _other(seed, model).items() if name not in ("objective", *caps)
        }
        options = StepOptions(model=model, balance=True, **strategy, **other)  # type: ignore[arg-type]
        found = run_step(snapshot, options)
        awarded = {award.job: dict(award.nodes) for award in found.started}
        assert _first_pass(workload, options) == awarded, seed
        started += len(awarded)
        shared += sum(refusal.reason == "share" for refusal in found.pending)
    assert started > 20
    assert shared


def _other(seed: int, model: str) -> dict[str, Any]:
    other = OTHERS[seed // (3 * len(STRATEGIES[model])) % len(OTHERS)]
    if (
        "on_timeout" in other
        and STRATEGIES[model][seed // 3 % len(STRATEGIES[model])].get("strategy") == "greedy"
    ):
        return {}  # It reaches no limit.
    return {} if "max_bids" in other and model not in AUCTIONS else other


class _Forgetful(NodeAuction):
    """Keeps nothing from one pass to the next; what is free is counted anew, and compared."""

    def step(self, now: float, queue: NodeQueue) -> Sequence[StartingJob]:
        machine = self._machine
        free = columns_of(machine.snapshot).free
        for holding in machine.running.values():
            add_allocation(free, holding.allocation, -1, machine.limited)
        for resource in free.resources():
            assert free.amounts(resource).tolist() == machine.columns.free.amounts(resource).tolist()
        machine._held_at, self._idle = -1, None  # noqa: SLF001 - what is kept
        return super().step(now, queue)


@pytest.mark.parametrize(
    "options",
    [
        {"work_limit": 1},
        {"work_limit": 1, "promise": "none", "reserve": 0},
        {"work_limit": 1, "promise": "none", "reserve": 2, "objective": "response"},
        {"strategy": "greedy", "balance": True},
        {"work_limit": 1, "model": "aucsched1", "award_alone": True},
    ],
)
def test_a_simulation_that_keeps_nothing_starts_the_same(options: dict[str, Any]) -> None:
    waits = 0
    for seed in range(4):
        _, workload = _empty(seed)
        draw = Random(seed)
        jobs = tuple(
            ArrivingJob(
                job=replace(one.job, id=f"{one.job.id}-{time}"),
                arrival_s=20 * time,
                run_time_s=1 + draw.randrange(200),
            )
            for time in range(5)
            for one in workload.jobs
        )
        workload = replace(workload, jobs=jobs)
        chosen = StepOptions(**options)
        runs = []
        for policy in (NodeAuction, _Forgetful):
            machine = Machine(workload)
            run = NodeKernel(workload, machine, policy(machine, chosen), NodeQueue()).played()
            runs.append(
                {
                    one.demand.job.id: (one.start_s, one.allocation.nodes.tolist())
                    for one in run.played.values()
                }
            )
        assert runs[0] == runs[1], seed
        arrival = {one.job.id: one.arrival_s for one in jobs}
        waits += sum(start > arrival[job] for job, (start, _) in runs[0].items())
    assert waits > 20
