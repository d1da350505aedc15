"""The history of executions: an SQLite file of what runs of each name took (Nagendra, section 4.1.1)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from ..cluster.errors import InputError

#: A file of another program is not written to.
_APPLICATION_ID = 0x41554353
_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    name TEXT NOT NULL,
    job TEXT NOT NULL,
    nodes INTEGER NOT NULL CHECK (nodes > 0),
    run_time_s REAL NOT NULL CHECK (run_time_s > 0)
) STRICT
"""


def load_history(path: Path) -> dict[str, dict[int, tuple[int, float]]]:
    """Return, by name and node count, how many runs there were and their mean run time in seconds.

    A file that is not there holds nothing.

    Raises:
        InputError: it cannot be read, or is no history.
    """
    if not path.exists():
        return {}
    known: dict[str, dict[int, tuple[int, float]]] = {}
    query = (
        "SELECT name, nodes, COUNT(*), AVG(run_time_s) FROM runs GROUP BY name, nodes ORDER BY name, nodes"
    )
    try:
        with closing(_opened(path)) as base:
            for name, nodes, count, mean in base.execute(query):
                known.setdefault(name, {})[nodes] = (count, mean)
    except sqlite3.Error as error:
        raise InputError(f"no history of runs: {error}", file=str(path)) from error
    return known


def add_to_history(path: Path, runs: Iterable[tuple[str, str, int, float]]) -> None:
    """Add runs (name, job, nodes, seconds of the whole job on them), all or none.

    Raises:
        InputError: the file cannot be written, or is no history.
    """
    try:
        with closing(_opened(path)) as base, base:
            base.execute(_SCHEMA)
            base.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            base.executemany("INSERT INTO runs VALUES (?, ?, ?, ?)", runs)
    except sqlite3.Error as error:
        raise InputError(f"the history cannot be written: {error}", file=str(path)) from error


def _opened(path: Path) -> sqlite3.Connection:
    """Open a file that is a history, or is empty."""
    base = sqlite3.connect(path)
    try:
        (found,) = base.execute("PRAGMA application_id").fetchone()
        (tables,) = base.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        base.close()
        raise
    if tables and found != _APPLICATION_ID:
        base.close()
        raise sqlite3.DatabaseError("it is another program's database")
    return base
