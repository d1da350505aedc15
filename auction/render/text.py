"""A schedule as text: which jobs start where, which wait and why, and the solve in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rich.console import Console, Group, RenderableType
from rich.text import Text

from ...cluster.jobs import Job
from ...cluster.schedule import Award, Reason, Refusal, Schedule
from ...cluster.snapshot import Snapshot
from ...cluster.text import counted
from ...formats.hostlist import join
from ..baseline import Baseline
from .tables import Column, Wrapped, table_of

#: More jobs than this outside the window are counted, not listed.
_WINDOW_ROWS = 10

_STARTS = (
    Column(name="job"),
    Column(name="priority", is_right=True),
    Column(name="cores", is_right=True),
    Column(name="gres", leaves=5),
    Column(name="nodes", is_right=True, leaves=4),
    Column(name="where", is_text=True),
    Column(name="bid", leaves=1),
    Column(name="level", is_right=True, leaves=2),
    Column(name="first-fit", leaves=3),
)
_WAITS = (
    Column(name="job"),
    Column(name="priority", is_right=True),
    Column(name="reason"),
    Column(name="why", is_text=True),
)


def render(
    snapshot: Snapshot, schedule: Schedule, baseline: Baseline, console: Console, *, top: int | None = None
) -> None:
    """Print a schedule beside what first-fit by priority would have started, of each list ``top``."""
    jobs = {job.id: job for job in snapshot.jobs}
    console.print(
        Group(
            _starts(schedule, jobs, baseline, console, top),
            _waits(schedule, jobs, baseline, console, top),
            _solve_line(schedule),
            _baseline_line(schedule, jobs, baseline),
        )
    )


def _starts(
    schedule: Schedule, jobs: Mapping[str, Job], baseline: Baseline, console: Console, top: int | None
) -> RenderableType:
    if not schedule.started:
        return Text("No job starts.\n")
    count = len(schedule.started)
    rows = [_start_row(award, jobs[award.job], baseline) for award in schedule.started[:top]]
    if top is not None and count > top:
        rows.append(("…", *[""] * 4, f"{count - top} more", *[""] * 3))
    has_gres = any(row[3] for row in rows)
    shown = [place for place, column in enumerate(_STARTS) if column.name != "gres" or has_gres]
    title = f"{counted(count, 'job')} {'starts' if count == 1 else 'start'}"
    columns = [_STARTS[place] for place in shown]
    table = table_of(title, columns, [[row[place] for place in shown] for row in rows], console)
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


def _waits(
    schedule: Schedule, jobs: Mapping[str, Job], baseline: Baseline, console: Console, top: int | None
) -> RenderableType:
    if not schedule.pending:
        return Text("No job waits.\n")
    listed, beyond = _listed(schedule.pending)
    count = len(schedule.pending)
    rows = [_wait_row(refusal, jobs[refusal.job], baseline) for refusal in listed[:top]]
    if top is not None and count > top:
        rows.append(("…", "", "", f"{count - len(rows)} more"))
    elif beyond:
        more = f"{counted(beyond, 'more job')} {'is' if beyond == 1 else 'are'} outside the window"
        rows.append(("…", "", Reason.WINDOW.value, more))
    reasons = Counter(refusal.reason.value for refusal in schedule.pending)
    of_each = ", ".join(f"{number} {reason}" for reason, number in reasons.most_common())
    title = f"{counted(count, 'job')} {'waits' if count == 1 else 'wait'}: {of_each}"
    return Group(Wrapped(title), table_of("", _WAITS, rows, console), Text())


def _wait_row(refusal: Refusal, job: Job, baseline: Baseline) -> tuple[str, ...]:
    why = refusal.detail + ("; first-fit would start it" if refusal.job in baseline.started else "")
    return refusal.job, _number(job.priority), refusal.reason.value, why


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
        f"{counted(sizes.bids, 'bid')} on {counted(sizes.nodesets, 'nodeset')}; "
        f"{schedule.seconds.total:.2f} s (window {tries or 'empty'})"
    )


def _baseline_line(schedule: Schedule, jobs: Mapping[str, Job], baseline: Baseline) -> Text:
    ours = sum(jobs[award.job].priority for award in schedule.started)
    cores = sum(use.cores for award in schedule.started for use in award.nodes.values())
    return Text(
        f"The auction starts {counted(len(schedule.started), 'job')} ({counted(cores, 'core')}), "
        f"priority {_number(ours)}; "
        f"first-fit by priority would start {len(baseline.started)}, priority {_number(baseline.priority)}."
    )


def _number(value: float | object) -> str:
    return f"{float(str(value)):.15g}" if isinstance(value, float) else _fraction(value)


def _fraction(value: object) -> str:
    numerator, denominator = value.numerator, value.denominator  # type: ignore[attr-defined]
    return str(numerator) if denominator == 1 else f"{numerator / denominator:.15g}"
