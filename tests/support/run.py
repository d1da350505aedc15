"""The command, run as a user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def aucsched(
    *arguments: str | Path, stdin: str = "", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    command = [sys.executable, "-m", "aucsched", *map(str, arguments)]
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, check=False, cwd=cwd, timeout=120
    )


def refused(*arguments: str | Path, stdin: str = "", cwd: Path | None = None) -> str:
    """Run a command that must be refused: exit 2, one line on stderr, which is returned, and nothing else."""
    done = aucsched(*arguments, stdin=stdin, cwd=cwd)
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert done.stderr.endswith("\n")
    assert done.stderr.count("\n") == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.rstrip("\n")
