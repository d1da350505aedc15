"""``aucsched slurm run``: the loop behind the gate."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from ..auction_options import auction_options
from ..outputs import OUTPUT
from .options import licence_option

if TYPE_CHECKING:
    from ...live.loop import Report

_SLICE_S = 0.2


@click.command()
@auction_options
@licence_option
@click.option("--interval", metavar="S", type=click.FloatRange(0.1), default=10.0, show_default=True,
              help="Seconds from the beginning of a pass to that of the next.")  # fmt: skip
@click.option("--gate-for", metavar="S", type=click.IntRange(10), default=120, show_default=True,
              help="The gate ends so long after the last pass: Slurm starts the jobs itself.")  # fmt: skip
@click.option("--pin-for", metavar="S", type=click.FloatRange(1), default=60.0, show_default=True,
              help="A pinned job that has not started by then goes back behind the gate.")  # fmt: skip
@click.option("--tries", type=click.IntRange(1), default=3, show_default=True,
              help="A job that went back so often is handed over to Slurm.")  # fmt: skip
@click.option("--plan-age", metavar="S", type=click.FloatRange(0.1), default=30.0, show_default=True,
              help="A plan that is older is not carried out.")  # fmt: skip
@click.option("--changes", metavar="N", type=click.IntRange(1), default=500, show_default=True,
              help="Commands of one pass at most.")  # fmt: skip
@click.option("--changes-a-minute", metavar="N", type=click.IntRange(1), default=2000, show_default=True,
              help="Commands of a minute at most.")  # fmt: skip
@click.option("--log", type=OUTPUT, default="aucsched-run.jsonl", show_default=True,
              help="JSON Lines: each action before and after it, each pass.")  # fmt: skip
@click.option("--lock", type=OUTPUT,
              help="File whose lock keeps a second loop out.  [default: one for the cluster]")  # fmt: skip
@click.option("--passes", metavar="N", type=click.IntRange(1), help="Stop after so many.")
@click.option("--dry-run", is_flag=True, help="Print the commands; change nothing.")
def run(*, licence: str, log: Path, lock: Path | None, dry_run: bool, **options: Any) -> int:
    """Start the jobs behind the gate where the auction puts them, pass after pass.

    Needs the rights of Slurm's operators, not root's. When it ends, however it ends, the gate ends --gate-for
    seconds after its last pass, and Slurm starts the jobs itself. SIGTERM finishes the pass.
    """
    from ...live.gate import check_licence
    from ...live.hands import Shown, one_scontrol
    from ...live.journal import FileJournal, NoJournal
    from ...live.lock import default_lock, only_one
    from ...live.loop import Loop
    from ...slurm.answers.live import ask_slurm
    from ..auction_options import step_options

    check_licence(licence)
    loop_options = {name: options.pop(name) for name in _LOOP}
    every, passes = options.pop("interval"), options.pop("passes")
    loop = Loop(
        _settings(licence, is_dry=dry_run, **loop_options),
        step_options(options),
        ask=ask_slurm,
        hand=Shown(click.echo) if dry_run else one_scontrol,
        journal=NoJournal() if dry_run else FileJournal(log),
    )
    if dry_run:
        report = loop.one_pass()
        _say(report)
        return 0 if report.outcome == "done" else 1
    with only_one(lock or default_lock(licence)):
        return _until_told(loop, every, passes)


_LOOP = ("gate_for", "pin_for", "tries", "plan_age", "changes", "changes_a_minute")


def _settings(licence: str, *, is_dry: bool, **options: Any) -> Any:
    import getpass
    import socket

    from ...live.loop import Settings
    from ...live.plan import Rules

    return Settings(
        rules=Rules(licence=licence, pin_s=options["pin_for"], tries=options["tries"]),
        host=socket.gethostname(),
        user=getpass.getuser(),
        gate_s=options["gate_for"],
        age_s=options["plan_age"],
        most_changes=options["changes"],
        most_a_minute=options["changes_a_minute"],
        is_dry=is_dry,
    )


def _until_told(loop: Any, every: float, passes: int | None) -> int:
    """Run passes until a signal comes, or as many as were asked for; the pass at hand is finished."""
    told: list[int] = []

    def hear(number: int, _: FrameType | None) -> None:
        told.append(number)

    signal.signal(signal.SIGTERM, hear)
    signal.signal(signal.SIGINT, hear)
    done = 0
    outcome = "done"
    while not told and (passes is None or done < passes):
        began = time.monotonic()
        report = loop.one_pass()
        _say(report)
        done, outcome = done + 1, report.outcome
        while not told and (passes is None or done < passes):
            left = began + every - time.monotonic()
            if left <= 0:
                break
            time.sleep(min(_SLICE_S, left))
    return 0 if outcome in {"done", "standby"} else 1


def _say(report: Report) -> None:
    """Print a pass as a line on stderr."""
    from ..outputs import say

    if report.outcome not in {"done", "standby"}:
        say(f"pass {report.number}: nothing is changed: {report.outcome}")
        return
    if report.outcome == "standby":
        left = report.gate_end - report.at
        say(f"pass {report.number}: {report.leader} leads, its gate ends in {left:.0f} s")
        return
    done = f"{report.pinned} pinned, {report.started} run, {report.put_back} put back"
    left = f"{report.handed_over} handed over, {report.dropped} dropped, {report.refused} refused"
    end = f"{report.deferred} deferred; {report.total_s:.2f} s"
    say(f"pass {report.number}: {report.waiting} behind the gate, {done}, {left}, {end}")
