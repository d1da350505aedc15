"""One step: ends, what EASY would have done, better promises, arrivals, awards."""

from __future__ import annotations

from .awards import award
from .easy_copy import follow, longest_wait, make_pass
from .plan import NOBODY, plan, promise
from .state import COPY_WAITING, FREE, REMEMBERED, RUNNING, WAITING, Column, Rules, State


def step(state: State, rules: Rules, now: float, ended: Column, arrived: Column, started: Column) -> int:
    """Make a pass; return how many jobs start, ``started`` takes them.

    Args:
        state: as the last step left it.
        rules: the same in every step.
        now: in seconds.
        ended: jobs.
        arrived: jobs.
        started: as long as the queue may be.
    """
    for job in ended:
        _end(state, now, job)
    window = rules.window_s
    if rules.follows:
        follow(state, now)
        for job in arrived:
            state.copy.waiting[state.machine.counts[COPY_WAITING]] = job
            state.machine.counts[COPY_WAITING] += 1
        if len(arrived) > 0:
            make_pass(state, now)
        window = rules.share * longest_wait(state, now)
    if rules.promises and state.machine.counts[WAITING] > 0:
        _improve(state, rules, now, window)
    for job in arrived:
        if rules.promises:
            promise(state, now, job, _earliest(state, rules, window, job))
        else:
            state.machine.waiting[state.machine.counts[WAITING]] = job
            state.machine.gone[state.machine.counts[WAITING]] = 0
            state.machine.counts[WAITING] += 1
    if state.machine.counts[FREE] == 0 or state.machine.counts[WAITING] == 0:
        return 0
    return award(state, rules, now, started)


def _end(state: State, now: float, job: int) -> None:
    jobs, machine = state.jobs, state.machine
    jobs.run[job] = min(now - jobs.start[job], jobs.estimate[job])
    user = jobs.user[job]
    if user >= 0:
        shares = state.shares
        shares.last[user * REMEMBERED + shares.count[user] % REMEMBERED] = jobs.run[job] / jobs.estimate[job]
        shares.count[user] += 1
    machine.counts[FREE] += jobs.size[job]
    count = machine.counts[RUNNING] - 1
    place = 0
    while machine.job[place] != job:
        place += 1
    while place < count:
        machine.end[place] = machine.end[place + 1]
        machine.size[place] = machine.size[place + 1]
        machine.job[place] = machine.job[place + 1]
        place += 1
    machine.counts[RUNNING] = count


def _earliest(state: State, rules: Rules, window: float, job: int) -> float:
    """Return the earliest start that a job may be promised.

    A job of nearly the whole machine has next to no window: it needs a drain, and waits for the plan anyway.
    """
    submit: float = state.jobs.submit[job]
    if not rules.spares_wide:
        return submit + window
    window = min(window, rules.limits * state.jobs.estimate[job])
    share = state.jobs.size[job] / rules.processors
    cube = share * share * share
    earliest: float = submit + window * (1.0 - cube * cube)
    return earliest


def _improve(state: State, rules: Rules, now: float, window: float) -> None:
    """Promise earlier starts where the plan has come nearer, in the order of promises; never later ones."""
    jobs, machine = state.jobs, state.machine
    plan(state, now, NOBODY, False)
    before = 0.0
    for place in range(machine.counts[WAITING]):
        job = machine.waiting[place]
        planned = now + (machine.planned[place] - now) * rules.looseness
        better = max(_earliest(state, rules, window, job), planned, before)
        jobs.promise[job] = before = min(jobs.promise[job], better)
