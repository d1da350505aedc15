"""The gate: a reservation of licences that keeps jobs waiting while Slurm's priorities grow, until it ends.

Each job that waits for the auction asks for one of a licence that no program needs. A reservation of the kind
LICENSE_ONLY holds all of them. When nobody moves its end on, it ends, and Slurm starts the jobs itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..cluster.errors import InputError, OptionError
from ..formats.notes import Notes
from ..slurm.answers.licenses import read_licenses
from ..slurm.answers.live import Ask
from ..slurm.answers.text import Paragraph, paragraphs

#: The licence's name unless another is given.
LICENCE = "auction"
_NAME = re.compile(r"[A-Za-z][\w-]{0,62}", re.ASCII)
_SHOW: tuple[str, ...] = ("scontrol", "-o", "show", "reservations")
_LICENSES: tuple[str, ...] = ("scontrol", "-o", "show", "licenses")
_HELD = re.compile(r"([^:,@]+)(?:@[^:,]+)?(?::(\d{1,9}))?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A reservation that holds licences of the gate.

    Attributes:
        name: the reservation's.
        start, end: seconds since the epoch.
        held: how many of the licence it keeps from jobs.
    """

    name: str
    start: float
    end: float
    held: int


def check_licence(name: str) -> str:
    """Return a licence's name.

    Raises:
        OptionError: scontrol could read it as something else.
    """
    if not _NAME.fullmatch(name):
        raise OptionError(f"--license: {name!r} is no plain name of a licence")
    return name


def gates(ask: Ask, licence: str) -> tuple[Gate, ...]:
    """Return the reservations of licences only that hold some of the gate's.

    Raises:
        InputError: scontrol fails, or prints what is not known.
    """
    text = ask(_SHOW).decode(errors="replace")
    found = (_gate(entry, licence) for entry in paragraphs(text, "ReservationName"))
    return tuple(gate for gate in found if gate is not None)


def _gate(entry: Paragraph, licence: str) -> Gate | None:
    held = sum(
        int(match[2] or 1)
        for item in entry.text("Licenses").split(",")
        if (match := _HELD.fullmatch(item)) and match[1] == licence
    )
    if not held or "LICENSE_ONLY" not in entry.text("Flags").split(","):
        return None
    name = entry.pairs["ReservationName"]
    return Gate(name=name, start=entry.moment("StartTime"), end=entry.moment("EndTime"), held=held)


def licence_count(ask: Ask, licence: str) -> int:
    """Return how many of the gate's licence the cluster has.

    Raises:
        InputError: it has none.
    """
    found = read_licenses(ask(_LICENSES), Notes()).get(licence)
    if found is None or not found.total:
        text = f"the cluster has no licence {licence!r}: slurm.conf needs Licenses={licence}:1000000"
        raise InputError(text, file=" ".join(_LICENSES))
    return found.total
