"""The picture of a network: links, nodes in the colour of their leaf group, the way of their order.

matplotlib is an extra.
"""

from __future__ import annotations

from math import ceil, cos, pi, prod, sin, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..auction.explain.network_levels import NetworkReport, graph_of_snapshot
from ..cluster.errors import OptionError
from ..cluster.network import Network, NetworkKind
from ..cluster.text import plural
from ..topology.distances import hop_table, numbered_links
from ..topology.hilbert import grid
from ..topology.tree import topology_of
from .canvas import save_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_DRAWN, _MOST_LINKS = 4_096, 200_000
_SIDE_IN, _DPI = 7.0, 200
_LINK, _WAY, _SWITCH = "#c9ccd1", "#20242a", "#8a8f98"
#: Leaf groups next to each other in the order take these in turn.
_COLORS = ("#1f6fb4", "#e07b22", "#2c9a4b", "#c9302c", "#7d54b2", "#8a5a3b", "#17a3b5", "#b3a712")

Places = dict[Any, tuple[float, float]]


def draw_network(report: NetworkReport, path: Path) -> None:
    """Draw a network; the file is written whole or not at all.

    Raises:
        OptionError: it has more than 4 096 nodes, or more than 200 000 links.
        InputError: the file cannot be written.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 - the extra may be absent

    if report.nodes > _MOST_DRAWN:
        raise OptionError(f"--plot: {report.nodes} nodes are above the {_MOST_DRAWN} that a picture holds")
    if report.links > _MOST_LINKS:
        raise OptionError(f"--plot: {report.links} links are above the {_MOST_LINKS} that a picture holds")
    with styled():
        figure = Figure(figsize=(_SIDE_IN, _SIDE_IN), dpi=_DPI)
        axes = figure.add_axes((0.02, 0.02, 0.96, 0.92))
        axes.set_axis_off()
        axes.set_aspect("equal" if report.kind in {"torus", "dragonfly", "graph", "linear"} else "auto")
        sizes = f" ({report.sizes})" if report.sizes else ""
        figure.suptitle(f"{report.kind}{sizes}: {plural(report.nodes, 'node')}, levels: {len(report.levels)}")
        _draw(axes, report)
        save_figure(figure, path)


def _draw(axes: Axes, report: NetworkReport) -> None:
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
        axes.add_collection(LineCollection(ends, colors=_LINK, linewidths=0.5, zorder=1))
        others = [places[vertex] for vertex in graph if vertex not in set(names)]
        if others:
            x, y = zip(*others, strict=True)
            axes.scatter(x, y, s=10, marker="s", color=_SWITCH, zorder=2)
    points = np.array([places[name] for name in names])
    steps = list(np.stack([points[:-1], points[1:]], axis=1))
    axes.add_collection(LineCollection(steps, colors=_WAY, linewidths=0.6, zorder=3))
    leaf = np.unique(topology_of(snapshot).leaf, return_inverse=True)[1]
    colors = [_COLORS[place % len(_COLORS)] for place in leaf.tolist()]
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
    for vertex in graph:
        if vertex not in places:
            x, y = places["switch", vertex[0]]
            span = len(names) / sum(1 for other in graph if other not in names and other[0] == vertex[0])
            rank = int("".join(map(str, vertex[1])) or "0", 36)
            places[vertex] = (x + 0.02 * span * rank, y)
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
