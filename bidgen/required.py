"""Node sets around required nodes: those nodes, and as many others as the job still needs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .choose import spread
from .columns import IntArray
from .demand import Demand, Variant
from .fields import Field, GresChoice
from .windows import WindowRules, node_counts


def required_sets(
    field: Field,
    demand: Demand,
    variant: Variant,
    choice: GresChoice,
    rules: WindowRules,
    most: int,
    stagger: int,
) -> Iterator[IntArray]:
    """Yield at most ``most`` node sets that hold all required nodes and others from different places."""
    is_required = np.isin(field.nodes, demand.required)
    if int(is_required.sum()) < len(demand.required):
        return
    own, others = np.flatnonzero(is_required), np.flatnonzero(~is_required)
    yielded: set[bytes] = set()
    for start in spread(max(1, len(others)), most, stagger):
        turned = np.concatenate([own, np.roll(others, -start)])
        for chosen in _holding(field, turned, len(own), demand, variant, choice):
            nodes = field.nodes[chosen]
            key = np.sort(nodes).tobytes()
            if key not in yielded and _within(nodes, demand, rules):
                yielded.add(key)
                yield nodes


def _within(nodes: IntArray, demand: Demand, rules: WindowRules) -> bool:
    leaves = len(np.unique(rules.topology.leaf[nodes]))
    return demand.max_switches is None or leaves <= demand.max_switches


def _holding(
    field: Field, places: IntArray, own: int, demand: Demand, variant: Variant, choice: GresChoice
) -> Iterator[IntArray]:
    """Yield the first nodes of ``places``, the required ``own`` among them, that hold the job."""
    sums = np.cumsum(field.units[places])
    counts = node_counts(demand, variant, len(places))
    if demand.node_counts is None:
        fewest = max(own, int(np.searchsorted(sums, demand.units or 0)) + 1)
        fewest = max(
            [fewest, *(_enough(field, places, choice, number) for number in range(len(choice.total)))]
        )
        counts = [fewest] if fewest <= min(len(places), variant.max_nodes) else []
    for count in counts:
        least_fits = demand.units is None or demand.exclusive or count * demand.least <= demand.units
        if count >= own and least_fits and sums[count - 1] >= (demand.units or 0):
            chosen = places[:count]
            if all(_enough(field, places, choice, number) <= count for number in range(len(choice.total))):
                yield chosen


def _enough(field: Field, places: IntArray, choice: GresChoice, number: int) -> int:
    """Return how many of ``places`` hold the least of a gres asked for over all nodes."""
    each = np.diff(field.total_sums[number])[places]
    return (
        int(np.searchsorted(np.cumsum(each), choice.total[number][2])) + 1 if choice.total[number][2] else 0
    )
