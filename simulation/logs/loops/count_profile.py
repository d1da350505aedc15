"""Free processors over the time to come, as columns (on lists: negotiation/runtime/node_profile.py)."""

from __future__ import annotations

from math import inf

from .loop_state import STEPS, Column, ConservativePlan


def add(plan: ConservativePlan, counts: Column, start: float, end: float, size: int) -> None:
    """Add free processors from ``start`` up to ``end``; a negative size takes them."""
    if start >= end:
        return
    first = _cut(plan, counts, start)
    last = _cut(plan, counts, end)
    for place in range(first, last):
        plan.free[place] += size
    _join(plan, counts, last)
    _join(plan, counts, first)


def _cut(plan: ConservativePlan, counts: Column, time: float) -> int:
    """Return the place of the step at a time, made when there is none."""
    low, high = 0, counts[STEPS]
    while low < high:
        middle = (low + high) // 2
        if plan.time[middle] < time:
            low = middle + 1
        else:
            high = middle
    if low == counts[STEPS] or plan.time[low] != time:
        for place in range(counts[STEPS], low, -1):
            plan.time[place] = plan.time[place - 1]
            plan.free[place] = plan.free[place - 1]
        plan.time[low] = time
        plan.free[low] = plan.free[low - 1]
        counts[STEPS] += 1
    return low


def _join(plan: ConservativePlan, counts: Column, step: int) -> None:
    """Remove a step that is none."""
    if 0 < step < counts[STEPS] and plan.free[step] == plan.free[step - 1]:
        for place in range(step, counts[STEPS] - 1):
            plan.time[place] = plan.time[place + 1]
            plan.free[place] = plan.free[place + 1]
        counts[STEPS] -= 1


def advance(plan: ConservativePlan, counts: Column, now: float) -> None:
    """Forget the time before now."""
    first = 0
    while first + 1 < counts[STEPS] and plan.time[first + 1] <= now:
        first += 1
    if first > 0:
        for place in range(first, counts[STEPS]):
            plan.time[place - first] = plan.time[place]
            plan.free[place - first] = plan.free[place]
        counts[STEPS] -= first
    plan.time[0] = now


def earliest(
    plan: ConservativePlan, counts: Column, size: int, duration: float, before: float, latest: float
) -> float:
    """Return the first time from which processors stay free for a duration.

    From ``before`` on they count as free; only times before ``latest`` are tried, and if none will do,
    ``before`` is returned.
    """
    start = -1.0
    for place in range(counts[STEPS]):
        time = plan.time[place]
        if time >= before:
            break
        if start < 0:
            if time >= latest:
                break
        elif time >= start + duration:
            break
        if plan.free[place] < size:
            start = -1.0
        elif start < 0:
            start = time
    return before if start < 0 else start


def most(plan: ConservativePlan, counts: Column, until: float) -> int:
    """Return the largest number of processors free at any time before ``until``."""
    found = plan.free[0]
    place = 1
    while place < counts[STEPS] and plan.time[place] < until:
        found = max(found, plan.free[place])
        place += 1
    return int(found)


def runs(plan: ConservativePlan, counts: Column, size: int, latest: float) -> tuple[float, float]:
    """Return the length of the longest run of free processors that begins before a time; the latest end."""
    longest = reach = start = -1.0
    place = 0
    while place < counts[STEPS] and (start >= 0 or plan.time[place] < latest):
        if plan.free[place] < size:
            if start >= 0:
                longest, reach = max(longest, plan.time[place] - start), plan.time[place]
            start = -1.0
        elif start < 0:
            start = plan.time[place]
        place += 1
    return (inf, inf) if start >= 0 else (longest, reach)
