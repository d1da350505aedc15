"""`aucsched sweep`: grids, rows, tables, refusals."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from threading import Event, Thread

import pytest
from pyarrow import parquet
from support.run import aucsched
from support.sweeps import GRID, RUNS, TRACE, rows_of, small, workload

import aucsched as package
from aucsched.cli import run
from aucsched.formats.native.cluster_file import load_snapshot, snapshot_to_json
from aucsched.models.winners.spawning import spawning
from aucsched.simulation.negotiated.negotiation_options import SWEPT
from aucsched.sweeps.axes import AXES, Value
from aucsched.sweeps.results import write_table
from aucsched.sweeps.run_plan import KINDS, make_plan


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """Return the one line with which a sweep is refused."""
    assert run(["sweep", *map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err.rstrip("\n")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished sweep over ``small``: s.csv and s.parquet beside it."""
    folder = tmp_path_factory.mktemp("sweep")
    outputs = ("-o", folder / "s.csv", "-o", folder / "s.parquet")
    done = aucsched("sweep", small(folder), *GRID, *outputs, "--workers", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.match(r"\d+ runs?, \d+ points?\n", done.stdout)
    return folder


def test_every_combination_is_a_row_in_the_grids_order(swept: Path) -> None:
    rows = rows_of(swept / "s.csv")
    points = [tuple(row[name] for name in ("window", "max_bids", "seed")) for row in rows]
    assert points == list(itertools.product(["4", "12"], ["20", "120"], map(str, range(6))))
    assert [row["run"] for row in rows] == [str(number) for number in range(RUNS)]


def test_a_row_is_what_the_auction_says_with_these_options(swept: Path) -> None:
    snapshot = load_snapshot(swept / "small.json")
    for row in rows_of(swept / "s.csv"):
        result = package.schedule(
            snapshot,
            window=int(row["window"]),
            max_bids=int(row["max_bids"]),
            work_limit=3,
            seed=int(row["seed"]),
        )
        assert float(row["priority"]) == result.objective.priority
        assert float(row["preference"]) == result.objective.preference
        assert float(row["bound"]) == result.objective.bound
        assert (row["status"], int(row["jobs_started"])) == (result.status.value, len(result.started))
        cores = sum(use.cores for award in result.started for use in award.nodes.values())
        assert int(row["cores"]) == cores


def test_a_row_names_its_input_all_options_and_versions(swept: Path) -> None:
    row = rows_of(swept / "s.csv")[0]
    given = {"model": "aucsched3", "strategy": "anytime", "weights": "lexicographic", "objective": "priority"}
    limits = {"max_bids_per_job": "60", "time_limit_s": "", "work_limit": "3", "reserve": "1", "preset": ""}
    assert row == row | given | limits
    assert row["input"] == "small.json"
    assert re.fullmatch("[0-9a-f]{64}", row["input_sha256"])
    assert (row["aucsched"], row["highspy"]) == (package.__version__, version("highspy"))
    assert row["error"] == ""
    assert float(row["seconds.step"]) > 0


def test_parquet_holds_what_the_csv_holds(swept: Path) -> None:
    table = parquet.read_table(swept / "s.parquet")
    write_table(swept / "again.csv", table.to_pylist())
    assert (swept / "again.csv").read_text() == (swept / "s.csv").read_text()
    types = {field.name: str(field.type) for field in table.schema}
    assert types["window"] == types["work_limit"] == types["jobs_started"] == "int64"
    assert types["priority"] == types["seconds.step"] == types["time_limit_s"] == "double"
    assert types["model"] == types["error"] == types["preset"] == "string"


def test_a_finished_sweep_is_not_run_again(swept: Path) -> None:
    before = (swept / "s.csv").read_bytes()
    (swept / "s.csv").unlink()
    again = aucsched("sweep", swept / "small.json", *GRID, "-o", swept / "s.csv")
    assert again.stderr == "note: 24 of 24 runs are done already\n"
    assert (swept / "s.csv").read_bytes() == before


def test_policies_over_a_trace(tmp_path: Path) -> None:
    out = tmp_path / "t.csv"
    # An option's further uses add values.
    grid = ("--policy", "fcfs", "--order", "fcfs,sjf", "--policy", "easy", "--workers", "1")
    assert aucsched("sweep", TRACE, *grid, "-o", out).returncode == 0
    rows = rows_of(out)
    assert [(row["policy"], row["order"]) for row in rows] == [
        ("fcfs", "fcfs"),
        ("fcfs", "sjf"),
        ("easy", "fcfs"),
        ("easy", "sjf"),
    ]
    assert rows[2]["wait_mean_s"] == "9.2"
    assert {row["status"] for row in rows} == {"done"}
    assert "level_mean" not in rows[0]


def test_a_row_has_all_digits_of_its_options(tmp_path: Path) -> None:
    policy = ("--policy", "partitioned:class-limits=1234567+2345678.5", "--workers", "1")
    assert aucsched("sweep", TRACE, *policy, "-o", tmp_path / "t.csv").returncode == 0
    assert [row["class_limits_s"] for row in rows_of(tmp_path / "t.csv")] == ["1234567,2345678.5"]


def test_a_balanced_mix_and_the_strategy_are_swept(tmp_path: Path) -> None:
    source, out = tmp_path / "mix.json", tmp_path / "b.csv"
    made = ("soner", "--id", "v", "--nodes", "24", "--hours", "0.5", "--max-cores", "24", "--seed", "1")
    assert aucsched("workload", *made, "-o", source).returncode == 0
    grid = (
        "--policy",
        "aucsched2,aucsched3",
        "--balance",
        "on,off",
        "--strategy",
        "greedy",
        "--workers",
        "1",
    )
    done = aucsched("sweep", source, *grid, "-o", out)
    assert (done.returncode, done.stderr) == (0, "")
    rows = rows_of(out)
    assert [(row["policy"], row["balance"]) for row in rows] == [
        (policy, balance) for policy in ("aucsched2", "aucsched3") for balance in ("on", "off")
    ]
    options = ("--policy", "aucsched3", "--balance", "--strategy", "greedy", "--format", "json")
    metrics = json.loads(aucsched("simulate", source, *options).stdout)["metrics"]
    assert float(rows[2]["wait_mean_s"]) == metrics["wait_mean_s"] != float(rows[3]["wait_mean_s"])


def test_a_balance_is_swept_over_a_snapshot(tmp_path: Path) -> None:
    out = tmp_path / "b.csv"
    grid = ("--balance", "on,off", "--strategy", "greedy", "--workers", "1")
    done = aucsched("sweep", small(tmp_path), *grid, "-o", out)
    assert (done.returncode, done.stderr) == (0, "")
    rows = rows_of(out)
    assert [(row["balance"], row["window"]) for row in rows] == [("on", "400"), ("off", "100")]


def test_awards_alone_are_swept_over_a_snapshot(tmp_path: Path) -> None:
    source, out = tmp_path / "two.json", tmp_path / "a.csv"
    jobs = [{"id": name, "cores": cores, "priority": cores} for name, cores in (("wide", 8), ("small", 2))]
    document = {"format": "aucsched-snapshot/1", "nodes": [{"name": "n", "cores": 10}], "jobs": jobs}
    source.write_text(json.dumps(document))
    grid = ("--award-alone", "on,off", "--window", "1", "--work-limit", "3", "--workers", "1")
    done = aucsched("sweep", source, *grid, "-o", out)
    assert (done.returncode, done.stderr) == (0, "")
    # Who is behind the window of one starts on what the award leaves, or waits.
    assert [(row["award_alone"], row["jobs_started"]) for row in rows_of(out)] == [("on", "1"), ("off", "2")]


def test_a_promise_that_is_not_given_is_the_step_s_own() -> None:
    """Jobs keep promised starts with other options, as in ``schedule``; an objective has its own promise."""
    nodes = [package.Node(name="n1", cores=8)]
    late, high = (
        package.Job(id=name, priority=priority, request=package.Request(cores=cores), time_limit_s=600)
        for name, priority, cores in (("late", 1, 8), ("high", 100, 4))
    )
    snapshot = package.Snapshot(nodes=nodes, jobs=[replace(late, promised_start=1000.0), high], time=1000)
    for options in ({"reserve": 0}, {"award_alone": True}, {"objective": "response"}):
        (priority,) = package.sweep(snapshot, **options).columns["priority"]
        assert priority == float(package.schedule(snapshot, **options).objective.priority or 0), options
    assert package.sweep(snapshot, promise=["none"]).columns["priority"] == [100.0]
    with pytest.raises(package.OptionError, match="promise: '15m' is for simulations"):
        package.sweep(snapshot, promise=["plan", "15m"])


def test_workers_below_one_are_refused() -> None:
    with pytest.raises(package.OptionError, match="workers: 0 is below 1"):
        package.sweep(TRACE, policy=["fcfs"], workers=0)


_CLUSTER = """
import aucsched as au
print("once")
nodes = [au.Node(name=f"n{number}", cores=8) for number in range(24)]
jobs = [au.Job(id=str(one), priority=1 + one % 7, request=au.Request(cores=8 + one)) for one in range(40)]
snapshot = au.Snapshot(nodes=nodes, jobs=jobs)
"""
_BIDS = """
import aucsched as au
print("once")
bids = [(f"b{one}", 1 + one % 7, {f"g{one % 9}": 1, f"g{one % 11}": 1}) for one in range(400)]
goods = {f"g{one}": 1 for one in range(11)}
"""
_POLICY = """
import aucsched as au
print("once")
class Mine:
    def step(self, now, machine):
        for job in machine.waiting:
            machine.start(job)
log = au.parse_swf(b"; MaxProcs: 4\\n1 0 -1 10 3 -1 -1 3 10\\n")
"""


@pytest.mark.parametrize(
    ("begin", "call", "said"),
    [
        (_CLUSTER, "au.schedule(snapshot, workers=2, part_nodes=12, work_limit=5).status.value", "feasible"),
        (_CLUSTER, "au.sweep(snapshot, window=[9, 8], workers=2).columns['window']", "[9, 8]"),
        (_CLUSTER, "au.sweep(snapshot, window=[9, 8], output='o.csv').columns['window']", "[9, 8]"),
        (_BIDS, "au.winners(bids, goods, workers=2, work_limit=900).value > 0", "True"),
    ],
)
def test_a_script_needs_no_guard_and_runs_once(begin: str, call: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(f"{begin}\nprint({call})\n")
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"once\n{said}\n"), done.stderr
    assert {line for line in done.stderr.splitlines() if "compiling" not in line} == set()


def test_a_script_with_a_policy_of_its_own_is_told_of_the_guard(tmp_path: Path) -> None:
    call = "print(au.sweep(log, policy=[Mine], workers=2).columns['status'])"
    why = "worker processes end as they start (workers: a script that starts processes must call sweep below"
    for before, code in (("", 1), ('if __name__ == "__main__": ', 0)):
        (tmp_path / "script.py").write_text(f"{_POLICY}\n{before}{call}\n")
        done = subprocess.run(
            [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == code
        assert (why in done.stderr) is bool(code)
        assert done.stderr.count("Traceback") == code


def test_an_auction_over_a_workload_of_nodes(tmp_path: Path) -> None:
    source, out = workload(tmp_path), tmp_path / "w.csv"
    options = ("--policy", "aucsched3", "--interval", "5", "--work-limit", "2")
    grid = (*options, "--window", "2,8", "--max-bids", "10,60", "--repeat", "2", "--workers", "2")
    done = aucsched("sweep", source, *grid, "-o", out, "--plot", tmp_path / "w.png")
    assert (done.returncode, done.stderr) == (0, "")
    rows = rows_of(out)
    assert len(rows) == 8
    assert [row["seed"] for row in rows[:4]] == ["0", "1", "0", "1"]
    assert {(row["reserve"], row["objective"], row["strategy"]) for row in rows} == {
        ("1", "priority", "anytime")
    }
    point = ("--window", "8", "--max-bids", "10", "--seed", "1", "--format", "json")
    metrics = json.loads(aucsched("simulate", source, *options, *point).stdout)["metrics"]
    (row,) = (row for row in rows if (row["window"], row["max_bids"], row["seed"]) == ("8", "10", "1"))
    assert float(row["wait_mean_s"]) == metrics["wait_mean_s"] > 0
    assert float(row["level_mean"]) == metrics["level_mean"]
    assert float(row["level_job_shares.1"]) == metrics["level_job_shares"]["1"]
    assert (tmp_path / "w.png").stat().st_size > 0


def test_baselines_over_a_workload_of_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = workload(tmp_path), tmp_path / "w.csv"
    assert (
        run(["sweep", str(source), "--policy", "easy,backfill-slurm", "-o", str(out), "--workers", "1"]) == 0
    )
    assert capsys.readouterr().out.startswith("2 runs, 2 points\n")
    rows = rows_of(out)
    assert [(row["policy"], row["status"], row["jobs"]) for row in rows] == [
        ("easy", "done", "16"),
        ("backfill-slurm", "done", "16"),
    ]
    for arguments, said in (
        (("--policy", "easy", "--work-limit", "3"), "--work-limit needs --policy ipsched or aucsched1"),
        (("--policy", "easy", "--seed", "3"), "--seed: policy easy draws nothing at random"),
        (("--model", "aucsched3"), "--model: a workload of nodes has no use for it"),
        (("--policy", "slack"), "--policy slack counts processors"),
        (("--policy", "aucsched3", "--window", "0"), "--window 0: 0 is below 1"),
    ):
        assert said in refusal(capsys, source, *arguments, "-o", tmp_path / "x.csv")


def test_of_several_policies_those_that_draw_get_the_seed(tmp_path: Path) -> None:
    source, out = workload(tmp_path), tmp_path / "w.csv"
    grid = ("--policy", "easy,aucsched3", "--seed", "3", "--workers", "1")
    assert run(["sweep", str(source), *grid, "-o", str(out)]) == 0
    assert [(row["policy"], row["seed"]) for row in rows_of(out)] == [("easy", ""), ("aucsched3", "3")]


def test_every_auction_over_a_workload_of_nodes(tmp_path: Path) -> None:
    source, out = workload(tmp_path), tmp_path / "w.csv"
    options = ("--policy", "ipsched,aucsched1,aucsched2", "--work-limit", "1", "--workers", "1")
    assert run(["sweep", str(source), *options, "-o", str(out)]) == 0
    # IPSCHED makes no bids; where a few steps of search end each pass, the award found stands.
    assert [(row["policy"], row["status"], row["on_timeout"], row["max_bids"]) for row in rows_of(out)] == [
        ("ipsched", "done", "halve", ""),
        ("aucsched1", "done", "halve", "150"),
        ("aucsched2", "done", "incumbent", "6000"),
    ]


def test_a_gzip_log_on_standard_input(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "aucsched", "sweep", "-", "-o", str(tmp_path / "t.csv")]
    subprocess.run(command, input=gzip.compress(TRACE.read_bytes()), check=True)
    assert rows_of(tmp_path / "t.csv")[0]["wait_mean_s"] == "9.2"


@pytest.mark.parametrize(("make", "axes"), [(small, {"work_limit": [0]}), (workload, {"policy": ["fcfs"]})])
def test_a_gzip_file_of_each_kind_is_swept(
    make: Callable[[Path], Path], axes: dict[str, list[Value]], tmp_path: Path
) -> None:
    plain, packed = make(tmp_path), tmp_path / "packed.json.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert make_plan(str(packed), axes).runs == make_plan(str(plain), axes).runs


def test_failed_runs_are_rows_with_their_error(tmp_path: Path) -> None:
    # 2 200 jobs, no two alike, on 1 000 nodes are more variables than IPSCHED takes; ten jobs are not.
    nodes = '{"name": "n[0-999]", "cores": 1, "memory_mib": 10000}'
    asked = '"priority": 1, "cores": 1'
    jobs = ",".join(f'{{"id": "{job}", {asked}, "memory_mib_per_node": {60 + job}}}' for job in range(2200))
    wide = tmp_path / "wide.json"
    wide.write_text(f'{{"format": "aucsched-snapshot/1", "nodes": [{nodes}], "jobs": [{jobs}]}}')
    out = tmp_path / "w.csv"
    grid = ("--model", "ipsched", "--reserve", "0", "--window", "10,2200", "--workers", "1", "-o", out)
    done = aucsched("sweep", wide, *grid)
    assert done.returncode == 0
    good, failed = rows_of(out)
    assert good["status"] in {"optimal", "feasible"}
    assert good["error"] == ""
    assert failed["status"] == "failed"
    assert "2000" in failed["error"]
    assert failed["window"] == "2200"
    assert failed["priority"] == ""
    assert done.stderr == f"note: 1 of 2 runs failed; run 1: {failed['error']}\n"
    journal = tmp_path / "w.csv.journal"
    before = journal.read_bytes()
    assert aucsched("sweep", wide, *grid).stderr == f"note: 2 of 2 runs are done already\n{done.stderr}"
    assert journal.read_bytes() == before
    again = aucsched("sweep", wide, *grid, "--retry-failed")
    assert again.stderr == f"note: 1 of 2 runs are done already\n{done.stderr}"
    assert len(journal.read_bytes().splitlines()) == 4
    alone = ["2200" if one == "10,2200" else one for one in grid[:-1]]
    none = aucsched("sweep", wide, *alone, tmp_path / "none.csv")
    assert (none.returncode, none.stderr) == (1, f"note: 1 of 1 runs failed; run 0: {failed['error']}\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--window", "25,x"], "--window 25,x: 'x' is not an integer"),
        (["--window", "25,25"], "--window 25,25: 25 is given twice"),
        (["--window", "25,"], "--window 25,: '' is not an integer"),
        (["--window", "0"], "--window 0: 0 is below 1"),
        (["--time-limit", "nan"], "--time-limit nan: nan is not a number"),
        (["--time-limit", "1,0"], "--time-limit 1,0: 0 is not above 0"),
        (
            ["--model", "aucsched9"],
            "--model aucsched9: 'aucsched9' is not one of ipsched, aucsched1, aucsched2, aucsched3",
        ),
        (["--policy", "easy"], "--policy: a snapshot has no use for it"),
        (["--balance", "yes"], "--balance yes: 'yes' is neither on nor off"),
        (["--order", "sjf"], "--order: a snapshot has no use for it"),
        (
            ["--preset", "plugin", "--model", "aucsched2"],
            "preset: the constants of aucsched2's published plugin are not known here",
        ),
        (
            ["--time-limit", "1", "--work-limit", "5"],
            "--time-limit and --work-limit: a run that counts its steps",
        ),
        (
            ["--workers", "2", "--dask", "tcp://127.0.0.1:1"],
            "--workers: with --dask the cluster's own workers",
        ),
        (["--plot", "p.gif"], "--plot p.gif: the name ends in none of .png, .pdf, .svg"),
        (["--repeat", "2000000"], "the grid has 2000000 runs, more than 1000000"),
    ],
)
def test_refused_over_a_snapshot(
    arguments: Sequence[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refusal(capsys, small(tmp_path), *arguments, "-o", tmp_path / "x.csv")
    assert {path.name for path in tmp_path.iterdir()} == {"small.json"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "aucsched3"], "--model: an SWF log has no use for it"),
        (["--window", "25"], "--window: an SWF log has no use for it"),
        (["--seed", "3"], "--seed: policy easy draws nothing at random"),
        (["--policy", "fast"], "policy 'fast' is not one of"),
        (["--order", "fast"], "--order fast: 'fast' is not one of"),
        (["--reservations", "3"], "--reservations needs --policy reservations, not easy"),
        (["--processors", "0"], "--processors 0: 0 is below 1"),
        (["--speculation", "1.5"], "--speculation 1.5: 1.5 is above 1"),
        (["--stops", "1"], "--stops needs --policy speculative, not easy"),
    ],
)
def test_refused_over_a_trace(
    arguments: Sequence[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refusal(capsys, TRACE, *arguments, "-o", tmp_path / "x.csv")
    assert not list(tmp_path.iterdir())


def test_what_runs_do_not_look_at_is_noted(tmp_path: Path) -> None:
    """As ``simulate`` says it: rows of a log, members of jobs."""
    log, jobs, table = tmp_path / "log.swf", workload(tmp_path), tmp_path / "t.csv"
    log.write_text(f"{TRACE.read_text()}99 0 -1 0 1 -1 -1 1 5 -1 1 1 1 1 1 1 1 1\n")
    document = json.loads(jobs.read_text())
    document["jobs"][0]["deadline_s"] = 1e6
    jobs.write_text(json.dumps(document))
    for source, said in (
        (log, "1 with run time 0 or missing"),
        (jobs, "deadline_s of 1 job is not looked at"),
    ):
        for words in (("simulate", source), ("sweep", source, "--policy", "easy", "-o", table)):
            done = aucsched(*words)
            assert (done.returncode, said in done.stderr, done.stderr.count("\n")) == (0, True, 1), done
        found = package.simulate(source)
        assert [said in note for note in found.notes] == [True]
        assert found.title().endswith(f"; {found.notes[0]}")
        table.unlink()
        table.with_name("t.csv.journal").unlink()


def test_refused_outputs_and_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = str(small(tmp_path))
    other, bad = tmp_path / "other.csv", tmp_path / "bad.json"
    other.write_text("mine\n")
    bad.write_text('{"format": "aucsched-snapshot/1", "nodes": [], "jobs": [{"id": 3}]}')
    for arguments, said in (
        ([source], "Missing option '-o' / '--output'"),
        ([source, "-o", "x.txt"], "-o x.txt: the name ends in none of .csv, .parquet"),
        ([source, "-o", "x.csv", "-o", "x.csv"], "-o and -o both write x.csv"),
        ([source, "-o", str(other)], "there is no other.csv.journal to resume from"),
        ([source, "-o", str(tmp_path / "no" / "x.csv")], "No such file or directory"),
        (["nowhere.json", "-o", "x.csv"], "nowhere.json: No such file or directory"),
        ([str(bad), "-o", str(tmp_path / "x.csv")], f"{bad}: jobs[0]"),
        (
            [str(other), "-o", str(tmp_path / "x.csv")],
            f"{other}: line 1: 'mine' is not a number of an SWF row",
        ),
    ):
        assert said in refusal(capsys, *arguments)
    assert other.read_text() == "mine\n"
    assert not (tmp_path / "x.csv.journal").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((*GRID[:-2], "--repeat", "3"), "has --repeat 6, this one --repeat 3"),
        ((*GRID, "--seed", "1"), "has --seed 0, this one --seed 1"),
        (("--window", "4,12,16", *GRID[2:], "--seed", "1"), "has --seed 0, this one --seed 1"),
        (("--window", "4,13", *GRID[2:]), "has --window 4,12, this one --window 4,13"),
        (GRID[2:], "has --window 4,12, this one no --window"),
        ((*GRID, "--model", "aucsched2"), "has no --model, this one --model aucsched2"),
    ],
)
def test_another_grid_does_not_go_on(
    swept: Path, arguments: Sequence[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (swept / "s.csv.journal").read_bytes()
    line = refusal(capsys, swept / "small.json", *arguments, "-o", swept / "s.csv")
    assert said in line
    assert line.startswith(f"{swept / 's.csv.journal'}: the sweep it holds")
    assert (swept / "s.csv.journal").read_bytes() == before


def test_another_input_does_not_go_on(
    swept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "small.json"
    other.write_bytes((swept / "small.json").read_bytes() + b"\n")
    line = refusal(capsys, other, *GRID, "-o", swept / "s.csv")
    assert re.search(
        r"has as input a snapshot of SHA-256 \w{12}…, this one as input a snapshot of SHA-256", line
    )


def test_the_same_content_under_another_name_goes_on(swept: Path, tmp_path: Path) -> None:
    other = tmp_path / "renamed.json"
    other.write_bytes((swept / "small.json").read_bytes())
    again = aucsched("sweep", other, *GRID, "-o", swept / "s.csv")
    assert again.stderr == "note: 24 of 24 runs are done already\n"


def test_parquet_is_refused_without_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("aucsched.reports.table_files.find_spec", lambda _: None)
    line = refusal(capsys, small(tmp_path), "-o", tmp_path / "x.parquet")
    assert line.endswith("x.parquet needs pyarrow: pip install 'aucsched[data]'")


def test_progress_with_the_time_left_on_a_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "aucsched", "sweep", TRACE, "--repeat", "3", "-o", tmp_path / "t.csv"]
    with subprocess.Popen(list(map(str, command)), stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                shown += os.read(ours, 4096)
            except OSError:
                break
    os.close(ours)
    assert process.returncode == 0
    assert b"runs" in shown
    assert b"3/3" in shown
    assert b"0:00:00" in shown


def test_every_axis_is_read_by_some_kind(tmp_path: Path) -> None:
    assert set(AXES) == {name for kind in KINDS.values() for name in kind.axes}
    plan = make_plan(str(small(tmp_path)), {})
    assert [run.number for run in plan.runs] == [0]


@pytest.mark.parametrize(
    ("kind", "begins"), [("snapshot", "| snapshot |"), ("workload", "| workload of nodes |")]
)
def test_the_page_names_every_axis(kind: str, begins: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "sweep.md").read_text()
    (row,) = (line for line in page.splitlines() if line.startswith(begins))
    names = {f"--{flag}" for flag in re.findall(r"--([a-z-]+)", row)}
    # What only the policy `negotiate` reads has a row of its own.
    assert names == {AXES[name].option for name in KINDS[kind].axes if name not in SWEPT}


def test_ctrl_c_while_processes_are_spawned_leaves_the_script_where_it_was() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["interrupted", "True", "set()"]


#: A program, as a notebook is one, that goes on after Ctrl-C.
INTERRUPTED = """
import signal, sys, threading
from aucsched.models.winners.spawning import spawning
main = sys.modules["__main__"]
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    with spawning():
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
print(sys.modules["__main__"] is main, signal.pthread_sigmask(signal.SIG_BLOCK, []))
"""


def test_threads_that_spawn_at_once_leave_the_script_where_it_was() -> None:
    main, entered, left = sys.modules["__main__"], Event(), Event()

    def outer() -> None:
        with spawning():
            entered.set()
            left.wait(0.2)

    def inner() -> None:
        entered.wait(5)
        with spawning():
            left.wait(0.4)

    threads = [Thread(target=outer), Thread(target=inner)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sys.modules["__main__"] is main


def test_numbers_by_name_may_be_a_table_of_the_configuration_or_a_mapping(tmp_path: Path) -> None:
    snapshot = package.Snapshot(nodes=[package.Node(name="n", cores=8)])
    (tmp_path / "s.json").write_text(snapshot_to_json(snapshot))
    (tmp_path / "c.toml").write_text(
        "[schedule]\nsearch-parameters = {moves = 50}\n"
        "[sweep]\nsearch-parameters = [{moves = 50}, {moves = 4, near = 0.02}]\n"
        "[simulate]\norder = 'multifactor'\nmultifactor = {age = 2, size = 1}\n"
    )
    config, table = ["--config", str(tmp_path / "c.toml")], tmp_path / "t.csv"
    path = str(tmp_path / "s.json")
    assert run([*config, "schedule", path, "--work-limit", "1"]) == 0
    assert run([*config, "sweep", path, "--work-limit", "1", "-o", str(table), "--workers", "1"]) == 0
    assert [row["search_parameters"] for row in rows_of(table)] == ["moves=50", "moves=4:near=0.02"]
    assert run([*config, "simulate", str(TRACE), "--policy", "easy"]) == 0
    swept = package.sweep(
        snapshot, search_parameters=[{"moves": 50}, {"moves": 4, "near": 0.02}], work_limit=1
    )
    assert swept.columns["search_parameters"] == ["moves=50", "moves=4:near=0.02"]
    swept = package.sweep(snapshot, search_parameters={"moves": 50}, work_limit=1)
    assert swept.columns["search_parameters"] == ["moves=50"]
