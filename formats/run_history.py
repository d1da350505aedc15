"""The history of executions: an SQLite file of what runs of each name took (Nagendra, section 4.1.1).

A file may come from anybody. It is read only where its schema is this one, to the letter, so that no view,
trigger or generated column computes anything, and its queries take as many steps as its size allows.
"""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from math import isfinite
from pathlib import Path

from ..cluster.checks import LARGEST_COUNT, named
from ..cluster.errors import InputError
from .reading import check_size

#: A file of another program is not written to.
_APPLICATION_ID = 0x41554353
_SCHEMA = """
CREATE TABLE runs (
    name TEXT NOT NULL,
    job TEXT NOT NULL,
    nodes INTEGER NOT NULL CHECK (nodes > 0),
    run_time_s REAL NOT NULL CHECK (run_time_s > 0)
) STRICT
"""
_QUERY = "SELECT name, nodes, COUNT(*), AVG(run_time_s) FROM runs GROUP BY name, nodes ORDER BY name, nodes"
#: Bytes of a row, a name or a statement at most.
_LONGEST = 100_000
#: Steps of SQLite's machine: for any file, and for each of its bytes; a row of 20 bytes takes some 50.
_STEPS, _STEPS_A_BYTE, _REPORT_EVERY = 1_000_000, 20, 10_000


def load_history(path: Path) -> dict[str, dict[int, tuple[int, float]]]:
    """Return, by name and node count, how many runs there were and their mean run time in seconds.

    A file that is not there holds nothing.

    Raises:
        InputError: it cannot be read, or is no history.
    """
    known: dict[str, dict[int, tuple[int, float]]] = {}
    with _refused(path, "no history of runs"):
        size = _size_of(path)
        if size is None:
            return {}
        # Only who may write undoes what a killed process left half done.
        mode = "rw" if path.with_name(f"{path.name}-journal").exists() else "ro"
        with closing(_opened(path, mode)) as base:
            turns = iter(range((_STEPS + _STEPS_A_BYTE * size) // _REPORT_EVERY))
            base.set_progress_handler(lambda: next(turns, None) is None, _REPORT_EVERY)
            for name, nodes, count, mean in base.execute(_QUERY) if _is_history(base) else ():
                _check(name, nodes, mean)
                known.setdefault(name, {})[nodes] = (count, mean)
    return known


def add_to_history(path: Path, runs: Iterable[tuple[str, str, int, float]]) -> None:
    """Add runs (name, job, nodes, seconds of the whole job on them), all or none.

    Raises:
        InputError: the file cannot be written, or is no history.
    """
    with _refused(path, "the history cannot be written"):
        _size_of(path)
        with closing(_opened(path, "rwc")) as base, base:
            _add(base, runs)


def _add(base: sqlite3.Connection, runs: Iterable[tuple[str, str, int, float]]) -> None:
    if not _is_history(base):
        base.execute(_SCHEMA)
        base.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    base.executemany("INSERT INTO runs VALUES (?, ?, ?, ?)", runs)


@contextmanager
def _refused(path: Path, what: str) -> Iterator[None]:
    """Make of whatever SQLite and the system say one line that names the file."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise InputError(f"{what}: {' '.join(str(error).split())[:200]}", file=str(path)) from error
    except InputError as error:
        raise error.in_file(str(path)) from error


def _size_of(path: Path) -> int | None:
    """Return a file's size in bytes, None where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise InputError("no history of runs: it is no file")
    check_size(found.st_size)
    return found.st_size


def _opened(path: Path, mode: str) -> sqlite3.Connection:
    base = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True)
    base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    base.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _LONGEST)
    return base


def _is_history(base: sqlite3.Connection) -> bool:
    """Return whether a database is a history; an empty one is none yet.

    Raises:
        sqlite3.Error: it is something else.
    """
    (found,) = base.execute("PRAGMA application_id").fetchone()
    parts = base.execute("SELECT type, name, sql FROM sqlite_master LIMIT 2").fetchall()
    if parts and found != _APPLICATION_ID:
        raise sqlite3.DatabaseError("it is another program's database")
    for kind, name, text in parts:
        if (kind, name, str(text).split()) != ("table", "runs", _SCHEMA.split()):
            raise sqlite3.DatabaseError("it has another table, view or trigger than a history")
    return bool(parts)


def _check(name: object, nodes: object, mean: object) -> None:
    """Refuse what the schema lets no program write, but a damaged file may hold."""
    if not isinstance(name, str):
        raise InputError("a name is no text", path="runs.name")
    named(name, "runs.name")
    path = f"runs.{name[:60]}"
    if not isinstance(nodes, int) or not 1 <= nodes <= LARGEST_COUNT:
        raise InputError(f"{str(nodes)[:60]} is no number of nodes", path=path)
    if not isinstance(mean, float) or not isfinite(mean) or not 0 < mean <= LARGEST_COUNT:
        raise InputError(f"{str(mean)[:60]} is no time in seconds", path=path)
