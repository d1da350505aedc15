"""The state of a machine of nodes during a simulation: free resources, running jobs and their ends.

The columns of bidgen are kept across steps and changed in place: no node is built anew. Some jobs
can never start on it: they do not fit it even when nothing else runs, or what is left of it.
"""

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from ...auction.explain.words import shortened
from ...auction.queue import set_aside
from ...auction.state import Hold, Holds, SnapshotState, StepState
from ...bidgen.candidates import GuardedViews
from ...bidgen.families.registry import columns_of
from ...bidgen.generate import place_alone
from ...cluster.errors import AwardError, OptionError
from ...cluster.jobs import Job, hold_words, is_held, may_start
from ...cluster.resources.allocation import Allocation, StartingJob, put
from ...cluster.resources.capacity import UNLIMITED_MIB, BoolArray, Resource
from ...cluster.resources.demand import Demand, DemandReader
from ...cluster.workload import ClusterWorkload, Outage, outages_by_node
from ...topology.tree import topology_of


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Holding(Hold):
    """A running job: what it holds, since when, when its time limit ends it (inf without one)."""

    demand: Demand
    start_s: float
    cores: int


class Machine:
    """The nodes of a workload. ``Demand.index`` is a job's number in the workload.

    Attributes:
        snapshot: the empty machine, without jobs.
        columns: free resources now; ``free``, ``is_empty``, ``takes_jobs`` and ``pools`` change in
            place. A node that is down has nothing free, and no forecast gives any of it back.
        topology: the switches.
        reader: turns the workload's jobs into demands.
        running: by job number.
        arrivals: when jobs come (seconds), by id.
        ran: by job number, how long those ran that have ended or were stopped (seconds).
        changes: rises with every start and end, with every node that goes down or comes back, and
            where a step has more to give than the one before left.
    """

    def __init__(self, workload: ClusterWorkload) -> None:
        self._workload = workload
        self.snapshot = replace(workload, jobs=()).snapshot()
        self.columns = columns_of(self.snapshot)
        self.topology = topology_of(self.snapshot)
        self.reader = DemandReader(self.snapshot, self.columns)
        self.running: dict[int, Holding] = {}
        self.ran: dict[int, float] = {}
        self.arrivals = {arriving.job.id: arriving.arrival_s for arriving in workload.jobs}
        self.changes = 0
        self._besides: list[tuple[Resource, int]] = []
        #: What runs, and after which change that was noted.
        self._holds, self._held_at = Holds(), 0
        self._views = GuardedViews(self.columns, self.columns.free)
        #: The running jobs on each node that ran any; None: no node has failed.
        self._on: dict[int, set[int]] | None = None
        self.limited: BoolArray = self.columns.total.memory < UNLIMITED_MIB

    def empty(self) -> "Machine":
        """Return a machine of the same nodes and jobs on which nothing runs; all nodes are up."""
        return Machine(self._workload)

    def begin_step(self) -> None:
        """Let what counts in one step only begin anew."""
        if self.columns.pools.begin_step():
            self.changes += 1
        self.columns.pools.add(self._besides)
        self._besides = []

    def start(self, start: StartingJob, now: float) -> Holding:
        """Take what a job holds from what is free.

        Raises:
            AwardError: it does not fit, or the job runs already.
        """
        demand, allocation = start.demand, start.allocation
        if demand.index in self.running:
            raise AwardError(f"job {demand.job.id} starts at {now:g} while running")
        self._add(allocation, -1)
        pools, held = self.columns.pools, allocation.held
        lack = next(pools.lacks(demand.job, held), None)
        if lack is not None:
            raise AwardError(f"job {demand.job.id} starts at {now:g}: {pools.words(lack)}")
        pools.add(pools.asked(demand.job, held))
        # An award may hold both a job and one of a limit that counts it from the next pass on.
        self._besides += pools.besides(demand.job, held)
        limit = demand.job.limit_on_s(len(allocation.nodes))
        cores, end = int(held.cores.sum()), inf if limit is None else now + limit
        holding = Holding(end=end, allocation=allocation, demand=demand, start_s=now, cores=cores)
        self.running[demand.index] = holding
        self._put(demand.index, allocation)
        self.ran.pop(demand.index, None)
        self._check(holding)
        return holding

    def end(self, job: int, now: float) -> None:
        """Give back what a running job holds that ends now."""
        holding = self.running.pop(job)
        if self._on is not None:
            for node in holding.allocation.nodes.tolist():
                self._on[node].discard(job)
        self.ran[job] = now - holding.start_s
        self._add(holding.allocation, 1)
        # Core-seconds were taken for the job's time limit, however much shorter that on its nodes is.
        limit = holding.demand.job.time_limit_s
        early = None if limit is None else holding.start_s + limit - now
        self.columns.pools.give(holding.demand.job, holding.allocation.held, early)

    def state(self, now: float) -> StepState:
        """Return the machine as a step sees it; its columns are the machine's own."""
        if self._held_at != self.changes:
            self._held_at = self.changes
            self._holds = Holds(self.running.values())
            self._views = GuardedViews(self.columns, self.columns.free)
        columns, holds, views = self.columns, self._holds, self._views
        return StepState(columns=columns, topology=self.topology, now=now, holds=holds, views=views)

    def holders(self, node: int) -> list[int]:
        """Return the running jobs that hold something of a node, by number."""
        if self._on is None:
            # From the first failure on: no other run needs to know.
            self._on = {}
            for number, holding in self.running.items():
                self._put(number, holding.allocation)
        return sorted(self._on.get(node, ()))

    def _put(self, number: int, allocation: Allocation) -> None:
        """Keep which nodes a job runs on, once anybody asked."""
        if self._on is not None:
            for node in allocation.nodes.tolist():
                self._on.setdefault(node, set()).add(number)

    def take_down(self, node: int) -> None:
        """Let nothing of a node be free until it comes back; nothing runs on it any more.

        Raises:
            AwardError: a job holds some of it.
        """
        if not self.columns.is_empty[node]:
            raise AwardError(f"{self.columns.names[node]} goes down while a job holds it")
        self._set_up(node, is_up=False)

    def bring_up(self, node: int) -> None:
        """Let everything of a node that was down be free again."""
        self._set_up(node, is_up=True)

    def _set_up(self, node: int, *, is_up: bool) -> None:
        free, total = self.columns.free, self.columns.total
        free.cores[node] = total.cores[node] * is_up
        free.memory[node] = total.memory[node] * is_up
        for kind, counts in free.gres.items():
            counts[node] = total.gres[kind][node] * is_up
        self.columns.takes_jobs[node] = self.columns.is_empty[node] = is_up
        self.changes += 1

    def _add(self, allocation: Allocation, sign: int) -> None:
        put(self.columns, allocation, sign, self.limited)
        self.changes += 1

    def _check(self, holding: Holding) -> None:
        """Raise AwardError when a node gave more than it had."""
        free, nodes = self.columns.free, holding.allocation.nodes
        for resource in free.resources():
            counts = free.amounts(resource)
            if (counts[nodes] < 0).any():
                name = self.columns.names[int(nodes[np.argmin(counts[nodes])])]
                what = f"{resource.label} of {name} are given twice at {holding.start_s:g}"
                raise AwardError(f"job {holding.demand.job.id}: {what}")


_Empty = Machine | SnapshotState


def why_never(
    jobs: Iterable[Job], machine: _Empty, refused: Callable[[Job], str] | None = None
) -> list[Demand | str]:
    """Return each job's demand, or why it can never start; ``machine`` is empty.

    ``refused`` tells why the policy has no place for a job. Jobs that ask for the same get the same
    answer without being placed again.
    """
    known: dict[int, bool] = {}
    found: list[Demand | str] = []
    for number, job in enumerate(jobs):
        try:
            reason = _refused(job) or ("" if refused is None else refused(job))
            found.append(reason or _read(job, number, machine, known))
        except Exception as error:  # noqa: BLE001 - one that cannot even be tried is given up alone
            found.append(set_aside(job.id, error).detail)
    return found


def _read(job: Job, number: int, machine: _Empty, known: dict[int, bool]) -> Demand | str:
    demand = machine.reader.read(job, number)
    if not isinstance(demand, Demand):
        return demand.detail
    lack = next(machine.columns.pools.lacks(job), None)
    if lack is not None:
        return machine.columns.pools.words(lack)
    return demand if _fits(demand, machine, known) else "it fits nowhere on the empty machine"


def _fits(demand: Demand, machine: _Empty, known: dict[int, bool]) -> bool:
    """Return whether a job fits alone; of jobs that fit alike one is placed."""
    alike = demand.form if machine.columns.pools.are_empty else demand.kind
    if alike not in known:
        known[alike] = place_alone(demand, machine.columns, machine.topology) is not None
    return known[alike]


class Remaining:
    """A machine some of whose nodes never come back: what could still start on it."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._left: Machine | None = None
        self._gone: list[int] = []
        self._known: dict[int, bool] = {}

    def without(self, node: int) -> None:
        """Take note that a node never comes back."""
        self._left = self._left or self._machine.empty()
        self._left.take_down(node)
        self._gone.append(node)
        self._known.clear()

    def why_not(self, demand: Demand) -> str:
        """Return why a job can never start again, empty where it could."""
        if self._left is None or _fits(demand, self._left, self._known):
            return ""
        names = [self._left.columns.names[node] for node in sorted(self._gone)]
        return f"it fits nowhere without {shortened(names)}, down for good"


def _refused(job: Job) -> str:
    if not may_start(job):
        return f"it {'is held' if is_held(job) else 'may not start'}: {hold_words(job)}"
    return f"it cannot be expressed: {'; '.join(job.unsupported)}" if job.unsupported else ""


#: Failures that are drawn for one simulation.
_MOST_DRAWN = 1_000_000

#: (down, up) in seconds, rising; up is infinite where the node never comes back.
Times = Iterator[tuple[float, float]]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Failures:
    """What a simulation's nodes do.

    Attributes:
        times: when each node that ever fails is down, by its place; read as the simulation goes on.
        requeues: jobs on a node that goes down wait again; otherwise they are lost.
        max_requeues: of one job; one that needs longer than its nodes ever stay up never ends.
    """

    times: Mapping[int, Times] = field(default_factory=dict)
    requeues: bool = True
    max_requeues: int = 0


def known_times(outages: Iterable[Outage], machine: Machine) -> dict[int, Times]:
    """Return the times of outages that are known beforehand.

    Raises:
        InputError: a node is not the machine's, takes no jobs anyway, or is down twice at once.
    """
    columns = machine.columns
    takes_jobs = dict(zip(columns.names, columns.takes_jobs.tolist(), strict=True))
    found = outages_by_node(outages, takes_jobs)
    return {columns.index[name]: iter(times) for name, times in found.items()}


def drawn_times(mtbf_s: float, mttr_s: float, seed: int, machine: Machine) -> dict[int, Times]:
    """Return exponential times for each node that takes jobs, drawn from its name and the seed.

    They do not depend on what the policy does: every policy meets the same failures.

    Args:
        mtbf_s: mean seconds that a node is up.
        mttr_s: mean seconds that it is down.
        seed: of all draws.
        machine: whose nodes fail.

    Raises:
        OptionError: more failures than a simulation may have, as soon as that many have been read.
    """
    columns = machine.columns
    count = iter(range(_MOST_DRAWN))

    def times(name: str) -> Times:
        rng = random.Random(f"{seed}/{name}")  # noqa: S311 - not a secret
        up = 0.0
        while next(count, None) is not None:
            down = up + _exponential(rng, mtbf_s)
            up = down + _exponential(rng, mttr_s)
            yield down, up
        raise OptionError(
            f"--mtbf {mtbf_s:g}: jobs still wait after {_MOST_DRAWN} failures; its nodes are hardly ever up"
        )

    places = columns.takes_jobs.nonzero()[0].tolist()
    return {place: times(columns.names[place]) for place in places}


def _exponential(rng: random.Random, mean: float) -> float:
    return -mean * math.log(1.0 - rng.random())
