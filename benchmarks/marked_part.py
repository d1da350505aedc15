"""What a benchmark writes into a page: which page, and the part of it between two marks."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path


def page_of(results: Path, own: Path, page: Path) -> Path:
    """Return where a page or picture made from results belongs.

    Results in the folder ``own`` are the repository's, and make its page; others make one among them.
    """
    return page if results.resolve() == own.resolve() else results / page.name


def can_draw() -> bool:
    """Return whether pictures can be drawn: matplotlib is an extra."""
    return find_spec("matplotlib") is not None


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
