"""aucsched: an integer-programming auction scheduler for HPC clusters.

``load_snapshot`` reads a cluster and its queue, ``schedule`` runs one auction over it. Names load on
first use, so that ``import aucsched`` and ``aucsched --help`` cost no numpy and no solver.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .auction.step import schedule
    from .cluster.errors import AucschedError, AwardError, InputError, OptionError, SolverError
    from .cluster.jobs import Job, JobKind, JobType, Request, RunningJob, Span
    from .cluster.nodes import License, Node, NodeState, Partition, Reservation, Resources, Switch
    from .cluster.schedule import Award, BidClass, Reason, Refusal, Schedule, Status
    from .cluster.snapshot import Snapshot
    from .cluster.workload import ArrivingJob, ClusterWorkload
    from .formats.native.read import load_snapshot
    from .formats.native.workload import load_workload, save_workload
    from .formats.native.write import save_snapshot

_PLACES = {
    "auction.step": ("schedule",),
    "cluster.errors": ("AucschedError", "AwardError", "InputError", "OptionError", "SolverError"),
    "cluster.jobs": ("Job", "JobKind", "JobType", "Request", "RunningJob", "Span"),
    "cluster.nodes": (
        "License",
        "Node",
        "NodeState",
        "Partition",
        "Reservation",
        "Resources",
        "Switch",
    ),
    "cluster.schedule": ("Award", "BidClass", "Reason", "Refusal", "Schedule", "Status"),
    "cluster.snapshot": ("Snapshot",),
    "cluster.workload": ("ArrivingJob", "ClusterWorkload"),
    "formats.native.read": ("load_snapshot",),
    "formats.native.workload": ("load_workload", "save_workload"),
    "formats.native.write": ("save_snapshot",),
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}

__version__ = "0.1.0"

__all__ = [
    "ArrivingJob",
    "AucschedError",
    "Award",
    "AwardError",
    "BidClass",
    "ClusterWorkload",
    "InputError",
    "Job",
    "JobKind",
    "JobType",
    "License",
    "Node",
    "NodeState",
    "OptionError",
    "Partition",
    "Reason",
    "Refusal",
    "Request",
    "Reservation",
    "Resources",
    "RunningJob",
    "Schedule",
    "Snapshot",
    "SolverError",
    "Span",
    "Status",
    "Switch",
    "__version__",
    "load_snapshot",
    "load_workload",
    "save_snapshot",
    "save_workload",
    "schedule",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'aucsched' has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
