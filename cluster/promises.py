"""Values of ``--promise``: a word, or a duration. No numpy here: ``--help`` reads it."""

import re

from .errors import OptionError

PLAN, NONE, AUTO, BACKFILL = "plan", "none", "auto", "backfill"
#: The promise where none is named, by objective: of ``promised`` on a log, and of auctions whose
#: options do not make it ``none`` (auction/options.py).
DEFAULT = {"priority": BACKFILL, "response": AUTO}
_UNITS_S = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)([a-z]*)", re.ASCII)
#: The longest duration, in seconds; longer ones are taken for typing errors.
_LARGEST_S = 10.0**12


def promised_duration_s(promise: str) -> float:
    """Return the seconds after its submission by which a job is promised to start at the earliest.

    ``promise``: ``plan`` (0 s), or a number with a unit of s, m, h, d or w; seconds without one.

    Raises:
        OptionError: it is neither, nor another word.
    """
    if promise == PLAN:
        return 0.0
    try:
        seconds = seconds_of(promise)
    except ValueError:
        words = "plan, auto, backfill, none"
        raise OptionError(f"--promise {promise!r} is not {words}, or a duration such as 12h or 2d") from None
    if seconds > _LARGEST_S:
        raise OptionError(f"--promise {promise!r} is more than {_LARGEST_S:g} s")
    return seconds


def seconds_of(text: str) -> float:
    """Return a duration in seconds: a number with a unit of s, m, h, d or w; seconds without one.

    Raises:
        ValueError: it is none.

    Examples:
        >>> seconds_of("2h"), seconds_of("90")
        (7200.0, 90.0)
    """
    found = _DURATION.fullmatch(text)
    if found is None or found[2] not in _UNITS_S:
        raise ValueError(f"{text!r} is not a duration such as 12h or 2d")
    return float(found[1]) * _UNITS_S[found[2]]


def check_promise(promise: str) -> None:
    """Raise OptionError where ``--promise`` cannot be read."""
    if promise not in {NONE, AUTO, BACKFILL}:
        promised_duration_s(promise)
