"""``aucsched workload ischeduler``, ``fit``, and ``simulate`` under policies of applications."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from aucsched.cli import run
from aucsched.cluster.option_fields import options_in
from aucsched.commands import policy_options
from aucsched.negotiation.malleable.harvesting import DISTRIBUTIONS, HARVESTS
from aucsched.negotiation.malleable.malleable_policies import BASELINES
from aucsched.simulation.simulate_options import MALLEABLE_POLICIES


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traces")
    assert run(["workload", "ischeduler", "system", "--jobs", "300", "-o", str(folder / "s.swf")]) == 0
    assert run(["workload", "ischeduler", "GE", "--jobs", "100", "-o", str(folder / "ge.swf")]) == 0
    return folder


def simulated(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> dict[str, object]:
    assert run(["simulate", str(path), "--format", "json", *options]) == 0
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    return document


def test_names_are_the_registrys() -> None:
    deciding = options_in(policy_options.DecidingOptions)
    assert set(deciding["harvest"].choices) == set(HARVESTS)
    assert set(deciding["distribute"].choices) == set(DISTRIBUTIONS)
    assert set(MALLEABLE_POLICIES) == {"ischeduler", *BASELINES}


def test_ideal_backfill_is_easy(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours = simulated(capsys, traces / "s.swf", "--policy", "ideal-backfill")["metrics"]
    easy = simulated(capsys, traces / "s.swf", "--policy", "easy")["metrics"]
    assert isinstance(ours, dict)
    assert isinstance(easy, dict)
    assert ours["wait_mean_s"] == pytest.approx(easy["wait_mean_s"])
    assert ours["cpu_utilization"] == pytest.approx(easy["cpu_utilization"])
    assert ours["harvest_success_rate"] is None


def test_the_policy_is_combined_and_said(
    traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = "--policy ischeduler --admission 6 --harvest even --distribute favor_queued --min-of-ideal 0.3"
    found = simulated(
        capsys, traces / "s.swf", *options.split(), "--model", "parabolic", "--jobs-out", str(tmp_path / "j")
    )
    assert {name: found[name] for name in ("admission", "harvest", "distribute", "model")} == {
        "admission": "6",
        "harvest": "even",
        "distribute": "favor_queued",
        "model": "parabolic",
    }
    rows = list(csv.DictReader((tmp_path / "j").read_text().splitlines()))
    assert len(rows) == 300
    assert all(float(row["total_s"]) >= float(row["wait_s"]) >= 0 for row in rows)
    assert run(["simulate", str(traces / "s.swf"), *options.split()]) == 0
    assert "admission 6, harvest even, distribute favor_queued" in capsys.readouterr().out
    free = simulated(capsys, traces / "s.swf", "--policy", "ischeduler", "--admission", "none")["metrics"]
    assert isinstance(free, dict)
    assert isinstance(found["metrics"], dict)
    assert free["wait_mean_s"] < found["metrics"]["wait_mean_s"]


def test_adapting_costs_what_memory_it_moves(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--policy", "ischeduler", "--model", "parabolic")
    free = simulated(capsys, traces / "ge.swf", *options)["metrics"]
    paid = simulated(capsys, traces / "ge.swf", *options, "--adaptation", "memory")["metrics"]
    assert isinstance(free, dict)
    assert isinstance(paid, dict)
    assert paid["total_mean_s"] > free["total_mean_s"]


def test_a_fitted_model_makes_traces(
    traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, made = tmp_path / "m.json", tmp_path / "t.swf"
    assert run(["workload", "fit", str(traces / "s.swf"), "-o", str(model)]) == 0
    assert (
        run(["workload", "ischeduler", "system", "--model", str(model), "--jobs", "20", "-o", str(made)]) == 0
    )
    assert "s.swf" in made.read_text()
    assert simulated(capsys, made, "--policy", "moldable")["jobs"] == 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("simulate T --harvest even", "--harvest needs --policy ischeduler, not easy"),
        ("simulate T --policy moldable --harvest even", "--harvest is not for --policy moldable"),
        ("simulate T --policy ideal-only --model linear", "--model is not for --policy ideal-only"),
        ("simulate T --policy ischeduler --order sjf", "no --order"),
        ("simulate T --policy ischeduler --check", "--check is not for"),
        ("simulate T --policy ischeduler --window 4", "needs a workload of nodes"),
        ("simulate T --policy ischeduler --admission x", "neither a number of applications"),
        ("workload ischeduler GE --load 0.5", "--load is not of a GE trace"),
        ("workload ischeduler system --beta 0.5", "--beta is not of a system trace"),
        ("workload ischeduler system --ge-p4-s 5", "--ge-p4-s is not of a system trace"),
        (
            "workload ischeduler system --model T",
            "Standard Workload Format, not a trace model",
        ),
    ],
)
def test_options_that_would_be_ignored_are_refused(
    traces: Path, capsys: pytest.CaptureFixture[str], options: str, message: str
) -> None:
    words = [str(traces / "s.swf") if word == "T" else word for word in options.split()]
    assert run(words) != 0
    assert message in capsys.readouterr().err
