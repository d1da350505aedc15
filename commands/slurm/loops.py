"""``aucsched slurm shadow``, ``report`` and ``run``: the loops, and what all beside Slurm share.

The shadow writes a log of what the auction would start while Slurm goes on as ever; the report sets
both side by side. ``run`` is the loop behind the gate.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...cluster.errors import AucschedError, InputError, OptionError, errors_in
from ...cluster.option_fields import Option, options_in
from ...cluster.promises import AUTO, BACKFILL, NONE, PLAN, check_promise
from ...cluster.text import one_line, plural, utc
from ...slurm.answers.slurm_files import SlurmFiles
from ...slurm.live.loop_options import GateOption, LoopOptions, Settings
from ..built_options import IN_PLACE, INPUT, FilePath, SectionCommand, filled_options
from ..outputs import (
    Output,
    auction_options,
    file_name,
    html_option,
    note,
    output_options,
    print_table,
    say,
    tell,
    top_option,
)
from ..snapshot import answer_options

if TYPE_CHECKING:
    from rich.console import Console

    from ...slurm.live.live_forecasts import LiveForecasts, Quantiles
    from ...slurm.live.loop import PassReport
    from ...slurm.live.loop_metrics import Metrics
    from ...slurm.live.passes import LivePass, Look
    from ...slurm.live.shadow_log import RotatedLog, ShadowPass
    from ...slurm.live.shadow_report import ShadowReport
    from ...slurm.live.ticker import Ticker

_MIB = 2**20
licence_option = filled_options(GateOption)


def _removed(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    """Refuse an option of version 0.1 that has no successor."""
    del context
    if value is not None:
        raise OptionError(f"{parameter.opts[0]}: removed in 0.2; scontrol makes every change of a job")


def no_rest_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse ``--rest`` and ``--rest-token``: changes by slurmrestd saved no time (decision 86)."""
    for flag in ("--rest", "--rest-token"):
        command = click.option(flag, hidden=True, expose_value=False, callback=_removed)(command)
    return command


def say_unknown_release() -> None:
    """Say that this Slurm is newer than any whose answers are known, where it is."""
    from ...slurm.answers.live import release_here

    release = release_here()
    if release is not None and release.is_newer:
        note(release.warning)


@contextmanager
def looping(name: str, options: LoopOptions) -> Iterator[tuple[Metrics, Ticker]]:
    """Give a loop's figures, served where ``--metrics`` says, and its passes, which signals end."""
    from ...slurm.live.loop_metrics import Metrics, served
    from ...slurm.live.ticker import Ticker

    figures = Metrics(loop=name)
    ticker = Ticker(interval_s=options.interval, passes=1 if options.once else options.passes)
    ticker.stop_on_signals()
    with served(figures, options.metrics) as where:
        if where:
            note(f"figures at {where}")
        yield figures, ticker


def log_of(path: Path | str, options: LoopOptions) -> RotatedLog:
    """Return a loop's log, opened."""
    from ...slurm.live.shadow_log import RotatedLog

    return RotatedLog(Path(path), most_bytes=int(options.rotate_mib * _MIB), keep=options.keep)


@click.command(cls=SectionCommand)
@click.option(
    "--log",
    "-o",
    type=FilePath(is_output=True, in_place=True, dir_okay=False, allow_dash=True),
    default="-",
    show_default=True,
    help="The log, a line of JSON for each pass; - prints it.",
)
@filled_options(LoopOptions)
@answer_options
@auction_options
def shadow(*, log: str, **options: Any) -> None:
    """Log what the auction would start; Slurm schedules as before.

    Each interval it takes a snapshot, runs the auction and writes a log line. Nothing is changed on
    the cluster. It needs no root: squeue, scontrol show and sinfo are all that is run. Answers that
    are given as files are read again in each pass.
    """
    from ...slurm.live.live_forecasts import LiveForecasts
    from ...slurm.live.passes import watch

    own = LoopOptions(**{name: options.pop(name) for name in options_in(LoopOptions)})
    files = SlurmFiles(**{name: options.pop(name) for name in options_in(SlurmFiles)})
    take = _taking(files, options)
    if files.jobs is None:
        say_unknown_release()

    def failed(error: InputError) -> None:
        """Say why a pass failed: the next one may not; where there is none, end the command."""
        if own.once:
            raise error
        say(f"aucsched: {error}")

    given = {name: str(value) for name, value in options.items() if value is not None}
    with ExitStack() as stack:
        figures, ticker = stack.enter_context(looping("shadow", own))
        watch(
            take,
            _writing(stack, log, own),
            ticker,
            figures,
            options=given,
            failed=failed,
            forecasts=partial(_forecast, LiveForecasts(), figures) if own.forecasts else None,
        )


def _taking(files: Any, options: dict[str, Any]) -> Callable[[], LivePass]:
    """Return what makes a pass; options that cannot be used are refused before the first."""
    from ...auction.options import options_with_preset
    from ...auction.step import check_queue_promise
    from ...slurm.answers.answer_record import Known
    from ...slurm.answers.live import AT_ONCE
    from ...slurm.live.passes import take_look, take_pass

    checked, known = options_with_preset(options), Known()
    check_queue_promise(checked)
    last: LivePass | None = None

    def taken() -> LivePass:
        nonlocal last
        last = take_pass(take_look(files, known=known, at_once=AT_ONCE), checked, last=last)
        return last

    return taken


def _writing(stack: ExitStack, log: str, options: LoopOptions) -> Callable[[ShadowPass], None]:
    from ...slurm.live.shadow_log import encode

    if log == "-":
        return lambda entry: click.echo(encode(entry), nl=False)
    opened = stack.enter_context(log_of(log, options))
    return lambda entry: opened.append(encode(entry))


_HOUR_S = 3600


@dataclass(kw_only=True)
class ReportOptions:
    """What a report counts, and what else it writes."""

    starved: Option[float] = Option(
        "A wait of so many hours or more is starvation.", default=24, low=0, includes_low=True, unit="HOURS"
    )
    workload: Option[Path | None] = Option(
        "Write the jobs as a workload file, for aucsched simulate under any policy."
    )


@click.command()
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=INPUT)
@filled_options(ReportOptions)
@html_option
@top_option
@output_options
def report(logs: tuple[str, ...], starved: float, workload: Path | None, out: Output) -> None:
    """Compare Slurm and the auction from a shadow's logs.

    The report has waits, slowdowns, use and levels of Slurm's starts and of the auction's offers,
    and who gains and who loses. LOG... are the shadow's logs, with the renamed ones, in any order.
    """
    from ...reports.run_pages import shadow_page
    from ...slurm.live.shadow_log import read_logs
    from ...slurm.live.shadow_report import ShadowReport

    entries, torn = read_logs(logs)
    made = ShadowReport(entries=entries, starved_s=starved * _HOUR_S, torn=torn)
    if torn:
        note(f"lines cut short and left out: {torn}")
    if workload is not None:
        from ...formats.native.cluster_file import save_workload
        from ...slurm.live.replay import workload_of

        with errors_in(logs[0]):
            played, notes = workload_of(entries)
        save_workload(played, workload)
        tell(notes.texts())
    out.write(
        made.to_dict,
        lambda console: _render(made, console, out.top),
        lambda: shadow_page(made, file_name(logs[0])),
    )


def _render(made: ShadowReport, console: Console, top: int | None) -> None:
    from ...slurm.live.shadow_report import CAVEATS

    document = made.to_dict()
    passes = f"{plural(document['passes'], 'pass')} from {utc(document['from'])} to {utc(document['to'])}"
    console.print(
        f"{passes}, {plural(len(made.jobs), 'job')}: "
        + ", ".join(f"{count} {verdict}" for verdict, count in document["verdicts"].items() if count)
    )
    print_table(console, "Slurm and the auction", document["figures"])
    for what, rows in made.groups.items():
        print_table(console, f"Who gains and who loses, by {what}", rows, top, "not compared")
    for rule in document["unread"]:
        console.print(f"not looked at: {rule}")
    for caveat in CAVEATS:
        console.print(caveat)


#: What slurm run promises under objective response where nothing is named (decision 0111).
RESPONSE_PROMISE = "15m"


@click.command(cls=SectionCommand)
@filled_options(
    Settings,
    log={"also": "-o", "type": IN_PLACE},
    lock={"type": IN_PLACE},
)
@no_rest_options
@auction_options
def run(**options: Any) -> int:
    """Start the jobs behind the gate on the auction's nodes, pass after pass.

    The command needs the rights of a Slurm administrator, or with --mark comment of an operator; it
    does not need root. The gate ends --gate-for seconds after the last pass, however the command
    ends: Slurm then starts the jobs itself. SIGTERM lets the command finish its pass and end.
    """
    from ...auction.options import options_with_preset
    from ...slurm.answers.live import AT_ONCE
    from ...slurm.live.actions import own_user

    own = {name: options.pop(name) for name in options_in(Settings)}
    promise, options = promised_options(options)
    if promise != NONE and own["mark"] != "admin-comment":
        raise OptionError(f"--promise {promise} needs --mark admin-comment: owners may write a Comment")
    host, user = socket.gethostname(), own_user()
    settings = Settings(**own, host=host, user=user, promise=promise, at_once=AT_ONCE)
    checked = options_with_preset(options)
    say_unknown_release()
    return (_shown if settings.dry_run else _until_told)(settings, checked)


def promised_options(options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return how the loop promises starts, and the options of each pass, which keeps the promises.

    With promises nothing is reserved unless it is asked for: nodes are kept for promised jobs.
    Objective ``response`` without promises would let jobs wait without bound.

    Raises:
        OptionError: the loop cannot promise so.
    """
    promise = options["promise"]
    if promise is None and options.get("objective") == "response":
        promise = RESPONSE_PROMISE
    if promise in (None, NONE, BACKFILL):
        return NONE, options
    if promise == AUTO:
        raise OptionError("--promise auto is for simulations: slurm run needs a time (15m) or plan")
    check_promise(promise)
    reserve = 0 if options["reserve"] is None else options["reserve"]
    return promise, {**options, "promise": PLAN, "reserve": reserve}


def _shown(settings: Settings, checked: Any) -> int:
    """Print what a pass would do."""
    from ...slurm.answers.live import ask_slurm
    from ...slurm.live.actions import shown_by
    from ...slurm.live.loop import Loop

    runner = shown_by(click.echo)
    # A pass that changes nothing keeps nothing.
    report = Loop(settings, checked, ask=ask_slurm, runner=runner, journal=lambda _: None).one_pass()
    _say(report)
    return 0 if report.outcome == "done" else 1


def _until_told(settings: Settings, checked: Any) -> int:
    """Run passes until a signal comes, or as many as asked for; the pass at hand is finished."""
    from ...slurm.answers.live import ask_slurm
    from ...slurm.live.actions import one_scontrol
    from ...slurm.live.live_forecasts import LiveForecasts
    from ...slurm.live.loop import Loop
    from ...slurm.live.loop import tell as tell_figures
    from ...slurm.live.passes import warm_up
    from ...slurm.live.ticker import only_one

    outcome, refused = "done", 0
    with ExitStack() as stack:
        stack.enter_context(only_one(settings.lock or _own_lock(settings)))
        journal = stack.enter_context(log_of(settings.log, settings)).write
        loop = Loop(settings, checked, ask=ask_slurm, runner=one_scontrol, journal=journal)
        figures, ticker = stack.enter_context(looping("run", settings))
        warm_up(checked)
        forecasts = LiveForecasts() if settings.forecasts else None
        for _ in ticker:
            report = loop.one_pass()
            if forecasts is not None and loop.looked is not None and report.outcome == "done":
                _forecast(forecasts, figures, loop.looked)
            tell_figures(figures, report)
            _say(report)
            while loop.remarks:
                note(loop.remarks.pop(0))
            outcome, refused = report.outcome, 0 if report.pinned else report.refused
    if settings.once and refused:
        say(f"aucsched: Slurm refused {plural(refused, 'change')} and accepted no pin")
        return 1
    return 0 if outcome in {"done", "standby"} else 1


def _forecast(forecasts: LiveForecasts, figures: Metrics, look: Look) -> Quantiles:
    """Forecast the starts of new jobs; an answer that forecasts cannot be made of ends no loop."""
    try:
        return forecasts.look(look.snapshot, look.started)
    except AucschedError as error:
        note(one_line(f"no forecasts: {error}"))
        return {}
    finally:
        forecasts.tell(figures)


def _own_lock(settings: Settings) -> Path:
    """Return the lock's file, which slurmctld's answer names; all but a single pass wait for it."""
    from ...slurm.answers.live import UnreachableError, ask_slurm
    from ...slurm.live.ticker import Stopping, default_lock

    while True:
        try:
            return default_lock(ask_slurm, settings.licence)
        except UnreachableError as error:
            if settings.once:
                raise
            say(f"asked again in {settings.interval:g} s: {error}")
        Stopping().wait(settings.interval)


def _say(report: PassReport) -> None:
    """Print a pass as a line on stderr."""
    if report.outcome == "standby":
        seconds = report.gate_end - report.at
        say(f"pass {report.number}: {report.leader} leads, its gate ends in {seconds:.0f} s")
        return
    if report.outcome != "done":
        say(f"pass {report.number}: broken off: {report.outcome}")
        return
    done = f"{report.pinned} pinned, {report.started} run, {report.put_back} put back"
    left = f"{report.handed_over} handed over, {report.dropped} dropped, {report.refused} refused"
    left += f" ({report.why})" if report.why else ""
    end = f"{report.deferred} deferred; {report.total_s:.2f} s"
    say(f"pass {report.number}: {report.waiting} behind the gate, {done}, {left}, {end}")
