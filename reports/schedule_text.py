"""What the auction would do with a snapshot as text: its award, a comparison, a plan.

A schedule says which jobs start where, which wait and why, and the solve in one line. A comparison
sets first-fit and Slurm's plan beside it; a plan says when and where each job starts.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..auction.explain.comparison import Baseline, Comparison, Line, Total
from ..auction.explain.words import WaitingRow, duration, number, shortened, waiting_rows
from ..auction.planning.plan import Plan
from ..cluster.jobs import Job
from ..cluster.schedule import Award, Reason, Schedule, Status
from ..cluster.snapshot import Snapshot
from ..cluster.text import listed, plural
from ..formats.hostlist import join
from .console_tables import Column, Wrapped, table_of

#: More rows than this of jobs outside the window are counted, not listed.
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
    """Print a schedule, and what first-fit by priority would start; of each list ``top`` rows."""
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
    title = f"{plural(count, 'job')} {'starts' if count == 1 else 'start'}"
    columns = [_STARTS[place] for place in shown]
    table = table_of(title, columns, [[row[place] for place in shown] for row in rows], console)
    return Group(table, Text())


def _start_row(award: Award, job: Job, baseline: Baseline) -> tuple[str, ...]:
    level = "" if award.bid.level is None else str(award.bid.level)
    return (
        award.job,
        number(job.priority),
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
    waiting = waiting_rows(
        schedule.pending, lambda one: (jobs[one.job].priority, one.job in baseline.started)
    )
    listed = _listed(waiting)
    count = len(schedule.pending)
    rows = [_wait_row(row, jobs[row.jobs[0]], baseline) for row in listed[:top]]
    if top is not None and len(waiting) > top:
        rows.append(("…", "", "", f"{count - _jobs_of(listed[:top])} more"))
    elif beyond := count - _jobs_of(listed):
        more = f"{plural(beyond, 'more job')} {'is' if beyond == 1 else 'are'} outside the window"
        rows.append(("…", "", Reason.WINDOW.value, more))
    reasons = Counter(refusal.reason.value for refusal in schedule.pending)
    of_each = ", ".join(f"{times} {reason}" for reason, times in reasons.most_common())
    title = f"{plural(count, 'job')} {'waits' if count == 1 else 'wait'}: {of_each}"
    return Group(Wrapped(title), table_of("", _WAITS, rows, console), Text())


def _wait_row(row: WaitingRow, job: Job, baseline: Baseline) -> tuple[str, ...]:
    why = row.detail + ("; first-fit would start it" if job.id in baseline.started else "")
    return row.name, number(job.priority), row.reason.value, why


def _listed(waiting: list[WaitingRow]) -> list[WaitingRow]:
    """Return the rows to show: of jobs outside the window the first ones only."""
    outside = [row for row in waiting if row.reason is Reason.WINDOW]
    hidden = {row.jobs[0] for row in outside[_WINDOW_ROWS:]}
    return [row for row in waiting if row.jobs[0] not in hidden]


def _jobs_of(rows: list[WaitingRow]) -> int:
    return sum(len(row.jobs) for row in rows)


def _solve_line(schedule: Schedule) -> Text:
    objective, sizes = schedule.objective, schedule.sizes
    tries = ", ".join(f"{one.size} in {one.seconds:.1f} s" for one in schedule.attempts)
    return Text(
        f"{schedule.model}: priority {number(objective.priority)}, {_proved(schedule)}; "
        f"{plural(sizes.bids, 'bid')} on {plural(sizes.nodesets, 'nodeset')}; "
        f"{schedule.seconds.total:.2f} s (window {tries or 'empty'})"
    )


def _proved(schedule: Schedule) -> str:
    """Return what is proved of an award over its bids, and whether a limit came before the rest was."""
    gap = schedule.objective.gap
    if schedule.status is Status.OPTIMAL:
        return "proved"
    if schedule.status is Status.NO_SOLUTION:
        return "discarded at a limit"
    if gap is None:
        return "nothing proved at the limit"
    return "its priority proved" if gap == 0 else f"at most {gap:.2%} below the best at the limit"


def _baseline_line(schedule: Schedule, jobs: Mapping[str, Job], baseline: Baseline) -> Text:
    ours = sum(jobs[award.job].priority for award in schedule.started)
    cores = sum(use.cores for award in schedule.started for use in award.nodes.values())
    return Text(
        f"The auction starts {plural(len(schedule.started), 'job')} ({plural(cores, 'core')}), "
        f"priority {number(ours)}; "
        f"first-fit by priority would start {len(baseline.started)}, priority {number(baseline.priority)}."
    )


_COLUMNS = (
    Column(name="job"),
    Column(name="priority", is_right=True),
    Column(name="cores", is_right=True, leaves=1),
    Column(name="auction"),
    Column(name="first-fit"),
    Column(name="Slurm's plan", is_text=True),
)
_TOTALS = (
    Column(name="", is_text=True),
    *(Column(name=name, is_right=True) for name in ("jobs", "cores", "priority")),
)


def render_comparison(found: Comparison, console: Console, *, top: int | None = None) -> None:
    """Print the first ``top`` jobs on which any of the three would act, then the totals."""
    acting = [line for line in found.lines if line.auction or line.first_fit or line.planned is not None]
    columns = _COLUMNS if found.slurm is not None else _COLUMNS[:-1]
    rows = [
        (
            line.job.id,
            number(line.job.priority),
            str(line.job.request.fewest_cores),
            "now" if line.auction else "waits",
            "now" if line.first_fit else "waits",
            _plan(line),
        )
        for line in acting[:top]
    ]
    console.print(table_of("", columns, [row[: len(columns)] for row in rows], console))
    if top is not None and len(acting) > top:
        console.print(Text(f"{plural(len(acting) - top, 'more job')} on which any of them would act."))
    hidden = len(found.lines) - len(acting)
    if hidden:
        waits = "waits" if hidden == 1 else "wait"
        console.print(Text(f"{plural(hidden, 'more job')} {waits} under all of them."))
    console.print(Text(), table_of("", _TOTALS, list(_totals(found)), console), sep="\n")
    if found.slurm is None:
        console.print(Text("\nNo job of the snapshot has an expected start time: Slurm's plan is not known."))


def _plan(line: Line) -> str:
    if line.planned is None:
        return "not planned"
    moment = datetime.fromtimestamp(line.planned, UTC).strftime("%H:%M:%S UTC")
    return moment if line.planned_wait_s is None else f"{moment} (+{duration(line.planned_wait_s)})"


def _totals(found: Comparison) -> Iterator[tuple[str, ...]]:
    yield ("the auction starts now", *_figures(found.auction))
    yield ("first-fit by priority starts now", *_figures(found.first_fit))
    if found.slurm is not None:
        yield (f"Slurm's plan starts within {duration(found.within_s)}", *_figures(found.slurm))


def _figures(total: Total) -> tuple[str, str, str]:
    return str(total.jobs), str(total.cores), number(total.priority)


def render_plan(snapshot: Snapshot, plan: Plan, console: Console, *, top: int | None = None) -> None:
    """Print a plan, of each list the first ``top``; UTC where the snapshot has a time."""
    for part in _parts(snapshot, plan, console, top):
        console.print(part)


def _parts(snapshot: Snapshot, plan: Plan, console: Console, top: int | None) -> Iterator[RenderableType]:
    if plan.planned:
        yield _planned(snapshot, plan, console, top)
        yield Text()
    outside = [one for one in plan.unplanned if one.reason is Reason.WINDOW]
    inside = [one for one in plan.unplanned if one.reason is not Reason.WINDOW]
    if inside:
        waiting = waiting_rows(inside)
        rows = [(row.name, row.reason.value, row.detail) for row in waiting[:top]]
        if len(rows) < len(waiting):
            rows.append(("…", "", f"{sum(len(row.jobs) for row in waiting[len(rows) :])} more"))
        table = table_of(f"{plural(len(inside), 'job')} cannot be planned", _NEVER, rows, console)
        yield table
        yield Text()
    now = sum(one.start == plan.time for one in plan.planned)
    starts = "starts" if now == 1 else "start"
    ends = [one.end - plan.time for one in plan.planned if one.end is not None]
    last = f" The last ends in {duration(max(ends))}." if ends else ""
    yield Text(f"{plural(len(plan.planned), 'job')} planned, {now} {starts} now.{last}")
    if outside:
        yield Text(f"--jobs leaves out {plural(len(outside), 'job')}.")
    if plan.overdue:
        yield Text(f"Running past their end, planned to end in a second: {listed(plan.overdue)}.")
    if plan.endless:
        yield Text(f"Running without a time limit, planned never to end: {listed(plan.endless)}.")


_PLANNED = (
    Column(name="job"),
    Column(name="priority", is_right=True, leaves=3),
    Column(name="starts in"),
    Column(name="start", leaves=4),
    Column(name="end", leaves=2),
    Column(name="cores", is_right=True),
    Column(name="nodes", is_right=True, leaves=1),
    Column(name="where", is_text=True),
)
_NEVER = (Column(name="job"), Column(name="reason"), Column(name="why", is_text=True))


def _planned(snapshot: Snapshot, plan: Plan, console: Console, top: int | None) -> Table:
    priority = {job.id: job.priority for job in snapshot.jobs}
    rows: list[tuple[str, ...]] = []
    for one in sorted(plan.planned, key=lambda one: one.start)[:top]:
        names = tuple(one.nodes)
        wait = one.start - plan.time
        row = (
            one.job,
            number(priority[one.job]),
            duration(wait) if wait else "now",
            _moment(one.start, snapshot.time),
            "never" if one.end is None else _moment(one.end, snapshot.time),
            str(sum(use.cores for use in one.nodes.values())),
            str(len(names)),
            shortened(names),
        )
        rows.append(row)
    if len(rows) < len(plan.planned):
        rows.append(("…", *[""] * 6, f"{len(plan.planned) - len(rows)} more"))
    return table_of("The plan", _PLANNED, rows, console)


def _moment(time: float, now: float | None) -> str:
    if now is None:
        return f"{time:g} s"
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")
