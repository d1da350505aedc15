"""Backfilling by reservations: how many, who has one, how far one may be put off (Chapter 3).

All of them look once over a profile of the running jobs' estimated ends, and their reservations
hold for one pass, as EASY's does.

Backfilling with lookahead (Chapter 3, the sixth parameter; Shmueli and Feitelson's LOS) starts the
fullest selection of jobs beside the head's reservation, exactly: a knapsack now and, beside it, one
at the shadow time. docs/policies.md (lookahead) says what a pass does.

Shmueli and Feitelson (Backfilling with lookahead, 2003/2005) fill a table over jobs × free
processors × extra processors. A job's weight at the shadow time is 0 (it has ended by then) or its
size, and its value is its size. So the table over two capacities is two subset sums: those of short
jobs, and those of long jobs within *extra*. A row of either is one integer: bit s says that s
processors can be filled exactly. Adding a job is a shift and an OR of whole machine words.

Jobs of one size and kind are interchangeable but for their place, and at most ⌊capacity / size⌋ of
them fit: only that many of the first are looked at. That bounds the rows by the machine, however
long the queue. Sizes count in units of their greatest common divisor. Where taking the first that
fits, again and again, fills all that is free, that is the answer, and there are no rows.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from math import gcd, inf
from typing import NamedTuple

from ...cluster.errors import OptionError
from ...cluster.timeline.count_profile import CountProfile
from ..backfilling.easy import FREE, STARTED, release, shadow_time, start
from ..log_columns import Requests
from ..simulate_options import PolicyOptions
from ..stepping import Resort
from .selection import QueuePolicy


class ProfiledPolicy(QueuePolicy):
    """A policy of jobs beside reservations: ``profile`` is what these and running jobs leave."""

    def _starts(self, job: int, now: float, profile: CountProfile) -> bool:
        """Start a job if it fits beside the reservations; say whether it did."""
        size, estimate = self._size[job], self._estimate[job]
        if size > self._counts[FREE] or not profile.holds(size, estimate):
            return False
        start(self._state, now, job)
        profile.add(now, now + estimate, -size)
        return True

    def _reserve(self, job: int, profile: CountProfile) -> None:
        """Give a job a reservation at its earliest time."""
        begin = profile.earliest(self._size[job], self._estimate[job])
        profile.add(begin, begin + self._estimate[job], -self._size[job])


class Reservations(ProfiledPolicy):
    """K reservations (the number of reservations, as in Maui).

    One pass in queue order: a job that can start now, and stay for its estimate beside the
    reservations made so far in this pass, starts; a job that cannot is given a reservation at its
    earliest time while fewer than K have been given; later ones wait. K = 1 is EASY exactly.
    """

    def backfill(self, now: float) -> None:
        """Give reservations on the way through the queue, and start what fits beside them."""
        left = self._options.reservations
        if min(self._size[job] for job in self._queue) > self._counts[FREE]:
            return
        profile = self._profile(now)
        for job in self._queue:
            if not (left or self._counts[FREE]):
                break
            if not self._starts(job, now, profile) and left:
                self._reserve(job, profile)
                left -= 1


class Selective(ProfiledPolicy):
    """Selective reservations: a job that waited too long for its length has one (second parameter).

    After Srinivasan, Kettimuthu, Subramani and Sadayappan. docs/policies.md (selective) says what a
    pass does. Whoever has had a reservation has one in every later pass, for the expansion factor
    of a waiting job only grows. A threshold of 1 gives every job one, as ``reservations`` does with
    K as large as the queue; a huge one gives none: first fit.
    """

    def _from_front(self, now: float) -> None:
        """Start nobody: a later job's reservation may come first."""

    def backfill(self, now: float) -> None:
        """Make the reservations that are due, then start what fits beside them."""
        if min(self._size[job] for job in self._queue) > self._counts[FREE]:
            return
        profile = self._profile(now)
        submit, estimate, most = self._requests.submit, self._estimate, self._options.expansion_factor
        overdue = [job for job in self._queue if now - submit[job] + estimate[job] >= most * estimate[job]]
        first, begin = set(overdue), 0
        order = [*overdue, *(job for job in self._queue if job not in first)]
        for place, job in enumerate(order):
            # What does not fit beside the reservations so far cannot start later in the pass.
            # Reservations are made when a job behind them may start: for others they do not matter.
            if self._size[job] > self._counts[FREE] or not profile.holds(self._size[job], estimate[job]):
                continue
            for other in order[begin:place]:
                if other in first:
                    self._reserve(other, profile)
            begin = place + self._starts(job, now, profile)


class Slack(QueuePolicy):
    """Slack-based backfilling: the head's reservation may be put off up to a slack (2nd parameter).

    After the relaxed backfilling of Ward, Mahood and West, which the Chapter names beside Talby and
    Feitelson's flexible backfilling. docs/policies.md (slack) says what a pass does, and when the
    head starts at the latest: waiting can raise its expansion factor (wait + estimate) / estimate
    by at most F beyond what was promised. F = 0 is EASY exactly.
    """

    def __init__(self, requests: Requests, resort: Resort | None, options: PolicyOptions) -> None:
        super().__init__(requests, resort, options)
        # By job that was the head: the earliest shadow time it had.
        self._promise: dict[int, float] = {}

    def backfill(self, now: float) -> None:
        """Start what leaves the head its latest start."""
        counts, head = self._counts, self._queue[0]
        fitting = [job for job in self._queue if self._size[job] <= counts[FREE]]
        need = self._size[head]
        shadow, _ = shadow_time(self._state, need)
        promise = self._promise[head] = min(self._promise.get(head, shadow), shadow)
        latest = max(shadow, promise + self._options.slack * self._estimate[head])
        for job in fitting:
            if self._size[job] > counts[FREE]:
                continue
            start(self._state, now, job)
            if shadow_time(self._state, need)[0] > latest:
                release(self._state, job)
                counts[STARTED] -= 1


def class_limits(text: str) -> tuple[float, ...]:
    """Return the limits between classes that e.g. ``100,1000,10000`` names, in seconds.

    Raises:
        OptionError: they are no numbers.
    """
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise OptionError(f"--class-limits {text!r} is not SECONDS,…") from None


class Partitioned(ProfiledPolicy):
    """Partitioned reservations: a queue and a reservation per class of run time (fourth parameter).

    After Lawson and Smirni's multiple-queue backfilling. docs/policies.md (partitioned) says what a
    pass does; the heads of the classes come in queue order, and turns begin after the class that
    had the last one. A short job waits for the heads of the other classes, but never behind their
    queues. The first job of the whole queue has the first reservation, as in EASY; with one class
    the policy is EASY exactly.

    Raises:
        OptionError: the classes' limits do not rise.
    """

    def __init__(self, requests: Requests, resort: Resort | None, options: PolicyOptions) -> None:
        limits_s = tuple(options.class_limits_s)
        if not all(low < high for low, high in pairwise((0.0, *limits_s, inf))):
            text = ",".join(f"{limit:.15g}" for limit in limits_s)
            raise OptionError(f"--class-limits {text!r}: not rising from above 0")
        super().__init__(requests, resort, options)
        self._classes = len(limits_s) + 1
        self._class_of = [bisect_left(limits_s, estimate) for estimate in requests.estimate]
        self._turn = 0

    def backfill(self, now: float) -> None:
        """Give each class's head its reservation; then the classes start jobs in turn."""
        profile = self._profile(now)
        blocked: set[int] = set()
        waiting: list[list[int]] = [[] for _ in range(self._classes)]
        for job in self._queue:
            its_class = self._class_of[job]
            if its_class in blocked:
                if self._size[job] <= self._counts[FREE]:
                    waiting[its_class].append(job)
            elif not self._starts(job, now, profile):
                self._reserve(job, profile)
                blocked.add(its_class)
        self._in_turn(now, profile, waiting)

    def _in_turn(self, now: float, profile: CountProfile, waiting: list[list[int]]) -> None:
        """Let the classes start their first fitting job in turn.

        What does not fit once fits no more in this pass: each job is looked at once.
        """
        queues = [iter(queue) for queue in waiting]
        idle = 0
        while idle < self._classes and self._counts[FREE]:
            self._turn = (self._turn + 1) % self._classes
            has_started = any(self._starts(job, now, profile) for job in queues[self._turn])
            idle = 0 if has_started else idle + 1


#: All rows together have at most this many bits (¼ GiB): beyond, only the first candidates are
#: looked at. It takes hundreds of sizes without a common divisor on millions of processors.
MOST_BITS = 2**31


class Candidate(NamedTuple):
    """A waiting job that fits now; ``long`` when it would still run at the shadow time."""

    job: int
    size: int
    long: bool


def fullest(candidates: Sequence[Candidate], free: int, extra: int) -> list[int]:
    """Return the jobs that together use most processors; of equal selections the first jobs'.

    Between two selections that use equally many, the better one holds the first candidate in which
    they differ.

    Args:
        candidates: in order of preference; each of at most ``free`` processors.
        free: processors that all together may use now.
        extra: processors that those still running at the shadow time may use together.
    """
    beside = min(extra, free)
    kept = _without_surplus(candidates, free, beside)
    greedy = _first_that_fit(kept, free, beside)
    used = sum(one.size for one in greedy)
    if used == free or len(greedy) == len(kept):
        return [one.job for one in greedy]
    unit = gcd(*(one.size for one in kept))
    free, beside = free // unit, beside // unit
    kept = [one._replace(size=one.size // unit) for one in kept[: max(MOST_BITS // (free + 1), 1)]]
    return _chosen(kept, free, beside)


def _first_that_fit(kept: Iterable[Candidate], free: int, beside: int) -> list[Candidate]:
    """Return what starts when each in turn does that still fits."""
    found = []
    for one in kept:
        if one.size <= free and (not one.long or one.size <= beside):
            found.append(one)
            free -= one.size
            beside -= one.size if one.long else 0
    return found


def _chosen(kept: Sequence[Candidate], free: int, beside: int) -> list[int]:
    rows = _rows(kept, free, beside)
    target = free
    while not _reaches(*rows[0], target, beside):
        target -= 1
    chosen: list[int] = []
    room = beside
    for one, (short, long) in zip(kept, rows[1:], strict=True):
        if not target:
            break
        left = room - one.size if one.long else room
        long_left = long >> (beside - left) if left >= 0 else 0
        if one.size <= target and _reaches(short, long_left, target - one.size, left):
            chosen.append(one.job)
            target, room = target - one.size, left
    return chosen


def _without_surplus(candidates: Sequence[Candidate], free: int, beside: int) -> list[Candidate]:
    """Return the candidates less those of which more stand before them than can start together."""
    left: dict[tuple[int, bool], int] = {}
    kept = []
    for one in candidates:
        kind = (one.size, one.long)
        count = left.setdefault(kind, (beside if one.long else free) // one.size)
        if count:
            kept.append(one)
            left[kind] = count - 1
    return kept


def _rows(kept: Sequence[Candidate], free: int, beside: int) -> list[tuple[int, int]]:
    """Return, before each candidate and after the last, the sums that it and those after it reach.

    Of the short sums bit s stands for s, of the long ones bit ``beside`` − s: then one AND compares
    all pairs whose sum is the same.
    """
    short, long = 1, 1 << beside
    within = (1 << (free + 1)) - 1
    rows = [(short, long)]
    for one in reversed(kept):
        if one.long:
            long |= long >> one.size
        else:
            short |= (short << one.size) & within
        rows.append((short, long))
    rows.reverse()
    return rows


def _reaches(short: int, long: int, target: int, room: int) -> bool:
    """Say whether a short and a long sum make ``target``; bit ``room`` − s of ``long`` means s."""
    moved = long << (target - room) if target >= room else long >> (room - target)
    return short & moved != 0


class Lookahead(QueuePolicy):
    """LOS over a queue sorted by job number, or by ``resort`` before each pass."""

    def backfill(self, now: float) -> None:
        """Start the fullest selection beside the head's reservation."""
        free, depth = self._counts[FREE], self._options.lookahead_depth
        looked_at = islice(self._queue, 1, None if depth is None else depth + 1)
        fitting = [job for job in looked_at if self._size[job] <= free]
        if not fitting:
            return
        shadow, extra = shadow_time(self._state, self._size[self._queue[0]])
        candidates = [Candidate(job, self._size[job], now + self._estimate[job] > shadow) for job in fitting]
        if self._options.lookahead_ties == "last":
            candidates.reverse()
        for job in fullest(candidates, free, extra):
            start(self._state, now, job)
