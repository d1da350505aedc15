"""The auction as the mapper: jobs bid on counts of the offered nodes, an integer program picks the winners.

Each job bids every count of the range that the negotiation stands at; the attempts' relaxation widens it.
What a bid is worth is its priority times its nodes (the auction's ``priority_cores``), with two corrections:

- A critical job comes first: one whose run time is near the time that all work known still takes. Started
  later it would run when everybody else is done. Of those that do not fit the longest is guarded.
- The first job that does not fit, once it is critical or has waited for long, is guarded: bids that would
  run past the time at which its nodes come free share what it leaves over (the auction's ``--reserve 1``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from ...cluster.jobs import JobKind
from ...runtime.backfill import run_time_s
from ...runtime.records import MapEntry
from .knapsack import Bid, best_bids
from .mapping import Request, Slot
from .placing import place_winners

#: A job is critical once its run time times this reaches the time that all known work takes on all nodes.
#: 1 would start it at the last moment, and find no nodes free for it; see docs/decisions.
CRITICAL = 1.6
#: Most counts that a job bids on: spread evenly over its range, both ends among them.
_COUNTS = 16


def auction_map(request: Request) -> list[Slot]:
    """Return the Map that the auction awards: winners first, then the others as they should be served."""
    slots = [Slot(entry, span, start_s=request.offered.later.get(entry.job)) for entry, span in request.queue]
    served: list[Slot] = []
    for partition in request.offered.place.partitions:
        mine = [slot for slot in slots if slot.entry.partition == partition]
        if mine:
            served += _in_partition(request, partition, mine)
    won = [slot for slot in served if slot.nodes]
    waiting = [slot for slot in served if not slot.nodes]
    return won + waiting[: request.depth]


def _in_partition(request: Request, partition: str, slots: list[Slot]) -> list[Slot]:
    """Auction one partition's nodes; return its jobs in the order in which they should be served."""
    offered = request.offered
    nodes = offered.place.partitions[partition]
    free = offered.idle & nodes
    for slot in slots:
        free |= offered.promised.get(slot.entry.job, 0) & nodes
    critical = _critical(request, partition, slots)
    order = sorted(slots, key=lambda slot: -critical.get(slot.entry.job, 0.0))
    if free:
        _award(request, order, free, critical)
    return order


def _critical(request: Request, partition: str, slots: list[Slot]) -> Mapping[str, float]:
    """Return the critical jobs with their shortest run times in seconds."""
    offered = request.offered
    work = sum(slot.entry.min_nodes * slot.entry.time_at_min_s for slot in slots)
    for away in offered.running.values():
        if away.entry.partition == partition:
            work += max(0.0, away.report.end_s - offered.now_s) * away.report.node_count
    horizon = work / offered.place.partitions[partition].bit_count()
    times = {slot.entry.job: _shortest_s(slot.entry) for slot in slots}
    return {job: time for job, time in times.items() if time * CRITICAL >= horizon}


def _shortest_s(entry: MapEntry) -> float:
    """Return how long a job runs at best: malleable ones may grow, others keep what they start with."""
    return run_time_s(entry, entry.max_nodes if entry.type is JobKind.MALLEABLE else entry.min_nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Guard:
    """The first job that does not fit: when its nodes come free, and how many are left over then."""

    slot: Slot | None = None
    start_s: float = inf
    extra: int | None = None


def _award(request: Request, order: list[Slot], free: int, critical: Mapping[str, float]) -> None:
    """Let the slots bid, solve, and write the nodes into the winners."""
    offered = request.offered
    guard = _guard(request, order, free.bit_count(), critical)
    bidders = _contenders([slot for slot in order if slot is not guard.slot], free.bit_count())
    most = max((slot.entry.priority for slot in bidders), default=0)
    # One critical node is worth more than all others together.
    first = (most + 1) * (free.bit_count() + 1)
    bids = [
        [
            Bid(
                nodes=count,
                value=(slot.entry.priority + 1) * count
                + (first * count if slot.entry.job in critical else 0),
                is_long=offered.now_s + run_time_s(slot.entry, count) > guard.start_s,
            )
            for count in _counts(slot.range.min, min(slot.range.max, free.bit_count()))
        ]
        for slot in bidders
    ]
    chosen = best_bids(bids, free.bit_count(), guard.extra)
    winners = [
        (slot.entry.job, mine[place].nodes, offered.promised.get(slot.entry.job, 0))
        for slot, mine, place in zip(bidders, bids, chosen, strict=True)
        if place is not None
    ]
    placed = place_winners(winners, free, offered.place, request.switches)
    for slot in bidders:
        slot.nodes = placed.get(slot.entry.job, 0)
        if slot.nodes:
            slot.start_s = None


def _counts(least: int, most: int) -> list[int]:
    """Return the counts that a job bids on."""
    span = most - least
    if span < _COUNTS:
        return list(range(least, most + 1))
    return sorted({least + span * step // (_COUNTS - 1) for step in range(_COUNTS)})


def _contenders(slots: list[Slot], free: int) -> list[Slot]:
    """Leave out jobs that cannot win: as many alike in all but priority as could fit come before them."""
    seen: dict[tuple[object, ...], int] = {}
    found = []
    for slot in slots:
        entry, least = slot.entry, slot.range.min
        alike = (least, slot.range.max, entry.min_nodes, entry.time_at_min_s, entry.speedup)
        seen[alike] = seen.get(alike, 0) + 1
        if least <= free and seen[alike] <= free // least:
            found.append(slot)
    return found


def _guard(request: Request, order: list[Slot], free: int, critical: Mapping[str, float]) -> _Guard:
    """Return the guard of the first slot in order that does not fit beside those before it.

    A job that has not waited for long is not guarded: it starts as soon, and fewer nodes stay idle for it.
    """
    offered = request.offered
    left, before = free, []
    for slot in order:
        if slot.range.min > left:
            break
        left -= slot.range.min
        before.append((offered.now_s + run_time_s(slot.entry, slot.range.min), slot.range.min))
    else:
        return _Guard()
    waited_s = offered.now_s - request.came_s.get(slot.entry.job, offered.now_s)
    if waited_s < request.patience_s and slot.entry.job not in critical:
        return _Guard()
    partition = slot.entry.partition
    ends = [
        (away.report.end_s, away.report.node_count)
        for away in offered.running.values()
        if away.entry.partition == partition
    ]
    start, there = offered.now_s, left
    for end, count in sorted(ends + before):
        if there >= slot.range.min:
            break
        start, there = end, there + count
    if there < slot.range.min:
        return _Guard()
    at_start = free + sum(count for end, count in ends if end <= start)
    return _Guard(slot=slot, start_s=start, extra=max(0, min(free, at_start - slot.range.min)))
