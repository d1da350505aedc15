"""Forecasts on nodes: a simulation's jobs as cores of pools of nodes that the same jobs can use."""

from collections.abc import Iterator
from typing import Any

from ...bidgen.families.registry import columns_of
from ...cluster.resources.demand import DemandReader
from ..forecast.forecaster import FUTURES, Forecaster, QueuedRequest
from ..forecast.futures_kernel import EASY, RESPONSE
from ..forecast.logged import AnsweredForecast, follow
from ..forecast.snapshot_queue import NodePools
from .node_result import NodeSimulation


def node_forecasts_of(
    result: NodeSimulation,
    *,
    by_worth: bool = False,
    depth: int | None = None,
    futures: int = FUTURES,
    **asked: Any,
) -> Iterator[AnsweredForecast]:
    """Yield each forecast of a run with what came, in the order in which they are asked.

    Args:
        result: the run.
        by_worth: the policy favours short jobs instead of the queue's order.
        depth: waiting jobs that the policy looks at; None: all.
        futures: of each forecast.
        asked: when, and for which jobs, as ``follow`` takes it.
    """
    machine = result.cluster.snapshot()
    columns = columns_of(machine)
    pools = NodePools(machine.nodes, columns, DemandReader(machine, columns).partition_masks)
    policy = RESPONSE if by_worth else EASY
    forecaster = Forecaster(pools.cores, policy=policy, is_exact=False, depth=depth, futures=futures)
    return follow(
        result,
        forecaster,
        _queued(result, pools),
        held_by=lambda running: pools.held_at_once([result.allocations[number] for number in running]),
        **asked,
    )


def _queued(result: NodeSimulation, pools: NodePools) -> list[QueuedRequest]:
    """Return the jobs of a run as forecasts see them; those that ask for the same are read once."""
    requested: dict[int, tuple[int, int]] = {}
    jobs = []
    for number, demand in enumerate(result.demands):
        if demand.kind not in requested:
            requested[demand.kind] = pools.requested(demand)
        cores, bits = requested[demand.kind]
        jobs.append(
            QueuedRequest.of(
                demand.job,
                id=number,
                submit_s=result.workload.requests.submit[number],
                cores=cores,
                limit_s=demand.job.time_limit_s,
                queue=demand.job.partition or None,
                pools=bits or -1,
                rank=-float(demand.job.priority),
            )
        )
    return jobs
