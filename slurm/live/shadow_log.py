"""Logs of the shadow and the loop: lines of JSON in rotated files, written and read again."""

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec

from ...cluster.errors import InputError, system_errors
from ...cluster.text import escaped
from ...formats.reading import read_document
from ..answers.running_jobs import End, SlurmStart

FORMAT = "aucsched-shadow/1"
#: How a job ended that Slurm listed no more at the next pass: nobody knows when.
FORGOTTEN = "forgotten"


class _Line(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Members without a value are left out; those of later versions are passed over."""


class Waiting(_Line):
    """A job when it was first seen waiting, and again when nothing holds it any more.

    ``limit_s`` is None without a time limit; ``request`` is the job as a workload file has it.
    """

    job: str
    submit: float
    cores: int
    nodes: int
    limit_s: int | None = None
    user: str = ""
    account: str = ""
    held: str = ""
    request: dict[str, Any] = {}


class Offer(_Line):
    """A job that the auction would start: hostlist, cores, level of its lowest common switch."""

    job: str
    nodes: str
    cores: int
    level: int | None = None


class ShadowPass(_Line):
    """One pass.

    Attributes:
        time: when Slurm was asked, seconds since the epoch.
        interval_s: seconds to the next pass, as was asked for.
        options: the auction's, those that were given.
        cores, used: of nodes that take jobs; those of them that are in use.
        waiting: how many jobs wait, held ones not counted.
        running: how many jobs run.
        seen: jobs that wait and did not at the pass before.
        would: what the auction would start now.
        started, ended: by Slurm since the pass before; at a process's first pass all Slurm lists.
        planned: Slurm's own estimates of starts, if they changed; 0: none any more.
        forecast: P10, P50 and P90 of the starts of jobs new in the queue, seconds since the epoch.
        gone: jobs that waited and do not any more, without having started.
        unread: rules of the site that are not looked at; at a process's first pass.
        is_first: it is a process's first pass.
        cluster: a workload file's cluster, without jobs; at a process's first pass.
    """

    time: float
    interval_s: float
    read_s: float
    decide_s: float
    cores: int
    used: int
    waiting: int
    running: int
    format: str = FORMAT
    status: str = ""
    gap: float | None = None
    options: dict[str, str] = {}
    seen: list[Waiting] = []
    would: list[Offer] = []
    started: list[SlurmStart] = []
    ended: list[End] = []
    planned: dict[str, float] = {}
    forecast: dict[str, tuple[float, float, float]] = {}
    gone: list[str] = []
    unread: list[str] = []
    is_first: bool = False
    cluster: dict[str, Any] = {}


def encode(entry: ShadowPass) -> bytes:
    """Return the entry's line."""
    # The format stands first in every line, also though it is the default.
    text = escaped(msgspec.json.encode(entry).decode())
    return f'{{"format":"{FORMAT}",{text[1:]}\n'.encode()


#: How a pass of a shadow log begins, and a line of the log of ``slurm run``.
_SHADOW, _EVENT = b'{"format":"aucsched-shadow/', b'{"event":'


class RotatedLog:
    """A file of lines, put aside when it is full: LOG becomes LOG.1, LOG.1 becomes LOG.2, etc.

    Raises:
        InputError: it cannot be written, another process writes it, or it holds something else.
    """

    def __init__(self, path: Path, *, most_bytes: int, keep: int) -> None:
        self.path = path
        self._most = most_bytes
        self._keep = keep
        self._handle = self._opened()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

    def write(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Append lines of JSON, all of them or none.

        Raises:
            InputError: they cannot be written.
        """
        text = "".join(f"{escaped(msgspec.json.encode(line).decode())}\n" for line in lines)
        if text:
            self.append(text.encode())

    def append(self, line: bytes) -> None:
        """Write a line.

        Raises:
            InputError: the disk is full, say; what was written of the line is taken back.
        """
        with system_errors(self.path):
            if not self._is_in_place():
                self._reopen()
            size = os.fstat(self._handle).st_size
            if size and size + len(line) > self._most:
                self._rotate()
                size = 0
            try:
                while line:
                    line = line[os.write(self._handle, line) :]
            except OSError:
                os.ftruncate(self._handle, size)
                raise

    def _opened(self) -> int:
        with system_errors(self.path):
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            handle = os.open(self.path, flags, 0o640)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                size = os.fstat(handle).st_size
                self._check_log(os.pread(handle, len(_SHADOW), 0))
                # A line that a kill cut short ends here: the reader passes over it.
                if size and os.pread(handle, 1, size - 1) != b"\n":
                    os.write(handle, b"\n")
            except (InputError, OSError) as error:
                os.close(handle)
                if isinstance(error, BlockingIOError):
                    raise InputError("another process is writing it", file=str(self.path)) from None
                raise
        return handle

    def _check_log(self, begins: bytes) -> None:
        if not any(begins.startswith(mark[: len(begins)]) for mark in (_SHADOW, _EVENT)):
            raise InputError("it is not a log of a loop: nothing is appended", file=str(self.path))

    def _rotate(self) -> None:
        for number in range(self._keep, 0, -1):
            older = self.path.with_name(f"{self.path.name}.{number}")
            newer = self.path if number == 1 else self.path.with_name(f"{self.path.name}.{number - 1}")
            if newer.exists():
                newer.replace(older)
        if not self._keep:
            self.path.unlink()
        self._reopen()

    def _is_in_place(self) -> bool:
        """Whether the file still has its name, which logrotate gives another."""
        try:
            return os.path.samestat(os.fstat(self._handle), self.path.lstat())
        except FileNotFoundError:
            return False

    def _reopen(self) -> None:
        before, self._handle = self._handle, self._opened()
        os.close(before)


def read_logs(paths: Sequence[str]) -> tuple[list[ShadowPass], int]:
    """Return the passes of all files by their time, and how many lines were cut short or nulls.

    Raises:
        InputError: a file cannot be read or is not a shadow log; names file and line. Or there is
            no pass in any.
    """
    entries: dict[float, ShadowPass] = {}
    torn = 0
    for path in paths:
        for entry in read_document(path, lambda content: list(_entries(content))):
            if entry is None:
                torn += 1
            else:
                entries[entry.time] = entry
    if not entries:
        raise InputError("it holds no pass", file=", ".join(paths))
    return [entries[time] for time in sorted(entries)], torn


def _entries(content: bytes) -> Iterator[ShadowPass | None]:
    decoder = msgspec.json.Decoder(ShadowPass)
    lines = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = decoder.decode(line)
        except msgspec.ValidationError as error:
            what = "this is a log of slurm run" if line.startswith(_EVENT) else str(error)
            raise InputError(f"not a line of a shadow log: {what}", path=f"line {number}") from error
        except msgspec.DecodeError as error:
            # A kill cuts lines short: they begin as ours. A crash of the host leaves nulls.
            if not line.startswith(_SHADOW) and b"\0" not in line:
                raise InputError("not a line of a shadow log", path=f"line {number}") from error
            yield None
            continue
        if entry.format != FORMAT:
            raise InputError(f"{entry.format!r} is not {FORMAT!r}", path=f"line {number} format")
        yield entry
