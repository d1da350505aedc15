"""A trace as a simulation reads it: rows dropped and counted, times from the first submission."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cluster.checks import LARGEST_COUNT
from ..cluster.errors import InputError
from ..cluster.kernels.harness import Column
from ..cluster.text import shown
from ..cluster.workload import SHORTEST_RUN_S
from ..formats.swf import SwfField, SwfLog

#: Times beyond this lose whole seconds in 64-bit floats once they are added up.
LARGEST_TIME_S = 10**15
#: Whole numbers are exact in 64-bit floats below this.
EXACT_BELOW = 2**53


class Dropped(StrEnum):
    """Why a row of a log is no job; a row counts under the first that holds."""

    PARTIAL_EXECUTION = "partial_execution"
    NO_SUBMIT_TIME = "no_submit_time"
    NO_PROCESSORS = "no_processors"
    NO_RUN_TIME = "no_run_time"
    ABOVE_MACHINE = "above_machine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """What a policy may know of the jobs: everything but their true run times.

    A column's entry ``j`` is job ``j``'s. Jobs are numbered in the order of their submission; a
    policy may be shown them renumbered in the order of its queue.

    Attributes:
        processors: of the machine.
        submit: seconds after the first submission.
        size: processors, 1 to the machine's.
        estimate: seconds the user asked for, above 0.
        user: the user's number in the log, −1 when not known.
        weight: above 0; the log's queues may be given weights.
        group: the group's number in the log (a site's project), −1 if not known; empty: no groups.
        ids: the job's number in the log, by which messages name it; empty: not known.
    """

    processors: int
    submit: tuple[float, ...]
    size: tuple[int, ...]
    estimate: tuple[float, ...]
    user: tuple[int, ...]
    weight: tuple[float, ...]
    group: tuple[int, ...] = ()
    ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.estimate:
            _within(self.estimate, SHORTEST_RUN_S, LARGEST_TIME_S, "estimate", self.ids)

    def __len__(self) -> int:
        return len(self.submit)

    def taken(self, jobs: Sequence[int]) -> "Requests":
        """Return the requests of some jobs, numbered by their place in ``jobs``."""
        names = ("submit", "size", "estimate", "user", "weight", "group", "ids")
        columns = {name: getattr(self, name) for name in names}
        take = {name: tuple(map(one.__getitem__, jobs)) if one else () for name, one in columns.items()}
        return Requests(processors=self.processors, **take)


class LogColumns(NamedTuple):
    """A log as 64-bit floats, in order of submission; times in seconds.

    Attributes:
        submit: and at last infinity.
        size: processors, as integers.
        estimate: of each job.
        run: of each job.
        user: whose each job is, counted from 0; −1: nobody's.
        is_whole: submissions and run times are integers.
        is_exact: sums of its times as floats are Python's.
    """

    submit: NDArray[np.float64]
    size: NDArray[np.int64]
    estimate: NDArray[np.float64]
    run: NDArray[np.float64]
    user: NDArray[np.int64]
    is_whole: bool
    is_exact: bool


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Jobs ready to simulate, numbered from 0 in the order of their submission.

    Not slotted: its columns are made when first asked for, and kept.

    Attributes:
        requests: what policies see.
        run: true run times in seconds, at most the estimate (a job is killed there).
        ids: each job's number in the log.
        row: each job's row in the log's table.
        rows: how many rows the log has; those not in ``row`` were dropped.
        dropped: how many rows were dropped, by reason.
    """

    requests: Requests
    run: tuple[float, ...]
    ids: tuple[int | str, ...]
    row: tuple[int, ...]
    rows: int
    killed: frozenset[int] = frozenset()
    dropped: Mapping[Dropped, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.run:
            _within(self.run, SHORTEST_RUN_S, LARGEST_TIME_S, "run", self.ids)

    def __len__(self) -> int:
        return len(self.run)

    @cached_property
    def columns(self) -> LogColumns:
        """The log as arrays."""
        requests = self.requests
        kinds = set(map(type, requests.submit)) | set(map(type, self.run))
        submit = np.append(np.array(requests.submit, np.float64), np.inf)
        run, estimate = np.array(self.run, np.float64), np.array(requests.estimate, np.float64)
        is_whole, longest_s = kinds == {int}, run.sum() + estimate.max(initial=0)
        is_exact = kinds == {float} or submit[:-1].max(initial=0) + longest_s < EXACT_BELOW
        size, user = np.array(requests.size, np.int64), count_users(requests.user)
        return LogColumns(submit, size, estimate, run, user, is_whole, bool(is_exact))


def count_users(user: Sequence[int]) -> NDArray[np.int64]:
    """Return each job's user, counted from 0 over the users that have jobs; −1 stays: nobody."""
    numbers = np.array(user, np.int64)
    return np.where(numbers == -1, -1, np.searchsorted(np.unique(numbers[numbers != -1]), numbers))


def _within(values: Sequence[float], low: float, high: float, what: str, ids: Sequence[object]) -> None:
    for value in (min(values), max(values)):
        if not low <= value <= high:
            path = f"job {ids[values.index(value)]} {what}" if ids else what
            raise InputError(f"{value:g} is not within {low:g} and {high:g}", path=path)


def machine_size(log: SwfLog, processors: int | None = None) -> int:
    """Return the machine's processors: as given, else the header MaxProcs, else MaxNodes.

    Raises:
        InputError: none of the three says.
    """
    size = processors or log.header_count("MaxProcs") or log.header_count("MaxNodes")
    if size is None:
        for label in ("MaxProcs", "MaxNodes"):
            if (said := log.header(label)) is not None:
                raise InputError(f"{shown(said)} is not a number above 0: give processors", path=label)
        raise InputError("the header has neither MaxProcs nor MaxNodes: give processors")
    return size


def workload_from_swf(
    log: SwfLog, *, processors: int | None = None, queue_weights: Mapping[int, float] | None = None
) -> Workload:
    """Return a log's jobs as every published result reads them.

    Processors are the requested (field 8), else the allocated (field 5). The estimate is the
    requested time, else the run time; no run time exceeds it. Rows are sorted by submission, equal
    ones keep their order. Rows that are no jobs are dropped and counted (``Dropped``).

    Args:
        log: the rows.
        processors: the machine's size where the header is not to be believed.
        queue_weights: job weights by the log's queue number (field 15); 1 where it is not named.

    Raises:
        InputError: no machine size, no job left, or a number no job can have.
    """
    machine = machine_size(log, processors)
    size, run, submit = processors_of(log), log.column(SwfField.RUN), log.column(SwfField.SUBMIT)
    kept, dropped = kept_rows(log, machine)
    row = kept[np.argsort(submit[kept], kind="stable")]
    if not len(row):
        raise InputError(f"no job is left: {describe_dropped(dropped, len(size))}")
    asked = log.column(SwfField.REQUESTED_TIME)
    estimate = np.where(asked > 0, asked, run)[row]
    submit, queue = submit[row], log.column(SwfField.QUEUE)[row]
    ids = _whole(log.column(SwfField.JOB)[row], log, row, "the number of a job")
    requests = Requests(
        processors=machine,
        ids=ids,
        submit=_seconds(np.array([since(one, submit[0]) for one in submit.tolist()]), log, row),
        size=_whole(size[row], log, row, "a whole number of processors"),
        estimate=_seconds(estimate, log, row),
        user=_whole(log.column(SwfField.USER)[row], log, row, "the number of a user"),
        group=_whole(log.column(SwfField.GROUP)[row], log, row, "the number of a group"),
        weight=tuple((queue_weights or {}).get(int(number), 1) for number in queue.tolist()),
    )
    return Workload(
        requests=requests,
        run=_seconds(np.minimum(run[row], estimate), log, row),
        ids=ids,
        row=tuple(row.tolist()),
        rows=len(size),
        killed=frozenset(np.flatnonzero(run[row] > estimate).tolist()),
        dropped=dropped,
    )


def describe_dropped(dropped: Mapping[Dropped, int], rows: int) -> str:
    """Return one phrase that counts the dropped rows by reason."""
    words = {
        Dropped.PARTIAL_EXECUTION: "of partial executions (status 2 to 4)",
        Dropped.NO_SUBMIT_TIME: "without a submit time",
        Dropped.NO_PROCESSORS: "without processors",
        Dropped.NO_RUN_TIME: "with run time 0 or missing",
        Dropped.ABOVE_MACHINE: "larger than the machine",
    }
    parts = [f"{count} {words[reason]}" for reason, count in dropped.items() if count]
    return f"dropped {sum(dropped.values())} of {rows} rows" + (f": {', '.join(parts)}" if parts else "")


def processors_of(log: SwfLog) -> NDArray[np.float64]:
    """Return the processors of each row: the requested, else the allocated."""
    asked = log.column(SwfField.REQUESTED_PROCESSORS)
    return np.where(asked > 0, asked, log.column(SwfField.ALLOCATED_PROCESSORS))


def kept_rows(log: SwfLog, machine: float = inf) -> tuple[NDArray[np.intp], dict[Dropped, int]]:
    """Return the rows that are jobs, and the count of each reason that is the first to hold."""
    size, status = processors_of(log), log.column(SwfField.STATUS)
    reasons = {
        # Parts of a job between checkpoints: a row of status 0, 1 or 5 sums them up.
        Dropped.PARTIAL_EXECUTION: np.isin(status, (2, 3, 4)),
        Dropped.NO_SUBMIT_TIME: log.column(SwfField.SUBMIT) < 0,
        Dropped.NO_PROCESSORS: size <= 0,
        Dropped.NO_RUN_TIME: log.column(SwfField.RUN) <= 0,
        Dropped.ABOVE_MACHINE: size > machine,
    }
    kept = np.ones(len(size), dtype=bool)
    dropped: dict[Dropped, int] = {}
    for reason, holds in reasons.items():
        dropped[reason] = int((kept & holds).sum())
        kept &= ~holds
    return np.flatnonzero(kept), dropped


def since(time: float, first: float) -> float:
    """Return seconds between two times as decimals: 1 − 0.791 is 0.209, not 0.20899999999999996."""
    if time == int(time) and first == int(first):
        return float(time - first)
    return float(Decimal(str(time)) - Decimal(str(first)))


def _seconds(values: NDArray[np.float64], log: SwfLog, row: NDArray[np.intp]) -> tuple[float, ...]:
    """Return times as integers where all are whole: exact, and faster to compare."""
    if np.abs(values).max() > LARGEST_TIME_S:
        raise _refusal(log, row, values, f"is not a time in seconds below {LARGEST_TIME_S}")
    if (values == np.floor(values)).all():
        return tuple(values.astype(np.int64).tolist())
    return tuple(values.tolist())


def _whole(values: NDArray[np.float64], log: SwfLog, row: NDArray[np.intp], what: str) -> tuple[int, ...]:
    fits = (values == np.floor(values)) & (np.abs(values) <= LARGEST_COUNT)
    if not fits.all():
        raise _refusal(log, row, np.where(fits, -np.inf, np.abs(values)), f"is not {what}")
    return tuple(values.astype(np.int64).tolist())


def _refusal(log: SwfLog, row: NDArray[np.intp], values: NDArray[np.float64], message: str) -> InputError:
    worst = int(np.argmax(values))
    return InputError(f"{values[worst]:g} {message}", path=f"job {log.column(SwfField.JOB)[row[worst]]:g}")


def zeros(count: int, kind: type = int, *, is_compiled: bool, grows: bool = False) -> Column:
    """Return zeros for kernels: an array, or in plain Python a list, empty if it grows in use."""
    if is_compiled:
        return np.zeros(count, kind)
    return [] if grows else [kind(0)] * count
