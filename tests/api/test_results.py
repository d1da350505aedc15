"""What comes out of the Python API: plain values, JSON, columns that table libraries take, notebooks."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from support.build import ALONE

import aucsched
from aucsched.cli import run
from aucsched.cluster.tabular import Deferred, Tabular, html_table

EXAMPLES = Path(__file__).parents[2] / "examples"
FULL, OVERTAKEN, DAYS = (
    EXAMPLES / name for name in ("emulated-1408-full.json", "overtaken.json", "days.swf")
)
#: So that the test and the command give the same.
LIMIT: dict[str, Any] = {"work_limit": 2}
ALONE_ARGUMENTS = ("--promise", "none", "--reserve", "0")


@pytest.fixture(scope="module")
def results() -> dict[str, Tabular]:
    snapshot = aucsched.load_snapshot(FULL)
    return {
        "schedule": aucsched.schedule(snapshot, work_limit=2),
        "explain": aucsched.explain(snapshot, "64", **ALONE, **LIMIT),
        "prices": aucsched.explain(snapshot, **ALONE, **LIMIT),
        "compare": aucsched.compare(snapshot, **LIMIT),
        "plan": aucsched.plan(snapshot, jobs=5),
        "forecast": aucsched.forecast(snapshot, ["64", "92"], futures=5),
        "log": aucsched.simulate(DAYS),
        "nodes": aucsched.simulate(OVERTAKEN, "aucsched3"),
        "sweep": aucsched.sweep(OVERTAKEN, policy=["fcfs", "easy"]),
        "winners": aucsched.winners([("ann", 1.5, {"gpu": 1}), ("bob", 2, {"gpu": 1})], {"gpu": 2}),
    }


def test_columns_are_equally_long_and_table_libraries_take_them(results: dict[str, Tabular]) -> None:
    for name, result in results.items():
        columns = result.columns
        (length,) = {len(column) for column in columns.values()}
        assert length > 0, name
        assert pd.DataFrame(columns).shape == (length, len(columns)), name
        frame = pl.DataFrame(columns, strict=False)
        assert frame.shape == (length, len(columns)), name
        assert frame.to_dict(as_series=False).keys() == columns.keys(), name


def test_results_and_errors_go_to_other_processes_and_threads(results: dict[str, Tabular]) -> None:
    for name, result in results.items():
        made = pickle.loads(pickle.dumps(result))  # noqa: S301 - our own bytes
        assert made.to_json() == result.to_json(), name
        assert isinstance(made == result, bool), name
    assert copy.deepcopy(results["forecast"]) == results["forecast"]
    for error in (
        aucsched.InputError("-1 is below 1", path="jobs[3].cores", file="now.json"),
        aucsched.AwardError("3 cores of 2", job="7"),
        aucsched.PolicyError("mine:Policy", "its step at 5 s", ValueError("no")),
    ):
        assert str(copy.deepcopy(error)) == str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301


class _FoundByAnother(dict[str, Any]):
    """Members of a record: the first look sees a function, later ones what another thread has found."""

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        self[name] = (1,)
        return value


def test_what_says_the_same_is_equal_and_what_does_not_is_not(results: dict[str, Tabular]) -> None:
    for name, result in results.items():
        assert pickle.loads(pickle.dumps(result)) == result, name  # noqa: S301 - our own
        assert copy.deepcopy(result) == result, name
    assert results["log"] == aucsched.simulate(DAYS) != aucsched.simulate(DAYS, "fcfs")
    assert (
        results["nodes"] == aucsched.simulate(OVERTAKEN, "aucsched3") != aucsched.simulate(OVERTAKEN, "fcfs")
    )
    assert results["schedule"] == aucsched.schedule(FULL, work_limit=2) != aucsched.schedule(FULL, window=1)
    log = aucsched.load_swf(DAYS)
    assert log == aucsched.load_swf(DAYS) == pickle.loads(pickle.dumps(log))  # noqa: S301 - our own
    assert log != aucsched.parse_swf(b"1 0 -1 10 3 -1 -1 3 10\n")
    assert hash(log) == hash(aucsched.load_swf(DAYS))
    assert hash(results["nodes"]) == hash(copy.copy(results["nodes"]))


def test_two_threads_may_read_a_deferred_member_at_once() -> None:
    class Record:
        found: Deferred[tuple[int, ...]] = Deferred()

    record = Record()
    record.__dict__ = _FoundByAnother(found=lambda: (1,))
    assert record.found == (1,)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        self.open.append(tag)
        self.rows += tag == "tr"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_json_is_the_dict_and_notebooks_get_a_table(results: dict[str, Tabular]) -> None:
    for name, result in results.items():
        assert json.loads(result.to_json()) == json.loads(json.dumps(result.to_dict())), name
        assert "\n" not in result.title(), name
        page = _Tags()
        page.feed(result._repr_html_())
        assert page.open == []
        assert page.rows == min(len(next(iter(result.columns.values()))), 40) + 1, name


def test_a_schedule_of_lists_is_the_document_of_one_of_tuples() -> None:
    nodes = [aucsched.Node(name="a", cores=4)]
    jobs = [aucsched.Job(id=name, priority=1, request=aucsched.Request(cores=3)) for name in "12"]
    made = aucsched.schedule(aucsched.Snapshot(nodes=nodes, jobs=jobs))
    lists: Any = {name: list(getattr(made, name)) for name in ("started", "pending", "attempts")}
    assert dataclasses.replace(made, **lists).to_dict() == made.to_dict()
    assert made.to_dict()["started"][0]["bid"]["class"] == "A"


def _same(document: Any) -> Any:
    """Return a document without what the clock says."""
    if isinstance(document, dict):
        return {name: _same(value) for name, value in document.items() if not name.startswith("seconds")}
    return [_same(one) for one in document] if isinstance(document, list) else document


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("schedule", ["schedule", FULL, "--work-limit", "2"]),
        ("explain", ["explain", FULL, "64", *ALONE_ARGUMENTS, "--work-limit", "2"]),
        ("prices", ["explain", FULL, *ALONE_ARGUMENTS, "--work-limit", "2"]),
        ("compare", ["compare", FULL, "--work-limit", "2"]),
        ("plan", ["plan", FULL, "--jobs", "5"]),
        ("log", ["simulate", DAYS]),
        ("nodes", ["simulate", OVERTAKEN, "--policy", "aucsched3"]),
    ],
)
def test_the_command_says_the_same(
    name: str, arguments: list[Any], results: dict[str, Tabular], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([str(one) for one in arguments] + ["--format", "json"]) == 0
    assert _same(json.loads(capsys.readouterr().out)) == _same(json.loads(results[name].to_json()))


def test_an_explanation_prints_the_facts_that_the_command_prints(
    results: dict[str, Tabular], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", str(FULL), "64", *ALONE_ARGUMENTS, "--work-limit", "2"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(str(results["explain"]))
    job = aucsched.Job(id="7", priority=1, request=aucsched.Request(cores=9))
    cluster = aucsched.Snapshot(nodes=[aucsched.Node(name="n", cores=8)], jobs=[job], time=0)
    aucsched.save_snapshot(cluster, tmp_path / "never.json")
    assert run(["explain", str(tmp_path / "never.json"), "7"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(text := str(aucsched.explain(cluster, 7)))
    assert "would start" in text
    assert "never: " in text


def test_a_sweep_s_rows_are_the_command_s(tmp_path: Path, results: dict[str, Tabular]) -> None:
    table = tmp_path / "sweep.csv"
    assert run(["sweep", str(OVERTAKEN), "--policy", "fcfs,easy", "-o", str(table), "--workers", "1"]) == 0
    theirs, ours = pd.read_csv(table), pd.DataFrame(results["sweep"].columns)
    assert list(theirs) == list(ours)
    stable = [name for name in ours if not name.startswith("seconds")]
    full = ours[stable].dropna(axis="columns", how="all")
    assert len(full.columns) > 20
    pd.testing.assert_frame_equal(theirs[list(full)], full, check_dtype=False)


def test_a_sweep_goes_on_from_its_file_and_takes_objects(tmp_path: Path) -> None:
    snapshot = aucsched.load_snapshot(FULL)
    first = aucsched.sweep(snapshot, window=[5, 10], work_limit=1, output=tmp_path / "s.csv")
    again = aucsched.sweep(snapshot, window=[5, 10], work_limit=1, output=tmp_path / "s.csv")
    assert again.columns["seconds.run"] == first.columns["seconds.run"]
    first.save(tmp_path / "t.parquet")
    assert pl.read_parquet(tmp_path / "t.parquet")["window"].to_list() == [5, 10]
    log = aucsched.load_swf(DAYS)
    assert aucsched.sweep(log, policy="easy").columns["wait_mean_s"] == [
        aucsched.simulate(log).metrics["wait_mean_s"]
    ]


def test_a_table_escapes_what_files_hold() -> None:
    text = html_table({"<b>": ["<script>alert(1)</script>", "\u202eabc", None]})
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "\u202e" not in text
    assert "<td></td>" in text


def test_a_snapshot_from_saved_answers_is_the_command_s(tmp_path: Path) -> None:
    source = EXAMPLES / "source"
    files: dict[str, Any] = {
        "jobs": source / "squeue.json.gz",
        "nodes": source / "sinfo.json.gz",
        "topology": source / "topology.conf",
        "job_detail": source / "scontrol_job_d.txt.gz",
    }
    made = aucsched.snapshot_from_slurm(**files)
    options = [text for name, path in files.items() for text in (f"--{name.replace('_', '-')}", str(path))]
    assert run(["snapshot", "slurm", *options, "-o", str(tmp_path / "now.json")]) == 0
    assert aucsched.load_snapshot(tmp_path / "now.json") == made
    assert len(made.nodes) == 1408


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: aucsched.simulate(DAYS, "nonsense"), "policy 'nonsense' is not one of"),
        (lambda: aucsched.simulate(DAYS, slack=1), "^slack needs policy slack, not easy"),
        (lambda: aucsched.simulate(DAYS, queue_weights={1: 2}), "^queue_weights needs order"),
        (lambda: aucsched.simulate(OVERTAKEN, processors=4), "processors and checked are for logs"),
        (
            lambda: aucsched.sweep(DAYS, windows=[1]),
            "windows: a sweep has no such option",
        ),
        (lambda: aucsched.explain(aucsched.load_snapshot(FULL), window=0), "window: 0 is below 1"),
    ],
)
def test_what_would_be_ignored_is_refused(call: Any, message: str) -> None:
    with pytest.raises(aucsched.OptionError, match=message):
        call()


def test_what_a_policy_reads_reaches_it() -> None:
    narrow = aucsched.simulate(DAYS, "slack", slack=0.0).columns["start_s"]
    wide = aucsched.simulate(DAYS, "slack", slack=5.0).columns["start_s"]
    assert narrow != wide
    weighted = aucsched.simulate(DAYS, order="weight", queue_weights={1: 5.0}, checked=True)
    assert weighted.settings == {}
    plain, none = (
        aucsched.simulate(DAYS, order="weight", queue_weights=one) for one in (None, dict[int, float]())
    )
    assert none.columns == plain.columns


def test_types_allow_the_texts_of_the_command_line() -> None:
    # mypy reads this file, too.
    aucsched.simulate(DAYS, "queues", queue=["short: estimate=3600", "long:"])
    aucsched.simulate(DAYS, "planning", start_rule=["user=7: 18:00-08:00"], advance="100000,10,1")
    aucsched.simulate(DAYS, "partitioned", class_limits_s="10,20")
    aucsched.simulate(DAYS, order="multifactor", multifactor="age=1")


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json", "html"])
def test_every_result_is_saved_in_four_forms(suffix: str, tmp_path: Path) -> None:
    snapshot = aucsched.Snapshot(nodes=[aucsched.Node(name="n", cores=8)])
    found = (aucsched.schedule(snapshot), aucsched.simulate(DAYS), aucsched.plan(snapshot))
    for number, result in enumerate((*found, aucsched.sweep(snapshot, window=[1, 2]))):
        path = tmp_path / f"{number}.{suffix}"
        result.save(path)
        content = path.read_bytes()
        if suffix == "csv":
            assert content.decode().splitlines()[0].split(",") == list(result.columns)
        elif suffix == "parquet":
            assert list(pd.read_parquet(path)) == list(result.columns)
        elif suffix == "json":
            assert content.decode() == result.to_json()
        else:
            assert b"<table>" in content
    with pytest.raises(aucsched.OptionError, match="the name ends in none of"):
        found[0].save(tmp_path / "x.txt")
