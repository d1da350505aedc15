"""A log in the Standard Workload Format as jobs on nodes."""

from __future__ import annotations

from ...cluster.workload import ClusterWorkload
from ...formats.notes import Notes
from ...formats.swf import SwfLog
from ..log_columns import describe_dropped, workload_from_swf
from .imported import LoggedJob, imported_workload


def workload_of_log(name: str, log: SwfLog, machine: ClusterWorkload) -> tuple[ClusterWorkload, Notes]:
    """Return a log's jobs on a machine: processors are cores, which spread freely over nodes.

    Rows are read as ``simulate`` reads them, on as many processors as it has cores.

    Raises:
        InputError: no job is left, or a number no job can have.
    """
    read = workload_from_swf(log, processors=sum(node.total.cores for node in machine.nodes))
    notes = Notes()
    if sum(read.dropped.values()):
        notes.add("rows", describe_dropped(read.dropped, read.rows))
    if read.killed:
        notes.add("killed", f"{len(read.killed)} jobs ran beyond their requested time: cut there")
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
