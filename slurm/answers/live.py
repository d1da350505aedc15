"""Slurm's answers: read from the files that were given, asked of the live cluster for the rest."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, fields

from ...cluster.errors import InputError, OptionError
from ...formats.notes import Notes
from ...formats.reading import read_document, shown_name
from .snapshot import SlurmSources, SlurmText
from .topology_any import is_sizes

Command = tuple[str, ...]
#: Returns what a command prints; raises InputError where it fails.
Ask = Callable[[Command], bytes]

#: Asks for the queue.
JOBS: Command = ("squeue", "--json")
#: The commands for one answer, the newest Slurm's first: 22.05's scontrol writes no JSON, and from 23.02
#: ``sinfo --json`` groups nodes.
_NODES: tuple[Command, ...] = (("scontrol", "show", "nodes", "--json"), ("sinfo", "--json"))
_TOPOLOGY: Command = ("scontrol", "show", "topology")
_JOB_DETAIL: Command = ("scontrol", "-d", "show", "job")
_LICENSES: tuple[Command, ...] = (
    ("scontrol", "show", "licenses", "--json"),
    ("scontrol", "-o", "show", "licenses"),
)
_PARTITIONS: tuple[Command, ...] = (
    ("scontrol", "show", "partitions", "--json"),
    ("scontrol", "-o", "show", "partitions"),
)
_RESERVATIONS: tuple[Command, ...] = (
    ("scontrol", "show", "reservations", "--json"),
    ("scontrol", "-o", "show", "reservations"),
)
#: What tells whose jobs may start and what they get; of a Slurm without accounting the first says nothing.
_LIMITS: Command = ("scontrol", "show", "assoc_mgr", "flags=qos,assoc")
_CONFIG: Command = ("scontrol", "show", "config")
_NO_LIMITS = "limits of QOS and associations are not known"

_LOCAL_TIME = re.compile(rb"\bStartTime=\d+-")

#: A controller under load answers late; one that does not answer at all should not hang a cron job.
_TIMEOUT_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmFiles:
    """The names of files with Slurm's answers as the user gave them; ``-`` is standard input."""

    jobs: str | None = None
    nodes: str | None = None
    topology: str | None = None
    job_detail: str | None = None
    licenses: str | None = None
    partitions: str | None = None
    reservations: str | None = None
    limits: str | None = None
    conf: str | None = None
    priorities: str | None = None


def ask_slurm(command: Command) -> bytes:
    """Return what a command of Slurm's prints, in English, times in seconds of the epoch.

    Raises:
        InputError: it is not installed, fails, or does not answer in time; names the command.
    """
    shown = " ".join(command)
    program = shutil.which(command[0])
    if program is None:
        raise InputError("the command is not installed here: give a file of its output", file=shown)
    # 22.05 cuts lists of array tasks after 64 characters unless told not to.
    environment = {**os.environ, "SLURM_BITSTR_LEN": "0", "SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"}
    try:
        answer = subprocess.run(  # noqa: S603 - no shell, each word stands for itself
            [program, *command[1:]], capture_output=True, check=False, timeout=_TIMEOUT_S, env=environment
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"the command failed: {error}", file=shown) from error
    if answer.returncode:
        said = answer.stderr.decode(errors="replace").strip().splitlines()
        reason = said[-1] if said else f"exit code {answer.returncode}"
        raise InputError(f"the command failed: {reason}", file=shown)
    return answer.stdout


def collect(files: SlurmFiles, *, ask: Ask = ask_slurm) -> tuple[SlurmSources, Notes]:
    """Return Slurm's answers, from files where their names are given, else from the live commands.

    Topology and job detail only add to jobs and nodes: where they are not given and cannot be asked for,
    that is a note. Licences, partitions, reservations, limits and the configuration are asked for when the
    jobs are: those of now belong to no saved queue. Priorities stand in the queue.

    Raises:
        InputError: a file cannot be read, or ``squeue`` or both commands for nodes fail.
        OptionError: two of the files are standard input.
    """
    notes = Notes()
    names = {field.name: getattr(files, field.name) for field in fields(files)}
    given = [f"--{name.replace('_', '-')}" for name, value in names.items() if value == "-"]
    if len(given) > 1:
        raise OptionError(f"only one of {' and '.join(given)} can be standard input")

    def adding(name: str | None, commands: tuple[Command, ...], otherwise: str) -> SlurmText | None:
        return _try(commands, notes.add, otherwise, ask) if name is None else _file(name)

    def with_jobs(name: str | None, commands: tuple[Command, ...], otherwise: str) -> SlurmText | None:
        """Return what says by which rules jobs start: where it cannot be had, they are not looked at."""
        if name is not None:
            return _file(name)
        return None if files.jobs is not None else _try(commands, notes.unread, otherwise, ask)

    sources = SlurmSources(
        jobs=_answer(JOBS, ask) if files.jobs is None else _file(files.jobs),
        nodes=_first(_NODES, ask) if files.nodes is None else _file(files.nodes),
        topology=SlurmText(name=files.topology, content=files.topology.encode())
        if files.topology is not None and is_sizes(files.topology)
        else adding(files.topology, (_TOPOLOGY,), "the topology is taken as linear"),
        job_detail=adding(files.job_detail, (_JOB_DETAIL,), "job detail is not known"),
        licenses=with_jobs(files.licenses, _LICENSES, "licences are not known"),
        partitions=with_jobs(files.partitions, _PARTITIONS, "limits of partitions are not known"),
        reservations=with_jobs(files.reservations, _RESERVATIONS, "reservations are not known"),
        limits=with_jobs(files.limits, (_LIMITS,), _NO_LIMITS),
        config=with_jobs(files.conf, (_CONFIG,), "the cluster's defaults are not known"),
        priorities=None if files.priorities is None else _file(files.priorities),
    )
    _note_zone(sources.reservations, notes)
    return sources, notes


def _file(name: str) -> SlurmText:
    return SlurmText(name=shown_name(name), content=read_document(name, bytes))


def _answer(command: Command, ask: Ask) -> SlurmText:
    return SlurmText(name=" ".join(command), content=ask(command))


def _first(commands: tuple[Command, ...], ask: Ask) -> SlurmText:
    """Return the answer of the first command that gives one; the last one's error when none does."""
    for command in commands[:-1]:
        try:
            return _answer(command, ask)
        except InputError:
            continue
    return _answer(commands[-1], ask)


def _try(
    commands: tuple[Command, ...], tell: Callable[[str, str], None], otherwise: str, ask: Ask
) -> SlurmText | None:
    try:
        return _first(commands, ask)
    except InputError as error:
        tell("live commands", f"{error}; {otherwise}")
        return None


def _note_zone(reservations: SlurmText | None, notes: Notes) -> None:
    """Say so when times stand in local time; live commands are told to print seconds of the epoch."""
    if reservations and _LOCAL_TIME.search(reservations.content):
        notes.add("time", "times of reservations have no zone: read as this machine's local time")
