"""Options of ``negotiate``, ``ibsched`` and ``irtsched``: the workload, each party's settings, the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..cluster.errors import InputError, OptionError
from ..cluster.option_table import NEGOTIATE, read_by
from .built_options import click_option
from .outputs import OUTPUT, format_option, output_option, shown

if TYPE_CHECKING:
    from ..negotiation.batch.batch_state import BatchSettings
    from ..negotiation.batch.mapping import Engine
    from ..negotiation.job_records import JobReport
    from ..negotiation.runtime.settings import RuntimeSettings
    from ..simulation.negotiated.negotiated_run import Negotiated
    from ..simulation.negotiated.plays import Changeability, Play

#: The machine of the thesis's experiment.
_ESP_NODES = 16
#: Options that a result's settings name where they were given.
_NAMED = ("preset", "malleable", "moldable", "order", "speedup", "arrivals")
#: What ``result_options`` sets.
RESULT_OPTIONS = ("form", "output", "trace", "mermaid", "mermaid_messages", "jobs_out", "gantt")

Command = Callable[..., Any]


class Share(click.ParamType[float]):
    """A share of the jobs: percent (``50`` or ``50%``), or a fraction with a point (``0.5``)."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the share from 0 to 1."""
        text = str(value).strip()
        try:
            number = float(text.removesuffix("%"))
        except ValueError:
            self.fail(f"{text!r} is not a share such as 50, 50% or 0.5", param, ctx)
        is_fraction = "." in text and not text.endswith("%") and number <= 1
        share = number if is_fraction else number / 100
        if not 0 <= share <= 1:
            self.fail(f"{text} is not from 0 to 100 %", param, ctx)
        return share


class SpeedupModelText(click.ParamType[str]):
    """A speedup model's text."""

    name = "model"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text, once it is known to name a model."""
        from ..negotiation.speedup import curve

        try:
            curve(str(value))
        except InputError as error:
            self.fail(error.message, param, ctx)
        return str(value)


#: DN-DBES as in chapter 5 of the thesis: the values of ``--preset thesis``.
THESIS: dict[str, Any] = {
    "mapper": "greedy",
    "decision": "paper",
    "third_of": "queue",
    "attempts": 5,
    "steps": "printed",
    "shrink": "priority",
    "dependencies": "one",
    "no_last_backfill": True,
    "equipartition": "running",
    "reject_idle": "any",
}


def _preset(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:  # noqa: ARG001
    """Let a preset's values be the defaults of the other options, which are read after it."""
    if value is not None:
        context.default_map = {**(context.default_map or {}), **THESIS}
    return value


_PLAY = (
    click.option(
        "--preset",
        type=click.Choice(["thesis"]),
        is_eager=True,
        callback=_preset,
        help="DN-DBES as in chapter 5 of the thesis; options given take precedence (docs/negotiation.md).",
    ),
    click.option(
        "--nodes",
        type=click.IntRange(1, 100_000),
        help="Number of nodes; default: 16 for esp, the nodes of a file; further nodes are copies of those.",
    ),
    click.option(
        "--malleable", type=Share(), help="Share of the jobs that may grow and shrink: 50, 50% or 0.5."
    ),
    click.option(
        "--moldable", is_flag=True, help="Jobs of that share choose their size at their start only."
    ),
    click.option(
        "--speedup",
        type=SpeedupModelText(),
        help="Speedup model: linear (default), amdahl:F, downey:A:SIGMA, table:N=S,…",
    ),
    click.option(
        "--steps",
        type=click.Choice(["ceiling", "printed"]),
        default="ceiling",
        show_default=True,
        help="How attempts divide a job's range: rounded up, or as the thesis prints it (--preset thesis).",
    ),
    click.option(
        "--arrivals",
        type=click.Choice(["esp", "at-once"]),
        help="Arrivals of esp's jobs; default: 50 at once, then one every 30 s.",
    ),
    click.option(
        "--urgent",
        type=click.Choice(["shrink", "suspend", "kill"]),
        help="How urgent jobs get nodes (esp: adds both Z; a file: jobs of qos urgent, default suspend).",
    ),
    click.option(
        "--order",
        "--seed",
        "order",
        type=click.IntRange(0),
        help="Seed of esp's order and of the choice of malleable jobs; default 0.",
    ),
)

_BATCH = (
    click.option("--mapper", type=click.Choice(["greedy", "auction"]), default="auction", show_default=True),
    click.option(
        "--decision",
        type=click.Choice(["paper", "objective"]),
        default="paper",
        show_default=True,
        help="When the batch scheduler accepts an offer.",
    ),
    click.option(
        "--attempts",
        type=click.IntRange(1, 1000),
        default=5,
        show_default=True,
        help="Attempts of a transaction.",
    ),
    click.option(
        "--depth",
        type=click.IntRange(1),
        default=100,
        show_default=True,
        help="Unmapped jobs forwarded at most.",
    ),
    click.option(
        "--third-of",
        type=click.Choice(["forwarded", "queue"]),
        help="For decision paper: two thirds of which jobs; default forwarded.",
    ),
    click.option(
        "--interval",
        type=click.FloatRange(1),
        default=60.0,
        show_default=True,
        help="Seconds between periodic steps, at least 1.",
    ),
    click.option(
        "--patience",
        type=click.FloatRange(0),
        help="Mapper auction: seconds of wait after which no job may delay a waiting one; default 5400.",
    ),
    *(
        click_option(option, NEGOTIATE, before="Mapper auction, of each Map. ", ranges=True)
        for option in read_by(NEGOTIATE)
    ),
    click.option(
        "--history",
        type=click.Path(dir_okay=False, path_type=Path),
        help="SQLite file of what runs of each job's name took, by node count: expected ends follow it, and "
        "this run's are added.",
    ),
    click.option("--atomic", is_flag=True, help="Start each Map as a whole or not at all."),
)

_RUNTIME = (
    click.option(
        "--shrink",
        type=click.Choice(["priority", "even", "fair", "long", "short", "low_impact", "priced"]),
        default="priority",
        show_default=True,
        help="Which running jobs give nodes first: by priority (the thesis), or by a harvest policy.",
    ),
    click.option(
        "--dependencies",
        type=click.Choice(["all", "one"]),
        default="all",
        show_default=True,
        help="Which running jobs a waiting one depends on: all that end when it could start, or one of them.",
    ),
    click.option(
        "--no-last-backfill", is_flag=True, help="Leave out the last backfilling of DBES, as the thesis does."
    ),
    click.option(
        "--equipartition",
        type=click.Choice(["all", "running"]),
        default="all",
        show_default=True,
        help="Who shares idle nodes after a transformation: also jobs that start, or not (the thesis).",
    ),
    click.option(
        "--reject-idle",
        type=click.Choice(["useful", "any"]),
        default="useful",
        show_default=True,
        help="Reject a Map while nodes stay idle that a job could use, or while any do (the thesis).",
    ),
    click.option(
        "--parts",
        type=click.IntRange(1, 1024),
        default=1,
        show_default=True,
        help="Equal parts (sockets, cores) of a node in which the runtime scheduler gives it out: jobs that "
        "ask for less than a node share one, malleable ones grow and shrink by parts.",
    ),
    click.option(
        "--start-at-minimum", is_flag=True, help="Account new jobs at their minimum until a periodic step."
    ),
    click.option(
        "--transaction-seconds",
        type=click.FloatRange(0),
        default=0.0,
        help="Cost of a transaction, in seconds.",
    ),
)


_RESULT = (
    format_option,
    output_option,
    click.option(
        "--trace",
        type=OUTPUT,
        help="Write every message: .jsonl can be replayed, any other name is one readable line each.",
    ),
    click.option("--mermaid", type=OUTPUT, help="Write the first messages as a Mermaid sequence diagram."),
    click.option(
        "--mermaid-messages", type=click.IntRange(1), help="Number of messages in the diagram; default 60."
    ),
    click.option("--jobs-out", type=OUTPUT, help="CSV with one row for each job."),
    click.option("--gantt", type=OUTPUT, help="Chart of the jobs that grow and shrink (.png, .pdf, .svg)."),
)


def in_order(options: tuple[Callable[[Command], Command], ...]) -> Callable[[Command], Command]:
    """Return one decorator for several, shown by ``--help`` in this order."""
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


play_options = in_order(_PLAY)
batch_options = in_order(_BATCH)
runtime_options = in_order(_RUNTIME)
result_options = in_order(_RESULT)


def play_from(workload: str, options: dict[str, Any]) -> Play:
    """Return what the options play: esp, or a workload file (``-`` reads standard input).

    Raises:
        InputError: the file cannot be played.
        OptionError: an option contradicts it, or would be ignored.
    """
    from ..simulation.negotiated.plays import esp_play, play_of

    mix = _mix(options)
    if workload == "esp":
        return esp_play(
            options["nodes"] or _ESP_NODES,
            mix or _no_mix(),
            order=options["order"] or 0,
            arrivals=options["arrivals"] or "esp",
            with_z=options["urgent"] is not None,
        )
    if options["arrivals"] is not None:
        raise OptionError("--arrivals is of esp: a workload file says when its jobs come")
    if options["order"] is not None and mix is None:
        raise OptionError("--order needs --malleable with a workload file")
    from ..formats.native.workload_file import load_workload

    try:
        play = play_of(load_workload(workload), mix, nodes=options["nodes"], order=options["order"] or 0)
    except InputError as error:
        raise error.in_file(shown(workload)) from error
    play = play if play.name else replace(play, name=shown(workload))
    if options["urgent"] is not None and not any(arrival.urgent for arrival in play.arrivals):
        raise OptionError("--urgent: no job of the workload has the qos urgent")
    return play


def _no_mix() -> Changeability:
    from ..simulation.negotiated.plays import Changeability

    return Changeability()


def _mix(options: dict[str, Any]) -> Changeability | None:
    from ..cluster.jobs import JobKind
    from ..negotiation.speedup import LINEAR
    from ..simulation.negotiated.plays import Changeability

    if options["malleable"] is None:
        for name in ("moldable", "speedup"):
            if options[name]:
                raise OptionError(f"--{name} needs --malleable: of which share of the jobs")
        return None
    kind = JobKind.MOLDABLE if options["moldable"] else JobKind.MALLEABLE
    return Changeability(share=options["malleable"], kind=kind, speedup=options["speedup"] or LINEAR)


def batch_settings(play: Play, options: dict[str, Any]) -> BatchSettings:
    """Return the batch scheduler's choices.

    Raises:
        OptionError: an option would be ignored.
    """
    from ..negotiation.batch.batch_state import BatchSettings

    if options["third_of"] is not None and options["decision"] != "paper":
        raise OptionError("--third-of needs --decision paper")
    if options["patience"] is not None and options["mapper"] != "auction":
        raise OptionError("--patience needs --mapper auction")
    if options["mapper"] == "greedy" and any(arrival.job.max_switches for arrival in play.arrivals):
        raise OptionError("--mapper greedy counts nodes: for max_switches take --mapper auction")
    engine = _engine(options)
    patience = {} if options["patience"] is None else {"patience_s": options["patience"]}
    return BatchSettings(
        **patience,
        engine=engine,
        mapper=options["mapper"],
        decision=options["decision"],
        depth=options["depth"],
        third_of=options["third_of"] or "forwarded",
        max_attempts=options["attempts"],
        steps=options["steps"],
        interval_s=options["interval"],
        atomic=options["atomic"],
        ends_when_done=True,
        switches=play.switches,
    )


def _engine(options: dict[str, Any]) -> Engine:
    from ..negotiation.batch.mapping import Engine

    limits = {name: options[name] for name in ("work_limit", "time_limit_s")}
    given = [option.flag for option in read_by(NEGOTIATE) if options[option.name] is not None]
    if given and options["mapper"] != "auction":
        raise OptionError(f"{given[0]} needs --mapper auction")
    has_limit = any(value is not None for value in limits.values())
    return Engine(strategy=options["strategy"] or ("anytime" if has_limit else "greedy"), **limits)


def runtime_settings(options: dict[str, Any]) -> RuntimeSettings:
    """Return the runtime scheduler's choices; attempts and interval are the batch scheduler's to propose."""
    from ..negotiation.runtime.settings import RuntimeSettings

    return RuntimeSettings(
        dependencies=options["dependencies"],
        last_backfill=not options["no_last_backfill"],
        equipartition=options["equipartition"],
        reject_idle=options["reject_idle"],
        start_at_minimum=options["start_at_minimum"],
        transaction_s=options["transaction_seconds"],
        shrink=options["shrink"],
        steps=options["steps"],
        urgency=options["urgent"] or "suspend",
        parts=options["parts"],
    )


def check_result_options(options: dict[str, Any]) -> None:
    """Refuse options of the result that cannot be served, before anything runs."""
    from ..formats.drawing import check_drawing

    check_drawing("--gantt", options["gantt"])
    if options["mermaid_messages"] is not None and options["mermaid"] is None:
        raise OptionError("--mermaid-messages needs --mermaid")


def write_result(result: Negotiated, options: dict[str, Any]) -> None:
    """Write the files that the options name, then the metrics."""
    from ..formats.native.write import write_text
    from ..simulation.negotiated.negotiated_report import jobs_csv, negotiated_text, to_document, to_json
    from ..simulation.negotiated.negotiation_chart import draw_malleable
    from ..simulation.negotiated.trace import mermaid, trace_json, trace_text

    if options["trace"] is not None:
        is_json = options["trace"].suffix == ".jsonl"
        write_text(options["trace"], trace_json(result) if is_json else trace_text(result))
    if options["mermaid"] is not None:
        write_text(options["mermaid"], mermaid(result.sent, options["mermaid_messages"] or 60))
    if options["jobs_out"] is not None:
        write_text(options["jobs_out"], jobs_csv(result.play, result.done))
    if options["gantt"] is not None:
        draw_malleable(result, options["gantt"])
    settings = {name: options[name] for name in _NAMED if options[name] not in (None, False)}
    text = to_json(to_document(result, settings)) if options["form"] == "json" else negotiated_text(result)
    write_text(options["output"], text)


def known_runs(options: dict[str, Any]) -> dict[str, dict[int, tuple[int, float]]]:
    """Return what the history file knows, nothing without one."""
    from ..formats.run_history import load_history

    return {} if options["history"] is None else load_history(options["history"])


def keep_runs(play: Play, done: Mapping[str, JobReport], options: dict[str, Any]) -> None:
    """Add a run's jobs to the history file; say where none of them has a name."""
    from ..formats.run_history import add_to_history
    from ..simulation.negotiated.negotiated_run import runs_of
    from .outputs import note

    if options["history"] is None:
        return
    runs = runs_of(play, done)
    if not runs:
        note("no job of the workload has a name: the history learns nothing")
    add_to_history(options["history"], runs)
