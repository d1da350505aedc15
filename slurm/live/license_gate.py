"""The gate: until it ends, reserved licences keep jobs waiting while their priorities grow.

Each job that waits for the auction asks for one of a licence that no program needs; a submit plugin
shipped with the package can see to that. A reservation of the kind LICENSE_ONLY holds all of them.
When nobody moves its end on, it ends, and Slurm starts the jobs itself.
"""

import os
import re
from importlib.resources import files
from pwd import getpwuid

from ...cluster.errors import InputError, OptionError
from ...formats.notes import Notes
from ..answers.consumables import read_licenses
from ..answers.live import LICENSES, RESERVATIONS, Ask
from ..answers.reservation_records import ReservationFigures, read_reservations

_USER = re.compile(r"[\w.@+-]{1,64}", re.ASCII)


def gates(ask: Ask, licence: str) -> tuple[ReservationFigures, ...]:
    """Return reservations of licences only that hold some of the gate's; others may be unreadable.

    Raises:
        InputError: scontrol fails, or prints what is not known.
    """
    return tuple(entry for entry in read_reservations(ask(RESERVATIONS), licence) if entry.held(licence))


def licence_count(ask: Ask, licence: str) -> int:
    """Return how many of the gate's licence the cluster has.

    Raises:
        InputError: it has none.
    """
    found = read_licenses(ask(LICENSES), Notes()).get(licence)
    if found is None or not found.total:
        text = f"the cluster has no licence {licence!r}: slurm.conf needs Licenses={licence}:1000000"
        raise InputError(text, file=" ".join(LICENSES))
    return found.total


def gate_name(licence: str, host: str, user: str = "") -> str:
    """Return the name of a gate: a loop of this host and user leads, without user any."""
    whose = filter(None, (host.partition(".")[0] or "host", user))
    return "_".join((licence, *(re.sub(r"[^A-Za-z0-9-]", "-", one)[:40] for one in whose)))


def own_user() -> str:
    """Return the user whose rights this process has: LOGNAME may be that of whoever started it."""
    number = os.getuid()
    try:
        return getpwuid(number).pw_name
    except KeyError:
        return str(number)


def create_words(name: str, licence: str, held: int, seconds: int, user: str) -> tuple[str, ...]:
    """Return scontrol's words that put the gate up; refused while another gate holds the licences.

    Raises:
        OptionError: the user's name is none that scontrol reads as one word.
    """
    if not _USER.fullmatch(user):
        raise OptionError(f"user {user!r} is not a name that scontrol reads as it is")
    return (
        *("create", "reservation", f"ReservationName={name}", "StartTime=now", f"EndTime=now+{seconds}"),
        *(f"Licenses={licence}:{held}", "Flags=LICENSE_ONLY", f"Users={user}"),
    )


def extend_words(name: str, seconds: int) -> tuple[str, ...]:
    """Return scontrol's words that move the gate's end on."""
    return ("update", f"ReservationName={name}", f"EndTime=now+{seconds}")


def drop_words(name: str) -> tuple[str, ...]:
    """Return scontrol's words that put a gate down, or remove another reservation."""
    return ("delete", f"ReservationName={name}")


def job_submit_lua() -> str:
    """Return job_submit.lua's text, for the folder of slurm.conf and ``JobSubmitPlugins=lua``."""
    return files(__package__).joinpath("job_submit.lua").read_text("utf-8")
