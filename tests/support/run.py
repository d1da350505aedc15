"""The command, run as a user runs it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from aucsched import cli
from aucsched.commands.streams import ESCAPED

Done = subprocess.CompletedProcess[str]


def aucsched(
    *arguments: str | Path,
    stdin: str | bytes = "",
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Done:
    """Run the command in this process, which has loaded what a process of its own loads in a second.

    What would be a traceback is raised. ``env`` changes variables of the environment.
    """
    words = list(map(str, arguments))
    given = io.BytesIO(stdin.encode() if isinstance(stdin, str) else stdin)
    out, error = _Written(), _Written()
    with (
        chdir(cwd or "."),
        patch.dict(os.environ, env or {}),
        patch.object(sys, "stdin", io.TextIOWrapper(io.BufferedReader(given), "utf-8")),
        redirect_stdout(out),
        redirect_stderr(error),
    ):
        code = cli.run(words)
    return Done(["aucsched", *words], code, out.text(), error.text())


def in_a_process(*arguments: str | Path, cwd: Path | None = None) -> Done:
    """Run the command in a process of its own, where that is what matters."""
    command = [sys.executable, "-m", "aucsched", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, timeout=120)


def refused(*arguments: str | Path, stdin: str | bytes = "", cwd: Path | None = None) -> str:
    """Run a command that must be refused: exit 2, one line on stderr, which is returned, and nothing else."""
    done = aucsched(*arguments, stdin=stdin, cwd=cwd)
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert done.stderr.endswith("\n")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.rstrip("\n")


class _Written(io.TextIOWrapper):
    """A standard stream of the command, kept."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), "utf-8", ESCAPED)

    def text(self) -> str:
        self.flush()
        content: bytes = self.buffer.getvalue()  # type: ignore[attr-defined]
        return content.decode()
