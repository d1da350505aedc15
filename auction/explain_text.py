"""An explanation as a person reads it, and as a JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from ..cluster.jobs import Job, Span
from ..formats.hostlist import join
from .explain import BidView, Explanation, Lack, NodeGroup
from .shadow import ShadowStart

FORMAT = "aucsched-explanation/1"

#: More bids, and more names, than these are counted, not listed.
_BIDS, _LISTED = 12, 8
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def render_explanation(found: Explanation, now: float | None, console: Console) -> None:
    """Print an explanation; ``now`` is the snapshot's time."""
    console.print(_head(found, now))
    if found.bids:
        console.print(Text(), _bid_table(found.bids), sep="\n")
    elif found.model == "ipsched":
        console.print(Text("\nThere are no bids: ipsched places jobs node by node."))
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
    if found.award is None:
        for label, text in _starts(found, now):
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
    where = f"{join(award.nodes)} ({_counted(len(award.nodes), 'node')}, {_counted(cores, 'core')})"
    level = "" if bid.level is None else f", level {bid.level}"
    liked = "" if bid.preference is None else f", preference {bid.preference:.4g}"
    return "starts", f"on {where} by a bid of class {bid.bid_class.value}{level}{liked}"


def _starts(found: Explanation, now: float | None) -> Iterator[tuple[str, str]]:
    """Yield when the job could start at the latest, if running jobs end as estimated."""
    yield "at the latest", f"{_start(found.alone, now)} if nothing else starts before it"
    if found.after_award != found.alone:
        yield "", f"{_start(found.after_award, now)} after the jobs that start now, each for its time limit"


def _start(start: ShadowStart | None, now: float | None) -> str:
    if start is None:
        return "at no estimated end of what runs,"
    when = "now" if start.at_once else _moment(start.time, now)
    return f"{when} on {_shortened(start.nodes)}"


def _moment(time: float, now: float | None) -> str:
    text = datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return text if now is None else f"{text} (in {duration(max(0.0, time - now))})"


def duration(seconds: float) -> str:
    """Return a duration in its two largest units: ``3 h 20 min``."""
    left = round(seconds)
    parts: list[str] = []
    for unit, size in (("d", _DAY), ("h", _HOUR), ("min", _MINUTE), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def number(value: Any) -> str:
    """Return a priority: an integer as it is, a fraction as a decimal."""
    return str(value.numerator) if value.denominator == 1 else f"{value.numerator / value.denominator:.15g}"


def asked(job: Job) -> list[str]:
    """Return every part of a job's request in words."""
    return [*_size(job), *_amounts(job), *_places(job)]


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"


def _range(span: Span, thing: str) -> str:
    return _counted(span.minimum, thing) if span.is_exact else f"{span.minimum} to {span.maximum} {thing}s"


def _size(job: Job) -> Iterator[str]:
    request = job.request
    if request.node_counts is not None:
        yield _range(request.node_counts, "empty node" if request.exclusive else "node")
    elif request.exclusive:
        yield "empty nodes"
    if request.cores_per_node is not None:
        yield f"{_counted(request.cores_per_node, 'core')} a node"
    elif request.cores is not None:
        yield _counted(request.cores, "core")
    if request.min_cores_per_node > 1:
        yield f"at least {request.min_cores_per_node} cores a node"
    if request.cores_per_task > 1:
        yield f"{request.cores_per_task} cores a task"


def _amounts(job: Job) -> Iterator[str]:
    request = job.request
    for spans, where in ((request.gres_per_node, "a node"), (request.gres_total, "in all")):
        for name, span in spans.items():
            count = f"{span.minimum}" if span.is_exact else f"{span.minimum} to {span.maximum}"
            yield f"{count} {name} {where}"
    if request.memory_mib_per_node:
        yield f"{request.memory_mib_per_node} MiB a node"
    if request.memory_mib_per_core:
        yield f"{request.memory_mib_per_core} MiB a core"
    for name, licenses in request.licenses.items():
        yield f"{licenses} {name} licences"


def _places(job: Job) -> Iterator[str]:
    request = job.request
    if request.contiguous:
        yield "consecutive nodes"
    if request.max_switches is not None:
        yield f"at most {request.max_switches} leaf switch{'' if request.max_switches == 1 else 'es'}"
    if request.features:
        yield f"features {' and '.join(sorted(request.features))}"
    if request.required_nodes:
        yield f"with {_shortened(request.required_nodes)}"
    if request.excluded_nodes:
        yield f"without {_shortened(tuple(sorted(request.excluded_nodes)))}"
    if job.partition:
        yield f"partition {job.partition}"
    if job.time_limit_s is not None:
        yield f"for at most {duration(job.time_limit_s)}"


def _bid_table(bids: Sequence[BidView]) -> Table:
    title = f"{_counted(len(bids), 'bid')}, in the order they were made"
    table = _table(
        title, "class", "nodes", "cores", "gres", "level", "preference", "where", "what it lacks (held by)",
        right=("nodes", "cores", "level", "preference"),
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
            _shortened(bid.nodes),
            "it won" if bid.won else "; ".join(map(_lack, bid.lacks)) or _without_lack(bids),
        )
    if len(bids) > len(shown):
        table.add_row("…", "", "", "", "", "", f"{len(bids) - len(shown)} more", "")
    return table


def _without_lack(bids: Sequence[BidView]) -> str:
    """Return why a bid that lacks nothing did not win: another of the job did, or none was worth it."""
    if any(bid.won for bid in bids):
        return "nothing: the bid that won is worth no less"
    return "nothing: not worth it under these weights, or not found in time"


def _gres(counts: Mapping[str, int]) -> str:
    return " ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def _lack(lack: Lack) -> str:
    where = f" on {_shortened(lack.nodes)}" if lack.nodes else ""
    return f"{lack.what}{where} ({_listed(lack.held_by) or 'held by others'})"


def _group_table(groups: Sequence[NodeGroup]) -> Table:
    table = _table("The nodes, as the job sees them", "what", "nodes", "which", "held by", right=("nodes",))
    for group in groups:
        table.add_row(group.what, str(len(group.nodes)), _shortened(group.nodes), _listed(group.held_by))
    return table


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_LISTED])
    return shown if len(names) <= _LISTED else f"{shown} and {len(names) - _LISTED} more"


def _shortened(nodes: Sequence[str]) -> str:
    """Return nodes as a hostlist, cut where it has many parts."""
    items = join(nodes)
    longest = 70
    return items if len(items) <= longest else f"{items[:longest].rsplit(',', 1)[0]},… ({len(nodes)} nodes)"


def explanation_document(found: Explanation) -> dict[str, Any]:
    """Return an explanation as plain dicts, lists, numbers and text (``aucsched-explanation/1``)."""
    award, refusal = found.award, found.refusal
    return {
        "format": FORMAT,
        "model": found.model,
        "job": found.job.id,
        "priority": float(found.job.priority),
        "place": found.place,
        "queued": found.queued,
        "asked": asked(found.job),
        "starts": None
        if award is None
        else {
            "nodes": join(award.nodes),
            "bid": {
                "class": award.bid.bid_class.value,
                "level": award.bid.level,
                "preference": award.bid.preference,
            },
        },
        "waits": None if refusal is None else {"reason": refusal.reason.value, "detail": refusal.detail},
        "latest_start": {"alone": _when(found.alone), "after_award": _when(found.after_award)},
        "expected_start_time": found.job.expected_start_time,
        "bids": [_bid_document(bid) for bid in found.bids],
        "nodes": [
            {
                "what": group.what,
                "count": len(group.nodes),
                "nodes": join(group.nodes),
                "held_by": list(group.held_by),
            }
            for group in found.groups
        ],
    }


def _when(start: ShadowStart | None) -> dict[str, Any] | None:
    if start is None:
        return None
    return {"time": start.time, "at_once": start.at_once, "nodes": join(start.nodes)}


def _bid_document(bid: BidView) -> dict[str, Any]:
    return {
        "class": bid.bid_class.value,
        "nodes": join(bid.nodes),
        "count": len(bid.nodes),
        "cores": bid.cores,
        "gres": dict(bid.gres),
        "level": bid.level,
        "preference": bid.preference,
        "won": bid.won,
        "lacks": [
            {"what": lack.what, "nodes": join(lack.nodes), "held_by": list(lack.held_by)}
            for lack in bid.lacks
        ],
    }
