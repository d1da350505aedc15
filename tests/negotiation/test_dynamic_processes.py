"""Three processes: dynsched and two growing applications, some killed (benchmarks/evolving_kill.py)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from evolving_kill import check, play_round, write_inputs

from aucsched.cli import run


def test_three_processes_ask_grow_and_give_back(tmp_path: Path) -> None:
    """Prabhakaran: figures 2 to 4 Torque and Maui."""
    kills = play_round(tmp_path, random.Random(1), 2, 150)
    assert kills.total() <= 2
    checked = check(tmp_path)
    assert set(checked.grants.values()) == {1}
    assert {job for job, _ in checked.grants} == {"A", "B"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "--listen"),
        (["--connect", "unix:x"], "--listen"),
        (["--listen", "nowhere"], "nowhere"),
        (["--listen", "unix:{}/s", "--wait", "60"], "wait: dynsched waits"),
        (["--listen", "unix:{}/s", "--fairness", "{}/missing.toml"], "missing.toml"),
        (["--listen", "0.0.0.0:0"], "secret"),
    ],
)
def test_dynsched_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    write_inputs(tmp_path)
    given = [option.replace("{}", str(tmp_path)) for option in options]
    assert run(["dynsched", str(tmp_path / "snapshot.json"), *given]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == 1


def test_dynsched_ends_when_nothing_runs(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    path = tmp_path / "snapshot.json"
    path.write_text('{"format": "aucsched-snapshot/1", "time": 0, "nodes": [{"name": "n", "cores": 1}]}')
    assert run(["dynsched", str(path), "--listen", f"unix:{tmp_path}/s"]) == 0
