"""Families of constraints: every reader gets the same amounts, whatever a resource is called."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_snapshots import random_snapshot
from support.build import snapshot

from aucsched import Snapshot, schedule
from aucsched.auction.ledger import ResidualCapacity, greedy, what_is_left
from aucsched.auction.options import MODELS, StepOptions
from aucsched.auction.queue import queue_of
from aucsched.auction.step import take_step
from aucsched.bidgen.families.registry import FAMILIES, claims_of, columns_of
from aucsched.bidgen.first_fit import Cluster
from aucsched.bidgen.generate import BidOptions, generate_bids
from aucsched.bidgen.table import BidTable
from aucsched.cluster.resources.capacity import Resource
from aucsched.cluster.resources.demand import DemandReader
from aucsched.cluster.resources.job_reservations import Guard
from aucsched.models.auction_model import Aucsched2
from aucsched.models.model import ModelInput
from aucsched.models.search.packing import packing_of
from aucsched.topology.tree import topology_of


def bids_of(cluster: Snapshot, guards: tuple[Guard, ...] = ()) -> tuple[BidTable, Cluster]:
    columns, topology = columns_of(cluster), topology_of(cluster)
    window = queue_of(cluster, DemandReader(cluster, columns), StepOptions()).window
    table = generate_bids(window, Cluster(columns, topology, guards), BidOptions(max_bids=200)).table
    return table, Cluster(columns=columns, topology=topology, guards=guards)


def guards_of(cluster: Snapshot) -> tuple[Guard, ...]:
    return take_step(cluster, StepOptions(reserve=2, work_limit=5)).cluster.guards


def balanced_bids_of(cluster: Snapshot) -> tuple[BidTable, Cluster]:
    """Return bids under the rows of a balance, each job being there four times."""
    jobs = tuple(replace(job, id=f"{job.id}-{again}") for again in range(4) for job in cluster.jobs)
    found = take_step(
        replace(cluster, jobs=jobs), StepOptions(balance=True, strategy="anytime", work_limit=1)
    )
    table = bids_of(cluster)[0] if found.best is None else found.best.bids.table
    return table, found.cluster


@given(st.integers(0, 10**6), st.booleans())
@settings(max_examples=25, deadline=None)
def test_ledger_search_and_program_let_the_same_bids_win_together(seed: int, balanced: bool) -> None:
    """Soner: equations (5.1)-(5.4)."""
    cluster = random_snapshot(seed)
    table, told = balanced_bids_of(cluster) if balanced else bids_of(cluster, guards_of(cluster))
    packing = packing_of(table, told.columns, told.guards)
    state, left = ResidualCapacity(table, told), packing.capacity.copy()
    given = ModelInput(table=table, columns=told.columns, topology=told.topology, guards=told.guards)
    program = Aucsched2(given).program
    taken = np.zeros(len(table))
    for bid in range(len(table)):
        fits = bool(
            (
                packing.amount[packing.entries(np.array([bid]))]
                <= left[packing.row[packing.entries(np.array([bid]))]]
            ).all()
        )
        if taken[table.job == table.job[bid]].any():
            continue
        assert state.fits(bid) == (fits and holds(program, with_bid(taken, bid)))
        # The search leaves out what cannot bind over one bid a job: never tighter than the program.
        assert holds(program, with_bid(taken, bid)) == fits
        if state.fits(bid):
            state.take(bid)
            left = packing.capacity - packing.use(np.flatnonzero(with_bid(taken, bid)))
            taken = with_bid(taken, bid)


def with_bid(taken: Any, bid: int) -> Any:
    more = taken.copy()
    more[bid] = 1
    return more


def holds(program: Any, values: Any) -> bool:
    sums = np.add.reduceat(np.append(program.value * values[program.index], 0), program.indptr[:-1]) * (
        np.diff(program.indptr) > 0
    )
    return bool((sums <= program.row_upper + 1e-9).all())


def test_every_family_says_its_equation() -> None:
    for family in FAMILIES:
        assert "Σ" in (type(family).__doc__ or ""), family.name


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", ["cores", "memory", "licenses"])
def test_a_gres_called_like_another_resource_is_its_own(model: Any, kind: str) -> None:
    nodes = [{"name": "n[1-2]", "cores": 4, "memory_mib": 100, "gres": {kind: 1}}]
    asked: dict[str, Any] = {"nodes": 1, "cores": 1, "gres_per_node": {kind: 1}, "memory_mib_per_node": 10}
    cluster = snapshot(nodes, [dict(asked) for _ in range(3)])
    found = schedule(cluster, model=model, work_limit=20)
    assert [award.job for award in found.started] == ["J1", "J2"]


@pytest.mark.parametrize("kind", ["cores", "memory"])
def test_a_reservation_keeps_such_a_gres_beside_the_resource_of_its_name(kind: str) -> None:
    nodes = [{"name": "n1", "cores": 4, "memory_mib": 100, "gres": {kind: 2}}]
    running = [
        {"id": "r", "nodes": {"n1": {"cores": 1, "gres": {kind: 1}}}, "end_time": "2026-11-20T09:40:00Z"}
    ]
    wide = {
        "nodes": 1,
        "cores": 2,
        "gres_per_node": {kind: 2},
        "memory_mib_per_node": 50,
        "time_limit_s": 600,
    }
    small = {
        "nodes": 1,
        "cores": 1,
        "gres_per_node": {kind: 1},
        "memory_mib_per_node": 1,
        "time_limit_s": 6000,
    }
    plain = {"nodes": 1, "cores": 2, "memory_mib_per_node": 1, "time_limit_s": 6000}
    cluster = snapshot(nodes, [wide, small, plain], running=running)
    found = take_step(cluster, StepOptions(promise="none", reserve=1, work_limit=20)).with_bids()
    assert [award.job for award in found.schedule.started] == ["J3"]
    (guard,) = found.cluster.guards
    table = found.best.bids.table if found.best is not None else None
    assert table is not None
    claims = [claim for claim in claims_of(table, found.cluster.columns, (guard,)) if claim.guard is guard]
    assert [claim.resource for claim in claims] == [
        Resource("cores"),
        Resource("gres", kind),
        Resource("memory"),
    ][: len(claims)]


def test_greedy_never_takes_more_than_there_is() -> None:
    cluster = snapshot([{"name": "n1", "cores": 4}], [{"cores": 3}, {"cores": 2}, {"cores": 1}])
    table, told = bids_of(cluster)
    chosen = greedy(table, told)
    assert [int(table.job[bid]) for bid in chosen] == [0, 2]
    assert what_is_left(table, np.zeros(0, np.int64), told).columns.free.cores.tolist() == [4]
