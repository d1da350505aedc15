"""The auction as mapper: an offer is a state of the engine, queued jobs bid on counts of its nodes.

A whole node is one core of the state: jobs do not share it, and ``priority_cores`` is priority ×
nodes. What else a job asks for decides its nodes (``MapEntry.eligible``): nothing to compete for.

Each job bids counts of the range that the negotiation stands at; the attempts' relaxation widens
it. A bid is worth its priority times its nodes (``priority_cores``), with two corrections:

- A critical job comes first: its run time is near the time that all known work still takes. Started
  later it would run last, alone. Each of its nodes is worth more than all others together.
- The first loser that has waited for long gets the engine's reservation (``--reserve 1``): nothing
  that would delay it starts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import count
from math import ceil

import numpy as np

from ...auction.decide import decide
from ...auction.state import Hold, Holds, Reread, StepState
from ...bidgen.families.registry import columns_of
from ...cluster.jobs import Job, JobKind, Span
from ...cluster.jobs import Request as Asked
from ...cluster.nodes import Node, Resources, Switch, part_of_tree
from ...cluster.resources.allocation import Allocation
from ...cluster.resources.capacity import BoolArray, Capacity, IntArray
from ...cluster.resources.columns import Columns
from ...cluster.resources.demand import Demand, DemandReader, Variant
from ...cluster.snapshot import Snapshot
from ...topology.tree import topology_of
from ..job_records import MapEntry, NodeCount, run_time_s
from ..runtime.placement_constraints import has_constraints
from ..runtime.runtime_machine import lowest, places, union_of
from .mapping import Dispatched, MapRequest, Place, Slot

#: Most counts that a job bids on: spread evenly over its range, both ends among them.
_COUNTS = 16
#: Shapes of jobs that are remembered; then all are forgotten.
_SHAPES = 10_000


class Ground:
    """The nodes of one runtime scheduler as the engine's columns; all that offers do not change.

    Args:
        place: the nodes.
        switches: their tree, None where they stand in a row.
    """

    def __init__(self, place: Place, switches: Sequence[Switch] | None) -> None:
        one = Resources(cores=1)
        # Names are the peer's, and may be none that files hold: only a tree needs them.
        names = place.names if switches else [f"n{number}" for number in range(len(place.names))]
        nodes = tuple(Node(name=name, total=one, free=one) for name in names)
        snapshot = Snapshot(
            nodes=nodes, switches=part_of_tree(switches, place.bits) if switches else None, time=0.0
        )
        self._place = place
        self._columns = columns_of(snapshot)
        self._topology = topology_of(snapshot)
        self._reader = DemandReader(snapshot, self._columns)
        self._shapes: dict[object, Demand] = {}
        #: By job, worth and whether it reserves: its shape and demand. Most offers need them again.
        self._demands: dict[object, tuple[Demand, Demand]] = {}
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
        key = (entry.job, worth, reserves)
        if self._demands.get(key, (None,))[0] is not shape:
            if len(self._demands) >= _SHAPES:
                self._demands.clear()
            job = replace(shape.job, id=entry.job, priority=worth)
            self._demands[key] = shape, replace(shape, job=job, reserves=reserves)
        return self._demands[key][1]

    def _shape(self, entry: MapEntry, span: NodeCount) -> Demand:
        """Return the demand of a job of this kind; made once: equal requests are of one kind."""
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
            raise AssertionError(demand.detail)  # noqa: TRY004 - whole nodes can always be read
        variants = self._variants_of(entry, demand.variants)
        # The reader numbered it before it knew of the nodes that the job may use.
        number = next(self._kinds)
        return replace(demand, variants=variants, kind=number, form=number)

    def _variants_of(self, entry: MapEntry, read: tuple[Variant, ...]) -> tuple[Variant, ...]:
        """Return a variant for each set of nodes that the job may use, once for equal requests."""
        key = (entry.partition, entry.eligible)
        if key not in self._variants:
            partition = self._place.partitions.get(entry.partition, 0)
            every = np.arange(len(self._place.names))
            sets = [self._place.mask(names) & partition for names in entry.eligible] or [partition]
            self._variants[key] = tuple(
                replace(variant, eligible=variant.eligible & np.isin(every, places(nodes)))
                for variant in read
                for nodes in sets
            )
        return self._variants[key]


def _latest_nodes_first(queue: Sequence[Demand], idle: BoolArray) -> Reread:
    """Return what lets reservations stand on nodes that are held now, as far as these suffice.

    One node is as good as another to a job that may use both: idle ones are left to others.
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


#: The ground of a place, kept for the offers to come.
_ground_of = lru_cache(maxsize=8)(Ground)


def _whole(nodes: int) -> Allocation:
    """Return whole nodes as what a job holds."""
    where: IntArray = np.array(places(nodes), np.int64)
    held = Capacity(cores=np.ones_like(where), memory=np.zeros_like(where), gres={})
    return Allocation(nodes=where, held=held)


def _counts(least: int, most: int) -> list[int]:
    """Return the counts that a job bids on."""
    span = most - least
    if span < _COUNTS:
        return list(range(least, most + 1))
    return sorted({least + span * step // (_COUNTS - 1) for step in range(_COUNTS)})


#: A job is critical once its run time times this reaches the time that all known work takes on all
#: nodes. 1 would start it at the last moment, and find no nodes free for it; see docs/decisions.
CRITICAL = 2.0
#: Values up to this, times all nodes, are sums that the engine adds exactly.
_LARGEST = 2**50


def auction_map(request: MapRequest) -> list[Slot]:
    """Return the Map that the auction awards: winners first, then the others in service order."""
    slots = [Slot(entry, span, start_s=request.later.get(entry.job)) for entry, span in request.queue]
    critical = _critical(request, slots)
    served = sorted(slots, key=lambda slot: -critical.get(slot.entry.job, 0.0))
    _award(request, served, critical)
    won = [slot for slot in served if slot.nodes]
    waiting = [slot for slot in served if not slot.nodes]
    return won + waiting[: request.settings.depth]


def _critical(request: MapRequest, slots: Sequence[Slot]) -> Mapping[str, float]:
    """Return the critical jobs with their shortest run times in seconds."""
    work = dict.fromkeys(request.place.partitions, 0.0)
    for slot in slots:
        work[slot.entry.partition] += slot.entry.min_nodes * slot.entry.time_at_min_s
    for dispatched in request.running.values():
        if dispatched.entry.partition in work:
            left_s = max(0.0, dispatched.report.end_s - request.now_s)
            work[dispatched.entry.partition] += left_s * dispatched.report.node_count
    critical = {}
    for entry in (slot.entry for slot in slots):
        # At best: malleable jobs may grow, others keep what they start with.
        time_s = run_time_s(entry, entry.max_nodes if entry.type is JobKind.MALLEABLE else entry.min_nodes)
        nodes = request.place.partitions[entry.partition].bit_count()
        if time_s * CRITICAL * nodes >= work[entry.partition]:
            critical[entry.job] = time_s
    return critical


def _award(request: MapRequest, order: Sequence[Slot], critical: Mapping[str, float]) -> None:
    """Let the slots bid, and write the nodes into the winners."""
    free = request.idle | union_of(request.promised.get(slot.entry.job, 0) for slot in order)
    switches, now_s = request.settings.switches, request.now_s
    kept_from_s = now_s - request.settings.patience_s
    ground = _ground_of(request.place, switches)
    worth = _worth(order, critical, len(request.place.names))
    queue = [
        ground.demand(
            slot.entry,
            NodeCount(min=slot.range.min, max=max(slot.range.min, min(slot.range.max, free.bit_count()))),
            worth[slot.entry.job],
            reserves=request.came_s.get(slot.entry.job, now_s) <= kept_from_s,
        )
        for slot in order
    ]
    state = ground.state(free, now_s, list(request.running.values()), queue)
    # All that ask alike take each other's place: no more of them bid than could start.
    decision = decide(state, queue, request.settings.engine.step_options(len(queue)), all_bid_up_to=0)
    placed = {
        start.demand.job.id: sum(1 << node for node in start.allocation.nodes.tolist())
        for start in decision.starts
    }
    slots = {slot.entry.job: slot for slot in order}
    _keep_promises(placed, slots, request)
    for job, nodes in placed.items():
        slots[job].nodes, slots[job].start_s = nodes, None


def _worth(order: Sequence[Slot], critical: Mapping[str, float], nodes: int) -> Mapping[str, int | Fraction]:
    """Return what each job's nodes are worth: a critical one more than all others together."""
    most = max((slot.entry.priority for slot in order), default=0) + 1
    first = most * (nodes + 1) if critical else 0
    worth = {
        slot.entry.job: slot.entry.priority + 1 + (first if slot.entry.job in critical else 0)
        for slot in order
    }
    total = sum(worth.values()) * nodes
    if total <= _LARGEST:
        return worth
    # Sums stay exact in fractions; only their size is bounded.
    return {job: Fraction(value, -(-total // _LARGEST)) for job, value in worth.items()}


def _keep_promises(placed: dict[str, int], slots: Mapping[str, Slot], request: MapRequest) -> None:
    """Let winners have the nodes that the offer promises them, if their holders can use others."""
    for job, promised in request.promised.items():
        if job not in placed:
            continue  # It lost, or another runtime scheduler has started it since.
        mine, entry = placed[job], slots[job].entry
        if mine.bit_count() != promised.bit_count() or mine == promised or has_constraints(entry):
            continue
        if promised & ~request.place.partitions[entry.partition]:
            continue  # An offer may name nodes that are not the job's to have.
        wanted, spare = promised & ~mine, mine & ~promised
        holders = [other for other, nodes in placed.items() if nodes & wanted and other != job]
        theirs = [slots[other].entry for other in holders]
        if any(has_constraints(other) or other.partition != entry.partition for other in theirs):
            continue
        for other in holders:
            taken = placed[other] & wanted
            given = lowest(spare, taken.bit_count())
            spare &= ~given
            placed[other] = placed[other] & ~taken | given
        placed[job] = promised
