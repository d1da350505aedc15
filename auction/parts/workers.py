"""Who holds the auctions of a cluster's parts: this process, several processes, or a Dask cluster.

Each auction depends on nothing that another of its round finds, so that under a work limit the award is the
same whoever holds them. One whose process dies is held here.
Dask is an extra; its log is kept off standard error.
"""

from __future__ import annotations

import copyreg
import logging
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from multiprocessing import get_context
from threading import Lock
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from ...bidgen.first_fit import Cluster
from ...cluster.errors import AucschedError, OptionError
from ...cluster.resources.demand import Demand
from ...models.search.compiled_search import compiled_loop
from ..attempt import AttemptResult, attempt
from ..options import StepOptions


def _unchanging(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(mapping)


# Jobs hold mappings that nobody can change, which pickle does not know: they travel as copies.
copyreg.pickle(MappingProxyType, lambda mapping: (_unchanging, (dict(mapping),)))

#: A Dask worker may have several threads; auctions in one process are held one after another all the same.
_ONE_AT_A_TIME = Lock()
#: Seconds of an auction whose time is over: it gives first-fit's award.
_LEAST_S = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class WorkerTask:
    """An auction that somebody is to hold: its jobs, ``index`` their place, beside what is free."""

    demands: tuple[Demand, ...]
    cluster: Cluster
    options: StepOptions


class _Share(NamedTuple):
    """What an auction has of a round's time: seconds, and when all is to be over, in seconds of the day.

    None: no limit; no end where the step's clock is not the wall's.
    """

    seconds: float | None
    latest: float | None

    def left_s(self) -> float | None:
        """Return the seconds that it has when it begins now."""
        if self.seconds is None or self.latest is None:
            return self.seconds
        return max(_LEAST_S, min(self.seconds, self.latest - time.time()))


class Workers(Protocol):
    """Who holds auctions."""

    def hold(self, auctions: Sequence[WorkerTask], end: float | None) -> list[AttemptResult]:
        """Return the result of each auction; by ``end`` (of the options' clock) all are to be done."""
        ...


class Alone:
    """This process, one auction after another: what one leaves of its time, the next ones have."""

    def hold(self, auctions: Sequence[WorkerTask], end: float | None) -> list[AttemptResult]:
        """Hold the auctions."""
        results = []
        for number, auction in enumerate(auctions):
            results.append(_held_here(auction, _share(auction, end, len(auctions) - number)))
        return results


class _Processes:
    """This process and others beside it, which are spawned: nothing of its threads or state comes along."""

    def __init__(self, workers: int, pool: ProcessPoolExecutor) -> None:
        self._workers, self._pool = workers, pool
        # Loading what is compiled takes a second: they do it while bids are made here.
        with suppress(BrokenProcessPool):
            for _ in range(workers - 1):
                pool.submit(_load_search)

    def hold(self, auctions: Sequence[WorkerTask], end: float | None) -> list[AttemptResult]:
        """Hold the auctions, the last of those that wait here."""
        turns = -(-len(auctions) // self._workers)
        shares = [_share(auction, end, turns) for auction in auctions]
        waiting = [
            _submitted(self._pool, auction, share) for auction, share in zip(auctions, shares, strict=True)
        ]
        results: list[AttemptResult | None] = [None] * len(auctions)
        for place in reversed(range(len(auctions))):
            future = waiting[place]
            if future is None or future.cancel():
                results[place] = _held_here(auctions[place], shares[place])
                waiting[place] = None
        found = []
        for auction, future, share, result in zip(auctions, waiting, shares, results, strict=True):
            found.append(_result(auction, future, share) if result is None else result)
        return found


class _OnDask:
    """A Dask cluster's workers."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def hold(self, auctions: Sequence[WorkerTask], end: float | None) -> list[AttemptResult]:
        """Hold the auctions; one whose worker dies goes to another, and at last is held here."""
        from distributed import KilledWorker  # noqa: PLC0415 - the extra may be absent

        workers = max(1, len(self._client.scheduler_info(n_workers=-1)["workers"]))
        turns = -(-len(auctions) // workers)
        with warnings.catch_warnings():
            # A large cluster is sent, whatever Dask thinks of its size.
            warnings.filterwarnings("ignore", "Sending large graph")
            futures = [
                self._client.submit(_held_there, auction, _share(auction, end, turns), pure=False)
                for auction in auctions
            ]
        results = []
        for auction, future in zip(auctions, futures, strict=True):
            try:
                results.append(_restored(auction, future.result()))
            except KilledWorker:
                results.append(_held_here(auction, _share(auction, end, 1)))
            except AucschedError:
                raise
            except Exception as error:
                raise AucschedError(f"the Dask cluster failed: {type(error).__name__}: {error}") from error
        return results


@contextmanager
def crew_of(options: StepOptions) -> Iterator[Workers]:
    """Yield who holds a step's auctions.

    Raises:
        OptionError: no Dask scheduler answers, or the extra is not installed.
    """
    with ExitStack() as stack:
        if options.dask:
            check_dask()
            yield _OnDask(stack.enter_context(connected(options.dask)))
        elif options.workers > 1:
            pool = ProcessPoolExecutor(options.workers - 1, get_context("spawn"))
            stack.callback(pool.shutdown, wait=False, cancel_futures=True)
            yield _Processes(options.workers, pool)
        else:
            yield Alone()


def _share(auction: WorkerTask, end: float | None, turns: int) -> _Share:
    """Return what an auction has where so many are held one after another."""
    if end is None:
        return _Share(None, None)
    clock = auction.options.clock
    left = end - clock()
    return _Share(max(_LEAST_S, left / turns), time.time() + left if clock is time.perf_counter else None)


def _held_here(auction: WorkerTask, share: _Share) -> AttemptResult:
    seconds = share.left_s()
    deadline = None if seconds is None else auction.options.clock() + seconds
    demands = auction.demands
    return attempt(demands, auction.cluster, auction.options, size=len(demands), deadline=deadline)


def _held_there(auction: WorkerTask, share: _Share) -> AttemptResult:
    """Hold an auction in another process; what comes back leaves out the jobs, which are known here."""
    with _ONE_AT_A_TIME:
        compiled_loop()
        result = _held_here(auction, share)
    table = replace(result.table, demands=())
    bids = table if result.bids.table is result.table else replace(result.bids.table, demands=())
    return replace(result, table=table, bids=replace(result.bids, table=bids), first=None)


def _load_search() -> bool:
    """Load the compiled search in a process that is to hold auctions."""
    return compiled_loop() is not None


def _restored(auction: WorkerTask, result: AttemptResult) -> AttemptResult:
    table = replace(result.table, demands=auction.demands)
    bids = replace(result.bids, table=replace(result.bids.table, demands=auction.demands))
    return replace(result, table=table, bids=bids)


def _submitted(pool: ProcessPoolExecutor, auction: WorkerTask, share: _Share) -> Future[AttemptResult] | None:
    """Give an auction to another process; None where they are dead."""
    try:
        return pool.submit(_held_there, auction, share)
    except BrokenProcessPool:
        return None


def _result(auction: WorkerTask, future: Future[AttemptResult] | None, share: _Share) -> AttemptResult:
    """Wait for an auction; hold it here where its process died."""
    try:
        return _held_here(auction, share) if future is None else _restored(auction, future.result())
    except BrokenProcessPool:
        return _held_here(auction, share)


_PATIENCE = "10s"


def check_dask() -> None:
    """Raise OptionError when the extra is not installed."""
    if find_spec("distributed") is None:
        raise OptionError("--dask needs distributed: pip install 'aucsched[dask]'")


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Yield a client of the scheduler at an address.

    Raises:
        OptionError: no scheduler answers there.
    """
    from distributed import Client  # noqa: PLC0415 - the extra may be absent

    _silence()
    try:
        client: Any = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise OptionError(f"--dask {address}: no scheduler answers there") from error
    with client:
        yield client


def _silence() -> None:
    """Keep Dask's log off standard error: what went wrong, the one line of an error says."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
