"""Clusters and queues for benchmarks: made from a seed, the same every time."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from aucsched import Snapshot
from aucsched.formats.native.cluster_file import parse_snapshot

#: name -> (nodes, cores, GPUs, nodes a leaf, leaves a switch): Soner's TSUBAME 2.0, and a Frontier-like one.
MACHINES = {"tsubame": (1408, 12, 3, 16, 8), "frontier": (9408, 64, 8, 16, 28)}


def fragmented(machine: str, jobs: int, seed: int, *, busy: float = 0.6) -> Snapshot:
    """Return a machine with a share of its cores busy in fragments, and a queue of jobs of all types."""
    return parse_snapshot(msgspec.json.encode(fragmented_document(machine, jobs, seed, busy=busy)))


def fragmented_document(machine: str, jobs: int, seed: int, *, busy: float = 0.6) -> dict[str, Any]:
    """Return the content of its snapshot file."""
    count, cores, gpus, leaf, middle = MACHINES[machine]
    rng = random.Random(seed)  # noqa: S311 - not a secret
    free_cores, free_gpus = _fragments(rng, count, cores, gpus, busy)
    width = len(str(count - 1))
    nodes = [
        {
            "name": f"n{place:0{width}d}",
            "cores": cores,
            "free_cores": free_cores[place],
            "gres": {"gpu": gpus},
            "free_gres": {"gpu": free_gpus[place]},
            "state": "mixed" if free_cores[place] else "allocated",
        }
        for place in range(count)
    ]
    return {
        "format": "aucsched-snapshot/1",
        "time": "2026-11-20T09:30:00Z",
        "nodes": nodes,
        "topology": {"kind": "tree", "switches": _switches(count, width, leaf, middle)},
        "jobs": [_job(rng, place, cores, gpus) for place in range(jobs)],
    }


def _fragments(
    rng: random.Random, count: int, cores: int, gpus: int, busy: float
) -> tuple[list[int], list[int]]:
    free_cores, free_gpus = [cores] * count, [gpus] * count
    target = (1 - busy) * count * cores
    left = count * cores
    while left > target:
        size = rng.choice([1, 2, 4, 8, 16, 32])
        start = rng.randrange(count - size)
        use, gpu = rng.choice([cores // 4, cores // 2, cores]), rng.randint(0, gpus // 2)
        for node in range(start, start + size):
            if free_cores[node] >= use and free_gpus[node] >= gpu:
                free_cores[node] -= use
                free_gpus[node] -= gpu
                left -= use
    return free_cores, free_gpus


def _switches(count: int, width: int, leaf: int, middle: int) -> list[dict[str, Any]]:
    leaves = [
        {
            "name": f"leaf{start // leaf:04d}",
            "nodes": f"n[{start:0{width}d}-{min(start + leaf, count) - 1:0{width}d}]",
        }
        for start in range(0, count, leaf)
    ]
    middles = [
        {
            "name": f"mid{start // middle:03d}",
            "switches": ",".join(one["name"] for one in leaves[start : start + middle]),
        }
        for start in range(0, len(leaves), middle)
    ]
    return [*leaves, *middles, {"name": "top", "switches": ",".join(one["name"] for one in middles)}]


def _job(rng: random.Random, place: int, cores: int, gpus: int) -> dict[str, Any]:
    size = rng.choice([1, 2, 4, 8, 16, 32])
    per_node = rng.choice([cores // 4, cores // 3, cores // 2, cores])
    job: dict[str, Any] = {"id": str(place), "priority": rng.randint(1, 100_000), "time_limit_s": 3600}
    kind = rng.randint(1, 3)
    if kind == 1:
        job["cores"] = size * per_node
    elif kind == 2:
        job |= {"nodes": size, "cores": size * per_node}
    else:
        job |= {"nodes": size, "cores_per_node": per_node}
    if rng.random() < 0.4:
        job["gres_per_node"] = {"gpu": rng.randint(1, gpus)}
    if rng.random() < 0.3:
        job["contiguous"] = True
    return job
