"""Outages of the nodes of a simulated machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import inf

from .checks import LARGEST_COUNT, named
from .errors import InputError
from .value_types import HostList, NameTuple, Number, coerce_members, member, value_class


@value_class
class Outage:
    """Some nodes go down together, and come back together.

    Attributes:
        nodes: names, each once.
        down_s: seconds after the workload's beginning.
        up_s: the same, after ``down_s``; None: they never come back.
    """

    nodes: NameTuple = member(HostList())
    down_s: float = member(Number(f"a time from 0 to {LARGEST_COUNT} s", least=0, most=LARGEST_COUNT))
    up_s: float | None = member(Number("a time"), default=None)

    def __post_init__(self) -> None:
        coerce_members(self)
        if not self.nodes:
            raise InputError("no node is named", path="nodes")
        for name in self.nodes:
            named(name, "nodes")
        if len(set(self.nodes)) < len(self.nodes):
            raise InputError("a node is named twice", path="nodes")
        if self.up_s is not None and not self.down_s < self.up_s <= LARGEST_COUNT:
            message = f"{self.up_s:g} is not a time after down_s {self.down_s:g}, up to {LARGEST_COUNT} s"
            raise InputError(message, path="up_s")


def outages_by_node(
    outages: Iterable[Outage], takes_jobs: Mapping[str, bool]
) -> dict[str, list[tuple[float, float]]]:
    """Return when each node named is down, ascending: (down, up) in seconds, up infinite where it stays down.

    Args:
        outages: in any order.
        takes_jobs: the machine's nodes by name, and whether jobs could start on them at all.

    Raises:
        InputError: a node is not the machine's, takes no jobs anyway, or is down twice at once.
    """
    found: dict[str, list[tuple[float, float, int]]] = {}
    for index, outage in enumerate(outages):
        for name in outage.nodes:
            if not takes_jobs.get(name, False):
                why = "takes no jobs anyway" if name in takes_jobs else "is not a node of the workload"
                raise InputError(f"{name!r} {why}", path=f"failures[{index}].nodes")
            up = inf if outage.up_s is None else outage.up_s
            found.setdefault(name, []).append((outage.down_s, up, index))
    for name, times in found.items():
        times.sort()
        for (_, up, _), (down, _, index) in pairwise(times):
            if down < up:
                raise InputError(f"{name!r} is down already at {down:g} s", path=f"failures[{index}].down_s")
    return {name: [(down, up) for down, up, _ in times] for name, times in found.items()}
