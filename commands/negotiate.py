"""``aucsched negotiate``: both schedulers on a workload, and the options of each party alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from ..cluster.errors import OptionError, errors_in, shown_name
from ..cluster.option_fields import Option, options_in, refuse_given, taken_from
from ..cluster.option_table import NEGOTIATE, read_by
from ..formats.writing import write_text
from ..simulation.negotiated.negotiation_options import (
    THESIS,
    BatchOptions,
    NegotiationOptions,
    RuntimeOptions,
    SharedOptions,
)
from .built_options import (
    INPUT,
    INPUT_FILE,
    SectionCommand,
    WholeRange,
    click_option,
    in_section,
    record_options,
)
from .outputs import format_option, note, output_option, progress_over, write_report

if TYPE_CHECKING:
    from ..negotiation.job_records import JobReport
    from ..simulation.negotiated.negotiated_report import Negotiated
    from ..simulation.negotiated.plays import Changeability, Play

#: The machine of the thesis's experiment.
_ESP_NODES = 16
#: Options that a result's settings name where they were given.
_NAMED = ("preset", "malleable", "moldable", "order", "speedup", "arrivals")


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


def _preset(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:  # noqa: ARG001
    """Let a preset's values be the defaults of the other options, which are read after it."""
    if value is not None:
        context.default_map = {**(context.default_map or {}), **THESIS}
    return value


def _decision(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:  # noqa: ARG001
    """Let a preset say nothing about the third of the jobs that another decision does not want."""
    if context.params.get("preset") and value != THESIS["decision"] and context.default_map:
        context.default_map.pop("third_of", None)
    return value


@dataclass(kw_only=True)
class PlayOptions:
    """Which workload is negotiated, and how its jobs change."""

    preset: Option[Literal["thesis"] | None] = Option(
        "DN-DBES as in chapter 5 of the thesis; options given take precedence (docs/negotiation.md)."
    )
    nodes: Option[int | None] = Option(
        "Number of nodes; further nodes are copies of a file's.",
        default="16 for esp, the nodes of a file",
        low=1,
        high=100_000,
    )
    malleable: Option[str | None] = Option(
        "Share of the jobs that may grow and shrink: 50, 50% or 0.5.", is_text=True
    )
    moldable: Option[bool] = Option(
        "Jobs of that share choose their size at their start only.", default=False
    )
    speedup: Option[str | None] = Option(
        "Speedup model: linear, amdahl:F, downey:A:SIGMA, table:N=S,…", default="linear", unit="MODEL"
    )
    arrivals: Option[Literal["esp", "at-once"] | None] = Option(
        "Arrivals of esp's jobs.", default="50 at once, then one every 30 s"
    )
    order: Option[int | None] = Option(
        "Seed of esp's order and of the choice of malleable jobs.", default=0, low=0, spelling="seed"
    )


@dataclass(kw_only=True)
class NegotiationFiles:
    """The files that a negotiation can write."""

    trace: Option[Path | None] = Option(
        "Write every message: .jsonl can be replayed, any other name is one readable line each."
    )
    mermaid: Option[Path | None] = Option("Write the first messages as a Mermaid sequence diagram.")
    mermaid_messages: Option[int | None] = Option("Number of messages in the diagram.", default=60, low=1)
    jobs_out: Option[Path | None] = Option("CSV with one row for each job.")
    gantt: Option[Path | None] = Option("Chart of the jobs that grow and shrink (.png, .pdf, .svg).")


#: What ``result_options`` sets.
RESULT_OPTIONS = ("form", "output", *options_in(NegotiationFiles))
#: What click takes of options above what their fields say.
_MORE: dict[str, dict[str, Any]] = {
    "preset": {"is_eager": True, "callback": _preset},
    "malleable": {"type": Share()},
}


play_options = in_section("Workload", record_options(SharedOptions, PlayOptions, more=_MORE))
batch_options = in_section(
    "Batch scheduler",
    record_options(BatchOptions, more={"decision": {"callback": _decision}}),
    *(click_option(one, NEGOTIATE, before="Mapper auction, of each Map. ") for one in read_by(NEGOTIATE)),
)
runtime_options = in_section("Runtime scheduler", record_options(RuntimeOptions))
result_options = in_section("Output", format_option, output_option, record_options(NegotiationFiles))


def play_from(workload: str, options: dict[str, Any]) -> Play:
    """Return what the options play: esp, or a workload file (``-`` reads standard input).

    Raises:
        InputError: the file cannot be played.
        OptionError: an option contradicts it, or would be ignored.
    """
    from ..simulation.negotiated.plays import Changeability, esp_play, play_of

    mix = _mix(options)
    if workload == "esp":
        return esp_play(
            options["nodes"] or _ESP_NODES,
            mix or Changeability(),
            order=options["order"] or 0,
            arrivals=options["arrivals"] or "esp",
            with_z=options["urgent"] is not None,
        )
    if options["arrivals"] is not None:
        raise OptionError("--arrivals is of esp: a workload file says when its jobs come")
    if options["order"] is not None and mix is None:
        raise OptionError("--seed needs --malleable with a workload file")
    from ..formats.native.cluster_file import load_workload

    with errors_in(workload):
        play = play_of(load_workload(workload), mix, nodes=options["nodes"], order=options["order"] or 0)
    play = play if play.name else replace(play, name=shown_name(workload))
    if options["urgent"] is not None and not any(arrival.urgent for arrival in play.arrivals):
        raise OptionError("--urgent: no job of the workload has the qos urgent")
    return play


def _mix(options: dict[str, Any]) -> Changeability | None:
    from ..cluster.jobs import JobKind
    from ..negotiation.speedup import LINEAR, curve
    from ..simulation.negotiated.plays import Changeability

    if options["malleable"] is None:
        refuse_given(options, ("moldable", "speedup"), "needs --malleable: the share of the jobs")
        return None
    speedup = options["speedup"] or LINEAR
    curve(speedup)  # which raises where it names no model
    kind = JobKind.MOLDABLE if options["moldable"] else JobKind.MALLEABLE
    return Changeability(share=options["malleable"], kind=kind, speedup=speedup)


def check_result_options(options: dict[str, Any]) -> None:
    """Refuse options of the result that cannot be served, before anything runs."""
    if options["mermaid_messages"] is not None and options["mermaid"] is None:
        raise OptionError("--mermaid-messages needs --mermaid")


def write_result(result: Negotiated, options: dict[str, Any]) -> None:
    """Write the files that the options name, then the metrics."""
    from ..reports.gantt import draw_malleable

    _write_messages(result, options)
    if options["gantt"] is not None:
        draw_malleable(result, options["gantt"])
    settings = {name: options[name] for name in _NAMED if options[name] not in (None, False)}
    write_report(replace(result, settings=settings), result.play.name, options)


def _write_messages(result: Negotiated, options: dict[str, Any]) -> None:
    from ..simulation.negotiated.trace import mermaid, trace_json, trace_text

    if options["trace"] is not None:
        is_json = options["trace"].suffix == ".jsonl"
        write_text(options["trace"], trace_json(result) if is_json else trace_text(result))
    if options["mermaid"] is not None:
        write_text(options["mermaid"], mermaid(result.sent, options["mermaid_messages"] or 60))


def known_runs(options: dict[str, Any]) -> dict[str, dict[int, tuple[int, float]]]:
    """Return what the history file knows, nothing without one."""
    from ..simulation.negotiated.negotiated_run import load_history

    return {} if options["history"] is None else load_history(options["history"])


def keep_runs(play: Play, done: Mapping[str, JobReport], options: dict[str, Any]) -> None:
    """Add a run's jobs to the history file; say where none of them has a name."""
    from ..simulation.negotiated.negotiated_run import add_to_history, runs_of

    if options["history"] is None:
        return
    runs = runs_of(play, done)
    if not runs:
        note("no job of the workload has a name: the history learns nothing")
    add_to_history(options["history"], runs)


@click.command(cls=SectionCommand)
@click.argument("workload", required=False, type=INPUT)
@play_options
@batch_options
@runtime_options
@click.option(
    "--runtimes",
    type=WholeRange(1, 1000),
    default=1,
    show_default=True,
    help="Number of runtime schedulers that share the nodes.",
)
@result_options
@click.option(
    "--replay",
    type=INPUT_FILE,
    help="Replay a .jsonl trace instead of WORKLOAD; fail where it differs.",
)
def negotiate(workload: str | None, **options: Any) -> None:
    """Let the batch scheduler and the runtime scheduler negotiate.

    WORKLOAD is esp (the thesis's 228 jobs), or a workload file (- reads standard input). The batch
    scheduler has the queue; the runtime scheduler has the nodes and the running jobs. An offer
    names idle nodes. A Map says which queued jobs would start on which of them. If the batch
    scheduler rejects an offer, the runtime scheduler shrinks or grows running jobs (a
    transformation) and offers again. The messages up to the starts are a transaction.
    """
    check_result_options(options)
    if options["replay"] is not None:
        from ..formats.reading import read_document
        from ..simulation.negotiated.trace import replayed

        only_option("replay", "it runs a trace", RESULT_OPTIONS, (ParameterSource.DEFAULT_MAP,))
        result = read_document(options["replay"], replayed)
    elif workload is None:
        raise click.UsageError("Missing argument 'WORKLOAD'.")
    else:
        result = _run(workload, options)
    write_result(result, options)


def only_option(
    name: str, why: str, beside: Collection[str] = (), passed: Collection[ParameterSource] = ()
) -> None:
    """Refuse what is given with an option that stands for all but some names and some sources.

    Raises:
        OptionError: something is.
    """
    context = click.get_current_context()
    for one in context.command.params:
        source = context.get_parameter_source(one.name or "")
        if one.name not in (name, *beside) and source not in (None, ParameterSource.DEFAULT, *passed):
            shown = one.opts[0] if isinstance(one, click.Option) else "WORKLOAD"
            raise OptionError(f"--{name} cannot be combined with {shown}: {why}")


def _run(workload: str, options: dict[str, Any]) -> Negotiated:
    from ..simulation.negotiated.negotiated_run import StalledError, batch_settings, runtime_settings
    from ..simulation.negotiated.negotiated_run import negotiate as run

    play = play_from(workload, options)
    with errors_in(workload):
        play = replace(play, runtimes=options["runtimes"])
    chosen = taken_from(NegotiationOptions, options)
    batch, runtime = batch_settings(play, chosen), runtime_settings(chosen)
    try:
        with progress_over(len(play.arrivals)) as progress:
            result = run(play, batch, runtime, progress=progress, known=known_runs(options))
    except StalledError as stalled:
        # Its messages say why.
        _write_messages(stalled.came, options)
        if options["trace"] or options["mermaid"]:
            note("the messages until it stalled are written, and no other file")
        raise
    keep_runs(play, result.done, options)
    return result
