"""What waits and what runs by shape: how many nodes the jobs of a shape should hold, so that the mix lasts.

Jobs of one shape ask for the same gres and about as many cores on each node, so that one can take the place
of another. While the shapes that run keep the proportions of those that wait, ends make room for starts, node
by node, and no resource is left over at last. A policy that takes whatever fits lets the jobs that fit
anywhere overtake the others, until only jobs are left that cannot share nodes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ...bidgen.columns import Columns
from ...bidgen.demand import Demand

#: A job without a time limit counts as one of so many seconds.
_NO_LIMIT_S = 86_400.0
#: A shape may hold so many times its share: jobs are lumps, and shares of all shapes are rarely used up.
_SLACK = 1.15
#: Below this share of the cores' time gres are left over whatever is done: none has to be kept usable.
_SCARCE = 0.75


class Shape(NamedTuple):
    """What jobs ask for on each node.

    Attributes:
        gres: (name, fewest) of each gres.
        cores: rounded up to a power of two; 0: they may stand on any number of nodes.
    """

    gres: tuple[tuple[str, int], ...]
    cores: int

    @property
    def fills_gaps(self) -> bool:
        """Return whether jobs of it can take any cores that are left over."""
        return not self.cores and not self.gres


class Ask(NamedTuple):
    """What a job asks for: its shape, its fewest nodes, cores in all and on each, gres in all, its limit."""

    shape: Shape
    nodes: int
    cores: int
    each: int
    gres: tuple[tuple[str, int], ...]
    limit_s: float


def ask_of(demand: Demand, columns: Columns) -> Ask:
    """Return what a job asks for, at the fewest nodes and gres of its ranges."""
    variant = demand.variants[0]
    widest = max(int(columns.total.cores.max(initial=1)), 1)
    nodes = 1 if demand.node_counts is None else demand.node_counts.minimum
    cores = (demand.units or nodes * demand.least) * demand.unit
    if demand.exclusive:
        cores = max(cores, nodes * widest)
    if demand.node_counts is None:
        nodes = max(-(-cores // widest), 1)
    each = -(-cores // nodes)
    # By the request's name: a job that names no type can stand where any type is.
    gres = tuple((name, span.minimum) for _, name, span in variant.gres if span.minimum)
    total = tuple((name, span.minimum) for _, name, span in variant.gres_total if span.minimum)
    is_free = demand.node_counts is None and not gres and not total and not demand.exclusive
    limit = demand.job.time_limit_s
    return Ask(
        shape=Shape(gres=gres or total, cores=0 if is_free else 1 << (each - 1).bit_length()),
        nodes=nodes,
        cores=cores,
        each=each,
        gres=(*((name, count * nodes) for name, count in gres), *total),
        limit_s=_NO_LIMIT_S if limit is None else float(limit),
    )


class Mix:
    """Sums what waits by shape.

    Args:
        columns: of the machine; only its totals are looked at.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._asks: dict[int, Ask] = {}
        self._node_s: dict[Shape, float] = defaultdict(float)
        self._core_s = 0.0
        self._gres_s: dict[str, float] = defaultdict(float)
        self._cores = int(columns.total.cores.sum())
        self._gres: dict[str, int] = {}

    def ask(self, demand: Demand) -> Ask:
        """Return what a job asks for."""
        if demand.index not in self._asks:
            self._asks[demand.index] = ask_of(demand, self._columns)
        return self._asks[demand.index]

    def note(self, demand: Demand, sign: int) -> None:
        """Count a job that begins (+1) or ceases (−1) to wait."""
        ask = self.ask(demand)
        self._node_s[ask.shape] += sign * ask.nodes * ask.limit_s
        self._core_s += sign * ask.cores * ask.limit_s
        for name, count in ask.gres:
            self._gres_s[name] += sign * count * ask.limit_s
            if name not in self._gres:
                self._gres[name] = self._of_all_types(name)

    def _of_all_types(self, name: str) -> int:
        kinds = self._columns.total.gres
        fitting = [counts for kind, counts in kinds.items() if kind == name or kind.startswith(f"{name}:")]
        return sum(int(counts.sum()) for counts in fitting)

    def waiting_s(self) -> float:
        """Return for how long what waits would fill the machine: its scarcest resource counts."""
        return max(self._cores_s(), self._gres_spans_s())

    def is_gres_scarce(self) -> bool:
        """Return whether some gres would be used for nearly as long as the cores by what waits."""
        return self._gres_spans_s() > _SCARCE * self._cores_s()

    def _cores_s(self) -> float:
        return self._core_s / self._cores if self._cores else 0.0

    def _gres_spans_s(self) -> float:
        spans = [seconds / self._gres[name] for name, seconds in self._gres_s.items() if self._gres[name]]
        return max(spans, default=0.0)

    def rooms(self, running: Iterable[Demand], longest_s: float) -> Mapping[Shape, float]:
        """Return how many nodes more the jobs of each waiting shape may hold.

        A shape's share of the machine is its waiting work over the time that all of it takes; beside some
        slack it may hold what it would in the longest job's time, so that the last jobs wait for nothing.

        Args:
            running: jobs that hold nodes.
            longest_s: limit of the longest job in sight.
        """
        span = max(self.waiting_s(), 1.0)
        held: dict[Shape, int] = defaultdict(int)
        for demand in running:
            ask = self.ask(demand)
            held[ask.shape] += ask.nodes
        share = (_SLACK + longest_s / span) / span
        return {shape: node_s * share - held[shape] for shape, node_s in self._node_s.items() if node_s > 0}

    def nothing_runs(self, shape: Shape, running: Iterable[Demand]) -> bool:
        """Return whether no job of a shape holds nodes."""
        return all(self.ask(demand).shape != shape for demand in running)
