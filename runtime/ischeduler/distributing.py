"""Giving free processors to running applications: the inverse of the harvest policy (Weissman 2.2)."""

from __future__ import annotations

from .columns import Active, Rules
from .harvesting import price_of
from .ordering import GETS, LOW_IMPACT, PRICED, order_of

FAVOR_RUNNING, FAVOR_QUEUED, QUEUED_ONLY = 0, 1, 2


def grow(active: Active, running: int, free: int, now: float, rules: Rules) -> int:
    """Let running applications grow up to their ideal, and return what is left."""
    room = 0
    for place in range(running):
        room += active.ideal[place] - active.held[place]
    given = min(free, room)
    if given <= 0:
        return free
    if rules.harvest == LOW_IMPACT:
        for _ in range(given):
            active.held[most_missing(active, running)] += 1
    elif rules.harvest == PRICED:
        for _ in range(given):
            active.held[highest_bidder(active, running, now, rules.model)] += 1
    else:
        chosen = order_of(active, running, now, rules.harvest, GETS)
        give_in_turns(active, running, chosen, given)
    return free - given


def give_in_turns(active: Active, running: int, chosen: int, given: int) -> None:
    """Give one at a time to each candidate in turn; to all, once the candidates have their ideal."""
    reach = chosen
    while given > 0:
        begun = given
        for at in range(reach):
            place = active.order[at]
            if active.held[place] < active.ideal[place]:
                active.held[place] += 1
                given -= 1
                if given == 0:
                    break
        if given == begun:
            reach = running


def most_missing(active: Active, running: int) -> int:
    """Return who has the smallest share of its ideal."""
    best, smallest = -1, 2.0
    for place in range(running):
        if active.held[place] < active.ideal[place]:
            share = active.held[place] / active.ideal[place]
            if share < smallest:
                best, smallest = place, share
    return best


def highest_bidder(active: Active, running: int, now: float, model: int) -> int:
    """Return to whom one processor more is worth most."""
    best, largest = -1, 0.0
    for place in range(running):
        if active.held[place] < active.ideal[place]:
            price = price_of(active, place, active.held[place], now, model)
            if best < 0 or price > largest:
                best, largest = place, price
    return best
