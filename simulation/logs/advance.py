"""Advance reservations: processors kept for a time that is fixed beforehand (Chapter 3, planning systems)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...cluster.errors import InputError, OptionError
from ...formats.reading import numbered_lines, read_document, text_of
from ..requests import LARGEST_TIME_S

_FORM = "START,DURATION,PROCESSORS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """Processors kept free of jobs.

    Attributes:
        start_s: seconds after the first submission, from 0 on.
        duration_s: above 0.
        processors: at least 1.

    """

    start_s: float
    duration_s: float
    processors: int

    def __post_init__(self) -> None:
        if not 0 <= self.start_s <= LARGEST_TIME_S:
            raise InputError(f"{self.start_s:g} is no time from 0 on", path="start_s")
        if not 0 < self.duration_s <= LARGEST_TIME_S:
            raise InputError(f"{self.duration_s:g} is no time above 0", path="duration_s")
        if self.processors < 1:
            raise InputError(f"{self.processors} is below 1", path="processors")

    @property
    def end_s(self) -> float:
        """Seconds after the first submission."""
        return self.start_s + self.duration_s

    @classmethod
    def from_text(cls, text: str) -> Advance:
        """Return the reservation that ``START,DURATION,PROCESSORS`` names.

        Raises:
            InputError: it reads otherwise.

        """
        try:
            start, duration, processors = text.split(",")
            numbers = _time(start), _time(duration), int(processors)
        except ValueError:
            raise InputError(f"{text!r} is not {_FORM}") from None
        return cls(start_s=numbers[0], duration_s=numbers[1], processors=numbers[2])


def _time(text: str) -> float:
    value = float(text)
    return int(value) if value.is_integer() else value


def read_advance(texts: Iterable[str]) -> tuple[Advance, ...]:
    """Return the reservations that options name: each one reservation, or a file with one on each line.

    Lines that are empty or begin with ``#`` do not count.

    Raises:
        OptionError: a text is neither a reservation nor a file's name.
        InputError: a file's line is no reservation.

    """
    found: list[Advance] = []
    for text in texts:
        if Path(text).is_file():
            found += _read_file(Path(text))
            continue
        try:
            found.append(Advance.from_text(text))
        except InputError as error:
            raise OptionError(f"--advance: {error}, nor a file") from error
    return tuple(found)


def _read_file(path: Path) -> list[Advance]:
    found = []
    for number, line in numbered_lines(read_document(path, text_of)):
        if line.startswith("#"):
            continue
        try:
            found.append(Advance.from_text(line.strip()))
        except InputError as error:
            raise error.in_file(f"{path}:{number}") from error
    return found


def check_advance(reservations: Sequence[Advance], processors: int) -> None:
    """Refuse reservations that together need more processors than there are.

    Raises:
        OptionError: names the time from which on they do.

    """
    changes = sorted(
        change
        for one in reservations
        for change in ((one.end_s, -one.processors), (one.start_s, one.processors))
    )
    kept = 0
    for time, change in changes:
        kept += change
        if kept > processors:
            raise OptionError(f"--advance: {kept} of {processors} processors are kept at {time:g} s")
