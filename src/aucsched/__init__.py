"""aucsched: an integer-programming auction scheduler for HPC clusters.

``load_snapshot`` reads a cluster and its queue, ``schedule`` runs one auction over it. Names load on
first use, so that ``import aucsched`` and ``aucsched --help`` cost no numpy and no solver.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .cluster.version import __version__ as __version__

if TYPE_CHECKING:
    # Every public name, once: type checkers read this block, and so does the table below.
    from .api.auctions import compare as compare, explain as explain
    from .api.forecasts import Forecasts as Forecasts, forecast as forecast
    from .api.gains import Gain as Gain, gain as gain
    from .api.simulations import simulate as simulate
    from .auction.continual import Auction as Auction
    from .auction.explain.comparison import Comparison as Comparison
    from .auction.explain.explanation import Explanation as Explanation
    from .auction.explain.overview import Overview as Overview
    from .auction.planning.plan import Plan as Plan, plan as plan
    from .auction.step import schedule as schedule
    from .cluster.errors import (
        AucschedError as AucschedError,
        AwardError as AwardError,
        InputError as InputError,
        NobodyError as NobodyError,
        OptionError as OptionError,
        PolicyError as PolicyError,
        SolverError as SolverError,
    )
    from .cluster.jobs import (
        Job as Job,
        JobKind as JobKind,
        JobType as JobType,
        Request as Request,
        RunningJob as RunningJob,
        Span as Span,
    )
    from .cluster.limits import JobSet as JobSet, Limit as Limit
    from .cluster.nodes import (
        License as License,
        Node as Node,
        NodeState as NodeState,
        Partition as Partition,
        PartitionState as PartitionState,
        Reservation as Reservation,
        Resources as Resources,
        Switch as Switch,
    )
    from .cluster.schedule import (
        Award as Award,
        BidClass as BidClass,
        Reason as Reason,
        Refusal as Refusal,
        Schedule as Schedule,
        Status as Status,
    )
    from .cluster.snapshot import Snapshot as Snapshot
    from .cluster.workload import ArrivingJob as ArrivingJob, ClusterWorkload as ClusterWorkload
    from .formats.native.cluster_file import (
        load_snapshot as load_snapshot,
        load_workload as load_workload,
        parse_snapshot as parse_snapshot,
        parse_workload as parse_workload,
        save_snapshot as save_snapshot,
        save_workload as save_workload,
    )
    from .formats.native.schedule_file import load_schedule as load_schedule
    from .formats.swf import SwfLog as SwfLog, load_swf as load_swf, parse_swf as parse_swf
    from .models.winners.determine import Winners as Winners, winners as winners
    from .models.winners.instance import BidArrays as BidArrays
    from .negotiation.client import EvolvingClient as EvolvingClient
    from .negotiation.messages import DynState as DynState
    from .simulation.own_policy import (
        ActiveJob as ActiveJob,
        MachineView as MachineView,
        Policy as Policy,
        QueuedJob as QueuedJob,
    )
    from .simulation.result import Simulation as Simulation
    from .simulation.workloads.imported import workload_from_swf as workload_from_swf
    from .slurm.answers.live import snapshot_from_slurm as snapshot_from_slurm
    from .sweeps.call import Sweep as Sweep, sweep as sweep

_LISTED = globals()["__loader__"].get_source(__name__).partition("\nif TYPE_CHECKING:\n")[2].partition("\n_LISTED")[0]
#: Public name -> its module, and its name there.
_SOURCE_OF = {
    name: (module, name)
    for module, names in re.findall(r"^    from \.([\w.]+) import (\([^)]+\)|.+)$", _LISTED, re.MULTILINE)
    for name in re.findall(r"(\w+)(?: as \w+)?", names)
}
__all__ = sorted([*_SOURCE_OF, "__version__"])


def __getattr__(name: str) -> Any:
    if name not in _SOURCE_OF:
        raise AttributeError(f"module 'aucsched' has no attribute {name!r}")
    module, known_there = _SOURCE_OF[name]
    value = getattr(import_module(f".{module}", __name__), known_there)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
