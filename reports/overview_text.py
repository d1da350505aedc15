"""The prices of an auction as a person reads them, and as a JSON document."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from ..auction.explain.overview import Overview, PriceGroup
from ..auction.explain.unit_prices import Quote
from ..auction.explain.words import figure, number, shortened
from ..bidgen.families.registry import title_of
from ..cluster.jobs import Job
from ..cluster.text import plural

#: More groups and jobs than these are counted, not listed.
_ROWS = 30
_NOT_SHORT = "A job without a shortage waits although its price is low enough: none of its whole bids fits."
_UNITS = {"priority": "priority", "priority_cores": "priority × cores", "worth": "worth in a balanced mix"}


def render_overview(found: Overview, console: Console) -> None:
    """Print the prices of an auction."""
    console.print(_head(found))
    if found.groups:
        title = "What one of each costs on the nodes that are bid for"
        console.print(Text(), _titled(title), _price_table(found.groups), sep="\n")
    for job, groups in found.rooms.items():
        if not any(any(group.prices.values()) for group in groups):
            continue
        title = f"Added where job {job} has a reservation, for jobs that would run past its start"
        console.print(Text(), _titled(title), _price_table(groups), sep="\n")
    waiting = [(one.job, one.quote) for one in found.jobs if not one.starts and one.quote is not None]
    if waiting:
        title = "Jobs that wait with a bid, and what the best of them would have cost"
        console.print(Text(), _titled(title), _job_table(waiting), sep="\n")
    if any(quote.gain >= 0 for _, quote in waiting):
        console.print(Text(f"\n{_NOT_SHORT}"))


def _head(found: Overview) -> RenderableType:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    table.add_row(
        "prices", f"in units of {_UNITS[found.objective]}; an estimate: bids are whole, prices are not"
    )
    award = f"{plural(found.started, 'job')} {'starts' if found.started == 1 else 'start'}"
    table.add_row("award", f"{award}, worth {figure(found.worth)}; what they hold costs {figure(found.pay)}")
    more = f" ({100 * (found.bound / found.worth - 1):.2g} % more)" if found.worth else ""
    table.add_row("bound", f"no award over these bids is worth more than {figure(found.bound)}{more}")
    for resource, price in found.pools.items():
        table.add_row(title_of(resource), f"{figure(price)} for one of {resource.name}")
    without = sum(one.quote is None for one in found.jobs)
    if without:
        table.add_row("no bid", f"{plural(without, 'job')} of the window")
    if found.unwanted:
        table.add_row("not wanted", f"{plural(len(found.unwanted), 'node')}: {shortened(found.unwanted)}")
    return table


def _price_table(groups: Sequence[PriceGroup]) -> Table:
    kinds = list(groups[0].prices)
    heads = [
        "a core" if kind == "cores" else "a GiB" if kind == "memory_gib" else f"a {kind}" for kind in kinds
    ]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in (*heads, "all that is free", "nodes"):
        table.add_column(head, justify="right")
    table.add_column("which", overflow="fold")
    for group in groups[:_ROWS]:
        table.add_row(
            *(figure(group.prices[kind]) for kind in kinds),
            _between(group),
            str(len(group.nodes)),
            shortened(group.nodes),
        )
    if len(groups) > _ROWS:
        rest = sum(len(group.nodes) for group in groups[_ROWS:])
        table.add_row("…", *[""] * len(kinds), str(rest), f"at {len(groups) - _ROWS} lower prices")
    return table


def _between(group: PriceGroup) -> str:
    least, most = figure(group.least), figure(group.most)
    return most if least == most else f"{least} to {most}"


def _titled(title: str) -> Text:
    """Return a table's title: a line of its own, however narrow the table."""
    return Text(title, style="italic")


def _job_table(waiting: Sequence[tuple[Job, Quote]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("job", "priority", "price", "short by"):
        table.add_column(head, justify="right")
    table.add_column("nodes of that bid", overflow="fold")
    for job, quote in waiting[:_ROWS]:
        table.add_row(
            job.id,
            number(job.priority),
            figure(quote.price),
            figure(-quote.gain) if quote.gain < 0 else "",
            shortened(quote.nodes),
        )
    if len(waiting) > _ROWS:
        table.add_row("…", "", "", "", f"{len(waiting) - _ROWS} more")
    return table
