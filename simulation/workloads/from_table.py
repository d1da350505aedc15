"""Tables of jobs, one in each row: CSV with any column names, and output of ``sacct -P``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite

from ...cluster.errors import InputError, OptionError
from ...cluster.workload import ClusterWorkload
from ...formats.delimited import Row, Table
from ...formats.notes import Notes
from ...slurm.answers.text import duration_s
from .clusters import EvenCluster
from .imported import LoggedJob, imported_workload

#: What a job may say -> names of columns that say it where no other is given, the first that there is.
KNOWN: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "job_id", "jobid", "JobID", "name"),
    "time": ("time", "submit_time", "submit", "creation_time", "Submit"),
    "duration": ("duration", "run_time", "ElapsedRaw", "Elapsed"),
    "start": ("start_time", "scheduled_time", "Start"),
    "end": ("end_time", "deletion_time", "End"),
    "limit": ("limit", "time_limit", "TimelimitRaw", "Timelimit"),
    "nodes": ("nodes", "node_num", "num_nodes", "NNodes"),
    "cores": ("cores", "cpu_num", "num_cpus", "NCPUS"),
    "gpus": ("gpus", "gpu_num", "num_gpu", "AllocTRES", "ReqTRES"),
    "user": ("user", "User"),
}
_NOTHING = frozenset({"", "none", "null", "nan", "unknown", "n/a", "-"})
_UNLIMITED = frozenset({"unlimited", "partition_limit", "infinite"})
_GPUS = re.compile(r"(?:^|,)gres/gpu(?::[^=,]*)?=(\d{1,9})")
_MOST = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """A table's column for each thing that jobs say, and how many seconds a limit without a unit counts."""

    columns: Mapping[str, str]
    limit_unit_s: float


def columns_of(table: Table, given: Mapping[str, str]) -> Mapping[str, str]:
    """Return the column of each thing that a job may say.

    Raises:
        InputError: there is no column of a given name, none with times, or none that says how long.
        OptionError: jobs say no such thing.
    """
    found = {
        what: next(name for name in names if name in table.columns)
        for what, names in KNOWN.items()
        if any(name in table.columns for name in names)
    }
    for what, name in given.items():
        if what not in KNOWN:
            raise OptionError(f"--column {what}={name}: {what!r} is not one of {', '.join(KNOWN)}")
        if name not in table.columns:
            raise InputError(f"there is no column {name!r}", path="line 1")
        found[what] = name
    if "time" not in found:
        raise InputError("no column says when jobs are submitted: --column time=NAME", path="line 1")
    if "duration" not in found and not {"start", "end"} <= found.keys():
        raise InputError(
            "no column says how long jobs ran: --column duration=NAME, or start and end", path="line 1"
        )
    return found


def workload_of_table(
    name: str, table: Table, given: Mapping[str, str], cluster: EvenCluster
) -> tuple[ClusterWorkload, Notes]:
    """Return a table's jobs on a cluster of equal nodes.

    Times are seconds or dates (ISO 8601, UTC where they do not say), durations and limits seconds or
    ``[D-]HH:MM:SS``.

    Raises:
        InputError: a column is missing, a field is none, or no job is left.
        OptionError: as ``columns_of``.
    """
    source = _Source(columns=columns_of(table, given), limit_unit_s=1)
    notes = Notes()
    _note_columns(table, source, notes)
    jobs = [row.made(_reader(source)) for row in table.rows]
    return imported_workload(name, jobs, cluster, notes), notes


def workload_of_sacct(name: str, table: Table, cluster: EvenCluster) -> tuple[ClusterWorkload, Notes]:
    """Return the jobs of ``sacct -P``'s table on a cluster of equal nodes; steps are left out.

    Raises:
        InputError: a column is missing, a field is none, or no job is left.
    """
    if "JobID" not in table.columns:
        raise InputError("there is no column JobID: sacct -P --format=JobID,Submit,…", path="line 1")
    # TimelimitRaw counts minutes; Timelimit is written out.
    source = _Source(columns=columns_of(table, {"id": "JobID"}), limit_unit_s=60)
    notes = Notes()
    _note_columns(table, source, notes)
    rows = [row for row in table.rows if "." not in row.text("JobID")]
    if len(rows) < len(table.rows):
        notes.add("steps", f"{len(table.rows) - len(rows)} rows are steps of jobs: left out")
    jobs = [row.made(_reader(source)) for row in rows]
    return imported_workload(name, jobs, cluster, notes), notes


def _note_columns(table: Table, source: _Source, notes: Notes) -> None:
    for what, name in source.columns.items():
        notes.add("columns", f"{what} is the column {name}")
    for name in table.columns:
        if name not in source.columns.values():
            notes.add("other columns", f"the column {name} is not read")


def _reader(source: _Source) -> Callable[[Row], LoggedJob]:
    columns = source.columns

    def field(row: Row, what: str) -> str:
        return row.text(columns[what]) if what in columns else ""

    def seconds(row: Row, what: str, read: Callable[[str, str], float | None]) -> float | None:
        return read(field(row, what), columns.get(what, what))

    def job(row: Row) -> LoggedJob:
        submit = seconds(row, "time", _moment)
        if submit is None:
            raise InputError("there is no time", path=columns["time"])
        run = seconds(row, "duration", _length)
        if run is None:
            start, end = seconds(row, "start", _moment), seconds(row, "end", _moment)
            run = 0.0 if start is None or end is None else end - start
        limit = seconds(row, "limit", lambda text, path: _limit(text, path, source.limit_unit_s))
        return LoggedJob(
            id=field(row, "id") or str(row.line),
            submit_s=submit,
            run_s=run,
            limit_s=limit,
            cores=_count(field(row, "cores"), columns.get("cores", "")),
            nodes=_count(field(row, "nodes"), columns.get("nodes", "")),
            gpus=_gpus(field(row, "gpus"), columns.get("gpus", "")),
            user=field(row, "user"),
        )

    return job


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) and abs(value) < _MOST and text.isascii() else None


def _moment(text: str, path: str) -> float | None:
    if text.casefold() in _NOTHING:
        return None
    number = _number(text)
    if number is not None:
        return number
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text!r} is neither seconds nor a date", path=path) from None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def _length(text: str, path: str) -> float | None:
    if text.casefold() in _NOTHING:
        return None
    value = _number(text)
    if value is None:
        value = duration_s(text)
    if value is None:
        raise InputError(f"{text!r} is neither seconds nor [D-]HH:MM:SS", path=path)
    return value


def _limit(text: str, path: str, unit_s: float) -> float | None:
    if text.casefold() in _UNLIMITED:
        return None
    number = _number(text)
    value = _length(text, path) if number is None else number * unit_s
    return value if value and value > 0 else None


def _count(text: str, path: str) -> int | None:
    if text.casefold() in _NOTHING:
        return None
    number = _number(text)
    if number is None or number < 0 or number != int(number):
        raise InputError(f"{text!r} is not a count", path=path)
    return int(number) or None


def _gpus(text: str, path: str) -> int | None:
    """Return a count of GPUs, or that of Slurm's trackable resources (cpu=4,gres/gpu=2)."""
    if "=" in text:
        typed = _GPUS.findall(text)
        return int(typed[0]) if typed else None
    return _count(text, path)
