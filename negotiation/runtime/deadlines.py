"""Jobs that should have ended at a time (Nagendra, section 4.3): the node counts that they need.

A deadline that no count can keep any more binds nothing: the job runs as others do, and misses it.
"""

from __future__ import annotations

from ..messages import MapEntry
from .backfill_plan import run_time_s
from .runtime_machine import RunRecord


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


def least_count(job: RunRecord, now_s: float) -> int:
    """Return to how many nodes a running job may shrink.

    Its least; with a deadline the fewest that keep it. One that would miss it now keeps what it has, as long
    as more nodes could help.
    """
    entry = job.entry
    if entry.deadline_s is None:
        return entry.min_nodes
    for count in range(entry.min_nodes, job.count + 1):
        if job.planned_end_s(count, now_s) <= entry.deadline_s:
            return count
    return job.count if job.planned_end_s(entry.max_nodes, now_s) <= entry.deadline_s else entry.min_nodes


def rescue_count(job: RunRecord, now_s: float) -> int:
    """Return to how many nodes a running job has to grow for its deadline; what it has where none helps."""
    entry = job.entry
    if entry.deadline_s is None or job.planned_end_s(job.count, now_s) <= entry.deadline_s:
        return job.count
    counts = range(job.count + 1, entry.max_nodes + 1)
    return next((one for one in counts if job.planned_end_s(one, now_s) <= entry.deadline_s), job.count)
