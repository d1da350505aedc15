"""Slurm's releases: which are known, what each is asked for, and which of them wrote an answer."""

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from ...formats.notes import Notes
from .answer_record import Record

_TEXT = re.compile(r"\b(\d{2})\.(\d{2})(?:\.(\d{1,3}))?(?!\d)", re.ASCII)
_PARSER = re.compile(r"\bv0\.0\.(\d{1,4})\b", re.ASCII)


class SlurmRelease(NamedTuple):
    """A release of Slurm, ``25.05.4``; the third part is 0 where it is not told."""

    year: int
    month: int
    micro: int = 0

    def __str__(self) -> str:
        return f"{self.year}.{self.month:02}.{self.micro}"

    @property
    def series(self) -> str:
        """The release without its third part, ``25.05``."""
        return f"{self.year}.{self.month:02}"

    @property
    def is_newer(self) -> bool:
        """Whether it is of a series after all that are known."""
        return self[:2] > NEWEST[:2]

    @property
    def warning(self) -> str:
        """What to say once beside a release of which nothing is known."""
        return (
            f"Slurm {self} is newer than {NEWEST.series}, the newest whose answers are known: "
            "they are read where their shapes are known"
        )


#: The first and the last series whose answers tests hold to samples.
OLDEST, NEWEST = SlurmRelease(21, 8), SlurmRelease(26, 5)
#: From here on Slurm tells which jobs ask for ``--segment``.
SEGMENTS_SHOWN = SlurmRelease(25, 5)
#: From here on a job of segments may name its nodes (``-w``).
SEGMENTS_NAMED = SlurmRelease(25, 11)
#: From each series on: the newest JSON that it serves and that still has all members read here.
#: 26.05's own, 45, does not tell which jobs asked for whole nodes.
_JSON = {(24, 5): 41, (24, 11): 42, (25, 5): 43, (25, 11): 44}
#: From here on ``shared`` of a job is empty, whatever the job asked for.
_WITHOUT_SHARED = 45


def parse_release(text: str) -> SlurmRelease | None:
    """Return the release that a text names, as ``slurm 25.05.4``; None where there is none."""
    match = _TEXT.search(text)
    return None if match is None else SlurmRelease(int(match[1]), int(match[2]), int(match[3] or 0))


def release_of(document: Record) -> SlurmRelease | None:
    """Return the release that wrote a JSON answer, None where it does not say."""
    told = _meta(document, "slurm", "release") or _meta(document, "Slurm", "release")
    return parse_release(told)


def tells_shared(document: Record) -> bool:
    """Whether the jobs of a JSON answer tell which of them asked for whole nodes."""
    match = _PARSER.search(_meta(document, "plugin", "data_parser"))
    return match is None or int(match[1]) < _WITHOUT_SHARED


@cache
def _known(kind: str) -> frozenset[str]:
    lines = files(__package__).joinpath("known_members.txt").read_text("utf-8").splitlines()
    pairs = (line.partition(": ") for line in lines)
    return frozenset(word for name, _, words in pairs if name == kind for word in words.split())


def note_unknown(words: Iterable[str], kind: str, notes: Notes) -> None:
    """Note members of a later Slurm, or flags of its jobs: what they ask for is not looked at."""
    # 22.05 writes "min nodes per job".
    if unknown := sorted({word.replace(" ", "_") for word in words} - _known(kind)):
        what = "flags of jobs" if kind == "flags" else f"members of {kind}"
        names = ", ".join(unknown)
        notes.unread("version", f"{what} that are not known here are not read: {names}")


def _meta(document: Record, *names: str) -> str:
    """Return a text below ``meta``; empty where there is none."""
    value: Any = document.members
    for name in ("meta", *names):
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def json_option(release: SlurmRelease | None) -> str:
    """Return the option that asks a release for JSON, of a fixed version from 24.05 on."""
    served = [number for since, number in _JSON.items() if release is not None and release >= since]
    return f"--json=v0.0.{served[-1]}" if served else "--json"
