"""Prophet's cost functions, made of an application's callbacks (Weissman, chapter 3, figure 4).

    T_comm = lat + bw · p · comm_complexity / bw_avail
    T_comp = comp_complexity · arch_cost · numDEs / (p · cpu_avail)
    T_exec = T_comm + T_comp

The p of T_comm is that of a medium which all processors share; other topologies put another factor there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

from aucsched.cluster.errors import InputError

from .protocol import CostBenefit, Resources

#: Topology -> how many messages share the medium on p processors.
TOPOLOGIES: Mapping[str, Callable[[int], float]] = {
    "1-D": float,
    "ring": float,
    "tree": lambda processors: log2(processors) if processors > 1 else 0.0,
    "broadcast": lambda processors: processors - 1.0,
}
_MICRO = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """What an application says of itself (figure 4).

    Attributes:
        comm_topology: one of TOPOLOGIES.
        comm_complexity: mean bytes of a message.
        num_des: data elements.
        comp_complexity: instructions for a data element.
        iters: iterations.
        min_requirements: the fewest processors.
        data_bytes: what has to be moved when the data are spread anew.
    """

    comm_topology: str
    comm_complexity: float
    num_des: int
    comp_complexity: float
    iters: int
    min_requirements: int = 1
    data_bytes: float = 0.0

    def __post_init__(self) -> None:
        if self.comm_topology not in TOPOLOGIES:
            raise InputError(
                f"{self.comm_topology!r} is none of {', '.join(TOPOLOGIES)}", path="comm_topology"
            )
        if self.min_requirements < 1 or self.iters < 0 or min(self.num_des, self.comp_complexity) <= 0:
            raise InputError("a callback is below what it can be", path="callbacks")


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """What benchmarking says of the machine.

    Attributes:
        lat_s: of a communication phase.
        bw_s: seconds a byte.
        arch_cost_us: microseconds an instruction.
        adapt_s: seconds that an adaptation takes beside the data that it moves.
        bw_avail, cpu_avail: shares of the network and of a processor that are left to the application.
    """

    lat_s: float
    bw_s: float
    arch_cost_us: float
    adapt_s: float = 0.0
    bw_avail: float = 1.0
    cpu_avail: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A measured iteration: its processors, and seconds of computation and of communication."""

    processors: int
    comp_s: float
    comm_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prophet:
    """Predictions for one application on one machine."""

    callbacks: Callbacks
    platform: Platform

    def comm_s(self, processors: int) -> float:
        """Return an iteration's communication time."""
        return self._shipping_s(processors, self.callbacks.comm_complexity)

    def _shipping_s(self, processors: int, size: float) -> float:
        factor = TOPOLOGIES[self.callbacks.comm_topology](processors)
        return self.platform.lat_s + self.platform.bw_s * factor * size / self.platform.bw_avail

    def comp_s(self, processors: int) -> float:
        """Return an iteration's computation time."""
        instructions = self.callbacks.comp_complexity * self.callbacks.num_des
        return instructions * self.platform.arch_cost_us * _MICRO / (processors * self.platform.cpu_avail)

    def exec_s(self, processors: int) -> float:
        """Return an iteration's time."""
        return self.comm_s(processors) + self.comp_s(processors)

    def resources(self, most: int) -> Resources:
        """Return the fewest processors, and those at the knee of the curve among at most that many."""
        least = self.callbacks.min_requirements
        counts = range(least, max(least, most) + 1)
        return Resources(least=least, ideal=min(counts, key=lambda count: (self.exec_s(count), count)))

    def cost_benefit(self, processors: int, after: int, iterations: int) -> CostBenefit:
        """Return what going from one count to another costs and brings over the iterations to come.

        The cost is the adaptation's own time and the communication function over the data that move: each
        processor's share of them (Weissman 4.1).
        """
        moved = self.callbacks.data_bytes / processors
        cost_s = self.platform.adapt_s + self._shipping_s(processors, moved)
        return CostBenefit(
            cost_s=cost_s, benefit_s=iterations * (self.exec_s(processors) - self.exec_s(after))
        )


def fitted(callbacks: Callbacks, samples: Sequence[Sample], adaptations_s: Sequence[float] = ()) -> Platform:
    """Return the machine by least squares over measured iterations and adaptations.

    Args:
        callbacks: of the application that was measured.
        samples: of one or more counts of processors; of a single one the latency takes all communication.
        adaptations_s: seconds that past adaptations took; their mean is the cost of the next.

    Raises:
        InputError: no samples.
    """
    if not samples:
        raise InputError("there are no measured iterations", path="samples")
    work = np.array([callbacks.comp_complexity * callbacks.num_des / one.processors for one in samples])
    comp = np.array([one.comp_s for one in samples])
    arch_cost_us = float(work @ comp / (work @ work)) / _MICRO
    factor = TOPOLOGIES[callbacks.comm_topology]
    load = np.array([factor(one.processors) * callbacks.comm_complexity for one in samples])
    comm = np.array([one.comm_s for one in samples])
    spread = load - load.mean()
    slope = float(spread @ comm / (spread @ spread)) if spread.any() else 0.0
    bw_s = max(slope, 0.0)
    return Platform(
        lat_s=max(float(comm.mean() - bw_s * load.mean()), 0.0),
        bw_s=bw_s,
        arch_cost_us=arch_cost_us,
        adapt_s=float(np.mean(adaptations_s)) if adaptations_s else 0.0,
    )
