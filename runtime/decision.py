"""Whether the runtime scheduler accepts a Map (Nagendra, 5.2.2, decision logic)."""

from __future__ import annotations

from collections.abc import Sequence

from .backfill import Planned
from .draft import Draft
from .standing import usable


def accepts(
    draft: Draft,
    reserved: Sequence[Planned],
    *,
    forwarded: int,
    attempt: int,
    attempts: int,
    rejected_with: int | None,
    any_idle: bool = False,
) -> tuple[bool, str]:
    """Return the decision about a Map that the transformation would serve, and why.

    Args:
        draft: the transformation, before equipartition.
        reserved: forwarded jobs that would not start.
        forwarded: how many jobs the Map holds.
        attempt: from 1 to ``attempts``; the last one accepts.
        attempts: the limit.
        rejected_with: how many jobs would have started when this party last rejected in the transaction.
        any_idle: reject while nodes stay idle, whether or not a job could use them (the thesis).
    """
    starting = len(draft.starts)
    if attempt >= attempts:
        return True, "last attempt"
    if rejected_with is not None and starting <= rejected_with:
        return False, f"{starting} jobs would start, no more than before"
    if starting == 1 and forwarded > 1 and 2 * attempt <= attempts:
        return False, "only one of the jobs would start"
    if any_idle and draft.idle:
        return False, "nodes would stay idle"
    if _idle_is_useful(draft, reserved):
        return False, "nodes would stay idle that a job could use"
    return True, f"{starting} jobs start"


def _idle_is_useful(draft: Draft, reserved: Sequence[Planned]) -> bool:
    """Say whether idle nodes remain that a forwarded job or a growing one could use.

    The thesis rejects whenever nodes stay idle (``any_idle``): that drags rigid loads to the last attempt.
    """
    for partition in draft.machine.partitions:
        idle = draft.idle_in(partition).bit_count()
        if not idle:
            continue
        if any(
            p.entry.partition == partition
            and p.entry.min_nodes <= usable(p.entry, draft.machine, draft.idle).bit_count()
            for p in reserved
        ):
            return True
        if any(draft.count[job.entry.job] < draft.reach(job.entry.job) for job in draft.elastic(partition)):
            return True
    return False
