"""Which running jobs the waiting ones depend on (DBES; algorithm 5, lines 5 and 15)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from .backfill_plan import Planned
from .tentative import TentativeState

#: One end time may be several jobs': all of them hold the waiting job up, or the thesis's single one.
Dependencies = Literal["all", "one"]


def update_dependencies(draft: TentativeState, reserved: Sequence[Planned], mode: Dependencies) -> None:
    """Let running malleable jobs know which waiting job depends on their end.

    A reserved job depends on those that are expected to end when it would start; the first in the Map's order
    has the claim. A job that starts frees the ones that were kept or expanded for it.
    """
    draft.holds_for = {}
    for job in [job for job, waiting in draft.grown_for.items() if waiting in draft.starts]:
        del draft.grown_for[job]
    ends = _ends(draft)
    for planned in reserved:
        holders = ends.get((planned.entry.partition, planned.start_s), [])
        for job in holders if mode == "all" else holders[:1]:
            draft.holds_for.setdefault(job, planned.entry.job)


def _ends(draft: TentativeState) -> dict[tuple[str, float], list[str]]:
    """Return the malleable jobs by partition and expected end, the largest first."""
    ends: dict[tuple[str, float], list[str]] = {}
    for partition in draft.machine.partitions:
        for job in draft.elastic(partition):
            ends.setdefault((partition, draft.end_s(job)), []).append(job.entry.job)
    for jobs in ends.values():
        jobs.sort(key=lambda job: -draft.count[job])
    return ends


def holders_of(draft: TentativeState, waiting: str) -> list[str]:
    """Return the running jobs whose end a waiting job depends on."""
    return [job for job, claimed in draft.holds_for.items() if claimed == waiting]
