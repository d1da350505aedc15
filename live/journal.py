"""The loop's log: a line of JSON for each thing that it is about to do, did, and saw come of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec

from .shadow_log import RotatedLog


class Journal(Protocol):
    """Takes lines."""

    def write(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Keep lines before anything else is done.

        Raises:
            AucschedError: they cannot be kept: then nothing is changed either.
        """
        ...


class FileJournal:
    """Appends to a log that is rotated."""

    def __init__(self, log: RotatedLog) -> None:
        self._log = log

    def write(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Append lines.

        Raises:
            InputError: they cannot be written.
        """
        text = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        if text:
            self._log.append(text)


class NoJournal:
    """Keeps nothing: of a loop that changes nothing."""

    def write(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Drop the lines."""
