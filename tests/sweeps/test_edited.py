"""Journals of sweeps that somebody edited: every checksum is good, and what they say is not."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.run import aucsched, refused
from support.sweeps import small

COMMAND = ("--window", "4,12", "--work-limit", "1", "--workers", "1")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a snapshot, and the table and journal of a sweep over it."""
    folder = tmp_path_factory.mktemp("edited")
    done = aucsched("sweep", small(folder), *COMMAND, "-o", "rows.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def line(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x} {text}\n"


def row(**changed: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda entry: {"row": {**entry["row"], **changed}}


def without(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda entry: {"row": {key: value for key, value in entry["row"].items() if key != name}}


EDITS: list[tuple[int, Callable[[dict[str, Any]], Any], str]] = [
    (1, row(run=2), "line 2: run 2 is not one of this sweep's 2"),
    (1, row(run=-1), "line 2: run -1 is not one of this sweep's 2"),
    (1, row(run=10**30), f"line 2: run {10**30} is not one of this sweep's 2"),
    (1, row(run="0"), "line 2: run '0' is not one of this sweep's 2"),
    (1, row(run=True), "line 2: row.run: true is not an integer or a number or a text"),
    (1, without("run"), "line 2: run None is not one of this sweep's 2"),
    (1, row(window=5), "line 2: run 0 has window 4, not 5"),
    (1, without("window"), "line 2: run 0 has window 4, not None"),
    (1, row(priority="much"), "line 2: 'much' is not a value of 'priority'"),
    (1, row(priority=[1]), "line 2: row.priority: [1] is not an integer or a number or a text"),
    (1, row(bids=10**400), "is not a value of 'bids'"),
    (1, row(error="\ud800"), "line 2: not JSON"),
    (1, row(**{"\x1b[31m": 1}), r"line 2: 1 is not a value of '\x1b[31m'"),
    (1, row(status=None), "line 2: run 0 does not say how it ended"),
    (1, row(status="failed"), "line 2: run 0 does not say how it ended"),
    (1, lambda _: {"row": [1]}, "line 2: row: [1] is not an object"),
    (1, lambda _: {"format": "aucsched-sweep/1", "sweep": {}}, "line 2: unknown member 'format'"),
    (1, lambda _: [1], "line 2: [1] is not an object"),
    (0, lambda _: [1], "line 1: [1] is not an object"),
    (0, lambda head: {**head, "sweep": None}, "line 1: sweep: null is not an object"),
    (0, lambda head: {**head, "versions": {"a": 1}}, "line 1: versions.a: 1 is not a text"),
    (0, lambda head: {"format": head["format"]}, "line 1: the member 'sweep' is missing"),
    (
        0,
        lambda head: {**head, "sweep": {**head["sweep"], "input": "x"}},
        "the sweep it holds has as input a x",
    ),
]


def edited(swept: Path, texts: list[str], tmp_path: Path) -> str:
    """Run the sweep again in a copy of its folder with another journal, and return what it says."""
    for name in ("small.json", "rows.csv"):
        (tmp_path / name).write_bytes((swept / name).read_bytes())
    journal = "".join(map(line, texts))
    (tmp_path / "rows.csv.journal").write_text(journal)
    said = refused("sweep", "small.json", *COMMAND, "-o", "rows.csv", cwd=tmp_path)
    assert (tmp_path / "rows.csv.journal").read_text() == journal
    assert (tmp_path / "rows.csv").read_bytes() == (swept / "rows.csv").read_bytes()
    return said


def texts_of(swept: Path) -> list[str]:
    return [text[9:] for text in (swept / "rows.csv.journal").read_text().splitlines()]


@pytest.mark.parametrize(("place", "edit", "message"), EDITS)
def test_an_edited_line_is_refused_in_one_line(
    place: int, edit: Callable[[dict[str, Any]], Any], message: str, swept: Path, tmp_path: Path
) -> None:
    texts = texts_of(swept)
    texts[place] = json.dumps(edit(json.loads(texts[place])))
    said = edited(swept, texts, tmp_path)
    assert said.startswith("rows.csv.journal: ")
    assert message in said


def test_a_header_that_stands_twice_is_refused(swept: Path, tmp_path: Path) -> None:
    head, *rows = texts_of(swept)
    said = edited(swept, [head, rows[0], head, *rows[1:]], tmp_path)
    assert said == "rows.csv.journal: line 3: unknown member 'format'"


def test_lines_that_are_no_json_are_refused(swept: Path, tmp_path: Path) -> None:
    head, *rows = texts_of(swept)
    said = edited(swept, [head, "{", *rows], tmp_path)
    assert said.startswith("rows.csv.journal: line 2: not JSON")


def test_a_run_that_stands_twice_counts_as_it_stands_last(swept: Path, tmp_path: Path) -> None:
    """As after --retry-failed, which appends."""
    for name in ("small.json", "rows.csv"):
        (tmp_path / name).write_bytes((swept / name).read_bytes())
    texts = texts_of(swept)
    (tmp_path / "rows.csv.journal").write_text("".join(map(line, [*texts, texts[1]])))
    done = aucsched("sweep", "small.json", *COMMAND, "-o", "rows.csv", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "note: 2 of 2 runs are done already\n")
    assert (tmp_path / "rows.csv").read_bytes() == (swept / "rows.csv").read_bytes()


def test_rows_without_never_started_are_said_to_be_of_before(tmp_path: Path) -> None:
    days, said = Path(__file__).parents[2] / "examples" / "days.swf", []
    for policies in ("easy", "easy,fcfs"):
        done = aucsched("sweep", days, "--policy", policies, "-o", "rows.csv", "--workers", "1", cwd=tmp_path)
        said.append([text for text in done.stderr.splitlines() if "older" in text])
        texts = [text.replace('"never_started":0,', "") for text in texts_of(tmp_path)]
        (tmp_path / "rows.csv.journal").write_text("".join(map(line, texts)))
    note = "note: 1 of 2 runs by an older aucsched: jobs counts those that never start"
    assert said == [[], [note]]


@pytest.mark.parametrize("then", ["5", "5,10"])
@pytest.mark.parametrize("old", ["", '"promise":null,'])
def test_rows_of_an_older_version_may_lack_defaults(then: str, old: str, tmp_path: Path) -> None:
    overtaken = Path(__file__).parents[2] / "examples" / "overtaken.json"
    swept = ("sweep", overtaken, "--policy", "aucsched3", "-o", "rows.csv", "--workers", "1", "--window")
    assert aucsched(*swept, "5", cwd=tmp_path).returncode == 0
    texts = texts_of(tmp_path)
    changed = [text.replace('"promise":"backfill",', old) for text in texts]
    assert changed != texts
    (tmp_path / "rows.csv.journal").write_text("".join(map(line, changed)))
    done = aucsched(*swept, then, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert texts_of(tmp_path)[1] == changed[1]
