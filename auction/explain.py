"""Why a job starts or waits: its bids, what each lacks and who holds it, when it could start at the latest.

The auction is run as ``aucsched schedule`` runs it; the same options make the same bids again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..bidgen.columns import UNLIMITED_MIB, BoolArray, Capacity, Columns, columns_of
from ..bidgen.demand import Demand, DemandReader
from ..bidgen.fields import gres_choices, usable
from ..bidgen.generate import generate_bids
from ..bidgen.table import BidTable
from ..cluster.errors import InputError
from ..cluster.jobs import Job
from ..cluster.schedule import Award, BidClass, Refusal, Schedule
from ..cluster.snapshot import Snapshot
from ..topology.tree import topology_of
from .attempt import bid_options
from .options import StepOptions
from .queue import queue_of
from .shadow import ShadowStart, less_awards, shadow_time
from .stated import state
from .step import run_step

_CLASSES = tuple(BidClass)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """What a bid lacks beside the jobs that start: a resource or licence, where, and who takes it."""

    what: str
    nodes: tuple[str, ...]
    held_by: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BidView:
    """One bid of the job: where, how much in all, how it is liked, and what it lacks beside the award.

    ``level`` is None in the linear topology, ``preference`` where the model has none.
    """

    bid_class: BidClass
    nodes: tuple[str, ...]
    cores: int
    gres: Mapping[str, int]
    level: int | None
    preference: float | None
    won: bool
    lacks: tuple[Lack, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """Nodes alike in what they are to the job, and the jobs or the reservation that hold them."""

    what: str
    nodes: tuple[str, ...]
    held_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Everything that is known about one job of a snapshot's queue.

    Attributes:
        place: in the queue, 1 for the highest priority; of ``queued`` jobs.
        award, refusal: exactly one is None.
        bids: in the order they were made; empty for a job that made none, and under IPSCHED, which has none.
        groups: the machine's nodes, sorted out by what they are to the job; empty for one that starts.
        alone: when it could start at the latest if nothing else started before it.
        after_award: the same after the jobs that start now, each for its time limit.
    """

    job: Job
    model: str
    place: int
    queued: int
    award: Award | None
    refusal: Refusal | None
    bids: tuple[BidView, ...]
    groups: tuple[NodeGroup, ...]
    alone: ShadowStart | None
    after_award: ShadowStart | None


def explain(snapshot: Snapshot, job_id: str, options: StepOptions) -> Explanation:
    """Run the auction and explain what became of one job.

    Raises:
        InputError: no pending job has that id.
    """
    job = _pending(snapshot, job_id)
    schedule = run_step(snapshot, options)
    columns = columns_of(snapshot)
    queue = queue_of(snapshot, columns, options)
    award = next((one for one in schedule.started if one.job == job_id), None)
    others = [one for one in schedule.started if one.job != job_id]
    return Explanation(
        job=job,
        model=options.model,
        place=next(place for place, one in enumerate(queue.jobs, 1) if one.id == job_id),
        queued=len(queue.jobs),
        award=award,
        refusal=next((one for one in schedule.pending if one.job == job_id), None),
        bids=tuple(_Bids(snapshot, columns, schedule, options).of(job, queue.window)),
        groups=() if award else tuple(_groups(snapshot, job, columns, others)),
        alone=shadow_time(snapshot, job),
        after_award=shadow_time(snapshot, job, others),
    )


def _pending(snapshot: Snapshot, job_id: str) -> Job:
    for job in snapshot.jobs:
        if job.id == job_id:
            return job
    if any(job.id == job_id for job in snapshot.running):
        raise InputError(f"{job_id!r} is running already", path="jobs")
    raise InputError(f"{job_id!r} is no pending job of this snapshot", path="jobs")


class _Bids:
    """Makes the bids of the step's best attempt again, and holds them against its award."""

    def __init__(
        self, snapshot: Snapshot, columns: Columns, schedule: Schedule, options: StepOptions
    ) -> None:
        self._columns = columns
        self._topology = topology_of(snapshot)
        self._schedule = schedule
        self._options = options
        self._jobs = {job.id: job for job in snapshot.jobs}

    def of(self, job: Job, window: tuple[Demand, ...]) -> Iterator[BidView]:
        """Yield the job's bids; IPSCHED has none."""
        window = window[: self._schedule.window]
        place = next((demand.index for demand in window if demand.job.id == job.id), None)
        if place is None or self._options.model == "ipsched":
            return
        table = self._table(window)
        answered = state(table, self._columns, self._topology, self._options)
        preference = answered.answer(answered.start(np.zeros(0, np.int64))).preference
        others = [one for one in self._schedule.started if one.job != job.id]
        free = less_awards(self._columns, others)
        licenses = self._free_licenses(others)
        for bid in range(*np.searchsorted(table.job, [place, place + 1]).tolist()):
            liked = None if preference is None else float(preference[bid])
            lacks = (*self._lacks(table, bid, free, others), *self._licenses(job, licenses, others))
            yield self._view(job, table, bid, liked, lacks)

    def _table(self, window: tuple[Demand, ...]) -> BidTable:
        return generate_bids(window, self._columns, self._topology, bid_options(self._options)).table

    def _view(
        self, job: Job, table: BidTable, bid: int, preference: float | None, lacks: tuple[Lack, ...]
    ) -> BidView:
        entries = table.entries(bid)
        nodes = tuple(self._columns.names[node] for node in table.node[entries].tolist())
        gres = {kind: int(counts[entries].sum()) for kind, counts in table.gres.items()}
        cores = table.cores[entries]
        award = next((one for one in self._schedule.started if one.job == job.id), None)
        won = award is not None and {name: use.cores for name, use in award.nodes.items()} == dict(
            zip(nodes, cores.tolist(), strict=True)
        )
        return BidView(
            bid_class=_CLASSES[int(table.bid_class[bid])],
            nodes=nodes,
            cores=int(cores.sum()),
            gres={kind: count for kind, count in gres.items() if count},
            level=None if self._topology.is_linear else int(table.level[bid]),
            preference=preference,
            won=won,
            lacks=lacks,
        )

    def _lacks(self, table: BidTable, bid: int, free: Capacity, others: list[Award]) -> Iterator[Lack]:
        """Yield what is short on the bid's nodes once the other jobs of the award have started."""
        entries = table.entries(bid)
        nodes = table.node[entries]
        needs = {"cores": (table.cores, free.cores)}
        if table.memory is not None:
            needs["memory"] = (table.memory, free.memory)
        needs |= {kind: (counts, free.gres[kind]) for kind, counts in table.gres.items()}
        for what, (wanted, left) in needs.items():
            short = left[nodes] < wanted[entries]
            if what == "memory":
                short &= self._columns.total.memory[nodes] < UNLIMITED_MIB
            names = tuple(self._columns.names[node] for node in nodes[short].tolist())
            if names:
                holders = tuple(one.job for one in others if any(name in one.nodes for name in names))
                yield Lack(what=what, nodes=names, held_by=holders)

    def _free_licenses(self, others: list[Award]) -> dict[str, int]:
        left = dict(self._columns.licenses)
        for award in others:
            for name, count in self._jobs[award.job].request.licenses.items():
                left[name] -= count
        return left

    def _licenses(self, job: Job, left: Mapping[str, int], others: list[Award]) -> Iterator[Lack]:
        for name, count in job.request.licenses.items():
            if count > left[name]:
                holders = (one.job for one in others if name in self._jobs[one.job].request.licenses)
                yield Lack(what=f"{name} licences", nodes=(), held_by=tuple(holders))


def _groups(snapshot: Snapshot, job: Job, columns: Columns, others: list[Award]) -> Iterator[NodeGroup]:
    """Sort the machine's nodes by what they are to the job: free for it, taken, held, reserved, closed."""
    demand, open_to_all = (
        DemandReader(snapshot, columns, honour_reservations=honoured).read(job, 0)
        for honoured in (True, False)
    )
    if not isinstance(demand, Demand) or not isinstance(open_to_all, Demand):
        return
    eligible, unreserved = _eligible(demand), _eligible(open_to_all)
    before = _usable(demand, columns.free, columns)
    after = _usable(demand, less_awards(columns, others), columns)
    yield from _named("free for it", after, columns)
    taken = set(_names(before & ~after, columns))
    holders = tuple(one.job for one in others if taken & one.nodes.keys())
    yield from _named("taken by jobs that start now", before & ~after, columns, holders)
    held = eligible & ~before
    names = set(_names(held, columns))
    running = sorted(
        (one for one in snapshot.running if names & one.nodes.keys()),
        key=lambda one: -len(names & one.nodes.keys()),
    )
    yield from _named("too little is free", held, columns, tuple(one.id for one in running))
    for entry in snapshot.reservations:
        mask = unreserved & ~eligible & np.isin(columns.names, entry.nodes)
        yield from _named("reserved", mask, columns, (entry.name,))
    yield from _closed(snapshot, columns)
    others_nodes = columns.takes_jobs & ~unreserved
    yield from _named("not of its partition or features, or excluded", others_nodes, columns)


def _closed(snapshot: Snapshot, columns: Columns) -> Iterator[NodeGroup]:
    """Yield the nodes that take no jobs, by state; full ones with the jobs that run on them."""
    states = np.array([node.state.value for node in snapshot.nodes])
    for name in dict.fromkeys(states[~columns.takes_jobs].tolist()):
        mask = states == name
        names = set(_names(mask, columns))
        running = [one for one in snapshot.running if names & one.nodes.keys()]
        running.sort(key=lambda one: -len(names & one.nodes.keys()))
        yield from _named(str(name), mask, columns, tuple(one.id for one in running))


def _eligible(demand: Demand) -> BoolArray:
    mask: BoolArray = np.any([variant.eligible for variant in demand.variants], axis=0)
    return mask


def _usable(demand: Demand, free: Capacity, columns: Columns) -> BoolArray:
    """Return the nodes that could be among the job's when it takes the fewest gres it may."""
    masks = [
        usable(demand, variant, list(gres_choices(variant))[-1], free, columns) for variant in demand.variants
    ]
    mask: BoolArray = np.any(masks, axis=0)
    return mask


def _names(mask: BoolArray, columns: Columns) -> tuple[str, ...]:
    return tuple(columns.names[node] for node in np.flatnonzero(mask).tolist())


def _named(
    what: str, mask: BoolArray, columns: Columns, held_by: tuple[str, ...] = ()
) -> Iterator[NodeGroup]:
    if mask.any():
        yield NodeGroup(what=what, nodes=_names(mask, columns), held_by=held_by)
