"""Random snapshots with every kind of request, run through every model.

    python benchmarks/random_snapshots.py --count 10000

Prints how many snapshots were scheduled, and fails at the first invalid award, crash or job unaccounted for
(each schedule is checked in plain Python before it is returned). The same seed makes the same snapshot.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from typing import Any

import msgspec

from aucsched import Snapshot
from aucsched.auction.options import MODELS, StepOptions
from aucsched.auction.step import run_step
from aucsched.formats.native.cluster_file import parse_snapshot

GRES = ("gpu", "gpu:a100", "gpu:v100", "fpga")
FEATURES = ("nvme", "fat", "ib")
PARTITIONS = ("batch", "debug")


def random_snapshot(seed: int) -> Snapshot:
    """Return a snapshot of up to 24 nodes and 12 jobs."""
    return parse_snapshot(msgspec.json.encode(random_document(seed)))


def random_document(seed: int, most_nodes: int = 24, most_jobs: int = 12) -> dict[str, Any]:
    """Return the content of its file."""
    rng = random.Random(seed)  # noqa: S311 - not a secret
    names = [f"n{place:02d}" for place in range(rng.randint(1, most_nodes))]
    nodes = [_node(rng, name) for name in names]
    document: dict[str, Any] = {
        "format": "aucsched-snapshot/1",
        "time": "2026-11-20T09:30:00Z",
        "nodes": nodes,
        "jobs": [_job(rng, place, names) for place in range(rng.randint(0, most_jobs))],
        "licenses": {"matlab": {"total": 5, "free": rng.randint(0, 5)}},
    }
    if rng.random() < 0.7:
        document["topology"] = {"kind": "tree", "switches": _switches(rng, names)}
    if rng.random() < 0.3:
        document["partitions"] = [{"name": "batch", "max_nodes": rng.randint(1, 8), "max_time_limit_s": 3600}]
    if rng.random() < 0.3:
        document["reservations"] = [
            {
                "name": "weekly",
                "nodes": ",".join(rng.sample(names, rng.randint(1, len(names)))),
                "start": "2026-11-20T10:00:00Z",
                "end": "2026-11-20T12:00:00Z",
                "users": ["ann"],
            }
        ]
    return document


def _node(rng: random.Random, name: str) -> dict[str, Any]:
    cores = rng.choice([4, 8, 12])
    gres = {kind: rng.randint(1, 4) for kind in GRES if rng.random() < 0.3}
    node: dict[str, Any] = {"name": name, "cores": cores, "gres": gres}
    if rng.random() < 0.6:
        node["free_cores"] = rng.randint(0, cores)
        node["free_gres"] = {kind: rng.randint(0, count) for kind, count in gres.items()}
    if rng.random() < 0.5:
        node["memory_mib"] = 1000 * cores
        node["free_memory_mib"] = rng.randint(0, 1000 * cores)
    if rng.random() < 0.1:
        node["state"] = rng.choice(["drained", "allocated", "down", "maint"])
    node["features"] = [feature for feature in FEATURES if rng.random() < 0.5]
    node["partitions"] = [partition for partition in PARTITIONS if rng.random() < 0.8]
    return node


def _switches(rng: random.Random, names: list[str]) -> list[dict[str, Any]]:
    """Return leaves over the names, in order or shuffled, below one or two higher switches and a root."""
    listed = rng.sample(names, len(names)) if rng.random() < 0.3 else list(names)
    size = rng.randint(1, 6)
    leaves = [
        {"name": f"leaf{start}", "nodes": ",".join(listed[start : start + size])}
        for start in range(0, len(listed), size)
    ]
    if rng.random() < 0.2:
        return leaves
    half = (len(leaves) + 1) // 2
    parts = [part for part in (leaves[:half], leaves[half:]) if part]
    middle = [
        {"name": f"mid{number}", "switches": ",".join(leaf["name"] for leaf in part)}
        for number, part in enumerate(parts)
    ]
    root = {"name": "root", "switches": ",".join(switch["name"] for switch in middle)}
    return [*leaves, *middle, root]


def _job(rng: random.Random, place: int, names: list[str]) -> dict[str, Any]:
    job: dict[str, Any] = {
        "id": str(place),
        "priority": rng.choice([rng.randint(0, 100), rng.random(), 4 * 10**9 + place]),
    }
    job |= _size(rng) | _gres(rng)
    if rng.random() < 0.3:
        job[rng.choice(["memory_mib_per_node", "memory_mib_per_core"])] = rng.randint(0, 2000)
    chances: list[tuple[float, str, Any]] = [
        (0.15, "contiguous", True),
        (0.15, "exclusive", True),
        (0.15, "max_switches", rng.randint(1, 3)),
        (0.2, "features", [rng.choice(FEATURES)]),
        (0.4, "partition", rng.choice(["batch", "batch", "debug", "batch,debug", "none"])),
        (0.15, "licenses", {"matlab": rng.randint(1, 4)}),
        (0.5, "time_limit_s", rng.choice([600, 7200])),
        (0.3, "user", rng.choice(["ann", "bob"])),
        (0.05, "hold", "JobHeldUser"),
        (0.05, "unsupported", ["something else"]),
    ]
    job |= {member: value for chance, member, value in chances if rng.random() < chance}
    most = job.get("nodes", 2)
    _named_nodes(rng, job, names, max(most) if isinstance(most, list) else most)
    return job


def _named_nodes(rng: random.Random, job: dict[str, Any], names: list[str], most: int) -> None:
    required: list[str] = []
    if rng.random() < 0.15:
        required = rng.sample(names, min(len(names), rng.randint(1, min(most, 2))))
        job["required_nodes"] = ",".join(required)
    others = [name for name in names if name not in required]
    if others and rng.random() < 0.15:
        job["excluded_nodes"] = ",".join(rng.sample(others, min(len(others), 3)))


def _size(rng: random.Random) -> dict[str, Any]:
    unit = rng.choice([1, 1, 1, 2])
    kind = rng.randint(1, 4)
    count = rng.randint(1, 6)
    size: dict[str, Any] = {"cores_per_task": unit} if unit > 1 else {}
    if kind == 1:
        size["cores"] = unit * rng.randint(1, 20)
        if rng.random() < 0.2:
            size["min_cores_per_node"] = rng.randint(1, 4)
    elif kind == 2:
        most = count + rng.choice([0, 0, 2])
        size |= {
            "nodes": [count, most] if most > count else count,
            "cores": unit * rng.randint(most, 6 * most),
        }
    elif kind == 3:
        size |= {"nodes": count, "cores_per_node": unit * rng.randint(1, 4)}
    else:
        per_node = unit * rng.randint(1, 4)
        size |= {"cores": count * per_node, "cores_per_node": per_node}
    return size


def _gres(rng: random.Random) -> dict[str, Any]:
    if rng.random() < 0.5:
        return {}
    low, high = sorted(rng.sample(range(5), 2))
    wanted = high if rng.random() < 0.5 else [low, high]
    if rng.random() < 0.25:
        return {"gres_total": {rng.choice(GRES): wanted}}
    gres: dict[str, Any] = {rng.choice(GRES[:3]): wanted}
    if rng.random() < 0.2:
        gres["fpga"] = 1
    return {"gres_per_node": gres}


def main() -> int:
    """Schedule ``--count`` snapshots with every model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first-seed", type=int, default=0)
    arguments = parser.parse_args()
    began = time.perf_counter()
    jobs = started = 0
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.count):
        snapshot = random_snapshot(seed)
        for model in MODELS:
            result = run_step(snapshot, StepOptions(model=model))  # type: ignore[arg-type]
            jobs += len(snapshot.jobs)
            started += len(result.started)
        if sys.stderr.isatty() and seed % 100 == 0:
            sys.stderr.write(f"\r{seed}")
    seconds = time.perf_counter() - began
    print(
        f"{arguments.count} snapshots, {len(MODELS)} models: {started} of {jobs} jobs started, "
        f"every award valid, every job accounted for; {seconds:.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
