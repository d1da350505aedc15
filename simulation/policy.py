"""What a scheduling policy is, and the table of them.

A policy sees events, never true run times: at each time stamp the machine tells it which jobs ended and
which arrived, and it answers with the jobs that start now. Moldable and malleable jobs will need richer
answers (a size with each start, a resize of a running job); they belong to node-level machines, whose
policies answer with awards over a snapshot, and whose events the general loop (events.py) orders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from ..cluster.errors import OptionError
from .conservative import Conservative
from .easy import Easy
from .fcfs import Fcfs
from .lookahead import Lookahead
from .orderings import MULTIFACTOR, STATIC_KEYS, Multifactor, MultifactorWeights, Resort
from .partitioned import CLASS_LIMITS_S, Partitioned
from .reservations import Reservations
from .selective import Selective
from .slack import Slack
from .workload import Requests

T = TypeVar("T")


class Policy(Protocol):
    """A policy over a counts-only machine."""

    def step(self, now: float, ended: Sequence[int], arrived: Sequence[int]) -> Sequence[int]:
        """Return the jobs to start now, in the order in which they were chosen.

        Args:
            now: seconds after the first submission.
            ended: the jobs that ended now; their processors are free.
            arrived: the jobs submitted now, by rising number.

        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOptions:
    """What policies may be told beyond the jobs.

    Attributes:
        reservations: how many blocked jobs get one (policy ``reservations``).
        multifactor: the weights of order ``multifactor``.
        lookahead_depth: jobs after the head that policy ``lookahead`` looks at; None: all.
        lookahead_ties: which of equally full selections it takes, ``first`` or ``last`` in the queue.
        slack: by how much policy ``slack`` may put the head off, as a multiple of its estimate.
        expansion_factor: from which on a job has a reservation in policy ``selective``.
        class_limits_s: the longest estimates of the classes of policy ``partitioned`` but the last.

    """

    reservations: int = 4
    lookahead_depth: int | None = None
    lookahead_ties: str = "first"
    slack: float = 0.5
    expansion_factor: float = 2.0
    class_limits_s: tuple[float, ...] = CLASS_LIMITS_S
    multifactor: MultifactorWeights = field(default_factory=MultifactorWeights)


#: Policy name -> factory over jobs numbered in queue order; ``resort`` orders a queue that changes with time.
POLICIES: dict[str, Callable[[Requests, Resort | None, PolicyOptions], Policy]] = {
    "fcfs": lambda requests, resort, _: Fcfs(requests, resort),
    "easy": lambda requests, resort, _: Easy(requests, resort),
    "conservative": lambda requests, resort, _: Conservative(requests, resort),
    "reservations": lambda requests, resort, options: Reservations(requests, resort, options.reservations),
    "lookahead": lambda requests, resort, options: Lookahead(
        requests, resort, depth=options.lookahead_depth, ties=options.lookahead_ties
    ),
    "slack": lambda requests, resort, options: Slack(requests, resort, options.slack),
    "selective": lambda requests, resort, options: Selective(requests, resort, options.expansion_factor),
    "partitioned": lambda requests, resort, options: Partitioned(requests, resort, options.class_limits_s),
}

#: Names of the orders of the waiting queue.
ORDERS: tuple[str, ...] = (*STATIC_KEYS, MULTIFACTOR)


def make_policy(
    name: str, requests: Requests, *, order: str = "fcfs", options: PolicyOptions | None = None
) -> Policy:
    """Return a new policy by its name, its queue in the given order.

    Raises:
        OptionError: no such policy or order.

    """
    if name not in POLICIES:
        raise OptionError(f"policy {name!r} is none of {', '.join(POLICIES)}")
    if order not in ORDERS:
        raise OptionError(f"order {order!r} is none of {', '.join(ORDERS)}")
    options = options or PolicyOptions()
    factory = POLICIES[name]
    if order == MULTIFACTOR:
        priorities = Multifactor(requests, options.multifactor)
        return _Prioritised(factory(requests, priorities.sort, options), priorities)
    if order == "fcfs":
        return factory(requests, None, options)
    job_at = queue_order(requests, order)
    return _Renumbered(factory(_taken(requests, job_at), None, options), job_at)


def queue_order(requests: Requests, order: str) -> list[int]:
    """Return the jobs sorted by an order that does not change with time; ties go by submission."""
    keys = STATIC_KEYS[order](requests)
    return sorted(range(len(requests)), key=keys.__getitem__)


def _taken(requests: Requests, jobs: Sequence[int]) -> Requests:
    def take(column: Sequence[T]) -> tuple[T, ...]:
        return tuple(map(column.__getitem__, jobs))

    return Requests(
        processors=requests.processors,
        submit=take(requests.submit),
        size=take(requests.size),
        estimate=take(requests.estimate),
        user=take(requests.user),
        weight=take(requests.weight),
    )


class _Renumbered:
    """A policy that sees the jobs numbered by their place in the queue's order.

    Where the order of any two jobs never changes, a queue sorted by number is a queue in order, and every
    policy needs to know one order only.

    """

    def __init__(self, policy: Policy, job_at: Sequence[int]) -> None:
        self._policy = policy
        self._job_at = job_at
        self._place = sorted(range(len(job_at)), key=job_at.__getitem__)

    def step(self, now: float, ended: Sequence[int], arrived: Sequence[int]) -> Sequence[int]:
        """Translate the events into places and the places that start into jobs."""
        place, job_at = self._place, self._job_at
        started = self._policy.step(now, [place[job] for job in ended], sorted(place[job] for job in arrived))
        return [job_at[number] for number in started]


class _Prioritised:
    """A policy whose queue is sorted again before each pass; it keeps the users' usage up to date."""

    def __init__(self, policy: Policy, priorities: Multifactor) -> None:
        self._policy = policy
        self._priorities = priorities

    def step(self, now: float, ended: Sequence[int], arrived: Sequence[int]) -> Sequence[int]:
        """Charge users for what ended, let the policy choose, charge for what starts."""
        self._priorities.changed(now, ended, -1)
        started = self._policy.step(now, ended, arrived)
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
