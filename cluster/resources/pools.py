"""What stands on no node: licences, limits over sets of jobs (cluster/limits.py).

A pool says which jobs take how much of which of its resources; ``Pools`` keeps the account of all
of them: take, give back, what a job lacks.
"""

from abc import abstractmethod
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import NamedTuple, Protocol, TypeVar

from ..jobs import Job, RunningJob
from ..limits import AMOUNTS, JobSetIndex, Lasting, Limit, Owned, limited, of_gres
from ..nodes import Resources
from ..schedule import Reason
from ..text import listed
from .capacity import Capacity, Resource

#: Core-seconds of a job without an end: more than any limit, and sums of many stay below 2⁶³.
ENDLESS = 2 * 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What a job holds in all: nodes, cores, each gres by name."""

    nodes: int
    cores: int
    gres: Mapping[str, int] = field(default_factory=dict)


#: The same, or what it holds on each node.
Held = Use | Capacity


def fewest(job: Job) -> Use:
    """Return the least that a job could hold; a gres counts by the name in the request."""
    request = job.request
    return Use(nodes=request.fewest_nodes, cores=request.fewest_cores, gres=request.fewest_gres)


def use_of_nodes(held: Iterable[Resources]) -> Use:
    """Return what a job holds on its nodes together."""
    uses = list(held)
    gres: Counter[str] = Counter()
    for use in uses:
        gres.update(use.gres)
    return Use(nodes=len(uses), cores=sum(use.cores for use in uses), gres=gres)


def _use_of(held: Held) -> Use:
    """Return the same of arrays with one entry a node."""
    if isinstance(held, Use):
        return held
    return Use(
        nodes=len(held.cores),
        cores=int(held.cores.sum()),
        gres={kind: int(counts.sum()) for kind, counts in held.gres.items()},
    )


class ResourcePool(Protocol):
    """The resources of one family and who takes of them; it never changes.

    Unless it says otherwise jobs hold what they take while they run, and running jobs hold nothing
    more than ``capacity`` leaves out.
    """

    @property
    @abstractmethod
    def family(self) -> str:
        """The family's name."""

    @property
    @abstractmethod
    def reason(self) -> Reason:
        """Why a job waits that lacks some of it beside the award."""

    @property
    @abstractmethod
    def holds_queue(self) -> bool:
        """Whether policies in queue order wait for a job that lacks some, or reserve for it."""

    def held(self, job: RunningJob, use: Use, now: float | None) -> Iterable[tuple[Resource, int]]:
        """Yield what a running job takes beyond what ``capacity`` leaves out already."""
        del job, use, now
        return ()

    def lasting(self, resource: Resource) -> Lasting:
        """Return for how long taking a resource counts: while a job runs, for good, in one step."""
        del resource
        return Lasting.RUN

    @abstractmethod
    def takes(self, job: Job, use: Use, seconds: float | None) -> Iterable[tuple[Resource, int]]:
        """Yield what a job takes that may hold something for so long (None: without end)."""

    def spent(self, job: Job, use: Use, seconds: float | None) -> Iterable[tuple[Resource, int]]:
        """Yield what a job does not give back that ends so many seconds before it had to."""
        del job, use, seconds
        return ()

    @abstractmethod
    def capacity(self, resource: Resource) -> int:
        """Return how much of a resource there is."""

    @abstractmethod
    def alike(self, job: Job) -> Hashable:
        """Return what jobs have in common that take the same where they hold the same."""

    @abstractmethod
    def lacking(self, resource: Resource, asked: int, left: int) -> str:
        """Return in a sentence what a job asks for and does not get."""


OnePool = TypeVar("OnePool", bound=ResourcePool)


class Shortage(NamedTuple):
    """What a job lacks of a resource: it takes ``asked``, ``left`` are there."""

    resource: Resource
    asked: int
    left: int


class Pools:
    """The account of every pool.

    Args:
        pools: what there is, at most one of each family.
        taken: of each resource; one of which nothing is taken may be absent.
        running: names of the running jobs that hold some of a resource.
    """

    def __init__(
        self,
        pools: tuple[ResourcePool, ...] = (),
        taken: Mapping[Resource, int] | None = None,
        running: Mapping[Resource, list[str]] | None = None,
    ) -> None:
        self._pools = pools
        #: Those of which somebody may take something; a pool need not say that it has no resource.
        self._asked = tuple(pool for pool in pools if not getattr(pool, "is_empty", False))
        self._taken: dict[Resource, int] = dict(taken or {})
        self._running: Mapping[Resource, list[str]] = running or {}

    @classmethod
    def beside(
        cls, pools: tuple[ResourcePool, ...], running: Iterable[RunningJob], now: float | None
    ) -> "Pools":
        """Return the account of pools of which running jobs hold some."""
        taken: Counter[Resource] = Counter()
        holders: dict[Resource, list[str]] = {}
        counting = [pool for pool in pools if not getattr(pool, "is_empty", False)]
        for job in running if counting else ():
            use = use_of_nodes(job.nodes.values())
            for pool in counting:
                for resource, amount in pool.held(job, use, now):
                    if pool.lasting(resource) is Lasting.STEP:
                        continue
                    taken[resource] += amount
                    holders.setdefault(resource, []).append(job.id)
        return cls(pools, taken, holders)

    def copy(self) -> "Pools":
        """Return an account that is kept independently."""
        return Pools(self._pools, self._taken, self._running)

    def beside_others(self, pool: ResourcePool) -> "Pools":
        """Return an account that has a pool in place of its family's."""
        pools = tuple(pool if one.family == pool.family else one for one in self._pools)
        return Pools(pools, self._taken, self._running)

    def find(self, kind: type[OnePool]) -> OnePool:
        """Return the pool of a class, of which there is one."""
        return next(pool for pool in self._pools if isinstance(pool, kind))

    def of(self, family: str) -> ResourcePool:
        """Return the pool of a family (KeyError where there is none)."""
        return {pool.family: pool for pool in self._pools}[family]

    def remaining(self, resource: Resource) -> int:
        """Return how much is left of a resource."""
        return self.of(resource.family).capacity(resource) - self._taken.get(resource, 0)

    def lacks(self, job: Job, held: Held | None = None) -> Iterator[Shortage]:
        """Yield what a job lacks that holds so much; None: the least that it could hold."""
        if not self._asked:
            return
        for resource, asked in self.asked(job, fewest(job) if held is None else held):
            left = self.remaining(resource)
            if asked > left:
                yield Shortage(resource, asked, left)

    def asked(self, job: Job, held: Held) -> Iterator[tuple[Resource, int]]:
        """Yield what a job that holds so much takes of each resource."""
        if not self._asked:
            return
        use = _use_of(held)
        for pool in self._asked:
            yield from pool.takes(job, use, job.time_limit_s)

    def besides(self, job: Job, held: Held) -> list[tuple[Resource, int]]:
        """Return what it takes, once it runs, of limits that do not hold it back."""
        if not self._asked:
            return []
        use, limits = _use_of(held), (pool for pool in self._asked if isinstance(pool, LimitPool))
        return [entry for pool in limits for entry in pool.besides(job, use, job.time_limit_s)]

    @property
    def are_empty(self) -> bool:
        """Whether there is nothing of which a job takes."""
        return not self._asked

    def hold(self, job: Job, held: Held | None = None) -> bool:
        """Return whether there is enough for a job."""
        return not self._asked or next(self.lacks(job, held), None) is None

    def most_nodes(self, job: Job, most: int) -> int:
        """Return on how many nodes there is enough for a job, at most so many."""
        least = fewest(job)
        counts = range(least.nodes, most + 1)
        enough = bisect_left(counts, True, key=lambda count: not self.hold(job, replace(least, nodes=count)))
        return least.nodes + enough - 1

    def keep(self, job: Job) -> bool:
        """Return whether a job's reservation keeps nodes: it lacks nothing beyond this step."""
        return all(self._lasting(lack.resource) is Lasting.STEP for lack in self.lacks(job))

    def allow(self, job: Job, use: Use) -> bool:
        """Return whether limits that count while a job runs allow so much when nothing is taken."""
        return all(
            amount <= self.of(resource.family).capacity(resource)
            for resource, amount in self.asked(job, use)
            if self.reason(resource) is Reason.LIMIT and self._lasting(resource) is Lasting.RUN
        )

    def words(self, lack: Shortage) -> str:
        """Return in a sentence what a job lacks."""
        pool = self.of(lack.resource.family)
        said = pool.lacking(lack.resource, lack.asked, lack.left)
        # Of what is more than there is no end of a running job leaves enough; a budget changes.
        waits = lack.asked <= pool.capacity(lack.resource) or self._lasting(lack.resource) is Lasting.BUDGET
        running = self.running(lack.resource) if waits else []
        return f"{said}; held by running {listed(running)}" if running else said

    def running(self, resource: Resource) -> list[str]:
        """Return the running jobs that hold some of a resource."""
        return self._running.get(resource, [])

    def reason(self, resource: Resource) -> Reason:
        """Return why a job waits that lacks some of a resource."""
        return self.of(resource.family).reason

    def passes_over(self, job: Job) -> bool:
        """Return whether a job is to be passed over now, the queue behind it not waiting for it."""
        return any(not self.of(lack.resource.family).holds_queue for lack in self.lacks(job))

    def end(self, running: RunningJob, now: float | None) -> None:
        """Let a job end that runs in the snapshot, at its estimated end."""
        use = use_of_nodes(running.nodes.values())
        for pool in self._pools:
            for resource, amount in pool.held(running, use, now):
                if pool.lasting(resource) is Lasting.RUN:
                    self._taken[resource] -= amount

    def joined(self, others: "Iterable[Pools]") -> "Pools":
        """Return an account of the most that is taken of each resource in this or any later step.

        What counts in one step only is this one's.
        """
        taken = dict(self._taken)
        for other in others:
            for resource, amount in self.going_on(other._taken.items()):  # noqa: SLF001 - of the same class
                taken[resource] = max(taken.get(resource, 0), amount)
        return Pools(self._pools, taken, self._running)

    def begin_step(self) -> bool:
        """Forget what was taken for the step before only; return whether there was any."""
        if not self.counts_step:
            return False
        self._taken = dict(self.going_on(self._taken.items()))
        return True

    @property
    def counts_step(self) -> bool:
        """Whether something is taken for this step only: the next one may start more."""
        return any(self._lasting(resource) is Lasting.STEP for resource in self._taken)

    def _lasting(self, resource: Resource) -> Lasting:
        return self.of(resource.family).lasting(resource)

    def going_on(self, taken: Iterable[tuple[Resource, int]]) -> list[tuple[Resource, int]]:
        """Return the amounts that count for longer than the step in which a job starts."""
        return [
            (resource, amount) for resource, amount in taken if self._lasting(resource) is not Lasting.STEP
        ]

    def take(self, job: Job, held: Held) -> None:
        """Let a job start."""
        self.add([*self.asked(job, held), *self.besides(job, held)])

    def spent(self, job: Job, held: Held) -> list[tuple[Resource, int]]:
        """Return what a job would not give back when it ends at its time limit."""
        use = _use_of(held)
        return [entry for pool in self._pools for entry in pool.spent(job, use, 0.0)]

    def add(self, taken: Iterable[tuple[Resource, int]]) -> None:
        """Take so much of each resource."""
        for resource, amount in taken:
            self._taken[resource] = self._taken.get(resource, 0) + amount

    def give(self, job: Job, held: Held, early_s: float | None = 0.0) -> None:
        """Let a job end, so many seconds before its time limit (None: it has none)."""
        if not self._asked:
            return
        use = _use_of(held)
        spent = dict(entry for pool in self._asked for entry in pool.spent(job, use, early_s))
        taken = self.going_on([*self.asked(job, use), *self.besides(job, use)])
        self.add((resource, spent.get(resource, 0) - amount) for resource, amount in taken)

    def alike(self, job: Job) -> Hashable:
        """Return what jobs that take the same of every pool for equal holdings have in common."""
        return tuple(pool.alike(job) for pool in self._pools)


class LimitPool(ResourcePool):
    """What limits leave."""

    family = "limits"
    reason = Reason.LIMIT
    holds_queue = False

    def __init__(self, limits: tuple[Limit, ...]) -> None:
        self.limits = limits
        self._known: dict[str, tuple[Limit, str]] = {}
        #: Returns the limits that count a job.
        self.limits_of = JobSetIndex(limits).find
        #: Those that another QOS's limits may stand for, as they count what runs.
        counting = (one for one in limits if one.jobs.except_qos)
        self._counting = JobSetIndex(
            [replace(one, jobs=replace(one.jobs, except_qos=())) for one in counting]
        )

    @property
    def is_empty(self) -> bool:
        """Whether there are no limits."""
        return not self.limits

    def resource(self, limit: Limit, what: str, job: Owned) -> Resource:
        """Return the resource of which a job of the limit's set takes."""
        who = "" if limit.per is None else f" of {limit.per} {getattr(job, limit.per) or '(none)'}"
        name = f"{limit.name}: {what}{who}"
        self._known[name] = limit, what
        return Resource(self.family, name)

    def takes(self, job: Owned, use: Use, seconds: float | None) -> Iterator[tuple[Resource, int]]:
        """Yield what a job takes of every limit that counts it."""
        return self._amounts(self.limits_of(job), job, use, seconds)

    def besides(self, job: Job, use: Use, seconds: float | None) -> Iterator[tuple[Resource, int]]:
        """Yield the same of limits that a QOS of the job stands for while it waits: ``except_qos``."""
        known = {limit.name for limit in self.limits_of(job)}
        others = [limit for limit in self._counting.find(job) if limit.name not in known]
        return self._amounts(others, job, use, seconds)

    def _amounts(
        self, limits: Iterable[Limit], job: Owned, use: Use, seconds: float | None
    ) -> Iterator[tuple[Resource, int]]:
        for limit in limits:
            for what in limit.most:
                amount = _amount(what, use, seconds)
                if amount:
                    yield self.resource(limit, what, job), amount

    def spent(self, job: Job, use: Use, seconds: float | None) -> Iterator[tuple[Resource, int]]:
        """Yield the core-seconds of a job that ends so many seconds before its time limit."""
        limit_s = job.time_limit_s
        for resource, amount in (*self.takes(job, use, limit_s), *self.besides(job, use, limit_s)):
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
