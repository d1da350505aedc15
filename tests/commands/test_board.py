"""`aucsched board LOG`: a row for each policy, as `simulate` plays it alone, and one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.run import refused

from aucsched.api.simulations import BOARD_POLICIES
from aucsched.cli import run

EXAMPLES = Path(__file__).parents[2] / "examples"
DAYS = str(EXAMPLES / "days.swf")


def _printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run([*arguments, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_each_row_is_what_simulate_gives(capsys: pytest.CaptureFixture[str]) -> None:
    found = _printed(capsys, "board", DAYS, "--policy", "lookahead")
    assert found["format"] == "aucsched-board/1"
    rows = {row["policy"]: row for row in found["policies"]}
    assert list(rows) == ["lookahead", *BOARD_POLICIES]
    for name, told in (
        ("EASY++", ["--policy", "predicted:by=last-two"]),
        ("WFP3", ["--policy", "easy", "--order", "wfp3"]),
        ("response", ["--policy", "promised", "--objective", "response"]),
        ("lookahead", ["--policy", "lookahead"]),
    ):
        alone = _printed(capsys, "simulate", DAYS, *told)["metrics"]
        for metric in ("bounded_slowdown_mean", "wait_mean_s", "wait_max_s", "cpu_utilization"):
            assert rows[name][metric] == pytest.approx(alone[metric]), (name, metric)
    edge = [row for row in found["policies"] if row["on_edge"]]
    assert edge
    for row in edge:
        assert not any(
            other["wait_max_s"] < row["wait_max_s"]
            and other["bounded_slowdown_mean"] < row["bounded_slowdown_mean"]
            for other in found["policies"]
        )


def test_ones_own_policy_has_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    own = f"{EXAMPLES / 'own_policy.py'}:ShortestFirst"
    assert run(["board", DAYS, "--policy", own]) == 0
    assert "own_policy.py" in capsys.readouterr().out


def test_a_policy_that_is_none_is_refused() -> None:
    assert "eazy" in refused("board", DAYS, "--policy", "eazy")


def test_the_chart_is_a_file_and_another_suffix_is_refused(tmp_path: Path) -> None:
    chart = tmp_path / "board.svg"
    assert run(["board", DAYS, "--plot", str(chart), "--output", str(tmp_path / "board.txt")]) == 0
    # Text is drawn as paths; a comment before each has its letters.
    text = chart.read_text()
    assert all(f"<!-- {name} -->" in text for name in ("conservative", "response", "days.swf"))
    assert "<!-- FCFS -->" not in text
    assert "board.gif: the name ends in none of" in refused("board", DAYS, "--plot", "board.gif")
