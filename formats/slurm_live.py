"""Slurm's answers: read from the files that were given, asked of the live cluster for the rest."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from ..cluster.errors import InputError, OptionError
from ..cluster.nodes import License
from .slurm_import import SlurmSources, SlurmText
from .slurm_notes import Notes

_JOBS = ("squeue", "--json")
_NODES = ("sinfo", "--json")
_TOPOLOGY = ("scontrol", "show", "topology")
_JOB_DETAIL = ("scontrol", "-d", "show", "job")
_LICENSES = ("scontrol", "-o", "show", "licenses")
_LICENSE = re.compile(r"LicenseName=(\S+) Total=(\d{1,18}) Used=\d+ Free=(\d{1,18})")

#: A controller under load answers late; one that does not answer at all should not hang a cron job.
_TIMEOUT_S = 120


def collect(
    *, jobs: str | None, nodes: str | None, topology: str | None, job_detail: str | None
) -> tuple[SlurmSources, Notes]:
    """Return Slurm's answers, from files where their names are given, else from the live commands.

    Topology and job detail only add to jobs and nodes: where they are not given and cannot be asked for,
    that is a note. Licences are asked for when the jobs are.

    Raises:
        InputError: a file cannot be read, or ``squeue`` or ``sinfo`` is not there or fails.
        OptionError: two of the files are standard input.
    """
    notes = Notes()
    if [jobs, nodes, topology, job_detail].count("-") > 1:
        raise OptionError("only one of --jobs, --nodes, --topology and --job-detail can be standard input")
    sources = SlurmSources(
        jobs=_ask(_JOBS) if jobs is None else _file(jobs),
        nodes=_ask(_NODES) if nodes is None else _file(nodes),
        topology=_try(_TOPOLOGY, notes, "the topology is taken as linear")
        if topology is None
        else _file(topology),
        job_detail=_try(_JOB_DETAIL, notes, "job detail is not known")
        if job_detail is None
        else _file(job_detail),
        licenses=_licenses(notes) if jobs is None else None,
    )
    return sources, notes


def _file(name: str) -> SlurmText:
    shown = "standard input" if name == "-" else name
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise InputError(error.strerror or str(error), file=shown) from error
    return SlurmText(name=shown, content=content)


def _ask(command: tuple[str, ...]) -> SlurmText:
    """Return what a command prints.

    Raises:
        InputError: it is not installed, fails, or does not answer in time; names the command.
    """
    shown = " ".join(command)
    program = shutil.which(command[0])
    if program is None:
        raise InputError("the command is not installed here: give a file of its output", file=shown)
    # 22.05 cuts lists of array tasks after 64 characters unless told not to.
    environment = {**os.environ, "SLURM_BITSTR_LEN": "0", "LC_ALL": "C"}
    try:
        answer = subprocess.run(  # noqa: S603 - the commands are the constants above
            [program, *command[1:]], capture_output=True, check=False, timeout=_TIMEOUT_S, env=environment
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"the command failed: {error}", file=shown) from error
    if answer.returncode:
        said = answer.stderr.decode(errors="replace").strip().splitlines()
        reason = said[-1] if said else f"exit code {answer.returncode}"
        raise InputError(f"the command failed: {reason}", file=shown)
    return SlurmText(name=shown, content=answer.stdout)


def _try(command: tuple[str, ...], notes: Notes, otherwise: str) -> SlurmText | None:
    try:
        return _ask(command)
    except InputError as error:
        notes.add("live commands", f"{error}; {otherwise}")
        return None


def _licenses(notes: Notes) -> dict[str, License]:
    answer = _try(_LICENSES, notes, "licences are not known")
    text = answer.content.decode(errors="replace") if answer else ""
    return {name: License(total=int(total), free=int(free)) for name, total, free in _LICENSE.findall(text)}
