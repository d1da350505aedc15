"""One run of both schedulers over a workload: who held which nodes when, and every message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf

from ...negotiation.messages import ResourceOffer, ResponseResourceOffer, UrgentJobResponse
from ...negotiation.parties.batch_state import Arrival, BatchSettings, BatchState
from ...negotiation.parties.irtsched import RuntimeState
from ...negotiation.parties.pair import Pair, Sent, StuckError
from ...negotiation.runtime.performance import Known
from ...negotiation.runtime.records import JobReport
from ...negotiation.runtime.runtime_machine import MachineState
from ...negotiation.runtime.settings import RuntimeSettings
from .plays import Play


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A stretch of time in which a job held the same nodes, or parts of them (numbers as bits)."""

    job: str
    start_s: float
    end_s: float
    nodes: int


@dataclass(frozen=True, kw_only=True)
class Negotiated:
    """A finished run. Not slotted: its columns are computed when first asked for, and kept.

    Attributes:
        play: what was played.
        batch, runtime: the parties' settings.
        done: the last report of each job.
        held: every stretch, by job and time.
        sent: every message.
        lost_node_s: work that kills lost.
    """

    play: Play
    batch: BatchSettings
    runtime: RuntimeSettings
    done: Mapping[str, JobReport]
    held: tuple[Held, ...]
    sent: tuple[Sent, ...]
    lost_node_s: float

    @cached_property
    def arrival_s(self) -> dict[str, float]:
        """When each job came."""
        return {arrival.job.job: arrival.time_s for arrival in self.play.arrivals}

    @cached_property
    def attempts(self) -> tuple[int, ...]:
        """The attempts of each transaction that was committed."""
        return tuple(
            sent.message.attempt
            for sent in self.sent
            if isinstance(sent.message, ResourceOffer) and sent.message.negotiation == 0
        )

    @cached_property
    def engine_calls(self) -> int:
        """How many awards the auction's engine has made: one for each Map that says who waits or starts."""
        if self.batch.mapper != "auction":
            return 0
        return sum(isinstance(s.message, ResponseResourceOffer) and bool(s.message.map) for s in self.sent)

    @cached_property
    def urgent(self) -> tuple[UrgentJobResponse, ...]:
        """The answers to urgent jobs."""
        return tuple(s.message for s in self.sent if isinstance(s.message, UrgentJobResponse))


class Recorder:
    """Notes which nodes jobs hold, from one state of a machine to the next.

    ``held`` are the stretches that have ended, ``since`` those that go on: their beginning and nodes, by job.

    Args:
        first: the number of its first node among all nodes.
    """

    def __init__(self, first: int = 0) -> None:
        self.held: list[Held] = []
        self._first = first
        self.since: dict[str, tuple[float, int]] = {}

    def see(self, machine: MachineState) -> None:
        """Take note of a machine after a transition."""
        running = machine.running
        for job, (since, nodes) in list(self.since.items()):
            now = running.get(job)
            if now is not None and now.nodes == nodes:
                continue
            end = machine.done[job].end_s if now is None and job in machine.done else machine.now_s
            if end > since:
                self.held.append(Held(job=job, start_s=since, end_s=end, nodes=nodes << self._first))
            del self.since[job]
        for job, record in running.items():
            if job not in self.since:
                self.since[job] = (machine.now_s, record.nodes)


def negotiate(
    play: Play,
    batch: BatchSettings,
    runtime: RuntimeSettings,
    *,
    progress: Callable[[int], None] | None = None,
    until_s: float = inf,
    known: Known | None = None,
) -> Negotiated:
    """Run the schedulers on a workload until every job has ended; ``known`` are runs of before.

    Raises:
        StuckError: a job would never start, or the clock came to ``until_s`` seconds.
    """
    machines = play.machines(runtime.parts)
    recorders = {
        peer: Recorder(runtime.parts * play.nodes.index(machine.names[0]))
        for peer, machine in machines.items()
    }
    sent: list[Sent] = []

    def watch(peer: str, machine: MachineState) -> None:
        recorders[peer].see(machine)
        if machine.now_s > until_s:
            raise StuckError(f"it goes on beyond {until_s:g} s")
        if progress is not None:
            progress(len(pair.batch.done))

    runtimes = {peer: RuntimeState(settings=runtime, machine=machine) for peer, machine in machines.items()}
    pair = Pair(batch_of(play, batch, known), runtimes, sent.append, watch)
    pair.run()
    return Negotiated(
        play=play,
        batch=batch,
        runtime=runtime,
        done=pair.batch.done,
        held=tuple(held for recorder in recorders.values() for held in recorder.held),
        sent=tuple(sent),
        lost_node_s=pair.batch.lost_node_s,
    )


def batch_of(play: Play, settings: BatchSettings, known: Known | None = None) -> BatchState:
    """Return the batch scheduler that a workload's jobs will come to, with what it knows of their names."""
    arrivals: tuple[Arrival, ...] = play.arrivals
    return BatchState(settings=settings, arrivals=arrivals, known=known or {})


def runs_of(play: Play, done: Mapping[str, JobReport]) -> list[tuple[str, str, int, float]]:
    """Return what a history keeps of jobs that ended: name, job, nodes, seconds of the whole job on them."""
    names = {arrival.job.job: arrival.job.name for arrival in play.arrivals}
    return [
        (names[job], job, count, seconds)
        for job, report in done.items()
        for count, seconds in report.measured
    ]
