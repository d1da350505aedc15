"""Standard input, output and error of the command: also closed, full, or narrow in encoding."""

import codecs
import errno
import io
import os
import sys
from typing import Any, TextIO

from ..cluster.text import escape

#: The error handler that writes characters outside an encoding as JSON escapes.
ESCAPED = "aucsched.escape"
_STDIN, _STDOUT, _STDERR = range(3)


class OutputLostError(Exception):
    """Standard output cannot be written: says why, unless its reader has gone or it is closed."""


def prepare_streams() -> None:
    """Make the standard streams such that no text and no missing stream ends in a traceback.

    Raises OutputLostError, later, from whatever writes to a standard output that takes nothing.
    """
    for number in (_STDIN, _STDOUT, _STDERR):
        _fill(number)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(_STDIN, "r", closefd=False)))
    sys.stdout = _writer(sys.stdout, _Output(_STDOUT, "w", closefd=False))
    sys.stderr = _writer(sys.stderr, _Output(_STDERR, "w", closefd=False))


def give_up_output() -> None:
    """Drop what is held back: no reader is left, and the interpreter must not try at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _STDOUT)
    os.close(nowhere)


def _fill(number: int) -> None:
    """Make a closed stream's number one that fails in use, so that no other file takes it."""
    try:
        os.fstat(number)
    except OSError:
        handle = os.open(os.devnull, os.O_WRONLY if number == _STDIN else os.O_RDONLY)
        if handle != number:
            os.dup2(handle, number)
            os.close(handle)


def _writer(before: TextIO | None, raw: io.FileIO) -> TextIO:
    encoding = before.encoding if before is not None else "utf-8"
    kind = _Ascii if codecs.lookup(encoding).name == "ascii" else io.TextIOWrapper
    by_line = raw.isatty() or raw.fileno() == _STDERR
    return kind(io.BufferedWriter(raw), encoding=encoding, errors=ESCAPED, line_buffering=by_line)


class _Ascii(io.TextIOWrapper):
    """A stream of ASCII that does not say so: past one that does click writes UTF-8."""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "ascii with escapes"


class _Output(io.FileIO):
    """Standard output: what goes wrong with it is no file's error.

    What cannot be written to standard error is dropped, for there is nowhere else to report it.
    """

    def write(self, content: Any) -> int:
        try:
            return super().write(content) or 0
        except OSError as error:
            if self.fileno() == _STDERR:
                return len(content)
            wanted = error.errno not in (errno.EPIPE, errno.EBADF)
            raise OutputLostError(error.strerror if wanted else "") from error


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(escape, error.object[error.start : error.end])), error.end


codecs.register_error(ESCAPED, _escaped)
