"""Alibaba's GPU cluster traces of 2023 (nodes and pods as CSV), made into a workload.

Published with the paper on fragmentation gradient descent (FGD): a node list (``sn, cpu_milli,
memory_mib, gpu, model``) and pod lists (``name, cpu_milli, memory_mib, num_gpu, gpu_milli,
gpu_spec, qos, pod_phase, creation_time, deletion_time, scheduled_time``), times in seconds.

Cores count in 1/1000, GPUs as the gres ``gpu_milli``, 1000 a GPU. A pod is one job on one node. A
GPU share is of one GPU, which a node's total cannot say. So there are two ways to count:

- ``shares``: ``gpu_milli`` of a node is that of all its GPUs. A node with 500 free on each of two
  GPUs takes a pod of 600, which a real one could not.
- ``separate``: each GPU is its own type, ``gpu_milli:0`` and so on. A ``gpu_milli`` request takes
  one type, so no share is split. A pod of several GPUs has to name them: it takes the first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from operator import ge
from pathlib import Path

from ..cluster.errors import InputError
from ..cluster.jobs import Job, Request, Span
from ..cluster.nodes import Node, Resources
from ..cluster.text import one_line
from ..cluster.workload import ArrivingJob, ClusterWorkload, basic_priority
from .alibaba_options import AlibabaOptions
from .delimited import Row, read_table
from .notes import Notes
from .reading import read_document

GRES = "gpu_milli"
#: GPUs of a node or a pod; the trace's largest nodes have 8.
_MOST_GPUS = 128
#: Of a whole GPU.
WHOLE = 1000
_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD_COLUMNS = (
    *("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase"),
    *("creation_time", "deletion_time", "scheduled_time"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pod:
    """A pod as the trace has it; times in seconds, None where the field is empty."""

    name: str
    cores: int
    memory_mib: int
    gpus: int
    share: int
    models: tuple[str, ...]
    qos: str
    phase: str
    created: int
    scheduled: int | None
    deleted: int | None


def import_alibaba(
    nodes: str | Path, pods: str | Path, options: AlibabaOptions | None = None
) -> tuple[ClusterWorkload, Notes]:
    """Return the workload of a node list and a pod list, plain or gzip.

    Raises:
        InputError: a file cannot be read or is malformed; names file, line, column and value.
    """
    options = options or AlibabaOptions()
    notes = Notes()
    machines = read_document(
        nodes,
        lambda content: tuple(
            row.made(lambda one: _node(one, options)) for row in _rows(content, _NODE_COLUMNS, notes)
        ),
    )
    jobs = read_document(pods, lambda content: _jobs(_rows(content, _POD_COLUMNS, notes), options, notes))
    _note_gpus(options, jobs, notes)
    _note_too_large(machines, jobs, notes)
    notes.add("cores", "cores count in 1/1000 of a core, and a pod's are all on one node")
    notes.add("priorities", f"priorities go by order of creation: the first job's is {basic_priority(0)}")
    try:
        name = one_line(Path(pods).name)
        workload = ClusterWorkload(name=name, nodes=machines, jobs=jobs, notes=notes.texts())
    except InputError as error:
        raise error.in_file(str(nodes if error.path.startswith("nodes") else pods)) from error
    return workload, notes


def _rows(content: bytes, columns: Sequence[str], notes: Notes) -> tuple[Row, ...]:
    """Return a CSV file's rows; columns may stand in any order, those not known are noted."""
    table = read_table(content)
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise InputError(f"the columns {', '.join(missing)} are missing", path="line 1")
    for name in table.columns:
        if name not in columns:
            notes.add("columns", f"the column {name} is not read")
    return table.rows


def _node(row: Row, options: AlibabaOptions) -> Node:
    model, gpus = row.text("model"), _gpus(row, "gpu")
    shares = {GRES: gpus * WHOLE} if gpus else {}
    if options.gpus == "separate":
        shares = {f"{GRES}:{number}": WHOLE for number in range(gpus)}
    total = Resources(
        cores=row.number("cpu_milli"),
        memory_mib=row.number("memory_mib"),
        gres=shares,
    )
    return Node(
        name=row.text("sn"),
        total=total,
        free=total,
        features=frozenset([model] if model else []),
        # A pod's alternatives are a list of partitions: features cannot say "one of these".
        partitions=(model,) if model else (),
    )


def _gpus(row: Row, column: str) -> int:
    count = row.number(column)
    if count > _MOST_GPUS:
        raise InputError(f"{count} is above the limit of {_MOST_GPUS}", path=column)
    return count


def _jobs(rows: Iterable[Row], options: AlibabaOptions, notes: Notes) -> tuple[ArrivingJob, ...]:
    pods = sorted((row.made(_pod) for row in rows), key=lambda pod: pod.created)
    first = pods[0].created if pods else 0
    last = max((pod.deleted or 0 for pod in pods), default=0)
    _note_times(pods, last, options, notes)
    ran = ((pod, _run_time(pod, options)) for pod in pods)
    kept = [(pod, run) for pod, run in ran if run is not None]
    return tuple(
        ArrivingJob(
            job=Job(
                id=pod.name,
                priority=basic_priority(rank),
                request=_request(pod, options),
                partition=",".join(pod.models),
                qos=pod.qos,
                time_limit_s=run if options.time_limits == "run-time" else None,
            ),
            arrival_s=pod.created - first,
            run_time_s=run,
        )
        for rank, (pod, run) in enumerate(kept)
    )


def _pod(row: Row) -> _Pod:
    gpus, share = _gpus(row, "num_gpu"), row.number("gpu_milli")
    if share > WHOLE or bool(gpus) != bool(share):
        raise InputError(f"{share} a GPU with num_gpu {gpus}", path="gpu_milli")
    return _Pod(
        name=row.text("name"),
        cores=row.number("cpu_milli"),
        memory_mib=row.number("memory_mib"),
        gpus=gpus,
        share=share,
        models=tuple(filter(None, row.text("gpu_spec").split("|"))),
        qos=row.text("qos"),
        phase=row.text("pod_phase"),
        created=row.number("creation_time"),
        scheduled=row.number("scheduled_time") if row.text("scheduled_time") else None,
        deleted=row.number("deletion_time") if row.text("deletion_time") else None,
    )


def _request(pod: _Pod, options: AlibabaOptions) -> Request:
    gres: dict[str, Span] = {}
    if options.gpus == "separate" and pod.gpus > 1:
        gres = {f"{GRES}:{number}": Span.exactly(pod.share) for number in range(pod.gpus)}
    elif pod.gpus:
        gres = {GRES: Span.exactly(pod.gpus * pod.share)}
    return Request(
        nodes=Span.exactly(1),
        cores=max(pod.cores, 1),
        gres_per_node=gres,
        memory_mib_per_node=pod.memory_mib,
    )


def _run_time(pod: _Pod, options: AlibabaOptions) -> int | None:
    """Return how long a pod runs in seconds, at least one; None when it is left out."""
    begun = pod.scheduled
    if begun is None and options.unscheduled == "lifetime":
        begun = pod.created
    if begun is None or pod.deleted is None or pod.deleted < begun:
        return None
    return max(pod.deleted - begun, 1)


def _note_times(pods: Sequence[_Pod], last: int, options: AlibabaOptions, notes: Notes) -> None:
    """Count the pods whose times say less than how long they ran."""
    never = [pod for pod in pods if pod.scheduled is None]
    if options.unscheduled == "lifetime":
        _note(notes, never, "were never scheduled: taken to run as long as from creation to deletion")
    else:
        _note(notes, never, "were never scheduled: left out, how long they would run is not known")
    begun = [pod for pod in pods if pod.scheduled is not None]
    _note(notes, [pod for pod in begun if pod.deleted is None], "have no deletion_time: left out")
    ended = [(pod, pod.scheduled or 0, pod.deleted) for pod in begun if pod.deleted is not None]
    _note(notes, [pod for pod, start, end in ended if end < start], "end before they start: left out")
    _note(notes, [pod for pod, start, end in ended if end == start], "ran less than a second: one second")
    cut = [pod for pod, _, end in ended if end == last and pod.phase == "Running"]
    _note(notes, cut, f"still ran when the trace ended, at {last}: their run times are cut there")
    _note(notes, [pod for pod in pods if not pod.cores], "ask for no core: 1/1000 is given")
    if options.time_limits == "none":
        notes.add("limits", "the trace has no time limits: reservations cannot count on any job's end")
    else:
        notes.add("limits", "time limits are the true run times, which no scheduler of the trace knew")


def _note(notes: Notes, pods: Sequence[_Pod], what: str) -> None:
    if pods:
        notes.add(what, f"{len(pods)} pods (first {pods[0].name}) {what}")


def _note_gpus(options: AlibabaOptions, jobs: Sequence[ArrivingJob], notes: Notes) -> None:
    shares = sum(0 < span.maximum < WHOLE for one in jobs for span in one.job.request.gres_per_node.values())
    several = sum(
        len(gres) > 1 or any(span.maximum > WHOLE for span in gres.values())
        for gres in (one.job.request.gres_per_node for one in jobs)
    )
    if options.gpus == "shares":
        notes.add(
            "gpus",
            f"{GRES} counts all GPUs of a node together: a share of one GPU may be granted where only parts "
            f"of several are free ({shares} of {len(jobs)} jobs ask for shares)",
        )
    else:
        notes.add(
            "gpus",
            f"each GPU is a type of {GRES}: a share is always of one GPU ({shares} of {len(jobs)} jobs); "
            f"jobs of several GPUs ({several}) take a node's first ones",
        )


def _note_too_large(nodes: Sequence[Node], jobs: Sequence[ArrivingJob], notes: Notes) -> None:
    """Count the jobs that no node holds even when it is empty; they stay, and never start."""
    # The different sizes of nodes (cores, MiB, GPU shares) by model; under "" those of all.
    sizes: dict[str, set[tuple[int, int, int]]] = {"": set()}
    for node in nodes:
        size = node.total.cores, node.total.memory_mib or 0, sum(node.total.gres.values())
        for model in ("", *node.partitions):
            sizes.setdefault(model, set()).add(size)

    @cache
    def holds(partition: str, *needed: int) -> bool:
        models = partition.split(",") if partition else [""]
        return any(all(map(ge, size, needed)) for model in models for size in sizes.get(model, ()))

    def needed(request: Request) -> tuple[int, int, int]:
        gres = sum(span.minimum for span in request.gres_per_node.values())
        return request.cores or 0, request.memory_mib_per_node or 0, gres

    too_large = [one.job.id for one in jobs if not holds(one.job.partition, *needed(one.job.request))]
    if too_large:
        notes.add("too large", f"{len(too_large)} pods (first {too_large[0]}) fit no node: they stay pending")
