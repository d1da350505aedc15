"""Text for people: content of files is printed literally; a narrow terminal drops columns.

No text breaks within a name.
"""

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from ..cluster.text import escaped

#: Width of text that goes to a file or a pipe (characters).
PLAIN_WIDTH = 150


class LiteralConsole(Console):
    """A console that shows ``[/x]``, ``:bell:`` and escape sequences as text, and obeys none."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text with hidden characters as escapes, before anything takes its width."""
        return super().render_str(escaped(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield what is printed."""
        if isinstance(renderable, Text) and (shown := escaped(renderable.plain)) != renderable.plain:
            renderable = Text(shown, style=renderable.style, end=renderable.end)
        return super().render(renderable, options)


def plain_text(render: Callable[[Console], None]) -> str:
    """Return what is printed to a file or a pipe."""
    text = io.StringIO()
    render(LiteralConsole(file=text, width=PLAIN_WIDTH))
    lines = text.getvalue().removesuffix("\n").split("\n")
    return "".join(f"{line.rstrip()}\n" for line in lines)


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
        """Return the text in lines of at most ``width`` characters, or of one longer piece."""
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
        name: its head, of several lines where it has line feeds.
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


#: Metrics of runs: head, factor, digits behind the point, place in the order in which they leave.
FIGURES = {
    "priority": ("priority", 1.0, 0, 0),
    "gap": ("gap %", 100.0, 2, 0),
    "wait_mean_s": ("mean\nwait (s)", 1.0, 0, 0),
    "wait_interval_s": ("95 % (s)", 1.0, 0, 1),
    "wait_max_s": ("longest\nwait (s)", 1.0, 0, 0),
    "bounded_slowdown_mean": ("bounded\nslowdown", 1.0, 2, 0),
    "bounded_slowdown_interval": ("95 %", 1.0, 1, 5),
    "cpu_utilization": ("CPU %", 100.0, 1, 4),
    "gpu_utilization": ("GPU %", 100.0, 1, 3),
    "makespan_s": ("makespan\n(h)", 1 / 3600, 1, 2),
    "seconds.run": ("run (s)", 1.0, 2, 1),
    "unstarted": ("never\nstart", 1.0, 0, 0),
}


def _figure(metric: str, by: float, digits: int, row: Mapping[str, Any]) -> str:
    value = row.get(metric)
    ends = value if isinstance(value, tuple) else (value,)
    return " to ".join("-" if end is None else f"{end * by:.{digits}f}" for end in ends)


def figure_columns(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[Column]:
    """Return the columns of runs: what they differ in, and the metrics that one of them has."""
    return [Column(name, itemgetter(name), is_text=True) for name in names] + [
        Column(head, partial(_figure, metric, by, digits), is_right=True, leaves=leaves)
        for metric, (head, by, digits, leaves) in FIGURES.items()
        if any(row.get(metric) is not None for row in rows)
    ]


def table_of(
    title: str,
    columns: Sequence[Column],
    entries: Iterable[Any],
    console: Console,
    more: Mapping[str, str] | None = None,
    rest: str = "--format json",
) -> Group:
    """Return a table as wide as the console at most, if need be without the columns that may leave.

    A line below names those that left. ``more`` has the texts of a last row about entries that are
    not listed, by column. ``rest`` is what has all columns.
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
    left = [one.name.replace("\n", " ") for place, one in enumerate(columns) if place not in shown]
    table = Table(box=None, pad_edge=False, header_style="bold")
    cells = [[row[place] for row in rows] for place in shown]
    wide = _widths([columns[place] for place in shown], [widths[place] for place in shown], cells, console)
    for place, width in zip(shown, wide, strict=True):
        column = columns[place]
        table.add_column(
            column.name, justify="right" if column.is_right else "left", overflow="fold", width=width
        )
    for row in rows:
        table.add_row(*(Wrapped(row[place]) if columns[place].is_text else row[place] for place in shown))
    named = [Text(title, style="italic")] if title else []
    note = f"left out at this width: {', '.join(left)}; {rest} has all"
    return Group(*named, table, *([Text(note)] if left else []))


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
        return max(map(len, (*column.name.split("\n"), *shown)))
    wanted = max(map(len, shown), default=0)
    return max(longest_piece(column.name), max(map(longest_piece, shown), default=0), min(wanted, _FEW_WORDS))
