"""Any interleaving of submissions, ends, attempts, deaths and reconnects: nothing is double-booked or lost.

The parties are driven message by message: each end of the connection has a queue, and what happens next
(which message is read, the clock, a submission, the death of either end) is drawn.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from support.negotiation import check_jobs, check_machine, conserved, machine

from aucsched.cluster.jobs import JobKind
from aucsched.negotiation.batch import ibsched
from aucsched.negotiation.batch.batch_state import Arrival, BatchState
from aucsched.negotiation.batch.mapping import BatchSettings, MapperName
from aucsched.negotiation.job_records import MapEntry
from aucsched.negotiation.messages import (
    Connect,
    Disconnect,
    Event,
    Message,
    ProtocolError,
    Send,
    Submit,
    Wake,
)
from aucsched.negotiation.pair import Pair
from aucsched.negotiation.runtime import irtsched
from aucsched.negotiation.runtime.irtsched import RuntimeState
from aucsched.negotiation.runtime.runtime_machine import empty_machine
from aucsched.negotiation.runtime.settings import RuntimeSettings, Urgency
from aucsched.negotiation.transport.framing import decode_message, encode_message
from aucsched.simulation.negotiated.plays import entry_of

NODES = 6


@dataclass
class World:
    """Both parties and what is on its way between them."""

    batch: BatchState
    runtime: RuntimeState
    to_runtime: deque[Message] = field(default_factory=deque)
    to_batch: deque[Message] = field(default_factory=deque)
    entries: dict[str, MapEntry] = field(default_factory=dict)
    killed: bool = False

    def batch_step(self, event: Event | Message) -> None:
        """Let the batch scheduler make a transition."""
        self.batch, sends = ibsched.step(self.batch, event, "")
        self._send(sends, self.to_runtime)

    def runtime_step(self, event: Event | Message) -> None:
        """Let the runtime scheduler make a transition."""
        self.runtime, sends = irtsched.step(self.runtime, event, "")
        self._send(sends, self.to_batch)

    def _send(self, sends: tuple[Send, ...], queue: deque[Message]) -> None:
        # Through the wire and its checks, as over a socket.
        queue.extend(decode_message(encode_message(send.message)) for send in sends)

    def reconnect(self) -> None:
        """Lose what is on its way, and open the negotiation again."""
        self.to_runtime.clear()
        self.to_batch.clear()
        self.batch_step(Disconnect())
        self.runtime_step(Disconnect())
        self.batch_step(Connect())

    def check(self) -> None:
        """Assert what must hold at any time."""
        check_machine(self.runtime.machine)
        names = [*self.batch.queue, *self.batch.urgent, *self.batch.dispatched, *self.batch.done]
        assert sorted(names) == sorted(self.entries)
        started = {
            **self.runtime.machine.running,
            **self.runtime.machine.suspended,
            **self.runtime.machine.done,
        }
        assert set(started) <= set(self.entries)
        # Whom the batch scheduler knows to have started has started, and once.
        assert {*self.batch.done} <= {*self.runtime.machine.done}
        assert self.killed or {*self.batch.dispatched} <= set(started)


def _entry(data: st.DataObject, number: int, most: int = NODES) -> MapEntry:
    least = data.draw(st.integers(1, most))
    return entry_of(
        f"j{number}",
        least,
        float(data.draw(st.integers(1, 300))),
        priority=data.draw(st.integers(1, 5)),
        kind=data.draw(st.sampled_from([JobKind.RIGID, JobKind.MOLDABLE, JobKind.MALLEABLE])),
        bounds=(least, data.draw(st.integers(least, NODES))),
    )


@pytest.mark.parametrize("mapper", ["greedy", "auction"])
@pytest.mark.parametrize("urgency", ["suspend", "kill", "shrink"])
@settings(max_examples=20, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(st.data())
def test_nothing_is_double_booked_or_lost_whatever_happens(
    mapper: MapperName, urgency: Urgency, data: st.DataObject
) -> None:
    attempts = data.draw(st.integers(1, 5))
    world = World(
        batch=BatchState(
            settings=BatchSettings(mapper=mapper, depth=3, max_attempts=attempts, patience_s=50)
        ),
        runtime=RuntimeState(
            settings=RuntimeSettings(
                urgency=urgency,
                dependencies=data.draw(st.sampled_from(["all", "one"])),
                transaction_s=data.draw(st.sampled_from([0.0, 1.5])),
            ),
            machine=machine(NODES),
        ),
        killed=urgency == "kill",
    )
    world.batch_step(Connect())
    for number in range(data.draw(st.integers(5, 40))):
        _happen(world, data, number)
        world.check()
    _finish(world)
    check_jobs(world.batch, world.runtime.machine)
    assert set(world.batch.done) == set(world.entries)
    conserved(world.runtime.machine, world.entries)


def _happen(world: World, data: st.DataObject, number: int) -> None:
    """Let one thing happen."""
    what = ["submit", "deliver", "deliver", "deliver", "deliver", "wake", "wake"]
    match data.draw(st.sampled_from([*what, "urgent", "die"])):
        case "submit" | "urgent" as how:
            entry = _entry(data, number)
            world.entries[entry.job] = entry
            world.batch_step(Submit(jobs=(entry,), urgent=how == "urgent"))
        case "deliver":
            _deliver(world, first_runtime=data.draw(st.booleans()))
        case "wake":
            # The clock goes on to the next event, or part of the way, whatever is on its way.
            state = world.runtime
            due = state.next_wake_s() or state.machine.next_end_s() or state.machine.now_s + 10
            share = data.draw(st.sampled_from([1.0, 1.0, 0.5]))
            now = state.machine.now_s
            world.runtime_step(Wake(time_s=now + max(0.0, due - now) * share))
        case _:
            world.reconnect()


def _deliver(world: World, *, first_runtime: bool) -> bool:
    """Hand over one message; a party that refuses it is connected to anew, as over a socket."""
    order = (world.to_runtime, world.to_batch) if first_runtime else (world.to_batch, world.to_runtime)
    for queue in order:
        if queue:
            message = queue.popleft()
            try:
                (world.runtime_step if queue is world.to_runtime else world.batch_step)(message)
            except ProtocolError:
                world.reconnect()
            return True
    return False


def _finish(world: World) -> None:
    """Let everything come to its end."""
    for _ in range(20_000):
        if _deliver(world, first_runtime=True):
            world.check()
            continue
        if set(world.batch.done) == set(world.entries):
            return
        due = world.runtime.next_wake_s()
        assert due is not None, "jobs wait, and nothing will happen"
        world.runtime_step(Wake(time_s=due))
    pytest.fail("it does not come to an end")


@settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(st.data())
def test_two_runtime_schedulers_share_a_queue_and_no_job_starts_twice(data: st.DataObject) -> None:
    """Nagendra: 8.1: several runtime schedulers."""
    arrivals = []
    for number in range(data.draw(st.integers(1, 12))):
        entry = _entry(data, number, most=NODES // 2)
        urgent = data.draw(st.sampled_from([False, False, False, True]))
        time = float(data.draw(st.integers(0, 100)))
        arrivals.append(Arrival(time_s=time, job=entry, urgent=urgent))
    arrivals.sort(key=lambda arrival: arrival.time_s)
    batch = BatchState(
        settings=BatchSettings(mapper=data.draw(st.sampled_from(["greedy", "auction"])), ends_when_done=True),
        arrivals=tuple(arrivals),
    )
    runtimes = {
        peer: RuntimeState(
            settings=RuntimeSettings(), machine=empty_machine([f"{peer}{n}" for n in range(NODES // 2)])
        )
        for peer in "ab"
    }
    both = Pair(batch, runtimes)
    both.run()
    done = [job for state in both.runtimes.values() for job in state.machine.done]
    assert sorted(done) == sorted(both.batch.done) == sorted(arrival.job.job for arrival in arrivals)
    entries = {arrival.job.job: arrival.job for arrival in arrivals}
    for state in both.runtimes.values():
        check_machine(state.machine)
        conserved(state.machine, entries)
    for arrival in arrivals:
        assert both.batch.done[arrival.job.job].start_s >= arrival.time_s


def test_who_is_not_sent_the_urgent_job_that_all_were_told_of_hears_that_it_has_come() -> None:
    arrivals = (
        Arrival(time_s=5.0, job=entry_of("short", NODES // 2, 10.0, priority=2)),
        Arrival(time_s=5.0, job=entry_of("long", NODES // 2, 250.0, priority=1)),
        Arrival(time_s=19.0, job=entry_of("urgent", 1, 40.0, priority=1), urgent=True),
    )
    batch = BatchState(settings=BatchSettings(ends_when_done=True), arrivals=arrivals)
    half = {peer: empty_machine([f"{peer}{n}" for n in range(NODES // 2)]) for peer in "ab"}
    both = Pair(batch, {peer: RuntimeState(settings=RuntimeSettings(), machine=half[peer]) for peer in "ab"})
    both.run()
    ends = {job: report.end_s for job, report in both.batch.done.items()}
    assert ends == {"short": 15.0, "urgent": 59.0, "long": 255.0}
