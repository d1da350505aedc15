"""What stands on no node: licences, and whatever else the whole cluster has so much of.

A pool says which jobs take how much of which of its cells; ``Pools`` keeps the account of all of
them: take, give back, what a job lacks.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

from ..jobs import Job, RunningJob
from ..limits import Lasting
from ..nodes import Resources
from ..schedule import Reason
from ..text import listed
from .capacity import Capacity, Cell, Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What a job holds in all: nodes, cores, each gres by name."""

    nodes: int
    cores: int
    gres: Mapping[str, int] = field(default_factory=dict)


def fewest(job: Job) -> Use:
    """Return the least that a job could hold; a gres counts by the name in the request."""
    request = job.request
    nodes = request.fewest_nodes
    gres = {name: span.minimum * nodes for name, span in request.gres_per_node.items()}
    gres |= {name: span.minimum for name, span in request.gres_total.items()}
    return Use(nodes=nodes, cores=request.fewest_cores, gres=gres)


def use_of_nodes(held: Iterable[Resources]) -> Use:
    """Return what a job holds on its nodes together."""
    uses = list(held)
    gres: Counter[str] = Counter()
    for use in uses:
        gres.update(use.gres)
    return Use(nodes=len(uses), cores=sum(use.cores for use in uses), gres=gres)


def use_of(held: Capacity) -> Use:
    """Return the same of arrays with one entry a node."""
    return Use(
        nodes=len(held.cores),
        cores=int(held.cores.sum()),
        gres={kind: int(counts.sum()) for kind, counts in held.gres.items()},
    )


class ResourcePool(Protocol):
    """The cells of one family and who takes of them; it never changes.

    Unless it says otherwise jobs hold what they take while they run, and running jobs hold nothing
    more than ``capacity`` leaves out.

    Attributes:
        family: its name.
        reason: why a job waits that lacks some of it beside the award.
    """

    @property
    def family(self) -> str:
        """The family's name."""
        ...

    @property
    def reason(self) -> Reason:
        """Why a job waits that lacks some of it beside the award."""
        ...

    @property
    def holds_queue(self) -> bool:
        """Whether policies that keep the order of the queue wait for a job that lacks some, or reserve."""
        ...

    def held(self, job: RunningJob, use: Use, now: float | None) -> Iterable[tuple[Cell, int]]:
        """Yield what a running job takes beyond what ``capacity`` leaves out already."""
        del job, use, now
        return ()

    def lasting(self, cell: Cell) -> Lasting:
        """Return how long what a job takes of a cell counts: while it runs, for good, or in one step."""
        del cell
        return Lasting.RUN

    def takes(self, job: Job, use: Use, seconds: float | None) -> Iterable[tuple[Cell, int]]:
        """Yield what a job takes that may hold something for so long (None: without end)."""
        ...

    def spent(self, job: Job, use: Use, seconds: float | None) -> Iterable[tuple[Cell, int]]:
        """Yield what a job does not give back that ends so many seconds before it had to."""
        del job, use, seconds
        return ()

    def capacity(self, cell: Cell) -> int:
        """Return how much of a cell there is."""
        ...

    def alike(self, job: Job) -> Hashable:
        """Return what jobs have in common that take the same where they hold the same."""
        ...

    def lacking(self, cell: Cell, asked: int, left: int) -> str:
        """Return in a sentence what a job asks for and does not get."""
        ...


OnePool = TypeVar("OnePool", bound=ResourcePool)


class Shortage(NamedTuple):
    """What a job lacks of a cell: it takes ``asked``, ``left`` are there."""

    cell: Cell
    asked: int
    left: int


class Pools:
    """The account of every pool.

    Args:
        pools: what there is, at most one of each family.
        taken: of each cell; cells of which nothing is taken may be absent.
        running: names of the running jobs that hold some of a cell.
    """

    def __init__(
        self,
        pools: tuple[ResourcePool, ...] = (),
        taken: Mapping[Cell, int] | None = None,
        running: Mapping[Cell, list[str]] | None = None,
    ) -> None:
        self._pools = pools
        #: Those of which somebody may take something; a pool need not say that it has no cell.
        self._asked = tuple(pool for pool in pools if not getattr(pool, "is_empty", False))
        self._taken: dict[Cell, int] = dict(taken or {})
        self._running: Mapping[Cell, list[str]] = running or {}

    @classmethod
    def beside(
        cls, pools: tuple[ResourcePool, ...], running: Iterable[RunningJob], now: float | None
    ) -> "Pools":
        """Return the account of pools of which running jobs hold some."""
        taken: Counter[Cell] = Counter()
        holders: dict[Cell, list[str]] = {}
        counting = [pool for pool in pools if not getattr(pool, "is_empty", False)]
        for job in running if counting else ():
            use = use_of_nodes(job.nodes.values())
            for pool in counting:
                for cell, amount in pool.held(job, use, now):
                    if pool.lasting(cell) is Lasting.STEP:
                        continue
                    taken[cell] += amount
                    holders.setdefault(cell, []).append(job.id)
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

    def remaining(self, cell: Cell) -> int:
        """Return how much is left of a cell."""
        return self.of(cell.resource.family).capacity(cell) - self._taken.get(cell, 0)

    def lacks(self, job: Job, use: Use | None = None) -> Iterator[Shortage]:
        """Yield what a job lacks that holds so much; without ``use`` the least that it could hold."""
        if not self._asked:
            return
        for cell, asked in self.asked(job, fewest(job) if use is None else use):
            left = self.remaining(cell)
            if asked > left:
                yield Shortage(cell, asked, left)

    def asked(self, job: Job, use: Use) -> Iterator[tuple[Cell, int]]:
        """Yield what a job that holds so much takes of each cell."""
        for pool in self._asked:
            yield from pool.takes(job, use, job.time_limit_s)

    @property
    def are_empty(self) -> bool:
        """Whether there is nothing of which a job takes."""
        return not self._asked

    def hold(self, job: Job, use: Use | None = None) -> bool:
        """Return whether there is enough for a job."""
        return not self._asked or next(self.lacks(job, use), None) is None

    def words(self, lack: Shortage) -> str:
        """Return in a sentence what a job lacks."""
        said = self.of(lack.cell.resource.family).lacking(lack.cell, lack.asked, lack.left)
        running = self.running(lack.cell.resource)
        return f"{said}; held by running {listed(running)}" if running else said

    def running(self, resource: Resource) -> list[str]:
        """Return the running jobs that hold some of a resource."""
        return self._running.get(Cell(resource), [])

    def reason(self, resource: Resource) -> Reason:
        """Return why a job waits that lacks some of a resource."""
        return self.of(resource.family).reason

    def passes_over(self, job: Job) -> bool:
        """Return whether a job is to be passed over now, the queue behind it not waiting for it."""
        return any(not self.of(lack.cell.resource.family).holds_queue for lack in self.lacks(job))

    def end(self, running: RunningJob, now: float | None) -> None:
        """Let a job end that runs in the snapshot, at its estimated end."""
        use = use_of_nodes(running.nodes.values())
        for pool in self._pools:
            for cell, amount in pool.held(running, use, now):
                if pool.lasting(cell) is Lasting.RUN:
                    self._taken[cell] -= amount

    def joined(self, others: "Iterable[Pools]") -> "Pools":
        """Return an account of the most that is taken of each cell in any of this and later steps.

        What counts in one step only is this one's.
        """
        taken = dict(self._taken)
        for other in others:
            for cell, amount in other._taken.items():  # noqa: SLF001 - of the same class
                if self._lasting(cell) is not Lasting.STEP:
                    taken[cell] = max(taken.get(cell, 0), amount)
        return Pools(self._pools, taken, self._running)

    def cells(self, job: Job, use: Use) -> list[Cell]:
        """Return the cells of which a job takes something."""
        return [cell for cell, _ in self.asked(job, use)]

    def begin_step(self) -> bool:
        """Forget what was taken for the step before only; return whether there was any."""
        if not self.counts_step:
            return False
        kept = {cell: n for cell, n in self._taken.items() if self._lasting(cell) is not Lasting.STEP}
        self._taken = kept
        return True

    @property
    def counts_step(self) -> bool:
        """Whether something is taken for this step only: the next one may start more."""
        return any(self._lasting(cell) is Lasting.STEP for cell in self._taken)

    def _lasting(self, cell: Cell) -> Lasting:
        return self.of(cell.resource.family).lasting(cell)

    def going_on(self, cells: Iterable[tuple[Cell, int]]) -> list[tuple[Cell, int]]:
        """Return the amounts that count as long as a job runs, not only in the step in which it starts."""
        return [(cell, amount) for cell, amount in cells if self._lasting(cell) is not Lasting.STEP]

    def take(self, job: Job, use: Use, *, starts: bool = True) -> None:
        """Let a job start, or (where it does not start in this step) go on."""
        taken = self.asked(job, use)
        self.add(taken if starts else self.going_on(taken))

    def spent(self, job: Job, use: Use) -> list[tuple[Cell, int]]:
        """Return what a job would not give back when it ends at its time limit."""
        return [entry for pool in self._pools for entry in pool.spent(job, use, 0.0)]

    def add(self, cells: Iterable[tuple[Cell, int]]) -> None:
        """Take so much of each cell."""
        for cell, amount in cells:
            self._taken[cell] = self._taken.get(cell, 0) + amount

    def give(self, job: Job, use: Use, early_s: float | None = 0.0) -> None:
        """Let a job end, so many seconds before its time limit (None: it has none)."""
        for pool in self._asked:
            spent = dict(pool.spent(job, use, early_s))
            for cell, amount in pool.takes(job, use, job.time_limit_s):
                if pool.lasting(cell) is not Lasting.STEP:
                    self._taken[cell] -= amount - spent.get(cell, 0)

    def alike(self, job: Job) -> Hashable:
        """Return what jobs have in common that take the same of every pool where they hold the same."""
        return tuple(pool.alike(job) for pool in self._pools)
