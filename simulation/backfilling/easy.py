"""EASY backfilling: one reservation, for the head of the queue (Chapter 3; Lifka's EASY).

The rule, as Mu'alem and Feitelson (2001, figure 3) have it. One pass: start from the head while it
fits. Then the head's *shadow time* is the earliest estimated end (start + estimate) of a running
job by which enough processors are free, and *extra* the processors free at the shadow time, every
estimated end at or before it counted, less the head's need (``shadow_time``). Once over the rest in
queue order: a job starts if it fits now and either its estimate ends by the shadow time (equal
counts) or it needs at most *extra*, which then shrinks by its size (``make_pass``).

Between two ends the head's reservation stands: starts that respect it move neither the shadow time
nor, beyond what they use, *extra*; and a job that could not start cannot until a job ends. So a
pass without ends looks at the new arrivals only, and a queue of hundreds is searched by an index
(deep_queue.py). Nothing of this changes an answer; tests compare with the plain rule.

Jobs are numbered in the queue's order. Where the order changes with time, ``Easy`` sorts the queue
before each pass. The same lines are compiled over whole logs (logs/counts.py), and play the
yardstick of promises (promised/log_auction.py).
"""

from bisect import bisect_left, insort
from collections.abc import Sequence
from functools import cached_property, partial
from math import inf
from typing import NamedTuple

from ...cluster.kernels.column_operations import first_from, insert_number, insert_pair, remove, remove_pair
from ...cluster.kernels.harness import Column, Floats, Ints, kernel
from ..log_columns import LogColumns, Requests, zeros
from ..stepping import Changes, CountPolicy, Resort
from .deep_queue import (
    DEEP,
    HEAD,
    DeepQueue,
    add_deep,
    class_below,
    deep_queue_of,
    next_fit,
    remove_deep,
)

#: A queue deeper than this is searched by its index, compiled and in plain Python,
DEEPER, DEEPER_PLAIN = 256, 2048
#: until it is this shallow again.
SHALLOW = 64
#: More than the relative error of a sum and a difference of two times.
ROUNDED = 4e-16
#: Places of ``counts``: free processors, running jobs, waiting ones, what the head leaves free at
#: its shadow time, whether that is known, and jobs that the present step has started.
FREE, RUNNING, QUEUED, EXTRA, IS_KNOWN, STARTED, COUNTED = 0, 1, 2, 3, 4, 5, 6


class EasyState(NamedTuple):
    """The queue and what runs; jobs are numbered in the queue's order.

    Attributes:
        size: processors, by job.
        estimate: by job.
        counts: see above.
        end_of: by job, its estimated end where it runs.
        ends: estimated ends of what runs, rising.
        held: beside them, processors.
        queue: waiting jobs by rising number, while they are few.
        shadow: one entry: the head's shadow time.
        started: the jobs that the present step has started.
        depth: a queue deeper than the first entry is indexed until it is as shallow as the second.
        deep: the same queue while it is deep.
    """

    size: Ints
    estimate: Floats
    counts: Ints
    end_of: Floats
    ends: Floats
    held: Ints
    queue: Ints
    shadow: Floats
    started: Ints
    depth: Ints
    deep: DeepQueue


@kernel
def shadow_time(state: EasyState, need: int) -> tuple[float, int]:
    """Return when so many processors are free by estimates, and how many are free beyond them then.

    Where even the last end leaves fewer, the answer is (inf, 0).
    """
    ends, held, running, free = state.ends, state.held, state.counts[RUNNING], state.counts[FREE]
    place = 0
    shadow = 0.0
    while free < need:
        if place == running:
            return inf, 0
        free += held[place]
        shadow = ends[place]
        place += 1
    while place < running and ends[place] <= shadow:
        free += held[place]
        place += 1
    return shadow, free - need


@kernel
def start(state: EasyState, now: float, job: int) -> None:
    """Let a job run from now on."""
    counts = state.counts
    end = now + state.estimate[job]
    state.end_of[job] = end
    insert_pair(state.ends, state.held, counts[RUNNING], end, state.size[job])
    counts[FREE] -= state.size[job]
    counts[RUNNING] += 1
    state.started[counts[STARTED]] = job
    counts[STARTED] += 1


@kernel
def release(state: EasyState, job: int) -> None:
    """Take the processors of a job that has ended back."""
    counts, size = state.counts, state.size[job]
    place = first_from(state.ends, counts[RUNNING], state.end_of[job])
    while state.held[place] != size:
        place += 1
    remove_pair(state.ends, state.held, counts[RUNNING], place)
    counts[RUNNING] -= 1
    counts[FREE] += size


@kernel
def share_of_extra(end: float, need: int, shadow: float, extra: int) -> int:
    """Return what a job takes of *extra*: 0 if it ends by the shadow time; −1: it may not start."""
    if end <= shadow:
        return 0
    return need if need <= extra else -1


@kernel
def may_start(state: EasyState, now: float, job: int, need: int) -> bool:
    """Say whether a fitting job leaves a head of ``need`` its start; take its part of *extra*."""
    counts = state.counts
    if counts[IS_KNOWN] == 0:
        state.shadow[0], counts[EXTRA] = shadow_time(state, need)
        counts[IS_KNOWN] = 1
    taken = share_of_extra(now + state.estimate[job], state.size[job], state.shadow[0], counts[EXTRA])
    counts[EXTRA] -= max(taken, 0)
    return taken >= 0


@kernel
def make_pass(state: EasyState, now: float) -> None:
    """Make EASY's pass over the whole queue, as it stands."""
    counts, queue, size = state.counts, state.queue, state.size
    waiting = counts[QUEUED]
    counts[IS_KNOWN] = 0
    head = 0
    while head < waiting and size[queue[head]] <= counts[FREE]:
        start(state, now, queue[head])
        head += 1
    kept = place = head
    if head < waiting and counts[FREE] > 0:
        # Most passes start nobody beside the head: look before anything moves.
        while place < waiting and size[queue[place]] > counts[FREE]:
            place += 1
        kept, need = place, size[queue[head]]
        while place < waiting and counts[FREE] > 0:
            job = queue[place]
            place += 1
            if size[job] <= counts[FREE] and may_start(state, now, job, need):
                start(state, now, job)
            else:
                queue[kept] = job
                kept += 1
    if kept < place:
        remove(queue, waiting, kept, place)
    if head > 0:
        remove(queue, waiting - place + kept, 0, head)
    counts[QUEUED] = waiting - place + kept - head


@kernel
def step(state: EasyState, now: float, ended: Column, ends: int, arrived: Column, arrivals: int) -> int:
    """Make one step; return how many jobs start, ``state.started`` takes them.

    Args:
        state: as the last step left it.
        now: in seconds.
        ended: jobs that end now,
        ends: so many of them.
        arrived: jobs that arrive now, by rising number,
        arrivals: so many of them.
    """
    counts, queue = state.counts, state.queue
    counts[STARTED] = 0
    for place in range(ends):
        release(state, ended[place])
    if counts[QUEUED] > state.depth[0] and len(state.deep.lowest) > 0:
        for place in range(counts[QUEUED]):
            add_deep(state.deep, queue[place], state.estimate[queue[place]])
        remove(queue, counts[QUEUED], 0, counts[QUEUED])
        counts[QUEUED] = 0
    if state.deep.counts[DEEP] > 0:
        _deep_pass(state, now, ends > 0, arrived, arrivals)
    elif ends > 0 or counts[QUEUED] == 0 or (arrivals > 0 and arrived[0] < queue[0]):
        # Processors were freed, or the head is another: a whole pass.
        for place in range(arrivals):
            wait(state, arrived[place])
        make_pass(state, now)
    else:
        # No job has ended and the head is the same: nobody else can start.
        need = state.size[queue[0]]
        for place in range(arrivals):
            job = arrived[place]
            if state.size[job] <= counts[FREE] and may_start(state, now, job, need):
                start(state, now, job)
            else:
                wait(state, job)
    return int(counts[STARTED])


@kernel
def wait(state: EasyState, job: int) -> None:
    """Let a job wait in the short queue."""
    insert_number(state.queue, state.counts[QUEUED], job)
    state.counts[QUEUED] += 1


@kernel
def _deep_pass(state: EasyState, now: float, has_ended: bool, arrived: Column, arrivals: int) -> None:
    """Make the same pass over a deep queue."""
    counts, deep, size = state.counts, state.deep, state.size
    head = deep.counts[HEAD]
    for place in range(arrivals):
        add_deep(deep, arrived[place], state.estimate[arrived[place]])
    if has_ended or deep.counts[HEAD] != head:
        counts[IS_KNOWN] = 0
        while deep.counts[DEEP] > 0 and size[deep.counts[HEAD]] <= counts[FREE]:
            job = deep.counts[HEAD]
            remove_deep(deep, job)
            start(state, now, job)
        if deep.counts[DEEP] > 0 and counts[FREE] > 0:
            _deep_backfill(state, now)
    else:
        for place in range(arrivals):
            job = arrived[place]
            if size[job] <= counts[FREE] and may_start(state, now, job, size[head]):
                remove_deep(deep, job)
                start(state, now, job)
    if deep.counts[DEEP] <= state.depth[1]:
        while deep.counts[DEEP] > 0:
            wait(state, deep.counts[HEAD])
            remove_deep(deep, deep.counts[HEAD])


@kernel
def _deep_backfill(state: EasyState, now: float) -> None:
    counts, deep, size = state.counts, state.deep, state.size
    head = job = deep.counts[HEAD]
    shadow, extra = shadow_time(state, size[head])
    state.shadow[0], counts[EXTRA], counts[IS_KNOWN] = shadow, extra, 1
    # A little more: now + estimate may round to the shadow time itself.
    slack = shadow - now + shadow * ROUNDED
    while counts[FREE] > 0:
        free, extra = counts[FREE], min(counts[EXTRA], counts[FREE])
        fits = class_below(deep, free)
        if fits < 0:
            return
        job = next_fit(deep, job, fits, slack, class_below(deep, extra), size, free, extra)
        if job == len(size):
            return
        if may_start(state, now, job, size[head]):
            remove_deep(deep, job)
            start(state, now, job)


class Easy(CountPolicy):
    """EASY over a queue sorted by job number, or by ``resort`` before each pass."""

    def __init__(self, requests: Requests, resort: Resort | None = None) -> None:
        self._requests = requests
        self._resort = resort
        # Of the waiting jobs, rising: no order matters while nobody fits.
        self._waiting_sizes: list[int] = []

    @property
    def loop(self) -> str | None:
        """The compiled loop that gives the same starts."""
        return None if self._resort else "easy"

    def columns(self, log: LogColumns) -> EasyState:
        """Return the queue of a log and what runs, from its beginning."""
        return easy_columns(self._requests.processors, log.size, log.estimate, is_compiled=True)

    @cached_property
    def _state(self) -> EasyState:
        """The queue and what runs, made when it is asked for: a compiled loop has its own."""
        asked = self._requests
        return easy_columns(asked.processors, asked.size, asked.estimate, is_compiled=False)

    def step(self, now: float, seen: Changes) -> Sequence[int]:
        """Make one step; see the module's text for the rule."""
        if self._resort:
            return self._sorted_step(now, seen, self._resort)
        (ended, arrived), state = seen, self._state
        count = step(state, now, ended, len(ended), arrived, len(arrived))
        if state.counts[QUEUED] > state.depth[0] and not state.deep.lowest:
            self._state = state._replace(deep=deep_queue_of(state.size, is_compiled=False))
        return state.started[:count]  # type: ignore[return-value]

    def _sorted_step(self, now: float, seen: Changes, resort: Resort) -> Sequence[int]:
        """Make the pass over a queue whose order changes with time."""
        (ended, arrived), state = seen, self._state
        queue, size, waiting_sizes = state.queue, state.size, self._waiting_sizes
        state.counts[STARTED] = 0
        for job in ended:
            release(state, job)
        queue.extend(arrived)  # type: ignore[attr-defined]
        state.counts[QUEUED] += len(arrived)
        for job in arrived:
            insort(waiting_sizes, size[job])
        if not waiting_sizes or waiting_sizes[0] > state.counts[FREE]:
            return ()
        resort(now, queue)  # type: ignore[arg-type]
        make_pass(state, now)
        started: list[int] = state.started[: state.counts[STARTED]]  # type: ignore[assignment]
        for job in started:
            del waiting_sizes[bisect_left(waiting_sizes, size[job])]
        return started


def easy_columns(processors: int, size: Column, estimate: Column, *, is_compiled: bool) -> EasyState:
    """Return the state of an idle machine: arrays for compiled loops, lists for plain Python."""
    jobs, running = len(size), min(len(size), processors) + 1
    column = partial(zeros, is_compiled=is_compiled)
    counts, depth = column(COUNTED), column(2)
    counts[FREE] = processors
    depth[:] = (DEEPER if is_compiled else DEEPER_PLAIN), SHALLOW
    return EasyState(
        size=size,
        estimate=estimate,
        counts=counts,
        end_of=column(jobs, float),
        ends=column(running, float, grows=True),
        held=column(running, grows=True),
        queue=column(jobs + 1, grows=True),
        shadow=column(1, float),
        started=column(jobs + 1),
        depth=depth,
        deep=deep_queue_of((), is_compiled=is_compiled),
    )
