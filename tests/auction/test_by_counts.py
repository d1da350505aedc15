"""If counts settle a pass the same jobs start on the same nodes as with bids, or as good ones."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from fractions import Fraction
from itertools import chain, combinations
from operator import le
from typing import Any

import numpy as np
import pytest
from random_snapshots import random_snapshot
from support.build import all_bid, snapshot, tree

from aucsched import Auction, Snapshot, schedule
from aucsched.auction import attempt as attempt_module
from aucsched.auction import decide as decide_module
from aucsched.auction.check import check_schedule
from aucsched.auction.decide import award_by_counts, decide
from aucsched.auction.options import StepOptions
from aucsched.auction.placement_bound import most_valuable
from aucsched.auction.queue import queue_of
from aucsched.auction.reserve import Promise
from aucsched.auction.state import state_of
from aucsched.auction.step import take_step
from aucsched.auction.step_pass import StepPass
from aucsched.auction.strategies import AttemptResult
from aucsched.bidgen.first_fit import Cluster
from aucsched.cluster.resources.demand import Demand
from aucsched.cluster.resources.job_reservations import Guard
from aucsched.models.model import worth_of_start
from aucsched.models.solve.solver import SolverStatus

OPTIONS = [
    StepOptions(work_limit=3),
    StepOptions(work_limit=3, model="aucsched2"),
    StepOptions(work_limit=3, promise="none", reserve=0),
    StepOptions(work_limit=3, promise="none", reserve=2, award_alone=True),
    StepOptions(work_limit=3, objective="response"),
    StepOptions(work_limit=3, promise="none", reserve=0, objective="priority_cores"),
    StepOptions(work_limit=3, keep_whole=True),
]


def starts(decision: StepPass) -> list[tuple[str, list[int], list[int]]]:
    return [
        (one.demand.job.id, one.allocation.nodes.tolist(), one.allocation.held.cores.tolist())
        for one in sorted(decision.starts, key=lambda one: one.demand.index)
    ]


def worth(decision: StepPass, options: StepOptions) -> Fraction | int:
    """Return what the starts of the window count: those behind it have what is left, more or less."""
    window = {demand.job.id for demand in decision.window}
    starts = (one.demand for one in decision.starts if one.demand.job.id in window)
    return sum(worth_of_start(demand, options.objective) for demand in starts)


def noted_choices(monkeypatch: pytest.MonkeyPatch) -> list[list[Demand]]:
    """Return a list to which each choice of jobs by counts is added."""
    chosen: list[list[Demand]] = []

    def noted(demands: Sequence[Demand], objective: str, on: Cluster) -> list[Demand]:
        chosen.append(most_valuable(demands, objective, on))
        return chosen[-1]

    monkeypatch.setattr(attempt_module, "most_valuable", noted)
    return chosen


def decided(cluster: Snapshot, options: StepOptions) -> StepPass:
    state = state_of(cluster)
    queue = queue_of(cluster, state.reader, options)
    return decide(state, queue.waiting, options)


def plain(seed: int) -> Snapshot:
    """Return a random cluster whose jobs mostly ask for cores or nodes, and often all start."""
    draw = np.random.default_rng(seed)
    each = int(draw.choice([1, 4]))
    nodes = [
        {"name": f"n{place:02}", "cores": each, "free_cores": int(draw.choice([0, each, each]))}
        for place in range(int(draw.integers(4, 16)))
    ]
    busy = [node for node in nodes if not node["free_cores"]]
    running = [
        {
            "id": f"R{place}",
            "nodes": {node["name"]: {"cores": each}},
            "end_time": f"2026-11-20T1{place % 10}:00:00Z",
        }
        for place, node in enumerate(busy)
    ]
    jobs = [
        {"cores": int(draw.integers(1, 3 * each)), "time_limit_s": int(draw.integers(60, 20_000))}
        if draw.random() < 0.5
        else {"nodes": int(draw.integers(1, 4)), "cores_per_node": each, "time_limit_s": 3600}
        for _ in range(int(draw.integers(1, 7)))
    ]
    return snapshot(nodes, jobs, running=running)


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_the_same_jobs_start_on_the_same_nodes(options: StepOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[bool] = []

    def noted(step: StepPass) -> bool:
        is_tried = award_by_counts(step)
        found.append(bool(step.counted))
        return is_tried

    chosen = noted_choices(monkeypatch)
    monkeypatch.setattr(decide_module, "award_by_counts", noted)
    for seed in range(40):
        for cluster in (plain(seed), random_snapshot(seed)):
            cut = replace(options, window=3) if seed % 4 == 0 else options
            with all_bid():
                with_bids = decided(cluster, cut)
            without = decided(cluster, cut)
            if not chosen:
                assert starts(without) == starts(with_bids)
            # Of several best choices by cores the search may have another one.
            assert worth(without, options) >= worth(with_bids, options)
            chosen.clear()
            assert without.next_window == with_bids.next_window
    assert any(found) != bool(options.keep_whole)
    assert not all(found)


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_reasons_that_are_asked_for_later_are_as_with_bids(
    options: StepOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = noted_choices(monkeypatch)
    several = selected = 0
    for seed in range(8):
        for cluster in (plain(seed), random_snapshot(seed)):
            chosen.clear()
            step = take_step(cluster, options, lazy=True)
            found = step.schedule
            with all_bid():
                asked = take_step(cluster, options).schedule
            check_schedule(cluster, found)
            assert found.next_window == asked.next_window
            held = {award.job: award.nodes for award in asked.started}
            is_same = {award.job: award.nodes for award in found.started} == held
            # Of several best choices by counts the search may have another one.
            assert is_same or chosen
            if is_same:
                several += bool(step.decision.placed)
                selected += bool(step.decision.selected)
                assert found.pending == asked.pending
                assert found.objective.priority == asked.objective.priority
                assert found.objective.bound_over_placements == asked.objective.bound_over_placements
                assert [one.bid.preference for one in found.started] == pytest.approx(
                    [one.bid.preference for one in asked.started]
                )
            assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301 - our own
    assert several or options.keep_whole
    assert selected or not options.selects


@pytest.mark.parametrize("seed", [14, 35, 53, 78])
def test_reasons_are_beside_the_reservations_that_bids_were_beside(seed: int) -> None:
    """Not beside that of a job which lost in the auction: others were outbid, too."""
    options = StepOptions(work_limit=3, promise="none", reserve=1)
    step = take_step(plain(seed), options)
    assert step.decision.selected
    assert step.decision.guards
    with all_bid():
        asked = take_step(plain(seed), options).schedule
    assert step.schedule.pending == asked.pending


@pytest.mark.parametrize("promise", ["none", "backfill"])
def test_a_start_that_counts_more_on_more_nodes_gets_them(promise: str) -> None:
    job = {"nodes": [1, 2], "cores_per_node": 2, "time_limit_s": 3600}
    cluster = snapshot([{"name": f"n{place}", "cores": 2} for place in range(2)], [job])
    options = StepOptions(work_limit=3, promise=promise, objective="response")
    for how in (all_bid, nullcontext):
        with how():
            (start,) = decided(cluster, options).starts
        assert len(start.allocation.nodes) == 2


@pytest.mark.parametrize(("limits", "nodes"), [({}, []), ({1: 500, 2: 60}, [2])])
def test_bids_are_made_where_a_job_on_more_nodes_is_through_before_a_promise(
    limits: dict[int, int], nodes: list[int]
) -> None:
    machine = [{"name": f"n{place}", "cores": 1, "free_cores": 1 - place // 2} for place in range(4)]
    held = {"n2": {"cores": 1}, "n3": {"cores": 1}}
    jobs = [
        {"id": "wide", "nodes": 4, "cores_per_node": 1, "time_limit_s": 100},
        {"id": "long", "nodes": [1, 2], "cores_per_node": 1, "time_limit_s": 500},
    ]
    cluster = snapshot(
        machine, jobs, running=[{"id": "R", "nodes": held, "end_time": "2026-11-20T09:31:40Z"}]
    )
    state, options = state_of(cluster), StepOptions(work_limit=3, promise="plan", reserve=0)
    wide, long = queue_of(cluster, state.reader, options).window
    long = replace(long, job=replace(long.job, limits_by_nodes_s=limits))
    decision = decide(state, [wide, long], options, promised=[Promise(wide, state.now + 100)])
    assert [len(one.allocation.nodes) for one in decision.starts] == nodes
    # Nobody else has room beside the promise: counts say so, without an auction.
    assert (decision.counted == []) == (not decision.attempts) == (not nodes)


@pytest.mark.parametrize(("seed", "max_bids"), [(0, 2), (94, 6), (120, 2)])
def test_first_fits_award_is_looked_up_in_its_own_bids(seed: int, max_bids: int) -> None:
    """Rounds make bids that stand between the first ones: then a job won twice."""
    cluster = random_snapshot(seed)
    options = StepOptions(work_limit=80, promise="none", reserve=0, max_bids=max_bids, model="aucsched2")
    check_schedule(cluster, take_step(cluster, replace(options, objective="priority_cores")).schedule)


def test_what_the_jobs_that_counts_chose_won_alone_is_not_thrown_away() -> None:
    """Under a tight cap more bidders have fewer bids each: then all win less than a few had won."""
    nodes = [{"name": f"n{place}", "cores": cores} for place, cores in enumerate([4, 12, 8, 4, 4, 4, 12, 8])]
    jobs: list[dict[str, Any]] = [{"cores": cores} for cores in (30, 24, 24, 4, 12)]
    jobs += [{"nodes": 3, "cores": 8}, {"nodes": 1, "cores": 4}]
    cluster = snapshot(nodes, jobs)
    options = StepOptions(work_limit=1, promise="none", reserve=0, max_bids=12, model="aucsched2")
    decision = take_step(cluster, options)
    check_schedule(cluster, decision.schedule)
    # J2, J4, J5 and J7; the bids of all, which are two a job, hold J1 and J2 only.
    assert decision.schedule.objective.priority >= 999 + 997 + 996 + 994


def test_a_proof_of_what_all_jobs_can_win_holds_for_an_award_that_ties_with_it() -> None:
    """That of the jobs that bid alone, and of one that starts beside it, is preferred among equals."""
    sizes = [4, 12, 4, 8, 8, 4, 8, 4, 12]
    nodes = [{"name": f"n{place}", "cores": cores} for place, cores in enumerate(sizes)]
    leaves = [{"name": f"s{place}", "nodes": f"n{place},n{place + 1}"} for place in range(0, 8, 2)]
    asked = [(2, 2, 20), (1, None, 12), (1, 1, 4), (1, None, 24), (2, 1, 16), (2, 3, 16), (3, None, 12)]
    asked += [(1, 1, 20), (3, 1, 4)]
    jobs = [
        {"priority": priority, "cores": cores} | ({} if count is None else {"nodes": count})
        for priority, count, cores in asked
    ]
    tree = {"kind": "tree", "switches": [*leaves, {"name": "s8", "nodes": "n8"}]}
    cluster = snapshot(nodes, jobs, topology=tree)
    options = StepOptions(work_limit=1, promise="none", reserve=0, max_bids=8, model="aucsched2")
    step = take_step(cluster, options)
    best, objective = step.decision.best, step.schedule.objective
    assert best is not None
    assert step.decision.behind_started
    assert best.answer.priority == objective.priority == objective.bound == 10


def test_the_bound_of_an_auction_is_none_on_an_award_over_other_bids() -> None:
    """Jobs 388 and 451 bid alone before; the four bids of all jobs promise no more than 582."""
    nodes = [{"name": f"n{place}", "cores": cores} for place, cores in enumerate([8, 12, 4, 4, 4])]
    jobs = [
        {"priority": 3, "cores": 4, "nodes": 2},
        {"priority": 388, "cores": 8, "nodes": 1},
        {"priority": 579, "cores": 24, "nodes": 3},
        {"priority": 451, "cores": 20},
    ]
    options = StepOptions(work_limit=2, promise="none", reserve=0, max_bids=4, model="aucsched2")
    objective = take_step(snapshot(nodes, jobs), options).schedule.objective
    assert objective.priority == 388 + 451
    assert objective.bound is not None
    assert objective.bound >= objective.priority


def test_an_award_that_stays_in_play_keeps_the_reservation_of_the_first_job_that_waits() -> None:
    """Two jobs that bid alone are worth more than the first in the queue, which is reserved for now."""
    nodes = [{"name": f"n{place}", "cores": cores} for place, cores in enumerate([12, 8, 4, 12, 8])]
    jobs: list[dict[str, Any]] = [{"cores": 36}, {"nodes": 2, "cores": 16}, {"nodes": 2, "cores": 8}]
    cluster = snapshot(nodes, [*jobs, {"nodes": 3, "cores": 20}])
    options = StepOptions(work_limit=1, promise="none", reserve=1, max_bids=8, model="aucsched2")
    assert "J1" in {start.demand.job.id for start in take_step(cluster, options).decision.starts}
    freely = take_step(cluster, replace(options, reserve=0)).decision
    assert {"J2", "J3"} <= {start.demand.job.id for start in freely.starts}


def test_reasons_read_after_later_changes_are_those_of_their_award() -> None:
    """What an award knows of the cluster stays as it was, whatever is told to the auction since."""
    for seed in range(12):
        cluster = (plain if seed % 2 else random_snapshot)(seed)
        now, later = Auction(cluster, work_limit=2), Auction(cluster, work_limit=2)
        read, kept = [], []
        for step in range(1, 4):
            found = now.award()
            kept.append(later.award())
            read.append((found.pending, found.objective))
            ended = [running.id for running in now.cluster.running[::2]]
            changes: dict[str, Any] = {"time": (cluster.time or 0) + 60 * step, "started": found.started[:2]}
            now.update(ended=ended, **changes)
            later.update(ended=ended, **changes)
        assert [(found.pending, found.objective) for found in kept] == read


def test_a_choice_by_counts_is_worth_the_most_that_any_is() -> None:
    """Beside no reservation, and beside one that leaves the jobs that outlast it half of the nodes."""
    for seed in range(60):
        draw = np.random.default_rng(seed)
        # Up to eight jobs every choice is looked at, beyond branch and bound proves it.
        sizes = draw.integers(1, 12, int(draw.integers(1, 13)))
        jobs = [
            {"cores": int(size), "priority": int(draw.integers(1, 30)), "time_limit_s": int(limit)}
            for size, limit in zip(sizes, draw.choice([60, 7200], len(sizes)), strict=True)
        ]
        nodes = [{"name": f"n{place:02}", "cores": 1} for place in range(int(draw.integers(1, 25)))]
        state = state_of(snapshot(nodes, jobs))
        demands = queue_of(state.snapshot, state.reader, StepOptions()).waiting
        columns = state.columns
        guards: tuple[Guard, ...] = ()
        room = [len(nodes), len(nodes)]
        if seed % 2:
            first = replace(demands[0], job=replace(demands[0].job, id="first"))
            reserved = np.arange(0, len(nodes), 2)
            left = columns.free.at(reserved).each(np.zeros_like)
            guards = (Guard(job=first.job, time=state.now + 3600, now=state.now, nodes=reserved, room=left),)
            room[1] = len(nodes) // 2

        def fits(chosen: Sequence[Demand], guards: Any = guards, room: Any = room) -> bool:
            taken = [sum(demand.fewest_cores for demand in chosen)]
            taken.append(sum(one.fewest_cores for one in chosen for guard in guards if guard.limits(one.job)))
            return all(map(le, taken, room))

        def worth(chosen: Sequence[Demand]) -> Fraction | int:
            return sum(worth_of_start(demand, "priority") for demand in chosen)

        found = most_valuable(demands, "priority", Cluster(columns, state.topology, guards))
        every = chain.from_iterable(combinations(demands, size) for size in range(len(demands) + 1))
        assert fits(found)
        assert worth(found) == max(worth(some) for some in every if fits(some))


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_a_schedule_and_an_auction_give_the_same_award(options: StepOptions) -> None:
    """One question, one answer: who bids does not depend on who asks."""
    told = {name: value for name, value in asdict(options).items() if value != getattr(StepOptions(), name)}
    for seed in range(20):
        for cluster in (plain(seed), random_snapshot(seed)):
            found, asked = schedule(cluster, **told), Auction(cluster, **told).award()
            assert found.started == asked.started
            assert found.pending == asked.pending
            assert found.objective.priority == asked.objective.priority


NAMES = [f"n{place}" for place in range(4)]
#: By counts two jobs have the nodes, but only one switch has two.
TWO, ONE = {"nodes": 2, "cores_per_node": 1}, {"nodes": 1, "cores_per_node": 1, "priority": 1}
BELOW_ONE = [TWO | {"priority": priority, "max_switches": 1} for priority in (10, 9)]
ALL_LOST = snapshot(
    [{"name": name, "cores": 1} for name in NAMES], [*BELOW_ONE, *[ONE] * 4], topology=tree(NAMES, 3)
)
ALL_WON = snapshot([{"name": name, "cores": 1} for name in NAMES], [TWO, TWO, ONE, ONE])


@pytest.mark.parametrize("limits", [{"work_limit": 5}, {}])
def test_who_is_tried_alone_leaves_time_for_an_auction_of_all(
    limits: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[int, float]] = []

    def noted(demands: Sequence[Demand], *given: Any, **members: Any) -> AttemptResult:
        calls.append((len(demands), members["deadline"]))
        return attempt_module.attempt(demands, *given, **members)  # type: ignore[arg-type]

    monkeypatch.setattr(decide_module, "attempt", noted)
    alone: dict[str, Any] = {"promise": "none", "reserve": 0, "strategy": "exact", "on_timeout": "incumbent"}
    options = StepOptions(**limits, time_limit_s=60, **alone)
    step = decided(ALL_LOST, options)
    assert (len(step.starts), len(step.attempts)) == (3, 1)
    (tried, first), (all_bid, second) = calls
    assert (tried, all_bid) == (2, 6)
    assert second - first > 20
    # Nobody follows jobs that first-fit starts: they have all the time.
    calls.clear()
    step = decided(ALL_WON, options)
    assert calls == [(2, step.deadline)]


def test_jobs_that_alone_bid_stay_so_where_a_half_of_the_window_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []

    def unproved(*given: Any, **members: Any) -> AttemptResult:
        sizes.append(members["size"])
        found = attempt_module.attempt(*given, **members)
        return replace(found, status=SolverStatus.FEASIBLE_AT_LIMIT, proved=False)

    monkeypatch.setattr(decide_module, "attempt", unproved)
    jobs = [TWO | {"max_switches": 1}, TWO | {"max_switches": 1}, *[ONE] * 4]
    options = StepOptions(time_limit_s=60, promise="none", reserve=0, strategy="exact")
    step = decided(
        snapshot([{"name": name, "cores": 1} for name in NAMES], jobs, topology=tree(NAMES, 2)), options
    )
    assert sizes == [6, 3, 1]
    assert step.selected == {"J1", "J2"}
