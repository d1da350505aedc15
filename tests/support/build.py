"""Snapshots in a few words."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from aucsched.auction import decide as decide_module
from aucsched.auction.check import AwardChecker
from aucsched.cluster.errors import AwardError
from aucsched.cluster.jobs import Job
from aucsched.cluster.snapshot import Snapshot
from aucsched.formats.native.cluster_file import parse_snapshot

#: Options of the auction alone: no promise to keep, no job with a reservation.
ALONE: Mapping[str, Any] = {"promise": "none", "reserve": 0}


def document(
    nodes: Sequence[Mapping[str, Any]], jobs: Sequence[Mapping[str, Any]], **members: Any
) -> dict[str, Any]:
    """Return a snapshot file's content; jobs without id or priority get falling ones."""
    filled = [{"id": f"J{place + 1}", "priority": 1000 - place, **job} for place, job in enumerate(jobs)]
    return {
        "format": "aucsched-snapshot/1",
        "time": "2026-11-20T09:30:00Z",
        "nodes": list(nodes),
        "jobs": filled,
        **members,
    }


def snapshot(
    nodes: Sequence[Mapping[str, Any]], jobs: Sequence[Mapping[str, Any]], **members: Any
) -> Snapshot:
    """Return a checked snapshot."""
    return parse_snapshot(msgspec.json.encode(document(nodes, jobs, **members)))


def tree(names: Sequence[str], leaf_size: int) -> dict[str, Any]:
    """Return a topology of two levels over nodes, ``leaf_size`` a leaf."""
    leaves = [
        {"name": f"leaf{start // leaf_size}", "nodes": ",".join(names[start : start + leaf_size])}
        for start in range(0, len(names), leaf_size)
    ]
    root = {"name": "root", "switches": ",".join(str(leaf["name"]) for leaf in leaves)}
    return {"kind": "tree", "switches": [*leaves, root]}


def section_1_2(**members: Any) -> Snapshot:
    """Return the example of Soner's section 1.2: three jobs on four nodes."""
    nodes = [{"name": "n[1-4]", "cores": 12, "gres": {"gpu": 3}}]
    jobs: list[dict[str, Any]] = [
        {"cores": 24},
        {"nodes": 2, "cores": 12, "gres_per_node": {"gpu": 2}},
        {"nodes": 2, "cores": 12, "gres_per_node": {"gpu": 3}},
    ]
    return snapshot(nodes, jobs, **members)


def figure_4_3() -> Snapshot:
    """Return the four jobs of Soner's figure 4.3 on 144 nodes, of which 16 are taken."""
    nodes = [
        {"name": "n[001-064]", "cores": 8, "gres": {"gpu": 2}},
        {"name": "n[065-080]", "cores": 8, "free_cores": 0, "gres": {"gpu": 2}, "state": "allocated"},
        {"name": "n[081-144]", "cores": 8, "gres": {"gpu": 2}},
    ]
    jobs: list[dict[str, Any]] = [
        {"cores": 512},
        {"nodes": 64, "cores_per_node": 2, "gres_per_node": {"gpu": 1}},
        {"nodes": 64, "cores_per_node": 4, "gres_per_node": {"gpu": 2}},
        {"nodes": 128, "cores_per_node": 1},
    ]
    return snapshot(nodes, jobs)


def tiny(seed: int) -> Snapshot:
    """Return a random snapshot of 10 nodes and 7 jobs of all three types, some contiguous, some with GPUs."""
    rng = random.Random(seed)
    nodes = [
        {
            "name": f"n{place}",
            "cores": 8,
            "free_cores": rng.randint(0, 8),
            "gres": {"gpu": 2},
            "free_gres": {"gpu": rng.randint(0, 2)},
        }
        for place in range(10)
    ]
    jobs = [_tiny_job(rng) for _ in range(7)]
    topology = (
        tree([str(node["name"]) for node in nodes], rng.choice([2, 5]))
        if rng.random() < 0.5
        else {"kind": "linear"}
    )
    return snapshot(nodes, jobs, topology=topology)


def crowded() -> Snapshot:
    """A window that HiGHS does not prove in a few milliseconds."""
    rng = random.Random(5)
    nodes = [{"name": f"n{place:03d}", "cores": 12, "free_cores": rng.randint(0, 12)} for place in range(120)]
    jobs = [
        {"nodes": rng.randint(2, 9), "cores_per_node": rng.randint(2, 7), "priority": rng.randint(1, 10**6)}
        for _ in range(60)
    ]
    return snapshot(nodes, jobs)


def _tiny_job(rng: random.Random) -> dict[str, Any]:
    count = rng.randint(1, 4)
    kind = rng.randint(1, 3)
    job: dict[str, Any] = {"priority": rng.randint(1, 100)}
    if kind == 1:
        job["cores"] = rng.randint(1, 24)
    elif kind == 2:
        job |= {"nodes": count, "cores": rng.randint(count, 8 * count)}
    else:
        job |= {"nodes": count, "cores_per_node": rng.randint(1, 6)}
    if rng.random() < 0.4:
        job["gres_per_node"] = {"gpu": rng.randint(1, 2)}
    if rng.random() < 0.25:
        job["contiguous"] = True
    return job


def refuse_awards(patch: pytest.MonkeyPatch, name: str) -> None:
    """Let the check of awards find a fault in a job's, wherever it stands."""
    check = AwardChecker.check

    def refusing(self: AwardChecker, job: Job, held: Any) -> None:
        if job.id == name:
            raise AwardError(f"job {name}: has a fault", job=name)
        check(self, job, held)

    patch.setattr(AwardChecker, "check", refusing)


@contextmanager
def all_bid() -> Iterator[None]:
    """Let no pass be settled by counts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decide_module, "placed_by_counts", lambda *_: None)
        patch.setattr(decide_module, "_stand", lambda *_: False)
        yield
