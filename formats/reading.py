"""Files in: read whole, unpacked where they are gzip, errors named after them."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ..cluster.errors import InputError

T = TypeVar("T")

#: How a gzip file begins.
GZIP = b"\x1f\x8b"


def read_document(path: str | Path, parse: Callable[[bytes], T]) -> T:
    """Read a file and return what ``parse`` makes of it; ``-`` reads standard input.

    Raises:
        InputError: the file cannot be read, or ``parse`` refuses it; names the file.
    """
    name = str(path)
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(path).read_bytes()
    except OSError as error:
        raise InputError(error.strerror or str(error), file=name) from error
    try:
        return parse(content)
    except InputError as error:
        raise error.in_file("standard input" if name == "-" else name) from error


def unpacked(content: bytes) -> bytes:
    """Return a file's content, unpacked where it is gzip (told by its content).

    Raises:
        InputError: it is cut short or damaged.
    """
    try:
        return gzip.decompress(content) if content.startswith(GZIP) else content
    except (EOFError, OSError, zlib.error) as error:
        raise InputError("the gzip file is cut short or damaged") from error
