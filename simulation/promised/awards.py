"""Who starts: by worth for the resources taken, while the plan of all others keeps its promises."""

from math import inf, sqrt

from ...cluster.kernels.column_operations import insert, pop, push, remove
from ...cluster.kernels.harness import Entry, Ints, kernel
from ..backfilling.easy import FREE, QUEUED, STARTED, make_pass, start
from ..run_times import mean_share
from .promise_plan import ALLOWED, MANY, REFUSED, promise_due, verdict
from .promise_state import OVERDUE, PROMISED, WAITING, PromisedState

#: Bounded slowdown counts shorter run times as this many seconds.
SHORTEST_S = 10.0


@kernel
def cost(length: float, waited: float) -> float:
    """Return what orders jobs under ``response``, smallest first.

    A second of a job's wait costs 1 / max(estimate, 10 s) of bounded slowdown. That grows with the
    fourth root of its slowdown by now, 1 + wait / estimate: equals are served by their waits. The
    estimate (s) is the user's, times the mean share of theirs for which the user's last jobs ran.
    """
    length = max(length, SHORTEST_S)
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
