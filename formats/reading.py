"""Files in: read within a limit, unpacked where they are gzip, errors named after them.

Every reader of a file or of standard input goes through here, so that neither an endless device nor
a small file that unpacks to a huge one costs more than the limit.
"""

import gzip
import hashlib
import io
import os
import re
import stat
import sys
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, AnyStr, BinaryIO, TypeVar

from ..cluster.errors import InputError, OptionError, errors_in, path_of, shown_name, system_errors
from ..cluster.text import shown
from .hostlist import one_file

T = TypeVar("T")
_Binary = BinaryIO | io.BufferedIOBase

#: How a gzip file begins.
GZIP = b"\x1f\x8b"
#: The most bytes that a file may hold, unpacked; LIMIT_VARIABLE sets another limit, in MiB.
MOST_BYTES = 2**30
LIMIT_VARIABLE = "AUCSCHED_INPUT_LIMIT_MIB"
#: Logs and workloads shrink to 1/10, Slurm's JSON to 1/50: what shrank more is no such file.
_MOST_RATIO = 100
#: Up to this many bytes are unpacked of any file, whatever its ratio.
_ALWAYS_UNPACKED = 2**26
_CHUNK = 2**20
_LARGEST_LIMIT_MIB = 2**30
#: How lines end, in texts and in bytes, and what a line is that is not blank.
_ENDS: Mapping[type, Any] = {
    str: ("\r\n", "\r", "\n", re.compile(r"\S[^\n]*+")),
    bytes: (b"\r\n", b"\r", b"\n", re.compile(rb"\S[^\n]*+")),
}

#: SHA-256 of each file that this process has read, by its name in messages, for reports.
READ: dict[str, str] = {}


def read_document(path: str | Path, parse: Callable[[bytes], T]) -> T:
    """Read a file, plain or gzip, and return what ``parse`` makes of it; ``-``: standard input.

    Its hostlists hold so many names together (``hostlist.one_file``), in whatever format.

    Raises:
        InputError: the file cannot be read, is too large, or ``parse`` refuses it; names the file.
    """
    path_of(path)
    with errors_in(path), one_file():
        return parse(unpacked(read_bytes(path)))


def read_bytes(path: str | Path) -> bytes:
    """Return a file's content as it is; ``-`` reads standard input.

    Raises:
        InputError: the file cannot be read or is above the limit of all inputs; names the file.
    """
    with errors_in(path), system_errors(path):
        if str(path) == "-":
            content = bounded(sys.stdin.buffer)
        else:
            with Path(path).open("rb") as file:
                content = bounded(file)
    READ[shown_name(path)] = hashlib.sha256(content).hexdigest()
    return content


def bounded(file: _Binary, most: int | None = None) -> bytes:
    """Return what an open file holds from here on.

    Raises:
        InputError: it holds more than ``most`` bytes (default: the limit), or a device never ends.
    """
    most = _limit() if most is None else most
    chunks: list[bytes] = []
    left = most
    while chunk := file.read(min(_CHUNK, left + 1)):
        left -= len(chunk)
        if left < 0:
            raise _too_large(most)
        if chunks and b"\x00" in chunk and _is_device(file):
            raise InputError("it is a device that gives no text")
        chunks.append(chunk)
    return b"".join(chunks)


def check_size(count: int) -> None:
    """Refuse a file of more bytes than the limit of all inputs, which another program is to read.

    Raises:
        InputError: it is.
    """
    if count > (most := _limit()):
        raise _too_large(most)


def _too_large(most: int) -> InputError:
    return InputError(f"it holds more than {_size(most)}")


def _is_device(file: _Binary) -> bool:
    try:
        return stat.S_ISCHR(os.fstat(file.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def unpacked(content: bytes) -> bytes:
    """Return a file's content, unpacked where it is gzip (recognised by its content).

    Raises:
        InputError: it is cut short or damaged, unpacks to more than the limit, or to very much more
            than its own size.
    """
    if not content.startswith(GZIP):
        return content
    most = _limit()
    if most == MOST_BYTES:
        most = min(most, max(_ALWAYS_UNPACKED, _MOST_RATIO * len(content)))
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            return bounded(file, most)
    except (EOFError, OSError, zlib.error) as error:
        raise InputError("the gzip file is cut short or damaged") from error
    except InputError as error:
        message = f"the gzip file unpacks to more than {_size(most)}"
        raise InputError(message) from error


def _limit() -> int:
    """Return the most bytes that a file may hold."""
    text = os.environ.get(LIMIT_VARIABLE)
    if text is None:
        return MOST_BYTES
    if not re.fullmatch(r"[0-9]{1,10}", text) or not 1 <= int(text) <= _LARGEST_LIMIT_MIB:
        raise OptionError(f"{LIMIT_VARIABLE}: {text[:60]!r} is not a number of MiB above 0")
    return int(text) * 2**20


def _size(most: int) -> str:
    """Return a limit in words, and how to set another where that would lift it."""
    mebi = 2**20
    size = f"{most // mebi} MiB" if most >= mebi and not most % mebi else f"{most} bytes"
    return f"{size} ({LIMIT_VARIABLE} sets another limit)" if most >= _ALWAYS_UNPACKED else size


def content_of(text: bytes | str) -> bytes:
    """Return a file's text as its bytes, without a byte order mark.

    Raises:
        InputError: it is neither.
    """
    if isinstance(text, str):
        text = text.encode("utf-8", "surrogatepass")
    if not isinstance(text, (bytes, bytearray, memoryview)):
        raise InputError(f"{shown(text)} is not a file's text")
    return bytes(text).removeprefix(BOM_UTF8)


def text_of(content: bytes) -> str:
    """Return UTF-8 text, without a byte order mark.

    Raises:
        InputError: it is none.
    """
    try:
        return content.removeprefix(BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 text: {error.reason} at byte {error.start}") from error


def numbered_lines(text: AnyStr) -> Iterator[tuple[int, AnyStr]]:
    """Yield lines of text or bytes, numbered from 1, without blank ones and without leading blanks.

    Lines end as in the format's own tools: LF, CRLF or CR. Blank ones cost next to nothing.
    """
    crlf, cr, lf, line = _ENDS[type(text)]
    plain = text.replace(crlf, lf).replace(cr, lf) if cr in text else text
    number, counted = 1, 0
    for match in line.finditer(plain):
        number += plain.count(lf, counted, match.start())
        counted = match.start()
        yield number, match[0]
