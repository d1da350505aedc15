"""``aucsched slurm run``: the loop behind the gate."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ...cluster.errors import OptionError
from ...cluster.option_fields import Option, options_in
from ...cluster.promises import AUTO, BACKFILL, NONE, PLAN, check_promise
from ..built_options import SectionCommand, filled_options
from ..outputs import auction_options, note, say, step_options
from .live_options import LoopOptions, licence_option, no_rest_options, say_unknown_release

if TYPE_CHECKING:
    from ...slurm.live.loop import PassReport, Settings

_MIB = 2**20
#: What slurm run promises under objective response where nothing is named (decision 0111).
RESPONSE_PROMISE = "15m"


@dataclass(kw_only=True)
class GatedLoopOptions(LoopOptions):
    """How a loop runs, and how far it may go in a pass and in a minute."""

    interval: Option[float] = Option(
        "From the beginning of one pass to that of the next.",
        default=10.0,
        low=0.1,
        includes_low=True,
        unit="SECONDS",
    )
    gate_for: Option[int] = Option(
        "The gate ends so long after the last pass: Slurm starts the jobs itself.",
        default=120,
        low=10,
        unit="SECONDS",
    )
    pin_for: Option[float] = Option(
        "A pinned job that has not started by then goes back behind the gate.",
        default=60.0,
        low=1,
        includes_low=True,
        unit="SECONDS",
    )
    tries: Option[int] = Option("A job that went back so often is handed over to Slurm.", default=3, low=1)
    mark: Option[Literal["admin-comment", "comment"]] = Option(
        "Comment that says where a job is pinned; an operator may write the second.", default="admin-comment"
    )
    plan_age: Option[float] = Option(
        "A plan that is older is not carried out.", default=30.0, low=0.1, includes_low=True, unit="SECONDS"
    )
    topology: Option[str | None] = Option(
        "topology.conf or topology.yaml, read in each pass.  [default: what scontrol shows]", unit="FILE"
    )
    changes: Option[int] = Option("Commands of one pass at most.", default=500, low=1, unit="N")
    changes_a_minute: Option[int] = Option("Commands of a minute at most.", default=2000, low=1, unit="N")
    log: Option[Path] = Option(
        "JSON Lines: each action before and after it, each pass.", default=Path("aucsched-run.jsonl")
    )
    lock: Option[Path | None] = Option(
        "File whose lock keeps a second loop out.  [default: one for the cluster]"
    )
    dry_run: Option[bool] = Option("Print the commands of one pass; change nothing.", default=False)


@click.command(cls=SectionCommand)
@licence_option
@filled_options(GatedLoopOptions, log={"also": "-o"})
@no_rest_options
@auction_options
def run(*, licence: str, **options: Any) -> int:
    """Start the jobs behind the gate where the auction puts them, pass after pass.

    The command needs the rights of a Slurm administrator, or with --mark comment of an operator; it
    does not need root. The gate ends --gate-for seconds after the last pass, however the command
    ends: Slurm then starts the jobs itself. SIGTERM lets the command finish its pass and end.
    """
    from ...slurm.live.license_gate import check_licence

    check_licence(licence)
    own = {name: options.pop(name) for name in options_in(GatedLoopOptions)}
    promise, options = promised_options(options)
    if promise != NONE and own["mark"] != "admin-comment":
        raise OptionError(f"--promise {promise} needs --mark admin-comment: owners may write a Comment")
    settings = replace(_settings(licence, own), promise=promise)
    checked = step_options(options)
    say_unknown_release()
    return _shown(settings, checked) if settings.is_dry else _until_told(settings, checked, own)


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


def _settings(licence: str, own: dict[str, Any]) -> Settings:
    import getpass
    import socket

    from ...slurm.answers.live import AT_ONCE
    from ...slurm.live.live_queue import Carrier
    from ...slurm.live.loop import Settings
    from ...slurm.live.pass_plan import PutBackRules

    return Settings(
        rules=PutBackRules(
            licence=licence, pin_s=own["pin_for"], tries=own["tries"], carrier=Carrier(own["mark"])
        ),
        host=socket.gethostname(),
        user=getpass.getuser(),
        gate_s=own["gate_for"],
        age_s=own["plan_age"],
        most_changes=own["changes"],
        most_a_minute=own["changes_a_minute"],
        is_dry=own["dry_run"],
        at_once=AT_ONCE,
        topology=own["topology"],
    )


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


def _until_told(settings: Settings, checked: Any, own: dict[str, Any]) -> int:
    """Run passes until a signal comes, or as many as were asked for; the pass at hand is finished."""
    from ...slurm.answers.live import ask_slurm
    from ...slurm.live.actions import one_scontrol
    from ...slurm.live.live_forecasts import LiveForecasts
    from ...slurm.live.loop import Loop, tell
    from ...slurm.live.loop_metrics import Metrics, served
    from ...slurm.live.passes import warm_up
    from ...slurm.live.shadow_log import RotatedLog
    from ...slurm.live.ticker import Ticker, default_lock, only_one

    figures = Metrics(loop="run")
    ticker = Ticker(interval_s=own["interval"], passes=1 if own["once"] else own["passes"])
    ticker.stop_on_signals()
    outcome = "done"
    with ExitStack() as stack:
        stack.enter_context(only_one(own["lock"] or default_lock(settings.rules.licence)))
        log = RotatedLog(Path(own["log"]), most_bytes=int(own["rotate_mib"] * _MIB), keep=own["keep"])
        journal = stack.enter_context(log).write
        loop = Loop(settings, checked, ask=ask_slurm, runner=one_scontrol, journal=journal)
        where = stack.enter_context(served(figures, own["metrics"]))
        if where:
            note(f"figures at {where}")
        warm_up(checked)
        forecasts = LiveForecasts() if own["forecasts"] else None
        for _ in ticker:
            report = loop.one_pass()
            if forecasts is not None and loop.looked is not None:
                forecasts.look(loop.looked.snapshot, loop.looked.started)
                forecasts.tell(figures)
            tell(figures, report)
            _say(report)
            while loop.remarks:
                note(loop.remarks.pop(0))
            outcome = report.outcome
    return 0 if outcome in {"done", "standby"} else 1


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
    end = f"{report.deferred} deferred; {report.total_s:.2f} s"
    say(f"pass {report.number}: {report.waiting} behind the gate, {done}, {left}, {end}")
