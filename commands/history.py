"""``gain`` and ``forecast``: what a site's history says of other policies and of jobs that wait."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from inspect import unwrap
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Literal

import click

from ..cluster.errors import InputError, OptionError, errors_in
from ..cluster.option_fields import Option
from ..cluster.option_table import SIMULATE, ValueOptions
from ..cluster.promises import seconds_of
from ..formats.notes import Notes
from ..simulation.policy_names import split_policies
from ..slurm.answers.slurm_files import SlurmFiles
from .built_options import INPUT, filled_options, record_options
from .outputs import (
    Output,
    file_name,
    html_option,
    output_options,
    print_table,
    progress_over,
    say,
    snapshot_argument,
    tell,
    top_option,
    topology_option,
    with_topology,
)
from .snapshot import parse_time
from .workload_logs import machine_options, read_machine

if TYPE_CHECKING:
    from rich.console import Console

    from ..api.gains import Gain
    from ..cluster.snapshot import Snapshot
    from ..cluster.workload import ClusterWorkload
    from ..simulation.workloads.imported import LoggedJob

_SLURM = "slurm"
#: The sacct of a month on a busy site takes minutes.
_SACCT_S = 1800
#: How far back a live cluster is asked about.
_BACK_S = 30 * 86_400


@click.command(
    epilog="Save sacct's output with: SLURM_TIME_FORMAT=%s sacct -a -X -P -S START -E END --format="
    "JobID,User,Account,Partition,QOS,State,Priority,Submit,Eligible,Start,End,ElapsedRaw,"
    "TimelimitRaw,NNodes,NCPUS,ReqMem,ReqTRES,AllocTRES > FILE. Columns may have any order."
)
@click.argument("history", required=False, type=INPUT, metavar="[slurm|WORKLOAD]")
@click.option("--sacct", type=INPUT, metavar="FILE", help="Output of sacct; - is standard input.")
@machine_options
@topology_option
@click.option("--since", metavar="TIME", help="Begin of the history: a date (UTC) or seconds since 1970.")
@click.option("--until", metavar="TIME", help="End of the history (UTC); later submissions are left out.")
@click.option("--conf", type=INPUT, metavar="FILE", help="Output of scontrol show config, for backfill.")
@record_options(ValueOptions, reader=SIMULATE)
@click.option("--policy", "policies", multiple=True, metavar="NAME", help="Compare it, too; repeatable.")
@html_option
@output_options
def gain(history: str | None, out: Output, **options: Any) -> None:
    """Compare a site's history with backfill and the auction on the same jobs.

    Give the output of sacct and the nodes; or slurm, to ask the live cluster about the last 30 days
    or since --since; or a workload with started_s.
    """
    from ..api.gains import gain as compare
    from ..reports.run_pages import gain_page

    workload, unfit = _read_history(history, options)
    workload = with_topology(workload, options["topology"])
    window, interval_s = _read_backfill(options["conf"], is_live=history == _SLURM)
    with errors_in(options["sacct"] or history or _SLURM):
        made = unwrap(compare)(  # its errors name no keywords
            workload,
            ("aucsched3", *(one for text in options["policies"] for one in split_policies(text))),
            objective=options["objective"],
            promise=options["promise"],
            window=window,
            backfill_interval_s=interval_s,
            progress=lambda policy: progress_over(len(workload.jobs), policy),
        )
    found = replace(made, unfit=unfit)
    out.write(found.to_dict, lambda console: _render(found, console), lambda: gain_page(found))


def _read_history(history: str | None, options: dict[str, Any]) -> tuple[ClusterWorkload, int]:
    """Return the workload that the arguments name, and how many jobs its machine cannot hold."""
    if (history is None) == (options["sacct"] is None):
        raise OptionError("give one of: --sacct FILE, slurm, a workload file")
    machine = {name: options[name] for name in ("nodes", "cores", "gpus", "switch")}
    window = ((name, options[name]) for name in ("since", "until"))
    since, until = (None if text is None else parse_time(name, text) for name, text in window)
    if history is not None and history != _SLURM:
        from ..formats.native.cluster_file import load_workload

        for name in (*machine, "since", "until"):
            if options[name]:
                raise OptionError(f"--{name} is for sacct's output; a workload has its own")
        return load_workload(history), 0
    from ..formats.delimited import read_table
    from ..formats.reading import read_document
    from ..simulation.workloads.from_table import workload_of_sacct

    is_given = history is None or machine["nodes"]
    empty, said = read_machine(**machine) if is_given else (_live_nodes(), Notes())
    if history is None:
        source = options["sacct"]
        content = read_document(source, bytes)
    else:
        source = _SLURM
        since = time() - _BACK_S if since is None else since
        content = ask_sacct(since, until)
    with errors_in(source):
        table, name = read_table(content, "|"), file_name(source)
        made, notes = workload_of_sacct(name, table, empty, since=since, until=until)
    tell(said.summary())
    return made, notes.unfit


def ask_sacct(since: float, until: float | None) -> bytes:
    """Return what sacct prints of a window; times on its command line are local."""
    from ..simulation.workloads.from_table import COMMAND
    from ..slurm.answers.live import ask_slurm

    local = [datetime.fromtimestamp(one, UTC).astimezone() for one in (since, until or time())]
    first, last = (one.strftime("%Y-%m-%dT%H:%M:%S") for one in local)
    return ask_slurm((*COMMAND, "-S", first, "-E", last), _SACCT_S)


def _live_nodes() -> ClusterWorkload:
    from ..slurm.answers.live import EACH_NODE, first_answer
    from ..slurm.answers.node_records import empty_machine

    answer = first_answer(EACH_NODE)
    with errors_in(answer.name):
        return empty_machine(answer.content)[0]


def _read_backfill(conf: str | None, *, is_live: bool) -> tuple[int | None, float | None]:
    """Return how many jobs backfilling looks at, and how often in seconds; None: not known."""
    from ..formats.reading import read_document
    from ..slurm.answers.answer_text import answered
    from ..slurm.answers.live import CONFIG, ask_slurm
    from ..slurm.answers.policy import backfill_settings

    if conf is None and not is_live:
        return None, None
    notes = Notes()
    content = ask_slurm(CONFIG) if conf is None else read_document(conf, bytes)
    with errors_in(conf or " ".join(CONFIG)):
        found = backfill_settings(answered(content), notes)
    tell(notes.summary())
    return found


def _with_interval(group: dict[str, Any]) -> dict[str, Any]:
    """Return a group with short heads for its last three columns: the change and its interval."""
    *means, (_, change), (_, low), (_, high) = group.items()
    return {**dict(means), "change": change, "95 %": None if low is None else (low, high)}


def _render(made: Gain, console: Console) -> None:
    console.print(made.title())
    print_table(console, "What happened, and what simulations of the same jobs give", made.figures)
    if made.groups:
        title = "Mean waits (s) by group, where they change most"
        print_table(console, title, list(map(_with_interval, made.groups)), leaving="happened")
    for text in made.words:
        console.print(text)
    for text in made.left_out:
        console.print(f"note: {text}")


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
    """Say when pending jobs will start: P10, P50 and P90 of each.

    SNAPSHOT is a file, - or slurm. One start in ten comes before P10, one in two before P50, nine
    in ten before P90. aucsched simulates the queue many times from now on, with run times like
    those of the history. By limits is the start if every job runs to its limit.
    """
    from ..api.forecasts import forecast as forecasts_of
    from ..reports.forecast_text import forecast_page, render_forecasts

    loaded, history = _loaded(snapshot, options["history"])
    if options["by"] is not None and loaded.time is None:
        raise OptionError("--by needs the snapshot's time, which it does not have")
    now = loaded.time or 0.0
    by = None if options["by"] is None else moment_by(options["by"], now) - now
    if by is not None and by < 0:
        raise OptionError(f"--by {options['by']!r} is before the snapshot's time")
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
    from ..api.forecasts import history_of
    from ..formats.native.cluster_file import load_snapshot
    from ..slurm.answers.live import collect
    from ..slurm.answers.snapshot_of_answers import import_slurm

    past: str | list[LoggedJob] = [] if history is None else history
    if snapshot != _SLURM or Path(snapshot).is_file():
        return load_snapshot(snapshot), past
    sources, notes = collect(SlurmFiles())
    made, notes = import_slurm(sources, time=time(), schedule_held=False, notes=notes)
    tell(notes.summary())
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
    words = text.strip().lower().split()
    try:
        if text.strip().startswith("+"):
            return now + seconds_of(text.strip()[1:].replace(" ", ""))
        if "-" in text:
            return datetime.fromisoformat(text.strip()).timestamp()
        # Without a zone: clocks may be set to summer time before that day, or back.
        here = datetime.fromtimestamp(now)  # noqa: DTZ006
        time_of_day = datetime.strptime(words[-1], "%H:%M")  # noqa: DTZ007 - it has no zone
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
            f'--by {text!r} is not a time: 2026-11-27T09:00, "friday 9:00", 17:30 and +2h are'
        ) from None
