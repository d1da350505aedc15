"""Forecasts of a log that was simulated: its events are told to a forecaster one after another."""

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import StringIO
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from ...formats.swf import SwfField, SwfLog
from ..result import Simulation
from ..stepping import REPORT_EVERY
from .forecaster import FUTURES, Forecaster, QueuedRequest, StartForecast
from .futures_kernel import CONSERVATIVE, EASY, WITHDRAWING

#: When forecasts are asked: on arrival, and after these shares of the wait.
ASKED_AT = (0.0, 0.25, 0.5, 0.75)
COLUMNS = ("job", "asked_s", "cores", "p10_s", "p50_s", "p90_s", "plan_s", "start_s")
#: The policy that futures play as it is: who starts in all of them does start.
_EXACT = "easy"
_PLAN = "conservative"
#: Those with a rule that futures follow; others are played as EASY.
PLAYED = (_EXACT, _PLAN, "promised")
#: Kinds of events at one time: who ended, who came, what is asked, who starts.
_END, _ARRIVAL, _ASK, _START = 0, 1, 2, 3


class AnsweredForecast(NamedTuple):
    """A forecast with what came of it.

    Attributes:
        number: of the job.
        forecast: as it was made.
        came_s: seconds from when it was asked until the job started.
    """

    number: int
    forecast: StartForecast
    came_s: float


def forecasts_of(
    result: Simulation,
    log: SwfLog | None = None,
    *,
    rank: Sequence[float] | None = None,
    by_worth: bool = False,
    futures: int = FUTURES,
    **asked: Any,
) -> Iterator[AnsweredForecast]:
    """Yield each forecast with what came, in the order in which they are asked.

    Args:
        result: of a simulation that has ended; jobs that never started are left out.
        log: its rows, for what a job's run time may follow beyond user, size and limit.
        rank: by job, its place in the queue's order; None: by submission.
        by_worth: the policy favours short jobs instead.
        futures: of each forecast.
        asked: when, and for which jobs, as ``follow`` takes it.
    """
    forecaster = Forecaster(
        [result.workload.requests.processors],
        policy=WITHDRAWING if by_worth else CONSERVATIVE if result.policy == _PLAN else EASY,
        is_exact=result.policy == _EXACT,
        futures=futures,
    )
    return follow(result, forecaster, _requests_of(result, log, rank), **asked)


def follow(
    result: Simulation,
    forecaster: Forecaster,
    jobs: Sequence[QueuedRequest],
    *,
    asked_at: Sequence[float] = ASKED_AT,
    held_by: Callable[[Sequence[int]], Iterable[Sequence[int]]] | None = None,
    every: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Iterator[AnsweredForecast]:
    """Tell a forecaster what happened in a run, and yield what it says.

    Args:
        result: the run.
        forecaster: a fresh one.
        jobs: by number in the result, with these numbers as ids.
        asked_at: shares of the wait; 0: on arrival, before the pass that looks at the job.
        held_by: returns the cores by pool that running jobs hold together; None: there is one pool.
        every: only so many-th jobs are asked for.
        progress: called now and then with the number of jobs that have arrived.
    """
    starts = np.array(result.starts, np.float64)
    for now, kind, numbers in _events(result, asked_at, every):
        if kind == _ASK:
            if held_by is not None:
                forecaster.hold(held_by(forecaster.running))
            for number, found in zip(numbers, forecaster.forecast(now, numbers), strict=True):
                yield AnsweredForecast(number, found, float(starts[number]) - now)
            continue
        for number in numbers:
            if kind == _END:
                forecaster.end(number, now)
            elif kind == _START:
                forecaster.start(number, now)
            else:
                forecaster.submit(jobs[number])
                if progress and number % REPORT_EVERY == 0:
                    progress(number)


def forecasts_csv(result: Simulation, forecasts: Iterable[AnsweredForecast]) -> str:
    """Return the forecasts as CSV, a row each, in the order in which they were asked."""
    text = StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(COLUMNS)
    for number, found, came in forecasts:
        seconds = (*(() if found.never else (found.p10_s, found.p50_s, found.p90_s)), found.plan_s, came)
        shown = [f"{one:.10g}" if isfinite(one) else "" for one in seconds]
        job, asked_s = result.workload.ids[number], f"{found.asked_s:.10g}"
        lines.writerow([job, asked_s, found.cores, *[""] * (5 - len(shown)), *shown])
    return text.getvalue()


def _requests_of(result: Simulation, log: SwfLog | None, rank: Sequence[float] | None) -> list[QueuedRequest]:
    """Return the jobs as forecasts see them; a number below 0 in a log is not known."""
    requests = result.workload.requests
    jobs = len(requests)

    def column(kind: SwfField) -> list[int | None]:
        if log is None:
            return [None] * jobs
        values = log.column(kind)[list(result.workload.row)]
        return [int(value) if value >= 0 else None for value in values.tolist()]

    queues, partitions, names = (
        column(kind) for kind in (SwfField.QUEUE, SwfField.PARTITION, SwfField.EXECUTABLE)
    )
    return [
        QueuedRequest(
            id=number,
            submit_s=requests.submit[number],
            cores=requests.size[number],
            limit_s=requests.estimate[number],
            user=None if requests.user[number] < 0 else requests.user[number],
            partition=partitions[number],
            name=names[number],
            queue=queues[number],
            rank=0.0 if rank is None else rank[number],
        )
        for number in range(jobs)
    ]


def _events(
    result: Simulation, asked_at: Sequence[float], every: int
) -> Iterator[tuple[float, int, list[int]]]:
    """Yield what happens: the time, the kind, and the jobs to which it happens, by number.

    At one time jobs end, then come, then are asked for, then start: a forecast knows all that the
    scheduler's next pass knows, and not what that pass decides.
    """
    jobs = result.started
    waits = result.wait
    times, numbers = [result.end, result.submit, result.start], [jobs, jobs, jobs]
    kinds = [np.full(len(jobs), kind) for kind in (_END, _ARRIVAL, _START)]
    for share in asked_at:
        # Who does not wait can be asked for on arrival only.
        some = np.flatnonzero(((waits > 0) | (share == 0)) & (jobs % every == 0))
        times.append(result.submit[some] + share * waits[some])
        kinds.append(np.full(len(some), _ASK))
        numbers.append(jobs[some])
    time, kind, number = (np.concatenate(column) for column in (times, kinds, numbers))
    order = np.lexsort((number, kind, time))
    time, kind, number = time[order], kind[order], number[order]
    edges = np.flatnonzero((np.diff(time) != 0) | (np.diff(kind) != 0)) + 1
    for first, last in zip([0, *edges], [*edges, len(time)], strict=True):
        if first < last:
            yield float(time[first]), int(kind[first]), [int(one) for one in number[first:last]]
