"""A sweep from its plan to its files: runs in the journal are skipped, others run and recorded.

From its journal a sweep killed at any moment resumes, and a larger one takes it over. One line a
row (``formats/checked_lines.py``) is on the disk before anybody hears of the row. The first line
says which sweep it is.

Runs are in processes: own ones on this machine, or a Dask cluster's; one run at a time each. Own
ones are spawned: none of the parent's threads or state comes along. A process that dies takes only
its run with it, and another tries that again. If the parent dies they end at once.
"""

import json
import os
import time
import warnings
import zlib
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, nullcontext
from functools import lru_cache
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from ..auction.parts.workers import ONE_AT_A_TIME, UNGUARDED, connected
from ..cluster.errors import AucschedError, InputError
from ..cluster.option_fields import flag_of
from ..cluster.text import hidden_in
from ..formats.checked_lines import CheckedLines
from ..formats.writing import is_stream, remove_leftovers
from ..models.winners.spawning import ends_with, spawning
from .axes import Row
from .results import write_table
from .run_plan import FAILED, KINDS, Run, RunPlan, Subject, lost_row, run_row, versions

#: How often a run is tried when its process dies, and how often a process may fail to start.
TRIES = 3

#: What keeps the numeric libraries to one thread.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def run_here(subject: Subject, runs: Sequence[Run]) -> Generator[Row, None, None]:
    """Yield the rows of runs in their order, from this process."""
    loaded = KINDS[subject.kind].load(subject.content)
    for run in runs:
        yield run_row(subject.kind, loaded, run)


def run_locally(subject: Subject, runs: Sequence[Run], workers: int) -> Generator[Row, None, None]:
    """Yield rows of runs as they are done, in no order; closing the iterator ends the processes.

    Raises:
        AucschedError: processes cannot start.
    """
    # A pool of one process each: who dies breaks no other's.
    pools: list[ProcessPoolExecutor] = []
    theirs, ours = get_context("spawn").Pipe(duplex=False)
    try:
        yield from _rows_of_pools(subject, theirs, pools, deque(runs), min(workers, len(runs)))
    finally:
        ours.close()
        for pool in pools:
            pool.shutdown()
        theirs.close()


def _rows_of_pools(
    subject: Subject, theirs: Connection, pools: list[ProcessPoolExecutor], waiting: deque[Run], size: int
) -> Iterator[Row]:
    """Yield rows as they are done by at most so many processes, which end when ``theirs`` does."""
    tries: Counter[int] = Counter()
    failed_starts = 0
    # What each process does; a new one loads the input, which is no run.
    needs_script = any(str(run.options.get("policy")).startswith("__main__:") for run in waiting)
    busy: dict[Future[Row | None], tuple[ProcessPoolExecutor, Run | None]] = {}
    while waiting or any(run for _, run in busy.values()):
        while waiting and len(busy) < size:
            pool = ProcessPoolExecutor(1, get_context("spawn"), _begin, (subject, theirs))
            pools.append(pool)
            with _environment(), spawning(needs_script=needs_script):
                busy[pool.submit(_done, None)] = pool, None
        for future in wait(busy, return_when=FIRST_COMPLETED).done:
            pool, run = busy.pop(future)
            try:
                row = future.result()
            except BrokenProcessPool:
                pools.remove(pool)
                if run is None:
                    failed_starts += 1
                    if failed_starts == TRIES:
                        why = f"worker processes end as they start ({UNGUARDED.format('sweep')})"
                        raise AucschedError(why) from None
                    continue
                tries[run.number] += 1
                if tries[run.number] < TRIES:
                    waiting.appendleft(run)
                else:
                    yield lost_row(run)
                continue
            failed_starts = 0
            if waiting:
                run = waiting.popleft()
                busy[pool.submit(_done, run)] = pool, run
            if row is not None:
                yield row


@contextmanager
def _environment() -> Iterator[None]:
    """Let processes that start now inherit ``_ONE_THREAD``."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(_ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


#: In a process of a sweep: the kind of its input, and the input as it is loaded.
_held: list[Any] = []


def _begin(subject: Subject, parent: Connection) -> None:
    """Load the input in a process for runs; it ends when the parent closes its end or dies."""
    ends_with(parent)
    _held[:] = subject.kind, KINDS[subject.kind].load(subject.content)


def _done(run: Run | None) -> Row | None:
    """Do one run, None for none."""
    return None if run is None else run_row(_held[0], _held[1], run)


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


def run_on_dask(address: str, subject: Subject, runs: Sequence[Run]) -> Generator[Row, None, None]:
    """Yield the rows of runs as they are done, in no order.

    If its worker dies, another takes a run, as often as the scheduler's ``allowed-failures`` says.

    Raises:
        OptionError: no scheduler answers at the address.
        AucschedError: the scheduler went away, or its workers cannot run aucsched.
    """
    if runs:
        with connected(address) as client:
            yield from _rows(client, subject, runs)


def _rows(client: Any, subject: Subject, runs: Sequence[Run]) -> Generator[Row, None, None]:
    from distributed import KilledWorker, as_completed  # noqa: PLC0415 - the extra may be absent

    turn = uuid4().hex
    with warnings.catch_warnings():
        # A large input is sent once, whatever Dask thinks of its size.
        warnings.filterwarnings("ignore", "Sending large graph")
        # A task, not scattered data: if the worker with it dies, the scheduler makes it again.
        held = client.submit(bytes, zlib.compress(subject.content), key=f"aucsched-input-{turn}")
        name = f"aucsched-{turn}"
        source = (subject.kind, subject.digest, held)
        futures = {client.submit(_row, *source, run, key=f"{name}-{run.number}"): run for run in runs}
    for future in as_completed(futures, loop=client.loop):
        run = futures.pop(future)
        try:
            row: Row = future.result()
        except KilledWorker:
            row = lost_row(run)
        except Exception as error:
            raise AucschedError(f"the Dask cluster failed: {type(error).__name__}: {error}") from error
        future.release()
        yield row


def _row(kind: str, digest: str, packed: bytes, run: Run) -> Row:
    """Do one run on a worker."""
    with ONE_AT_A_TIME:
        return run_row(kind, _loaded(kind, digest, packed), run)


@lru_cache(maxsize=1)
def _loaded(kind: str, digest: str, packed: bytes) -> Any:  # noqa: ARG001 - the key's cheap part
    return KINDS[kind].load(zlib.decompress(packed))


#: Runs an input's runs and yields their rows in any order.
Executor = Callable[[Subject, Sequence[Run]], Generator[Row, None, None]]

#: The share of its time that a sweep may spend on writing the tables while it goes on.
_SHARE_FOR_TABLES = 0.2


def sweep(
    plan: RunPlan,
    outputs: Sequence[Path],
    executor: Executor,
    *,
    retry_failed: bool = False,
    on_start: Callable[[int, Mapping[str, Any]], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Row]:
    """Run what is not done yet, keep each row as it comes, and return all in the grid's order.

    Args:
        plan: the runs.
        outputs: tables to write; the journal is next to the first. Without any, no file is written.
        executor: runs them.
        retry_failed: run those again whose row holds an error.
        on_start: called once, before the first run: the number of rows, the versions of the first.
        progress: called with the number of rows, at the beginning and after each.

    Raises:
        InputError: a file cannot be written, is another sweep's, or is in use by one.
    """
    with _journal(plan, outputs) if outputs else nullcontext() as journal:
        rows = {
            number: row
            for number, row in (journal.rows.items() if journal else ())
            if not (retry_failed and row["status"] == FAILED)
        }
        if on_start is not None and journal:
            on_start(len(rows), journal.begun_with)
        show = progress or (lambda _: None)
        show(len(rows))
        tables = _Tables(plan, outputs)
        waiting = [run for run in plan.runs if run.number not in rows]
        with closing(executor(plan.subject, waiting)) as results:
            for row in results:
                if journal:
                    journal.add(row)
                rows[int(str(row["run"]))] = row
                show(len(rows))
                tables.refresh(rows)
        return tables.write(rows)


def _journal(plan: RunPlan, outputs: Sequence[Path]) -> "Journal":
    path = outputs[0].with_name(f"{outputs[0].name}.journal")
    for output in outputs:
        if not path.exists() and output.exists() and output.stat().st_size:
            message = f"there is no {path.name} to resume from: remove the file, or give another -o"
            raise InputError(message, file=str(output))
    return Journal(path, plan.identity(), [run.options for run in plan.runs], versions())


class _Tables:
    """The output files, kept up to date: each is whole and in the grid's order at any moment."""

    def __init__(self, plan: RunPlan, outputs: Sequence[Path]) -> None:
        self._outputs = outputs
        self._source: Row = {"input": plan.subject.name, "input_sha256": plan.subject.digest}
        self._not_before = 0.0
        for output in outputs:
            remove_leftovers(output)

    def refresh(self, rows: Mapping[int, Row]) -> None:
        """Write the rows there are, unless that would take too much of the time."""
        if time.monotonic() >= self._not_before:
            self._write(rows, [output for output in self._outputs if not is_stream(output)])

    def write(self, rows: Mapping[int, Row]) -> list[Row]:
        """Write the rows there are, and return them; what reads a pipe gets them here, once."""
        return self._write(rows, self._outputs)

    def _write(self, rows: Mapping[int, Row], outputs: Sequence[Path]) -> list[Row]:
        began = time.monotonic()
        ordered = [{"run": number, **self._source, **rows[number]} for number in sorted(rows)]
        for output in outputs:
            write_table(output, ordered)
        ended = time.monotonic()
        self._not_before = ended + (ended - began) / _SHARE_FOR_TABLES
        return ordered


FORMAT = "aucsched-sweep/1"

#: Columns of a result that hold texts.
_TEXTS = frozenset({"status", "error", *versions()})
_LARGEST = 2**63


class _Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first line: which sweep it is, by RunPlan.identity, and what computed its first rows."""

    format: str
    sweep: dict[str, str]
    versions: dict[str, str]


class _Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Any other line."""

    row: dict[str, int | float | str | None]


#: What two sweeps must share, in words of Plan.identity.
_SAME = ("input", "--seed")


def _text(entry: Mapping[str, Any]) -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode()


class Journal(CheckedLines):
    """An open journal; ``rows`` are those it held when it was opened, by number.

    Raises:
        InputError: it is another sweep's, damaged, in use, or cannot be written.
    """

    def __init__(
        self,
        path: Path,
        identity: Mapping[str, str],
        runs: Sequence[Row],
        versions: Mapping[str, Any],
    ) -> None:
        self._runs, self._identity = runs, dict(identity)
        self.begun_with = versions
        self.rows: dict[int, Row] = {}
        super().__init__(path, kind="journal of a sweep", owner="sweep")

    def add(self, row: Row) -> None:
        """Append a row; when this returns it is on the disk."""
        self.append(_text({"row": row}))

    def take_up(self) -> None:
        """Read what is done; a journal that has yet to begin says which sweep it is."""
        if not self.held:
            head = {"format": FORMAT, "sweep": self._identity, "versions": dict(self.begun_with)}
            self.append(_text(head))
            return
        (first,) = self.decoded(_Head, first=1, most=1)
        grown = self._grown(first)
        self._check_head(grown)
        for number, line in enumerate(self.decoded(_Line, first=2), start=2):
            self._check_row(line.row, number)
            self.rows[int(str(line.row["run"]))] = line.row
        self.begun_with = grown.versions

    def _grown(self, head: _Head) -> _Head:
        """Let the journal be that of a larger sweep, where all its runs are among the larger one's.

        The file is replaced whole: a kill leaves the old journal or the new one. What is no such
        journal is left alone, to be refused.
        """
        identity = self._identity
        if head.sweep == identity or any(head.sweep.get(name) != identity.get(name) for name in _SAME):
            return head
        try:
            before = [line.row for line in self.decoded(_Line, first=2)]
        except InputError:
            return head
        rows = _renumbered(before, self._runs, identity)
        grown = msgspec.structs.replace(head, sweep=identity)
        texts = [_text(msgspec.structs.asdict(grown)), *(_text({"row": row}) for row in rows)]
        if not rows or not self.begin_again(texts):
            return head
        self.held = texts
        return grown

    def _check_row(self, row: Row, number: int) -> None:
        """Refuse a row that is no run of this sweep with its options; old ones lack defaults."""
        run = row.get("run")
        if not isinstance(run, int) or not 0 <= run < len(self._runs):
            runs = len(self._runs)
            raise self.error(f"line {number}: run {run!r} is not one of this sweep's {runs}")
        for name, value in self._runs[run].items():
            is_older = row.get(name) is None and flag_of(name) not in self._identity
            if row.get(name) != value and not is_older:
                told = f"run {run} has {name} {value}, not {row.get(name)!r:.60}"
                raise self.error(f"line {number}: {told}")
        for name in row.keys() - self._runs[run].keys():
            value = row[name]
            is_beyond = isinstance(value, int) and abs(value) >= _LARGEST
            if hidden_in(name) or is_beyond or (isinstance(value, str) and name not in _TEXTS):
                raise self.error(f"line {number}: {value!r:.60} is not a value of {name!r:.60}")
        if not row.get("status") or (row["status"] == FAILED and not row.get("error")):
            raise self.error(f"line {number}: run {run} does not say how it ended")

    def _check_head(self, head: _Head) -> None:
        """Refuse another sweep's journal."""
        if head.format != FORMAT:
            raise self.error(f"{head.format!r} is not {FORMAT!r}")
        for name in dict.fromkeys((*_SAME, *head.sweep, *self._identity)):
            then, now = head.sweep.get(name), self._identity.get(name)
            if then != now:
                difference = f"the sweep it holds has {_setting(name, then)}, this one {_setting(name, now)}"
                raise self.error(f"{difference}; give another -o, or remove it to start over")


def _setting(name: str, value: str | None) -> str:
    """Return one part of a sweep's identity as a person reads it."""
    if value is None:
        return f"no {name}"
    if name == "input":
        kind, _, digest = value.partition(" ")
        return f"as input a {kind} of SHA-256 {digest[:12]}…"
    return f"{name} {value}"


def _renumbered(rows: Sequence[Row], runs: Sequence[Row], identity: Mapping[str, str]) -> list[Row]:
    """Return the rows numbered as the runs with equal options; none if one has no such run."""
    numbers: dict[tuple[str, ...], dict[str, int]] = {}
    written = {name for row in rows for name, value in row.items() if value is not None}
    for number, options in enumerate(runs):
        names = tuple(sorted(name for name in options if name in written or flag_of(name) in identity))
        numbers.setdefault(names, {})[_key(options, names)] = number
    found: dict[int, Row] = {}
    for row in rows:
        places = {by[_key(row, names)] for names, by in numbers.items() if _key(row, names) in by}
        if len(places) != 1 or not places.isdisjoint(found):
            return []
        number = places.pop()
        found[number] = {**row, "run": number}
    return list(found.values())


def _key(row: Row, names: Sequence[str]) -> str:
    return json.dumps([row.get(name) for name in names])
