"""The examples load, and their script makes them again byte for byte."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from aucsched import NodeState, load_snapshot

EXAMPLES = Path(__file__).parents[1] / "examples"
NAMES = ("emulated-1408-full.json", "emulated-1408-queue.json")


def test_the_script_makes_the_same_files(tmp_path: Path) -> None:
    subprocess.run([sys.executable, EXAMPLES / "make_examples.py", tmp_path], check=True)
    for name in NAMES:
        assert (tmp_path / name).read_bytes() == (EXAMPLES / name).read_bytes()


@pytest.mark.parametrize(("name", "running", "free"), [(NAMES[0], 55, 32), (NAMES[1], 52, 32 + 3 * 1400)])
def test_they_load(name: str, running: int, free: int) -> None:
    snapshot = load_snapshot(EXAMPLES / name)
    assert len(snapshot.nodes) == 1408
    assert len(snapshot.jobs) == 66
    assert len(snapshot.running) == running
    assert sum(node.free.cores for node in snapshot.nodes) == free
    assert snapshot.switches is not None
    assert not any(job.unsupported for job in snapshot.jobs)


def test_ending_jobs_frees_their_nodes() -> None:
    full, queue = (load_snapshot(EXAMPLES / name) for name in NAMES)
    ended = {job.id for job in full.running} - {job.id for job in queue.running}
    assert ended == {"7", "10", "13"}
    for before, after in zip(full.nodes, queue.nodes, strict=True):
        if after.free == after.total:
            assert after.state is NodeState.IDLE
        elif after.free != before.free:
            assert after.state is NodeState.MIXED
        else:
            assert after == before


def test_they_are_small() -> None:
    files = [path for path in EXAMPLES.rglob("*") if path.is_file() and path.parent.name != "__pycache__"]
    assert sum(path.stat().st_size for path in files) < 200_000
