"""The loop's log: a line of JSON for each thing that it is about to do, did, and saw come of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ..cluster.errors import AucschedError


class NotLoggedError(AucschedError):
    """A line could not be written: then nothing is changed either."""


class Journal(Protocol):
    """Takes lines."""

    def write(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Keep lines for good before anything else is done.

        Raises:
            NotLoggedError: they cannot be kept.
        """
        ...


class FileJournal:
    """Appends to a file, and returns when the lines are on the disk."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Append lines; the file is opened each time, so that it may be rotated.

        Raises:
            NotLoggedError: they cannot be written.
        """
        text = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        if not text:
            return
        try:
            with self._path.open("ab", buffering=0) as file:
                end = file.tell()
                if file.write(text) != len(text):
                    # A line that is cut off would spoil the next.
                    file.truncate(end)
                    raise NotLoggedError(f"{self._path}: no space left")
                os.fsync(file.fileno())
        except OSError as error:
            raise NotLoggedError(f"{self._path}: {error.strerror or error}") from error


class NoJournal:
    """Keeps nothing: of a loop that changes nothing."""

    def write(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Drop the lines."""
