"""What a person meets first: help, slips of the keyboard, narrow terminals, singular and plural."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import pytest
from support.build import snapshot

from aucsched import Award, BidClass, Node, Refusal, Resources, Snapshot, schedule
from aucsched.auction.explain.comparison import first_fit_by_priority
from aucsched.cli import COMMANDS, cli, run
from aucsched.cluster.schedule import Objective, Schedule, Status
from aucsched.commands.groups import HelpGroup
from aucsched.reports import console_tables
from aucsched.reports.console_tables import Column, LiteralConsole, Wrapped, table_of
from aucsched.reports.schedule_text import render

EXAMPLES = Path(__file__).parents[2] / "examples"
FULL = str(EXAMPLES / "emulated-1408-full.json")


def test_the_time_limit_counts_from_the_start_of_the_process(capsys: pytest.CaptureFixture[str]) -> None:
    """What was loaded before the command began is gone from its limit."""
    assert run(["schedule", FULL, "--time-limit", "60", "--format", "json"], began=perf_counter() - 55) == 0
    seconds = json.loads(capsys.readouterr().out)["seconds"]["total"]
    assert 55 <= seconds <= 66


def lines_of(group: click.Group) -> Iterator[tuple[str, str]]:
    """Yield each command's line where its group has a table, and the first line of its docstring."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        first = (command.help or "").strip().partition("\n")[0]
        yield group.lines.get(name, first) if isinstance(group, HelpGroup) else first, first
        yield command.get_short_help_str(200), first
        if isinstance(command, click.Group):
            yield from lines_of(command)


def test_a_command_s_line_is_the_first_of_its_help() -> None:
    found = list(lines_of(cli))
    assert len(found) > 100
    assert [line for line, first in found] == [first for line, first in found]


@pytest.mark.parametrize("arguments", [[], ["snapshot"], ["workload"]])
def test_a_group_alone_prints_its_help_on_standard_output(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Usage: aucsched")
    assert err == ""
    assert "Commands:" in out


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["shedule"], "did you mean schedule"),
        (["simulat"], "did you mean simulate"),
        (["workload", "descibe"], "did you mean describe?"),
        (["snapshot", "slrum"], "did you mean slurm?"),
        (["schedule", FULL, "--windw", "3"], "--window"),
    ],
)
def test_a_slip_gets_a_suggestion(
    arguments: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert meant in err


def test_nothing_is_suggested_for_what_resembles_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["qqqq"]) == 2
    assert "mean" not in capsys.readouterr().err


def test_every_command_has_one_line_of_help() -> None:
    assert all(line.endswith(".") and len(line) < 80 for line in COMMANDS.values())
    # The table is there for speed: what it says is what each command's own help begins with.
    context = click.Context(cli)
    commands = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    own = {name: str(one and one.help).partition("\n\n")[0] for name, one in commands.items()}
    assert own == dict(zip(own, COMMANDS.values(), strict=True))


@pytest.mark.parametrize(
    "arguments",
    [
        ["schedule", FULL],
        ["compare", FULL],
        ["explain", FULL, "64"],
        ["explain", FULL, "71"],
        ["plan", FULL, "--jobs", "12"],
        ["check", FULL],
        ["simulate", "days.swf", "--policy", "fcfs,easy"],
    ],
    ids=lambda arguments: " ".join(arguments[:1] + arguments[2:]),
)
def test_60_columns_are_enough_and_no_node_name_is_broken(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("aucsched.reports.console_tables.PLAIN_WIDTH", 60)
    monkeypatch.chdir(EXAMPLES)
    assert run(arguments) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 60
    digits = [word for line in text.splitlines() for word in re.findall(r"(?<![\w:.-])n\d+(?!\w)", line)]
    assert all(re.fullmatch(r"n\d{4}", word) for word in digits), digits


def test_text_breaks_after_blanks_and_commas_only() -> None:
    text = "on node0001,node0002,node[0003-0017] of switch7"
    for width in range(1, 60):
        lines = Wrapped(text).lines(width)
        assert "".join(lines).replace(" ", "") == text.replace(" ", "")
        assert all(len(line) <= max(width, len("node[0003-0017]")) for line in lines)
    assert Wrapped("").lines(5) == [""]


def test_columns_leave_in_order_where_the_terminal_is_narrow() -> None:
    columns = [
        Column("job", itemgetter(0)),
        Column("second", itemgetter(1), leaves=2),
        Column("first", itemgetter(2), leaves=1),
        Column("text", itemgetter(3), is_text=True),
    ]
    seen = []
    for width in (60, 40, 34):
        console = LiteralConsole(file=io.StringIO(), width=width)
        console.print(table_of("", columns, [("1", "bbbbbb", "aaaaaaa", "x y z " * 9)], console))
        assert isinstance(console.file, io.StringIO)
        out = console.file.getvalue()
        seen.append((out.splitlines()[0].split(), left_out(out)))
    assert seen[0] == (["job", "second", "first", "text"], [])
    assert (["job", "second", "text"], ["first"]) in seen[1:]


def left_out(text: str) -> list[str]:
    return re.findall(r"left out at this width: (.*?); --format json has all", " ".join(text.split()))


HISTORY = ("gain", "--sacct", "history.txt.gz", "--nodes", "history-nodes.txt")


@pytest.mark.parametrize(
    ("command", "left"),
    [
        (("board", "days.swf"), "95 % (s), CPU %"),
        (HISTORY, "happened"),
        (("slurm", "report", "shadow.jsonl.gz"), "not compared"),
        (("plan", FULL), "priority, end, nodes"),
        (("compare", FULL), ""),
        (("forecast", FULL), ""),
        (("forecast", FULL, "97", "--by", "+5min"), "cores, by limits"),
        (("simulate", "days.swf", "--policy", "easy,conservative,promised"), ""),
    ],
)
def test_tables_fit_80_columns_and_name_the_columns_without_room(
    command: tuple[str, ...], left: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLES)
    for width in (80, 150):
        monkeypatch.setattr(console_tables, "PLAIN_WIDTH", width)
        assert run([*command]) == 0
        out = capsys.readouterr().out
        assert max(map(len, out.splitlines())) <= width
        assert set(left_out(out)) == ({left} if left and width == 80 else set())


@pytest.mark.parametrize("command", ["simulate", "sweep", "board"])
def test_bounded_slowdown_is_called_so(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policies = () if command == "board" else ("--policy", "easy,fcfs")
    table = ("-o", str(tmp_path / "t.csv"), "--workers", "1") if command == "sweep" else ()
    assert run([command, str(EXAMPLES / "days.swf"), *policies, *table]) == 0
    above, head = capsys.readouterr().out.splitlines()[1:3]
    assert above[head.index("slowdown") :].startswith(" bounded")


PAGES = sorted((EXAMPLES.parent / "docs" / "reference" / "commands").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_help_fits_80_columns_and_breaks_within_no_word(page: Path) -> None:
    """The pages hold what ``--help`` prints: tests/test_docs.py compares them."""
    helps = re.findall(r"^```text\n(Usage: .*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    assert helps
    for line in "".join(helps).splitlines():
        assert len(line) <= 80, line
        assert not re.search(r"\w-$|[a-z,]\.\.\.$|``", line), line


def test_a_head_may_have_two_lines_and_a_title_is_wider_than_its_table() -> None:
    console = LiteralConsole(file=io.StringIO(), width=40)
    columns = [Column("job", itemgetter(0)), Column("bounded\nslowdown", itemgetter(1), is_right=True)]
    console.print(table_of("a title of more words than figures", columns, [("1", "2.5")], console))
    assert isinstance(console.file, io.StringIO)
    assert [line.rstrip() for line in console.file.getvalue().splitlines()] == [
        "a title of more words than figures",
        "      bounded",
        "job  slowdown",
        "1         2.5",
    ]


def test_a_long_name_takes_no_number_s_place() -> None:
    console = LiteralConsole(file=io.StringIO(), width=40)
    columns = [
        Column("bid", itemgetter(0), is_right=True),
        Column("bidder", itemgetter(1)),
        Column("value", itemgetter(2), is_right=True),
    ]
    console.print(table_of("", columns, [("17", "y" * 90, "12.5")], console))
    assert isinstance(console.file, io.StringIO)
    head, first = console.file.getvalue().splitlines()[:2]
    assert head.split() == ["bid", "bidder", "value"]
    assert (first.split()[0], first.split()[-1]) == ("17", "12.5")


def _printed(cluster: Snapshot, result: Schedule | None = None, *, top: int | None = None) -> str:
    result = result or schedule(cluster)
    console = LiteralConsole(file=io.StringIO(), width=100)
    render(cluster, result, first_fit_by_priority(cluster, 100), console, top=top)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_a_gap_is_how_much_higher_the_best_can_be() -> None:
    """An award of 100 with a bound of 125 has a gap of a quarter."""
    cluster = snapshot([{"name": "n1", "cores": 4}], [{"cores": 4, "priority": 100}])
    proved = schedule(cluster)
    assert proved.objective.priority == 100
    objective = Objective(priority=100, preference=None, bound=125.0, gap=0.25)
    text = _printed(cluster, replace(proved, status=Status.FEASIBLE, objective=objective))
    assert "priority 100, no proof at the limit: the best is at most 25.00% higher;" in " ".join(text.split())


def test_one_is_singular() -> None:
    text = _printed(snapshot([{"name": "n1", "cores": 4}], [{"cores": 4}, {"cores": 4}]))
    assert "1 job starts" in text
    assert "1 job waits: 1 outbid" in text
    assert "starts 1 job (4 cores)" in text
    assert not re.search(r"\b1 (jobs|nodes|cores|bids|nodesets)\b", text)


def test_top_counts_the_others_and_reasons_are_counted() -> None:
    jobs: list[dict[str, Any]] = [{"cores": 1} for _ in range(6)] + [
        {"cores": 9},
        {"cores": 1, "hold": "JobHeldUser"},
    ]
    text = _printed(snapshot([{"name": "n1", "cores": 4}], jobs), top=2)
    assert "4 jobs start" in text
    assert text.count("2 more") == 2
    assert "4 jobs wait: 2 outbid, 1 ineligible, 1 held" in text
    assert "more" not in _printed(snapshot([{"name": "n1", "cores": 4}], jobs))


def test_tasks_of_an_array_are_one_row_for_each_reason() -> None:
    tasks: list[dict[str, Any]] = [{"id": f"13_{task}", "cores": 4, "priority": 9} for task in range(20)]
    for task in tasks[8:]:
        task["hold"] = "JobArrayTaskLimit"
    tasks.insert(12, {"id": "14_1", "cores": 1, "priority": 9, "hold": "BeginTime"})
    cluster = snapshot([{"name": "n1", "cores": 4}], tasks)
    rows = [line.split() for line in _printed(cluster).splitlines() if line.startswith(("13_", "14_"))]
    assert [row[:5] for row in rows if "not_eligible" in row] == [
        ["13_[8-19]", "(12", "tasks)", "9", "not_eligible"],
        ["14_1", "9", "not_eligible", "BeginTime"],
    ]
    (outbid,) = (row for row in rows if row[0] == "13_[1-7]")
    assert outbid[1:5] == ["(7", "tasks)", "9", "outbid"]
    assert len(rows) == 4
    assert "20 jobs wait: 13 not_eligible, 7 outbid" in _printed(cluster)
    pending = schedule(cluster).to_dict()["pending"]
    assert [one["job"] for one in pending] == [task["id"] for task in tasks[1:]]


def test_rows_of_tasks_count_the_jobs_that_they_hide() -> None:
    jobs: list[dict[str, Any]] = [
        {"id": f"{array}_{task}", "cores": 1, "hold": "Dependency", "priority": 5}
        for array in (1, 2, 3)
        for task in range(0, 90, 3)
    ]
    text = _printed(snapshot([{"name": "n1", "cores": 4}], jobs), top=1)
    assert "1_[0,3,6,9,12,15,18,21,...] (30 tasks)" in text
    assert "60 more" in text


def test_public_types_are_what_a_schedule_holds() -> None:
    result = schedule(snapshot([{"name": "n1", "cores": 4}], [{"cores": 4}, {"cores": 4}]))
    assert isinstance(result.started[0], Award)
    assert isinstance(result.pending[0], Refusal)
    assert result.started[0].bid.bid_class is BidClass.A
    assert result.started[0].nodes == {"n1": Resources(cores=4)}
    assert Node(name="n", cores=1).total.cores == 1
