"""Algorithm 5 in parts: steps, classes, dependencies, holders, decisions, shares, urgent room."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from support.negotiation import check_machine, machine, malleable, moldable, rigid

from aucsched.cluster.errors import InputError
from aucsched.negotiation.job_records import MapEntry
from aucsched.negotiation.messages import Code
from aucsched.negotiation.runtime.runtime_machine import (
    MachineState,
    advanced,
    empty_machine,
    highest,
    lowest,
    nearest,
    places,
    started,
)
from aucsched.negotiation.runtime.settings import RuntimeSettings
from aucsched.negotiation.runtime.share import (
    Shrinking,
    ShrinkOrder,
    Steps,
    full_transformation,
    partial_transformation,
    shrunk_count,
    step_size,
)
from aucsched.negotiation.runtime.tentative import TentativeState, plan, update_dependencies
from aucsched.negotiation.runtime.transform import resumed, start_urgent, transform


def running(state: MachineState, *jobs: tuple[MapEntry, int], **marks: str) -> MachineState:
    """Return the machine with jobs started on so many nodes each; ``name=waiting`` marks whom it grew for."""
    draft = TentativeState(state)
    for entry, count in jobs:
        draft.start(entry, count)
    after = draft.committed()
    records = {
        name: msgspec.structs.replace(job, grown_for=marks.get(name, job.grown_for))
        for name, job in after.running.items()
    }
    return msgspec.structs.replace(after, running=records)


def counts(state: MachineState) -> dict[str, int]:
    return {name: job.count for name, job in state.running.items()}


def test_a_step_is_at_least_one_and_the_last_attempt_reaches_the_minimum() -> None:
    assert [step_size(span, 5, "ceiling") for span in (0, 1, 4, 5, 6, 12, 14)] == [1, 1, 1, 1, 2, 3, 3]
    assert [shrunk_count(16, 4, attempt, 5, "ceiling") for attempt in range(1, 6)] == [13, 10, 7, 4, 4]
    assert [shrunk_count(2, 1, attempt, 5, "ceiling") for attempt in range(1, 6)] == [1, 1, 1, 1, 1]
    for count in range(1, 40):
        for least in range(1, count + 1):
            for attempts in range(1, 9):
                assert shrunk_count(count, least, attempts, attempts, "ceiling") == least


def test_algorithm_5_as_printed_shrinks_by_the_quotient() -> None:
    """A job with a range below the attempts keeps its nodes, also in a partial transformation.

    Nagendra: the step of algorithms 1, 3 and 5 (5.2.1, 5.2.2).
    """
    assert [step_size(span, 5, "printed") for span in (0, 1, 4, 5, 6, 12, 14)] == [0, 0, 0, 1, 1, 2, 2]
    assert [shrunk_count(16, 4, attempt, 5, "printed") for attempt in range(1, 6)] == [14, 12, 10, 8, 6]
    assert {shrunk_count(5, 1, attempt, 5, "printed") for attempt in range(1, 6)} == {5}
    small, wide = malleable("small", 1, 5, 100), malleable("wide", 1, 8, 100)
    state = running(machine(13), (small, 5), (wide, 8))
    room = {
        steps: Shrinking(TentativeState(state), 5, 5, "priority", steps).can_give("")
        for steps in get_args(Steps)
    }
    assert room == {"ceiling": 4 + 7, "printed": 5}
    assert counts(partial_transformation(state, 5, "printed")) == {"small": 5, "wide": 7}
    uneven = running(machine(6), (small, 5), (malleable("other", 1, 4, 100), 1))
    assert counts(partial_transformation(uneven, 5, "printed")) == {"small": 5, "other": 1}
    assert counts(partial_transformation(uneven, 5)) == {"small": 4, "other": 1}


def test_node_sets() -> None:
    nodes = 0b1011_0110
    assert places(nodes) == [1, 2, 4, 5, 7]
    assert lowest(nodes, 2) == 0b110
    assert highest(nodes, 2) == 0b1010_0000
    assert lowest(nodes, 9) == nodes
    assert nearest(0b1100_0011, 0b0011_0000, 2) == 0b1100_0000
    assert nearest(0b1000_0101, 0b0001_0000, 1) == 0b0100


def test_work_done_follows_each_change_of_size() -> None:
    state = running(machine(8), (malleable("m", 2, 8, 100), 2))
    state, ended = advanced(state, 10.0)
    assert ended == ()
    draft = TentativeState(state)
    draft.resize("m", 8)
    state = draft.committed()
    # 90 s of two nodes are left: 22.5 s of eight.
    assert state.running["m"].end_s == 32.5
    state, _ = advanced(state, 20.0)
    draft = TentativeState(state)
    draft.resize("m", 4)
    state = draft.committed()
    assert state.running["m"].end_s == 45.0
    state, ended = advanced(state, 45.0)
    assert ended == ("m",)
    assert state.done["m"].node_s == pytest.approx(200)
    assert state.idle.bit_count() == 8


def test_expected_ends_follow_the_speedup_model() -> None:
    state = running(machine(8), (malleable("m", 1, 8, 100, speedup="amdahl:0.5"), 1))
    draft = TentativeState(state)
    draft.resize("m", 8)
    assert draft.committed().running["m"].end_s == pytest.approx(100 * (0.5 + 0.5 / 8))


def test_the_plan_delays_no_job_before_another() -> None:
    state = running(machine(4), (rigid("r", 3, 100), 3))
    wide, short, long = rigid("w", 4, 50), rigid("s", 1, 100), rigid("l", 1, 101)
    draft = TentativeState(state)
    reserved = plan(draft, [wide, long, short], {})
    assert list(draft.starts) == ["s"]
    assert [(one.entry.job, one.start_s, one.end_s) for one in reserved] == [("w", 100, 150), ("l", 150, 251)]


def test_all_jobs_that_end_together_are_dependencies_or_one_of_them() -> None:
    first, second = malleable("a", 2, 3, 100), malleable("b", 1, 4, 100)
    state = running(machine(3), (first, 2), (second, 1))
    for mode, holders in (("all", {"a": "w", "b": "w"}), ("one", {"a": "w"})):
        draft = TentativeState(state)
        reserved = plan(draft, [rigid("w", 3, 10)], {})
        update_dependencies(draft, reserved, mode)  # type: ignore[arg-type]
        assert draft.holds_for == holders


def test_a_dependency_is_cleared_once_its_job_starts() -> None:
    state = running(machine(4), (malleable("a", 1, 4, 100), 2), a="w")
    draft = TentativeState(state)
    reserved = plan(draft, [rigid("w", 2, 10)], {})
    update_dependencies(draft, reserved, "all")
    assert draft.grown_for == {}
    assert draft.committed().running["a"].grown_for == ""


def test_shrinking_goes_by_class_then_by_rising_priority() -> None:
    """Nagendra: algorithm 5."""
    jobs = [
        (malleable("other", 1, 4, 100, priority=1), 4),
        (malleable("none-high", 1, 4, 100, priority=5), 4),
        (malleable("none-low", 1, 4, 100, priority=2), 4),
        (malleable("own", 1, 4, 100, priority=9), 4),
    ]
    state = running(machine(16), *jobs, other="x", own="w")
    order = []
    for need in range(1, 13):
        draft = TentativeState(state)
        assert Shrinking(draft, 5, 5).take("", need, "w") == need
        order.append(min((draft.count[name], name) for name in draft.count if draft.count[name] < 4)[1])
        shrunk = [name for name in ("own", "none-low", "none-high", "other") if draft.count[name] < 4]
        assert shrunk == ["own", "none-low", "none-high", "other"][: -(-need // 3)]
    # For a holder's expansion its own class gives nothing.
    draft = TentativeState(state)
    assert Shrinking(draft, 5, 5).take("", 12, "w", spare=("own",)) == 9
    assert draft.count["own"] == 4


def test_an_attempt_takes_no_more_than_its_steps() -> None:
    state = running(machine(16), (malleable("m", 4, 16, 100), 16))
    given = [Shrinking(TentativeState(state), attempt, 5).can_give("") for attempt in range(1, 6)]
    assert given == [3, 6, 9, 12, 12]


def test_a_reserved_job_starts_on_what_running_ones_give() -> None:
    """The chapter: virtual offers.

    Nagendra: algorithm 5.
    """
    state = running(machine(8), (malleable("m", 2, 8, 100), 8))
    settings = RuntimeSettings()
    assert transform(state, [rigid("w", 5, 10)], settings, attempt=1).started == ()
    done = transform(state, [rigid("w", 5, 10)], settings, attempt=3)
    assert done.started == ("w",)
    assert counts(done.machine) == {"m": 3, "w": 5}
    assert counts(state) == {"m": 8}  # the state at the beginning stays what it is
    check_machine(done.machine)


def test_a_holder_is_expanded_so_that_its_waiting_job_starts_earlier() -> None:
    # w needs all eight nodes. h ends at 60, r at 60, x at 100: w depends on x.
    jobs = [(malleable("h", 2, 6, 90), 3), (malleable("x", 1, 4, 300), 3), (rigid("r", 2, 60), 2)]
    state = running(machine(8), *jobs)
    done = transform(state, [rigid("w", 8, 10)], RuntimeSettings(), attempt=5)
    # x takes a node from h, which was expanded for nobody: x ends at 75, h at 90, and so w starts at 90.
    assert counts(done.machine) == {"h": 2, "x": 4, "r": 2}
    assert done.machine.running["x"].grown_for == "w"
    assert [(entry.node_count, entry.start_s) for entry in done.reservations] == [(0, 90.0)]
    assert done.machine.running["h"].holds_for == "w"
    # The thesis leaves the last backfilling out: the same sizes, the promise made before them.
    early = transform(state, [rigid("w", 8, 10)], RuntimeSettings(last_backfill=False), attempt=5)
    assert counts(early.machine) == counts(done.machine)
    assert early.reservations[0].start_s == 100.0
    check_machine(done.machine)


def test_the_runtime_scheduler_rejects_while_something_could_use_idle_nodes() -> None:
    settings = RuntimeSettings()
    # One of two jobs starts: rejected up to half the attempts, then not.
    both = [rigid("a", 3, 10), rigid("b", 4, 10)]
    assert not transform(machine(4), both, settings, attempt=2).is_accepted
    assert transform(machine(4), both, settings, attempt=3).is_accepted
    # An idle node that a rigid load cannot use is no reason: the paper's bare rule would say no.
    assert transform(machine(4), [rigid("a", 2, 10), rigid("c", 1, 10)], settings, attempt=1).is_accepted
    # One that a running malleable job could use is.
    state = running(machine(4), (malleable("m", 1, 4, 50), 1))
    done = transform(state, [rigid("a", 1, 10), rigid("b", 1, 10)], settings, attempt=1)
    assert not done.is_accepted
    assert transform(state, [rigid("a", 1, 10), rigid("b", 1, 10)], settings, attempt=5).is_accepted


def test_after_its_own_rejection_it_rejects_until_more_jobs_start() -> None:
    """Nagendra: decision of the runtime scheduler (5.2.2)."""
    jobs = [rigid("a", 2, 10), rigid("b", 2, 10)]
    settings = RuntimeSettings()
    assert transform(machine(4), jobs, settings, attempt=2, rejected_with=1).is_accepted
    assert not transform(machine(4), jobs, settings, attempt=2, rejected_with=2).is_accepted
    assert transform(machine(4), jobs, settings, attempt=5, rejected_with=2).is_accepted


def test_idle_nodes_are_shared_equally_among_malleable_jobs() -> None:
    jobs = [(malleable("a", 1, 8, 100), 1), (malleable("b", 1, 3, 100), 2), (moldable("c", 1, 8, 100), 1)]
    state = running(machine(12), *jobs)
    done = transform(state, [malleable("n", 1, 4, 100)], RuntimeSettings(), attempt=5)
    assert done.idle.bit_count() == 12 - 4 - 4  # offered before they are shared
    assert counts(done.machine) == {"a": 4, "b": 3, "c": 1, "n": 4}


def test_a_full_transformation_prefers_holders_then_speedup() -> None:
    """Nagendra: runtime transformation, periodic and partial (5.2.2)."""
    flat, steep = malleable("flat", 1, 8, 100, speedup="amdahl:0.5"), malleable("steep", 1, 8, 100)
    state = running(machine(8), (flat, 3), (steep, 1))
    assert counts(full_transformation(state)) == {"flat": 1, "steep": 7}
    held = {
        name: msgspec.structs.replace(job, holds_for="w") if name == "flat" else job
        for name, job in state.running.items()
    }
    holding = msgspec.structs.replace(state, running=held)
    assert counts(full_transformation(holding)) == {"flat": 7, "steep": 1}


def test_a_partial_transformation_only_shrinks_by_one_step_to_the_equal_share() -> None:
    state = running(
        machine(16), (malleable("a", 1, 12, 100), 12), (malleable("b", 1, 8, 100), 2), (rigid("r", 2, 9), 2)
    )
    after = partial_transformation(state, 5)
    assert counts(after) == {"a": 9, "b": 2, "r": 2}
    assert counts(partial_transformation(after, 5)) == {"a": 7, "b": 2, "r": 2}


def test_room_for_urgent_jobs_by_shrinking_then_by_the_lowest_priorities() -> None:
    jobs = [
        (malleable("m", 1, 6, 100, priority=3), 6),
        (rigid("low", 4, 100, priority=1), 4),
        (rigid("mid", 4, 100, priority=2), 4),
        (rigid("high", 2, 100, priority=9), 2),
    ]
    state = running(machine(16), *jobs)
    _, made, _ = start_urgent(state, rigid("z", 5, 10), "suspend")
    assert (made.code, made.shrunk, made.suspended) == (Code.ACCEPT, ("m",), ())
    after, made, _ = start_urgent(state, rigid("z", 9, 10), "suspend")
    assert (made.shrunk, made.suspended, made.killed) == (("m",), ("low",), ())
    check_machine(after)
    _, made, losses = start_urgent(state, rigid("z", 16, 10), "kill")
    assert (made.suspended, made.killed) == ((), ("low", "mid", "m", "high"))
    assert [loss.job for loss in losses] == ["low", "mid", "m", "high"]
    assert start_urgent(state, rigid("z", 9, 10), "shrink")[1].code is Code.REJECT
    assert start_urgent(state, rigid("z", 17, 10), "kill")[0] is state
    fixed = msgspec.structs.replace(rigid("low", 4, 100, priority=1), can_suspend=False)
    state = running(machine(6), (fixed, 4))
    assert start_urgent(state, rigid("z", 3, 10), "suspend")[1].code is Code.REJECT
    # Nobody takes nodes from an urgent job.
    first, *_ = start_urgent(machine(4), rigid("y", 3, 10), "kill")
    assert start_urgent(first, rigid("z", 3, 10), "kill")[1].code is Code.REJECT


def test_suspended_jobs_wait_for_their_nodes_and_go_on_in_order() -> None:
    state = running(machine(8), (rigid("a", 4, 100), 4), (malleable("m", 1, 4, 400), 4))
    state, _ = advanced(state, 25.0)
    state, *_ = start_urgent(state, rigid("z", 8, 10), "suspend")
    assert resumed(state)[1] == ()
    state, _ = advanced(state, 35.0)
    state, back = resumed(state)
    assert set(back) == {"a", "m"}
    assert state.running["a"].end_s == 110.0
    assert state.running["m"].held_s == 25.0


def test_partitions_do_not_share_nodes() -> None:
    names = ("a1", "a2", "b1", "b2")
    state = empty_machine(names, {"a": names[:2], "b": names[2:]})
    jobs = [
        rigid("x", 2, 10, partition="a"),
        rigid("y", 1, 10, partition="a"),
        rigid("z", 2, 10, partition="b"),
    ]
    done = transform(state, jobs, RuntimeSettings(), attempt=5)
    assert done.started == ("x", "z")
    assert done.machine.names_of(done.machine.running["z"].nodes) == ("b1", "b2")
    assert [entry.start_s for entry in done.reservations] == [0, 10, 0]
    with pytest.raises(InputError, match="shares nodes"):
        empty_machine(names, {"a": names[:2], "b": names[1:]})
    with pytest.raises(InputError, match="is not a node"):
        empty_machine(names, {"a": ("c1",)})


def test_a_job_larger_than_its_partition_gets_no_promise() -> None:
    done = transform(machine(4), [rigid("x", 5, 10)], RuntimeSettings(), attempt=5)
    assert done.reservations == ()


def test_a_new_job_may_be_accounted_at_its_minimum_until_the_first_step() -> None:
    entry = malleable("m", 2, 8, 100)
    assert started(entry, 0b1111, 0.0, at_minimum=True).end_s == 100
    assert started(entry, 0b1111, 0.0).end_s == 50


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        # m1 (priority 1, started first), m2 and m3 hold 4 of at most 4, 8 and 16; each may give three.
        ("priority", {"m1": 1, "m2": 3, "m3": 4}),
        ("even", {"m1": 2, "m2": 3, "m3": 3}),
        # Shares kept: m1 3/4, then 2/4; then m2 3/8, m1 would have 1/4 and m3 3/16.
        ("low_impact", {"m1": 2, "m2": 3, "m3": 4}),
        # m3 has most time left, then m2: linear, 100 s, 200 s and 400 s at one node.
        ("short", {"m1": 4, "m2": 4, "m3": 1}),
        ("priced", {"m1": 4, "m2": 3, "m3": 1}),
    ],
)
def test_a_harvest_policy_says_who_shrinks_first(order: ShrinkOrder, expected: dict[str, int]) -> None:
    state = running(
        machine(12),
        (malleable("m1", 1, 4, 100, priority=1), 4),
        (malleable("m2", 1, 8, 200, priority=2), 4),
        (malleable("m3", 1, 16, 400, priority=3), 4),
    )
    draft = TentativeState(state)
    need = 12 - sum(expected.values())
    assert Shrinking(draft, 5, 5, order).take("", need, "w") == need
    assert draft.count == expected
    after = draft.committed()
    assert {name: job.harvests for name, job in after.running.items()} == {
        name: int(count < 4) for name, count in expected.items()
    }
