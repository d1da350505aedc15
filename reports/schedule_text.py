"""What the auction would do with a snapshot as text: its award, a comparison, a plan.

A schedule says which jobs start where, which wait and why, and the solve in one line. A comparison
sets first-fit and Slurm's plan beside it; a plan says when and where each job starts.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction

from rich.console import Console, Group, RenderableType
from rich.text import Text

from ..auction.explain.comparison import Baseline, Comparison, Line, Total
from ..auction.explain.words import WaitingRow, duration, number, shortened, waiting_rows
from ..auction.planning.plan import Plan, PlannedJob
from ..cluster.jobs import Job
from ..cluster.schedule import Award, Reason, Schedule, Status
from ..cluster.snapshot import Snapshot
from ..cluster.text import listed, plural, utc
from ..formats.hostlist import join
from .console_tables import Column, and_more, table_of

#: More rows than this of jobs outside the window are counted, not listed.
_WINDOW_ROWS = 10
#: What first-fit does with a job that starts, as it does not start it or does.
_FIRST_FIT = ("would wait", "starts it too")


def render(
    snapshot: Snapshot, schedule: Schedule, baseline: Baseline, console: Console, *, top: int | None = None
) -> None:
    """Print a schedule, and what first-fit by priority would start; of each list ``top`` rows."""
    jobs = {job.id: job for job in snapshot.jobs}
    priority = sum(jobs[award.job].priority for award in schedule.started)
    count, cores = len(schedule.started), sum(map(cores_of, schedule.started))
    compared = (
        f"The auction starts {plural(count, 'job')} ({plural(cores, 'core')}), "
        f"priority {number(priority)}; "
        f"first-fit by priority would start {len(baseline.started)}, priority {number(baseline.priority)}."
    )
    console.print(
        Group(
            _starts(schedule, jobs, baseline, console, top),
            _waits(schedule, jobs, baseline, console, top),
            _solve_line(schedule, priority),
            Text(compared),
        )
    )


def _starts(
    schedule: Schedule, jobs: Mapping[str, Job], baseline: Baseline, console: Console, top: int | None
) -> RenderableType:
    if not schedule.started:
        return Text("No job starts.\n")
    count = len(schedule.started)
    shown = schedule.started[:top]
    columns = [
        Column("job", lambda one: one.job),
        Column("priority", lambda one: number(jobs[one.job].priority), is_right=True),
        Column("cores", cores_of, is_right=True),
        *([Column("gres", _gres, leaves=5)] if any(map(_gres, shown)) else []),
        Column("nodes", lambda one: len(one.nodes), is_right=True, leaves=4),
        Column("where", lambda one: join(one.nodes), is_text=True),
        Column("bid", lambda one: one.bid.bid_class.value, leaves=1),
        Column("level", lambda one: one.bid.level, is_right=True, leaves=2),
        Column("first-fit", lambda one: _FIRST_FIT[one.job in baseline.started], leaves=3),
    ]
    title = plural(count, "job", "starts")
    return Group(table_of(title, columns, shown, console, and_more("where", count - len(shown))), Text())


def cores_of(one: Award | PlannedJob) -> int:
    """Return the cores that a job holds or will hold."""
    return sum(use.cores for use in one.nodes.values())


def _gres(award: Award) -> str:
    held = sum((Counter(use.gres) for use in award.nodes.values()), Counter[str]())
    return " ".join(f"{count} {name}" for name, count in sorted(held.items()))


def _waits(
    schedule: Schedule, jobs: Mapping[str, Job], baseline: Baseline, console: Console, top: int | None
) -> RenderableType:
    if not schedule.pending:
        return Text("No job waits.\n")
    waiting = waiting_rows(
        schedule.pending, lambda one: (jobs[one.job].priority, one.job in baseline.started)
    )
    # Of jobs outside the window only the first are shown.
    outside = [row for row in waiting if row.reason is Reason.WINDOW]
    hidden = {row.jobs[0] for row in outside[_WINDOW_ROWS:]}
    listed = [row for row in waiting if row.jobs[0] not in hidden]
    count = len(schedule.pending)
    more: dict[str, str] = {}
    if top is not None and len(waiting) > top:
        more = and_more("why", count - _jobs_of(listed[:top]))
    elif beyond := count - _jobs_of(listed):
        text = f"{plural(beyond, 'more job', 'is')} outside the window"
        more = {"reason": Reason.WINDOW.value, "why": text}

    def why(row: WaitingRow) -> str:
        return row.detail + ("; first-fit would start it" if row.jobs[0] in baseline.started else "")

    columns = [
        Column("job", lambda row: row.name),
        Column("priority", lambda row: number(jobs[row.jobs[0]].priority), is_right=True),
        Column("reason", lambda row: row.reason.value),
        Column("why", why, is_text=True),
    ]
    reasons = Counter(refusal.reason.value for refusal in schedule.pending)
    of_each = ", ".join(f"{times} {reason}" for reason, times in reasons.most_common())
    title = f"{plural(count, 'job', 'waits')}: {of_each}"
    return Group(table_of(title, columns, listed[:top], console, more), Text())


def _jobs_of(rows: list[WaitingRow]) -> int:
    return sum(len(row.jobs) for row in rows)


def _solve_line(schedule: Schedule, priority: Fraction | int) -> Text:
    objective = schedule.objective
    tries = ", ".join(f"{one.size} in {one.seconds:.1f} s" for one in schedule.attempts)
    # Under other objectives, or with a balance, an award counts something else.
    words = "priority" if objective.priority == priority else "worth"
    return Text(
        f"{schedule.model}: {words} {number(objective.priority)}, {_proved(schedule, words)}; "
        f"{size_in_words(schedule)}; {schedule.seconds.total:.2f} s{f' (window {tries})' if tries else ''}"
    )


def size_in_words(schedule: Schedule) -> str:
    """Return how many bids there are, and whether counts settled the award without them."""
    sizes, settled = schedule.sizes, "" if schedule.attempts else ", settled by counts"
    return f"{plural(sizes.bids, 'bid')} on {plural(sizes.nodesets, 'nodeset')}{settled}"


def _proved(schedule: Schedule, words: str) -> str:
    """Return what is proved of an award over its bids, and whether a limit stopped the proof."""
    gap = schedule.objective.gap
    if schedule.status is Status.OPTIMAL:
        return "proved"
    if schedule.status is Status.NO_SOLUTION:
        return "discarded at a limit"
    if gap is None:
        return "nothing proved at the limit"
    if gap == 0:
        return f"its {words} proved"
    return f"no proof at the limit: the best is at most {gap:.2%} higher"


def _plan(line: Line) -> str:
    if line.planned is None:
        return "not planned"
    later = "" if line.planned_wait_s is None else f" (+{duration(line.planned_wait_s)})"
    return utc(line.planned) + later


_COLUMNS = (
    Column("job", lambda line: line.job.id),
    Column("priority", lambda line: number(line.job.priority), is_right=True),
    Column("cores", lambda line: line.job.request.fewest_cores, is_right=True, leaves=1),
    Column("auction", lambda line: "now" if line.auction else "waits"),
    Column("first-fit", lambda line: "now" if line.first_fit else "waits"),
    Column("Slurm's plan", _plan, is_text=True),
)
#: Of who would start something, and how much.
_TOTALS = (
    Column("", lambda named: named[0], is_text=True),
    Column("jobs", lambda named: named[1].jobs, is_right=True),
    Column("cores", lambda named: named[1].cores, is_right=True),
    Column("priority", lambda named: number(named[1].priority), is_right=True),
)


def render_comparison(found: Comparison, console: Console, *, top: int | None = None) -> None:
    """Print the first ``top`` jobs on which any of the three would act, then the totals."""
    acting = [line for line in found.lines if line.auction or line.first_fit or line.planned is not None]
    columns = _COLUMNS if found.slurm is not None else _COLUMNS[:-1]
    console.print(table_of("", columns, acting[:top], console))
    if top is not None and len(acting) > top:
        console.print(Text(f"{plural(len(acting) - top, 'more job')} on which any of them would act."))
    hidden = len(found.lines) - len(acting)
    if hidden:
        console.print(Text(f"{plural(hidden, 'more job', 'waits')} under all of them."))
    console.print(Text(), table_of("", _TOTALS, _totals(found), console), sep="\n")
    if found.slurm is None:
        console.print(Text("\nNo job of the snapshot has an expected start time: Slurm's plan is not known."))


def _totals(found: Comparison) -> Iterator[tuple[str, Total]]:
    yield "the auction starts now", found.auction
    yield "first-fit by priority starts now", found.first_fit
    if found.slurm is not None:
        yield f"Slurm's plan starts within {duration(found.within_s)}", found.slurm


def render_plan(snapshot: Snapshot, plan: Plan, console: Console, *, top: int | None = None) -> None:
    """Print a plan, of each list the first ``top``; UTC where the snapshot has a time."""
    if plan.planned:
        console.print(_planned(snapshot, plan, console, top), Text(), sep="\n")
    outside = [one for one in plan.unplanned if one.reason is Reason.WINDOW]
    inside = [one for one in plan.unplanned if one.reason is not Reason.WINDOW]
    if inside:
        waiting = waiting_rows(inside)
        shown = waiting[:top]
        more = and_more("why", _jobs_of(waiting[len(shown) :]))
        title = f"{plural(len(inside), 'job')} cannot be planned"
        console.print(table_of(title, _NEVER, shown, console, more), Text(), sep="\n")
    now = sum(one.start == plan.time for one in plan.planned)
    ends = [one.end - plan.time for one in plan.planned if one.end is not None]
    last = f" The last ends in {duration(max(ends))}." if ends else ""
    console.print(Text(f"{plural(len(plan.planned), 'job')} planned, {now} of them now.{last}"))
    if outside:
        console.print(Text(f"--jobs leaves out {plural(len(outside), 'job')}."))
    if plan.overdue:
        console.print(Text(f"Running past their end, planned to end in a second: {listed(plan.overdue)}."))
    if plan.endless:
        console.print(Text(f"Running without a time limit, planned never to end: {listed(plan.endless)}."))


_NEVER = (
    Column("job", lambda row: row.name),
    Column("reason", lambda row: row.reason.value),
    Column("why", lambda row: row.detail, is_text=True),
)


def _planned(snapshot: Snapshot, plan: Plan, console: Console, top: int | None) -> Group:
    priority = {job.id: job.priority for job in snapshot.jobs}
    now, shown = snapshot.time, sorted(plan.planned, key=lambda one: one.start)[:top]
    columns = (
        Column("job", lambda one: one.job),
        Column("priority", lambda one: number(priority[one.job]), is_right=True, leaves=3),
        Column("starts in", lambda one: duration(one.start - plan.time) if one.start > plan.time else "now"),
        Column("start", lambda one: _moment(one.start, now), leaves=4),
        Column("end", lambda one: _moment(one.end, now), leaves=2),
        Column("cores", cores_of, is_right=True),
        Column("nodes", lambda one: len(one.nodes), is_right=True, leaves=1),
        Column("where", lambda one: shortened(tuple(one.nodes)), is_text=True),
    )
    return table_of("The plan", columns, shown, console, and_more("where", len(plan.planned) - len(shown)))


def _moment(time: float | None, now: float | None) -> str:
    if time is None:
        return "never"
    return f"{time:g} s" if now is None else utc(time)
