"""A sweep grows by a value or an axis: what ran does not run again, and the rows are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.run import refused

import aucsched
from aucsched.cli import run

EXAMPLES = Path(__file__).parents[2] / "examples"
DAYS, OVERTAKEN = EXAMPLES / "days.swf", EXAMPLES / "overtaken.json"


def _stable(found: aucsched.Sweep) -> dict[str, list[Any]]:
    return {name: one for name, one in found.columns.items() if not name.startswith("seconds")}


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"policy": ["fcfs", "easy"]}, {"policy": ["easy", "conservative", "fcfs"]}),
        ({"policy": ["fcfs", "easy"]}, {"policy": ["fcfs", "easy"], "order": ["fcfs", "sjf"]}),
        ({"policy": ["slack"], "slack": [1.0]}, {"policy": ["easy", "slack"], "slack": [0.5, 1.0]}),
    ],
)
def test_nothing_runs_twice(first: dict[str, Any], then: dict[str, Any], tmp_path: Path) -> None:
    table = tmp_path / "s.csv"
    before = aucsched.sweep(DAYS, output=table, **first)
    grown = aucsched.sweep(DAYS, output=table, **then)
    assert _stable(grown) == _stable(aucsched.sweep(DAYS, **then))
    assert set(before.columns["seconds.run"]) <= set(grown.columns["seconds.run"])
    assert len(grown.rows) > len(before.rows)
    again = aucsched.sweep(DAYS, output=table, **then)
    assert again.columns["seconds.run"] == grown.columns["seconds.run"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.csv", "s.csv.journal"]


def test_more_repetitions_grow_too(tmp_path: Path) -> None:
    axes: dict[str, Any] = {"policy": "aucsched3", "window": [5]}
    before = aucsched.sweep(OVERTAKEN, output=tmp_path / "s.csv", **axes)
    grown = aucsched.sweep(OVERTAKEN, output=tmp_path / "s.csv", repeat=2, **axes)
    assert grown.columns["seed"] == [0, 1]
    assert grown.columns["seconds.run"][0] == before.columns["seconds.run"][0]


def test_a_default_may_become_one_of_several_values(tmp_path: Path) -> None:
    before = aucsched.sweep(OVERTAKEN, output=tmp_path / "s.csv", policy="aucsched3")
    grown = aucsched.sweep(
        OVERTAKEN, output=tmp_path / "s.csv", policy="aucsched3", promise=["none", "backfill"]
    )
    assert grown.columns["promise"] == ["none", "backfill"]
    assert grown.columns["seconds.run"][1] == before.columns["seconds.run"][0]


def test_another_sweep_is_still_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = str(tmp_path / "s.csv")
    assert run(["sweep", str(DAYS), "--policy", "fcfs,easy", "-o", table, "--workers", "1"]) == 0
    capsys.readouterr()
    journal = (tmp_path / "s.csv.journal").read_bytes()
    assert "give another -o" in refused("sweep", DAYS, "--policy", "fcfs", "-o", table)
    assert "give another -o" in refused("sweep", OVERTAKEN, "--policy", "fcfs,easy", "-o", table)
    assert (tmp_path / "s.csv.journal").read_bytes() == journal
