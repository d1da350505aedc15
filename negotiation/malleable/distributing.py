"""Giving free processors to running applications: the inverse of the harvest policy (Weissman 2.2)."""

from __future__ import annotations

from .application_columns import Active, PolicyRules
from .harvesting import cheapest, price_of, set_floors
from .ordering import GETS, LOW_IMPACT, PRICED, order_of

#: From FAVOR_QUEUED on running applications grow after the queue was served.
FAVOR_RUNNING, QUEUED_ONLY, FAVOR_QUEUED, TRADE = 0, 1, 2, 3

#: A processor moves only for a price so many times the one it has: moving is not free.
CLEARLY = 1.05


def grow(active: Active, running: int, free: int, now: float, rules: PolicyRules) -> int:
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


def trade(active: Active, running: int, now: float, rules: PolicyRules) -> None:
    """Move processors from applications to which one is worth least to those to which one is worth most.

    Ours: the control policy's floors hold, and moving ends when no price is clearly above another.
    """
    for _ in range(set_floors(active, running, now, rules)):
        giver = cheapest(active, running, now, rules.model)
        taker = highest_bidder(active, running, now, rules.model)
        if giver < 0 or taker < 0 or giver == taker:
            break
        low = price_of(active, giver, active.held[giver] - 1, now, rules.model)
        if price_of(active, taker, active.held[taker], now, rules.model) <= CLEARLY * low:
            break
        active.held[giver] -= 1
        active.held[taker] += 1
