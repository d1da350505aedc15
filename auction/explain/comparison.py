"""Our award beside first-fit by priority and beside Slurm's own plan, job by job and in all."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

from ...bidgen.first_fit import Cluster, FirstFitPlacer
from ...cluster.jobs import Job
from ...cluster.schedule import Schedule
from ...cluster.snapshot import Snapshot
from ...cluster.tabular import Tabular, rows_of
from ...cluster.text import plural
from ..decide import window_of
from ..impossible import ImpossibleRequests
from ..options import StepOptions
from ..queue import in_order, queue_of
from ..reserve import Backfilling, StepReservations
from ..state import state_of

FORMAT = "aucsched-comparison/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The jobs that first-fit starts, with their node names, and the sum of their priorities."""

    started: Mapping[str, tuple[str, ...]]
    priority: Fraction | int


def first_fit_by_priority(snapshot: Snapshot, window: int | None, reserve: int = 0) -> Baseline:
    """Return what starts when each job in turn takes the first nodes that hold it.

    Args:
        snapshot: the cluster and its queue.
        window: jobs of highest priority that are looked at; None: all, as a step looks at those
            behind its window, too, once its award is made.
        reserve: this many of the first blocked jobs get a reservation, which later jobs do not
            delay, as in plain backfill.
    """
    state = state_of(snapshot)
    state = replace(state, impossible=ImpossibleRequests(state).why)
    size = window or len(snapshot.jobs) or 1
    queue = queue_of(snapshot, state.reader, StepOptions(window=size))
    fit = FirstFitPlacer(Cluster(state.columns, state.topology))
    backfilling = Backfilling(fit, StepReservations(state, reserve, later_only=True))
    backfilling.start(window_of(queue.waiting, size, state)[0])
    starts, named = backfilling.starts, state.columns.named
    return Baseline(
        started={start.demand.job.id: named(start.allocation.nodes) for start in starts},
        priority=sum((start.demand.job.priority for start in starts), start=Fraction(0)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One job: whether each starts it now, and its wait in Slurm's plan (None: not planned).

    A plan from before the snapshot's time counts as now; without a snapshot time no wait is known.
    """

    job: Job
    auction: bool
    first_fit: bool
    planned: float | None
    planned_wait_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """What one of them starts: jobs, their cores at least, the sum of their priorities."""

    jobs: int
    cores: int
    priority: Fraction | int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison(Tabular):
    """A queue under three schedulers.

    Attributes:
        lines: all pending jobs, highest priority first.
        within_s: counts the jobs that Slurm's plan starts within this many seconds.
        slurm: None where no job of the snapshot has an expected start time.

    Examples:
        >>> import aucsched
        >>> found = aucsched.compare(aucsched.Snapshot(nodes=[aucsched.Node(name="n", cores=8)]))
        >>> found.title()
        'the auction starts 0 jobs, priority 0; first-fit 0, priority 0'
    """

    lines: tuple[Line, ...]
    within_s: int
    auction: Total
    first_fit: Total
    slurm: Total | None

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison file's content (``aucsched-comparison/1``)."""
        totals = {"auction": self.auction, "first_fit": self.first_fit, "slurm": self.slurm}
        return {
            "format": FORMAT,
            "within_s": self.within_s,
            "totals": {
                name: None if one is None else asdict(one) | {"priority": float(one.priority)}
                for name, one in totals.items()
            },
            "jobs": rows_of(self.columns),
        }

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A row for each pending job, highest priority first: who starts it now, Slurm's plan."""
        lines = self.lines
        return {
            "job": [line.job.id for line in lines],
            "priority": [float(line.job.priority) for line in lines],
            "cores": [line.job.request.fewest_cores for line in lines],
            "auction": [line.auction for line in lines],
            "first_fit": [line.first_fit for line in lines],
            "slurm": [line.planned for line in lines],
            "slurm_wait_s": [line.planned_wait_s for line in lines],
        }

    def title(self) -> str:
        """Return the jobs and the sums of their priorities in one line, under each objective."""
        ours, theirs = self.auction, self.first_fit
        return (
            f"the auction starts {plural(ours.jobs, 'job')}, priority {float(ours.priority):.9g}; "
            f"first-fit {theirs.jobs}, priority {float(theirs.priority):.9g}"
        )


def compare(snapshot: Snapshot, schedule: Schedule, baseline: Baseline, within_s: int) -> Comparison:
    """Set a schedule beside first-fit by priority and the start times that Slurm expects."""
    ours = {award.job for award in schedule.started}
    now = snapshot.time
    lines = tuple(
        Line(
            job=job,
            auction=job.id in ours,
            first_fit=job.id in baseline.started,
            planned=start,
            planned_wait_s=None if start is None or now is None else max(0.0, start - now),
        )
        for job in in_order(snapshot.jobs)
        for start in [job.expected_start_time]
    )
    planned = any(line.planned is not None for line in lines)
    soon = [line.job for line in lines if line.planned_wait_s is not None and line.planned_wait_s <= within_s]
    return Comparison(
        lines=lines,
        within_s=within_s,
        auction=_total([line.job for line in lines if line.auction]),
        first_fit=_total([line.job for line in lines if line.first_fit]),
        slurm=_total(soon) if planned else None,
    )


def _total(jobs: list[Job]) -> Total:
    return Total(
        jobs=len(jobs),
        cores=sum(job.request.fewest_cores for job in jobs),
        priority=sum((job.priority for job in jobs), start=Fraction(0)),
    )
