"""Shapes of jobs, and sums over the waiting jobs of each shape.

Jobs of one shape ask for the same gres and about as many cores on each node, so that one can take
the place of another. While the shapes that run keep the proportions of those that wait, ends make
room for starts, node by node, and no resource is left over at last.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..cluster.resources.columns import Columns
from ..cluster.resources.demand import Demand, is_type_of
from ..cluster.text import plural
from .state import StepState

#: The time limit, in seconds, that a job without one is counted with.
NO_LIMIT_S = 86_400.0
#: A shape may hold this many times its share: jobs are indivisible, some shares are not used up.
_SLACK = 1.05
#: Below this share of the cores' time gres are left over anyway: none has to be kept usable.
_SCARCE = 0.75


class JobClass(NamedTuple):
    """What jobs ask for on each node.

    Attributes:
        gres: (name, fewest) of each gres.
        cores: rounded up to a power of two; 0: they may stand on any number of nodes.
    """

    gres: tuple[tuple[str, int], ...]
    cores: int

    @property
    def fills_gaps(self) -> bool:
        """Whether jobs of it can take any cores that are left over."""
        return not self.cores and not self.gres

    @property
    def gres_count(self) -> int:
        """Gres of all kinds on a node."""
        return sum(count for _, count in self.gres)

    def __str__(self) -> str:
        gres = ", ".join(f"{name}:{count}" for name, count in self.gres)
        cores = f"up to {plural(self.cores, 'core')}" if self.cores else "any cores"
        return f"{gres}, {cores}" if gres else cores


class Ask(NamedTuple):
    """The least a job asks for: shape, nodes, cores (all, each node), gres in all, time limit."""

    shape: JobClass
    nodes: int
    cores: int
    each: int
    gres: tuple[tuple[str, int], ...]
    limit_s: float


def ask_of(demand: Demand, columns: Columns) -> Ask:
    """Return what a job asks for, at the fewest nodes and gres of its ranges."""
    variant = demand.variants[0]
    widest = max(int(columns.total.cores.max(initial=1)), 1)
    nodes = demand.fewest_nodes
    cores = demand.fewest_cores
    if demand.exclusive:
        cores = max(cores, nodes * widest)
    # By the request's name: a job that names no type can stand where any type is.
    gres = tuple((name, span.minimum) for _, name, span in variant.gres if span.minimum)
    total = tuple((name, span.minimum) for _, name, span in variant.gres_total if span.minimum)
    if demand.node_counts is None:
        by_gres = [-(-count // columns.gres_max[name]) for name, count in total if columns.gres_max.get(name)]
        nodes = max(-(-cores // widest), *by_gres, 1)
    each = -(-cores // nodes)
    is_free = demand.node_counts is None and not gres and not total and not demand.exclusive
    limit = demand.job.time_limit_s
    return Ask(
        shape=JobClass(tuple(sorted(gres or total)), 0 if is_free else _rounded(each)),
        nodes=nodes,
        cores=cores,
        each=each,
        gres=(*((name, count * nodes) for name, count in gres), *total),
        limit_s=NO_LIMIT_S if limit is None else float(limit),
    )


def shape_held(cores_each: int, gres: Mapping[str, int]) -> JobClass:
    """Return a running job's shape if only its use of a node is known (a snapshot's)."""
    return JobClass(
        tuple(sorted((name, count) for name, count in gres.items() if count)), _rounded(cores_each)
    )


def _rounded(cores: int) -> int:
    return 1 << (max(cores, 1) - 1).bit_length()


class ClassDemand:
    """Sums over waiting jobs, by shape; kept up to date by a simulation, made for each snapshot.

    Args:
        columns: of the machine; only its totals are looked at.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._asks: dict[str, Ask] = {}
        self._node_s: dict[JobClass, float] = defaultdict(float)
        self._core_s = 0.0
        self._gres_s: dict[str, float] = defaultdict(float)
        self._cores = int(columns.total.cores.sum())
        self._gres: dict[str, int] = {}

    def ask(self, demand: Demand) -> Ask:
        """Return what a job asks for."""
        key = demand.job.id
        if key not in self._asks:
            self._asks[key] = ask_of(demand, self._columns)
        return self._asks[key]

    def note(self, demand: Demand, sign: int) -> None:
        """Count a job that begins (+1) or ceases (−1) to wait."""
        ask = self.ask(demand)
        self._node_s[ask.shape] += sign * ask.nodes * ask.limit_s
        self._core_s += sign * ask.cores * ask.limit_s
        for name, count in ask.gres:
            self._gres_s[name] += sign * count * ask.limit_s

    def name_of(self, kind: str) -> str:
        """Return how waiting jobs call a gres of nodes: by its name, or by one without a type."""
        untyped = kind.partition(":")[0]
        return untyped if kind not in self._gres_s and untyped in self._gres_s else kind

    def span_s(self) -> float:
        """Return for how long what waits would fill the machine: its scarcest resource counts."""
        return max(self._cores_s(), self._gres_spans_s())

    def is_gres_scarce(self) -> bool:
        """Return whether some gres would be used for nearly as long as the cores by what waits."""
        return self._gres_spans_s() > _SCARCE * self._cores_s()

    def rooms(self, held: Mapping[JobClass, int], longest_s: float) -> dict[JobClass, float]:
        """Return how many more nodes jobs of each waiting shape may hold; below 0: it has too many.

        A shape's share of the machine is its waiting node-seconds over the time that all of it
        takes. Beside some slack it may hold what it would in the longest job's time: the last jobs
        then wait for nothing. ``node_s / span · (slack + longest / span) − held``.

        Args:
            held: nodes that running jobs hold, by shape.
            longest_s: limit of the longest job in sight.
        """
        span = max(self.span_s(), 1.0)
        share = (_SLACK + longest_s / span) / span
        return {
            shape: node_s * share - held.get(shape, 0) for shape, node_s in self._node_s.items() if node_s > 0
        }

    def dominant_share(self, ask: Ask) -> float:
        """Return the largest part of some resource of the machine that a job takes."""
        parts = [count / self._there(name) for name, count in ask.gres if self._there(name)]
        return max(parts, default=0.0) if not self._cores else max(ask.cores / self._cores, *parts, 0.0)

    def _cores_s(self) -> float:
        return self._core_s / self._cores if self._cores else 0.0

    def _gres_spans_s(self) -> float:
        spans = [seconds / self._there(name) for name, seconds in self._gres_s.items() if self._there(name)]
        return max(spans, default=0.0)

    def _there(self, name: str) -> int:
        """Return how many of a gres the machine has, of all types where the name has none."""
        if name not in self._gres:
            kinds = self._columns.total.gres.items()
            self._gres[name] = sum(int(counts.sum()) for kind, counts in kinds if is_type_of(kind, name))
        return self._gres[name]


class ClassMix(NamedTuple):
    """What waits and what runs, by shape.

    Attributes:
        waiting: all that waits, the window among it.
        held: nodes that running jobs hold.
        since: when jobs that wait were submitted (seconds), by id, as far as that is known.
    """

    waiting: ClassDemand
    held: Mapping[JobClass, int]
    since: Mapping[str, float]


def mix_of(state: StepState, waiting: Iterable[Demand]) -> ClassMix:
    """Return the mix of a queue and of what runs in a state; of that only its holds are known."""
    backlog = ClassDemand(state.columns)
    since: dict[str, float] = {}
    for demand in waiting:
        backlog.note(demand, 1)
        submitted = demand.job.submit_time
        if state.is_timed and submitted is not None:
            since[demand.job.id] = submitted
    held: dict[JobClass, int] = defaultdict(int)
    for hold in state.holds:
        allocation = hold.allocation
        nodes = len(allocation.nodes)
        gres = {
            backlog.name_of(kind): int(counts.max(initial=0))
            for kind, counts in allocation.held.gres.items()
            if counts.any()
        }
        held[shape_held(-(-int(allocation.held.cores.sum()) // nodes), gres)] += nodes
    return ClassMix(waiting=backlog, held=held, since=since)
