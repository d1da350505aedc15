"""Writing: regular files are written whole or not at all; devices, pipes and descriptors in pieces.

A file that stands already keeps its mode and its owner, and a link to it stays a link.
"""

import errno
import os
import re
import secrets
import stat
import sys
from glob import escape
from pathlib import Path

from ..cluster.errors import path_of, system_errors
from ..cluster.text import escaped

#: Where the kernel keeps a process's open files: what a shell's ``>(…)`` and /dev/stdout lead to.
_DESCRIPTORS = re.compile(r"/proc/(?:\d+|self|thread-self)(?:/task/\d+)?/fd", re.ASCII)
#: Random letters of a temporary file's name, and the most bytes of its target's name in it.
_LETTERS, _NAME_BYTES = 8, 200


def write_text(path: str | Path, text: str) -> None:
    """Write a text as ``write_bytes`` does, in UTF-8 and with its hidden characters as escapes.

    Raises:
        InputError: the file cannot be written; nothing is left behind.
    """
    shown = escaped(text)
    if str(path) == "-":
        sys.stdout.write(shown)
    else:
        write_bytes(path, shown.encode())


def csv_field(text: str) -> str:
    """Return a text as a field of CSV (RFC 4180), in quotes where it needs them."""
    if not any(mark in text for mark in ',"\r\n'):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file; ``-`` is standard output.

    A regular file is written whole: to a temporary file next to it, then renamed. A new one has the
    mode that the umask leaves, an old one keeps mode and owner. A link's target is written, not the
    link. What is no regular file (a device, a pipe, one of our descriptors) is written to.

    Raises:
        InputError: it cannot be written, or its owner would change; no regular file is cut short.
        BrokenPipeError: the reader of a pipe has gone.
    """
    if str(path) == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
        return
    path_of(path)
    with system_errors(path):
        if is_stream(path):
            _write_to(path, content)
        else:
            _replace(Path(os.path.realpath(path)), content)


def check_target(path: str | Path) -> None:
    """Refuse a path that ``write_bytes`` could not write, before anything is computed for it.

    Raises:
        InputError: it is a folder, or its own folder does not exist or may not be written.
    """
    with system_errors(path):
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        os.stat(f"{target.parent}/.")  # noqa: PTH116 - Path drops the dot, which asks for a folder
        if not os.access(target.parent, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def is_stream(path: str | Path) -> bool:
    """Whether a path names what is written to in place: no regular file, or one already open."""
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) or _is_descriptor(path)


def _is_descriptor(path: str | Path) -> bool:
    """Whether an existing path leads by links to an open descriptor (/dev/fd/63, /dev/stdout)."""
    place = os.fspath(path)
    while True:
        folder, name = os.path.split(place)
        place = os.path.join(os.path.realpath(folder), name)  # noqa: PTH118 - Path would follow it
        if _DESCRIPTORS.fullmatch(os.path.dirname(place)):  # noqa: PTH120
            return True
        if not os.path.islink(place):  # noqa: PTH114
            return False
        place = os.path.join(os.path.dirname(place), os.readlink(place))  # noqa: PTH115, PTH118, PTH120


def _write_to(path: str | Path, content: bytes) -> None:
    is_file = stat.S_ISREG(Path(path).stat().st_mode)
    # Of a regular file that a shell has opened, what stands in it stays.
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY | (os.O_APPEND if is_file else 0))
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(handle, view) :]
    finally:
        os.close(handle)


def _replace(target: Path, content: bytes) -> None:
    """Write a file whole, as the one that stands in its place was owned and open to others."""
    try:
        before = target.stat()
    except FileNotFoundError:
        before = None
    if before is not None and stat.S_ISDIR(before.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    temporary = target.with_name(f"{_beginning(target)}{secrets.token_hex(_LETTERS // 2)}")
    # Until it has its predecessor's mode nobody else may read it.
    mode = 0o666 if before is None else 0o600
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            if before is not None:
                _as_before(file.fileno(), before)
            file.write(content)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _as_before(handle: int, before: os.stat_result) -> None:
    now = os.fstat(handle)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.fchown(handle, before.st_uid, before.st_gid)
        except PermissionError:
            owner = f"user {before.st_uid}, group {before.st_gid}"
            raise PermissionError(errno.EPERM, f"its owner ({owner}) cannot be kept") from None
    os.fchmod(handle, stat.S_IMODE(before.st_mode))


def _beginning(target: Path) -> str:
    """Return how the names of a file's temporary files begin."""
    return f".{os.fsdecode(os.fsencode(target.name)[:_NAME_BYTES])}."


def remove_leftovers(path: str | Path) -> None:
    """Remove the temporary files that kills in the middle of a write have left beside a file."""
    if is_stream(path):
        return
    target = Path(os.path.realpath(path))
    for leftover in target.parent.glob(f"{escape(_beginning(target))}{'?' * _LETTERS}"):
        leftover.unlink(missing_ok=True)
