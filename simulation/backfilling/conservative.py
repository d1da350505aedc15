"""Conservative backfilling reserves for every job (Chapter 3; Mu'alem, Feitelson, 2001, figure 2).

A job is given its reservation on arrival: the earliest time from which its processors stay free for
its estimate beside all running jobs and all earlier reservations. Jobs that arrive together are
served in queue order. When a job ends before its estimate the schedule is compressed: in queue
order each waiting job moves to the earliest time that all others leave it, never a later one;
rounds are made until no job moves. A job starts when its reservation comes.

Since no job can move alone, a reservation begins now or where another job's estimated end frees
processors, and by induction such an end is an event: no start waits for a timer.

The same lines are compiled over whole logs (logs/counts.py). ``Planning`` adds fixed-time requests
and rules.
"""

from collections.abc import Sequence
from functools import cached_property, partial
from math import inf
from typing import NamedTuple, Protocol

import numpy as np

from ...cluster.kernels.column_operations import insert_number, remove
from ...cluster.kernels.harness import Column, Floats, Ints, kernel
from ...cluster.timeline.count_profile import CountProfile, ProfileColumns, add, advance, earliest, most, runs
from ..log_columns import LogColumns, Requests, zeros
from ..stepping import Changes, CountPolicy, Resort
from .easy import ROUNDED

#: Places of ``counts``: waiting jobs, and which state of the schedule ``known`` speaks of.
WAITING, VERSION, COUNTED = 0, 1, 2


class StartConstraints(Protocol):
    """What stands in a job's way beside processors (logs/plan_constraints.py)."""

    def advance(self, now: float) -> None:
        """Forget the time before now."""

    def add(self, job: int, start: float, end: float, sign: int) -> None:
        """Give back (1) or take (−1) what a job has of it over a time."""

    def earliest(self, profile: ProfileColumns, job: int, now: float, before: float, latest: float) -> float:
        """Return a job's earliest start (``CountProfile.earliest``)."""


class ConservativeState(NamedTuple):
    """The schedule.

    Attributes:
        size: processors, by job.
        estimate: by job.
        counts: see above.
        start_of: by job, where a waiting one's reservation begins, and where a running one began.
        queue: waiting jobs in the queue's order.
        started: the jobs that the present step has started.
        profile: free processors beside all jobs.
        size_class: by job, which of the distinct sizes it has.
        known: by class, the version that the next two speak of.
        longest: by class, the longest run of its processors that begins in what was freed.
        reach: by class, the latest end of such a run.
    """

    size: Ints
    estimate: Floats
    counts: Ints
    start_of: Floats
    queue: Ints
    started: Ints
    profile: ProfileColumns
    size_class: Ints
    known: Ints
    longest: Floats
    reach: Floats


@kernel
def step(
    state: ConservativeState, now: float, ended: Column, ends: int, arrived: Column, arrivals: int
) -> int:
    """Make one step, asked as EASY's; return how many jobs start: ``state.started`` takes them."""
    freed_until = release(state, None, now, ended, ends)
    advance(state.profile, now)
    if freed_until > now:
        compress(state, None, now, freed_until)
    for place in range(arrivals):
        admit(state, None, now, arrived[place])
    return start_due(state, now)


@kernel
def release(
    state: ConservativeState, rules: StartConstraints | None, now: float, ended: Column, ends: int
) -> float:
    """Give back what ended jobs held of their estimates; return until when anything was given."""
    freed_until = now
    for place in range(ends):
        job = ended[place]
        end = state.start_of[job] + state.estimate[job]
        occupy(state, rules, job, now, end, 1)
        freed_until = max(freed_until, end)
    return freed_until


@kernel
def admit(state: ConservativeState, rules: StartConstraints | None, now: float, job: int) -> None:
    """Let a job wait, with its reservation."""
    reserve(state, rules, job, first_start(state, rules, job, now, inf, inf))
    insert_number(state.queue, state.counts[WAITING], job)
    state.counts[WAITING] += 1


@kernel
def start_due(state: ConservativeState, now: float) -> int:
    """Start the jobs whose reservations have come; return how many."""
    counts, queue = state.counts, state.queue
    kept = due = 0
    waiting = counts[WAITING]
    for place in range(waiting):
        job = queue[place]
        if state.start_of[job] > now:
            queue[kept] = job
            kept += 1
        else:
            state.started[due] = job
            due += 1
    if due:
        remove(queue, waiting, kept, waiting)
        counts[WAITING] = kept
    return due


@kernel
def compress(
    state: ConservativeState, rules: StartConstraints | None, now: float, freed_until: float
) -> None:
    """Move waiting jobs in queue order as early as the others allow, until a round moves none.

    Before, none could move. So one can only move to a time before the end of what has been freed
    since. It must be no larger than the most processors free until then, and some run of free
    processors must be long enough for it or reach its reservation. The runs are looked for once for
    each size, in each version of the schedule.
    """
    profile, counts, queue = state.profile, state.counts, state.queue
    size, estimate, size_class = state.size, state.estimate, state.size_class
    counts[VERSION] += 1
    widest = most(profile, freed_until)
    has_moved = True
    while has_moved:
        has_moved = False
        for place in range(counts[WAITING]):
            job = queue[place]
            # Most jobs could not move, as a few comparisons show.
            if size[job] > widest:
                continue
            one, current = size_class[job], state.start_of[job]
            if state.known[one] != counts[VERSION]:
                _look_for_runs(state, job, freed_until)
            if estimate[job] > state.longest[one] and current > state.reach[one]:
                continue
            # The rule. Its own processors are free to it from its reservation on: the search ends there.
            start = first_start(state, rules, job, now, current, freed_until)
            if start < current:
                occupy(state, rules, job, current, current + estimate[job], 1)
                reserve(state, rules, job, start)
                freed_until = max(freed_until, current + estimate[job])
                widest = most(profile, freed_until)
                counts[VERSION] += 1
                has_moved = True


@kernel
def _look_for_runs(state: ConservativeState, job: int, freed_until: float) -> None:
    """Note for a job's size the longest run of so many processors, and how far one reaches."""
    one = state.size_class[job]
    longest, reach = runs(state.profile, state.size[job], freed_until)
    state.known[one] = state.counts[VERSION]
    state.longest[one] = longest + reach * ROUNDED
    state.reach[one] = reach


@kernel
def first_start(
    state: ConservativeState,
    rules: StartConstraints | None,
    job: int,
    now: float,
    before: float,
    latest: float,
) -> float:
    """Return a job's earliest start beside all others (``CountProfile.earliest``)."""
    if rules is None:
        return earliest(state.profile, state.size[job], state.estimate[job], -inf, before, latest)
    return rules.earliest(state.profile, job, now, before, latest)


@kernel
def reserve(state: ConservativeState, rules: StartConstraints | None, job: int, start: float) -> None:
    """Give a job its reservation."""
    state.start_of[job] = start
    occupy(state, rules, job, start, start + state.estimate[job], -1)


@kernel
def occupy(
    state: ConservativeState, rules: StartConstraints | None, job: int, start: float, end: float, sign: int
) -> None:
    """Give back (1) or take (−1) what a job holds over a time."""
    add(state.profile, start, end, sign * state.size[job])
    if rules is not None:
        rules.add(job, start, end, sign)


class Conservative(CountPolicy):
    """Conservative backfilling over a queue sorted by job number, or by ``resort``.

    ``rules``: when jobs may start beyond processors; such a policy wants a step at planned starts.
    """

    def __init__(
        self,
        requests: Requests,
        resort: Resort | None = None,
        rules: StartConstraints | None = None,
    ) -> None:
        self._resort = resort
        self._rules = rules
        self._requests = requests

    @property
    def loop(self) -> str | None:
        """The compiled loop that gives the same starts."""
        return None if self._resort or self._rules else "conservative"

    def columns(self, log: LogColumns) -> ConservativeState:
        """Return the schedule of a log, from its beginning."""
        return conservative_columns(self._requests.processors, log.size, log.estimate, is_compiled=True)

    def step(self, now: float, seen: Changes) -> Sequence[int]:
        """Release, compress, reserve for the arrivals, start what is due."""
        ended, arrived = seen
        state = self._state
        freed_until = self._release(now, ended)
        self._profile.advance(now)
        if freed_until > now:
            if self._resort:
                self._resort(now, self._queue)
            compress(state, self._rules, now, freed_until)
        for job in self._in_order(now, arrived):
            admit(state, self._rules, now, job)
        return self._due(now)

    @cached_property
    def _state(self) -> ConservativeState:
        """The schedule, made when it is asked for: a compiled loop has its own."""
        asked = self._requests
        return conservative_columns(asked.processors, asked.size, asked.estimate, is_compiled=False)

    @property
    def _profile(self) -> CountProfile:
        return self._state.profile  # type: ignore[return-value]

    @property
    def _queue(self) -> list[int]:
        return self._state.queue  # type: ignore[return-value]

    def _due(self, now: float) -> list[int]:
        """Return the jobs whose reservations have come; they leave the queue."""
        count = start_due(self._state, now)
        return self._state.started[:count]  # type: ignore[return-value]

    def _in_order(self, now: float, arrived: Sequence[int]) -> Sequence[int]:
        if self._resort is None or len(arrived) == 1:
            return arrived
        jobs = list(arrived)
        self._resort(now, jobs)
        return jobs

    def _release(self, now: float, ended: Sequence[int]) -> float:
        return release(self._state, self._rules, now, ended, len(ended))


def conservative_columns(
    processors: int, size: Column, estimate: Column, *, is_compiled: bool
) -> ConservativeState:
    """Return the schedule of an idle machine: arrays for compiled loops, lists for plain Python."""
    jobs = len(size)
    distinct, size_class = np.unique(np.asarray(size, np.int64), return_inverse=True)
    classes, column = len(distinct), partial(zeros, is_compiled=is_compiled)
    profile: ProfileColumns = CountProfile.flat(processors)
    if is_compiled:
        free = np.zeros(2 * jobs + 4, np.int64)
        free[0] = processors
        profile = ProfileColumns(np.zeros(len(free)), free, np.ones(1, np.int64))
    return ConservativeState(
        size=size,
        estimate=estimate,
        counts=column(COUNTED),
        start_of=column(jobs, float),
        queue=column(jobs + 1, grows=True),
        started=column(min(jobs, processors) + 1),
        profile=profile,
        size_class=size_class if is_compiled else size_class.tolist(),
        known=column(classes),
        longest=column(classes, float),
        reach=column(classes, float),
    )
