"""``aucsched slurm run``: the loop behind the gate."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...cluster.errors import OptionError
from ...cluster.option_fields import options_in
from ...cluster.promises import AUTO, BACKFILL, NONE, PLAN, check_promise
from ...cluster.text import plural
from ...slurm.live.loop_options import Settings
from ..built_options import IN_PLACE, SectionCommand, filled_options
from ..outputs import auction_options, note, say
from .live_options import log_of, looping, no_rest_options, say_unknown_release

if TYPE_CHECKING:
    from ...slurm.live.loop import PassReport

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
    """Start the jobs behind the gate where the auction puts them, pass after pass.

    The command needs the rights of a Slurm administrator, or with --mark comment of an operator; it
    does not need root. The gate ends --gate-for seconds after the last pass, however the command
    ends: Slurm then starts the jobs itself. SIGTERM lets the command finish its pass and end.
    """
    from ...auction.options import options_with_preset
    from ...slurm.answers.live import AT_ONCE
    from ...slurm.live.license_gate import own_user

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
    """Run passes until a signal comes, or as many as were asked for; the pass at hand is finished."""
    from ...slurm.answers.live import ask_slurm
    from ...slurm.live.actions import one_scontrol
    from ...slurm.live.live_forecasts import LiveForecasts
    from ...slurm.live.loop import Loop, tell
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
            if forecasts is not None and loop.looked is not None:
                forecasts.look(loop.looked.snapshot, loop.looked.started)
                forecasts.tell(figures)
            tell(figures, report)
            _say(report)
            while loop.remarks:
                note(loop.remarks.pop(0))
            outcome, refused = report.outcome, 0 if report.pinned else report.refused
    if settings.once and refused:
        say(f"aucsched: Slurm refused {plural(refused, 'change')} and accepted no pin")
        return 1
    return 0 if outcome in {"done", "standby"} else 1


def _own_lock(settings: Settings) -> Path:
    """Return the lock's file, which slurmctld's answer names; all but a single pass wait for that."""
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
