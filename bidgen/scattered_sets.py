"""Node sets that are no windows: around required nodes, and by search where no window holds a job.

Windows are runs of a scan order. A job that asks for gres in all as well as cores, few switches or
required nodes may fit on nodes that are together in no scanned order. Here nodes are ranked by
weighted sums of what the job needs (units, each gres), for many weights, and the best are tried.
"""

from collections.abc import Callable, Iterator
from itertools import chain, combinations, islice

import numpy as np

from ..cluster.resources.capacity import BoolArray, FloatArray, IntArray
from ..cluster.resources.demand import Demand
from .candidates import Reading, most_nodes
from .job_windows import spread
from .windows import Field, node_counts

#: Random weights tried beside each need alone, and groups of leaf switches tried.
_WEIGHTS = 48
_LEAF_GROUPS = 2000


def exhaustive_bids(field: Field, asked: Reading, is_over: Callable[[], bool]) -> IntArray | None:
    """Return nodes that hold a job that may be scattered, or None when none were found in time."""
    demand = asked.demand
    own = np.isin(field.nodes, demand.required)
    if int(own.sum()) < len(demand.required):
        return None
    each, needs = _needs(field, asked)
    for allowed in _leaf_groups(field, demand, own):
        # Every node count the job could have.
        for count in range(demand.fewest_nodes, most_nodes(demand, asked.variant, int(allowed.sum())) + 1):
            if is_over():
                return None
            for score in _scores(each, needs):
                ranked = np.argsort(-np.where(own, np.inf, np.where(allowed, score, -np.inf)), kind="stable")
                chosen = ranked[:count]
                if len(demand.required) <= count and (each[:, chosen].sum(axis=1) >= needs).all():
                    return field.nodes[np.sort(chosen)]
    return None


def legal_sets(field: Field, asked: Reading) -> Iterator[IntArray]:
    """Yield sets of a field's nodes that topology units allow and that hold the job, best first."""
    demand, units = asked.demand, field.topology.units
    if units is None or not np.isin(demand.required, field.nodes).all():
        return
    each, needs = _needs(field, asked)
    amount = np.zeros((len(needs), len(field.topology.rank)))
    amount[:, field.nodes] = each
    # Of each block the first or last nodes, so two jobs may share it; else those that give most.
    orders = [field.nodes, field.nodes[::-1]]
    orders += [field.nodes[np.argsort(-field.units, kind="stable")]] if needs.any() else []
    for count in node_counts(asked, len(field)):
        found = (units.sets(demand, nodes, count) for nodes in orders)
        for nodes in chain.from_iterable(found):
            if (amount[:, nodes].sum(axis=1) >= needs).all():
                yield nodes


def _needs(field: Field, asked: Reading) -> tuple[FloatArray, FloatArray]:
    """Return what each node gives of each need, shape (needs, m), and how much of it is needed."""
    rows = [field.units, *(np.diff(sums) for sums in field.total_sums)]
    needs = [asked.demand.units or 0, *(low for _, _, low, _ in asked.choice.total)]
    return np.array(rows, np.float64), np.array(needs, np.float64)


def _scores(each: FloatArray, needs: FloatArray) -> Iterator[FloatArray]:
    """Yield rankings of the nodes: by each need alone, then by mixtures."""
    scaled = each / np.maximum(needs, 1)[:, None]
    yield from scaled
    if len(scaled) > 1:
        weights = np.random.default_rng(0).dirichlet(np.full(len(scaled), 0.5), _WEIGHTS)
        yield from (weight @ np.minimum(scaled, 1.0) for weight in weights)
        yield from (weight @ scaled for weight in weights)


def _leaf_groups(field: Field, demand: Demand, own: BoolArray) -> Iterator[BoolArray]:
    """Yield which nodes may mix: all, or those below as few leaf switches as the job allows."""
    if demand.max_switches is None:
        yield np.ones(len(field), np.bool_)
        return
    leaf = field.topology.leaf[field.nodes]
    fixed = np.unique(leaf[own])
    room = demand.max_switches - len(fixed)
    if room < 0:
        return
    leaves, place = np.unique(leaf, return_inverse=True)
    units = np.bincount(place, weights=field.units)
    others = [leaves[index] for index in np.argsort(-units, kind="stable") if leaves[index] not in fixed]
    for group in islice(combinations(others, min(room, len(others))), _LEAF_GROUPS):
        yield np.isin(leaf, [*fixed, *group])


def required_sets(field: Field, asked: Reading, most: int, stagger: int) -> Iterator[IntArray]:
    """Yield up to ``most`` node sets with all required nodes and others from different places."""
    is_required = np.isin(field.nodes, asked.demand.required)
    if int(is_required.sum()) < len(asked.demand.required):
        return
    own, others = np.flatnonzero(is_required), np.flatnonzero(~is_required)
    yielded: set[bytes] = set()
    for start in spread(max(1, len(others)), most, stagger):
        turned = np.concatenate([own, np.roll(others, -start)])
        for chosen in _holding(field, turned, len(own), asked):
            nodes = field.nodes[chosen]
            key = np.sort(nodes).tobytes()
            most_leaves = asked.demand.max_switches
            is_near = most_leaves is None or len(np.unique(field.topology.leaf[nodes])) <= most_leaves
            if key not in yielded and is_near:
                yielded.add(key)
                yield nodes


def _holding(field: Field, places: IntArray, own: int, asked: Reading) -> Iterator[IntArray]:
    """Yield the first nodes of ``places``, the required ``own`` among them, that hold the job."""
    demand = asked.demand
    sums, enough = np.cumsum(field.units[places]), _enough(field, places, asked)
    counts = node_counts(asked, len(places))
    if demand.node_counts is None:
        fewest = max(own, int(np.searchsorted(sums, demand.units or 0)) + 1)
        fewest = max(fewest, enough)
        counts = [fewest] if fewest <= min(len(places), asked.variant.max_nodes) else []
    for count in counts:
        least_fits = demand.units is None or demand.exclusive or count * demand.least <= demand.units
        if count >= max(own, enough) and least_fits and sums[count - 1] >= (demand.units or 0):
            yield places[:count]


def _enough(field: Field, places: IntArray, asked: Reading) -> int:
    """Return how many of ``places`` hold the least of each gres asked for over all nodes."""
    lows = [low for _, _, low, _ in asked.choice.total]
    each = [(np.cumsum(np.diff(sums)[places]), low) for sums, low in zip(field.total_sums, lows, strict=True)]
    return max((int(np.searchsorted(sums, low)) + 1 for sums, low in each if low), default=0)
