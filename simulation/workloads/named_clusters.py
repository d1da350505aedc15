"""The papers' clusters, empty: equal nodes below a tree of switches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...cluster.errors import InputError
from ...cluster.nodes import Node, Resources, Switch
from ...cluster.workload import ClusterWorkload

#: Nodes below a leaf switch, and leaves below a switch of the second level (Soner, section 8.4).
LEAF_NODES = 16
SWITCH_LEAVES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class EvenCluster:
    """A cluster of equal nodes.

    Attributes:
        nodes: how many.
        cores, gpus: of each node.
        tree: nodes below leaf switches, leaves below switches, one switch above all; False is the linear
            topology.
        leaf_nodes: nodes below a leaf switch.
        switch_leaves: leaves below a switch of the second level.
    """

    nodes: int = 1408
    cores: int = 12
    gpus: int = 3
    tree: bool = True
    leaf_nodes: int = LEAF_NODES
    switch_leaves: int = SWITCH_LEAVES

    @property
    def total_cores(self) -> int:
        """The cores of all nodes."""
        return self.nodes * self.cores

    def empty(self) -> ClusterWorkload:
        """Return the cluster without jobs."""
        return ClusterWorkload(name="", nodes=self.build_nodes(), switches=self.build_switches())

    def build_nodes(self) -> tuple[Node, ...]:
        """Return the nodes, named n0001 … in order."""
        if self.nodes < 1:
            raise InputError(f"{self.nodes} is below 1", path="nodes")
        amount = Resources(cores=self.cores, gres={"gpu": self.gpus} if self.gpus else {})
        return tuple(Node(name=name, total=amount, free=amount) for name in _names("n", self.nodes))

    def build_switches(self) -> tuple[Switch, ...] | None:
        """Return the switches, leaves first; None is the linear topology."""
        if not self.tree:
            return None
        groups = _groups(_names("n", self.nodes), self.leaf_nodes)
        leaves = _names("leaf", len(groups))
        switches = [Switch(name=name, nodes=nodes) for name, nodes in zip(leaves, groups, strict=True)]
        tops = leaves
        if len(leaves) > self.switch_leaves:
            groups = _groups(leaves, self.switch_leaves)
            tops = _names("switch", len(groups))
            switches += [Switch(name=name, switches=below) for name, below in zip(tops, groups, strict=True)]
        if len(tops) > 1:
            switches.append(Switch(name="root", switches=tops))
        return tuple(switches)


#: Tsubame 2.0 and 2.5 as emulated (Soner, sections 8.3 and 8.4.2), and the hypothetical machine (8.4.1).
TSUBAME = EvenCluster()
HYPOTHETICAL = EvenCluster(nodes=1024, cores=16)


def _names(prefix: str, count: int) -> tuple[str, ...]:
    width = len(str(count))
    return tuple(f"{prefix}{number:0{width}}" for number in range(1, count + 1))


def _groups(names: Sequence[str], size: int) -> list[tuple[str, ...]]:
    return [tuple(names[start : start + size]) for start in range(0, len(names), size)]
