"""What a pinned job carries in a comment of its own, so that Slurm alone knows all that the loop needs.

A mark says since when the job is pinned, what it holds on each node, and what it had asked for before:
whoever finds a pinned job that does not start, this process or a later one, can put it back as it was.
The mark of a waiting job has its promised start, so that a later process keeps the promise. A mark
has no blank and no quote: scontrol reads it as one word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from urllib.parse import parse_qsl, quote, urlencode

_HEAD = "aucsched?"
_GRES = "gres."
_CORES = re.compile(r"(\d{1,7})(?:\*(\d{1,6}))?", re.ASCII)
_COUNT = re.compile(r"\d{1,12}", re.ASCII)
_SAFE = "*:,[]-._"


class Carrier(StrEnum):
    """Which of a job's comments carries the mark: Slurm 22.05 lets only administrators write AdminComment."""

    ADMIN_COMMENT = "admin-comment"
    COMMENT = "comment"

    @property
    def member(self) -> str:
        """Return its name in squeue's JSON."""
        return self.value.replace("-", "_")

    @property
    def word(self) -> str:
        """Return its name in scontrol's words."""
        return "AdminComment" if self is Carrier.ADMIN_COMMENT else "Comment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A pin.

    Attributes:
        since: when it was made, seconds since the epoch; 0 for a job that is not pinned now.
        tries: how often the job was put back behind the gate before.
        cores: on each of its nodes, in their order.
        gres: the most on any of its nodes, by name.
        nodes: the nodes that it had to have before, a hostlist.
        span: its fewest and most nodes before; most 0 where it had none.
        cpus, min_cpus: before.
        comment: what stood in its place before.
        promised: the latest start that the job was promised, seconds since the epoch; 0: none.
    """

    since: int = 0
    tries: int = 0
    cores: Sequence[int] = ()
    gres: Mapping[str, int] = field(default_factory=dict)
    nodes: str = ""
    span: tuple[int, int] = (1, 0)
    cpus: int = 0
    min_cpus: int = 1
    comment: str = ""
    promised: int = 0


def write_mark(mark: Mark) -> str:
    """Return a mark as a comment's text."""
    cores = ",".join(_run(cores, len(list(group))) for cores, group in groupby(mark.cores))
    fields = {
        "v": 1,
        "since": mark.since,
        "tries": mark.tries,
        "cores": cores,
        "nodes": mark.nodes,
        "span": f"{mark.span[0]}-{mark.span[1]}",
        "cpus": mark.cpus,
        "min": mark.min_cpus,
        "comment": mark.comment,
        "promised": mark.promised,
        **{f"{_GRES}{name}": count for name, count in mark.gres.items()},
    }
    kept = {name: value for name, value in fields.items() if value not in ("", 0)}
    return _HEAD + urlencode(kept, quote_via=quote, safe=_SAFE)


def _run(cores: int, count: int) -> str:
    return f"{cores}*{count}" if count > 1 else str(cores)


def read_mark(comment: str) -> Mark | None:
    """Return the mark that a comment is, None where it is none of ours, or was changed by hand."""
    if not comment.startswith(_HEAD):
        return None
    fields = dict(parse_qsl(comment.removeprefix(_HEAD), keep_blank_values=True))
    try:
        return _mark(fields) if fields.get("v") == "1" else None
    except ValueError:
        return None


def _mark(fields: Mapping[str, str]) -> Mark:
    low, _, high = fields.get("span", "1-0").partition("-")
    return Mark(
        since=_number(fields.get("since", "0")),
        tries=_number(fields.get("tries", "0")),
        cores=_cores(fields.get("cores", "")),
        gres={
            name.removeprefix(_GRES): _number(value)
            for name, value in fields.items()
            if name.startswith(_GRES)
        },
        nodes=fields.get("nodes", ""),
        span=(_number(low), _number(high)),
        cpus=_number(fields.get("cpus", "0")),
        min_cpus=_number(fields.get("min", "1")),
        comment=fields.get("comment", ""),
        promised=_number(fields.get("promised", "0")),
    )


def _number(text: str) -> int:
    if not _COUNT.fullmatch(text):
        raise ValueError(text)
    return int(text)


def _cores(text: str) -> tuple[int, ...]:
    found: list[int] = []
    for part in filter(None, text.split(",")):
        match = _CORES.fullmatch(part)
        if match is None:
            raise ValueError(part)
        found += [int(match[1])] * int(match[2] or 1)
    return tuple(found)
