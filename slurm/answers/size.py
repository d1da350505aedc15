"""How many cores and nodes a Slurm job asks for, read from the members that say so while pending.

``node_count`` is an estimate while a job waits. What was asked for stands in ``max_nodes`` (0:
nothing) and in node= of ``tres_req_str`` (the minimum). What Slurm 22.05 then allocates was tried:
with ``--ntasks-per-node=m`` exactly m tasks on each node, whatever ``-n`` says, and with
``--mincpus`` or ``-N 2-4`` alone the minimum on each node when that is more than ``-n``.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...cluster.jobs import Span
from .answer_record import Record
from .consumables import parse_request

_NODES = re.compile(r"(?:^|,)node=(\d{1,18})")
#: ``--cpus-per-task`` among what a task asks for: ``cpu:4`` (23.11), later ``cpu=4``.
CPUS_OF_TASK = re.compile(r"(?<![^,])cpu[:=]([0-9]{1,9})(?![^,])")
_CPUS_SET = {"JOB_CPUS_SET", "EXACT_CPU_COUNT_REQUESTED"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmSize:
    """A job's size in the terms of ``cluster.jobs.Request``.

    Attributes:
        cores: CPUs asked for, whatever the form.
        cores_per_node: exactly so many on each node; None where Slurm divides ``cores``.
        tasks, cores_per_task: tasks asked for and the CPUs of one.
    """

    cores: int
    nodes: Span | None
    cores_per_node: int | None
    min_cores_per_node: int
    tasks: int
    cores_per_task: int

    @property
    def tasks_per_node(self) -> int | None:
        """How many tasks stand on each node, None when the request leaves it open."""
        if self.cores_per_node is not None:
            return max(1, self.cores_per_node // self.cores_per_task)
        if self.tasks == 1 or (self.nodes and self.nodes.maximum == 1):
            return self.tasks
        one_each = self.nodes is not None and self.nodes.is_exact and self.nodes.minimum == self.tasks
        return 1 if one_each else None

    @property
    def total_cores(self) -> int:
        """CPUs that Slurm gives to the fewest nodes: ``cores`` unless a node's count is fixed."""
        if self.cores_per_node is None or self.nodes is None:
            return self.cores
        return self.cores_per_node * self.nodes.minimum


def read_size(record: Record, required: int, cluster_nodes: int) -> SlurmSize:
    """Return the size of a pending job.

    Args:
        record: the job's JSON, with what scontrol prints of the job where known.
        required: how many nodes the job names itself; Slurm's minimum grows by them.
        cluster_nodes: the largest node count possible.

    Raises:
        InputError: a count is missing, of an unknown shape, or the node range is empty.
    """
    cpus = max(1, record.count("cpus"))
    tasks = max(1, record.number("tasks") or 1)
    step = _cores_per_task(record, cpus, tasks)
    low, high = node_range(record)
    low = min(low, high or low)
    least = max(record.number("minimum_cpus_per_node") or 1, (record.number("tasks_per_node") or 0) * step)
    if record.number("tasks_per_node") or least * low > cpus:
        nodes = Span(minimum=low, maximum=high) if high else Span.exactly(max(low, -(-tasks * step // least)))
        return _size(cpus, nodes, least, 1, tasks, step)
    if high:
        nodes_asked: Span | None = Span(minimum=low, maximum=high)
    elif low > max(1, required):
        nodes_asked = Span(minimum=low, maximum=max(low, min(cpus, cluster_nodes)))
    else:
        nodes_asked = None
    return _size(cpus, nodes_asked, None, least if least > step else 1, tasks, step)


def _size(
    cores: int, nodes: Span | None, cores_per_node: int | None, least: int, tasks: int, step: int
) -> SlurmSize:
    # One task a node needs no rule against splits, and --mincpus need be no multiple of a task.
    whole = cores_per_node is not None and cores_per_node % step
    return SlurmSize(
        cores=cores,
        nodes=nodes,
        cores_per_node=cores_per_node,
        min_cores_per_node=least,
        tasks=tasks,
        cores_per_task=1 if whole else step,
    )


def node_range(record: Record) -> tuple[int, int]:
    """Return the fewest and the most nodes asked for; most is 0 where no count was.

    They come from two members, so the fewest can be the greater when Slurm updated one only.
    """
    high = record.number("max_nodes") or 0
    match = _NODES.search(record.text("tres_req_str"))
    low = int(match[1]) if match else high
    return max(1, low), high


def _cores_per_task(record: Record, cpus: int, tasks: int) -> int:
    """Return the CPUs of a task: as written, or cpus/tasks if the user set them (null in 22.05)."""
    written = record.number("cpus_per_task")
    if match := CPUS_OF_TASK.search(record.text("tres_per_task")):
        return max(written or 1, int(match[1]))
    if written:
        return written
    if _CPUS_SET & record.words("flags") and cpus % tasks == 0:
        return cpus // tasks
    return 1


def with_whole_cores(size: SlurmSize, threads: int) -> SlurmSize:
    """Return the size in whole cores of ``threads`` CPUs each, as Slurm allocates them on a node.

    Where a job's CPUs on a node are not fixed, they are dealt out by cores. A task that neither
    fills cores nor shares one evenly then gets cores of its own, which may be more than it needs.
    """

    def whole(cpus: int) -> int:
        return -(-cpus // threads) * threads

    if threads == 1:
        return size
    step, nodes = size.cores_per_task, size.nodes
    if size.cores_per_node is not None:
        return _size(size.cores, nodes, whole(size.cores_per_node), 1, size.tasks, step)
    least = whole(size.min_cores_per_node) if size.min_cores_per_node > 1 else 1
    if nodes is not None and nodes.maximum == 1:
        return replace(size, cores=whole(size.cores), min_cores_per_node=least, cores_per_task=1)
    unit = threads if threads % step == 0 else whole(step)
    cores = size.cores if threads % step == 0 else -(-size.cores // step) * unit
    cores = max(cores, max(least, unit) * (nodes.minimum if nodes else 1))
    return replace(size, cores=-(-cores // unit) * unit, min_cores_per_node=least, cores_per_task=unit)


def with_cpus_per_gres(
    size: SlurmSize, per_tres: str, gres: Mapping[str, int], path: str
) -> SlurmSize | None:
    """Return the size under ``--cpus-per-gpu`` (``gres:gpu:3``), None if a node's CPUs stay open.

    Slurm counts those CPUs only when it allocates; ``gres`` is what the job asks for on each node.
    """
    counts, others = parse_request(per_tres, path)
    of_kind: Counter[str] = Counter()
    for name, count in gres.items():
        of_kind[name.partition(":")[0]] += count
    least = sum(cpus * of_kind[name.partition(":")[0]] for name, cpus in counts.items())
    nodes = size.nodes or (Span.exactly(1) if size.tasks == 1 else None)
    if others or not least or nodes is None or size.tasks * size.cores_per_task > least * nodes.minimum:
        return None
    return _size(size.cores, nodes, least, 1, size.tasks, size.cores_per_task)
