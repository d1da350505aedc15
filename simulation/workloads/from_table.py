"""Tables of jobs, one in each row: CSV with any column names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import TypeVar

from ...cluster.errors import InputError, OptionError
from ...cluster.workload import ClusterWorkload
from ...formats.delimited import FileTable, Row
from ...formats.notes import Notes
from ...slurm.answers.answer_text import duration_s
from ...slurm.answers.gres_text import parse_request
from .imported import LoggedJob, imported_workload

T = TypeVar("T")
#: What a job may say -> columns that say it by default; the first with a value counts.
KNOWN: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "job_id", "jobid", "JobID", "name"),
    "time": ("time", "submit_time", "submit", "creation_time", "Submit"),
    "duration": ("duration", "run_time", "ElapsedRaw", "Elapsed"),
    "start": ("start_time", "scheduled_time", "Start"),
    "end": ("end_time", "deletion_time", "End"),
    "limit": ("limit", "time_limit", "TimelimitRaw", "Timelimit"),
    "nodes": ("nodes", "node_num", "num_nodes", "NNodes"),
    "cores": ("cores", "cpu_num", "num_cpus", "NCPUS", "AllocCPUS", "ReqCPUS"),
    "gpus": ("gpus", "gpu_num", "num_gpu", "AllocTRES", "ReqTRES"),
    "priority": ("Priority",),
    "user": ("user", "User"),
    "account": ("account", "Account"),
    "partition": ("partition", "Partition"),
    "qos": ("qos", "QOS"),
}
_NOTHING = frozenset({"", "none", "null", "nan", "unknown", "n/a", "-"})
_UNLIMITED = frozenset({"unlimited", "partition_limit", "infinite"})
_MOST = 10**12


def columns_of(table: FileTable, given: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    """Return the columns of each thing that a job may say, the first that there is first.

    Raises:
        InputError: there is no column of a given name.
        OptionError: jobs say no such thing.
    """
    found = {what: tuple(name for name in names if name in table.columns) for what, names in KNOWN.items()}
    for what, name in given.items():
        if what not in KNOWN:
            raise OptionError(f"--column {what}={name}: {what!r} is not one of {', '.join(KNOWN)}")
        if name not in table.columns:
            raise InputError(f"there is no column {name!r}", path="line 1")
        found[what] = (name,)
    return {what: names for what, names in found.items() if names}


def workload_of_table(
    name: str, table: FileTable, given: Mapping[str, str], machine: ClusterWorkload
) -> tuple[ClusterWorkload, Notes]:
    """Return a table's jobs on a machine.

    Times are seconds or dates (ISO 8601, UTC where they do not say), durations and limits seconds or
    ``[D-]HH:MM:SS``.

    Raises:
        InputError: a column is missing, a field is none, or no job is left.
        OptionError: as ``columns_of``.
    """
    columns = columns_of(table, given)
    if "time" not in columns:
        raise InputError("no column says when jobs are submitted: --column time=NAME", path="line 1")
    if "duration" not in columns and not {"start", "end"} <= columns.keys():
        raise InputError(
            "no column says how long jobs ran: --column duration=NAME, or start and end", path="line 1"
        )
    notes = Notes()
    for what, names in columns.items():
        notes.add("columns", f"{what} is the column {' or '.join(names)}")
    note_unread(table, columns, (), notes)
    reader = TableReader(columns=columns, limit_unit_s=1)
    jobs = [row.made(reader.job) for row in table.rows]
    return imported_workload(name, jobs, machine, notes), notes


def note_unread(
    table: FileTable, columns: Mapping[str, tuple[str, ...]], others: Collection[str], notes: Notes
) -> None:
    """Note which columns are not read; ``others`` are read besides those of ``columns``."""
    for name in table.columns:
        if name not in others and not any(name in names for names in columns.values()):
            notes.add("other columns", f"the column {name} is not read")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReader:
    """Reads jobs: the columns of each thing, and how many seconds a limit without a unit counts."""

    columns: Mapping[str, tuple[str, ...]]
    limit_unit_s: float

    def job(self, row: Row) -> LoggedJob:
        """Return a row's job.

        Raises:
            InputError: a field is not what its column holds, or there is no time.
        """
        submit = self._read(row, "time", moment)
        if submit is None:
            raise InputError("there is no time", path=self.columns["time"][0])
        run, start = self._read(row, "duration", _length), self._read(row, "start", moment)
        if run is None:
            end = self._read(row, "end", moment)
            run = 0.0 if start is None or end is None else end - start
        return LoggedJob(
            id=self.text(row, "id") or str(row.line),
            submit_s=submit,
            start_s=start,
            run_s=run,
            limit_s=self._read(row, "limit", self._limit),
            cores=self._read(row, "cores", _count),
            nodes=self._read(row, "nodes", _count),
            gres=self._read(row, "gpus", _gres),
            priority=self._read(row, "priority", _count),
            user=self.text(row, "user"),
            account=self.text(row, "account"),
            partition=self.text(row, "partition"),
            qos=self.text(row, "qos"),
        )

    def text(self, row: Row, what: str) -> str:
        """Return the first column's text that has any, empty where none has."""
        return self._field(row, what)[0]

    def _field(self, row: Row, what: str) -> tuple[str, str]:
        names = self.columns.get(what, ())
        texts = ((row.text(name), name) for name in names)
        return next((found for found in texts if found[0]), ("", names[0] if names else what))

    def _read(self, row: Row, what: str, read: Callable[[str, str], T]) -> T:
        return read(*self._field(row, what))

    def _limit(self, text: str, path: str) -> float | None:
        if text.casefold() in _UNLIMITED:
            return None
        number = _number(text)
        value = _length(text, path) if number is None else number * self.limit_unit_s
        return value if value and value > 0 else None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) and abs(value) < _MOST and text.isascii() else None


def moment(text: str, path: str) -> float | None:
    """Return a time in seconds since the epoch, a date without a zone as UTC; None: none."""
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


def _count(text: str, path: str) -> int | None:
    if text.casefold() in _NOTHING:
        return None
    number = _number(text)
    if number is None or number < 0 or number != int(number):
        raise InputError(f"{text!r} is not a count", path=path)
    return int(number) or None


def _gres(text: str, path: str) -> dict[str, int]:
    """Return a count of GPUs, or the gres of trackable resources (cpu=4,gres/gpu:a100=2)."""
    if "=" not in text:
        count = _count(text, path)
        return {"gpu": count} if count else {}
    counts, _ = parse_request(text, path)
    typed = {name.partition(":")[0] for name in counts if ":" in name}
    return {name: count for name, count in counts.items() if count and name not in typed}
