"""One extended iteration over a snapshot: releases, requests, starts and backfilled starts.

Requests may bid instead: one program trades them against the queue (auction/decide.py). A request
bids on nodes near its job's own, above every queued job; it asks for a second only, as whether it
may delay reservations is for the limits of fairness to say (fairness.py), not for the reservations.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, cast

from ...auction.decide import decide
from ...auction.options import StepOptions
from ...auction.planning.plan import check_time
from ...auction.queue import queue_of
from ...auction.state import state_of
from ...bidgen.families.registry import columns_of
from ...cluster.jobs import Job, RunningJob, running_job
from ...cluster.nodes import License, Resources
from ...cluster.resources.allocation import resources_of
from ...cluster.resources.demand import DemandReader
from ...cluster.schedule import document_of
from ...cluster.snapshot import Snapshot
from .fairness import Accounts, Budgets, Fairness, delays_document
from .iteration import Depths, RequestOutcome, Served, budgets_of, serve, started
from .requests import RequestBatch
from .snapshots import (
    DynamicRequest,
    NodeGrant,
    QueuedDemand,
    SnapshotBoard,
    held_less,
    held_more,
    job_of,
    nearest_names,
    parts_of,
    with_started,
)

#: A request bids on that many times the nodes that it asks for, or could use, the nearest first.
_ROOM = 4

Nodes = Mapping[str, Resources]


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


def award(
    snapshot: Snapshot, requests: Sequence[DynamicRequest], budgets: Budgets, options: StepOptions
) -> tuple[dict[str, Nodes], dict[str, Nodes]]:
    """Let requests and queue bid; return the winners' nodes: requests by job, jobs by name."""
    licenses = {name: License(total=count, free=count) for name, count in budgets.left.items()}
    asked: dict[str, DynamicRequest] = {}
    jobs: list[Job] = []
    highest = max((job.priority for job in snapshot.jobs), default=0)
    for place, request in enumerate(requests):
        near = nearest_names(snapshot.nodes, request.job)
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
    queue = queue_of(bidding, state.reader, options)
    waiting = [replace(demand, reserves=demand.job.id not in asked) for demand in queue.waiting]
    decision = decide(state, waiting, options)
    won: dict[str, Nodes] = {}
    starts: dict[str, Nodes] = {}
    for start in decision.starts:
        name = start.demand.job.id
        nodes = resources_of(start.demand, start.allocation, state.columns.names)
        if name in asked:
            won[asked[name].job.id] = nodes
        else:
            starts[name] = nodes
    return won, starts


FORMAT = "aucsched-evolution/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolution:
    """What one iteration comes to.

    Attributes:
        snapshot: afterwards: grown jobs hold more, started ones run, preempted ones are gone.
        answers: to every request, in order.
        started: jobs that start now, in order.
        accounts: of delays.
    """

    snapshot: Snapshot
    answers: tuple[RequestOutcome[DynamicRequest, NodeGrant], ...]
    started: tuple[RunningJob, ...]
    accounts: Accounts

    def to_document(self) -> dict[str, Any]:
        """Return it as plain values."""
        granted: list[dict[str, Any]] = []
        refused: list[dict[str, Any]] = []
        for answer in self.answers:
            grant, job = answer.grant, answer.request.job.id
            delays = delays_document(answer.delays, answer.request.owner)
            if grant is None:
                earliest = None if answer.earliest_s == inf else answer.earliest_s
                refused.append({"job": job, "reason": answer.why, "earliest": earliest, "delays": delays})
                continue
            granted.append({"job": job, **document_of(grant), "delays": delays})
        return {
            "format": FORMAT,
            "time": self.snapshot.time,
            "granted": granted,
            "refused": refused,
            "started": [
                {"job": job.id, "nodes": document_of(job.nodes), "end": job.end_time} for job in self.started
            ],
            "waiting": len(self.snapshot.jobs),
        }


def evolve(
    snapshot: Snapshot,
    requests: RequestBatch,
    *,
    fairness: Fairness,
    accounts: Accounts,
    depths: Depths,
    auction: StepOptions | None = None,
) -> Evolution:
    """Make one extended iteration (algorithm 2), or one auction of requests and queue.

    A request of a job that has just given back all that it had comes to nothing: the job has ended.

    Args:
        snapshot: the cluster.
        requests: of its running jobs, checked.
        fairness: the configuration.
        accounts: delays so far.
        depths: of reservations; an auction's are its own options'.
        auction: its options; None: the extended iteration. An auction takes from idle nodes only.

    Raises:
        InputError: running jobs' ends have nothing to be compared with.
    """
    check_time(snapshot)
    for release in requests.releases:
        (job,) = [one for one in snapshot.running if one.id == release.job]
        snapshot = held_less(snapshot, job.id, parts_of(job, release.cores))
    running = {job.id: job for job in snapshot.running}
    asked = [DynamicRequest(ask=ask, job=running[ask.job]) for ask in requests.asks if ask.job in running]
    every = StepOptions(window=max(1, min(len(snapshot.jobs), 10**7)))
    window = queue_of(snapshot, DemandReader(snapshot, columns_of(snapshot)), every).window
    queue = [QueuedDemand(id=one.job.id, owner=one.job, demand=one) for one in window]
    board = SnapshotBoard(snapshot, requests if auction is None else RequestBatch())
    if auction is None:
        served = serve(board, asked, queue, depths, fairness, accounts)
        names = tuple(node.name for node in snapshot.nodes)
        jobs, work = started(cast("SnapshotBoard", served.board), queue, depths)
        placed = cast("SnapshotBoard", work).allocations
        starts: dict[str, Nodes] = {job.id: resources_of(job.demand, placed[job.id], names) for job in jobs}
    else:
        served, starts = _auctioned(board, asked, queue, fairness, accounts, depths, auction)
    jobs_of, now = {job.id: job.demand.job for job in queue}, snapshot.time or 0.0
    begun = tuple(running_job(jobs_of[name], nodes, now) for name, nodes in starts.items())
    return Evolution(
        snapshot=with_started(cast("SnapshotBoard", served.board).snapshot, begun),
        answers=served.answers,
        started=begun,
        accounts=served.accounts,
    )


def _auctioned(
    board: SnapshotBoard,
    asked: list[DynamicRequest],
    queue: list[QueuedDemand],
    fairness: Fairness,
    accounts: Accounts,
    depths: Depths,
    options: StepOptions,
) -> tuple[Served[QueuedDemand, DynamicRequest, NodeGrant], dict[str, Nodes]]:
    """Let requests and queue bid, measure the awards together, and keep what is fair."""
    accounts = accounts.rolled(fairness, board.now_s)
    budgets = budgets_of(board, asked, queue, fairness, accounts, depths.delay, lambda one: one.job.id)
    bidding, refused = list(asked), dict[str, RequestOutcome[DynamicRequest, NodeGrant]]()
    while True:
        won, starts = award(board.snapshot, bidding, budgets, options)
        granted = AwardedBoard(board.snapshot, won)
        served = serve(granted, bidding, queue, depths, fairness, accounts)
        unfair = [one for one in served.answers if one.grant is None and one.request.job.id in won]
        if not unfair:
            break
        # Nodes of a request that is unfair beside others are for the others.
        refused |= {one.request.job.id: one for one in unfair}
        bidding = [one for one in bidding if one.job.id not in refused]
    answers = {one.request.job.id: one for one in served.answers} | refused
    return replace(served, answers=tuple(answers[request.job.id] for request in asked)), starts
