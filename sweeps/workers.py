"""Runs in processes: of their own on this machine, or those of a Dask cluster; one run at a time each.

Processes here are spawned: nothing of the parent's threads or state comes along. A process that dies takes
only its run with it, which another process tries again. When the parent dies they end at once.
"""

from __future__ import annotations

import os
import signal
import threading
import warnings
import zlib
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any
from uuid import uuid4

from ..auction.parts.workers import connected
from ..cluster.errors import AucschedError
from .axes import Row
from .run_plan import KINDS, Run, Subject, lost_row, run_row

#: How often a run is tried when its process dies, and how often a process may fail to start.
TRIES = 3

#: What keeps the numeric libraries to one thread.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def run_locally(subject: Subject, runs: Sequence[Run], workers: int) -> Generator[Row, None, None]:
    """Yield the rows of runs as they are done, in no order; closing the iterator ends the processes.

    Raises:
        AucschedError: processes cannot start.
    """
    pool = _Pool(subject, runs)
    try:
        yield from pool.rows(min(workers, len(runs)))
    finally:
        pool.end()


@dataclass(slots=True, eq=False, kw_only=True)
class _Worker:
    """A process, the pipe to it, the run it has; ``is_ready`` once it has loaded the input."""

    process: BaseProcess
    pipe: Connection
    run: Run | None = None
    is_ready: bool = False


class _Pool:
    """Processes, and the runs that wait for one."""

    def __init__(self, subject: Subject, runs: Sequence[Run]) -> None:
        self._subject = subject
        self._waiting = deque(runs)
        self._tries: Counter[int] = Counter()
        self._failed_starts = 0
        self._workers: list[_Worker] = []

    def rows(self, size: int) -> Iterator[Row]:
        """Yield the rows as they are done."""
        while self._waiting or any(worker.run for worker in self._workers):
            while self._waiting and len(self._workers) < size:
                self._workers.append(_start(self._subject))
            for pipe in wait([worker.pipe for worker in self._workers]):
                worker = next(worker for worker in self._workers if worker.pipe is pipe)
                row = self._received(worker)
                self._give(worker)
                if row is not None:
                    yield row

    def end(self) -> None:
        """End the processes, whatever they do."""
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.pipe.close()

    def _give(self, worker: _Worker) -> None:
        """Give a run to a worker that has none."""
        if worker in self._workers and worker.run is None and self._waiting:
            worker.run = self._waiting.popleft()
            try:
                worker.pipe.send(worker.run)
            except OSError:
                return  # it has died: the next read of its pipe says so

    def _received(self, worker: _Worker) -> Row | None:
        """Return the row that a worker sends; None when it only became ready, or died."""
        try:
            row: Row | None = worker.pipe.recv()
        except (EOFError, OSError):
            return self._died(worker)
        worker.is_ready, worker.run = True, None
        self._failed_starts = 0
        return row

    def _died(self, worker: _Worker) -> Row | None:
        """Forget a worker; let its run wait again, or return the row of a run that was tried often enough."""
        self._workers.remove(worker)
        worker.process.join()
        worker.pipe.close()
        if not worker.is_ready:
            self._failed_starts += 1
            if self._failed_starts == TRIES:
                raise AucschedError(
                    f"worker processes end as they start, with code {worker.process.exitcode}"
                )
        run = worker.run
        if run is None:
            return None
        self._tries[run.number] += 1
        if self._tries[run.number] == TRIES:
            return lost_row(run)
        self._waiting.appendleft(run)
        return None


def _start(subject: Subject) -> _Worker:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(subject, theirs), name="aucsched sweep", daemon=True)
    with _environment():
        process.start()
    theirs.close()
    return _Worker(process=process, pipe=ours)


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


def _serve(subject: Subject, pipe: Connection) -> None:
    """Be a worker: load the input, say so, then answer each run with its row, until the parent goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    Thread(target=_end_with_parent, daemon=True).start()
    loaded = KINDS[subject.kind].load(subject.content)
    try:
        pipe.send(None)
        while True:
            pipe.send(run_row(subject.kind, loaded, pipe.recv()))
    except (EOFError, OSError):
        return


def _end_with_parent() -> None:
    """Wait for the parent's death, which a kill leaves it no time to announce."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


#: A worker may have several threads; runs in one process go one after another all the same.
_ONE_AT_A_TIME = threading.Lock()


def run_on_dask(address: str, subject: Subject, runs: Sequence[Run]) -> Generator[Row, None, None]:
    """Yield the rows of runs as they are done, in no order.

    A run whose worker dies goes to another worker, as often as the scheduler's ``allowed-failures`` says.

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
        # A task, not scattered data: when the worker that holds it dies, the scheduler makes it again.
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
    with _ONE_AT_A_TIME:
        return run_row(kind, _loaded(kind, digest, packed), run)


@lru_cache(maxsize=1)
def _loaded(kind: str, digest: str, packed: bytes) -> Any:  # noqa: ARG001 - the digest is the cheap part of the key
    return KINDS[kind].load(zlib.decompress(packed))
