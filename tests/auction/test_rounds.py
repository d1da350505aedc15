"""Rounds of new bids: never worse, the same again, and better where first bids were the limit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_snapshots import random_document, random_snapshot
from support.build import ALONE

from aucsched import Snapshot
from aucsched.auction import rounds
from aucsched.auction.check import check_schedule
from aucsched.auction.ledger import what_is_left
from aucsched.auction.options import StepOptions
from aucsched.auction.queue import queue_of
from aucsched.auction.rounds import Rounds
from aucsched.auction.state import state_of
from aucsched.auction.step import run_step
from aucsched.bidgen.first_fit import Cluster
from aucsched.bidgen.generate import Bids, generate_bids
from aucsched.formats.native.cluster_file import parse_snapshot

SEEDS = st.integers(0, 10**6)


def crowded(seed: int) -> Snapshot:
    """Return a random cluster on which the jobs wait three times over."""
    found = random_snapshot(seed)
    jobs = tuple(replace(job, id=f"{job.id}-{again}") for again in range(3) for job in found.jobs)
    return replace(found, jobs=jobs)


def rounds_of(cluster: Snapshot, options: StepOptions) -> Rounds:
    """Return rounds that start from the award of nobody."""
    state = state_of(cluster)
    ground = Cluster(columns=state.columns, topology=state.topology)
    window = queue_of(cluster, state.reader, options).window
    table = generate_bids(window, Cluster(state.columns, state.topology), options.bids).table
    return Rounds(ground, options, table, np.zeros(0, np.int64))


@given(SEEDS)
@settings(max_examples=12, deadline=None)
def test_more_rounds_are_never_worse_the_same_rounds_the_same_and_what_stands_fits(seed: int) -> None:
    cluster, options = crowded(seed), StepOptions(window=60)
    values = []
    for steps in (0, 1, 4, 4, 9):
        rounds = rounds_of(cluster, options)
        rounds.run(None, steps)
        values.append(rounds.best.value)
        table, state = rounds.best.table, state_of(cluster)
        ground = Cluster(columns=state.columns, topology=state.topology)
        assert (what_is_left(table, np.arange(len(table)), ground).columns.free.cores >= 0).all()
        assert len(set(table.job.tolist())) == len(table)
    assert values == sorted(values)
    assert values[2] == values[3]


@given(SEEDS)
@settings(max_examples=8, deadline=None)
def test_a_larger_work_limit_is_never_worse(seed: int) -> None:
    cluster = crowded(seed)
    cases: tuple[dict[str, Any], ...] = ({}, {"max_bids": 60, "max_bids_per_job": 3})
    for options in cases:
        values = []
        for limit in (0, 1, 3, 8, 40, 80):
            found = run_step(cluster, StepOptions(work_limit=limit, **options))
            check_schedule(cluster, found)
            values.append(found.objective.priority)
        assert values == sorted(values)


@pytest.mark.parametrize("seed", [4, 6, 7, 8])
def test_rounds_better_an_award_where_bids_are_few(seed: int) -> None:
    cluster = parse_snapshot(msgspec.json.encode(random_document(seed, 60, 80)))
    few: dict[str, Any] = {**ALONE, "window": 80, "max_bids": 100, "max_bids_per_job": 2}
    search, rounds = (run_step(cluster, StepOptions(work_limit=limit, **few)) for limit in (32, 32 + 8 * 15))
    assert rounds.objective.priority > search.objective.priority


def test_bids_of_a_round_end_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job may have thousands of readings: the round that makes their bids looks at the clock, too."""
    now, late = [0.0], list[bool]()

    def slowly(*given: Any) -> Bids:
        now[0] = 10.0
        late.append(given[-1]())
        return generate_bids(*given)

    of = rounds_of(crowded(4), StepOptions(window=60, clock=lambda: now[0]))
    monkeypatch.setattr(rounds, "generate_bids", slowly)
    of.run(5.0, None)
    assert late == [True]
