"""Snapshots that are legal but hostile: extreme queues and machines.

Each is a random snapshot (random_snapshots.py) changed by a few of the touches below; the same seed makes the
same one. Hostlists are written as names with commas, for the independent checker.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from random_snapshots import random_document

Members = dict[str, Any]
Touch = Callable[[random.Random, Members], None]

#: The largest count that a file may hold.
HUGE = 10**12
#: Gres names that look like something else.
ODD_GRES = ("cores", "memory", "memory_mib", "nodes", "gpu:cores", "priority", "[/x]", "$\\frac{$")
_NOW = "2026-11-20T09:30:00Z"
#: Share of seeds, nodes at most, jobs at most.
_SIZES = ((0.86, 24, 12), (0.98, 160, 60), (1.0, 900, 150))


def hostile_document(seed: int) -> Members:
    """Return the members of a snapshot file: legal, hostile, the same for the same seed."""
    rng = random.Random(f"snapshot {seed}")  # noqa: S311 - not a secret
    draw = rng.random()
    nodes, jobs = next((nodes, jobs) for share, nodes, jobs in _SIZES if draw < share)
    document = random_document(seed, nodes, jobs)
    for place in sorted(rng.sample(range(len(TOUCHES)), rng.randint(0, 4))):
        TOUCHES[place](rng, document)
    return document


def _names(document: Members) -> list[str]:
    return [node["name"] for node in document["nodes"]]


def _add(rng: random.Random, document: Members, members: Members) -> None:
    """Add a job, anywhere in the queue."""
    job = {"id": f"hostile{len(document['jobs'])}", "priority": rng.randint(1, 200), **members}
    document["jobs"].insert(rng.randint(0, len(document["jobs"])), job)


def _exclusive_tasks(rng: random.Random, document: Members) -> None:
    """Whole nodes whose cores are no multiple of the task's, with memory for each core."""
    for _ in range(rng.randint(1, 3)):
        unit = rng.choice([2, 3, 5, 7])
        size: Members = {"cores": unit * rng.randint(1, 4)}
        if rng.random() < 0.4:
            size = {"nodes": rng.randint(1, 2), "cores_per_node": unit}
        memory: Members = {"memory_mib_per_core": rng.choice([0, 1, 100, 1000])}
        if rng.random() < 0.3:
            memory = {"memory_mib_per_node": rng.choice([0, 100, 10**6])}
        _add(rng, document, {**size, "cores_per_task": unit, **memory, "exclusive": True})


def _odd_gres(rng: random.Random, document: Members) -> None:
    """Gres that are called like what is no gres."""
    name = rng.choice(ODD_GRES)
    for node in document["nodes"]:
        if rng.random() < 0.7:
            node.setdefault("gres", {})[name] = rng.randint(0, 4)
            if "free_gres" in node:
                node["free_gres"][name] = node["gres"][name]
    for _ in range(rng.randint(1, 3)):
        wanted = rng.choice([1, 2, [0, 1], [1, 3]])
        member = rng.choice(["gres_per_node", "gres_total"])
        _add(rng, document, {"cores": rng.randint(1, 8), member: {name: wanted}})


def _ranges_from_zero(rng: random.Random, document: Members) -> None:
    for _ in range(rng.randint(1, 4)):
        gres = {rng.choice(["gpu", "fpga", "none"]): [0, rng.choice([1, 2, 4, HUGE])]}
        size: Members = rng.choice(
            [{"cores": 4}, {"nodes": [1, 4], "cores": 4}, {"nodes": 1, "cores_per_node": 2}]
        )
        _add(rng, document, {**size, rng.choice(["gres_per_node", "gres_total"]): gres})


def _huge_requests(rng: random.Random, document: Members) -> None:
    many = rng.choice([10**6, 2**31, 2**32, 10**9, HUGE])
    requests: list[Members] = [
        {"cores": many},
        {"cores": 1, "nodes": [1, many]},
        {"nodes": many, "cores_per_node": many},
        {"nodes": [1, many], "cores_per_node": 1},
        {"cores": many, "cores_per_task": many},
        {"cores": 1, "min_cores_per_node": many},
        {"cores": 1, "memory_mib_per_node": many},
        {"cores": 2, "memory_mib_per_core": many},
        {"cores": 1, "gres_per_node": {"gpu": many}},
        {"cores": 1, "gres_total": {"gpu": [1, many]}},
        {"cores": 1, "licenses": {"matlab": many}},
        {"cores": 1, "max_switches": many},
        {"cores": 1, "time_limit_s": many},
    ]
    for request in rng.sample(requests, rng.randint(1, 3)):
        _add(rng, document, request)


def _huge_nodes(rng: random.Random, document: Members) -> None:
    many = rng.choice([2**31, 2**32, 10**9, HUGE])
    for node in document["nodes"]:
        if rng.random() < 0.3:
            for member in ("free_cores", "free_gres", "free_memory_mib"):
                node.pop(member, None)
            node |= {"cores": many, "memory_mib": many, "gres": {"gpu": many}}
    _add(rng, document, {"cores": many, "memory_mib_per_core": 1, "gres_per_node": {"gpu": [1, many]}})


def _no_jobs(rng: random.Random, document: Members) -> None:
    del rng
    document["jobs"] = []


def _all_down(rng: random.Random, document: Members) -> None:
    for node in document["nodes"]:
        node["state"] = rng.choice(["down", "drained", "fail", "maint", "unknown", "reserved", "completing"])


def _all_full(rng: random.Random, document: Members) -> None:
    for node in document["nodes"]:
        node["free_cores"] = rng.choice([0, 0, 0, 1])


def _one_node(rng: random.Random, document: Members) -> None:
    """One node, whose jobs ask for it, by name or not."""
    node = rng.choice(document["nodes"])
    name = node["name"]
    jobs = document["jobs"]
    for job in jobs:
        for member in ("required_nodes", "excluded_nodes"):
            if job.pop(member, None) and rng.random() < 0.5:
                job[member] = name
        if job.get("required_nodes") == job.get("excluded_nodes"):
            job.pop("required_nodes", None)
    document["nodes"] = [node]
    for member in ("topology", "reservations", "partitions", "running"):
        document.pop(member, None)


def _reservations(rng: random.Random, document: Members) -> None:
    """Reservations that are over, run, begin at once, lie on each other, are nobody's or everybody's."""
    spans = [
        ("2026-11-20T00:00:00Z", _NOW),
        ("2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z"),
        (_NOW, "2026-11-20T09:30:01Z"),
        ("2026-11-20T09:39:59Z", "2036-11-20T00:00:00Z"),
        ("1970-01-01T00:00:00Z", "2026-11-20T12:00:00Z"),
    ]
    names = _names(document)
    document["reservations"] = [
        {
            "name": f"r{place}",
            "nodes": ",".join(rng.sample(names, rng.randint(1, len(names)))),
            "start": start,
            "end": end,
            "users": rng.choice([[], ["ann"], ["ann", "bob", ""]]),
        }
        for place, (start, end) in enumerate(rng.sample(spans, rng.randint(1, 3)))
    ]
    if rng.random() < 0.2:
        document.pop("time", None)


def _partitions(rng: random.Random, document: Members) -> None:
    names = _names(document)
    document["partitions"] = [
        {"name": "batch", "max_nodes": 1, "max_time_limit_s": 1},
        {"name": "debug", "state": rng.choice(["up", "down", "drain", "inactive"]), "max_nodes": 2},
        {"name": "wide", "nodes": ",".join(names), "max_nodes": rng.choice([1, 3, HUGE])},
        {"name": "none"},
    ]
    for job in document["jobs"]:
        if rng.random() < 0.5:
            job["partition"] = ",".join(rng.sample(["batch", "debug", "wide", "none"], rng.randint(1, 4)))


def _licenses(rng: random.Random, document: Members) -> None:
    document["licenses"] |= {"none": {"total": 0}, "many": {"total": HUGE, "free": HUGE - 1}}
    for job in document["jobs"]:
        if rng.random() < 0.3:
            job["licenses"] = {rng.choice(["none", "many", "matlab"]): rng.choice([1, 3, HUGE])}


def _named_nodes(rng: random.Random, document: Members) -> None:
    """Jobs that name every node, or rule every node out."""
    names = _names(document)
    rng.shuffle(names)
    count = len(names)
    _add(rng, document, {"cores": count, "nodes": count, "required_nodes": ",".join(names)})
    _add(rng, document, {"cores": 1, "excluded_nodes": ",".join(names)})
    if count > 1:
        excluded = {"excluded_nodes": ",".join(names[1:])}
        _add(rng, document, {"cores": 1, "required_nodes": names[0], **excluded})


def _narrow(rng: random.Random, document: Members) -> None:
    for job in document["jobs"]:
        if rng.random() < 0.6:
            job["contiguous"] = True
        if rng.random() < 0.6:
            job["max_switches"] = 1


def _priorities(rng: random.Random, document: Members) -> None:
    """Equal ones, neighbours of ten digits, fractions of seventeen, far-apart ones."""
    kind = rng.randint(0, 3)
    for place, job in enumerate(document["jobs"]):
        job["priority"] = (
            7,
            8_000_283_830 - rng.randint(0, 3),
            rng.random() * 10 ** rng.randint(-9, 0),
            10 ** (place % 12),
        )[kind]


def _alike(rng: random.Random, document: Members) -> None:
    """Many jobs that ask for the same."""
    if document["jobs"]:
        model = rng.choice(document["jobs"])
        for number in range(rng.randint(2, 20)):
            document["jobs"].append({**model, "id": f"alike{number}"})


def _running(rng: random.Random, document: Members) -> None:
    """Jobs that run, late ones and endless ones among them."""
    running = []
    for place, node in enumerate(document["nodes"]):
        if rng.random() < 0.5 and node["cores"] < 100:
            for member in ("free_cores", "free_gres", "free_memory_mib"):
                node.pop(member, None)
            use: Members = {"cores": rng.randint(0, node["cores"])}
            if node.get("gres") and rng.random() < 0.5:
                kind = rng.choice(sorted(node["gres"]))
                use["gres"] = {kind: rng.randint(0, node["gres"][kind])}
            end = rng.choice([None, "2026-11-20T09:00:00Z", "2026-11-20T09:31:00Z", "2026-11-20T11:00:00Z"])
            entry = {"id": f"running{place}", "nodes": {node["name"]: use}}
            running.append(entry if end is None else {**entry, "end_time": end})
    document["running"] = running


def _chain(rng: random.Random, document: Members) -> None:
    """A deep tree: leaves of one node, each switch above one leaf and the switch below it."""
    names = _names(document)[:40]
    if len(names) != len(document["nodes"]):
        return
    rng.shuffle(names)
    leaves = [{"name": f"leaf{place}", "nodes": name} for place, name in enumerate(names)]
    chain = [
        {"name": f"up{place}", "switches": f"leaf{place}" + (f",up{place - 1}" if place else "")}
        for place in range(len(names))
    ]
    document["topology"] = {"kind": "tree", "switches": leaves + chain}


def _ways_to_read(rng: random.Random, document: Members) -> None:
    """Requests that multiply: types of gres times partitions."""
    for node in document["nodes"]:
        node["gres"] = {f"{kind}:t{number}": 2 for kind in ("gpu", "fpga", "nic") for number in range(4)}
        node.pop("free_gres", None)
    wanted = {"gpu": [0, 2], "fpga": [1, 2], "nic": 1}
    _add(rng, document, {"cores": 4, "gres_per_node": wanted, "partition": "batch,debug"})


TOUCHES: tuple[Touch, ...] = (
    _exclusive_tasks,
    _odd_gres,
    _ranges_from_zero,
    _huge_requests,
    _huge_nodes,
    _no_jobs,
    _all_down,
    _all_full,
    _one_node,
    _reservations,
    _partitions,
    _licenses,
    _named_nodes,
    _narrow,
    _priorities,
    _alike,
    _chain,
    _ways_to_read,
    _running,  # last: what runs must fit
)
