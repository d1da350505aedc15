"""The lines of Slurm's configuration files, which a backslash at their end joins."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...formats.reading import numbered_lines


def joined_lines(text: str, comment: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that hold something, with the number at which each begins.

    Args:
        text: the file's.
        comment: what is dropped of every line.
    """
    start, last, waiting = 0, 0, list[str]()
    for number, raw in numbered_lines(text):
        if waiting and number != last + 1:
            yield from _joined(start, waiting)
            waiting = []
        start, last = start if waiting else number, number
        line = comment.sub("", raw).strip()
        waiting.append(line.removesuffix("\\"))
        if not line.endswith("\\"):
            yield from _joined(start, waiting)
            waiting = []
    yield from _joined(start, waiting)


def _joined(start: int, parts: list[str]) -> Iterator[tuple[int, str]]:
    if line := " ".join(parts).strip():
        yield start, line
