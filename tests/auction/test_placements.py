"""The bound over all placements: above every award, and above the best of tiny clusters."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_snapshots import random_snapshot
from support.build import snapshot, tiny
from support.optimum import best_priority_sum

from aucsched import Snapshot
from aucsched.auction.options import StepOptions
from aucsched.auction.placement_bound import bound_over_placements
from aucsched.auction.queue import queue_of
from aucsched.auction.state import state_of
from aucsched.auction.step import run_step
from aucsched.cluster.resources.demand import DemandReader


def bound_of(cluster: Snapshot) -> float:
    columns = state_of(cluster).columns
    window = queue_of(cluster, DemandReader(cluster, columns), StepOptions(window=1000)).window
    found = bound_over_placements(window, columns, 10.0)
    assert found is not None
    return float(found)


@given(st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_it_is_not_below_the_best_of_all_placements(seed: int) -> None:
    cluster = tiny(seed)
    assert bound_of(cluster) >= best_priority_sum(cluster)


@given(st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_no_award_is_worth_more(seed: int) -> None:
    cluster = random_snapshot(seed)
    for model in ("aucsched3", "ipsched"):
        found = run_step(cluster, StepOptions(model=model, window=1000, work_limit=2)).objective
        assert found.priority <= bound_of(cluster) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("jobs", "best"),
    [
        # Of five free cores on each of two nodes: a node holds one job of three, both together three jobs.
        ([{"nodes": 1, "cores_per_node": 3}] * 4, 1999),
        ([{"cores": 3}] * 4, 2997),
        ([{"nodes": 1, "cores_per_node": 1, "gres_per_node": {"gpu": 1}}] * 4, 2997),
    ],
)
def test_slots_are_counted_on_each_node(jobs: list[dict[str, object]], best: int) -> None:
    nodes = [{"name": "a", "cores": 5, "gres": {"gpu": 2}}, {"name": "b", "cores": 5, "gres": {"gpu": 1}}]
    assert bound_of(snapshot(nodes, jobs)) == best


def test_a_run_of_neighbours_holds_so_many_jobs() -> None:
    # Runs of 12, 8 and 4 free cores hold two jobs of eight, or three of five.
    free = [4, 4, 4, 0, 4, 4, 0, 4]
    nodes = [{"name": f"n{place}", "cores": 4, "free_cores": cores} for place, cores in enumerate(free)]
    assert bound_of(snapshot(nodes, [{"cores": 8, "contiguous": True}] * 4)) == 1999
    assert bound_of(snapshot(nodes, [{"cores": 5, "contiguous": True}] * 4)) == 2997
    assert bound_of(snapshot(nodes, [{"cores": 8}] * 4)) == 2997
    assert bound_of(snapshot(nodes, [{"cores": 5}] * 4)) == 3994


def test_many_cores_on_few_nodes_need_nodes_with_more() -> None:
    # Eight cores free on two nodes, and two on six others: 28 in all, of which 12 are beyond two on a node.
    nodes: list[dict[str, object]] = [
        {"name": f"n{place}", "cores": 8, "free_cores": 8 if place < 2 else 2} for place in range(8)
    ]
    # A job of 14 cores on two nodes needs ten of them.
    assert bound_of(snapshot(nodes, [{"nodes": 2, "cores": 14}] * 2)) == 1000
    assert bound_of(snapshot(nodes, [{"nodes": [2, 8], "cores": 14}] * 2)) == 1999
    # Five cores on each of one to eight nodes are at least three beyond two on a node.
    assert (
        bound_of(snapshot(nodes, [{"nodes": 2, "cores": 14}, {"nodes": [1, 8], "cores_per_node": 5}])) == 1000
    )
    # Only nodes with a GPU count for jobs that want one on each.
    for place, node in enumerate(nodes):
        node |= {"gres": {"gpu": 1}, "free_gres": {"gpu": int(place != 1)}}
    job = {"nodes": 2, "gres_per_node": {"gpu": 1}}
    assert bound_of(snapshot(nodes, [job | {"cores": 10}, job | {"cores": 5}])) == 1000


def test_jobs_that_want_whole_nodes_share_the_empty_ones() -> None:
    # Three nodes stand empty, though three others have three cores free each.
    nodes = [{"name": "a[1-3]", "cores": 4}, {"name": "b[1-3]", "cores": 4, "free_cores": 3}]
    jobs = [{"cores": 5, "exclusive": True, "priority": 10 - place} for place in range(3)]
    # They are enough for one job and a half: for one.
    assert bound_of(snapshot(nodes, jobs)) == 10
    jobs = [
        {"nodes": 1, "cores_per_node": 1, "exclusive": True, "priority": 10 - place} for place in range(5)
    ]
    assert bound_of(snapshot(nodes, jobs)) == 10 + 9 + 8


def test_no_row_exceeds_what_a_number_holds() -> None:
    """A job without a node count may have any number of nodes, and files allow nodes of 10¹² cores."""
    nodes = [{"name": "a", "cores": 10**11}, {"name": "b", "cores": 10**11, "free_cores": 10**10}]
    assert bound_of(snapshot(nodes, [{"cores": 10**11, "exclusive": True}, {"cores": 1}])) == 1999
