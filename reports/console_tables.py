"""Text for people: content of files is printed literally; columns leave where the terminal is narrow.

No text breaks within a name.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from ..cluster.text import escaped

#: Width of text that goes to a file or a pipe (characters).
PLAIN_WIDTH = 150


class LiteralConsole(Console):
    """A console on which ``[/x]`` and ``:bell:`` are letters and escape sequences are seen, not obeyed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text with its hidden characters as escapes, before anything is made as wide as it."""
        return super().render_str(escaped(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield what is printed."""
        if isinstance(renderable, Text) and (shown := escaped(renderable.plain)) != renderable.plain:
            renderable = Text(shown, style=renderable.style, end=renderable.end)
        return super().render(renderable, options)


#: What stands together on a line: a word, or a part of a hostlist up to its comma.
_PIECE = re.compile(r"[^\s,]*,\s?|[^\s,]+\s?|\s")
_GAP = 2
#: A column of text is no narrower than this, where its texts are as long.
_FEW_WORDS = 24


class Wrapped:
    """A text that is broken after blanks and commas only, however narrow its column."""

    def __init__(self, text: str) -> None:
        self.text = escaped(text)

    def lines(self, width: int) -> list[str]:
        """Return the text in lines of at most ``width`` characters, or of one piece that is longer."""
        lines = [""]
        for piece in _PIECE.findall(self.text):
            if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > width:
                lines[-1] = lines[-1].rstrip()
                lines.append("")
            lines[-1] += piece
        return [*lines[:-1], lines[-1].rstrip()]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.lines(options.max_width):
            yield Segment(line)
            yield Segment.line()

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(longest_piece(self.text), max(1, len(self.text)))


def longest_piece(text: str) -> int:
    """Return how wide a column must be for a text not to be broken within a name."""
    return max((len(piece.rstrip()) for piece in _PIECE.findall(text)), default=1) or 1


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: its head.
        cell: what stands in it of an entry; nothing for None.
        is_right: its cells end at the right: numbers.
        is_text: its cells are wrapped.
        leaves: 0: it always stands; else the order in which it leaves where the table is too wide.
    """

    name: str
    cell: Callable[[Any], object]
    is_right: bool = False
    is_text: bool = False
    leaves: int = 0


def and_more(name: str, count: int) -> dict[str, str]:
    """Return how a table ends that does not list so many entries, said in one of its columns."""
    return {name: f"{count} more"} if count > 0 else {}


def table_of(
    title: str,
    columns: Sequence[Column],
    entries: Iterable[Any],
    console: Console,
    more: Mapping[str, str] | None = None,
) -> Table:
    """Return a table as wide as the console at most, if need be without the columns that may leave.

    ``more`` has the texts of a last row about entries that are not listed, by column.
    """
    cells_of = [[column.cell(one) for column in columns] for one in entries]
    rows = [["" if cell is None else str(cell) for cell in row] for row in cells_of]
    if more:
        rows.append(["…", *(more.get(column.name, "") for column in columns[1:])])
    shown = list(range(len(columns)))
    leaving = sorted((place for place in shown if columns[place].leaves), key=lambda one: columns[one].leaves)
    widths = [_least(column, [row[place] for row in rows]) for place, column in enumerate(columns)]
    while leaving and sum(widths[place] + _GAP for place in shown) - _GAP > console.width:
        shown.remove(leaving.pop(0))
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False, header_style="bold")
    cells = [[row[place] for row in rows] for place in shown]
    wide = _widths([columns[place] for place in shown], [widths[place] for place in shown], cells, console)
    for place, width in zip(shown, wide, strict=True):
        column = columns[place]
        table.add_column(
            column.name, justify="right" if column.is_right else "left", overflow="fold", width=width
        )
    for row in rows:
        table.add_row(*(Wrapped(row[place]) if columns[place].is_text else row[place] for place in shown))
    return table


def _widths(
    columns: Sequence[Column], least: Sequence[int], cells: Sequence[Sequence[str]], console: Console
) -> list[int]:
    """Return the columns' widths: numbers keep theirs, texts share what the others leave."""
    widths = list(least)
    left = console.width - sum(widths) - _GAP * (len(columns) - 1)
    names = [place for place, column in enumerate(columns) if not column.is_right]
    while left < 0 and names and widths[widest := max(names, key=widths.__getitem__)] > 1:
        widths[widest] -= 1
        left += 1
    wanted = {
        place: max(map(len, (column.name, *map(escaped, cells[place])))) - widths[place]
        for place, column in enumerate(columns)
        if column.is_text
    }
    for share, (place, more) in zip(
        range(len(wanted), 0, -1), sorted(wanted.items(), key=lambda one: one[1]), strict=True
    ):
        given = max(0, min(more, left // share))
        widths[place] += given
        left -= given
    return [min(width, console.width) for width in widths]


def _least(column: Column, cells: Sequence[str]) -> int:
    """Return how wide a column is at least; texts that want more than a few words get as much."""
    shown = list(map(escaped, cells))
    if not column.is_text:
        return max(len(column.name), max(map(len, shown), default=0))
    wanted = max(map(len, shown), default=0)
    return max(longest_piece(column.name), max(map(longest_piece, shown), default=0), min(wanted, _FEW_WORDS))
