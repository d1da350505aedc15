"""Advance reservations: processors kept for a time that is fixed beforehand (Chapter 3, planning systems)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...cluster.errors import InputError, OptionError
from ...formats.reading import numbered_lines, read_document, text_of
from ..log_columns import LARGEST_TIME_S

_FORM = "START,DURATION,PROCESSORS[,SUBMIT][,unused]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """Processors kept free of jobs: a fixed-time request.

    Attributes:
        start_s: seconds after the first submission, from 0 on.
        duration_s: above 0.
        processors: at least 1.
        submit_s: when it is asked for, at its start at the latest; None: accepted beforehand.
        is_used: whether anybody comes to use it.

    """

    start_s: float
    duration_s: float
    processors: int
    submit_s: float | None = None
    is_used: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.start_s <= LARGEST_TIME_S:
            raise InputError(f"{self.start_s:g} is no time from 0 on", path="start_s")
        if not 0 < self.duration_s <= LARGEST_TIME_S:
            raise InputError(f"{self.duration_s:g} is no time above 0", path="duration_s")
        if self.processors < 1:
            raise InputError(f"{self.processors} is below 1", path="processors")
        if self.submit_s is not None and not 0 <= self.submit_s <= self.start_s:
            raise InputError(f"{self.submit_s:g} is no time from 0 to the start", path="submit_s")

    def settings(self) -> dict[str, float]:
        """Return its members but those that are as usual."""
        found: dict[str, float] = {
            "start_s": self.start_s,
            "duration_s": self.duration_s,
            "processors": self.processors,
        }
        if self.submit_s is not None:
            found["submit_s"] = self.submit_s
        return found if self.is_used else {**found, "is_used": False}

    @property
    def end_s(self) -> float:
        """Seconds after the first submission."""
        return self.start_s + self.duration_s

    @classmethod
    def from_text(cls, text: str) -> Advance:
        """Return the reservation that ``START,DURATION,PROCESSORS[,SUBMIT][,unused]`` names.

        Raises:
            InputError: it reads otherwise.

        """
        try:
            parts = text.split(",")
            is_used = parts[-1].strip() != "unused"
            start, duration, processors, submit = (*(parts if is_used else parts[:-1]), *[""] * 4)[:4]
            if len(parts) > 4 + (not is_used):
                submit = text
            return cls(
                start_s=_time(start),
                duration_s=_time(duration),
                processors=int(processors),
                submit_s=_time(submit) if submit else None,
                is_used=is_used,
            )
        except ValueError:
            raise InputError(f"{text!r} is not {_FORM}") from None


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
