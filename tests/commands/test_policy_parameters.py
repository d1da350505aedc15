"""A policy's parameters stand with its name, on the command line, in sweeps and in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import aucsched
from aucsched.cli import run
from aucsched.simulation.nodes.node_policies import NODE_POLICIES
from aucsched.simulation.policy_names import policy_with_parameters
from aucsched.simulation.simulate_options import ON_NODES

EXAMPLES = Path(__file__).parents[2] / "examples"
DAYS, OVERTAKEN = str(EXAMPLES / "days.swf"), str(EXAMPLES / "overtaken.json")


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[str, str]:
    assert run(["simulate", *arguments]) == code
    found = capsys.readouterr()
    return found.out, found.err


@pytest.mark.parametrize(
    ("policy", "flags", "named"),
    [
        ("slack:factor=0.2", ("slack", "--slack", "0.2"), {"slack": 0.2}),
        ("reservations:number=2", ("reservations", "--reservations", "2"), {"reservations": 2}),
        (
            "partitioned:limits=60,3600",
            ("partitioned", "--class-limits", "60,3600"),
            {"class_limits_s": [60.0, 3600.0]},
        ),
        (
            "adaptive:every=50,candidates=easy+conservative",
            ("adaptive", "--adapt-every", "50", "--candidates", "easy,conservative"),
            {"adapt_every": 50, "candidates": ["easy", "conservative"]},
        ),
        (
            "planning:advance=0,60,4,advance=100,60,8",
            ("planning", "--advance", "0,60,4", "--advance", "100,60,8"),
            {},
        ),
    ],
)
def test_a_parameter_is_what_its_flag_was(
    policy: str, flags: tuple[str, ...], named: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    new, nothing = said(capsys, DAYS, "--policy", policy, "--format", "json")
    old, note = said(capsys, DAYS, "--policy", *flags, "--format", "json")
    ours, theirs = json.loads(new), json.loads(old)
    ours.pop("seconds"), theirs.pop("seconds")
    assert ours == theirs
    assert {name: ours[name] for name in named} == named
    assert nothing == ""
    assert f"note: {flags[1]} is the old spelling of --policy {flags[0]}:" in note


def test_several_policies_carry_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = said(capsys, DAYS, "--policy", "slack:factor=0.2,easy,slack:factor=1", "--format", "json")
    runs = json.loads(out)["runs"]
    assert [(one["policy"], one.get("slack")) for one in runs] == [
        ("slack", 0.2),
        ("easy", None),
        ("slack", 1.0),
    ]
    out, _ = said(capsys, OVERTAKEN, "--policy", "easy,aucsched3:reserve=0", "--format", "json")
    assert [one.get("reserve") for one in json.loads(out)["runs"]] == [None, 0]
    out, _ = said(capsys, OVERTAKEN, "--policy", "aucsched3:award-alone=on,aucsched3", "--format", "json")
    assert [one.get("award_alone") for one in json.loads(out)["runs"]] == [True, None]
    _, err = said(capsys, OVERTAKEN, "--policy", "aucsched3:award-alone=yes", code=2)
    assert "aucsched3:award-alone: 'yes' is neither on nor off" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--policy", "slack:fctor=1"), "'fctor' is not one of factor: did you mean factor?"),
        (("--policy", "easy:factor=1"), "'factor' is not one of selection (on nodes only)"),
        (("--policy", "reservations:k=1"), "'k' is not one of number, selection (on nodes only)"),
        (("--policy", "promised:nope=1"), "'nope' is not one of objective, promise"),
        (("--policy", "slack:factor=x"), "slack:factor: 'x' is not a number"),
        (("--policy", "slack:factor=-1"), "slack:factor: -1 is below 0"),
        (("--policy", "slack:factor=1", "--slack", "2"), "--slack: --policy slack:factor=1 says it, too"),
        (("--policy", "slack:factor=1,slack:factor=1"), "one is named twice"),
        (("--policy", "promised:objective=x"), "promised:objective: 'x' is not one of priority, response\n"),
        (
            ("--policy", "promised:objective=priority_cores"),
            "promised:objective: 'priority_cores' is not one of priority, response:",
        ),
        (
            ("--policy", "promised", "--objective", "priority_cores"),
            "--objective 'priority_cores' is not one of priority, response:",
        ),
        (("--policy", f"lookahead:depth={10**20}"), f"lookahead:depth: {10**20} is above 10000000"),
        (("--policy", f"adaptive:window={10**20}"), f"adaptive:window: {10**20} is above 10000000"),
    ],
)
def test_what_cannot_be_used_is_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, err = said(capsys, DAYS, *arguments, code=2)
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("policy", "given"),
    [
        ("promised", {"objective": "priority_cores"}),
        ("promised", {"objective": "priority_cores", "promise": "none"}),
        ("lookahead", {"lookahead_depth": 10**20}),
        ("adaptive", {"adapt_window": 10**20}),
    ],
)
def test_python_and_sweeps_refuse_the_same(policy: str, given: dict[str, Any]) -> None:
    for call in (aucsched.simulate, aucsched.sweep):
        with pytest.raises(aucsched.OptionError, match=r"not one of priority, response|is above 10000000"):
            call(DAYS, policy=policy, **given)
    with pytest.raises(aucsched.OptionError, match="objective needs policy promised, not easy"):
        aucsched.simulate(DAYS, "easy", objective="priority_cores")


def test_a_queue_may_have_no_limits_behind_its_colon() -> None:
    named, given = policy_with_parameters("queues:queue=short: estimate=500,queue=long:")
    assert (named, given) == ("queues", {"queue": ("short: estimate=500", "long:")})
    with_colon, without = (
        aucsched.simulate(DAYS, f"queues:queue=short: estimate=500,queue=long{colon}") for colon in (":", "")
    )
    assert with_colon.columns == without.columns


def test_python_and_sweeps_take_them() -> None:
    assert aucsched.simulate(DAYS, "slack:factor=0.2").settings == {"slack": 0.2}
    found = aucsched.sweep(DAYS, policy=["slack:factor=0.2", "easy"]).columns
    assert (found["policy"], found["slack"]) == (["slack:factor=0.2", "easy"], [0.2, None])
    with pytest.raises(aucsched.OptionError, match=r"^slack: policy slack:factor=1 says it"):
        aucsched.sweep(DAYS, policy="slack:factor=1", slack=2)
    with pytest.raises(aucsched.OptionError, match="slack: the policy's name says it, too"):
        aucsched.simulate(DAYS, "slack:factor=1", slack=2)


def test_help_names_the_policies_of_nodes() -> None:
    assert tuple(NODE_POLICIES) == ON_NODES


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("slack:factor", "slack:factor: a parameter needs a value: slack:factor=VALUE"),
        ("slack:", "slack:: a parameter needs a value: slack:NAME=VALUE"),
        ("slack:factor=-3", "slack:factor: -3 is below 0"),
    ],
)
def test_a_parameter_without_a_usable_value_is_refused(
    policy: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, line = said(capsys, DAYS, "--policy", policy, code=2)
    assert line == f"aucsched: Invalid value for '--policy': {why}\n"


def test_policies_by_commas_and_by_options_are_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    commas, options = (
        json.loads(said(capsys, DAYS, *words, "--format", "json")[0])["runs"]
        for words in (("--policy", "fcfs,easy"), ("--policy", "fcfs", "--policy", "easy"))
    )
    assert [run["policy"] for run in options] == ["fcfs", "easy"]
    assert [run["metrics"] for run in commas] == [run["metrics"] for run in options]


def test_a_policy_of_ones_own_may_stand_in_a_module_called_like_ours() -> None:
    assert policy_with_parameters("easy:Mine") == ("easy:Mine", {})
