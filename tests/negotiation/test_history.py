"""What ended jobs teach: run times and speedups by name, kept in SQLite, used for expected ends."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from support.run import aucsched, refused

from aucsched import InputError
from aucsched.cluster.jobs import JobKind
from aucsched.formats.history import add_to_history, load_history
from aucsched.formats.native.workload import parse_workload
from aucsched.negotiation.parties.batch_state import BatchSettings
from aucsched.runtime.backfill import run_time_s
from aucsched.runtime.machine import started
from aucsched.runtime.performance import informed, learned
from aucsched.runtime.records import MapEntry, NodeCount
from aucsched.runtime.settings import RuntimeSettings
from aucsched.simulation.negotiated.plays import play_of
from aucsched.simulation.negotiated.run import Negotiated, negotiate, runs_of


def entry(**members: Any) -> MapEntry:
    given: dict[str, Any] = {"min_nodes": 1, "max_nodes": 8, "time_at_min_s": 900.0, "name": "app"} | members
    return MapEntry(
        job="1", type=JobKind.MALLEABLE, node_cnt=0, node_count=NodeCount(min=1, max=8), priority=1, **given
    )


def test_a_mean_of_runs_replaces_the_estimate() -> None:
    known = learned({}, [("app", 2, 100.0), ("app", 2, 300.0), ("other", 1, 5.0)])
    assert known["app"] == {2: (2, 200.0)}
    told = informed(entry(), known)
    assert (told.time_at_min_s, told.true_time_at_min_s) == (400.0, 900.0)
    assert (told.speedup, told.true_speedup) == ("linear", "linear")
    assert informed(told, known) == told
    assert informed(entry(name=""), known) == entry(name="")
    assert informed(entry(name="new"), known).time_at_min_s == 900


def test_several_counts_become_the_model_and_the_users_goes_on_beyond_them() -> None:
    known = learned({}, [("app", 2, 100.0), ("app", 4, 80.0), ("app", 6, 90.0)])
    told = informed(entry(), known)
    times = [run_time_s(told, count) for count in (1, 2, 4, 6, 8)]
    assert times == pytest.approx([200, 100, 80, 80, 60])


def test_progress_is_true_while_ends_are_expected_by_what_is_known() -> None:
    known = learned({}, [("app", 4, 50.0)])
    job = started(informed(entry(), known), 0b1111, 0.0)
    assert (job.planned_end_s(4, 0.0), job.end_s) == (50.0, 225.0)
    later = job.brought_to(40.0)
    assert (later.planned_end_s(4, 40.0), later.end_s) == (50.0, 225.0)
    assert later.paces == (4,)


def workload(limit: int = 3600) -> str:
    rows: list[dict[str, Any]] = []
    for number in range(12):
        name = ("solver", "render")[number % 2]
        rows.append(
            {
                "id": str(number), "priority": 100 - number, "nodes": 2 + number % 3, "cores_per_node": 2,
                "arrival_s": 10 * number, "run_time_s": {"solver": 300, "render": 40}[name],
                "time_limit_s": limit, "name": name,
            }
        )  # fmt: skip
    machine = [{"name": "n[1-6]", "cores": 2}]
    return json.dumps({"format": "aucsched-workload/1", "name": "w", "nodes": machine, "jobs": rows})


def played(known: dict[str, dict[int, tuple[int, float]]]) -> Negotiated:
    play = play_of(parse_workload(workload().encode()), None)
    return negotiate(play, BatchSettings(ends_when_done=True), RuntimeSettings(), known=known)


def test_expected_ends_are_the_true_ones_once_runs_are_known() -> None:
    first = played({})
    rows = runs_of(first.play, first.done)
    assert {(name, count) for name, _, count, _ in rows} == {("solver", 2), ("solver", 4), ("render", 3)} | {
        (name, count) for name in ("solver", "render") for count in (2, 3, 4)
    }
    known = learned({}, [(name, count, seconds) for name, _, count, seconds in rows])
    assert known["solver"][2][1] == 300
    second = played(known)
    expected = {
        report.job: report.end_s
        for sent in second.sent
        for report in getattr(sent.message, "reports", ())
        if report.state == "running"
    }
    assert expected == {job: second.done[job].end_s for job in expected}
    assert len(expected) == 12


def test_a_file_keeps_runs_and_refuses_what_is_none(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    assert load_history(path) == {}
    add_to_history(path, [("a", "1", 2, 10.0), ("a", "2", 2, 20.0)])
    add_to_history(path, [("a", "3", 4, 7.5)])
    assert load_history(path) == {"a": {2: (2, 15.0), 4: (1, 7.5)}}
    with pytest.raises(InputError, match="cannot be written"):
        add_to_history(path, [("b", "1", 1, 5.0), ("b", "2", 0, 5.0)])
    assert "b" not in load_history(path)
    (tmp_path / "text").write_text("no database at all, " * 100)
    with pytest.raises(InputError, match="no history of runs"):
        load_history(tmp_path / "text")
    with sqlite3.connect(tmp_path / "other.sqlite") as other:
        other.execute("CREATE TABLE runs (a)")
    other.close()
    with pytest.raises(InputError, match="another program's database"):
        add_to_history(tmp_path / "other.sqlite", [])


def test_the_command_learns_from_one_run_to_the_next(tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text(workload())
    args = ("negotiate", tmp_path / "w.json", "--mapper", "greedy", "--history", tmp_path / "h.sqlite")
    metrics = [json.loads(aucsched(*args, "--format", "json").stdout)["metrics"] for _ in range(2)]
    assert metrics[1]["wait_mean_s"] <= metrics[0]["wait_mean_s"]
    assert load_history(tmp_path / "h.sqlite")["solver"][2][0] == 4
    (tmp_path / "text").write_text("no database at all, " * 100)
    assert "no history of runs" in refused(*args[:-1], tmp_path / "text")
