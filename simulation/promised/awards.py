"""Who starts: by worth for the resources taken, while the plan of all others keeps its promises.

Under overload the job with the largest wait² / estimate starts, and short ones beside it. There the
waits of EASY grow as long as jobs come. Promises that follow its longest wait then leave no room:
all are due, and jobs start in order of submission, short ones behind long ones. So promises are
withdrawn. One job has EASY's reservation: the one that has waited longest for what it asks (a short
job comes soon, a long one in the end), or the first of all, once it has waited for much longer than
any job would have under EASY. Others start beside it, the shortest first.

Overload shows in the backlog: the waiting work, by what users' jobs ran for, in time of the whole
machine. The queue is backfilling/deep_queue.py's, in which neither search looks at every job.
"""

from math import inf, sqrt

from ...cluster.kernels.column_operations import insert, pop, push, remove
from ...cluster.kernels.harness import Entry, Ints, kernel
from ...cluster.workload import BOUND_S
from ..backfilling.deep_queue import BLOCK, DEEP, HEAD, add_deep, class_below, holds, next_fit, remove_deep
from ..backfilling.easy import FREE, QUEUED, ROUNDED, STARTED, make_pass, shadow_time, share_of_extra, start
from ..run_times import mean_share, remember_share
from .promise_plan import (
    ALLOWED,
    MANY,
    NOBODY,
    OVERDUE,
    PROMISED,
    REFUSED,
    WAITING,
    PromisedState,
    promise_due,
    verdict,
)


@kernel
def cost(length: float, waited: float) -> float:
    """Return what orders jobs under ``response``, smallest first.

    A second of a job's wait costs 1 / max(estimate, 10 s) of bounded slowdown. That grows with the
    fourth root of its slowdown by now, 1 + wait / estimate: equals are served by their waits. The
    estimate (s) is the user's, times the mean share of theirs for which the user's last jobs ran.
    """
    length = max(length, BOUND_S)
    return length / sqrt(sqrt(1.0 + waited / length))


@kernel
def award(state: PromisedState, now: float, longest: float) -> None:
    """Start jobs.

    ``longest`` is the longest wait on the copy; whoever has waited for a share of it comes first.
    """
    machine, scratch, rules = state.machine, state.scratch, state.rules
    count = 0
    for place in range(machine.counts[WAITING]):
        job = machine.waiting[place]
        if rules.promises and state.jobs.size[job] > machine.easy.counts[FREE]:
            continue
        waited = now - state.jobs.submit[job]
        if rules.follows and waited >= OVERDUE * longest:
            key = -waited
        else:
            length = state.jobs.estimate[job] * mean_share(state.shares, state.jobs.user[job])
            key = cost(length, waited) if rules.response else float(state.jobs.rank[job])
        count = push(scratch.key, scratch.place, count, key, place)
    if rules.promises:
        is_planned = bool(rules.follows) and machine.counts[WAITING] > 1
        _keeping(state, now, longest, is_planned, count)
    else:
        _beside_head(state, now, count)
    if machine.easy.counts[STARTED] > 0:
        _remove_started(state)


@kernel
def _keeping(state: PromisedState, now: float, longest: float, is_planned: bool, count: int) -> None:
    """Start what leaves everybody their promises.

    Where ``promise_due`` has planned, the starts that it has now are allowed. So is one that ends
    before the first to come, on processors that those leave. Any other needs the plan of all.
    """
    jobs, machine, scratch = state.jobs, state.machine, state.scratch
    free, refused = machine.easy.counts, 0
    turn, first, spare = _first_put_off(state, now) if is_planned else (0, -inf, 0)
    while count > 0 and free[FREE] > 0:
        place = scratch.place[0]
        count = pop(scratch.key, scratch.place, count)
        job = machine.waiting[place]
        if jobs.size[job] > free[FREE]:
            continue
        if place >= turn and now + jobs.estimate[job] <= first and jobs.size[job] <= spare:
            spare -= jobs.size[job]
            if is_planned:
                # The plan of all has a place for it still, if it is made.
                start(machine.easy, now, job)
                continue
        elif place >= turn:
            if is_planned:
                promise_due(state, now, longest, True)
                _note_starts(state, now)
                is_planned = False
            found = verdict(state, now, place, refused)
            if found != ALLOWED:
                refused += int(found == REFUSED)
                continue
            turn, first = 0, -inf
        run_from(state, now, job)
    _note_starts(state, now)


@kernel
def _note_starts(state: PromisedState, now: float) -> None:
    easy = state.machine.easy
    for place in range(easy.counts[STARTED]):
        state.jobs.start[easy.started[place]] = now


@kernel
def _first_put_off(state: PromisedState, now: float) -> tuple[int, float, int]:
    """Return place and time of the plan's first start after now, and what starts now leave free."""
    machine = state.machine
    spare = machine.easy.counts[FREE]
    for place in range(machine.counts[WAITING]):
        if machine.planned[place] > now:
            return place, machine.planned[place], spare
        spare -= state.jobs.size[machine.waiting[place]]
    return machine.counts[WAITING], inf, spare


@kernel
def _beside_head(state: PromisedState, now: float, count: int) -> None:
    """Make EASY's pass over the jobs in the order of their keys."""
    easy = state.machine.easy
    for behind in range(count):
        insert(easy.queue, behind, behind, state.machine.waiting[state.scratch.place[0]])
        pop(state.scratch.key, state.scratch.place, count - behind)
    easy.counts[QUEUED] = count
    make_pass(easy, now)
    remove(easy.queue, easy.counts[QUEUED], 0, easy.counts[QUEUED])
    _note_starts(state, now)


@kernel
def run_from(state: PromisedState, now: float, job: int) -> None:
    """Let a job run from now on; it stays in the queue until the pass is over."""
    state.jobs.start[job] = now
    start(state.machine.easy, now, job)


@kernel
def refuse(
    state: PromisedState, now: float, are_together: bool, sure: int, places: Ints, refused: Ints
) -> int:
    """Return how many jobs may not start, ``refused`` takes them.

    Args:
        state: jobs that start together count as started.
        now: in seconds.
        are_together: each starts beside those before it that may; else alone, whoever else does.
        sure: the first so many start, whomever they make late.
        places: of the jobs in the queue.
        refused: as long as ``places``.
    """
    count = noted = 0
    for turn in range(len(places)):
        place = places[turn]
        found = verdict(state, now, place, noted) if turn >= sure else ALLOWED
        if found == ALLOWED:
            if are_together:
                run_from(state, now, state.machine.waiting[place])
            continue
        noted += int(found == REFUSED)
        refused[count] = state.machine.waiting[place]
        count += 1
    return count


@kernel
def _remove_started(state: PromisedState) -> None:
    machine = state.machine
    kept = 0
    promised = machine.counts[PROMISED]
    for place in range(machine.counts[WAITING]):
        if state.jobs.start[machine.waiting[place]] < 0.0:
            machine.waiting[kept] = machine.waiting[place]
            kept += 1
        elif place < promised:
            machine.counts[PROMISED] -= 1
    machine.counts[WAITING] = kept


REFUSE = Entry(refuse, "the plan of promises", many=MANY)


#: So many times the backlog is more than the longest wait that EASY would have made: overload. Who
#: has waited for so many times that wait comes next.
BACKLOGS = 1.6
#: More jobs that wait are no longer planned one after another, which is work for each of them.
PLANNED = 72


@kernel
def change_backlog(state: PromisedState, job: int, sign: int) -> None:
    """Add an arriving job's work to the backlog (+1), or subtract a starting job's (−1)."""
    work, user = sign * state.jobs.estimate[job] * state.jobs.size[job], state.jobs.user[job]
    state.backlog.asked[user] += work
    state.backlog.learnt[0] += work * mean_share(state.shares, user)


@kernel
def learn(state: PromisedState, user: int, share: float) -> None:
    """Learn which share of its estimate a user's job ran, and what it says of waiting jobs."""
    before = mean_share(state.shares, user)
    remember_share(state.shares, user, share)
    state.backlog.learnt[0] += (mean_share(state.shares, user) - before) * state.backlog.asked[user]


@kernel
def is_too_much(backlog: float, waiting: int, longest: float, processors: float) -> bool:
    """Say whether so much work (processors × seconds) of so many jobs is overload."""
    return waiting > PLANNED or BACKLOGS * backlog > longest * processors


@kernel
def is_overloaded(state: PromisedState, longest: float) -> bool:
    """Say whether there is overload; move all that wait to its queue, without promises, or back."""
    jobs, machine, queue = state.jobs, state.machine, state.backlog.queue
    waiting = machine.counts[WAITING] + queue.counts[DEEP]
    if is_too_much(state.backlog.learnt[0], waiting, longest, state.rules.processors):
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
    if head == NOBODY or easy.counts[FREE] == 0:
        return
    shadow, extra = shadow_time(easy, jobs.size[head])
    job = _shortest(state, now, head, shadow, extra)
    while job != NOBODY:
        extra -= share_of_extra(now + jobs.estimate[job], jobs.size[job], shadow, extra)
        _start(state, now, job)
        job = _shortest(state, now, head, shadow, extra)


@kernel
def _start(state: PromisedState, now: float, job: int) -> None:
    remove_deep(state.backlog.queue, job)
    run_from(state, now, job)


@kernel
def _head(state: PromisedState, now: float, longest: float) -> int:
    """Return the job that waited too long, or has the largest wait² / estimate; NOBODY: none."""
    submit, queue = state.jobs.submit, state.backlog.queue
    classes, first = len(queue.lowest), int(queue.counts[HEAD])
    if first < len(submit) and now - submit[first] >= BACKLOGS * longest:
        return first
    most, head, block = -1.0, NOBODY, first // BLOCK
    # While the last head waits, no head has less than its wait² / estimate; ratios are rounded.
    last = state.backlog.head[0]
    wait = now - submit[last]
    least = wait * wait / queue.waiting[last] * (1.0 - 1e-9) - 1e-9
    while block * BLOCK < len(submit) and submit[block * BLOCK] <= now:
        # Nobody of them has waited longer, nor asks for less.
        wait = now - submit[block * BLOCK]
        if block % BLOCK == 0 and wait * wait <= least * queue.group[(block // BLOCK + 1) * classes - 1]:
            block += BLOCK
            continue
        if wait * wait > least * queue.block[(block + 1) * classes - 1]:
            for job in range(max(first, block * BLOCK), (block + 1) * BLOCK):
                if queue.waiting[job] < inf:
                    wait = now - submit[job]
                    if wait * wait > most * queue.waiting[job]:
                        most, head = wait * wait / queue.waiting[job], job
                        least = max(least, most)
        block += 1
    state.backlog.head[0] = max(head, 0)
    return head


@kernel
def _shortest(state: PromisedState, now: float, head: int, shadow: float, extra: int) -> int:
    """Return the job of least estimate that may start beside the head; NOBODY: there is none."""
    submit, size, queue = state.jobs.submit, state.jobs.size, state.backlog.queue
    free = state.machine.easy.counts[FREE]
    fits, beside = class_below(queue, free), class_below(queue, min(extra, free))
    if fits < 0:
        return NOBODY
    # A little more: now + estimate may round to the shadow time itself.
    slack = shadow - now + shadow * ROUNDED
    least, shortest, classes = inf, NOBODY, len(queue.lowest)
    first = queue.counts[HEAD]
    block = first // BLOCK
    while block * BLOCK < len(submit) and submit[block * BLOCK] <= now:
        row = block // BLOCK * classes
        if block % BLOCK == 0 and not holds(queue.group, row, fits, slack, beside, least):
            block += BLOCK
            continue
        if holds(queue.block, block * classes, fits, slack, beside, least):
            for job in range(max(first, block * BLOCK), (block + 1) * BLOCK):
                estimate = queue.waiting[job]
                if estimate >= least or size[job] > free or job == head:
                    continue
                if share_of_extra(now + estimate, size[job], shadow, extra) >= 0:
                    least, shortest = estimate, job
        block += 1
    return shortest
