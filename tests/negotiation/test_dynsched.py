"""dynsched's transition function: every message once, nodes held once, whoever says what again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aucsched.cluster.jobs import Job, Request, RunningJob
from aucsched.cluster.nodes import Node, Resources
from aucsched.cluster.snapshot import Snapshot
from aucsched.negotiation.evolving.dynamic_scheduler import DynamicState, step
from aucsched.negotiation.evolving.fairness import Fairness, at_start, same_for_every_user
from aucsched.negotiation.evolving.iteration import Depths
from aucsched.negotiation.messages import (
    DynRelease,
    DynRequest,
    DynResponse,
    DynState,
    DynStatus,
    NegotiationEnd,
    ProtocolError,
    Wake,
)
from aucsched.negotiation.transport.framing import decode_message, encode_message
from aucsched.negotiation.transport.serve import DynamicCodec

Said = DynRequest | DynRelease | DynStatus


def _state(fairness: Fairness | None = None, jobs: tuple[Job, ...] = ()) -> DynamicState:
    """Four nodes of 4 cores: A holds n0, B holds n1 until 100 s."""
    full = Resources(cores=4)
    running = (
        RunningJob(id="A", nodes={"n0": full}, end_time=1000.0, user="a"),
        RunningJob(id="B", nodes={"n1": full}, end_time=100.0, user="b"),
    )
    nodes = tuple(
        Node(name=f"n{number}", total=full, free=full if number > 1 else Resources(cores=0))
        for number in range(4)
    )
    chosen = fairness or Fairness()
    return DynamicState(
        snapshot=Snapshot(nodes=nodes, running=running, time=0.0, jobs=jobs),
        fairness=chosen,
        depths=Depths(),
        accounts=at_start(chosen, 0.0),
    )


def _say(state: DynamicState, message: Said) -> tuple[DynamicState, DynResponse]:
    decoded = decode_message(encode_message(message))
    assert decoded == message
    state, (send,) = step(state, decoded)
    assert isinstance(send.message, DynResponse)
    assert decode_message(encode_message(send.message)) == send.message
    codec = DynamicCodec(state)
    assert codec.read(codec.write(state)) == state
    return state, send.message


def _check(state: DynamicState) -> None:
    """Every core is free or held once."""
    held: dict[str, int] = {}
    for job in state.snapshot.running:
        for name, use in job.nodes.items():
            held[name] = held.get(name, 0) + use.cores
    for node in state.snapshot.nodes:
        assert held.get(node.name, 0) + node.free.cores == node.total.cores


def test_a_request_is_granted_once() -> None:
    ask = DynRequest(job="A", serial=1, cores=6)
    state, first = _say(_state(), ask)
    assert first.state is DynState.GRANTED
    assert first.nodes == {"n2": 4, "n3": 2}
    assert first.held == {"n0": 4, "n2": 4, "n3": 2}
    again, second = _say(state, ask)
    assert again is state
    assert second == first
    _check(state)


def test_any_subset_is_given_back() -> None:
    """Prabhakaran: tm_dynget, tm_dynfree."""
    state, _ = _say(_state(), DynRequest(job="A", serial=1, cores=6))
    give = DynRelease(job="A", serial=2, nodes={"n0": 3, "n3": 2})
    state, answer = _say(state, give)
    assert answer.state is DynState.RELEASED
    assert answer.held == {"n0": 1, "n2": 4}
    same, answer = _say(state, give)
    assert answer.held == {"n0": 1, "n2": 4}
    assert same is state
    too_much = DynRelease(job="A", serial=3, nodes={"n0": 2})
    state, answer = _say(state, too_much)
    assert (answer.state, answer.held) == (DynState.REFUSED, {"n0": 1, "n2": 4})
    _check(state)


def test_a_request_waits_and_hears_when() -> None:
    state, answer = _say(_state(), DynRequest(job="A", serial=1, nodes=3, cores_per_node=4, timeout_s=200.0))
    assert (answer.state, answer.earliest_s) == (DynState.PENDING, 100.0)
    state, other = _say(state, DynRequest(job="A", serial=2, cores=1))
    assert other.state is DynState.REFUSED
    assert "one request at a time" in other.text
    state, _ = step(state, Wake(time_s=99.0))
    _, answer = _say(state, DynRequest(job="A", serial=1, nodes=3, cores_per_node=4, timeout_s=200.0))
    assert answer.state is DynState.PENDING
    state, _ = step(state, Wake(time_s=100.0))
    state, answer = _say(state, DynRequest(job="A", serial=1, nodes=3, cores_per_node=4, timeout_s=200.0))
    assert answer.state is DynState.GRANTED
    assert sorted(answer.held) == ["n0", "n1", "n2", "n3"]
    _check(state)


def test_a_request_runs_out_of_time() -> None:
    state, _ = _say(_state(), DynRequest(job="A", serial=1, cores=12, timeout_s=50.0))
    state, _ = step(state, Wake(time_s=50.0))
    assert not state.pending
    state, answer = _say(state, DynRequest(job="A", serial=1, cores=12, timeout_s=50.0))
    assert (answer.state, answer.earliest_s) == (DynState.REFUSED, 100.0)
    # B's end comes too late.
    state, _ = step(state, Wake(time_s=150.0))
    assert state.held("A") == {"n0": 4}


def test_a_request_of_a_job_that_ends_is_refused() -> None:
    ask = DynRequest(job="B", serial=1, cores=16, timeout_s=500.0)
    state, answer = _say(_state(), ask)
    assert answer.state is DynState.PENDING
    state, _ = step(state, Wake(time_s=100.0))
    assert not state.pending
    _, answer = _say(state, ask)
    assert (answer.state, answer.text, answer.held) == (DynState.REFUSED, "the job has ended", {})


def test_refused_at_once_without_a_timeout() -> None:
    state, answer = _say(_state(), DynRequest(job="A", serial=1, cores=9))
    assert (answer.state, answer.earliest_s) == (DynState.REFUSED, 100.0)
    assert not state.pending


def test_a_release_serves_who_waits() -> None:
    state, answer = _say(_state(), DynRequest(job="B", serial=1, cores=9, timeout_s=90.0))
    assert answer.state is DynState.PENDING
    state, _ = _say(state, DynRelease(job="A", serial=1, nodes={"n0": 2}))
    state, answer = _say(state, DynRequest(job="B", serial=1, cores=9, timeout_s=90.0))
    assert answer.state is DynState.GRANTED
    _check(state)


def test_a_job_that_gives_back_everything_has_ended() -> None:
    state, answer = _say(_state(), DynRelease(job="B", serial=1, nodes={"n1": 4}))
    assert (answer.state, answer.held) == (DynState.RELEASED, {})
    assert [job.id for job in state.snapshot.running] == ["A"]
    state, answer = _say(state, DynRequest(job="B", serial=2, cores=1))
    assert answer.state is DynState.REFUSED
    assert _say(state, DynStatus(job="B"))[1].state is DynState.KNOWN


def test_what_a_job_holds_is_told_after_a_restart() -> None:
    state, _ = _say(_state(), DynRequest(job="A", serial=7, cores=2))
    _, answer = _say(state, DynStatus(job="A"))
    assert (answer.serial, answer.held) == (7, {"n0": 4, "n2": 2})
    assert _say(state, DynStatus(job="nobody"))[1].state is DynState.REFUSED


def test_old_numbers_and_foreign_messages_are_refused() -> None:
    state, _ = _say(_state(), DynRequest(job="A", serial=2, cores=1))
    with pytest.raises(ProtocolError):
        step(state, DynRequest(job="A", serial=1, cores=1))
    with pytest.raises(ProtocolError):
        step(state, NegotiationEnd())
    with pytest.raises(ProtocolError):
        step(replace(state, snapshot=replace(state.snapshot, time=5.0)), Wake(time_s=4.0))


def test_fairness_holds_for_applications() -> None:
    waiting = Job(id="C", priority=1, request=Request(cores=12), time_limit_s=50, user="c")
    for limit, how in ((899, DynState.REFUSED), (900, DynState.GRANTED)):
        state = _state(same_for_every_user(limit, interval_s=10_000), jobs=(waiting,))
        _, answer = _say(state, DynRequest(job="A", serial=1, cores=4))
        assert answer.state is how


_MESSAGES = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.sampled_from("ABC"), st.integers(1, 9), st.sampled_from([0.0, 30.0])),
        st.tuples(st.just("give"), st.sampled_from("ABC"), st.integers(0, 3), st.integers(1, 4)),
        st.tuples(st.just("wake"), st.integers(0, 60)),
        st.tuples(st.just("again"), st.sampled_from("ABC")),
    ),
    max_size=25,
)


@settings(max_examples=60)
@given(messages=_MESSAGES)
def test_no_core_is_lost_or_held_twice(messages: list[tuple[object, ...]]) -> None:
    waiting = Job(id="C", priority=1, request=Request(cores=6), time_limit_s=50, user="c")
    state = _state(jobs=(waiting,))
    said: dict[str, Said] = {}
    for message in messages:
        if message[0] == "wake":
            state, _ = step(state, Wake(time_s=state.now_s + int(str(message[1]))))
            _check(state)
            continue
        job = str(message[1])
        last = state.answers.get(job)
        serial = 1 if last is None else last.serial + 1
        if message[0] == "ask":
            words: Said = DynRequest(
                job=job, serial=serial, cores=int(str(message[2])), timeout_s=float(str(message[3]))
            )
        elif message[0] == "give":
            node, cores = f"n{message[2]}", int(str(message[3]))
            words = DynRelease(job=job, serial=serial, nodes={node: cores})
        else:
            words = said.get(job, DynStatus(job=job))
        if not isinstance(words, DynStatus) and last is not None and words.serial < last.serial:
            continue
        before = state
        state, answer = _say(state, words)
        _check(state)
        assert answer.held == state.held(job)
        if isinstance(words, DynStatus) or (last is not None and words.serial == last.serial):
            assert state == before
        elif answer.state is not DynState.REFUSED:
            said[job] = words
