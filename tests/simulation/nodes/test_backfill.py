"""Backfilling looks for a reservation only where somebody behind it could start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from support.contended import contended

from aucsched import ArrivingJob, ClusterWorkload, Job, Node, Request, Span
from aucsched.auction.reserve import Backfilling, StepReservations
from aucsched.cluster.resources.allocation import StartingJob
from aucsched.cluster.resources.demand import Demand
from aucsched.simulation.nodes import backfill
from aucsched.simulation.nodes.kernel import NodeKernel
from aucsched.simulation.nodes.node_machine import Machine
from aucsched.simulation.nodes.node_policies import NodeOptions, play
from aucsched.simulation.nodes.node_queue import NodeQueue
from aucsched.simulation.nodes.select import SELECTIONS


class Eager(Backfilling):
    """Has every reservation made before the next job is looked at."""

    def start(self, waiting: Iterable[Demand]) -> None:
        """Start jobs."""
        for demand in waiting:
            super().start([demand])
            self.reserve()


def played(
    patch: pytest.MonkeyPatch, rule: type[Backfilling], seed: int, reservations: int
) -> tuple[dict[int, float], int]:
    made: list[Demand] = []

    class Watched(StepReservations):
        def reserve(self, demand: Demand, before: Sequence[StartingJob]) -> bool:
            made.append(demand)
            return super().reserve(demand, before)

    patch.setattr(backfill, "Backfilling", rule)
    patch.setattr(backfill, "StepReservations", Watched)
    workload = contended(seed)
    machine = Machine(workload)
    selector = SELECTIONS["first"](machine.columns, machine.topology)
    policy = backfill.Backfill(machine, selector, reservations=reservations)
    run = NodeKernel(workload, machine, policy, NodeQueue()).played()
    return {number: entry.start_s for number, entry in run.played.items()}, len(made)


@pytest.mark.parametrize("reservations", [1, 3])
@pytest.mark.parametrize("seed", range(6))
def test_the_same_jobs_start_with_fewer_reservations(
    monkeypatch: pytest.MonkeyPatch, seed: int, reservations: int
) -> None:
    eager, every = played(monkeypatch, Eager, seed, reservations)
    lazy, some = played(monkeypatch, Backfilling, seed, reservations)
    assert lazy == eager
    assert 0 < some < every


@pytest.mark.parametrize("policy", ["fcfs", "easy", "reservations", "backfill-slurm", "backfill-planned"])
def test_gres_over_all_nodes_are_dealt_from_what_a_pass_has_left(policy: str) -> None:
    """One job takes a's three; the other's two, dealt evenly over both nodes a moment before, are b's."""
    nodes = (Node(name="a", cores=4, gres={"gpu": 3}), Node(name="b", cores=4, gres={"gpu": 2}))
    asked = (
        Request(cores=1, gres_total={"gpu": Span(minimum=3, maximum=3)}, contiguous=True),
        Request(cores=5, nodes=Span(minimum=2, maximum=2), gres_total={"gpu": Span(minimum=2, maximum=2)}),
    )
    jobs = tuple(
        ArrivingJob(
            job=Job(id=str(number), priority=9 - number, time_limit_s=60, request=request),
            arrival_s=0,
            run_time_s=10,
        )
        for number, request in enumerate(asked)
    )
    result = play(ClusterWorkload(name="", nodes=nodes, jobs=jobs), NodeOptions(policy=policy))
    assert [one.start_s for one in result.played] == [0, 0]
    assert [one.allocation.held.gres["gpu"].tolist() for one in result.played] == [[3], [0, 2]]


def test_a_job_that_no_end_lets_start_uses_up_no_reservation() -> None:
    """Job wide waits for one without a time limit; what is reserved for the next keeps job small away."""
    nodes = (Node(name="a", cores=4), Node(name="b", cores=4))

    def arriving(name: str, cores: int, count: int, limit_s: int | None, priority: int) -> ArrivingJob:
        asked = Request(cores=cores, nodes=Span(minimum=count, maximum=count))
        job = Job(id=name, priority=priority, time_limit_s=limit_s, request=asked)
        return ArrivingJob(job=job, arrival_s=0, run_time_s=100 if limit_s is None else limit_s)

    jobs = (
        arriving("endless", 4, 1, None, 9),
        arriving("half", 2, 1, 50, 8),
        arriving("wide", 8, 2, 60, 7),
        arriving("next", 4, 1, 60, 6),
        arriving("small", 2, 1, 1000, 5),
    )
    result = play(ClusterWorkload(name="", nodes=nodes, jobs=jobs), NodeOptions(policy="easy"))
    assert [one.start_s for one in result.played] == [0, 0, 110, 50, 170]
