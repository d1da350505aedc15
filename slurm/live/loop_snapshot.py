"""What the loop decides on: pinned jobs hold their nodes, jobs outside the gate are Slurm's own.

Starts are promised to jobs behind the gate by the rule of simulations, and kept in their marks.
Nothing but the marks remembers a promise, so that a loop that starts anew keeps every one. The loop
writes a mark only where its start changes, and only for jobs that a pass has left waiting.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from math import ceil, floor, inf

from ...auction.state import SnapshotState, StepState, state_of
from ...cluster.jobs import Job, RunningJob, running_job
from ...cluster.network import alone_on
from ...cluster.nodes import Node, NodeState, Resources
from ...cluster.promises import NONE
from ...cluster.resources.demand import Demand, DemandReader
from ...cluster.snapshot import Snapshot
from ...formats.hostlist import names_in
from ...simulation.nodes.node_promises import Promises
from ..answers.reservation_records import ReservationFigures
from .actions import OWN, Action
from .actions import promise as promise_action
from .live_queue import Carrier, LiveJob

#: Why a job that is not behind the gate does not take part.
OUTSIDE = "not behind the gate: Slurm starts it"


def is_pinned(job: LiveJob, licence: str) -> bool:
    """Whether a job waits for exactly the nodes that it was pinned to."""
    return job.is_waiting and job.mark is not None and job.mark.since > 0 and not job.needs(licence)


def with_claims(
    snapshot: Snapshot,
    queue: Mapping[str, LiveJob],
    licence: str,
    reserved: Iterable[ReservationFigures] = (),
) -> Snapshot:
    """Return the snapshot with pinned jobs as running ones, and jobs outside the gate not eligible.

    A claim is cut to what is free on a node: what the job itself will find there is Slurm's to say.
    Nodes that only the loop's own reservations reserve take other jobs on the cores that are left.
    The other nodes of a block that is to be a pinned job's alone take none.
    """
    entries = list(reserved)
    ours = {name for entry in entries if entry.name.startswith(OWN) for name in entry.nodes}
    ours -= {name for entry in entries if not entry.name.startswith(OWN) for name in entry.nodes}
    free = {node.name: node.free for node in snapshot.nodes}
    jobs: list[Job] = []
    claims: list[RunningJob] = []
    blocked: set[str] = set()
    for job in snapshot.jobs:
        live = queue.get(job.id)
        if live is not None and is_pinned(live, licence):
            claims.extend(_claims(job, live, free, snapshot.time))
            own = names_in(live.required)
            blocked |= alone_on(snapshot.network, job.request, own) - {*own}
        elif live is not None and live.needs(licence):
            jobs.append(job)
        else:
            jobs.append(replace(job, hold=job.hold or OUTSIDE))
    return replace(
        snapshot,
        nodes=tuple(
            replace(node, state=NodeState.UNKNOWN)
            if node.name in blocked and node.state.takes_jobs
            else _seconds_left(node, free[node.name], is_ours=node.name in ours)
            for node in snapshot.nodes
        ),
        jobs=tuple(jobs),
        running=(*snapshot.running, *claims),
        # Their cores are claimed one by one.
        reservations=tuple(one for one in snapshot.reservations if not one.name.startswith(OWN)),
    )


def _seconds_left(node: Node, free: Resources, *, is_ours: bool) -> Node:
    state = node.state
    if is_ours and state is NodeState.RESERVED:
        state = NodeState.IDLE if free == node.total else NodeState.MIXED
    return node if node.free is free and node.state is state else replace(node, free=free, state=state)


def _claims(job: Job, live: LiveJob, free: dict[str, Resources], now: float | None) -> Iterator[RunningJob]:
    held: dict[str, Resources] = {}
    for name, cores in zip(names_in(live.required), live.mark.cores if live.mark else (), strict=False):
        if name in free:
            held[name] = use = _use(job, live, cores, free[name])
            free[name] = free[name].less(use)
    if held:
        yield running_job(job, held, now)


def _use(job: Job, live: LiveJob, cores: int, free: Resources) -> Resources:
    request = job.request
    memory = request.memory_mib_per_node or (request.memory_mib_per_core or 0) * cores
    gres = live.mark.gres if live.mark else {}
    return Resources(
        cores=free.cores if request.exclusive else min(cores, free.cores),
        memory_mib=None if free.memory_mib is None else min(memory, free.memory_mib),
        gres={name: min(count, free.gres[name]) for name, count in gres.items() if name in free.gres},
    )


#: Promises kept at once, of the jobs that came first: each keeps nodes for as long as its limit.
MOST = 2


class LivePromises:
    """The promises of a loop, and the live cluster as they watch it.

    Jobs have the same numbers in all passes.

    Args:
        promise: ``plan`` or a duration; ``none`` keeps the promises of the marks, and makes none.
    """

    def __init__(self, promise: str) -> None:
        self._promise = promise
        self._rule: Promises | None = None
        #: Jobs that the pass before left waiting.
        self._left: frozenset[str] = frozenset()
        self.arrivals: dict[str, float] = {}
        self._numbers: dict[str, int] = {}
        self._unused = count()
        self._running: list[str] = []
        self._seen: SnapshotState | None = None

    @property
    def running(self) -> Collection[int]:
        """What runs, and what is pinned."""
        return [self.number(name) for name in self._running]

    def state(self, now: float) -> StepState:  # noqa: ARG002 - a live cluster has one time
        """Return the last look, pinned jobs as running ones."""
        assert self._seen is not None  # noqa: S101 - for the type: a look comes first
        return self._seen

    def number(self, name: str) -> int:
        """Return a job's number: those met first have the smallest."""
        if name not in self._numbers:
            self._numbers[name] = next(self._unused)
        return self._numbers[name]

    def _look(self, snapshot: Snapshot) -> Promises:
        """Take a new look; jobs that are gone are forgotten."""
        self._seen, self._running = state_of(snapshot, self._seen), [job.id for job in snapshot.running]
        known = {job.id for job in snapshot.jobs} | {*self._running}
        self._numbers = {name: number for name, number in self._numbers.items() if name in known}
        self.arrivals = {name: time for name, time in self.arrivals.items() if name in known}
        self._rule = self._rule or Promises(self, self._promise, most=MOST)
        return self._rule

    def made(self, snapshot: Snapshot, queue: Mapping[str, LiveJob]) -> dict[str, int]:
        """Return the promised starts of the jobs behind the gate, seconds since the epoch."""
        if snapshot.time is None:
            return {}
        waiting = [job for job in snapshot.jobs if _takes_part(job, queue)]
        before, self._left = self._left, frozenset(job.id for job in waiting)
        known = {job.id: start for job in waiting if (start := _promised(queue[job.id]))}
        new = sorted(
            (job for job in waiting if job.id not in known and job.id in before),
            key=lambda job: job.submit_time or 0.0,
        )
        asked = [job for job in waiting if job.id in known] + new[:MOST]
        if self._promise == NONE or not asked:
            return known
        rule = self._look(snapshot)
        for job in sorted(asked, key=lambda job: job.submit_time or 0.0):
            self.number(job.id)
            self.arrivals[job.id] = snapshot.time if job.submit_time is None else job.submit_time
        rule.made = {self.number(name): float(start) for name, start in known.items()}
        kept = rule.kept(snapshot.time, _demands(asked, snapshot, self))
        starts = {one.demand.job.id: rule.made[one.demand.index] for one in kept}
        # A mark has whole seconds: a promise is never put off by that.
        finite = {name: start for name, start in starts.items() if start < inf}
        return known | {
            name: min(known[name], floor(start)) if name in known else ceil(start)
            for name, start in finite.items()
        }


def _promised(job: LiveJob) -> int:
    """Return the start in a job's mark, 0 without one: what its owner can write promises none."""
    if job.mark is None or job.carrier is not Carrier.ADMIN_COMMENT:
        return 0
    return job.mark.promised


def _takes_part(job: Job, queue: Mapping[str, LiveJob]) -> bool:
    """Return whether a job may be promised a start.

    The tasks of an array share a record and its mark: a mark of its own would split a task off.
    """
    live = queue.get(job.id)
    can_start = job.hold is None and job.priority > 0 and not job.unsupported
    return can_start and live is not None and not live.tasks


def _demands(jobs: Iterable[Job], snapshot: Snapshot, cluster: LivePromises) -> list[Demand]:
    """Return what jobs ask for; one that cannot be read is promised nothing: the step says why."""
    reader = DemandReader(snapshot, cluster.state(0.0).columns)
    found: list[Demand] = []
    for job in jobs:
        try:
            demand = reader.read(job, cluster.number(job.id))
        except Exception:  # noqa: BLE001, S112 - one job must not keep all the others from starting
            continue
        if isinstance(demand, Demand):
            found.append(demand)
    return found


def with_promises(snapshot: Snapshot, made: Mapping[str, int]) -> Snapshot:
    """Return the snapshot with promised starts."""
    if not made:
        return snapshot
    return replace(
        snapshot, jobs=tuple(replace(job, promised_start=made.get(job.id)) for job in snapshot.jobs)
    )


def changed_marks(
    made: Mapping[str, int], queue: Mapping[str, LiveJob], started: Collection[str]
) -> list[Action]:
    """Return what writes promises that are new or have moved into the marks of waiting jobs."""
    return [
        promise_action(queue[name], start)
        for name, start in made.items()
        if name not in started and _promised(queue[name]) != start
    ]
