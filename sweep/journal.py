"""The journal of a sweep: what is done, kept so that a sweep killed at any moment goes on.

One line a row (``formats/checked_lines.py``), on the disk before anybody hears of the row. The first line
says which sweep it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..cluster.errors import InputError
from ..formats.checked_lines import CheckedLines
from .axes import Row

FORMAT = "aucsched-sweep/1"


class Journal:
    """An open journal; ``rows`` are those it held when it was opened, by number.

    Raises:
        InputError: it is another sweep's, damaged, in use, or cannot be written.
    """

    def __init__(self, path: Path, identity: Mapping[str, str], versions: Mapping[str, Any]) -> None:
        self.path = path
        self.rows: dict[int, Row] = {}
        self._lines = CheckedLines(path, kind="journal of a sweep", owner="sweep")
        try:
            self.begun_with = self._read(identity) or self._begin(identity, versions)
        except BaseException:
            self._lines.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.close()

    def add(self, row: Row) -> None:
        """Append a row; when this returns it is on the disk."""
        self._append({"row": row})

    def _error(self, message: str) -> InputError:
        return self._lines.error(message)

    def _begin(self, identity: Mapping[str, str], versions: Mapping[str, Any]) -> Mapping[str, Any]:
        self._append({"format": FORMAT, "sweep": dict(identity), "versions": dict(versions)})
        return versions

    def _append(self, entry: Mapping[str, Any]) -> None:
        self._lines.append(json.dumps(entry, separators=(",", ":")).encode())

    def _read(self, identity: Mapping[str, str]) -> Mapping[str, Any] | None:
        """Read what is done; None when it has yet to begin."""
        if not self._lines.held:
            return None
        first, *others = self._lines.held
        versions = self._checked_head(json.loads(first), identity)
        for line in others:
            row: Row = json.loads(line)["row"]
            self.rows[int(str(row["run"]))] = row
        return versions

    def _checked_head(self, head: Any, identity: Mapping[str, str]) -> Mapping[str, Any]:
        """Return the versions that the sweep began with; refuse another sweep's journal."""
        if head.get("format") != FORMAT:
            raise self._error(f"{head.get('format')!r} is not {FORMAT!r}")
        for name in {**head["sweep"], **identity}:
            then, now = head["sweep"].get(name), identity.get(name)
            if then != now:
                difference = f"the sweep it holds has {_said(name, then)}, this one {_said(name, now)}"
                raise self._error(f"{difference}; give another -o, or remove it to begin anew")
        versions: Mapping[str, Any] = head["versions"]
        return versions


def _said(name: str, value: str | None) -> str:
    """Return one part of a sweep's identity as a person reads it."""
    if value is None:
        return f"no {name}"
    if name == "input":
        kind, digest = value.split()
        return f"as input a {kind} of SHA-256 {digest[:12]}…"
    return f"{name} {value}"
