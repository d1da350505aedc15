"""What is still free while bids are taken one after another."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..bidgen.columns import UNLIMITED_MIB, BoolArray, Columns, IntArray
from ..bidgen.guard import Guard
from ..bidgen.table import BidTable
from ..cluster.nodes import resource_name


class FreeState:
    """Free resources less those of the bids taken so far."""

    def __init__(self, table: BidTable, columns: Columns, guards: tuple[Guard, ...] = ()) -> None:
        self._table = table
        self._rooms = [_Room(guard, table) for guard in guards]
        self.free = columns.free.copy()
        self.licenses = dict(columns.licenses)
        self._limited = columns.free.memory < UNLIMITED_MIB

    def fits(self, bid: int) -> bool:
        """Return whether a bid could be taken now."""
        table, entries = self._table, self._table.entries(bid)
        licenses = table.demands[int(table.job[bid])].licenses
        if any(count > self.licenses[name] for name, count in licenses.items()):
            return False
        if any(short.any() for _, short in self._shortages(entries)):
            return False
        return self.delayed(bid) is None

    def delayed(self, bid: int) -> Guard | None:
        """Return a reservation that the bid would delay beside those taken, if there is one."""
        return next((room.guard for room in self._rooms if not room.holds(bid)), None)

    def take(self, bid: int) -> None:
        """Take a bid's resources."""
        table, entries = self._table, self._table.entries(bid)
        nodes = table.node[entries]
        self.free.cores[nodes] -= table.cores[entries]
        if table.memory is not None:
            self.free.memory[nodes] -= np.where(self._limited[nodes], table.memory[entries], 0)
        for kind, counts in table.gres.items():
            self.free.gres[kind][nodes] -= counts[entries]
        for name, count in table.demands[int(table.job[bid])].licenses.items():
            self.licenses[name] -= count
        for room in self._rooms:
            room.take(bid)

    def short_nodes(self, bid: int) -> IntArray:
        """Return the nodes of a bid that lack something it needs."""
        entries = self._table.entries(bid)
        nodes = self._table.node[entries]
        short = np.zeros(len(nodes), np.bool_)
        for _, lacking in self._shortages(entries):
            short |= lacking
        return nodes[short]

    def short_licenses(self, bid: int) -> list[str]:
        """Return the licences that a bid lacks."""
        licenses = self._table.demands[int(self._table.job[bid])].licenses
        return [name for name, count in licenses.items() if count > self.licenses[name]]

    def _shortages(self, entries: slice) -> Iterable[tuple[str, BoolArray]]:
        table, nodes = self._table, self._table.node[entries]
        yield "cores", self.free.cores[nodes] < table.cores[entries]
        if table.memory is not None:
            yield "memory", (self.free.memory[nodes] < table.memory[entries]) & self._limited[nodes]
        for kind, counts in table.gres.items():
            yield resource_name(kind), self.free.gres[kind][nodes] < counts[entries]


class _Room:
    """What is left beside one reservation while bids that outlast its start are taken."""

    def __init__(self, guard: Guard, table: BidTable) -> None:
        self.guard = guard
        self._table = table
        places = self._place, self._counts = guard.places(table)
        self._parts = [(amount, room.copy()) for _, amount, room in guard.amounts(table, places)]

    def _amounts(self, bid: int) -> Iterable[tuple[IntArray, IntArray, IntArray]]:
        """Yield (what is left, where, how much the bid takes) for each resource."""
        entries = self._table.entries(bid)
        mine = self._counts[entries]
        if mine.any():
            place = self._place[entries][mine]
            for amount, left in self._parts:
                yield left, place, amount[entries][mine]

    def holds(self, bid: int) -> bool:
        return all((left[place] >= amount).all() for left, place, amount in self._amounts(bid))

    def take(self, bid: int) -> None:
        for left, place, amount in self._amounts(bid):
            left[place] -= amount


def greedy(
    table: BidTable, columns: Columns, taken: Iterable[int] = (), guards: tuple[Guard, ...] = ()
) -> list[int]:
    """Return the bids of a greedy award: each job in turn takes the first of its bids that fits.

    ``taken`` bids come before all others, as far as they fit together; their jobs take no other.
    """
    state = FreeState(table, columns, guards)
    chosen: list[int] = []
    done: set[int] = set()
    jobs = table.job.tolist()
    for bid, job in [*((bid, jobs[bid]) for bid in sorted(taken)), *enumerate(jobs)]:
        if job not in done and state.fits(bid):
            state.take(bid)
            chosen.append(bid)
            done.add(job)
    return sorted(chosen)
