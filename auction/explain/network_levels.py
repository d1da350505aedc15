"""A topology: its graph, its levels, how far apart its nodes are, in groups and in its order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from rich.table import Table

from ...cluster.network import SIZES, Network, NetworkKind
from ...cluster.nodes import Node, Switch
from ...cluster.resources.capacity import IntArray
from ...cluster.snapshot import Snapshot
from ...cluster.text import plural
from ...formats.native.topology_wire import written_topology
from ...topology.distances import MOST_MEASURED
from ...topology.networks import extent, graph_of, tree_graph
from ...topology.tree import Topology, topology_of

if TYPE_CHECKING:
    from rich.console import Console

FORMAT = "aucsched-topology/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkLevel:
    """A level's groups: how many, fewest and most nodes of one, links between two nodes of one."""

    level: int
    groups: int
    nodes: tuple[int, int]
    mean_hops: float | None
    most_hops: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkReport:
    """A topology described.

    Attributes:
        kind: ``linear``, ``tree``, or the network's.
        switches, links: of its graph; a linear topology has neither.
        trees: that no switch joins; 1 of all but a forest.
        levels: from the leaves up.
        step_hops: mean links between neighbours in the order; None where nothing is measured.
        snapshot: its nodes (of one core), switches and network.
    """

    kind: str
    switches: int
    links: int
    trees: int
    levels: tuple[NetworkLevel, ...]
    step_hops: float | None
    snapshot: Snapshot

    def title(self) -> str:
        """Return the kind, the sizes and the number of nodes."""
        sizes = _sizes(self.snapshot.network)
        what = f"{self.kind} ({sizes})" if sizes else self.kind
        return f"{what}: {plural(len(self.snapshot.nodes), 'node')}"


def network_report(
    names: Sequence[str], switches: tuple[Switch, ...] | None, network: Network | None
) -> NetworkReport:
    """Describe a topology by its graph; distances where it has at most ``MOST_MEASURED`` nodes.

    Raises:
        InputError: it is no topology of these nodes.
    """
    snapshot = Snapshot(
        nodes=tuple(Node(name=name, cores=1) for name in names), switches=switches, network=network
    )
    topology = topology_of(snapshot)
    trees, vertices, links = 1, len(names), 0
    if network is not None and not network.units:
        vertices, links = extent(network)
    elif snapshot.switches is not None:
        vertices += len(snapshot.switches)
        links = sum(len(one.nodes) + len(one.switches) for one in snapshot.switches)
        trees = vertices - links
    place = np.arange(len(names))
    measured = len(names) <= MOST_MEASURED
    hops = topology.hops(place[:-1], place[1:]) if measured and len(names) > 1 else None
    return NetworkReport(
        kind=network.kind.value if network else "linear" if switches is None else "tree",
        switches=vertices - len(names),
        links=links,
        trees=trees,
        levels=tuple(_levels(topology, measured=measured)),
        step_hops=None if hops is None else float(hops.mean()),
        snapshot=snapshot,
    )


def graph_of_snapshot(snapshot: Snapshot) -> Any:
    """Return the graph of a snapshot's network or tree; roots of a forest stand apart."""
    network = snapshot.network
    if network is None or network.units:
        return tree_graph(snapshot.switches or ())
    return graph_of(network)


def _sizes(network: Network | None) -> str:
    if network is None or not network.sizes:
        return ""
    if network.kind is NetworkKind.TORUS:
        return f"{'x'.join(map(str, network.sizes))}, order {network.order}"
    if network.kind is NetworkKind.BLOCKS:
        return f"of {', '.join(map(str, network.sizes))} nodes"
    named = zip(network.sizes, SIZES[network.kind], strict=True)
    return ", ".join(f"{size} {name.replace('_', ' ')}" for size, name in named)


def _levels(topology: Topology, *, measured: bool) -> list[NetworkLevel]:
    found: list[NetworkLevel] = []
    sizes = topology.high - topology.low
    within = _within(topology) if measured else None
    for level in range(topology.max_level + 1):
        here = np.flatnonzero(topology.level == level)
        links = None if within is None else within[:, here]
        pairs = 0 if links is None else int(links[1].sum())
        found.append(
            NetworkLevel(
                level=level,
                groups=len(here),
                nodes=(int(sizes[here].min()), int(sizes[here].max())),
                mean_hops=int(links[0].sum()) / pairs if links is not None and pairs else None,
                most_hops=int(links[2].max()) if links is not None and pairs else None,
            )
        )
    return found


def _within(topology: Topology) -> IntArray:
    """Return links between two nodes below each switch: sum, pairs, greatest; shape (3, switches).

    Each pair counts once, at its lowest common switch; a switch then adds those of all below it.
    """
    switches = len(topology.level)
    total, pairs, most = np.zeros((3, switches), np.int64)
    for place, node in enumerate(topology.order[:-1].tolist()):
        others = topology.order[place + 1 :]
        one = np.full(len(others), node)
        hops, common = topology.hops(one, others), topology.common_switch(one, others)
        total += np.bincount(common, hops, switches).astype(np.int64)
        pairs += np.bincount(common, minlength=switches)
        np.maximum.at(most, common, hops)
    for above, below in zip(topology.path.T[-2::-1], topology.path.T[:0:-1], strict=True):
        edge = np.unique(np.stack([above, below], axis=1)[above != below], axis=0)
        np.add.at(total, edge[:, 0], total[edge[:, 1]])
        np.add.at(pairs, edge[:, 0], pairs[edge[:, 1]])
        np.maximum.at(most, edge[:, 0], most[edge[:, 1]])
    return np.stack([total, pairs, most])


def network_document(report: NetworkReport) -> dict[str, Any]:
    """Return a report as plain dicts, lists, numbers and text (``aucsched-topology/1``).

    ``topology`` is the member to put into a snapshot or workload.
    """
    written = written_topology(report.snapshot.switches, report.snapshot.network)
    return {
        "format": FORMAT,
        "kind": report.kind,
        "nodes": len(report.snapshot.nodes),
        "switches": report.switches,
        "links": report.links,
        "step_hops": report.step_hops,
        "levels": [asdict(level) for level in report.levels],
        "order": [node.name for node in report.snapshot.nodes],
        "topology": {"kind": "linear"} if written is None else msgspec.to_builtins(written),
    }


def render_network(report: NetworkReport, console: Console) -> None:
    """Print a report."""
    parts = [report.title()]
    if report.links:
        parts += [plural(report.switches, "switch"), plural(report.links, "link")]
        parts += [f"{report.trees} trees that no switch joins"] if report.trees > 1 else []
    console.print(", ".join(parts), soft_wrap=True)
    if report.step_hops is not None:
        console.print(f"neighbours in the order are {report.step_hops:.2f} links apart in the mean")
    table = Table(box=None, pad_edge=False)
    for title in ("level", "groups", "nodes of one", "links between two of its nodes"):
        table.add_column(title, justify="right")
    for level in report.levels:
        nodes = "-".join(map(str, dict.fromkeys(level.nodes)))
        links = "-" if level.mean_hops is None else f"mean {level.mean_hops:.2f}, at most {level.most_hops}"
        table.add_row(str(level.level), str(level.groups), nodes, links)
    console.print(table)
