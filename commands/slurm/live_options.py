"""Options that the commands beside a live Slurm share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ...cluster.errors import OptionError

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
forecasts_option = click.option(
    "--forecasts",
    is_flag=True,
    default=False,
    help="Forecast each new job's start: P10, P50 and P90 in the log, how good they were in the metrics.",
)
metrics_option = click.option(
    "--metrics",
    metavar="ADDRESS:PORT",
    help="Answer Prometheus there, on a loopback address: 127.0.0.1:9123.",
)


def _removed(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    """Refuse an option of version 0.1 that has no successor."""
    del context
    if value is not None:
        raise OptionError(f"{parameter.opts[0]}: removed in 0.2; scontrol makes every change of a job")


def no_rest_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse ``--rest`` and ``--rest-token``: changes by slurmrestd saved no time (decision 86)."""
    for flag in ("--rest", "--rest-token"):
        command = click.option(flag, hidden=True, expose_value=False, callback=_removed)(command)
    return command


def say_unknown_release() -> None:
    """Say that this Slurm is newer than any whose answers are known, where it is."""
    from ...slurm.answers.live import release_here
    from ..outputs import note

    release = release_here()
    if release is not None and release.is_newer:
        note(release.warning)


_PASSES = (
    click.option("--passes", type=click.IntRange(1), help="Stop after so many passes  [default: go on]"),
    click.option("--once", is_flag=True, help="Make one pass; a failure is the command's."),
)


def passes_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--passes`` and ``--once``."""
    for option in reversed(_PASSES):
        command = option(command)
    return command


_LOG = (
    click.option(
        "--rotate-mib",
        type=click.FloatRange(min=0.001),
        default=64,
        show_default=True,
        help="Put a log of this size aside as LOG.1, an older one as LOG.2, and so on.",
    ),
    click.option(
        "--keep", type=click.IntRange(0), default=14, show_default=True, help="Logs put aside that are kept."
    ),
)


def log_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--rotate-mib`` and ``--keep``."""
    for option in reversed(_LOG):
        command = option(command)
    return command


gate_for_option = click.option(
    "--gate-for",
    metavar="SECONDS",
    type=click.IntRange(10),
    default=120,
    show_default=True,
    help="The gate ends so long after the last pass: Slurm starts the jobs itself.",
)
