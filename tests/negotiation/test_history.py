"""What ended jobs teach: run times and speedups by name, kept in SQLite, used for expected ends."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mutants import mutants
from support.run import aucsched, refused

from aucsched import InputError
from aucsched.cluster.jobs import JobKind
from aucsched.formats import sqlite_file
from aucsched.formats.native.cluster_file import parse_workload
from aucsched.negotiation.batch.mapping import BatchSettings
from aucsched.negotiation.job_records import MapEntry, NodeCount, informed, learned, run_time_s
from aucsched.negotiation.runtime.runtime_machine import started
from aucsched.negotiation.runtime.settings import RuntimeSettings
from aucsched.simulation.negotiated.negotiated_report import Negotiated
from aucsched.simulation.negotiated.negotiated_run import add_to_history, load_history, negotiate, runs_of
from aucsched.simulation.negotiated.plays import play_of


def entry(**members: Any) -> MapEntry:
    given: dict[str, Any] = {"min_nodes": 1, "max_nodes": 8, "time_at_min_s": 900.0, "name": "app"} | members
    return MapEntry(
        job="1", type=JobKind.MALLEABLE, node_cnt=0, node_count=NodeCount(min=1, max=8), priority=1, **given
    )


def test_a_mean_of_runs_replaces_the_estimate() -> None:
    """Nagendra: performance model (4.3) and history (4.1.1)."""
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


HISTORY = "CREATE TABLE runs (name TEXT NOT NULL, job TEXT NOT NULL, nodes INTEGER NOT NULL, run_time_s REAL)"
HOSTILE = {
    "a view without end": "CREATE VIEW runs AS WITH RECURSIVE t(x) AS "
    "(SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT x AS name, x AS nodes, x AS run_time_s FROM t",
    "a view of zeros": "CREATE VIEW runs AS SELECT hex(zeroblob(900000000)) AS name, 1 AS nodes, "
    "1.0 AS run_time_s",
    "a computed column": "CREATE TABLE runs "
    "(name TEXT AS (hex(zeroblob(900000000))), job, nodes, run_time_s)",
    "another type": HISTORY.replace("TEXT NOT NULL,", "BLOB,"),
    "a trigger": f"{HISTORY}; CREATE TRIGGER t BEFORE INSERT ON runs BEGIN SELECT 1; END",
    "an index": f"{HISTORY}; CREATE INDEX i ON runs (name)",
    "no table": "CREATE TABLE others (a)",
}


@pytest.mark.parametrize("statements", HOSTILE.values(), ids=HOSTILE)
def test_only_the_table_of_a_history_is_read_or_written(statements: str, tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    with closing(sqlite3.connect(path)) as base, base:
        base.executescript(f"PRAGMA application_id = {0x41554353}; {statements}")
    before = path.read_bytes()
    with pytest.raises(InputError, match="another table, view or trigger"):
        load_history(path)
    with pytest.raises(InputError, match="another table, view or trigger"):
        add_to_history(path, [("a", "1", 2, 10.0)])
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("a", "1", 10**18, 1.0), "is not a number of nodes"),
        (("a", "1", 1, 9e999), "inf is not a time in seconds"),
        (("a", "1", 1, 1e300), "is not a time in seconds"),
        (("a\x1b", "1", 1, 1.0), "control character"),
        (("", "1", 1, 1.0), "is empty"),
    ],
)
def test_rows_that_no_run_had_are_refused(
    row: tuple[str, str, int, float], message: str, tmp_path: Path
) -> None:
    add_to_history(tmp_path / "h.sqlite", [row])
    with pytest.raises(InputError, match=message):
        load_history(tmp_path / "h.sqlite")


def test_a_long_name_is_refused_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    add_to_history(path, [("a", "1", 2, 10.0)])
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("INSERT INTO runs SELECT hex(zeroblob(5000000)), '1', 1, 1.0")
    with pytest.raises(InputError, match=r"no history of runs: .*too big"):
        load_history(path)


def test_damaged_files_are_one_error(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    add_to_history(path, [(f"name {number % 9}", str(number), 1 + number % 5, 2.0) for number in range(400)])
    good = path.read_bytes()
    told: list[str] = []
    for _, content in mutants(good, seed=5, count=120):
        path.write_bytes(content)
        try:
            load_history(path)
        except InputError as error:
            told.append(str(error))
    assert len(told) > 20
    assert all(line.startswith(str(path)) and "\n" not in line for line in told)


def test_a_query_takes_as_many_steps_as_the_size_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.sqlite"
    add_to_history(path, [("a", str(number), 1 + number % 7, 2.0) for number in range(5000)])
    assert len(load_history(path)["a"]) == 7
    monkeypatch.setattr(sqlite_file, "_STEPS", 0)
    monkeypatch.setattr(sqlite_file, "_STEPS_A_BYTE", 0)
    with pytest.raises(InputError, match="no history of runs: interrupted"):
        load_history(path)


def test_what_is_no_file_is_refused_and_reading_writes_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(InputError, match="it is not a file"):
            load_history(path)
    path = tmp_path / "a #%3f?.sqlite"
    add_to_history(path, [("a", "1", 2, 10.0)])
    path.chmod(0o400)
    assert load_history(path) == {"a": {2: (1, 10.0)}}


def test_the_command_learns_from_one_run_to_the_next(tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text(workload())
    args = ("negotiate", tmp_path / "w.json", "--mapper", "greedy", "--history", tmp_path / "h.sqlite")
    metrics = [json.loads(aucsched(*args, "--format", "json").stdout)["metrics"] for _ in range(2)]
    assert metrics[1]["wait_mean_s"] <= metrics[0]["wait_mean_s"]
    assert load_history(tmp_path / "h.sqlite")["solver"][2][0] == 4
    trace, again = tmp_path / "t.jsonl", tmp_path / "u.jsonl"
    aucsched(*args, "--trace", trace)
    assert aucsched("negotiate", "--replay", trace, "--trace", again).returncode == 0
    assert again.read_bytes() == trace.read_bytes()
    again.write_text(trace.read_text().replace('"known":{"render":{"', '"known":{"render":{"-', 1))
    assert "runs.render: -" in refused("negotiate", "--replay", again)
    (tmp_path / "text").write_text("no database at all, " * 100)
    assert "no history of runs" in refused(*args[:-1], tmp_path / "text")
