"""Requests as bids: one program trades a dynamic request against queued jobs (auction/decide.py).

A request bids on nodes near its job's own, above every queued job, as the extended iteration serves requests
first; limits on delays are licences of the engine (negotiation/evolving/fairness.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil

import numpy as np

from ...auction.decide import decide
from ...auction.options import StepOptions
from ...auction.state import Hold, Holds, StepState
from ...bidgen.families.registry import columns_of
from ...cluster.checks import LARGEST_COUNT
from ...cluster.jobs import Job, Request
from ...cluster.nodes import License, Node, Resources
from ...cluster.option_table import StrategyName
from ...cluster.promises import PLAN
from ...cluster.resources.allocation import Allocation
from ...cluster.resources.capacity import Capacity
from ...cluster.resources.demand import Demand, DemandReader
from ...cluster.snapshot import Snapshot
from ...negotiation.evolving.count_board import CountBoard, CountJob, CountRequest
from ...negotiation.evolving.fairness import Accounts, Fairness
from ...negotiation.evolving.iteration import Depths, budgets_of, serve
from ...topology.tree import topology_of
from ..workloads.evolving import EvolvingWorkload
from .providers import Granted, Held, Iteration, ProviderDecision, ProviderView

#: Jobs of the queue that are looked at, bids of each (cores are all alike), and steps of search in a pass.
_WINDOW, _BIDS, _SEARCH_STEPS = 200, 3, 2
#: The default strategy for awards: every pass makes one, and a run makes thousands of passes.
STRATEGY: StrategyName = "anytime"
#: Priority of the first queued job; each later one has one less, requests have more.
_FIRST = 2**32
#: A request bids on the nearest nodes that have this many times its cores free.
_ROOM = 2


class RequestAuction(Iteration):
    """One auction a pass over requests and queue; a request's bid stands until its job's last ask.

    Args:
        workload: whose machine it is.
        depths: reservations of the step, and jobs whose delays are measured.
        fairness: the configuration.
        accounts: at the beginning.
        strategy: of the engine; None: STRATEGY.
    """

    keeps_requests = True

    def __init__(
        self,
        workload: EvolvingWorkload,
        depths: Depths,
        fairness: Fairness,
        accounts: Accounts,
        *,
        strategy: StrategyName | None = None,
    ) -> None:
        super().__init__(workload, depths, fairness, accounts)
        self._snapshot = Snapshot(
            nodes=tuple(
                Node(
                    name=f"n{place}",
                    total=Resources(cores=workload.cores_per_node),
                    free=Resources(cores=workload.cores_per_node),
                )
                for place in range(workload.nodes)
            )
        )
        self._topology = topology_of(self._snapshot)
        # What was free, and who could have started by counting, when last an auction started nobody.
        self._in_vain: tuple[tuple[int, ...], set[str]] | None = None
        chosen = strategy or STRATEGY
        self._options = StepOptions(
            window=_WINDOW,
            max_bids_per_job=_BIDS,
            promise=PLAN,
            reserve=depths.reservation,
            strategy=chosen,
            work_limit=None if chosen == "greedy" else _SEARCH_STEPS,
            on_timeout="incumbent",
        )

    def step(self, view: ProviderView, *, starts: bool) -> ProviderDecision:
        """Let requests and queue bid, measure what was awarded, and keep what is fair."""
        self.accounts = self.accounts.rolled(self._fairness, view.now_s)
        bidding = _first_to_drain(view.queue) if starts else ()
        room = sum(view.free)
        fitting = {job.id for job in bidding if job.cores <= room}
        fitting |= {_name(request) for request in view.requests if request.cores <= room}
        if not (view.requests or bidding) or (tuple(view.free), fitting) == self._in_vain:
            # Nothing ended since the last auction that started nobody, and nobody came that could start.
            return ProviderDecision()
        awarded = self._awarded(view, view.requests, bidding)
        asked = [request for request in view.requests if _name(request) in awarded]
        board = CountBoard(self._cores, view.now_s, view.running)
        served = serve(board, asked, view.queue, self._depths, self._fairness, self.accounts)
        fair = [answer for answer in served.answers if answer.grant is not None]
        if len(fair) < len(asked):
            # Cores of a request that is unfair beside others are the queue's.
            awarded = self._awarded(view, [answer.request for answer in fair], bidding)
            fair = [answer for answer in fair if _name(answer.request) in awarded]
            granted = [answer.request for answer in fair]
            served = serve(board, granted, view.queue, self._depths, self._fairness, self.accounts)
        self.accounts = served.accounts
        self._in_vain = None if awarded else (tuple(view.free), fitting)
        return ProviderDecision(
            starts=[(job, awarded[job.id]) for job in bidding if job.id in awarded],
            grants=[
                Granted(request=answer.request, held=awarded[_name(answer.request)], delays=answer.delays)
                for answer in fair
            ],
        )

    def _awarded(
        self, view: ProviderView, requests: Sequence[CountRequest], jobs: Sequence[CountJob]
    ) -> dict[str, Held]:
        """Return who wins, with its cores by node."""
        sizes = [one.cores for one in requests] + [one.cores for one in jobs]
        if sum(view.free) < min(sizes, default=LARGEST_COUNT):
            return {}
        board = CountBoard(self._cores, view.now_s, view.running)
        args = (view.queue, self._fairness, self.accounts, self._depths.delay)
        budgets = budgets_of(board, requests, *args, lambda request: request.job)
        snapshot = replace(
            self._snapshot,
            licenses={name: License(total=count, free=count) for name, count in budgets.left.items()},
        )
        columns = columns_of(snapshot)
        columns.free.cores[:] = view.free
        columns.is_empty[:] = columns.free.cores == columns.total.cores
        reader = DemandReader(snapshot, columns)
        demands: list[Demand] = []
        asked = [
            _job_of(request, view, budgets.costs.get(request.job, {}), _FIRST + len(requests) - place)
            for place, request in enumerate(requests)
        ] + [_queued(job, _FIRST - place) for place, job in enumerate(jobs)]
        for job in asked:
            found = reader.read(job, len(demands))
            if isinstance(found, Demand):
                is_request = len(demands) < len(requests)
                demands.append(replace(found, reserves=not is_request))
        state = StepState(columns=columns, topology=self._topology, now=view.now_s, holds=Holds(_holds(view)))
        decision = decide(state, demands, self._options, all_bid_up_to=0)
        return {
            start.demand.job.id: dict(
                zip(start.allocation.nodes.tolist(), start.allocation.held.cores.tolist(), strict=True)
            )
            for start in decision.starts
        }


def _first_to_drain(queue: Sequence[CountJob]) -> Sequence[CountJob]:
    """Return the queue up to the last job that drains; all of it where none waits."""
    draining = [place for place, job in enumerate(queue) if job.drains]
    return queue[: draining[-1] + 1] if draining else queue


def _name(request: CountRequest) -> str:
    return f"{request.job}+{request.cores}"


def _queued(job: CountJob, priority: int) -> Job:
    return Job(
        id=job.id,
        priority=priority,
        request=Request(cores=job.cores),
        time_limit_s=max(1, ceil(job.walltime_s)),
        user=job.owner.user,
    )


def _job_of(request: CountRequest, view: ProviderView, costs: dict[str, int], priority: int) -> Job:
    """Return a request as a job on nodes near its own.

    It is short: whether it may delay reservations is for the limits to say, not for the reservations.
    """
    own = list(view.held[request.job])
    order = sorted(range(len(view.free)), key=lambda node: min(abs(node - one) for one in own))
    room, near = 0, 0
    while near < len(order) and room < _ROOM * request.cores:
        room += view.free[order[near]]
        near += 1
    return Job(
        id=_name(request),
        priority=priority,
        request=Request(
            cores=request.cores,
            excluded_nodes=frozenset(f"n{node}" for node in order[near:]),
            licenses={name: cost for name, cost in costs.items() if cost > 0},
        ),
        time_limit_s=1,
        user=request.owner.user,
    )


def _holds(view: ProviderView) -> Iterator[Hold]:
    for job in view.running:
        held = sorted(view.held[job.id].items())
        cores = np.array([count for _, count in held], np.int64)
        capacity = Capacity(cores=cores, memory=np.zeros(len(held), np.int64), gres={})
        nodes = np.array([node for node, _ in held], np.int64)
        yield Hold(end=job.end_s, allocation=Allocation(nodes=nodes, held=capacity))
