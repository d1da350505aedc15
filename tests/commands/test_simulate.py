"""`aucsched simulate` and `aucsched workload` as a user runs them."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from aucsched.cli import run
from aucsched.commands.simulate import simulate
from aucsched.simulation.logs.policies import ORDERS, POLICIES

FIXTURES = Path(__file__).parents[1] / "fixtures" / "swf"
SMALL, DIRTY = str(FIXTURES / "small.swf"), str(FIXTURES / "dirty.swf")


def test_json_is_the_promised_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", SMALL, "--policy", "easy", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert document["format"] == "aucsched-simulation/1"
    assert (document["policy"], document["order"], document["jobs"]) == ("easy", "fcfs", 5)
    assert document["metrics"]["wait_mean_s"] == 9.2
    assert document["metrics"]["level_mean"] is None
    assert err == ""


def test_text_names_log_policy_and_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", SMALL, "--order", "sjf"]) == 0
    out, _ = capsys.readouterr()
    assert f"{SMALL}: easy, sjf order, 5 jobs on 4 processors" in out
    assert "CPU utilisation" in out


def test_a_run_s_forecasts_are_a_file_of_rows_with_their_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, nodes = tmp_path / "f.csv", str(FIXTURES.parents[2] / "examples" / "overtaken.json")
    for source, policy, order, jobs, noted in (
        (SMALL, "easy", "fcfs", 5, ""),
        (SMALL, "easy", "sjf", 5, ""),
        (nodes, "backfill-slurm", "fcfs", 26, "play EASY, not"),
    ):
        command = ["simulate", source, "--policy", policy, "--forecasts", str(path), "--format", "json"]
        command += ["--order", order]
        assert run([*command, "--forecast-at", "arrival"]) == 0
        assert noted in capsys.readouterr().err
        rows = list(csv.DictReader(path.read_text().splitlines()))
        assert len(rows) == len({row["job"] for row in rows}) == jobs
        for row in rows:
            assert float(row["p10_s"]) <= float(row["p50_s"]) <= float(row["p90_s"])
            assert float(row["start_s"]) >= 0


@pytest.mark.parametrize("policies", ["easy", "easy,fcfs"])
def test_a_pipe_s_log_is_read_whole(
    policies: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe, told = tmp_path / "pipe", []
    os.mkfifo(pipe)
    with subprocess.Popen(["cp", SMALL, pipe]):
        for source in (str(pipe), SMALL):
            assert run(["simulate", source, "--policy", policies, "--format", "json"]) == 0
            told.append(re.sub(r'"seconds": [0-9.e-]+', "", capsys.readouterr().out))
    assert told[0] == told[1] != ""


def test_dropped_rows_are_reported_on_stderr_and_in_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", DIRTY, "--format", "json"]) == 0
    out, err = capsys.readouterr()
    counts = {"no_processors": 1, "no_run_time": 2, "above_machine": 1}
    assert json.loads(out)["dropped"] == {"partial_execution": 0, "no_submit_time": 0, **counts}
    assert err == (
        f"aucsched: {DIRTY}: dropped 4 of 8 rows: 1 without processors, 2 with run time 0 or missing, "
        "1 larger than the machine\n"
    )


def test_waits_of_rows_have_no_residue_of_binary_fractions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, row = tmp_path / "log.swf", "1 -1 -1 1 0.3 -1 1 1 1 -1 1 -1 -1 -1"
    log.write_text(f"; MaxProcs: 1\n1 0 -1 0.3 {row}\n2 0.1 -1 1 {row}\n")
    assert run(["simulate", str(log), "--jobs-out", "-", "-o", str(tmp_path / "out")]) == 0
    (_, wait) = [line.split(",")[6] for line in capsys.readouterr().out.splitlines()[1:]]
    assert wait == "0.2" != str(0.3 - 0.1)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("order", ORDERS)
def test_same_input_same_bytes_and_checking_changes_nothing(policy: str, order: str, tmp_path: Path) -> None:
    written = []
    for name, extra in (("a", []), ("b", []), ("c", ["--check"])):
        out, jobs = tmp_path / f"{name}.json", tmp_path / f"{name}.csv"
        arguments = [SMALL, "--policy", policy, "--order", order, "--format", "json", "-o", str(out)]
        assert run(["simulate", *arguments, "--jobs-out", str(jobs), *extra]) == 0
        written.append((re.sub(r'"seconds": [\d.e-]+', "", out.read_text()), jobs.read_bytes()))
    assert written[0] == written[1] == written[2]


def test_the_command_knows_every_policy_and_order() -> None:
    """It names them itself, so that --help need not load numpy."""
    choices = {option.name: getattr(option.type, "choices", None) for option in simulate.params}
    # Policies that need nodes come after those for logs.
    assert tuple(choices["policy"] or ())[: len(POLICIES)] == tuple(POLICIES)
    assert choices["order"] == tuple(ORDERS)


def test_every_output_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {name: tmp_path / f"{name}.csv" for name in ("jobs-out", "batsim-out")}
    files["swf-out"] = tmp_path / "out.swf.gz"
    options = [text for name, path in files.items() for text in (f"--{name}", str(path))]
    assert run(["simulate", SMALL, *options]) == 0
    capsys.readouterr()
    assert files["jobs-out"].read_text().startswith("id,submit_s,start_s,end_s,cores,nodes")
    assert files["batsim-out"].read_text().startswith("job_id,workload_name,profile,submission_time")
    assert gzip.decompress(files["swf-out"].read_bytes()).startswith(b"; Computer: A made-up machine")
    assert run(["simulate", str(files["swf-out"])]) == 0


def test_a_snapshot_gives_the_machine_its_processors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = tmp_path / "cluster.json"
    cluster.write_text(
        '{"format": "aucsched-snapshot/1", "nodes": [{"name": "n[1-2]", "cores": 3}], "jobs": []}'
    )
    assert run(["simulate", SMALL, "--cluster", str(cluster), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["processors"] == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["simulate", "{tmp}/no.swf"], "{tmp}/no.swf: No such file or directory"),
        (["simulate", "{tmp}/cut.swf"], "{tmp}/cut.swf: line 12: 8 fields where the log has 18"),
        (["simulate", "{tmp}/cut.swf.gz"], "{tmp}/cut.swf.gz: the gzip file is cut short or damaged"),
        (["workload", "describe", __file__], f"{__file__}: line 1: '\"\"\"`aucsched' is not"),
        (["simulate", SMALL, "--policy", "esay"], "aucsched: Invalid value for '--policy': 'esay' is"),
        (["simulate", SMALL, "--order", "up"], "aucsched: Invalid value for '--order'"),
        (["simulate", SMALL, "--processors", "0"], "aucsched: Invalid value for '--processors'"),
        (["simulate", SMALL, "--processors", "1"], None),
        (["simulate", SMALL, "--reservations", "2"], "aucsched: --reservations needs --policy"),
        (["simulate", SMALL, "--multifactor", "age=1"], "aucsched: --multifactor needs --order"),
        (["simulate", SMALL, "--queue-weights", "1=2"], "aucsched: --queue-weights needs --order"),
        (
            ["simulate", SMALL, "--order", "smith", "--queue-weights", "1=no"],
            "aucsched: --queue-weights '1=no': '1=no' is not QUEUE=WEIGHT",
        ),
        (
            ["simulate", SMALL, "--order", "multifactor", "--multifactor", "speed=1"],
            "aucsched: --multifactor: 'speed' is none of age, size, fairshare, age_max_s, half_life_s",
        ),
        (
            ["simulate", SMALL, "--processors", "4", "--cluster", "x.json"],
            "aucsched: --processors and --cluster both give the machine's size",
        ),
        (
            ["simulate", SMALL, "--forecasts", "{tmp}/f.csv", "--forecast-at", ""],
            "aucsched: --forecast-at '': '' is neither arrival nor a share below 1",
        ),
        (["simulate", SMALL, "--gantt", "x.bmp"], "aucsched: --gantt x.bmp: the name ends in none of"),
        (["simulate", SMALL, "--jobs-out", "{tmp}/no/x.csv"], "{tmp}/no/x.csv: No such file or directory"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_one_line_and_exit_2(
    arguments: list[str], message: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = Path(SMALL).read_bytes()
    (tmp_path / "cut.swf").write_bytes(content[:-24])
    (tmp_path / "cut.swf.gz").write_bytes(gzip.compress(content)[:-9])
    arguments = [argument.replace("{tmp}", str(tmp_path)) for argument in arguments]
    code = run(arguments)
    out, err = capsys.readouterr()
    if message is None:
        assert code == 0
        return
    assert code == 2
    assert out == ""
    assert err.startswith(message.replace("{tmp}", str(tmp_path)))
    assert err.count("\n") == 1


def test_without_matplotlib_a_chart_is_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("aucsched.reports.canvas.find_spec", lambda _: None)
    assert run(["simulate", SMALL, "--gantt", str(tmp_path / "x.png")]) == 2
    assert capsys.readouterr().err == "aucsched: --gantt needs matplotlib: pip install 'aucsched[plot]'\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_charts_are_drawn_and_reproducible(suffix: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("a", "b"):
        charts = [str(tmp_path / f"{name}{chart}.{suffix}") for chart in ("gantt", "use", "log")]
        out = str(tmp_path / "out.txt")
        assert run(["simulate", SMALL, "--gantt", charts[0], "--plot", charts[1], "-o", out]) == 0
        assert run(["workload", "describe", SMALL, "--plot", charts[2], "-o", out]) == 0
    for chart in ("gantt", "use", "log"):
        drawn = (tmp_path / f"a{chart}.{suffix}").read_bytes()
        assert len(drawn) > 5_000
        assert drawn == (tmp_path / f"b{chart}.{suffix}").read_bytes()


def test_a_chart_of_many_jobs_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    rows = [f"{n} {n * 3} -1 {5 + n % 17} {1 + n % 4} -1 -1 -1 {9 + n % 40}{' -1' * 9}" for n in range(900)]
    log, chart = tmp_path / "many.swf", tmp_path / "many.png"
    log.write_text("; MaxProcs: 5\n" + "\n".join(rows) + "\n")
    assert run(["simulate", str(log), "--gantt", str(chart), "--plot", str(tmp_path / "use.png")]) == 0
    capsys.readouterr()
    assert chart.read_bytes().startswith(b"\x89PNG")


def test_describe_prints_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["workload", "describe", SMALL]) == 0
    assert "computer: A made-up machine" in capsys.readouterr().out
    assert run(["workload", "describe", SMALL, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "aucsched-description/1"
    assert document["jobs"] == 5


def test_progress_shows_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert run(["simulate", SMALL, "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["jobs"] == 5
    assert "jobs" in err
