"""Where each node stands on the picture of a machine: leaf switches as rows, folded into columns of rows.

Pure geometry in units of a cell, one node each; nothing is drawn here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from ...bidgen.columns import FloatArray
from ...cluster.snapshot import Snapshot
from ...topology.tree import Topology, topology_of

#: Nodes of a row in the linear topology; a leaf with more than _WIDEST is folded into rows as long.
_ROW, _WIDEST = 32, 64
#: Cells are never larger, so that four nodes do not fill a page (inches).
_LARGEST_CELL_IN = 0.8
#: Most columns of rows that are tried.
_COLUMNS = 16
#: Space between columns and between switches' groups of rows, in cells.
_BETWEEN_COLUMNS, _BETWEEN_GROUPS = 1.0, 0.6
#: A label's letters: size as a part of a cell, greatest size, width of one as a part of its size.
LABEL_SIZE, LARGEST_LABEL_PT, LETTER = 0.68, 7.5, 0.62
_LONGEST_LABEL = 14
#: Cells at least so large have room for their node's name (inches).
_NAMED_CELL_IN = 0.3
_POINTS = 72


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A leaf switch, or a part of one: its label, the switch above it, its nodes' places in the snapshot."""

    label: str
    group: int
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Layout:
    """Where everything stands, in cells; y grows downwards.

    Attributes:
        x, y: upper left corner of each node's cell, shape (n,).
        labels: (x of its right end, y of its row's top, text) of each row.
        width, height: of the whole.
        cell_in: a cell's side, inches.
    """

    x: FloatArray
    y: FloatArray
    labels: tuple[tuple[float, float, str], ...]
    width: float
    height: float
    cell_in: float

    @property
    def named(self) -> bool:
        """Whether a cell has room for its node's name above what is drawn of it."""
        return self.cell_in >= _NAMED_CELL_IN


def layout_of(snapshot: Snapshot, width_in: float, height_in: float) -> Layout:
    """Return the layout with the largest cells that fits a page; a huge machine may exceed its height."""
    rows = _rows(snapshot, topology_of(snapshot))
    layouts = [_folded(rows, count, width_in) for count in range(1, min(_COLUMNS, len(rows)) + 1)]
    fitting = [one for one in layouts if one.height * one.cell_in <= height_in]
    if fitting:
        return max(fitting, key=lambda one: one.cell_in)
    return min(layouts, key=lambda one: one.height * one.cell_in)


def _rows(snapshot: Snapshot, topology: Topology) -> list[Row]:
    names = [node.name for node in snapshot.nodes]
    if topology.is_linear:
        return [Row(label=names[part[0]], group=0, nodes=part) for part in _parts(range(len(names)), _ROW)]
    rows: list[Row] = []
    leaf = topology.leaf
    for switch, members in groupby(topology.order.tolist(), key=lambda node: int(leaf[node])):
        nodes = tuple(members)
        path = topology.path[nodes[0]].tolist()
        above = [place for place in path if place != switch]
        parts = _parts(nodes, len(nodes) if len(nodes) <= _WIDEST else _ROW)
        for number, part in enumerate(parts):
            label = "" if number else topology.names[switch]
            rows.append(Row(label=label, group=above[-1] if above else -1, nodes=part))
    return rows


def _parts(nodes: Sequence[int], length: int) -> list[tuple[int, ...]]:
    return [tuple(nodes[start : start + length]) for start in range(0, len(nodes), length)]


def _folded(rows: list[Row], count: int, width_in: float) -> Layout:
    """Return the layout with ``count`` columns of rows."""
    labels = [_cut(row.label) for row in rows]
    longest = max(len(row.nodes) for row in rows)
    margin, cell = _margin_and_cell(max(map(len, labels)), longest, count, width_in)
    pitch = margin + longest + _BETWEEN_COLUMNS
    nodes = sum(len(row.nodes) for row in rows)
    x, y = np.zeros(nodes), np.zeros(nodes)
    written: list[tuple[float, float, str]] = []
    height = 0.0
    for column, places in enumerate(_columns(rows, count)):
        down, before = 0.0, rows[places[0]].group
        for place in places:
            row, left = rows[place], column * pitch + margin
            down += _BETWEEN_GROUPS if row.group != before else 0.0
            before = row.group
            members = list(row.nodes)
            x[members], y[members] = left + np.arange(len(members)), down
            written.append((left - 0.3, down, labels[place]))
            down += 1
        height = max(height, down)
    width = pitch * count - _BETWEEN_COLUMNS
    return Layout(x=x, y=y, labels=tuple(written), width=width, height=height, cell_in=cell)


def _margin_and_cell(characters: int, longest: int, count: int, width_in: float) -> tuple[float, float]:
    """Return the room for labels (cells) and a cell's side (inches); labels stop growing with the cells."""
    across = count * (longest + _BETWEEN_COLUMNS) - _BETWEEN_COLUMNS
    growing = characters * LETTER * LABEL_SIZE + 0.4
    fixed_in = characters * LETTER * LARGEST_LABEL_PT / _POINTS
    cell = max(width_in / (across + count * growing), (width_in - count * fixed_in) / (across + count * 0.4))
    cell = min(cell, _LARGEST_CELL_IN)
    return min(growing, fixed_in / cell + 0.4), cell


def _columns(rows: list[Row], count: int) -> Iterable[list[int]]:
    """Return the rows of each column, the first ones full: groups stay together where there are enough."""
    groups = [list(members) for _, members in groupby(range(len(rows)), key=lambda place: rows[place].group)]
    if len(groups) < 2 * count and count > 1:
        groups = [[place] for place in range(len(rows))]
    room = -(-len(rows) // count)
    while len(columns := _filled(groups, room)) > count:
        room += 1
    return columns


def _filled(groups: list[list[int]], room: int) -> list[list[int]]:
    """Return columns of at most ``room`` rows, or of one larger group."""
    columns: list[list[int]] = [[]]
    for group in groups:
        if columns[-1] and len(columns[-1]) + len(group) > room:
            columns.append([])
        columns[-1].extend(group)
    return columns


def _cut(label: str) -> str:
    """Return a label short enough, cut in its middle: names differ at their ends."""
    if len(label) <= _LONGEST_LABEL:
        return label
    half = _LONGEST_LABEL // 2
    return f"{label[: half - 1]}…{label[-half:]}"
