"""The journal of a sweep, from which a sweep killed at any moment resumes, and which a larger one takes over.

One line a row (``formats/checked_lines.py``), on the disk before anybody hears of the row. The first line
says which sweep it is.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..cluster.errors import InputError
from ..cluster.text import hidden_in
from ..formats.checked_lines import CheckedLines
from .axes import Row
from .run_plan import FAILED, versions

FORMAT = "aucsched-sweep/1"

#: Columns of a result that hold texts.
_TEXTS = frozenset({"status", "error", *versions()})
_LARGEST = 2**63
#: Halves of surrogate pairs, which JSON may hold and no file.
_HALVES = re.compile("[\ud800-\udfff]")


class Journal:
    """An open journal; ``rows`` are those it held when it was opened, by number.

    Args:
        path: the file.
        identity: what makes this sweep the one it is, in words for people.
        runs: the options of each run, by number: a row of the journal must have the same.
        versions: what computes the rows.

    Raises:
        InputError: it is another sweep's, damaged, in use, or cannot be written.
    """

    def __init__(
        self,
        path: Path,
        identity: Mapping[str, str],
        runs: Sequence[Row],
        versions: Mapping[str, Any],
    ) -> None:
        self.path = path
        self._runs = runs
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
        versions = self._checked_head(self._decoded(first, 1), identity)
        for number, line in enumerate(others, start=2):
            row = self._checked_row(self._decoded(line, number), number)
            self.rows[int(str(row["run"]))] = row
        return versions

    def _decoded(self, line: bytes, number: int) -> dict[str, Any]:
        """Return a line's object; a good checksum only says that nobody damaged it by accident."""
        entry = _decoded(line)
        if entry is None:
            raise self._error(f"line {number} is not a JSON object")
        return entry

    def _checked_row(self, entry: Mapping[str, Any], number: int) -> Row:
        """Return the row of a line that is one of this sweep's runs, with that run's options."""
        row = entry.get("row")
        if entry.keys() != {"row"} or not isinstance(row, dict):
            raise self._error(f"line {number} is not a row of a sweep")
        run = row.get("run")
        if type(run) is not int or not 0 <= run < len(self._runs):
            raise self._error(f"line {number}: run {run!r} is not one of this sweep's {len(self._runs)}")
        for name, value in self._runs[run].items():
            if name not in row or row[name] != value:
                raise self._error(f"line {number}: run {run} has {name} {value}, not {_short(row.get(name))}")
        for name in row.keys() - self._runs[run].keys():
            if hidden_in(name) or not _is_result(name, row[name]):
                raise self._error(f"line {number}: {_short(row[name])} is not a value of {_short(name)}")
        if not row.get("status") or (row["status"] == FAILED and not row.get("error")):
            raise self._error(f"line {number}: run {run} does not say how it ended")
        return row

    def _checked_head(self, head: Mapping[str, Any], identity: Mapping[str, str]) -> Mapping[str, Any]:
        """Return the versions that the sweep began with; refuse another sweep's journal."""
        if head.get("format") != FORMAT:
            raise self._error(f"{head.get('format')!r} is not {FORMAT!r}")
        if not all(_is_table_of_texts(head.get(name)) for name in ("sweep", "versions")):
            raise self._error("line 1 does not say which sweep it is")
        for name in {**head["sweep"], **identity}:
            then, now = head["sweep"].get(name), identity.get(name)
            if then != now:
                difference = f"the sweep it holds has {_setting(name, then)}, this one {_setting(name, now)}"
                raise self._error(f"{difference}; give another -o, or remove it to begin anew")
        versions: Mapping[str, Any] = head["versions"]
        return versions


def _is_result(name: str, value: Any) -> bool:
    """Whether a result's column may hold a value: a text in a few, a number of 64 bits in all others."""
    if name in _TEXTS:
        return value is None or (isinstance(value, str) and not _HALVES.search(value))
    return value is None or type(value) is float or (type(value) is int and abs(value) < _LARGEST)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."  # noqa: PLR2004 - an error is one line


def _is_table_of_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _setting(name: str, value: str | None) -> str:
    """Return one part of a sweep's identity as a person reads it."""
    if value is None:
        return f"no {name}"
    if name == "input":
        kind, _, digest = value.partition(" ")
        return f"as input a {kind} of SHA-256 {digest[:12]}…"
    return f"{name} {value}"


#: What two sweeps must share, in words of Plan.identity.
_SAME = ("input", "--seed")


def grow(path: Path, identity: Mapping[str, str], runs: Sequence[Row]) -> int:
    """Let a journal be that of a larger sweep, where all its runs are among the larger one's.

    The file is replaced whole: a kill leaves the old journal or the new one. What is no such journal is left
    alone, for its reader to refuse.

    Args:
        path: of the journal.
        identity: of the larger sweep.
        runs: the options of each of its runs, by number.

    Returns:
        How many rows were taken over; 0 where nothing was done.

    Raises:
        InputError: the file is damaged, in use, or cannot be written.
    """
    if not path.exists():
        return 0
    with CheckedLines(path, kind="journal of a sweep", owner="sweep") as lines:
        entries = [_decoded(text) for text in lines.held]
        if not entries or any(entry is None for entry in entries):
            return 0
        head, *others = (entry for entry in entries if entry is not None)
        before = head.get("sweep")
        if not isinstance(before, dict) or before == dict(identity):
            return 0
        if any(before.get(name) != identity.get(name) for name in _SAME):
            return 0
        rows = _renumbered([entry.get("row") for entry in others], runs)
        if not rows:
            return 0
        _replace(path, {**head, "sweep": dict(identity)}, rows)
        return len(rows)


def _decoded(text: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _renumbered(rows: Sequence[Any], runs: Sequence[Row]) -> list[Row]:
    """Return the rows with the numbers of the runs of the same options; none where one has no such run."""
    numbers: dict[tuple[str, ...], dict[str, int]] = {}
    for number, options in enumerate(runs):
        names = tuple(sorted(options))
        numbers.setdefault(names, {})[_key(options, names)] = number
    found: dict[int, Row] = {}
    for row in rows:
        if not isinstance(row, dict):
            return []
        places = {by[_key(row, names)] for names, by in numbers.items() if _key(row, names) in by}
        if len(places) != 1 or not places.isdisjoint(found):
            return []
        number = places.pop()
        found[number] = {**row, "run": number}
    return list(found.values())


def _key(row: Row, names: Sequence[str]) -> str:
    return json.dumps([row.get(name) for name in names])


def _replace(path: Path, head: Mapping[str, Any], rows: Sequence[Row]) -> None:
    beside = path.with_name(f"{path.name}.grown")
    beside.unlink(missing_ok=True)
    with CheckedLines(beside, kind="journal of a sweep", owner="sweep") as lines:
        for entry in (head, *({"row": row} for row in rows)):
            lines.hold(json.dumps(entry, separators=(",", ":")).encode())
        lines.flush()
        os.replace(beside, path)  # noqa: PTH105 - beside the other calls of os
