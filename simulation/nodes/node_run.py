"""What happened in a node-level simulation, as its kernel records it."""

from dataclasses import dataclass, field
from typing import NamedTuple

from ...cluster.resources.allocation import Allocation
from ...cluster.resources.demand import Demand


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PlayedJob:
    """What became of a job that started; ``run_s`` is its true run time, cut at its time limit."""

    demand: Demand
    allocation: Allocation
    start_s: float
    run_s: float
    killed: bool


class StoppedAttempt(NamedTuple):
    """A run that ended when one of its nodes went down: the job's number, where and when it ran."""

    job: int
    allocation: Allocation
    start_s: float
    end_s: float


class NodeOutage(NamedTuple):
    """A node that was down: its place, since when, and when it came back; infinite where it never did."""

    node: int
    down_s: float
    up_s: float


class Preempted(NamedTuple):
    """A run that a job which paid more ended: both numbers, when, core-seconds lost, credits paid."""

    job: int
    by: int
    time_s: float
    lost_core_s: float
    credits: float


@dataclass(slots=True, eq=False, kw_only=True)
class NodeRun:
    """A finished simulation.

    Attributes:
        played: the runs that came to their ends, by job number, ascending.
        never: why a job can never start, or never again, by job number.
        lost: why a job that a failure stopped is lost, by job number; every job stands in one of
            the three.
        preempted: runs that other jobs stopped, in that order; they stand in ``stopped`` too.
        stopped: runs that failures or other jobs stopped, in that order; a job may have several.
        outages: nodes that went down while there was something to do, in that order.
        requeues: how often a job that a failure stopped waited again.
        passes: how often the policy was asked.
    """

    played: dict[int, PlayedJob] = field(default_factory=dict)
    never: dict[int, str] = field(default_factory=dict)
    lost: dict[int, str] = field(default_factory=dict)
    stopped: list[StoppedAttempt] = field(default_factory=list)
    preempted: list[Preempted] = field(default_factory=list)
    outages: list[NodeOutage] = field(default_factory=list)
    requeues: int = 0
    passes: int = 0
