"""Small sweeps, and what of their rows must not depend on how they were run."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from instances.generate import snapshot_bytes

#: 24 auctions over ``small``, of some milliseconds each.
GRID = ("--window", "4,12", "--max-bids", "20,120", "--work-limit", "3", "--repeat", "6")
RUNS = 24
#: Tens of thousands of runs: nobody sees their end, however long a busy machine lets a test wait.
LONG = ("--seed", "1", "--reserve", ",".join(map(str, range(1000))))
#: Seconds after which a process is taken to hang; nothing else depends on them.
HANGS_S = 900
#: SWF with a header that gives the machine's size.
TRACE = Path(__file__).parents[1] / "fixtures" / "swf" / "small.swf"


def small(folder: Path) -> Path:
    """Write a snapshot of 48 nodes and 12 jobs."""
    path = folder / "small.json"
    path.write_bytes(snapshot_bytes("tiny", 0))
    return path


def workload(folder: Path) -> Path:
    """Write a workload: 16 jobs come to 8 nodes of two leaves, and cannot all start at once."""
    nodes = [{"name": "n[1-8]", "cores": 4, "gres": {"gpu": 1}}]
    leaves = [{"name": "a", "nodes": "n[1-4]"}, {"name": "b", "nodes": "n[5-8]"}]
    jobs = [
        {"id": str(place), "priority": 100 - place, "cores": 4 + place % 5 * 5, "arrival_s": 3 * place}
        | {"run_time_s": 20 + 7 * (place % 4), "time_limit_s": 60}
        for place in range(16)
    ]
    document = {
        "format": "aucsched-workload/1",
        "name": "sixteen",
        "nodes": nodes,
        "topology": {"kind": "tree", "switches": [*leaves, {"name": "root", "switches": "a,b"}]},
        "jobs": jobs,
    }
    path = folder / "workload.json"
    path.write_text(json.dumps(document))
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return a sweep's rows as texts, complete or not at all."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, strict=True))
    assert all(None not in row and None not in row.values() for row in rows), "half a row"
    return rows


def lasting(path: Path) -> list[dict[str, str]]:
    """Return a sweep's rows without the columns of seconds."""
    return [
        {name: value for name, value in row.items() if not name.startswith("seconds")}
        for row in rows_of(path)
    ]
