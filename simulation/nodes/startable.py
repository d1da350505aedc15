"""Which jobs of a workload can start on its machine when nothing else runs, and why others cannot."""

from __future__ import annotations

from collections.abc import Callable

from ...auction.forecast import place_alone
from ...bidgen.demand import Demand
from ...cluster.jobs import Job
from ...cluster.workload import ClusterWorkload
from .machine import Machine


def why_never(
    workload: ClusterWorkload, machine: Machine, refused: Callable[[Job], str] | None = None
) -> list[Demand | str]:
    """Return each job's demand, or why it can never start; ``machine`` is empty.

    ``refused`` tells why the policy has no place for a job. Jobs that ask for the same get the same answer
    without being placed again.
    """
    known: dict[object, bool] = {}
    found: list[Demand | str] = []
    for number, arriving in enumerate(workload.jobs):
        reason = _refused(arriving.job) or ("" if refused is None else refused(arriving.job))
        found.append(reason or _read(arriving.job, number, machine, known))
    return found


def _read(job: Job, number: int, machine: Machine, known: dict[object, bool]) -> Demand | str:
    demand = machine.reader.read(job, number)
    if not isinstance(demand, Demand):
        return demand.detail
    pools = machine.columns.pools
    lack = next(pools.lacks(job), None)
    if lack is not None:
        return pools.words(lack)
    key = (
        demand.variants,
        demand.units,
        demand.units_per_node,
        demand.least,
        demand.node_counts,
        demand.memory_per_node,
        demand.memory_per_unit,
        demand.exclusive,
        demand.contiguous,
        demand.max_switches,
        demand.required.tobytes(),
        demand.unit,
        pools.alike(job),
    )
    if key not in known:
        known[key] = place_alone(demand, machine.columns, machine.topology) is not None
    return demand if known[key] else "it fits nowhere on the empty machine"


def _refused(job: Job) -> str:
    if job.hold is not None:
        return f"it is held: {job.hold}" if job.hold else "it is held"
    if job.priority == 0:
        return "its priority is 0: it is held"
    return f"it cannot be expressed: {'; '.join(job.unsupported)}" if job.unsupported else ""
