"""The mappers: algorithms 1-3 and the decision logic, the auction's rules; its Maps are in test_engine.py."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.negotiation import malleable, moldable, rigid

from aucsched.cluster.nodes import Switch
from aucsched.negotiation.batch.auction_map import auction_map
from aucsched.negotiation.batch.batch_state import relaxed_range
from aucsched.negotiation.batch.mapping import (
    BatchSettings,
    Dispatched,
    LastAttempt,
    Mapper,
    MapRequest,
    Place,
    Slot,
    greedy_map,
    objective_decision,
    paper_decision,
    try_schedule,
)
from aucsched.negotiation.job_records import JobReport, JobState, MapEntry, NodeCount
from aucsched.negotiation.messages import Code
from aucsched.negotiation.runtime.share import Steps, step_size
from aucsched.simulation.workloads.named_clusters import node_names

MAPPERS = pytest.mark.parametrize("mapper", [greedy_map, auction_map])


def place(nodes: int) -> Place:
    return Place.of({"": node_names(nodes)})


def request(  # noqa: PLR0913 - what a test may set
    *jobs: MapEntry | tuple[MapEntry, int],
    nodes: int,
    idle: int | None = None,
    promised: dict[str, int] | None = None,
    attempt: int = 1,
    depth: int = 100,
    running: dict[str, Dispatched] | None = None,
    now_s: float = 0.0,
    switches: tuple[Switch, ...] | None = None,
    patience_s: float = 0.0,
) -> MapRequest:
    """Return a request; a job may come with how often its range was relaxed."""
    queue = []
    for job in jobs:
        entry, times = job if isinstance(job, tuple) else (job, 0)
        queue.append((entry, relaxed_range(entry, BatchSettings(), times)))
    return MapRequest(
        queue=queue,
        settings=BatchSettings(depth=depth, switches=switches, patience_s=patience_s),
        place=place(nodes),
        idle=(1 << nodes) - 1 if idle is None else idle,
        promised=promised or {},
        later={},
        now_s=now_s,
        attempt=attempt,
        running=running or {},
    )


def mapped(slots: list[Slot]) -> dict[str, int]:
    return {slot.entry.job: slot.count for slot in slots if slot.nodes}


# Ranges.


def test_a_range_opens_by_steps_and_the_last_attempt_reaches_the_minimum() -> None:
    job, settings = malleable("m", 4, 16, 100), BatchSettings()
    assert relaxed_range(job, settings, 0) == NodeCount(min=13, max=16)
    assert [relaxed_range(job, settings, times).min for times in range(6)] == [13, 10, 7, 4, 4, 4]
    assert relaxed_range(malleable("s", 1, 2, 100), settings, 0) == NodeCount(min=1, max=2)
    for least, most, attempts in product(range(1, 12), range(1, 25), range(1, 9)):
        if least <= most:
            opened = relaxed_range(
                malleable("m", least, most, 1), BatchSettings(max_attempts=attempts), attempts - 1
            )
            assert opened.min == least


def test_algorithm_1_as_printed_relaxes_by_the_quotient_and_a_step_of_0_is_1() -> None:
    """Nagendra, p. 41: "If step size in the above calculation comes up as 0 then we will set it as 1".

    Nagendra: the step of algorithms 1, 3 and 5 (5.2.1, 5.2.2).
    """
    printed = BatchSettings(steps="printed")
    small, wide = malleable("s", 1, 4, 100), malleable("w", 2, 16, 100)
    assert [relaxed_range(small, printed, times).min for times in range(5)] == [3, 2, 1, 1, 1]
    assert [relaxed_range(wide, printed, times).min for times in range(5)] == [14, 12, 10, 8, 6]


# Algorithms 1-3.


def test_algorithm_1_has_one_record_a_job_in_queue_order() -> None:
    """Nagendra: iBSched (4.1.1), algorithm 1."""
    slots = greedy_map(request(rigid("a", 3, 1), rigid("b", 4, 1), rigid("c", 1, 1), nodes=5))
    assert [slot.entry.job for slot in slots] == ["a", "b", "c"]
    assert mapped(slots) == {"a": 3, "c": 1}


def test_a_job_with_a_promise_keeps_it_and_takes_nothing_else() -> None:
    slots = greedy_map(
        request(rigid("a", 2, 1), rigid("b", 2, 1), nodes=6, idle=0b11, promised={"a": 0b110000})
    )
    assert {slot.entry.job: slot.nodes for slot in slots} == {"a": 0b110000, "b": 0b11}


def test_beyond_the_depth_only_jobs_that_fit_are_forwarded() -> None:
    jobs = [rigid("a", 9, 1), rigid("b", 9, 1), rigid("c", 9, 1), rigid("d", 2, 1)]
    slots = greedy_map(request(*jobs, nodes=9, idle=0b11, depth=2))
    assert [slot.entry.job for slot in slots] == ["a", "b", "d"]


@pytest.mark.parametrize(("steps", "given"), [("ceiling", True), ("printed", False)])
def test_algorithm_3_as_printed_leaves_a_job_of_a_small_range_as_it_is(steps: Steps, *, given: bool) -> None:
    """Its quotient has no sentence about 0: only algorithm 1's has one.

    Nagendra: the step of algorithms 1, 3 and 5 (5.2.1, 5.2.2).
    """
    small = malleable("small", 1, 4, 1)
    slots = [
        Slot(small, NodeCount(min=1, max=4), nodes=0b1111),
        Slot(rigid("new", 1, 1), NodeCount(min=1, max=1)),
    ]
    queue = [(slot.entry, slot.range) for slot in slots]
    settings, promised = BatchSettings(depth=9, steps=steps), {"small": 0b1111}
    offer = MapRequest(
        queue=queue,
        settings=settings,
        place=place(4),
        idle=0,
        promised=promised,
        later={},
        now_s=0,
        attempt=1,
    )
    slots = greedy_map(offer)
    assert mapped(slots) == ({"small": 3, "new": 1} if given else {"small": 4})


def test_algorithm_3_shrinks_mapped_jobs_in_increasing_priority_by_a_step() -> None:
    """Nagendra: algorithm 3, try schedule."""
    high, low = malleable("high", 2, 12, 1), malleable("low", 2, 12, 1)
    slots = [
        Slot(high, NodeCount(min=2, max=12), nodes=0b111111111111),
        Slot(low, NodeCount(min=2, max=12), nodes=0b111111111111 << 12),
        Slot(rigid("new", 3, 1), NodeCount(min=3, max=3)),
    ]
    free, step = {"": 0}, partial(step_size, attempts=5, steps="ceiling")
    lost = try_schedule(slots[2], slots, free, step)
    # low gives its step of ⌈10/5⌉ = 2, high one of 2; the one node more than needed stays free.
    assert [slot.count for slot in slots] == [10, 10, 3]
    assert (free[""].bit_count(), lost) == (1, 0)
    slots[2].nodes, free[""] = 0, 0b1 << 40
    slots[2].range = NodeCount(min=2, max=3)
    try_schedule(slots[2], slots, free, step)
    # One more is missing: low gives, high is not asked.
    assert [slot.count for slot in slots] == [10, 8, 2]


def test_best_fit_maps_a_reserved_job_by_shrinking_and_rescans_the_rest() -> None:
    """Nagendra: algorithm 2, best fit."""
    slots = greedy_map(
        request((moldable("m", 2, 10, 1), 4), rigid("r", 2, 1), rigid("skipped", 1, 1), nodes=10, depth=1)
    )
    assert mapped(slots) == {"m": 8, "r": 2}
    slots = greedy_map(
        request((moldable("m", 1, 12, 1), 4), rigid("r", 2, 1), rigid("t", 1, 1), nodes=12, depth=1)
    )
    # m's step is ⌈11/5⌉ = 3: r takes two, the third goes to t, which had been beyond the depth.
    assert mapped(slots) == {"m": 9, "r": 2, "t": 1}


# Decisions.


def _slots(*flags: bool) -> list[Slot]:
    return [
        Slot(rigid(f"j{n}", 1, 1, priority=100 - n), NodeCount(min=1, max=1), nodes=int(flag) << n)
        for n, flag in enumerate(flags)
    ]


def _decide(slots: list[Slot], memory: LastAttempt, attempt: int = 1) -> Code:
    asked = request(*(slot.entry for slot in slots), nodes=16, attempt=attempt)
    return paper_decision(asked, slots, memory)


def test_the_papers_decision() -> None:
    """Nagendra: decision of the batch scheduler (5.2.1)."""
    accept, reject = Code.ACCEPT, Code.REJECT
    none = LastAttempt()
    # (a) the front job, and a third of the jobs; waived past half the attempts.
    assert _decide(_slots(True, True, False), none) is accept
    assert _decide(_slots(False, True, True), none) is reject
    assert _decide(_slots(True, False, False), none) is accept
    assert _decide(_slots(True, False, False, False), none) is reject
    assert _decide(_slots(True, False, False, False), none, 2) is reject
    assert _decide(_slots(True, False, False, False), none, 3) is accept
    # (b) after an accept: the objective must not fall, (a) does not count any more.
    assert _decide(_slots(False, True, False, False), LastAttempt(code=accept, objective=99)) is accept
    assert _decide(_slots(False, True, False, False), LastAttempt(code=accept, objective=100)) is reject
    # (c) after a reject: reject if it fell, else accept unless (a).
    assert _decide(_slots(True, True, False), LastAttempt(code=reject, objective=200)) is reject
    assert _decide(_slots(True, True, False), LastAttempt(code=reject, objective=199)) is accept
    assert _decide(_slots(False, True, True), LastAttempt(code=reject, objective=0)) is reject


def test_a_third_of_the_queue_is_more_than_a_third_of_the_forwarded() -> None:
    slots = _slots(True, False)
    asked = request(*(rigid(f"j{n}", 1, 1) for n in range(9)), nodes=16)
    assert asked.settings.third_of == "forwarded"
    assert paper_decision(asked, slots, LastAttempt()) is Code.ACCEPT
    of_the_queue = replace(asked, settings=replace(asked.settings, third_of="queue"))
    assert paper_decision(of_the_queue, slots, LastAttempt()) is Code.REJECT


def test_relaxing_stops_once_more_jobs_are_mapped_after_an_accept() -> None:
    one, two = _slots(True, False), _slots(True, True)
    memory = LastAttempt().after(Code.REJECT, one)
    assert memory.after(Code.ACCEPT, two).relaxes
    accepted = memory.after(Code.ACCEPT, one)
    assert accepted.after(Code.ACCEPT, one).relaxes
    assert not accepted.after(Code.ACCEPT, two).relaxes


def test_the_objective_decision_talks_on_while_it_can_gain() -> None:
    asked = request(moldable("m", 2, 8, 1), rigid("r", 4, 1), nodes=8)
    slots = [
        Slot(moldable("m", 2, 8, 1), NodeCount(min=6, max=8), nodes=0xFF),
        Slot(rigid("r", 4, 1), NodeCount(min=4, max=4)),
    ]
    assert objective_decision(asked, slots, LastAttempt()) is Code.REJECT
    slots[0].entry = rigid("m", 8, 1)
    assert objective_decision(asked, slots, LastAttempt()) is Code.ACCEPT


# The auction.


def test_relaxation_widens_what_a_job_bids_on() -> None:
    job = moldable("m", 2, 12, 1)
    for times, won in ((0, {}), (1, {"m": 8}), (4, {"m": 8})):
        assert mapped(auction_map(request((job, times), nodes=16, idle=0xFF))) == won


def test_the_auction_fills_the_nodes_that_queue_order_leaves_idle() -> None:
    jobs = [rigid("a", 3, 100), rigid("b", 3, 100), rigid("c", 5, 100), rigid("d", 2, 100)]
    assert mapped(greedy_map(request(*jobs, nodes=8))) == {"a": 3, "b": 3, "d": 2}
    jobs[3] = rigid("d", 4, 100)
    assert sum(mapped(greedy_map(request(*jobs, nodes=8))).values()) == 6
    assert sum(mapped(auction_map(request(*jobs, nodes=8, patience_s=1e6))).values()) == 8


def test_promised_nodes_are_auctioned_with_the_idle_ones_and_kept_by_their_job() -> None:
    jobs = [rigid("a", 2, 10), rigid("b", 2, 10)]
    slots = auction_map(request(*jobs, nodes=4, idle=0b0011, promised={"b": 0b1100}))
    assert {slot.entry.job: slot.nodes for slot in slots} == {"a": 0b0011, "b": 0b1100}


def _away(job: str, names: tuple[str, ...], end_s: float) -> Dispatched:
    nodes = len(names)
    report = JobReport(
        job=job,
        state=JobState.RUNNING,
        node_count=nodes,
        nodes=names,
        start_s=0,
        run_time_s=0,
        end_s=end_s,
    )
    return Dispatched(peer="", entry=rigid(job, nodes, end_s), report=report)


def test_a_long_job_that_would_end_after_everybody_else_goes_first() -> None:
    short = [rigid(f"s{n}", 1, 10, priority=50 - n) for n in range(8)]
    late = rigid("late", 1, 1000, priority=1)
    assert "late" in mapped(auction_map(request(*short, late, nodes=2)))
    # With much more work ahead it has time.
    work = [rigid(f"w{n}", 1, 900, priority=90 - n) for n in range(20)]
    assert "late" not in mapped(auction_map(request(*work, *short, late, nodes=2)))


def test_a_job_that_has_waited_is_guarded() -> None:
    """Wide needs all four nodes at 100: what runs past that time may not start, what ends before may."""
    running = {"r": _away("r", ("n1", "n2"), 100.0)}
    fill = [rigid(f"f{n}", 4, 10_000, priority=1) for n in range(3)]
    jobs = [
        rigid("wide", 4, 50, priority=90),
        rigid("long", 2, 200, priority=80),
        rigid("short", 1, 90, priority=70),
    ]
    asked = {"nodes": 4, "idle": 0b1100, "running": running}
    assert mapped(auction_map(request(*jobs, *fill, **asked))) == {"short": 1}  # type: ignore[arg-type]
    assert mapped(auction_map(request(*jobs, *fill, **asked, patience_s=1e6))) == {"long": 2}  # type: ignore[arg-type]


@MAPPERS
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_map_holds_no_node_twice_and_no_count_out_of_range(mapper: Mapper, data: st.DataObject) -> None:
    nodes = data.draw(st.integers(1, 12))
    queue: list[tuple[MapEntry, int]] = []
    for number in range(data.draw(st.integers(1, 8))):
        least = data.draw(st.integers(1, nodes))
        most = data.draw(st.integers(least, nodes))
        make = data.draw(st.sampled_from([malleable, moldable]))
        entry = make(
            f"j{number}", least, most, data.draw(st.integers(1, 500)), priority=data.draw(st.integers(0, 9))
        )
        queue.append((entry, data.draw(st.integers(0, 5))))
    queue.sort(key=lambda item: -item[0].priority)
    idle = data.draw(st.integers(0, (1 << nodes) - 1))
    depth = data.draw(st.integers(1, 4))
    asked = request(*queue, nodes=nodes, idle=idle, depth=depth, attempt=data.draw(st.integers(1, 5)))
    slots = mapper(asked)
    seen = 0
    for slot in slots:
        assert not seen & slot.nodes
        seen |= slot.nodes
        assert not slot.nodes or slot.range.min <= slot.count <= slot.range.max
    assert not seen & ~idle
    names = [slot.entry.job for slot in slots]
    assert len(names) == len(set(names))
    assert sum(not slot.nodes for slot in slots) <= depth
    if depth:
        assert slots
