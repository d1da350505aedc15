"""What the loop must know of each job besides the snapshot: its licences, its pin, where it runs.

The snapshot keeps what a job asks for in its own terms, and a pinned job must get back exactly what
it had asked Slurm for. It carries that in a comment of its own, so that Slurm alone knows all that
the loop needs: a mark says since when the job is pinned, what it holds on each node, and what it
had asked for before. Whoever finds a pinned job that does not start, this process or a later one,
can put it back as it was. The mark of a waiting job has its promised start, so that a later process
keeps the promise. A mark has no blank and no quote: scontrol reads it as one word.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from itertools import groupby
from urllib.parse import parse_qsl, quote, urlencode

from ...cluster.errors import errors_in
from ..answers.answer_record import Known, Record
from ..answers.consumables import asks_for
from ..answers.pending_jobs import array_tasks, job_id
from ..answers.size import node_range
from ..answers.states import JobPhase, is_expedited, phase_of

_HEAD = "aucsched?"
_GRES = "gres."
_CORES = re.compile(r"(\d{1,7})(?:\*(\d{1,6}))?", re.ASCII)
_COUNT = re.compile(r"\d{1,12}", re.ASCII)
_SAFE = "*:,[]-._"
#: Words of a mark's text, and the members that they are.
_NUMBERS = {"since": "since", "tries": "tries", "cpus": "cpus", "min": "min_cpus", "promised": "promised"}


class Carrier(StrEnum):
    """Which comment of a job carries the mark: in 22.05 only administrators write AdminComment."""

    ADMIN_COMMENT = "admin-comment"
    COMMENT = "comment"

    @property
    def member(self) -> str:
        """Return its name in squeue's JSON."""
        return self.value.replace("-", "_")

    @property
    def word(self) -> str:
        """Return its name in scontrol's words."""
        return "AdminComment" if self is Carrier.ADMIN_COMMENT else "Comment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A pin.

    Attributes:
        since: when it was made, seconds since the epoch; 0 for a job that is not pinned now.
        tries: how often the job was put back behind the gate before.
        cores: on each of its nodes, in their order.
        gres: the most on any of its nodes, by name.
        nodes: the nodes that it had to have before, a hostlist.
        span: its fewest and most nodes before; most 0 where it had none.
        cpus, min_cpus: before.
        partition: the partitions that it named before, where the pin leaves some out; else empty.
        comment: what stood in its place before.
        promised: the latest start that the job was promised, seconds since the epoch; 0: none.
    """

    since: int = 0
    tries: int = 0
    cores: Sequence[int] = ()
    gres: Mapping[str, int] = field(default_factory=dict)
    nodes: str = ""
    span: tuple[int, int] = (1, 0)
    cpus: int = 0
    min_cpus: int = 1
    partition: str = ""
    comment: str = ""
    promised: int = 0


def write_mark(mark: Mark) -> str:
    """Return a mark as a comment's text."""
    runs = ((cores, len(list(group))) for cores, group in groupby(mark.cores))
    cores = ",".join(f"{cores}*{count}" if count > 1 else str(cores) for cores, count in runs)
    fields = {
        "v": 1,
        "since": mark.since,
        "tries": mark.tries,
        "cores": cores,
        "nodes": mark.nodes,
        "span": f"{mark.span[0]}-{mark.span[1]}",
        "cpus": mark.cpus,
        "min": mark.min_cpus,
        "partition": mark.partition,
        "comment": mark.comment,
        "promised": mark.promised,
        **{f"{_GRES}{name}": count for name, count in mark.gres.items()},
    }
    kept = {name: value for name, value in fields.items() if value not in ("", 0)}
    return _HEAD + urlencode(kept, quote_via=quote, safe=_SAFE)


def read_mark(comment: str) -> Mark | None:
    """Return the mark that a comment is, None where it is none of ours, or was changed by hand."""
    if not comment.startswith(_HEAD):
        return None
    fields = dict(parse_qsl(comment.removeprefix(_HEAD), keep_blank_values=True))
    try:
        return _mark(fields) if fields.get("v") == "1" else None
    except ValueError:
        return None


def _mark(fields: Mapping[str, str]) -> Mark:
    low, _, high = fields.get("span", "1-0").partition("-")
    return Mark(
        cores=_cores(fields.get("cores", "")),
        gres={
            name.removeprefix(_GRES): _number(value)
            for name, value in fields.items()
            if name.startswith(_GRES)
        },
        nodes=fields.get("nodes", ""),
        span=(_number(low), _number(high)),
        partition=fields.get("partition", ""),
        comment=fields.get("comment", ""),
        **{name: _number(fields[word]) for word, name in _NUMBERS.items() if word in fields},
    )


def _number(text: str) -> int:
    if not _COUNT.fullmatch(text):
        raise ValueError(text)
    return int(text)


def _cores(text: str) -> tuple[int, ...]:
    found: list[int] = []
    for part in filter(None, text.split(",")):
        match = _CORES.fullmatch(part)
        if match is None:
            raise ValueError(part)
        found += [int(match[1])] * int(match[2] or 1)
    return tuple(found)


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
        priority: as Slurm has it, 0 where it is held; None: not told.
        is_expedited: Slurm keeps nodes for it, and starts it before all others.
        reason: why it waits in Slurm's words, with what 26.05 adds.
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
    priority: int | None
    is_expedited: bool
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
    def breaks_rules(self) -> bool:
        """Whether Slurm found that its nodes can never hold it, and took its priority away."""
        return self.reason.startswith("BadConstraints")

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
    """Return the jobs by id, each waiting array task by its own; marks are in the ``carrier``.

    Those of a text that is ``known`` are not read anew.

    Raises:
        InputError: the answer is none of squeue's, or a member is of an unknown shape.
    """
    found: dict[str, LiveJob] = {}
    with errors_in(name):
        document = (Known() if known is None else known).document(content, "jobs")
        document.require("jobs")
        for record in document.children("jobs"):
            for one in _tasks(record, record.once("live", partial(_live, record, carrier), carrier)):
                found[one.id] = one
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
        priority=record.number("priority"),
        is_expedited=is_expedited(record),
        reservation=record.text("resv_name"),
        reason=": ".join(filter(None, map(record.text, ("state_reason", "state_description")))),
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
