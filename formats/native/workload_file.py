"""Native workloads (``aucsched-workload/1``): read, checked, and written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...cluster.errors import InputError
from ...cluster.nodes import License
from ...cluster.workload import ArrivingJob, ClusterWorkload
from ..file_kinds import WORKLOAD, instead
from ..hostlist import one_file
from ..jsontext import decode
from ..reading import read_document
from . import wire, workload_wire
from .from_wire import (
    build_job,
    build_license,
    build_limit,
    build_nodes,
    build_partition,
    each,
)
from .to_wire import (
    document_text,
    job_members,
    written_license,
    written_limit,
    written_nodes,
    written_partition,
)
from .topology_wire import build_topology, written_topology
from .write import write_text


def load_workload(path: str | Path) -> ClusterWorkload:
    """Read and check a workload file, plain or gzip; ``-`` reads standard input.

    Raises:
        InputError: the file cannot be read or is no valid workload; names file, path and value.

    Examples:
        >>> import aucsched
        >>> made = aucsched.ClusterWorkload(name="tiny", nodes=[aucsched.Node(name="n", cores=8)])
        >>> aucsched.save_workload(made, "tiny.json")
        >>> load_workload("tiny.json") == made
        True
    """
    return read_document(path, parse_workload)


@one_file()
def parse_workload(text: bytes) -> ClusterWorkload:
    """Return the workload in a workload file's text; errors name the path and the value.

    Raises:
        InputError: it is no valid workload.

    Examples:
        >>> nodes = '"nodes": [{"name": "n", "cores": 8}], "jobs": []'
        >>> text = f'{{"format": "aucsched-workload/1", "name": "w", {nodes}}}'
        >>> parse_workload(text.encode()).name
        'w'
    """
    try:
        document = decode(text, workload_wire.WorkloadWire)
        if document.format != workload_wire.FORMAT:
            raise InputError(f"{document.format!r} is not {workload_wire.FORMAT!r}", path="format")  # noqa: TRY301
    except InputError as error:
        raise instead(text, WORKLOAD, error) from error
    nodes = build_nodes(_all_free(document.nodes), {})
    laid = build_topology(document.topology, [node.name for node in nodes])
    return ClusterWorkload(
        name=document.name,
        nodes=nodes,
        jobs=each(document.jobs, "jobs", _job),
        switches=laid.switches,
        network=laid.network,
        partitions=each(document.partitions, "partitions", build_partition),
        licenses=_licenses(document.licenses),
        limits=each(document.limits, "limits", build_limit),
        notes=tuple(document.notes),
    )


def _all_free(entries: list[wire.NodeWire]) -> list[wire.NodeWire]:
    """Refuse a free figure: at a workload's beginning everything is free."""
    for index, entry in enumerate(entries):
        for member in ("free_cores", "free_memory_mib", "free_gres"):
            if getattr(entry, member) is not None:
                raise InputError(_EMPTY, path=f"nodes[{index}].{member}")
    return entries


_EMPTY = "given, but a workload begins with everything free"


def _licenses(entries: Mapping[str, wire.LicenseWire]) -> dict[str, License]:
    for name, entry in entries.items():
        if entry.free is not None:
            raise InputError(_EMPTY, path=f"licenses.{name}.free")
    return {name: build_license(entry, f"licenses.{name}") for name, entry in entries.items()}


def _job(entry: workload_wire.JobWire) -> ArrivingJob:
    return ArrivingJob(
        job=build_job(entry),
        arrival_s=entry.arrival_s,
        run_time_s=entry.run_time_s,
        gres_run_time_factor=entry.gres_run_time_factor,
        not_before_s=entry.not_before_s,
        deadline_s=entry.deadline_s,
        budget_core_h=entry.budget_core_h,
        credits_per_core_h=entry.credits_per_core_h,
        started_s=entry.started_s,
        name=entry.name,
    )


def save_workload(workload: ClusterWorkload, path: str | Path) -> None:
    """Write a workload in the native form (``aucsched-workload/1``); ``-`` is standard output.

    Raises:
        InputError: the file cannot be written; nothing is left behind.

    Examples:
        >>> import aucsched
        >>> made = aucsched.ClusterWorkload(name="tiny", nodes=[aucsched.Node(name="n", cores=8)])
        >>> save_workload(made, "tiny.json")
    """
    write_text(path, workload_to_json(workload))


def workload_to_json(workload: ClusterWorkload) -> str:
    """Return the workload file's text, one line for each job; reading it gives an equal workload."""
    document = workload_wire.WorkloadWire(
        format=workload_wire.FORMAT,
        name=workload.name,
        nodes=written_nodes(workload.nodes, {}),
        jobs=[_written(job) for job in workload.jobs],
        topology=written_topology(workload.switches, workload.network),
        licenses={name: _without_free(entry) for name, entry in workload.licenses.items()},
        limits=[written_limit(entry) for entry in workload.limits],
        partitions=[written_partition(entry) for entry in workload.partitions],
        notes=list(workload.notes),
    )
    return document_text(document, always=("jobs",))


def _written(arriving: ArrivingJob) -> workload_wire.JobWire:
    return workload_wire.JobWire(
        **job_members(arriving.job),
        arrival_s=_short(arriving.arrival_s),
        run_time_s=_short(arriving.run_time_s),
        gres_run_time_factor=arriving.gres_run_time_factor,
        not_before_s=arriving.not_before_s,
        deadline_s=arriving.deadline_s,
        budget_core_h=arriving.budget_core_h,
        credits_per_core_h=_short(arriving.credits_per_core_h),
        started_s=None if arriving.started_s is None else _short(arriving.started_s),
        name=arriving.name,
    )


def _short(seconds: float) -> float:
    """Return whole seconds as an integer, so that equal workloads are written alike."""
    return int(seconds) if seconds == int(seconds) else seconds


def _without_free(entry: License) -> wire.LicenseWire:
    written = written_license(entry)
    written.free = None
    return written
