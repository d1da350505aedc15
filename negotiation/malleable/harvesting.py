"""Taking processors from running applications: exactly what is asked for, or nothing (Weissman 2.2)."""

from __future__ import annotations

from .application_columns import Active, PolicyRules
from .execution import speed, work_left
from .ordering import GIVES, LOW_IMPACT, NEVER, PRICED, order_of

#: Less work than this counts as this much: prices stay finite.
SHORTEST_S = 1e-6


def set_floors(active: Active, running: int, now: float, rules: PolicyRules) -> int:
    """Set how far each application may be harvested (control), and return what all can give together."""
    spare = 0
    for place in range(running):
        is_open = active.harvests[place] < rules.max_harvests
        is_open = is_open and now - active.start[place] >= rules.protected_s
        active.floor[place] = active.least[place] if is_open else active.held[place]
        active.taken[place] = 0
        spare += active.held[place] - active.floor[place]
    return spare


def take(active: Active, running: int, need: int, now: float, rules: PolicyRules) -> None:
    """Mark in ``taken`` from whom ``need`` processors come; ``set_floors`` found that there are as many."""
    if rules.harvest == LOW_IMPACT:
        for _ in range(need):
            active.taken[least_hit(active, running)] += 1
    elif rules.harvest == PRICED:
        for _ in range(need):
            active.taken[cheapest(active, running, now, rules.model)] += 1
    else:
        chosen = order_of(active, running, now, rules.harvest, GIVES)
        take_in_turns(active, running, chosen, need)


def take_in_turns(active: Active, running: int, chosen: int, need: int) -> None:
    """Take one at a time from each candidate in turn; from all, where the candidates cannot give enough."""
    spare = 0
    for at in range(chosen):
        spare += active.held[active.order[at]] - active.floor[active.order[at]]
    reach = chosen if spare >= need else running
    while need > 0:
        for at in range(reach):
            place = active.order[at]
            if active.held[place] - active.taken[place] > active.floor[place]:
                active.taken[place] += 1
                need -= 1
                if need == 0:
                    break


def least_hit(active: Active, running: int) -> int:
    """Return who keeps the largest share of its ideal when it gives one more: (count − 1) / ideal."""
    best, largest = -1, -1.0
    for place in range(running):
        after = active.held[place] - active.taken[place] - 1
        if after >= active.floor[place]:
            share = after / active.ideal[place]
            if share > largest:
                best, largest = place, share
    return best


def cheapest(active: Active, running: int, now: float, model: int) -> int:
    """Return to whom one processor is worth least."""
    best, smallest = -1, 0.0
    for place in range(running):
        count = active.held[place] - active.taken[place]
        if count - 1 >= active.floor[place]:
            price = price_of(active, place, count - 1, now, model)
            if best < 0 or price < smallest:
                best, smallest = place, price
    return best


def price_of(active: Active, place: int, count: int, now: float, model: int) -> float:
    """Return what one processor more than ``count`` is worth to an application.

    It is the share of its work left that the processor does in a second: what it adds to the rate of ends.
    """
    ideal = active.ideal[place]
    # A count that this decision changed has not run yet: the work was done on the count before it.
    ran_on = active.before[place] if active.before[place] > 0 else active.held[place]
    left = work_left(active, place, ran_on, now, model)
    return (speed(model, count + 1, ideal) - speed(model, count, ideal)) / max(left, SHORTEST_S)


def give_up(active: Active, running: int) -> int:
    """Let the applications give what ``taken`` marks, and return how many were harvested: an event each."""
    victims = 0
    for place in range(running):
        if active.taken[place] > 0:
            active.held[place] -= active.taken[place]
            active.harvests[place] += 1
            victims += 1
    return victims


def can_harvest(rules: PolicyRules) -> bool:
    """Return whether the policy harvests at all."""
    return rules.harvest != NEVER
