"""Promises that follow the log: a job is promised a start when it is due.

Until then the plan has a place for it behind all that are due, and leaves it as much as a promise made now
would: what starts now may put it off so far, and no farther. Whoever is due stands behind those that were
before, and nobody comes between them later, so that the plan goes on keeping their promises.
"""

from __future__ import annotations

from ...cluster.kernels.columns import pop, push
from ...cluster.kernels.harness import Entry, kernel
from .promise_plan import MANY, NOBODY, plan
from .promise_state import PROMISED, WAITING, PromisedState, PromiseRules


@kernel
def promise_due(state: PromisedState, rules: PromiseRules, now: float, longest: float) -> None:
    """Promise starts to whom is due; better promises where the plan has come nearer.

    Args:
        state: its queue is in the order of its promises, then as it was.
        rules: how promises are made.
        now: in seconds.
        longest: the longest wait on the copy.
    """
    jobs, machine = state.jobs, state.machine
    promised = machine.counts[PROMISED]
    _sort(state, rules, longest)
    plan(state, now, NOBODY, False)
    for place in range(machine.counts[WAITING]):
        job = machine.waiting[place]
        planned = machine.planned[place]
        put_off = min(now + rules.looseness * (planned - now), jobs.submit[job] + rules.latest * longest)
        better = max(jobs.due[job], planned, put_off)
        jobs.promise[job] = min(jobs.promise[job], better) if place < promised else better
        if jobs.due[job] <= now and place >= promised:
            machine.counts[PROMISED] += 1


@kernel
def _sort(state: PromisedState, rules: PromiseRules, longest: float) -> None:
    """Put those who have no promise into the order in which they are due."""
    jobs, machine, scratch = state.jobs, state.machine, state.scratch
    count = 0
    for place in range(machine.counts[PROMISED], machine.counts[WAITING]):
        job = machine.waiting[place]
        jobs.due[job] = due(state, rules, longest, job)
        count = push(scratch.key, scratch.place, count, jobs.due[job], job)
    for place in range(machine.counts[PROMISED], machine.counts[WAITING]):
        machine.waiting[place] = scratch.place[0]
        count = pop(scratch.key, scratch.place, count)


@kernel
def due(state: PromisedState, rules: PromiseRules, longest: float, job: int) -> float:
    """Return when a job is due: a share of the longest wait after its submission.

    It is at most some estimates of the job: short jobs are due soon. One of nearly the whole machine is due
    at once: it needs a drain, and waits for the plan anyway.
    """
    share = state.jobs.size[job] / rules.processors
    found: float = state.jobs.submit[job] + window(rules, longest, state.jobs.estimate[job], share)
    return found


@kernel
def window(rules: PromiseRules, longest: float, estimate: float, share: float) -> float:
    """Return how long after its submission a job of a share of the machine is due (s)."""
    cube = share * share * share
    found: float = min(rules.share * longest, rules.limits * estimate) * (1.0 - cube * cube)
    return found


PROMISE_DUE = Entry(promise_due, "the plan of promises", many=MANY)
