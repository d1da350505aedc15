"""Turns at multiples of an interval, whatever the interval: 0.1 s and 19.155 s have no exact multiples."""

from __future__ import annotations

from math import floor


def turn_of(now: float, every_s: float) -> int:
    """Return the number of the turn that ``now`` falls into; turn ``k`` begins at ``k * every_s`` to the bit.

    Dividing alone may put the very begin of a turn into the one before it, or the moment before into it.
    """
    turn = floor(now / every_s)
    if turn * every_s > now:
        return turn - 1
    return turn + 1 if (turn + 1) * every_s <= now else turn
