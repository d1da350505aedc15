"""Forecasts as text and as a page: when each job will start, and what of past forecasts came true."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console, RenderableType
from rich.text import Text

from ..api.forecasts import Forecasts
from ..auction.explain.words import duration
from ..cluster.text import plural
from ..simulation.forecast.forecaster import StartForecast
from .console_tables import Column, table_of
from .page import Section, page_of, table

#: Starts that are shown in the page's chart.
_BARS = 200


def render_forecasts(
    found: Forecasts, time: float | None, console: Console, *, top: int | None = None
) -> None:
    """Print forecasts, the first ``top``, in local time where the snapshot has a time."""
    for part in _parts(found, time, console, top):
        console.print(part)


def _parts(
    found: Forecasts, time: float | None, console: Console, top: int | None
) -> Iterator[RenderableType]:
    starting = [one for one in found.forecasts if not one.never]
    never = [one for one in found.forecasts if one.never]
    columns = _columns("job", is_by=found.by_s is not None)
    if starting:
        rows = [_row(str(one.id), one, found.by_s, time) for one in starting[:top]]
        yield table_of("Starts in", columns, rows, console)
        yield Text()
    if found.changes:
        rows = [_row(one.change, one.forecast, found.by_s, time) for one in found.changes]
        yield table_of(
            "With another request", _columns("change", is_by=found.by_s is not None), rows, console
        )
        yield Text()
    if never:
        rows = [(str(one.id), one.never) for one in never[:top]]
        words = f"{plural(len(never), 'job')} cannot start as things are"
        yield table_of(words, (Column(name="job"), Column(name="why", is_text=True)), rows, console)
        yield Text()
    left = len(found.forecasts) - len(starting[:top]) - len(never[:top])
    if left:
        yield Text(f"{left} more: --top")
    yield Text("\n".join([record_words(found.record), *(f"note: {one}" for one in found.notes)]))


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


def _columns(first: str, *, is_by: bool) -> tuple[Column, ...]:
    found = (
        Column(name=first),
        Column(name="cores", is_right=True, leaves=2),
        Column(name="P10"),
        Column(name="P50"),
        Column(name="P90"),
        Column(name="P50 is at", leaves=3),
        Column(name="by limits", leaves=1),
    )
    return (*found, Column(name="by then", is_right=True)) if is_by else found


def _row(name: str, one: StartForecast, by_s: float | None, time: float | None) -> tuple[str, ...]:
    if one.never:
        return (name, str(one.cores), "never", "", "", "", "", *([] if by_s is None else [""]))
    at = "" if time is None else f"{datetime.fromtimestamp(time + one.p50_s).astimezone():%a %d %b %H:%M}"
    waits = [_wait(seconds) for seconds in (one.p10_s, one.p50_s, one.p90_s)]
    plan = "" if one.plan_s == float("inf") else _wait(one.plan_s)
    by = [] if by_s is None else [f"{100 * one.probability_by(by_s):.0f} %"]
    return (name, str(one.cores), *waits, at, plan, *by)


def _wait(seconds: float) -> str:
    return "now" if seconds < 1 else duration(seconds)


def forecast_page(found: Forecasts, name: str) -> str:
    """Return forecasts as a page, with a bar from P10 to P90 for each job."""
    sections: list[Section] = [interval_bars(found.forecasts)]
    sections.append(table("Starts", found.columns, "seconds from the snapshot's time"))
    if found.changes:
        sections.append(table("With another request", found.change_columns))
    reliability = found.record.get("reliability")
    if reliability:
        sections.append(
            {
                "kind": "lines",
                "title": "Reliability: starts that came by each level (%), against the level (%)",
                "times": [100 * level for level in reliability],
                "series": [
                    {"label": "came", "values": [100 * one for one in reliability.values()], "most": 100},
                    {"label": "level", "values": [100 * one for one in reliability], "most": 100},
                ],
            }
        )
    if found.notes:
        sections.append(table("Not looked at", {"what": found.notes}))
    return page_of(f"Starts in {name}", f"{found.title()}. {record_words(found.record)}", sections)


def interval_bars(forecasts: Sequence[StartForecast]) -> Section:
    """Return a section with a bar for each job from P10 over P50 to P90."""
    shown = [one for one in forecasts if one.quantiles][:_BARS]
    return {
        "kind": "intervals",
        "title": "When jobs will start: P10, P50, P90",
        "rows": [[str(one.id), one.p10_s, one.p50_s, one.p90_s] for one in shown],
    }
