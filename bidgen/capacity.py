"""Amounts on nodes: cores, memory and each gres as arrays with one entry a node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..cluster.checks import LARGEST_COUNT

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

#: Free memory of a node whose memory is not limited (MiB): beyond what a node can be said to have; sums of it
#: stay below 2⁶³.
UNLIMITED_MIB = 10 * LARGEST_COUNT


@dataclass(slots=True, eq=False, kw_only=True)
class Capacity:
    """An amount on every node: cores, memory in MiB, and each gres by name; arrays of shape (n,)."""

    cores: IntArray
    memory: IntArray
    gres: dict[str, IntArray]

    def copy(self) -> Capacity:
        """Return an independent copy."""
        return Capacity(
            cores=self.cores.copy(),
            memory=self.memory.copy(),
            gres={name: counts.copy() for name, counts in self.gres.items()},
        )

    def at(self, nodes: IntArray) -> Capacity:
        """Return the amounts on some nodes only."""
        return Capacity(
            cores=self.cores[nodes],
            memory=self.memory[nodes],
            gres={name: counts[nodes] for name, counts in self.gres.items()},
        )

    def less(self, other: Capacity) -> Capacity:
        """Return what is above another capacity of the same shape."""
        return Capacity(
            cores=self.cores - other.cores,
            memory=self.memory - other.memory,
            gres={name: counts - other.gres[name] for name, counts in self.gres.items()},
        )

    def least(self, other: Capacity) -> Capacity:
        """Return the lesser of two capacities of the same shape, amount by amount."""
        return Capacity(
            cores=np.minimum(self.cores, other.cores),
            memory=np.minimum(self.memory, other.memory),
            gres={name: np.minimum(counts, other.gres[name]) for name, counts in self.gres.items()},
        )

    def capped(self, nodes: IntArray, room: Capacity) -> Capacity:
        """Return a copy with at most ``room`` (shape of ``nodes``) on some nodes."""
        capped = self.copy()
        capped.cores[nodes] = np.minimum(capped.cores[nodes], room.cores)
        capped.memory[nodes] = np.minimum(capped.memory[nodes], room.memory)
        for name, counts in capped.gres.items():
            counts[nodes] = np.minimum(counts[nodes], room.gres[name])
        return capped
