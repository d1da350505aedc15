"""Every policy of node-level simulations by name, and one call that plays a workload."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from ...auction.options import MODELS, StepOptions, options_with_preset
from ...cluster.errors import AwardError, OptionError, errors_of_policy
from ...cluster.nodes import Resources
from ...cluster.option_fields import flag_of, given_in, options_in
from ...cluster.option_table import AuctionOptions, PresetOption
from ...cluster.promises import BACKFILL, NONE
from ...cluster.resources.allocation import Allocation, StartingJob, allocation_of_resources
from ...cluster.resources.demand import Demand
from ...cluster.text import did_you_mean
from ...cluster.workload import ClusterWorkload
from ..own_policy import ActiveJob, MachineView, QueuedJob, is_own, own_policy, stepped
from ..simulate_options import (
    EVOLVING,
    LOG_POLICIES,
    MALLEABLE_POLICIES,
    SLURM_POLICIES,
    LogRecord,
    NodeKeywords,
    NodeRecord,
)
from .auction import NodeAuction
from .backfill import Backfill, PlannedBackfill, SelectedPlacer
from .kernel import NodeKernel
from .node_machine import Failures, Machine, drawn_times, known_times
from .node_queue import MultifactorQueue, NodePolicy, NodeQueue, ResponseQueue
from .node_result import NodeSimulation, node_result
from .preemption import Preemptor
from .select import SELECTIONS, Selector, SwitchFit

#: Jobs that Slurm's two policies look at, as Slurm's bf_max_job_test once did by default.
SLURM_DEPTH = 100
#: What options mean that are not given; ``reserve``: the number of policy reservations.
UNSAID: dict[str, Any] = {name: one.default for name, one in options_in(NodeRecord).items()}
UNSAID["reserve"] = options_in(LogRecord)["reservations"].default


@dataclass(kw_only=True, unsafe_hash=True)
class NodeOptions(NodeKeywords):
    """How a node-level simulation is to run: its options (simulate_options.py) and its policy.

    Attributes:
        policy: a name in ``NODE_POLICIES``, or of somebody's own policy.
        order: ``fcfs``, the workload's priorities as given, or ``multifactor``.
    """

    policy: str = "easy"
    order: str = "fcfs"

    def __post_init__(self) -> None:
        if self.policy not in NODE_POLICIES and not is_own(self.policy):
            close = did_you_mean(self.policy, NODE_POLICIES)
            on_counts = dict.fromkeys((*LOG_POLICIES, *MALLEABLE_POLICIES), "counts processors")
            known = {**on_counts, EVOLVING: "plays dynamic-esp and quadflow, in simulate"}
            why = known.get(self.policy, "is not a policy")
            raise OptionError(f"--policy {self.policy} {why}; a machine of nodes has {_LISTED}{close}")
        if self.order not in ("fcfs", "multifactor"):
            raise OptionError(f"--order {self.order} is for logs; nodes have fcfs and multifactor")
        for name in given_in(self):
            policies = READ_BY.get(name, (self.policy,))
            if self.policy not in policies:
                raise OptionError(
                    f"{flag_of(name)} needs --policy {' or '.join(policies)}, not {self.policy}"
                )
        self._check_values()
        self._check_failures()
        # Credits that nobody could spend, and promises that a stop would break.
        if self.credits is not None and not self.preempt:
            raise OptionError("--credits needs --preempt")
        if self.preempt and self.promise not in (None, NONE):
            raise OptionError("--preempt stops jobs that were promised to run: it needs --promise none")

    def _check_values(self) -> None:
        """Refuse numbers that mean nothing here; a step checks its own."""
        for name, one in options_in(NodeRecord).items():
            if (value := getattr(self, name)) is not None:
                one.check(value, one.flag)
        if self.window < 1:
            raise OptionError(f"--window: {self.window} is below 1")
        if self.policy == "reservations" and self.reserve is not None and self.reserve < 1:
            raise OptionError(
                f"--reserve {self.reserve} would leave --policy reservations none: that is fcfs"
            )
        if self.policy in MODELS:
            # What an auction would ignore.
            if self.objective == "response" and self.order != "fcfs":
                raise OptionError(f"--order {self.order}: objective response orders the queue by worth")
            step_options(self)

    def _check_failures(self) -> None:
        """Refuse what says nothing clear about failures, or nothing at all."""
        if self.failures is not None and self.mtbf_s is not None:
            raise OptionError("--failures and --mtbf both say when nodes fail")
        for name, other in (("mtbf_s", "mttr_s"), ("mttr_s", "mtbf_s"), ("failure_seed", "mtbf_s")):
            if getattr(self, name) is not None and getattr(self, other) is None:
                raise OptionError(f"{flag_of(name)} needs {flag_of(other)}")
        for name in ("on_failure", "max_requeues"):
            if getattr(self, name) is not None and not self.nodes_fail:
                raise OptionError(f"{flag_of(name)} needs --failures or --mtbf")
        if self.max_requeues is not None and self.on_failure == "lost":
            raise OptionError(f"--max-requeues {self.max_requeues} needs --on-failure requeue")

    @property
    def nodes_fail(self) -> bool:
        """Whether nodes may fail."""
        return self.failures is not None or self.mtbf_s is not None

    def settings(self) -> dict[str, Any]:
        """Return the policy's options that were given, by name."""
        return {name: value for name, value in given_in(self).items() if name != "failures"}


#: Option -> the policies that read it, where not all do.
READ_BY: dict[str, tuple[str, ...]] = {
    **{name: one.policies for name, one in options_in(NodeOptions).items() if one.policies},
    "window": (*SLURM_POLICIES, *MODELS),
    "reserve": ("reservations", *MODELS),
}


def _value(options: NodeOptions, name: str) -> Any:
    """Return an option's value, by default that of ``UNSAID``."""
    value = getattr(options, name)
    return UNSAID[name] if value is None else value


def _queue_policy(options: NodeOptions, machine: Machine, reservations: int) -> NodePolicy:
    selector = SELECTIONS[_value(options, "selection")](machine.columns, machine.topology)
    return Backfill(machine, selector, reservations=reservations)


def _slurm(options: NodeOptions, machine: Machine) -> NodePolicy:
    selector = SwitchFit(machine.columns, machine.topology)
    every = float(_value(options, "backfill_interval_s"))
    depth = given_in(options).get("window", SLURM_DEPTH)
    if options.policy == "backfill-planned":
        return PlannedBackfill(machine, selector, depth=depth, every_s=every or None)
    return Backfill(machine, selector, reservations=1, depth=depth, every_s=every or None)


def step_options(options: NodeOptions) -> StepOptions:
    """Return the options of each step of an auction; no clock ends one.

    Raises:
        OptionError: an option's value cannot be used.
    """
    of_step = options_in(AuctionOptions, PresetOption)
    given = {name: value for name, value in given_in(options).items() if name in of_step}
    if options.preempt:
        given["promise"] = NONE
    asked = options_with_preset({"model": options.policy, **given})
    # Work ends a pass, not a preset's seconds: it is no timeout that could start nothing.
    on_timeout = options.on_timeout or (asked.on_timeout and "incumbent")
    asked = replace(asked, time_limit_s=None, on_timeout=on_timeout)
    return replace(asked, work_limit=asked.most_work)


def _auction(options: NodeOptions, machine: Machine) -> NodePolicy:
    asked = step_options(options)
    # Backfilling holds for the pass: there is nothing to remember.
    kept = None if asked.chosen_promise in {NONE, BACKFILL} else asked.chosen_promise
    return NodeAuction(machine, asked, kept, interval_s=options.interval_s)


#: Policy name → what makes it.
NODE_POLICIES: dict[str, Callable[[NodeOptions, Machine], NodePolicy]] = {
    "fcfs": lambda options, machine: _queue_policy(options, machine, 0),
    "easy": lambda options, machine: _queue_policy(options, machine, 1),
    "reservations": lambda options, machine: _queue_policy(options, machine, _value(options, "reserve")),
    **dict.fromkeys(SLURM_POLICIES, _slurm),
    **dict.fromkeys(MODELS, _auction),
}
_LISTED = ", ".join(NODE_POLICIES)


def _failures(options: NodeOptions, machine: Machine) -> Failures:
    if options.mtbf_s is not None and options.mttr_s is not None:
        times = drawn_times(options.mtbf_s, options.mttr_s, _value(options, "failure_seed"), machine)
    else:
        times = known_times(options.failures or (), machine)
    requeues, most = options.on_failure != "lost", _value(options, "max_requeues")
    return Failures(times=times, requeues=requeues, max_requeues=most)


def _queue(workload: ClusterWorkload, options: NodeOptions) -> NodeQueue:
    if options.objective == "response":
        return ResponseQueue(workload)
    return MultifactorQueue(workload) if options.order == "multifactor" else NodeQueue()


def play(
    workload: ClusterWorkload, options: NodeOptions, progress: Callable[[int], None] | None = None
) -> NodeSimulation:
    """Play a workload under the policy that the options name.

    Raises:
        AwardError: the policy broke a rule.
        InputError: an outage names a node that cannot fail, or one that is down already.
        OptionError: an option's value cannot be used.
    """
    began = time.perf_counter()
    machine = Machine(workload)
    made = NODE_POLICIES.get(options.policy)
    policy = OwnOnNodes(options.policy, machine) if made is None else made(options, machine)
    first = inf if options.credits is None else options.credits
    preemptor = Preemptor(workload, machine, first) if options.preempt else None
    with errors_of_policy(options.policy):
        kernel = NodeKernel(
            workload,
            machine,
            policy,
            _queue(workload, options),
            interval_s=options.interval_s,
            progress=progress,
            failures=_failures(options, machine),
            preemptor=preemptor,
        )
        record = kernel.played()
    return node_result(
        workload,
        machine,
        record,
        policy=options.policy,
        order=options.order,
        seconds=time.perf_counter() - began,
        nodes_fail=options.nodes_fail,
        promises=policy.promises.made if isinstance(policy, NodeAuction) and policy.promises else None,
        balance=None if preemptor is None else dict(preemptor.balance),
    )


class OwnOnNodes(NodePolicy):
    """A user's own policy on a machine of nodes."""

    def __init__(self, name: str, machine: Machine) -> None:
        self._name, self._policy, self._machine = name, own_policy(name), machine
        self._selector = SELECTIONS["first"](machine.columns, machine.topology)
        self._seen: dict[int, QueuedJob] = {}

    def step(self, now: float, queue: NodeQueue) -> Sequence[StartingJob]:
        """Let the policy look at the machine; return what it started, in that order."""
        view = NodesView(now, self._machine, queue, self._seen, self._selector)
        stepped(self._name, self._policy, now, view)
        return view.started


class NodesView(MachineView):
    """What a user's own policy sees of a machine of nodes during one step."""

    def __init__(
        self,
        now: float,
        machine: Machine,
        queue: NodeQueue,
        seen: dict[int, QueuedJob],
        selector: Selector,
    ) -> None:
        cores = int(machine.columns.total.cores.sum())
        super().__init__(now, cores, {demand.index: demand for demand in queue}, seen)
        self._machine, self._fit = machine, SelectedPlacer(machine, selector)

    @property
    def running(self) -> Sequence[ActiveJob]:
        """The jobs that ran when the step began."""
        return tuple(
            ActiveJob(number=number, cores=one.cores, start_s=one.start_s, expected_end_s=one.end)
            for number, one in self._machine.running.items()
        )

    @property
    def free_cores(self) -> int:
        """The cores that nobody holds on nodes that take jobs."""
        return int(self._fit.free.cores[self._machine.columns.takes_jobs].sum())

    def _shown(self, asked: Demand) -> QueuedJob:
        return QueuedJob(
            number=asked.index,
            id=asked.job.id,
            cores=asked.job.request.fewest_cores,
            estimate_s=asked.limit_s,
            submit_s=self._machine.arrivals[asked.job.id],
            user=asked.job.user,
            job=asked.job,
        )

    def _try_start(self, asked: Demand, nodes: Mapping[str, Resources | int] | None) -> StartingJob | None:
        if self._fit.passes_over(asked):
            return None
        if nodes is None:
            return self._fit.start(asked) if self._fit.could_hold(asked) else None
        allocation = self._named(asked, nodes)
        return None if allocation is None else self._fit.start_on(asked, allocation)

    def _named(self, demand: Demand, nodes: Mapping[str, Resources | int]) -> Allocation | None:
        columns = self._machine.columns
        held: dict[str, Resources] = {}
        for name, use in nodes.items():
            if name not in columns.index:
                raise AwardError(f"job {demand.job.id} starts on {name!r}, which is not a node")
            held[name] = use if isinstance(use, Resources) else Resources(cores=use)
        allocation = allocation_of_resources(held, columns)
        # Memory that is not counted is more than any job holds.
        return allocation if self._fit.free.at(allocation.nodes).covers(allocation.held) else None
