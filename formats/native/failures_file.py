"""Failures of nodes (``aucsched-failures/1``): read and checked."""

from __future__ import annotations

from pathlib import Path
from types import GenericAlias
from typing import Any

import msgspec

from ...cluster.errors import InputError
from ...cluster.failures import Outage
from ..jsontext import decode
from ..reading import read_document
from .file_objects import FileObject, each, file_form

FORMAT = "aucsched-failures/1"
_OUTAGE = file_form(Outage)
#: The whole file: outages in any order.
_FAILURES: Any = msgspec.defstruct(
    "Failures",
    [("format", str), ("failures", GenericAlias(list, _OUTAGE.struct))],
    bases=(FileObject,),
    kw_only=True,
)


def load_failures(path: str | Path) -> tuple[Outage, ...]:
    """Read and check a file of failures, plain or gzip; ``-`` reads standard input.

    Raises:
        InputError: the file cannot be read or is no valid file of failures; names file, path and value.
    """
    return read_document(path, parse_failures)


def parse_failures(text: bytes) -> tuple[Outage, ...]:
    """Return the outages in a file's text; errors name the path and the value."""
    document = decode(text, _FAILURES)
    if document.format != FORMAT:
        raise InputError(f"{document.format!r} is not {FORMAT!r}", path="format")
    return each(document.failures, "failures", _OUTAGE.build)
