"""SQLite files from any source: read only if their schema is the expected one, to the letter.

So no view, trigger or generated column computes anything, and queries take as many steps as the
file's size allows.
"""

import sqlite3
import stat
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..cluster.errors import InputError, errors_in, shown_name
from .reading import check_size

#: A file of another program is not written to.
_APPLICATION_ID = 0x41554353
#: Bytes of a row, a name or a statement at most.
_LONGEST = 100_000
#: Steps of SQLite's machine: for any file, and for each byte; a row of 20 bytes takes some 50.
_STEPS, _STEPS_A_BYTE, _REPORT_EVERY = 1_000_000, 20, 10_000


@dataclass(frozen=True, slots=True)
class SqliteTable:
    """The one table of a file.

    Attributes:
        what: the file is, in an error that says it is none: ``history of runs``.
        kind: the same in one word.
    """

    name: str
    schema: str
    what: str
    kind: str

    def read(self, path: Path, query: str) -> Iterator[tuple[Any, ...]]:
        """Yield what a query finds; of a file that is not there nothing.

        Raises:
            InputError: it cannot be read, or is another file.
        """
        with _refused(path, f"no {self.what}"):
            size = self._size_of(path)
            if size is None:
                return
            # Only who may write undoes what a killed process left half done.
            mode = "rw" if path.with_name(f"{path.name}-journal").exists() else "ro"
            with closing(_opened(path, mode)) as base:
                turns = iter(range((_STEPS + _STEPS_A_BYTE * size) // _REPORT_EVERY))
                base.set_progress_handler(lambda: next(turns, None) is None, _REPORT_EVERY)
                yield from base.execute(query) if self._is_in(base) else ()

    def write(self, path: Path, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Run a statement with each row, all or none; the file is made where there is none.

        Raises:
            InputError: it cannot be written, or is another file.
        """
        with _refused(path, f"the {self.kind} cannot be written"):
            self._size_of(path)
            with closing(_opened(path, "rwc")) as base, base:
                if not self._is_in(base):
                    base.execute(self.schema)
                    base.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                base.executemany(statement, rows)

    def _size_of(self, path: Path) -> int | None:
        """Return a file's size in bytes, None where there is none."""
        try:
            found = path.stat()
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"no {self.what}: it is not a file")
        check_size(found.st_size)
        return found.st_size

    def _is_in(self, base: sqlite3.Connection) -> bool:
        """Return whether a database holds the table; an empty one does not yet.

        Raises:
            sqlite3.Error: it is something else.
        """
        (found,) = base.execute("PRAGMA application_id").fetchone()
        parts = base.execute("SELECT type, name, sql FROM sqlite_master LIMIT 2").fetchall()
        if parts and found != _APPLICATION_ID:
            raise sqlite3.DatabaseError("it is another program's database")
        for kind, name, text in parts:
            if (kind, name, str(text).split()) != ("table", self.name, self.schema.split()):
                raise sqlite3.DatabaseError(f"it has another table, view or trigger than a {self.kind}")
        return bool(parts)


@contextmanager
def _refused(path: Path, what: str) -> Iterator[None]:
    """Make of whatever SQLite and the system say one line that names the file."""
    try:
        with errors_in(path):
            yield
    except (sqlite3.Error, OSError, ValueError) as error:  # a name with a null is a ValueError
        raise InputError(f"{what}: {' '.join(str(error).split())[:200]}", file=shown_name(path)) from error


def _opened(path: Path, mode: str) -> sqlite3.Connection:
    base = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True)
    base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    base.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _LONGEST)
    return base
