"""Click's options, made from the table of options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ..cluster.option_table import StepOption

_Decorated = Callable[..., Any]


def click_option(option: StepOption, reader: str, *, before: str = "", ranges: bool = False) -> _Decorated:
    """Return an option as a command takes it; not given it is None.

    Args:
        option: of the table.
        reader: whose default ``--help`` names.
        before: said before its help.
        ranges: refuse numbers beyond its range at once, naming the option as it was typed.
    """
    default = option.default_of(reader)
    ending = "" if default is None else f" Default: {default}."
    text = f"{before}{option.help}{ending}"
    if option.is_switch:
        name = f"{option.flag}/--no-{option.flag.removeprefix('--')}"
        return click.option(name, option.name, default=None, help=text)
    return click.option(
        option.flag, option.name, type=_type(option, ranges=ranges), metavar=option.unit or None, help=text
    )


def _type(option: StepOption, *, ranges: bool) -> Any:
    if option.choices:
        return click.Choice(list(option.choices))
    if not option.is_number:
        return None
    if not option.is_whole:
        return click.FloatRange(option.low, option.high, min_open=True) if ranges else float
    if not ranges:
        return int
    high = None if option.high is None else int(option.high)
    return click.IntRange(int(option.low or 0), high)
