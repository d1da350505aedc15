"""Jobs of a log, each a row of SWF or of a table, as a workload on nodes that they are given."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain
from math import ceil
from pathlib import Path
from typing import Any

from ...cluster.checks import check_partitions
from ...cluster.errors import InputError
from ...cluster.jobs import Job, Request, Span
from ...cluster.keywords import refuses_unknown, whole
from ...cluster.limits import Owned, members_of
from ...cluster.nodes import Node
from ...cluster.snapshot import MAX_NODES
from ...cluster.text import plural
from ...cluster.workload import SHORTEST_RUN_S, ArrivingJob, ClusterWorkload, basic_priority
from ...formats.notes import Notes
from ...formats.swf import SwfLog, load_swf
from ..log_columns import describe_dropped
from ..log_columns import workload_from_swf as columns_of_log
from .named_clusters import LEAF_NODES, EvenCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedJob(Owned):
    """A job as a log has it; None where the log does not say.

    Attributes:
        id: its name.
        submit_s: seconds, from whatever beginning.
        start_s: when it started there, on the same clock.
        run_s: how long it ran.
        limit_s: its time limit.
        cores, gres: of all its nodes together; gres by name.
        nodes: how many.
        memory_mib_per_node, memory_mib_per_core: as in a request; at most one of them.
        priority: higher comes first.
    """

    id: str
    submit_s: float
    run_s: float
    start_s: float | None = None
    limit_s: float | None = None
    cores: int | None = None
    nodes: int | None = None
    gres: Mapping[str, int] = field(default_factory=dict)
    memory_mib_per_node: int | None = None
    memory_mib_per_core: int | None = None
    priority: int | None = None


#: A job, and what it asks for.
_Asked = tuple[LoggedJob, Request]


def imported_workload(
    name: str, jobs: Iterable[LoggedJob], machine: ClusterWorkload, notes: Notes
) -> ClusterWorkload:
    """Return the jobs on a machine's nodes, in the order of their submission.

    A job that says how many nodes it ran on takes that many; cores of others spread freely. A job's
    gres are shared evenly by its nodes; of one that does not say, by the fewest that hold them. A
    job of neither cores nor nodes gets one core, or its nodes' share. Jobs that did not run and
    jobs that the machine cannot hold are left out and counted. Priorities follow the log where all
    jobs have one, else submission.

    Raises:
        InputError: no job is left, or all are of other partitions.
    """
    listed = tuple(jobs)
    sizes = _Sizes(machine.nodes, notes)
    _count([job for job in listed if job.run_s <= 0], "did not run", notes)
    sized = [(job, sizes.request(job)) for job in listed if job.run_s > 0]
    fitting = [(job, request) for job, request in sized if isinstance(request, Request)]
    for why in dict.fromkeys(request for _, request in sized if isinstance(request, str)):
        _count([job for job, request in sized if request == why], why, notes)
    notes.unfit = len(sized) - len(fitting)
    if not fitting:
        raise InputError("no job is left")
    there = chain.from_iterable(one.partitions for one in machine.nodes)
    check_partitions((job.partition for job, _ in fitting), there)
    fitting.sort(key=lambda pair: (pair[0].submit_s, -(pair[0].priority or 0)))
    first = fitting[0][0].submit_s
    fitting = _named(fitting, notes)
    # Nodes that do not say their partitions are in all that jobs name.
    parts, nodes = tuple(sorted({job.partition for job, _ in fitting} - {""})), machine.nodes
    if parts and not any(node.partitions for node in nodes):
        nodes = tuple(replace(node, partitions=parts) for node in nodes)
    return replace(
        machine,
        name=name,
        nodes=nodes,
        jobs=tuple(_arriving(job, request, first) for job, request in fitting),
        notes=(*machine.notes, *notes.texts()),
    )


def _named(fitting: list[_Asked], notes: Notes) -> list[_Asked]:
    """Return the jobs with names and priorities of their own; notes on limits and starts."""
    unlimited = [job for job, _ in fitting if job.limit_s is None]
    _count(unlimited, "without a time limit", notes, "the run time, to the next second")
    cut = [job for job, _ in fitting if job.limit_s is not None and job.run_s > job.limit_s]
    _count(cut, "ran beyond the time limit", notes, "cut there")
    if len({job.id for job, _ in fitting}) < len(fitting):
        notes.add("names", "names of jobs come more than once: jobs are numbered by submission")
        fitting = [(replace(one, id=str(rank)), asked) for rank, (one, asked) in enumerate(fitting, start=1)]
    early = [job for job, _ in fitting if job.start_s is not None and job.start_s < job.submit_s]
    _count(early, "started before submission", notes, "starts left out")
    if not all(job.priority for job, _ in fitting):
        ranked = enumerate(fitting)
        fitting = [(replace(one, priority=basic_priority(rank)), asked) for rank, (one, asked) in ranked]
    return fitting


def _count(jobs: Sequence[LoggedJob], what: str, notes: Notes, then: str = "left out") -> None:
    if jobs:
        notes.add(what, f"{plural(len(jobs), 'job')} (first {jobs[0].id}) {what}: {then}")


class _Sizes:
    """What the empty machine holds: cores of its largest nodes, the most of each gres on one."""

    def __init__(self, nodes: Sequence[Node], notes: Notes) -> None:
        self._notes = notes
        self._cores = list(accumulate(sorted((node.total.cores for node in nodes), reverse=True)))
        self._most: dict[str, int] = {}
        for node in nodes:
            for name, count in node.total.gres.items():
                for known in {name, name.partition(":")[0]}:
                    self._most[known] = max(count, self._most.get(known, 0))
        self._named = {name for node in nodes for name in node.total.gres}

    def request(self, job: LoggedJob) -> Request | str:
        """Return what a job asks for; what is said of it when the empty machine cannot hold it."""
        gres = self._gres(job)
        for name in gres:
            if not self._most.get(name):
                return f"asked for {name}, which no node has"
        nodes = job.nodes or max(
            (ceil(count / self._most[name]) for name, count in gres.items()), default=None
        )
        cores = job.cores or nodes or 1
        each = {name: ceil(count / (nodes or 1)) for name, count in gres.items()}
        lacks = any(count > self._most[name] for name, count in each.items())
        if lacks or (nodes or 1) > len(self._cores) or cores > self._cores[(nodes or 0) - 1]:
            return "larger than the machine"
        names = ("memory_mib_per_node", "memory_mib_per_core")
        memory: dict[str, Any] = {name: getattr(job, name) for name in names}
        if nodes is None:
            return Request(cores=cores, **memory)
        # Slurm gives each node of a job at least one core.
        return Request(
            nodes=Span.exactly(nodes),
            cores=max(cores, nodes),
            gres_per_node={name: Span.exactly(count) for name, count in each.items()},
            **memory,
        )

    def _gres(self, job: LoggedJob) -> dict[str, int]:
        """Return a job's gres by the machine's names; of a kind with an unknown type, any type."""
        found: dict[str, int] = {}
        unknown = {name.partition(":")[0] for name in job.gres if name not in self._named}
        for name, count in job.gres.items():
            kind = name.partition(":")[0]
            if kind not in self._most and kind != "gpu":
                self._notes.add("gres", f"no node has {name}: no job asks for it")
            elif count:
                known = kind if kind in unknown else name
                found[known] = found.get(known, 0) + count
        return found


def _arriving(job: LoggedJob, request: Request, first: float) -> ArrivingJob:
    run = max(job.run_s, SHORTEST_RUN_S)
    limit = max(1, ceil(run if job.limit_s is None else job.limit_s))
    start = None if job.start_s is None or job.start_s < job.submit_s else job.start_s - first
    return ArrivingJob(
        job=Job(
            id=job.id,
            priority=job.priority or 1,
            request=request,
            time_limit_s=limit,
            **members_of(job),
        ),
        arrival_s=job.submit_s - first,
        run_time_s=min(run, limit),
        started_s=start,
    )


def workload_of_log(name: str, log: SwfLog, machine: ClusterWorkload) -> tuple[ClusterWorkload, Notes]:
    """Return a log's jobs on a machine: processors are cores, which spread freely over nodes.

    Rows are read as ``simulate`` reads them, on as many processors as it has cores.

    Raises:
        InputError: no job is left, or a number no job can have.
    """
    read = columns_of_log(log, processors=sum(node.total.cores for node in machine.nodes))
    notes = Notes()
    if sum(read.dropped.values()):
        notes.add("rows", describe_dropped(read.dropped, read.rows))
    if read.killed:
        killed = plural(len(read.killed), "job")
        notes.add("killed", f"{killed} ran beyond the requested time: cut there")
    notes.add("cores", "a job's processors are cores of any nodes; logs say nothing of nodes, GPUs or memory")
    asked = read.requests
    columns = zip(read.ids, asked.submit, read.run, asked.estimate, asked.size, asked.user, strict=True)
    jobs = [
        LoggedJob(
            id=str(number),
            submit_s=submit,
            run_s=run,
            limit_s=estimate,
            cores=size,
            user="" if user < 0 else str(user),
        )
        for number, submit, run, estimate, size, user in columns
    ]
    return imported_workload(name, jobs, machine, notes), notes


@refuses_unknown
def workload_from_swf(
    log: SwfLog | str | Path, *, nodes: int, cores: int, gpus: int = 0, leaf_nodes: int | None = None
) -> ClusterWorkload:
    r"""Put a log's jobs on equal nodes, so that auctions run on it.

    Args:
        log: what ``load_swf`` returns, or a file.
        nodes: number of nodes.
        cores: number on each node.
        gpus: number on each node.
        leaf_nodes: nodes below a leaf switch; None: no switches.

    Returns:
        The workload: processors are cores that spread over nodes; ``notes`` says what was dropped.

    Raises:
        InputError: the file cannot be read, or no job is left.
        OptionError: a number is out of its range.

    Examples:
        >>> import aucsched
        >>> log = aucsched.parse_swf(b"; MaxProcs: 4\n1 0 -1 10 3 -1 -1 3 10\n")
        >>> workload_from_swf(log, nodes=2, cores=2).jobs[0].job.request.cores
        3
    """
    read = log if isinstance(log, SwfLog) else load_swf(log)
    name = "log" if isinstance(log, SwfLog) else Path(log).name
    cluster = EvenCluster(
        nodes=whole("nodes", nodes, 1, MAX_NODES),
        cores=whole("cores", cores, 1, 10**6),
        gpus=whole("gpus", gpus, 0, 1000),
        tree=leaf_nodes is not None,
        leaf_nodes=LEAF_NODES if leaf_nodes is None else whole("leaf_nodes", leaf_nodes, 1, MAX_NODES),
    )
    return workload_of_log(name, read, cluster.empty())[0]
