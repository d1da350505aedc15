"""Journals: files of checksummed lines that are appended to, and outlive a kill at any moment.

A line is the CRC-32 of its text in hexadecimal, a blank, the text. A kill can cut short only the
last line, which is then dropped. The file is locked while open, and the lock dies with its process.
A file that is begun again replaces the first by a rename: a kill leaves one or the other.
"""

import fcntl
import os
import re
import stat
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self, TypeVar

from ..cluster.errors import InputError, errors_in, system_errors
from .jsontext import decode
from .reading import bounded

T = TypeVar("T")

_TORN_HEAD = re.compile(rb"[0-9a-f]{0,8}|[0-9a-f]{8} (\{.*)?")


class CheckedLines:
    """An open journal; ``held`` are the texts it held when it was opened.

    Raises:
        InputError: it is no journal, no regular file, damaged, in use, or cannot be written.
    """

    def __init__(self, path: Path, *, kind: str, owner: str) -> None:
        self.path = path
        self._kind = kind
        self._waiting: list[bytes] = []
        self._handle = self._opened()
        try:
            # Once more: another may have been put there meanwhile.
            self._check_regular(os.fstat(self._handle).st_mode)
            self._lock(owner)
            self.held = self._read()
            self.size = os.fstat(self._handle).st_size
            if not self.held:
                sync(self.path.resolve().parent)
            self.take_up()
        except BaseException:
            os.close(self._handle)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the file go; texts that were not written are lost."""
        os.close(self._handle)

    def take_up(self) -> None:
        """Go on from what it held, as journals of a kind do; what this raises lets the file go."""

    def append(self, text: bytes) -> None:
        """Append a text, and those that wait; when this returns they are on the disk."""
        self.hold(text)
        self.flush()

    def hold(self, text: bytes) -> None:
        """Keep a text until the next flush: nothing that anybody hears of may depend on it."""
        self._waiting.append(_line(text))

    def flush(self) -> None:
        """Write the texts that wait; when this returns they are on the disk."""
        lines, self._waiting = b"".join(self._waiting), []
        if not lines:
            return
        self.size += len(lines)
        with system_errors(self.path):
            while lines:
                lines = lines[os.write(self._handle, lines) :]
            os.fsync(self._handle)

    def begin_again(self, texts: Iterable[bytes]) -> bool:
        """Let the file hold these texts instead; when this returns they are on the disk.

        Returns:
            False where no other file can be put in its place: it is as it was, and is continued.
        """
        content = b"".join(_line(text) for text in texts)
        path = self.path.resolve()
        new = path.with_name(f".{path.name}.new")
        try:
            handle = _replaced(path, new, content, os.fstat(self._handle).st_mode)
        except OSError:
            return False
        os.close(self._handle)
        self._handle, self._waiting, self.size = handle, [], len(content)
        sync(self.path.resolve().parent)
        return True

    def decoded(self, as_type: type[T], *, first: int = 1, most: int | None = None) -> list[T]:
        """Return the texts it held from a line on, at most so many, decoded.

        Raises:
            InputError: one of them is none; names the line.
        """
        found = []
        last = None if most is None else first - 1 + most
        for number, text in enumerate(self.held[first - 1 : last], start=first):
            try:
                found.append(decode(text, as_type))
            except InputError as error:
                raise self.error(f"line {number}: {error}") from error
        return found

    def error(self, message: str) -> InputError:
        """Return an error that names the file."""
        return InputError(message, file=str(self.path))

    def _opened(self) -> int:
        """Open the file; a device or a FIFO is refused before opening it does anything to it."""
        with system_errors(self.path):
            with suppress(FileNotFoundError):
                self._check_regular(os.stat(self.path).st_mode)  # noqa: PTH116 - like os.open
            return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)

    def _check_regular(self, mode: int) -> None:
        if not stat.S_ISREG(mode):
            raise self.error(f"it is not a regular file, and not a {self._kind}")

    def _lock(self, owner: str) -> None:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self.error(f"another {owner} is writing it") from None
        # What was opened may have been replaced before it was locked: then the other's is the file.
        if not os.path.samestat(os.fstat(self._handle), os.stat(self.path)):  # noqa: PTH116 - beside os.fstat
            raise self.error(f"another {owner} is writing it")

    def _read(self) -> list[bytes]:
        """Return the texts, and cut off a line that was not finished."""
        with os.fdopen(os.dup(self._handle), "rb") as file, errors_in(self.path):
            content = bounded(file)
        whole = content.rfind(b"\n") + 1
        if not whole and not _TORN_HEAD.fullmatch(content):
            raise self.error(f"it is not a {self._kind}")
        lines = content[:whole].split(b"\n")[:-1]
        texts = [self._text(line, number) for number, line in enumerate(lines, start=1)]
        os.ftruncate(self._handle, whole)
        os.lseek(self._handle, whole, os.SEEK_SET)
        return texts

    def _text(self, line: bytes, number: int) -> bytes:
        checksum, _, text = line.partition(b" ")
        if checksum != b"%08x" % zlib.crc32(text):
            raise self.error(f"it is not a {self._kind}" if number == 1 else f"line {number} is damaged")
        return text


def sync(path: Path) -> None:
    """Bring a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _line(text: bytes) -> bytes:
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _replaced(path: Path, new: Path, content: bytes, mode: int) -> int:
    """Write a new file, locked, onto the disk, put it in a path's place, and return its handle."""
    with suppress(FileNotFoundError):
        new.unlink()  # of a process that was killed before it could put it in its place
    handle = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(handle, stat.S_IMODE(mode))
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        while content:
            content = content[os.write(handle, content) :]
        os.fsync(handle)
        new.rename(path)
    except BaseException:
        os.close(handle)
        with suppress(OSError):
            new.unlink()
        raise
    return handle
