"""Pictures of a machine: which jobs start where, what is busy, what stays free; its network.

A node is a cell, filled from the left by its cores: busy ones grey, then those of each job that
starts there in the job's colour; free ones are white, or hatched where the node takes no jobs. A
GPU is a small mark below: grey when used, in the job's colour when taken now, hollow when free.

A network is its links, its nodes in the colour of their leaf group, and the way of their order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import ceil, cos, pi, prod, sin, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..auction.explain.snapshot_report import NetworkReport, graph_of_snapshot
from ..cluster.errors import OptionError
from ..cluster.limits import of_gres
from ..cluster.network import Network, NetworkKind
from ..cluster.resources.capacity import FloatArray
from ..cluster.schedule import Award, Schedule
from ..cluster.snapshot import Snapshot
from ..cluster.text import plural
from ..topology.distances import hop_table, numbered_links
from ..topology.hilbert import grid
from ..topology.tree import topology_of
from .canvas import add_boxes, literal, save_figure, styled
from .machine_layout import (
    LABEL_SIZE,
    LARGEST_LABEL_PT,
    LETTER,
    NAME,
    Boxes,
    Layout,
    boxes_of,
    changed_part,
    layout_of,
    place_of_number,
)
from .schedule_text import cores_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HATCHES = {"hatch.linewidth": 0.35, "hatch.color": "#8a8f98"}
_DPI, _POINTS = 300, 72
#: Page (inches): as wide as a column of text; landscape for a machine of more nodes than that.
_PAGE_IN, _WIDE_PAGE_IN, _WIDE_FROM = (7.0, 6.0), (11.0, 6.6), 3000
_MARGIN_IN, _TITLE_IN, _LEGEND_ROW_IN = 0.12, 0.36, 0.17

#: The widest jobs get one of these each and stand in the legend.
_COLORS = (
    "#1f6fb4", "#e07b22", "#2c9a4b", "#c9302c", "#7d54b2", "#8a5a3b",
    "#dd6bb4", "#b3a712", "#17a3b5", "#0c2f63", "#f2b134", "#6fcf97",
)  # fmt: skip
#: All narrower ones take these in turn.
_OTHERS = ("#a8d5f6", "#85bfe9")
_BUSY, _FREE, _LINE, _INK, _USED_GPU = "#c9ccd1", "#ffffff", "#8a8f98", "#20242a", "#7b8089"
_LEGEND_COLUMNS = 4
#: Least size of letters.
_LEAST_PT = 2.6
#: White edges of boxes this narrow would hide them (points).
_NARROW_PT = 1.5


def draw_machine(snapshot: Snapshot, schedule: Schedule, path: Path | None) -> Figure:
    """Draw the machine with a schedule's awards; the file is written whole or not at all.

    Of a large machine only the leaf switches are drawn where something is free or starts.

    Raises:
        InputError: the file cannot be written.
    """
    whole, snapshot = snapshot, changed_part(snapshot, schedule)
    page = _WIDE_PAGE_IN if len(snapshot.nodes) > _WIDE_FROM else _PAGE_IN
    layout = layout_of(snapshot, page[0] - 2 * _MARGIN_IN, page[1])
    boxes = boxes_of(snapshot, schedule.started, layout)
    colors = _colors(schedule.started)
    with styled(**_HATCHES):
        entries = list(_legend(boxes, schedule.started, colors))
        figure, axes = _new_figure(layout, page[0], len(entries))
        _write_labels(axes, layout, snapshot)
        _draw_boxes(axes, boxes, colors, layout)
        _write_jobs(axes, boxes, colors, layout)
        _write_title(figure, whole, schedule, len(whole.nodes) - len(snapshot.nodes))
        _draw_legend(figure, entries)
        save_figure(figure, path)
    return figure


def _colors(awards: Sequence[Award]) -> dict[str, str]:
    """Return each job's colour, the widest jobs first."""
    ordered = sorted(awards, key=lambda award: (-len(award.nodes), -cores_of(award)))
    return {
        award.job: _COLORS[place] if place < len(_COLORS) else _OTHERS[place % 2]
        for place, award in enumerate(ordered)
    }


def _new_figure(layout: Layout, width_in: float, entries: int) -> tuple[Figure, Axes]:
    """Return a figure with a title's line above the machine and room for the legend below."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - the extra may be absent

    legend = _LEGEND_ROW_IN * -(-entries // _LEGEND_COLUMNS) + 0.08
    across, down = layout.width * layout.cell_in, layout.height * layout.cell_in
    height = down + legend + _TITLE_IN + 2 * _MARGIN_IN
    figure = Figure(figsize=(width_in, height), dpi=_DPI)
    left, bottom = _MARGIN_IN / width_in, (_MARGIN_IN + legend) / height
    axes = figure.add_axes((left, bottom, across / width_in, down / height))
    axes.set_xlim(0, layout.width)
    axes.set_ylim(layout.height, 0)
    axes.set_axis_off()
    return figure, axes


def _cell_pt(layout: Layout) -> float:
    return layout.cell_in * _POINTS


def _write_labels(axes: Axes, layout: Layout, snapshot: Snapshot) -> None:
    """Write each row's leaf switch, or its first node in the linear topology, if it can be read."""
    size = min(LARGEST_LABEL_PT, LABEL_SIZE * _cell_pt(layout))
    if layout.named:
        # Each node's name above it.
        longest = max(len(node.name) for node in snapshot.nodes)
        widest = 0.95 * _cell_pt(layout) / (LETTER * longest)
        of_names = min(LARGEST_LABEL_PT, 0.8 * NAME * _cell_pt(layout), widest)
        for place, node in enumerate(snapshot.nodes):
            x, y = layout.x[place] + 0.5, layout.y[place] + NAME
            name = literal(node.name)
            axes.text(x, y, name, ha="center", va="bottom", fontsize=of_names, color=_INK)
        if snapshot.switches is None:
            return
    if size < _LEAST_PT:
        return
    for x, y, text in layout.labels:
        axes.text(x, y + 0.5, literal(text), ha="right", va="center", fontsize=size, color=_INK)


def _add(axes: Axes, boxes: FloatArray, face: str, edge: str = "none", line: float = 0.0) -> Any:
    return add_boxes(axes, boxes, facecolors=face, edgecolors=edge, linewidths=line)


def _draw_boxes(axes: Axes, boxes: Boxes, colors: Mapping[str, str], layout: Layout) -> None:
    _add(axes, boxes("frames"), _FREE)
    _add(axes, boxes("busy"), _BUSY)
    _add(axes, boxes("closed"), "#f3f3f3", _LINE).set_hatch("/" * 8)
    for job, color in colors.items():
        # A white line between two jobs of a node, where it leaves something of them.
        narrowest = float(boxes("jobs", job)[:, 2].min()) * _cell_pt(layout)
        _add(axes, boxes("jobs", job), color, "white", 0.3 if narrowest > _NARROW_PT else 0.0)
    _add(axes, boxes("frames"), "none", _LINE, min(0.5, 0.05 * _cell_pt(layout)))
    line = min(0.4, 0.03 * _cell_pt(layout))
    _add(axes, boxes("free_gpus"), _FREE, _LINE, line)
    _add(axes, boxes("used_gpus"), _USED_GPU, _USED_GPU, line)
    for job, color in colors.items():
        _add(axes, boxes("taken_gpus", job), color, color, line)


def _write_jobs(axes: Axes, boxes: Boxes, colors: Mapping[str, str], layout: Layout) -> None:
    """Write a job's number over the widest row of its cells, where it fits."""
    points = _cell_pt(layout)
    for job, color in colors.items():
        tall = min(LARGEST_LABEL_PT, 0.8 * points * boxes("jobs", job)[0, 3])
        letters = LETTER * len(job) + 0.3
        left, top, width, height = place_of_number(boxes("jobs", job), tall * letters / points)
        size = min(tall, width * points / letters)
        red, green, blue = (int(color[place : place + 2], 16) for place in (1, 3, 5))
        luma = 0.299 * red + 0.587 * green + 0.114 * blue  # ITU-R BT.601
        if size < _LEAST_PT:
            continue
        axes.text(
            left + width / 2,
            top + height / 2,
            literal(job),
            ha="center",
            va="center_baseline",
            fontsize=size,
            color="white" if luma < 150 else _INK,  # noqa: PLR2004 - of 255
        )


def _write_title(figure: Figure, snapshot: Snapshot, schedule: Schedule, left_out: int) -> None:
    nodes = {name for award in schedule.started for name in award.nodes}
    taken = sum(map(cores_of, schedule.started))
    free = sum(node.free.cores for node in snapshot.nodes if node.state.takes_jobs)
    text = (
        f"{schedule.model} starts {len(schedule.started)} of {len(schedule.started) + len(schedule.pending)} "
        f"jobs on {len(nodes)} of {len(snapshot.nodes)} nodes; {taken} of {free} free cores are taken"
    )
    if left_out:
        text += f"\nnot drawn: {plural(left_out, 'node')} of switches where nothing is free or starts"
    width, height = figure.get_size_inches()
    figure.text(
        _MARGIN_IN / width, 1 - _MARGIN_IN / height, text, ha="left", va="top", fontsize=8, color=_INK
    )


def _legend(boxes: Boxes, awards: Sequence[Award], colors: Mapping[str, str]) -> Iterator[Any]:
    """Yield a handle for each thing on the picture: widest jobs, others, busy and free cores."""
    from matplotlib.lines import Line2D  # noqa: PLC0415 - the extra may be absent
    from matplotlib.patches import Patch  # noqa: PLC0415

    def patch(text: str, face: str, edge: str = "none", hatch: str | None = None) -> Patch:
        return Patch(facecolor=face, edgecolor=edge, hatch=hatch, linewidth=0.5, label=text)

    def gpu(text: str, face: str, edge: str) -> Line2D:
        drawn = Line2D([], [], marker="s", markersize=4, markeredgewidth=0.5, linewidth=0, label=text)
        drawn.set(markerfacecolor=face, markeredgecolor=edge)
        return drawn

    by_job = {award.job: award for award in awards}
    for job in list(colors)[: len(_COLORS)]:
        yield patch(_described(by_job[job]), colors[job])
    if len(colors) > len(_COLORS):
        yield patch(plural(len(colors) - len(_COLORS), "narrower job"), _OTHERS[0])
    yield patch("busy", _BUSY)
    yield patch("stays free", _FREE, _LINE)
    if len(boxes("closed")):
        yield patch("takes no jobs", "#f3f3f3", _LINE, "/" * 8)
    if len(boxes("used_gpus")):
        yield gpu("GPU in use", _USED_GPU, _USED_GPU)
    if len(boxes("free_gpus")):
        yield gpu("GPU free", _FREE, _LINE)


def _described(award: Award) -> str:
    held = sum(of_gres("gpu", use.gres) for use in award.nodes.values())
    parts = [plural(len(award.nodes), "node"), plural(cores_of(award), "core")]
    parts += [plural(held, "GPU")] if held else []
    # What begins with _ matplotlib leaves out of a legend.
    name = literal(award.job)
    return f"{' ' * name.startswith('_')}{name}: {', '.join(parts)}"


def _draw_legend(figure: Figure, handles: Sequence[Any]) -> None:
    width, height = figure.get_size_inches()
    figure.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(_MARGIN_IN / width, _MARGIN_IN / height),
        ncols=_LEGEND_COLUMNS,
        frameon=False,
        fontsize=6.5,
        borderaxespad=0,
        borderpad=0,
        handlelength=1.6,
        handleheight=0.9,
        columnspacing=1.4,
        labelspacing=0.55,
    )


_MOST_DRAWN, _MOST_LINKS = 4_096, 200_000
_SIDE_IN, _NETWORK_DPI = 7.0, 200
#: Leaf groups next to each other in the order take these in turn.
_GROUP_COLORS = ("#1f6fb4", "#e07b22", "#2c9a4b", "#c9302c", "#7d54b2", "#8a5a3b", "#17a3b5", "#b3a712")

Places = dict[Any, tuple[float, float]]


def draw_network(report: NetworkReport, path: Path) -> None:
    """Draw a network; the file is written whole or not at all.

    Raises:
        OptionError: it has more than 4 096 nodes, or more than 200 000 links.
        InputError: the file cannot be written.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 - the extra may be absent

    if (nodes := len(report.snapshot.nodes)) > _MOST_DRAWN:
        raise OptionError(f"--plot: {nodes} nodes are above the {_MOST_DRAWN} that a picture holds")
    if report.links > _MOST_LINKS:
        raise OptionError(f"--plot: {report.links} links are above the {_MOST_LINKS} that a picture holds")
    with styled():
        figure = Figure(figsize=(_SIDE_IN, _SIDE_IN), dpi=_NETWORK_DPI)
        axes = figure.add_axes((0.02, 0.02, 0.96, 0.92))
        axes.set_axis_off()
        axes.set_aspect("equal" if report.kind in {"torus", "dragonfly", "graph", "linear"} else "auto")
        figure.suptitle(f"{report.title()}, levels: {len(report.levels)}")
        _draw_network(axes, report)
        save_figure(figure, path)


def _draw_network(axes: Axes, report: NetworkReport) -> None:
    from matplotlib.collections import LineCollection  # noqa: PLC0415 - the extra may be absent

    snapshot = report.snapshot
    names = [node.name for node in snapshot.nodes]
    graph = graph_of_snapshot(snapshot) if snapshot.switches is not None else None
    places = _places(report, graph)
    if graph is not None:
        ends = [(places[one], places[other]) for one, other in graph.edges()]
        if report.kind == "torus":
            # A step is 1: links round a torus' ends are left out.
            ends = [pair for pair in ends if np.abs(np.subtract(*pair)).sum() < 1.5]  # noqa: PLR2004
        axes.add_collection(LineCollection(ends, colors=_BUSY, linewidths=0.5, zorder=1))
        of_nodes = set(names)
        others = [places[vertex] for vertex in graph if vertex not in of_nodes]
        if others:
            x, y = zip(*others, strict=True)
            axes.scatter(x, y, s=10, marker="s", color=_LINE, zorder=2)
    points = np.array([places[name] for name in names])
    steps = list(np.stack([points[:-1], points[1:]], axis=1))
    axes.add_collection(LineCollection(steps, colors=_INK, linewidths=0.6, zorder=3))
    leaf = np.unique(topology_of(snapshot).leaf, return_inverse=True)[1]
    colors = [_GROUP_COLORS[place % len(_GROUP_COLORS)] for place in leaf.tolist()]
    size = min(18.0, max(2.0, 4000 / len(points)))
    axes.scatter(points[:, 0], points[:, 1], s=size, c=colors, zorder=4)
    axes.autoscale_view()


def _places(report: NetworkReport, graph: Any) -> Places:
    network = report.snapshot.network
    of_kind = {NetworkKind.TORUS: _planes, NetworkKind.DRAGONFLY: _ring, NetworkKind.GRAPH: _spread}
    if network is not None and network.kind in of_kind:
        return of_kind[network.kind](network)
    if graph is None:
        names = [node.name for node in report.snapshot.nodes]
        wide = ceil(sqrt(len(names)))
        return {name: (float(place % wide), -float(place // wide)) for place, name in enumerate(names)}
    return _layers(report, graph)


def _planes(network: Network) -> Places:
    """Put a torus' planes of its last two dimensions side by side, in about a square."""
    whole = (1,) * (2 - len(network.sizes)) + network.sizes
    points = grid(whole)
    wide = ceil(sqrt(prod(whole[:-2])))
    plane = np.arange(len(points)) // (whole[-2] * whole[-1])
    x = (plane % wide) * (whole[-1] + 1.0) + points[:, -1]
    y = -((plane // wide) * (whole[-2] + 1.0) + points[:, -2])
    return {name: (float(x[place]), float(y[place])) for place, name in enumerate(network.members)}


def _ring(network: Network) -> Places:
    """Put a dragonfly's groups round a circle, each a circle of routers, their nodes outside."""
    groups, routers, nodes, _ = network.sizes
    places: Places = {}
    radius = 0.8 * sin(pi / max(2, groups))
    for group in range(groups):
        turn = 2 * pi * group / groups
        middle = (cos(turn), sin(turn)) if groups > 1 else (0.0, 0.0)
        for router in range(routers):
            angle = turn + 2 * pi * router / routers
            places[group, router] = _from(middle, radius * 0.55, angle)
            for node in range(nodes):
                off = angle + (node - (nodes - 1) / 2) * 2 * pi / routers / (nodes + 1)
                name = network.members[(group * routers + router) * nodes + node]
                places[name] = _from(middle, radius, off)
    return places


def _from(middle: tuple[float, float], radius: float, angle: float) -> tuple[float, float]:
    return middle[0] + radius * cos(angle), middle[1] + radius * sin(angle)


def _layers(report: NetworkReport, graph: Any) -> Places:
    """Put nodes in a row, and switches above the mean of what is below them, by level."""
    names = [node.name for node in report.snapshot.nodes]
    places: Places = {name: (float(place), 0.0) for place, name in enumerate(names)}
    topology, switches = topology_of(report.snapshot), report.snapshot.switches or ()
    level = dict(zip(topology.names, topology.level.tolist(), strict=True))
    for switch in sorted(switches, key=lambda one: level[one.name]):
        below = [places[name][0] for name in switch.nodes] or [
            places["switch", name][0] for name in switch.switches
        ]
        places["switch", switch.name] = (sum(below) / len(below), level[switch.name] + 1.0)
    parts = [vertex for vertex in graph if vertex not in places]
    count = Counter(name for name, _ in parts)
    for name, digits in parts:
        x, y = places["switch", name]
        rank = int("".join(map(str, digits)) or "0", 36)
        places[name, digits] = (x + 0.02 * (len(names) / count[name]) * rank, y)
    return places


def _spread(network: Network) -> Places:
    """Spread a graph in the plane by its distances (classical scaling)."""
    ends, vertices = numbered_links(network.links, network.members)
    table = hop_table(ends, len(vertices), np.arange(len(vertices)))
    square: npt.NDArray[np.float64] = table.astype(np.float64) ** 2
    centred = square - square.mean(axis=0) - square.mean(axis=1)[:, None] + square.mean()
    values, vectors = np.linalg.eigh(-centred / 2)
    flat = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0))
    if flat.shape[1] < 2:  # noqa: PLR2004 - one vertex has one dimension
        flat = np.zeros((len(vertices), 2))
    return {vertex: (float(x), float(y)) for vertex, (x, y) in zip(vertices, flat.tolist(), strict=True)}
