"""The account of limits over sets of jobs (cluster/limits.py): who takes how much of which."""

from collections.abc import Hashable, Iterator
from math import ceil

from ..jobs import Job, RunningJob
from ..limits import AMOUNTS, JOB_MEMBERS, Lasting, Limit, Owned, limited, of_gres
from ..schedule import Reason
from .capacity import Resource
from .pools import ResourcePool, Use

_LIMITS = "limits"
#: Core-seconds of a job without an end: more than any limit, and sums of many stay below 2⁶³.
ENDLESS = 2 * 10**12


class LimitPool(ResourcePool):
    """What limits leave."""

    family = _LIMITS
    reason = Reason.LIMIT
    holds_queue = False

    def __init__(self, limits: tuple[Limit, ...]) -> None:
        self.limits = limits
        self._known: dict[str, tuple[Limit, str]] = {}
        self._counting: dict[tuple[str, ...], tuple[Limit, ...]] = {}

    def limits_of(self, job: Owned) -> tuple[Limit, ...]:
        """Return the limits that count a job: a site may have one for each user."""
        key = tuple(getattr(job, name) for name in JOB_MEMBERS)
        if key not in self._counting:
            self._counting[key] = tuple(limit for limit in self.limits if limit.jobs.holds(job))
        return self._counting[key]

    @property
    def is_empty(self) -> bool:
        """Whether there are no limits."""
        return not self.limits

    def resource(self, limit: Limit, what: str, job: Owned) -> Resource:
        """Return the resource of which a job of the limit's set takes."""
        who = "" if limit.per is None else f" of {limit.per} {getattr(job, limit.per) or '(none)'}"
        name = f"{limit.name}: {what}{who}"
        self._known[name] = limit, what
        return Resource(_LIMITS, name)

    def takes(self, job: Owned, use: Use, seconds: float | None) -> Iterator[tuple[Resource, int]]:
        """Yield what a job takes of every limit that counts it."""
        for limit in self.limits_of(job):
            for what in limit.most:
                amount = _amount(what, use, seconds)
                if amount:
                    yield self.resource(limit, what, job), amount

    def spent(self, job: Job, use: Use, seconds: float | None) -> Iterator[tuple[Resource, int]]:
        """Yield the core-seconds that a job has used when it ends so many seconds before its time limit."""
        for resource, amount in self.takes(job, use, job.time_limit_s):
            if self.lasting(resource) is Lasting.BUDGET:
                # Rounded down, but for the clock's error: a core-second that was begun is used.
                unused = ENDLESS if seconds is None else int(use.cores * seconds + 1e-6)
                yield resource, amount - unused

    def held(self, job: RunningJob, use: Use, now: float | None) -> Iterator[tuple[Resource, int]]:
        """Yield what a running job takes; of core-seconds those to its estimated end."""
        known = job.end_time is not None and now is not None
        seconds = max((job.end_time or 0.0) - (now or 0.0), 0.0) if known else None
        return self.takes(job, use, seconds)

    def lasting(self, resource: Resource) -> Lasting:
        """Return how long an amount counts; gres count while a job runs."""
        return AMOUNTS.get(self._known[resource.name][1], Lasting.RUN)

    def capacity(self, resource: Resource) -> int:
        """Return the limit."""
        limit, what = self._known[resource.name]
        return limit.most[what]

    def alike(self, job: Job) -> Hashable:
        """Return which of the limits count a job."""
        return tuple(
            (limit.name, None if limit.per is None else getattr(job, limit.per))
            for limit in self.limits_of(job)
        )

    def lacking(self, resource: Resource, asked: int, left: int) -> str:
        """Return what the limit leaves and what a job asks for."""
        limit, what = self._known[resource.name]
        endless = "core-seconds without end (no time limit)"
        wanted = endless if asked >= ENDLESS else limited(what, asked)
        most = limit.most[what]
        free = f"leaves {max(left, 0)} of {most}"
        # Of a budget the limit is what is left: it may be set anew, or decay.
        lasts = asked <= most or self.lasting(resource) is Lasting.BUDGET
        leaves = free if lasts else f"is {most}: it can never start"
        return f"it asks for {wanted}, the limit {resource.name} {leaves}"


def _amount(what: str, use: Use, seconds: float | None) -> int:
    if what == "core_seconds":
        return ENDLESS if seconds is None else ceil(use.cores * seconds)
    counts = {"cores": use.cores, "nodes": use.nodes, "jobs": 1}
    return counts[what] if what in counts else of_gres(what, use.gres)
