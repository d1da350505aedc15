"""A job alone on an empty machine: what ``aucsched schedule`` starts, every policy of simulations starts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from attack_simulations import SETTINGS
from hypothesis import given, settings
from hypothesis import strategies as st
from support.build import document, tree

from aucsched import schedule
from aucsched.cluster.snapshot import Snapshot
from aucsched.cluster.workload import ArrivingJob, ClusterWorkload
from aucsched.formats.native.cluster_file import parse_snapshot
from aucsched.models.ipsched import Ipsched
from aucsched.simulation.nodes.node_policies import NodeOptions, play
from aucsched.simulation.nodes.node_result import NodeSimulation


def cluster(cores: list[int], job: dict[str, Any], **members: Any) -> Snapshot:
    """Return an idle machine with one waiting job."""
    nodes = [
        {"name": f"n{place}", "cores": count, "memory_mib": 100 * count, "gres": {"gpu": place % 3}}
        for place, count in enumerate(cores)
    ]
    return parse_snapshot(msgspec.json.encode(document(nodes, [job], **members)))


def alone(snapshot: Snapshot, factor: float | None = None, **setting: Any) -> NodeSimulation:
    """Play the job alone."""
    job = replace(snapshot.jobs[0], submit_time=None)
    arriving = ArrivingJob(job=job, arrival_s=3.0, run_time_s=5.0, gres_run_time_factor=factor)
    return play(
        ClusterWorkload(
            name="",
            nodes=snapshot.nodes,
            jobs=(arriving,),
            switches=snapshot.switches,
            partitions=snapshot.partitions,
        ),
        NodeOptions(**setting),
    )


def check(snapshot: Snapshot, factor: float | None = None) -> None:
    """Every policy starts the job where the auction does, and what it prints of it is valid."""
    starts = len(schedule(snapshot, work_limit=1).started)
    for setting in SETTINGS:
        is_refused = setting["policy"] == "ipsched" and Ipsched.cannot_express(snapshot.jobs[0])
        result = alone(snapshot, factor, **setting)
        assert len(result.played) == (0 if is_refused else starts), (setting, result.record.never)
        assert result.to_dict()["jobs"] == len(result.played)
        if result.played:
            assert 0.001 <= result.played[0].run_s <= 5
            assert result.metrics["makespan_s"] > 0


@pytest.mark.parametrize(
    ("cores", "job", "members"),
    [
        ([4, 4, 4, 4], {"nodes": [1, 4], "cores": 1}, {}),
        ([4, 4, 4, 4], {"nodes": [1, 2], "cores": 3, "cores_per_task": 3}, {}),
        # The first two nodes have 5 cores together; MaxNodes leaves two nodes.
        ([1, 4, 8], {"cores": 10, "partition": "batch"}, {"partitions": [{"name": "batch", "max_nodes": 2}]}),
        # In order the first two nodes have enough, but at three each they would hold more than was asked for.
        ([3, 3, 4], {"cores": 4, "min_cores_per_node": 3}, {}),
    ],
)
def test_jobs_that_once_were_lost(cores: list[int], job: dict[str, Any], members: dict[str, Any]) -> None:
    if "partition" in job:
        members = {"partitions": [{**members["partitions"][0], "nodes": "n[0-2]"}]}
    snapshot = cluster(cores, job, **members)
    assert schedule(snapshot, work_limit=1).started
    check(snapshot)


def test_gres_from_none_on_do_not_shorten_a_run_to_nothing() -> None:
    # Soner (7.1) says nothing of a job that may have no GPU at all.
    snapshot = cluster([4, 4, 4], {"nodes": 1, "cores": 1, "gres_per_node": {"gpu": [0, 2]}})
    check(snapshot, 0.5)
    assert alone(snapshot, 0.5, policy="aucsched3").played[0].run_s == 5
    # And whatever the factor, a run is never shorter than a simulation can tell from none.
    some = cluster([4, 4, 4], {"nodes": 1, "cores": 1, "gres_per_node": {"gpu": [1, 2]}})
    assert alone(some, 1e-9, policy="aucsched3").played[0].run_s in {0.001, 5}
    check(some, 1e-9)


@st.composite
def _requests(draw: st.DrawFn) -> dict[str, Any]:
    unit, count = draw(st.sampled_from([1, 1, 2, 3])), draw(st.integers(1, 4))
    most = count + draw(st.integers(0, 3))
    nodes: Any = count if most == count else [count, most]
    job: dict[str, Any] = {"cores_per_task": unit} if unit > 1 else {}
    kind = draw(st.sampled_from(["cores", "nodes and cores", "per node"]))
    if kind == "cores":
        job["cores"] = unit * draw(st.integers(1, 12))
    elif kind == "nodes and cores":
        job |= {"nodes": nodes, "cores": unit * draw(st.integers(count, 12))}
    else:
        job |= {"nodes": nodes, "cores_per_node": unit * draw(st.integers(1, 3))}
    if kind != "per node" and draw(st.booleans()):
        job["min_cores_per_node"] = draw(st.integers(1, 5))
    for member, value in (
        ("contiguous", st.just(value=True)),
        ("exclusive", st.just(value=True)),
        ("max_switches", st.integers(1, 2)),
        ("memory_mib_per_node", st.integers(0, 500)),
        ("partition", st.just("batch")),
        ("required_nodes", st.just("n0")),
        ("excluded_nodes", st.just("n1")),
    ):
        if draw(st.integers(0, 3)) == 0:
            job[member] = draw(value)
    if draw(st.booleans()):
        low = draw(st.integers(0, 2))
        span = [low, draw(st.integers(max(low, 1), 3))]
        job[draw(st.sampled_from(["gres_per_node", "gres_total"]))] = {"gpu": span}
    return job


@settings(max_examples=60, deadline=None)
@given(
    cores=st.lists(st.sampled_from([1, 2, 3, 4, 6, 8]), min_size=2, max_size=7),
    job=_requests(),
    leaf=st.sampled_from([0, 2, 3]),
    max_nodes=st.integers(1, 4),
    factor=st.sampled_from([None, 1.0, 0.01]),
)
def test_every_policy_starts_alone_what_the_auction_starts(
    cores: list[int], job: dict[str, Any], leaf: int, max_nodes: int, factor: float | None
) -> None:
    names = [f"n{place}" for place in range(len(cores))]
    members: dict[str, Any] = {
        "partitions": [{"name": "batch", "nodes": f"n[0-{len(cores) - 1}]", "max_nodes": max_nodes}]
    }
    if leaf:
        members["topology"] = tree(names, leaf)
    check(cluster(cores, job, **members), factor)
