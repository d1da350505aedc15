"""Forecasts as text and as a page: when each job will start, what of past forecasts came true."""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from rich.console import Console
from rich.text import Text

from ..api.forecasts import Forecasts
from ..auction.explain.words import by_array, duration, tasks_name
from ..cluster.text import plural, utc
from ..simulation.forecast.forecaster import StartForecast
from .console_tables import Column, table_of
from .page import Section, lines, page_of
from .page import table as page_table

#: A row's name, and its job or the tasks of one array.
_Row = tuple[str, list[StartForecast]]
#: Starts that are shown in the page's chart.
_BARS = 200


def render_forecasts(
    found: Forecasts, time: float | None, console: Console, *, top: int | None = None
) -> None:
    """Print forecasts, the first ``top``; UTC where the snapshot has a time."""
    groups = by_array(found.forecasts, lambda one: str(one.id), lambda one: one.never)
    rows = [(tasks_name([str(one.id) for one in tasks]), tasks) for tasks in groups]
    starting = [row for row in rows if not row[1][0].never][:top]
    never = [row for row in rows if row[1][0].never][:top]
    if starting:
        console.print(
            table_of("Starts in", _columns("job", found.by_s, time), starting, console), Text(), sep="\n"
        )
    if found.changes:
        named = [(one.change, [one.forecast]) for one in found.changes]
        table = table_of("With another request", _columns("change", found.by_s, time), named, console)
        console.print(table, Text(), sep="\n")
    if never:
        count = sum(bool(one.never) for one in found.forecasts)
        words = f"{plural(count, 'job')} cannot start as things are"
        why = Column("why", lambda named: named[1][0].never, is_text=True)
        columns = (Column("job", lambda named: named[0]), why)
        console.print(table_of(words, columns, never, console), Text(), sep="\n")
    left = len(found.forecasts) - sum(len(tasks) for _, tasks in (*starting, *never))
    if left:
        console.print(Text(f"{left} more: --top"))
    console.print(Text("\n".join([record_words(found.record), *(f"note: {one}" for one in found.notes)])))


def record_words(record: dict[str, Any]) -> str:
    """Return what the record of past forecasts says."""
    if not record:
        return "No record of past forecasts corrects these intervals yet."
    count, held = record["forecasts"], 100 * record["coverage"]
    near = 100 * record["within_factor_2"]
    return (
        f"Of {plural(count, 'past forecast')}, {held:.0f} % of starts came between P10 and P90, "
        f"and {near:.0f} % of medians were within a factor of 2."
    )


def _columns(first: str, by_s: float | None, time: float | None) -> list[Column]:
    """Return the columns of forecasts, each with its name in front."""

    def span(
        value: Callable[[StartForecast], float], words: Callable[[float], str] = _wait, never: str = ""
    ) -> Callable[[_Row], str]:
        """Return a cell: one value, or the least and the greatest of several tasks."""
        ends = (min, max)
        return lambda row: (
            never
            if row[1][0].never
            else " to ".join(dict.fromkeys(words(end(map(value, row[1]))) for end in ends))
        )

    found = [
        Column(first, lambda row: row[0]),
        Column("cores", lambda row: row[1][0].cores, is_right=True, leaves=1),
        Column("P10", span(lambda one: one.p10_s, never="never")),
        Column("P50", span(lambda one: one.p50_s)),
        Column("P90", span(lambda one: one.p90_s)),
        Column("by limits", span(lambda one: one.plan_s), leaves=2),
    ]
    if time is not None:
        when = span(lambda one: one.p50_s, lambda wait: utc(time + wait))
        found.insert(-1, Column("P50 is at", when, leaves=3))
    if by_s is not None:
        by = span(lambda one: 100 * one.probability_by(by_s), "{:.0f} %".format)
        head = "by then" if time is None else f"by {utc(time + by_s)}".replace("T", "\nT")
        found.append(Column(head, by, is_right=True))
    return found


def _wait(seconds: float) -> str:
    if seconds == inf:
        return ""
    return "now" if seconds < 1 else duration(seconds)


def forecast_page(found: Forecasts, name: str) -> str:
    """Return forecasts as a page, with a bar from P10 to P90 for each job."""
    sections: list[Section] = [interval_bars(found.forecasts)]
    sections.append(page_table("Starts", found.columns, "seconds from the snapshot's time"))
    if found.changes:
        sections.append(page_table("With another request", found.change_columns))
    reliability = found.record.get("reliability")
    if reliability:
        levels, came = ([100 * one for one in column] for column in (reliability, reliability.values()))
        title = "Reliability: starts that came by each level (%), against the level (%)"
        sections.append(lines(title, levels, [("came", "", came, 100), ("level", "", levels, 100)]))
    if found.notes:
        sections.append(page_table("Not looked at", {"what": found.notes}))
    return page_of(f"Starts in {name}", f"{found.title()}. {record_words(found.record)}", sections)


def interval_bars(forecasts: Sequence[StartForecast]) -> Section:
    """Return a section with a bar for each job from P10 over P50 to P90."""
    shown = [one for one in forecasts if one.quantiles][:_BARS]
    return {
        "kind": "intervals",
        "title": "When jobs will start: P10, P50, P90",
        "rows": [[str(one.id), one.p10_s, one.p50_s, one.p90_s] for one in shown],
    }
