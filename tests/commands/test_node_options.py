"""Options of node-level simulations: each does what it says, and one that would be ignored is refused."""

from __future__ import annotations

import csv
import gzip
import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.run import aucsched, refused

from aucsched import ArrivingJob, ClusterWorkload, Job, Node, OptionError, Request, Resources
from aucsched.auction.options import StepOptions
from aucsched.cli import run
from aucsched.cluster.resources.demand import Demand
from aucsched.simulation.nodes.auction import NodeAuction
from aucsched.simulation.nodes.kernel import NodeKernel
from aucsched.simulation.nodes.node_machine import Machine
from aucsched.simulation.nodes.node_policies import NodeOptions
from aucsched.simulation.nodes.node_queue import NodeQueue

MADE = ("soner", "--id", "iii", "--nodes", "32", "--hours", "0.2", "--max-cores", "48", "--seed", "1")


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some fifty jobs on 32 nodes of 12 cores."""
    path = tmp_path_factory.mktemp("nodes") / "small.json"
    assert aucsched("workload", *MADE, "-o", path).returncode == 0
    return path


PLAYED: list[tuple[str, dict[str, Any]]] = [
    ("--policy fcfs --selection next", {"selection": "next"}),
    ("--policy easy --selection best --order multifactor", {"selection": "best", "order": "multifactor"}),
    ("--policy reservations:number=2", {"reserve": 2}),
    ("--policy backfill-slurm --window 20 --backfill-interval 0", {"window": 20, "backfill_interval_s": 0.0}),
    ("--policy backfill-planned --backfill-interval 60", {"backfill_interval_s": 60.0}),
    ("--policy ipsched --window 10 --work-limit 1 --on-timeout discard", {"on_timeout": "discard"}),
    ("--policy aucsched1 --window 10 --work-limit 1 --max-bids 40", {"max_bids": 40, "window": 10}),
    ("--policy aucsched2 --objective priority_cores --work-limit 4 --seed 3", {"seed": 3, "work_limit": 4}),
    ("--policy aucsched2 --weights paper --window 5 --max-bids-per-job 4", {"weights": "paper"}),
    ("--policy aucsched3 --reserve 2 --interval 7.5", {"reserve": 2, "interval_s": 7.5}),
    ("--policy aucsched3 --order multifactor", {"order": "multifactor"}),
]


@pytest.mark.parametrize(("options", "settings"), PLAYED, ids=[options for options, _ in PLAYED])
def test_every_policy_plays_a_workload_with_its_options(
    options: str,
    settings: dict[str, Any],
    workload: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = tmp_path / "jobs.csv"
    code = run(["simulate", str(workload), *options.split(), "--format", "json", "--jobs-out", str(rows)])
    said = capsys.readouterr()
    assert code == 0
    document = json.loads(said.out)
    left = len(document["never_started"])
    told = f"note: policy {document['policy']} never starts {left} jobs; its figures leave them out\n"
    assert said.err == (told if left else "")
    assert {name: document[name] for name in settings} == settings
    jobs = {job["id"]: job for job in json.loads(workload.read_text())["jobs"]}
    with rows.open() as file:
        written = {row["id"]: row for row in csv.DictReader(file)}
    never = {entry["job"]: entry["reason"] for entry in document["never_started"]}
    assert written.keys() == jobs.keys()
    assert {name for name, row in written.items() if not row["start_s"]} == never.keys()
    # IPSCHED has no cores per node: half of this mix, each with its reason.
    unsayable = {name for name, job in jobs.items() if "cores_per_node" in job}
    assert never == (
        dict.fromkeys(unsayable, "ipsched has no cores per node") if document["policy"] == "ipsched" else {}
    )
    first = min(job["arrival_s"] for name, job in jobs.items() if name not in never)
    for name in jobs.keys() - never.keys():
        start = float(written[name]["start_s"])
        assert start >= float(written[name]["submit_s"])
        assert float(written[name]["end_s"]) == pytest.approx(start + jobs[name]["run_time_s"])
        if "interval_s" in settings:
            passes = (start + first) / settings["interval_s"]
            assert passes == pytest.approx(round(passes), abs=1e-6)


def test_a_packed_workload_and_standard_input_are_the_same_file(workload: Path, tmp_path: Path) -> None:
    (tmp_path / "small.json.gz").write_bytes(gzip.compress(workload.read_bytes()))
    args = ("--policy", "backfill-slurm", "--format", "json")
    texts = [
        aucsched("simulate", workload, *args).stdout,
        aucsched("simulate", tmp_path / "small.json.gz", *args).stdout,
        aucsched("simulate", "-", *args, stdin="\n  " + workload.read_text()).stdout,
    ]
    assert len({json.dumps({**json.loads(text), "seconds": 0}) for text in texts}) == 1


REFUSED = [
    ("--policy easy --backfill-interval 5", "--backfill-interval needs --policy backfill-slurm or"),
    ("--policy reservations --reserve 0", "--reserve 0 would leave --policy reservations none"),
    ("--policy reservations --reserve 2 --reservations 3", "--reserve and --reservations both say"),
    (
        "--policy aucsched3 --strategy greedy --on-timeout discard",
        "on_timeout: strategy greedy reaches no limit",
    ),
    ("--policy aucsched2 --balance --on-timeout halve", "on_timeout: strategy greedy reaches no limit"),
    (
        "--policy aucsched2 --award-alone --promise backfill",
        "promise: backfill starts jobs next to the award",
    ),
    ("--policy easy --award-alone", "--award-alone needs --policy ipsched or"),
    ("--policy aucsched2 --strategy greedy --work-limit 5", "work_limit: strategy greedy reaches no limit"),
    ("--policy ipsched --max-bids 5", "--max-bids needs --policy aucsched1 or aucsched2 or aucsched3"),
    ("--policy ipsched --max-bids-per-job 5", "--max-bids-per-job needs --policy aucsched1"),
    ("--policy easy --interval nan", "'--interval': nan is not a number"),
    ("--policy easy --interval 0", "0.0 is not in the range"),
    ("--policy backfill-slurm --backfill-interval nan", "'--backfill-interval': nan is not a number"),
    ("--policy backfill-slurm --reserve 1", "--reserve needs --policy reservations or ipsched"),
    ("--policy backfill-slurm --selection best", "--selection needs --policy fcfs or easy"),
    ("--policy fcfs --window 5", "--window needs --policy backfill-slurm"),
    ("--policy easy --seed 3", "--seed needs --policy ipsched"),
    ("--policy backfill-planned --objective priority", "--objective needs --policy ipsched"),
    ("--policy fcfs --weights paper", "--weights needs --policy ipsched"),
    ("--policy easy --reservations 3", "--reservations needs --policy reservations"),
    ("--policy planning", "--policy planning counts processors; a machine of nodes has fcfs"),
    ("--policy easy --order sjf", "--order sjf is for logs"),
    ("--policy easy --check", "--check is for logs"),
    ("--policy easy --swf-out log.swf", "--swf-out is for logs"),
    ("--policy easy --batsim-out log.csv", "--batsim-out is for logs"),
    ("--policy easy --order multifactor --multifactor age=1", "--multifactor is for logs"),
    ("--policy easy --gantt chart.gif", "--gantt chart.gif: the name ends in none of"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[options for options, _ in REFUSED])
def test_what_would_be_ignored_or_means_nothing_is_refused(
    options: str,
    message: str,
    workload: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["simulate", str(workload), *options.split(), "--jobs-out", "jobs.csv", "-o", "result"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert message in said.err
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_played_is_named_and_nothing_is_written(workload: Path, tmp_path: Path) -> None:
    text = workload.read_text()
    cut, unknown, late = tmp_path / "cut.json", tmp_path / "unknown.json", tmp_path / "late.json"
    cut.write_text(text[:2000])
    unknown.write_text(text.replace('"arrival_s"', '"arrives"', 1))
    late.write_text(text.replace('"run_time_s":', '"run_time_s":-', 1))
    for path, message in (
        (cut, "not JSON"),
        (unknown, "arrives"),
        (late, "jobs[0].run_time_s"),
        (tmp_path / "missing.json", "No such file"),
    ):
        done = refused("simulate", path, "--policy", "aucsched3", "-o", tmp_path / "result")
        assert str(path) in done
        assert message in done
    assert not (tmp_path / "result").exists()


@pytest.mark.parametrize("value", [0, -3])
def test_windows_of_no_job_are_refused(value: int) -> None:
    with pytest.raises(OptionError, match="below 1"):
        NodeOptions(policy="backfill-slurm", window=value)


class _RecordingQueue(NodeQueue):
    """Records how many jobs a policy asked for in each pass, and how many it got."""

    def __init__(self) -> None:
        super().__init__()
        self.windows: list[tuple[int, int]] = []

    def first(self, count: int) -> list[Demand]:
        found = super().first(count)
        self.windows.append((count, len(found)))
        return found


def _crowd(seed: int) -> ClusterWorkload:
    """Return 24 jobs of many sizes on 6 nodes of 7 cores."""
    rng, has = random.Random(seed), Resources(cores=7)
    jobs = [
        ArrivingJob(
            job=Job(
                id=str(place),
                priority=rng.randint(1, 50),
                request=Request(cores=rng.randint(1, 20)),
                time_limit_s=100,
            ),
            arrival_s=place // 8,
            run_time_s=rng.randint(5, 60),
        )
        for place in range(24)
    ]
    nodes = tuple(Node(name=f"n{place}", total=has, free=has) for place in range(6))
    return ClusterWorkload(name="", nodes=nodes, jobs=tuple(jobs))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_an_unproved_attempt_halves_the_next_window_and_a_proved_one_doubles_it(seed: int) -> None:
    of, queue = _crowd(seed), _RecordingQueue()
    machine = Machine(of)
    # No branch-and-bound node at all: some attempts end without a proof.
    auction = NodeAuction(machine, StepOptions(model="aucsched1", window=16, work_limit=0))
    played = NodeKernel(of, machine, auction, queue, interval_s=3).played()
    assert len(played.played) == 24
    windows = queue.windows
    assert windows[0][0] == max(size for size, _ in windows) == 16
    steps = {(*before, size) for before, (size, _) in pairwise(windows) if before[0] != size}
    # Half of the jobs that it looked at: half of a window that the queue does not fill would be all of them.
    assert all(after in (max(1, min(size, jobs) // 2), min(2 * size, 16)) for size, jobs, after in steps)
    assert {size < after for size, _, after in steps} == {False, True}
