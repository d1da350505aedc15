"""``aucsched simulate`` on workloads of nodes, run as a user runs it."""

from __future__ import annotations

import csv
import json
import random
from itertools import accumulate
from pathlib import Path

import pytest
from support.run import aucsched, in_a_process

from aucsched.cli import run

SMALL = ("soner", "--id", "iii", "--nodes", "32", "--hours", "0.2", "--max-cores", "48", "--seed", "1")


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workload of some twenty jobs on 32 nodes."""
    path = tmp_path_factory.mktemp("nodes") / "small.json"
    done = aucsched("workload", *SMALL, "-o", str(path))
    assert done.returncode == 0, done.stderr
    return path


def test_an_auction_plays_a_workload_and_writes_its_files(workload: Path, tmp_path: Path) -> None:
    rows, chart = tmp_path / "jobs.csv", tmp_path / "gantt.png"
    args = ("--policy", "aucsched3", "--work-limit", "3", "--max-bids-per-job", "6", "--reserve", "0")
    done = aucsched(
        "simulate", str(workload), *args, "--format", "json", "--jobs-out", str(rows), "--gantt", str(chart)
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    jobs = json.loads(workload.read_text())["jobs"]
    assert document["jobs"] == len(jobs)
    assert document["never_started"] == []
    assert (document["work_limit"], document["reserve"], document["nodes"]) == (3, 0, 32)
    assert 0 < document["metrics"]["cpu_utilization"] <= 1
    assert sum(document["metrics"]["level_job_shares"].values()) == pytest.approx(1)
    with rows.open() as file:
        written = list(csv.DictReader(file))
    assert [row["id"] for row in written] == [str(job["id"]) for job in jobs]
    assert all(row["nodes"] and float(row["wait_s"]) >= 0 for row in written)
    assert chart.stat().st_size > 1000


def test_rows_hold_the_times_of_events_so_that_no_core_is_taken_twice(tmp_path: Path) -> None:
    draw = random.Random(5)
    jobs: list[dict[str, object]] = []
    arrival, rows = 0.791, tmp_path / "rows.csv"
    for number in range(300):
        jobs.append({
            "id": str(number), "arrival_s": round(arrival, 3), "run_time_s": round(draw.uniform(1, 100), 3),
            "time_limit_s": 200, "priority": 1, "cores": draw.choice([1, 2, 4, 8]),
        })  # fmt: skip
        arrival += draw.expovariate(1 / 8)
    play = {"format": "aucsched-workload/1", "nodes": [{"name": "n[1-4]", "cores": 2}], "jobs": jobs}
    (tmp_path / "play.json").write_text(json.dumps(play))
    assert run(["simulate", str(tmp_path / "play.json"), "--policy", "easy", "--jobs-out", str(rows)]) == 0
    written = list(csv.DictReader(rows.read_text().splitlines()))
    assert all(len(row["submit_s"].partition(".")[2]) <= 3 for row in written)
    assert all(len(row["wait_s"].partition(".")[2]) <= 3 for row in written)
    # At one time ends come first.
    events = sorted(
        (float(row[name]), sign * int(row["cores"]))
        for row in written
        for name, sign in (("start_s", 1), ("end_s", -1))
    )
    assert max(accumulate(cores for _, cores in events)) == 8


def test_the_same_command_gives_the_same_bytes(workload: Path) -> None:
    args = ("simulate", str(workload), "--policy", "aucsched2", "--work-limit", "4", "--format", "json")
    first, second = (json.loads(made(*args).stdout) for made in (aucsched, in_a_process))
    assert first.pop("seconds") >= 0
    assert second.pop("seconds") >= 0
    assert first == second


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--policy", "conservative"), "counts processors"),
        (("--policy", "easy", "--processors", "5"), "--processors is for logs"),
        (("--policy", "easy", "--work-limit", "5"), "--work-limit needs --policy"),
        (("--policy", "aucsched3", "--max-bids", "0"), "0 is not in the range"),
    ],
)
def test_what_would_be_ignored_is_refused_in_one_line(
    workload: Path, args: tuple[str, ...], message: str
) -> None:
    done = aucsched("simulate", str(workload), *args)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_log_has_no_options_of_nodes(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    log.write_text("; MaxProcs: 4\n1 0 0 5 2 -1 -1 2 5 -1 1 1 1 -1 1 -1 -1 -1\n")
    for args, message in (
        (("--policy", "ipsched"), "needs a workload of nodes"),
        (("--interval", "5"), "--interval needs a workload of nodes"),
    ):
        done = aucsched("simulate", str(log), *args)
        assert done.returncode == 2
        assert message in done.stderr
