"""One step: ends, what EASY would have done, better promises, arrivals, awards.

What EASY would have done is played on a copy of the machine with the same jobs: how long would they
have waited? It is the yardstick of the promises that follow a log's own waits. A job's run time is
known to it once the job has ended on the real machine; until then it runs up to its estimate. EASY
is that of backfilling/easy.py.
"""

from __future__ import annotations

from math import inf

from ...cluster.kernels.harness import Entry, Ints, kernel
from ..backfilling.deep_queue import DEEP, HEAD
from ..backfilling.easy import FREE, QUEUED, RUNNING, STARTED, release
from ..backfilling.easy import step as easy_step
from .awards import award
from .overload import award_overloaded, change_backlog, is_overloaded, learn
from .promise_plan import MANY, NOBODY, plan, promise, promise_due
from .promise_state import COPY_NOW, LAST, LONGEST, NEXT_END, SKIPPED, WAITING, PromisedState, PromiseRules


@kernel
def step(state: PromisedState, rules: PromiseRules, now: float, ended: Ints, arrived: Ints) -> int:
    """Make a pass; return how many jobs start, ``state.machine.easy.started`` takes them.

    Args:
        state: as the last step left it.
        rules: the same in every step.
        now: in seconds.
        ended: jobs.
        arrived: jobs.
    """
    easy = state.machine.easy
    easy.counts[STARTED] = 0
    for job in ended:
        _hear_of_end(state, now, job)
    longest = 0.0
    if rules.follows:
        follow(state, now)
        if len(arrived) > 0:
            make_pass(state, now, 0, arrived)
        longest = longest_wait(state, now)
        catch_up(state, rules, longest)
    for job in ended:
        release(easy, job)
    if rules.promises and not rules.follows and state.machine.counts[WAITING] > 0:
        _improve(state, rules, now)
    for job in arrived:
        change_backlog(state, job, +1)
        if rules.promises and not rules.follows:
            promise(state, now, job, state.jobs.submit[job] + rules.window_s)
        else:
            state.machine.waiting[state.machine.counts[WAITING]] = job
            state.machine.counts[WAITING] += 1
    if rules.follows and rules.response and is_overloaded(state, rules, longest):
        award_overloaded(state, now, longest)
    else:
        _award(state, rules, now, longest)
    for place in range(easy.counts[STARTED]):
        change_backlog(state, easy.started[place], -1)
    return int(easy.counts[STARTED])


@kernel
def _award(state: PromisedState, rules: PromiseRules, now: float, longest: float) -> None:
    """Promise starts to whom is due, and start jobs."""
    if not _any_fits(state):
        # Where all that changes is that jobs end early, later promises are nearer: see ``catch_up``.
        state.copy.clock[SKIPPED] = now
        return
    if rules.follows and state.machine.counts[WAITING] > 1:
        promise_due(state, rules, now, longest)
    award(state, rules, now, longest)


@kernel
def _any_fits(state: PromisedState) -> bool:
    for place in range(state.machine.counts[WAITING]):
        if state.jobs.size[state.machine.waiting[place]] <= state.machine.easy.counts[FREE]:
            return True
    return False


@kernel
def catch_up(state: PromisedState, rules: PromiseRules, longest: float) -> None:
    """Make the promises of skipped passes before a longer wait on the copy allows later ones.

    In skipped passes nobody started, so that the plan came nearer from one to the next, and the last
    has the best promises of them all.
    """
    clock = state.copy.clock
    if longest != clock[LAST] and clock[SKIPPED] >= 0.0:
        promise_due(state, rules, clock[SKIPPED], clock[LAST])
    clock[SKIPPED], clock[LAST] = -1.0, longest


@kernel
def _hear_of_end(state: PromisedState, now: float, job: int) -> None:
    """Learn how long a job ran, and let it end on the copy, where perhaps it has already."""
    jobs = state.jobs
    jobs.run[job] = min(now - jobs.start[job], jobs.estimate[job])
    if state.copy.start[job] >= 0:
        state.copy.clock[NEXT_END] = min(state.copy.clock[NEXT_END], end_of(state, job))
    user = jobs.user[job]
    if user >= 0:
        learn(state, user, jobs.run[job] / jobs.estimate[job])


@kernel
def _improve(state: PromisedState, rules: PromiseRules, now: float) -> None:
    """Promise earlier starts where the plan has come nearer, in the order of promises; never later ones."""
    jobs, machine = state.jobs, state.machine
    plan(state, now, NOBODY, False)
    before = 0.0
    for place in range(machine.counts[WAITING]):
        job = machine.waiting[place]
        better = max(jobs.submit[job] + rules.window_s, machine.planned[place], before)
        jobs.promise[job] = before = min(jobs.promise[job], better)


STEP = Entry(step, "the auction on counts", many=MANY)


@kernel
def longest_wait(state: PromisedState, now: float) -> float:
    """Return the longest wait on the copy up to now, of jobs that wait on it as well."""
    longest: float = state.copy.clock[LONGEST]
    easy = state.copy.easy
    if easy.deep.counts[DEEP] > 0:
        longest = max(longest, now - state.jobs.submit[easy.deep.counts[HEAD]])
    elif easy.counts[QUEUED] > 0:
        longest = max(longest, now - state.jobs.submit[easy.queue[0]])
    return longest


@kernel
def follow(state: PromisedState, now: float) -> None:
    """Play the copy up to now."""
    clock = state.copy.clock
    while clock[NEXT_END] <= now:
        clock[COPY_NOW] = max(clock[COPY_NOW], clock[NEXT_END])
        ends = _take_ended(state, clock[NEXT_END])
        make_pass(state, clock[COPY_NOW], ends, state.copy.ended[:0])
    clock[COPY_NOW] = now


@kernel
def end_of(state: PromisedState, job: int) -> float:
    """Return when a job ends on the copy, as far as is known."""
    run = state.jobs.run[job]
    end: float = state.copy.start[job] + (run if run >= 0 else state.jobs.estimate[job])
    return end


@kernel
def _take_ended(state: PromisedState, until: float) -> int:
    """Take the jobs that have ended off those that run; return how many, ``copy.ended`` has them."""
    copy = state.copy
    kept = ended = 0
    copy.clock[NEXT_END] = inf
    for place in range(copy.easy.counts[RUNNING]):
        job = copy.running[place]
        end = end_of(state, job)
        if end <= until:
            copy.ended[ended] = job
            ended += 1
        else:
            copy.running[kept] = job
            copy.clock[NEXT_END] = min(copy.clock[NEXT_END], end)
            kept += 1
    return ended


@kernel
def make_pass(state: PromisedState, now: float, ends: int, arrived: Ints) -> None:
    """Make EASY's pass on the copy; ``copy.ended`` has those that end."""
    copy = state.copy
    running = copy.easy.counts[RUNNING] - ends
    for place in range(easy_step(copy.easy, now, copy.ended, ends, arrived, len(arrived))):
        job = copy.easy.started[place]
        copy.start[job] = now
        copy.clock[LONGEST] = max(copy.clock[LONGEST], now - state.jobs.submit[job])
        copy.clock[NEXT_END] = min(copy.clock[NEXT_END], end_of(state, job))
        copy.running[running + place] = job
