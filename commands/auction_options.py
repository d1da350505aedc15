"""What the commands that look at a snapshot share: options of the auction, and where the answer goes."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from ..auction.options import StepOptions

_Decorated = Callable[..., Any]

#: A path for the sake of completion; whether it can be read, reading it tells.
_ANY_PATH = click.Path(allow_dash=True, readable=False)

snapshot_argument = click.argument("snapshot", metavar="SNAPSHOT", type=_ANY_PATH)

_AUCTION = (
    click.option(
        "--model",
        type=click.Choice(["ipsched", "aucsched1", "aucsched2", "aucsched3"]),
        help="Which auction; default: aucsched3.",
    ),
    click.option(
        "--preset",
        type=click.Choice(["paper", "plugin"]),
        help="Values of the papers or their plugins; options given beside it stand.",
    ),
    click.option("--window", type=int, help="Jobs of highest priority that take part; default: 100."),
    click.option("--max-bids", type=int, help="Bids of all jobs together; default: the model's."),
    click.option("--max-bids-per-job", type=int, help="Bids of one job; default: the model's."),
    click.option(
        "--strategy",
        type=click.Choice(["exact", "anytime", "greedy"]),
        help="HiGHS at once; search, then HiGHS (default where the model has it); greedy awards.",
    ),
    click.option(
        "--balance/--no-balance",
        default=None,
        help="Keep what runs in the proportions of what waits, shape by shape; --window is then 400.",
    ),
    click.option("--time-limit", "time_limit_s", type=float, help="Seconds of the whole step; default: 3."),
    click.option(
        "--work-limit",
        type=int,
        help="Instead of seconds, the same on every machine: steps of the search; nodes of an exact solve.",
    ),
    click.option(
        "--part-nodes",
        type=int,
        help="Search a cluster of more nodes in parts of at most so many; default: 20000.",
    ),
    click.option(
        "--on-timeout",
        type=click.Choice(["halve", "incumbent", "discard"]),
        help="When time is up without a proof: halve the next window (default), keep it, or start nothing.",
    ),
    click.option(
        "--weights",
        type=click.Choice(["lexicographic", "paper"]),
        help="Priorities exactly before preference (default), or the papers' weighted sum.",
    ),
    click.option(
        "--objective",
        type=click.Choice(["priority", "priority_cores"]),
        help="What a started job is worth; default: priority.",
    ),
    click.option(
        "--reserve",
        type=int,
        help="Reserve for so many of the first blocked jobs: nothing that delays them starts; default: 0.",
    ),
    click.option("--seed", type=int, help="The solver's random seed; default: 0."),
)
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
