"""An offer as the auction's engine sees it: a state of whole nodes, and the queued jobs as its demands.

A whole node is one core of the state: nobody shares it, and ``priority_cores`` is priority × nodes. What else
a job asks for decides which nodes it may use (``MapEntry.eligible``), and is no amount to compete for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import count
from math import ceil

import numpy as np

from ...auction.allocation import Allocation
from ...auction.state import Hold, Holds, Reread, StepState
from ...bidgen.columns import BoolArray, Capacity, Columns, IntArray, columns_of
from ...bidgen.demand import Demand, DemandReader, Variant
from ...cluster.jobs import Job, Span
from ...cluster.jobs import Request as Asked
from ...cluster.nodes import Node, Resources, Switch, part_of_tree
from ...cluster.snapshot import Snapshot
from ...topology.tree import topology_of
from ..runtime.backfill_plan import run_time_s
from ..runtime.records import MapEntry, NodeCount
from ..runtime.runtime_machine import places
from .mapping import Dispatched, Place

#: Most counts that a job bids on: spread evenly over its range, both ends among them.
_COUNTS = 16
#: Shapes of jobs that are remembered; then all are forgotten.
_SHAPES = 10_000


class Ground:
    """The nodes of one runtime scheduler as the engine's columns; what does not change between offers.

    Args:
        place: the nodes.
        switches: their tree, None where they stand in a row.
    """

    def __init__(self, place: Place, switches: Sequence[Switch] | None) -> None:
        one = Resources(cores=1)
        nodes = tuple(Node(name=name, total=one, free=one) for name in place.names)
        snapshot = Snapshot(
            nodes=nodes, switches=part_of_tree(switches, place.bits) if switches else None, time=0.0
        )
        self._place = place
        self._columns = columns_of(snapshot)
        self._topology = topology_of(snapshot)
        self._reader = DemandReader(snapshot, self._columns)
        self._shapes: dict[object, Demand] = {}
        self._kinds = count()
        self._variants: dict[object, tuple[Variant, ...]] = {}

    def state(
        self, free: int, now_s: float, running: Sequence[Dispatched], queue: Sequence[Demand]
    ) -> StepState:
        """Return the state of an offer.

        Args:
            free: nodes that jobs may start on.
            now_s: the runtime scheduler's clock.
            running: jobs that hold the others until the ends of their last reports.
            queue: the waiting jobs.
        """
        cores = np.zeros(len(self._place.names), np.int64)
        cores[places(free)] = 1
        columns = replace(
            self._columns,
            free=replace(self._columns.free, cores=cores),
            is_empty=cores.astype(np.bool_),
        )
        holds = [
            (dispatched.report.end_s, self._place.mask(dispatched.report.nodes) & ~free)
            for dispatched in running
        ]
        return StepState(
            columns=columns,
            topology=self._topology,
            now=now_s,
            holds=Holds(Hold(end=end, allocation=_whole(nodes)) for end, nodes in holds if nodes),
            reread=_latest_nodes_first(queue, columns.is_empty),
        )

    def demand(self, entry: MapEntry, span: NodeCount, worth: int | Fraction, *, reserves: bool) -> Demand:
        """Return a queued job as the engine's demand.

        Args:
            entry: the job.
            span: the counts that the negotiation stands at.
            worth: of each node that it wins.
            reserves: whether nodes may be kept for it.
        """
        shape = self._shape(entry, span)
        job = replace(shape.job, id=entry.job, priority=worth)
        return replace(shape, job=job, reserves=reserves)

    def _shape(self, entry: MapEntry, span: NodeCount) -> Demand:
        """Return the demand of a job of this kind; made once, so that jobs that ask alike are of one kind."""
        runs = (entry.type, entry.min_nodes, entry.max_nodes, entry.time_at_min_s, entry.speedup)
        asks = (entry.partition, entry.eligible, entry.contiguous, entry.max_switches)
        key = (span.min, span.max, *runs, *asks)
        if key not in self._shapes:
            if len(self._shapes) >= _SHAPES:
                self._shapes.clear()
            self._shapes[key] = self._read(entry, span)
        return self._shapes[key]

    def _read(self, entry: MapEntry, span: NodeCount) -> Demand:
        seconds = {nodes: run_time_s(entry, nodes) for nodes in _counts(span.min, span.max)}
        job = Job(
            id=entry.job,
            priority=1,
            request=Asked(
                nodes=Span(minimum=span.min, maximum=span.max),
                cores_per_node=1,
                contiguous=entry.contiguous,
                max_switches=entry.max_switches,
            ),
            time_limit_s=max(1, ceil(max(seconds.values()))),
            limits_by_nodes_s=seconds,
        )
        demand = self._reader.read(job, 0)
        if not isinstance(demand, Demand):
            raise AssertionError(demand.detail)  # noqa: TRY004 - a request for whole nodes can be read
        variants = self._variants_of(entry, demand.variants)
        return replace(demand, variants=variants, kind=next(self._kinds))

    def _variants_of(self, entry: MapEntry, read: tuple[Variant, ...]) -> tuple[Variant, ...]:
        """Return a variant for each set of nodes that the job may use, the same for all who ask alike."""
        key = (entry.partition, entry.eligible)
        if key not in self._variants:
            partition = self._place.partitions.get(entry.partition, 0)
            sets = [self._place.mask(names) & partition for names in entry.eligible] or [partition]
            self._variants[key] = tuple(
                replace(variant, eligible=variant.eligible & self._among(nodes))
                for variant in read
                for nodes in sets
            )
        return self._variants[key]

    def _among(self, nodes: int) -> BoolArray:
        mask = np.zeros(len(self._place.names), np.bool_)
        mask[places(nodes)] = True
        return mask


def _latest_nodes_first(queue: Sequence[Demand], idle: BoolArray) -> Reread:
    """Return what lets reservations stand on nodes that are held now, as far as these suffice.

    One node is as good as another to a job that may use both: those that are idle are left to others.
    """
    by_job = {demand.job.id: demand for demand in queue}

    def reread(job: Job, later: Columns, time: float | None, honour: bool) -> Demand:
        del time, honour
        demand, asked = by_job[job.id], job.request
        if asked.contiguous or asked.max_switches is not None:
            return demand
        variants = []
        for variant in demand.variants:
            there = variant.eligible & (later.free.cores > 0)
            short = asked.fewest_nodes - int((there & ~idle).sum())
            kept = there & ~idle
            kept[np.flatnonzero(there & idle)[-short:] if short > 0 else []] = True
            variants.append(replace(variant, eligible=kept))
        return replace(demand, variants=tuple(variants))

    return reread


def ground_of(place: Place, switches: Sequence[Switch] | None) -> Ground:
    """Return the ground of a place, kept for the offers to come."""
    partitions = tuple(place.partitions.items())
    return _ground(place.names, partitions, None if switches is None else tuple(switches))


@lru_cache(maxsize=8)
def _ground(
    names: tuple[str, ...], partitions: tuple[tuple[str, int], ...], switches: tuple[Switch, ...] | None
) -> Ground:
    bits = {name: 1 << number for number, name in enumerate(names)}
    return Ground(Place(names=names, bits=bits, partitions=dict(partitions)), switches)


def _whole(nodes: int) -> Allocation:
    """Return whole nodes as what a job holds."""
    where: IntArray = np.array(places(nodes), np.int64)
    held = Capacity(cores=np.ones_like(where), memory=np.zeros_like(where), gres={})
    return Allocation(nodes=where, held=held, placement=None)


def _counts(least: int, most: int) -> list[int]:
    """Return the counts that a job bids on."""
    span = most - least
    if span < _COUNTS:
        return list(range(least, most + 1))
    return sorted({least + span * step // (_COUNTS - 1) for step in range(_COUNTS)})
