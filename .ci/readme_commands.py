"""Run every command of the README's and the pages' ```sh blocks, as a reader would, in a copy of the tree.

A line starting with ``make`` is left out: CI runs those itself. A command that fails fails this script.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Pages whose commands are run; each is short of seconds.
PAGES = (
    "README.md",
    "docs/tutorial.md",
    "docs/tutorial-history.md",
    "docs/tutorial-policy.md",
    "docs/administrators.md",
    "docs/researchers.md",
    "docs/solver-users.md",
    "docs/write-policy.md",
    "docs/worked.md",
    "docs/topologies.md",
    "docs/shadow.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/reference/commands").glob("*.md")),
)


def commands(text: str) -> list[str]:
    """Return the commands of all sh blocks; a backslash at a line's end continues it."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.startswith(("#", "make"))]


def main() -> int:
    """Run them all; print each with its result."""
    environment = os.environ | {"PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "aucsched"
        ignore = shutil.ignore_patterns(".venv", ".git", "build", "*_cache", ".hypothesis")
        shutil.copytree(ROOT, place, symlinks=True, ignore=ignore)
        found = (one for page in PAGES for one in commands((ROOT / page).read_text()))
        for command in dict.fromkeys(found):
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", command],
                cwd=place,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            sys.stdout.write(f"{'ok    ' if done.returncode == 0 else 'FAILED'} {command}\n")
            if done.returncode:
                sys.stdout.write(done.stdout[-2000:] + done.stderr[-2000:])
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
