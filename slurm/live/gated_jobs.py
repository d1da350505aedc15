"""Waiting jobs put behind the gate from outside, and everything of the gate taken off all jobs again."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from ..answers.consumables import with_gate
from ..answers.live import JOBS, Ask
from ..answers.reservation_records import ReservationFigures
from ..answers.states import JobPhase
from ..place import CannotPlaceError
from .actions import Action, ActionKind, Words, hand_over, line, unpin
from .live_queue import Carrier, LiveJob, read_queue
from .loop_snapshot import is_pinned
from .pass_plan import unused


def added(
    jobs: Collection[LiveJob], licence: str, partitions: Collection[str], users: Collection[str]
) -> tuple[list[Words], list[str]]:
    """Return the commands that put waiting jobs behind the gate, and why some cannot be."""
    commands: dict[Words, None] = {}
    having = {job.user for job in jobs}
    problems = [f"user {name} has no job" for name in users if name not in having]
    for job in jobs:
        named = not partitions or set(partitions) & set(job.partition.split(","))
        if not named or (users and job.user not in users):
            continue
        if not job.is_waiting or job.needs(licence) or is_pinned(job, licence):
            continue
        words = ("update", f"JobId={job.whole}", f"Licenses={with_gate(job.licenses, licence)}")
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


def read_all(ask: Ask) -> list[LiveJob]:
    """Return the jobs that Slurm lists, each with the comment that carries its mark, where it has one.

    Raises:
        InputError: squeue fails, or prints what is not known.
    """
    content = ask(JOBS)
    found: dict[str, LiveJob] = {}
    for carrier in Carrier:
        for name, job in read_queue(content, " ".join(JOBS), carrier=carrier).items():
            if name not in found or job.mark is not None:
                found[name] = job
    return list(found.values())


def cleared(
    jobs: Collection[LiveJob], licence: str, reserved: Iterable[ReservationFigures] = ()
) -> list[Action]:
    """Return what unpins jobs, gives back their requests and comments, and takes the licence off them.

    Jobs that run keep their nodes, which Slurm does not change; their marks and the licence go. Of an array's
    waiting tasks that change alike, one action is for all. One without commands only a person can do.
    """
    found: dict[tuple[Words, ...] | str, Action] = {}
    for job in jobs:
        try:
            one = _clearing(job, licence)
        except CannotPlaceError as error:
            one = Action(kind=ActionKind.CLEAR, job=job.id, commands=(), why=f"not cleared: {error}")
        if one is not None:
            found.setdefault(one.commands or job.id, one)
    unpinned = {words for one in found.values() for words in one.commands}
    for action in unused(reserved, {job.id: job for job in jobs}):
        if unpinned.isdisjoint(action.commands):
            found[action.commands] = replace(action, why="removed")
    return list(found.values())


def _clearing(job: LiveJob, licence: str) -> Action | None:
    mark = job.mark
    if job.is_waiting and mark is not None and mark.since:
        return unpin(job, mark, licence, "unpinned, its request is as it was", behind=False)
    if job.is_waiting and (job.needs(licence) or mark is not None):
        action = hand_over(job, licence, "the licence is off")
        if mark is None:
            words = tuple((one[0], f"JobId={job.whole}", *one[2:]) for one in action.commands)
            action = replace(action, commands=words)
        return replace(action, job=job.whole)
    if job.phase is JobPhase.HOLDING and (mark is not None or job.needs(licence)):
        # Slurm changes the licences of a job that runs, but not the nodes that it requires.
        pinned = "; its nodes stay required" if mark is not None else ""
        return hand_over(job, licence, f"runs: mark and licence are off{pinned}")
    return None


def not_cleared(jobs: Collection[LiveJob], licence: str) -> Iterator[str]:
    """Yield the jobs on which something of the gate is left."""
    for job in jobs:
        if job.mark is not None and job.phase in {JobPhase.PENDING, JobPhase.HOLDING}:
            yield f"{job.id}: it still has a mark"
        elif job.phase in {JobPhase.PENDING, JobPhase.HOLDING} and job.needs(licence):
            yield f"{job.id}: it still asks for the licence {licence}"
