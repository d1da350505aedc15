"""The smallest change of its request that would start a waiting job now, beside the jobs that start.

Each change is tried, not reasoned about: the changed job is placed by first-fit, and where that finds nothing
by a bid of the auction, on what is free beside the award. What is found would start for certain.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod

import numpy as np

from ...bidgen.first_fit import Cluster
from ...bidgen.generate import place_alone
from ...cluster.errors import InputError
from ...cluster.jobs import Job
from ...cluster.resources.allocation import allocation_of_resources
from ...cluster.resources.job_reservations import Guard
from ...cluster.schedule import Award
from ..forecast import first_found
from ..ledger import with_starts
from ..state import SnapshotState
from .change_kinds import ChangeKind, change_words, kinds_of

#: Values of the first of two kinds that are tried with the second, at most.
_TRIED = 16
#: Values of a kind that are tried one after another, where bisection would not do, at most.
_SCANNED = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change that starts the job now.

    Attributes:
        words: what would be asked for instead; empty when the job fits as it is.
        given_up: the share of what was asked for that is given up, 0 where only conditions on the nodes fall;
            of two amounts what is kept of both is multiplied.
        job: the job as changed.
        nodes: where it would start beside the award, in snapshot order.
    """

    words: tuple[str, ...]
    given_up: float
    job: Job
    nodes: tuple[str, ...]


def smallest_changes(room: "FreeRoom", job: Job, most: float = 1.0) -> tuple[Change, ...]:
    """Return the smallest change of each kind that would start ``job`` now, the smallest of all first.

    Changes that give up more than the share ``most`` of what is asked for are none, but those of time limits.

    A job that fits as it is gets one entry without words. Only when no change of one kind starts it, the
    smallest of every two kinds. Empty when none of them does. The job need not be of the snapshot's queue.
    """
    return _Search(room, job, most).found()


class FreeRoom:
    """What is free beside the jobs that start now."""

    def __init__(self, state: SnapshotState, awards: Iterable[Award], guards: tuple[Guard, ...]) -> None:
        self.snapshot = state.snapshot
        jobs = {job.id: job for job in state.snapshot.jobs}
        starts = [(jobs[one.job], allocation_of_resources(one.nodes, state.columns)) for one in awards]
        self.left = with_starts(Cluster(state.columns, state.topology, guards), starts)
        self._reader = state.reader

    def nodes_for(self, job: Job) -> tuple[str, ...]:
        """Return the nodes on which a job would start, in snapshot order; none when it fits nowhere."""
        demand, left = self._reader.demand(job), self.left
        found = None if demand is None else place_alone(demand, left.columns, left.topology, left.guards)
        return () if found is None else left.columns.named(found.nodes)


class _Search:
    """Tries changes of one job."""

    def __init__(self, room: FreeRoom, job: Job, most: float) -> None:
        self._most = most
        self._room = room
        self._job = job
        leaves = len(np.unique(room.left.topology.leaf))
        self._kinds = kinds_of(job, room.snapshot, room.left.guards, leaves)

    def found(self) -> tuple[Change, ...]:
        as_it_is = self._changed()
        if as_it_is is not None:
            return (as_it_is,)
        smallest = map(self._smallest, self._kinds)
        found = [one[1] for one in smallest if one is not None and self._is_advice(one[1])]
        if not found:
            pairs = (sorted(pair, key=lambda kind: len(kind.values)) for pair in combinations(self._kinds, 2))
            both = (self._of_both(*pair) for pair in pairs)
            found = [change for change in both if change is not None and self._is_advice(change)]
        return tuple(sorted(found, key=lambda change: change.given_up))

    def _is_advice(self, change: Change) -> bool:
        """Return whether a change keeps enough; a time limit may fall by any share: it is an estimate."""
        return change.given_up <= self._most or change.job.request == self._job.request

    def _of_both(self, one: ChangeKind, other: ChangeKind) -> Change | None:
        """Return the smallest change of two kinds: for values of one the best of the other, and back."""
        if one.is_monotone and other.is_monotone:
            most = self._changed((one, one.values[-1]), (other, other.values[-1]))
            if most is None:
                return None
        best: tuple[int, Change] | None = None
        for value in (each for stop in _some(one.values, _TRIED) for each in (*one.finer(stop), stop)):
            if best is not None and one.share(value) >= best[1].given_up:
                break
            best = _less(self._smallest(_better(other, one.share(value), best), (one, value)), best)
        if best is None:
            return None
        back = self._smallest(_better(one, other.share(best[0]), best), (other, best[0]))
        return min(best[1], (back or best)[1], key=lambda change: change.given_up)

    def _smallest(self, kind: ChangeKind, *fixed: tuple[ChangeKind, int]) -> tuple[int, Change] | None:
        """Return the smallest change of a kind, beside fixed ones, and its value; None when none does."""
        if not len(kind.values):
            return None
        found = (self._bisected if kind.is_monotone else self._tried_in_turn)(kind, *fixed)
        return None if found is None else self._first(kind, kind.finer(found[0]), *fixed) or found

    def _bisected(self, kind: ChangeKind, *fixed: tuple[ChangeKind, int]) -> tuple[int, Change] | None:
        values = kind.values
        found = first_found(lambda place: self._changed(*fixed, (kind, values[place])), len(values))
        return None if found is None else (values[found[0]], found[1])

    def _tried_in_turn(self, kind: ChangeKind, *fixed: tuple[ChangeKind, int]) -> tuple[int, Change] | None:
        """Try the values one after another; of very many, some, and then those before the first that does."""
        values, most = kind.values, _TRIED if fixed else _SCANNED
        places = _places(len(values), most)
        found = self._first(kind, [values[place] for place in places], *fixed)
        if found is None:
            return None
        at = places.index(values.index(found[0]))
        skipped = values[places[at - 1] + 1 : places[at]] if at else ()
        return self._first(kind, _some(skipped, most), *fixed) or found

    def _first(
        self, kind: ChangeKind, values: Sequence[int], *fixed: tuple[ChangeKind, int]
    ) -> tuple[int, Change] | None:
        tried = ((value, self._changed(*fixed, (kind, value))) for value in values)
        return next(((value, change) for value, change in tried if change is not None), None)

    def _changed(self, *changes: tuple[ChangeKind, int]) -> Change | None:
        """Return the change if it starts the job; a request that contradicts itself does not."""
        job = self._job
        try:
            for kind, value in changes:
                job = kind.apply(job, value)
        except InputError:
            return None
        nodes = self._room.nodes_for(job)
        if not nodes:
            return None
        return Change(
            words=tuple(change_words(self._job, job)),
            given_up=1 - prod(1 - kind.share(value) for kind, value in changes),
            job=job,
            nodes=nodes,
        )


_Found = tuple[int, Change]


def _less(found: _Found | None, best: _Found | None) -> _Found | None:
    """Return the smaller of two changes, the second of equals."""
    if found is None or best is None:
        return found or best
    return min(best, found, key=lambda one: one[1].given_up)


def _better(kind: ChangeKind, fixed: float, best: _Found | None) -> ChangeKind:
    """Return a kind without the values that beside a share given up already are no better than ``best``.

    The first of those stays where a value between it and the one before may be better.
    """
    if best is None or fixed >= 1:
        return kind
    most = 1 - (1 - best[1].given_up) / (1 - fixed)
    end = bisect_left(kind.values, most, key=kind.share)
    end += end < len(kind.values) and len(kind.finer(kind.values[end])) > 0
    return replace(kind, values=kind.values[:end])


def _some(values: Sequence[int], most: int) -> list[int]:
    """Return all values, or where they are many ``most`` of them, evenly apart and the ends among them."""
    return [values[place] for place in _places(len(values), most)]


def _places(count: int, most: int) -> list[int]:
    if count <= most:
        return list(range(count))
    places: list[int] = np.unique(np.linspace(0, count - 1, most).round().astype(np.int64)).tolist()
    return places
