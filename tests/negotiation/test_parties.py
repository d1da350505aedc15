"""Runtime schedulers that share no partition: each plays its own as if it were alone."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from aucsched.cluster.errors import InputError
from aucsched.cluster.jobs import Job, Request, Span
from aucsched.cluster.nodes import Node
from aucsched.cluster.workload import ArrivingJob, ClusterWorkload
from aucsched.formats.native.cluster_file import parse_workload
from aucsched.negotiation.batch.mapping import BatchSettings, MapperName
from aucsched.negotiation.messages import Code
from aucsched.negotiation.runtime.settings import RuntimeSettings
from aucsched.simulation.negotiated.negotiated_report import Negotiated
from aucsched.simulation.negotiated.negotiated_run import negotiate
from aucsched.simulation.negotiated.plays import play_of

Document = dict[str, Any]


def document(rng: Random) -> Document:
    """Return a workload of two or three partitions without a common node; some jobs grow, some are urgent."""
    sizes = {name: rng.randint(1, 6) for name in "abc"[: rng.randint(2, 3)]}
    jobs = []
    for number in range(rng.randint(2, 14)):
        name = rng.choice(list(sizes))
        count = rng.randint(1, sizes[name])
        job: Document = {
            "id": f"{name}{number}",
            "partition": name,
            "priority": rng.randint(1, 50),
            "nodes": count,
            "cores_per_node": 1,
            "arrival_s": rng.choice([0, rng.randint(0, 120)]),
            "run_time_s": rng.randint(5, 90),
        }
        if rng.random() < 0.3:
            job |= {"kind": "malleable", "min_nodes": count, "max_nodes": rng.randint(count, sizes[name])}
        elif rng.random() < 0.1:
            job["qos"] = "urgent"
        jobs.append(job)
    return {
        "format": "aucsched-workload/1",
        "nodes": [
            {"name": f"{name}[1-{size}]", "cores": 1, "partitions": [name]} for name, size in sizes.items()
        ],
        "jobs": sorted(jobs, key=lambda job: int(job["arrival_s"])),
    }


def only(workload: Document, partition: str) -> Document:
    """Return one partition's nodes and jobs."""
    nodes = [node for node in workload["nodes"] if node["partitions"] == [partition]]
    return workload | {
        "nodes": nodes,
        "jobs": [job for job in workload["jobs"] if job["partition"] == partition],
    }


def played(workload: Document, runtimes: int, mapper: MapperName) -> Negotiated:
    play = play_of(parse_workload(json.dumps(workload).encode()), None)
    settings = BatchSettings(mapper=mapper, ends_when_done=True)
    return negotiate(replace(play, runtimes=runtimes), settings, RuntimeSettings())


def test_each_of_fewer_parties_than_partitions_holds_its_own_nodes() -> None:
    job = {"priority": 1, "nodes": 2, "cores_per_node": 1, "arrival_s": 0, "run_time_s": 5}
    workload = {
        "format": "aucsched-workload/1",
        "nodes": [{"name": f"{name}[1-2]", "cores": 1, "partitions": [name]} for name in "abc"],
        "jobs": [{"id": name, "partition": name, **job} for name in "abc"],
    }
    result = played(workload, 2, "greedy")
    assert {one.job: one.nodes for one in result.held} == {"a": 0b11, "b": 0b1100, "c": 0b110000}


def test_a_job_too_large_for_each_party_is_named_and_times_are_floats() -> None:
    jobs = tuple(
        ArrivingJob(
            job=Job(
                id=name,
                priority=1,
                request=Request(nodes=Span.exactly(count), cores_per_node=1),
                time_limit_s=9,
            ),
            arrival_s=came_s,
            run_time_s=5,
        )
        for name, count, came_s in (("soon", 1, 1), ("late", 2, 3))
    )
    play = play_of(
        ClusterWorkload(name="w", nodes=[Node(name="n1", cores=1), Node(name="n2", cores=1)], jobs=jobs), None
    )
    times = [time for one in play.arrivals for time in (one.time_s, one.job.true_time_at_min_s)]
    assert list(map(repr, times)) == ["1.0", "5.0", "3.0", "5.0"]
    with pytest.raises(InputError, match="jobs: job late: 2 nodes are above the 1"):
        replace(play, runtimes=2)


@pytest.mark.parametrize("mapper", ["auction", "greedy"])
def test_a_party_for_each_partition_plays_it_as_if_it_were_alone(mapper: MapperName) -> None:
    urgent = 0
    for seed in range(50):
        workload = document(Random(seed))
        names = [node["partitions"][0] for node in workload["nodes"]]
        together = played(workload, len(names), mapper)
        if any(answer.code is Code.REJECT for answer in together.urgent):
            continue  # it goes before all that wait, in other partitions too: later jobs are behind it
        urgent += len(together.urgent)
        parts = [part for part in (only(workload, name) for name in names) if part["jobs"]]
        alone = {job: report for part in parts for job, report in played(part, 1, mapper).done.items()}
        assert dict(together.done) == alone, f"seed {seed}"
    assert urgent >= 10
