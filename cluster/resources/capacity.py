"""Capacities of nodes as arrays: cores, memory and each gres, one entry a node."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ..checks import LARGEST_COUNT
from ..nodes import Resources

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

Number = TypeVar("Number", bound=np.generic)

#: Free memory of a node whose memory is not limited (MiB): beyond what a node can be said to have;
#: sums of it stay below 2⁶³.
UNLIMITED_MIB = 10 * LARGEST_COUNT

#: Names in files that are no gres'.
_NO_GRES = ("cores", "memory", "memory_gib", "memory_mib")


class Resource(NamedTuple):
    """One resource: the cores of nodes, a gres or a licence by name.

    Attributes:
        family: the name of the family of constraints that it belongs to.
        name: empty where the family has one resource only.
    """

    family: str
    name: str = ""

    @property
    def label(self) -> str:
        """The name for people and files; a gres named like another resource is ``gres/cores``."""
        if not self.name:
            return self.family
        is_taken = self.name in _NO_GRES or self.name.startswith(f"{self.family}/")
        return f"{self.family}/{self.name}" if is_taken else self.name

    @property
    def is_on_nodes(self) -> bool:
        """Whether a ``Capacity`` counts it."""
        return self.family in (CORES.family, MEMORY.family, _GRES)


#: The resources of nodes: cores, memory, and each gres under its own name.
CORES, MEMORY, _GRES = Resource("cores"), Resource("memory"), "gres"


@dataclass(slots=True, eq=False, kw_only=True)
class Capacity:
    """An amount on every node: cores, memory in MiB, gres by name; arrays of shape (n,)."""

    cores: IntArray
    memory: IntArray
    gres: dict[str, IntArray]

    def resources(self) -> Iterator[Resource]:
        """Yield every resource that is counted."""
        yield CORES
        yield from (Resource(_GRES, kind) for kind in self.gres)
        yield MEMORY

    def amounts(self, resource: Resource) -> IntArray:
        """Return one resource's amounts: the capacity's own array."""
        if resource.family == _GRES:
            return self.gres[resource.name]
        return self.cores if resource == CORES else self.memory

    @property
    def gres_count(self) -> IntArray:
        """Gres of all kinds on each node."""
        total: IntArray = sum(self.gres.values(), np.zeros_like(self.cores))
        return total

    def each(self, change: Callable[[IntArray], IntArray]) -> "Capacity":
        """Return a capacity of which every array is changed alike."""
        return self.joined((), change)

    def joined(self, others: Sequence["Capacity"], join: Callable[..., IntArray]) -> "Capacity":
        """Return a capacity of which every array is joined with those of others of its shape."""
        return Capacity(
            cores=join(self.cores, *(one.cores for one in others)),
            memory=join(self.memory, *(one.memory for one in others)),
            gres={
                kind: join(counts, *(one.gres[kind] for one in others)) for kind, counts in self.gres.items()
            },
        )

    def copy(self) -> "Capacity":
        """Return an independent copy."""
        return self.each(np.copy)

    def at(self, nodes: IntArray) -> "Capacity":
        """Return the amounts on some nodes only."""
        return self.each(lambda counts: counts[nodes])

    def less(self, other: "Capacity") -> "Capacity":
        """Return what is above another capacity of the same shape."""
        return self.joined((other,), np.subtract)

    def least(self, other: "Capacity") -> "Capacity":
        """Return the lesser of two capacities of the same shape, amount by amount."""
        return self.joined((other,), np.minimum)

    def covers(self, other: "Capacity") -> bool:
        """Return whether nothing here is below another capacity on the same nodes."""
        return all(bool((other.amounts(one) <= self.amounts(one)).all()) for one in other.resources())

    def capped(self, nodes: IntArray, room: "Capacity") -> "Capacity":
        """Return a copy with at most ``room`` (shape of ``nodes``) on some nodes."""
        capped = self.copy()
        for resource in capped.resources():
            counts = capped.amounts(resource)
            counts[nodes] = np.minimum(counts[nodes], room.amounts(resource))
        return capped


def capacity_of(uses: Sequence[Resources], kinds: Iterable[str], uncounted_mib: int) -> Capacity:
    """Return resources as arrays with one entry for each of them.

    ``uses``: of nodes, or what a job holds on each of its nodes. ``uncounted_mib``: the memory of
    those that do not count it.
    """
    memory = [uncounted_mib if use.memory_mib is None else use.memory_mib for use in uses]
    held = {kind for use in uses for kind in use.gres}
    none = np.zeros(len(uses), np.int64)
    return Capacity(
        cores=np.array([use.cores for use in uses], np.int64),
        memory=np.array(memory, np.int64),
        gres={
            kind: np.array([use.gres.get(kind, 0) for use in uses], np.int64) if kind in held else none.copy()
            for kind in kinds
        },
    )


def sums_before(values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return the sum of the values before each, and of all, shape (values + 1,)."""
    sums = np.zeros(len(values) + 1, values.dtype)
    values.cumsum(out=sums[1:])
    return sums


def ranges(begins: IntArray, lengths: IntArray) -> IntArray:
    """Return places from each begin on, as many as each length says, one range after another."""
    before = sums_before(lengths)
    places: IntArray = np.arange(before[-1]) + np.repeat(begins - before[:-1], lengths)
    return places


def sorted_places(values: IntArray) -> IntArray:
    """Return the places of values, least first, equal ones as they stand."""
    least, most = int(values.min(initial=0)), int(values.max(initial=0))
    if len(values) < 100 or least < 0 or most >> 32:  # noqa: PLR2004 - few are sorted as they are
        return np.argsort(values, kind="stable")
    # Numbers of 16 bits are sorted by their digits, in a tenth of the time.
    order = np.argsort(values.astype(np.uint16), kind="stable")
    if most >> 16:
        order = order[np.argsort((values >> 16)[order].astype(np.uint16), kind="stable")]
    return order


def nothing_held(total: Capacity, free: Capacity) -> BoolArray:
    """Return the nodes of which everything is free, shape (n,)."""
    empty: BoolArray = (free.cores == total.cores) & (free.memory == total.memory)
    for name, counts in free.gres.items():
        empty &= counts == total.gres[name]
    return empty
