"""Users' own policies: their view of a simulation, their actions, and how one is found by its name.

A policy is a class without arguments. While jobs wait its ``step`` is called after the events of
each time stamp, or on nodes at multiples of ``interval_s``. It looks at the queue and the machine
and starts jobs; every start is checked as those of our own policies are. It never sees a true run
time.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from ..cluster.errors import AwardError, OptionError, PolicyError
from ..cluster.jobs import Job
from ..cluster.nodes import Resources

#: Where packages list policies (pyproject.toml: ``[project.entry-points."aucsched.policies"]``).
GROUP = "aucsched.policies"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedJob:
    """A job that waits, as a policy sees it.

    Attributes:
        number: unique within the run.
        id: that of the log or the workload.
        cores: those that it asks for, on the fewest nodes.
        estimate_s: seconds it may run; infinite without a limit.
        submit_s: when it was submitted, in seconds on the simulation's clock.
        user: its user's name or number in the log.
        job: with priority and request, on a machine of nodes; None in a log.

    Examples:
        >>> QueuedJob(number=3, cores=8, estimate_s=60.0, submit_s=5.0, user="1").estimate_s
        60.0
    """

    number: int
    cores: int
    estimate_s: float
    submit_s: float
    user: str
    job: Job | None = None
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveJob:
    """A job that runs, as a policy sees it; ``expected_end_s`` is its start and its estimate.

    Examples:
        >>> ActiveJob(number=3, cores=8, start_s=0.0, expected_end_s=60.0).cores
        8
    """

    number: int
    cores: int
    start_s: float
    expected_end_s: float


class MachineView:
    """The queue and the machine during one step; it changes with every start.

    Each kind of machine has its own, which says what is shown of a job and how one starts.

    Args:
        now: in seconds.
        cores: number of cores of the whole machine.
        left: what waits, by number, in the queue's order.
        seen: waiting jobs as the policy saw them in earlier steps, by number.

    Attributes:
        cores: number of cores of the whole machine.
        started: what the machine is to start, in the order in which the policy did.

    Examples:
        >>> class FirstComeFirstServed:
        ...     def step(self, now: float, machine: MachineView) -> None:
        ...         for job in machine.waiting:
        ...             if not machine.start(job):
        ...                 break
    """

    def __init__(self, now: float, cores: int, left: dict[int, Any], seen: dict[int, QueuedJob]) -> None:
        self.cores = cores
        self.started: list[Any] = []
        self._now, self._left, self._seen = now, left, seen

    @property
    def waiting(self) -> Sequence[QueuedJob]:
        """The jobs that wait, in the queue's order, without those started in this step."""
        for number, asked in self._left.items():
            # On nodes a job with another priority is another object.
            if number not in self._seen or self._seen[number].job is not getattr(asked, "job", None):
                self._seen[number] = self._shown(asked)
        return tuple(map(self._seen.__getitem__, self._left))

    @property
    def running(self) -> Sequence[ActiveJob]:
        """The jobs that run, without those started in this step."""
        raise NotImplementedError

    @property
    def free_cores(self) -> int:
        """The cores that no job holds."""
        raise NotImplementedError

    def start(self, job: QueuedJob, nodes: Mapping[str, Resources | int] | None = None) -> bool:
        """Start a job now; return False, and do nothing, where it does not fit.

        Args:
            job: one of ``waiting``.
            nodes: what it gets on which nodes, a number for cores alone; None: the first nodes that
                hold it. A log's machine has no nodes.

        Raises:
            AwardError: the job does not wait, or a node is unknown.
        """
        if job.number not in self._left:
            which = f"{job.id or job.number}, submitted at {job.submit_s:g} s, which does not wait"
            raise AwardError(f"at {self._now:g} s it starts job {which}: a job starts once")
        start = self._try_start(self._left[job.number], nodes)
        if start is None:
            return False
        del self._left[job.number]
        self._seen.pop(job.number, None)
        self.started.append(start)
        return True

    def _shown(self, asked: Any) -> QueuedJob:
        """Return a waiting job as the policy sees it."""
        raise NotImplementedError

    def _try_start(self, asked: Any, nodes: Mapping[str, Resources | int] | None) -> Any | None:
        """Let a job begin; None: it does not fit."""
        raise NotImplementedError


class Policy(Protocol):
    r"""A scheduling policy for ``simulate``: one class for logs and for machines of nodes.

    Examples:
        >>> class SmallestFirst:
        ...     def step(self, now, machine):
        ...         for job in sorted(machine.waiting, key=lambda job: job.cores):
        ...             machine.start(job)
        >>> import aucsched
        >>> log = aucsched.parse_swf(b"; MaxProcs: 4\n1 0 0 10 4 0 0 4 10\n2 0 0 10 1 0 0 1 10\n")
        >>> aucsched.simulate(log, policy=SmallestFirst).columns["start_s"]
        [10.0, 0.0]
    """

    def step(self, now: float, machine: MachineView) -> None:
        """Look at the queue and start what should start now.

        Args:
            now: seconds on the simulation's clock.
            machine: what waits, runs and is free.
        """


Factory: TypeAlias = Callable[[], Policy]
#: Classes that a program gave as they are, by the name they go by in results.
_GIVEN: dict[str, Factory] = {}


def name_of(policy: str | Factory) -> str:
    """Return the name a policy goes by; one that is given as a class is found by it from now on."""
    if isinstance(policy, str):
        return policy
    name = f"{getattr(policy, '__module__', '')}:{getattr(policy, '__qualname__', repr(policy))}"
    _GIVEN[name] = policy
    return name


def listed() -> dict[str, EntryPoint]:
    """Return the policies of installed packages by name."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def is_own(name: str) -> bool:
    """Return whether a name is that of somebody's own policy and not of one of ours."""
    return ":" in name or name in listed()


def own_policy(name: str) -> Policy:
    """Return a new policy: ``module:Class``, ``file.py:Class``, or a name in GROUP.

    Raises:
        OptionError: there is none of that name, or it has no ``step``.
        PolicyError: it cannot be loaded or made.
    """
    made: Any = _called(name, "making it", _factory(name), OptionError, PolicyError)
    if not callable(getattr(made, "step", None)):
        raise OptionError(f"--policy {name}: it has no step(now, machine)")
    policy: Policy = made
    return policy


def _factory(name: str) -> Factory:
    if name in _GIVEN:
        return _GIVEN[name]
    if ":" not in name:
        loaded: Factory = _called(name, "loading it", listed()[name].load, OptionError, PolicyError)
        return loaded
    place, _, attribute = name.rpartition(":")
    if "=" in attribute:
        raise OptionError(f"--policy {name}: it takes no parameters here")
    module = _called(name, "loading it", lambda: _module(name, place), OptionError, PolicyError)
    found: Any = module
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise OptionError(f"--policy {name}: {place} has no class {attribute}")
    factory: Factory = found
    return factory


def _module(name: str, place: str) -> Any:
    if place.endswith(".py"):
        return _file(name, Path(place))
    here = str(Path.cwd())
    if here not in sys.path:
        # As python -m does: the policy stands beside the workload.
        sys.path.insert(0, here)
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name and (place == error.name or place.startswith(f"{error.name}.")):
            raise OptionError(f"--policy {name}: there is no module {error.name}") from error
        raise


def _file(name: str, path: Path) -> Any:
    if not path.is_file():
        raise OptionError(f"--policy {name}: there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None  # noqa: S101 - its name ends in .py
    assert spec.loader is not None  # noqa: S101 - the same
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up there.
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


def _called(name: str, what: str, call: Callable[[], Any], *ours: type[Exception]) -> Any:
    """Call other people's code; what it raises is theirs, in one line, unless it is of ``ours``."""
    try:
        return call()
    except ours:
        raise
    except (Exception, SystemExit) as error:
        raise PolicyError(name, what, error) from error


def stepped(name: str, policy: Policy, now: float, view: MachineView) -> None:
    """Ask a policy for its starts.

    Raises:
        PolicyError: it raised.
        AwardError: it asked for what no policy may.
    """
    _called(name, f"its step at {now:g} s", lambda: policy.step(now, view), AwardError)
