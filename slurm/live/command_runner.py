"""Who carries out commands of scontrol's: one process fed on standard input, or nobody where only shown."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...cluster.errors import AucschedError, InputError
from .actions import Words, line

#: scontrol reads a line of standard input into 4096 characters; a longer command is a process of its own.
LONGEST_LINE = 4000
_TIMEOUT_S = 120


class NotDoneError(AucschedError):
    """Slurm did not do what it was told."""


class CommandRunner(Protocol):
    """Carries out commands in order."""

    def __call__(self, commands: Sequence[Words]) -> tuple[str, ...]:
        """Carry out commands; return what Slurm said of those that it refused, which end nothing.

        Raises:
            NotDoneError: scontrol is not here, or hangs.
        """
        ...


def one_scontrol(commands: Sequence[Words]) -> tuple[str, ...]:
    """Carry out commands by one ``scontrol`` fed on standard input: no shell reads them, each is a line."""
    said: list[str] = []
    lines: list[str] = []
    for words in commands:
        text = line(words)
        if len(text) < LONGEST_LINE:
            lines.append(text)
            continue
        said += _fed(lines)
        lines = []
        said += _run(words, "")
    return tuple(said + _fed(lines))


def _fed(lines: Sequence[str]) -> list[str]:
    return _run((), "".join(f"{text}\n" for text in lines)) if lines else []


def _run(words: Words, text: str) -> list[str]:
    program = shutil.which("scontrol")
    if program is None:
        raise NotDoneError("scontrol is not installed here")
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and every word is checked
            [program, *words], input=text.encode(), capture_output=True, check=False, timeout=_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotDoneError(f"scontrol failed: {error}") from error
    # Slurm prints names as users wrote them, in any encoding or none.
    return [said for said in done.stderr.decode(errors="replace").splitlines() if said.strip()]


@dataclass(frozen=True, slots=True)
class Shown:
    """Shows commands instead of carrying them out.

    Attributes:
        show: takes a line.
    """

    show: Callable[[str], None]

    def __call__(self, commands: Sequence[Words]) -> tuple[str, ...]:
        """Show the commands."""
        for words in commands:
            self.show(f"scontrol {line(words)}")
        return ()


def must(hand: CommandRunner, words: Words) -> None:
    """Carry out one command that everything else rests on.

    Raises:
        InputError: Slurm refused it.
    """
    said = hand((words,))
    if said:
        raise InputError(said[0], file=f"scontrol {line(words)}")
