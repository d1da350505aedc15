"""Priorities of pending jobs from sprio's output, or squeue's: what a saved queue may be joined with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from ...cluster.errors import InputError
from ...cluster.value_types import exact_priority
from ...formats.notes import Notes
from .answer_record import Record, is_json, read_document

#: Columns that hold the job and its priority, by their headings in sprio and squeue.
_JOB, _PRIORITY = {"JOBID"}, {"PRIORITY", "PRIORITYLONG"}
_WORD = re.compile(r"\S+")
_NUMBER = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?", re.ASCII)
_ARRAY = re.compile(r"(\d{1,18})(?:_(?:\d{1,9}|\[[^\]]*\]))?", re.ASCII)

Priorities = Mapping[str, int | Fraction]


def read_priorities(content: bytes, notes: Notes) -> Priorities:
    """Return priorities by job id; a job in several partitions has its highest, as in Slurm's queue.

    Read are ``sprio`` (also ``-l``, ``-o '%i %Y'``), ``sprio --json``, ``squeue -o '%i %Q'``, with their
    headings, and the same two columns without one.

    Raises:
        InputError: a line has no job id or no priority; names the line.
    """
    pairs = _of_json(content) if is_json(content) else _of_text(content.decode(errors="replace"))
    found: dict[str, int | Fraction] = {}
    several: set[str] = set()
    for job, priority in pairs:
        if found.get(job, priority) != priority:
            several.add(job)
        found[job] = max(found.get(job, 0), priority)
    if several:
        notes.add("priorities", f"jobs with a priority in each partition take their highest: {len(several)}")
    return found


def priority_of(job: str, priorities: Priorities) -> int | Fraction | None:
    """Return the priority of a job or of an array's task, which sprio shows under the array's id."""
    return priorities.get(job, priorities.get(job.partition("_")[0]))


def _of_json(content: bytes) -> list[tuple[str, int | Fraction]]:
    document = read_document(content)
    if "jobs" not in document.members:
        raise InputError("the member 'jobs' is missing")
    return [(str(record.count("job_id")), _of_record(record)) for record in document.children("jobs")]


def _of_record(record: Record) -> int | Fraction:
    nested = record.child("priority") if isinstance(record.members.get("priority"), dict) else None
    if nested is not None and not {"set", "number"} <= set(nested.members):
        return nested.count("priority")
    return record.count("priority")


def _of_text(text: str) -> list[tuple[str, int | Fraction]]:
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    columns = _Columns(job=0, priority=1, end=-1)
    if lines and not lines[0][1].split()[0][:1].isdigit():
        columns = _columns(lines.pop(0)[1])
    return [_pair(line, columns, f"line {number}") for number, line in lines]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """Which words of a line are the job and its priority, and the place where the priority's heading ends."""

    job: int
    priority: int
    end: int


def _columns(heading: str) -> _Columns:
    words = list(_WORD.finditer(heading))
    names = [word[0].upper() for word in words]
    job, priority = (
        next((names.index(name) for name in names if name in of), None) for of in (_JOB, _PRIORITY)
    )
    if job is None or priority is None:
        shown = " ".join(heading.split())[:60]
        raise InputError(f"{shown!r} is not a heading with JOBID and PRIORITY", path="line 1")
    return _Columns(job=job, priority=priority, end=words[priority].end())


def _pair(line: str, columns: _Columns, path: str) -> tuple[str, int | Fraction]:
    words = list(_WORD.finditer(line))
    if len(words) <= max(columns.job, columns.priority):
        raise InputError(f"{line.strip()[:60]!r} has no job id and priority", path=path)
    job = words[columns.job][0]
    # An empty column in front, an account that is not there, moves the words: then the place tells.
    aligned = (word for word in words if word.end() == columns.end)
    priority = next(aligned, words[columns.priority])[0]
    match = _ARRAY.fullmatch(job)
    if match is None:
        raise InputError(f"{job[:60]!r} is not a job id of Slurm", path=path)
    if not _NUMBER.fullmatch(priority):
        raise InputError(f"{priority[:60]!r} is not a priority", path=path)
    return (match[1] if "[" in job else job), exact_priority(Decimal(priority))
