"""Where everything is on a machine's picture: the part that is drawn, its nodes, their boxes.

Leaf switches are rows, folded into columns of rows. A node's boxes are its busy, newly awarded and
free parts. Pure geometry in units of a cell, one node each; a box is its left, top, width and
height, boxes are of shape (boxes, 4). Nothing is drawn here.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby

import numpy as np

from ..cluster.limits import of_gres
from ..cluster.nodes import Node, Resources, in_groups, part_of_tree
from ..cluster.resources.capacity import FloatArray
from ..cluster.schedule import Award, Schedule
from ..cluster.snapshot import Snapshot
from ..cluster.text import cut
from ..topology.tree import Topology, topology_of

#: At most this many leaf switches are drawn whole.
_FEW_LEAVES = 12


def changed_part(snapshot: Snapshot, schedule: Schedule) -> Snapshot:
    """Return the leaf switches with a free core or a job that starts, where most have neither.

    The jobs that run are cut to the nodes that stay; the snapshot itself where it has few leaves,
    or most of them matter.
    """
    leaves = [switch.nodes for switch in snapshot.switches or () if switch.nodes]
    taken = {name for award in schedule.started for name in award.nodes}
    matter = taken | {node.name for node in snapshot.nodes if node.free.cores and node.state.takes_jobs}
    kept = [nodes for nodes in leaves if not matter.isdisjoint(nodes)]
    if len(leaves) <= _FEW_LEAVES or not kept or 2 * len(kept) > len(leaves):
        return snapshot
    names = {name for nodes in kept for name in nodes}
    running = [
        replace(job, nodes={name: use for name, use in job.nodes.items() if name in names})
        for job in snapshot.running
        if not names.isdisjoint(job.nodes)
    ]
    return Snapshot(
        time=snapshot.time,
        nodes=[node for node in snapshot.nodes if node.name in names],
        switches=part_of_tree(snapshot.switches or (), names),
        running=running,
    )


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
class LeafRow:
    """A leaf switch or a part of one: label, switch above it, its nodes' places in the snapshot."""

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
    """Return the layout with the largest cells that fit a page; huge machines exceed its height."""
    rows = _rows(snapshot, topology_of(snapshot))
    layouts = [_folded(rows, count, width_in) for count in range(1, min(_COLUMNS, len(rows)) + 1)]
    fitting = [one for one in layouts if one.height * one.cell_in <= height_in]
    if fitting:
        return max(fitting, key=lambda one: one.cell_in)
    return min(layouts, key=lambda one: one.height * one.cell_in)


def _rows(snapshot: Snapshot, topology: Topology) -> list[LeafRow]:
    names = [node.name for node in snapshot.nodes]
    if topology.is_linear:
        return [
            LeafRow(label=names[part[0]], group=0, nodes=part) for part in in_groups(range(len(names)), _ROW)
        ]
    rows: list[LeafRow] = []
    leaf = topology.leaf
    for switch, members in groupby(topology.order.tolist(), key=lambda node: int(leaf[node])):
        nodes = tuple(members)
        path = topology.path[nodes[0]].tolist()
        above = [place for place in path if place != switch]
        parts = in_groups(nodes, len(nodes) if len(nodes) <= _WIDEST else _ROW)
        for number, part in enumerate(parts):
            label = "" if number else topology.names[switch]
            rows.append(LeafRow(label=label, group=above[-1] if above else -1, nodes=part))
    return rows


def _folded(rows: list[LeafRow], count: int, width_in: float) -> Layout:
    """Return the layout with ``count`` columns of rows."""
    labels = [cut(row.label, _LONGEST_LABEL) for row in rows]
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
    """Return the room for labels (cells) and a cell's side (inches); labels have a largest size."""
    across = count * (longest + _BETWEEN_COLUMNS) - _BETWEEN_COLUMNS
    growing = characters * LETTER * LABEL_SIZE + 0.4
    fixed_in = characters * LETTER * LARGEST_LABEL_PT / _POINTS
    cell = max(width_in / (across + count * growing), (width_in - count * fixed_in) / (across + count * 0.4))
    cell = min(cell, _LARGEST_CELL_IN)
    return min(growing, fixed_in / cell + 0.4), cell


def _columns(rows: list[LeafRow], count: int) -> Iterable[list[int]]:
    """Return each column's rows, the first ones full: groups stay together if there are enough."""
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


#: Part of a cell that is drawn; of a node with GPUs its cores take the upper part.
_SIDE, _ABOVE_GPUS = 0.86, 0.64
#: Part of its place that a GPU's mark fills, and its distance from the cores (cells).
_GPU, _BELOW_CORES = 0.8, 0.05
#: Boxes of one job in neighbouring cells stand so close (cells).
_NEIGHBOURS = 0.16
#: Part of a cell that its node's name takes where it is written.
NAME = 0.2

Box = tuple[float, float, float, float]
#: The boxes of a kind, and of a job where they are a job's.
Boxes = Callable[..., FloatArray]


def boxes_of(snapshot: Snapshot, awards: Iterable[Award], layout: Layout) -> Boxes:
    """Return the boxes of a machine and of the jobs that start on it, by kind.

    - frames: the cores of each node, whatever holds them.
    - busy: cores that are held now.
    - closed: cores that are free on nodes that take no jobs.
    - jobs: cores that a job takes now.
    - used_gpus, free_gpus: one mark a GPU.
    - taken_gpus: those that a job takes now.
    """
    taken: dict[str, list[tuple[str, Resources]]] = {}
    for award in awards:
        for name, use in award.nodes.items():
            taken.setdefault(name, []).append((award.job, use))
    found: dict[tuple[str, str], list[Box]] = defaultdict(list)
    named = NAME if layout.named else 0.0
    for node, x, y in zip(snapshot.nodes, layout.x.tolist(), layout.y.tolist(), strict=True):
        corner = x + (1 - _SIDE) / 2, y + (1 - _SIDE) / 2 + named
        for kind, job, box in _of_node(node, taken.get(node.name, []), corner, _SIDE - named):
            found[kind, job].append(box)

    @cache
    def of(kind: str, job: str = "") -> FloatArray:
        return np.array(found[kind, job], np.float64).reshape(-1, 4)

    return of


def _of_node(
    node: Node, taken: Sequence[tuple[str, Resources]], corner: tuple[float, float], down: float
) -> Iterator[tuple[str, str, Box]]:
    """Yield a node's boxes, each with kind and job; its cell is ``down`` high below the corner."""
    (left, top), total = corner, of_gres("gpu", node.total.gres)
    height = down * (_ABOVE_GPUS if total else 1)
    yield "frames", "", (left, top, _SIDE, height)
    one = _SIDE / node.total.cores
    busy = node.total.cores - node.free.cores
    if busy:
        yield "busy", "", (left, top, busy * one, height)
    at = left + busy * one
    for job, use in taken:
        yield "jobs", job, (at, top, use.cores * one, height)
        at += use.cores * one
    if not node.state.takes_jobs and node.free.cores:
        yield "closed", "", (at, top, left + _SIDE - at, height)
    if not total:
        return
    marks = [("used_gpus", "")] * (total - of_gres("gpu", node.free.gres))
    marks += [("taken_gpus", job) for job, use in taken for _ in range(of_gres("gpu", use.gres))]
    marks += [("free_gpus", "")] * (total - len(marks))
    place, strip = _SIDE / total, down * (1 - _ABOVE_GPUS)
    # Squares for a few; of many GPUs each is a bar, or they would vanish.
    width = _GPU * min(place, strip)
    tall = min(strip - _BELOW_CORES, 2 * width) if place < strip / 2 else width
    for number, (kind, job) in enumerate(marks):
        middle = left + (number + 0.5) * place
        yield kind, job, (middle - width / 2, top + height + _BELOW_CORES, width, tall)


def _width(run: list[Box]) -> float:
    return run[-1][0] + run[-1][2] - run[0][0]


def place_of_number(boxes: FloatArray, letters: float) -> Box:
    """Return where a job's number fits best: a box that holds it, else the whole of the widest run.

    Args:
        boxes: the job's.
        letters: width of the number at full size, in cells.
    """
    runs: list[list[Box]] = []
    for left, top, width, height in boxes[np.lexsort((boxes[:, 0], boxes[:, 1]))].tolist():
        before = runs[-1][-1] if runs else None
        beside = before and before[1] == top and left - (before[0] + before[2]) <= _NEIGHBOURS
        if not beside:
            runs.append([])
        runs[-1].append((left, top, width, height))
    # The widest box, or row of boxes that stand beside each other.
    run = max(runs, key=_width)
    middle = run[0][0] + _width(run) / 2
    one = min(
        (box for box in run if box[2] >= letters),
        key=lambda box: abs(box[0] + box[2] / 2 - middle),
        default=None,
    )
    return one or (run[0][0], run[0][1], _width(run), run[0][3])
