"""Options shared by the commands over snapshots: those of the auction and of the output."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from ..cluster.option_table import LIVE, OPTIONS_BY_NAME, STEP, read_by
from .built_options import click_option

if TYPE_CHECKING:
    from rich.console import Console

    from ..auction.options import StepOptions

_Decorated = Callable[..., Any]

#: A path, for shell completion; errors are found when it is read.
_ANY_PATH = click.Path(allow_dash=True, readable=False)

snapshot_argument = click.argument("snapshot", metavar="SNAPSHOT", type=_ANY_PATH)


_AUCTION = tuple(click_option(option, STEP) for option in read_by(STEP))
_LIVE = tuple(click_option(option, LIVE) for option in read_by(STEP))
_OUTPUT = (
    click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True),
    click.option(
        "-o", "--output", type=_ANY_PATH, default="-", help="File to write instead of standard output."
    ),
)


def auction_options(command: _Decorated) -> _Decorated:
    """Add the options of the auction; those not given are None."""
    for option in reversed(_AUCTION):
        command = option(command)
    return command


def live_options(command: _Decorated) -> _Decorated:
    """Add the options of the auction as the loops beside a live Slurm take them; those not given are None."""
    for option in reversed(_LIVE):
        command = option(command)
    return command


top_option = click.option(
    "--top", type=click.IntRange(1), help="Rows of each table at most; the rest are counted."
)


def output_options(command: _Decorated) -> _Decorated:
    """Add ``--format`` and ``-o``."""
    for option in reversed(_OUTPUT):
        command = option(command)
    return command


def step_options(given: Mapping[str, Any]) -> StepOptions:
    """Return the auction's options from a command's, of which those not given are None.

    Raises:
        OptionError: a value cannot be used.
    """
    from ..auction.options import options_with_preset

    explicit = {name: value for name, value in given.items() if name != "preset" and value is not None}
    return options_with_preset(given.get("preset"), explicit)


def live_step_options(given: Mapping[str, Any]) -> StepOptions:
    """Return the auction's options of a loop beside a live Slurm: some defaults are its own.

    Raises:
        OptionError: a value cannot be used.
    """
    own = {
        name: option.other_defaults[LIVE]
        for name, option in OPTIONS_BY_NAME.items()
        if LIVE in option.other_defaults and given.get(name) is None
    }
    return step_options({**given, **own})


def write_rich(output: str, render: Callable[[Console], None]) -> None:
    """Print to the terminal in its width and colours; to a file or a pipe as plain text."""
    from ..auction.render.console import PLAIN_WIDTH, LiteralConsole
    from ..formats.native.write import write_text

    if output == "-" and sys.stdout.isatty():
        render(LiteralConsole())
        return
    text = io.StringIO()
    render(LiteralConsole(file=text, width=PLAIN_WIDTH))
    lines = text.getvalue().removesuffix("\n").split("\n")
    write_text(output, "".join(f"{line.rstrip()}\n" for line in lines))


def write_json(output: str, document: Any) -> None:
    """Write a document as JSON, two blanks a level."""
    import msgspec

    from ..formats.native.write import write_text

    write_text(output, msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n")
