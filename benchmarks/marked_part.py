"""The part of a Markdown file between two marks, which a benchmark rewrites."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def replace_part(target: Path, name: str, lines: Sequence[str]) -> None:
    """Put lines between ``<!-- NAME: begin -->`` and ``<!-- NAME: end -->``; the rest of the file stays.

    Where there are no such marks the part goes to the end, with its marks.
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    part = "\n".join([begin, "", *lines, "", end]) + "\n"
    before = target.read_text() if target.exists() else ""
    if begin in before and end in before:
        head, rest = before.split(begin, 1)
        tail = rest.split(end, 1)[1].lstrip("\n")
        part = head + part + ("\n" + tail if tail else "")
    elif before:
        part = before.rstrip("\n") + "\n\n" + part
    target.write_text(part)
