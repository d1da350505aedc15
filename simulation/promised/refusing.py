"""Who may not start now: whoever would put somebody off beyond what the plan leaves him."""

from __future__ import annotations

from .promise_plan import NOBODY, plan
from .promise_state import FREE, WAITING, Column, PromisedState

#: The job may start; it may not; nor may it, as is known of one no wider and no longer.
ALLOWED, REFUSED, KNOWN = 0, 1, 2


def verdict(state: PromisedState, now: float, place: int, refused: int) -> int:
    """Say whether the job at a place of the queue may start beside all that has started.

    Args:
        state: its scratch takes what is refused.
        now: in seconds.
        place: in the queue.
        refused: how many have been refused since anything started, less those that were known.
    """
    jobs, scratch = state.jobs, state.scratch
    job = state.machine.waiting[place]
    size, estimate = jobs.size[job], jobs.estimate[job]
    # Whom a narrower and shorter job would make late, this one would too, unless it stands before him.
    for other in range(refused):
        if size >= scratch.wide[other] and estimate >= scratch.long[other] and place > scratch.behind[other]:
            return KNOWN
    late = plan(state, now, place, True)
    if late == NOBODY:
        return ALLOWED
    scratch.wide[refused] = size
    scratch.long[refused] = estimate
    scratch.behind[refused] = late
    return REFUSED


def refuse_alone(state: PromisedState, now: float, refused: Column) -> int:
    """Return how many jobs may not start now, whoever else does; ``refused`` takes them.

    Those are left out for which there is no room.
    """
    machine = state.machine
    count = noted = 0
    for place in range(machine.counts[WAITING]):
        job = machine.waiting[place]
        if state.jobs.size[job] > machine.counts[FREE]:
            continue
        found = verdict(state, now, place, noted)
        if found == ALLOWED:
            continue
        noted += int(found == REFUSED)
        refused[count] = job
        count += 1
    return count
