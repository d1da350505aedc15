"""Well-formed messages in any order and with any content: a transition, or a refusal that changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from support.negotiation import check_machine, machine, malleable, rigid

from aucsched.cluster.errors import InputError
from aucsched.cluster.jobs import JobKind
from aucsched.negotiation.batch import ibsched
from aucsched.negotiation.batch.batch_state import Arrival, BatchState
from aucsched.negotiation.batch.mapping import BatchSettings, MapperName
from aucsched.negotiation.job_records import JobReport, JobState, MapEntry, NodeCount, OfferReservation
from aucsched.negotiation.messages import (
    PROTOCOL_VERSION,
    Code,
    Connect,
    Disconnect,
    FromBatch,
    FromRuntime,
    NegotiationEnd,
    NegotiationEndResponse,
    NegotiationStart,
    NegotiationStartResponse,
    ProtocolError,
    RequestResourceOffer,
    ResourceOffer,
    ResponseResourceOffer,
    StatusReport,
    UrgentJob,
    UrgentJobResponse,
    Wake,
)
from aucsched.negotiation.runtime import irtsched
from aucsched.negotiation.runtime.irtsched import RuntimeState
from aucsched.negotiation.runtime.settings import RuntimeSettings
from aucsched.negotiation.transport.framing import decode_message, encode_message

JOBS = st.sampled_from(["a", "b", "m", "z", "unknown"])
NODES = st.lists(st.sampled_from(["n1", "n2", "n3", "n4", "n9"]), unique=True, max_size=5).map(tuple)
TIMES = st.floats(0, 500, allow_nan=False)
CODES = st.sampled_from(list(Code))
SMALL = st.integers(0, 6)


@st.composite
def entries(draw: st.DrawFn) -> MapEntry:
    """Return any entry that a Map may hold."""
    least = draw(st.integers(1, 6))
    most = draw(st.integers(least, 7))
    low = draw(st.integers(least, most))
    count = draw(st.sampled_from([0, least, most]))
    nodes = draw(NODES)
    return MapEntry(
        job=draw(JOBS),
        type=draw(st.sampled_from(list(JobKind))),
        node_cnt=count,
        nodes=nodes if len(nodes) == count else (),
        node_count=NodeCount(min=low, max=draw(st.integers(low, most))),
        min_nodes=least,
        max_nodes=most,
        priority=draw(SMALL),
        time_at_min_s=draw(st.floats(0.5, 200)),
        speedup=draw(st.sampled_from(["linear", "amdahl:0.5"])),
        partition=draw(st.sampled_from(["", "", "elsewhere"])),
        start_s=draw(st.none() | TIMES),
    )


MAPS = st.lists(entries(), max_size=3, unique_by=lambda entry: entry.job).map(tuple)


def _batch_says() -> st.SearchStrategy[FromBatch]:
    said: dict[str, Any] = {
        "queued": SMALL,
        "next_arrival_s": st.none() | TIMES,
        "next_urgent_s": st.none() | TIMES,
        "more": st.booleans(),
    }
    return st.one_of(
        st.builds(
            NegotiationStart,
            version=st.sampled_from([PROTOCOL_VERSION, PROTOCOL_VERSION, 2]),
            max_attempts=st.integers(1, 5),
            interval_s=st.floats(1, 100),
            started=SMALL,
            **said,
        ),
        st.builds(RequestResourceOffer, jobs=MAPS, **said),
        st.builds(
            ResponseResourceOffer,
            transaction=st.integers(1, 3),
            attempt=st.integers(1, 5),
            code=CODES,
            map=MAPS,
            atomic=st.booleans(),
            **said,
        ),
        st.builds(UrgentJob, job=entries(), **said),
        st.just(NegotiationEnd()),
        st.just(NegotiationEndResponse()),
    )


@st.composite
def reservations(draw: st.DrawFn) -> OfferReservation:
    """Return any reservation that an offer may hold."""
    nodes = draw(NODES | st.just(()))
    start = draw(TIMES)
    return OfferReservation(
        job=draw(JOBS), node_count=len(nodes), nodes=nodes, start_s=start, end_s=start + draw(TIMES)
    )


@st.composite
def reports(draw: st.DrawFn) -> JobReport:
    """Return any report."""
    nodes = draw(NODES)
    return JobReport(
        job=draw(JOBS),
        state=draw(st.sampled_from(list(JobState))),
        node_count=len(nodes),
        nodes=nodes,
        start_s=draw(TIMES),
        run_time_s=draw(TIMES),
        end_s=draw(TIMES),
    )


def _runtime_says() -> st.SearchStrategy[FromRuntime]:
    return st.one_of(
        st.builds(
            NegotiationStartResponse,
            time_s=TIMES,
            version=st.sampled_from([PROTOCOL_VERSION, PROTOCOL_VERSION, 2]),
            code=CODES,
            partitions=st.sampled_from([{"": ("n1", "n2", "n3", "n4")}, {}, {"": ("n1",), "x": ("n2",)}]),
        ),
        st.builds(
            ResourceOffer,
            time_s=TIMES,
            negotiation=st.sampled_from([0, 1, 1]),
            transaction=st.integers(1, 3),
            attempt=st.integers(1, 5),
            idle=NODES,
            reservations=st.lists(reservations(), max_size=2, unique_by=lambda one: one.job).map(tuple),
            code=CODES,
        ),
        st.builds(
            StatusReport,
            time_s=TIMES,
            reports=st.lists(reports(), max_size=2, unique_by=lambda one: one.job).map(tuple),
            complete=st.booleans(),
        ),
        st.builds(UrgentJobResponse, time_s=TIMES, job=JOBS, code=CODES, nodes=NODES),
        st.just(NegotiationEnd()),
        st.just(NegotiationEndResponse()),
    )


_FAST = settings(max_examples=150, deadline=None, phases=[Phase.explicit, Phase.generate])


@_FAST
@given(st.lists(_batch_says() | st.just(Disconnect()) | st.just("wake"), max_size=14))
def test_a_runtime_scheduler_bears_any_messages(happenings: list[Any]) -> None:
    """Nagendra: figures 6.1, 6.2 control flow."""
    state = RuntimeState(settings=RuntimeSettings(), machine=machine(4))
    start = NegotiationStart(version=PROTOCOL_VERSION, max_attempts=5, interval_s=60.0, queued=2)
    for happening in (start, *happenings):
        before = repr(state)
        event = happening
        if event == "wake":
            event = Wake(time_s=state.next_wake_s() or state.machine.now_s + 1)
        elif not isinstance(event, Disconnect):
            try:
                event = decode_message(encode_message(event))
            except InputError:
                continue
        try:
            after, sends = irtsched.step(state, event)
        except (ProtocolError, InputError):
            assert repr(state) == before
            continue
        for send in sends:
            assert decode_message(encode_message(send.message)) == send.message
        assert set(after.machine.done) >= set(state.machine.done)
        check_machine(after.machine)
        state = after


@pytest.mark.parametrize("mapper", ["greedy", "auction"])
@_FAST
@given(happenings=st.lists(_runtime_says() | st.just(Disconnect()) | st.just(Connect()), max_size=14))
def test_a_batch_scheduler_bears_any_messages(mapper: MapperName, happenings: list[Any]) -> None:
    """Nagendra: figures 6.1, 6.2 control flow."""
    arrivals = (
        Arrival(time_s=0.0, job=rigid("a", 3, 100)),
        Arrival(time_s=0.0, job=malleable("m", 1, 4, 90)),
        Arrival(time_s=50.0, job=rigid("z", 2, 7), urgent=True),
        Arrival(time_s=90.0, job=rigid("b", 4, 30)),
    )
    state = BatchState(settings=BatchSettings(mapper=mapper, ends_when_done=True), arrivals=arrivals)
    agreed = NegotiationStartResponse(
        time_s=0.0,
        version=PROTOCOL_VERSION,
        code=Code.ACCEPT,
        partitions={"": ("n1", "n2", "n3", "n4")},
    )
    for happening in (Connect(), agreed, *happenings):
        before = repr(state)
        event = happening
        if not isinstance(event, Connect | Disconnect):
            try:
                event = decode_message(encode_message(event))
            except InputError:
                continue
        try:
            after, sends = ibsched.step(state, event)
        except (ProtocolError, InputError):
            assert repr(state) == before
            continue
        for send in sends:
            assert decode_message(encode_message(send.message)) == send.message
        together = [*after.queue, *after.urgent, *after.dispatched, *after.done]
        assert sorted(together) == sorted(entry.job.job for entry in arrivals[: after.arrived])
        assert set(after.done) >= set(state.done)
        state = after
