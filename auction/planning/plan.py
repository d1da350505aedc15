"""A full schedule of a snapshot: a start for every job that can ever start (Nagendra 2016, 3.1.1).

Jobs are planned one after another in queue order, each at the earliest moment from which on nodes hold it
until its time limit beside running jobs, advance reservations, licences and the jobs planned before it: what
conservative backfilling reserves. Where the nodes are chosen is first-fit, as everywhere else. A snapshot is
planned as it stands: after a change, plan the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite
from pathlib import Path
from typing import Any

from ...bidgen.generate import place_alone
from ...cluster.errors import InputError
from ...cluster.keywords import of_type
from ...cluster.nodes import Resources
from ...cluster.resources.allocation import Allocation, resources_of
from ...cluster.resources.columns import Columns
from ...cluster.resources.demand import Demand, DemandReader
from ...cluster.schedule import Reason, Refusal, amount_document, document_text
from ...cluster.snapshot import Snapshot
from ...cluster.tabular import Tabular, chart
from ...cluster.text import plural
from ...formats.native.read import snapshot_of
from ..forecast import Forecast
from ..options import StepOptions
from ..queue import queue_of
from ..state import state_of
from .timeline import ClusterTimeline

FORMAT = "aucsched-plan/1"
#: A running job past its end is assumed to end this many seconds from now.
OVERDUE_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """A job with its planned start and what it will hold on each node.

    Attributes:
        start: seconds since the epoch, or from now on where the snapshot has no time.
        end: after its time limit; None without one: it is taken to hold its nodes for ever.
    """

    job: str
    start: float
    end: float | None
    nodes: Mapping[str, Resources]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan(Tabular):
    """The schedule of a snapshot: every pending job is in exactly one of the two lists.

    Attributes:
        time: now.
        planned: the jobs that get a start, in queue order.
        unplanned: jobs that can never start at present, with their reasons.
        overdue: running jobs past their end, assumed to end in a second.
        endless: running jobs without an end: what they hold is never given back.

    Examples:
        >>> import aucsched
        >>> job = aucsched.Job(id="7", priority=5, request=aucsched.Request(cores=4))
        >>> found = aucsched.plan(aucsched.Snapshot(nodes=[aucsched.Node(name="n", cores=4)], jobs=[job]))
        >>> found.title()
        '1 job planned, 1 of them now; 0 are not'
    """

    time: float
    planned: tuple[PlannedJob, ...]
    unplanned: tuple[Refusal, ...]
    overdue: tuple[str, ...]
    endless: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan file's content as plain dicts, lists, numbers and text."""
        return {
            "format": FORMAT,
            "time": self.time,
            "planned": [
                {
                    "job": one.job,
                    "start": one.start,
                    "end": one.end,
                    "nodes": {name: amount_document(use) for name, use in one.nodes.items()},
                }
                for one in self.planned
            ],
            "unplanned": [
                {"job": one.job, "reason": one.reason.value, "detail": one.detail} for one in self.unplanned
            ],
            "overdue": list(self.overdue),
            "endless": list(self.endless),
        }

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A row for each planned job, in queue order; times as in ``PlannedJob``."""
        return {
            "job": [one.job for one in self.planned],
            "start": [one.start for one in self.planned],
            "end": [one.end for one in self.planned],
            "wait_s": [one.start - self.time for one in self.planned],
            "cores": [sum(use.cores for use in one.nodes.values()) for one in self.planned],
            "node_count": [len(one.nodes) for one in self.planned],
            "nodes": [",".join(one.nodes) for one in self.planned],
        }

    def title(self) -> str:
        """Return the plan in one line."""
        now = sum(one.start == self.time for one in self.planned)
        return f"{plural(len(self.planned), 'job')} planned, {now} of them now; {len(self.unplanned)} are not"

    def plot(self, snapshot: Snapshot, path: str | Path | None = None) -> Any:
        """Draw the nodes over the time to come; arguments, result and errors as in ``Schedule.plot``."""
        draw = chart("plot", path, "reports.gantt", "draw_plan")
        return draw(snapshot, self, None if path is None else Path(path))

    def to_json(self) -> str:
        """Return the plan file's text (format ``aucsched-plan/1``): the same plan gives the same bytes."""
        return document_text(self.to_dict())


def make_plan(
    snapshot: Snapshot | str | Path, *, jobs: int | None = None, progress: Callable[[int], None] | None = None
) -> Plan:
    """Return the schedule of a snapshot.

    Args:
        snapshot: the cluster, its running jobs and its queue, or a snapshot file.
        jobs: how many of the first jobs in queue order to plan; None: all.
        progress: called with the number of jobs that are done.

    Raises:
        InputError: the file cannot be read, or the snapshot has no time to compare running jobs' ends or
            reservations with.
        OptionError: the snapshot is neither one nor a file, or ``jobs`` is no number.

    Examples:
        >>> import aucsched
        >>> jobs = [
        ...     aucsched.Job(id=name, priority=9 - place, request=aucsched.Request(cores=4), time_limit_s=60)
        ...     for place, name in enumerate("ab")
        ... ]
        >>> snapshot = aucsched.Snapshot(nodes=[aucsched.Node(name="n", cores=4)], jobs=jobs)
        >>> aucsched.plan(snapshot).columns["wait_s"]
        [0.0, 60.0]
    """
    snapshot, jobs = snapshot_of(snapshot), of_type("jobs", jobs, int | None)
    check_time(snapshot)
    now = snapshot.time or 0.0
    planner = Planner(snapshot)
    size = len(snapshot.jobs) if jobs is None else jobs
    queue = queue_of(snapshot, planner.reader, StepOptions(window=max(size, 1)))
    planned: dict[str, PlannedJob] = {}
    for done, demand in enumerate(queue.window):
        found = planner.plan(demand)
        if found is not None:
            planned[found.job] = found
        if progress is not None:
            progress(done + 1)
    refused = queue.refused | {
        demand.job.id: _never(demand.job.id) for demand in queue.window if demand.job.id not in planned
    }
    return Plan(
        time=now,
        planned=tuple(planned.values()),
        unplanned=tuple(refused[job.id] for job in queue.jobs if job.id in refused),
        overdue=tuple(job.id for job in snapshot.running if job.end_time is not None and job.end_time <= now),
        endless=tuple(job.id for job in snapshot.running if job.end_time is None),
    )


def check_time(snapshot: Snapshot) -> None:
    """Raise InputError where ends or reservations have no time to be compared with."""
    if snapshot.time is not None:
        return
    if snapshot.reservations or any(job.end_time is not None for job in snapshot.running):
        raise InputError("a plan compares ends and reservations with it: it is missing", path="time")


def _duration(demand: Demand) -> float:
    """Return for how long a job is planned, in seconds; infinite without a time limit."""
    return inf if demand.job.time_limit_s is None else float(demand.job.time_limit_s)


def _with_ends_to_come(snapshot: Snapshot, now: float) -> Snapshot:
    """Return the snapshot with no running job past its end: it holds what it has, a moment longer."""
    running = tuple(
        replace(job, end_time=now + OVERDUE_S) if job.end_time is not None and job.end_time <= now else job
        for job in snapshot.running
    )
    return replace(snapshot, running=running)


def _never(job: str) -> Refusal:
    detail = "no end of running or planned jobs lets it start: it asks for more than there will be"
    return Refusal(job=job, reason=Reason.NO_FIT, detail=detail)


class Planner:
    """Plans jobs one after another on what those before them leave.

    Args:
        snapshot: the cluster; running jobs past their end are taken to end in a moment.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        snapshot = _with_ends_to_come(snapshot, snapshot.time or 0.0)
        state = state_of(snapshot)
        self._topology, self.columns, self.reader = state.topology, state.columns, state.reader
        self._has_reservations = bool(state.changes)
        self._timeline = ClusterTimeline(Forecast(state), self.columns, snapshot.running)
        # Jobs that ask alike start in the order in which they are planned: nothing is ever given back.
        self._earliest: dict[str, float] = {}
        self._readers: dict[tuple[float | None, bytes], DemandReader] = {}

    def plan(self, demand: Demand) -> PlannedJob | None:
        """Return the job at its earliest start, which is taken; None when it can never start."""
        found = self.place(demand)
        if found is None:
            return None
        start, allocation = found
        end = start + _duration(demand)
        return PlannedJob(
            job=demand.job.id,
            start=start,
            end=end if isfinite(end) else None,
            nodes=resources_of(demand, allocation, self.columns.names),
        )

    def place(self, demand: Demand, *, only_now: bool = False) -> tuple[float, Allocation] | None:
        """Return a job's earliest start and where, which is taken; None when it can never start.

        With ``only_now``: None where that is later.
        """
        job = demand.job
        alike = repr((job.request, job.partition, job.user, job.time_limit_s, self.columns.pools.alike(job)))
        since, duration = self._earliest.get(alike, -inf), _duration(demand)
        if only_now and since > self.now:
            return None
        start, allocation = next(self._starts(demand, duration, since, only_now=only_now), (inf, None))
        if allocation is None:
            self._earliest[alike] = inf if not only_now else since
            return None
        self._earliest[alike] = start
        self._timeline.take(allocation, job, start, start + duration)
        return start, allocation

    def fits_at(self, demand: Demand, start: float, duration: float) -> bool:
        """Return whether a job that runs for so long could start at one of ``moments``."""
        return any(time == start for time, _ in self._starts(demand, duration, start, only=start))

    @property
    def now(self) -> float:
        """The first moment."""
        return float(self._timeline.times[0])

    @property
    def moments(self) -> list[float]:
        """Times at which anything changes, the first is now."""
        found: list[float] = self._timeline.times.tolist()
        return found

    def _starts(
        self,
        demand: Demand,
        duration: float,
        since: float,
        *,
        only_now: bool = False,
        only: float | None = None,
    ) -> Iterator[tuple[float, Allocation]]:
        """Yield the moments at which a job fits, and where, from a time on, or at one time only."""
        only = self.now if only_now else only
        anywhere = self._read(demand, replace(self.columns, takes_jobs=self.columns.total.cores > 0), None)
        if anywhere is None or since == inf:
            return
        for moment in self._timeline.possible(anywhere, duration, since).tolist():
            columns = self._timeline.columns(moment, duration)
            time = float(self._timeline.times[moment])
            if only is not None and time > only:
                return
            now = self._read(demand, columns, time)
            if now is None or not self._timeline.may_hold(now, columns, self._topology.leaf):
                continue
            allocation = place_alone(now, columns, self._topology)
            if allocation is not None:
                yield time, allocation

    def _read(self, demand: Demand, columns: Columns, time: float | None) -> Demand | None:
        """Return the demand on some nodes at a time; without a time, whatever is reserved."""
        # Without reservations no node's use depends on the time.
        moment = time if self._has_reservations or time is None else 0.0
        key = (moment, columns.takes_jobs.tobytes())
        if key not in self._readers:
            if self._has_reservations:
                # Moments come and go: those of one job are not another's.
                self._readers = {known: one for known, one in self._readers.items() if known[0] is None}
            self._readers[key] = self.reader.at(columns, time, honour_reservations=time is not None)
        return self._readers[key].demand(demand.job, demand.index)
