"""Slurm's job states: which jobs wait, which hold resources, and why a waiting one must not start."""

from __future__ import annotations

from enum import Enum, auto

from ...cluster.text import one_line
from .record import Record


class Phase(Enum):
    """What a job means to a scheduler now."""

    PENDING = auto()
    HOLDING = auto()
    #: Its cores are lent to others until it resumes; memory and gres stay held (tried on 22.05).
    SUSPENDED = auto()
    ENDED = auto()


# A job carries a base state and flags; 22.05 prints one of them, later versions all. The first phase
# of this table that any of a job's words belongs to counts.
_PHASES = {
    Phase.HOLDING: {"COMPLETING", "CONFIGURING", "RUNNING", "RESIZING", "STAGE_OUT", "SIGNALING", "STOPPED"},
    Phase.SUSPENDED: {"SUSPENDED"},
    Phase.PENDING: {"PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"},
    Phase.ENDED: {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "LAUNCH_FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "RECONFIG_FAIL",
        "REVOKED",
        "TIMEOUT",
    },
}
_KNOWN = set().union(*_PHASES.values())
#: Flags beside a base state that change nothing here.
_HARMLESS = {"POWER_UP_NODE", "UPDATE_DB", "EXPEDITING"}
_HELD_STATES = {"REQUEUE_HOLD": "RequeueHold", "SPECIAL_EXIT": "SpecialExit", "RESV_DEL_HOLD": "ResvDelHold"}
#: Reasons that only say "its turn has not come".
_STARTABLE = {"", "None", "Priority", "Resources"}
#: Reasons of a hold by hand, which an outside scheduler may lift (``--held schedule``).
BY_HAND = {"JobHeldUser", "JobHeldAdmin"}


def phase_of(record: Record) -> Phase:
    """Return a job's phase.

    Raises:
        InputError: a state that no Slurm version is known to write.
    """
    return record.once("phase", lambda: _phase(record))


def _phase(record: Record) -> Phase:
    record.require("job_state")
    words = {word.upper() for word in record.texts("job_state")}
    if not words & _KNOWN or words - _KNOWN - _HARMLESS:
        raise record.unknown("job_state", "a job state of Slurm")
    return next(phase for phase, names in _PHASES.items() if words & names)


def hold_of(record: Record, priority: int, now: float | None) -> str | None:
    """Return why a pending job must not start, None when only its turn has not come.

    A positive priority is no leave to start: a job with a dependency has one. A hold by hand hides
    the dependency or the begin time behind it, so these are looked for first.
    """
    for word in record.texts("job_state"):
        if word in _HELD_STATES:
            return _HELD_STATES[word]
    reason = record.text("state_reason")
    if reason in BY_HAND or (priority == 0 and reason in _STARTABLE):
        if record.text("dependency"):
            return "Dependency"
        begin = record.moment("eligible_time") or 0
        if now is not None and begin > now:
            return "BeginTime"
        return reason if reason in BY_HAND else "JobHeldUser"
    return None if reason in _STARTABLE else one_line(reason)
