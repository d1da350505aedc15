"""Waiting jobs put behind the gate from outside, where no submit plugin does it."""

from __future__ import annotations

from collections.abc import Collection

from ..slurm.answers.live import JOBS, Ask
from ..slurm.place import CannotPlaceError
from .actions import Words, line
from .claims import is_pinned
from .queue import LiveJob, read_queue


def read_waiting(ask: Ask) -> list[LiveJob]:
    """Return the jobs that wait.

    Raises:
        InputError: squeue fails, or prints what is not known.
    """
    jobs = read_queue(ask(JOBS), " ".join(JOBS))
    return [job for job in jobs.values() if job.is_waiting]


def added(
    waiting: Collection[LiveJob], licence: str, partitions: Collection[str], users: Collection[str]
) -> tuple[list[Words], list[str]]:
    """Return the commands that put jobs behind the gate, and why some cannot be."""
    commands: dict[Words, None] = {}
    problems: list[str] = []
    for job in waiting:
        named = not partitions or set(partitions) & set(job.partition.split(","))
        if not named or (users and job.user not in users):
            continue
        if job.needs(licence) or is_pinned(job, licence):
            continue
        licenses = f"{job.licenses},{licence}:1" if job.licenses else f"{licence}:1"
        words = ("update", f"JobId={job.whole}", f"Licenses={licenses}")
        if problem := _problem(job, words):
            problems.append(f"job {job.id} cannot be put behind the gate: {problem}")
        else:
            commands[words] = None
    return list(commands), problems


def _problem(job: LiveJob, words: Words) -> str:
    if "|" in job.licenses:
        return "it asks for one licence or another"
    try:
        line(words)
    except CannotPlaceError as error:
        return str(error)
    return ""
