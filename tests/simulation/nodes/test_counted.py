"""The plan of all that wait by cores, and whom it keeps from starting."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any, ClassVar
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.contended import contended

from aucsched.bidgen.generate import place_alone
from aucsched.cluster.jobs import Job, Request, Span
from aucsched.cluster.nodes import Node, Resources
from aucsched.cluster.resources.allocation import StartingJob
from aucsched.cluster.resources.demand import Demand
from aucsched.cluster.workload import ArrivingJob, ClusterWorkload
from aucsched.simulation.nodes.core_plan import CoreLevelPlan
from aucsched.simulation.nodes.node_machine import Machine
from aucsched.simulation.nodes.node_policies import NodeOptions, play
from aucsched.simulation.nodes.node_queue import NodeQueue
from aucsched.simulation.promised import promise_plan
from aucsched.simulation.promised.awards import REFUSE
from aucsched.simulation.promised.promise_plan import PROMISE_DUE, PROMISED, rules_of

RESPONSE: dict[str, Any] = {"policy": "aucsched3", "objective": "response", "strategy": "greedy"}


class Waiting:
    """A machine of eight cores, five of them held until 100, and jobs that came at 0 and wait."""

    def __init__(
        self, *asked: tuple[Request, int], nodes: int = 8, gpus: int = 0, share: float = 0.0
    ) -> None:
        jobs = [
            ArrivingJob(
                job=Job(id=str(number), priority=1, request=request, time_limit_s=limit),
                arrival_s=0.0,
                run_time_s=float(limit),
            )
            for number, (request, limit) in enumerate([(Request(cores=5), 100), *asked])
        ]
        amount = Resources(cores=8 // nodes, gres={"gpu": gpus} if gpus else {})
        named = [Node(name=f"n{place}", total=amount, free=amount) for place in range(nodes)]
        self.machine = Machine(ClusterWorkload(name="waiting", nodes=named, jobs=jobs))
        self.demands = [self._read(one.job, number) for number, one in enumerate(jobs)]
        self.machine.start(self.start(0), 0.0)
        # Constants that are compiled in cannot be patched: the loops are plain, whatever is loaded.
        with patch.object(PROMISE_DUE, "_loaded", [None]), patch.object(REFUSE, "_loaded", [None]):
            self.plan = CoreLevelPlan(self.machine, rules_of(8, "response", "auto"))
        self.share = share
        self.queue = NodeQueue()
        for demand in self.demands[1:]:
            self.queue.add(demand)

    def _read(self, job: Job, number: int) -> Demand:
        found = self.machine.reader.read(job, number)
        assert isinstance(found, Demand)
        return found

    def start(self, number: int) -> StartingJob:
        """Return a job's start where it fits now."""
        allocation = place_alone(self.demands[number], self.machine.columns, self.machine.topology)
        assert allocation is not None
        return StartingJob(demand=self.demands[number], allocation=allocation)

    def refused(self, now: float = 10.0) -> set[int]:
        """Return who may not start."""
        with patch.multiple(promise_plan, SHARE=self.share, LOOSENESS=1.0):
            self.plan.follow(now, self.queue, 1000.0)
        return set(self.plan.refused(now))


def cores(count: int) -> Request:
    return Request(cores=count)


def test_who_would_put_off_a_due_job_may_not_start() -> None:
    # The first is due and starts at 100: one core for 200 s would make it wait, one for 90 s would not.
    assert Waiting((cores(8), 50), (cores(1), 200), (cores(1), 90)).refused() == {2}


def test_who_is_second_is_not_put_off_either() -> None:
    # They start at 100 and 150; three cores for 130 s leave five for the first and not six for the second.
    assert Waiting((cores(5), 50), (cores(6), 50), (cores(3), 130)).refused() == set()
    assert Waiting((cores(5), 50), (cores(6), 50), (cores(3), 150)).refused() == {3}


def test_two_that_may_start_alone_may_not_both() -> None:
    # Wide ones are due sooner: the first after 551 s, the others after 1000, and one of these leaves it room.
    waiting = Waiting((cores(7), 50), (cores(1), 2000), (cores(1), 1000), share=1.0)
    assert waiting.refused() == set()
    starts = [waiting.start(2), waiting.start(3)]
    assert waiting.plan.too_many(10.0, starts, ()) == {3}
    assert waiting.plan.too_many(10.0, starts[::-1], ()) == {2}
    # What starts in any case comes first.
    assert waiting.plan.too_many(10.0, starts, {3}) == {2}
    assert waiting.plan.too_many(10.0, starts[:1], ()) == set()
    # It was a question: nothing has started.
    assert waiting.refused(11.0) == set()


def test_a_job_wider_than_what_is_up_waits_for_all_that_is() -> None:
    waiting = Waiting((cores(8), 50), (cores(1), 200))
    waiting.machine.take_down(7)
    assert waiting.refused() == {2}


def test_nobody_is_refused_where_nothing_runs() -> None:
    waiting = Waiting((cores(8), 50), (cores(1), 200))
    waiting.machine.end(0, 5.0)
    assert waiting.refused() == set()


@pytest.mark.parametrize(
    "request_",
    [
        Request(cores=1, memory_mib_per_node=1),
        Request(cores=1, gres_per_node={"gpu": Span(minimum=1, maximum=1)}),
        Request(nodes=Span(minimum=1, maximum=1), cores_per_node=1),
        Request(cores=2, cores_per_task=2),
        Request(cores=1, contiguous=True),
        Request(cores=1, required_nodes=frozenset({"n0"})),
    ],
)
def test_where_cores_tell_little_nobody_is_refused(request_: Request) -> None:
    waiting = Waiting((cores(8), 50), (cores(1), 200), nodes=4, gpus=1)
    assert waiting.refused() == {2}
    waiting = Waiting((cores(8), 50), (cores(1), 200), (request_, 10), nodes=4, gpus=1)
    assert waiting.refused() == set()


def test_whole_nodes_are_counted_by_their_cores() -> None:
    whole = Request(nodes=Span(minimum=4, maximum=4), cores_per_node=2)
    assert Waiting((whole, 50), (cores(1), 200), nodes=4).refused() == {2}


class Watched(CoreLevelPlan):
    """Remembers by when those that were due were to start."""

    latest: ClassVar[dict[int, float]] = {}

    def follow(self, now: float, queue: Iterable[Demand], longest_s: float) -> None:
        """Plan who waits."""
        super().follow(now, queue, longest_s)
        due = self._state.machine.waiting[: self._state.machine.counts[PROMISED]].tolist()
        self.latest.update((job, float(self._promise[job])) for job in due)


class Unheeded(Watched):
    """Refuses nobody."""

    def refused(self, *_: Any) -> frozenset[int]:
        """Refuse nobody."""
        return frozenset()

    def too_many(self, *_: Any) -> frozenset[int]:
        """Refuse nobody."""
        return frozenset()


def put_off(kind: type[Watched], seed: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Play a workload with exact limits; return who started after the plan's promise."""
    kind.latest = {}
    monkeypatch.setattr("aucsched.simulation.nodes.node_promises.CoreLevelPlan", kind)
    result = play(contended(seed, jobs=40, has_exact_limits=True), NodeOptions(**RESPONSE))
    assert result.broken_promises() == {}
    assert kind.latest
    return [
        one.demand.job.id
        for one in result.played
        if one.start_s > kind.latest.get(one.demand.index, inf) + 1e-6
    ]


def test_nobody_who_is_due_starts_later_than_the_plan_left_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [put_off(Watched, seed, monkeypatch) for seed in range(4)] == [[]] * 4
    assert any(put_off(Unheeded, seed, monkeypatch) for seed in range(4))


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_compiled_and_plain_loops_start_the_same(seed: int) -> None:
    workload = contended(seed)
    with pytest.MonkeyPatch.context() as patch:
        for entry in (PROMISE_DUE, REFUSE):
            patch.setattr(entry, "_loaded", [None])
        plain = play(workload, NodeOptions(**RESPONSE))
    with pytest.MonkeyPatch.context() as patch:
        for entry in (PROMISE_DUE, REFUSE):
            patch.setattr(entry, "many", 0)
        fast = play(workload, NodeOptions(**RESPONSE))
    assert [one.start_s for one in plain.played] == [one.start_s for one in fast.played]


@pytest.mark.parametrize("interval_s", [None, 7.0])
@pytest.mark.parametrize("seed", range(4))
def test_no_promise_is_broken_by_waiting_for_a_pass(seed: int, interval_s: float | None) -> None:
    result = play(contended(seed, jobs=50), NodeOptions(interval_s=interval_s, **RESPONSE))
    assert result.promises
    assert result.broken_promises() == {}
    assert f"broken promises{0:>23}\n" in result.to_text("w")
    if interval_s is not None:
        assert all(start % interval_s == 0 for start in result.promises.values())
