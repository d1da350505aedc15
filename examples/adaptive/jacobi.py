"""An adaptive application: Jacobi's iteration on a square grid, by worker processes over shared memory.

It grows and shrinks between iterations. Two grids take turns: a worker's death spoils the one that was being
written, never the one that is read, so that the iteration is made again and nothing else.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from threading import Condition, Event, Thread

import numpy as np

from aucsched.cluster.errors import InputError, OptionError

from .prophet import Callbacks, Platform, Prophet, Sample, fitted
from .protocol import CostBenefit, Method, Resources, Timing
from .workers import Grid, Part, Worker, context, grid_of, iterate, relax

#: Iterations that predictions are fitted to, and the processors each count keeps of them.
_KEPT = 200
_FLOAT_BYTES = 8
#: Four reads, and one write.
_INSTRUCTIONS = 5
#: Before anything is measured: nanoseconds an instruction, and milliseconds a message.
_GUESS = Platform(lat_s=1e-3, bw_s=0.0, arch_cost_us=1e-3)
_MOST_RETRIES = 100


class JacobiApplication:
    """Laplace's equation on a square grid whose upper edge is 1: an ``Adaptive`` application.

    Args:
        name: of it.
        size: rows of the grid, edges included.
        iterations: how many.
        most: processors that it could use here; the ideal is the knee of its curve below.
        least: the fewest.
        ideal: instead of the knee.
        after: called in its thread after each iteration, with the application.
    """

    def __init__(
        self,
        name: str,
        *,
        size: int,
        iterations: int,
        most: int,
        least: int = 1,
        ideal: int | None = None,
        after: Callable[[JacobiApplication], None] | None = None,
    ) -> None:
        if size < least + 2 or not 1 <= least <= most:
            raise InputError(f"a grid of {size} rows cannot be shared by {least} to {most}", path=name)
        self.name = name
        self.iteration = self.redone = 0
        self.failure: Exception | None = None
        self._size, self._iterations, self._most, self._ideal = size, iterations, most, ideal
        self._callbacks = Callbacks(
            comm_topology="1-D",
            comm_complexity=2 * size * _FLOAT_BYTES,
            num_des=size * size,
            comp_complexity=_INSTRUCTIONS,
            iters=iterations,
            min_requirements=least,
            # The grid stays where it is: an adaptation only starts or ends processes.
            data_bytes=0.0,
        )
        self._memories = (context().RawArray("d", size * size), context().RawArray("d", size * size))
        for memory in self._memories:
            grid_of(memory, size)[0] = 1.0
        self._samples: deque[Sample] = deque(maxlen=_KEPT)
        self._adaptations: deque[float] = deque(maxlen=_KEPT)
        self._workers: list[Worker] = []
        self._wanted = 0
        self._moves: list[int] = []
        self._changed, self._ended = Condition(), Event()
        self._after = after

    # Running.

    @property
    def processors(self) -> int:
        """Worker processes now."""
        return len(self._workers)

    @property
    def pids(self) -> list[int]:
        """The workers' process ids."""
        return [worker.process.pid or 0 for worker in list(self._workers)]

    @property
    def iterations_left(self) -> int:
        """Iterations to come."""
        return self._iterations - self.iteration

    def start(self, processors: int) -> None:
        """Begin to iterate, in a thread of its own."""
        self._wanted = processors
        self._adapt()
        Thread(target=self._run, name=self.name, daemon=True).start()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for its end, and return whether it has ended.

        Raises:
            Exception: what went wrong in it.
        """
        has_ended = self._ended.wait(timeout_s)
        if self.failure is not None:
            raise self.failure
        return has_ended

    def result(self) -> Grid:
        """Return the grid as the last whole iteration left it."""
        return grid_of(self._memories[self.iteration % 2], self._size).copy()

    def _run(self) -> None:
        try:
            while self.iterations_left > 0:
                self._adapt()
                self._iterate()
                if self._after is not None:
                    self._after(self)
        except Exception as error:  # noqa: BLE001 - whoever waits is told
            self.failure = error
        finally:
            with self._changed:
                self._wanted = 0
            self._adapt()
            self._ended.set()

    def _iterate(self) -> None:
        """Make one iteration; where workers die, others take their place and it is made again."""
        for _ in range(_MOST_RETRIES):
            began = time.perf_counter()
            seconds, dead = iterate(self._workers, self._parts())
            if not dead:
                passed, comp = time.perf_counter() - began, max(seconds)
                sample = Sample(processors=len(seconds), comp_s=comp, comm_s=max(passed - comp, 0.0))
                self._samples.append(sample)
                self.iteration += 1
                return
            self.redone += 1
            for place in dead:
                self._replace(place)
        raise OptionError(f"{self.name}: its workers die in every iteration")

    def _parts(self) -> list[Part]:
        """Return the rows of each worker, as even as can be."""
        count = len(self._workers)
        edges = np.linspace(1, self._size - 1, count + 1).astype(int).tolist()
        return [(self.iteration % 2, first, last) for first, last in pairwise(edges)]

    def _replace(self, place: int) -> None:
        self._workers[place].close()
        self._workers[place] = Worker(self._memories, self._size)

    def _adapt(self) -> None:
        """Bring the workers to the wanted count, between iterations, and tell those who wait for it."""
        with self._changed:
            if len(self._workers) == self._wanted and not self._moves:
                return
            began = time.perf_counter()
            for place in self._moves:
                if place < len(self._workers):
                    self._replace(place)
            self._moves.clear()
            while len(self._workers) > self._wanted:
                self._workers.pop().close()
            while len(self._workers) < self._wanted:
                self._workers.append(Worker(self._memories, self._size))
            if self._wanted:
                self._adaptations.append(time.perf_counter() - began)
            self._changed.notify_all()

    # Sensing.

    def _prophet(self) -> Prophet:
        """Return predictions fitted to what was measured so far, guesses before that."""
        samples = list(self._samples)
        platform = fitted(self._callbacks, samples, list(self._adaptations)) if samples else _GUESS
        return Prophet(callbacks=self._callbacks, platform=platform)

    def exec_time(self, future_iters: int, past_iters: int) -> Timing:
        """Return the time of an iteration."""
        return self._timing(future_iters, past_iters, Prophet.exec_s, lambda one: one.comp_s + one.comm_s)

    def exec_time_comp(self, future_iters: int, past_iters: int) -> Timing:
        """Return the longest part's computation."""
        return self._timing(future_iters, past_iters, Prophet.comp_s, lambda one: one.comp_s)

    def exec_time_comm(self, future_iters: int, past_iters: int) -> Timing:
        """Return what an iteration takes beside its longest part."""
        return self._timing(future_iters, past_iters, Prophet.comm_s, lambda one: one.comm_s)

    def _timing(
        self,
        future_iters: int,
        past_iters: int,
        predicted: Callable[[Prophet, int], float],
        measured: Callable[[Sample], float],
    ) -> Timing:
        last = list(self._samples)[-past_iters:] if past_iters > 0 else []
        count = self.processors or self.resources().ideal
        return Timing(
            predicted_s=predicted(self._prophet(), count) if future_iters > 0 else None,
            measured_s=sum(map(measured, last)) / len(last) if last else None,
        )

    def resources(self) -> Resources:
        """Return the least and the ideal processors, and the memory of both grids."""
        found = self._prophet().resources(self._most)
        ideal = found.ideal if self._ideal is None else self._ideal
        memory = 2 * self._size**2 * _FLOAT_BYTES
        return Resources(least=found.least, ideal=max(ideal, self.processors), memory_bytes=memory)

    # Actuating.

    def add_processors(self, count: int) -> None:
        """Start that many workers more before the next iteration."""
        self._change(count)

    def remove_processors(self, count: int) -> None:
        """End that many workers before the next iteration; they are gone when this returns.

        Raises:
            OptionError: fewer than the least would be left.
        """
        wanted = self._wanted
        if wanted and wanted - count < self._callbacks.min_requirements:
            raise OptionError(f"{self.name} cannot run on {wanted - count} processors")
        self._change(-count)

    def migrate_processor(self, old: int, new: int) -> None:
        """Let a new process do the part of the worker at place ``old``; ``new`` is the system's to choose."""
        del new
        with self._changed:
            self._moves.append(old)
            self._changed.wait_for(lambda: not self._moves or self._wanted == 0)

    def _change(self, count: int) -> None:
        with self._changed:
            if self._wanted == 0:
                return
            self._wanted += count
            self._changed.wait_for(lambda: len(self._workers) == self._wanted)

    def actuating_cost_benefit(self, method: Method, count: int) -> CostBenefit:
        """Return what an adaptation would cost and bring over the iterations to come."""
        now = self.processors
        after = {Method.ADD: now + count, Method.REMOVE: now - count, Method.MIGRATE: now}[method]
        if after < 1 or now < 1:
            raise OptionError(f"{self.name} cannot go from {now} to {after} processors")
        return self._prophet().cost_benefit(now, after, self.iterations_left)


def serial_jacobi(size: int, iterations: int) -> Grid:
    """Return the grid after that many iterations, computed here: what any run must equal, bit for bit."""
    grids = [np.zeros((size, size)), np.zeros((size, size))]
    for grid in grids:
        grid[0] = 1.0
    for iteration in range(iterations):
        relax(grids[iteration % 2], grids[1 - iteration % 2], 1, size - 1)
    return grids[iterations % 2]
