"""``aucsched irtsched --clusters``: one process for several clusters, each as if it had one of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.run import aucsched, refused

NAMES = ("east", "west")
_FILE = """\
journal = "journals"
checkpoint = 5
format = "json"

[east]
workload = "east.json"
listen = "unix:s-east"
output = "east.metrics"
trace = "east.jsonl"
jobs-out = "east.csv"

[west]
workload = "west.json"
listen = "unix:s-west"
output = "west.metrics"
trace = "west.jsonl"
jobs-out = "west.csv"
shrink = "fair"
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder with two clusters of different size, jobs and options."""
    for name, count in zip(NAMES, (4, 6), strict=True):
        jobs = [
            {"id": f"{name[0]}{number}", "priority": 9 - number % 5, "nodes": 1 + number % 3,
             "cores_per_node": 1, "arrival_s": 20 * number, "run_time_s": 100 + 13 * number}
            | ({"kind": "malleable", "min_nodes": 1, "max_nodes": count} if number % 2 else {})
            for number in range(14)
        ]  # fmt: skip
        nodes = [{"name": f"{name[0]}[1-{count}]", "cores": 1}]
        document = {"format": "aucsched-workload/1", "name": name, "nodes": nodes, "jobs": jobs}
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    (tmp_path / "clusters.toml").write_text(_FILE)
    return tmp_path


@contextmanager
def started(*arguments: str, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a command meanwhile; it is killed if it has not ended."""
    command = [sys.executable, "-m", "aucsched", *arguments]
    with subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def alone(site: Path, name: str) -> None:
    """Play a cluster by itself, in one process."""
    options = ["--shrink", "fair"] if name == "west" else []
    out = ["--format", "json", "-o", "one.metrics", "--trace", "one.jsonl", "--jobs-out", "one.csv"]
    done = aucsched("negotiate", f"{name}.json", *options, *out, cwd=site)
    assert done.returncode == 0, done.stderr


def batch(name: str) -> list[str]:
    return ["ibsched", f"{name}.json", "--connect", f"unix:s-{name}", "--journal", f"journals/{name}"]


def test_each_cluster_is_served_as_by_a_process_of_its_own(site: Path) -> None:
    """Nagendra: one runtime scheduler of several partitions (4.1), or clusters."""
    with started("irtsched", "--clusters", "clusters.toml", cwd=site) as process:
        with started(*batch("west"), cwd=site) as west:
            east = aucsched(*batch("east"), cwd=site)
            assert (east.returncode, east.stderr) == (0, "")
            assert west.wait(60) == 0
        assert process.wait(60) == 0
        assert process.stderr is not None
        said = process.stderr.read().splitlines()
    assert said == [f"aucsched: {name}: irtsched listens on unix:s-{name}" for name in NAMES]
    for name in NAMES:
        alone(site, name)
        for kind in ("metrics", "jsonl", "csv"):
            assert (site / f"{name}.{kind}").read_bytes() == (site / f"one.{kind}").read_bytes(), (name, kind)
        assert b'"checkpoint"' in (site / "journals" / name / "irtsched.journal").read_bytes()


def test_a_killed_process_resumes_both_and_one_that_had_ended_only_writes(site: Path) -> None:
    """The process is killed when east has ended and west is in the middle."""
    journal = site / "journals" / "west" / "irtsched.journal"
    with started(*batch("west"), "--wait", "90", cwd=site) as west:
        with started("irtsched", "--clusters", "clusters.toml", cwd=site) as process:
            until = time.monotonic() + 60
            while not (journal.exists() and journal.stat().st_size > 3000) and time.monotonic() < until:
                time.sleep(0.001)
            process.kill()
        size = journal.stat().st_size
        assert size > 3000
        with started("irtsched", "--clusters", "clusters.toml", cwd=site) as process:
            east = aucsched(*batch("east"), cwd=site)
            assert east.returncode == 0, east.stderr
            assert west.wait(90) == 0
            assert process.wait(60) == 0
    alone(site, "east")
    assert (site / "east.csv").read_bytes() == (site / "one.csv").read_bytes()
    assert len((site / "west.csv").read_text().splitlines()) == 15
    before = {name: (site / f"{name}.metrics").read_bytes() for name in NAMES}
    for name in NAMES:
        (site / f"{name}.metrics").unlink()
    again = aucsched("irtsched", "--clusters", "clusters.toml", cwd=site)
    assert (again.returncode, again.stderr) == (0, "")
    assert {name: (site / f"{name}.metrics").read_bytes() for name in NAMES} == before


def test_what_becomes_of_one_cluster_changes_nothing_for_the_others(site: Path) -> None:
    """Nobody comes for west: east ends well, its result is written, and the exit code is one."""
    text = _FILE.replace('"east.metrics"', '"-"').replace('format = "json"', 'format = "text"\nwait = 8')
    (site / "clusters.toml").write_text(text)
    with started("irtsched", "--clusters", "clusters.toml", cwd=site) as process:
        east = aucsched(*batch("east"), cwd=site)
        assert east.returncode == 0, east.stderr
        out, said = process.communicate(timeout=60)
        assert process.returncode == 1
    assert "aucsched: west: nobody connected to unix:s-west within 8 s" in said
    assert out.startswith("east:\n")
    assert (site / "east.csv").exists()
    assert not (site / "west.csv").exists()


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ('"unix:s-west"', '"unix:s-east"', "west.listen: unix:s-east is east's too"),
        ('"west.csv"', '"east.csv"', "west.jobs-out: east.csv is east's too"),
        ('"west.csv"', '"/proc/self/cwd/east.csv"', "west.jobs-out: /proc/self/cwd/east.csv is east's too"),
        ('"unix:s-west"', '"unix:./s-east"', "west.listen: unix:./s-east is east's too"),
        ('"west.metrics"', '"east.csv"', "east.csv is "),
        ('workload = "west.json"\n', "", "west: workload = is needed"),
        ("[west]", '["a b"]', "'a b' is not a name of letters"),
        ("shrink", "shrnk", "west.shrnk: no option"),
        ('output = "west.metrics"\n', "", "west: format = json needs an output of its own"),
        (
            "checkpoint = 5",
            'checkpoint = "many"',
            "clusters.toml: east.checkpoint: 'many' is not a valid integer",
        ),
        ('listen = "unix:s-west"', "", "west: give one of --listen and --connect"),
        ('workload = "west.json"', 'workload = "none.json"', "none.json: No such file"),
        ("[west]", "[west", "not TOML"),
        ("journal", "clusters", "a cluster has no clusters"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_begins(
    site: Path, before: str, after: str, why: str
) -> None:
    assert before in _FILE
    (site / "clusters.toml").write_text(_FILE.replace(before, after))
    done = aucsched("irtsched", "--clusters", "clusters.toml", cwd=site)
    assert done.returncode == 2
    assert why in done.stderr.splitlines()[-1]
    assert not list(site.glob("*.csv"))
    assert not list(site.glob("s-*"))


def test_the_file_stands_alone(site: Path) -> None:
    (site / "empty.toml").write_text("timeout = 3\n")
    for options, why in (
        (["east.json", "--clusters", "clusters.toml"], "--clusters cannot be combined with WORKLOAD"),
        (["--clusters", "clusters.toml", "--journal", "j"], "--clusters cannot be combined with --journal"),
        ([], "WORKLOAD or --clusters is needed"),
        (["--clusters", "empty.toml"], "empty.toml: it has no table of a cluster"),
    ):
        assert why in refused("irtsched", *options, cwd=site)
