"""The auction on a machine that counts processors: one kind of item, and promises as rows.

Where all nodes are alike an auction's program has no bids to choose between: a job takes processors
or waits. A program over counts is left: the greatest worth of the starts, subject to the processors
free now and to a plan in which every waiting job starts by its promise. It is solved greedily: jobs
are tried by worth for what they take, and each that leaves the plan feasible starts (awards.py).

docs/policies.md (promised) and docs/promises.md have the objectives and the kinds of promises. A
promise only ever gets better, and is kept while no job exceeds its estimate (promise_plan.py).
Where it follows the log the plan's start counts 1.8 times as far, as estimates are long.

One step: ends, what EASY would have done, better promises, arrivals, awards. EASY plays the same
jobs on a copy of the machine: how long would they have waited? That is the yardstick of promises
that follow a log's own waits. The copy knows a job's run time once it has ended on the real
machine; until then the job runs up to its estimate. EASY is backfilling/easy.py's.
"""

from collections.abc import Sequence
from functools import cached_property
from math import inf

import numpy as np

from ...cluster.kernels.harness import Column, Entry, Ints, Loop, kernel
from ..backfilling.deep_queue import DEEP, HEAD
from ..backfilling.easy import FREE, QUEUED, RUNNING, STARTED, release
from ..backfilling.easy import step as easy_step
from ..log_columns import LogColumns, Requests, count_users
from ..stepping import Changes, CountPolicy, Resort
from .awards import award, award_overloaded, change_backlog, is_overloaded, learn
from .promise_plan import (
    COPY_NOW,
    LAST,
    LONGEST,
    MANY,
    NEXT_END,
    NOBODY,
    PROMISED,
    SKIPPED,
    WAITING,
    Copy,
    PromisedJobs,
    PromisedState,
    empty_state,
    plan,
    promise,
    promise_due,
    rules_of,
)


class LogAuction(CountPolicy):
    """The auction over a queue sorted by job number.

    Args:
        requests: the jobs.
        resort: sorts the queue before each pass, under ``priority``.
        objective: ``priority`` or ``response``.
        promise: ``plan``, ``backfill``, ``none``, ``auto`` or a duration; None: the objective's
            own, ``auto`` for ``response`` and ``backfill`` for ``priority``.

    Raises:
        OptionError: no such promise.
    """

    def __init__(
        self,
        requests: Requests,
        resort: Resort | None,
        *,
        objective: str = "priority",
        promise: str | None = None,
    ) -> None:
        self._requests = requests
        self._resort = resort
        self._rules = rules_of(requests.processors, objective, promise)

    @property
    def loop(self) -> str | None:
        """The compiled loop that gives the same starts."""
        return None if self._resort else "promised"

    def columns(self, log: LogColumns) -> PromisedState:
        """Return what plays a log from its beginning."""
        return empty_state(self._rules, log, log.user, is_compiled=True)

    @cached_property
    def stepping(self) -> tuple[Loop, bool, PromisedState]:
        """What makes a pass, whether it is compiled, and its state: a compiled loop needs none."""
        step, is_compiled = STEP.for_jobs(len(self._requests))
        users = count_users(self._requests.user).tolist()
        return step, is_compiled, empty_state(self._rules, self._requests, users, is_compiled=is_compiled)

    def step(self, now: float, seen: Changes) -> Sequence[int]:
        """Make one pass."""
        ended, arrived = seen
        step, is_compiled, state = self.stepping
        if self._resort is not None:
            self._rank(self._resort, now, arrived, state)
        # What is learnt does not hang on the order in which those that end at one time were chosen.
        events: list[Column] = [sorted(ended), list(arrived)]
        if is_compiled:
            events = [np.array(jobs, np.int64) for jobs in events]
        count = step(state, float(now), *events)
        chosen: Column = state.machine.easy.started[:count]
        return chosen.tolist() if is_compiled else chosen  # type: ignore[no-any-return]

    def _rank(self, resort: Resort, now: float, arrived: Sequence[int], state: PromisedState) -> None:
        """Say where jobs stand in an order that changes with time."""
        machine = state.machine
        queue = [int(machine.waiting[place]) for place in range(machine.counts[WAITING])] + list(arrived)
        resort(now, queue)
        for place, job in enumerate(queue):
            state.jobs.rank[job] = place


@kernel
def step(state: PromisedState, now: float, ended: Ints, arrived: Ints) -> int:
    """Make a pass; return how many jobs start, ``state.machine.easy.started`` takes them.

    Args:
        state: as the last step left it.
        now: in seconds.
        ended: jobs.
        arrived: jobs.
    """
    easy, rules = state.machine.easy, state.rules
    easy.counts[STARTED] = 0
    for job in ended:
        _hear_of_end(state, now, job)
    longest = 0.0
    if rules.follows:
        longest = play_copy(state.jobs, state.copy, now, ended, arrived)
        catch_up(state, longest)
    for job in ended:
        release(easy, job)
    if rules.promises and not rules.follows and state.machine.counts[WAITING] > 0:
        _improve(state, now)
    for job in arrived:
        change_backlog(state, job, +1)
        if rules.promises and not rules.follows:
            promise(state, now, job, state.jobs.submit[job] + rules.window_s)
        else:
            state.machine.waiting[state.machine.counts[WAITING]] = job
            state.machine.counts[WAITING] += 1
    if rules.follows and rules.response and is_overloaded(state, longest):
        award_overloaded(state, now, longest)
    else:
        _award(state, now, longest)
    for place in range(easy.counts[STARTED]):
        change_backlog(state, easy.started[place], -1)
    return int(easy.counts[STARTED])


@kernel
def _award(state: PromisedState, now: float, longest: float) -> None:
    """Promise starts to whom is due, and start jobs."""
    if not _any_fits(state):
        # Where all that changes is early ends, later promises are nearer: see ``catch_up``.
        state.copy.clock[SKIPPED] = now
        return
    if state.rules.follows and state.machine.counts[WAITING] > 1:
        promise_due(state, now, longest, False)
    award(state, now, longest)


@kernel
def _any_fits(state: PromisedState) -> bool:
    for place in range(state.machine.counts[WAITING]):
        if state.jobs.size[state.machine.waiting[place]] <= state.machine.easy.counts[FREE]:
            return True
    return False


@kernel
def catch_up(state: PromisedState, longest: float) -> None:
    """Make the promises of skipped passes before a longer wait on the copy allows later ones.

    In skipped passes nobody started, so that the plan came nearer from one to the next, and the
    last has the best promises of them all.
    """
    clock, machine = state.copy.clock, state.machine
    if longest != clock[LAST]:
        if clock[SKIPPED] >= 0.0:
            promise_due(state, clock[SKIPPED], clock[LAST], False)
        for place in range(machine.counts[PROMISED], machine.counts[WAITING]):
            state.jobs.due[machine.waiting[place]] = inf
    clock[SKIPPED], clock[LAST] = -1.0, longest


@kernel
def _hear_of_end(state: PromisedState, now: float, job: int) -> None:
    """Learn how long a job ran."""
    jobs = state.jobs
    jobs.run[job] = min(now - jobs.start[job], jobs.estimate[job])
    user = jobs.user[job]
    if user >= 0:
        learn(state, user, jobs.run[job] / jobs.estimate[job])


@kernel
def _improve(state: PromisedState, now: float) -> None:
    """Promise earlier starts where the plan came nearer, in the order of promises; none later."""
    jobs, machine = state.jobs, state.machine
    plan(state, now, NOBODY, False)
    before = 0.0
    for place in range(machine.counts[WAITING]):
        job = machine.waiting[place]
        better = max(jobs.submit[job] + state.rules.window_s, machine.planned[place], before)
        jobs.promise[job] = before = min(jobs.promise[job], better)


STEP = Entry(step, "the auction on counts", many=MANY)


@kernel
def play_copy(jobs: PromisedJobs, copy: Copy, now: float, ended: Ints, arrived: Ints) -> float:
    """Play the copy up to now (s); return the longest wait on it.

    The run times of those are known that have ended on the real machine; arrivals rise.
    """
    for job in ended:
        if copy.start[job] >= 0:
            _know_end(jobs, copy, job)
    follow(jobs, copy, now)
    if len(arrived) > 0:
        make_pass(jobs, copy, now, 0, arrived)
    return longest_wait(jobs, copy, now)


@kernel
def longest_wait(jobs: PromisedJobs, copy: Copy, now: float) -> float:
    """Return the longest wait on the copy up to now, of jobs that wait on it as well."""
    longest: float = copy.clock[LONGEST]
    easy = copy.easy
    if easy.deep.counts[DEEP] > 0:
        longest = max(longest, now - jobs.submit[easy.deep.counts[HEAD]])
    elif easy.counts[QUEUED] > 0:
        longest = max(longest, now - jobs.submit[easy.queue[0]])
    return longest


@kernel
def follow(jobs: PromisedJobs, copy: Copy, now: float) -> None:
    """Play the copy up to now."""
    clock = copy.clock
    while clock[NEXT_END] <= now:
        clock[COPY_NOW] = max(clock[COPY_NOW], clock[NEXT_END])
        ends = _take_ended(copy, clock[NEXT_END])
        make_pass(jobs, copy, clock[COPY_NOW], ends, copy.ended[:0])
    clock[COPY_NOW] = now


@kernel
def _know_end(jobs: PromisedJobs, copy: Copy, job: int) -> None:
    """Note when a job that has started on the copy ends there, as far as is known."""
    run = jobs.run[job]
    copy.end[job] = copy.start[job] + (run if run >= 0 else jobs.estimate[job])
    copy.clock[NEXT_END] = min(copy.clock[NEXT_END], copy.end[job])


@kernel
def _take_ended(copy: Copy, until: float) -> int:
    """Take the jobs that have ended off those that run, into ``copy.ended``; return how many."""
    kept = ended = 0
    copy.clock[NEXT_END] = inf
    for place in range(copy.easy.counts[RUNNING]):
        job = copy.running[place]
        end = copy.end[job]
        if end <= until:
            copy.ended[ended] = job
            ended += 1
        else:
            copy.running[kept] = job
            copy.clock[NEXT_END] = min(copy.clock[NEXT_END], end)
            kept += 1
    return ended


@kernel
def make_pass(jobs: PromisedJobs, copy: Copy, now: float, ends: int, arrived: Ints) -> None:
    """Make EASY's pass on the copy; ``copy.ended`` has those that end."""
    running = copy.easy.counts[RUNNING] - ends
    for place in range(easy_step(copy.easy, now, copy.ended, ends, arrived, len(arrived))):
        job = copy.easy.started[place]
        copy.start[job] = now
        copy.clock[LONGEST] = max(copy.clock[LONGEST], now - jobs.submit[job])
        _know_end(jobs, copy, job)
        copy.running[running + place] = job


PLAY_COPY = Entry(play_copy, "EASY's copy of the machine", many=MANY)
