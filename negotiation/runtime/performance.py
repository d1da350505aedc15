"""Performance models learned from jobs that ended, for those of the same name (Nagendra, section 4.1.1).

A report of a job that ended says how long the whole job takes on each node count that it ran on, as the
runtime scheduler measured it. The mean over all runs of a name on a count is what is known of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

from .records import MapEntry
from .speedup import relative_speed

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
