"""What a planning system's plan has to respect: fixed-time requests, and rules (Chapter 3).

A planning system has no queues to switch on and off. docs/policies.md (planning) lists the rules.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ...cluster.errors import InputError, OptionError, errors_in
from ...cluster.timeline.count_profile import CountProfile, ProfileColumns, earliest
from ...cluster.value_types import shortest
from ...formats.reading import numbered_lines, read_document, text_of
from ..log_columns import LARGEST_TIME_S, Requests
from .hours import Hours

_REQUEST = "START,DURATION,PROCESSORS[,SUBMIT][,unused]"
#: Python's numbers may have underscores.
_PARTS = re.compile(r"([^,_]+),([^,_]+),([^,_]+)(?:,(?!\s*unused\s*$)([^,_]*))?(,\s*unused\s*)?")


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
            raise InputError(f"{self.start_s:g} is not a time of at least 0", path="start_s")
        if not 0 < self.duration_s <= LARGEST_TIME_S:
            raise InputError(f"{self.duration_s:g} is not a time above 0", path="duration_s")
        if self.processors < 1:
            raise InputError(f"{self.processors} is below 1", path="processors")
        if self.submit_s is not None and not 0 <= self.submit_s <= self.start_s:
            raise InputError(f"{self.submit_s:g} is not a time from 0 to the start", path="submit_s")

    def settings(self) -> dict[str, float]:
        """Return its members, but no ``submit_s`` of None and no ``is_used`` that is true."""
        return {name: one for name, one in asdict(self).items() if one is not None and one is not True}

    @property
    def end_s(self) -> float:
        """Seconds after the first submission."""
        return self.start_s + self.duration_s

    @classmethod
    def from_text(cls, text: str) -> "Advance":
        """Return the reservation that ``START,DURATION,PROCESSORS[,SUBMIT][,unused]`` names.

        Raises:
            InputError: it reads otherwise.
        """
        found = _PARTS.fullmatch(text)
        start, duration, processors, submit, unused = found.groups() if found else [""] * 5
        try:
            return cls(
                start_s=shortest(float(start)),
                duration_s=shortest(float(duration)),
                processors=int(processors),
                submit_s=shortest(float(submit)) if submit else None,
                is_used=not unused,
            )
        except ValueError:
            raise InputError(f"{text!r} is not {_REQUEST}") from None


def read_advance(texts: Iterable[str]) -> tuple[Advance, ...]:
    """Return the reservations that options name: each one reservation, or a file of one a line.

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
            raise OptionError(f"--advance: {text!r} is neither a file nor a reservation: {error}") from error
    return tuple(found)


def _read_file(path: Path) -> list[Advance]:
    found = []
    for number, line in numbered_lines(read_document(path, text_of)):
        if line.startswith("#"):
            continue
        with errors_in(f"{path}:{number}"):
            found.append(Advance.from_text(line.strip()))
    return found


def check_advance(reservations: Sequence[Advance], processors: int) -> None:
    """Refuse reservations that together need more processors than there are.

    Raises:
        OptionError: names the time from which on they do.
    """
    changes = [(one.end_s, -one.processors) for one in reservations]
    changes += [(one.start_s, one.processors) for one in reservations]
    kept = 0
    for time, change in sorted(changes):
        kept += change
        if kept > processors:
            raise OptionError(f"--advance: {kept} of {processors} processors are kept at {time:g} s")


#: Whose jobs count processors together.
_NAMED = ("user", "group")
_FORM = re.compile(
    r"\s*(processors|estimate|user|group)\s*(>=|>|=)\s*([0-9]+\.?[0-9]*|\.[0-9]+)(%?)\s*:\s*(.+)"
)


@dataclass(frozen=True, slots=True)
class StartRule:
    """One constraint of the plan.

    Attributes:
        member: ``processors``, ``estimate``, ``user`` or ``group``.
        sign: ``>``, ``>=``, or for a user or group ``=``.
        bound: processors, seconds, or a user's or group's number.
        is_share: the bound is percent of the machine.
        hours: when such jobs may start, or
        most: for processors and estimates, how many such jobs at once; for a user or group, how
            many processors.
        text: as given.
    """

    member: str
    sign: str
    bound: float
    is_share: bool
    hours: Hours | None
    most: int | None
    text: str

    @classmethod
    def from_text(cls, text: str, offset_s: int = 0) -> "StartRule":
        """Return what e.g. ``processors>66%: 18:00-08:00,sat,sun`` or ``user=7: 64`` says.

        Raises:
            OptionError: it reads otherwise.
        """
        found = _FORM.fullmatch(text)
        is_named = found is not None and found[1] in _NAMED
        if found is None or is_named != (found[2] == "=") or (found[4] and found[1] != "processors"):
            kinds = "processors>N[%], estimate>SECONDS, user=N or group=N"
            raise OptionError(f"--start-rule: {text!r} is not {kinds}, a colon and a limit")
        limit = found[5].strip()
        most = int(limit) if limit.isdecimal() else None
        if most == 0:
            raise OptionError(f"--start-rule: {text!r}: such jobs could never start")
        try:
            hours = None if most is not None else Hours.from_text(limit, offset_s)
        except OptionError as error:
            raise OptionError(f"--start-rule: {error}") from None
        return cls(found[1], found[2], float(found[3]), bool(found[4]), hours, most, text.strip())

    def holds_for(self, requests: Requests, job: int) -> bool:
        """Return whether the rule is for a job."""
        if self.member == "user":
            return requests.user[job] == self.bound
        if self.member == "group":
            return bool(requests.group) and requests.group[job] == self.bound
        value = requests.size[job] if self.member == "processors" else requests.estimate[job]
        bound = self.bound * requests.processors / 100 if self.is_share else self.bound
        return value >= bound if self.sign == ">=" else value > bound


class StartRules:
    """The rules over a plan: what each job needs of them, and where it may start.

    Raises:
        OptionError: a job needs more than a rule ever allows.
    """

    def __init__(self, rules: Sequence[StartRule], requests: Requests) -> None:
        self._size, self._estimate = requests.size, requests.estimate
        jobs = range(len(requests))
        self._hours: list[list[Hours]] = [[] for _ in jobs]
        # By job: profiles of what its rules have left, with what it takes of each.
        self._rooms: list[list[tuple[CountProfile, int]]] = [[] for _ in jobs]
        self._all: list[CountProfile] = []
        for rule in rules:
            room = None if rule.most is None else CountProfile.flat(rule.most)
            for job in jobs:
                if not rule.holds_for(requests, job):
                    continue
                if rule.hours is not None:
                    self._hours[job].append(rule.hours)
                if room is not None:
                    need = requests.size[job] if rule.member in _NAMED else 1
                    if need > room.free[0]:
                        raise OptionError(f"--start-rule {rule.text!r}: {need} processors never start")
                    self._rooms[job].append((room, need))
            if room is not None:
                self._all.append(room)

    def advance(self, now: float) -> None:
        """Forget the time before now."""
        for room in self._all:
            room.advance(now)

    def add(self, job: int, start: float, end: float, sign: int) -> None:
        """Give back (+1) or take (−1) what a job has of its rules over a time."""
        for room, need in self._rooms[job]:
            room.add(start, end, sign * need)

    def earliest(self, profile: ProfileColumns, job: int, now: float, before: float, latest: float) -> float:
        """Return a job's earliest start by the profile of processors and by every rule."""
        size, estimate = self._size[job], self._estimate[job]
        after = now
        while True:
            start = earliest(profile, size, estimate, after, before, latest)
            if start >= before:
                return before
            allowed = start
            for room, need in self._rooms[job]:
                allowed = max(allowed, room.earliest(need, estimate, after=start, before=before))
            for hours in self._hours[job]:
                allowed = max(allowed, hours.next(allowed))
            if allowed == start:
                return start
            if allowed >= min(before, latest):
                return before
            after = allowed
