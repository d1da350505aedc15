"""Options that the commands beside a live Slurm share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...cluster.errors import OptionError
from ..outputs import OUTPUT

if TYPE_CHECKING:
    from ...live.rest.server import Server

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
_REST = (
    click.option(
        "--rest",
        metavar="ADDRESS",
        help="slurmrestd that changes jobs, unix:/PATH or http(s)://HOST:PORT; scontrol does the rest.",
    ),
    click.option(
        "--rest-token",
        type=OUTPUT,
        metavar="FILE",
        help="File of slurmrestd's token, read anew each pass  [default: SLURM_JWT of the environment]",
    ),
)


def rest_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--rest`` and ``--rest-token``."""
    for option in reversed(_REST):
        command = option(command)
    return command


def rest_server(address: str | None, token: Path | None) -> Server | None:
    """Return the slurmrestd of the options, None where none is given.

    Raises:
        OptionError: the address is none, or stands without a token that it needs.
        InputError: the token cannot be read.
    """
    if address is None:
        if token is not None:
            raise OptionError("--rest-token stands without --rest")
        return None
    from ...live.rest.server import Server, read_address, token_of

    at = read_address(address)
    return Server(at, token_of(at, token))


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
