"""docs/stability.md: no release takes away a member of the commands' JSON or a column of their CSV.

``PYTHONPATH=tests python tests/test_result_members.py`` records what there is now: the change of the file
shows what came, and what went.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from support.run import aucsched

from aucsched.cli import cli

EXAMPLES = Path(__file__).parents[1] / "examples"
RECORDED = Path(__file__).parent / "fixtures" / "members.json"
SNAPSHOT, NODES, LOG = (
    EXAMPLES / name for name in ("thesis/section-1.2.json", "overtaken.json", "thesis/figure-2.2.swf")
)
BID = {"bidder": "ann", "value": 1, "items": {"gpu": 1}}
BIDS = {"format": "aucsched-auction/1", "capacities": {"gpu": 2}, "bids": [BID]}
EVOLVING = {
    "format": "aucsched-snapshot/1",
    "time": 0,
    "nodes": [{"name": "n[0-5]", "cores": 8}],
    "running": [{"id": "A", "nodes": {"n0": {"cores": 8}}, "end_time": 1000}],
    "jobs": [{"id": "C", "priority": 1, "cores": 48, "time_limit_s": 60}],
}
REQUESTS = {"format": "aucsched-requests/1", "requests": [{"job": "A", "cores": 8}]}
#: Every command that prints JSON, and lines that write CSV into out.csv.
LINES: dict[str, tuple[str | Path, ...]] = {
    "schedule": (SNAPSHOT,),
    "explain": (SNAPSHOT, "J3"),
    "check": (SNAPSHOT,),
    "compare": (SNAPSHOT,),
    "plan": (SNAPSHOT,),
    "forecast": (SNAPSHOT,),
    "evolve": ("snapshot.json", "--requests", "requests.json"),
    "negotiate": (NODES, "--jobs-out", "out.csv"),
    "slurm report": (EXAMPLES / "shadow.jsonl.gz",),
    "topology": ("fat-tree:3x4",),
    "gain": ("--sacct", "history.txt", *("--nodes", EXAMPLES / "history-nodes.txt")),
    "simulate": (NODES, "--policy", "aucsched3", "--window", "3", "--jobs-out", "out.csv"),
    "board": (LOG, "--policy", "easy"),
    "winners": ("bids.json",),
    "workload describe": (LOG,),
}
#: Further lines of them, and of commands that print no JSON.
MORE: dict[str, tuple[str | Path, ...]] = {
    "explain, prices": ("explain", SNAPSHOT, "--format", "json"),
    "simulate, log": ("simulate", LOG, "--format", "json", "--jobs-out", "out.csv"),
    "simulate, several": ("simulate", LOG, "--policy", "easy,fcfs", "--format", "json"),
    "simulate, forecasts": ("simulate", LOG, "--forecasts", "out.csv"),
    "sweep, workload": ("sweep", NODES, "--policy", "easy,negotiate", "-o", "out.csv"),
    "sweep, snapshot": ("sweep", SNAPSHOT, "--window", "5", "-o", "out.csv"),
}


def _json_commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[str]:
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), name)
            assert found is not None
            yield from _json_commands(found, (*path, name))
    elif any(one.name == "form" for one in command.params):
        yield " ".join(path)


def _members(value: Any, path: str = "") -> Iterator[str]:
    """Yield the path of each member; a star stands for a node, and for other names of the input."""
    if isinstance(value, list):
        for one in value:
            yield from _members(one, f"{path}[]")
    elif isinstance(value, dict):
        for name, one in value.items():
            member = f"{path}.{name if re.fullmatch('(?!n[0-9])[a-z][a-z0-9_]*', name) else '*'}"
            yield member
            yield from _members(one, member)


def members(folder: Path) -> dict[str, str]:
    """Return the members and columns that each line's result has, with spaces between them."""
    for name, document in (("snapshot", EVOLVING), ("requests", REQUESTS), ("bids", BIDS)):
        (folder / f"{name}.json").write_text(json.dumps(document))
    history = gzip.decompress((EXAMPLES / "history.txt.gz").read_bytes()).splitlines(keepends=True)
    (folder / "history.txt").write_bytes(b"".join(history[:40]))
    lines = {name: (*name.split(), *words, "--format", "json") for name, words in LINES.items()}
    found: dict[str, str] = {}
    table = folder / "out.csv"
    for name, line in (lines | MORE).items():
        done = aucsched(*line, cwd=folder)
        assert done.returncode == 0, (name, done.stderr)
        if done.stdout.startswith("{"):
            found[name] = " ".join(sorted(set(_members(json.loads(done.stdout)))))
        if table.exists():
            found[f"{name}, CSV"] = " ".join(next(csv.reader(table.read_text().splitlines())))
            table.unlink()
            table.with_name("out.csv.journal").unlink(missing_ok=True)
    return found


def test_no_member_or_column_is_taken_away(tmp_path: Path) -> None:
    recorded, now = json.loads(RECORDED.read_text()), members(tmp_path)
    gone = {name: {*before.split()} - {*now.get(name, "").split()} for name, before in recorded.items()}
    assert {name: some for name, some in gone.items() if some} == {}, "docs/stability.md: announce it first"
    assert now == recorded, "new ones: record them"


def test_every_command_that_prints_json_is_looked_at() -> None:
    # irtsched prints what negotiate does.
    assert {*_json_commands(cli)} - {"irtsched"} == {*LINES}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as where:
        RECORDED.write_text(json.dumps(members(Path(where)), indent=1) + "\n")
