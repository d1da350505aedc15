"""The loop's log: a line of JSON for each thing that it is about to do, did, and saw come of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec

from ...cluster.text import escaped
from .shadow_log import RotatedLog


class LineJournal(Protocol):
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
        text = "".join(f"{escaped(msgspec.json.encode(line).decode())}\n" for line in lines)
        if text:
            self._log.append(text.encode())


class NoJournal:
    """Keeps nothing: of a loop that changes nothing."""

    def write(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Drop the lines."""
