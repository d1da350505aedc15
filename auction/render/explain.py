"""An explanation as a person reads it, and as a JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from ...cluster.text import counted
from ...formats.hostlist import join
from ..explain.bids import BidView, Lack
from ..explain.changes import Change
from ..explain.explain import Explanation, NodeGroup
from ..explain.prices import Quote
from ..explain.words import asked, duration, figure, listed, number, percent, shortened
from ..forecast import ShadowStart
from ..model import MODELS_BY_NAME

#: More bids than these are counted, not listed; and so many changes are told.
_BIDS, _CHANGES = 12, 3
#: A gain up to this share of the worth is none: prices are rounded.
_EVEN = 0.005


def render_explanation(found: Explanation, now: float | None, console: Console) -> None:
    """Print an explanation; ``now`` is the snapshot's time."""
    console.print(_head(found, now))
    if found.bids:
        console.print(Text(), _bid_table(found.bids), sep="\n")
    elif not MODELS_BY_NAME[found.model].has_bids:
        console.print(Text(f"\nThere are no bids: {found.model} places jobs node by node."))
    if found.groups:
        console.print(Text(), _group_table(found.groups), sep="\n")


def _table(title: str, *columns: str, right: tuple[str, ...] = ()) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return table


def _head(found: Explanation, now: float | None) -> RenderableType:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    rank = f"priority {number(found.job.priority)}, place {found.place} of {found.queued} in the queue"
    table.add_row(f"job {found.job.id}", rank)
    table.add_row("asks for", ", ".join(asked(found.job)))
    table.add_row(*_outcome(found))
    if found.quote is not None:
        table.add_row(*_price(found, found.quote))
    if found.award is None:
        for label, text in (*_changes(found.changes), *_starts(found, now)):
            table.add_row(label, text)
    if found.job.expected_start_time is not None:
        table.add_row("Slurm's plan", f"starts {_moment(found.job.expected_start_time, now)}")
    return table


def _outcome(found: Explanation) -> tuple[str, str]:
    if found.award is None:
        refusal = found.refusal
        return "waits", "" if refusal is None else f"{refusal.reason.value}: {refusal.detail}"
    award, bid = found.award, found.award.bid
    cores = sum(use.cores for use in award.nodes.values())
    where = f"{join(award.nodes)} ({counted(len(award.nodes), 'node')}, {counted(cores, 'core')})"
    level = "" if bid.level is None else f", level {bid.level}"
    liked = "" if bid.preference is None else f", preference {bid.preference:.4g}"
    return "starts", f"on {where} by a bid of class {bid.bid_class.value}{level}{liked}"


def _price(found: Explanation, quote: Quote) -> tuple[str, str]:
    """Return what the job pays, or its best bid would have cost, against what it is worth."""
    cost, worth, gap = figure(quote.price), figure(quote.worth), figure(abs(quote.gain))
    is_even = abs(quote.gain) <= _EVEN * quote.worth
    if found.award is not None:
        gain = "all it is worth" if is_even else f"{'gains' if quote.gain > 0 else 'loses'} {gap}"
        return "pays", f"about {cost} at the nodes' prices, of its {worth}: {gain}"
    where = f"its best bid, on {shortened(quote.nodes)}, would cost about {cost}"
    if is_even:
        return "price", f"{where}: what it is worth, {worth}"
    if quote.gain < 0:
        return "price", f"{where}: {gap} more than its {worth}"
    return "price", f"{where}, {gap} less than its {worth}: prices are an estimate, as bids are whole"


def _changes(changes: Sequence[Change] | None) -> Iterator[tuple[str, str]]:
    """Yield the smallest changes that would start the job beside the jobs that start."""
    if changes is None:
        return
    label = "would start"
    if not changes:
        yield (
            label,
            "by no change of one or two parts of its request: too little is free beside the jobs that start",
        )
    for change in changes[:_CHANGES]:
        where = f"on {shortened(change.nodes)}, free beside the jobs that start"
        if change.words:
            part = f" ({percent(change.given_up)} given up)" if change.given_up else ""
            yield label, f"with {' and '.join(change.words)}{part}, {where}"
        else:
            yield label, f"as it is, {where}: it came into no award by the window, the caps or the time limit"
        label = ""


def _starts(found: Explanation, now: float | None) -> Iterator[tuple[str, str]]:
    """Yield when the job could start at the latest, if running jobs end as estimated."""
    yield "at the latest", f"{_start(found.alone, now)} if nothing else starts before it"
    if found.after_award != found.alone:
        yield "", f"{_start(found.after_award, now)} after the jobs that start now, each for its time limit"
    if found.reserved is not None:
        yield "reserved", f"{_start(found.reserved, now)}, which no bid may delay"


def _start(start: ShadowStart | None, now: float | None) -> str:
    if start is None:
        return "at no estimated end of what runs,"
    when = "now" if start.at_once else _moment(start.time, now)
    return f"{when} on {shortened(start.nodes)}"


def _moment(time: float, now: float | None) -> str:
    text = datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return text if now is None else f"{text} (in {duration(max(0.0, time - now))})"


def _bid_table(bids: Sequence[BidView]) -> Table:
    title = f"{counted(len(bids), 'bid')}, in the order they were made"
    table = _table(
        title, "class", "nodes", "cores", "gres", "level", "preference", "price", "where",
        "what it lacks (held by)", right=("nodes", "cores", "level", "preference", "price"),
    )  # fmt: skip
    shown = [*bids[:_BIDS], *(bid for bid in bids[_BIDS:] if bid.won)]
    for bid in shown:
        table.add_row(
            bid.bid_class.value,
            str(len(bid.nodes)),
            str(bid.cores),
            _gres(bid.gres),
            "" if bid.level is None else str(bid.level),
            "" if bid.preference is None else f"{bid.preference:.4g}",
            figure(bid.price),
            shortened(bid.nodes),
            "it won" if bid.won else "; ".join(map(_lack, bid.lacks)) or _without_lack(bids),
        )
    if len(bids) > len(shown):
        table.add_row("…", "", "", "", "", "", "", f"{len(bids) - len(shown)} more", "")
    return table


def _without_lack(bids: Sequence[BidView]) -> str:
    """Return why a bid that lacks nothing did not win: another of the job did, or none was worth it."""
    if any(bid.won for bid in bids):
        return "nothing: the bid that won is worth no less"
    return "nothing: not worth it under these weights, or not found in time"


def _gres(counts: Mapping[str, int]) -> str:
    return " ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def _lack(lack: Lack) -> str:
    where = f" on {shortened(lack.nodes)}" if lack.nodes else ""
    return f"{lack.what}{where} ({listed(lack.held_by) or 'held by others'})"


def _group_table(groups: Sequence[NodeGroup]) -> Table:
    table = _table("The nodes, as the job sees them", "what", "nodes", "which", "held by", right=("nodes",))
    for group in groups:
        table.add_row(group.what, str(len(group.nodes)), shortened(group.nodes), listed(group.held_by))
    return table
