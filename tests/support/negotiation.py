"""Small negotiations for tests: jobs, parties, messages in order, and what must hold at any time."""

from __future__ import annotations

from typing import Any

import pytest

from aucsched.cluster.jobs import JobKind
from aucsched.negotiation.batch.batch_state import Arrival, BatchState
from aucsched.negotiation.batch.mapping import BatchSettings
from aucsched.negotiation.job_records import JobState, MapEntry
from aucsched.negotiation.messages import Message, ResourceOffer, ResponseResourceOffer
from aucsched.negotiation.pair import Pair, Sent
from aucsched.negotiation.runtime.irtsched import RuntimeState
from aucsched.negotiation.runtime.runtime_machine import MachineState, empty_machine
from aucsched.negotiation.runtime.settings import RuntimeSettings
from aucsched.simulation.negotiated.plays import entry_of
from aucsched.simulation.workloads.named_clusters import node_names


def rigid(job: str, nodes: int, seconds: float, *, priority: int = 100, **members: Any) -> MapEntry:
    """Return a job of one size."""
    return entry_of(job, nodes, seconds, priority=priority, **members)


def malleable(
    job: str, least: int, most: int, seconds: float, *, priority: int = 100, **members: Any
) -> MapEntry:
    """Return a malleable job that runs this many seconds on its fewest nodes."""
    return entry_of(
        job, least, seconds, priority=priority, kind=JobKind.MALLEABLE, bounds=(least, most), **members
    )


def moldable(job: str, least: int, most: int, seconds: float, *, priority: int = 100) -> MapEntry:
    """Return a moldable job that runs this many seconds on its fewest nodes."""
    return entry_of(job, least, seconds, priority=priority, kind=JobKind.MOLDABLE, bounds=(least, most))


def machine(nodes: int) -> MachineState:
    """Return idle nodes."""
    return empty_machine(node_names(nodes))


def pair(
    nodes: int,
    arrivals: tuple[Arrival, ...] = (),
    *,
    runtime: RuntimeSettings | None = None,
    **batch: Any,
) -> tuple[Pair, list[Sent]]:
    """Return both parties, not yet connected, and the list that their messages are noted in."""
    sent: list[Sent] = []
    state = BatchState(settings=BatchSettings(**batch), arrivals=arrivals)
    runtimes = {"": RuntimeState(settings=runtime or RuntimeSettings(), machine=machine(nodes))}
    return Pair(state, runtimes, sent.append), sent


def kinds(sent: list[Sent]) -> list[str]:
    """Return the messages' kinds, an offer or answer with its transaction, attempt and flag or decision."""
    return [f"{'>' if one.from_batch else '<'} {_kind(one.message)}" for one in sent]


def _kind(message: Message) -> str:
    match message:
        case ResourceOffer():
            return f"OFFER {message.transaction}.{message.attempt} negotiation={message.negotiation}"
        case ResponseResourceOffer():
            return f"MAP {message.transaction}.{message.attempt} {message.code} {len(message.map)}"
        case _:
            return str(message.__struct_config__.tag)


def check_machine(state: MachineState) -> None:
    """Assert that no node is held twice or lost, and that sizes are within the jobs' bounds."""
    every, seen = (1 << len(state.names)) - 1, state.idle
    for name, job in state.running.items():
        assert not seen & job.nodes, f"{name} shares nodes"
        assert job.nodes.bit_count() == job.count
        assert job.entry.min_nodes <= job.count <= job.entry.max_nodes
        seen |= job.nodes
    assert seen == every
    assert not set(state.running) & set(state.suspended)
    assert not set(state.done) & {*state.running, *state.suspended}


def check_jobs(batch: BatchState, runtime: MachineState) -> None:
    """Assert that every job that has come stands in exactly one place, and that both parties agree."""
    together = [*batch.queue, *batch.urgent, *batch.dispatched, *batch.done]
    assert len(together) == len(set(together))
    come = {entry.job.job for entry in batch.arrivals[: batch.arrived]}
    assert come <= set(together)
    for job, dispatched in batch.dispatched.items():
        place = runtime.running if dispatched.report.state is JobState.RUNNING else runtime.suspended
        assert job in place or job in runtime.done
    for job in batch.done:
        assert job in runtime.done


def conserved(state: MachineState, entries: dict[str, MapEntry]) -> None:
    """Assert that a linear job's node-seconds are its work, whatever sizes it had."""
    for job, done in state.done.items():
        entry = entries[job]
        assert done.node_s == pytest.approx(entry.min_nodes * entry.time_at_min_s, rel=1e-6, abs=1e-3)
