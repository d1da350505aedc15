"""A step that keeps a balanced mix: rows hold, greedy awards are first bids, a search is worth no less."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from random_snapshots import random_snapshot
from support.build import ALONE, snapshot

from aucsched import Job, Request, Resources, RunningJob, Snapshot, Span, schedule
from aucsched.auction.balance import Balance, balance_of
from aucsched.auction.decide import MANY, open_window, reserve
from aucsched.auction.explain.overview import overview
from aucsched.auction.job_classes import JobClass, mix_of
from aucsched.auction.options import AUCTIONS, StepOptions, options_with_preset
from aucsched.auction.state import state_of
from aucsched.auction.step import Step, take_step
from aucsched.bidgen.first_fit import FirstFitPlacer
from aucsched.cluster.errors import OptionError

#: Strategies that search, by model.
SEARCHES = [
    ("aucsched1", {"strategy": "exact", "work_limit": 3}),
    ("aucsched2", {"strategy": "exact", "work_limit": 3}),
    ("aucsched2", {"strategy": "anytime", "work_limit": 4}),
    ("aucsched3", {"strategy": "anytime", "work_limit": 4}),
    ("aucsched3", {"strategy": "anytime", "work_limit": 4, "part_nodes": 4}),
]
GREEDY = StepOptions(balance=True)


def balance_in(found: Step) -> Balance:
    placer = found.cluster.placer
    assert isinstance(placer, Balance)
    return placer


def is_plain(found: Step, cluster: Snapshot) -> bool:
    """Return whether first bids started nothing on an idle machine, so that the award has no rows."""
    is_without = found.cluster.placer is None
    assert not (is_without and cluster.running)
    return is_without


def crowded(seed: int) -> Snapshot:
    """Return a random cluster with each job four times over, so that shares are below what waits."""
    found = random_snapshot(seed)
    jobs = tuple(replace(job, id=f"{job.id}-{again}") for again in range(4) for job in found.jobs)
    return replace(found, jobs=jobs)


def check_rows(found: Step) -> None:
    """Count the award again, from what the schedule says, against the rows."""
    balance = balance_in(found)
    names = {name: place for place, name in enumerate(found.cluster.columns.names)}
    nodes: Counter[str] = Counter()
    cores: Counter[tuple[str, int]] = Counter()
    for award in found.schedule.started:
        shape = balance.shares.shapes.get(award.job)
        if shape is not None:
            nodes[shape] += len(award.nodes)
        for row in balance.kept:
            if award.job in row.jobs:
                for name, use in award.nodes.items():
                    cores[row.name, names[name]] += use.cores
    for shape, count in nodes.items():
        assert count <= balance.shares.rooms[shape], shape
    for row in balance.kept:
        for place, left in enumerate(row.left.tolist()):
            assert cores[row.name, place] <= left, (row.name, place)


@given(st.integers(0, 10**6), st.sampled_from([*SEARCHES, *((model, {}) for model in AUCTIONS)]))
@settings(max_examples=25, deadline=None)
def test_awards_stay_within_shares_and_beside_kept_cores(seed: int, case: tuple[str, dict[str, Any]]) -> None:
    model, options = case
    cluster = crowded(seed)
    found = take_step(cluster, StepOptions(model=model, balance=True, **options))  # type: ignore[arg-type]
    if not is_plain(found, cluster):
        check_rows(found)
    started = [award.job for award in found.schedule.started]
    waiting = [refusal.job for refusal in found.schedule.pending]
    assert sorted([*started, *waiting]) == sorted(job.id for job in cluster.jobs)


@given(st.integers(0, 10**6), st.sampled_from(SEARCHES))
@example(741, SEARCHES[0])
@example(20298, SEARCHES[0])  # What first bids leave held one job more than what the optimum over bids left.
@settings(max_examples=20, deadline=None)
def test_a_search_is_worth_no_less_than_the_first_bids(seed: int, case: tuple[str, dict[str, Any]]) -> None:
    model, options = case
    cluster = crowded(seed)
    first = take_step(cluster, StepOptions(model=model, balance=True))  # type: ignore[arg-type]
    found = take_step(cluster, StepOptions(model=model, balance=True, **options))  # type: ignore[arg-type]
    if is_plain(first, cluster) or is_plain(found, cluster):
        return
    # Of awards that are worth the same other jobs may lose, for which the second award then has to reserve.
    if [guard.job.id for guard in first.cluster.guards] != [guard.job.id for guard in found.cluster.guards]:
        return
    assert (first.best is None) == (found.best is None)
    if first.best is not None and found.best is not None:
        assert found.best.answer.value[0] >= first.best.answer.value[0]


@given(st.integers(0, 10**6))
@example(354)
@example(7526)
@example(1156)
@settings(max_examples=20, deadline=None)
def test_the_greedy_award_is_the_first_bids(seed: int) -> None:
    cluster = crowded(seed)
    found = take_step(cluster, GREEDY)
    if is_plain(found, cluster):
        return
    decision = found.decision
    if found.best is None:
        assert not found.schedule.started
        return
    if not len(decision.attempts[0].answer.chosen):
        # First bids start nothing on a machine that would stay empty: then jobs bid everywhere.
        assert not cluster.running
        return
    # Of the auction itself: what starts beside its award has bids of its own.
    answer = decision.attempts[-1].answer
    assert answer.chosen.tolist() == list(range(len(answer.table)))
    demands = answer.table.demands
    if any(variant.gres_total for demand in demands for variant in demand.variants):
        return  # Dealt one after another: their places are not those of one sequence.
    # A second auction is beside all reservations, the first one beside those that were made before it.
    again = open_window(decision.state, decision.waiting, decision.options, decision.balance, MANY)
    reserve(again)
    again.guards = decision.guards if len(decision.attempts) > 1 else again.reserved.guards
    placed = FirstFitPlacer(again.cluster).place_all(demands)
    assert {demands[place].job.id: sorted(one.nodes.tolist()) for place, one in enumerate(placed) if one} == {
        demands[int(answer.table.job[bid])].job.id: answer.table.node[answer.table.entries(bid)].tolist()
        for bid in answer.chosen.tolist()
    }


@pytest.mark.parametrize("strategy", ["greedy", "anytime", "exact"])
def test_what_no_first_bid_fits_starts_on_an_idle_machine(strategy: str) -> None:
    """Its parts are at least three cores each, and the nodes with the fewest gres hold three each."""
    nodes = [{"name": f"n{gpus}", "cores": 3 + gpus // 2, "gres": {"gpu": gpus}} for gpus in range(3)]
    cluster = snapshot(nodes, [{"cores": 4, "min_cores_per_node": 3}])
    work = None if strategy == "greedy" else 2
    found = take_step(cluster, StepOptions(balance=True, strategy=strategy, work_limit=work))  # type: ignore[arg-type]
    assert [award.job for award in found.schedule.started] == ["J1"]


def mixed(running: tuple[RunningJob, ...] = ()) -> Snapshot:
    """Return ten nodes with three GPUs each, and jobs of three shapes that would fill them many times."""
    jobs: list[dict[str, Any]] = []
    for _ in range(20):
        jobs.append({"cores": 24})
        jobs.append({"cores": 8, "nodes": 2, "gres_per_node": {"gpu": 3}})
        jobs.append({"cores": 16, "nodes": 2})
    found = snapshot([{"name": "n[1-10]", "cores": 12, "gres": {"gpu": 3}}], jobs)
    timed = tuple(replace(job, time_limit_s=600) for job in found.jobs)
    held = {name: use for one in running for name, use in one.nodes.items()}
    nodes = tuple(
        replace(
            node,
            free=Resources(
                cores=12 - held[node.name].cores, gres={"gpu": 3 - held[node.name].gres.get("gpu", 0)}
            ),
        )
        if node.name in held
        else node
        for node in found.nodes
    )
    return replace(found, jobs=timed, nodes=nodes, running=running)


def test_a_shape_takes_no_more_than_its_share_and_the_reason_says_so() -> None:
    # All of it takes 8 · 600 s of the cores: 40 nodes with GPUs for 600 s are 40 / 8 · (1.05 + 1 / 8) = 5.9.
    plain = schedule(mixed(), **ALONE, strategy="greedy", window=400)
    balanced = schedule(mixed(), balance=True)
    with_gpus = [job.id for job in mixed().jobs if job.request.gres_per_node]
    started = [
        [award.job for award in found.started if award.job in with_gpus] for found in (plain, balanced)
    ]
    assert len(started[0]) > 2
    assert started[1] == with_gpus[:2]
    why = {refusal.job: refusal for refusal in balanced.pending}[with_gpus[2]]
    assert why.reason == "share"
    assert why.detail == "the share of its shape (gpu:3, up to 4 cores) is used up by J2, J5"


def test_shares_come_from_the_whole_queue_and_from_what_runs() -> None:
    holds = Resources(cores=4, gres={"gpu": 3})
    running = (RunningJob(id="r", nodes={"n1": holds, "n2": holds}, end_time=None),)
    name = str(JobClass((("gpu", 3),), 4))
    rooms = {}
    for what, cluster in (("empty", mixed()), ("running", mixed(running))):
        for window in (12, 400):
            found = take_step(cluster, replace(GREEDY, window=window))
            rooms[what, window] = balance_in(found).shares.rooms[name]
    assert rooms["empty", 12] == rooms["empty", 400]
    assert rooms["running", 400] == rooms["empty", 400] - 2


def test_a_gres_with_a_type_runs_in_the_share_of_those_that_name_none() -> None:
    request = Request(cores=4, nodes=Span.exactly(1), gres_per_node={"gpu": Span.exactly(1)})
    held = Resources(cores=4, gres={"gpu:a100": 1})
    total = Resources(cores=12, gres={"gpu:a100": 3})
    nodes = snapshot([{"name": "n1", "cores": 12, "gres": {"gpu:a100": 3}}], []).nodes
    cluster = Snapshot(
        nodes=tuple(
            replace(node, total=total, free=Resources(cores=8, gres={"gpu:a100": 2})) for node in nodes
        ),
        running=(RunningJob(id="r", nodes={"n1": held}),),
        jobs=(Job(id="j", priority=1, request=request),),
    )
    found = take_step(cluster, GREEDY)
    mix = mix_of(state_of(cluster), found.queue.waiting)
    assert mix.held == {JobClass((("gpu", 1),), 4): 1}


@pytest.mark.parametrize("waited_s", [100, 100_000])
def test_nothing_delays_the_first_overdue_job(waited_s: int) -> None:
    # Two of four nodes run for 300 s more: a job of all four waits, jobs of one node would hold the others.
    running = [
        {"id": f"r{name}", "nodes": {name: {"cores": 4}}, "end_time": "2026-11-20T09:35:00Z"}
        for name in ("n1", "n2")
    ]
    wide = {"nodes": 4, "cores": 16, "time_limit_s": 600}
    narrow = {"nodes": 1, "cores": 4, "time_limit_s": 3600}
    found = snapshot([{"name": "n[1-4]", "cores": 4}], [wide, *[dict(narrow)] * 8], running=running)
    assert found.time is not None
    ages = [waited_s, *[10] * 8]
    jobs = tuple(
        replace(job, submit_time=found.time - age) for job, age in zip(found.jobs, ages, strict=True)
    )
    result = take_step(replace(found, jobs=jobs), replace(GREEDY, reserve=0))
    reserved = [guard.job.id for guard in result.cluster.guards]
    if waited_s == 100:
        assert len(result.schedule.started) == 2
        assert reserved == []
    else:
        assert not result.schedule.started
        assert reserved == ["J1"]
        assert {refusal.reason for refusal in result.schedule.pending[1:]} == {"reservation"}


@pytest.mark.parametrize("model", AUCTIONS)
def test_an_empty_machine_is_not_kept_idle_by_rows(model: Any) -> None:
    # 20 cores on 2 nodes of 16 and 4: the even part of 10 stands on the first only.
    cluster = snapshot(
        [{"name": "n1", "cores": 16}, {"name": "n2", "cores": 4}], [{"cores": 20, "nodes": 2}] * 3
    )
    assert len(schedule(cluster, model=model, balance=True).started) == 1


def test_the_objective_shown_is_of_priorities_and_nothing_is_proved_of_them() -> None:
    found = take_step(mixed(), StepOptions(balance=True, strategy="anytime", work_limit=3))
    priorities = {job.id: job.priority for job in mixed().jobs}
    assert found.schedule.objective.priority == sum(priorities[award.job] for award in found.schedule.started)
    assert found.schedule.objective.bound is None
    assert found.best is not None
    assert found.best.answer.value[0] != found.schedule.objective.priority


def test_worth_is_what_each_job_counts() -> None:
    found = take_step(mixed(), StepOptions(balance=True, strategy="anytime", work_limit=3))
    assert found.best is not None
    state = state_of(mixed())
    mix = mix_of(state, found.queue.waiting)
    balance = balance_of(state, found.queue.window, mix)
    assert found.best.answer.value[0] == sum(balance.worth(award.job) for award in found.schedule.started)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "ipsched"}, "balance: ipsched places without bids"),
        ({"weights": "paper"}, "balance: it has lexicographic weights only"),
        ({"bid_order": "figure-4.5"}, "balance: bid_order figure-4.5 makes no first bids"),
        ({"work_limit": 3}, "work_limit: strategy greedy reaches no limit"),
        (
            {"time_limit_s": 3.0},
            r"time_limit_s: strategy greedy reaches no limit \(the default with a balance\)",
        ),
        ({"on_timeout": "halve"}, "on_timeout: strategy greedy reaches no limit"),
        ({"objective": "priority_cores"}, "balance: a job counts by how hard it is to place"),
        ({"max_bids": 9}, "max_bids: strategy greedy awards the first bids of a balance"),
        ({"max_bids_per_job": 9}, "max_bids_per_job: strategy greedy awards the first bids"),
    ],
)
def test_what_a_balance_leaves_without_meaning_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        StepOptions(balance=True, **options)


def test_what_a_greedy_step_ignores_is_not_the_preset_s_either() -> None:
    plain = {"preset": "plugin", "model": "aucsched1", "weights": "lexicographic", "bid_order": "spec"}
    for greedy in ({"balance": True}, {"strategy": "greedy"}):
        found = options_with_preset({**plain, **greedy})
        assert (found.time_limit_s, found.on_timeout, found.reserve) == (None, None, 0)
    said = "^preset: plugin has values that do not allow this: balance: it has lexicographic weights only"
    with pytest.raises(OptionError, match=said):
        options_with_preset({"preset": "plugin", "model": "aucsched3", "balance": True})
    with pytest.raises(OptionError, match=r"^balance: ipsched places without bids"):
        options_with_preset({"preset": "plugin", "model": "ipsched", "balance": True})


@pytest.mark.parametrize("strategy", ["greedy", "anytime"])
def test_a_balanced_step_has_prices_and_reasons(strategy: str) -> None:
    options = StepOptions(balance=True, strategy=strategy, work_limit=3 if strategy == "anytime" else None)  # type: ignore[arg-type]
    found = overview(mixed(), options)
    assert found.started == len(take_step(mixed(), options).schedule.started) > 0
    assert found.worth > 0
    assert found.bound >= found.worth * (1 - 1e-9)


def test_a_balanced_step_looks_at_more_jobs_by_default() -> None:
    cluster = snapshot([{"name": "n1", "cores": 1}], [{"cores": 1}] * 450)
    windows = [
        schedule(cluster, **options).window
        for options in ({}, {"balance": True}, {"balance": True, "window": 30}, {"balance": False})
    ]
    assert windows == [100, 400, 30, 100]
