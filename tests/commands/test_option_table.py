"""One table of options: what the engine, the commands and the reference page take is what stands there."""

from __future__ import annotations

from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import Any

import click
import pytest

from aucsched import OptionError, schedule
from aucsched.auction.options import MODELS, PRESETS, StepOptions
from aucsched.bidgen.generate import BID_ORDERS
from aucsched.cli import cli
from aucsched.cluster.option_table import (
    OPTIONS,
    OPTIONS_BY_NAME,
    SIMULATE,
    STEP,
    SWEEP,
    WINNERS,
    Option,
    read_by,
)
from aucsched.commands.option_page import page
from aucsched.models.preference import PREFERENCE_TABLES
from aucsched.sweeps.axes import AXES

#: The engine resolves these from others when they are asked for.
RESOLVED = {"max_bids", "max_bids_per_job", "work_limit", "part_nodes", "strategy", "promise"}


def parameters(name: str) -> dict[str, click.Option]:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return {str(one.name): one for one in command.params if isinstance(one, click.Option)}


def test_choices_are_what_the_engine_knows() -> None:
    assert OPTIONS_BY_NAME["model"].choices == MODELS
    assert OPTIONS_BY_NAME["preset"].choices == tuple(PRESETS)
    assert set(OPTIONS_BY_NAME["preference_table"].choices) == set(PREFERENCE_TABLES)
    assert set(OPTIONS_BY_NAME["bid_order"].choices) == set(BID_ORDERS)


def test_a_step_has_these_options_and_no_others() -> None:
    names = {option.name for option in read_by(STEP)}
    assert names == {one.name for one in fields(StepOptions)} - {"export", "clock", "began"} | {"preset"}
    assert names == set(signature(schedule).parameters) - {"snapshot", "export", "clock"}


@pytest.mark.parametrize(
    "option", [one for one in read_by(STEP) if one.name != "preset"], ids=lambda one: one.name
)
def test_defaults_are_the_engine_s(option: Option) -> None:
    value = getattr(StepOptions(), option.name)
    assert value is None if option.name in RESOLVED else value == option.default
    caps = StepOptions().bids_in_all, StepOptions().bids_per_job
    assert [str(cap) in str(OPTIONS_BY_NAME[name].default) for cap, name in zip(caps, CAPS, strict=True)]


CAPS = ("max_bids", "max_bids_per_job")


@pytest.mark.parametrize("command", ["schedule", "explain", "compare"])
def test_commands_over_a_snapshot_take_all_of_them(command: str) -> None:
    taken = parameters(command)
    for option in read_by(STEP):
        assert option.flag in taken[option.name].opts
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
    assert shown == page(), "python -m aucsched.commands.option_page > docs/options.md"
