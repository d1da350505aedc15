"""Bytes out: compressed logs and pictures, written whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from ..cluster.errors import InputError


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file whole: to a temporary file beside it, then renamed; ``-`` is standard output.

    Raises:
        InputError: the file cannot be written; nothing is left behind.
    """
    if str(path) == "-":
        sys.stdout.buffer.write(content)
        return
    target = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise InputError(error.strerror or str(error), file=str(path)) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(target)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise InputError(error.strerror or str(error), file=str(path)) from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
