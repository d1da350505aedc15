"""Cores of a machine's nodes and the jobs that hold them; no core is given twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...cluster.errors import AwardError

#: Cores by node.
Held = dict[int, int]


class NodeCores:
    """Free cores on each node."""

    def __init__(self, nodes: int, cores_per_node: int) -> None:
        self.free = [cores_per_node] * nodes
        self._most = cores_per_node

    def take(self, cores: int, near: Iterable[int] = ()) -> Held:
        """Take cores and return where: on the nodes next to some, else on the first that have them."""
        own = tuple(near)
        order = sorted(
            range(len(self.free)), key=lambda node: min((abs(node - one) for one in own), default=node)
        )
        held: Held = {}
        for node in order:
            count = min(cores, self.free[node])
            if count:
                held[node] = count
                cores -= count
        if cores:
            raise AwardError(f"{cores} cores are given that nobody has")
        self.hold(held)
        return held

    def hold(self, held: Mapping[int, int]) -> None:
        """Take these cores."""
        for node, count in held.items():
            self.free[node] -= count
            if self.free[node] < 0:
                raise AwardError(f"{-self.free[node]} cores of node {node} are given twice")

    def give(self, held: Mapping[int, int]) -> None:
        """Give these cores back."""
        for node, count in held.items():
            self.free[node] += count
            if self.free[node] > self._most:
                raise AwardError(f"node {node} is given back more cores than it has")
