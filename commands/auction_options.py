"""Options shared by the commands over snapshots: those of the auction and of the output."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ..cluster.option_table import STEP, read_by
from .built_options import click_option, in_order, in_section

if TYPE_CHECKING:
    from rich.console import Console

    from ..auction.options import StepOptions

#: Numbers below have places behind the point in tables.
_SMALL = 10
#: A path, for shell completion; errors are found when it is read.
_ANY_PATH = click.Path(allow_dash=True, readable=False)

snapshot_argument = click.argument("snapshot", metavar="SNAPSHOT", type=_ANY_PATH)


#: The options of the auction; those not given are None.
auction_options = in_section(
    "The auction", *(click_option(option, STEP, ranges=False) for option in read_by(STEP))
)
text_output_option = click.option(
    "-o", "--output", type=_ANY_PATH, default="-", help="File to write instead of standard output."
)
#: ``--format`` and ``-o``.
output_options = in_order(
    [
        click.option(
            "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
        ),
        text_output_option,
    ]
)
top_option = click.option(
    "--top", type=click.IntRange(1), help="Rows of each table at most; the rest are counted."
)


def step_options(given: Mapping[str, Any]) -> StepOptions:
    """Return the auction's options from a command's, of which those not given are None.

    Raises:
        OptionError: a value cannot be used.
    """
    from ..auction.options import options_with_preset

    return options_with_preset(given)


def write_rich(output: str, render: Callable[[Console], None]) -> None:
    """Print to the terminal in its width and colours; to a file or a pipe as plain text."""
    from ..formats.native.write import write_text
    from ..reports.console_tables import PLAIN_WIDTH, LiteralConsole

    if output == "-" and sys.stdout.isatty():
        render(LiteralConsole())
        return
    text = io.StringIO()
    render(LiteralConsole(file=text, width=PLAIN_WIDTH))
    lines = text.getvalue().removesuffix("\n").split("\n")
    write_text(output, "".join(f"{line.rstrip()}\n" for line in lines))


def write_found(
    output: str, form: str, document: Callable[[], Any], render: Callable[[Console], None]
) -> None:
    """Write a result in the form that ``--format`` names: its document as JSON, or what people read."""
    if form == "json":
        write_json(output, document())
    else:
        write_rich(output, render)


def write_json(output: str, document: Any) -> None:
    """Write a document as JSON, two blanks a level."""
    import msgspec

    from ..formats.native.write import write_text

    write_text(output, msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n")


def print_table(
    console: Console, title: str, rows: Sequence[Mapping[str, Any]], top: int | None = None
) -> None:
    """Print rows as a table, the first ``top`` of them, and how many more there are."""
    from rich.table import Table

    shown = rows if top is None else rows[:top]
    table = Table(title=title, title_justify="left")
    for place, name in enumerate(rows[0] if rows else {}):
        table.add_column(name, justify="left" if place == 0 else "right")
    for row in shown:
        table.add_row(*map(_cell, row.values()))
    console.print(table)
    if len(shown) < len(rows):
        console.print(f"{len(rows) - len(shown)} more")


def _cell(value: Any) -> str:
    """Return a value for people: small numbers have places behind the point, seconds none."""
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3f}" if abs(value) < _SMALL else f"{value:.0f}"
