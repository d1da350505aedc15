"""``aucsched forecast`` and ``plan``: when pending jobs will start."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ..cluster.errors import InputError, OptionError, errors_in
from ..cluster.option_fields import Option
from .built_options import OUTPUT, WholeRange, filled_options
from .gain import ask_sacct
from .outputs import (
    Output,
    file_name,
    html_option,
    note,
    output_options,
    progress_over,
    say,
    snapshot_argument,
    top_option,
)

if TYPE_CHECKING:
    from ..cluster.snapshot import Snapshot
    from ..simulation.workloads.imported import LoggedJob

_SLURM = "slurm"
#: Days of a live Slurm's past that run times are learnt from.
_DAYS = 14
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@dataclass(kw_only=True)
class ForecastRecord:
    """What is asked of the pending jobs' starts, and what is known of the past."""

    history: Option[str | None] = Option(
        "Output of sacct: run times are learnt from it. Of slurm, the default asks sacct for 14 days.",
        unit="FILE",
    )
    record: Option[Path | None] = Option(
        "SQLite file of past forecasts. It calibrates these forecasts, which are added to it."
    )
    by: Option[str | None] = Option(
        'Print the probability that a job has started by this time: "friday 9:00", 17:30 or +2h. It is '
        "local time, unless it names a zone; printed times are UTC.",
        unit="WHEN",
    )
    changes: Option[tuple[str, ...]] = Option(
        "Forecast the one JOB with another request, such as time=2h or cores=8; any tries some. The best "
        "three come first.",
        default=(),
        is_multiple=True,
        spelling="if",
        unit="CHANGE",
    )
    objective: Option[Literal["priority", "response"]] = Option(
        "The scheduler's objective, as for aucsched schedule.", default="priority"
    )
    futures: Option[int] = Option("How many futures are played.", default=200, low=2, high=10_000)
    seed: Option[int] = Option("Seed of the futures.", default=0, low=0)


@click.command()
@snapshot_argument
@click.argument("jobs", metavar="[JOB]...", nargs=-1)
@filled_options(ForecastRecord)
@html_option
@top_option
@output_options
def forecast(snapshot: str, jobs: tuple[str, ...], out: Output, **options: Any) -> None:
    """Say when the pending jobs of SNAPSHOT (a file, - or slurm) will start: P10, P50 and P90.

    One start in ten comes before P10, one in two before P50, nine in ten before P90. aucsched
    simulates the queue many times from now on, with run times like those of the history. By limits
    is the start if every job runs to its limit.
    """
    from ..api.forecasts import forecast as forecasts_of
    from ..reports.forecast_text import forecast_page, render_forecasts

    loaded, history = _loaded(snapshot, options["history"])
    if options["by"] is not None and loaded.time is None:
        raise OptionError("--by needs the snapshot's time, which it does not have")
    now = loaded.time or 0.0
    by = None if options["by"] is None else moment_by(options["by"], now) - now
    same = ("record", "changes", "objective", "futures", "seed")
    with errors_in(snapshot):
        found = forecasts_of(
            loaded, list(jobs) or None, history=history, by_s=by, **{name: options[name] for name in same}
        )
    out.write(
        found.to_dict,
        lambda console: render_forecasts(found, loaded.time, console, top=out.top),
        lambda: forecast_page(found, file_name(snapshot)),
    )


def _loaded(snapshot: str, history: str | None) -> tuple[Snapshot, str | list[LoggedJob]]:
    """Return the snapshot and the past; those of a live Slurm are asked for."""
    from time import time

    from ..api.forecasts import history_of
    from ..formats.native.cluster_file import load_snapshot
    from ..slurm.answers.live import collect
    from ..slurm.answers.slurm_files import SlurmFiles
    from ..slurm.answers.snapshot_of_answers import import_slurm

    past: str | list[LoggedJob] = [] if history is None else history
    if snapshot != _SLURM or Path(snapshot).is_file():
        return load_snapshot(snapshot), past
    sources, notes = collect(SlurmFiles())
    made, notes = import_slurm(sources, time=time(), schedule_held=False, notes=notes)
    if history is None:
        try:
            past = history_of(ask_sacct(time() - _DAYS * 86_400, None))
        except InputError as error:
            say(f"note: run times are not known, so that forecasts are wide: {error}")
    return made, past


def moment_by(text: str, now: float) -> float:
    """Return the moment that ``--by`` names, after now, in seconds since the epoch.

    Args:
        text: ISO 8601, a weekday and a time, a time, or + and a duration; local where no zone is
            given.
        now: seconds since the epoch.

    Raises:
        OptionError: it is none of these.
    """
    from ..cluster.promises import seconds_of

    words = text.strip().lower().split()
    try:
        if text.strip().startswith("+"):
            return now + seconds_of(text.strip()[1:].replace(" ", ""))
        if "-" in text:
            found = datetime.fromisoformat(text.strip())
            return (found if found.tzinfo else found.astimezone()).timestamp()
        here = datetime.fromtimestamp(now).astimezone()
        time_of_day = datetime.strptime(words[-1], "%H:%M")  # noqa: DTZ007 - a time of the day has no zone
        day = here.replace(hour=time_of_day.hour, minute=time_of_day.minute, second=0, microsecond=0)
        if len(words) == 1:
            return (day if day > here else day + timedelta(days=1)).timestamp()
        word, _ = words
        # mon, tue, …
        [number] = [at for at, name in enumerate(_WEEKDAYS) if name.startswith(word) and len(word) > 2]  # noqa: PLR2004
        day += timedelta(days=(number - day.weekday()) % 7)
        return (day if day > here else day + timedelta(days=7)).timestamp()
    except (ValueError, IndexError, OverflowError):
        raise OptionError(
            f'--by {text!r} is no time: 2026-11-27T09:00, "friday 9:00", 17:30 and +2h are'
        ) from None


#: Jobs that are planned where no number is given: some minutes at most.
MOST_JOBS = 5_000


@click.command()
@snapshot_argument
@click.option(
    "--jobs",
    type=WholeRange(1),
    default=MOST_JOBS,
    show_default=True,
    help="How many jobs of highest priority to plan; the time rises with their square.",
)
@click.option("--gantt", type=OUTPUT, help="Chart of all nodes over time (.png, .pdf, .svg).")
@top_option
@output_options
def plan(snapshot: str, jobs: int, gantt: Path | None, out: Output) -> None:
    """Plan SNAPSHOT (a file, or - for standard input): when and where each of its jobs will start.

    The plan gives each job, in order of priority, the earliest start that running jobs, advance reservations,
    licences and the jobs planned before it allow. To replan after a change, plan a new snapshot.
    """
    from ..auction.planning.plan import plan as make_plan
    from ..formats.native.cluster_file import load_snapshot
    from ..reports.gantt import draw_plan
    from ..reports.schedule_text import render_plan

    loaded = load_snapshot(snapshot)
    with errors_in(snapshot):
        if len(loaded.jobs) > jobs:
            note(f"the first {jobs} of {len(loaded.jobs)} jobs are planned: --jobs plans more")
        with progress_over(min(len(loaded.jobs), jobs)) as progress:
            found = make_plan(loaded, jobs=jobs, progress=progress)
    if gantt is not None:
        draw_plan(loaded, found, gantt)
    out.write(found.to_json, lambda console: render_plan(loaded, found, console, top=out.top))
