"""Slurm's running jobs: what each holds on each node, fitted to what the nodes have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...cluster.jobs import RunningJob
from ...cluster.nodes import Resources
from ...cluster.snapshot import free_resources
from ...formats.notes import Notes
from .allocation import read_allocation
from .detail import JobDetail
from .gres import settle
from .jobs import job_id
from .nodes import NodeFigures
from .record import INFINITE, Record
from .states import Phase, phase_of


def read_running(
    records: Sequence[Record],
    details: Mapping[int, JobDetail],
    nodes: Mapping[str, NodeFigures],
    notes: Notes,
    against: object = None,
) -> tuple[RunningJob, ...]:
    """Return the jobs that hold resources; together they never hold more than a node has.

    Slurm's own answers disagree with each other at times: unknown nodes are dropped and an excess is
    cut, each with a note. So is a job whose use is told nowhere: the nodes' own figures still count it.
    What a job of a known text holds is not read anew where it is read ``against`` what it was.

    Raises:
        InputError: a member is missing or of an unknown shape.
    """
    left = {name: node.total for name, node in nodes.items()}
    running: list[RunningJob] = []
    for record in records:
        phase = phase_of(record)
        if phase in (Phase.HOLDING, Phase.SUSPENDED):
            use = _use(record, details, nodes, against)
            if phase is Phase.SUSPENDED:
                use = {name: replace(amount, cores=0) for name, amount in use.items()}
                notes.add(
                    "suspended", f"job {job_id(record)} is suspended: it holds memory and gres, no cores"
                )
            fitted = dict(_fitted(job_id(record), use, left, notes))
            if fitted:
                running.append(_running(record, fitted))
            else:
                notes.add("running jobs", f"job {job_id(record)}: what it holds is not known: dropped")
    return tuple(running)


def _running(record: Record, nodes: Mapping[str, Resources]) -> RunningJob:
    return RunningJob(
        id=job_id(record),
        nodes=nodes,
        end_time=_end_time(record),
        user=record.text("user_name"),
        group=record.text("group_name"),
        account=record.text("account"),
        qos=record.text("qos"),
        partition=record.text("partition"),
    )


def _end_time(record: Record) -> float | None:
    """Return the estimated end; a job without a time limit has none (22.05 writes a year after its start)."""
    if record.number_or_infinite("time_limit") in (None, INFINITE):
        return None
    return record.moment("end_time")


def _use(
    record: Record, details: Mapping[int, JobDetail], nodes: Mapping[str, NodeFigures], against: object
) -> Mapping[str, Resources]:
    """Return what the job holds by node, from its JSON, else from scontrol's detail."""
    if use := record.once("use", lambda: read_allocation(record, nodes), against):
        return use
    detail = details.get(record.count("job_id"))
    return dict(detail.use) if detail else {}


def _fitted(
    job: str, use: Mapping[str, Resources], left: dict[str, Resources], notes: Notes
) -> Iterator[tuple[str, Resources]]:
    """Yield the use on each known node, cut to what other jobs leave, and take it off ``left``."""
    for name, amount in use.items():
        if name not in left:
            notes.add("running jobs", f"job {job} runs on node {name}, which is not of the cluster: dropped")
            continue
        fitted = _cut(amount, left[name])
        if lost := _lost(amount, fitted):
            notes.add("running jobs", f"job {job} on node {name}: {lost} above what the node has are dropped")
        left[name] = free_resources(left[name], fitted)
        yield name, fitted


def _cut(amount: Resources, left: Resources) -> Resources:
    gres, _ = settle(amount.gres, left.gres)
    memory = amount.memory_mib
    if memory is not None and left.memory_mib is not None:
        memory = min(memory, left.memory_mib)
    return Resources(cores=min(amount.cores, left.cores), memory_mib=memory, gres=gres)


def _lost(amount: Resources, fitted: Resources) -> str:
    cores = amount.cores - fitted.cores
    memory = (amount.memory_mib or 0) - (fitted.memory_mib or 0)
    gres = sum(amount.gres.values()) - sum(fitted.gres.values())
    parts = (f"{cores} cores" * bool(cores), f"{memory} MiB" * bool(memory), f"{gres} gres" * bool(gres))
    return ", ".join(filter(None, parts))
