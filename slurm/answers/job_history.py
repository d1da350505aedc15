"""What Slurm started and what ended since: the records of jobs that hold nodes or held them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...formats.hostlist import expand
from .answer_record import Record, read_document
from .pending_jobs import job_id
from .states import JobPhase, phase_of


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedJob:
    """A job that Slurm started. Times are seconds since the epoch.

    Attributes:
        end: when it ended; None while it runs.
        state: Slurm's word for how it ended, empty while it runs.
        limit_s: its time limit; None: none.
    """

    id: str
    submit: float
    start: float
    end: float | None
    state: str
    nodes: tuple[str, ...]
    cores: int
    limit_s: int | None
    user: str
    account: str
    partition: str
    priority: int


def started_jobs(content: bytes) -> Iterator[StartedJob]:
    """Yield the jobs of ``squeue --json`` that have started, those that ended among them.

    Raises:
        InputError: the answer is malformed, or a member of an unknown shape.
    """
    for record in read_document(content).children("jobs"):
        phase = phase_of(record)
        start = record.moment("start_time")
        nodes = tuple(name for text in record.texts("nodes") for name in expand(text, record.place("nodes")))
        if phase is JobPhase.PENDING or start is None or not nodes:
            continue
        yield _started(record, nodes, float(start), ended=phase is JobPhase.ENDED)


def _started(record: Record, nodes: tuple[str, ...], start: float, *, ended: bool) -> StartedJob:
    minutes = record.number("time_limit")
    end = record.moment("end_time")
    return StartedJob(
        id=job_id(record),
        submit=float(record.moment("submit_time") or start),
        start=start,
        end=float(end) if ended and end is not None else None,
        state=",".join(record.texts("job_state")) if ended else "",
        nodes=nodes,
        cores=record.number("cpus") or 0,
        limit_s=None if minutes is None else minutes * 60,
        user=record.text("user_name"),
        account=record.text("account"),
        partition=record.text("partition"),
        priority=record.number("priority") or 0,
    )
