"""Requests of a snapshot as bids: one program trades them against the queue (auction/decide.py).

A request bids on nodes near its job's own, above every queued job; it asks for a second only, as whether it
may delay reservations is for the limits of fairness to say (budgets.py), not for the reservations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...auction.allocation import resources_of
from ...auction.decide import decide
from ...auction.options import StepOptions
from ...auction.queue import queue_of
from ...auction.state import state_of
from ...cluster.jobs import Job
from ...cluster.nodes import License, Resources
from ...cluster.snapshot import Snapshot
from .budgets import Budgets
from .fairness import Accounts, DelayPolicy, Fairness
from .iteration import delays_of, planned
from .requests import RequestBatch
from .size_changes import held_more
from .snapshots import DynamicRequest, NodeGrant, QueuedDemand, SnapshotBoard, job_of, nearest_names

#: A request bids on that many times the nodes that it asks for, or could stand on, the nearest first.
_ROOM = 4

Nodes = Mapping[str, Resources]


@dataclass(frozen=True, slots=True, kw_only=True)
class Awarded:
    """Who wins: requests by job, queued jobs by name, with their nodes."""

    requests: Mapping[str, Nodes]
    jobs: Mapping[str, Nodes]


class AwardedBoard(SnapshotBoard):
    """A board that grants what an auction awarded, and nothing else."""

    def __init__(self, snapshot: Snapshot, awarded: Mapping[str, Nodes]) -> None:
        super().__init__(snapshot, RequestBatch())
        self._awarded = awarded

    def grants(self, request: DynamicRequest) -> Iterator[tuple[NodeGrant, SnapshotBoard]]:
        """Yield the award of a request."""
        nodes = self._awarded.get(request.job.id)
        if nodes is not None:
            after = held_more(self.snapshot, request.job.id, nodes)
            yield NodeGrant(nodes=nodes), AwardedBoard(after, self._awarded)


def budgets_of(
    board: SnapshotBoard,
    requests: Sequence[DynamicRequest],
    queue: Sequence[QueuedDemand],
    fairness: Fairness,
    accounts: Accounts,
    depth: int,
) -> Budgets:
    """Return what each request alone, on the nearest nodes, would take of each limit."""
    found = Budgets(fairness, accounts)
    if fairness.policy is DelayPolicy.NONE:
        return found
    _, before = planned(board, queue, depth)
    measured = [job for job in queue if job.id in before]
    for request in requests:
        for _, granted in board.grants(request):
            _, after = planned(granted, measured, len(measured) + 1)
            found.add(request.job.id, request.owner, delays_of(measured, before, after))
    return found


def award(
    snapshot: Snapshot, requests: Sequence[DynamicRequest], budgets: Budgets, options: StepOptions
) -> Awarded:
    """Let requests and queue bid; return who wins."""
    licenses = {name: License(total=count, free=count) for name, count in budgets.left.items()}
    asked: dict[str, DynamicRequest] = {}
    jobs: list[Job] = []
    highest = max((job.priority for job in snapshot.jobs), default=0)
    for place, request in enumerate(requests):
        near = nearest_names(snapshot, request.job)
        size = _ROOM * max(len(request.job.nodes), request.ask.nodes or 1) + len(request.job.nodes)
        job = job_of(request, snapshot, frozenset(near[size:]), snapshot.time or 0.0)
        costs = {name: cost for name, cost in budgets.costs.get(request.job.id, {}).items() if cost}
        jobs.append(
            replace(
                job,
                priority=highest + len(requests) - place,
                time_limit_s=1,
                request=replace(job.request, licenses=costs),
            )
        )
        asked[job.id] = request
    bidding = replace(snapshot, jobs=(*jobs, *snapshot.jobs), licenses={**snapshot.licenses, **licenses})
    state = state_of(bidding)
    queue = queue_of(bidding, state.columns, options)
    window = [replace(demand, reserves=demand.job.id not in asked) for demand in queue.window]
    decision = decide(state, window, options)
    won: dict[str, Nodes] = {}
    starts: dict[str, Nodes] = {}
    for start in decision.starts:
        name = start.demand.job.id
        nodes = resources_of(start.demand, start.allocation, state.columns.names)
        if name in asked:
            won[asked[name].job.id] = nodes
        else:
            starts[name] = nodes
    return Awarded(requests=won, jobs=starts)
