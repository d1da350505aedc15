"""The extended Maui iteration (Prabhakaran, algorithm 2), over any machine that can plan.

A ``Board`` is the machine as it is now: what runs, until when, and what is free then. The iteration
plans the queue on copies of it, grants requests on it, and starts jobs on it; nodes, cores and gres
are the board's business. A grant gives another board; planning a job changes the board itself, so
that plans are made on a copy. ``CountBoard`` is one of cores that are all alike.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from math import inf, nextafter
from typing import Generic, Protocol, TypeVar

from ...cluster.limits import Owned
from ...cluster.timeline.count_profile import CountProfile
from .fairness import Accounts, Budgets, Delay, DelayPolicy, Fairness, charged


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """A queued job; nothing behind one that drains starts before it does (ESP's Z)."""

    id: str
    owner: Owned = Owned()
    drains: bool = False


class Asking(Protocol):
    """A request of a running job."""

    @property
    def owner(self) -> Owned:
        """Whose job it is."""


J = TypeVar("J", bound=WaitingJob)
R = TypeVar("R", bound=Asking)
#: What a board gives a request: how many cores, or where.
G = TypeVar("G")


class Board(Protocol[J, R, G]):
    """The machine at one moment, and what is planned on it."""

    @property
    def now_s(self) -> float:
        """The clock."""

    def copy(self) -> "Board[J, R, G]":
        """Return another one, on which plans can be made."""

    def place(self, job: J, since_s: float, *, only_now: bool = False) -> float:
        """Plan a job at its earliest start from a time on, beside all plans; inf: it never fits.

        With ``only_now`` it is planned where it starts at ``now_s``, else inf is returned.
        """

    def grants(self, request: R) -> "Iterator[tuple[G, Board[J, R, G]]]":
        """Yield what a request could be given, and the board then: idle resources come first."""

    def earliest(self, request: R) -> float:
        """Return when idle resources could be there for a request beside all plans; inf: never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Depths:
    """Jobs with a reservation: for backfilling, and whose delay is measured (figure 5)."""

    reservation: int = 5
    delay: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOutcome(Generic[R, G]):
    """What became of a request.

    Attributes:
        grant: None: it is refused.
        why: of a refusal.
        delays: of queued jobs, of the grant or of the one that would have been unfair.
        earliest_s: of a refusal for want of resources: when they could be there; inf: not known.
    """

    request: R
    grant: G | None
    why: str = ""
    delays: tuple[Delay, ...] = ()
    earliest_s: float = inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Served(Generic[J, R, G]):
    """All requests of an iteration, the board and the accounts afterwards."""

    board: Board[J, R, G]
    accounts: Accounts
    answers: tuple[RequestOutcome[R, G], ...]


def planned(board: Board[J, R, G], jobs: Iterable[J], depth: int) -> tuple[Board[J, R, G], dict[str, float]]:
    """Plan jobs in order until ``depth`` of them start later; return their starts, also those now.

    A job that never fits is passed over.
    """
    work, starts, later, since = board.copy(), dict[str, float](), 0, board.now_s
    for job in jobs:
        if depth and later >= depth:
            break
        start = work.place(job, since, only_now=not depth)
        if start == inf:
            if not depth:
                break
            continue
        starts[job.id] = start
        later += start > board.now_s
        if job.drains:
            since = start
    return work, starts


def delays_of(jobs: Iterable[J], before: dict[str, float], after: dict[str, float]) -> tuple[Delay, ...]:
    """Return how much later each planned job starts."""
    found = [
        Delay(job=job.id, owner=job.owner, seconds=after.get(job.id, inf) - before[job.id])
        for job in jobs
        if job.id in before
    ]
    return tuple(delay for delay in found if delay.seconds > 0)


def serve(
    board: Board[J, R, G],
    requests: Sequence[R],
    jobs: Sequence[J],
    depths: Depths,
    fairness: Fairness,
    accounts: Accounts,
) -> Served[J, R, G]:
    """Answer dynamic requests, first come first served (lines 10 to 24 of algorithm 2).

    The queue is planned without a start; after each grant it is planned anew. The jobs that start
    now and the first ``depths.delay`` that start later are measured.
    """
    accounts = accounts.rolled(fairness, board.now_s)
    answers: list[RequestOutcome[R, G]] = []
    # Deeper reservations than those that are measured change nothing here: they come after them.
    full, starts = planned(board, jobs, depths.delay) if requests else (board, dict[str, float]())
    measured = [job for job in jobs if job.id in starts]
    # However many of them start later on another board.
    every = len(measured) + 1
    for request in requests:
        why, delays = "not enough resources are free", tuple[Delay, ...]()
        for grant, after in board.grants(request):
            then_full, then = planned(after, measured, every)
            delays = delays_of(measured, starts, then)
            found = charged(accounts, fairness, request.owner, delays)
            if isinstance(found, Accounts):
                answers.append(RequestOutcome(request=request, grant=grant, delays=delays))
                board, full, starts, accounts = after, then_full, then, found
                break
            why = found
        else:
            when = full.earliest(request)
            answers.append(
                RequestOutcome(request=request, grant=None, why=why, delays=delays, earliest_s=when)
            )
    return Served(board=board, accounts=accounts, answers=tuple(answers))


def budgets_of(
    board: Board[J, R, G],
    requests: Sequence[R],
    queue: Sequence[J],
    fairness: Fairness,
    accounts: Accounts,
    depth: int,
    name_of: Callable[[R], str],
) -> Budgets:
    """Return the rest of each limit that a request touches, and what each alone would take."""
    found = Budgets(fairness, accounts)
    if fairness.policy is DelayPolicy.NONE or not requests:
        return found
    _, before = planned(board, queue, depth)
    measured = [job for job in queue if job.id in before]
    every = len(measured) + 1
    for request in requests:
        for _, granted in board.grants(request):
            after = planned(granted, measured, every)[1]
            found.add(name_of(request), request.owner, delays_of(measured, before, after))
    return found


def started(board: Board[J, R, G], jobs: Sequence[J], depths: Depths) -> tuple[list[J], Board[J, R, G]]:
    """Return the jobs that start now, backfilled ones last, and the board with plans (lines 25-26).

    Jobs are planned in order of priority until ``depths.reservation`` of them wait; those behind
    start where they delay none of these. Behind a waiting job that drains nothing starts.
    """
    work, starts = planned(board, jobs, depths.reservation)
    now = [job for job in jobs if starts.get(job.id) == board.now_s]
    since = max((starts.get(job.id, inf) for job in jobs if job.drains), default=board.now_s)
    if since > board.now_s:
        return now, work
    behind = (job for job in jobs if job.id not in starts)
    now += [job for job in behind if work.place(job, board.now_s, only_now=True) == board.now_s]
    return now, work


#: Cores by node.
Held = dict[int, int]
#: A job past its end is taken to end that many seconds from now.
OVERDUE_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CountJob(WaitingJob):
    """A queued job: cores for a walltime in seconds."""

    cores: int
    walltime_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRunning:
    """A running job.

    Attributes:
        end_s: of its walltime.
        rank: the higher, the sooner it is preempted or shrunk.
        preemptible: it may be stopped for a request, and waits again.
        least: cores that it can shrink to; None: it cannot.
    """

    id: str
    cores: int
    end_s: float
    owner: Owned = Owned()
    rank: int = 0
    preemptible: bool = False
    least: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRequest:
    """A running job asks for more cores."""

    job: str
    cores: int
    owner: Owned = Owned()


@dataclass(frozen=True, slots=True, kw_only=True)
class CountGrant:
    """What a request is given its cores from.

    Attributes:
        preempted: jobs that stop for it and wait again.
        shrunk: number of cores that each of these jobs gives up for it.
        held: its cores by node, where who granted it chose them.
    """

    preempted: tuple[str, ...] = ()
    shrunk: tuple[tuple[str, int], ...] = ()
    held: Held | None = None


class CountBoard:
    """Free cores over time."""

    def __init__(self, cores: int, now_s: float, running: Iterable[CountRunning]) -> None:
        self.now_s, self._cores = now_s, cores
        self._running = {job.id: job for job in running}
        free = cores - sum(job.cores for job in self._running.values())
        ends = (
            (job.end_s if job.end_s > now_s else now_s + OVERDUE_S, job.cores)
            for job in self._running.values()
        )
        self._profile = CountProfile.of_running(now_s, free, sorted(end for end in ends if end[0] < inf))

    @property
    def free(self) -> int:
        """Cores that nobody holds now, and nothing is planned on."""
        return int(self._profile.free[0])

    def copy(self) -> "CountBoard":
        """Return another one, on which plans can be made."""
        other = copy(self)
        other._profile = self._profile.copy()  # noqa: SLF001
        return other

    def place(self, job: CountJob, since_s: float, *, only_now: bool = False) -> float:
        """Plan a job at its earliest start (see ``Board``)."""
        since_s = max(since_s, self.now_s)
        latest = nextafter(self.now_s, inf) if only_now else inf
        start = self._profile.earliest(job.cores, job.walltime_s, after=since_s, latest=latest)
        if only_now and start > self.now_s:
            return inf
        if start < inf:
            self._profile.add(start, start + job.walltime_s, -job.cores)
        return start

    def grants(self, request: CountRequest) -> "Iterator[tuple[CountGrant, CountBoard]]":
        """Yield the grant from idle cores; else from preemptible or malleable jobs, or both."""
        if request.job not in self._running:
            return
        need = request.cores - self.free
        if need <= 0:
            yield CountGrant(), self._granted(request, CountGrant())
            return
        for preempts, shrinks in ((True, False), (False, True), (True, True)):
            found = self._taken(request, need, preempts=preempts, shrinks=shrinks)
            if found is not None:
                yield found, self._granted(request, found)

    def _taken(self, request: CountRequest, need: int, *, preempts: bool, shrinks: bool) -> CountGrant | None:
        """Return what others give for a request, None where it is not enough."""
        mine, stopped, shrunk = self._running[request.job], list[str](), list[tuple[str, int]]()
        others = sorted(
            (job for job in self._running.values() if job is not mine), key=lambda job: (-job.rank, job.id)
        )
        for job in others if preempts else ():
            # A preemptible job stops none of a lower rank: two that did would start over for ever.
            if need > 0 and job.preemptible and (not mine.preemptible or job.rank >= mine.rank):
                stopped.append(job.id)
                need -= job.cores
        for job in others if shrinks else ():
            give = 0 if job.least is None or job.id in stopped else min(need, job.cores - job.least)
            if give > 0:
                shrunk.append((job.id, give))
                need -= give
        return None if need > 0 else CountGrant(preempted=tuple(stopped), shrunk=tuple(shrunk))

    def _granted(self, request: CountRequest, grant: CountGrant) -> "CountBoard":
        more = {name: -cores for name, cores in grant.shrunk} | {request.job: request.cores}
        running = [
            replace(job, cores=job.cores + more.get(job.id, 0))
            for job in self._running.values()
            if job.id not in grant.preempted
        ]
        return CountBoard(self._cores, self.now_s, running)

    def earliest(self, request: CountRequest) -> float:
        """Return when idle cores could be there, until the job's end; inf: not before it."""
        job = self._running.get(request.job)
        if job is None:
            return inf
        time: float
        for time in self._profile.times:
            left = job.end_s - time
            if left <= 0:
                return inf
            if self._profile.earliest(request.cores, left, after=time) == time:
                return time
        return inf
