"""The machine that counts processors, without nodes: the loop of events in which policies over logs play.

At one time stamp all ends, then all arrivals, then one scheduling pass; ends at one time in the order
in which the jobs were chosen. Policies that have a compiled loop (backfilling/log_loop.py) are played by
it where that is possible and pays; tests hold both equal. Other people's policies are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from heapq import heapify, heappop, heappush
from math import inf

from ...cluster.errors import AwardError
from ..backfilling.log_loop import play_compiled
from ..log_columns import Requests, Workload
from ..stepping import NEVER, REPORT_EVERY, CountPolicy, PolicyWrapper, StoppedRun, alarm_of, stopped_by


def simulate_counts(
    workload: Workload,
    policy: CountPolicy,
    progress: Callable[[int], None] | None = None,
    stopped: list[StoppedRun] | None = None,
) -> list[float]:
    """Run a policy over a workload and return each job's start, NEVER where it had none.

    Args:
        workload: the jobs; the machine is as large as its requests say.
        policy: a fresh one; it is trusted.
        progress: called now and then with the number of jobs that have arrived.
        stopped: takes the runs that the policy stopped, in the order in which it did.

    """
    starts = play_compiled(workload, policy, progress)
    return simulate_plain(workload, policy, progress, stopped) if starts is None else starts


def simulate_checked(
    workload: Workload,
    policy: CountPolicy,
    progress: Callable[[int], None] | None = None,
    stopped: list[StoppedRun] | None = None,
) -> list[float]:
    """Run a policy over a workload as ``simulate_counts`` does, every rule checked.

    Raises:
        AwardError: the policy broke a rule.

    """
    return simulate_plain(workload, CheckedPolicy(policy, workload.requests), progress, stopped)


def simulate_plain(  # noqa: C901 - one loop: a call an event costs as much as the rest
    workload: Workload,
    policy: CountPolicy,
    progress: Callable[[int], None] | None = None,
    stopped: list[StoppedRun] | None = None,
) -> list[float]:
    """Run a policy over a workload in plain Python, whatever it is."""
    run = workload.run
    # The sentinels at infinity spare the queues a test for emptiness.
    submit = (*workload.requests.submit, inf)
    ends: list[tuple[float, int, int]] = [(inf, 0, -1)]
    alarms: list[float] = [inf]
    starts: list[float] = [NEVER] * len(run)
    step, has_alarms = policy.step, alarm_of(policy) is not None
    stops = stopped_by(policy) is not None
    arrivals = sequence = 0
    next_arrival, next_end = submit[0], ends[0][0]
    report_at = REPORT_EVERY if progress else inf
    nobody: list[int] = []
    while True:
        now = next_arrival if next_arrival < next_end else next_end  # noqa: FURB136 - min() is a call
        now = min(now, alarms[0])
        if now == inf:
            return starts
        ended = nobody
        if next_end == now:
            ended = [heappop(ends)[2]]
            while ends[0][0] == now:
                ended.append(heappop(ends)[2])
        first = arrivals
        if next_arrival == now:
            arrivals += 1
            while submit[arrivals] == now:
                arrivals += 1
            next_arrival = submit[arrivals]
            if progress and arrivals >= report_at:
                progress(arrivals)
                report_at = arrivals + REPORT_EVERY
        started = step(now, ended, range(first, arrivals))
        if stops:
            _take_off(stopped_by(policy) or (), now, ends, starts, stopped)
        for job in started:
            starts[job] = now
            sequence += 1
            heappush(ends, (now + run[job], sequence, job))
        next_end = ends[0][0]
        if has_alarms:
            _set_alarm(policy, now, alarms)


def _set_alarm(policy: CountPolicy, now: float, alarms: list[float]) -> None:
    """Take the alarms off that have come; note when the policy wants a step next."""
    while alarms[0] <= now:
        heappop(alarms)
    alarm = alarm_of(policy)
    if alarm is not None and alarm > now and alarm not in alarms:
        heappush(alarms, alarm)


def _take_off(
    jobs: Sequence[int],
    now: float,
    ends: list[tuple[float, int, int]],
    starts: list[float],
    stopped: list[StoppedRun] | None,
) -> None:
    """Let running jobs wait again: their ends do not come."""
    for job in jobs:
        if stopped is not None:
            stopped.append(StoppedRun(job, starts[job], now))
        starts[job] = NEVER
        ends.remove(next(one for one in ends if one[2] == job))
        heapify(ends)


class _State(IntEnum):
    UNKNOWN = 0
    WAITING = 1
    RUNNING = 2
    ENDED = 3


class CheckedPolicy(PolicyWrapper):
    """A policy whose answers are checked: start once, never before submission, never over capacity.

    A job that the policy stopped may start once more.

    Raises:
        AwardError: an answer, or an event given to the policy, breaks a rule; names the job and the time.

    """

    def __init__(self, policy: CountPolicy, requests: Requests) -> None:
        super().__init__(policy)
        self._requests = requests
        self._state = [_State.UNKNOWN] * len(requests)
        self._free = requests.processors
        self._now: float = NEVER

    def step(self, now: float, ended: Sequence[int], arrived: Sequence[int]) -> Sequence[int]:
        """Check the events, ask the policy and check its answer."""
        if now <= self._now:
            raise AwardError(f"time {now:g} does not follow {self._now:g}")
        self._now = now
        state, size = self._state, self._requests.size
        for job in ended:
            self._move(job, _State.RUNNING, _State.ENDED)
            self._free += size[job]
        for job in arrived:
            self._move(job, _State.UNKNOWN, _State.WAITING)
            if self._requests.submit[job] != now:
                raise AwardError(f"job {job} arrives at {now:g}, not at its submission")
        started = self._policy.step(now, ended, arrived)
        for job in self.stopped or ():
            self._move(job, _State.RUNNING, _State.WAITING)
            self._free += size[job]
        for job in started:
            if state[job] is not _State.WAITING:
                raise AwardError(f"job {job} starts at {now:g} while {state[job].name.lower()}")
            state[job] = _State.RUNNING
            self._free -= size[job]
        if self._free < 0:
            raise AwardError(f"{-self._free} processors are given twice at {now:g}")
        return started

    def _move(self, job: int, before: _State, after: _State) -> None:
        if self._state[job] is not before:
            raise AwardError(f"job {job} becomes {after.name.lower()} while {self._state[job].name.lower()}")
        self._state[job] = after
