"""Processes that search: spawned without the script, quiet at Ctrl-C, ended with who waits."""

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import current_process, get_context
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from threading import RLock, Thread, Timer
from types import ModuleType

from ...cluster.errors import OptionError
from ..search.compiled_search import compiled_loop

#: One thread at a time takes the script away and puts it back.
_SPAWNING = RLock()
#: Seconds after which processes that still work are ended: a pool whose process ends before it
#: has dropped its cancelled tasks would complain of them.
_GRACE_S = 0.05


@contextmanager
def spawning(*, needs_script: bool = False) -> Iterator[None]:
    """Spawn processes inside: they load the program's script only where it is needed there.

    Ctrl-C does not reach them, which would each end in a traceback: their parent decides.

    Raises:
        OptionError: this process may start no others.
    """
    if current_process().daemon:
        raise OptionError("workers: a daemonic process (of multiprocessing.Pool or Dask) starts no others")
    with _SPAWNING:
        main = sys.modules["__main__"]
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            if not needs_script:
                sys.modules["__main__"] = ModuleType("__main__")
            yield
        finally:
            # First: as signals are let through again the one that has come raises.
            sys.modules["__main__"] = main
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def search_processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of processes that search; what they still do when the block ends is given up.

    Spawned: nothing of this process's threads or state comes along.
    """
    spawn = get_context("spawn")
    theirs, ours = spawn.Pipe(duplex=False)
    pool = ProcessPoolExecutor(count, spawn, _begin, (theirs,))
    try:
        yield pool
    finally:
        ending = Timer(_GRACE_S, ours.close)
        ending.start()
        pool.shutdown(cancel_futures=True)
        ending.cancel()
        ending.join()
        ours.close()
        theirs.close()


def ends_with(parent: Connection) -> None:
    """Let this process end when its parent closes its end, or dies."""
    Thread(target=lambda: (wait_for([parent]), os._exit(1)), daemon=True).start()


def _begin(parent: Connection) -> None:
    """Begin a process that searches: it loads what is compiled."""
    ends_with(parent)
    compiled_loop()
