"""An auction that goes on: it keeps a cluster, takes its changes, and has the award on it now.

What a pass reads of nodes, jobs and running jobs is kept for the next one, which reads what has
changed. Nothing that is kept decides anything: a pass without it makes the same award.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any, Concatenate, ParamSpec, TypedDict, TypeVar, Unpack, cast

from ..cluster.checks import all_of_type, known, of_type
from ..cluster.errors import InputError, OptionError, errors_below
from ..cluster.jobs import Job, RunningJob, running_job
from ..cluster.keywords import checked, with_keywords
from ..cluster.nodes import License, Node, NodeState, Reservation, Resources
from ..cluster.option_table import StepKeywords
from ..cluster.schedule import Award, Schedule
from ..cluster.snapshot import MAX_JOBS, Snapshot, check_waiting
from ..cluster.text import did_you_mean, plural, shown
from ..cluster.value_types import Timestamp, copied
from ..formats.native.cluster_file import snapshot_of
from .options import options_with_preset
from .state import SnapshotState
from .step import check_queue_promise, take_step

_Entry = TypeVar("_Entry", Job, RunningJob)
_Keywords = ParamSpec("_Keywords")


def _takes(
    keywords: Callable[_Keywords, object],
) -> Callable[
    [Callable[..., None]], Callable[Concatenate["Auction", Snapshot | str | Path, _Keywords], None]
]:
    return with_keywords(keywords)


class ClusterChanges(TypedDict, total=False):
    """The changes that ``Auction.update`` takes."""

    time: float | None
    arrived: Iterable[Job]
    cancelled: Iterable[str]
    started: Iterable[Award | RunningJob]
    ended: Iterable[str]
    failed: Iterable[str]
    drained: Iterable[str]
    returned: Iterable[str]
    priorities: Mapping[str, Any]
    reservations: Collection[Reservation] | None


#: What a change is a list of, where it is not of ids or names.
_ENTRIES = {"arrived": (Job,), "started": (Award, RunningJob), "reservations": (Reservation,)}


class Auction:
    """A cluster and its queue that change, and the award on them as they are now.

    ``update`` says what has changed, ``award`` runs one auction. It starts no job by itself: which
    of its awards have started is an update too. Times are seconds since the epoch.

    Args:
        cluster: the cluster and its queue, or a snapshot file.
        options: as ``schedule`` takes them.

    Attributes:
        cluster: the snapshot as it is now.

    Raises:
        OptionError: there is no such option, or its value cannot be used.
        InputError: the file cannot be read.

    Examples:
        >>> import aucsched as au
        >>> nodes = [au.Node(name="n1", cores=8), au.Node(name="n2", cores=8)]
        >>> auction = au.Auction(au.Snapshot(nodes=nodes, time=0))
        >>> jobs = [
        ...     au.Job(id=name, priority=1, request=au.Request(cores=cores), time_limit_s=60)
        ...     for name, cores in (("a", 8), ("b", 8), ("c", 4))
        ... ]
        >>> auction.update(arrived=jobs)
        >>> found = auction.award()
        >>> [award.job for award in found.started]
        ['a', 'b']
        >>> auction.update(time=10, started=found.started)
        >>> auction.award().started
        ()
        >>> auction.update(time=30, ended=["a"])
        >>> [award.job for award in auction.award().started]
        ['c']
    """

    @_takes(StepKeywords)
    def __init__(self, cluster: Snapshot | str | Path, **options: Any) -> None:
        self._lock = RLock()
        self._options = options_with_preset(checked(options, StepKeywords, "Auction"))
        check_queue_promise(self._options)
        self.cluster = snapshot_of(cluster, "cluster")
        self._places = {node.name: place for place, node in enumerate(self.cluster.nodes)}
        #: The jobs that started here: a failed one waits again, its licences come back.
        self._started: dict[str, Job] = {}
        self._window: int | None = None
        self._state: SnapshotState | None = None
        self._found: Schedule | None = None

    def update(self, **changes: Unpack[ClusterChanges]) -> None:
        """Say what has changed; nothing is changed where any of it cannot be.

        The order is: ended, failed, cancelled, arrived, priorities, started, nodes,
        reservations.

        Args:
            changes: ``time``, now, which never goes back; ``arrived``, jobs that wait from now on;
                ``cancelled``, ids of those that wait no more; ``started``, awards of waiting jobs,
                or what they hold (an award ends at its time limit); ``ended``, ids of jobs that
                hold nothing any more; ``failed``, ids of jobs that started here, hold nothing and
                wait again as they were; ``drained``, names of nodes on which nothing starts from
                now on; ``returned``, those that take jobs again; ``priorities``, new ones by id;
                ``reservations``, all that there are now.

        Raises:
            InputError: there is no such job or node, a job does not fit, or the time goes back.
        """
        changes = _checked(changes)
        with self._lock:
            draft = _ChangedCluster(self.cluster, self._places, self._started)
            draft.move_to(changes.get("time"))
            draft.end(changes.get("ended", ()), changes.get("failed", ()))
            draft.queue(
                changes.get("arrived", ()), changes.get("cancelled", ()), changes.get("priorities", {})
            )
            draft.start(changes.get("started", ()))
            draft.update_nodes()
            draft.set_state(changes.get("drained", ()), "drained", lambda _: NodeState.DRAINED)
            draft.set_state(changes.get("returned", ()), "returned", _state_in_use)
            self.cluster = draft.snapshot(changes.get("reservations"))
            self._started, self._found = draft.started, None

    def award(self) -> Schedule:
        """Run one auction on the cluster as it is now.

        Returns:
            Which jobs start where, and which wait and why. Between two updates it is the same
            answer.

        Raises:
            InputError: the weights are too large to be summed exactly.
            SolverError: HiGHS failed.
        """
        with self._lock:
            if self._found is None:
                step = take_step(self.cluster, self._options, self._window, self._state, lazy=True)
                self._state, self._window = step.state, step.schedule.next_window
                self._found = step.schedule
            return self._found

    def forget(self) -> None:
        """Drop what is kept for the next award: it reads the whole cluster again."""
        with self._lock:
            self._state = self._found = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy or a pickle has: all but what is kept for the next award."""
        with self._lock:
            return vars(self) | {"_lock": None, "_state": None, "_found": None}

    def __setstate__(self, members: Mapping[str, Any]) -> None:
        vars(self).update(members, _lock=RLock())


class _ChangedCluster:
    """A cluster with the changes made so far, of which an error leaves nothing."""

    def __init__(self, before: Snapshot, places: dict[str, int], started: dict[str, Job]) -> None:
        self.waiting = {job.id: job for job in before.jobs}
        self.running = {job.id: job for job in before.running}
        self.started = dict(started)
        self._before = before
        self._places = places
        self._time = before.time
        self._nodes = list(before.nodes)
        self._licenses = dict(before.licenses)
        #: What is free now of the nodes whose jobs have changed, by their places.
        self._free: dict[int, Resources] = {}
        #: What a use leaves, and the use, by its identity, the sign and what was free.
        self._left: dict[tuple[object, ...], tuple[Resources, Resources]] = {}

    def move_to(self, time: float | None) -> None:
        """Let it be a time."""
        if time is None:
            return
        self._time = float(Timestamp().coerced(time, "update.time"))
        if self._before.time is not None and self._time < self._before.time:
            raise InputError(f"{self._time:.12g} is before {self._before.time:.12g}", path="update.time")

    def end(self, ended: Iterable[str], failed: Iterable[str]) -> None:
        """Let running jobs hold nothing any more; those that failed wait again."""
        for what, ids in (("ended", ended), ("failed", failed)):
            for place, name in enumerate(ids):
                path = f"update.{what}[{place}]"
                job = self.started.pop(name, None)
                if what == "failed" and job is None:
                    raise InputError(f"{name!r} did not start here: end it and let it arrive", path=path)
                held = _taken(self.running, name, "runs", path)
                for node, use in held.nodes.items():
                    self._hold(node, use, -1, path)
                if job is None:
                    continue
                self._license(job, -1, path)
                if what == "failed":
                    self.waiting[name] = job

    def queue(self, arrived: Iterable[Job], cancelled: Iterable[str], priorities: Mapping[str, Any]) -> None:
        """Let jobs wait, wait no more, or with another priority."""
        for place, name in enumerate(cancelled):
            _taken(self.waiting, name, "waits", f"update.cancelled[{place}]")
        for place, job in enumerate(arrived):
            if job.id in self.waiting or job.id in self.running:
                raise InputError(f"{job.id!r} is known already", path=f"update.arrived[{place}].id")
            self.waiting[job.id] = job
        if len(self.waiting) > MAX_JOBS:
            message = f"{len(self.waiting)} waiting jobs are above the limit of {MAX_JOBS}"
            raise InputError(message, path="update.arrived")
        check_waiting(arrived, self._places, self._licenses, self._time, "update.arrived")
        for name, priority in priorities.items():
            path = f"update.priorities.{name}"
            if name not in self.waiting:
                raise InputError(f"no job {name!r} waits", path=path)
            try:
                self.waiting[name] = replace(self.waiting[name], priority=priority)
            except InputError as error:
                raise InputError(error.message, path=path) from None

    def start(self, started: Iterable[Award | RunningJob]) -> None:
        """Let waiting jobs hold what they were awarded."""
        for place, one in enumerate(started):
            path = f"update.started[{place}]"
            name = one.job if isinstance(one, Award) else one.id
            job = _taken(self.waiting, name, "waits", path)
            with errors_below(path):
                held = running_job(job, one.nodes, self._time) if isinstance(one, Award) else one
            for node, use in held.nodes.items():
                self._hold(node, use, 1, f"{path}.nodes.{node}")
            self._license(job, 1, path)
            self.running[name], self.started[name] = held, job

    def set_state(self, names: Iterable[str], what: str, state_of_node: Callable[[Node], NodeState]) -> None:
        """Let nodes be in another state."""
        for number, name in enumerate(names):
            place = self._place(name, f"update.{what}[{number}]")
            self._nodes[place] = replace(self._nodes[place], state=state_of_node(self._nodes[place]))

    def snapshot(self, reservations: Collection[Reservation] | None) -> Snapshot:
        """Return the cluster with all changes."""
        after = copied(
            self._before,
            time=self._time,
            nodes=tuple(self._nodes),
            jobs=tuple(self.waiting.values()),
            running=tuple(self.running.values()),
            licenses=self._licenses,
        )
        # All but reservations was checked where it changed.
        with errors_below("update"):
            return after if reservations is None else replace(after, reservations=tuple(reservations))

    def _hold(self, name: str, use: Resources, sign: int, path: str) -> None:
        """Take (1) or give back (−1) what a job holds on a node."""
        place = self._place(name, path)
        node = self._nodes[place]
        before = self._free.get(place, node.free)
        # Nodes of a job are often alike: what is left of them is one object.
        key = id(use), sign, before.cores, before.memory_mib, *before.gres.items()
        if key not in self._left:
            self._left[key] = _with(before, use, -sign, path), use
        free = self._free[place] = self._left[key][0]
        if next(free.beyond(node.total), None) is not None:
            replace(node, free=free)

    def update_nodes(self) -> None:
        """Let nodes have free what jobs have left of them, and be in use or not."""
        for place, free in self._free.items():
            node = self._nodes[place]
            state = _state_in_use(node, free) if node.state.is_working else node.state
            self._nodes[place] = copied(node, free=free, state=state)

    def _license(self, job: Job, sign: int, path: str) -> None:
        """Take (1) or give back (−1) a job's licences."""
        for name, count in job.request.licenses.items():
            entry = self._licenses[name]
            if sign * count > entry.free:
                raise InputError(f"it takes {plural(count, f'{name} licence')}, {entry.free} free", path=path)
            self._licenses[name] = License(total=entry.total, free=entry.free - sign * count)

    def _place(self, name: str, path: str) -> int:
        known(name, self._places, "node", path)
        return self._places[name]


def _checked(changes: ClusterChanges) -> ClusterChanges:
    """Return changes with tuples for lists; refuse unknown ones, and values of a wrong type."""
    made: dict[str, Any] = {}
    for name, value in changes.items():
        path = f"update.{name}"
        if name not in ClusterChanges.__annotations__:
            meant = did_you_mean(name, ClusterChanges.__annotations__)
            raise OptionError(f"{name}: update has no such change{meant}")
        made[name] = value
        if name == "priorities":
            of_type(value, (Mapping,), path)
        elif name != "time" and (name, value) != ("reservations", None):
            if isinstance(value, str) or not isinstance(value, Iterable):
                hint = ": give its started" if isinstance(value, Schedule) else ""
                raise InputError(f"{shown(value)} is not a list{hint}", path=path)
            made[name] = tuple(value)
            all_of_type(made[name], _ENTRIES.get(name, (str,)), path)
    for one, other in (("ended", "failed"), ("drained", "returned")):
        first = {*made.get(one, ())}
        for place, name in enumerate(made.get(other, ())):
            if name in first:
                raise InputError(f"{name!r} is in {one}, too", path=f"update.{other}[{place}]")
    return cast("ClusterChanges", made)


def _taken(known_jobs: dict[str, _Entry], name: str, does: str, path: str) -> _Entry:
    """Take a job out of those that wait or run."""
    if name not in known_jobs:
        raise InputError(f"no job {name!r} {does}", path=path)
    return known_jobs.pop(name)


def _with(free: Resources, use: Resources, sign: int, path: str) -> Resources:
    """Return free resources with (1) or without (−1) what a job holds."""
    cores, gres = free.cores + sign * use.cores, free.gres
    memory = None if free.memory_mib is None else free.memory_mib + sign * (use.memory_mib or 0)
    if use.gres:
        more = {kind: gres.get(kind, 0) + sign * count for kind, count in use.gres.items()}
        gres = {**gres, **more}
    if cores < 0 or (memory or 0) < 0 or min(gres.values(), default=0) < 0:
        amounts = {"cores": cores, "memory_mib": memory or 0, **gres}
        what, left = next((what, left) for what, left in amounts.items() if left < 0)
        raise InputError(f"it holds {-left} more than is free", path=f"{path}.{what}")
    return copied(free, cores=cores, memory_mib=memory, gres=gres)


def _state_in_use(node: Node, free: Resources | None = None) -> NodeState:
    return NodeState.IDLE if (free or node.free) == node.total else NodeState.MIXED
