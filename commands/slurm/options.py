"""Options that the commands beside a live Slurm share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

licence_option = click.option(
    "--license",
    "licence",
    metavar="NAME",
    default="auction",
    show_default=True,
    help="The licence that keeps jobs behind the gate.",
)

interval_option = click.option(
    "--interval",
    type=click.FloatRange(min=0.1, max=86400),
    default=30,
    show_default=True,
    metavar="SECONDS",
    help="From the beginning of one pass to that of the next.",
)
metrics_option = click.option(
    "--metrics",
    metavar="ADDRESS:PORT",
    help="Answer Prometheus there, on a loopback address: 127.0.0.1:9123.",
)
_PASSES = (
    click.option("--passes", type=click.IntRange(1), help="Stop after so many passes  [default: go on]"),
    click.option("--once", is_flag=True, help="Make one pass; a failure is the command's."),
)


def passes_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--passes`` and ``--once``."""
    for option in reversed(_PASSES):
        command = option(command)
    return command
