"""Jobs of somebody's log made into a workload on equal nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil

from ...cluster.errors import InputError
from ...cluster.jobs import Job, Request, Span
from ...cluster.workload import SHORTEST_RUN_S, ArrivingJob, ClusterWorkload, basic_priority
from ...formats.notes import Notes
from .clusters import EvenCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedJob:
    """A job as a log has it; None where the log does not say.

    Attributes:
        id: its name.
        submit_s: seconds, from whatever beginning.
        run_s: how long it ran.
        limit_s: its time limit.
        cores, gpus: of all its nodes together.
        nodes: how many.
        user: its name.
    """

    id: str
    submit_s: float
    run_s: float
    limit_s: float | None = None
    cores: int | None = None
    nodes: int | None = None
    gpus: int | None = None
    user: str = ""


def imported_workload(
    name: str, jobs: Iterable[LoggedJob], cluster: EvenCluster, notes: Notes
) -> ClusterWorkload:
    """Return the jobs on a cluster of equal nodes, in the order of their submission.

    A job that says how many nodes it ran on takes that many; cores of others spread freely. A job's GPUs are
    shared evenly by its nodes; of one that does not say, by the fewest that hold them. A job of neither
    cores nor nodes gets one core, or its nodes' share. Jobs that did not run and jobs that the machine
    cannot hold are left out and counted.

    Raises:
        InputError: no job is left.
    """
    listed = tuple(jobs)
    _count([job for job in listed if job.run_s <= 0], "did not run", notes)
    sized = [(job, _request(job, cluster)) for job in listed if job.run_s > 0]
    fitting = [(job, request) for job, request in sized if request is not None]
    _count([job for job, request in sized if request is None], "are larger than the machine", notes)
    if not fitting:
        raise InputError("no job is left")
    fitting.sort(key=lambda pair: pair[0].submit_s)
    first = fitting[0][0].submit_s
    unlimited = [job for job, _ in fitting if job.limit_s is None]
    if unlimited:
        notes.add("limits", f"{len(unlimited)} jobs have no time limit: their run times, to the next second")
    cut = [job for job, _ in fitting if job.limit_s is not None and job.run_s > job.limit_s]
    if cut:
        notes.add("killed", f"{len(cut)} jobs (first {cut[0].id}) ran beyond their time limit: cut there")
    if len({job.id for job, _ in fitting}) < len(fitting):
        notes.add("names", "names of jobs come more than once: jobs are numbered by submission")
        fitting = [
            (replace(job, id=str(rank)), request) for rank, (job, request) in enumerate(fitting, start=1)
        ]
    made = tuple(_arriving(rank, job, request, first) for rank, (job, request) in enumerate(fitting))
    return ClusterWorkload(
        name=name,
        nodes=cluster.build_nodes(),
        switches=cluster.build_switches(),
        jobs=made,
        notes=notes.texts(),
    )


def _count(jobs: Sequence[LoggedJob], what: str, notes: Notes) -> None:
    if jobs:
        notes.add(what, f"{len(jobs)} jobs (first {jobs[0].id}) {what}: left out")


def _request(job: LoggedJob, cluster: EvenCluster) -> Request | None:
    """Return what a job asks for; None when the empty machine cannot hold it."""
    gpus = job.gpus or 0
    if gpus and not cluster.gpus:
        return None
    nodes = job.nodes or (ceil(gpus / cluster.gpus) if gpus else None)
    cores = job.cores or nodes or 1
    if cores > (nodes or cluster.nodes) * cluster.cores or (nodes or 1) > cluster.nodes:
        return None
    if nodes is None:
        return Request(cores=cores)
    each = ceil(gpus / nodes)
    if each > cluster.gpus:
        return None
    # Slurm gives each node of a job at least one core.
    return Request(
        nodes=Span.exactly(nodes),
        cores=max(cores, nodes),
        gres_per_node={"gpu": Span.exactly(each)} if each else {},
    )


def _arriving(rank: int, job: LoggedJob, request: Request, first: float) -> ArrivingJob:
    run = max(job.run_s, SHORTEST_RUN_S)
    limit = max(1, ceil(run if job.limit_s is None else job.limit_s))
    return ArrivingJob(
        job=Job(
            id=job.id,
            priority=basic_priority(rank),
            request=request,
            time_limit_s=limit,
            user=job.user,
        ),
        arrival_s=job.submit_s - first,
        run_time_s=min(run, limit),
    )
