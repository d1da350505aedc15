"""aucsched: an integer-programming auction scheduler for HPC clusters.

``load_snapshot`` reads a cluster and its queue, ``schedule`` runs one auction over it. Names load on
first use, so that ``import aucsched`` and ``aucsched --help`` cost no numpy and no solver. ``__init__.pyi``
says where each of them is, to type checkers as to this file.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from .cluster.version import __version__

_STUB = __loader__.get_data(f"{__file__}i").decode()
#: Public name -> its module, and its name there.
_SOURCE_OF = {
    name: (module, name)
    for module, names in re.findall(r"^from \.([\w.]+) import (\([^)]+\)|.+)$", _STUB, re.MULTILINE)
    for name in re.findall(r"(\w+)(?: as \w+)?", names)
}
for _public, _own in re.findall(r"^(\w+) = (\w+)$", _STUB, re.MULTILINE):
    _SOURCE_OF[_public] = _SOURCE_OF.pop(_own)
__all__ = sorted(_SOURCE_OF)
if TYPE_CHECKING:
    from .api.auctions import compare, explain
    from .api.forecasts import Forecasts, forecast
    from .api.gains import Gain, gain
    from .api.imports import snapshot_from_slurm, workload_from_swf
    from .api.simulations import Simulation, simulate
    from .auction.continual import Auction
    from .auction.explain.comparison import Comparison
    from .auction.explain.explanation import Explanation
    from .auction.explain.overview import Overview
    from .auction.planning.plan import Plan
    from .auction.step import schedule
    from .cluster.errors import AucschedError, AwardError, InputError, OptionError, PolicyError, SolverError
    from .cluster.jobs import Job, JobKind, JobType, Request, RunningJob, Span
    from .cluster.limits import JobSet, Limit
    from .cluster.nodes import License, Node, NodeState, Partition, PartitionState, Reservation, Resources, Switch
    from .cluster.schedule import Award, BidClass, Reason, Refusal, Schedule, Status
    from .cluster.snapshot import Snapshot
    from .cluster.workload import ArrivingJob, ClusterWorkload
    from .formats.native.read import load_snapshot, parse_snapshot
    from .formats.native.read_schedule import load_schedule
    from .formats.native.workload_file import load_workload, parse_workload, save_workload
    from .formats.native.write import save_snapshot
    from .formats.swf import SwfLog, parse_swf
    from .simulation.own_policy import ActiveJob, MachineView, Policy, QueuedJob
    from .sweeps.call import Sweep, sweep
    from .formats.swf import read_swf as load_swf
    from .auction.planning.plan import make_plan as plan
    from .models.winners.determine import Winners, winners
    from .negotiation.client import EvolvingClient
    from .negotiation.messages import DynState
    from .models.winners.instance import BidArrays
_PLACES = {
    "api.auctions": ('compare', 'explain',),
    "api.forecasts": ("Forecasts", "forecast"),
    "api.gains": ('Gain', 'gain',),
    "api.imports": ("snapshot_from_slurm", "workload_from_swf"),
    "api.simulations": ('Simulation', 'simulate',),
    "auction.continual": ("Auction",),
    "auction.explain.comparison": ('Comparison',),
    "auction.explain.explanation": ('Explanation',),
    "auction.explain.overview": ('Overview',),
    "auction.planning.plan": ('Plan',),
    "auction.step": ('schedule',),
    "cluster.errors": ('AucschedError', 'AwardError', 'InputError', 'OptionError', 'PolicyError', 'SolverError',),
    "cluster.jobs": ('Job', 'JobKind', 'JobType', 'Request', 'RunningJob', 'Span',),
    "cluster.limits": ('JobSet', 'Limit',),
    "cluster.nodes": ('License', 'Node', 'NodeState', 'Partition', 'PartitionState', 'Reservation', 'Resources', 'Switch',),
    "cluster.schedule": ('Award', 'BidClass', 'Reason', 'Refusal', 'Schedule', 'Status',),
    "cluster.snapshot": ('Snapshot',),
    "cluster.workload": ('ArrivingJob', 'ClusterWorkload',),
    "formats.native.read": ('load_snapshot', 'parse_snapshot',),
    "formats.native.read_schedule": ("load_schedule",),
    "formats.native.workload_file": ('load_workload', 'parse_workload', 'save_workload',),
    "formats.native.write": ('save_snapshot',),
    "formats.swf": ('SwfLog', 'parse_swf',),
    "models.winners.determine": ("Winners", "winners"),
    "models.winners.instance": ("BidArrays",),
    "negotiation.client": ("EvolvingClient",),
    "negotiation.messages": ("DynState",),
    "simulation.own_policy": ('ActiveJob', 'MachineView', 'Policy', 'QueuedJob',),
    "sweeps.call": ('Sweep', 'sweep',),
#: Names that a room calls otherwise.
_RENAMED = {"load_swf": ("formats.swf", "read_swf"), "plan": ("auction.planning.plan", "make_plan")}
_SOURCE_OF = {name: (module, name) for module, names in _PLACES.items() for name in names} | _RENAMED
__all__ = [
    "ActiveJob",
    "ArrivingJob",
    "Auction",
    "AucschedError",
    "Award",
    "AwardError",
    "BidArrays",
    "BidClass",
    "ClusterWorkload",
    "Comparison",
    "DynState",
    "EvolvingClient",
    "Explanation",
    "Forecasts",
    "Gain",
    "InputError",
    "Job",
    "JobKind",
    "JobSet",
    "JobType",
    "License",
    "Limit",
    "MachineView",
    "Node",
    "NodeState",
    "OptionError",
    "Overview",
    "Partition",
    "PartitionState",
    "Plan",
    "Policy",
    "PolicyError",
    "QueuedJob",
    "Reason",
    "Refusal",
    "Request",
    "Reservation",
    "Resources",
    "RunningJob",
    "Schedule",
    "Simulation",
    "Snapshot",
    "SolverError",
    "Span",
    "Status",
    "Sweep",
    "SwfLog",
    "Switch",
    "Winners",
    "__version__",
    "compare",
    "explain",
    "forecast",
    "gain",
    "load_schedule",
    "load_snapshot",
    "load_swf",
    "load_workload",
    "parse_snapshot",
    "parse_swf",
    "parse_workload",
    "plan",
    "save_snapshot",
    "save_workload",
    "schedule",
    "simulate",
    "snapshot_from_slurm",
    "sweep",
    "winners",
    "workload_from_swf",
]


def __getattr__(name: str) -> Any:
    if name not in _SOURCE_OF:
        raise AttributeError(f"module 'aucsched' has no attribute {name!r}")
    module, known_there = _SOURCE_OF[name]
    value = getattr(import_module(f".{module}", __name__), known_there)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
