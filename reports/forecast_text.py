"""Forecasts as text and as a page: when each job will start, and what of past forecasts came true."""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from rich.console import Console
from rich.text import Text

from ..api.forecasts import Forecasts
from ..auction.explain.words import duration
from ..cluster.text import plural, utc
from ..simulation.forecast.forecaster import StartForecast
from .console_tables import Column, table_of
from .page import Section, lines, page_of
from .page import table as page_table

#: Starts that are shown in the page's chart.
_BARS = 200


def render_forecasts(
    found: Forecasts, time: float | None, console: Console, *, top: int | None = None
) -> None:
    """Print forecasts, the first ``top``; UTC where the snapshot has a time."""
    starting = [one for one in found.forecasts if not one.never]
    never = [one for one in found.forecasts if one.never]
    if starting:
        named = [(one.id, one) for one in starting[:top]]
        table = table_of("Starts in", _columns("job", found.by_s, time), named, console)
        console.print(table, Text(), sep="\n")
    if found.changes:
        named = [(one.change, one.forecast) for one in found.changes]
        table = table_of("With another request", _columns("change", found.by_s, time), named, console)
        console.print(table, Text(), sep="\n")
    if never:
        words = f"{plural(len(never), 'job')} cannot start as things are"
        columns = (Column("job", lambda one: one.id), Column("why", lambda one: one.never, is_text=True))
        console.print(table_of(words, columns, never[:top], console), Text(), sep="\n")
    left = len(found.forecasts) - len(starting[:top]) - len(never[:top])
    if left:
        console.print(Text(f"{left} more: --top"))
    console.print(Text("\n".join([record_words(found.record), *(f"note: {one}" for one in found.notes)])))


def record_words(record: dict[str, Any]) -> str:
    """Return what the record of past forecasts says."""
    if not record:
        return "There is no record of past forecasts yet: the intervals are those of the futures."
    count, held = record["forecasts"], 100 * record["coverage"]
    near = 100 * record["within_factor_2"]
    return (
        f"Of {plural(count, 'past forecast')}, {held:.0f} % of starts came between P10 and P90, "
        f"and {near:.0f} % of medians were within a factor of 2."
    )


def _columns(first: str, by_s: float | None, time: float | None) -> list[Column]:
    """Return the columns of forecasts, each with its name in front."""

    def starting(cell: Callable[[StartForecast], str], never: str = "") -> Callable[[Any], str]:
        return lambda named: never if named[1].never else cell(named[1])

    found = [
        Column(first, lambda named: named[0]),
        Column("cores", lambda named: named[1].cores, is_right=True, leaves=1),
        Column("P10", starting(lambda one: _wait(one.p10_s), "never")),
        Column("P50", starting(lambda one: _wait(one.p50_s))),
        Column("P90", starting(lambda one: _wait(one.p90_s))),
        Column("by limits", starting(lambda one: _wait(one.plan_s)), leaves=2),
    ]
    if time is not None:
        when = starting(lambda one: utc(time + one.p50_s))
        found.insert(-1, Column("P50 is at", when, leaves=3))
    if by_s is not None:
        by = starting(lambda one: f"{100 * one.probability_by(by_s):.0f} %")
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
