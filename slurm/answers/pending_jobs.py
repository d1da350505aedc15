"""Slurm's pending jobs: arrays become their tasks, holds are kept, priorities stay exact.

A saved queue may be joined with priorities from sprio's output, or squeue's.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import Any

from ...cluster.checks import plain
from ...cluster.errors import InputError
from ...cluster.jobs import BY_HAND, Job
from ...cluster.limits import JOB_MEMBERS
from ...cluster.snapshot import MAX_JOBS
from ...cluster.value_types import exact_priority
from ...formats.file_kinds import is_json
from ...formats.notes import Notes
from .answer_record import Record, read_document
from .answer_text import answered
from .consumables import asks_for
from .policy import Site, admitted_jobs
from .request import note_preferences, read_request
from .states import JobPhase, hold_of, phase_of

#: Columns that hold the job and its priority, by their headings in sprio and squeue.
_JOB, _PRIORITY = {"JOBID"}, {"PRIORITY", "PRIORITYLONG"}
_WORD = re.compile(r"\S+")
_NUMBER = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?", re.ASCII)
#: A job, a task or tasks of an array, a part of a heterogeneous job.
_JOB_ID = re.compile(r"(\d{1,18})(?:_(?:\d{1,9}|\[[^\]]*\])|\+(\d{1,9}))?", re.ASCII)

Priorities = Mapping[str, int | Fraction]
#: What squeue's JSON calls whose a job is.
_OWNER = {name: {"user": "user_name", "group": "group_name"}.get(name, name) for name in JOB_MEMBERS}


def read_priorities(content: bytes, notes: Notes) -> Priorities:
    """Return priorities by job id; a job in several partitions has its highest, as in Slurm.

    Read are ``sprio`` (also ``-l``, ``-o '%i %Y'``), ``sprio --json``, ``squeue -o '%i %Q'``, with
    their headings, and the same two columns without one.

    Raises:
        InputError: a line has no job id or no priority; names the line.
    """
    pairs = _of_json(content) if is_json(content) else _of_text(answered(content))
    found: dict[str, int | Fraction] = {}
    several: set[str] = set()
    for job, priority in pairs:
        if found.get(job, priority) != priority:
            several.add(job)
        found[job] = max(found.get(job, 0), priority)
    if several:
        notes.add("priorities", f"jobs with a priority in each partition take their highest: {len(several)}")
    return found


def _of_json(content: bytes) -> list[tuple[str, int | Fraction]]:
    document = read_document(content)
    document.require("jobs")
    return [(str(record.count("job_id")), _of_record(record)) for record in document.children("jobs")]


def _of_record(record: Record) -> int | Fraction:
    nested = record.child("priority") if isinstance(record.members.get("priority"), dict) else None
    if nested is not None and not {"set", "number"} <= set(nested.members):
        return nested.count("priority")
    return record.count("priority")


def _of_text(text: str) -> list[tuple[str, int | Fraction]]:
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    columns = (0, 1, -1)
    if lines and not lines[0][1].split()[0][:1].isdigit():
        columns = _columns(lines.pop(0)[1])
    return [_pair(line, columns, f"line {number}") for number, line in lines]


def _columns(heading: str) -> tuple[int, int, int]:
    """Return which words of a line are job and priority, and where the priority's heading ends."""
    words = list(_WORD.finditer(heading))
    names = [word[0].upper() for word in words]
    job, priority = (
        next((names.index(name) for name in names if name in of), None) for of in (_JOB, _PRIORITY)
    )
    if job is None or priority is None:
        shown = " ".join(heading.split())[:60]
        raise InputError(f"{shown!r} is not a heading with JOBID and PRIORITY", path="line 1")
    return job, priority, words[priority].end()


def _pair(line: str, columns: tuple[int, int, int], path: str) -> tuple[str, int | Fraction]:
    words = list(_WORD.finditer(line))
    of_job, of_priority, end = columns
    if len(words) <= max(of_job, of_priority):
        raise InputError(f"{line.strip()[:60]!r} has no job id and priority", path=path)
    job = words[of_job][0]
    # An empty column in front, an account that is not there, moves the words: then the place tells.
    aligned = (word for word in words if word.end() == end)
    priority = next(aligned, words[of_priority])[0]
    match = _JOB_ID.fullmatch(job)
    if match is None:
        raise InputError(f"{job[:60]!r} is not a job id of Slurm", path=path)
    if not _NUMBER.fullmatch(priority):
        raise InputError(f"{priority[:60]!r} is not a priority", path=path)
    # squeue prints 10+1 of what is job 11 in all other answers.
    name = str(int(match[1]) + int(match[2])) if match[2] else match[1] if "[" in job else job
    return name, exact_priority(Decimal(priority))


_TASKS = re.compile(r"(\d{1,12})(?:-(\d{1,12})(?::(\d{1,12}))?)?")
_CUT = "..."


def read_jobs(records: Sequence[Record], site: Site, notes: Notes) -> tuple[Job, ...]:
    """Return the pending jobs in file order.

    Raises:
        InputError: a member is absent or of unknown shape, or array tasks exceed a snapshot's jobs.
    """
    pending = [record for record in records if phase_of(record) is JobPhase.PENDING]
    _check_count(pending)
    # The tasks of each array that count against its limit.
    begun = Counter(
        array
        for record in records
        if (array := record.number("array_job_id"))
        and phase_of(record) in (JobPhase.HOLDING, JobPhase.SUSPENDED)
    )
    jobs = [job for record in pending for job in _jobs(record, site, begun, notes)]
    if site.priorities is not None:
        jobs = _with_priorities(jobs, site, notes)
    if site.schedule_held:
        jobs = _lifted(jobs, site, notes)
    if held := sum(job.hold in BY_HAND for job in jobs):
        why = "their saved priority is 0" if site.schedule_held else "--held schedule starts them"
        notes.add("held", f"held by hand, so not started: {held} ({why})")
    return admitted_jobs(jobs, site, notes)


def owner_of(record: Record) -> dict[str, Any]:
    """Return whose a job is, by the members of ``Owned``."""
    return {name: record.text(member) for name, member in _OWNER.items()}


def job_id(record: Record) -> str:
    """Return a job's name in the snapshot: ``17``, and ``17_3`` for task 3 of an array."""
    number, array, task = (
        record.count("job_id"),
        record.number("array_job_id"),
        record.number("array_task_id"),
    )
    return f"{array}_{task}" if array and task is not None else str(number)


def _jobs(record: Record, site: Site, begun: Counter[int], notes: Notes) -> Iterator[Job]:
    """Yield one job, or one for each waiting task of an array.

    ``begun``: tasks of each array that run or may start; those that its limit lets start join them.
    """
    is_due = site.now is None or (record.moment("eligible_time") or 0) <= site.now
    details = site.details or {}
    detail = details.get(record.count("job_id"))
    key = site.key, site.tells_shared, bool(details), detail, is_due
    job = record.noted("job", lambda own: _job(record, site, own), notes, key)
    text = record.text("array_task_string")
    array, limit = record.number("array_job_id"), _limit(record, text)
    if not text and not (array and limit):
        yield job
        return
    array = array or record.count("job_id")
    tasks = list(array_tasks(text, record.place("array_task_string"))) if text else [None]
    if _CUT in text:
        cut = f"job {array}: its list of array tasks is cut off, {len(tasks)} are read"
        notes.add("arrays", f"{cut} (set SLURM_BITSTR_LEN=0 for squeue)")
    for index, task in enumerate(tasks):
        # Slurm's plan is for the task that is next.
        planned = None if index else job.expected_start_time
        own = replace(job, id=job.id if task is None else f"{array}_{task}", expected_start_time=planned)
        # A hold by hand may be lifted further on; the array's limit must then still stand.
        is_lifted = site.schedule_held and job.hold in BY_HAND and _saved(own, site) != 0
        may_begin = job.hold is None or is_lifted
        is_over = may_begin and limit and begun[array] >= limit
        begun[array] += may_begin
        yield replace(own, hold="JobArrayTaskLimit") if is_over else own


def _job(record: Record, site: Site, notes: Notes) -> Job:
    record.require("priority", "state_reason", "time_limit", "partition", "user_name")
    label = f"job {record.count('job_id')}"
    priority = record.count("priority")
    told = _with_detail(record, site, notes, label)
    request, unsupported = read_request(told, site, notes, label)
    for text in unsupported:
        notes.add("not expressible", f"{label}: not expressible: {text}")
    note_preferences(record, notes, label)
    for member in _OWNER.values():
        plain(record.text(member), record.place(member))
    return Job(
        id=job_id(record),
        priority=priority,
        request=request,
        submit_time=record.moment("submit_time"),
        expected_start_time=record.moment("start_time"),
        **owner_of(record),
        time_limit_s=(record.number("time_limit") or 0) * 60 or None,
        hold=_hold(record, priority, site),
        unsupported=unsupported,
    )


def _hold(record: Record, priority: int, site: Site) -> str | None:
    """Return why a job must not start."""
    hold = hold_of(record, priority, site.now)
    # Its other licences, if it needs any, are counted as any job's are.
    is_gated = hold == "Licenses" and site.gate and asks_for(record.text("licenses"), site.gate)
    return None if is_gated else hold


def _with_detail(record: Record, site: Site, notes: Notes, label: str) -> Record:
    """Return a record with scontrol's detail of the job, never of another of its number."""
    details = site.details or {}
    detail = details.get(record.count("job_id"))
    if detail is None:
        if details and not record.has("required_switches"):
            notes.add("job detail", f"{label}: not in the job detail: --switches not known")
        return record
    # scontrol's lines end there.
    if "name" in record.members and detail.name != record.text("name").rstrip():
        text = f"{label}: the job detail is of another job, {detail.name!r}, and not used"
        notes.add("job detail", text)
        return record
    return detail.joined(record)


def array_tasks(text: str, path: str) -> Iterator[int]:
    """Yield the task numbers of ``1-6%2``, ``1,5,9`` or ``1-9:4``; not one cut off by ``...``."""
    return chain.from_iterable(_ranges(text, path))


def _ranges(text: str, path: str) -> Iterator[range]:
    parts = text.partition("%")[0].split(",")
    if parts[-1].endswith(_CUT):
        parts.pop()  # the last number may lack digits
    for part in parts:
        match = _TASKS.fullmatch(part)
        if match is None or int(match[3] or 1) < 1:
            raise InputError(f"{text[:60]!r} is not a list of array tasks", path=path)
        yield range(int(match[1]), int(match[2] or match[1]) + 1, int(match[3] or 1))


def _limit(record: Record, text: str) -> int:
    """Return how many tasks of an array may run at once, 0 for all."""
    written = _TASKS.fullmatch(text.partition("%")[2].removesuffix(_CUT))
    return record.number("array_max_tasks") or (int(written[1]) if written else 0)


def _check_count(pending: Sequence[Record]) -> None:
    """Refuse more tasks than a snapshot may have jobs before they are written out."""
    total = 0
    for record in pending:
        text, place = record.text("array_task_string"), record.place("array_task_string")
        total += sum(map(len, _ranges(text, place))) if text else 1
        if total > MAX_JOBS:
            raise InputError(f"more than {MAX_JOBS} pending jobs and array tasks", path=record.path)


def _with_priorities(jobs: Sequence[Job], site: Site, notes: Notes) -> list[Job]:
    """Give jobs their saved priorities; jobs held by hand only if they are to be scheduled."""
    found: list[Job] = []
    unknown = 0
    for job in jobs:
        priority = _saved(job, site)
        by_hand = job.hold in BY_HAND
        if priority is None or (by_hand and not site.schedule_held):
            unknown += not by_hand and job.priority > 0
            found.append(job)
        else:
            found.append(replace(job, priority=priority, hold=None if by_hand and priority else job.hold))
    if unknown:
        notes.add("priorities", f"jobs without a saved priority keep the queue's: {unknown}")
    return found


def _saved(job: Job, site: Site) -> int | Fraction | None:
    """Return a job's saved priority; sprio shows an array's task under the array's id."""
    known = site.priorities or {}
    return known.get(job.id, known.get(job.id.partition("_")[0]))


def _lifted(jobs: Sequence[Job], site: Site, notes: Notes) -> list[Job]:
    """Schedule jobs still held by hand: the first submitted first, all below any other priority.

    Slurm gives a held job priority 0: one saved with it was held before, and stays so.
    """
    held = [job for job in jobs if job.hold in BY_HAND and _saved(job, site) != 0]
    order = sorted(held, key=lambda job: job.submit_time or 0.0)
    lowest = min((job.priority for job in jobs if job.priority > 0), default=None)
    step = 1 if lowest is None else min(lowest, 1) * Fraction(1, 10 ** len(str(len(held))))
    lifted = {
        job.id: replace(job, hold=None, priority=rank * step) for rank, job in enumerate(reversed(order), 1)
    }
    if lifted:
        text = f"held by hand, yet scheduled: {len(lifted)}, in order of submission behind all other jobs"
        notes.add("held", text)
    return [lifted.get(job.id, job) for job in jobs]
