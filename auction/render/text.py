"""A schedule as a person reads it: who starts where, who waits and why, the solve in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...cluster.jobs import Job
from ...cluster.schedule import Award, Reason, Refusal, Schedule
from ...cluster.snapshot import Snapshot
from ...formats.hostlist import join
from ..baseline import Baseline

#: More jobs than this outside the window are counted, not listed.
_WINDOW_ROWS = 10


def render(snapshot: Snapshot, schedule: Schedule, baseline: Baseline, console: Console) -> None:
    """Print a schedule beside what first-fit by priority would have started."""
    jobs = {job.id: job for job in snapshot.jobs}
    console.print(
        Group(
            _starts(schedule, jobs, baseline),
            _waits(schedule, jobs, baseline),
            _solve_line(schedule),
            _baseline_line(schedule, jobs, baseline),
        )
    )


def _table(title: str, *columns: str, right: tuple[str, ...] = ()) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return table


def _starts(schedule: Schedule, jobs: Mapping[str, Job], baseline: Baseline) -> RenderableType:
    if not schedule.started:
        return Text("No job starts.\n")
    title = f"{len(schedule.started)} jobs start"
    columns = ("job", "priority", "cores", "gres", "nodes", "where", "bid", "level", "first-fit")
    table = _table(title, *columns, right=("priority", "cores", "nodes", "level"))
    for award in schedule.started:
        table.add_row(*_start_row(award, jobs[award.job], baseline))
    return Group(table, Text())


def _start_row(award: Award, job: Job, baseline: Baseline) -> tuple[str, ...]:
    level = "" if award.bid.level is None else str(award.bid.level)
    return (
        award.job,
        _number(job.priority),
        str(sum(use.cores for use in award.nodes.values())),
        _gres(award),
        str(len(award.nodes)),
        join(award.nodes),
        award.bid.bid_class.value,
        level,
        "starts it too" if award.job in baseline.started else "would wait",
    )


def _gres(award: Award) -> str:
    held: Counter[str] = Counter()
    for use in award.nodes.values():
        held.update(use.gres)
    return " ".join(f"{count} {name}" for name, count in sorted(held.items()) if count)


def _waits(schedule: Schedule, jobs: Mapping[str, Job], baseline: Baseline) -> RenderableType:
    if not schedule.pending:
        return Text("No job waits.\n")
    listed, beyond = _listed(schedule.pending)
    table = _table(
        f"{len(schedule.pending)} jobs wait", "job", "priority", "reason", "why", right=("priority",)
    )
    for refusal in listed:
        why = refusal.detail + ("; first-fit would start it" if refusal.job in baseline.started else "")
        table.add_row(refusal.job, _number(jobs[refusal.job].priority), refusal.reason.value, why)
    if beyond:
        table.add_row("…", "", Reason.WINDOW.value, f"{beyond} more jobs are outside the window")
    return Group(table, Text())


def _listed(pending: tuple[Refusal, ...]) -> tuple[list[Refusal], int]:
    """Return the rows to show and how many jobs outside the window are only counted."""
    outside = [refusal for refusal in pending if refusal.reason is Reason.WINDOW]
    hidden = {refusal.job for refusal in outside[_WINDOW_ROWS:]}
    return [refusal for refusal in pending if refusal.job not in hidden], len(hidden)


def _solve_line(schedule: Schedule) -> Text:
    objective, sizes = schedule.objective, schedule.sizes
    gap = "gap unknown" if objective.gap is None else f"gap {objective.gap:.2%}"
    tries = ", ".join(f"{one.size} {one.status} {one.seconds:.1f} s" for one in schedule.attempts)
    return Text(
        f"{schedule.model}: {schedule.status.value}, priority {_number(objective.priority)}, {gap}; "
        f"{sizes.bids} bids on {sizes.nodesets} nodesets; "
        f"{schedule.seconds.total:.2f} s (window {tries or 'empty'})"
    )


def _baseline_line(schedule: Schedule, jobs: Mapping[str, Job], baseline: Baseline) -> Text:
    ours = sum(jobs[award.job].priority for award in schedule.started)
    cores = sum(use.cores for award in schedule.started for use in award.nodes.values())
    return Text(
        f"The auction starts {len(schedule.started)} jobs ({cores} cores), priority {_number(ours)}; "
        f"first-fit by priority would start {len(baseline.started)}, priority {_number(baseline.priority)}."
    )


def _number(value: float | object) -> str:
    return f"{float(str(value)):.15g}" if isinstance(value, float) else _fraction(value)


def _fraction(value: object) -> str:
    numerator, denominator = value.numerator, value.denominator  # type: ignore[attr-defined]
    return str(numerator) if denominator == 1 else f"{numerator / denominator:.15g}"
