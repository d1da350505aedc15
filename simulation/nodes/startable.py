"""Which jobs of a workload can start on its machine when nothing else runs, and why others cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...auction.queue import set_aside
from ...bidgen.families.registry import pools_of
from ...bidgen.generate import place_alone
from ...cluster.holds import hold_words, is_held, may_start
from ...cluster.jobs import Job
from ...cluster.resources.capacity import nothing_held
from ...cluster.resources.columns import Columns
from ...cluster.resources.demand import Demand
from ...cluster.workload import ClusterWorkload
from ...formats.hostlist import join
from .node_machine import Machine

#: Characters of a hostlist in a reason.
_LONGEST = 60


def why_never(
    workload: ClusterWorkload, machine: Machine, refused: Callable[[Job], str] | None = None
) -> list[Demand | str]:
    """Return each job's demand, or why it can never start; ``machine`` is empty.

    ``refused`` tells why the policy has no place for a job. Jobs that ask for the same get the same answer
    without being placed again.
    """
    known: dict[int, bool] = {}
    found: list[Demand | str] = []
    for number, arriving in enumerate(workload.jobs):
        reason = _refused(arriving.job) or ("" if refused is None else refused(arriving.job))
        found.append(reason or _tried(arriving.job, number, machine, known))
    return found


def _tried(job: Job, number: int, machine: Machine, known: dict[int, bool]) -> Demand | str:
    """Return a job's demand or why it never starts; one that cannot even be tried is given up alone."""
    try:
        return _read(job, number, machine, known)
    except Exception as error:  # noqa: BLE001 - one job must not end the simulation
        return set_aside(job.id, error).detail


def _read(job: Job, number: int, machine: Machine, known: dict[int, bool]) -> Demand | str:
    demand = machine.reader.read(job, number)
    if not isinstance(demand, Demand):
        return demand.detail
    lack = next(machine.columns.pools.lacks(job), None)
    if lack is not None:
        return machine.columns.pools.words(lack)
    if demand.kind not in known:
        known[demand.kind] = place_alone(demand, machine.columns, machine.topology) is not None
    return demand if known[demand.kind] else "it fits nowhere on the empty machine"


class Remaining:
    """A machine some of whose nodes never come back: what could still start on it.

    Args:
        machine: whose nodes.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._gone: list[int] = []
        self._known: dict[int, bool] = {}
        # Made when a job is tried: many nodes may go down before.
        self._columns: Columns | None = None

    def without(self, node: int) -> None:
        """Take note that a node never comes back."""
        self._gone.append(node)
        self._columns = None
        self._known.clear()

    def why_not(self, demand: Demand) -> str:
        """Return why a job can never start again, empty where it could."""
        if not self._gone:
            return ""
        key = demand.kind
        if key not in self._known:
            columns = self._remaining()
            self._known[key] = place_alone(demand, columns, self._machine.topology) is not None
        if self._known[key]:
            return ""
        names = join(self._machine.columns.names[node] for node in sorted(self._gone))
        return f"it fits nowhere without {shortened(names)}, down for good"

    def _remaining(self) -> Columns:
        """Return the machine with nothing on it but what never comes back."""
        if self._columns is None:
            columns = self._machine.columns
            free = columns.total.copy()
            for counts in (free.cores, free.memory, *free.gres.values()):
                counts[self._gone] = 0
            empty, pools = nothing_held(columns.total, free), pools_of(self._machine.snapshot)
            self._columns = replace(columns, free=free, is_empty=empty, pools=pools)
        return self._columns


def shortened(names: str) -> str:
    """Return a hostlist that leaves a message one line."""
    return names if len(names) <= _LONGEST else f"{names[: _LONGEST - 3]}..."


def _refused(job: Job) -> str:
    if not may_start(job):
        return f"it {'is held' if is_held(job) else 'may not start'}: {hold_words(job)}"
    return f"it cannot be expressed: {'; '.join(job.unsupported)}" if job.unsupported else ""
