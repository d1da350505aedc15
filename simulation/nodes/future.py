"""What will be free on a machine's nodes while running jobs end at their time limits and nothing starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from ...auction.forecast import Spot
from ...bidgen.columns import Capacity, Columns, IntArray
from .machine import Machine, Start, add_spot, is_empty


class Future:
    """Free resources now and at each later end.

    Args:
        machine: with what runs.
        now: in seconds.
        started: jobs that start now.
        kept: what is never given back: reservations made before.

    Attributes:
        times: now, then each later end; ascending. Jobs without a time limit never end.
    """

    def __init__(
        self, machine: Machine, now: float, started: Iterable[Start], kept: Sequence[Spot] = ()
    ) -> None:
        self._machine = machine
        free = machine.columns.free.copy()
        holds = [(one.limit_end_s, one.spot) for one in machine.running.values()]
        for start in started:
            add_spot(free, start.spot, -1, machine.limited)
            limit = start.demand.job.time_limit_s
            holds.append((inf if limit is None else now + limit, start.spot))
        for spot in kept:
            add_spot(free, spot, -1, machine.limited)
        self._free = free
        ends = [(max(end, now), spot) for end, spot in holds if end < inf]
        ends.sort(key=lambda one: one[0])
        self._spots = [spot for _, spot in ends]
        moments = np.array([end for end, _ in ends])
        self.times: list[float] = [now, *sorted({end for end, _ in ends if end > now})]
        self._given = np.searchsorted(moments, self.times, side="right").tolist()
        self._entries = np.cumsum([0, *(len(spot.nodes) for spot in self._spots)])
        self._columns = {
            "node": _joined([spot.nodes for spot in self._spots]),
            "cores": _joined([spot.held.cores for spot in self._spots]),
            "memory": _joined([spot.held.memory for spot in self._spots]),
        }
        self._gres = {kind: _joined([_gres(spot, kind) for spot in self._spots]) for kind in free.gres}

    def at(self, step: int) -> Columns:
        """Return the machine's columns as they will be at ``times[step]``."""
        last = int(self._entries[self._given[step]])
        node = self._columns["node"][:last]
        free, size = self._free, len(self._free.cores)
        memory = _added(free.memory, node, self._columns["memory"][:last], size)
        later = Capacity(
            cores=_added(free.cores, node, self._columns["cores"][:last], size),
            memory=np.where(self._machine.limited, memory, free.memory),
            gres={
                kind: _added(counts, node, self._gres[kind][:last], size)
                for kind, counts in free.gres.items()
            },
        )
        total = self._machine.columns.total
        return replace(self._machine.columns, free=later, is_empty=is_empty(total, later))

    def free_at(self, time: float) -> Capacity:
        """Return what will be free at a time."""
        return self.at(int(np.searchsorted(self.times, time, side="right")) - 1).free

    def first(self, fits: Callable[[Columns], Spot | None]) -> tuple[float, Spot] | None:
        """Return the first time at which a job fits, and where; None: never.

        Resources only grow, so that the time is found by bisection.
        """
        low, high = -1, len(self.times) - 1
        found = fits(self.at(high))
        if found is None:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            spot = fits(self.at(middle))
            if spot is None:
                low = middle
            else:
                high, found = middle, spot
        return self.times[high], found


def _gres(spot: Spot, kind: str) -> IntArray:
    return spot.held.gres.get(kind, np.zeros(len(spot.nodes), np.int64))


def _joined(parts: list[IntArray]) -> IntArray:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _added(counts: IntArray, node: IntArray, amount: IntArray, size: int) -> IntArray:
    # Sums of counts stay far below 2⁵³, so that bincount's floats hold them exactly.
    more: IntArray = np.bincount(node, weights=amount, minlength=size).astype(np.int64)
    return counts + more
