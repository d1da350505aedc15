"""A simulation from Python: a log or a workload of nodes under a policy, ours or somebody's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from ..cluster.errors import OptionError
from ..cluster.keywords import checked as checked_options
from ..cluster.keywords import of_type, shown, with_keywords
from ..cluster.tabular import Tabular
from ..cluster.workload import ClusterWorkload
from ..formats.drawing import check_drawing
from ..formats.native.workload_file import parse_workload
from ..formats.reading import read_document
from ..formats.swf import SwfLog, parse_swf
from ..simulation.charts.curves import draw_utilization
from ..simulation.charts.gantt import draw_gantt
from ..simulation.log_columns import workload_from_swf
from ..simulation.logs.log_reading import READ_BY, is_read
from ..simulation.logs.play import play_log
from ..simulation.logs.policies import PolicyOptions, weights_by_queue
from ..simulation.metrics import metrics
from ..simulation.nodes.node_metrics import node_metrics
from ..simulation.nodes.node_policies import NodeOptions, play
from ..simulation.nodes.node_report import node_job_columns, to_node_document
from ..simulation.nodes.node_result import NodeResult
from ..simulation.own_policy import Factory, name_of
from ..simulation.placement import place_on_nodes
from ..simulation.report import job_columns, to_document, to_json
from ..simulation.result import Result
from .run_keywords import OrderName, PolicyName, SimulateKeywords

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Metrics of a summary.
_FIGURES = (
    "cpu_utilization",
    "gpu_utilization",
    "wait_mean_s",
    "wait_max_s",
    "bounded_slowdown_mean",
    "makespan_s",
    "throughput_per_h",
)

#: What can be simulated: a log, a workload of nodes, or a file of either, plain or gzip.
Source = SwfLog | ClusterWorkload | str | Path


@dataclass(frozen=True, kw_only=True, repr=False)
class Simulation(Tabular):
    r"""A finished simulation.

    Attributes:
        result: when each job started, and on a machine of nodes where.
        settings: the policy's options beyond its name and order.
        name: of the log or workload.

    ``metrics`` holds every figure by name, times in seconds; ``columns`` a row for each job.

    Examples:
        >>> import aucsched
        >>> log = aucsched.parse_swf(b"; MaxProcs: 4\n1 0 -1 10 3 -1 -1 3 10\n2 1 -1 10 2 -1 -1 2 10\n")
        >>> found = aucsched.simulate(log)
        >>> found.metrics["wait_mean_s"], found.columns["wait_s"]
        (4.5, [0.0, 9.0])
    """

    result: Result
    settings: Mapping[str, Any]
    name: str = ""

    @property
    def policy(self) -> str:
        """The policy's name."""
        return self.result.policy

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """Every metric by name, None where the machine cannot have it; docs/simulation.md defines them."""
        result = self.result
        return node_metrics(result) if isinstance(result, NodeResult) else metrics(result)

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A row for each job in order of submission; times in seconds, None where a job never started."""
        result = self.result
        return node_job_columns(result) if isinstance(result, NodeResult) else job_columns(result)

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome's file (``aucsched-simulation/1``) as plain values."""
        result = self.result
        if isinstance(result, NodeResult):
            return to_node_document(result, self.settings)
        return to_document(result, self.settings)

    def to_json(self) -> str:
        """Return the outcome's file as text: the same run gives the same bytes but for its wall time."""
        return to_json(self.to_dict())

    def summary(self) -> dict[str, Any]:
        """Return what a summary says: the first metrics."""
        return {name: self.metrics[name] for name in _FIGURES if self.metrics.get(name) is not None}

    def plot(self, path: str | Path | None = None, *, chart: Literal["use", "gantt"] = "use") -> Figure:
        """Draw the run.

        Args:
            path: file to write, ``.png``, ``.pdf`` or ``.svg``; None: none.
            chart: ``use``, utilisation and queue over time; ``gantt``, who ran where.

        Raises:
            OptionError: matplotlib is missing, there is no such chart, or the file's name has another end.
        """
        result, target = self.result, None if path is None else Path(path)
        check_drawing("plot", target, is_asked=True)
        if of_type("chart", chart, Literal["use", "gantt"]) == "use":
            return draw_utilization(result, target, name=self.name)
        if not isinstance(result, NodeResult):
            return draw_gantt(result, target, name=self.name)
        nodes = (result.columns.names, result.columns.total.cores.tolist())
        return draw_gantt(result, target, place_on_nodes(result), name=self.name, nodes=nodes)

    def title(self) -> str:
        """Return the run in one line."""
        wait = self.metrics.get("wait_mean_s")
        mean = "" if wait is None else f", mean wait {wait:.6g} s"
        return f"{self.name}: {self.policy}, {len(self.result.starts)} jobs{mean}".removeprefix(": ")


@with_keywords(SimulateKeywords)
def simulate(
    workload: Source,
    policy: PolicyName | str | Factory = "easy",
    *,
    order: OrderName = "fcfs",
    processors: int | None = None,
    checked: bool = False,
    progress: Callable[[int], None] | None = None,
    **options: Unpack[SimulateKeywords],
) -> Simulation:
    r"""Simulate a log or a workload of nodes under a policy.

    Args:
        workload: what ``load_swf`` or ``load_workload`` returns, or a file of either.
        policy: a name (docs/policies.md), a class with ``step`` (``Policy``), or ``module:Class``.
        order: of the waiting queue: ``fcfs``, ``sjf``, … ; nodes have ``fcfs`` and ``multifactor``.
        processors: size of a log's machine, where its header is wrong or missing.
        checked: check every start of a log's run; runs on nodes and of your own policies always are.
        progress: called from time to time with the number of jobs that are done.
        options: what the policy reads, with the names of ``aucsched simulate --help`` and underscores
            (seconds end in ``_s``); one it would ignore is refused.

    Raises:
        InputError: the file cannot be read, or holds neither.
        OptionError: no such policy or option, or one that would be ignored.
        PolicyError: a policy of your own raised.
        AwardError: it broke a rule.

    Examples:
        >>> import aucsched
        >>> rows = "1 0 -1 10 3 -1 -1 3 10\n2 1 -1 10 2 -1 -1 2 10\n3 2 -1 5 1 -1 -1 1 5\n"
        >>> log = aucsched.parse_swf(("; MaxProcs: 4\n" + rows).encode())
        >>> [simulate(log, policy).columns["start_s"] for policy in ("fcfs", "easy")]
        [[0.0, 10.0, 10.0], [0.0, 10.0, 2.0]]
    """
    given = checked_options(options, SimulateKeywords, "simulate")
    processors = of_type("processors", processors, int | None)
    order = of_type("order", order, OrderName)
    named = name_of(of_type("policy", policy, str | Factory))
    played, name = _loaded(workload)
    if isinstance(played, ClusterWorkload):
        if processors is not None or checked:
            raise OptionError("processors and checked are for logs; this workload has nodes of its own")
        return _on_nodes(played, name or played.name, named, {"order": order, **given}, progress)
    choice, settings = _choice(named, order, given)
    weights = given.get("queue_weights")
    queues = weights_by_queue(weights) if isinstance(weights, str) else weights
    jobs = workload_from_swf(played, processors=processors, queue_weights=queues)
    result = play_log(jobs, named, order=order, options=choice, checked=checked, progress=progress)
    return Simulation(result=result, settings=settings, name=name)


def _loaded(workload: Source) -> tuple[SwfLog | ClusterWorkload, str]:
    if isinstance(workload, (SwfLog, ClusterWorkload)):
        return workload, ""
    if not isinstance(workload, (str, Path)):
        raise OptionError(f"workload: {shown(workload)} is neither a log, a workload of nodes nor a file")

    def parse(content: bytes) -> SwfLog | ClusterWorkload:
        return parse_workload(content) if content.lstrip()[:1] == b"{" else parse_swf(content)

    return read_document(workload, parse), Path(workload).name


def _choice(policy: str, order: str, given: Mapping[str, Any]) -> tuple[PolicyOptions, dict[str, Any]]:
    """Return the options of a policy over a log, and those of them that this run reads."""
    members = {name: value for name, value in given.items() if name != "queue_weights"}
    known = {entry.name for entry in fields(PolicyOptions)}
    for name in members:
        if name not in known:
            raise OptionError(f"{name}: a log's policies have no such option")
    choice = PolicyOptions(**members)
    for name in members:
        is_of_order = name in {"multifactor", "flexible"}
        read = order == name if is_of_order else is_read(name, policy, choice.candidates)
        if not read:
            raise OptionError(f"{name}: policy {policy} with order {order} does not read it")
    if "queue_weights" in given and order not in ("weight", "smith", "flexible"):
        raise OptionError("queue_weights: order weight, smith or flexible reads it")
    settings = {name: getattr(choice, name) for name in READ_BY if is_read(name, policy, choice.candidates)}
    if "advance" in settings:
        settings["advance"] = [one.settings() for one in choice.advance]
        settings["start_rule"] = [rule.text for rule in choice.start_rule]
    if "queue" in settings:
        settings["queue"] = [one.text for one in choice.queue]
    if order == "multifactor":
        settings["multifactor"] = asdict(choice.multifactor)
    if order == "flexible":
        settings["flexible"] = choice.flexible.settings()
    return choice, settings


def _on_nodes(
    workload: ClusterWorkload,
    name: str,
    policy: str,
    given: Mapping[str, Any],
    progress: Callable[[int], None] | None,
) -> Simulation:
    known = {entry.name for entry in fields(NodeOptions)}
    for option in given:
        if option not in known:
            raise OptionError(f"{option}: a machine of nodes has no such option")
    chosen = NodeOptions(policy=policy, **given)
    return Simulation(result=play(workload, chosen, progress), settings=chosen.settings(), name=name)
