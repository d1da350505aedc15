"""The smallest change of its request that would start a waiting job now, next to the winners.

Each change is tried, not reasoned about: the changed job is placed by first-fit, or if that fails
by an auction's bid, on what the award leaves free. What is found would start for certain. A request
can be made easier in several ways (``kinds_of``), each from the smallest change on.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from ...bidgen.first_fit import Cluster
from ...bidgen.generate import place_alone
from ...cluster.errors import InputError
from ...cluster.jobs import Job, Request, Span
from ...cluster.resources.allocation import allocation_of_resources
from ...cluster.resources.job_reservations import Guard
from ...cluster.schedule import Award
from ...cluster.snapshot import Snapshot
from ...cluster.text import plural
from ..forecast import first_found
from ..ledger import with_starts
from ..state import SnapshotState
from .words import duration

#: Values of the first of two kinds that are tried with the second, at most.
_TRIED = 16
#: Values of a kind that are tried one after another, where bisection would not do, at most.
_SCANNED = 128


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ChangeKind:
    """One way to change a job.

    Attributes:
        values: what the changed part could be instead, the smallest change first.
        is_monotone: a job that fits with one of the values fits with all that come after it.
        finer: tells the values between one of ``values`` and the one before it.
        apply: makes the changed job of a job and a value.
        share: the share of what was asked for that a value gives up, 0 to 1.
    """

    values: Sequence[int]
    apply: Callable[[Job, int], Job]
    share: Callable[[int], float]
    finer: Callable[[int], Sequence[int]] = lambda _: ()
    is_monotone: bool = True


def kinds_of(job: Job, snapshot: Snapshot, guards: tuple[Guard, ...], leaves: int) -> list[ChangeKind]:
    """Return every way to change a job; those that give up no amount first.

    Args:
        job: what waits.
        snapshot: its reservations and partitions may limit the job's time.
        guards: reservations for blocked jobs do so, too.
        leaves: leaf switches of the cluster.
    """
    found = [
        *_conditions(job.request, leaves),
        *_sizes(job.request),
        *_amounts(job.request),
        *_times(job, snapshot, guards),
    ]
    return [kind for kind in found if len(kind.values)]


def _with_request(job: Job, **members: Any) -> Job:
    return replace(job, request=replace(job.request, **members))


def _dropped(**members: Any) -> ChangeKind:
    """Return the kind that drops a condition."""
    return ChangeKind(values=(0,), apply=lambda job, _: _with_request(job, **members), share=lambda _: 0.0)


def _amount(asked: int, values: Sequence[int], apply: Callable[[Job, int], Job], **more: Any) -> ChangeKind:
    """Return a kind of which a value gives up what is missing of the amount asked for."""
    return ChangeKind(values=values, apply=apply, share=lambda value: 1 - value / asked, **more)


def _conditions(request: Request, leaves: int) -> Iterator[ChangeKind]:
    """Yield the conditions on where the nodes are, and whether they are shared."""
    if request.contiguous:
        yield _dropped(contiguous=False)
    most = request.max_switches
    if most is not None:
        yield ChangeKind(
            values=range(most + 1, max(most + 2, leaves + 1)),
            apply=lambda job, value: _with_request(job, max_switches=value if value < leaves else None),
            share=lambda _: 0.0,
        )
    if request.segment is not None:
        yield _dropped(segment=None, spread_segments=False, consolidate_segments=False)
    if request.required_nodes:
        yield _dropped(required_nodes=())
    if request.exclusive:
        yield _dropped(exclusive=False)


def _sizes(request: Request) -> Iterator[ChangeKind]:
    """Yield fewer nodes with as many cores on each, and fewer cores."""
    step, nodes, per_node = request.cores_per_task, request.node_counts, request.cores_per_node
    if nodes is not None:
        lowest = max(1, len(request.required_nodes))
        less = request.segment if request.segment is not None and request.segment < nodes.minimum else 1
        yield _amount(
            nodes.minimum,
            range(nodes.minimum - less, lowest - 1, -less),
            _on_nodes,
            # Fewer consecutive nodes may be poorer ones; few nodes may not hold all that is asked.
            is_monotone=not (request.required_nodes or request.gres_total)
            and (per_node is not None or not request.contiguous),
        )
    if per_node is not None:
        lowest = _whole(request.min_cores_per_node, step)
        yield _amount(per_node, range(per_node - step, lowest - 1, -step), _with_cores_per_node)
    elif request.cores is not None:
        yield _fewer_cores(request, request.cores)


def _on_nodes(job: Job, value: int) -> Job:
    """Return the job on this many nodes, with the same cores on each, in whole tasks."""
    request = job.request
    cores = request.cores
    if cores is not None and request.node_counts is not None:
        cores = _scaled(cores, value, request.node_counts.minimum, request.cores_per_task)
    return _with_request(job, nodes=Span.exactly(value), cores=cores)


def _scaled(cores: int, nodes: int, asked: int, step: int) -> int:
    """Return the cores of ``nodes`` nodes where ``asked`` have ``cores``, in whole tasks."""
    return cores // step * nodes // asked * step


def _whole(cores: int, step: int) -> int:
    """Return the number of cores, rounded up to whole tasks."""
    return -(-cores // step) * step


def _with_cores_per_node(job: Job, value: int) -> Job:
    nodes, total = job.request.node_counts, job.request.cores
    cores = None if total is None or nodes is None else nodes.minimum * value
    return _with_request(job, cores_per_node=value, cores=cores)


def _fewer_cores(request: Request, asked: int) -> ChangeKind:
    """Return fewer cores in all (on the nodes asked for, or on a smaller number of them).

    With a least number a node, only its multiples are sure to fit where a larger one does.
    """
    step, nodes = request.cores_per_task, request.nodes
    least = _whole(request.min_cores_per_node, step)
    lowest = least * (1 if nodes is None else nodes.minimum)
    stride = least if nodes is None else step

    def apply(job: Job, value: int) -> Job:
        now = job.request.nodes
        cores = value if now is None or nodes is None else _scaled(value, now.minimum, nodes.minimum, step)
        return _with_request(job, cores=cores)

    return _amount(
        asked,
        range((asked - 1) // stride * stride, lowest - 1, -stride),
        apply,
        finer=lambda value: range(min(asked - step, value + stride - step), value, -step),
        # Each of the nodes that are required, or needed for gres, takes a task.
        is_monotone=nodes is not None or not (request.required_nodes or request.gres_total),
    )


def _amounts(request: Request) -> Iterator[ChangeKind]:
    """Yield fewer gres and licences of each name, and less memory."""
    for member in ("gres_per_node", "gres_total"):
        for name, span in getattr(request, member).items():
            if span.minimum:
                yield _fewer(member, name, span.minimum, Span.exactly)
    for member in ("memory_mib_per_node", "memory_mib_per_core"):
        if asked := getattr(request, member):
            less = partial(lambda member, job, value: _with_request(job, **{member: value}), member)
            yield _amount(asked, range(asked - 1, 0, -1), less)
    for name, asked in request.licenses.items():
        yield _fewer("licenses", name, asked, int)


def _fewer(member: str, name: str, asked: int, entry: Callable[[int], Any]) -> ChangeKind:
    """Return fewer of what a member asks for by name, down to none of it."""

    def apply(job: Job, value: int) -> Job:
        others = {kind: one for kind, one in getattr(job.request, member).items() if kind != name}
        return _with_request(job, **{member: others | ({name: entry(value)} if value else {})})

    return _amount(asked, range(asked - 1, -1, -1), apply)


def _times(job: Job, snapshot: Snapshot, guards: tuple[Guard, ...]) -> Iterator[ChangeKind]:
    """Yield shorter time limits: up to the partition's, and to the starts of reservations."""
    now, asked = snapshot.time, job.time_limit_s
    ends = (
        [] if now is None else [one.start - now for one in snapshot.reservations if job.user not in one.users]
    )
    ends += [guard.time - guard.now for guard in guards if guard.job.id != job.id]
    names = job.partition.split(",")
    ends += [one.max_time_limit_s or 0 for one in snapshot.partitions if one.name in names]
    limits = sorted({int(end) for end in ends if end >= 1}, reverse=True)
    yield ChangeKind(
        values=[limit for limit in limits if asked is None or limit < asked],
        apply=lambda job, value: replace(job, time_limit_s=value),
        share=lambda value: 1.0 if asked is None else 1 - value / asked,
    )


def change_words(before: Job, after: Job) -> list[str]:
    """Return in words what a changed job asks for instead."""
    old, new = before.request, after.request
    said = [*_place_words(old, new), *_size_words(old, new)]
    for member, where in (("gres_per_node", " a node"), ("gres_total", " in all")):
        said += _counts_words(_least(getattr(old, member)), _least(getattr(new, member)), where)
    for member, where in (("memory_mib_per_node", "a node"), ("memory_mib_per_core", "a core")):
        if getattr(old, member) != getattr(new, member):
            said.append(f"{getattr(new, member)} MiB {where} instead of {getattr(old, member)}")
    said += _counts_words(old.licenses, new.licenses, " licences")
    if before.time_limit_s != after.time_limit_s and after.time_limit_s is not None:
        limit = "none" if before.time_limit_s is None else duration(before.time_limit_s)
        said.append(f"a time limit of {duration(after.time_limit_s)} instead of {limit}")
    return said


def _place_words(old: Request, new: Request) -> Iterator[str]:
    if old.contiguous != new.contiguous:
        yield "nodes that need not be consecutive"
    if old.max_switches != new.max_switches:
        few = f"up to {new.max_switches} leaf switches instead of {old.max_switches}"
        yield "any leaf switches" if new.max_switches is None else few
    if old.segment != new.segment:
        yield "nodes that need not be in segments"
    if old.required_nodes != new.required_nodes:
        yield "other nodes than those it names"
    if old.exclusive != new.exclusive:
        yield "nodes shared with other jobs"


def _size_words(old: Request, new: Request) -> Iterator[str]:
    if old.node_counts is not None and new.node_counts is not None and old.node_counts != new.node_counts:
        yield f"{plural(new.node_counts.minimum, 'node')} instead of {old.node_counts.minimum}"
    if old.cores_per_node != new.cores_per_node:
        yield f"{plural(new.cores_per_node or 0, 'core')} a node instead of {old.cores_per_node}"
    elif old.cores_per_node is None and old.cores != new.cores:
        yield f"{plural(new.cores or 0, 'core')} instead of {old.cores}"


def _least(spans: Mapping[str, Span]) -> dict[str, int]:
    return {name: span.minimum for name, span in spans.items()}


def _counts_words(old: Mapping[str, int], new: Mapping[str, int], where: str) -> Iterator[str]:
    for name, count in old.items():
        if new.get(name, 0) != count:
            yield f"{new.get(name) or 'no'} {name}{where} instead of {count}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change that starts the job now.

    Attributes:
        words: what would be asked for instead; empty when the job fits as it is.
        given_up: the share of what was asked for that is given up, 0 where only conditions on the
            nodes fall; of two amounts what is kept of both is multiplied.
        job: the job as changed.
        nodes: where it would start beside the award, in snapshot order.
    """

    words: tuple[str, ...]
    given_up: float
    job: Job
    nodes: tuple[str, ...]


class FreeRoom:
    """What is free beside the jobs that start now."""

    def __init__(self, state: SnapshotState, awards: Iterable[Award], guards: tuple[Guard, ...]) -> None:
        self.snapshot = state.snapshot
        jobs = {job.id: job for job in state.snapshot.jobs}
        starts = [(jobs[one.job], allocation_of_resources(one.nodes, state.columns)) for one in awards]
        self.left = with_starts(Cluster(state.columns, state.topology, guards), starts)
        self._reader = state.reader

    def nodes_for(self, job: Job) -> tuple[str, ...]:
        """Return the nodes where a job would start, in snapshot order; none if it fits nowhere."""
        demand, left = self._reader.demand(job), self.left
        found = None if demand is None else place_alone(demand, left.columns, left.topology, left.guards)
        return () if found is None else left.columns.named(found.nodes)


class ChangeSearch:
    """Tries changes of one job, which need not be of the snapshot's queue.

    Those that give up more than the share ``most`` of the request do not count; time limits may.
    """

    def __init__(self, room: FreeRoom, job: Job, most: float = 1.0) -> None:
        self._most = most
        self._room = room
        self._job = job
        leaves = len(np.unique(room.left.topology.leaf))
        self._kinds = kinds_of(job, room.snapshot, room.left.guards, leaves)

    def found(self) -> tuple[Change, ...]:
        """Return the smallest change of each kind that would start the job now, the smallest first.

        A job that fits as it is gets one entry without words. Only when no change of one kind
        starts it, the smallest of every two kinds. Empty when none of them does.
        """
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
        """Return whether a change keeps enough; a time limit (an estimate) has no minimum."""
        return change.given_up <= self._most or change.job.request == self._job.request

    def _of_both(self, one: ChangeKind, other: ChangeKind) -> Change | None:
        """Return the smallest change of two kinds: for one's values the other's best, and back."""
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
        """Return a kind's smallest change, with fixed ones, and its value; None if none does."""
        if not len(kind.values):
            return None
        found = (self._bisected if kind.is_monotone else self._tried_in_turn)(kind, *fixed)
        return None if found is None else self._first(kind, kind.finer(found[0]), *fixed) or found

    def _bisected(self, kind: ChangeKind, *fixed: tuple[ChangeKind, int]) -> tuple[int, Change] | None:
        values = kind.values
        found = first_found(lambda place: self._changed(*fixed, (kind, values[place])), len(values))
        return None if found is None else (values[found[0]], found[1])

    def _tried_in_turn(self, kind: ChangeKind, *fixed: tuple[ChangeKind, int]) -> tuple[int, Change] | None:
        """Try the values in turn; of very many, some, then those before the first that does."""
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
    """Return a kind without values that, with a share given up already, do not better ``best``.

    The first of those stays where a value between it and the one before may be better.
    """
    if best is None or fixed >= 1:
        return kind
    most = 1 - (1 - best[1].given_up) / (1 - fixed)
    end = bisect_left(kind.values, most, key=kind.share)
    end += end < len(kind.values) and len(kind.finer(kind.values[end])) > 0
    return replace(kind, values=kind.values[:end])


def _some(values: Sequence[int], most: int) -> list[int]:
    """Return all values, or of many ``most``, evenly apart, with the ends among them."""
    return [values[place] for place in _places(len(values), most)]


def _places(count: int, most: int) -> list[int]:
    if count <= most:
        return list(range(count))
    places: list[int] = np.unique(np.linspace(0, count - 1, most).round().astype(np.int64)).tolist()
    return places
