"""The general event loop: a total order of events, and one scheduling pass after each time stamp.

Events are ordered by time, kind and sequence: the same input gives the same run on every machine.
The loop knows neither jobs nor nodes: a system handles its events and pushes those it causes. So
jobs may change their size: an evolving job's request, or a malleable one's new end, is an event of
its own kind. A system that knows such jobs handles it between ends and arrivals.
"""

from collections.abc import Callable
from enum import IntEnum
from heapq import heappop, heappush
from math import floor
from typing import NamedTuple

#: Seconds of an hour, a day and a week.
HOUR_S, DAY_S, WEEK_S = 3600, 86_400, 7 * 86_400


class EventKind(IntEnum):
    """Kinds in the order in which one time stamp handles them; the gaps are for kinds to come."""

    END = 10
    NODE_UP = 15
    NODE_DOWN = 20
    REQUEST = 25
    ARRIVAL = 30
    PASS = 50


class Event(NamedTuple):
    """Something that happens to a job; compared by time, kind and sequence, which is unique.

    Where it happens to a node, ``job`` is the node's place.
    """

    time: float
    kind: EventKind
    sequence: int
    job: int


class EventQueue:
    """Events to come, in their total order."""

    def __init__(self) -> None:
        self._heap: list[Event] = []
        self._pushed = 0
        # Sequences of cancelled events, never of the first in the heap.
        self._cancelled: set[int] = set()

    def __len__(self) -> int:
        return len(self._heap) - len(self._cancelled)

    def push(self, time: float, kind: EventKind, job: int) -> int:
        """Add an event, return its sequence: of equal time and kind, the first pushed is first."""
        heappush(self._heap, Event(time, kind, self._pushed, job))
        self._pushed += 1
        return self._pushed - 1

    def cancel(self, sequence: int) -> None:
        """Let an event that is still to come not happen."""
        self._cancelled.add(sequence)
        self._drop_cancelled()

    def _drop_cancelled(self) -> None:
        while self._heap and self._heap[0].sequence in self._cancelled:
            self._cancelled.remove(heappop(self._heap).sequence)

    def pop_simultaneous(self) -> list[Event]:
        """Remove and return all events of the earliest time stamp, in order."""
        events = [heappop(self._heap)]
        self._drop_cancelled()
        while self._heap and self._heap[0].time == events[0].time:
            events.append(heappop(self._heap))
            self._drop_cancelled()
        return events


def run_events(queue: EventQueue, handle: Callable[[Event], None], schedule: Callable[[float], None]) -> None:
    """Drive a system until no event is left.

    Args:
        queue: its events.
        handle: takes note of one event.
        schedule: makes one pass after all events of a time stamp, and pushes the events it causes.
    """
    while queue:
        events = queue.pop_simultaneous()
        for event in events:
            handle(event)
        schedule(events[0].time)


def turn_at(time: float, every_s: float) -> float:
    """Return the begin of the first turn that begins at a time or later."""
    begin = turn_of(time, every_s) * every_s
    return begin if begin == time else turn_after(time, every_s)


def turn_after(time: float, every_s: float) -> float:
    """Return the begin of the first turn that begins later."""
    return (turn_of(time, every_s) + 1) * every_s


def turn_of(now: float, every_s: float) -> int:
    """Return the number of the turn of ``now``; turn ``k`` begins at ``k * every_s`` to the bit.

    Dividing alone may put the very begin of a turn into the one before it, or the moment before
    into it.
    """
    turn = floor(now / every_s)
    if turn * every_s > now:
        return turn - 1
    return turn + 1 if (turn + 1) * every_s <= now else turn
