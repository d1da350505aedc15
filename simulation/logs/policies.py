"""What a scheduling policy is, and the table of them.

A policy sees events, never true run times: at each time stamp the machine tells it which jobs ended and
which arrived, and it answers with the jobs that start now. Moldable and malleable jobs will need richer
answers (a size with each start, a resize of a running job); they belong to node-level machines, whose
policies answer with awards over a snapshot, and whose events the general loop (events.py) orders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf

from ...cluster.errors import OptionError
from ...cluster.text import did_you_mean
from ..backfilling.conservative import Conservative
from ..backfilling.easy import Easy
from ..backfilling.predicted import Predicted
from ..log_columns import Requests
from ..own_policy import is_own, own_policy
from ..simulate_options import PROMISED, RENAMED, PolicyOptions
from ..stepping import CountPolicy, PolicyWrapper, Renumbered, Resort, taken
from .adaptive import Adaptive, Factory
from .log_auction import LogAuction
from .lookahead import Lookahead
from .orderings import (
    CHANGING_ORDERS,
    FLEXIBLE,
    MULTIFACTOR,
    STATIC_KEYS,
    FlexiblePriorities,
    Multifactor,
    MultifactorWeights,
)
from .own_on_counts import OwnOnLog
from .partitioned import Partitioned
from .planning import Planning
from .queues import Queues
from .reservations import Reservations
from .selection import BestFit, Fcfs, FirstFit, NextFit
from .selective import Selective
from .slack import Slack
from .speculative import Speculative, TestRuns


def _speculative(requests: Requests, resort: Resort | None, options: PolicyOptions) -> Speculative:
    if options.test_run_s is not None:
        return TestRuns(requests, resort, seconds=options.test_run_s, stops=options.stops)
    return Speculative(requests, resort, share=options.speculation, stops=options.stops)


#: Policy name -> factory over jobs numbered in queue order; ``resort`` orders a queue that changes with time.
POLICIES: dict[str, Callable[[Requests, Resort | None, PolicyOptions], CountPolicy]] = {
    "fcfs": lambda requests, resort, _: Fcfs(requests, resort),
    "first-fit": lambda requests, resort, _: FirstFit(requests, resort),
    "best-fit": lambda requests, resort, _: BestFit(requests, resort),
    "next-fit": lambda requests, resort, _: NextFit(requests, resort),
    "queues": lambda requests, resort, options: Queues(requests, resort, options.queue, options.heads),
    "easy": lambda requests, resort, _: Easy(requests, resort),
    "predicted": lambda requests, resort, options: Predicted(requests, resort, options.predictor),
    "conservative": lambda requests, resort, _: Conservative(requests, resort),
    "reservations": lambda requests, resort, options: Reservations(requests, resort, options.reservations),
    "lookahead": lambda requests, resort, options: Lookahead(
        requests, resort, depth=options.lookahead_depth, ties=options.lookahead_ties
    ),
    "slack": lambda requests, resort, options: Slack(requests, resort, options.slack),
    "selective": lambda requests, resort, options: Selective(requests, resort, options.expansion_factor),
    "partitioned": lambda requests, resort, options: Partitioned(
        requests, resort, tuple(options.class_limits_s)
    ),
    "adaptive": lambda requests, resort, options: Adaptive(
        requests, resort, _candidates(options), every=options.adapt_every, window=options.adapt_window
    ),
    "speculative": _speculative,
    "planning": lambda requests, resort, options: Planning(
        requests,
        resort,
        options.advance,
        options.replan,
        release_s=inf if options.release_unused_s is None else options.release_unused_s,
        rules=options.start_rule,
    ),
    "promised": lambda requests, resort, options: LogAuction(
        requests, resort, objective=options.objective, promise=options.promise
    ),
}

#: Policies between which ``adaptive`` may choose: they stop no job, and each can take over at any time.
CANDIDATES = (
    "fcfs",
    "easy",
    "conservative",
    "reservations",
    "lookahead",
    "slack",
    "selective",
    "partitioned",
)

#: Names of the orders of the waiting queue.
ORDERS: tuple[str, ...] = (*STATIC_KEYS, FLEXIBLE, *CHANGING_ORDERS, MULTIFACTOR)


def make_policy(
    name: str, requests: Requests, *, order: str = "fcfs", options: PolicyOptions | None = None
) -> CountPolicy:
    """Return a new policy by its name, ours or somebody's own, its queue in the given order.

    Raises:
        OptionError: no such policy or order.
        PolicyError: somebody's own cannot be made.

    """
    if order not in ORDERS:
        raise OptionError(f"order {order!r} is none of {', '.join(ORDERS)}{did_you_mean(order, ORDERS)}")
    options = options or PolicyOptions()
    name = RENAMED.get(name, name)
    if name == PROMISED and options.objective == "response" and order != "fcfs":
        raise OptionError(f"--order {order}: objective response orders the queue by worth")
    factory = _factory(name)
    if order == MULTIFACTOR:
        priorities = Multifactor(requests, options.multifactor or MultifactorWeights())
        return _Prioritised(factory(requests, priorities.sort, options), priorities)
    if order in CHANGING_ORDERS:
        return factory(requests, CHANGING_ORDERS[order](requests), options)
    if order == "fcfs":
        return factory(requests, None, options)
    job_at = queue_order(requests, order, options.flexible)
    return Renumbered(factory(taken(requests, job_at), None, options), job_at)


def _factory(name: str) -> Callable[[Requests, Resort | None, PolicyOptions], CountPolicy]:
    if name in POLICIES:
        return POLICIES[name]
    if is_own(name):
        own = own_policy(name)
        return lambda requests, resort, _: OwnOnLog(name, own, requests, resort)
    raise OptionError(f"policy {name!r} is none of {', '.join(POLICIES)}{did_you_mean(name, POLICIES)}")


def _candidates(options: PolicyOptions) -> dict[str, Factory]:
    for name in options.candidates:
        if name not in CANDIDATES:
            close = did_you_mean(name, CANDIDATES)
            raise OptionError(f"--candidates: {name!r} is none of {', '.join(CANDIDATES)}{close}")
    if len(set(options.candidates)) < len(options.candidates):
        raise OptionError(f"--candidates {','.join(options.candidates)}: one is named twice")

    def candidate(name: str) -> Factory:
        return lambda requests, resort: POLICIES[name](requests, resort, options)

    return {name: candidate(name) for name in options.candidates}


def queue_order(requests: Requests, order: str, flexible: FlexiblePriorities | None = None) -> list[int]:
    """Return the jobs sorted by an order that does not change with time; ties go by submission."""
    keys = _queue_keys(requests, order, flexible)
    return sorted(range(len(requests)), key=keys.__getitem__)


def queue_rank(
    requests: Requests, order: str, flexible: FlexiblePriorities | None = None
) -> tuple[float, ...] | None:
    """Return what sorts the queue, by job; None where that is its submission, or changes with time."""
    if order in ("fcfs", MULTIFACTOR, *CHANGING_ORDERS):
        return None
    return tuple(map(float, _queue_keys(requests, order, flexible)))


def _queue_keys(requests: Requests, order: str, flexible: FlexiblePriorities | None) -> Sequence[float]:
    if order == FLEXIBLE:
        return (flexible or FlexiblePriorities()).keys(requests)
    return STATIC_KEYS[order](requests)


class _Prioritised(PolicyWrapper):
    """A policy whose queue is sorted again before each pass; it keeps the users' usage up to date."""

    def __init__(self, policy: CountPolicy, priorities: Multifactor) -> None:
        super().__init__(policy)
        self._priorities = priorities

    def step(self, now: float, ended: Sequence[int], arrived: Sequence[int]) -> Sequence[int]:
        """Charge users for what ended, let the policy choose, charge for what starts."""
        self._priorities.changed(now, ended, -1)
        started = self._policy.step(now, ended, arrived)
        self._priorities.changed(now, self.stopped or (), -1)
        self._priorities.changed(now, started, +1)
        return started


def weights_by_queue(text: str) -> Mapping[int, float]:
    """Return the weights that ``1=4,2=0.5`` gives to the log's queues 1 and 2.

    Raises:
        OptionError: it reads otherwise, or a weight is not above 0.

    """
    weights: dict[int, float] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        try:
            queue, weight = int(name), float(value)
        except ValueError:
            raise OptionError(f"--queue-weights {text!r}: {part!r} is not QUEUE=WEIGHT") from None
        if not 0 < weight < float("inf"):
            raise OptionError(f"--queue-weights {text!r}: {part!r} is not above 0")
        weights[queue] = int(weight) if weight == int(weight) else weight
    return weights
