"""Text is text: markup, formulas and hidden characters of names and notes, wherever they are shown."""

from __future__ import annotations

import csv
import io
import json
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from aucsched import InputError
from aucsched.cli import run
from aucsched.cluster.text import escape, escaped, hidden_in, one_line, utc
from aucsched.commands.snapshot import parse_time
from aucsched.formats.native.cluster_file import parse_snapshot
from aucsched.slurm.answers.answer_text import Paragraph

MATHTEXT = "$\\frac{$"
HIDDEN = "\x1b[31m\x00\x9b1m\u202e\u2066"
SNAPSHOT: dict[str, Any] = {
    "format": "aucsched-snapshot/1",
    "time": "2026-11-20T09:30:00Z",
    "nodes": [{"name": "n[1-4]", "cores": 4, "gres": {"gpu:[/x]": 2}, "partitions": ["[/p]"]}],
    "topology": {
        "kind": "tree",
        "switches": [{"name": MATHTEXT, "nodes": "n[1-2]"}, {"name": "[/s]", "nodes": "n[3-4]"}],
    },
    "jobs": [
        {"id": "[/j]", "priority": 3, "cores": 2, "user": "[/u]"},
        {"id": MATHTEXT, "priority": 2, "cores": 4},
        {"id": "_x", "priority": 2, "cores": 1},
        {"id": ":bell:", "priority": 2, "cores": 400},
        {"id": "c", "priority": 5, "cores": 1, "unsupported": ["--constraint=[rack1|rack2]", HIDDEN]},
        {"id": "h", "priority": 5, "cores": 1, "hold": "[/h]"},
        {"id": "l", "priority": 1, "cores": 1, "licenses": {"[/m]": 1}},
    ],
    "licenses": {"[/m]": {"total": 1, "free": 0}},
    "notes": [f"[/n] {HIDDEN}"],
}
WORKLOAD: dict[str, Any] = {
    "format": "aucsched-workload/1",
    "name": MATHTEXT,
    "nodes": [{"name": "n[1-4]", "cores": 4}],
    "jobs": [
        {"id": 'a,"b";#<br/>%%', "priority": 3, "nodes": 2, "cores_per_node": 4, "user": "x,y"}
        | {"arrival_s": 0, "run_time_s": 900},
        {"id": MATHTEXT, "priority": 2, "nodes": 3, "cores_per_node": 4, "arrival_s": 1, "run_time_s": 900},
    ],
    "notes": [f"[/n] {HIDDEN}\nsecond"],
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "snapshot.json").write_text(json.dumps(SNAPSHOT))
    (tmp_path / "workload.json").write_text(json.dumps(WORKLOAD))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command and return what it prints, which holds no hidden character."""
    code = run(list(arguments))
    out, err = capsys.readouterr()
    assert code == 0, err
    for line in (out + err).split("\n"):
        assert not hidden_in(line), line
    return out


def test_hidden_are_the_controls_formats_surrogates_and_separators_of_unicode() -> None:
    for code in range(sys.maxunicode + 1):
        letter = chr(code)
        if unicodedata.category(letter) in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
            assert hidden_in(letter) == letter, hex(code)
        elif unicodedata.category(letter) != "Cn":
            assert hidden_in(letter) == "", hex(code)


def test_escapes_are_those_of_json() -> None:
    for letter in ("\x00", "\x1b", "\x9b", "\u202e", "\U000e0041"):
        assert json.loads(f'"{escape(letter)}"') == letter
        assert json.loads(escaped(json.dumps([letter], ensure_ascii=False))) == [letter]
    assert escaped("a\tb\nc\r\x1b") == "a\tb\nc\\u000d\\u001b"
    assert one_line(" a\n b\x85c\x1b[2J ") == "a b c\\u001b[2J"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("command", "names"),
    [
        (
            ("schedule",),
            ("[/j]", MATHTEXT, ":bell:", "--constraint=[rack1|rack2]", "[/h]", "1 [/m] licence"),
        ),
        (("check",), ("gpu:[/x]", "[/p]", "--constraint=[rack1|rack2]", "[/m]", "[/n] \\u001b[31m\\u0000")),
        (("compare",), ("[/j]", MATHTEXT)),
        (("plan",), ("[/j]", MATHTEXT, "--constraint=[rack1|rack2]")),
        (("explain",), ("[/m]",)),
        (("explain", "c"), ("--constraint=[rack1|rack2]", MATHTEXT)),
        (("explain", "[/j]"), ("job [/j]",)),
    ],
)
def test_markup_and_hidden_characters_print_as_they_are(
    command: tuple[str, ...], names: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    name, *job = command
    out = printed(capsys, name, "snapshot.json", *job)
    for text in names:
        assert text in out


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("command", ["schedule", "check", "compare", "plan", "explain"])
def test_json_says_what_the_file_says(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(printed(capsys, command, "snapshot.json", "--format", "json"))
    if command == "check":
        assert document["notes"] == SNAPSHOT["notes"]


@pytest.mark.parametrize(
    "command",
    [
        ("schedule", "snapshot.json", "--plot"),
        ("plan", "snapshot.json", "--gantt"),
        ("simulate", "workload.json", "--gantt"),
        ("negotiate", "workload.json", "--gantt"),
    ],
)
def test_formulas_in_names_do_not_end_a_chart(
    command: tuple[str, ...], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    printed(capsys, *command, "chart.svg")
    drawn = (here / "chart.svg").read_text()
    assert not hidden_in(drawn.replace("\n", ""))
    # Beside its drawing matplotlib writes a text down as a comment.
    assert MATHTEXT in drawn


def test_rows_of_hostile_names_are_read_back(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("simulate", "negotiate"):
        printed(capsys, command, "workload.json", "--jobs-out", "jobs.csv")
        rows = list(csv.DictReader(io.StringIO((here / "jobs.csv").read_text()), strict=True))
        first = rows[0]
        assert [row.get("id", row.get("job")) for row in rows] == [job["id"] for job in WORKLOAD["jobs"]]
        assert first.get("user", "x,y") == "x,y"


def test_a_diagram_holds_no_comments_or_html_of_names(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed(capsys, "negotiate", "workload.json", "--mermaid", "talk.mmd", "--trace", "talk.txt")
    diagram = (here / "talk.mmd").read_text()
    assert "a,#34;b#34; ·no. #60;br/#62;#37;#37;" in diagram
    assert "<" not in diagram
    assert "%%" not in diagram
    assert 'a,"b";#<br/>%%' in (here / "talk.txt").read_text()


@pytest.mark.usefixtures("here")
def test_a_workload_is_described_line_by_line(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "workload", "describe", "workload.json")
    assert "\n  [/n] \\u001b[31m\\u0000\\u009b1m\\u202e\\u2066 second\n" in out


def test_an_error_shows_what_it_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(tmp_path / "\x1b]0;owned\x07\n\u202e.json")]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err.rstrip("\n").isprintable()
    assert run(["explain", "\x1b[2J", "--windows\x9b"]) == 2
    assert capsys.readouterr().err.rstrip("\n").isprintable()


# Times and digits.


@pytest.mark.parametrize(
    "text",
    [
        "1969-12-31T23:59:59Z",
        "1950-01-01",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-12:00",
        "٢٠٢٦-11-20",
    ],
)
def test_times_outside_1970_to_9999_are_refused(text: str) -> None:
    document = {**SNAPSHOT, "time": text}
    with pytest.raises(InputError, match=r"ISO 8601 time|not a time from 1970 to 9999") as caught:
        parse_snapshot(json.dumps(document).encode())
    assert caught.value.path == "time"
    with pytest.raises(Exception, match="--time") as refused:
        parse_time("time", text)
    assert type(refused.value).__name__ == "OptionError"
    with pytest.raises(InputError, match="is not a time") as slurm:
        Paragraph({"StartTime": text}, "ReservationName=r").moment("StartTime")
    assert slurm.value.path == "ReservationName=r StartTime"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (253402300799.9, "9999-12-31T23:59:59Z"),
        (253402300800, "+10000-01-01T00:00:00Z"),
        (10**12, "+33658-09-27T01:46:40Z"),
        (-0.5, "1969-12-31T23:59:59Z"),
        (-62135596800, "0001-01-01T00:00:00Z"),
        (-(10**11), "-1199-02-15T14:13:20Z"),
    ],
)
def test_every_time_has_a_text(seconds: float, text: str) -> None:
    assert utc(seconds) == text


@pytest.mark.parametrize("command", [["schedule"], ["plan"], ["explain", "b"]])
def test_commands_show_times_after_9999(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = [
        {"id": "a", "priority": 3, "cores": 1, "time_limit_s": 10**12},
        {"id": "b", "priority": 2, "cores": 2, "time_limit_s": 60},
        {"id": "c", "priority": 1, "cores": 1},
    ]
    cluster = {"format": SNAPSHOT["format"], "time": 1000, "nodes": [{"name": "n0", "cores": 2}]}
    file = tmp_path / "far.json"
    file.write_text(json.dumps({**cluster, "jobs": jobs}))
    run([command[0], str(file), *command[1:]])
    assert "+33658-09-27T02:03:20Z" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["٣", "1٣", "３", "²"])
def test_digits_of_other_scripts_are_refused(
    text: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paragraph = Paragraph({"MaxNodes": text, "MaxTime": text, "StartTime": text}, "PartitionName=p")
    for read, key in (
        (paragraph.count, "MaxNodes"),
        (paragraph.duration, "MaxTime"),
        (paragraph.moment, "StartTime"),
    ):
        with pytest.raises(InputError, match=f"'{text}' is not a"):
            read(key)
    document = {**SNAPSHOT, "nodes": [{"name": f"n[1-{text}]", "cores": 4}]}
    (here / "digits.json").write_text(json.dumps(document))
    assert run(["check", "digits.json"]) == 2
    assert capsys.readouterr().err.startswith(f"digits.json: nodes[0].name: 'n[1-{text}]' is not a hostlist")
