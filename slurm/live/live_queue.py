"""What the loop needs to know of each job beside the snapshot: its licences, its pin, where it runs.

The snapshot keeps what a job asks for in its own terms, and a pinned job must get back exactly what it had
asked Slurm for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from ...cluster.errors import InputError
from ...formats.hostlist import expand
from ..answers.answer_record import Record
from ..answers.known import Known
from ..answers.license_lists import asks_for
from ..answers.pending_jobs import array_tasks, job_id
from ..answers.size import node_range
from ..answers.states import JobPhase, phase_of
from .marks import Carrier, Mark, read_mark


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveJob:
    """A job as Slurm has it now.

    Attributes:
        id: as the snapshot and scontrol call it: ``17``, ``17_3``.
        licenses: as asked for, the gate's included.
        carrier: which of its comments carries a mark.
        comment: that comment.
        mark: what the comment says of a pin, None where there is none of ours.
        required: the nodes that it must have, as a hostlist.
        nodes: where it runs, as a hostlist; empty while it waits.
        cpus, min_cpus: its CPUs, and the fewest on a node.
        least_nodes, most_nodes: its range; most is 0 where it has none.
        is_held: its priority is 0.
        tasks: of an array's record, the waiting tasks as Slurm lists them.
    """

    id: str
    phase: JobPhase
    licenses: str
    carrier: Carrier
    comment: str
    mark: Mark | None
    required: str
    nodes: str
    cpus: int
    min_cpus: int
    least_nodes: int
    most_nodes: int
    is_held: bool
    reservation: str
    reason: str
    partition: str
    user: str
    tasks: str

    @property
    def whole(self) -> str:
        """What scontrol calls the job by, all waiting tasks of an array together."""
        return f"{self.id.partition('_')[0]}_[{self.tasks}]" if self.tasks else self.id

    @property
    def is_waiting(self) -> bool:
        """Whether it is pending."""
        return self.phase is JobPhase.PENDING

    def needs(self, licence: str) -> bool:
        """Whether it asks for a licence: the gate's keeps it waiting."""
        return asks_for(self.licenses, licence)


def read_queue(
    content: bytes, name: str, known: Known | None = None, carrier: Carrier = Carrier.ADMIN_COMMENT
) -> dict[str, LiveJob]:
    """Return the jobs by id, a waiting task of an array each by its own; marks stand in the ``carrier``.

    Those of a text that is ``known`` are not read anew.

    Raises:
        InputError: the answer is none of squeue's, or a member is of an unknown shape.
    """
    found: dict[str, LiveJob] = {}
    try:
        document = (Known() if known is None else known).document(content, "jobs")
        document.require("jobs")
        for record in document.children("jobs"):
            for one in _tasks(record, record.once("live", partial(_live, record, carrier), carrier)):
                found[one.id] = one
    except InputError as error:
        raise error.in_file(name) from error
    return found


def _live(record: Record, carrier: Carrier) -> LiveJob:
    low, high = node_range(record)
    comment = record.text(carrier.member)
    nodes = record.members.get("nodes")
    return LiveJob(
        id=job_id(record),
        phase=phase_of(record),
        licenses=record.text("licenses"),
        carrier=carrier,
        comment=comment,
        mark=read_mark(comment),
        required=",".join(record.texts("required_nodes")),
        nodes=nodes if isinstance(nodes, str) else "",
        cpus=record.number("cpus") or 0,
        min_cpus=record.number("minimum_cpus_per_node") or 1,
        least_nodes=low,
        most_nodes=high,
        is_held=record.number("priority") == 0,
        reservation=record.text("resv_name"),
        reason=record.text("state_reason"),
        partition=record.text("partition"),
        user=record.text("user_name"),
        tasks=record.text("array_task_string").partition("%")[0],
    )


def _tasks(record: Record, job: LiveJob) -> Iterator[LiveJob]:
    if not job.tasks or not job.is_waiting:
        yield job
        return
    array = record.number("array_job_id") or record.count("job_id")
    for task in array_tasks(job.tasks, record.place("array_task_string")):
        yield replace(job, id=f"{array}_{task}")


def names_of(hostlist: str) -> tuple[str, ...]:
    """Return a hostlist's names in order; none of an empty one."""
    return expand(hostlist) if hostlist else ()
