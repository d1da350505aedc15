"""Runs commands in this process and checks the promises that hold for every command.

Standard output and error are real files while a command runs, so that what libraries write is seen too.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO

from attack_cases import Cost, Outcome, measured, summary

from aucsched.cli import run

#: What a command may take of anything that the attack gives it.
MOST_S, MOST_MIB = 2.0, 1024.0
#: What may stand on standard error of a command that did its work: each line says that it is a note.
_NOTE = re.compile(rb"(note|warning|aucsched): ")
#: Nothing but line ends and tabs may reach a terminal: no escape sequences, no NUL.
_CONTROL = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f]")
_SHOWN = 300


@dataclass(slots=True, kw_only=True)
class Ran:
    """What a command did: its exit code (None: an exception came out), what it wrote and what it took."""

    code: int | None = None
    out: bytes = b""
    err: bytes = b""
    escaped: str = ""
    cost: Cost = field(default_factory=Cost)


def run_command(arguments: Sequence[str]) -> Ran:
    """Run a command line of aucsched in this process."""
    ran = Ran()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, _written_to(out, err):
        with measured() as cost:
            try:
                ran.code = run(list(arguments))
            except SystemExit as stop:
                ran.code = stop.code if isinstance(stop.code, int) else 1
            except Exception as error:  # noqa: BLE001 - a traceback, had it been run by a user
                ran.escaped = summary(error)
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        ran.cost = cost
        ran.out, ran.err = _content(out), _content(err)
    return ran


def _content(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()


@contextmanager
def _written_to(out: BinaryIO, err: BinaryIO) -> Iterator[None]:
    """Let the descriptors 1 and 2, and the streams on them, be these files."""
    kept = [(number, os.dup(number)) for number in (1, 2)]
    streams = sys.stdout, sys.stderr
    streams[0].flush()
    streams[1].flush()
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    sys.stdout = _stream(1, "strict")
    sys.stderr = _stream(2, "backslashreplace")
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        sys.stdout, sys.stderr = streams
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)


def _stream(number: int, errors: str) -> TextIOWrapper:
    return TextIOWrapper(os.fdopen(number, "wb", closefd=False), encoding="utf-8", errors=errors)


def judge(arguments: Sequence[str], ran: Ran, outcome: Outcome) -> None:
    """Note in an outcome what a command did that none may do."""
    outcome.replay = shlex.join(["aucsched", *arguments])
    outcome.counts["refused" if ran.code else "done"] += 1
    for name, value in (("wall s", ran.cost.wall_s), ("CPU s", ran.cost.cpu_s), ("MiB", ran.cost.peak_mib)):
        outcome.largest[name] = value
    if ran.code is None:
        outcome.fail("traceback", ran.escaped)
        return
    if ran.code not in (0, 2):
        outcome.fail("exit", f"code {ran.code}: {_shown(ran.err)}")
    _judge_text(ran, outcome)
    if min(ran.cost.cpu_s, ran.cost.wall_s) > MOST_S:
        outcome.fail("slow", f"{ran.cost.wall_s:.1f} s, {ran.cost.cpu_s:.1f} s of CPU")
    if ran.cost.peak_mib > MOST_MIB:
        outcome.fail("memory", f"{ran.cost.peak_mib:.0f} MiB")


def _judge_text(ran: Ran, outcome: Outcome) -> None:
    lines = ran.err.split(b"\n")
    if b"Traceback" in ran.err:
        outcome.fail("traceback", _shown(ran.err))
    if ran.code and (len(lines) != 2 or lines[-1] or not lines[0].strip()):
        outcome.fail("lines", f"{len(lines) - 1} lines with exit code {ran.code}: {_shown(ran.err)}")
    if ran.code and ran.out:
        outcome.fail("half", f"exit code {ran.code} behind output: {_shown(ran.out)}")
    if not ran.code and not all(_NOTE.match(line) for line in lines if line):
        outcome.fail("lines", f"no notes, with exit code 0: {_shown(ran.err)}")
    outcome.largest["characters of a line on standard error"] = max(map(len, lines))
    for name, content in (("output", ran.out), ("error", ran.err)):
        try:
            found = _CONTROL.search(content.decode())
        except UnicodeDecodeError as error:
            outcome.fail("text", f"standard {name} is not UTF-8: {error}")
            continue
        if found:
            around = content.decode()[max(0, found.start() - 40) : found.end() + 40]
            outcome.fail("text", f"a control character reaches standard {name}: {around!r}")


def _shown(content: bytes) -> str:
    text = content.decode(errors="backslashreplace")
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder."""
    here = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the files below a folder with their sizes and the moments they were last written."""
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
