"""The machine that counts processors, without nodes: the event loop in which log policies play.

At one time stamp all ends, then all arrivals, then one scheduling pass; ends at one time in the
order in which the jobs were chosen. EASY, conservative backfilling and promised starts have the
same loop over columns, which plays a whole log, events and all, where numba compiles it and that
pays (``play_compiled``); tests hold both equal. Other people's policies are checked.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum
from heapq import heapify, heappop, heappush
from math import inf
from typing import NamedTuple

import numpy as np

from ...cluster.errors import AwardError
from ...cluster.kernels.column_operations import pop, push
from ...cluster.kernels.harness import Column, Entry, Floats, Ints, kernel
from ..backfilling.conservative import ConservativeState
from ..backfilling.conservative import step as step_conservative
from ..backfilling.deep_queue import deep_queue_of
from ..backfilling.easy import QUEUED, EasyState
from ..backfilling.easy import step as step_easy
from ..log_columns import LogColumns, Requests, Workload
from ..promised.log_auction import step as step_promised
from ..promised.promise_plan import PromisedState
from ..stepping import NEVER, REPORT_EVERY, Changes, CountPolicy, PolicyWrapper, StoppedRun


def simulate_counts(
    workload: Workload,
    policy: CountPolicy,
    progress: Callable[[int], None] | None = None,
    stopped: list[StoppedRun] | None = None,
) -> list[float]:
    """Run a policy over a workload and return each job's start, NEVER where it had none.

    Args:
        workload: the jobs; the machine is as large as its requests say.
        policy: a fresh one; it is trusted, but for a ``CheckedPolicy``.
        progress: called now and then with the number of jobs that have arrived.
        stopped: takes the runs that the policy stopped, in the order in which it did.
    """
    starts = play_compiled(workload, policy, progress)
    return simulate_plain(workload, policy, progress, stopped) if starts is None else starts


def simulate_plain(  # noqa: C901 - one loop: a call an event costs as much as the rest
    workload: Workload,
    policy: CountPolicy,
    progress: Callable[[int], None] | None = None,
    stopped: list[StoppedRun] | None = None,
) -> list[float]:
    """Run a policy over a workload in plain Python, whatever it is."""
    job_at = policy.job_at or range(len(workload))
    number = sorted(range(len(job_at)), key=job_at.__getitem__)
    run = [workload.run[job] for job in job_at]
    # The sentinels at infinity spare the queues a test for emptiness.
    submit = (*workload.requests.submit, inf)
    ends: list[tuple[float, int, int]] = [(inf, 0, -1)]
    alarms: list[float] = [inf]
    starts: list[float] = [NEVER] * len(run)
    step, has_alarms = policy.step, policy.alarm is not None
    stops = policy.stopped is not None
    arrivals = sequence = 0
    next_arrival, next_end = submit[0], ends[0][0]
    report_at = REPORT_EVERY if progress else inf
    nobody: list[int] = []
    while True:
        now = next_arrival if next_arrival < next_end else next_end  # noqa: FURB136 - a call costs
        now = min(now, alarms[0])
        if now == inf:
            return [starts[one] for one in number]
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
        started = step(now, (ended, sorted(number[first:arrivals])))
        if stops:
            _take_off(policy, now, ends, starts, stopped)
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
    alarm = policy.alarm
    if alarm is not None and alarm > now and alarm not in alarms:
        heappush(alarms, alarm)


def _take_off(
    policy: CountPolicy,
    now: float,
    ends: list[tuple[float, int, int]],
    starts: list[float],
    stopped: list[StoppedRun] | None,
) -> None:
    """Let running jobs wait again: their ends do not come."""
    for job in policy.stopped or ():
        if stopped is not None:
            stopped.append(StoppedRun(policy.job_at[job] if policy.job_at else job, starts[job], now))
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
        AwardError: an answer, or an event given to the policy, breaks a rule; names job and time.
    """

    def __init__(self, policy: CountPolicy, requests: Requests) -> None:
        super().__init__(policy)
        self._requests = requests.taken(policy.job_at) if policy.job_at else requests
        self._ids: Sequence[object] = self._requests.ids or policy.job_at or range(len(requests))
        self._state = [_State.UNKNOWN] * len(requests)
        self._free = requests.processors
        self._now: float = NEVER

    def step(self, now: float, seen: Changes) -> Sequence[int]:
        """Check the events, ask the policy and check its answer."""
        ended, arrived = seen
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
                raise AwardError(f"job {self._ids[job]} arrives at {now:g}, not at its submission")
        started = self._policy.step(now, seen)
        for job in self.stopped or ():
            self._move(job, _State.RUNNING, _State.WAITING)
            self._free += size[job]
        for job in started:
            if state[job] is not _State.WAITING:
                raise AwardError(f"job {self._ids[job]} starts at {now:g} while {state[job].name.lower()}")
            state[job] = _State.RUNNING
            self._free -= size[job]
        if self._free < 0:
            raise AwardError(f"{-self._free} processors are given twice at {now:g}")
        return started

    def _move(self, job: int, before: _State, after: _State) -> None:
        if (now := self._state[job]) is not before:
            raise AwardError(f"job {self._ids[job]} becomes {after.name.lower()} while {now.name.lower()}")
        self._state[job] = after


#: What a loop returns: there is more to play, all have ended, it needs the deep queue's index.
PAUSED, DONE, WANTS_INDEX = 0, 1, 2
#: Places of ``counts``: jobs that have arrived, running ones; jobs that end now, and that arrive
#: now.
ARRIVED, RUNNING, ENDS, ARRIVALS, COUNTED = 0, 1, 2, 3, 4


class LogEvents(NamedTuple):
    """A log and what runs of it; jobs are numbered by their place in the queue's order.

    Attributes:
        submit: in order of submission, then infinity.
        place: in order of submission, each job's number.
        run: run times by number.
        start: by number; the answer.
        counts: see above.
        end, ending: a heap of true ends with their jobs.
        ended: jobs that end at one time.
        arrived: jobs that arrive at one time, by rising number.
    """

    submit: Floats
    place: Ints
    run: Floats
    start: Floats
    counts: Ints
    end: Floats
    ending: Ints
    ended: Ints
    arrived: Ints


@kernel
def next_event(log: LogEvents) -> float:
    """Take the next ends and arrivals off the log; return their time, infinite if none is left."""
    counts, submit, arrived = log.counts, log.submit, log.arrived
    now: float = submit[counts[ARRIVED]]
    if counts[RUNNING] > 0:
        now = min(now, log.end[0])
    ends = arrivals = 0
    if now < inf:
        while counts[RUNNING] > 0 and log.end[0] == now:
            log.ended[ends] = log.ending[0]
            ends += 1
            counts[RUNNING] = pop(log.end, log.ending, counts[RUNNING])
        while submit[counts[ARRIVED]] == now:
            job = log.place[counts[ARRIVED]]
            place = arrivals
            while place > 0 and arrived[place - 1] > job:
                arrived[place] = arrived[place - 1]
                place -= 1
            arrived[place] = job
            counts[ARRIVED] += 1
            arrivals += 1
    counts[ENDS], counts[ARRIVALS] = ends, arrivals
    return now


@kernel
def let_run(log: LogEvents, now: float, started: Column, count: int) -> None:
    """Let jobs run from now on."""
    for place in range(count):
        job = started[place]
        log.start[job] = now
        log.counts[RUNNING] = push(log.end, log.ending, log.counts[RUNNING], now + log.run[job], job)


@kernel
def play_easy(log: LogEvents, state: EasyState, until: int) -> int:
    """Play EASY until so many jobs have arrived; return PAUSED, DONE (all ended) or WANTS_INDEX."""
    counts = log.counts
    while counts[ARRIVED] < until:
        now = next_event(log)
        if now == inf:
            return DONE
        started = step_easy(state, now, log.ended, counts[ENDS], log.arrived, counts[ARRIVALS])
        let_run(log, now, state.started, started)
        if state.counts[QUEUED] > state.depth[0] and len(state.deep.lowest) == 0:
            return WANTS_INDEX
    return PAUSED


@kernel
def play_conservative(log: LogEvents, state: ConservativeState, until: int) -> int:
    """Play conservative backfilling until so many jobs have arrived; return PAUSED or DONE."""
    counts = log.counts
    while counts[ARRIVED] < until:
        now = next_event(log)
        if now == inf:
            return DONE
        started = step_conservative(state, now, log.ended, counts[ENDS], log.arrived, counts[ARRIVALS])
        let_run(log, now, state.started, started)
    return PAUSED


@kernel
def play_promised(log: LogEvents, state: PromisedState, until: int) -> int:
    """Play promised starts until so many jobs have arrived; return PAUSED or DONE."""
    counts = log.counts
    while counts[ARRIVED] < until:
        now = next_event(log)
        if now == inf:
            return DONE
        ended, arrived = log.ended[: counts[ENDS]], log.arrived[: counts[ARRIVALS]]
        started = step_promised(state, now, ended, arrived)
        let_run(log, now, state.machine.easy.started, started)
    return PAUSED


#: The policies that loops play. Loading one takes 0.25 s; compiling it first, once on a machine, 5,
#: 6 and 18 s. In plain Python so many jobs, all submitted at once, take 0.9, 0.15 and 2.7 s: that
#: is linear in their number for EASY, and grows with its power 3.4 and 2 for the others.
LOOPS = {
    "easy": Entry(play_easy, "EASY", many=50_000),
    "conservative": Entry(play_conservative, "conservative backfilling", many=200),
    "promised": Entry(play_promised, "promised starts", many=2_000),
}


def play_compiled(
    workload: Workload,
    policy: CountPolicy,
    progress: Callable[[int], None] | None = None,
) -> list[float] | None:
    """Return the starts of a log's jobs under a policy; None: no loop plays it, or it does not pay.

    Args:
        workload: the log.
        policy: a fresh one.
        progress: called now and then with the number of jobs that have arrived.
    """
    if policy.loop is None:
        return None
    loop, is_compiled = LOOPS[policy.loop].for_jobs(len(workload))
    if not is_compiled or not (columns := workload.columns).is_exact:
        return None
    start = play_columns(loop, columns, workload.requests.processors, policy, progress)
    starts: list[float] = (start.astype(np.int64) if columns.is_whole else start).tolist()
    return starts


def play_columns(
    loop: Callable[..., int],
    columns: LogColumns,
    processors: int,
    policy: CountPolicy,
    progress: Callable[[int], None] | None = None,
) -> Floats:
    """Return the starts in order of submission that a loop gives, compiled or not."""
    jobs = len(columns.size)
    place = order = np.arange(jobs)
    if policy.job_at is not None:
        order = np.array(policy.job_at, np.int64)
        place[order] = np.arange(jobs)
    size, estimate, run = columns.size[order], columns.estimate[order], columns.run[order]
    shown = columns._replace(
        submit=columns.submit[order], size=size, estimate=estimate, run=run, user=columns.user[order]
    )
    running = min(jobs, processors) + 1
    log = LogEvents(
        submit=columns.submit,
        place=place,
        run=run,
        start=np.empty(jobs),
        counts=np.zeros(COUNTED, np.int64),
        end=np.zeros(running),
        ending=np.zeros(running, np.int64),
        ended=np.zeros(running, np.int64),
        arrived=np.zeros(jobs + 1, np.int64),
    )
    state = policy.columns(shown)
    until = step = REPORT_EVERY if progress else jobs + 1
    while (status := loop(log, state, until)) != DONE:
        if status == WANTS_INDEX:
            state = state._replace(deep=deep_queue_of(size, is_compiled=True))
            continue
        if progress:
            progress(min(until, jobs))
        until += step
    return log.start[place]
