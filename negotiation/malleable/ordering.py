"""In which order applications give processors, and get them: the harvest policies' candidates (Weissman 2.2).

A function fills ``active.order`` with all running applications, the policy's own candidates first, and
returns how many those are. Where they cannot supply what is asked for, the others follow.
"""

from __future__ import annotations

from .application_columns import Active

NEVER, EVEN, FAIR, LONG, SHORT, LOW_IMPACT, PRICED = 0, 1, 2, 3, 4, 5, 6

#: Which way processors go; a sign, so that one comparison serves both.
GIVES, GETS = 1, -1


def order_even(active: Active, running: int) -> int:
    """All, in order of their starts."""
    for place in range(running):
        active.order[place] = place
    return running


def order_fair(active: Active, running: int, way: int) -> int:
    """Those harvested no more often than the average; to get, no less often."""
    total = 0
    for place in range(running):
        total += active.harvests[place]
    first = _place_first(active, running, 0, total, way)
    _place_others(active, running, first, total, way)
    return first


def _place_first(active: Active, running: int, chosen: int, total: int, way: int) -> int:
    for place in range(running):
        above = active.harvests[place] * running - total
        if way * above <= 0:
            active.order[chosen] = place
            chosen += 1
    return chosen


def _place_others(active: Active, running: int, chosen: int, total: int, way: int) -> None:
    for place in range(running):
        above = active.harvests[place] * running - total
        if way * above > 0:
            active.order[chosen] = place
            chosen += 1


def order_long(active: Active, running: int, now: float, way: int) -> int:
    """Longest run first, of at least the average age; to get, the youngest first, of at most that."""
    total = 0.0
    for place in range(running):
        active.order[place] = place if way == GIVES else running - 1 - place
        total += now - active.start[place]
    chosen = 0
    while chosen < running:
        above = (now - active.start[active.order[chosen]]) * running - total
        if way * above < 0.0:
            break
        chosen += 1
    return chosen


def order_short(active: Active, running: int, now: float, way: int) -> int:
    """Most time left first, of at least the average; to get, the least time left first, of at most that."""
    total = 0.0
    for place in range(running):
        left = active.end[place] - now
        total += left
        at = place
        while at > 0 and _before(left, active.end[active.order[at - 1]] - now, way):
            active.order[at] = active.order[at - 1]
            at -= 1
        active.order[at] = place
    chosen = 0
    while chosen < running:
        above = (active.end[active.order[chosen]] - now) * running - total
        if way * above < 0.0:
            break
        chosen += 1
    return chosen


def _before(left: float, other: float, way: int) -> bool:
    return way * left > way * other


def order_of(active: Active, running: int, now: float, policy: int, way: int) -> int:
    """Fill the order of a policy that goes round its candidates; return how many there are, at least one."""
    chosen = running
    if policy == FAIR:
        chosen = order_fair(active, running, way)
    elif policy == LONG:
        chosen = order_long(active, running, now, way)
    elif policy == SHORT:
        chosen = order_short(active, running, now, way)
    else:
        chosen = order_even(active, running)
    return max(chosen, 1)
