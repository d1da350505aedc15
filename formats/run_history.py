"""The history of executions: an SQLite file of what runs of each name took (Nagendra, section 4.1.1)."""

from collections.abc import Iterable
from math import isfinite
from pathlib import Path

from ..cluster.checks import LARGEST_COUNT, named
from ..cluster.errors import InputError, errors_in
from .sqlite_file import SqliteTable

_RUNS = SqliteTable(
    name="runs",
    schema="""
CREATE TABLE runs (
    name TEXT NOT NULL,
    job TEXT NOT NULL,
    nodes INTEGER NOT NULL CHECK (nodes > 0),
    run_time_s REAL NOT NULL CHECK (run_time_s > 0)
) STRICT
""",
    what="history of runs",
    kind="history",
)
_QUERY = "SELECT name, nodes, COUNT(*), AVG(run_time_s) FROM runs GROUP BY name, nodes ORDER BY name, nodes"


def load_history(path: Path) -> dict[str, dict[int, tuple[int, float]]]:
    """Return, by name and node count, how many runs there were and their mean run time in seconds.

    A file that is not there holds nothing.

    Raises:
        InputError: it cannot be read, or is no history.
    """
    known: dict[str, dict[int, tuple[int, float]]] = {}
    for name, nodes, count, mean in _RUNS.read(path, _QUERY):
        with errors_in(path):
            _check(name, nodes, mean)
        known.setdefault(name, {})[nodes] = (count, mean)
    return known


def add_to_history(path: Path, runs: Iterable[tuple[str, str, int, float]]) -> None:
    """Add runs (name, job, nodes, seconds of the whole job on them), all or none.

    Raises:
        InputError: the file cannot be written, or is no history.
    """
    _RUNS.write(path, "INSERT INTO runs VALUES (?, ?, ?, ?)", runs)


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
