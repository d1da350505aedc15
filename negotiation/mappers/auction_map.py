"""The auction as the mapper: an offer is a state of the engine, queued jobs bid on counts of its nodes.

Each job bids counts of the range that the negotiation stands at; the attempts' relaxation widens it. A bid is
worth its priority times its nodes (``priority_cores``), with two corrections:

- A critical job comes first: one whose run time is near the time that all work known still takes. Started
  later it would run when everybody else is done. Each of its nodes is worth more than all others together.
- The first loser that has waited for long gets the engine's reservation (``--reserve 1``): nothing that
  would delay it starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from ...auction.decide import decide
from ...auction.options import StepOptions
from ...cluster.errors import OptionError
from ...cluster.jobs import JobKind
from ..runtime.backfill_plan import run_time_s
from ..runtime.records import MapEntry, NodeCount
from ..runtime.runtime_machine import lowest
from .mapping import WORK_LIMIT, Engine, MapRequest, Offered, Slot
from .offer_state import ground_of

#: A job is critical once its run time times this reaches the time that all known work takes on all nodes.
#: 1 would start it at the last moment, and find no nodes free for it; see docs/decisions.
CRITICAL = 2.0
#: Bids of one job: some for each count.
_BIDS = 24
#: Values up to this, times all nodes, are sums that the engine adds exactly.
_LARGEST = 2**50


def auction_map(request: MapRequest) -> list[Slot]:
    """Return the Map that the auction awards: winners first, then the others as they should be served."""
    slots = [Slot(entry, span, start_s=request.offered.later.get(entry.job)) for entry, span in request.queue]
    critical = _critical(request.offered, slots)
    served = sorted(slots, key=lambda slot: -critical.get(slot.entry.job, 0.0))
    _award(request, served, critical)
    won = [slot for slot in served if slot.nodes]
    waiting = [slot for slot in served if not slot.nodes]
    return won + waiting[: request.depth]


def _critical(offered: Offered, slots: Sequence[Slot]) -> Mapping[str, float]:
    """Return the critical jobs with their shortest run times in seconds."""
    work = dict.fromkeys(offered.place.partitions, 0.0)
    for slot in slots:
        work[slot.entry.partition] += slot.entry.min_nodes * slot.entry.time_at_min_s
    for dispatched in offered.running.values():
        if dispatched.entry.partition in work:
            left_s = max(0.0, dispatched.report.end_s - offered.now_s)
            work[dispatched.entry.partition] += left_s * dispatched.report.node_count
    times = {slot.entry.job: _shortest_s(slot.entry) for slot in slots}
    return {
        slot.entry.job: times[slot.entry.job]
        for slot in slots
        if times[slot.entry.job] * CRITICAL * offered.place.partitions[slot.entry.partition].bit_count()
        >= work[slot.entry.partition]
    }


def _shortest_s(entry: MapEntry) -> float:
    """Return how long a job runs at best: malleable ones may grow, others keep what they start with."""
    return run_time_s(entry, entry.max_nodes if entry.type is JobKind.MALLEABLE else entry.min_nodes)


def _award(request: MapRequest, order: Sequence[Slot], critical: Mapping[str, float]) -> None:
    """Let the slots bid, and write the nodes into the winners."""
    offered = request.offered
    free = offered.idle
    for slot in order:
        free |= offered.promised.get(slot.entry.job, 0)
    ground = ground_of(offered.place, request.switches)
    worth = _worth(order, critical, len(offered.place.names))
    queue = [
        ground.demand(
            slot.entry,
            NodeCount(min=slot.range.min, max=max(slot.range.min, min(slot.range.max, free.bit_count()))),
            worth[slot.entry.job],
            reserves=_has_waited(request, slot.entry.job),
        )
        for slot in order
    ]
    state = ground.state(free, offered.now_s, list(offered.running.values()), queue)
    # All that ask alike take each other's place: no more of them bid than could start.
    decision = decide(state, queue, step_options(request.engine, len(queue)), all_bid_up_to=0)
    placed = {
        start.demand.job.id: sum(1 << node for node in start.allocation.nodes.tolist())
        for start in decision.starts
    }
    slots = {slot.entry.job: slot for slot in order}
    _keep_promises(placed, slots, offered)
    for job, nodes in placed.items():
        slots[job].nodes, slots[job].start_s = nodes, None


def step_options(engine: Engine, queued: int) -> StepOptions:
    """Return the options of one award over that many queued jobs.

    Raises:
        OptionError: a value cannot be used, or a limit would be ignored.
    """
    if engine.strategy == "greedy" and engine.time_limit_s is not None:
        raise OptionError("time_limit: strategy greedy reaches no limit")
    if engine.work_limit is not None and engine.time_limit_s is not None:
        raise OptionError("work_limit: it counts instead of time_limit, which would be ignored")
    has_no_limit = engine.work_limit is None and engine.time_limit_s is None
    return StepOptions(
        strategy=engine.strategy,
        work_limit=WORK_LIMIT if has_no_limit and engine.strategy != "greedy" else engine.work_limit,
        time_limit_s=engine.time_limit_s,
        objective="priority_cores",
        window=max(1, queued),
        max_bids_per_job=_BIDS,
        on_timeout="incumbent",
        reserve=1,
    )


def _has_waited(request: MapRequest, job: str) -> bool:
    now = request.offered.now_s
    return now - request.came_s.get(job, now) >= request.patience_s


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


def _keep_promises(placed: dict[str, int], slots: Mapping[str, Slot], offered: Offered) -> None:
    """Let winners have the nodes that the offer promises them, where their holders can use others as well."""
    for job, promised in offered.promised.items():
        mine, entry = placed.get(job, 0), slots[job].entry
        if mine.bit_count() != promised.bit_count() or mine == promised or _is_bound(entry):
            continue
        if promised & ~offered.place.partitions[entry.partition]:
            continue  # An offer may name nodes that are not the job's to have.
        wanted, spare = promised & ~mine, mine & ~promised
        holders = [other for other, nodes in placed.items() if nodes & wanted and other != job]
        if any(not _swaps(slots[other].entry, entry) for other in holders):
            continue
        for other in holders:
            taken = placed[other] & wanted
            given = lowest(spare, taken.bit_count())
            spare &= ~given
            placed[other] = placed[other] & ~taken | given
        placed[job] = promised


def _is_bound(entry: MapEntry) -> bool:
    """Return whether a job cannot take any node of its partition instead of another."""
    return bool(entry.eligible or entry.contiguous or entry.max_switches)


def _swaps(entry: MapEntry, other: MapEntry) -> bool:
    return not _is_bound(entry) and entry.partition == other.partition
