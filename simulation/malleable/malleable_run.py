"""A trace of applications, made of a log, played under a policy, and what came of it.

The loop of events is one on arrays: plain Python that numba compiles as it stands
(cluster/kernels). At one
time stamp: all ends, one decision over them, then the arrivals in order, a decision each.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cluster.errors import InputError, OptionError
from ...cluster.kernels.harness import Entry, Floats, FloatTable, Ints, kernel
from ...cluster.text import plural
from ...formats.swf import SwfField, SwfLog
from ...negotiation.malleable.application_columns import (
    ATTEMPTS,
    EVENTS,
    LOGGED,
    RESIZES,
    SUCCESSES,
    TALLIED,
    Active,
    Context,
    JobColumns,
    begin,
    empty_active,
    resize,
)
from ...negotiation.malleable.harvesting import on_arrival, on_end, remember, remove
from ...negotiation.malleable.malleable_policies import IschedulerPolicy
from ..backfilling.easy import Easy
from ..log_columns import Requests, Workload
from ..logs.counts import simulate_counts
from ..report import FORMAT, RunReport, metric_lines, speed_line

#: Shares of the ideal are decimal numbers: 0.3 · 10 is 3, not 4.
_EXACT = 1e-9
#: Processors go one at a time: no application can use more.
LARGEST_IDEAL = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Applications and the machine they come to.

    Attributes:
        processors: of the machine.
        submit: seconds, rising from 0.
        ideal: processors that each can use.
        run: seconds on those.
        data: bytes that an adaptation moves, times the processors that hold them; None: adapting is free.
    """

    processors: int
    submit: Floats
    ideal: Ints
    run: Floats
    data: Floats | None = None

    def __post_init__(self) -> None:
        if not len(self.submit) == len(self.ideal) == len(self.run) > 0:
            raise InputError("columns differ in length, or hold no job", path="trace")
        if (np.diff(self.submit) < 0).any() or self.submit[0] < 0:
            raise InputError("submissions do not rise from 0", path="submit")
        largest = min(self.processors, LARGEST_IDEAL)
        if self.ideal.min() < 1 or self.ideal.max() > largest:
            raise InputError(f"not within 1 and {largest}", path="ideal")
        if not (self.run > 0).all() or not np.isfinite(self.run).all():
            raise InputError("a run time is not above 0", path="run")

    def __len__(self) -> int:
        return len(self.submit)

    def jobs(self, min_of_ideal: float, *, is_ideal: bool = False) -> JobColumns:
        """Return the applications with their fewest processors: a share of the ideal, rounded up."""
        if not 0 < min_of_ideal <= 1:
            raise OptionError(f"{min_of_ideal:g} is not a share of the ideal above 0, at most 1")
        least = np.maximum(1, np.ceil(min_of_ideal * self.ideal - _EXACT)).astype(np.int64)
        ideal = np.ascontiguousarray(self.ideal, dtype=np.int64)
        return JobColumns(
            submit=np.ascontiguousarray(self.submit, dtype=np.float64),
            run=np.ascontiguousarray(self.run, dtype=np.float64),
            least=ideal if is_ideal else least,
            ideal=ideal,
            data=np.full(len(self), -1.0) if self.data is None else self.data.astype(np.float64),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a trace.

    Attributes:
        trace: the jobs.
        start, end: by job, in seconds.
        harvests: by job, how often it was harvested.
        attempts, successes: harvests asked for, and those that could be served.
        events: victims, an event each; ``resizes``: changes of a running application's count.
        sizes: rows (time, job, processors from then on); empty where they were not asked for.
        seconds: wall time of the loop.
    """

    trace: Trace
    start: Floats
    end: Floats
    harvests: Ints
    attempts: int = 0
    successes: int = 0
    events: int = 0
    resizes: int = 0
    sizes: Floats
    seconds: float

    @property
    def wait(self) -> Floats:
        """Waiting times in seconds."""
        return self.start - self.trace.submit

    @property
    def execution(self) -> Floats:
        """Run times in seconds, as they came to be."""
        return self.end - self.start

    @property
    def total(self) -> Floats:
        """Waiting and run times together: the paper's completion time."""
        return self.end - self.trace.submit

    @property
    def makespan(self) -> float:
        """Seconds from the first submission to the last end."""
        return float(self.end.max() - self.trace.submit[0])


def simulate_malleable(
    trace: Trace,
    policy: IschedulerPolicy,
    *,
    model: str = "linear",
    min_of_ideal: float = 0.3,
    keep_sizes: bool = False,
) -> Outcome:
    """Play a trace under a policy.

    Args:
        trace: the jobs.
        policy: the components, or a baseline.
        model: of execution, one of EXECUTION_MODELS.
        min_of_ideal: the fewest processors an application runs on, as a share of its ideal.
        keep_sizes: keep every change of size.

    Raises:
        OptionError: no such model or share.
    """
    jobs = trace.jobs(min_of_ideal, is_ideal=policy.is_ideal)
    rules = policy.rules(model)
    count = len(trace)
    start, end, harvests = np.zeros(count), np.zeros(count), np.zeros(count, dtype=np.int64)
    tally = np.zeros(TALLIED, dtype=np.int64)
    at_once = min(trace.processors, count)
    log = np.zeros((0, 3))
    began = time.perf_counter()
    if policy.backfills:
        start = _easy_starts(trace)
        end = start + trace.run
        log = _rigid_sizes(trace, start, end) if keep_sizes else log
    else:
        play, _ = PLAY.for_jobs(count)
        size, context = trace.processors, Context(jobs, rules, tally)
        play(context, size, empty_active(at_once), start, end, harvests, log)
        if keep_sizes:
            log, again = np.zeros((int(tally[LOGGED]), 3)), context._replace(tally=np.zeros_like(tally))
            play(again, size, empty_active(at_once), start, end, harvests, log)
    return Outcome(
        trace=trace,
        start=start,
        end=end,
        harvests=harvests,
        attempts=int(tally[ATTEMPTS]),
        successes=int(tally[SUCCESSES]),
        events=int(tally[EVENTS]),
        resizes=int(tally[RESIZES]),
        sizes=log,
        seconds=time.perf_counter() - began,
    )


def _easy_starts(trace: Trace) -> Floats:
    """Return the starts under EASY, each job on its ideal processors, run times known."""
    count, first, run = len(trace), float(trace.submit[0]), tuple(trace.run.tolist())
    requests = Requests(
        processors=trace.processors,
        submit=tuple((trace.submit - first).tolist()),
        size=tuple(trace.ideal.tolist()),
        estimate=run,
        user=(0,) * count,
        weight=(1.0,) * count,
    )
    numbers = tuple(range(count))
    workload = Workload(requests=requests, run=run, ids=numbers, row=numbers, rows=count)
    # The sum may round to before the submission.
    return np.maximum(np.array(simulate_counts(workload, Easy(requests))) + first, trace.submit)


def _rigid_sizes(trace: Trace, start: Floats, end: Floats) -> Floats:
    """Return the changes of size of jobs that never change: all ends of a moment before its starts."""
    jobs = np.arange(len(trace), dtype=np.float64)
    ends = np.column_stack([end, jobs, np.zeros(len(trace))])
    starts = np.column_stack([start, jobs, trace.ideal.astype(np.float64)])
    rows: NDArray[np.float64] = np.concatenate([ends, starts])
    return rows[np.argsort(rows[:, 0], kind="stable")]


_KIB = 1024


def trace_of(workload: Workload, log: SwfLog, *, adapting_costs: bool = False) -> Trace:
    """Return the jobs of a log as applications.

    Args:
        workload: the log's jobs as simulations read them.
        log: its rows.
        adapting_costs: an adaptation takes 1 + 0.00009 · bytes s: the used memory (field 7, KiB a processor)
            of the ideal processors, over those that hold it then; what is not known counts as none.
    """
    requests = workload.requests
    ideal = np.array(requests.size, dtype=np.int64)
    memory = log.column(SwfField.MEMORY)[list(workload.row)]
    return Trace(
        processors=requests.processors,
        submit=np.array(requests.submit, dtype=np.float64),
        ideal=ideal,
        run=np.array(workload.run, dtype=np.float64),
        data=np.maximum(memory, 0.0) * _KIB * ideal if adapting_costs else None,
    )


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
        next_end = inf
        for place in range(running):
            next_end = min(next_end, active.end[place])
        next_arrival = jobs.submit[tail] if tail < coming else inf
        now = min(next_end, next_arrival)
        if next_end == now:
            place = 0
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
            remember(active, running)
            running, free, head = on_end(active, running, free, head, tail, now, context)
            settle(active, running, now, context, starts, log)
        while tail < coming and jobs.submit[tail] == now:
            tail += 1
            if head == tail - 1:
                remember(active, running)
                before = running
                running, free = on_arrival(active, running, free, head, now, context)
                head += running - before
                settle(active, running, now, context, starts, log)


@kernel
def settle(
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


#: With so many jobs plain Python takes longer than numba takes to compile the loop.
PLAY = Entry(play, "integrated scheduling", many=300_000)

_HOUR_S = 3600.0
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


def malleable_metrics(found: Outcome) -> dict[str, float | None]:
    """Return the metrics by name; the unit stands in the name.

    ``harvest_success_rate`` is of harvests that were asked for, None where none was.
    """
    jobs = len(found.trace)
    values: dict[str, float | None] = {"makespan_s": found.makespan}
    for name in _TIMES:
        column = getattr(found, name)
        figures = {"mean": column.mean(), "std": column.std(), "max": column.max()}
        values |= {f"{name}_{figure}_s": float(value) for figure, value in figures.items()}
    values["throughput_per_h"] = jobs * _HOUR_S / found.makespan
    values["cpu_utilization"] = processor_s(found) / (found.makespan * found.trace.processors)
    values["harvest_success_rate"] = found.successes / found.attempts if found.attempts else None
    values["harvest_events_per_job"] = found.events / jobs
    values["adaptations_per_job"] = found.resizes / jobs
    return values


def processor_s(found: Outcome) -> float:
    """Return the processor-seconds that applications held, of an outcome that kept its changes of size."""
    rows = found.sizes[np.lexsort((np.arange(len(found.sizes)), found.sizes[:, 1]))]
    held = np.diff(rows[:, 0], append=0.0) * rows[:, 2]
    # An application's last row is its end, on no processors: what follows is another's.
    return float(held[rows[:, 2] > 0].sum())


@dataclass(frozen=True, kw_only=True, repr=False)
class MalleableReport(RunReport):
    """What came of a trace under a policy.

    Attributes:
        found: the outcome; it kept its changes of size.
        workload: the log's jobs.
        settings: the policy and what it reads.
    """

    found: Outcome
    workload: Workload
    settings: Mapping[str, Any]

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A row for each job in order of submission."""
        found, trace = self.found, self.found.trace
        columns = {
            "submit_s": trace.submit,
            "start_s": found.start,
            "end_s": found.end,
            "ideal": trace.ideal,
            "wait_s": found.wait,
            "run_s": found.execution,
            "total_s": found.total,
            "harvests": found.harvests,
        }
        return {"id": list(self.workload.ids)} | {
            name: [round(value, _DIGITS) for value in column.tolist()] for name, column in columns.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain values."""
        found, workload = self.found, self.workload
        return {
            "format": FORMAT,
            **self.settings,
            "processors": found.trace.processors,
            "jobs": len(found.trace),
            "rows": workload.rows,
            "dropped": {reason.value: count for reason, count in workload.dropped.items()},
            "seconds": round(found.seconds, 6),
            "metrics": malleable_metrics(found),
        }

    def to_text(self, name: str) -> str:
        """Return the outcome as a table for people."""
        found, settings = self.found, self.settings
        policy = ", ".join(
            f"{key.replace('_', ' ')} {value}" for key, value in settings.items() if key != "policy"
        )
        machine = plural(found.trace.processors, "processor")
        lines = [
            f"{name}: {settings['policy']}, {plural(len(found.trace), 'job')} on {machine}",
            *([policy] if policy else []),
            *metric_lines(malleable_metrics(found), {kind: (kind, "_s") for kind in _TIMES}, _ROWS),
            speed_line(len(found.trace), found.seconds),
        ]
        return "\n".join(lines) + "\n"
