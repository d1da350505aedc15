"""``aucsched simulate --policy evolving`` as a user runs it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from aucsched.cli import run
from aucsched.cluster.option_fields import options_in
from aucsched.simulation.evolving import evolving_options
from aucsched.simulation.evolving.evolving_loop import PROVIDERS, WORKLOADS

PLAY = ["simulate", "dynamic-esp", "--policy", "evolving"]


def played(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert run([*PLAY, "--format", "json", *options]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(list(arguments)) == 2
    captured = capsys.readouterr()
    assert not captured.out
    assert captured.err.count("\n") == 1
    return captured.err


def test_names_are_the_registrys() -> None:
    assert tuple(PROVIDERS) == options_in(evolving_options.EvolvingRecord)["serve_by"].choices
    assert tuple(WORKLOADS) == evolving_options.EVOLVING_WORKLOADS


def test_static_and_served(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    static = played(capsys, "--requests", "refuse", "--seed", "4")
    served = played(capsys, "--requests", "serve", "--seed", "4", "--jobs-out", str(tmp_path / "jobs.csv"))
    assert (static["dynamic"]["asked"], static["dynamic"]["satisfied"]) == (69, 0)
    assert static["dynamic"]["requests"] == 138
    assert served["dynamic"]["satisfied"] == len(served["grants"]) > 15
    assert served["metrics"]["makespan_s"] < static["metrics"]["makespan_s"]
    assert served["seed"] == 4
    delays = [delay for grant in served["grants"] for delay in grant["delays"]]
    assert {delay["counts"] for delay in delays if delay["user"] == "user06"} == {False}
    assert {delay["counts"] for delay in delays if delay["user"] != "user06"} == {True}
    assert sum(one["jobs"] for one in served["wait_by_type"].values()) == served["jobs"] == 230
    rows = list(csv.DictReader((tmp_path / "jobs.csv").read_text().splitlines()))
    assert len(rows) == 230
    assert max(float(row["end_s"]) for row in rows) == served["metrics"]["makespan_s"]
    assert sum(bool(row["granted_s"]) for row in rows) == served["dynamic"]["satisfied"]
    assert run([*PLAY, "--seed", "4"]) == 0
    assert "satisfied" in capsys.readouterr().out


def test_fairness_of_a_file_and_of_a_target_agree(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    maui, toml = tmp_path / "maui.cfg", tmp_path / "fairness.toml"
    maui.write_text(
        "DFSPOLICY DFSTARGETDELAY\nDFSINTERVAL 1:00:00\nUSERCFG[DEFAULT] DFSTARGETDELAYTIME=500\n"
    )
    toml.write_text('policy = "target_delay"\ninterval = 3600\n[user.DEFAULT]\ntarget_delay = "00:08:20"\n')
    found = [played(capsys, "--fairness", str(text)) for text in ("target:500", maui, toml)]
    assert found[0]["grants"] == found[1]["grants"] == found[2]["grants"]
    assert len(found[0]["grants"]) < len(played(capsys)["grants"])


def test_other_maui_parameters_are_reported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "maui.cfg"
    path.write_text("SERVERHOST head\nDFSPOLICY NONE\n")
    assert run([*PLAY, "--fairness", str(path)]) == 0
    assert "SERVERHOST" in capsys.readouterr().err


@pytest.mark.parametrize("serve_by", ["partition", "preallocation", "merge"])
def test_rivals(capsys: pytest.CaptureFixture[str], serve_by: str) -> None:
    found = played(capsys, "--serve-by", serve_by, "--det", "remaining")
    assert found["serve_by"] == serve_by
    assert found["dynamic"]["satisfied"] > 0


def test_requests_that_stand(capsys: pytest.CaptureFixture[str]) -> None:
    once, stands = played(capsys), played(capsys, "--keep-requests")
    assert (once["keep_requests"], stands["keep_requests"]) == (False, True)
    assert stands["dynamic"]["satisfied"] > once["dynamic"]["satisfied"]


def test_preemption_and_shrinking(capsys: pytest.CaptureFixture[str]) -> None:
    found = played(capsys, "--preemptible", "A", "--shrinkable", "L,M")
    assert found["dynamic"]["preemptions"] > 0
    assert found["dynamic"]["lost_core_s"] > 0
    assert found["preemptible"] == "A"


def test_a_plot_of_waits(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    paths = [tmp_path / "first.svg", tmp_path / "second.svg"]
    for path in paths:
        assert run([*PLAY, "--plot", str(path), "-o", str(tmp_path / "text")]) == 0
    first, second = (path.read_bytes() for path in paths)
    assert first == second
    assert b"requests refused" in first or b"<svg" in first


def test_rows_have_times_that_read_back_exactly(tmp_path: Path) -> None:
    rows = tmp_path / "jobs.csv"
    assert run(["simulate", "quadflow", "--policy", "evolving", "--jobs-out", str(rows)]) == 0
    with rows.open(newline="") as file:
        for row in csv.DictReader(file):
            wait = float(row["start_s"]) - float(row["submit_s"])
            assert float(row["wait_s"]) == pytest.approx(wait, abs=1e-6), row


def test_quadflow(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "quadflow", "--policy", "evolving", "--format", "json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["wait_by_type"]) == {"Cylinder", "FlatPlate", "rigid"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--fairness", "target:0"], "target:0"),
        (["--fairness", "target:x"], "'x'"),
        (["--fairness", "missing.cfg"], "missing.cfg"),
        (["--fairness-decay", "0.5"], "--fairness-decay"),
        (["--dynamic-partition", "8"], "--dynamic-partition"),
        (["--serve-by", "partition", "--dynamic-partition", "120"], "120"),
        (["--preemptible", "A,X"], "'X'"),
        (["--keep-requests", "--serve-by", "merge"], "--keep-requests"),
        (["--strategy", "greedy"], "--strategy"),
        (["--serve-by", "merge", "--fairness", "target:5"], "--fairness"),
        (["--serve-by", "partition", "--reservation-delay-depth", "5"], "--reservation-delay-depth"),
        (["--shrinkable", "L", "--serve-by", "merge"], "--shrinkable"),
        (["--order", "sjf"], "--order"),
        (["--processors", "120"], "--processors"),
        (["--gantt", "x.png"], "--gantt"),
        (["--plot", "x.txt"], "x.txt"),
        (["--harvest", "fair"], "--harvest"),
        (["--window", "3"], "--window"),
    ],
)
def test_what_would_be_ignored_is_refused(
    capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    assert said in refused(capsys, *PLAY, *options)


def test_the_workload_and_the_policy_need_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert "evolving" in refused(capsys, "simulate", "dynamic-esp", "--policy", "easy")
    assert "log.swf" in refused(capsys, "simulate", "log.swf", "--policy", "evolving")
    assert "--requests" in refused(capsys, "simulate", "log.swf", "--requests", "serve")
    assert "--keep-requests needs" in refused(capsys, "simulate", "log.swf", "--no-keep-requests")
