"""A board of cores that are all alike: how many are free when (see iteration.Board)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import inf, nextafter

from ...cluster.errors import InputError
from ...cluster.timeline.count_profile import CountProfile

#: Cores by node.
Held = dict[int, int]
#: A job past its end is taken to end that many seconds from now.
OVERDUE_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Whose a job is (cluster.limits.Owned)."""

    user: str = ""
    group: str = ""
    account: str = ""
    qos: str = ""
    partition: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountJob:
    """A queued job: cores for a walltime in seconds."""

    id: str
    cores: int
    walltime_s: float
    owner: Credentials = Credentials()
    drains: bool = False


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
    owner: Credentials = Credentials()
    rank: int = 0
    preemptible: bool = False
    least: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRequest:
    """A running job asks for more cores."""

    job: str
    cores: int

    owner: Credentials = Credentials()


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
    """Free cores over time.

    Args:
        cores: of the machine.
        now_s: the clock.
        running: what runs.

    Raises:
        InputError: more cores run than there are.
    """

    def __init__(self, cores: int, now_s: float, running: Iterable[CountRunning]) -> None:
        self._now_s, self._cores = now_s, cores
        self._running = {job.id: job for job in running}
        free = cores - sum(job.cores for job in self._running.values())
        if free < 0:
            raise InputError(f"{cores - free} cores run on {cores}", path="running")
        ends = (
            (job.end_s if job.end_s > now_s else now_s + OVERDUE_S, job.cores)
            for job in self._running.values()
        )
        self._profile = CountProfile.of_running(now_s, free, sorted(end for end in ends if end[0] < inf))

    @property
    def now_s(self) -> float:
        """The clock."""
        return self._now_s

    @property
    def free(self) -> int:
        """Cores that nobody holds now, and nothing is planned on."""
        return int(self._profile.free[0])

    def copy(self) -> CountBoard:
        """Return another one, on which plans can be made."""
        other = CountBoard.__new__(CountBoard)
        other._now_s, other._cores, other._running = self._now_s, self._cores, self._running  # noqa: SLF001
        other._profile = self._profile.copy()  # noqa: SLF001
        return other

    def place(self, job: CountJob, since_s: float, *, only_now: bool = False) -> float:
        """Plan a job at its earliest start (see ``Board``)."""
        since_s = max(since_s, self._now_s)
        latest = nextafter(self._now_s, inf) if only_now else inf
        start = self._profile.earliest(job.cores, job.walltime_s, after=since_s, latest=latest)
        if only_now and start > self._now_s:
            return inf
        if start < inf:
            self._profile.add(start, start + job.walltime_s, -job.cores)
        return start

    def grants(self, request: CountRequest) -> Iterator[tuple[CountGrant, CountBoard]]:
        """Yield the grant from idle cores; else from preemptible jobs, from malleable ones, from both."""
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

    def _granted(self, request: CountRequest, grant: CountGrant) -> CountBoard:
        more = {name: -cores for name, cores in grant.shrunk} | {request.job: request.cores}
        running = [
            replace(job, cores=job.cores + more.get(job.id, 0))
            for job in self._running.values()
            if job.id not in grant.preempted
        ]
        return CountBoard(self._cores, self._now_s, running)

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
