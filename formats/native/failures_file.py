"""Failures of nodes (``aucsched-failures/1``): read and checked."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ...cluster.errors import InputError
from ...cluster.failures import Outage
from ..hostlist import expand
from ..jsontext import decode
from ..reading import read_document
from .from_wire import each

FORMAT = "aucsched-failures/1"


class OutageWire(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A hostlist of nodes, when they go down, and when they come back."""

    nodes: str
    down_s: float
    up_s: float | None = None


class FailuresWire(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The whole file: outages in any order."""

    format: str
    failures: list[OutageWire]


def load_failures(path: str | Path) -> tuple[Outage, ...]:
    """Read and check a file of failures, plain or gzip; ``-`` reads standard input.

    Raises:
        InputError: the file cannot be read or is no valid file of failures; names file, path and value.
    """
    return read_document(path, parse_failures)


def parse_failures(text: bytes) -> tuple[Outage, ...]:
    """Return the outages in a file's text; errors name the path and the value."""
    document = decode(text, FailuresWire)
    if document.format != FORMAT:
        raise InputError(f"{document.format!r} is not {FORMAT!r}", path="format")
    return each(document.failures, "failures", _outage)


def _outage(entry: OutageWire) -> Outage:
    return Outage(nodes=expand(entry.nodes, "nodes"), down_s=entry.down_s, up_s=entry.up_s)
