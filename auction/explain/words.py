"""Requests, durations, numbers and lists of names in words, the same in every command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from ...cluster.jobs import Job, Span
from ...cluster.text import plural
from ...formats.hostlist import join

#: More names than these are counted, not listed.
_LISTED = 8
#: A hostlist is cut after this many characters.
_LONGEST = 70
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def duration(seconds: float) -> str:
    """Return a duration in its two largest units: ``3 h 20 min``."""
    left = round(seconds)
    parts: list[str] = []
    for unit, size in (("d", _DAY), ("h", _HOUR), ("min", _MINUTE), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def moment(time: float, now: float | None) -> str:
    """Return a time in UTC, and how far it is from now where that is known."""
    text = datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return text if now is None else f"{text} (in {duration(max(0.0, time - now))})"


def number(value: Any) -> str:
    """Return a priority: an integer as it is, a fraction or float as a decimal."""
    if isinstance(value, float):
        return f"{value:.15g}"
    return str(value.numerator) if value.denominator == 1 else f"{value.numerator / value.denominator:.15g}"


def figure(value: float) -> str:
    """Return a price: four digits, or all of a whole number."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"  # noqa: PLR2004 - four digits


def percent(share: float) -> str:
    """Return a share in whole percent, never 0 % or 100 % unless it is."""
    return f"{min(max(round(100 * share), share > 0), 100 - (share < 1)):.0f} %"


def asked(job: Job) -> list[str]:
    """Return every part of a job's request in words."""
    return [*_size(job), *_amounts(job), *_places(job)]


def _range(span: Span, thing: str) -> str:
    return plural(span.minimum, thing) if span.is_exact else f"{span.minimum} to {span.maximum} {thing}s"


def _size(job: Job) -> Iterator[str]:
    request = job.request
    if request.node_counts is not None:
        yield _range(request.node_counts, "empty node" if request.exclusive else "node")
    elif request.exclusive:
        yield "empty nodes"
    if request.cores_per_node is not None:
        yield f"{plural(request.cores_per_node, 'core')} a node"
    elif request.cores is not None:
        yield plural(request.cores, "core")
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
        yield f"with {shortened(request.required_nodes)}"
    if request.excluded_nodes:
        yield f"without {shortened(tuple(sorted(request.excluded_nodes)))}"
    if job.partition:
        yield f"partition {job.partition}"
    if job.time_limit_s is not None:
        yield f"for at most {duration(job.time_limit_s)}"


def dealt(counts: Sequence[int]) -> str:
    """Return the counts of nodes in their order, as Slurm writes them: ``4(x3),2``."""
    runs = [(count, len(list(same))) for count, same in groupby(counts)]
    return ",".join(f"{count}(x{times})" if times > 1 else f"{count}" for count, times in runs)


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    shown = ", ".join(names[:_LISTED])
    return shown if len(names) <= _LISTED else f"{shown} and {len(names) - _LISTED} more"


def shortened(nodes: Sequence[str]) -> str:
    """Return nodes as a hostlist, cut where it has many parts."""
    items = join(nodes)
    return items if len(items) <= _LONGEST else f"{items[:_LONGEST].rsplit(',', 1)[0]},… ({len(nodes)} nodes)"
