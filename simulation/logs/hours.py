"""Hours of the week: when jobs of a kind may start, and when queues are active (Chapter 3)."""

import re
from dataclasses import dataclass
from math import inf, isnan, nextafter

from ...cluster.errors import OptionError
from ..events import DAY_S, WEEK_S
from .orderings import named_numbers

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Hours:
    """Spans of the week; the log's first submission is ``offset_s`` after Monday, 00:00.

    Attributes:
        spans: seconds of the week from Monday, 00:00, on, from the first to before the second.
        offset_s: when in the week the log begins.
    """

    spans: tuple[tuple[int, int], ...]
    offset_s: int = 0

    @classmethod
    def from_text(cls, text: str, offset_s: int = 0) -> "Hours":
        """Return what e.g. ``mon-fri 18:00-08:00,sat,sun`` names; ``always``: the whole week.

        A span of hours that ends before it begins ends on the next day.

        Raises:
            OptionError: it reads otherwise.
        """
        if text.strip() == ALWAYS:
            return WEEK
        spans: list[tuple[int, int]] = []
        for part in text.split(","):
            days, (begin, end) = _parts(part.strip(), text)
            end += DAY_S if end <= begin else 0
            for day in days:
                # Sunday night goes on on Monday.
                first, last = day * DAY_S + begin, day * DAY_S + end
                spans += [(first, min(last, WEEK_S)), *([(0, last - WEEK_S)] if last > WEEK_S else [])]
        return cls(tuple(sorted(spans)), offset_s)

    def holds(self, time: float) -> bool:
        """Return whether a time of the log is within the hours."""
        second = (time + self.offset_s) % WEEK_S
        return any(begin <= second < end for begin, end in self.spans)

    def next(self, time: float) -> float:
        """Return the first time from this one on that is within the hours."""
        if self.holds(time):
            return time
        second = (time + self.offset_s) % WEEK_S
        moment = time + min((begin - second) % WEEK_S for begin, _ in self.spans)
        while not self.holds(moment):
            # Fractions of seconds may be rounded to just before the hours begin.
            moment = nextafter(moment, inf)
        return moment


#: All of it.
WEEK = Hours(((0, WEEK_S),))


def moment_of_week(text: str) -> int:
    """Return the second of the week that e.g. ``wed 08:30`` names.

    Raises:
        OptionError: it reads otherwise.
    """
    day, _, time = text.strip().partition(" ")
    try:
        return DAYS.index(day) * DAY_S + (_seconds(time, text) if time else 0)
    except (ValueError, OptionError):
        days = ", ".join(DAYS)
        raise OptionError(f"--log-begins: {text!r} is not a DAY HH:MM: days are {days}") from None


#: Days, hours, or both: ``mon-fri 18:00-08:00``.
_SPAN = re.compile(
    rf"(?:({'|'.join(DAYS)})(?:-({'|'.join(DAYS)}))?)?(?:(?:^|(?<=[a-z]) )(\d+:\d\d)-(\d+:\d\d))?", re.ASCII
)


def _parts(part: str, text: str) -> tuple[range, tuple[int, int]]:
    """Return the days and the hours of one part of a list."""
    found = _SPAN.fullmatch(part)
    if not part or found is None:
        raise _refusal(text)
    first, last, start, stop = found.groups()
    begin = DAYS.index(first) if first else 0
    end = DAYS.index(last or first) if first else len(DAYS) - 1
    if end < begin:
        raise _refusal(text)
    return range(begin, end + 1), (_seconds(start, text), _seconds(stop, text)) if start else (0, DAY_S)


def _seconds(text: str, whole: str) -> int:
    found = re.fullmatch(r"(\d+):([0-5]\d)", text, re.ASCII)
    seconds = DAY_S + 1 if found is None else 3600 * int(found[1]) + 60 * int(found[2])
    if seconds > DAY_S:
        raise _refusal(whole)
    return seconds


def _refusal(text: str) -> OptionError:
    return OptionError(f"{text!r} is not a list of hours such as mon-fri 18:00-08:00,sat,sun")


#: What a text says of a queue -> the member that holds it.
_LIMITS = {"processors": "processors", "estimate": "estimate_s", "priority": "priority"}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLimits:
    """One queue.

    Attributes:
        name: of the queue.
        processors: the most that a job of it may ask for.
        estimate_s: the longest that a job of it may ask for.
        priority: among the queues' heads; the highest first.
        hours: when it is active.
        text: as given.
    """

    name: str
    processors: float = inf
    estimate_s: float = inf
    priority: float = 0
    hours: Hours = WEEK
    text: str = ""

    @classmethod
    def from_text(cls, text: str, offset_s: int = 0) -> "QueueLimits":
        """Return the queue, e.g. ``short: processors=64 estimate=3600 priority=2 hours=mon-fri``.

        Hours come last.

        Raises:
            OptionError: it reads otherwise.
        """
        name, _, rest = text.partition(":")
        limits, _, hours = rest.partition("hours=")
        if not name.strip():
            raise OptionError(f"--queue: {text!r} has no name before a colon")
        values = named_numbers(limits.split(), "--queue", (*_LIMITS, "hours="))
        for key, number in values.items():
            if not (number > 0 or key == "priority") or isnan(number):
                raise OptionError(f"--queue: '{key}={number:.15g}' is not above 0")
        try:
            active = Hours.from_text(hours, offset_s) if hours else WEEK
        except OptionError as error:
            raise OptionError(f"--queue: {error}") from None
        members = {_LIMITS[key]: number for key, number in values.items()}
        return cls(name=name.strip(), hours=active, text=text.strip(), **members)
