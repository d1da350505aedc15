"""Packings: bids that fit beside each other, the better start, the same again, few of a job's bids."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_snapshots import random_snapshot
from support.build import ALONE, snapshot

from aucsched import Snapshot, schedule
from aucsched.auction import ledger
from aucsched.auction.attempt import bids_of_step, starts_of
from aucsched.auction.explain.comparison import first_fit_by_priority
from aucsched.auction.ledger import ResidualCapacity
from aucsched.auction.list_scheduling import JobLists, ListPlacer, list_placers, placer_in
from aucsched.auction.options import StepOptions
from aucsched.auction.queue import queue_of
from aucsched.auction.state import state_of
from aucsched.bidgen.first_fit import Cluster, FirstFitPlacer
from aucsched.bidgen.generate import Bids, generate_bids
from aucsched.bidgen.table import BidTable
from aucsched.cluster.resources.demand import DemandReader
from aucsched.models.search.packing import packing_within


def bids_of(cluster: Snapshot, options: StepOptions) -> tuple[Bids, Cluster]:
    state = state_of(cluster)
    ground = Cluster(columns=state.columns, topology=state.topology)
    window = queue_of(cluster, state.reader, options).window
    return bids_of_step(window, ground, options, None, None), ground


def packings_of(cluster: Snapshot) -> tuple[ListPlacer, ...]:
    columns = state_of(cluster).columns
    window = queue_of(cluster, DemandReader(cluster, columns), StepOptions()).window
    lists = JobLists.of(window, "priority", columns, 10.0)
    assert lists is not None
    return list_placers(lists, window, 0)


def contested(big: int = 1) -> Snapshot:
    """Jobs of the highest priorities that want everything, before many small ones that are worth more."""
    nodes = [{"name": "n[1-8]", "cores": 8}]
    jobs = [{"nodes": 8, "cores_per_node": 8, "priority": 100 + place} for place in range(big)]
    jobs += [{"nodes": 1, "cores_per_node": 2, "priority": 50 - place % 7} for place in range(40)]
    return snapshot(nodes, jobs)


def test_a_start_by_worth_for_cost_is_the_optimum_where_small_jobs_are_worth_more() -> None:
    cluster = contested()
    # 32 of the small jobs fill the machine: all but the eight that count least.
    best = sum(sorted((50 - place % 7 for place in range(40)), reverse=True)[:32])
    assert first_fit_by_priority(cluster, 100).priority == 100
    assert schedule(cluster, **ALONE, work_limit=0).objective.priority == best
    state = state_of(cluster)
    window = queue_of(cluster, state.reader, StepOptions()).window
    for packing in packings_of(cluster)[:2]:
        placed = FirstFitPlacer(Cluster(state.columns, state.topology, (), packing)).place_all(window)
        assert sum(one.asked.demand.job.priority for one in placed if one is not None) == best


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_the_bids_of_a_packing_fit_beside_each_other_and_stay_within_the_caps(seed: int) -> None:
    options = StepOptions(window=60, max_bids_per_job=9)
    cluster = random_snapshot(seed)
    bids, ground = bids_of(cluster, options)
    assert np.bincount(bids.table.job, minlength=1).max(initial=0) <= 9
    has_totals = any(job.request.gres_total for job in cluster.jobs)
    for packed in bids.listed:
        assert len(set(bids.table.job[packed].tolist())) == len(packed)
        state = ResidualCapacity(bids.table, ground)
        for bid in packed.tolist():
            # Gres over all nodes of several jobs are dealt as if each stood alone.
            assert state.fits(bid) or has_totals
            if state.fits(bid):
                state.take(bid)
    again, _ = bids_of(cluster, options)
    assert [one.tolist() for one in again.listed] == [one.tolist() for one in bids.listed]


def test_nothing_is_packed_where_first_fit_starts_every_job_or_bids_follow_the_figure() -> None:
    nodes = [{"name": "n[1-8]", "cores": 8}]
    everyone = snapshot(nodes, [{"nodes": 1, "cores_per_node": 2}] * 4)
    assert bids_of(everyone, StepOptions())[0].listed == ()
    assert bids_of(contested(), StepOptions(bid_order="figure-4.5"))[0].listed == ()
    assert len(bids_of(contested(), StepOptions())[0].listed) == 6


def test_jobs_that_want_neighbours_are_packed_on_neighbours() -> None:
    nodes = [{"name": f"n{place}", "cores": 8, "free_cores": 8 - place % 3} for place in range(12)]
    jobs = [{"nodes": 12, "cores_per_node": 6, "priority": 9}]
    jobs += [{"nodes": 3, "cores_per_node": 5, "contiguous": True, "priority": 8}] * 5
    bids, _ = bids_of(snapshot(nodes, jobs), StepOptions())
    for packed in bids.listed:
        assert len(packed) == 4
        for bid in packed.tolist():
            assert (np.diff(bids.table.node[bids.table.entries(bid)]) == 1).all()


def test_of_jobs_that_all_fit_those_that_want_neighbours_are_placed_first() -> None:
    # By worth for cost the small jobs come first, one on each node: the wide one would find no neighbours.
    nodes = [{"name": f"n{place}", "cores": 8, "free_cores": 8 - 4 * (place % 2)} for place in range(8)]
    jobs = [{"nodes": 8, "cores_per_node": 3, "contiguous": True, "priority": 8 * 24}]
    jobs += [{"nodes": 1, "cores_per_node": 5, "priority": 60}] * 4
    jobs += [{"nodes": 1, "cores_per_node": 1, "priority": 12 - place} for place in range(8)]
    cluster = snapshot(nodes, jobs)
    state = state_of(cluster)
    window = queue_of(cluster, state.reader, StepOptions()).window
    wide = next(place for place, demand in enumerate(window) if demand.contiguous)
    for packing in packings_of(cluster)[:2]:
        placed = FirstFitPlacer(Cluster(state.columns, state.topology, (), packing)).place_all(window)
        assert placed[wide] is not None
    assert schedule(cluster, **ALONE, work_limit=0).objective.priority == 8 * 24 + 4 * 60 + sum(range(9, 13))


def test_small_jobs_of_great_worth_are_not_lost_where_less_fits_than_was_counted() -> None:
    # Six cores a job on nodes of eight: a quarter of what is counted as free holds nobody.
    nodes = [{"name": "n[1-8]", "cores": 8}]
    jobs = [{"nodes": 1, "cores_per_node": 6, "priority": 60}] * 10
    jobs += [
        {"nodes": 4, "cores_per_node": 2, "priority": 90},
        {"nodes": 1, "cores_per_node": 3, "priority": 400},
    ]
    cluster = snapshot(nodes, jobs)
    state = state_of(cluster)
    window = queue_of(cluster, state.reader, StepOptions()).window
    first = next(place for place, demand in enumerate(window) if demand.job.priority == 400)
    ground = Cluster(state.columns, state.topology, placer=packings_of(cluster)[0])
    placed = FirstFitPlacer(ground).place_all(window)
    assert placed[first] is not None
    assert schedule(cluster, **ALONE, work_limit=0).objective.priority == 400 + 7 * 60 + 90


def test_the_best_packings_have_bids_and_come_first() -> None:
    cluster = contested()
    state = state_of(cluster)
    window = queue_of(cluster, state.reader, StepOptions()).window
    everyone = np.arange(len(window))
    worth = np.array([float(demand.job.priority) for demand in window])
    # The wide job first: 100; the small ones first: much more.
    orders = [placer_in(window, everyone, is_tight=False)] * 7
    orders.append(placer_in(window, everyone[::-1], is_tight=False))
    options = replace(StepOptions().bids, placers=tuple(orders), worth=worth)
    bids = generate_bids(window, Cluster(state.columns, state.topology), options)
    assert len(bids.listed) == 6
    sums = [worth[bids.table.job[packed]].sum() for packed in bids.listed]
    assert sums == [max(sums), *[100.0] * 5]


def test_where_cores_count_the_large_job_starts() -> None:
    cluster = contested()
    found = schedule(cluster, **ALONE, objective="priority_cores", work_limit=0)
    assert found.objective.priority == first_fit_by_priority(cluster, 100).priority * 64


def test_packings_bid_where_the_time_for_bids_is_up() -> None:
    cluster = contested()
    state = state_of(cluster)
    window = queue_of(cluster, state.reader, StepOptions()).window
    made = packings_of(cluster)[:1]
    asked = iter([False] * len(made))
    options = replace(StepOptions().bids, placers=made)
    bids = generate_bids(
        window, Cluster(state.columns, state.topology), options, is_over=lambda: next(asked, True)
    )
    assert not bids.complete
    # Nobody bids but where first-fit or the packing has it: the wide job, and 32 of the small ones.
    assert len(bids.table) == 1 + 32
    _, start = starts_of(bids, Cluster(columns=state.columns, topology=state.topology), StepOptions())
    assert sum(window[job].job.priority for job in bids.table.job[start].tolist()) > 100


def test_under_tight_caps_every_job_still_bids_where_a_packing_has_it() -> None:
    cluster = contested()
    best = sum(sorted((50 - place % 7 for place in range(40)), reverse=True)[:32])
    # Three bids a job: dealt by priority alone the first jobs had sixty, and the others one.
    options = StepOptions(window=60, max_bids=3 * 41, max_bids_per_job=60)
    bids, ground = bids_of(cluster, options)
    assert len(bids.table) <= 3 * 41
    assert len(bids.listed[0]) == 32
    priority = [demand.job.priority for demand in bids.table.demands]
    _, start = starts_of(bids, ground, options)
    assert sum(priority[job] for job in bids.table.job[start].tolist()) == best


def test_the_rows_of_all_bids_are_packed_once_for_all_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 4 800 bids on 220 nodes each that took a second more, of a step's three."""
    bids, ground = bids_of(contested(), StepOptions())
    packed: list[int] = []

    def noted(table: BidTable, *claims: Any, **options: Any) -> Any:
        packed.append(len(table))
        return packing_within(table, *claims, **options)

    monkeypatch.setattr(ledger, "packing_within", noted)
    starts_of(bids, ground, StepOptions())
    assert len(bids.listed) == 6
    assert packed == [len(bids.table)]
