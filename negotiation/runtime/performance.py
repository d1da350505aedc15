"""How long a job takes on how many nodes: by its model, as runs of its name have shown, for its deadline.

Models are learned from jobs that ended, for those of the same name (Nagendra, section 4.1.1): a report of
such a job says how long the whole job takes on each node count that it ran on, as the runtime scheduler
measured it. The mean over all runs of a name on a count is what is known of it.

A deadline (section 4.3) that no count can keep any more binds nothing: the job runs as others do, and
misses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

from ..job_records import MapEntry
from ..speedup import relative_speed

#: Times are kept to the microsecond, so that ends which are equal on paper are equal here.
DIGITS = 6


def run_time_s(entry: MapEntry, count: int) -> float:
    """Return how long a job is expected to run on that many nodes."""
    rate = relative_speed(entry.speedup, count, entry.min_nodes)
    return round(entry.time_at_min_s / rate, DIGITS)


def needed_count(entry: MapEntry, now_s: float) -> int:
    """Return the fewest nodes on which a job that started now would end in time; its least if none do."""
    if entry.deadline_s is None:
        return entry.min_nodes
    counts = range(entry.min_nodes, entry.max_nodes + 1)
    fitting = (count for count in counts if now_s + run_time_s(entry, count) <= entry.deadline_s)
    return next(fitting, entry.min_nodes)


def is_pressing(entry: MapEntry, now_s: float) -> bool:
    """Whether a waiting job has less slack to its deadline than it will run, and can still keep it."""
    if entry.deadline_s is None:
        return False
    shortest_s = min(run_time_s(entry, count) for count in range(entry.min_nodes, entry.max_nodes + 1))
    return now_s + shortest_s <= entry.deadline_s < now_s + 2 * shortest_s


#: Of a job's name and a node count: how many runs, and their mean run time in seconds.
Known: TypeAlias = dict[str, dict[int, tuple[int, float]]]
#: A name, a node count, and the seconds that the whole job takes on it.
Measured: TypeAlias = tuple[str, int, float]


def learned(known: Known, measured: Iterable[Measured]) -> Known:
    """Return what is known after some measurements."""
    after = dict(known)
    for name, count, seconds in measured:
        counts = dict(after.get(name, {}))
        runs, mean = counts.get(count, (0, 0.0))
        counts[count] = (runs + 1, mean + (seconds - mean) / (runs + 1))
        after[name] = counts
    return after


def informed(entry: MapEntry, known: Mapping[str, Mapping[int, tuple[int, float]]]) -> MapEntry:
    """Return a job with the run time and the speedup that runs of its name have shown.

    One count known: the user's model converts its run time. Several: their run times are the model, a table
    that the user's goes on with beyond them; as no model falls with more nodes, a count that was slower than
    fewer nodes counts as they do. What the job will take in truth stays what it was.
    """
    counts = known.get(entry.name) if entry.name else None
    if not counts:
        return entry
    model = entry.true_speedup or entry.speedup
    true_s = entry.time_at_min_s if entry.true_time_at_min_s is None else entry.true_time_at_min_s
    first = min(counts)
    at_first_s = counts[first][1]
    text = model
    if len(counts) > 1:
        text = _table(counts, entry, model)
    least_s = at_first_s * relative_speed(text, first, entry.min_nodes)
    return msgspec.structs.replace(
        entry, time_at_min_s=least_s, speedup=text, true_time_at_min_s=true_s, true_speedup=model
    )


def _table(counts: Mapping[int, tuple[int, float]], entry: MapEntry, model: str) -> str:
    """Return a table of speedups, in units of which the first count known has its own number."""
    first, last = min(counts), max(counts)
    points: dict[int, float] = {}
    if entry.min_nodes < first:
        points[entry.min_nodes] = first * relative_speed(model, entry.min_nodes, first)
    best = 0.0
    for count in sorted(counts):
        points[count] = best = max(best, first * counts[first][1] / counts[count][1])
    if entry.max_nodes > last:
        points[entry.max_nodes] = best * relative_speed(model, entry.max_nodes, last)
    return "table:" + ",".join(f"{count}={value!r}" for count, value in points.items())
