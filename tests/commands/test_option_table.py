"""One table of options: what the engine, the commands and the reference page take is what stands there."""

from __future__ import annotations

import ast
from dataclasses import dataclass, fields
from inspect import signature
from math import inf, nan
from pathlib import Path
from typing import Any

import click
import pytest
from reference import options_page, row_of

from aucsched import OptionError, schedule
from aucsched.auction.options import MODELS, PRESETS, StepOptions
from aucsched.cli import cli
from aucsched.cluster.keywords import checked
from aucsched.cluster.option_fields import Option, options_in
from aucsched.cluster.option_table import (
    OPTIONS,
    OPTIONS_BY_NAME,
    PAPERS,
    SIMULATE,
    STEP,
    SWEEP,
    WINNERS,
    StepKeywords,
    read_by,
)
from aucsched.commands.built_options import FilePath, NumberRange, click_option
from aucsched.models.auction_model import PREFERENCE_TABLES
from aucsched.simulation.nodes.node_policies import NodeOptions
from aucsched.simulation.nodes.node_policies import step_options as node_step_options
from aucsched.sweeps.axes import AXES, axis_of

#: The engine resolves these from others when they are asked for.
RESOLVED = {
    *("max_bids", "max_bids_per_job", "work_limit", "time_limit_s", "part_nodes", "strategy", "promise"),
    *("reserve", "on_timeout", "search_parameters", "keep_whole"),
}


def parameters(name: str) -> dict[str, click.Option]:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return {str(one.name): one for one in command.params if isinstance(one, click.Option)}


def test_choices_are_what_the_engine_knows() -> None:
    assert OPTIONS_BY_NAME["model"].choices == MODELS
    assert OPTIONS_BY_NAME["preset"].choices == tuple(PRESETS)
    assert set(OPTIONS_BY_NAME["preference_table"].choices) == set(PREFERENCE_TABLES)
    assert set(OPTIONS_BY_NAME["bid_order"].choices) == {"spec", "figure-4.5"}


def test_a_step_has_these_options_and_no_others() -> None:
    names = {option.name for option in read_by(STEP)}
    assert names == {one.name for one in fields(StepOptions)} - {"export", "clock", "began"} | {"preset"}
    assert names == set(signature(schedule).parameters) - {"snapshot", "export", "clock", "window_from"}


def names_in(source: Path) -> set[str]:
    """Return what a source names: variables, members, keywords, and texts that are nothing else."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        match node:
            case (
                ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name))
            ):
                found.add(name)
            case ast.Constant(value=str(name)):
                found.add(name)
    return found


ROOT = Path(__file__).parents[2]
#: What only passes options on: each file with the names that stand in it.
ADAPTERS = {
    path.relative_to(ROOT).as_posix(): names_in(path)
    for room in ("api", "cluster", "commands", "reports", "sweeps")
    for path in (ROOT / room).rglob("*.py")
}
#: Options that are read in few places and whose names mean nothing else.
PLAIN = (
    *("award_alone", "bid_order", "max_bids", "max_bids_per_job", "on_timeout", "part_nodes"),
    *("preference_table", "window_from"),
)
#: Lines in adapters that read one: columns and charts of sweeps, caps of the benchmarks' instances, a file.
READ = {
    "max_bids": {"sweeps/results.py", "commands/examples.py"},
    "max_bids_per_job": {"sweeps/results.py", "commands/examples.py"},
    "window_from": {"commands/schedule.py"},
}


@pytest.mark.parametrize("name", PLAIN)
def test_an_option_stands_in_its_field_and_where_it_is_read(name: str) -> None:
    found = {path for path, names in ADAPTERS.items() if name in names}
    assert found == {"cluster/option_table.py"} | READ.get(name, set())


def test_two_options_in_the_whole_package() -> None:
    rooms = [path for path in ROOT.iterdir() if (path / "__init__.py").exists() and path.name != "tests"]
    every = {
        path.relative_to(ROOT).as_posix(): names_in(path) for room in rooms for path in room.rglob("*.py")
    }
    assert {path for path, names in every.items() if "part_nodes" in names} == {
        "cluster/option_table.py",
        "auction/options.py",
    }
    # auction/options.py refuses what cannot go with it, decide.py does it.
    assert {path for path, names in every.items() if "award_alone" in names} == {
        "cluster/option_table.py",
        "auction/options.py",
        "auction/decide.py",
    }


@dataclass(kw_only=True)
class WithNew(StepKeywords):
    """A record with an option that there is not."""

    patience: Option[int] = Option("Passes that a job waits.", default=3, low=1, readers=(STEP, SWEEP))


def test_a_field_is_all_that_an_option_needs() -> None:
    new = options_in(WithNew)["patience"]
    made = click_option(new, STEP)(click.command()(lambda **_: None))
    one = made.params[-1]
    assert (one.opts, one.help) == (["--patience"], "Passes that a job waits. Default: 3.")
    assert axis_of(new).values("1,2") == (1, 2)
    assert checked({"patience": 4}, WithNew, "schedule") == {"patience": 4}
    with pytest.raises(OptionError, match="patience: 'x' is not an integer"):
        checked({"patience": "x"}, WithNew, "schedule")
    assert (WithNew().patience, WithNew(patience=5).patience) == (3, 5)
    assert row_of(new).startswith("| `--patience` Passes that a job waits. | from 1 | 3 |")


@pytest.mark.parametrize(
    "option", [one for one in read_by(STEP) if one.name != "preset"], ids=lambda one: one.name
)
def test_defaults_are_the_engine_s(option: Option[Any]) -> None:
    value = getattr(StepOptions(), option.name)
    assert value is None if option.name in RESOLVED else value == option.default
    plain = StepOptions()
    resolved = {
        "work_limit": plain.most_work,
        "time_limit_s": plain.most_s,
        "part_nodes": plain.nodes_of_a_part,
        "reserve": plain.reservations,
    }
    assert resolved.get(option.name, option.default) == option.default
    assert str(option.default).startswith(
        {"promise": plain.chosen_promise, "on_timeout": "halve"}.get(option.name, "")
    )
    caps = StepOptions().bids_in_all, StepOptions().bids_per_job
    assert [str(cap) in str(OPTIONS_BY_NAME[name].default) for cap, name in zip(caps, CAPS, strict=True)]


CAPS = ("max_bids", "max_bids_per_job")


@pytest.mark.parametrize("command", ["schedule", "explain", "compare"])
def test_commands_over_a_snapshot_take_all_of_them(command: str) -> None:
    taken = parameters(command)
    for option in read_by(STEP):
        assert option.flag in taken[option.name].opts
        section = taken[option.name].__dict__["section"]
        assert section == ("The auction of the papers" if option.name in PAPERS else "The auction")
        if option.choices:
            assert tuple(getattr(taken[option.name].type, "choices", ())) == option.choices


def test_winners_takes_its_own() -> None:
    assert {option.name for option in read_by(WINNERS)} <= set(parameters("winners"))


def test_simulations_and_sweeps_take_theirs() -> None:
    assert {option.name for option in read_by(SIMULATE)} <= set(parameters("simulate"))
    assert {option.name for option in read_by(SWEEP)} - {"seed"} <= set(AXES)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[(one.name, "nonsense") for one in OPTIONS if one.choices and one.name != "preset"],
        *[(one.name, -1) for one in read_by(STEP) if one.is_number],
        *[(one.name, True) for one in read_by(STEP) if one.is_number],
        *[(one.name, int(one.high) + 1) for one in read_by(STEP) if one.high is not None],
    ],
)
def test_values_beyond_the_table_are_refused(name: str, value: Any) -> None:
    with pytest.raises(OptionError, match=f"^{name}: "):
        StepOptions(**{name: value})


def test_the_reference_is_made_from_it() -> None:
    shown = (Path(__file__).parents[2] / "docs" / "options.md").read_text(encoding="utf-8")
    assert shown == options_page(), "python .ci/reference.py"


#: Commands that decide about a queue: one default each, whoever asks.
DECIDING = ("schedule", "explain", "compare", "slurm shadow", "slurm run")


@pytest.mark.parametrize("command", DECIDING)
def test_no_command_about_a_queue_has_a_default_of_its_own(command: str) -> None:
    found: click.Command = cli
    for word in command.split():
        assert isinstance(found, click.Group)
        named = found.get_command(click.Context(found), word)
        assert named is not None
        found = named
    taken = {one.name: one for one in found.params if isinstance(one, click.Option)}
    defaults = {one.name: taken[one.name].to_info_dict()["default"] for one in read_by(STEP)}
    assert {name: value for name, value in defaults.items() if value is not None} == {}
    said = [taken[one.name].help or "" for one in read_by(STEP)]
    assert said == [parameters("schedule")[one.name].help for one in read_by(STEP)]


@pytest.mark.parametrize("policy", MODELS)
def test_a_simulation_s_step_has_the_defaults_of_a_step_but_no_clock(policy: str) -> None:
    step, plain = node_step_options(NodeOptions(policy=policy)), StepOptions(model=policy)  # type: ignore[arg-type]
    for name in ("chosen_strategy", "chosen_promise", "reservations", "most_work", "window", "objective"):
        assert getattr(step, name) == getattr(plain, name)
    assert (step.most_s, plain.most_s) == (None, 3.0)


@pytest.mark.parametrize(
    ("given", "promise", "reserved"),
    [
        ({}, "backfill", 1),
        ({"reserve": 4}, "backfill", 4),
        ({"reserve": 0}, "none", 0),
        ({"objective": "response"}, "auto", 0),
        ({"objective": "response", "reserve": 2}, "auto", 2),
        ({"objective": "priority_cores"}, "none", 1),
        ({"balance": True}, "none", 1),
        ({"award_alone": True}, "none", 1),
        ({"weights": "paper"}, "none", 1),
        ({"bid_order": "figure-4.5"}, "none", 1),
        ({"promise": "plan"}, "plan", 1),
    ],
)
def test_one_rule_says_the_promise_and_the_reservations(given: Any, promise: str, reserved: int) -> None:
    step = StepOptions(**given)
    played = node_step_options(NodeOptions(policy="aucsched3", **given))
    for one in (step, played):
        assert (one.chosen_promise, one.reservations) == (promise, reserved)


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        ({}, "halve"),
        ({"work_limit": 7}, "incumbent"),
        ({"work_limit": 7, "time_limit_s": 5.0}, "halve"),
        ({"work_limit": 7, "strategy": "exact"}, "halve"),
        ({"work_limit": 7, "on_timeout": "discard"}, "discard"),
    ],
)
def test_what_a_limit_leads_to_is_what_the_help_says(given: Any, chosen: str) -> None:
    assert StepOptions(**given).chosen_on_timeout == chosen
    played = {name: value for name, value in given.items() if name != "time_limit_s"}
    step = node_step_options(NodeOptions(policy="aucsched3", **played))
    # No clock ends a simulation's pass.
    assert step.chosen_on_timeout == ("incumbent" if step.is_anytime and chosen != "discard" else chosen)
    said = (
        "halve; the default work limit is no such limit. With --work-limit and no --time-limit, and in "
        "simulations: incumbent if the strategy is anytime."
    )
    assert str(OPTIONS_BY_NAME["on_timeout"].default).startswith(said)


@pytest.mark.parametrize(
    ("given", "work", "seconds"),
    [
        ({}, 20, 3.0),
        ({"time_limit_s": 5.0}, None, 5.0),
        ({"work_limit": 7}, 7, None),
        ({"work_limit": 7, "time_limit_s": 5.0}, 7, 5.0),
        ({"strategy": "greedy"}, None, None),
    ],
)
def test_a_limit_that_is_given_is_the_limit(given: Any, work: int | None, seconds: float | None) -> None:
    step = StepOptions(**given)
    assert (step.most_work, step.most_s) == (work, seconds)


def test_a_loop_s_log_and_lock_are_written_in_place() -> None:
    """What says so is the option's type: no list of names."""
    slurm = cli.get_command(click.Context(cli), "slurm")
    assert isinstance(slurm, click.Group)
    in_place = {
        (name, one.name)
        for name in ("run", "shadow")
        for one in getattr(slurm.get_command(click.Context(slurm), name), "params", ())
        if isinstance(one.type, FilePath) and one.type.in_place
    }
    assert in_place == {("run", "log"), ("run", "lock"), ("shadow", "log")}


def test_no_command_takes_nan_or_an_infinity_without_meaning_for_a_number() -> None:
    def parameters(command: click.Command) -> list[click.Parameter]:
        if not isinstance(command, click.Group):
            return command.params
        context = click.Context(command)
        below = [command.get_command(context, name) for name in command.list_commands(context)]
        return [one for each in below if each is not None for one in parameters(each)]

    ranges = {one.opts[0]: one.type for one in parameters(cli) if isinstance(one.type, click.FloatRange)}
    assert {"--hours", "--job-overhead", "--load"} <= ranges.keys()
    assert [name for name, kind in ranges.items() if not isinstance(kind, NumberRange)] == []
    for option, number in (("--hours", nan), ("--wait", inf), ("--wait", nan)):
        with pytest.raises(click.BadParameter, match=f"{number} is not a number"):
            ranges[option].convert(number, None, None)
    assert ranges["--release-unused"].convert(inf, None, None) == inf
