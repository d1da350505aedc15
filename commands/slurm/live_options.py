"""Options that the commands beside a live Slurm share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from ...cluster.errors import OptionError
from ...cluster.option_fields import Option

licence_option = click.option(
    "--license",
    "licence",
    metavar="NAME",
    default="auction",
    show_default=True,
    help="The licence that keeps jobs behind the gate.",
)


@dataclass(kw_only=True)
class LoopOptions:
    """How often a loop looks, and what it keeps of that."""

    passes: Option[int | None] = Option("Stop after so many passes  [default: go on]", low=1)
    once: Option[bool] = Option("Make one pass; a failure is the command's.", default=False)
    rotate_mib: Option[float] = Option(
        "Put a log of this size aside as LOG.1, an older one as LOG.2, and so on.",
        default=64,
        low=0.001,
        includes_low=True,
    )
    keep: Option[int] = Option("Logs put aside that are kept.", default=14, low=0)
    metrics: Option[str | None] = Option(
        "Answer Prometheus there, on a loopback address: 127.0.0.1:9123.", unit="ADDRESS:PORT"
    )
    forecasts: Option[bool] = Option(
        "Forecast each new job's start: P10, P50 and P90 in the log, how good they were in the metrics.",
        default=False,
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
