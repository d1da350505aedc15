"""A sweep's kinds of input: a snapshot (each run is an auction), a log or workload (a simulation).

The content of the file tells which.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ..api.simulations import chosen_on_log, parsed
from ..auction.options import AUCTIONS, MODELS, OF_BIDS, StepOptions, options_with_preset, unread_by_greedy
from ..auction.step import check_queue_promise, run_step
from ..cluster.errors import OptionError
from ..cluster.option_fields import options_in, taken_from
from ..cluster.option_table import (
    SWEEP,
    AuctionOptions,
    PresetOption,
    StepKeywords,
    ValueOptions,
    read_by,
)
from ..cluster.promises import BACKFILL
from ..cluster.schedule import Schedule, document_of
from ..cluster.snapshot import Snapshot
from ..cluster.value_types import shortest
from ..cluster.workload import ClusterWorkload
from ..formats.native.cluster_file import parse_snapshot, parse_workload
from ..formats.notes import Notes
from ..formats.reading import unpacked
from ..formats.swf import SwfField, SwfLog, parse_swf
from ..negotiation.batch.mapping import BatchSettings
from ..negotiation.runtime.settings import RuntimeSettings
from ..simulation.log_columns import Requests, describe_dropped, kept_rows, machine_size, workload_from_swf
from ..simulation.logs.policies import make_policy, play_log
from ..simulation.negotiated.negotiated_report import negotiated_metrics
from ..simulation.negotiated.negotiated_run import batch_settings, negotiate, runtime_settings
from ..simulation.negotiated.negotiation_options import SWEPT, NegotiationOptions
from ..simulation.negotiated.plays import Play, play_of
from ..simulation.nodes.node_policies import READ_BY as READ_BY_NODES
from ..simulation.nodes.node_policies import UNSAID, NodeOptions, play, step_options
from ..simulation.nodes.node_result import unread_members
from ..simulation.policy_names import policy_with_parameters, with_parameters
from ..simulation.result import Simulation
from ..simulation.simulate_options import (
    READ_ON_LOGS,
    RENAMED,
    LogRecord,
    NodeKeywords,
    PassOptions,
    PolicyOptions,
    PriceOptions,
    current_name,
    is_read,
)
from ..slurm.answers.topology_any import laid_on
from .axes import AXES, Row, Value

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
        axes: names of the options it reads; others are refused.
        uses_seed: whether runs with these options differ by their seed.
        load: makes the file's content what a run takes; raises InputError.
        resolve: from one combination of options, its seed among them, to the columns that hold all
            options of the run; raises OptionError where they cannot go together, InputError where
            the input lacks what they need.
        reads: whether a run with these options reads an axis; if policies, models or strategies
            are swept, an axis is for those that read it; others run once for all its values.
        run: one run over the loaded input with resolved options; returns the columns of its result.
        left_out: what of the input no run with one of these options looks at, a text each.
    """

    name: str
    title: str
    axes: tuple[str, ...]
    uses_seed: Callable[[Mapping[str, Value]], bool]
    load: Callable[[bytes], Any]
    resolve: Callable[[Any, Mapping[str, Value]], Row]
    run: Callable[[Any, Row], Row]
    reads: Callable[[str, Mapping[str, Value]], bool] = lambda _, __: True
    left_out: Callable[[Any, Sequence[Row]], Iterable[str]] = lambda _, __: ()


#: Columns that are no options of a step.
_BESIDE = frozenset({"preset", "repeat", "topology"})
#: Options of a step that its sweep varies: repetitions have seeds of their own.
_OF_STEP = tuple(one.name for one in read_by(SWEEP) if one.name != "seed")


def _typed(options: Mapping[str, Value], record: type) -> dict[str, Any]:
    """Return a record's options in its types: a switch "on" is true; texts keep its defaults."""
    known = {name: one for name, one in options_in(record).items() if not one.is_text}
    given = {name: value for name, value in options.items() if name in known and value is not None}
    return given | {name: given[name] == "on" for name in given if known[name].is_switch}


def _as_columns(values: Mapping[str, Any], record: type) -> Row:
    """Return a record's values as columns have them: switches are on or off."""
    known = options_in(record)
    return {
        name: ("on" if value else "off") if known[name].is_switch else value for name, value in values.items()
    }


def _resolve_step(snapshot: Snapshot, options: Mapping[str, Value]) -> Row:
    """Return all options of the step, defaults included."""
    if "time_limit_s" in options and "work_limit" in options:
        raise OptionError(
            "--time-limit and --work-limit: a run that counts its steps has no clock; give one of them"
        )
    step = options_with_preset(_typed(options, StepKeywords))
    check_queue_promise(step)
    on_network(snapshot, options)
    resolved = step.resolved()
    chosen = _as_columns({name: resolved[name] for name in _OF_STEP if name in resolved}, StepOptions)
    # By default a step keeps what the snapshot's jobs were promised, even if it promises none.
    named = {name: options.get(name) for name in ("preset", "topology")}
    promise = BACKFILL if step.backfills else step.promise
    return {**named, **chosen, "promise": promise, "repeat": options["repeat"], "seed": step.seed}


def _run_step(snapshot: Snapshot, options: Row) -> Row:
    given = {name: value for name, value in options.items() if name not in _BESIDE}
    return _columns(run_step(on_network(snapshot, options), StepOptions(**_typed(given, StepOptions))))


def _columns(result: Schedule) -> Row:
    """Return a schedule's figures, named as in its file."""
    objective, seconds = result.objective, result.seconds
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
        **document_of(result.sizes),
        "seconds.bids": seconds.bids,
        "seconds.build": seconds.build,
        "seconds.solve": seconds.solve,
        "seconds.step": seconds.total,
    }


def _is_unread(name: str, point: Mapping[str, Value]) -> bool:
    """Return whether a point's greedy step ignores an axis."""
    return name in unread_by_greedy(point.get("strategy"), balance=point.get("balance") == "on")


def _reads_on_snapshot(name: str, point: Mapping[str, Value]) -> bool:
    """Return whether a step's model and strategy read an axis."""
    has_bids = point.get("model") in (None, *AUCTIONS)
    return not _is_unread(name, point) and (name not in OF_BIDS or has_bids)


SNAPSHOT = RunKind(
    name="snapshot",
    title="a snapshot",
    axes=(*_OF_STEP, "topology"),
    uses_seed=lambda _: True,
    load=lambda content: parse_snapshot(unpacked(content)),
    resolve=_resolve_step,
    run=_run_step,
    reads=_reads_on_snapshot,
)


_NO_JOBS = Requests(processors=1, submit=(), size=(), estimate=(), user=(), weight=())


def _chosen_on_log(options: Mapping[str, Value]) -> tuple[str, str, PolicyOptions, dict[str, Any]]:
    """Return the policy, the order, their options, and those of them that a run reads."""
    policy, own = policy_with_parameters(current_name(str(options.get("policy", "easy"))))
    order = str(options.get("order", "fcfs"))
    given = _typed(options, PolicyOptions) | parsed(own)
    return (policy, order, *chosen_on_log(policy, order, given))


def _resolve_log(log: SwfLog, options: Mapping[str, Value]) -> Row:
    """Return all options of the simulation, defaults included."""
    with_parameters(options, str(options.get("policy", "easy")))
    policy, order, choice, settings = _chosen_on_log(options)
    make_policy(policy, _NO_JOBS, order=order, options=choice)
    processors = options.get("processors")
    name, colon, rest = str(options.get("policy", policy)).partition(":")
    return {
        "policy": f"{RENAMED.get(name, name)}{colon}{rest}",
        "order": order,
        **{name: _text(value) for name, value in settings.items()},
        "processors": machine_size(log, None if processors is None else int(processors)),
        "repeat": options["repeat"],
    }


def _text(value: Any) -> Value:
    """Return a setting as it is given on the command line."""
    if isinstance(value, Mapping):
        return ",".join(f"{name}={shortest(number)}" for name, number in value.items())
    if isinstance(value, (tuple, list)):
        return ",".join(str(shortest(part) if isinstance(part, float) else part) for part in value)
    plain: Value = value
    return plain


def _run_log(log: SwfLog, options: Row) -> Row:
    policy, order, choice, _ = _chosen_on_log(options)
    jobs = workload_from_swf(log, processors=int(str(options["processors"])))
    result = play_log(jobs, policy, order=order, options=choice)
    return _figures_of(result, {"dropped": sum(jobs.dropped.values())})


def _dropped(log: SwfLog, runs: Sequence[Row]) -> Iterator[str]:
    """Yield how many rows of a log are dropped, and why, once for each size of the machine."""
    for processors in dict.fromkeys(int(str(options["processors"])) for options in runs):
        _, dropped = kept_rows(log, processors)
        if any(dropped.values()):
            yield describe_dropped(dropped, len(log.column(SwfField.JOB)))


def _figures_of(result: Simulation, counted: Row) -> Row:
    """Return a simulation's figures and other counts; shares by level have a column each."""
    row: Row = {"status": "done", "jobs": len(result.started), "never_started": len(result.never_started)}
    row |= counted
    for name, value in result.metrics.items():
        if isinstance(value, Mapping):
            row |= {f"{name}.{level}": float(share) for level, share in value.items()}
        # What needs nodes is null for a machine that counts, in every row: no columns.
        elif value is not None:
            row[name] = float(value)
    return row


def _policy_of(options: Mapping[str, Value]) -> str:
    """Return the policy's name, without what it carries."""
    return policy_with_parameters(str(options.get("policy", "easy")))[0]


TRACE = RunKind(
    name="trace",
    title="an SWF log",
    axes=(
        *("policy", "order", "processors"),
        *(name for name, one in options_in(LogRecord).items() if one.is_swept),
        *options_in(ValueOptions),
    ),
    uses_seed=lambda _: False,
    load=lambda content: parse_swf(unpacked(content)),
    resolve=_resolve_log,
    run=_run_log,
    reads=lambda name, point: name not in READ_ON_LOGS or is_read(name, _policy_of(point)),
    left_out=_dropped,
)


#: The policy's name: both schedulers, each with its settings.
NEGOTIATE = "negotiate"
#: Axes of the command that other policies have too.
_ALSO = ("strategy", "work_limit")


def _reads_negotiated(name: str) -> bool:
    """Return whether the policy reads an axis."""
    return name in SWEPT or name in _ALSO or name in {"topology", "policy"}


def _resolve_negotiated(workload: ClusterWorkload, options: Mapping[str, Value]) -> Row:
    """Return all options of a run, defaults included.

    Raises:
        InputError: the workload cannot be negotiated.
        OptionError: an option is none of the policy's, or cannot be.
    """
    for name in options:
        if name != "repeat" and not _reads_negotiated(name):
            raise OptionError(f"{AXES[name].option}: policy {NEGOTIATE} does not read it")
    for name, one in SWEPT.items():
        if one.choices:
            one.check(options.get(name, one.default), f"{one.flag}:")
    _negotiation_settings(play_of(workload, None), options)
    row: Row = {"policy": NEGOTIATE, "repeat": options["repeat"]}
    chosen = taken_from(NegotiationOptions, options)
    row |= {name: getattr(chosen, name) for name in (*SWEPT, *_ALSO)}
    return row | {"topology": options.get("topology")}


def _negotiation_settings(play: Play, options: Mapping[str, Value]) -> tuple[BatchSettings, RuntimeSettings]:
    chosen = taken_from(NegotiationOptions, options)
    return batch_settings(play, chosen), runtime_settings(chosen)


#: Options of a simulation that take lists, under their names there.
_NODE_AXES = (
    *("policy", "order"),
    *options_in(PassOptions, PriceOptions),
    *(name for name in options_in(AuctionOptions, PresetOption) if name != "seed"),
)


def _resolve_nodes(workload: ClusterWorkload, options: Mapping[str, Value]) -> Row:
    """Return all options of the simulation, defaults included."""
    if options.get("policy") == NEGOTIATE:
        return _resolve_negotiated(on_network(workload, options), options)
    if lacking := [AXES[name].option for name in SWEPT if name in options]:
        raise OptionError(f"{lacking[0]} needs --policy {NEGOTIATE}")
    with_parameters(options, str(options.get("policy", "easy")))
    chosen = _node_options(options)
    row: Row = {"policy": chosen.policy, "topology": None, **options, "order": chosen.order}
    on_network(workload, options)
    plain = {name: UNSAID[name] for name in ("selection", "reserve")}
    names = (name for name in (*_NODE_AXES[2:], "seed") if _reads(name, row))
    values = {name: getattr(chosen, name) or plain.get(name) for name in names}
    if chosen.policy in MODELS:
        resolved = step_options(chosen).resolved()
        values |= {name: value for name, value in resolved.items() if name in values}
    return row | _as_columns(values | chosen.settings(), NodeOptions)


def _node_options(options: Mapping[str, Value]) -> NodeOptions:
    policy, own = policy_with_parameters(str(options.get("policy", "easy")))
    order = str(options.get("order", "fcfs"))
    return NodeOptions(policy=policy, order=order, **(_typed(options, NodeKeywords) | own))


def _run_nodes(workload: ClusterWorkload, options: Row) -> Row:
    workload = on_network(workload, options)
    if options["policy"] == NEGOTIATE:
        negotiation = play_of(workload, None)
        came = negotiate(negotiation, *_negotiation_settings(negotiation, options))
        metrics = negotiated_metrics(came)
        columns = {name: float(value) for name, value in metrics.items() if value is not None}
        return {"status": "done", "jobs": len(came.done), **columns}
    result = play(workload, _node_options(options))
    return _figures_of(result, {"passes": result.record.passes})


def _reads(name: str, point: Mapping[str, Value]) -> bool:
    policy = _policy_of(point)
    if policy == NEGOTIATE:
        return _reads_negotiated(name)
    if name in SWEPT or _is_unread(name, point):
        return False
    return name not in READ_BY_NODES or policy in READ_BY_NODES[name]


WORKLOAD = RunKind(
    name="workload",
    title="a workload of nodes",
    axes=(*_NODE_AXES, "topology", *SWEPT),
    # Auctions take chances.
    uses_seed=lambda point: _policy_of(point) in MODELS,
    load=lambda content: parse_workload(unpacked(content)),
    resolve=_resolve_nodes,
    run=_run_nodes,
    reads=_reads,
    left_out=lambda workload, runs: (
        unread_members(workload) if any(_policy_of(options) != NEGOTIATE for options in runs) else ()
    ),
)
