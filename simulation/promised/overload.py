"""What starts under overload: the job with the largest wait² / estimate, and short ones beside it.

Under overload the waits of EASY grow as long as jobs come. Promises that follow its longest wait so far then
leave no room between them: all are due, and jobs start in the order of submission, short ones behind
long ones. So promises are withdrawn. One job has EASY's reservation: the one that has waited longest for
what it asks, so that a short job comes soon and a long one in the end; or the first of all, once it has
waited for much longer than anybody would have under EASY. Others start beside it, the shortest first.

Overload shows in the backlog: the work that waits, by what users' jobs ran for, in time of the whole machine.
The queue is that of backfilling/deep_queue.py, in which neither search looks at every job.
"""

from __future__ import annotations

from math import inf

from ...cluster.kernels.harness import Column, kernel
from ..backfilling.deep_queue import BLOCK, DEEP, HEAD, add_deep, class_below, next_fit, remove_deep
from ..backfilling.easy import FREE, ROUNDED, RUNNING, shadow_time
from ..run_times import mean_share, remember_share
from .awards import run_from
from .promise_plan import NOBODY
from .promise_state import PROMISED, WAITING, PromisedState, PromiseRules

#: So many times the backlog is more than the longest wait that EASY would have made: overload. Who has
#: waited for so many times that wait comes next.
BACKLOGS = 1.6
#: More jobs that wait are no longer planned one after another, which is work for each of them.
PLANNED = 72


@kernel
def change_backlog(state: PromisedState, job: int, sign: int) -> None:
    """Add the work of a job that arrives (+1) to the backlog, or take that of one that starts off it (−1)."""
    work, user = sign * state.jobs.estimate[job] * state.jobs.size[job], state.jobs.user[job]
    state.backlog.asked[user] += work
    state.backlog.learnt[0] += work * mean_share(state.shares, user)


@kernel
def learn(state: PromisedState, user: int, share: float) -> None:
    """Learn what share of its estimate a user's job ran for, and what that says of those that wait."""
    before = mean_share(state.shares, user)
    remember_share(state.shares, user, share)
    state.backlog.learnt[0] += (mean_share(state.shares, user) - before) * state.backlog.asked[user]


@kernel
def is_overloaded(state: PromisedState, rules: PromiseRules, longest: float) -> bool:
    """Say whether there is overload; move all that wait to its queue, without promises, or back."""
    jobs, machine, queue = state.jobs, state.machine, state.backlog.queue
    is_long = BACKLOGS * state.backlog.learnt[0] > longest * rules.processors
    if is_long or machine.counts[WAITING] + queue.counts[DEEP] > PLANNED:
        for place in range(machine.counts[WAITING]):
            job = machine.waiting[place]
            jobs.due[job] = jobs.promise[job] = inf
            add_deep(queue, job, jobs.estimate[job])
        machine.counts[WAITING] = machine.counts[PROMISED] = 0
        return True
    while queue.counts[DEEP] > 0:
        machine.waiting[machine.counts[WAITING]] = queue.counts[HEAD]
        machine.counts[WAITING] += 1
        remove_deep(queue, queue.counts[HEAD])
    return False


@kernel
def award_overloaded(state: PromisedState, now: float, longest: float) -> None:
    """Start jobs; ``longest`` is the longest wait on the copy."""
    jobs, easy, queue = state.jobs, state.machine.easy, state.backlog.queue
    free = easy.counts[FREE]
    fits, before = class_below(queue, free), queue.counts[HEAD] - 1
    if fits < 0 or next_fit(queue, before, fits, inf, -1, jobs.size, free, -1) == len(jobs.size):
        return
    head = _head(state, now, longest)
    while head != NOBODY and jobs.size[head] <= easy.counts[FREE]:
        _start(state, now, head)
        head = _head(state, now, longest)
    free = easy.counts[FREE]
    if head == NOBODY or free == 0:
        return
    shadow, extra = shadow_time(easy.ends, easy.held, easy.counts[RUNNING], free, jobs.size[head])
    job = _shortest(state, now, head, shadow, extra)
    while job != NOBODY:
        if now + jobs.estimate[job] > shadow:
            extra -= jobs.size[job]
        _start(state, now, job)
        job = _shortest(state, now, head, shadow, extra)


@kernel
def _start(state: PromisedState, now: float, job: int) -> None:
    remove_deep(state.backlog.queue, job)
    run_from(state, now, job)


@kernel
def _head(state: PromisedState, now: float, longest: float) -> int:
    """Return the job that has waited too long, or has the largest wait² / estimate; NOBODY: none waits."""
    submit, queue = state.jobs.submit, state.backlog.queue
    classes = len(queue.lowest)
    most, head = -1.0, NOBODY
    job: int = queue.counts[HEAD]
    if job < len(submit) and now - submit[job] >= BACKLOGS * longest:
        return job
    while job < len(submit) and submit[job] <= now:
        square = (now - submit[job]) * (now - submit[job])
        if job % BLOCK == 0:
            # Nobody of them has waited longer, nor asks for less.
            if job % (BLOCK * BLOCK) == 0:
                row = job // (BLOCK * BLOCK) * classes
                if square <= most * queue.group[row + classes - 1]:
                    job += BLOCK * BLOCK
                    continue
            if square <= most * queue.block[job // BLOCK * classes + classes - 1]:
                job += BLOCK
                continue
        if queue.waiting[job] < inf and square > most * queue.waiting[job]:
            most, head = square / queue.waiting[job], job
        job += 1
    return head


@kernel
def _shortest(state: PromisedState, now: float, head: int, shadow: float, extra: int) -> int:
    """Return the job with the least estimate of those that may start beside the head; NOBODY: none may."""
    submit, size, queue = state.jobs.submit, state.jobs.size, state.backlog.queue
    free = state.machine.easy.counts[FREE]
    fits, beside = class_below(queue, free), class_below(queue, min(extra, free))
    if fits < 0:
        return NOBODY
    # A little more: now + estimate may round to the shadow time itself.
    slack = shadow - now + shadow * ROUNDED
    least, shortest, classes = inf, NOBODY, len(queue.lowest)
    job = queue.counts[HEAD]
    while job < len(submit) and submit[job] <= now:
        if job % BLOCK == 0:
            if job % (BLOCK * BLOCK) == 0:
                row = job // (BLOCK * BLOCK) * classes
                if not _holds_shorter(queue.group, row, fits, slack, beside, least):
                    job += BLOCK * BLOCK
                    continue
            if not _holds_shorter(queue.block, job // BLOCK * classes, fits, slack, beside, least):
                job += BLOCK
                continue
        estimate = queue.waiting[job]
        is_beside = now + estimate <= shadow or size[job] <= extra
        if estimate < least and size[job] <= free and is_beside and job != head:
            least, shortest = estimate, job
        job += 1
    return shortest


@kernel
def _holds_shorter(column: Column, row: int, fits: int, slack: float, beside: int, least: float) -> bool:
    return column[row + fits] < least and (
        column[row + fits] <= slack or (beside >= 0 and column[row + beside] < least)
    )
