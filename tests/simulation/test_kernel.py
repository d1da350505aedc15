"""Both kernels: the order of events, and the checks around policies that break the rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from support.plain import simulate_checked

from aucsched.cluster.errors import AwardError
from aucsched.simulation.events import Event, EventKind, EventQueue, run_events
from aucsched.simulation.log_columns import Requests, Workload
from aucsched.simulation.logs.counts import CheckedPolicy, simulate_counts
from aucsched.simulation.logs.policies import make_policy
from aucsched.simulation.result import Simulation
from aucsched.simulation.stepping import NEVER, Changes, CountPolicy, StoppedRun


def workload_of(*rows: tuple[int, int, int], processors: int = 4) -> Workload:
    """Jobs as (submit, run, size), their estimates exact."""
    submit, run, size = zip(*rows, strict=True)
    same = (1,) * len(rows)
    requests = Requests(processors=processors, submit=submit, size=size, estimate=run, user=same, weight=same)
    numbers = tuple(range(len(rows)))
    return Workload(requests=requests, run=run, ids=numbers, row=numbers, rows=len(rows))


class Toy(CountPolicy):
    """A policy that answers each step from a list, and keeps the events that it was given."""

    def __init__(self, *answers: Sequence[int]) -> None:
        self._answers = list(answers)
        self.events: list[tuple[float, list[int], list[int]]] = []

    def step(self, now: float, seen: Changes) -> Sequence[int]:
        """Return the next answer, nothing after the last."""
        ended, arrived = seen
        self.events.append((now, list(ended), list(arrived)))
        return self._answers.pop(0) if self._answers else ()


@pytest.fixture
def do_nothing() -> Toy:
    return Toy()


class RejectAll(CountPolicy):
    """A policy that forgets every job on arrival."""

    def __init__(self) -> None:
        self.rejected: list[int] = []

    def step(self, now: float, seen: Changes) -> Sequence[int]:  # noqa: ARG002
        """Start nothing."""
        self.rejected += seen[1]
        return ()


SIMULTANEOUS = workload_of((0, 10, 2), (0, 10, 2), (10, 5, 4), (10, 1, 1), (20, 1, 1))


@pytest.mark.parametrize("simulate", [simulate_counts, simulate_checked])
def test_at_one_time_all_ends_then_all_arrivals_then_one_pass(simulate: object) -> None:
    toy = Toy([1, 0], [2], [], [3], [4])
    starts = simulate(SIMULTANEOUS, toy)  # type: ignore[operator]
    assert toy.events == [
        (0, [], [0, 1]),
        (10, [1, 0], [2, 3]),  # ends at one time come in the order in which the jobs were chosen
        (15, [2], []),
        (20, [], [4]),
        (21, [3], []),
        (22, [4], []),
    ]
    assert starts == [0, 0, 10, 20, 21]


@pytest.mark.parametrize("simulate", [simulate_counts, simulate_checked])
def test_policies_that_start_nothing_end_the_run(simulate: object, do_nothing: Toy) -> None:
    assert simulate(SIMULTANEOUS, do_nothing) == [NEVER] * 5  # type: ignore[operator]
    reject_all = RejectAll()
    assert simulate(SIMULTANEOUS, reject_all) == [NEVER] * 5  # type: ignore[operator]
    assert reject_all.rejected == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("simulate", [simulate_counts, simulate_checked])
def test_progress_is_reported_now_and_then(simulate: object) -> None:
    jobs = workload_of(*((number, 1, 1) for number in range(10_000)))
    reports: list[int] = []
    simulate(jobs, make_policy("easy", jobs.requests), reports.append)  # type: ignore[operator]
    assert len(reports) >= 2
    assert reports == sorted(reports)
    assert reports[-1] <= 10_000


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([[0, 0]], "job 0 starts at 0 while running"),
        ([[0, 1], [0]], "job 0 starts at 10 while ended"),
        ([[2]], "job 2 starts at 0 while unknown"),
        ([[0, 1], [2, 3]], "1 processors are given twice at 10"),
    ],
)
def test_answers_that_break_a_rule_are_refused(answers: list[list[int]], message: str) -> None:
    with pytest.raises(AwardError, match=message):
        simulate_checked(SIMULTANEOUS, Toy(*answers))


class Stopping(Toy):
    """A toy that takes jobs off the machine too, step by step."""

    stopped: Sequence[int] = ()

    def __init__(self, *answers: tuple[Sequence[int], Sequence[int]]) -> None:
        super().__init__(*(started for started, _ in answers))
        self._stops = [list(stopped) for _, stopped in answers]

    def step(self, now: float, seen: Changes) -> Sequence[int]:
        """Stop what the list says too."""
        self.stopped = self._stops.pop(0) if self._stops else ()
        return super().step(now, seen)


@pytest.mark.parametrize("simulate", [simulate_counts, simulate_checked])
def test_a_stopped_job_waits_again_and_its_old_end_never_comes(simulate: object) -> None:
    jobs = workload_of((0, 10, 3), (2, 5, 4), (30, 1, 1))
    toy = Stopping(([0], []), ([1], [0]), ([0], []))
    stopped: list[StoppedRun] = []
    starts = simulate(jobs, toy, None, stopped)  # type: ignore[operator]
    assert starts == [7, 2, NEVER]
    assert stopped == [StoppedRun(0, 0, 2)]
    # There is no event at 10, where the stopped run would have ended.
    assert toy.events == [(0, [], [0]), (2, [], [1]), (7, [1], []), (17, [0], []), (30, [], [2])]


def test_only_running_jobs_can_be_stopped() -> None:
    jobs = workload_of((0, 10, 3), (2, 5, 4))
    with pytest.raises(AwardError, match="job 1 becomes waiting while waiting"):
        simulate_checked(jobs, Stopping(([0], []), ([], [1])))
    with pytest.raises(AwardError, match="3 processors are given twice at 2"):
        simulate_checked(jobs, Stopping(([0], []), ([1], [])))


@pytest.mark.parametrize("simulate", [simulate_counts, simulate_checked])
def test_a_policy_is_asked_when_it_wanted_to_wake(simulate: object) -> None:
    class Waking(Toy):
        @property
        def alarm(self) -> float:
            last = self.events[-1][0] if self.events else -1
            return min((time for time in (4, 10, 12) if time > last), default=math.inf)

    toy = Waking([0], [], [1])
    assert simulate(workload_of((0, 10, 2), (1, 1, 2)), toy) == [0, 4]  # type: ignore[operator]
    assert [now for now, _, _ in toy.events] == [0, 1, 4, 5, 10, 12]


def test_events_that_break_a_rule_are_refused() -> None:
    def checked() -> CheckedPolicy:
        return CheckedPolicy(Toy([0]), SIMULTANEOUS.requests)

    with pytest.raises(AwardError, match="job 2 arrives at 0, not at its submission"):
        checked().step(0, ([], [2]))
    with pytest.raises(AwardError, match="job 0 becomes ended while unknown"):
        checked().step(0, ([0], []))
    ids = replace(SIMULTANEOUS.requests, ids=tuple(range(41, 41 + len(SIMULTANEOUS.requests))))
    with pytest.raises(AwardError, match="job 41 becomes ended while unknown"):
        CheckedPolicy(Toy([0]), ids).step(0, ([0], []))
    with pytest.raises(AwardError, match="job 41 starts at 0 while running"):
        CheckedPolicy(Toy([0, 0]), ids).step(0, ([], [0]))
    late = checked()
    late.step(0, ([], [0]))
    with pytest.raises(AwardError, match="time 0 does not follow 0"):
        late.step(0, ([], [1]))


def test_events_are_ordered_by_time_kind_and_sequence() -> None:
    queue = EventQueue()
    for time, kind, job in [
        (5, EventKind.ARRIVAL, 1),
        (5, EventKind.END, 2),
        (3, EventKind.ARRIVAL, 3),
        (5, EventKind.ARRIVAL, 0),
        (5, EventKind.END, 1),
    ]:
        queue.push(time, kind, job)
    assert len(queue) == 5
    assert [event.job for event in queue.pop_simultaneous()] == [3]
    assert [event.job for event in queue.pop_simultaneous()] == [2, 1, 1, 0]


def test_cancelled_events_do_not_happen() -> None:
    queue = EventQueue()
    first, _, third, fourth = (queue.push(time, EventKind.END, job) for job, time in enumerate((1, 2, 2, 3)))
    queue.cancel(third)
    queue.cancel(first)
    assert len(queue) == 2
    assert [event.job for event in queue.pop_simultaneous()] == [1]
    queue.cancel(fourth)
    assert not queue


def test_events_caused_by_a_pass_come_in_a_later_round_of_their_time() -> None:
    rounds: list[list[Event]] = []

    def handle(event: Event) -> None:
        rounds[-1:] = [[*rounds[-1], event]]

    def schedule(now: float) -> None:
        rounds.append([])
        if len(rounds) == 2:
            queue.push(now, EventKind.END, 7)

    queue = EventQueue()
    queue.push(0, EventKind.ARRIVAL, 7)
    rounds.append([])
    run_events(queue, handle, schedule)
    assert [[event.kind for event in events] for events in rounds] == [
        [EventKind.ARRIVAL],
        [EventKind.END],
        [],
    ]


def test_numbers_of_counted_processors_never_overlap() -> None:
    jobs = workload_of((0, 10, 2), (0, 4, 1), (0, 10, 1), (5, 9, 1), (10, 3, 3), (14, 2, 4))
    starts = simulate_counts(jobs, make_policy("easy", jobs.requests))
    played = Simulation(workload=jobs, policy="easy", order="fcfs", starts=tuple(starts), seconds=0.0)
    assert played.placed == {
        0: ((0, 2),),
        1: ((2, 1),),
        2: ((3, 1),),
        3: ((2, 1),),
        4: ((0, 2), (3, 1)),
        5: ((0, 4),),
    }
