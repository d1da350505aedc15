"""A trace of applications, made of a log, played under a policy, and what came of it.

The loop of events runs on arrays: plain Python that numba compiles unchanged (cluster/kernels). At
one time stamp: all ends, one decision over them, then the arrivals in order, a decision each.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cluster.errors import InputError
from ..cluster.kernels.harness import Entry, Floats, FloatTable, Ints, kernel
from ..cluster.text import plural
from ..formats.swf import SwfField, SwfLog
from ..negotiation.malleable.application_columns import (
    LOGGED,
    RESIZES,
    TALLIED,
    Active,
    Context,
    JobColumns,
    begin,
    empty_active,
    resize,
)
from ..negotiation.malleable.harvesting import on_arrival, on_end, remember, remove
from ..negotiation.malleable.malleable_policies import IschedulerPolicy
from .backfilling.easy import Easy
from .events import HOUR_S
from .log_columns import Workload
from .logs.counts import simulate_counts
from .report import FORMAT, RunReport, metric_lines, speed_line

#: Shares of the ideal are decimal numbers: 0.3 · 10 is 3, not 4.
_EXACT = 1e-9
#: Processors go one at a time: no application can use more.
LARGEST_IDEAL = 10**6


def jobs_of(
    workload: Workload, min_of_ideal: float, *, is_ideal: bool = False, data: Floats | None = None
) -> JobColumns:
    """Return a log's jobs as applications: the processors that each asks for are its ideal.

    Args:
        workload: the log's jobs; they run for their run times on the ideal processors.
        min_of_ideal: the fewest processors of an application, as a share of its ideal, rounded up.
        is_ideal: it runs on no fewer than its ideal.
        data: bytes an adaptation moves, times the processors that hold them; None: it is free.

    Raises:
        InputError: an application is too large.
    """
    columns = workload.columns
    ideal = columns.size
    if ideal.max() > LARGEST_IDEAL:
        raise InputError(f"not within 1 and {LARGEST_IDEAL}", path="ideal")
    least = np.maximum(1, np.ceil(min_of_ideal * ideal - _EXACT)).astype(np.int64)
    return JobColumns(
        submit=columns.submit[:-1],
        run=columns.run,
        least=ideal if is_ideal else least,
        ideal=ideal,
        data=np.full(len(ideal), -1.0) if data is None else data,
    )


def simulate_malleable(
    workload: Workload,
    policy: IschedulerPolicy,
    *,
    model: str = "linear",
    min_of_ideal: float = 0.3,
    data: Floats | None = None,
) -> "Outcome":
    """Play a trace under a policy.

    Args:
        workload: the jobs.
        policy: the components, or a baseline.
        model: of execution, one of EXECUTION_MODELS.
        min_of_ideal: as ``jobs_of`` takes it; as does ``data``.
        data: see there.

    Raises:
        InputError: an application is too large.
    """
    jobs = jobs_of(workload, min_of_ideal, is_ideal=policy.is_ideal, data=data)
    rules = policy.rules(model)
    count, processors = len(workload), workload.requests.processors
    start, end, harvests = np.zeros(count), np.zeros(count), np.zeros(count, dtype=np.int64)
    tally = np.zeros(TALLIED, dtype=np.int64)
    at_once = min(processors, count)
    began = time.perf_counter()
    if policy.backfills:
        # Each job on its ideal processors, run times known.
        known = replace(workload.requests, estimate=workload.run)
        start = np.array(simulate_counts(replace(workload, requests=known), Easy(known)), np.float64)
        end = start + jobs.run
        log = _rigid_sizes(jobs, start, end)
    else:
        play, _ = PLAY.for_jobs(count)
        context = Context(jobs, rules, tally)
        play(context, processors, empty_active(at_once), start, end, harvests, np.zeros((0, 3)))
        log, again = np.zeros((int(tally[LOGGED]), 3)), context._replace(tally=np.zeros_like(tally))
        play(again, processors, empty_active(at_once), start, end, harvests, log)
    return Outcome(
        workload=workload,
        start=start,
        end=end,
        harvests=harvests,
        tally=tally,
        sizes=log,
        seconds=time.perf_counter() - began,
    )


def _rigid_sizes(jobs: JobColumns, start: Floats, end: Floats) -> Floats:
    """Return the changes of size of rigid jobs: all ends of a moment before its starts."""
    numbers = np.arange(len(start), dtype=np.float64)
    ends = np.column_stack([end, numbers, np.zeros(len(start))])
    starts = np.column_stack([start, numbers, jobs.ideal.astype(np.float64)])
    rows: NDArray[np.float64] = np.concatenate([ends, starts])
    return rows[np.argsort(rows[:, 0], kind="stable")]


_KIB = 1024


def moved_bytes(workload: Workload, log: SwfLog) -> Floats:
    """Return the bytes that an adaptation of each job moves, times the processors that hold them.

    An adaptation takes 1 + 0.00009 · bytes s: the used memory (field 7, KiB a processor) of the
    ideal processors, over those that hold it then; what is not known counts as none.
    """
    memory = log.column(SwfField.MEMORY)[list(workload.row)]
    moved: Floats = np.maximum(memory, 0.0) * _KIB * workload.columns.size
    return moved


@kernel
def play(
    context: Context,
    processors: int,
    active: Active,
    starts: Floats,
    ends: Floats,
    harvests: Ints,
    log: FloatTable,
) -> None:
    """Play a trace.

    Args:
        context: the jobs in order of submission, the policy, and a tally of zeros, which is filled.
        processors: of the machine; no job's least is above.
        active: empty, for as many applications as can run at once.
        starts: filled, an entry a job; as are ``ends`` and ``harvests``.
        ends: filled.
        harvests: filled.
        log: rows (time, job, processors from then on), as many as it holds; the tally counts all.
    """
    jobs, tally = context.jobs, context.tally
    coming = len(jobs.submit)
    running, free, head, tail = 0, processors, 0, 0
    while tail < coming or running > 0:
        now = jobs.submit[tail] if tail < coming else inf
        for place in range(running):
            now = min(now, active.end[place])
        before, place = running, 0
        while place < running:
            if active.end[place] == now:
                free += active.held[place]
                ends[active.job[place]] = now
                harvests[active.job[place]] = active.harvests[place]
                record(log, tally, now, active.job[place], 0)
                remove(active, running, place)
                running -= 1
            else:
                place += 1
        if running < before:
            remember(active, running)
            running, free, head = on_end(active, running, free, head, tail, now, context)
            apply_changes(active, running, now, context, starts, log)
        while tail < coming and jobs.submit[tail] == now:
            tail += 1
            if head == tail - 1:
                remember(active, running)
                before = running
                running, free = on_arrival(active, running, free, head, now, context)
                head += running - before
                apply_changes(active, running, now, context, starts, log)


@kernel
def apply_changes(
    active: Active, running: int, now: float, context: Context, starts: Floats, log: FloatTable
) -> None:
    """Let work begin or go on where a decision changed a count."""
    jobs, model, tally = context.jobs, context.rules.model, context.tally
    for place in range(running):
        before, count, job = active.before[place], active.held[place], active.job[place]
        if before == count:
            continue
        if before == 0:
            begin(active, place, jobs.run[job], now, model)
            starts[job] = now
        else:
            resize(active, place, jobs.data[job], now, model)
            tally[RESIZES] += 1
        record(log, tally, now, job, count)


@kernel
def record(log: FloatTable, tally: Ints, now: float, job: int, count: int) -> None:
    """Keep a change of size."""
    at = tally[LOGGED]
    if at < log.shape[0]:
        log[at, 0] = now
        log[at, 1] = job
        log[at, 2] = count
    tally[LOGGED] += 1


#: So many jobs take 1 s in plain Python; loading the loop takes 0.25 s, compiling it first 9 s.
PLAY = Entry(play, "integrated scheduling", many=20_000)

_DIGITS = 6
_TIMES = ("wait", "execution", "total")
_ROWS = {
    "makespan": ("makespan_s", "s"),
    "throughput": ("throughput_per_h", "jobs/h"),
    "cpu utilization": ("cpu_utilization", ""),
    "harvest success rate": ("harvest_success_rate", ""),
    "harvest events per job": ("harvest_events_per_job", ""),
    "adaptations per job": ("adaptations_per_job", ""),
}


@dataclass(frozen=True, kw_only=True, repr=False)
class Outcome(RunReport):
    """What became of a trace.

    Attributes:
        workload: the jobs.
        start, end: by job, in seconds.
        harvests: by job, how often it was harvested.
        tally: harvests asked for (``ATTEMPTS``) and had, victims, changes of a running one's count.
        sizes: rows (time, job, processors from then on).
        seconds: wall time of the loop.
        settings: the policy and what it reads, as a result states them.
    """

    workload: Workload
    start: Floats
    end: Floats
    harvests: Ints
    tally: Ints
    sizes: Floats
    seconds: float
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def submit(self) -> Floats:
        """Submissions in seconds."""
        return self.workload.columns.submit[:-1]

    @property
    def wait(self) -> Floats:
        """Waiting times in seconds."""
        return self.start - self.submit

    @property
    def execution(self) -> Floats:
        """Run times in seconds, as they came to be."""
        return self.end - self.start

    @property
    def total(self) -> Floats:
        """Waiting and run times together: the paper's completion time."""
        return self.end - self.submit

    @property
    def makespan(self) -> float:
        """Seconds from the first submission to the last end."""
        return float(self.end.max())

    @property
    def processor_s(self) -> float:
        """The processor-seconds that applications held."""
        rows = self.sizes[np.lexsort((np.arange(len(self.sizes)), self.sizes[:, 1]))]
        held = np.diff(rows[:, 0], append=0.0) * rows[:, 2]
        # An application's last row is its end, on no processors: what follows is another's.
        return float(held[rows[:, 2] > 0].sum())

    @property
    def metrics(self) -> dict[str, float | None]:
        """The metrics by name; the unit stands in the name.

        ``harvest_success_rate`` is of harvests that were asked for, None where none was.
        """
        jobs, (attempts, successes, events, resizes) = len(self.workload), self.tally[:LOGGED].tolist()
        values: dict[str, float | None] = {"makespan_s": self.makespan}
        for name in _TIMES:
            column = getattr(self, name)
            figures = {"mean": column.mean(), "std": column.std(), "max": column.max()}
            values |= {f"{name}_{figure}_s": float(value) for figure, value in figures.items()}
        values["throughput_per_h"] = jobs * HOUR_S / self.makespan
        values["cpu_utilization"] = self.processor_s / (self.makespan * self.workload.requests.processors)
        values["harvest_success_rate"] = successes / attempts if attempts else None
        values["harvest_events_per_job"] = events / jobs
        values["adaptations_per_job"] = resizes / jobs
        return values

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A row for each job in order of submission."""
        columns = {
            "submit_s": self.submit,
            "start_s": self.start,
            "end_s": self.end,
            "ideal": self.workload.columns.size,
            "wait_s": self.wait,
            "run_s": self.execution,
            "total_s": self.total,
            "harvests": self.harvests,
        }
        return {"id": list(self.workload.ids)} | {
            name: [round(value, _DIGITS) for value in column.tolist()] for name, column in columns.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain values."""
        workload = self.workload
        return {
            "format": FORMAT,
            **self.settings,
            "processors": workload.requests.processors,
            "jobs": len(workload),
            "rows": workload.rows,
            "dropped": {reason.value: count for reason, count in workload.dropped.items()},
            "seconds": round(self.seconds, 6),
            "metrics": self.metrics,
        }

    def to_text(self, name: str) -> str:
        """Return the outcome as a table for people."""
        settings, jobs = self.settings, len(self.workload)
        policy = ", ".join(
            f"{key.replace('_', ' ')} {value}" for key, value in settings.items() if key != "policy"
        )
        machine = plural(self.workload.requests.processors, "processor")
        lines = [
            f"{name}: {settings['policy']}, {plural(jobs, 'job')} on {machine}",
            *([policy] if policy else []),
            *metric_lines(self.metrics, {kind: (kind, "_s") for kind in _TIMES}, _ROWS),
            speed_line(jobs, self.seconds),
        ]
        return "\n".join(lines) + "\n"
