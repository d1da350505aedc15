"""A sweep that grows: the journal of a smaller grid over the same input is taken over, nothing runs twice."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..formats.checked_lines import CheckedLines
from .axes import Row

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
