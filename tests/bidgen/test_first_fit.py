"""First-fit that looks at few nodes places jobs where one that looks at all of them does."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_snapshots import random_snapshot
from support.build import snapshot

from aucsched import schedule
from aucsched.auction.list_scheduling import placer_in
from aucsched.auction.options import StepOptions
from aucsched.auction.queue import queue_of
from aucsched.auction.state import state_of
from aucsched.bidgen import candidates
from aucsched.bidgen.candidates import CandidateCache, Reading, usable
from aucsched.bidgen.first_fit import Cluster, FirstFitPlacer, Placement
from aucsched.cluster.resources.demand import Demand


class Thorough(FirstFitPlacer):
    """Looks at all nodes for each job, and remembers nothing of them."""

    def place(self, demand: Demand) -> Placement | None:
        """Forget what is known of the nodes, then place the job."""
        self._candidates = CandidateCache(self._columns, self._free)
        return super().place(demand)

    def _may_take_first(self, asked: Reading) -> bool:
        del asked
        return False


def held(placement: Placement | None) -> tuple[list[int], list[int]] | None:
    return None if placement is None else (placement.nodes.tolist(), placement.held.cores.tolist())


@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 10**6), first_look=st.integers(1, 5), packed=st.sampled_from([None, False, True]))
def test_a_look_at_few_nodes_changes_no_placement(seed: int, first_look: int, packed: bool | None) -> None:
    cluster = random_snapshot(seed)
    state = state_of(cluster)
    window = queue_of(cluster, state.reader, StepOptions()).window
    order = np.random.default_rng(seed).permutation(len(window))
    placer = None if packed is None else placer_in(window, order, is_tight=packed)
    with patch.object(candidates, "_FIRST_LOOK", first_look):
        found = FirstFitPlacer(Cluster(state.columns, state.topology, (), placer)).place_all(window)
    expected = Thorough(Cluster(state.columns, state.topology, (), placer)).place_all(window)
    assert list(map(held, found)) == list(map(held, expected))


def test_nodes_that_could_not_be_a_jobs_are_not_looked_at_again() -> None:
    nodes = [{"name": "n[1-300]", "cores": 4}]
    cluster = snapshot(nodes, [{"nodes": 1, "cores_per_node": 4, "priority": 9} for _ in range(301)])
    state = state_of(cluster)
    window = queue_of(cluster, state.reader, StepOptions(window=400)).window
    looked: list[int] = []

    def counted(*given: object) -> object:
        looked.append(len(given[3]))  # type: ignore[arg-type]
        return usable(*given)  # type: ignore[arg-type]

    with patch.object(candidates, "usable", counted):
        placed = FirstFitPlacer(Cluster(state.columns, state.topology)).place_all(window)
    assert [held(one) for one in placed[:300]] == [([place], [4]) for place in range(300)]
    assert placed[300] is None
    # All nodes for every job would be 90 000.
    assert sum(looked) < 301 * 3 * 64


def test_gres_over_all_nodes_are_dealt_from_what_earlier_jobs_left() -> None:
    nodes = [{"name": "n[1-2]", "cores": 4, "gres": {"gpu": 2}}]
    asked = {"cores_per_node": 1, "gres_total": {"gpu": 2}}
    cluster = snapshot(nodes, [{**asked, "nodes": 1, "priority": 9}, {**asked, "nodes": 2, "priority": 8}])
    state = state_of(cluster)
    window = queue_of(cluster, state.reader, StepOptions()).window
    first, second = FirstFitPlacer(Cluster(state.columns, state.topology)).place_all(window)
    assert first is not None
    assert second is not None
    assert first.allocation().held.gres["gpu"].tolist() == [2]
    assert second.allocation().held.gres["gpu"].tolist() == [0, 2]


def test_neighbours_where_limits_leave_a_job_no_node() -> None:
    nodes = [{"name": f"n{place}", "cores": 4, "free_cores": free} for place, free in enumerate((4, 4, 3, 0))]
    members: dict[str, Any] = {
        "limits": [{"name": "all", "jobs": {}, "max": {"cores": 8}}],
        "running": [{"id": "R", "nodes": {"n2": {"cores": 1}, "n3": {"cores": 4}}}],
    }
    cluster = snapshot(nodes, [{"cores": 2, "exclusive": True, "contiguous": True}], **members)
    (refusal,) = schedule(cluster).pending
    assert refusal.reason == "limit"
    cluster = snapshot(nodes[:2], [{"cores": 1, "min_cores_per_node": 4, "contiguous": True}])
    (refusal,) = schedule(cluster).pending
    assert refusal.reason == "ineligible"
