"""Members and JSON types of workload files: a snapshot's, with arrivals and run times of jobs."""

from __future__ import annotations

import msgspec

from . import wire

FORMAT = "aucsched-workload/1"


class JobWire(wire.JobWire, kw_only=True):
    """A job that arrives: seconds from the workload's beginning, and its run time that no scheduler sees."""

    arrival_s: float
    run_time_s: float
    gres_run_time_factor: float | None = None
    not_before_s: float | None = None
    deadline_s: float | None = None
    budget_core_h: float | None = None
    credits_per_core_h: float = 1.0
    started_s: float | None = None
    name: str = ""


class WorkloadWire(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The whole file: an empty cluster, and the jobs in order of arrival."""

    format: str
    name: str = ""
    nodes: list[wire.NodeWire]
    jobs: list[JobWire] = []
    topology: wire.TopologyWire | None = None
    licenses: dict[str, wire.LicenseWire] = {}
    partitions: list[wire.PartitionWire] = []
    limits: list[wire.LimitWire] = []
    notes: list[str] = []
