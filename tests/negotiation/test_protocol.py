"""The protocol: scenarios S1 and S2, order, atomic Maps, urgent jobs, reconnects."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from support.negotiation import check_jobs, check_machine, kinds, malleable, moldable, pair, rigid

from aucsched.negotiation.batch import ibsched
from aucsched.negotiation.batch.batch_state import Arrival, with_reports
from aucsched.negotiation.job_records import JobState
from aucsched.negotiation.messages import (
    PROTOCOL_VERSION,
    Code,
    Connect,
    Disconnect,
    Leave,
    NegotiationStart,
    NegotiationStartResponse,
    ProtocolError,
    ResourceOffer,
    ResponseResourceOffer,
    SessionPhase,
    StatusReport,
    Submit,
    UrgentJob,
    UrgentJobResponse,
    Wake,
)
from aucsched.negotiation.pair import StuckError
from aucsched.negotiation.runtime import irtsched
from aucsched.negotiation.runtime.settings import RuntimeSettings
from aucsched.simulation.negotiated.plays import Changeability, esp_play


def arrivals(*jobs: object, at: float = 0.0) -> tuple[Arrival, ...]:
    return tuple(Arrival(time_s=at, job=job) for job in jobs)  # type: ignore[arg-type]


def test_s1_negotiates_until_the_runtime_scheduler_commits() -> None:
    """START/RESPONSE, OFFER 1, RESPONSE with a Map … commit: STATUS_REPORT, OFFER with negotiation=0.

    Nagendra: iRTSched (4.1.2), algorithm 4.
    Nagendra: figures 4.3, 4.4, 5.1 scenario 1.
    Nagendra: figures 6.1, 6.2 control flow.
    The chapter: iHypervisor, iScheduler, figure 1.1.
    """
    both, sent = pair(4, arrivals(rigid("a", 3, 100), rigid("b", 2, 50, priority=99)), ends_when_done=True)
    both.run()
    assert kinds(sent) == [
        "> NEGOTIATION_START",
        "< RESPONSE_NEGOTIATION_START",
        "< OFFER 1.1 negotiation=1",
        # a is mapped, b does not fit. The runtime scheduler alone objects: one of two jobs would start.
        "> MAP 1.1 accept 2",
        "< OFFER 1.2 negotiation=1",
        "> MAP 1.2 accept 2",
        "< OFFER 1.3 negotiation=1",
        "> MAP 1.3 accept 2",
        "< OFFER 1.4 negotiation=1",
        "> MAP 1.4 accept 2",
        "< OFFER 1.5 negotiation=1",
        # At the last attempt both accept; b stays queued.
        "> MAP 1.5 accept 2",
        "< STATUS_REPORT",
        "< OFFER 1.5 negotiation=0",
        "< STATUS_REPORT",
        "< OFFER 2.1 negotiation=1",
        "> MAP 2.1 accept 1",
        "< STATUS_REPORT",
        "< OFFER 2.1 negotiation=0",
        "< STATUS_REPORT",
        "> NEGOTIATION_END",
        "< RESPONSE_NEGOTIATION_END",
    ]
    assert {job: done.start_s for job, done in both.batch.done.items()} == {"a": 0, "b": 100}


def test_s2_an_empty_map_closes_and_a_submission_asks_again() -> None:
    """Nagendra: figure 4.5 scenario 2."""
    both, sent = pair(4)
    both.connect()
    assert kinds(sent)[2:] == ["< OFFER 1.1 negotiation=1", "> MAP 1.1 accept 0"]
    assert both.runtimes[""].phase is SessionPhase.WAITING
    assert both.runtimes[""].next_wake_s() is None  # it waits for a request
    sent.clear()
    both.submit(Submit(jobs=(rigid("a", 2, 10),)))
    assert kinds(sent) == [
        "> REQUEST_RESOURCE_OFFER",
        "< OFFER 2.1 negotiation=1",
        "> MAP 2.1 accept 1",
        "< STATUS_REPORT",
        "< OFFER 2.1 negotiation=0",
    ]
    # A second submission while the queue is empty asks at once; one into a queue does not.
    sent.clear()
    both.submit(Submit(jobs=(rigid("b", 4, 10),)))
    assert kinds(sent)[0] == "> REQUEST_RESOURCE_OFFER"
    sent.clear()
    both.submit(Submit(jobs=(rigid("c", 4, 10),)))
    assert kinds(sent) == []


def test_the_clock_stops_at_an_arrival_into_an_empty_queue() -> None:
    both, sent = pair(4, arrivals(rigid("a", 2, 10), at=25.0), ends_when_done=True)
    both.run()
    ticks = [s for s in sent if isinstance(s.message, StatusReport) and not s.message.reports]
    assert [tick.time_s for tick in ticks] == [25.0]
    assert both.batch.done["a"].start_s == 25.0


def test_the_report_of_what_started_comes_before_any_further_offer() -> None:
    jobs = [rigid(f"j{n}", 1 + n % 3, 20 + n, priority=100 - n) for n in range(12)]
    both, sent = pair(4, arrivals(*jobs), ends_when_done=True)
    both.run()
    for one, following in pairwise(sent):
        if isinstance(following.message, ResourceOffer) and following.message.negotiation == 0:
            assert isinstance(one.message, StatusReport)


def test_accepted_is_not_started() -> None:
    """At the last attempt both accept a Map that cannot start: its job stays queued."""
    both, _ = pair(4, arrivals(rigid("big", 4, 100), rigid("more", 4, 10, priority=99)), max_attempts=2)
    both.connect()
    assert list(both.batch.dispatched) == ["big"]
    assert list(both.batch.queue) == ["more"]


# Messages out of order.


def test_a_message_that_may_not_come_now_is_refused_and_changes_nothing() -> None:
    both, sent = pair(4, arrivals(rigid("a", 2, 10)))
    both.connect()
    runtime, batch = both.runtimes[""], both.batch
    late = next(s.message for s in sent if isinstance(s.message, ResponseResourceOffer))
    offer = next(s.message for s in sent if isinstance(s.message, ResourceOffer))
    agreed = next(s.message for s in sent if isinstance(s.message, NegotiationStartResponse))
    for message in (late, msgspec.structs.replace(late, transaction=9)):
        with pytest.raises(ProtocolError, match="no open transaction"):
            irtsched.step(runtime, message)
    with pytest.raises(ProtocolError, match=r"offer 1\.1 does not follow 1\.1"):
        ibsched.step(batch, offer)
    with pytest.raises(ProtocolError, match="the negotiation is waiting"):
        ibsched.step(batch, agreed)
    for machine in (runtime,):
        with pytest.raises(ProtocolError, match="may not come to a runtime scheduler"):
            irtsched.step(machine, offer)
    with pytest.raises(ProtocolError, match="is not a message to a batch scheduler"):
        ibsched.step(batch, late)
    assert (both.runtimes[""], both.batch) == (runtime, batch)


def test_another_version_is_refused_by_both() -> None:
    both, _ = pair(4)
    old = NegotiationStart(version=PROTOCOL_VERSION + 1, max_attempts=5, interval_s=60.0)
    state, (send,) = irtsched.step(both.runtimes[""], old)
    assert isinstance(send.message, NegotiationStartResponse)
    assert send.message.code is Code.REJECT
    assert "is not" in send.message.text
    assert state.phase is SessionPhase.CLOSED
    batch, _ = ibsched.step(both.batch, Connect(), "")
    with pytest.raises(ProtocolError, match="refuses: version 2 is not 1"):
        ibsched.step(batch, send.message, "")


def test_the_clock_does_not_run_backwards() -> None:
    both, _ = pair(4)
    both.connect()
    state, _ = irtsched.step(both.runtimes[""], Wake(time_s=50.0))
    with pytest.raises(ProtocolError, match="is at 50 s"):
        irtsched.step(state, Wake(time_s=49.0))


# Atomic Maps.


def test_an_atomic_map_starts_whole_or_not_at_all_also_at_the_last_attempt() -> None:
    # c holds two nodes until 100; a and b are mapped to two each where three are free.
    both, _ = pair(5, arrivals(rigid("c", 2, 100)), atomic=True, max_attempts=3)
    both.connect()
    state = both.runtimes[""]
    both.submit(Submit(jobs=(rigid("x", 5, 1),)))  # opens no transaction of its own that starts
    state = both.runtimes[""]
    state = msgspec.structs.replace(
        state, phase=SessionPhase.NEGOTIATING, transaction=7, attempt=3, base=state.machine
    )
    a, b = (msgspec.structs.replace(rigid(job, 2, 10), node_cnt=2) for job in "ab")
    answer = ResponseResourceOffer(
        transaction=7, attempt=3, code=Code.ACCEPT, map=(a, b), atomic=True, queued=2
    )
    after, sends = irtsched.step(state, answer)
    assert list(after.machine.running) == ["c"]
    assert [type(send.message) for send in sends] == [StatusReport, ResourceOffer]
    closing = sends[1].message
    assert isinstance(closing, ResourceOffer)
    assert (closing.negotiation, closing.code, closing.reservations) == (0, Code.REJECT, ())
    # Before the last attempt the offer says what could start, and when the other could.
    before = msgspec.structs.replace(state, attempt=1)
    _, (send,) = irtsched.step(before, msgspec.structs.replace(answer, attempt=1))
    assert isinstance(send.message, ResourceOffer)
    assert [(one.job, one.start_s) for one in send.message.reservations] == [("a", 0.0), ("b", 10.0)]
    # The same Map, not atomic, starts what fits.
    after, _ = irtsched.step(state, msgspec.structs.replace(answer, atomic=False))
    assert list(after.machine.running) == ["c", "a"]
    # And whole where all fits.
    small = msgspec.structs.replace(answer, map=(a, msgspec.structs.replace(rigid("b", 1, 10), node_cnt=1)))
    after, _ = irtsched.step(state, small)
    assert list(after.machine.running) == ["c", "a", "b"]


# Urgent jobs.


def test_an_urgent_job_aborts_a_transaction_whose_attempt_does_not_count() -> None:
    """Nagendra: urgent jobs (4.2, 5.3)."""
    both, _ = pair(4, arrivals(rigid("a", 2, 100), rigid("b", 2, 100)))
    both.connect()
    # Open a transaction by hand: an offer is out, its answer on the way.
    runtime = both.runtimes[""]
    opened = msgspec.structs.replace(
        runtime, phase=SessionPhase.NEGOTIATING, transaction=5, attempt=2, base=runtime.machine
    )
    urgent = UrgentJob(job=rigid("z", 4, 10, priority=1000), queued=1)
    state, sends = irtsched.step(opened, urgent)
    assert [type(send.message) for send in sends] == [UrgentJobResponse, StatusReport]
    assert list(state.machine.running) == ["z"]
    assert list(state.machine.suspended) == ["a", "b"]
    assert (state.phase, state.base) == (SessionPhase.WAITING, None)
    # The answer to the voided offer comes late: it is let pass, and starts nothing.
    late = ResponseResourceOffer(
        transaction=5, attempt=2, code=Code.ACCEPT, map=(rigid("c", 1, 1),), queued=1
    )
    again, sends = irtsched.step(state, late)
    assert sends == ()
    assert again.machine == state.machine
    check_machine(state.machine)


def test_an_urgent_job_is_expected_to_end_as_on_the_nodes_that_it_got() -> None:
    both, _ = pair(4)
    both.connect()
    both.submit(Submit(jobs=(moldable("z", 1, 4, 400),), urgent=True))
    told, runs = both.batch.dispatched["z"].report, both.runtimes[""].machine.running["z"]
    assert (len(told.nodes), told.end_s) == (4, 100.0)
    assert runs.end_s == told.end_s


def test_suspended_jobs_keep_their_progress_and_go_on_first() -> None:
    """Nagendra: constraints of invasive jobs (4.3): urgent."""
    jobs = (*arrivals(rigid("a", 4, 100)), Arrival(time_s=10.0, job=rigid("b", 1, 5)))
    z = Arrival(time_s=30.0, job=rigid("z", 4, 7, priority=1), urgent=True)
    both, _ = pair(4, (*jobs, z), ends_when_done=True)
    both.run()
    done = both.batch.done
    assert (done["z"].start_s, done["z"].end_s) == (30.0, 37.0)
    assert (done["a"].start_s, done["a"].end_s, done["a"].run_time_s) == (0.0, 107.0, 100.0)
    assert done["b"].start_s == 107.0
    assert both.batch.lost_node_s == 0


def test_a_suspended_job_goes_on_where_the_urgent_one_ends_during_a_transaction() -> None:
    jobs = (
        *arrivals(rigid("a", 6, 100)),
        *arrivals(rigid("q", 3, 20, priority=1), at=10.0),
        Arrival(time_s=50.0, job=rigid("z", 4, 1, priority=1), urgent=True),
    )
    both, sent = pair(6, jobs, runtime=RuntimeSettings(transaction_s=1.5), ends_when_done=True)
    both.run()
    done = both.batch.done
    # Two nodes are offered as soon as z runs; it ends while that is talked about, and nothing ends after it.
    z = done["z"]
    assert any(isinstance(s.message, ResourceOffer) and s.time_s == z.start_s for s in sent)
    assert (z.end_s - z.start_s, done["a"].run_time_s) == (1.0, 100.0)
    assert done["a"].end_s == 101.5 + 1.5
    assert done["q"].start_s >= done["a"].end_s


def test_jobs_hold_what_a_periodic_offer_takes_from_them_until_its_transaction_ends() -> None:
    jobs = (
        *arrivals(malleable("m", 1, 2, 400)),
        *arrivals(rigid("q", 3, 400, priority=99), malleable("n", 1, 3, 200, priority=98), at=50.0),
    )
    both, sent = pair(3, jobs, runtime=RuntimeSettings(transaction_s=1.5), ends_when_done=True)
    both.run()
    told, held = 0.0, (0, 0.0)
    counts = []
    for one in (report for s in sent if isinstance(s.message, StatusReport) for report in s.message.reports):
        if one.job == "m":
            now = one.start_s + one.run_time_s
            told += held[0] * (now - held[1])
            held = (one.node_count, now)
            counts.append(one.node_count)
    assert counts[:2] == [2, 1]
    assert told == pytest.approx(both.batch.done["m"].node_s) == 400.0


def test_killed_jobs_are_queued_again_and_their_loss_is_told() -> None:
    z = Arrival(time_s=30.0, job=rigid("z", 4, 7, priority=1), urgent=True)
    settings = RuntimeSettings(urgency="kill")
    both, sent = pair(4, (*arrivals(rigid("a", 4, 100)), z), runtime=settings, ends_when_done=True)
    both.run()
    done = both.batch.done
    assert (done["a"].start_s, done["a"].end_s) == (37.0, 137.0)
    assert both.batch.lost_node_s == 4 * 30.0
    assert [s.message.killed for s in sent if isinstance(s.message, UrgentJobResponse)] == [("a",)]


def test_shrinking_alone_may_refuse_and_the_job_goes_to_the_front() -> None:
    z = Arrival(time_s=30.0, job=rigid("z", 3, 7, priority=1), urgent=True)
    settings = RuntimeSettings(urgency="shrink")
    jobs = arrivals(
        rigid("a", 2, 100), malleable("m", 1, 2, 400, priority=99), rigid("q", 3, 50, priority=98)
    )
    both, _ = pair(4, (*jobs, z), runtime=settings, ends_when_done=True)
    both.run()
    # a keeps its two nodes, m gives one: z needs three. It waits, before q, until a has ended.
    assert both.batch.done["z"].start_s == 100.0
    assert both.batch.done["q"].start_s >= 107.0


def test_a_job_that_is_queued_again_stands_by_its_priority_also_where_another_leaves() -> None:
    both, _ = pair(4, arrivals(rigid("a", 4, 100, priority=900), rigid("b", 4, 100), rigid("c", 4, 100)))
    both.connect()
    assert (list(both.batch.dispatched), list(both.batch.queue)) == (["a"], ["b", "c"])
    told = both.batch.dispatched["a"].report
    reports = (
        msgspec.structs.replace(told, state=JobState.QUEUED),
        msgspec.structs.replace(told, job="b"),
    )
    assert list(with_reports(both.batch, reports, "").queue) == ["a", "c"]


# Connections.


def test_after_a_reconnect_all_jobs_are_told_before_the_first_offer() -> None:
    both, sent = pair(5, arrivals(rigid("a", 2, 100), rigid("b", 1, 100), rigid("c", 5, 10, priority=1)))
    both.connect()
    both.submit(Submit(jobs=(rigid("d", 1, 5, priority=0),)))
    before = both.runtimes[""].machine
    for party in ("batch", "runtime", "both"):
        sent.clear()
        if party != "runtime":
            both.batch, _ = ibsched.step(both.batch, Disconnect(), "")
        if party != "batch":
            both.runtimes[""], _ = irtsched.step(both.runtimes[""], Disconnect(), "")
        both.connect()
        assert [type(one.message).__name__ for one in sent][:4] == [
            "NegotiationStart",
            "NegotiationStartResponse",
            "StatusReport",
            "ResourceOffer",
        ]
        report = sent[2].message
        assert isinstance(report, StatusReport)
        assert report.complete
        assert {entry.job for entry in report.reports} >= {"a", "b"}
        check_jobs(both.batch, both.runtimes[""].machine)
    assert set(before.running) <= set(both.runtimes[""].machine.running)


def test_a_job_of_which_the_runtime_scheduler_knows_nothing_is_queued_again() -> None:
    both, _ = pair(4, arrivals(rigid("a", 2, 100)))
    both.connect()
    assert list(both.batch.dispatched) == ["a"]
    fresh, _ = pair(4)
    both.runtimes[""] = fresh.runtimes[""]  # it lost its state
    both.connect()
    # It was queued, offered and started anew: once.
    assert list(both.batch.dispatched) == ["a"]
    assert list(both.runtimes[""].machine.running) == ["a"]


def test_a_job_that_started_is_not_started_again_by_a_stale_map() -> None:
    both, _ = pair(4, arrivals(rigid("a", 2, 100)))
    both.connect()
    state = both.runtimes[""]
    state = msgspec.structs.replace(
        state, phase=SessionPhase.NEGOTIATING, transaction=7, attempt=5, base=state.machine
    )
    again = msgspec.structs.replace(rigid("a", 2, 100), node_cnt=2)
    answer = ResponseResourceOffer(transaction=7, attempt=5, code=Code.ACCEPT, map=(again,), queued=1)
    after, _ = irtsched.step(state, answer)
    assert after.machine.running == state.machine.running


def test_a_job_that_nothing_will_start_is_an_error_and_no_endless_run() -> None:
    both, _ = pair(4, arrivals(rigid("large", 5, 10)), ends_when_done=True)
    with pytest.raises(StuckError, match="but there are: large"):
        both.run()


def test_an_offer_that_crosses_the_end_is_let_pass() -> None:
    both, sent = pair(4, arrivals(rigid("a", 2, 10)), ends_when_done=True)
    both.connect()
    leaving, _ = ibsched.step(both.batch, Leave(text="enough"), "")
    offer = next(s.message for s in sent if isinstance(s.message, ResourceOffer))
    crossing = msgspec.structs.replace(offer, transaction=9)
    assert ibsched.step(leaving, crossing, "") == (leaving, ())


@pytest.mark.parametrize("mapper", ["greedy", "auction"])
def test_after_each_step_both_parties_know_the_same_sizes_and_ends(mapper: str) -> None:
    """Nagendra: figure 1.1, 4.1 architecture."""
    play = esp_play(16, Changeability(share=0.8), order=4).arrivals[:60]
    both, _ = pair(16, play, mapper=mapper, ends_when_done=True)
    both.connect()
    while both.wake():
        machine = both.runtimes[""].machine
        check_machine(machine)
        check_jobs(both.batch, machine)
        for job, dispatched in both.batch.dispatched.items():
            assert dispatched.report.node_count == machine.running[job].count
            assert dispatched.report.end_s == pytest.approx(machine.running[job].end_s)
    assert both.batch.is_finished


def test_without_any_job_the_negotiation_ends_at_once() -> None:
    both, sent = pair(4, ends_when_done=True)
    both.run()
    assert kinds(sent)[2:] == [
        "< OFFER 1.1 negotiation=1",
        "> MAP 1.1 accept 0",
        "> NEGOTIATION_END",
        "< RESPONSE_NEGOTIATION_END",
    ]
