"""Promises that follow the waits: one job at a time is promised a start to come, whoever is due first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from support.contended import contended

from aucsched.auction.reserve import Promise
from aucsched.bidgen.generate import place_alone
from aucsched.cluster.jobs import Job, Request
from aucsched.cluster.nodes import License, Node, Resources
from aucsched.cluster.resources.allocation import StartingJob
from aucsched.cluster.resources.demand import Demand
from aucsched.cluster.workload import ArrivingJob, ClusterWorkload
from aucsched.simulation.nodes.node_machine import Machine
from aucsched.simulation.nodes.node_policies import NODE_POLICIES, NodeOptions, play
from aucsched.simulation.nodes.node_promises import MOST_AUTO, Promises
from aucsched.simulation.nodes.node_queue import NodeQueue

RESPONSE: dict[str, Any] = {"policy": "aucsched3", "objective": "response", "strategy": "greedy"}


class Waiting:
    """A machine of four nodes, all held until 100, and jobs that wait: (arrival, cores, limit)."""

    def __init__(self, *asked: tuple[float, int, int]) -> None:
        amount = Resources(cores=1)
        jobs = [
            ArrivingJob(
                job=Job(id=str(rank), priority=1, request=Request(cores=cores), time_limit_s=limit),
                arrival_s=arrival,
                run_time_s=float(limit),
            )
            for rank, (arrival, cores, limit) in enumerate([(0.0, 4, 100), *asked])
        ]
        named = [Node(name=f"n{place}", total=amount, free=amount) for place in range(4)]
        self.machine = Machine(ClusterWorkload(name="waiting", nodes=named, jobs=jobs))
        holder, *self.demands = (self._read(one.job, rank) for rank, one in enumerate(jobs))
        self.start(holder, 0.0)

    def _read(self, job: Job, rank: int) -> Demand:
        found = self.machine.reader.read(job, rank)
        assert isinstance(found, Demand)
        return found

    def start(self, demand: Demand, now: float) -> None:
        """Start a job where it fits."""
        allocation = place_alone(demand, self.machine.columns, self.machine.topology)
        assert allocation is not None
        self.machine.start(StartingJob(demand=demand, allocation=allocation), now)

    def queue(self) -> NodeQueue:
        """Return those that wait."""
        queue = NodeQueue()
        for demand in self.demands:
            queue.add(demand)
        return queue


def promised(kept: Sequence[Promise]) -> list[tuple[str, float]]:
    return [(one.demand.job.id, one.start) for one in kept]


def test_one_start_to_come_is_promised_and_the_next_when_it_has_come() -> None:
    waiting = Waiting((1.0, 3, 50), (2.0, 3, 50), (3.0, 3, 50))
    kept = Promises(waiting.machine, "auto")
    assert promised(kept.kept(10.0, waiting.queue())) == [("1", 100.0)]
    assert promised(kept.kept(20.0, waiting.queue())) == [("1", 100.0)]
    # What starts now stands in nobody's way any more.
    waiting.machine.end(0, 100.0)
    found = kept.kept(100.0, waiting.queue())
    assert [name for name, _ in promised(found)] == ["1", "2"]
    assert found[0].start == 100 < found[1].start


def test_a_plan_promises_all_of_them() -> None:
    waiting = Waiting((1.0, 3, 50), (2.0, 3, 50), (3.0, 3, 50))
    kept = Promises(waiting.machine, "plan").kept(10.0, waiting.queue())
    assert promised(kept) == [("1", 100.0), ("2", 150.0), ("3", 200.0)]


def test_a_wide_job_is_due_before_a_narrow_one_that_came_a_little_earlier() -> None:
    # EASY's longest wait is 39 s by now: they are due 33 s after they have come and at once.
    waiting = Waiting((1.0, 1, 50), (2.0, 4, 50))
    kept = Promises(waiting.machine, "auto").kept(40.0, waiting.queue())
    assert [name for name, _ in promised(kept)] == ["2"]
    # One that came long before is due first whatever its size.
    waiting = Waiting((1.0, 1, 50), (39.0, 4, 50))
    kept = Promises(waiting.machine, "auto").kept(40.0, waiting.queue())
    assert [name for name, _ in promised(kept)] == ["1"]


def test_who_can_be_promised_nothing_leaves_the_promise_to_the_next() -> None:
    # A node is down for nobody knows how long: four are not to be had.
    waiting = Waiting((1.0, 4, 50), (2.0, 3, 50))
    waiting.machine.end(0, 5.0)
    waiting.machine.take_down(3)
    kept = Promises(waiting.machine, "auto").kept(10.0, waiting.queue())
    assert promised(kept) == [("2", 10.0)]


@pytest.mark.parametrize("seed", range(4))
def test_simulations_have_one_promise_to_come_and_keep_them_all(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    most: list[int] = []
    plain = Promises.kept

    def counted(self: Promises, now: float, queue: NodeQueue) -> list[Promise]:
        kept = plain(self, now, queue)
        most.append(sum(one.start > now for one in kept))
        return kept

    monkeypatch.setattr(Promises, "kept", counted)
    result = play(contended(seed), NodeOptions(**RESPONSE))
    assert result.broken_promises() == {}
    assert max(most) == MOST_AUTO == 1


def test_a_promise_that_licences_break_is_told_in_the_seconds_of_the_result() -> None:
    request = Request(cores=1, licenses={"m": 1})
    jobs = [
        ArrivingJob(
            job=Job(id=name, priority=1, request=request, time_limit_s=1_234_567),
            arrival_s=50.0 + place,
            run_time_s=1_234_567.0,
        )
        for place, name in enumerate("abc")
    ]
    node = Node(name="n", total=Resources(cores=4), free=Resources(cores=4))
    workload = ClusterWorkload(name="one licence", nodes=[node], jobs=jobs, licenses={"m": License(total=1)})
    result = play(workload, NodeOptions(policy="aucsched3", promise="plan"))
    late = {2: "no room, licence or share of a limit was left by 1234567 s"}
    assert result.broken_promises() == late
    nobody = play(replace(workload, jobs=()), NodeOptions(policy="aucsched3", promise="plan"))
    assert nobody.broken_promises() == {}


def test_nothing_is_reserved_beside_it_unless_asked() -> None:
    machine = Machine(contended(0))

    def reserve(**told: Any) -> int:
        policy: Any = NODE_POLICIES["aucsched3"](NodeOptions(**RESPONSE, **told), machine)
        return int(policy._options.reservations)  # noqa: SLF001 - what it was made with

    assert reserve() == 0
    assert reserve(promise="auto", reserve=2) == 2
    assert reserve(promise="60s") == 1
