"""Which waiting jobs are held, and which wait for something else: a time, another job, a limit."""

from __future__ import annotations

from .jobs import Job

#: Slurm's reasons for a hold by a user or an administrator, which an outside scheduler may lift.
BY_HAND = frozenset({"JobHeldUser", "JobHeldAdmin"})
#: Slurm's reasons for every hold; any other text in ``Job.hold`` says what else the job waits for.
#: The empty text is a hold that its source gives no word for.
HELD = BY_HAND | {"", "JobHoldMaxRequeue", "RequeueHold", "ResvDelHold", "SpecialExit"}


def may_start(job: Job) -> bool:
    """Return whether neither a hold nor anything else outside of the auction keeps a job waiting."""
    return job.hold is None and job.priority > 0


def is_held(job: Job) -> bool:
    """Return whether a job is held: its priority is 0, as Slurm shows it, or ``hold`` is one of ``HELD``.

    Examples:
        >>> from aucsched import Request
        >>> words = "RequeueHold", "BeginTime"
        >>> jobs = [Job(id="7", priority=5, request=Request(cores=1), hold=word) for word in words]
        >>> [is_held(job) for job in jobs]
        [True, False]
    """
    return job.priority == 0 or job.hold in HELD


def hold_words(job: Job) -> str:
    """Return why a job that may not start waits: the word of its source, or that its priority is 0."""
    if job.priority == 0 and job.hold not in HELD:
        return "; ".join(filter(None, ("priority 0", job.hold)))
    return job.hold or "held"
