"""`aucsched board LOG`: a row for each policy, as `simulate` plays it alone, and one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.run import refused

from aucsched.api.simulations import BOARD_POLICIES
from aucsched.cli import run
from aucsched.reports.curves import draw_board

EXAMPLES = Path(__file__).parents[2] / "examples"
DAYS = str(EXAMPLES / "days.swf")


def _printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run([*arguments, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_each_row_is_what_simulate_gives(capsys: pytest.CaptureFixture[str]) -> None:
    slack = "slack:factor=2"
    found = _printed(capsys, "board", DAYS, "--policy", f"lookahead,{slack}")
    assert found["format"] == "aucsched-board/1"
    rows = {row["policy"]: row for row in found["policies"]}
    assert list(rows) == ["lookahead", slack, *BOARD_POLICIES]
    for name, told in (
        ("EASY++", ["--policy", "predicted:by=last-two"]),
        ("WFP3", ["--policy", "easy", "--order", "wfp3"]),
        ("response", ["--policy", "promised", "--objective", "response"]),
        ("lookahead", ["--policy", "lookahead"]),
        (slack, ["--policy", slack]),
    ):
        alone = _printed(capsys, "simulate", DAYS, *told)["metrics"]
        for metric in ("bounded_slowdown_mean", "wait_mean_s", "wait_max_s", "cpu_utilization"):
            assert rows[name][metric] == pytest.approx(alone[metric]), (name, metric)
    edge = [row for row in found["policies"] if row["on_edge"]]
    assert edge
    for row in edge:
        assert not any(
            other["wait_max_s"] <= row["wait_max_s"]
            and other["bounded_slowdown_mean"] < row["bounded_slowdown_mean"]
            for other in found["policies"]
        )


def _log_of_days(path: Path, days: int) -> str:
    """Write a log with two jobs a day: on the first the second waits for long."""
    rows = [
        f"{2 * day + one} {86_400 * day} -1 {80_000 if (day, one) == (0, 1) else 1} 4 -1 -1 4 80000 -1 1"
        for day in range(days)
        for one in (1, 2)
    ]
    path.write_text("\n".join(("; MaxProcs: 4", *rows)) + "\n")
    return str(path)


def test_intervals_are_possible_and_need_five_days(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for days in (4, 5):
        log = _log_of_days(tmp_path / "log.swf", days)
        found = _printed(capsys, "board", log)
        assert "drawn anew; at least 5 of them" in found["intervals"]
        for name, least in (("bounded_slowdown_interval", 1), ("wait_interval_s", 0)):
            ends = [row[name] for row in found["policies"]]
            assert ends == [None] * len(ends) if days == 4 else min(low for low, _ in ends) == least
        assert run(["board", log]) == 0
        table = capsys.readouterr().out
        assert table.count("95 %") == 2
        assert (" - " in table) == (days == 4)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["board", DAYS, "--policy", "esay"], "'esay' is not a policy"),
        (["simulate", DAYS, "--policy", "promised:objective=response", "--order", "sjf"], "by worth"),
    ],
)
def test_what_is_refused_says_nothing_of_dropped_rows(arguments: list[str], words: str) -> None:
    assert words in refused(*arguments, "--processors", "2")


def test_ones_own_policy_has_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    own = f"{EXAMPLES / 'own_policy.py'}:ShortestFirst"
    assert run(["board", DAYS, "--policy", own]) == 0
    assert "own_policy.py" in capsys.readouterr().out


def test_a_policy_that_is_none_is_refused() -> None:
    assert "eazy" in refused("board", DAYS, "--policy", "eazy")
    said = "aucsched: Invalid value for '--policy': slack:factor: -1 is below 0"
    assert refused("board", DAYS, "--policy", "slack:factor=-1").startswith(said)
    assert "depth" in refused("board", DAYS, "--policy", "slack:depth=1")


def test_the_chart_is_a_file_and_another_suffix_is_refused(tmp_path: Path) -> None:
    chart = tmp_path / "board.svg"
    assert run(["board", DAYS, "--plot", str(chart), "--output", str(tmp_path / "board.txt")]) == 0
    # Text is drawn as paths; a comment before each has its letters.
    text = chart.read_text()
    assert all(f"<!-- {name} -->" in text for name in ("conservative", "response"))
    assert "<!-- FCFS -->" not in text
    assert "<!-- days.swf, without FCFS -->" in text
    assert "board.gif: the name ends in none of" in refused("board", DAYS, "--plot", "board.gif")


def test_a_chart_of_policies_that_all_leave_jobs_has_no_edge(tmp_path: Path) -> None:
    row = {"policy": "EASY", "wait_max_s": 3600.0, "bounded_slowdown_mean": 2.0, "never_started": 1}
    chart = tmp_path / "board.svg"
    draw_board({"small.swf": [row]}, chart)
    assert "<!-- EASY -->" in chart.read_text()


def test_help_says_that_a_class_of_a_file_is_a_policy(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["board", "--help"]) == 0
    assert "--policy NAME|FILE.py:CLASS,…" in capsys.readouterr().out
