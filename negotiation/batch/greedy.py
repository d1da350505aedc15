"""The thesis's mapper: queue order, then best fit by shrinking what is mapped (Nagendra, algorithms 1-3).

Algorithm 1 as printed appends a mapped job twice and never resets ``mapped``; here each job has one record.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..runtime.runtime_machine import highest
from ..runtime.share import step_size
from .mapping import MapRequest, Slot, take

#: The step by which a mapped job shrinks, from the nodes that it has above its least.
Step = Callable[[int], int]


def greedy_map(request: MapRequest) -> list[Slot]:
    """Return the Map of algorithms 1-3."""
    free = {name: request.idle_in(name) for name in request.place.partitions}
    slots, skipped = _in_queue_order(request, free)
    step = partial(step_size, attempts=request.settings.max_attempts, steps=request.settings.steps)
    if not _best_fit(slots, free, step):
        return slots
    # Jobs beyond the depth use nodes that best fit has left, in their places of the queue.
    slots += [slot for slot in skipped if _map(slot, free)]
    rank = {entry.job: place for place, (entry, _) in enumerate(request.queue)}
    return sorted(slots, key=lambda slot: rank[slot.entry.job])


def _in_queue_order(request: MapRequest, free: dict[str, int]) -> tuple[list[Slot], list[Slot]]:
    """Algorithm 1: map what the offer promises and what fits; forward the others up to the depth."""
    slots: list[Slot] = []
    skipped: list[Slot] = []
    unmapped = 0
    for entry, span in request.queue:
        slot = Slot(entry, span, start_s=request.later.get(entry.job))
        promised = request.promised.get(entry.job, 0)
        if promised:
            slot.nodes, slot.start_s = promised, None
        else:
            _map(slot, free)
        if slot.nodes:
            slots.append(slot)
        elif unmapped < request.settings.depth:
            unmapped += 1
            slots.append(slot)
        else:
            skipped.append(slot)
    return slots, skipped


def _map(slot: Slot, free: dict[str, int]) -> bool:
    """Map a job to free nodes, as many of its range as there are."""
    partition = slot.entry.partition
    there = free.get(partition, 0).bit_count()
    if there < slot.range.min:
        return False
    slot.nodes = take(free, partition, min(slot.range.max, there))
    slot.start_s = None
    return True


def _best_fit(slots: list[Slot], free: dict[str, int], step: Step) -> bool:
    """Algorithm 2: try to map each reserved job by shrinking mapped ones; say whether any was."""
    room: dict[str, int] = {}
    for slot in slots:
        if slot.nodes:
            room[slot.entry.partition] = room.get(slot.entry.partition, 0) + _can_give(slot, step)
    any_mapped = False
    for slot in slots:
        partition = slot.entry.partition
        there = free.get(partition, 0).bit_count()
        if slot.nodes or there + room.get(partition, 0) < slot.range.min:
            continue
        room[partition] -= try_schedule(slot, slots, free, step)
        room[partition] += _can_give(slot, step)
        any_mapped = True
    return any_mapped


def _can_give(slot: Slot, step: Step) -> int:
    """Return what a mapped job gives at once: one step, within its range."""
    span = slot.count - slot.range.min
    return min(span, step(span)) if span > 0 else 0


def try_schedule(slot: Slot, slots: list[Slot], free: dict[str, int], step: Step) -> int:
    """Algorithm 3: shrink mapped jobs in increasing priority, each by a step, until a job's least count fits.

    Returns:
        How much less the mapped jobs can give from now on.
    """
    partition = slot.entry.partition
    lost = 0
    for other in reversed(slots):
        missing = slot.range.min - free.get(partition, 0).bit_count()
        if missing <= 0:
            break
        if not other.nodes or other.entry.partition != partition:
            continue
        before = _can_give(other, step)
        given = highest(other.nodes, before)
        free[partition] |= given
        other.nodes &= ~given
        lost += before - _can_give(other, step)
    slot.nodes = take(free, partition, min(slot.range.max, slot.range.min))
    slot.start_s = None
    return lost
