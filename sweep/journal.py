"""The journal of a sweep: what is done, kept so that a sweep killed at any moment goes on.

One line a row, appended and synced before anybody hears of the row: CRC-32 of the text in hexadecimal, a
blank, the text in JSON. The first line says which sweep it is. A line cut short by a kill can only be the
last; it is dropped. The file is locked while a sweep writes it, and the lock dies with its process.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..cluster.errors import InputError
from .axes import Row

FORMAT = "aucsched-sweep/1"
_TORN_HEAD = re.compile(rb"[0-9a-f]{0,8}|[0-9a-f]{8} (\{.*)?")


class Journal:
    """An open journal; ``rows`` are those it held when it was opened, by number.

    Raises:
        InputError: it is another sweep's, damaged, in use, or cannot be written.
    """

    def __init__(self, path: Path, identity: Mapping[str, str], versions: Mapping[str, Any]) -> None:
        self.path = path
        self.rows: dict[int, Row] = {}
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise self._error(error.strerror or str(error)) from error
        try:
            self._lock()
            self.begun_with = self._read(identity) or self._begin(identity, versions)
        except BaseException:
            os.close(self._handle)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._handle)

    def add(self, row: Row) -> None:
        """Append a row; when this returns it is on the disk."""
        self._append({"row": row})

    def _error(self, message: str) -> InputError:
        return InputError(message, file=str(self.path))

    def _lock(self) -> None:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._error("another sweep is writing it") from None

    def _begin(self, identity: Mapping[str, str], versions: Mapping[str, Any]) -> Mapping[str, Any]:
        self._append({"format": FORMAT, "sweep": dict(identity), "versions": dict(versions)})
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return versions

    def _append(self, entry: Mapping[str, Any]) -> None:
        text = json.dumps(entry, separators=(",", ":")).encode()
        line = b"%08x %s\n" % (zlib.crc32(text), text)
        try:
            while line:
                line = line[os.write(self._handle, line) :]
            os.fsync(self._handle)
        except OSError as error:
            raise self._error(error.strerror or str(error)) from error

    def _read(self, identity: Mapping[str, str]) -> Mapping[str, Any] | None:
        """Read what is done, and cut off a line that was not finished; None when it has yet to begin."""
        with os.fdopen(os.dup(self._handle), "rb") as file:
            content = file.read()
        whole = content.rfind(b"\n") + 1
        if not whole and not _TORN_HEAD.fullmatch(content):
            raise self._error("it is no journal of a sweep")
        os.ftruncate(self._handle, whole)
        os.lseek(self._handle, whole, os.SEEK_SET)
        if not whole:
            return None
        first, *others = content[: whole - 1].split(b"\n")
        versions = self._checked_head(self._entry(first, 1), identity)
        for number, line in enumerate(others, start=2):
            row: Row = self._entry(line, number)["row"]
            self.rows[int(str(row["run"]))] = row
        return versions

    def _entry(self, line: bytes, number: int) -> Any:
        """Return a line's entry."""
        checksum, _, text = line.partition(b" ")
        if checksum != b"%08x" % zlib.crc32(text):
            what = "it is no journal of a sweep" if number == 1 else f"line {number} is damaged"
            raise self._error(what)
        return json.loads(text)

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
