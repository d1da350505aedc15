"""Large clusters in parts: valid awards, hardly worse than in one piece, nobody forgotten."""

from __future__ import annotations

import copyreg
import json
import os
import pickle
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import current_process
from pathlib import Path
from random import Random
from threading import Thread
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from instances.generate import snapshot_bytes
from random_snapshots import random_snapshot
from support.build import snapshot, tree
from support.dask_cluster import Cluster, dask_cluster

from aucsched import OptionError, Schedule, schedule
from aucsched.auction.explain.comparison import first_fit_by_priority
from aucsched.bidgen.families.pooled import SharePool
from aucsched.cluster.snapshot import Snapshot
from aucsched.formats.native.cluster_file import parse_snapshot
from aucsched.models.winners import spawning
from aucsched.topology.tree import linear, parts_of_nodes, topology_of

SEEDS = st.integers(0, 10**6)


def instance(seed: int) -> Snapshot:
    return parse_snapshot(snapshot_bytes("tiny", seed))


@given(st.integers(1, 60), st.integers(1, 70))
def test_nodes_in_a_row_are_cut_into_parts_of_nearly_one_size(nodes: int, most: int) -> None:
    part = parts_of_nodes(linear(nodes), most)
    sizes = np.bincount(part)
    assert (np.diff(part) >= 0).all()
    assert sizes.max() <= most
    assert len(sizes) == 1 or sizes.min() * 2 > most // 2


@given(SEEDS, st.integers(1, 30))
@settings(max_examples=60, deadline=None)
def test_parts_hold_at_most_so_many_nodes_and_cut_no_leaf_that_fits(seed: int, most: int) -> None:
    topology = topology_of(random_snapshot(seed))
    part = parts_of_nodes(topology, most)
    assert np.bincount(part).max() <= most
    assert set(part.tolist()) == set(range(int(part.max()) + 1))
    for leaf in np.unique(topology.leaf).tolist():
        nodes = np.flatnonzero(topology.leaf == leaf)
        if len(nodes) <= most:
            assert len(np.unique(part[nodes])) == 1


@given(SEEDS, st.integers(1, 12), st.integers(0, 2))
@settings(max_examples=40, deadline=None)
def test_every_award_in_parts_is_valid_and_every_job_in_one_list(seed: int, most: int, reserve: int) -> None:
    cluster = random_snapshot(seed)
    # schedule checks each award and that no job is lost.
    result = schedule(cluster, part_nodes=most, work_limit=2, reserve=reserve)
    assert result.objective.bound is None or result.objective.bound >= float(result.objective.priority)
    again = schedule(cluster, part_nodes=most, work_limit=2, reserve=reserve)
    assert again.started == result.started
    assert again.pending == result.pending


@given(SEEDS, st.integers(1, 12))
@example(27737, 5)  # first-fit deals gres over the job beside others; its bids, made alone, overlapped
@settings(max_examples=30, deadline=None)
def test_parts_are_never_worse_than_first_fit(seed: int, most: int) -> None:
    cluster = random_snapshot(seed)
    result = schedule(cluster, part_nodes=most, work_limit=2)
    assert result.objective.priority >= first_fit_by_priority(cluster, 100).priority


def test_parts_lose_little() -> None:
    whole = [float(schedule(instance(seed), work_limit=20).objective.priority) for seed in range(6)]
    parts = [
        float(schedule(instance(seed), work_limit=20, part_nodes=24).objective.priority) for seed in range(6)
    ]
    assert sum(parts) >= 0.85 * sum(whole)


def test_a_job_wider_than_every_part_starts_where_first_fit_puts_it() -> None:
    jobs: list[dict[str, Any]] = [{"nodes": 6, "cores_per_node": 2, "priority": 100}]
    jobs += [{"nodes": 1, "cores_per_node": 2, "priority": 10 + place} for place in range(4)]
    nodes = [{"name": f"n{place}", "cores": 2} for place in range(8)]
    result = schedule(snapshot(nodes, jobs), part_nodes=4, work_limit=2)
    assert {award.job for award in result.started} == {"J1", "J4", "J5"}


def test_what_its_part_refuses_starts_in_another() -> None:
    """Both wide jobs are dealt to a part each; what is left over goes wherever there is room."""
    switches = tree([f"n{place}" for place in range(8)], 4)
    nodes = [{"name": f"n{place}", "cores": 4} for place in range(8)]
    jobs: list[dict[str, Any]] = [{"nodes": 3, "cores_per_node": 4, "priority": 50} for _ in range(2)]
    jobs += [{"nodes": 1, "cores_per_node": 4, "priority": 5} for _ in range(2)]
    result = schedule(snapshot(nodes, jobs, topology=switches), part_nodes=4, work_limit=2)
    assert len(result.started) == 4


@pytest.mark.parametrize("seed", [2, 3, 38])
def test_no_part_takes_room_beside_a_reservation_that_a_wider_job_took(seed: int) -> None:
    """From second 100 on J1 needs every node; what long jobs wider than a part leave there is not free."""
    random = Random(seed)
    count, need = random.choice([4, 6, 8]), random.choice([2, 4, 6])
    jobs: list[dict[str, Any]] = [{"nodes": count, "cores_per_node": need, "time_limit_s": 50}]
    for _ in range(random.randint(4, 12)):
        asked = {"nodes": random.choice([1, 1, 1, 2, 3, 3]), "cores_per_node": random.choice([1, 2, 3, 4])}
        limit = random.choice([50, 500, 500])
        jobs.append({**asked, "priority": random.randint(1, 60), "time_limit_s": limit})
    last = f"n{count - 1}"
    running = [{"id": "R", "nodes": {last: {"cores": 8}}, "end_time": "2026-11-20T09:31:40Z"}]
    nodes = [{"name": f"n{place}", "cores": 8} for place in range(count - 1)]
    state = snapshot([*nodes, {"name": last, "cores": 8, "free_cores": 0}], jobs, running=running)
    result = schedule(state, part_nodes=2, work_limit=2, promise="none", reserve=1)
    held = dict.fromkeys((node.name for node in state.nodes), 0)
    for award in result.started:
        if jobs[int(award.job[1:]) - 1]["time_limit_s"] > 100:
            for name, holds in award.nodes.items():
                held[name] += holds.cores
    assert result.started
    assert max(held.values()) <= 8 - need


def test_a_job_wider_than_every_part_is_outbid_not_without_a_place() -> None:
    jobs: list[dict[str, Any]] = [
        *({"nodes": 2, "cores": 4} for _ in range(2)),
        {"nodes": 3, "cores_per_node": 1},
        {"nodes": 5, "cores_per_node": 1},
    ]
    state = snapshot([{"name": "n[0-3]", "cores": 2}, {"name": "n4", "cores": 2, "free_cores": 0}], jobs)
    result = schedule(state, part_nodes=2, work_limit=10, promise="none", reserve=0)
    assert {refusal.job: (refusal.reason.value, refusal.detail) for refusal in result.pending} == {
        "J3": ("outbid", "outbid by J1, J2 on n0, n1, n2"),
        "J4": ("no_fit", "no nodeset holds 5 nodes, 1 core a node; 8 cores are free on 4 nodes it may use"),
    }


def test_parts_of_no_node_are_refused() -> None:
    with pytest.raises(OptionError, match="part_nodes: 0 is below 1"):
        schedule(instance(0), part_nodes=0)


def test_parts_are_for_the_search_only() -> None:
    with pytest.raises(OptionError, match="part_nodes: only strategy anytime"):
        schedule(instance(0), part_nodes=8, strategy="exact")


def shared_out(**options: Any) -> Schedule:
    return schedule(instance(3), part_nodes=12, work_limit=12, **options)


def test_parts_in_several_processes_give_the_same_award() -> None:
    alone, together = shared_out(), shared_out(workers=3)
    assert len({node for award in alone.started for node in award.nodes}) > 12
    assert together.started == alone.started
    assert together.pending == alone.pending
    assert together.objective == alone.objective


def test_what_processes_are_sent_is_pickled_without_a_pickler_of_ours() -> None:
    assert MappingProxyType not in copyreg.dispatch_table
    assert pickle.loads(pickle.dumps(SharePool())).is_empty  # noqa: S301 - our own


def test_a_daemonic_process_is_told_that_it_starts_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(vars(current_process())["_config"], "daemon", True)
    with pytest.raises(OptionError, match="a daemonic process"):
        shared_out(workers=2)


def test_auctions_whose_process_dies_are_held_here(monkeypatch: pytest.MonkeyPatch) -> None:
    pools: list[ProcessPoolExecutor] = []

    class Dying(ProcessPoolExecutor):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            pools.append(self)
            assert isinstance(self.submit(os._exit, 3).exception(), BrokenProcessPool)

    monkeypatch.setattr(spawning, "ProcessPoolExecutor", Dying)
    assert shared_out(workers=2).started == shared_out().started
    assert len(pools) == 1


def test_jobs_that_share_licences_are_auctioned_part_by_part() -> None:
    document = json.loads(snapshot_bytes("tiny", 3))
    document["licenses"] = {"solver": {"total": 2}}
    for job in document["jobs"]:
        job["licenses"] = {"solver": 1}
    cluster = parse_snapshot(json.dumps(document).encode())
    results = [schedule(cluster, part_nodes=12, work_limit=5, workers=workers) for workers in (1, 2)]
    # check.py looks at licences: two jobs at once and no more, wherever they are.
    assert [len(result.started) for result in results] == [2, 2]
    assert results[0].started == results[1].started


def test_parts_on_a_dask_cluster_give_the_same_award_one_worker_killed(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    alone = schedule(instance(3), part_nodes=6, work_limit=300)
    with dask_cluster(tmp_path) as cluster:
        killer = Thread(target=_kill_while_it_works, args=(cluster,))
        killer.start()
        found = schedule(instance(3), part_nodes=6, work_limit=300, dask=cluster.address)
        killer.join()
        assert cluster.workers[0].poll() is not None
    assert found.started == alone.started
    assert found.objective == alone.objective


def _kill_while_it_works(cluster: Cluster) -> None:
    """Kill the first worker as soon as it has an auction."""
    from distributed import Client  # noqa: PLC0415 - the extra may be absent

    worker = cluster.workers[0]
    with Client(cluster.address, set_as_default=False) as client:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            busy = [where for where, tasks in client.processing().items() if tasks]
            if busy:
                break
            time.sleep(0.01)
    worker.kill()
    worker.wait()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dask": "tcp://127.0.0.1:1"}, "dask: 48 nodes are one part of at most 20000 (part_nodes)"),
        ({"dask": "tcp://127.0.0.1:1", "workers": 2}, "workers: with dask the cluster's own workers auction"),
        ({"workers": 2, "strategy": "greedy"}, "workers: only strategy anytime takes a cluster in parts"),
        ({"dask": "x", "strategy": "exact"}, "dask: only strategy anytime takes a cluster in parts"),
        ({"workers": 0}, "workers: 0 is below 1"),
    ],
)
def test_who_cannot_help_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError) as error:
        schedule(instance(0), **options)
    assert str(error.value).startswith(said)


def test_an_address_where_no_scheduler_answers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("aucsched.auction.parts.workers._PATIENCE", "500ms")
    with pytest.raises(OptionError, match=r"^dask tcp://127\.0\.0\.1:1: no scheduler answers there"):
        schedule(instance(0), part_nodes=12, dask="tcp://127.0.0.1:1")
