"""Which jobs take part: the queue in order, the window, and those that cannot start anyway."""

from __future__ import annotations

from dataclasses import dataclass

from ..bidgen.columns import Columns
from ..bidgen.demand import Demand, DemandReader, Ineligible
from ..cluster.jobs import Job
from ..cluster.schedule import Reason, Refusal
from ..cluster.snapshot import Snapshot
from ..models.ipsched import cannot_express
from .options import StepOptions


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Queue:
    """The pending jobs, sorted out.

    Attributes:
        jobs: all of them, highest priority first.
        window: demands of the first that can take part.
        refused: those that cannot, and those beyond the window.
    """

    jobs: tuple[Job, ...]
    window: tuple[Demand, ...]
    refused: dict[str, Refusal]


def in_order(jobs: tuple[Job, ...]) -> tuple[Job, ...]:
    """Return jobs by priority, highest first; ties by submit time, then by their order in the file."""
    never = float("inf")
    return tuple(
        sorted(jobs, key=lambda job: (-job.priority, never if job.submit_time is None else job.submit_time))
    )


def queue_of(snapshot: Snapshot, columns: Columns, options: StepOptions) -> Queue:
    """Return the queue with its window; jobs that never start, or not in this model, take no place in it."""
    size = options.window
    reader = DemandReader(snapshot, columns)
    jobs = in_order(snapshot.jobs)
    window: list[Demand] = []
    refused: dict[str, Refusal] = {}
    for job in jobs:
        refusal = _never_starts(job) or _not_in(options.model, job)
        if refusal is None and len(window) == size:
            detail = f"the {size} jobs of the window have higher priority"
            refusal = Refusal(job=job.id, reason=Reason.WINDOW, detail=detail)
        if refusal is None:
            demand = reader.read(job, len(window))
            if isinstance(demand, Demand):
                window.append(demand)
                continue
            refusal = _ineligible(job, demand)
        refused[job.id] = refusal
    return Queue(jobs=jobs, window=tuple(window), refused=refused)


def _never_starts(job: Job) -> Refusal | None:
    if job.hold is not None:
        return Refusal(job=job.id, reason=Reason.HELD, detail=job.hold or "held")
    if job.priority == 0:
        return Refusal(job=job.id, reason=Reason.HELD, detail="priority 0")
    if job.unsupported:
        detail = f"cannot be expressed: {'; '.join(job.unsupported)}"
        return Refusal(job=job.id, reason=Reason.NOT_EXPRESSIBLE, detail=detail)
    return None


def _not_in(model: str, job: Job) -> Refusal | None:
    missing = cannot_express(job) if model == "ipsched" else ""
    return Refusal(job=job.id, reason=Reason.NOT_EXPRESSIBLE, detail=missing) if missing else None


def _ineligible(job: Job, found: Ineligible) -> Refusal:
    return Refusal(job=job.id, reason=found.reason, detail=found.detail)
