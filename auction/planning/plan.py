"""A full schedule of a snapshot: a start for every job that can ever start (Nagendra 2016, 3.1.1).

Jobs are planned one after another in queue order, each at the earliest moment from which on nodes
hold it until its time limit beside running jobs, advance reservations, licences and the jobs
planned before it: what conservative backfilling reserves. Where the nodes are chosen is first-fit,
as everywhere else. A snapshot is planned as it stands: after a change, plan the next one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from ...bidgen.candidates import units_of, usable_in_any
from ...bidgen.generate import place_alone
from ...cluster.errors import InputError
from ...cluster.jobs import Job, RunningJob
from ...cluster.keywords import of_type, refuses_unknown, whole
from ...cluster.nodes import Resources
from ...cluster.option_table import PLANNED_JOBS
from ...cluster.resources.allocation import Allocation, add_allocation, resources_of
from ...cluster.resources.capacity import UNLIMITED_MIB, BoolArray, Capacity, IntArray, nothing_held
from ...cluster.resources.columns import Columns
from ...cluster.resources.demand import Demand, DemandReader
from ...cluster.schedule import Reason, Refusal, document_of, document_text, same_snapshot
from ...cluster.snapshot import Snapshot
from ...cluster.tabular import Tabular, chart
from ...cluster.text import plural
from ...formats.native.cluster_file import snapshot_of
from ..forecast import Forecast
from ..impossible import ImpossibleRequests
from ..options import StepOptions
from ..queue import queue_of
from ..state import state_of

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
        >>> import aucsched as au
        >>> job = au.Job(id="7", priority=5, request=au.Request(cores=4))
        >>> found = au.plan(au.Snapshot(nodes=[au.Node(name="n", cores=4)], jobs=[job]))
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
        lists = ("planned", "unplanned", "overdue", "endless")
        listed = {name: document_of(getattr(self, name)) for name in lists}
        return {"format": FORMAT, "time": self.time, **listed}

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
        """Draw the nodes over future time; arguments, result and errors as in ``Schedule.plot``."""
        draw = chart(path, "reports.gantt", "draw_plan")
        return draw(same_snapshot(snapshot, self.planned, self.unplanned), self)

    def to_json(self) -> str:
        """Return the plan file's text (format ``aucsched-plan/1``): equal plans, equal bytes."""
        return document_text(self.to_dict())


@refuses_unknown
def plan(
    snapshot: Snapshot | str | Path,
    *,
    jobs: int | None = PLANNED_JOBS,
    progress: Callable[[int], None] | None = None,
) -> Plan:
    """Return the schedule of a snapshot.

    Args:
        snapshot: the cluster, its running jobs and its queue, or a snapshot file.
        jobs: how many jobs to plan, in queue order, by default as in the command; None: all.
        progress: called with the number of jobs that are done.

    Raises:
        InputError: the file cannot be read, or the snapshot has no time to compare running jobs'
            ends or reservations with.
        OptionError: the snapshot is of another type, or an option's value cannot be used.

    Examples:
        >>> import aucsched as au
        >>> jobs = [
        ...     au.Job(id=name, priority=9 - place, request=au.Request(cores=4), time_limit_s=60)
        ...     for place, name in enumerate("ab")
        ... ]
        >>> snapshot = au.Snapshot(nodes=[au.Node(name="n", cores=4)], jobs=jobs)
        >>> au.plan(snapshot).columns["wait_s"]
        [0.0, 60.0]
    """
    snapshot = snapshot_of(snapshot)
    progress = of_type("progress", progress, Callable | None)
    window = max(len(snapshot.jobs), 1) if jobs is None else whole("jobs", jobs, 1)
    check_time(snapshot)
    now = snapshot.time or 0.0
    planner = Planner(snapshot)
    queue = queue_of(snapshot, planner.reader, StepOptions(window=window))
    planned: dict[str, PlannedJob] = {}
    for done, demand in enumerate(queue.window):
        if (found := planner.plan(demand)) is not None:
            planned[found.job] = found
        if progress is not None:
            progress(done + 1)
    impossible = ImpossibleRequests(planner.state)
    lacking = (demand for demand in queue.window if demand.job.id not in planned)
    refused = queue.refused | {one.job.id: _refusal(one, impossible.why(one)) for one in lacking}
    return Plan(
        time=now,
        planned=tuple(planned.values()),
        unplanned=tuple(refused[job.id] for job in queue.jobs if job.id in refused),
        overdue=tuple(job.id for job in snapshot.running if job.end_time is not None and job.end_time <= now),
        endless=tuple(job.id for job in snapshot.running if job.end_time is None),
    )


def _refusal(demand: Demand, why: str) -> Refusal:
    never = "no end of running or planned jobs lets it start: it asks for more than there will be"
    reason = Reason.INELIGIBLE if why else Reason.NO_FIT
    return Refusal(job=demand.job.id, reason=reason, detail=why or never)


def check_time(snapshot: Snapshot) -> None:
    """Raise InputError where ends or reservations have no time to be compared with."""
    if snapshot.time is not None:
        return
    if snapshot.reservations or any(job.end_time is not None for job in snapshot.running):
        raise InputError("a plan compares ends and reservations with it: it is missing", path="time")


class Planner:
    """Plans jobs one after another on what those before them leave.

    Args:
        snapshot: the cluster; running jobs past their end are taken to end in a moment.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        now = snapshot.time or 0.0
        late = (job.id for job in snapshot.running if job.end_time is not None and job.end_time <= now)
        # Who is past its end holds what it has, a moment longer.
        ends = dict.fromkeys(late, now + OVERDUE_S)
        running = tuple(replace(job, end_time=ends.get(job.id, job.end_time)) for job in snapshot.running)
        snapshot = replace(snapshot, running=running)
        self.state = state = state_of(snapshot)
        self._topology, self.columns, self.reader = state.topology, state.columns, state.reader
        self._has_reservations = bool(state.changes)
        self._timeline = ClusterTimeline(Forecast(state), self.columns, snapshot.running)
        # Jobs that ask alike start in the order they are planned in: no room is ever given back.
        self._earliest: dict[str, float] = {}
        self._readers: dict[tuple[float | None, bytes], DemandReader] = {}

    def plan(self, demand: Demand) -> PlannedJob | None:
        """Return the job at its earliest start, which is taken; None when it can never start."""
        found = self.place(demand)
        if found is None:
            return None
        start, allocation = found
        end = start + demand.limit_s
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
        job, alike = demand.job, self._alike(demand.job)
        since, duration = self._earliest.get(alike, -inf), demand.limit_s
        if only_now and since > self.now:
            return None
        only = self.now if only_now else None
        start, allocation = next(self._starts(demand, duration, since, only), (inf, None))
        if allocation is None:
            self._earliest[alike] = inf if not only_now else since
            return None
        self._earliest[alike] = start
        self._timeline.take(allocation, job, start, start + duration)
        return start, allocation

    def earliest(self, demand: Demand) -> float:
        """Return a job's earliest start, which is not taken; infinite when it can never start."""
        if (alike := self._alike(demand.job)) not in self._earliest:
            starts = self._starts(demand, demand.limit_s, -inf)
            self._earliest[alike] = next((start for start, _ in starts), inf)
        return self._earliest[alike]

    def _alike(self, job: Job) -> str:
        return repr((job.request, job.partition, job.user, job.time_limit_s, self.columns.pools.alike(job)))

    def fits_at(self, demand: Demand, start: float, duration: float) -> bool:
        """Return whether a job that runs for so long could start at one of ``moments``."""
        return any(time == start for time, _ in self._starts(demand, duration, start, start))

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
        self, demand: Demand, duration: float, since: float, only: float | None = None
    ) -> Iterator[tuple[float, Allocation]]:
        """Yield the moments at which a job fits, and where: from a time on, or up to one time."""
        anywhere = self._read(demand, replace(self.columns, takes_jobs=self.columns.total.cores > 0), None)
        if anywhere is None or since == inf:
            return
        for moment in self._timeline.possible(anywhere, duration, since).tolist():
            columns = self._timeline.columns(moment, duration)
            time = float(self._timeline.times[moment])
            if only is not None and time > only:
                return
            now = self._read(demand, columns, time)
            if now is None:
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


class ClusterTimeline:
    """The free resources at every moment to come: running jobs end, planned jobs come and go.

    One row a moment, from which on it holds up to the next: arrays of shape (moments, nodes). A job
    that starts at a moment needs its resources on the same nodes until it ends: on each node, the
    least of the rows between.

    Attributes:
        times: moments in seconds, rising; the first is now.

    """

    def __init__(self, forecast: Forecast, columns: Columns, running: Iterable[RunningJob]) -> None:
        self._columns = columns
        self.times = np.array(forecast.times, np.float64)
        steps = [forecast.at(step) for step in range(len(forecast.times))]
        first, *later = [step.free for step in steps]
        self._free = first.joined(later, lambda *counts: np.stack(counts))
        # By step of the forecast: nodes come back when jobs end, whatever is planned.
        self._takes_jobs = [step.takes_jobs for step in steps]
        self._ends = self.times
        self._pools = [columns.pools.copy() for _ in steps]
        now = forecast.times[0]
        for job in running:
            if job.end_time is not None:
                for pools in self._pools[int(np.searchsorted(self.times, job.end_time)) :]:
                    pools.end(job, now)
        self._limited: BoolArray = columns.total.memory < UNLIMITED_MIB

    def possible(self, demand: Demand, duration_s: float, since: float) -> IntArray:
        """Return moments from a time on when a job may fit: enough nodes stay usable to its end.

        It fits at no other moment; whether it fits is for ``columns`` and a placement to say.
        """
        first = int(np.searchsorted(self.times, since))
        stops = self._stops(first, duration_s) - first
        free = self._free.each(lambda rows: rows[first:])
        lacking = np.cumsum(~self._usable(demand, free), axis=0, dtype=np.int32)
        before = np.concatenate([np.zeros((1, lacking.shape[1]), np.int32), lacking])
        stays: BoolArray = before[stops] == before[:-1]
        enough = stays.sum(axis=1) >= demand.fewest_nodes
        if demand.units is not None:
            enough &= (stays * units_of(demand, free, self._columns)).sum(axis=1) >= demand.units
        found: IntArray = np.flatnonzero(enough) + first
        return found

    def columns(self, moment: int, duration_s: float) -> Columns:
        """Return the nodes as a job finds them that starts at a moment and stays."""
        stop = int(self._stops(moment, duration_s)[0])
        free = self._free.each(lambda rows: rows[moment:stop].min(axis=0))
        step = int(np.searchsorted(self._ends, self.times[moment], side="right")) - 1
        return replace(
            self._columns,
            free=free,
            takes_jobs=self._takes_jobs[step],
            is_empty=nothing_held(self._columns.total, free),
            pools=self._pools[moment].joined(self._pools[moment + 1 : stop]),
        )

    def take(self, allocation: Allocation, job: Job, start: float, end: float) -> None:
        """Let a job hold what it takes from a moment up to a time, which may be infinite."""
        first = self._cut(start)
        rows = slice(first, self._cut(end) if isfinite(end) else None)
        add_allocation(self._free.each(lambda counts: counts[rows]), allocation, -1, self._limited)
        during = self._pools[rows]
        # Asked once: most jobs take nothing of any pool, and moments are many.
        pools = self._pools[first]
        taken = [*pools.asked(job, allocation.held), *pools.besides(job, allocation.held)]
        going_on = self._pools[first].going_on(taken)
        spent = self._pools[first].spent(job, allocation.held)
        for later, pools in enumerate(during if taken else ()):
            pools.add(going_on if later else taken)
        if spent:
            for pools in (*self._pools[:first], *self._pools[first + len(during) :]):
                pools.add(spent)

    def _stops(self, first: int, duration_s: float) -> IntArray:
        """Return, for each moment from one on, the first at which a job started there is gone."""
        stops: IntArray = np.searchsorted(self.times, self.times[first:] + duration_s)
        return stops

    def _usable(self, demand: Demand, free: Capacity) -> BoolArray:
        """Return which nodes could be among the job's in each row, shape (moments, nodes)."""
        if demand.exclusive:
            return nothing_held(self._columns.total, free) & demand.eligible
        return usable_in_any(demand, free, self._columns)

    def _cut(self, time: float) -> int:
        """Return the moment at a time, made when there is none."""
        place = int(np.searchsorted(self.times, time))
        if place == len(self.times) or self.times[place] != time:
            self.times = np.insert(self.times, place, time)
            self._free = self._free.each(lambda rows: np.insert(rows, place, rows[place - 1], axis=0))
            self._pools.insert(place, self._pools[place - 1].copy())
            self._pools[place].begin_step()
        return place
