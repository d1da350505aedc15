"""Runs in processes: own ones on this machine, or a Dask cluster's; one run at a time each.

Processes here are spawned: none of the parent's threads or state comes along. A process that dies
takes only its run with it, and another tries that again. If the parent dies they end at once.
"""

import os
import warnings
import zlib
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any
from uuid import uuid4

from ..auction.parts.workers import ONE_AT_A_TIME, UNGUARDED, connected
from ..cluster.errors import AucschedError
from ..models.winners.spawning import ends_with, spawning
from .axes import Row
from .run_plan import KINDS, Run, Subject, lost_row, run_row

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
