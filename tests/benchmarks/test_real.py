"""Real logs: every run has a file of its own, what is done is not run again, gates are what ratios say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import real
import real_logs
from click.testing import CliRunner
from real_tables import OURS, doubt_tables, main_tables, verdicts
from support.run import aucsched

LOG = "; MaxProcs: 4\n" + "".join(
    f"{number} {10 * number} -1 {run} -1 -1 -1 {size} {run + 20} -1 1 {number % 3} -1 -1 -1 -1 -1 -1\n"
    for number, (run, size) in enumerate(
        [(100, 3), (50, 4), (10, 1), (80, 2), (5, 1), (60, 4), (7, 2)] * 3, 1
    )
)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "swf").mkdir()
    (tmp_path / "swf" / "tiny.swf").write_text(LOG)
    monkeypatch.setattr(real_logs, "LOGS", {"tiny": ("tiny.swf", None)})
    monkeypatch.setattr(real_logs, "CLUSTERS", ())
    monkeypatch.setattr(real_logs, "NODE_DOUBTS", {})
    monkeypatch.setattr(real_logs, "ON_NODES", {})
    return tmp_path


def run(data: Path, *arguments: str) -> str:
    kept, page = data / "kept", data / "docs" / "real.md"
    page.parent.mkdir(exist_ok=True)
    done = CliRunner().invoke(
        real.main, ["--data", str(data), "--results", str(kept), "--page", str(page), *arguments]
    )
    assert done.exit_code == 0, done.output
    return done.output


def test_names_of_runs_are_their_own() -> None:
    names = [one.name for one in real.all_runs()]
    assert len(set(names)) == len(names)
    assert all(name.isascii() for name in names)


def test_what_is_done_is_not_run_again(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = run(data)
    names = sorted(path.stem for path in (data / "kept").iterdir())
    assert names == sorted(one.name for one in real.all_runs())
    assert "mean bounded slowdown" in output
    (data / "kept" / f"{names[0]}.json").unlink()
    played: list[str] = []

    def play(one: real.Run, _: Path) -> dict[str, Any]:
        played.append(one.name)
        return row_of(one)

    monkeypatch.setattr(real, "play", play)
    run(data)
    assert played == [names[0]]


def row_of(one: real.Run) -> dict[str, Any]:
    return real_row(one.log, one.policy, one.doubt, 1.0) | {"options": one.options}


def real_row(log: str, policy: str, doubt: str, value: float) -> dict[str, Any]:
    names = ("wait_mean", "wait_p95", "wait_max", "slowdown_mean", "slowdown_p95", "utilisation", "loss")
    return {
        "log": log,
        "policy": policy,
        "doubt": doubt,
        "options": {},
        "seconds": 1.0,
        "jobs": 3,
        "by_size": [[4.0, 3, value, value]],
        "by_user": [1, value, value, value, value],
        **dict.fromkeys(names, value),
    }


def test_the_command_s_figures_are_simulate_s(data: Path) -> None:
    run(data, "--only", "tiny_aucsched3-response")
    found = json.loads((data / "kept" / "tiny_aucsched3-response.json").read_text())
    done = aucsched(
        *("simulate", data / "swf" / "tiny.swf", "--policy", "promised", "--objective", "response"),
        *("--format", "json"),
    )
    metrics = json.loads(done.stdout)["metrics"]
    assert found["wait_mean"] == pytest.approx(metrics["wait_mean_s"])
    assert found["slowdown_mean"] == pytest.approx(metrics["bounded_slowdown_mean"])


@pytest.mark.parametrize(("value", "holds"), [(0.5, "yes"), (0.85, "no"), (1.2, "no")])
def test_a_gate_holds_by_its_mean_and_each_log(value: float, holds: str) -> None:
    rows = [real_row("a", "easy", "", 10.0), real_row("a", OURS, "", 10 * value)]
    lines = [line for line in verdicts(rows) if line.startswith("| mean wait")]
    assert lines[0].endswith(f"| {value:.3f} | {value:.3f} | {holds} |")
    assert "10.00" in "\n".join(main_tables(rows))
    doubted = [*rows, real_row("a", "easy", "d", 4.0), real_row("a", OURS, "d", 2.0)]
    assert "| d | 0.50 / 0.50 / 0.50 |" in list(doubt_tables(doubted))


@pytest.mark.parametrize(("ours", "holds"), [(15.1, "yes"), (15.3, "no")])
def test_a_log_without_a_queue_is_to_be_equal_within_one_per_cent(ours: float, holds: str) -> None:
    paced = {"options": {"interval_s": 30.0}}
    rows = [real_row("a", "easy", "", 15.0) | paced, real_row("a", OURS, "", ours) | paced]
    lines = verdicts(rows)
    assert any(line.startswith("a has no queue") and line.endswith(f"1 %: {holds}.") for line in lines)
    assert not any(line.startswith("| mean wait") for line in lines)


def test_the_default_is_set_beside_easy_and_on_nodes_beside_both() -> None:
    values = {"easy": 10.0, "backfill-slurm": 8.0, "aucsched3": 10.0, OURS: 6.0}
    rows = [real_row("a", policy, "passes", value) for policy, value in values.items()]
    rows += [real_row("b", policy, "", value) for policy, value in {"easy": 2.0, "aucsched3": 2.1}.items()]
    lines = verdicts(rows)
    waits = [line for line in lines if line.startswith("| mean wait")]
    # Response beside the peer on nodes; the default beside EASY on logs, and on nodes beside both.
    assert [line.split("|")[2].strip() for line in waits] == ["0.750", "1.050", "1.000", "1.250"]
    assert [line.split("|")[-2].strip() for line in waits] == ["yes", "no", "yes", "no"]
    assert sum(line.startswith("| gate | a, passes |") for line in lines) == 3
