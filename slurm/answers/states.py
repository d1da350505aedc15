"""Slurm's job states: which jobs wait, which hold resources, why a waiting one must not start."""

import re
from enum import Enum, auto

from ...cluster.text import one_line
from .answer_record import Record
from .answer_text import WORDS


class JobPhase(Enum):
    """What a job means to a scheduler now."""

    PENDING = auto()
    HOLDING = auto()
    #: Its cores are lent to others until it resumes; memory and gres stay held (tried on 22.05).
    SUSPENDED = auto()
    ENDED = auto()


#: The first phase of this table that any of a job's words belongs to counts.
PHASES = {JobPhase[name]: frozenset(words) for name, words in WORDS["job_phases"].items()}
_KNOWN = frozenset[str]().union(*PHASES.values())
#: Flags beside a base state that change nothing here.
_HARMLESS = {"POWER_UP_NODE", "UPDATE_DB", "EXPEDITING"}
_HELD_STATES = {"REQUEUE_HOLD": "RequeueHold", "SPECIAL_EXIT": "SpecialExit", "RESV_DEL_HOLD": "ResvDelHold"}
#: Reasons that only say "not its turn": the snapshot has reservations and node states.
_STARTABLE = {"", "None", "Priority", "Resources", "ReqNodeNotAvail", "Reservation"}


def phase_of(record: Record) -> JobPhase:
    """Return a job's phase.

    Raises:
        InputError: a state that no Slurm version is known to write.
    """
    return record.once("phase", lambda: _phase(record))


def _phase(record: Record) -> JobPhase:
    record.require("job_state")
    words = {word.upper() for word in record.texts("job_state")}
    if not words & _KNOWN or words - _KNOWN - _HARMLESS:
        raise record.unknown("job_state", "a job state of Slurm")
    return next(phase for phase, names in PHASES.items() if words & names)


def hold_of(record: Record, priority: int, now: float | None) -> str | None:
    """Return why a pending job must not start, None when only its turn has not come.

    A positive priority is no leave to start: a job with a dependency has one. Neither is a reason
    that says nothing: 22.05 shows None after any update of a job, until its scheduler next looks at
    the job. So the dependency and the begin time count whatever the reason is.
    """
    for word in record.texts("job_state"):
        if word in _HELD_STATES:
            return _HELD_STATES[word]
    if is_expedited(record):
        # Whatever it waits for, it is Slurm's to start (request.py says so).
        return None
    # afterok:7(unfulfilled), singleton.
    others = re.split("[,?]", record.text("dependency"))
    if any(not one.endswith("(fulfilled)") for one in others if one):
        return "Dependency"
    begin = record.moment("eligible_time") or 0
    # A job submitted while Slurm was asked may be eligible a moment after the snapshot's time.
    if now is not None and begin > max(now, record.moment("submit_time") or 0):
        return "BeginTime"
    reason = record.text("state_reason")
    # For a MAGNETIC reservation 22.05 lets jobs wait that do not ask for it.
    is_its_turn = reason in _STARTABLE and not (reason == "Reservation" and record.text("resv_name"))
    if priority == 0 and is_its_turn:
        return "JobHeldUser"
    return None if is_its_turn else one_line(reason)


def is_expedited(record: Record) -> bool:
    """Whether a job of ``--requeue=expedite`` (25.11) was requeued: it starts before others."""
    return "EXPEDITING" in record.texts("job_state")
