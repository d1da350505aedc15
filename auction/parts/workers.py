"""Who holds the auctions of a cluster's parts: this process, several processes, or a Dask cluster.

Each auction depends on nothing that another of its round finds, so that under a work limit the
award is the same whoever holds them. One whose process dies is held here. Dask is an extra; its log
is kept off standard error.
"""

import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from multiprocessing import current_process
from threading import Lock
from typing import Any

from ...bidgen.first_fit import Cluster
from ...cluster.errors import AucschedError, OptionError
from ...cluster.resources.demand import Demand
from ...models.search.compiled_search import compiled_loop
from ...models.winners.spawning import search_processes, spawning
from ..attempt import attempt
from ..options import StepOptions
from ..strategies import AttemptResult

#: A Dask worker may have several threads; auctions and runs in one process come one after another.
ONE_AT_A_TIME = Lock()
#: How long a Dask scheduler has to answer.
_PATIENCE = "10s"
#: Seconds of an auction whose time is over: it gives first-fit's award.
_LEAST_S = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class WorkerTask:
    """An auction that somebody is to hold: its jobs, ``index`` their place, beside what is free."""

    demands: tuple[Demand, ...]
    cluster: Cluster
    options: StepOptions


class Workers:
    """Who holds auctions: this process, and the processes of an executor where there are any.

    Args:
        executor: None: this process alone, one auction after another.
        size: tells how many processes there are.
        lost: what the executor raises of an auction whose process died; it is held here then.
        helps: this process holds auctions, too.
    """

    def __init__(
        self,
        executor: Executor | None = None,
        size: Callable[[], int] = lambda: 1,
        lost: type[Exception] = BrokenProcessPool,
        *,
        helps: bool = False,
    ) -> None:
        self._executor, self._size, self._lost, self._helps = executor, size, lost, helps

    def results(self, auctions: Sequence[WorkerTask], end: float | None) -> list[AttemptResult]:
        """Return the result of each auction; by ``end`` (of the options' clock) all are to be done.

        Here what one leaves of its time, the next ones have.
        """
        count = len(auctions)
        if self._executor is None:
            return [_held(auction, end, count - number) for number, auction in enumerate(auctions)]
        turns = -(-count // self._size())
        futures: list[Future[AttemptResult] | None] = []
        results: list[AttemptResult | None] = [None] * count
        with warnings.catch_warnings(), suppress(self._lost):
            # A large cluster is sent, whatever Dask thinks of its size.
            warnings.filterwarnings("ignore", "Sending large graph")
            futures.extend(
                self._executor.submit(_held_there, auction, *_share(auction, end, turns))
                for auction in auctions
            )
        futures += [None] * (count - len(futures))
        # The last of those that wait for a process, and those of dead ones.
        for place in reversed(range(count)) if self._helps else ():
            future = futures[place]
            if future is None or future.cancel():
                results[place] = _held(auctions[place], end, turns)
        for place, future in enumerate(futures):
            if results[place] is None:
                results[place] = self._result(auctions[place], future, end)
        return [one for one in results if one is not None]

    def _result(
        self, auction: WorkerTask, future: Future[AttemptResult] | None, end: float | None
    ) -> AttemptResult:
        """Wait for an auction; hold it here where its process died."""
        try:
            if future is not None:
                return _with_jobs(future.result(), auction.demands)
        except self._lost:
            pass
        except AucschedError:
            raise
        except Exception as error:
            if self._helps:
                raise
            raise AucschedError(f"the Dask cluster failed: {type(error).__name__}: {error}") from error
        return _held(auction, end, 1)


#: Why worker processes end as they start.
UNGUARDED = 'workers: a script that starts processes must call {} below if __name__ == "__main__"'


def end_if_spawned(call: str) -> None:
    """End a process that is being spawned: the script it loads would spawn others at this call."""
    if getattr(current_process(), "_inheriting", False):
        sys.exit(f"aucsched: {UNGUARDED.format(call)}")


@contextmanager
def workers_of(options: StepOptions) -> Iterator[Workers]:
    """Yield who holds a step's auctions.

    Raises:
        OptionError: no Dask scheduler answers, or the extra is not installed.
    """
    with ExitStack() as stack:
        if options.dask:
            check_dask()
            from distributed import KilledWorker  # noqa: PLC0415 - the extra may be absent

            client = stack.enter_context(connected(options.dask))
            workers = lambda: max(1, len(client.scheduler_info(n_workers=-1)["workers"]))  # noqa: E731
            yield Workers(client.get_executor(pure=False), workers, KilledWorker)
        elif options.workers > 1:
            end_if_spawned("schedule")
            others = options.workers - 1
            # What is compiled they load while bids are made here, which takes a second.
            pool = stack.enter_context(search_processes(others))
            in_script = getattr(options.clock, "__module__", "") == "__main__"
            with suppress(BrokenProcessPool), spawning(needs_script=in_script):
                for _ in range(others):
                    pool.submit(int)
            yield Workers(pool, lambda: options.workers, helps=True)
        else:
            yield Workers()


def _share(auction: WorkerTask, end: float | None, turns: int) -> tuple[float | None, float | None]:
    """Return the seconds that an auction has where so many are held one after another, and its end.

    The end is in seconds of the day, for another process. None: there is no limit; or no end, where
    the step's clock is not the wall's.
    """
    if end is None:
        return None, None
    clock = auction.options.clock
    left = end - clock()
    return max(_LEAST_S, left / turns), time.time() + left if clock is time.perf_counter else None


def _held(auction: WorkerTask, end: float | None, turns: int) -> AttemptResult:
    return _held_for(auction, _share(auction, end, turns)[0])


def _held_for(auction: WorkerTask, seconds: float | None) -> AttemptResult:
    deadline = None if seconds is None else auction.options.clock() + seconds
    demands = auction.demands
    return attempt(demands, auction.cluster, auction.options, size=len(demands), deadline=deadline)


def _held_there(auction: WorkerTask, seconds: float | None, latest: float | None) -> AttemptResult:
    """Hold an auction in another process; what comes back leaves out the jobs, known here."""
    with ONE_AT_A_TIME:
        compiled_loop()
        if seconds is not None and latest is not None:
            seconds = max(_LEAST_S, min(seconds, latest - time.time()))
        return replace(_with_jobs(_held_for(auction, seconds), ()), alternatives=())


def _with_jobs(result: AttemptResult, demands: tuple[Demand, ...]) -> AttemptResult:
    """Return a result with other jobs in its tables; what was one table stays one."""
    answer = replace(result.answer, table=replace(result.answer.table, demands=demands))
    is_same = result.bids.table is result.answer.table
    bids = answer.table if is_same else replace(result.bids.table, demands=demands)
    return replace(result, answer=answer, bids=replace(result.bids, table=bids))


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

    # Dask's log is kept off standard error: what went wrong, the one line of an error says.
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        client: Any = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise OptionError(f"--dask {address}: no scheduler answers there") from error
    with client:
        yield client
