"""`aucsched simulate --policy A,B,C`: what each policy alone would give, in one table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.run import refused

from aucsched.cli import run

EXAMPLES = Path(__file__).parents[2] / "examples"
DAYS, OVERTAKEN = str(EXAMPLES / "days.swf"), str(EXAMPLES / "overtaken.json")


def _document(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run(["simulate", *arguments, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def _without_seconds(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "seconds"}


@pytest.mark.parametrize(
    ("workload", "policies", "common", "own"),
    [
        (DAYS, ("fcfs", "easy", "slack"), ["--order", "sjf"], {"slack": ["--slack", "2"]}),
        (OVERTAKEN, ("easy", "aucsched3"), [], {"aucsched3": ["--window", "5"]}),
        (OVERTAKEN, ("fcfs", "reservations"), [], {"reservations": ["--reservations", "2"]}),
    ],
)
def test_each_run_is_the_policy_s_own(
    workload: str,
    policies: tuple[str, ...],
    common: list[str],
    own: dict[str, list[str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    their_options = [text for options in own.values() for text in options]
    together = _document(capsys, workload, "--policy", ",".join(policies), *common, *their_options)
    assert together["format"] == "aucsched-simulations/1"
    alone = [_document(capsys, workload, "--policy", name, *common, *own.get(name, [])) for name in policies]
    assert [_without_seconds(one) for one in together["runs"]] == [_without_seconds(one) for one in alone]


def test_failures_on_standard_input_are_read_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failures = tmp_path / "failures.json"
    outage = {"nodes": "n1", "down_s": 60, "up_s": 900}
    failures.write_text(json.dumps({"format": "aucsched-failures/1", "failures": [outage]}))
    without = _document(capsys, OVERTAKEN, "--policy", "fcfs,easy")
    wanted = _document(capsys, OVERTAKEN, "--policy", "fcfs,easy", "--failures", str(failures))
    with failures.open() as file:
        monkeypatch.setattr("sys.stdin", file)
        found = _document(capsys, OVERTAKEN, "--policy", "fcfs,easy", "--failures", "-")
    runs, *others = ([one["metrics"] for one in made["runs"]] for made in (found, wanted, without))
    assert runs == others[0]
    assert all(one != other for one, other in zip(runs, others[1], strict=True))


@pytest.mark.parametrize("policies", ["easy,promised", "promised,easy"])
def test_an_option_is_for_the_policies_that_read_it_wherever_they_stand(
    policies: str, capsys: pytest.CaptureFixture[str]
) -> None:
    together = _document(capsys, DAYS, "--policy", policies, "--objective", "response")
    means = {one["policy"]: one["metrics"]["wait_mean_s"] for one in together["runs"]}
    assert means["promised"] < 0.9 * means["easy"]


def test_two_variants_of_a_policy_have_names_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policies = "promised:objective=response,promised,easy"
    page = tmp_path / "page.html"
    assert run(["simulate", DAYS, "--policy", policies, "--html", str(page)]) == 0
    lines = capsys.readouterr().out.splitlines()[-3:]
    assert [line.split()[0] for line in lines] == policies.split(",")
    assert '"promised:objective=response":[' in page.read_text(), "a column of its own"


def test_the_table_has_a_line_a_policy_and_fits_60_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its title names the file as it was given: a long path would be a long line.
    monkeypatch.chdir(EXAMPLES)
    assert run(["simulate", "days.swf", "--policy", "fcfs,easy,conservative"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[-3:]] == ["fcfs", "easy", "conservative"]
    assert max(map(len, lines)) <= 60


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((DAYS, "--policy", "fcfs,easy", "--slack", "1"), "--slack: none of fcfs, easy reads it"),
        ((DAYS, "--policy", "fcfs,easy", "--gantt", "g.png"), "--gantt is of one run: name one policy"),
        ((DAYS, "--policy", "fcfs,ischeduler"), "--policy ischeduler cannot be combined"),
        (
            (DAYS, "--policy", "fcfs,easy", "--processors", "4", "--cluster", "now.json"),
            "--processors and --cluster both give the machine's size",
        ),
        ((DAYS, "--policy", "fcfs,fcfs"), "one is named twice"),
        ((DAYS, "--policy", "fcfs,"), "'' is not a policy"),
        ((DAYS, "--policy", "easy,aucsched2"), "aucsched2 needs a workload of nodes"),
        ((OVERTAKEN, "--policy", "easy,lookahead"), "lookahead counts processors"),
    ],
)
def test_what_cannot_be_said_together_is_refused(arguments: tuple[str, ...], message: str) -> None:
    assert message in refused("simulate", *arguments)


@pytest.mark.filterwarnings("ignore:on a log --policy aucsched3:FutureWarning")
def test_a_policy_under_its_old_and_its_new_name_is_one() -> None:
    said = refused("simulate", DAYS, "--policy", "aucsched3,promised", "--format", "json")
    assert "promised,promised: one is listed twice" in said
