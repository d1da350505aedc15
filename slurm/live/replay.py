"""The jobs of a shadow's log as a workload, which simulations play under any policy.

What a shadow cannot say, a simulation of the same jobs can: what a machine run by the auction would
have reached, beside what the same simulation says of Slurm's backfilling and what Slurm really did.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

import msgspec

from ...cluster.errors import InputError
from ...cluster.jobs import Job, Request
from ...cluster.nodes import NodeState
from ...cluster.snapshot import Snapshot
from ...cluster.workload import SHORTEST_RUN_S, ArrivingJob, ClusterWorkload
from ...formats.hostlist import expand
from ...formats.native.cluster_file import parse_workload, workload_to_json
from ...formats.native.forms import file_form
from ...formats.notes import Notes
from ..answers.running_jobs import SlurmStart
from .shadow_log import ShadowPass
from .shadow_report import ShadowJob, jobs_of


def cluster_document(snapshot: Snapshot) -> dict[str, Any]:
    """Return the cluster without its jobs as a workload's document, everything free."""
    made = ClusterWorkload(
        name="shadow",
        nodes=[
            replace(node, free=node.total, state=NodeState.IDLE if node.state.is_working else node.state)
            for node in snapshot.nodes
        ],
        switches=snapshot.switches,
        network=snapshot.network,
        partitions=snapshot.partitions,
        licenses={name: replace(entry, free=entry.total) for name, entry in snapshot.licenses.items()},
        limits=snapshot.limits,
    )
    document: dict[str, Any] = msgspec.json.decode(workload_to_json(made))
    return document


def request_document(job: Job) -> dict[str, Any]:
    """Return a job as it waits, as a workload's document; what Slurm planned is left out."""
    # A whole number: a fraction has no exact place in a line that others than we may write.
    plain = replace(
        job,
        priority=ceil(job.priority),
        submit_time=None,
        expected_start_time=None,
        promised_start=None,
        hold=None,
    )
    document: dict[str, Any] = msgspec.to_builtins(file_form(Job).document(plain))
    return document


def workload_of(entries: Sequence[ShadowPass]) -> tuple[ClusterWorkload, Notes]:
    """Return the jobs that Slurm started while the shadow looked, at the cluster of its first pass.

    A job comes when it was submitted, or when the first pass saw that nothing held it any more; it
    runs for as long as it did, one that still ran for its time limit, without one to the end of the
    log. What ran already at the first pass holds its nodes until it ended.

    Raises:
        InputError: no pass tells the cluster.
    """
    cluster = next((entry.cluster for entry in entries if entry.cluster), None)
    if cluster is None:
        raise InputError("no pass of the log tells the cluster: it begins with a process's first pass")
    notes = Notes()
    begin, jobs = entries[0].time, jobs_of(entries)
    first = {start.job: start.start for start in entries[0].started}
    first |= {one.job: one.start for one in jobs if one.start is not None}
    again = sum(start.start > first.get(start.job, start.start) for one in entries for start in one.started)
    if again:
        notes.add("jobs", f"later runs of requeued jobs, left out: {again}")
    rows = list(_arriving(jobs, begin, entries[-1].time, notes))
    rows += _cluster_now(entries, begin, {row.job.id for row in rows})
    rows.sort(key=lambda row: (row.arrival_s, -row.job.priority))
    empty = parse_workload(msgspec.json.encode(cluster))
    return replace(empty, jobs=tuple(rows), notes=notes.texts()), notes


def _arriving(jobs: Iterable[ShadowJob], begin: float, last: float, notes: Notes) -> Iterator[ArrivingJob]:
    unknown = "jobs that did not start while the log was written, left out"
    unseen = "jobs that started before a pass saw them wait, taken to ask for the cores and nodes they got"
    endless = "jobs that still ran, taken to run for their time limit, without one to the end of the log"
    counts = dict.fromkeys((unknown, unseen, endless), 0)
    for one in jobs:
        if one.start is None or one.request == {}:
            counts[unknown] += 1
            continue
        job = _asked(one)
        run = (last if one.ended_by is None else one.ended_by) - one.start
        if one.ended_by is None and job.time_limit_s is not None:
            run = job.time_limit_s
        counts[endless] += one.ended_by is None
        counts[unseen] += one.request is None
        came = min(one.start if one.free_at is None else one.free_at, one.start)
        yield ArrivingJob(
            job=job,
            arrival_s=max(came - begin, 0.0),
            run_time_s=max(run, SHORTEST_RUN_S),
            started_s=max(one.start - begin, 0.0),
        )
    for text, count in counts.items():
        if count:
            notes.add("jobs", f"{text}: {count}")


def _asked(one: ShadowJob) -> Job:
    """Return a job that started as it waited; one that nobody saw wait asks for what it got."""
    start, form = one.begun, file_form(Job)
    if start is None or one.request is not None:
        asked: Job = form.build(msgspec.convert(one.request, form.struct))
        return asked
    job = _job(start, (), priority=max(start.priority, 1), limit_s=start.limit_s)
    return replace(job, partition=start.partition)


def _job(start: SlurmStart, required: tuple[str, ...], *, priority: Any, limit_s: int | None) -> Job:
    """Return a started job as one that asks for the cores and nodes that it got."""
    nodes = len(expand(start.nodes))
    return Job(
        id=start.job,
        priority=priority,
        request=Request(cores=max(start.cores, nodes), nodes=nodes, required_nodes=required),
        user=start.user,
        account=start.account,
        time_limit_s=limit_s,
    )


def _cluster_now(
    entries: Sequence[ShadowPass], begin: float, later: Collection[str]
) -> Iterator[ArrivingJob]:
    """Yield what ran at the first pass: it comes first and takes the nodes that it had.

    ``later``: names of jobs that come; a requeued one has another name for its run before.
    """
    ends = {(end.job, end.start): end.end for entry in entries for end in entry.ended}
    top = 1 + max((job.request.get("priority", 0) for entry in entries for job in entry.seen), default=0)
    for start in entries[0].started:
        end = ends.get((start.job, start.start))
        if start.start < begin and (end is None or end > begin):
            limit = entries[-1].time if start.limit_s is None else start.start + start.limit_s
            left = max((limit if end is None else end) - begin, SHORTEST_RUN_S)
            job = _job(start, expand(start.nodes), priority=top, limit_s=ceil(left))
            job = replace(job, id=f"{job.id}.before") if job.id in later else job
            yield ArrivingJob(job=job, arrival_s=0.0, run_time_s=left)
