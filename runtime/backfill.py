"""The backfill plan of the forwarded jobs: who starts now, when the others could (algorithm 5, line 1).

Jobs are served in the order of the Map; each takes its nodes for as long as it is expected to run, so that
none delays one before it (conservative backfilling; the free nodes over time are Slurm's node space map).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from .draft import Draft
from .machine import DIGITS
from .profile import Profile
from .records import MapEntry
from .speedup import relative_speed


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """When a forwarded job would start, on how many nodes."""

    entry: MapEntry
    start_s: float
    end_s: float
    count: int


def run_time_s(entry: MapEntry, count: int) -> float:
    """Return how long a job is expected to run on so many nodes."""
    rate = relative_speed(entry.speedup, count, entry.min_nodes)
    return round(entry.time_at_min_s / rate, DIGITS)


def profiles_of(draft: Draft) -> dict[str, Profile]:
    """Return the free nodes of every partition over the time to come, as running jobs leave them."""
    ends: dict[str, list[tuple[float, int]]] = {name: [] for name in draft.machine.partitions}
    for name, job in draft.machine.running.items():
        ends[draft.partition(name)].append((draft.end_s(job), draft.count[name]))
    for entry, nodes in draft.starts.values():
        count = nodes.bit_count()
        ends[entry.partition].append((round(draft.now_s + run_time_s(entry, count), DIGITS), count))
    return {
        name: Profile.of_running(draft.now_s, draft.idle_in(name).bit_count(), sorted(ends[name]))
        for name in draft.machine.partitions
    }


def plan(draft: Draft, entries: Sequence[MapEntry], wanted: dict[str, int]) -> list[Planned]:
    """Start in the draft what can start now, and return the reservations of the others.

    Args:
        draft: takes the starts.
        entries: in the order of the Map; those that would start already are left out.
        wanted: nodes that a mapped job is mapped to, by job.
    """
    profiles = profiles_of(draft)
    _reserve_suspended(draft, profiles)
    reserved: list[Planned] = []
    # Reservations only take nodes away: a job like one before it cannot start before that one.
    tried: dict[tuple[str, int, float], float] = {}
    for entry in entries:
        profile = profiles.get(entry.partition)
        if entry.job in draft.starts or profile is None:
            continue
        count = _count_now(profile, entry)
        if count:
            profile.add(draft.now_s, draft.now_s + run_time_s(entry, count), -count)
            draft.start(entry, count, wanted.get(entry.job, 0))
        else:
            reserved.append(_reserve(profile, entry, tried))
    return reserved


def _count_now(profile: Profile, entry: MapEntry) -> int:
    """Return on how many nodes a job may start now without delaying any before it, 0: on none.

    A mapped job takes what it is mapped to; else the most of its negotiated range.
    """
    low, high = entry.node_count.min, entry.node_count.max
    if entry.node_cnt:
        low = high = entry.node_cnt
    for count in range(min(high, profile.free[0]), low - 1, -1):
        if profile.holds(count, run_time_s(entry, count)):
            return count
    return 0


def _reserve(profile: Profile, entry: MapEntry, tried: dict[tuple[str, int, float], float]) -> Planned:
    """Reserve the first time at which a job's least negotiated count is free."""
    count = entry.node_count.min
    seconds = run_time_s(entry, count)
    like = (entry.partition, count, seconds)
    start = profile.earliest(count, seconds, after=tried.get(like, -inf))
    tried[like] = start
    end = round(start + seconds, DIGITS) if start < inf else start
    profile.add(start, end, -count)
    return Planned(entry=entry, start_s=start, end_s=end, count=count)


def _reserve_suspended(draft: Draft, profiles: dict[str, Profile]) -> None:
    """Let suspended jobs come first: what they wait for is nobody else's."""
    for job in draft.machine.suspended.values():
        profile = profiles[job.entry.partition]
        count = resume_count(job.entry, job.count)
        seconds = max(job.planned_end_s(count, job.since_s) - job.since_s, 0.0)
        start = profile.earliest(count, seconds)
        profile.add(start, start + seconds, -count)


def resume_count(entry: MapEntry, count: int) -> int:
    """Return the fewest nodes on which a suspended job goes on: malleable ones take their minimum."""
    return entry.min_nodes if entry.type == "malleable" else count


def total_nodes(entries: Iterable[MapEntry]) -> int:
    """Return the nodes that mapped entries hold together."""
    return sum(entry.node_cnt for entry in entries)
