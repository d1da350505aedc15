"""Worker processes that do parts of an iteration; any of them may die, and only the iteration is lost."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

import numpy as np
from numpy.typing import NDArray

Grid = NDArray[np.float64]

#: (which grid is read, first row, row after the last)
Part = tuple[int, int, int]
_JOIN_S = 5.0


def context() -> SpawnContext:
    """Return how workers are started: afresh, so that threads of this process do not matter."""
    return multiprocessing.get_context("spawn")


def grid_of(memory: Any, size: int) -> Grid:
    """Return shared memory as a square grid."""
    return np.frombuffer(memory, dtype=np.float64).reshape(size, size)


def relax(source: Grid, target: Grid, first: int, last: int) -> None:
    """One Jacobi sweep over rows: each inner element becomes the mean of its four neighbours."""
    target[first:last, 1:-1] = 0.25 * (
        source[first - 1 : last - 1, 1:-1]
        + source[first + 1 : last + 1, 1:-1]
        + source[first:last, :-2]
        + source[first:last, 2:]
    )


def serve(memories: tuple[Any, Any], size: int, channel: Connection) -> None:
    """Do the parts that come over a channel, and answer each with its seconds, until None comes."""
    grids = [grid_of(memory, size) for memory in memories]
    try:
        while (part := channel.recv()) is not None:
            read, first, last = part
            began = time.perf_counter()
            relax(grids[read], grids[1 - read], first, last)
            channel.send(time.perf_counter() - began)
    except (EOFError, OSError, KeyboardInterrupt):
        return


class Worker:
    """A process and the channel to it."""

    def __init__(self, memories: tuple[Any, Any], size: int) -> None:
        self.channel, other = context().Pipe()
        self.process: SpawnProcess = context().Process(
            target=serve, args=(memories, size, other), daemon=True
        )
        self.process.start()
        other.close()

    def close(self) -> None:
        """Let the process end, and make sure that it has."""
        with suppress(OSError):
            self.channel.send(None)
        self.process.join(_JOIN_S)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
        self.channel.close()
        self.process.close()


def iterate(workers: Sequence[Worker], parts: Sequence[Part]) -> tuple[list[float], list[int]]:
    """Let each worker do its part; return the seconds that those took which answered, and who is dead."""
    seconds: list[float] = []
    dead: list[int] = []
    open_: dict[Connection, int] = {}
    for place, (worker, part) in enumerate(zip(workers, parts, strict=True)):
        try:
            worker.channel.send(part)
            open_[worker.channel] = place
        except OSError:
            dead.append(place)
    while open_:
        for ready in wait(list(open_)):
            assert isinstance(ready, Connection)  # noqa: S101 - only channels are waited for
            place = open_.pop(ready)
            try:
                seconds.append(ready.recv())
            except (EOFError, OSError):
                dead.append(place)
    return seconds, dead
