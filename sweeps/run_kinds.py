"""Kinds of input of a sweep: a snapshot (each run is an auction), a log or a workload (a simulation).

The content of the file tells which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from click import Choice

from ..auction.options import MODELS, StepOptions, options_with_preset
from ..auction.step import run_step
from ..cluster.errors import OptionError
from ..cluster.schedule import Schedule
from ..cluster.snapshot import Snapshot
from ..cluster.workload import ClusterWorkload
from ..commands.log_options import check_policy_options, read_policy_options
from ..commands.negotiate import negotiate as command
from ..commands.negotiate_options import batch_settings, runtime_settings
from ..formats.native.read import parse_snapshot
from ..formats.native.workload_file import parse_workload
from ..formats.notes import Notes
from ..formats.swf import SwfLog, unpack_swf
from ..negotiation.batch.batch_state import BatchSettings
from ..negotiation.runtime.settings import RuntimeSettings
from ..simulation.log_columns import Requests, machine_size, workload_from_swf
from ..simulation.logs.log_reading import READ_BY as READ_BY_LOGS
from ..simulation.logs.log_reading import is_read
from ..simulation.logs.play import play_log
from ..simulation.logs.policies import PolicyOptions, make_policy
from ..simulation.metrics import metrics
from ..simulation.negotiated.negotiated_report import negotiated_metrics
from ..simulation.negotiated.negotiated_run import negotiate
from ..simulation.negotiated.plays import Play, play_of
from ..simulation.nodes.node_metrics import node_metrics
from ..simulation.nodes.node_policies import READ_BY as READ_BY_NODES
from ..simulation.nodes.node_policies import NodeOptions, play, step_options
from ..slurm.answers.topology_any import laid_on
from .axes import AXES, NEGOTIATED, Row, Value

T = TypeVar("T", Snapshot, ClusterWorkload)


def on_network(read: T, options: Mapping[str, Value]) -> T:
    """Return an input with its nodes on the network that a run names, if it names one.

    Raises:
        InputError: these are not its nodes.
    """
    source = options.get("topology")
    return read if source is None else laid_on(read, str(source), Notes())


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKind:
    """One sort of input, and what a run over it is.

    Attributes:
        name: ``snapshot``, …
        title: for people, with its article.
        axes: names of the options it reads; others are refused.
        uses_seed: whether runs with these options differ by their seed.
        load: makes the file's content what a run takes; raises InputError.
        resolve: from one combination of options, its seed among them, to the columns that hold all options of
            the run; raises OptionError where they cannot go together, InputError where the input lacks
            what they need.
        reads: whether a run with these options reads an axis; where several policies are swept, an axis is
            for those that do, and the others run once for all its values.
        run: one run over the loaded input with resolved options; returns the columns of its result.
    """

    name: str
    title: str
    axes: tuple[str, ...]
    uses_seed: Callable[[Mapping[str, Value]], bool]
    load: Callable[[bytes], Any]
    resolve: Callable[[Any, Mapping[str, Value]], Row]
    run: Callable[[Any, Row], Row]
    reads: Callable[[str, Mapping[str, Value]], bool] = lambda _, __: True

    def refuse_others(self, given: Mapping[str, Any]) -> None:
        """Raise OptionError when an axis is given that this kind would ignore."""
        for name in given:
            if name not in self.axes:
                raise OptionError(f"{AXES[name].option}: {self.title} has no use for it")


#: Axes that are on or off, and true or false in a step.
_STEP_SWITCHES = ("balance", "award_alone")
#: Columns that are the step's options under the same name.
_PLAIN = ("model", "weights", "objective", "preference_table", "bid_order", "window")


#: Columns that are no options of a step.
_BESIDE = frozenset({"preset", "repeat", "topology"})


def _resolve_step(snapshot: Snapshot, options: Mapping[str, Value]) -> Row:
    """Return all options of the step, defaults included."""
    if "time_limit_s" in options and "work_limit" in options:
        raise OptionError(
            "--time-limit and --work-limit: a run that counts its steps has no clock; give one of them"
        )
    explicit = _as_step_has({name: value for name, value in options.items() if name not in _BESIDE})
    preset = options.get("preset")
    step = options_with_preset(None if preset is None else str(preset), explicit)
    on_network(snapshot, options)
    return {
        "preset": preset,
        "strategy": step.chosen_strategy,
        **{name: "on" if getattr(step, name) else "off" for name in _STEP_SWITCHES},
        **{name: getattr(step, name) for name in _PLAIN},
        "on_timeout": step.chosen_on_timeout,
        "reserve": step.reservations,
        "max_bids": step.bids_in_all,
        "max_bids_per_job": step.bids_per_job,
        "time_limit_s": None if step.most_s is None else float(step.most_s),
        "work_limit": step.most_work,
        "topology": options.get("topology"),
        "repeat": options["repeat"],
        "seed": step.seed,
    }


def _run_step(snapshot: Snapshot, options: Row) -> Row:
    given = {name: value for name, value in options.items() if name not in _BESIDE and value is not None}
    return _columns(run_step(on_network(snapshot, options), StepOptions(**_as_step_has(given))))


def _as_step_has(options: Mapping[str, Value]) -> dict[str, Any]:
    """Return options as a step has them."""
    return dict(options) | {name: options[name] == "on" for name in _STEP_SWITCHES if name in options}


def _columns(result: Schedule) -> Row:
    """Return a schedule's figures, named as in its file."""
    objective, sizes, seconds = result.objective, result.sizes, result.seconds
    held = [use for award in result.started for use in award.nodes.values()]
    return {
        "status": result.status.value,
        "priority": float(objective.priority),
        "bound": objective.bound,
        "gap": objective.gap,
        "preference": objective.preference,
        "jobs_started": len(result.started),
        "jobs_pending": len(result.pending),
        "cores": sum(use.cores for use in held),
        "gres": sum(sum(use.gres.values()) for use in held),
        "window_awarded": result.window,
        "attempts": len(result.attempts),
        "nodesets": sizes.nodesets,
        "bids": sizes.bids,
        "variables": sizes.variables,
        "constraints": sizes.constraints,
        "nonzeros": sizes.nonzeros,
        "seconds.bids": seconds.bids,
        "seconds.build": seconds.build,
        "seconds.solve": seconds.solve,
        "seconds.step": seconds.total,
    }


SNAPSHOT = RunKind(
    name="snapshot",
    title="a snapshot",
    axes=(
        *(
            "preset",
            "model",
            "strategy",
            "balance",
            "award_alone",
            "weights",
            "objective",
            "on_timeout",
            "preference_table",
            "bid_order",
            "reserve",
        ),
        *("window", "max_bids", "max_bids_per_job", "time_limit_s", "work_limit", "topology"),
    ),
    uses_seed=lambda _: True,
    load=parse_snapshot,
    resolve=_resolve_step,
    run=_run_step,
)


_NO_JOBS = Requests(processors=1, submit=(), size=(), estimate=(), user=(), weight=())
_MEMBERS = tuple(entry.name for entry in fields(PolicyOptions))


def _resolve_log(log: SwfLog, options: Mapping[str, Value]) -> Row:
    """Return all options of the simulation, defaults included."""
    values = _as_simulate_reads(options)
    check_policy_options(values)
    choice, settings = read_policy_options(values)
    make_policy(values["policy"], _NO_JOBS, order=values["order"], options=choice)
    processors = options.get("processors")
    return {
        "policy": values["policy"],
        "order": values["order"],
        **{name: _text(value) for name, value in settings.items()},
        "processors": machine_size(log, None if processors is None else int(processors)),
        "repeat": options["repeat"],
    }


def _as_simulate_reads(options: Mapping[str, Value]) -> dict[str, Any]:
    """Return the options as ``aucsched simulate`` gets them: None where one is not given."""
    names = (*_MEMBERS, "queue_weights", "priorities", "user_priorities", "log_begins")
    given: dict[str, Any] = {name: options.get(name) for name in names}
    return {**given, "policy": options.get("policy", "easy"), "order": options.get("order", "fcfs")}


def _text(value: Any) -> Value:
    """Return a setting as it is given on the command line."""
    if isinstance(value, Mapping):
        return ",".join(f"{name}={number:g}" for name, number in value.items())
    if isinstance(value, (tuple, list)):
        return ",".join(f"{part:g}" if isinstance(part, float) else str(part) for part in value)
    plain: Value = value
    return plain


def _run_log(log: SwfLog, options: Row) -> Row:
    values = _as_simulate_reads(options)
    choice, _ = read_policy_options(values)
    jobs = workload_from_swf(log, processors=int(str(options["processors"])))
    result = play_log(jobs, values["policy"], order=values["order"], options=choice)
    return {
        "status": "done",
        "jobs": len(jobs),
        "dropped": sum(jobs.dropped.values()),
        # What needs nodes is null for a machine that counts, in every row: no columns.
        **{name: float(value) for name, value in metrics(result).items() if value is not None},
    }


TRACE = RunKind(
    name="trace",
    title="an SWF log",
    axes=(
        *("policy", "order", "processors", "reservations", "lookahead_depth", "slack", "expansion_factor"),
        *("adapt_every", "adapt_window", "speculation", "stops", "objective", "promise"),
    ),
    uses_seed=lambda _: False,
    load=unpack_swf,
    resolve=_resolve_log,
    run=_run_log,
    reads=lambda name, point: name not in READ_BY_LOGS or is_read(name, str(point.get("policy", "easy"))),
)


#: The policy's name: both schedulers, each with its settings.
NEGOTIATE = "negotiate"
#: Axes of the command that other policies have too.
_ALSO = ("strategy", "work_limit")
_NEGOTIATED = tuple(axis.name for axis in NEGOTIATED)
#: What the command's options are where nothing is said, by their names; the copy keeps its --help as it was.
_DEFAULTS: Mapping[str, Any] = copy(command).make_context(NEGOTIATE, ["esp"]).params
#: Axis of names -> what it may be.
_CHOICES: Mapping[str, Sequence[str]] = {
    option.name: option.type.choices
    for option in command.params
    if option.name in _NEGOTIATED and isinstance(option.type, Choice)
}


def _reads_negotiated(name: str) -> bool:
    """Return whether the policy reads an axis."""
    return name in _NEGOTIATED or name in _ALSO or name in {"topology", "policy"}


def _resolve_negotiated(workload: ClusterWorkload, options: Mapping[str, Value]) -> Row:
    """Return all options of a run, defaults included.

    Raises:
        InputError: the workload cannot be negotiated.
        OptionError: an option is none of the policy's, or cannot be.
    """
    for name in options:
        if name != "repeat" and not _reads_negotiated(name):
            raise OptionError(f"{AXES[name].option}: policy {NEGOTIATE} does not read it")
    for name, choices in _CHOICES.items():
        if name in options and options[name] not in choices:
            raise OptionError(f"{AXES[name].option}: {options[name]!r} is not one of {', '.join(choices)}")
    _negotiation_settings(play_of(workload, None), options)
    row: Row = {"policy": NEGOTIATE, "repeat": options["repeat"]}
    given = {"max_attempts": _DEFAULTS["attempts"], **_DEFAULTS, **options}
    row |= {name: given[name] for name in (*_NEGOTIATED, *_ALSO)}
    return row | {"topology": options.get("topology")}


def _run_negotiated(workload: ClusterWorkload, options: Row) -> Row:
    """Return what a negotiation comes to."""
    play = play_of(workload, None)
    result = negotiate(play, *_negotiation_settings(play, options))
    metrics = negotiated_metrics(result)
    columns = {name: float(value) for name, value in metrics.items() if value is not None}
    return {"status": "done", "jobs": len(result.done), **columns}


def _negotiation_settings(play: Play, options: Mapping[str, Value]) -> tuple[BatchSettings, RuntimeSettings]:
    given = {name: value for name, value in options.items() if value is not None}
    every = {**_DEFAULTS, **given, "attempts": given.get("max_attempts", _DEFAULTS["attempts"])}
    batch = batch_settings(play, every)
    runtime = runtime_settings(every)
    return batch, replace(runtime, max_attempts=batch.max_attempts, interval_s=batch.interval_s)


#: Options of a simulation that take lists, under their names there.
_NODE_AXES = (
    *("policy", "order", "preset", "interval_s", "selection", "weights", "objective", "on_timeout"),
    *("reserve", "window", "max_bids", "max_bids_per_job", "work_limit", "strategy", "balance", "promise"),
    *("preempt", "credits", "bid_order", "award_alone"),
)
#: Axes that are on or off, and true or false in a simulation.
_NODE_SWITCHES = ("balance", "preempt", "award_alone")
#: Columns that are a step's options under the same name.
_OF_A_STEP = ("weights", "objective", "window", "seed")


def _uses_seed(options: Mapping[str, Value]) -> bool:
    """Return whether a policy takes chances: the auctions do."""
    return str(options.get("policy")) in MODELS


def _resolve_nodes(workload: ClusterWorkload, options: Mapping[str, Value]) -> Row:
    """Return all options of the simulation, defaults included."""
    if options.get("policy") == NEGOTIATE:
        return _resolve_negotiated(on_network(workload, options), options)
    if lacking := [axis.option for axis in NEGOTIATED if axis.name in options]:
        raise OptionError(f"{lacking[0]} needs --policy {NEGOTIATE}")
    chosen = _node_options(options)
    row: Row = {"policy": chosen.policy, "order": chosen.order, "repeat": options["repeat"]}
    row |= chosen.settings() | {"topology": options.get("topology")}
    for name in ("preempt", "award_alone"):
        if (given := getattr(chosen, name)) is not None:
            row[name] = "on" if given else "off"
    on_network(workload, options)
    if _uses_seed(options):
        step = step_options(chosen)
        row |= {name: getattr(step, name) for name in _OF_A_STEP}
        row |= {"reserve": step.reservations, "work_limit": step.most_work}
        if not step.is_greedy:
            row["on_timeout"] = step.chosen_on_timeout
        if step.auction.has_bids:
            row["strategy"] = step.chosen_strategy
            row["balance"] = "on" if chosen.balance else "off"
            row |= {"max_bids": step.bids_in_all, "max_bids_per_job": step.bids_per_job}
    return row


def _node_options(options: Mapping[str, Value]) -> NodeOptions:
    given: dict[str, Any] = {
        name: options[name] for name in (*_NODE_AXES, "seed") if options.get(name) is not None
    }
    given |= {name: given[name] == "on" for name in _NODE_SWITCHES if name in given}
    return NodeOptions(**given)


def _run_nodes(workload: ClusterWorkload, options: Row) -> Row:
    if options["policy"] == NEGOTIATE:
        return _run_negotiated(on_network(workload, options), options)
    result = play(on_network(workload, options), _node_options(options))
    values = node_metrics(result)
    return {
        "status": "done",
        "jobs": len(result.played),
        "never_started": len(result.record.never),
        "passes": result.record.passes,
        **{name: value for name, value in _flat(values).items() if value is not None},
    }


def _flat(values: Mapping[str, Any]) -> Row:
    """Return metrics as columns: shares by level become one for each."""
    row: Row = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            row |= {f"{name}.{level}": float(share) for level, share in value.items()}
        else:
            row[name] = None if value is None else float(value)
    return row


def _reads(name: str, point: Mapping[str, Value]) -> bool:
    policy = str(point.get("policy", "easy"))
    if policy == NEGOTIATE:
        return _reads_negotiated(name)
    if name in {axis.name for axis in NEGOTIATED}:
        return False
    return name not in READ_BY_NODES or policy in READ_BY_NODES[name]


WORKLOAD = RunKind(
    name="workload",
    title="a workload of nodes",
    axes=(*_NODE_AXES, "topology", *(axis.name for axis in NEGOTIATED)),
    uses_seed=_uses_seed,
    load=parse_workload,
    resolve=_resolve_nodes,
    run=_run_nodes,
    reads=_reads,
)
