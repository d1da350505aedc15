"""The options of simulations: of the policies over logs, and of a machine of nodes.

No numpy here: ``--help`` reads it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from ..cluster.errors import OptionError
from ..cluster.option_fields import Option, TextOption, flag_of, options_in
from ..cluster.option_table import (
    LARGEST,
    LARGEST_SEED,
    MODEL_NAMES,
    AuctionOptions,
    ModelName,
    PresetOption,
    ValueOptions,
)
from ..cluster.promises import DEFAULT

if TYPE_CHECKING:
    from ..cluster.workload import Outage
    from .logs.hours import QueueLimits
    from .logs.orderings import FlexiblePriorities, MultifactorWeights
    from .logs.plan_constraints import Advance, StartRule

#: Policies that play logs, in the order of ``--help``; some play nodes, too.
LogPolicyName: TypeAlias = Literal[
    "fcfs",
    "first-fit",
    "best-fit",
    "next-fit",
    "queues",
    "easy",
    "predicted",
    "conservative",
    "reservations",
    "lookahead",
    "slack",
    "selective",
    "partitioned",
    "adaptive",
    "speculative",
    "planning",
    "promised",
]
#: Stand-ins for Slurm's backfilling.
SlurmPolicyName: TypeAlias = Literal["backfill-slurm", "backfill-planned"]
#: Policies whose applications grow and shrink.
MalleableName: TypeAlias = Literal["ischeduler", "ideal-only", "moldable", "ideal-backfill"]
#: Our policies of ``aucsched.simulate`` by name.
PolicyName: TypeAlias = Literal[LogPolicyName, SlurmPolicyName, ModelName]
LOG_POLICIES: tuple[str, ...] = get_args(LogPolicyName)
SLURM_POLICIES: tuple[str, ...] = get_args(SlurmPolicyName)
MALLEABLE_POLICIES: tuple[str, ...] = get_args(MalleableName)
#: Every policy of a machine of nodes.
ON_NODES = ("fcfs", "easy", "reservations", *SLURM_POLICIES, *MODEL_NAMES)
#: The policy over logs that reads what an auction's starts are worth; and the one under which
#: running jobs ask for more.
PROMISED, EVOLVING = "promised", "evolving"
#: Names of policies over logs before 0.2, and their names now. The old ones work until 0.3.
RENAMED: Mapping[str, str] = {"aucsched3": PROMISED}
#: Policies that need a machine of nodes, whatever name of a log's policy is meant.
NODE_ONLY_POLICIES = (*SLURM_POLICIES, *(name for name in MODEL_NAMES if name not in RENAMED))

#: Orders of the waiting queue by name.
OrderName: TypeAlias = Literal[
    "fcfs",
    "sjf",
    "ljf",
    "area",
    "width",
    "widest",
    "weight",
    "smith",
    "f1",
    "f2",
    "f3",
    "f4",
    "flexible",
    "slowdown",
    "wfp3",
    "unicep",
    "multifactor",
]
ORDER_NAMES: tuple[str, ...] = get_args(OrderName)


def _of(policy: str, text: str, parameter: str = "", **others: Any) -> Any:
    """Return an option of one policy over logs; sweeps take numbers."""
    others.setdefault("is_swept", "low" in others)
    return Option(f"For policy {policy}: {text}", policies=(policy,), parameter=parameter, **others)


#: One that may be repeated; a module (``elsewhere``) reads its texts.
_list_of = partial(_of, default=(), is_text=True, is_multiple=True)


@dataclass(kw_only=True, unsafe_hash=True)
class LogRecord:
    """What the policies over logs read; each names its policy."""

    #: As ``--help`` heads them.
    heading = "Parameters of policies over logs (--policy NAME:PARAMETER=VALUE,…)"

    predictor: Option[Literal["estimate", "last-two", "regression", "median"]] = _of(
        "predicted",
        "what predicts run times: the user's estimate, the mean of the user's last two (EASY++), SC'15's "
        "regression, or the median that forecasts learn.",
        "by",
        default="last-two",
        is_swept=True,
    )
    reservations: Option[int] = _of(
        "reservations", "number of blocked jobs that get one.", "number", default=4, low=1
    )
    lookahead_depth: Option[int | None] = _of(
        "lookahead",
        "jobs after the head that it considers.",
        "depth",
        default="all",
        low=1,
        high=LARGEST,
    )
    lookahead_ties: Option[Literal["first", "last"]] = _of(
        "lookahead", "of equally full selections prefer first or last jobs.", "ties", default="first"
    )
    slack: Option[float] = _of(
        "slack",
        "delay allowed to the head, in multiples of its estimate.",
        "factor",
        default=0.5,
        low=0,
        includes_low=True,
        unit="FACTOR",
    )
    expansion_factor: Option[float] = _of(
        "selective",
        "(wait + estimate) / estimate that gives a reservation.",
        "factor",
        default=2.0,
        low=1,
        includes_low=True,
        unit="FACTOR",
    )
    #: Lawson and Smirni's classes.
    class_limits_s: TextOption[Sequence[float]] = _of(
        "partitioned",
        "longest estimates of classes but the last.",
        "limits",
        default=(100.0, 1_000.0, 10_000.0),
        unit="SECONDS,…",
        is_text=True,
    )
    candidates: Option[Sequence[str]] = _of(
        "adaptive",
        "policies to choose from, the first to begin with.",
        default=("easy", "conservative", "lookahead"),
        unit="POLICY,…",
        is_text=True,
    )
    adapt_every: Option[int] = _of(
        "adaptive",
        "submissions between two comparisons.",
        "every",
        default=100,
        low=1,
        unit="JOBS",
    )
    adapt_window: Option[int] = _of(
        "adaptive",
        "number of the last submitted jobs that it simulates.",
        "window",
        default=200,
        low=1,
        high=LARGEST,
        unit="JOBS",
    )
    speculation: Option[float] = _of(
        "speculative",
        "share of its estimate in which a job is bet to end.",
        "share",
        default=0.5,
        low=0,
        high=1,
        unit="SHARE",
    )
    stops: Option[int] = _of(
        "speculative", "how often a job may be stopped after a lost bet.", default=1, low=1
    )
    test_run_s: Option[float | None] = _of(
        "speculative",
        "test runs of so long, twice as long each time, instead of bets.",
        low=0,
        unit="SECONDS",
        is_swept=False,
    )
    advance: TextOption[Sequence[Advance]] = _list_of(
        "planning",
        "keep processors free, in seconds after the first submission; with the time at which it is asked "
        "for, accepted then or refused.",
        unit="START,DURATION,PROCESSORS[,SUBMIT][,unused]|FILE",
        elsewhere="simulation.logs.plan_constraints",
    )
    queue: TextOption[Sequence[QueueLimits]] = _list_of(
        "queues",
        "may be repeated: 'short: processors=64 estimate=3600 priority=2 hours=mon-fri 08:00-18:00'; a job "
        "waits in the first that takes it.",
        unit="NAME:LIMITS",
        elsewhere="simulation.logs.hours",
    )
    heads: Option[Literal["priority", "best-fit"]] = _of(
        "queues", "which of the heads that fit starts.", default="priority"
    )
    release_unused_s: Option[float | None] = _of(
        "planning",
        "release an unused reservation so long after its start.",
        default="never",
        low=0,
        high=inf,
        unit="SECONDS",
        is_swept=False,
    )
    start_rule: TextOption[Sequence[StartRule]] = _list_of(
        "planning",
        "hours when jobs of a kind may start, or how many at once: 'processors>66%: 18:00-08:00,sat,sun', "
        "'processors>=33%: 2', 'user=7: 64', 'group=3: 128'.",
        unit="KIND:LIMIT",
        elsewhere="simulation.logs.plan_constraints",
    )
    replan: Option[Literal["keep", "rebuild"]] = _of(
        "planning", "never plan a job later than before, or replan all jobs.", default="keep"
    )


@dataclass(kw_only=True, unsafe_hash=True)
class PolicyOptions(LogRecord, ValueOptions):
    """What policies over logs read besides the jobs: their parameters, and those of two orders."""

    multifactor: TextOption[MultifactorWeights | None] = TextOption(
        "Weights of order multifactor: age, size, fairshare, age_max_s, half_life_s.",
        unit="NAME=NUMBER,…",
        is_text=True,
        elsewhere="simulation.logs.orderings",
    )
    flexible: TextOption[FlexiblePriorities | None] = TextOption(
        "Priorities of order flexible.", is_text=True, elsewhere="simulation.logs.orderings"
    )

    def __post_init__(self) -> None:
        for name, one in OF_LOGS.items():
            if (value := self.__dict__[name]) is not None:
                one.check(value, one.flag)


@dataclass(kw_only=True, unsafe_hash=True)
class OrderOptions:
    """What the orders of a log's queue and its clock read, as texts."""

    priorities: Option[str | None] = Option(
        "For order flexible: weights of the priorities admin, user, scheduler.",
        default="1 each",
        unit="NAME=NUMBER,…",
    )
    user_priorities: Option[str | None] = Option(
        "For order flexible: administrative priorities by the log's users, or group=GROUP=NUMBER by its "
        "groups (projects). A job has its user's and its group's.",
        default="0",
        unit="[group=]USER=NUMBER,…",
    )
    log_begins: Option[str | None] = Option(
        "For policies planning and queues: time of the first submission.",
        default="mon 00:00",
        unit="DAY HH:MM",
    )


_VALUES = options_in(ValueOptions)
#: What policies over logs read, by member of PolicyOptions: there are no worths in cores.
OF_LOGS = options_in(LogRecord) | _VALUES | {"objective": _VALUES["objective"].limited_to(DEFAULT)}
#: The same member -> the policy that reads it.
READ_ON_LOGS: Mapping[str, str] = {
    name: PROMISED if name in _VALUES else one.policies[0] for name, one in OF_LOGS.items()
}


def is_read(member: str, policy: str, candidates: Collection[str] = ()) -> bool:
    """Return whether a policy reads a member; ``adaptive`` passes on what its candidates read."""
    reader, policy = READ_ON_LOGS[member], RENAMED.get(policy, policy)
    return policy == reader or (policy == "adaptive" and reader in candidates)


#: Option -> what reads it, a policy or an order of the queue, and which of them.
_READERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    **{name: ("policy", (policy,)) for name, policy in READ_ON_LOGS.items()},
    "log_begins": ("policy", ("planning", "queues")),
    "multifactor": ("order", ("multifactor",)),
    "flexible": ("order", ("flexible",)),
    "priorities": ("order", ("flexible",)),
    "user_priorities": ("order", ("flexible",)),
    "queue_weights": ("order", ("weight", "smith", "flexible")),
}


def current_name(policy: str) -> str:
    """Return the present name of a policy over logs, with its parameters; warn of an old name."""
    name, colon, rest = policy.partition(":")
    if name not in RENAMED:
        return policy
    new = RENAMED[name]
    text = f"on a log --policy {name} holds no auction: it is called {new}; the old name goes with 0.3"
    warnings.warn(text, FutureWarning, stacklevel=3)
    return f"{new}{colon}{rest}"


def check_read(policy: str, order: str, given: Mapping[str, Any]) -> None:
    """Refuse options, and an order, that a policy over logs or its queue's order would ignore.

    Args:
        policy: its name.
        order: of the waiting queue.
        given: options by name; None and () are not given.

    Raises:
        OptionError: names the option and who reads it.
    """
    if given.get("objective") == "response" and policy == PROMISED and order != "fcfs":
        raise OptionError(f"--order {order}: objective response orders the queue by worth")
    candidates = given.get("candidates") or PolicyOptions().candidates
    names = candidates.split(",") if isinstance(candidates, str) else candidates
    for name, value in given.items():
        if value is None or value == ():
            continue
        needed, readers = _READERS.get(name, ("policy", (policy,)))
        if READ_ON_LOGS.get(name) in names and (policy == "adaptive" or given.get("candidates")):
            readers = (*readers, "adaptive")
        chosen = order if needed == "order" else policy
        if chosen not in readers:
            raise OptionError(f"{flag_of(name)} needs --{needed} {' or '.join(readers)}, not {chosen}")


@dataclass(kw_only=True, unsafe_hash=True)
class PassOptions:
    """When a machine of nodes is looked at, and which nodes a job gets."""

    interval_s: Option[float | None] = Option(
        "Seconds between passes (SCHED_INTERVAL).",
        default="a pass after every event",
        low=0,
        high=10**6,
        unit="SECONDS",
        is_swept=True,
    )
    selection: Option[Literal["first", "best", "next"] | None] = Option(
        "How fcfs, easy and reservations choose nodes.",
        default="first",
        policies=("fcfs", "easy", "reservations"),
        is_swept=True,
    )


@dataclass(kw_only=True, unsafe_hash=True)
class PriceOptions:
    """Who may be stopped for whom, and what pays for it."""

    preempt: Option[bool | None] = Option(
        "Blocked jobs may stop running ones that pay less (credits_per_core_h), where that earns more than "
        "it loses. The user of the blocked job pays for the lost work.",
        policies=MODEL_NAMES,
        is_swept=True,
    )
    credits: Option[float | None] = Option(
        "With --preempt: credits of each user at the start.",
        default="unlimited",
        low=0,
        high=10**15,
        includes_low=True,
        policies=MODEL_NAMES,
        is_swept=True,
    )


@dataclass(kw_only=True, unsafe_hash=True)
class NodeRecord(PriceOptions, PassOptions):
    """The options of a machine of nodes that are no auction's."""

    backfill_interval_s: Option[float | None] = Option(
        "For Slurm's backfills: seconds between looks behind the first blocked job (bf_interval); 0: in "
        "every pass.",
        default=30,
        low=0,
        high=10**6,
        includes_low=True,
        unit="SECONDS",
        policies=SLURM_POLICIES,
    )
    failures: TextOption[Sequence[Outage] | None] = TextOption(
        "File of outages (JSON, see docs/failures.md).",
        unit="FILE",
        is_text=True,
        elsewhere="cluster.workload",
    )
    mtbf_s: Option[float | None] = Option(
        "Mean time between failures of a node, exponential; needs --mttr.",
        low=0,
        high=10**12,
        unit="SECONDS",
    )
    mttr_s: Option[float | None] = Option(
        "Mean time to repair of a node, exponential.", low=0, high=10**12, unit="SECONDS"
    )
    failure_seed: Option[int | None] = Option("Seed of the failures.", default=0, low=0, high=LARGEST_SEED)
    on_failure: Option[Literal["requeue", "lost"] | None] = Option(
        "What happens to the jobs of a failed node.", default="requeue"
    )
    max_requeues: Option[int | None] = Option(
        "Requeues of one job before it counts as lost.", default=100, low=0, high=LARGEST
    )


@dataclass(kw_only=True, unsafe_hash=True)
class NodeKeywords(NodeRecord, AuctionOptions, PresetOption):
    """Every option of a machine of nodes but its policy and order."""


@dataclass(kw_only=True)
class SimulateKeywords(OrderOptions, PolicyOptions, NodeKeywords):
    """What ``aucsched.simulate`` takes as keywords; a policy that would ignore one refuses it."""

    order: Option[OrderName] = Option("Order of the waiting queue.", default="fcfs")
    processors: Option[int | None] = Option(
        "Size of a log's machine, where its header is wrong or missing.", low=1, high=10**9
    )
    checked: Option[bool] = Option(
        "Check every start of a log's run; runs on nodes and of your own policies always are.",
        default=False,
    )
    progress: Option[Callable[[int], None] | None] = Option(
        "Called from time to time with the number of jobs that are done."
    )
    queue_weights: Option[str | Mapping[int, float] | None] = Option(
        "Job weights by the log's queues.", default=1, unit="QUEUE=WEIGHT,…", is_text=True
    )
