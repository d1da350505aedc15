"""Reservations: a wide job that narrower ones starve starts no later than its first shadow time."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_snapshots import random_snapshot
from support.build import snapshot

from aucsched import Job, Resources, RunningJob, Schedule, Snapshot, schedule
from aucsched.auction.explain.comparison import first_fit_by_priority
from aucsched.auction.forecast import Forecast, shadow_time
from aucsched.auction.options import MODELS, StepOptions
from aucsched.auction.queue import queue_of
from aucsched.auction.reserve import Backfilling, StepReservations
from aucsched.auction.state import state_of
from aucsched.auction.step import take_step
from aucsched.bidgen.first_fit import Cluster, FirstFitPlacer
from aucsched.cluster.resources.demand import Demand
from aucsched.cluster.text import utc

NOW = 1_795_167_000.0


def cluster(jobs: list[dict[str, Any]], running: list[dict[str, Any]]) -> Snapshot:
    return dataclasses.replace(snapshot([{"name": "n[1-4]", "cores": 4}], jobs, running=running), time=NOW)


def at(seconds: float) -> float:
    return NOW + seconds


def reasons(result: Schedule) -> dict[str, str]:
    return {refusal.job: refusal.reason.value for refusal in result.pending}


def test_when_the_time_is_up_only_the_first_blocked_job_gets_a_reservation() -> None:
    jobs = [{"nodes": 4, "cores": 16, "time_limit_s": 600} for _ in range(3)]
    state = state_of(cluster(jobs, [{"id": "r", "nodes": {"n1": {"cores": 4}}, "end_time": at(100)}]))
    demands = queue_of(state.snapshot, state.reader, StepOptions()).window
    in_time, late = (StepReservations(state, 3, is_over=is_over) for is_over in (lambda: False, lambda: True))
    assert [in_time.reserve(demand, ()) for demand in demands] == [True, True, False]
    assert [late.reserve(demand, ()) for demand in demands] == [False] * 3
    assert (len(in_time.guards), len(late.guards)) == (3, 1)
    # Where that one starts after all, the next blocked job is the first.
    first = {demands[0].job.id}
    assert late.pass_on(first, first)
    late.reserve(demands[1], ())
    assert len(late.guards) == 2


@pytest.mark.parametrize("model", MODELS)
def test_bids_that_would_delay_the_blocked_job_are_not_made(model: Any) -> None:
    """Soner: EASY's lookahead and number of reservations on nodes (2.1).

    Soner: reservations in bid generation (9.1).
    """
    jobs = [
        {"nodes": 4, "cores": 16, "time_limit_s": 600},
        {"cores": 4, "time_limit_s": 600},
        {"cores": 4, "time_limit_s": 50},
    ]
    running = [{"id": "r", "nodes": {"n1": {"cores": 4}}, "end_time": at(100)}]
    plain = schedule(cluster(jobs, running), model=model, reserve=0)
    assert reasons(plain) == {"J1": "no_fit"}
    result = schedule(cluster(jobs, running), model=model, reserve=1, promise="plan")
    # The short job ends before the wide one can start; the long one would delay it.
    assert [award.job for award in result.started] == ["J3"]
    assert reasons(result) == {"J1": "no_fit", "J2": "reservation"}
    detail = {refusal.job: refusal.detail for refusal in result.pending}["J2"]
    assert "J1" in detail
    assert "n[1-4]" in detail


@pytest.mark.parametrize("model", MODELS)
def test_two_bids_that_delay_only_together_do_not_both_win(model: Any) -> None:
    jobs: list[dict[str, Any]] = [
        {"nodes": 4, "cores": 12, "time_limit_s": 600, "min_cores_per_node": 3},
        {"cores": 1, "nodes": 1, "time_limit_s": 600, "required_nodes": "n2"},
        {"cores": 1, "nodes": 1, "time_limit_s": 600, "required_nodes": "n2"},
    ]
    running = [{"id": "r", "nodes": {"n1": {"cores": 4}}, "end_time": at(100)}]
    assert len(schedule(cluster(jobs, running), model=model, reserve=0).started) == 2
    result = schedule(cluster(jobs, running), model=model, reserve=1, promise="plan")
    assert [award.job for award in result.started] == ["J2"]
    assert reasons(result)["J3"] == "reservation"


def test_a_job_outbid_by_lower_ones_is_reserved_for_now() -> None:
    jobs: list[dict[str, Any]] = [
        {"nodes": 4, "cores": 16, "priority": 100},
        *({"nodes": 2, "cores": 8, "priority": 60} for _ in range(2)),
    ]
    assert [award.job for award in schedule(cluster(jobs, []), reserve=0).started] == ["J2", "J3"]
    assert [award.job for award in schedule(cluster(jobs, []), reserve=1, promise="plan").started] == ["J1"]


@pytest.mark.parametrize("model", MODELS)
def test_a_reserved_job_that_starts_passes_its_reservation_on(model: Any) -> None:
    asked = [(14, 40, 100), (16, 150, 93), (2, 1000, 86), (4, 40, 79), (6, 300, 72)]
    jobs = [{"cores": cores, "time_limit_s": limit, "priority": worth} for cores, limit, worth in asked]
    result = schedule(cluster(jobs, []), model=model, promise="none", reserve=1)
    # J1 loses to J3 to J5 and is reserved for now; J2 is then the first that is blocked.
    assert [award.job for award in result.started] == ["J1"]
    details = {refusal.job: refusal.detail for refusal in result.pending}
    assert reasons(result) == {"J2": "outbid", "J3": "reservation", "J4": "outbid", "J5": "outbid"}
    assert details["J4"] == "outbid by J1 on n[1-4]"
    assert details["J3"].startswith(f"it would delay job J2, reserved to start by {utc(at(40))}")


def test_a_job_that_lost_before_a_reserved_one_started_gets_its_reservation() -> None:
    asked = [(9, 50, 103), (4, 40, 96), (7, 100, 89), (2, 1000, 82), (6, 300, 75)]
    jobs = [{"cores": cores, "time_limit_s": limit, "priority": worth} for cores, limit, worth in asked]
    # J1, J2, J4 are worth most and delay J3. Beside its reservation that is J2 to J4, which delay J1.
    result = schedule(cluster(jobs, []), promise="none", reserve=1)
    assert [award.job for award in result.started] == ["J1", "J2"]


def test_two_reservations_hold_beside_each_other() -> None:
    jobs = [
        {"nodes": 4, "cores": 16, "time_limit_s": 600},
        {"nodes": 3, "cores": 12, "time_limit_s": 600},
        {"cores": 8, "time_limit_s": 600},
    ]
    running = [{"id": "r", "nodes": {"n[1-2]": {"cores": 4}}, "end_time": at(100)}]
    result = schedule(cluster(jobs, running), reserve=2, promise="plan")
    assert result.started == ()


@pytest.mark.parametrize("model", MODELS)
def test_a_reserved_job_may_take_what_it_has_reserved_beside_the_next_reservation(model: Any) -> None:
    jobs: list[dict[str, Any]] = [
        *({"cores": 6, "priority": 10} for _ in range(2)),
        *({"cores": 4, "nodes": 1, "priority": 8} for _ in range(3)),
    ]
    state = dataclasses.replace(cluster(jobs, []), nodes=cluster(jobs, []).nodes[:3])
    assert [award.job for award in schedule(state, model=model, reserve=0).started] == ["J3", "J4", "J5"]
    assert [award.job for award in schedule(state, model=model, reserve=2, promise="plan").started] == [
        "J1",
        "J2",
    ]


def test_the_reservation_that_stands_in_the_way_is_named() -> None:
    jobs: list[dict[str, Any]] = [
        {"nodes": 2, "cores": 8, "time_limit_s": 600, "required_nodes": "n[1-2]"},
        {"nodes": 2, "cores": 8, "time_limit_s": 600, "required_nodes": "n[3-4]"},
        {"cores": 4, "nodes": 1, "time_limit_s": 600, "required_nodes": "n4"},
    ]
    running = [{"id": "r", "nodes": {"n[1,3]": {"cores": 4}}, "end_time": at(100)}]
    result = schedule(cluster(jobs, running), reserve=2, promise="plan")
    detail = {refusal.job: refusal.detail for refusal in result.pending}["J3"]
    assert "J2" in detail
    assert "n[3-4]" in detail


def test_a_job_that_can_never_start_reserves_nothing() -> None:
    jobs = [{"nodes": 4, "cores": 64}, {"cores": 4}]
    result = schedule(cluster(jobs, []), reserve=1, promise="plan")
    assert [award.job for award in result.started] == ["J2"]


@pytest.mark.parametrize("options", [{"promise": "none"}, {"promise": "plan", "award_alone": True}])
def test_losers_for_whom_a_limit_leaves_nothing_are_not_looked_at(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass with a limit of 3 s took 25 s: a user's job had used up a limit for 993 of a window."""
    asked: list[str] = []

    def first(self: Forecast, job: Job, *others: Any, **more: Any) -> Any:
        asked.append(job.id)
        return looked(self, job, *others, **more)

    looked = Forecast.first
    monkeypatch.setattr(Forecast, "first", first)
    jobs = [{"cores": 1, "user": "u", "time_limit_s": 60 + place} for place in range(8)]
    limits = [{"name": "one", "jobs": {"user": "u"}, "max": {"jobs": 1}}]
    made = snapshot([{"name": "n[1-4]", "cores": 4}], jobs, limits=limits, time=NOW)
    found = schedule(made, reserve=1, **options)
    assert [award.job for award in found.started] == ["J1"]
    assert reasons(found) == {f"J{place}": "limit" for place in range(2, 9)}
    assert asked == []


def _step(state: Snapshot, result: Schedule, seconds: float) -> Snapshot:
    """Start the awards and let time pass; jobs run their whole limit."""
    limits = {job.id: job.time_limit_s or 0 for job in state.jobs}
    now = (state.time or 0.0) + seconds
    running = [
        *state.running,
        *(
            RunningJob(
                id=award.job, nodes=dict(award.nodes), end_time=(state.time or 0.0) + limits[award.job]
            )
            for award in result.started
        ),
    ]
    running = [job for job in running if (job.end_time or 0.0) > now]
    held: dict[str, int] = {}
    for job in running:
        for name, use in job.nodes.items():
            held[name] = held.get(name, 0) + use.cores
    nodes = tuple(
        dataclasses.replace(node, free=Resources(cores=node.total.cores - held.get(node.name, 0)))
        for node in state.nodes
    )
    started = {award.job for award in result.started}
    jobs = tuple(job for job in state.jobs if job.id not in started)
    return dataclasses.replace(state, time=now, running=tuple(running), jobs=jobs, nodes=nodes)


def _with_arrival(state: Snapshot, number: int) -> Snapshot:
    job = dataclasses.replace(
        snapshot(
            [{"name": "n1", "cores": 1}],
            [{"id": f"s{number}", "priority": 10, "cores": 4, "time_limit_s": 120}],
        ).jobs[0]
    )
    return dataclasses.replace(state, jobs=(*state.jobs, job))


def _wide_start(reserve: int) -> tuple[int | None, float, float]:
    """Return the step at which the wide job starts in 200, its start, and its first shadow time."""
    wide = {"id": "wide", "priority": 15, "nodes": 4, "cores": 16, "time_limit_s": 300}
    first = [
        {"id": f"f{place}", "priority": 10, "cores": 4, "time_limit_s": 60 + 30 * place} for place in range(4)
    ]
    state = cluster([*first], [])
    state = _step(state, schedule(state, reserve=0), 1)
    state = dataclasses.replace(state, jobs=cluster([wide], []).jobs)
    shadow = shadow_time(state_of(state), state.jobs[0])
    assert shadow is not None
    for step in range(200):
        for number in range(4 if step == 0 else 1):
            state = _with_arrival(state, 10 * step + number)
        result = schedule(state, reserve=reserve, promise="plan")
        if "wide" in {award.job for award in result.started}:
            return step, state.time or 0.0, shadow.time
        state = _step(state, result, 30)
    return None, float("inf"), shadow.time


def test_a_wide_job_starved_over_200_steps_starts_with_a_reservation_by_its_first_shadow_time() -> None:
    starved, _, _ = _wide_start(0)
    assert starved is None
    step, start, shadow = _wide_start(1)
    assert step is not None
    # Steps are 30 s apart: the first at or after the shadow time.
    assert start < shadow + 30


@given(st.integers(0, 10**6), st.sampled_from(MODELS), st.integers(1, 3))
@settings(max_examples=120, deadline=None)
def test_no_award_delays_a_reservation_and_something_starts(seed: int, model: str, reserve: int) -> None:
    state = random_snapshot(seed)
    step = take_step(state, StepOptions(model=model, reserve=reserve, promise="plan"))  # type: ignore[arg-type]
    assert len(step.schedule.started) + len(step.schedule.pending) == len(state.jobs)
    started = {award.job for award in step.schedule.started}
    for guard in step.cluster.guards:
        if guard.job.id not in started:
            found = shadow_time(state_of(state), guard.job, step.schedule.started)
            assert found is not None
            assert found.time <= guard.time
    # Where the first blocked job could start now, it does or another does.
    if step.cluster.guards and step.cluster.guards[0].is_now:
        assert started


def test_a_job_must_fit_beside_a_promise_and_the_reservation_that_holds_with_it() -> None:
    """From 20 s on the promised job and the reserved one, which starts at 10 s, need the whole node."""
    jobs: list[dict[str, Any]] = [
        {"id": "reserved", "cores": 2, "time_limit_s": 50, "priority": 3},
        {"id": "promised", "cores": 2, "time_limit_s": 100, "priority": 2, "promised_start": at(20)},
        {"id": "later", "cores": 1, "time_limit_s": 100, "priority": 1},
    ]
    running = [{"id": "r", "nodes": {"n": {"cores": 3}}, "end_time": at(10)}]
    node = [{"name": "n", "cores": 4}]
    for reserve, starts in ((0, ["later"]), (1, [])):
        result = schedule(
            dataclasses.replace(snapshot(node, jobs, running=running), time=NOW), reserve=reserve
        )
        assert [award.job for award in result.started] == starts


def test_a_reservation_made_later_counts_beside_the_earlier_ones() -> None:
    """B is reserved after A, for before it: from A's start on both hold, and X has no room beside them."""
    jobs: list[dict[str, Any]] = [
        {"id": "A", "cores": 7, "time_limit_s": 1000, "priority": 3},
        {"id": "B", "cores": 3, "time_limit_s": 1000, "priority": 2},
        {"id": "X", "cores": 2, "time_limit_s": 1000, "priority": 1},
    ]
    running = [
        {"id": "r1", "nodes": {"n": {"cores": 4}}, "end_time": at(50)},
        {"id": "r2", "nodes": {"n": {"cores": 4}}, "end_time": at(100)},
    ]
    state = dataclasses.replace(snapshot([{"name": "n", "cores": 10}], jobs, running=running), time=NOW)
    for reserve, starts in ((1, {"X"}), (2, set())):
        assert first_fit_by_priority(state, None, reserve).started.keys() == starts
        for promise in ("none", "backfill"):
            found = schedule(state, reserve=reserve, promise=promise)
            assert {award.job for award in found.started} == starts


@pytest.mark.parametrize("model", MODELS)
def test_what_a_bid_takes_of_a_reservation_counts_whatever_its_other_nodes(model: Any) -> None:
    """j0 takes four cores beside j1's reservation on n0, and four of n1: for j2 n0 has no room then."""
    jobs: list[dict[str, Any]] = [
        {"id": "j0", "cores": 8, "nodes": 2, "time_limit_s": 100, "priority": 20},
        {"id": "j1", "cores": 3, "nodes": 1, "time_limit_s": 20, "priority": 19},
        {"id": "j2", "cores": 1, "time_limit_s": 80, "priority": 18},
    ]
    ends = [("n0", 10), ("n1", 20), ("n1", 50)]
    running = [
        {"id": f"r{place}", "nodes": {node: {"cores": 1}}, "end_time": at(end)}
        for place, (node, end) in enumerate(ends)
    ]
    nodes = [{"name": "n[0-1]", "cores": 7}]
    state = dataclasses.replace(snapshot(nodes, jobs, running=running), time=NOW)
    found = schedule(state, model=model, promise="none", reserve=3)
    places = {award.job: dict(award.nodes) for award in found.started}
    assert places["j0"].keys() == {"n0", "n1"}
    assert "n0" not in places.get("j2", {}) or "j1" in places


def test_what_is_reserved_for_a_later_job_does_not_delay_one_before_it_that_fits_now() -> None:
    """B is reserved for now, so A is not as well: then C starts after both, and A with B."""
    asked = {"A": (742, 6, 7055), "B": (739, 6, 1197), "C": (738, 13, 1000), "D": (732, 9, 600)}
    asked |= {"E": (667, 5, 100_000), "F": (639, 5, 100_000)}
    jobs = [
        {"id": name, "priority": priority, "nodes": nodes, "cores_per_node": 8, "time_limit_s": limit_s}
        for name, (priority, nodes, limit_s) in asked.items()
    ]
    step = take_step(
        snapshot([{"name": "n[01-16]", "cores": 8}], jobs), StepOptions(promise="none", work_limit=20)
    )
    assert [award.job for award in step.schedule.started] == ["A", "B"]
    now = step.state.now
    assert {guard.job.id: guard.time - now for guard in step.cluster.guards} == {
        "A": 0.0,
        "B": 0.0,
        "C": 7055.0,
    }


def test_a_job_that_loses_to_what_leaves_room_for_one_behind_it_has_the_reservation() -> None:
    """Beside what is reserved for "wide" others together are worth more than "first", whose time has come."""
    asked: list[dict[str, Any]] = [
        {"id": "first", "priority": 999, "time_limit_s": 300, "nodes": 2, "cores_per_node": 3},
        {"id": "a", "priority": 997, "time_limit_s": 60, "nodes": 1, "cores_per_node": 2},
        {
            "id": "wide",
            "priority": 996,
            "time_limit_s": 60,
            "nodes": 2,
            "cores_per_node": 3,
            "exclusive": True,
        },
        {"id": "b", "priority": 991, "time_limit_s": 120, "nodes": 1, "cores_per_node": 4},
        {"id": "c", "priority": 990, "time_limit_s": 120, "cores": 4},
        {"id": "long", "priority": 987, "time_limit_s": 600, "nodes": 1, "cores_per_node": 1},
        {"id": "d", "priority": 986, "time_limit_s": 300, "nodes": 2, "cores_per_node": 1},
    ]
    state = snapshot([{"name": "n0", "cores": 4}, {"name": "n1", "cores": 8}], asked)
    step = take_step(state, StepOptions(promise="none", work_limit=20))
    assert [award.job for award in step.schedule.started] == ["first", "a", "c"]
    assert {guard.job.id for guard in step.cluster.guards} == {"first", "wide"}


@pytest.mark.parametrize("window", [2, 4, 5, 100])
def test_the_first_blocked_job_behind_a_window_that_starts_whole_is_not_delayed(window: int) -> None:
    small = [{"id": f"small{place}", "priority": 9, "time_limit_s": 60, "cores": 1} for place in range(4)]
    behind = [
        {"id": "wide", "priority": 5, "time_limit_s": 60, "cores": 8},
        {"id": "long", "priority": 3, "time_limit_s": 1000, "cores": 1},
        {"id": "short", "priority": 1, "time_limit_s": 50, "cores": 1},
    ]
    found = schedule(snapshot([{"name": "n0", "cores": 8}], [*small, *behind]), window=window)
    assert {award.job for award in found.started} == {*(one["id"] for one in small), "short"}


def test_until_a_job_is_blocked_nobody_counts_for_those_that_start(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    counts = FirstFitPlacer.could_hold

    def noted(fit: FirstFitPlacer, demand: Demand) -> bool:
        asked.append(demand.job.id)
        return counts(fit, demand)

    monkeypatch.setattr(FirstFitPlacer, "could_hold", noted)
    jobs = [{"id": f"{place}", "priority": 99 - place, "time_limit_s": 60, "cores": 1} for place in range(9)]
    state = state_of(snapshot([{"name": "n0", "cores": 6}], jobs))
    fit = FirstFitPlacer(Cluster(state.columns, state.topology))
    backfilling = Backfilling(fit, StepReservations(state, 1))
    backfilling.start(queue_of(state.snapshot, state.reader, StepOptions()).waiting)
    assert [start.demand.job.id for start in backfilling.starts] == [f"{place}" for place in range(6)]
    assert not {*asked} & {f"{place}" for place in range(6)}
