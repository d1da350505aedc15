"""Options that only some of the swept policies read: those get them, the others run once."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from support.run import refused

import aucsched
from aucsched.cli import run
from aucsched.reports.console_tables import LiteralConsole
from aucsched.sweeps.results import render_sweep
from aucsched.sweeps.run_plan import make_plan

EXAMPLES = Path(__file__).parents[2] / "examples"
DAYS, OVERTAKEN = EXAMPLES / "days.swf", EXAMPLES / "overtaken.json"
FULL = EXAMPLES / "emulated-1408-full.json"


def _rows(found: aucsched.Sweep, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(found.columns.get(name, [None] * len(found.rows)) for name in names), strict=True))


def test_a_log_s_policies_get_what_they_read() -> None:
    found = aucsched.sweep(DAYS, policy=["easy", "slack"], slack=[0.5, 2.0], order=["fcfs", "sjf"])
    assert _rows(found, "policy", "order", "slack") == [
        ("easy", "fcfs", None),
        ("easy", "sjf", None),
        ("slack", "fcfs", 0.5),
        ("slack", "fcfs", 2.0),
        ("slack", "sjf", 0.5),
        ("slack", "sjf", 2.0),
    ]
    assert _rows(found, "run") == [(place,) for place in range(6)]
    alone = aucsched.sweep(DAYS, policy="slack", slack=2.0)
    assert alone.columns["wait_mean_s"] == [found.columns["wait_mean_s"][3]]


def test_a_workload_s_policies_too() -> None:
    found = aucsched.sweep(
        OVERTAKEN, policy=["easy", "aucsched3"], window=[5, 10], selection=["first", "best"]
    )
    assert _rows(found, "policy", "window", "selection") == [
        ("easy", None, "first"),
        ("easy", None, "best"),
        ("aucsched3", 5, None),
        ("aucsched3", 10, None),
    ]


def test_a_snapshot_s_models_too() -> None:
    found = aucsched.sweep(FULL, model=["ipsched", "aucsched3"], max_bids=[50, 100], window=[3])
    assert _rows(found, "model", "max_bids", "window") == [
        ("ipsched", None, 3),
        ("aucsched3", 50, 3),
        ("aucsched3", 100, 3),
    ]
    with pytest.raises(aucsched.OptionError, match="max_bids: ipsched places without bids"):
        aucsched.sweep(FULL, model="ipsched", max_bids=[50])


def test_a_snapshot_s_strategies_too() -> None:
    found = aucsched.sweep(FULL, strategy=["greedy", "anytime"], work_limit=[0, 1], window=[3])
    assert _rows(found, "strategy", "work_limit") == [("greedy", None), ("anytime", 0), ("anytime", 1)]
    balanced = aucsched.sweep(FULL, balance=["on", "off"], work_limit=[1], max_bids=[50, 100], window=[3])
    assert _rows(balanced, "balance", "work_limit", "max_bids") == [
        ("on", None, None),
        ("off", 1, 50),
        ("off", 1, 100),
    ]
    found = aucsched.sweep(
        OVERTAKEN, policy="aucsched3", strategy=["greedy", "anytime"], work_limit=[0, 1], window=[3]
    )
    assert _rows(found, "strategy", "work_limit") == [("greedy", None), ("anytime", 0), ("anytime", 1)]
    with pytest.raises(aucsched.OptionError, match="work_limit: strategy greedy reaches no limit"):
        aucsched.sweep(FULL, strategy="greedy", work_limit=[1])


@pytest.mark.parametrize(
    ("source", "axes", "names", "rows"),
    [
        (
            OVERTAKEN,
            {"policy": ["easy", "reservations", "aucsched3"]},
            ("selection", "reserve", "promise", "bid_order", "award_alone", "preempt", "seed"),
            [
                ("first", *[None] * 6),
                ("first", 4, *[None] * 5),
                (None, 1, "backfill", "spec", "off", "off", 0),
            ],
        ),
        (
            OVERTAKEN,
            {"policy": "aucsched3", "objective": "response"},
            ("promise", "reserve", "interval_s", "preset"),
            [("auto", 0, None, None)],
        ),
        (OVERTAKEN, {"policy": "aucsched3", "preempt": "on"}, ("promise", "preempt"), [("none", "on")]),
        (DAYS, {"policy": ["easy", "promised"]}, ("promise",), [(None,), ("backfill",)]),
        (DAYS, {"policy": "promised", "objective": "response"}, ("promise",), [("auto",)]),
        (FULL, {"window": [5]}, ("promise", "reserve"), [("backfill", 1)]),
    ],
)
def test_rows_hold_the_defaults(
    source: Path, axes: dict[str, Any], names: tuple[str, ...], rows: list[tuple[Any, ...]]
) -> None:
    found = aucsched.sweep(source, **axes)
    assert _rows(found, *names) == rows
    assert set(names) <= set(found.columns)
    assert not any(found.columns.get("error", ()))


def test_combinations_that_cannot_be_are_left_out_and_named_once(tmp_path: Path) -> None:
    axes = {"objective": ["response", "priority"], "order": ["fcfs", "multifactor"], "window": [3, 5]}
    found = aucsched.sweep(OVERTAKEN, policy="aucsched3", repeat=2, **axes)
    points = _rows(found, "order", "objective")
    assert {one: points.count(one) for one in points} == {
        ("fcfs", "response"): 4,
        ("fcfs", "priority"): 4,
        ("multifactor", "priority"): 4,
    }
    why = "--order multifactor: objective response orders the queue by worth"
    assert found.plan.notes == (f"2 of 8 points cannot run: {why}",)
    assert found.title().endswith(f"; 2 of 8 points cannot run: {why}")
    table = str(tmp_path / "t.csv")
    command = ("sweep", OVERTAKEN, "--policy", "aucsched3", "--objective", "response", "-o", table)
    assert f"aucsched: {why}" in refused(*command, "--order", "multifactor", "--window", "3,5")


@pytest.mark.parametrize(
    ("source", "axes", "said"),
    [
        (FULL, {"promise": ["none", "15m"], "window": [3]}, "promise: '15m' is for simulations"),
        (DAYS, {"policy": ["easy", "esay"]}, "did you mean easy"),
        (DAYS, {"policy": ["easy", "slack:factr=2"]}, "'factr' is not one of factor"),
        (
            OVERTAKEN,
            {"policy": ["aucsched3"], "promise": ["xyz", "none"], "order": ["multifactor", "fcfs"]}
            | {"objective": ["response", "priority"]},
            "'xyz' is not",
        ),
    ],
)
def test_a_value_that_no_combination_can_have_is_refused(
    source: Path, axes: dict[str, Any], said: str
) -> None:
    """A misspelt value is no combination that is left out with a note."""
    with pytest.raises(aucsched.OptionError, match=said):
        aucsched.sweep(source, **axes)


def test_a_value_that_another_option_excludes_is_left_out() -> None:
    found = aucsched.sweep(DAYS, policy="promised", objective="response", order=["fcfs", "sjf"])
    assert found.columns["order"] == ["fcfs"]


def test_what_none_of_them_reads_is_refused(tmp_path: Path) -> None:
    table = str(tmp_path / "t.csv")
    said = refused("sweep", DAYS, "--policy", "easy,fcfs", "--slack", "1", "-o", table)
    assert "--slack: none of easy, fcfs reads it" in said
    assert "--slack needs --policy slack" in refused(
        "sweep", DAYS, "--policy", "easy", "--slack", "1", "-o", table
    )


@pytest.mark.parametrize("repeat", [1, 2])
def test_repetitions_are_runs_of_their_own(repeat: int) -> None:
    found = aucsched.sweep(OVERTAKEN, policy=["fcfs", "aucsched3"], window=[5], repeat=repeat)
    assert len(found.rows) == 2 * repeat


def test_the_command_prints_a_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = str(tmp_path / "t.csv")
    options = ["--policy", "easy,slack", "--slack", "1,2", "--workers", "1"]
    assert run(["sweep", str(DAYS), *options, "-o", table]) == 0
    first, above, head, *lines = capsys.readouterr().out.splitlines()
    assert first == "3 runs, 3 points"
    assert above.split()[:3] == ["mean", "longest", "bounded"]
    assert head.split()[:9] == ["policy", "slack", *("wait", "(s)") * 2, "slowdown", "CPU", "%"]
    assert [line.split()[0] for line in lines] == ["easy", "slack", "slack"]
    waits = aucsched.sweep(DAYS, policy=["easy", "slack"], slack=[1, 2]).columns["wait_mean_s"]
    assert lines[0].split()[1] == f"{waits[0]:.0f}"
    assert [line.split()[2] for line in lines[1:]] == [f"{wait:.0f}" for wait in waits[1:]]


def rendered(columns: dict[str, list[Any]]) -> list[str]:
    console = LiteralConsole(file=io.StringIO(), width=80)
    render_sweep(columns, ["window"], console)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_a_summary_means_over_repetitions_and_counts_what_it_leaves_out() -> None:
    columns: dict[str, list[Any]] = {
        "run": [0, 1, 2, 3],
        "window": [5, 5, 9, 9],
        "priority": [1, 3, 5, None],
        "status": ["x"] * 3 + ["failed"],
    }
    assert rendered(columns) == [
        "4 runs, 2 points, 1 failed",
        "window  priority",
        "5              2",
        "9              5",
    ]
    many = {"run": list(range(30)), "window": list(range(30)), "priority": [1] * 30}
    assert rendered(many)[-1] == "… and 6 more points in the table"


def test_a_parameter_has_the_name_that_simulate_gives_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = str(tmp_path / "t.csv")
    assert run(["sweep", str(DAYS), "--policy", "slack", "--slack", "2", "-o", table, "--workers", "1"]) == 0
    assert "note: --slack is the old spelling of --policy slack:factor=…\n" in capsys.readouterr().err
    assert run(["sweep", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "\n  slack:factor=FACTOR " in shown
    assert "--slack" not in shown


def test_help_names_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "greatest worth. Default: 100." in text
    assert "choose nodes. Default: first." in text
    assert "What maps the queue to an offer. Default: auction." in text


@pytest.mark.parametrize("spelling", ["--attempts", "--max-attempts"])
def test_an_option_is_called_as_negotiate_calls_it(
    spelling: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, config = tmp_path / "t.csv", tmp_path / "c.toml"
    config.write_text(f"[sweep]\n{spelling[2:]} = [1, 'x']\n")
    options = ["--policy", "negotiate", f"{spelling}=0", "-o", str(table)]
    assert run(["sweep", str(OVERTAKEN), *options]) == 2
    old = "note: --attempts is the old spelling of --max-attempts\n" * (spelling == "--attempts")
    said = "aucsched: --max-attempts 0: 0 is below 1\n"
    assert capsys.readouterr().err == old + said
    assert run(["--config", str(config), "sweep", str(OVERTAKEN), "-o", str(table)]) == 2
    assert "c.toml: sweep." in capsys.readouterr().err


def test_an_old_spelling_is_of_its_command_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    full, config = str(FULL), tmp_path / "c.toml"
    assert run(["schedule", full, "--order", "3"]) == 2
    assert "No such option" in capsys.readouterr().err
    config.write_text("[schedule]\norder = 4\n")
    assert run(["--config", str(config), "schedule", full]) == 2
    assert "c.toml: schedule.order: no option" in capsys.readouterr().err
    config.write_text("[negotiate]\norder = 4\n")
    assert run(["--config", str(config), "negotiate", str(OVERTAKEN)]) == 2
    note, said = capsys.readouterr().err.splitlines()
    assert note == "note: --order is the old spelling of --seed"
    assert "--seed needs --malleable" in said


def test_a_file_called_like_an_old_spelling_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("max-attempts", "--max-attempts"):
        assert run(["sweep", "-o", "t.csv", "--policy", "fcfs", "--", name]) == 2
        assert capsys.readouterr().err.startswith(f"{name}: No such file")
    assert run(["negotiate", str(OVERTAKEN), "--format", "json", "-o", "order"]) == 0
    assert capsys.readouterr().err == ""
    assert run(["negotiate", str(OVERTAKEN), "--format", "json", "-o", "--order"]) == 0
    assert {one.name for one in tmp_path.iterdir()} == {"order", "--order"}


def test_a_sweep_that_was_begun_under_the_old_spelling_can_be_resumed() -> None:
    axes = {"policy": ("negotiate",), "max_attempts": (1, 2)}
    assert make_plan(str(OVERTAKEN), axes).identity()["--max-attempts"] == "1,2"
