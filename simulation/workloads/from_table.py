"""Tables of jobs, one in each row: CSV with any column names, and sacct's with Slurm's starts."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import ceil, inf
from typing import Any, TypeVar
from warnings import warn

from ...cluster.errors import InputError, OptionError
from ...cluster.text import plural
from ...cluster.workload import ClusterWorkload
from ...formats.delimited import FileTable, Row
from ...formats.notes import Notes
from ...slurm.answers.answer_text import duration_s, memory_mib
from ...slurm.answers.consumables import gres_of_tres
from ...slurm.answers.states import PHASES, JobPhase
from .imported import LoggedJob, imported_workload

T = TypeVar("T")
#: What a job may say -> columns that say it by default; the first with a value counts.
KNOWN: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "job_id", "jobid", "JobID", "name"),
    "time": ("time", "submit_time", "submit", "creation_time", "Submit"),
    "duration": ("duration", "run_time", "ElapsedRaw", "Elapsed"),
    "start": ("start", "start_time", "scheduled_time", "Start"),
    "end": ("end", "end_time", "deletion_time", "End"),
    "limit": ("limit", "time_limit", "TimelimitRaw", "Timelimit"),
    "nodes": ("nodes", "node_num", "num_nodes", "NNodes"),
    "cores": ("cores", "cpu_num", "num_cpus", "NCPUS", "AllocCPUS", "ReqCPUS"),
    "gpus": ("gpus", "gpu_num", "num_gpu", "AllocTRES", "ReqTRES"),
    "priority": ("priority", "Priority"),
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

    Times are seconds or dates (ISO 8601, UTC where they do not say), durations and limits seconds
    or ``[D-]HH:MM:SS``.

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
    """Reads jobs: the columns of each thing, and how many seconds a limit without a unit counts.

    ``is_local``: dates without a zone are this machine's local time, as Slurm prints them; else UTC.
    """

    columns: Mapping[str, tuple[str, ...]]
    limit_unit_s: float
    is_local: bool = False

    def job(self, row: Row) -> LoggedJob:
        """Return a row's job.

        Raises:
            InputError: a field is not what its column holds, or there is no time.
        """
        submit = self._read(row, "time", self.moment)
        if submit is None:
            raise InputError("there is no time", path=self.columns["time"][0])
        run, start = self._read(row, "duration", _length), self._read(row, "start", self.moment)
        if run is None:
            end = self._read(row, "end", self.moment)
            run = 0.0 if start is None or end is None else end - start
        return LoggedJob(
            id=self.text(row, "id") or str(row.line),
            submit_s=submit,
            start_s=start,
            run_s=run,
            limit_s=self._read(row, "limit", self._limit),
            cores=self._read(row, "cores", _count),
            nodes=self._read(row, "nodes", _count),
            gres=self._read(row, "gpus", _gres) or {},
            priority=self._read(row, "priority", _count),
            user=self.text(row, "user"),
            account=self.text(row, "account"),
            partition=self.text(row, "partition"),
            qos=self.text(row, "qos"),
        )

    def moment(self, text: str, path: str) -> float | None:
        """Return a time in seconds since the epoch; None: none."""
        if text.casefold() in _NOTHING:
            return None
        number = _number(text)
        if number is not None:
            return number
        try:
            date = datetime.fromisoformat(text)
            return (date if date.tzinfo or self.is_local else date.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            raise InputError(f"{text!r} is neither seconds nor a date", path=path) from None

    def text(self, row: Row, what: str) -> str:
        """Return the first column's text that has any, empty where none has."""
        return self._found(row, what)[0]

    def _found(self, row: Row, what: str) -> tuple[str, str]:
        texts = ((row.text(name), name) for name in self.columns.get(what, ()))
        return next((found for found in texts if found[0]), ("", what))

    def _read(self, row: Row, what: str, read: Callable[[str, str], T | None]) -> T | None:
        text, path = self._found(row, what)
        return None if text.casefold() in _NOTHING else read(text, path)

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
    return value if abs(value) < _MOST and text.isascii() and "_" not in text else None


def _date(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):  # no calendar goes so far
        return f"{seconds:g} s"


def _length(text: str, path: str) -> float:
    value = _number(text)
    if value is None:
        value = duration_s(text)
    if value is None:
        raise InputError(f"{text!r} is neither seconds nor [D-]HH:MM:SS", path=path)
    return value


def _count(text: str, path: str) -> int | None:
    number = _number(text)
    if number is None or number < 0 or number != int(number):
        raise InputError(f"{text!r} is not a count", path=path)
    return int(number) or None


def _gres(text: str, path: str) -> dict[str, int]:
    """Return a count of GPUs, or the gres of trackable resources (cpu=4,gres/gpu:a100=2)."""
    if "=" not in text:
        count = _count(text, path)
        return {"gpu": count} if count else {}
    return gres_of_tres(text, path)


#: The columns that are read, as sacct names them.
COLUMNS = (
    *("JobID", "User", "Account", "Partition", "QOS", "State", "Priority", "Submit", "Eligible"),
    *("Start", "End", "ElapsedRaw", "TimelimitRaw", "NNodes", "NCPUS", "ReqMem", "ReqTRES", "AllocTRES"),
)
#: What is said of dates in a table of sacct; SLURM_TIME_FORMAT=%s prints seconds instead.
_LOCAL = "times of sacct have no zone: read as this machine's local time (SLURM_TIME_FORMAT=%s tells)"
#: What prints them.
COMMAND = ("sacct", "-a", "-X", "-P", f"--format={','.join(COLUMNS)}")
_BESIDES = ("State", "Eligible", "ReqMem")
_WAITING, _RUNNING = PHASES[JobPhase.PENDING], PHASES[JobPhase.HOLDING] | PHASES[JobPhase.SUSPENDED]
#: In these a job may have ended that no node ever ran; "" is of a table without states.
_NEVER_RAN = frozenset({"", "CANCELLED", "DEADLINE", "REVOKED", "BOOT_FAIL"})
#: What ends within its first second ran that long.
_SHORTEST_S = 1.0


def workload_of_sacct(
    name: str,
    table: FileTable,
    machine: ClusterWorkload,
    *,
    since: float | None = None,
    until: float | None = None,
) -> tuple[ClusterWorkload, Notes]:
    """Return the jobs of sacct's table on a machine, with their starts; the others are counted.

    A job comes when it became eligible. One that ran when the history began holds its resources
    until it ended, and has no start. One that waited then comes at the beginning. One that still
    runs is taken to run for its time limit. Jobs without a limit of their own get the longest in
    their partition.

    Args:
        name: of the workload.
        table: sacct's.
        machine: without jobs.
        since: when the history begins, seconds since the epoch; None: when the first job of the
            table ended, for sacct lists what ran or waited at some time of its own period.
        until: when it ends; None: never.

    Raises:
        InputError: a column is missing, no row can be read, or no job is left.
    """
    notes = Notes()
    history = _history_of(table)
    note_unread(table, history.reader.columns, _BESIDES, notes)
    if history.has_dates(table):
        notes.add("time", _LOCAL)
    found = history.ended(history.jobs(table))
    over = [job for job in found if (job.id, job.start_s) not in history.running]
    ends = [job.start_s + job.run_s for job in over if job.start_s is not None]
    begin = min(ends, default=-inf) if since is None else since
    jobs = list(history.within(found, begin, inf if until is None else until))
    if found and not jobs and (since, until) != (None, None):
        times = sorted(job.submit_s for job in found)
        text = f"all came from {_date(times[0])} to {_date(times[-1])}"
        raise InputError(f"--since, --until leave no job: {text}")
    for text, count in history.counts.items():
        thing, _, rest = text.partition(" ")
        notes.add("history", f"{plural(count, thing)} {rest}")
    return imported_workload(name, jobs, machine, notes), notes


def logged_jobs(table: FileTable) -> list[LoggedJob]:
    """Return the jobs of sacct's table that started, running ones with how long they have run.

    Rows that cannot be read are left out with a warning; another says that times have no zone.

    Raises:
        InputError: a column is missing, or no row can be read.
    """
    history = _history_of(table)
    found = history.jobs(table)
    for text in (history.spoiled, _LOCAL * history.has_dates(table)):
        if text:
            warn(text, stacklevel=2)
    return found


def _history_of(table: FileTable) -> "_History":
    columns = columns_of(table, {})
    for what, column in (("id", "JobID"), ("time", "Submit"), ("duration", "ElapsedRaw")):
        if what not in columns and not (what == "duration" and {"start", "end"} <= columns.keys()):
            raise InputError(f"there is no column {column}: {' '.join(COMMAND)}", path="line 1")
    reader = TableReader(columns=columns, limit_unit_s=60, is_local=True)
    return _History(reader=reader, columns=frozenset(table.columns))


@dataclass(slots=True, kw_only=True)
class _History:
    """Reads the rows; ``counts`` says how many were taken otherwise than they are, by text.

    Attributes:
        running: names and starts of jobs that still run; a requeued one has a row for each run.
        spoiled: how many rows could not be read, and why the first could not.
    """

    reader: TableReader
    columns: frozenset[str]
    counts: Counter[str] = field(default_factory=Counter)
    running: set[tuple[str, float | None]] = field(default_factory=set)
    spoiled: str = ""

    def has_dates(self, table: FileTable) -> bool:
        """Return whether submissions are dates without a zone."""
        texts = (self.reader.text(row, "time") for row in table.rows)
        return any(text[4:5] == "-" and not set(text[10:]) & set("+-Z") for text in texts)

    def jobs(self, table: FileTable) -> list[LoggedJob]:
        """Return the rows' jobs; rows that cannot be read are left out, unless all are such."""
        found: list[LoggedJob | None] = []
        spoiled: list[str] = []
        for row in table.rows:
            try:
                found.append(self.read(row))
            except InputError as error:
                spoiled.append(f"job {self.reader.text(row, 'id')}, {error}")
        jobs = [job for job in found if job is not None]
        if spoiled and not jobs:
            raise InputError(spoiled[0])
        if spoiled:
            text = f"cannot be read: left out ({spoiled[0]})"
            self.counts[f"row {text}"] = len(spoiled)
            self.spoiled = f"{plural(len(spoiled), 'row')} of sacct {text}"
        return jobs

    def read(self, row: Row) -> LoggedJob | None:
        """Return a row's job; None of a step and of a job that waits."""
        if "." in self.reader.text(row, "id"):
            self.counts["row named a step of a job: left out"] += 1
            return None
        return row.made(self._job)

    def _job(self, row: Row) -> LoggedJob | None:
        job = self.reader.job(row)
        job = replace(job, **self._memory(row, job.nodes or 1))
        state = self._text(row, "State").partition(" ")[0].upper()
        if state in _WAITING and job.run_s <= 0:
            self.counts["job had not started when sacct was asked: left out"] += 1
            return None
        if "+" in job.id:
            self.counts["job belonged to a heterogeneous job: each part may start alone"] += 1
        eligible = self.reader.moment(self._text(row, "Eligible"), "Eligible")
        if eligible is not None and job.submit_s < eligible <= (job.start_s or -inf):
            self.counts["job became eligible after submission: waits from then on"] += 1
            job = replace(job, submit_s=eligible)
        if state in _RUNNING:
            self.running.add((job.id, job.start_s))
        elif job.run_s <= 0 and state not in _NEVER_RAN:
            self.counts[f"job ran less than {_SHORTEST_S:g} s: taken as {_SHORTEST_S:g} s"] += 1
            job = replace(job, run_s=_SHORTEST_S)
        return job

    def _text(self, row: Row, column: str) -> str:
        return row.text(column) if column in self.columns else ""

    def _memory(self, row: Row, nodes: int) -> dict[str, Any]:
        """Return the memory: ``4Gn`` is each node's, ``2Gc`` each core's, ``16G`` the job's."""
        text = self._text(row, "ReqMem")
        unit = text[-1:] if text[-1:] in ("n", "c") else ""
        amount = memory_mib(text.removesuffix(unit)) if text else 0
        if amount is None:
            raise InputError(f"{text!r} is not an amount of memory", path="ReqMem")
        if not amount:
            return {}
        if unit == "c":
            return {"memory_mib_per_core": amount}
        return {"memory_mib_per_node": amount if unit else ceil(amount / nodes)}

    def ended(self, jobs: Sequence[LoggedJob]) -> list[LoggedJob]:
        """Return the jobs with limits, and with ends of those that still run."""
        longest: dict[str, float] = {}
        for job in jobs:
            longest[job.partition] = max(longest.get(job.partition, 0), job.limit_s or 0)
        found = []
        for job in jobs:
            limit_s, run_s = job.limit_s, job.run_s
            if limit_s is None and longest[job.partition]:
                self.counts["job had no limit: the longest that is asked for in the partition"] += 1
                limit_s = max(longest[job.partition], run_s)
            if (job.id, job.start_s) in self.running:
                self.counts["job still ran: taken to run for the time limit"] += 1
                run_s = max(run_s, limit_s or 0)
            found.append(replace(job, limit_s=limit_s, run_s=run_s))
        return found

    def within(self, jobs: Sequence[LoggedJob], begin: float, end: float) -> Iterator[LoggedJob]:
        """Yield a history's jobs; what ran before goes on, what waited comes at the beginning."""
        top = 1 + max((job.priority or 0 for job in jobs), default=0)
        for job in jobs:
            start = job.submit_s if job.start_s is None else job.start_s
            if job.run_s <= 0:
                yield job
            elif job.submit_s > end:
                self.counts["job came after the history: left out"] += 1
            elif job.run_s <= begin - start:
                self.counts["job ended before the history: left out"] += 1
            elif start < begin:
                self.counts["job ran when the history began: not compared"] += 1
                run_s = job.run_s - (begin - start)
                limit_s = None if job.limit_s is None else max(job.limit_s - (begin - start), 1.0)
                yield replace(job, submit_s=begin, start_s=None, run_s=run_s, limit_s=limit_s, priority=top)
            elif job.submit_s < begin:
                self.counts["job waited when the history began: waits from then on"] += 1
                yield replace(job, submit_s=begin)
            else:
                yield job
