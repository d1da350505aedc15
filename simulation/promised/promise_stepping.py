"""One step: ends, what EASY would have done, better promises, arrivals, awards."""

from __future__ import annotations

from ...cluster.kernels.harness import Entry, Ints, kernel
from ..backfilling.easy import FREE, STARTED, release
from .awards import award
from .easy_reference import end_of, follow, longest_wait, make_pass
from .overload import award_overloaded, change_backlog, is_overloaded, learn
from .promise_plan import MANY, NOBODY, plan, promise, promise_due
from .promise_state import LAST, NEXT_END, SKIPPED, WAITING, PromisedState, PromiseRules


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
