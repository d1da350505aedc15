"""Which jobs take part: the queue in order, the window, and those that cannot start anyway.

Under objective ``response`` a job counts the bounded slowdown that its start saves (``worth_of``).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from types import MappingProxyType

from ..cluster.errors import InputError
from ..cluster.jobs import Job, hold_words, is_held, may_start
from ..cluster.resources.demand import Demand, DemandReader, Ineligible
from ..cluster.schedule import Reason, Refusal
from ..cluster.snapshot import Snapshot
from ..cluster.text import did_you_mean, plural
from ..cluster.value_types import copied
from ..cluster.workload import BOUND_S
from ..models.model import Model
from .options import StepOptions

#: An array, or a list of its tasks as ``schedule`` prints it.
_TASKS = re.compile(r"(?P<array>\d+)(?:$|_\[(?P<task>\d+))")
#: A part of a heterogeneous job, as squeue prints it: its job has an id of its own.
_PART = re.compile(r"(\d{1,18})\+(\d{1,4})", re.ASCII)


@dataclass(frozen=True, eq=False, kw_only=True)
class Queue:
    """The pending jobs, sorted out.

    Attributes:
        jobs: all of them, highest priority first.
        waiting: demands of those that can take part.
        size: how many of these are the window.
        unable: the others, and why.
    """

    jobs: tuple[Job, ...]
    waiting: tuple[Demand, ...]
    size: int
    unable: Mapping[str, Refusal]

    @property
    def window(self) -> tuple[Demand, ...]:
        """The first that can take part."""
        return self.waiting[: self.size]

    @cached_property
    def refused(self) -> dict[str, Refusal]:
        """Those that cannot take part, and those behind the window, which start on what it leaves."""
        ahead = f"{plural(self.size, 'job')} of the window {'is' if self.size == 1 else 'are'} ahead of it"
        behind = (demand.job.id for demand in self.waiting[self.size :])
        refusals = {job: Refusal(job=job, reason=Reason.WINDOW, detail=ahead) for job in behind}
        return {**self.unable, **refusals}


def in_order(jobs: tuple[Job, ...]) -> tuple[Job, ...]:
    """Return jobs by priority, highest first; ties by submit time, then by order in the file."""
    never = float("inf")
    return tuple(
        sorted(jobs, key=lambda job: (-job.priority, never if job.submit_time is None else job.submit_time))
    )


def pending_job(snapshot: Snapshot, name: str) -> Job:
    """Return a pending job; of an array (``13``, ``13_[6-91]``) the first task; ``13+2`` is job 15.

    Raises:
        InputError: no such job waits.
    """
    found = {job.id: job for job in in_order(snapshot.jobs)}
    if name not in found and (tasks := _TASKS.match(name)):
        wanted = tasks["array"], tasks["task"]
        parts = ((one, *one.split("_", 1)) for one in found if "_" in one)
        name = next((one for one, *part in parts if wanted in ((part[0], None), tuple(part))), name)
    if (part := _PART.fullmatch(name)) and (own := str(int(part[1]) + int(part[2]))) in found:
        name = own if any("heterogeneous" in text for text in found[own].unsupported) else name
    if name in found:
        return found[name]
    if any(job.id == name for job in snapshot.running):
        raise InputError(f"{name!r} is running already", path="jobs")
    meant = "" if name.isdigit() else did_you_mean(name, found)
    raise InputError(f"{name!r} is not a pending job of this snapshot{meant}", path="jobs")


def queue_of(
    snapshot: Snapshot,
    reader: DemandReader,
    options: StepOptions,
    aside: Mapping[str, Refusal] = MappingProxyType({}),
) -> Queue:
    """Return the queue with its window; jobs that never start, or not in this model, are not in it.

    Nor do those ``aside``, by id: they made a step fail.
    """
    jobs, size, model = snapshot.jobs, options.window, options.auction
    if options.valuation.of_waits:
        # A held job stays held: its priority is 0.
        jobs = tuple(valued(job, snapshot.time) if job.priority else job for job in jobs)
    jobs = _promised_first(in_order(jobs), snapshot.time, options)
    waiting: list[Demand] = []
    unable: dict[str, Refusal] = {}
    looked_at = reader.looked_at
    for job in jobs:
        # Behind the window no job has a place in it.
        index = min(size, len(waiting))
        known = looked_at.get(job.id)
        if known is None or known[0] is not job or known[1] is not model:
            try:
                known = looked_at[job.id] = job, model, _look_at(job, model, reader)
            except Exception as error:  # noqa: BLE001 - others may start, and another pass looks again
                known = job, model, set_aside(job.id, error)
        found = aside.get(job.id) or known[2]
        if isinstance(found, Refusal):
            unable[job.id] = found
            continue
        if found.index != index:
            found = copied(found, index=index)
            looked_at[job.id] = job, model, found
        waiting.append(found)
    return Queue(jobs=jobs, waiting=tuple(waiting), size=size, unable=unable)


def _promised_first(jobs: tuple[Job, ...], now: float | None, options: StepOptions) -> tuple[Job, ...]:
    """Return jobs in their order, but first those whose promised start has come."""
    if options.promise == "none" or now is None:
        return jobs
    return tuple(sorted(jobs, key=lambda job: job.promised_start is None or job.promised_start > now))


def set_aside(job: str, error: Exception) -> Refusal:
    """Return the refusal of a job that made reading, bidding or checking fail."""
    detail = f"it made the step fail and was set aside: {type(error).__name__}: {error}"
    return Refusal(job=job, reason=Reason.SET_ASIDE, detail=detail)


def _look_at(job: Job, model: type[Model], reader: DemandReader) -> Demand | Refusal:
    """Return a job's demand, or why it never starts, or not in this model."""
    if not may_start(job):
        reason = Reason.HELD if is_held(job) else Reason.NOT_ELIGIBLE
        return Refusal(job=job.id, reason=reason, detail=hold_words(job))
    unread = "; ".join(job.unsupported)
    missing = f"cannot be expressed: {unread}" if unread else model.cannot_express(job)
    if not missing:
        found = reader.read(job, 0)
        if isinstance(found, Ineligible):
            return Refusal(job=job.id, reason=found.reason, detail=found.detail)
        if not (missing := model.cannot_place(found)):
            return found
    return Refusal(job=job.id, reason=Reason.NOT_EXPRESSIBLE, detail=missing)


#: Worth of a second of the shortest job's wait: integers, as the auctions compare them exactly.
_STEPS = 1_000_000


def worth_of(job: Job, waited_s: float, used_share: float = 1.0) -> int:
    """Return what a second less of a job's wait is worth, at least 1.

    It saves 1 / max(estimate, 10 s) of bounded slowdown. That grows with the fourth root of the
    slowdown that the job has by now, 1 + wait / estimate, so that equals are served by their waits.
    A job without a time limit is worth least.

    Args:
        job: its time limit counts.
        waited_s: so far.
        used_share: the share of its limit that is its estimate, above 0.
    """
    if job.time_limit_s is None:
        return 1
    length = max(job.time_limit_s * used_share, BOUND_S)
    saved = sqrt(sqrt(1.0 + max(waited_s, 0.0) / length)) * BOUND_S / length
    return max(1, round(_STEPS * saved))


def valued(job: Job, now: float | None) -> Job:
    """Return a queue's job with its worth as priority; one without a submission has not waited."""
    waited = 0.0 if now is None or job.submit_time is None else now - job.submit_time
    return replace(job, priority=worth_of(job, waited))
