"""The batch scheduler's state: who waits, who runs where, and how each negotiation stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec

from ...cluster.checks import at_least
from ...cluster.errors import OptionError
from ...cluster.nodes import Switch
from ..mappers.auction_map import step_options
from ..mappers.decision import DecisionName, LastAttempt, ThirdOf
from ..mappers.mapping import Dispatched, Engine, Place
from ..protocol import SessionPhase
from ..runtime.performance import Known
from ..runtime.records import JobReport, JobState, MapEntry
from ..runtime.settings import MAX_ATTEMPTS, check_interval
from ..runtime.shrink import Steps

#: Names of MAPPERS.
MapperName = Literal["greedy", "auction"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings:
    """Choices of the batch scheduler.

    Attributes:
        mapper: what answers an offer.
        decision: what accepts one.
        depth: how many jobs are forwarded without a mapping (the reservation depth); with none, an empty
            Map would say that nothing waits.
        third_of: of what a third must be mapped (decision "paper").
        max_attempts, interval_s: proposed to the runtime scheduler.
        steps: how a job's range is divided by the attempts (negotiation/runtime/shrink.py).
        atomic: Maps start whole or not at all.
        ends_when_done: end the negotiation once every job has ended and none is to come.
        patience_s: mapper "auction": how long a job waits before nodes are kept for it.
        engine: mapper "auction": how its engine decides on each Map.
        switches: the nodes' tree: mapper "auction" keeps jobs below few of them; None: a row of nodes.
    """

    mapper: MapperName = "greedy"
    decision: DecisionName = "paper"
    depth: int = 100
    third_of: ThirdOf = "forwarded"
    max_attempts: int = MAX_ATTEMPTS
    interval_s: float = 60.0
    steps: Steps = "ceiling"
    atomic: bool = False
    ends_when_done: bool = False
    patience_s: float = 5400.0
    engine: Engine = field(default_factory=Engine)
    switches: tuple[Switch, ...] | None = None

    def __post_init__(self) -> None:
        at_least(self.depth, 1, "depth")
        if not 0 <= self.patience_s < float("inf"):
            raise OptionError(f"patience {self.patience_s:g} is not from 0 s on")
        at_least(self.max_attempts, 1, "max_attempts")
        check_interval(self.interval_s)
        step_options(self.engine, 1)


class Arrival(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job that is known to come, as in a simulation."""

    time_s: float
    job: MapEntry
    urgent: bool = False


class Session(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How things stand with one runtime scheduler.

    Attributes:
        relaxed: how often each job's range was opened in this transaction, by job.
        forwarded: jobs of the last Map, in its order; no other runtime scheduler is given them meanwhile.
        memory: what the transaction remembers of its attempts.
        believed: how many jobs the runtime scheduler believes to wait here: with none it makes no offer.
        hears_s: when it stops its clock to hear of a job that comes, None: it knows of none.
    """

    phase: SessionPhase = SessionPhase.CLOSED
    place: Place = Place()
    transaction: int = 0
    attempt: int = 0
    relaxed: dict[str, int] = {}
    forwarded: tuple[str, ...] = ()
    memory: LastAttempt = LastAttempt()
    believed: int = 0
    hears_s: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether the parties talk to each other."""
        return self.phase in {SessionPhase.WAITING, SessionPhase.NEGOTIATING}


class BatchState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything the batch scheduler knows.

    Attributes:
        queue: jobs that wait, highest priority first; among equals, first come.
        urgent: urgent jobs that were not answered, by job, with the peer they were sent to, None before.
        dispatched: jobs that run or are suspended.
        done: jobs that ended, with their last report.
        sessions: by runtime scheduler.
        came_s: when each job came.
        arrivals: jobs to come, by time; ``arrived`` of them have come.
        now_s: the latest time that a runtime scheduler has sent.
        lost_node_s: work that kills have lost.
        known: what runs of each name took, by node count (negotiation/runtime/performance.py).
    """

    settings: BatchSettings
    queue: dict[str, MapEntry] = {}
    urgent: dict[str, tuple[str | None, MapEntry]] = {}
    dispatched: dict[str, Dispatched] = {}
    done: dict[str, JobReport] = {}
    sessions: dict[str, Session] = {}
    came_s: dict[str, float] = {}
    arrivals: tuple[Arrival, ...] = ()
    arrived: int = 0
    now_s: float = 0.0
    lost_node_s: float = 0.0
    known: Known = {}

    def next_arrival_s(self) -> float | None:
        """Return when the next job comes, None when none is known."""
        return self.arrivals[self.arrived].time_s if self.arrived < len(self.arrivals) else None

    def knows(self, job: str) -> bool:
        """Whether a job of this id has come."""
        return job in self.queue or job in self.urgent or job in self.dispatched or job in self.done

    @property
    def is_finished(self) -> bool:
        """Whether nothing waits, runs or is to come."""
        is_empty = not (self.queue or self.urgent or self.dispatched)
        return is_empty and self.arrived == len(self.arrivals)


def job_state(state: BatchState, job: str) -> JobState | None:
    """Return where a job stands, None when there is none of that id."""
    if job in state.dispatched:
        return state.dispatched[job].report.state
    if job in state.done:
        return JobState.DONE
    return JobState.QUEUED if job in state.queue or job in state.urgent else None
