"""Slurm's own text: what ``scontrol show`` prints, and the lines of configuration files."""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from importlib.resources import files
from math import ceil
from tomllib import loads
from typing import Any

from ...cluster.checks import LARGEST_COUNT
from ...cluster.errors import InputError
from ...cluster.value_types import YEAR_10000
from ...formats.reading import numbered_lines

#: What Slurm's words, keys and members mean, by table.
WORDS: Mapping[str, Mapping[str, Any]] = loads(files(__package__).joinpath("words.toml").read_text("utf-8"))
#: A key stands at a record's beginning or behind a blank; all up to the next one is its value.
_KEY = re.compile(r"(?<!\S)([A-Za-z][\w/]*+)=")
#: A byte that is no UTF-8, as Python escapes it.
_NO_UTF8 = re.compile("[\udc80-\udcff]")
_NOTHING = {"", "(null)", "N/A", "n/a", "NONE"}
_NO_LIMIT = {"UNLIMITED", "INFINITE"}
#: 30, 30:00 (minutes first), 1:30:00; and with days 1-12, 1-12:30, 1-12:30:00 (hours first).
_TIME = re.compile(r"(?:(?P<days>\d{1,9})-)?(?P<parts>\d{1,9}(?::\d{1,9}){0,2})", re.ASCII)
_EPOCH = re.compile(r"\d{1,11}", re.ASCII)
#: ``4G``, ``187.50G``, ``2000`` (MiB).
_MEMORY = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)([KMGTP]?)B?", re.IGNORECASE | re.ASCII)
#: ``4``, ``2T``, ``1.50K``.
_COUNT = re.compile(r"(\d{1,20}|\d{1,15}\.\d{1,6}(?=[KMGTP]))([KMGTP]?)", re.IGNORECASE | re.ASCII)
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}


def answered(content: bytes) -> str:
    """Return an answer's text; users write in any encoding: bytes that are no UTF-8 are Latin-1."""
    text = content.removeprefix(BOM_UTF8).decode(errors="surrogateescape")
    return _NO_UTF8.sub(lambda byte: chr(ord(byte[0]) - 0xDC00), text)


def duration_s(text: str) -> int | None:
    """Return a time limit as Slurm writes and reads it in seconds, None where it is none."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    parts = [int(part) for part in match["parts"].split(":")]
    # Without days one or two parts begin with minutes, with days any number begins with hours.
    if match["days"] is None and len(parts) < 3:  # noqa: PLR2004 - hours, minutes, seconds
        parts = [0, *parts]
    hours, minutes, seconds = (*parts, 0, 0)[:3]
    return ((int(match["days"] or 0) * 24 + hours) * 60 + minutes) * 60 + seconds


def memory_mib(text: str) -> int | None:
    """Return an amount of memory as Slurm writes it in MiB, rounded up; None where it is none."""
    match = _MEMORY.fullmatch(text)
    return None if match is None else ceil(Decimal(match[1]) * _UNITS[match[2].upper() or "M"] / 2**20)


def count_of(text: str) -> int | None:
    """Return a count of gres as Slurm writes it, with a unit or none; None where it is none."""
    match = _COUNT.fullmatch(text)
    return None if match is None else int(Decimal(match[1]) * _UNITS[match[2].upper()])


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One record of ``scontrol show``: its ``Key=Value`` pairs and its place in the file."""

    pairs: dict[str, str]
    path: str

    def verbatim(self, key: str) -> str:
        """Return a value as it stands: a name may look like a word for nothing."""
        return self.pairs.get(key, "")

    def text(self, key: str) -> str:
        """Return a value, empty where it is absent or one of Slurm's words for nothing."""
        value = self.pairs.get(key, "")
        return "" if value in _NOTHING else value

    def amount(self, key: str) -> str:
        """Return the text of a count, a limit or a time."""
        return self.text(key)

    def count(self, key: str) -> int | None:
        """Return an integer, None where it is absent or unlimited.

        Raises:
            InputError: it is neither.
        """
        value = self.amount(key)
        if not value or value.upper() in _NO_LIMIT:
            return None
        if not re.fullmatch(r"[0-9]{1,13}", value) or int(value) > LARGEST_COUNT:
            raise self.unknown(key, "a number as Slurm writes it")
        return int(value)

    def limit(self, key: str) -> str:
        """Return a limit as it is written, empty where it is absent, unlimited or 0."""
        value = self.amount(key)
        return "" if value == "0" or value.upper() in _NO_LIMIT else value

    def duration(self, key: str) -> int | None:
        """Return ``1-12:30:00`` in seconds, None where it is absent or unlimited."""
        value = self.amount(key)
        if not value or value.upper() in _NO_LIMIT:
            return None
        seconds = duration_s(value)
        if seconds is None:
            raise self.unknown(key, "a duration as Slurm writes it")
        return seconds

    def moment(self, key: str) -> float:
        """Return a time in seconds since the epoch; one without a zone is local time here."""
        value = self.amount(key)
        try:
            is_epoch = _EPOCH.fullmatch(value) is not None
            since = float(value) if is_epoch else datetime.fromisoformat(value).timestamp()
        except (ValueError, OverflowError) as error:
            raise self.unknown(key, "a time as Slurm writes it") from error
        if not 0 < since < YEAR_10000:
            raise self.unknown(key, "a time from 1970 to 9999")
        return since

    def place(self, key: str) -> str:
        """Return the path of a value, for an error."""
        return f"{self.path} {key}"

    def unknown(self, key: str, wanted: str) -> InputError:
        """Return the error for a value that no Slurm version is known to write."""
        value = self.pairs.get(key, "")
        return InputError(f"{value[:60]!r} is not {wanted}", path=self.place(key))


def paragraphs(text: str, first: str) -> Iterator[Paragraph]:
    """Yield the records of ``scontrol show``, a line (``-o``) or a paragraph each.

    Raises:
        InputError: the text holds something else, or a record has no name.
    """
    head, *records = re.split(rf"^(?={first}=)", text, flags=re.MULTILINE)
    if head.strip() and not head.strip().startswith("No "):
        raise InputError(f"{head.strip()[:60]!r} is not what scontrol shows of a {first}", path="line 1")
    for index, record in enumerate(records):
        pairs: dict[str, str] = {}
        for key, value in pairs_in(record):
            # Texts that people write freely stand last: what looks like a key in them is none.
            pairs.setdefault(key, value)
        if not pairs.get(first):
            raise InputError("the name is empty", path=f"{first}[{index}]")
        yield Paragraph(pairs, f"{first}={pairs[first]}")


def pairs_in(record: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of a record with their values, each as often as it stands there."""
    keys = list(_KEY.finditer(record))
    ends = [*(key.start() for key in keys[1:]), len(record)]
    for key, end in zip(keys, ends, strict=True):
        yield key[1], record[key.end() : end].rstrip()


def joined_lines(text: str, comment: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that hold something, with the number at which each begins."""
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
