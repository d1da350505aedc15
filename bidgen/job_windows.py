"""One job's windows on one field as drafts of bids, and the order in which kinds of bids are taken.

Which of many windows become bids: those spread over the cluster, staggered, and the tight ones too.

Windows are runs of a scan order. A job that asks for gres in all as well as cores, few switches or
required nodes may fit on nodes that are together in no scanned order: around required nodes, or by
search where no window holds it. Then nodes are ranked by weighted sums of what the job needs
(units, each gres), for many weights, and the best are tried.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from itertools import accumulate, chain, combinations, islice, pairwise
from math import ceil

import numpy as np

from ..cluster.resources.capacity import BoolArray, FloatArray, IntArray, sorted_places
from ..cluster.resources.demand import Demand
from .assemble import EVEN, ChosenWindows, NodesetArena, joined, mode_of
from .candidates import Reading, most_nodes
from .windows import (
    Field,
    Windows,
    by_class,
    fewest_windows,
    fixed_windows,
    node_counts,
    whole_nodesets,
)

_GOLDEN = (np.sqrt(5) - 1) / 2


class BidPhase(IntEnum):
    """The kinds of bids, each filled in its turn."""

    ALIGNED = 0
    SPREAD = 1
    JOINED = 2
    INNER = 3
    EXTRA = 4


@dataclass(slots=True)
class JobWindows:
    """The bids of one job on one field; ``by_figure`` sorts spread bids into classes by place."""

    pool: NodesetArena
    field: Field
    asked: Reading
    group: int
    most: int
    stagger: int
    spreads_jobs: bool = True
    by_figure: bool = False

    def choices(self) -> Iterator[tuple[BidPhase, ChosenWindows]]:
        """Yield the bids of classes A, B and C, and spread bids for a cores-only job."""
        for windows, mode, is_spread in self._windows():
            if is_spread and not self.by_figure:
                yield BidPhase.SPREAD, self._drafted(windows, mode)
                continue
            yield from self._by_class(windows, mode)
            if self.asked.demand.node_counts is None and not is_spread:
                backward = self._fewest(backward=True)
                if len(backward):
                    yield BidPhase.ALIGNED, self._drafted(backward, mode, backward=True)

    def unordered(self) -> Iterator[ChosenWindows]:
        """Yield bids of class C on nodes that are no neighbours."""
        yield from (self._drafted(windows, mode) for windows, mode, _ in self._windows())

    def _windows(self) -> Iterator[tuple[Windows, int, bool]]:
        """Yield windows of the fewest nodes, or of as many as asked; then wider ones for cores."""
        demand, field = self.asked.demand, self.field
        if demand.node_counts is not None:
            counts = node_counts(self.asked, len(field))
            found = (fixed_windows(field, count, self.asked) for count in counts)
            yield from ((windows, mode_of(demand), False) for windows in found if len(windows))
            return
        fewest = self._fewest(backward=False)
        if len(fewest):
            yield fewest, mode_of(demand), False
            if self.spreads_jobs and not demand.exclusive:
                yield from ((windows, EVEN, True) for windows in self._spread(fewest))

    def _fewest(self, *, backward: bool) -> Windows:
        windows = fewest_windows(self.field, self.asked, backward=backward)
        fits = windows.length <= self.asked.variant.max_nodes
        # The same windows again, not a copy, so that what is known of them is found.
        return windows if fits.all() else windows.only(fits)

    def _drafted(self, windows: Windows, mode: int, *, backward: bool = False) -> ChosenWindows:
        best = best_windows(self.field, windows, self.most, self.stagger)
        return self.pool.choose(self.field, windows, best, (self.group, mode, backward))

    def _by_class(self, windows: Windows, mode: int) -> Iterator[tuple[BidPhase, ChosenWindows]]:
        phases = (BidPhase.ALIGNED, BidPhase.INNER, BidPhase.JOINED)
        for phase, part in zip(phases, by_class(self.field, windows), strict=True):
            if len(part):
                yield phase, self._drafted(part, mode)

    def _spread(self, fewest: Windows) -> Iterator[Windows]:
        """Yield windows on more nodes than needed: 2, 4 times that, whole nodesets, all joined."""
        most = most_nodes(self.asked.demand, self.asked.variant, len(self.field))
        count = int(fewest.length.min())
        multiples = (length for length in dict.fromkeys((2 * count, 4 * count)) if length <= most)
        found = (fixed_windows(self.field, length, self.asked) for length in multiples)
        yield from (windows for windows in found if len(windows))
        yield from whole_nodesets(self.field, most, self.asked)


def count_of(kept: dict[BidPhase, list[ChosenWindows]]) -> int:
    """Return how many windows there are."""
    return sum(len(draft) for drafts in kept.values() for draft in drafts)


def by_figure(kept: dict[BidPhase, list[ChosenWindows]], most: int) -> ChosenWindows:
    """Return a job's windows in figure 4.5's order: A, then B, then C, spread bids among them."""
    phases = (BidPhase.ALIGNED, BidPhase.INNER, BidPhase.JOINED)
    return joined([interleaved(kept[phase]) for phase in phases])[:most]


def interleaved(drafts: list[ChosenWindows]) -> ChosenWindows:
    """Return several drafts as one: the best of each, then the second best of each."""
    if len(drafts) < 2:  # noqa: PLR2004 - nothing to deal
        return joined(drafts)
    ranks = np.concatenate([np.arange(len(draft)) for draft in drafts])
    return joined(drafts)[sorted_places(ranks)]


def in_turn(kinds: dict[BidPhase, ChosenWindows], most: int, taken: int) -> ChosenWindows:
    """Return the best ``taken`` windows of all kinds in the order ``spec`` for a cap of ``most``.

    A job with more class A windows than half the cap leaves the other half to the other kinds.
    """
    quota = ceil(most / 2)
    turn = {BidPhase.INNER: 0, BidPhase.JOINED: 1, BidPhase.SPREAD: 2}
    keys: list[IntArray] = []
    for phase, draft in kinds.items():
        rank = np.arange(len(draft))
        if phase is BidPhase.ALIGNED:
            key = np.where(rank < quota, rank, rank + 10 * most)
        elif phase is BidPhase.EXTRA:
            key = quota + 2 + 3 * most + rank
        else:
            key = quota + 2 + 3 * rank + turn[phase]
            if phase is not BidPhase.INNER:
                key[:1] = quota + (phase is BidPhase.JOINED)
        keys.append(key)
    return joined(list(kinds.values()))[np.argsort(np.concatenate(keys), kind="stable")[:taken]]


def spread(count: int, most: int, stagger: int) -> IntArray:
    """Return at most ``most`` of ``count`` positions, evenly apart, rotated by ``stagger``.

    Any beginning of the answer is spread nearly evenly too (the fractional parts of multiples of
    the golden ratio are), so a caller may take as many as it has room for.
    """
    most = min(count, most)
    if most == 0:
        return np.zeros(0, np.int64)
    return (_visits(most) * count // most + stagger) % count


@lru_cache(maxsize=1024)
def _visits(most: int) -> IntArray:
    """Return the numbers 0 to ``most`` − 1, any beginning of them nearly evenly apart."""
    visits: IntArray = np.argsort(np.argsort((np.arange(most) * _GOLDEN) % 1.0))
    visits.flags.writeable = False
    return visits


def _ranked(field: Field, windows: Windows) -> list[tuple[IntArray, IntArray]]:
    """Return each level's windows, lowest first, and their places from the tightest nodeset on."""
    last = windows.start + windows.length - 1
    left = field.run_last[last] - field.run_first[windows.start] + 1 - windows.length
    counts = [count for count in np.bincount(windows.level).tolist() if count]
    if len(counts) == 1:
        return [(np.arange(len(windows)), sorted_places(left))]
    # Of all levels at once: members of a level stand together, and their places by what is left.
    of_levels = sorted_places(windows.level)
    sorted_left = sorted_places(left[of_levels])
    by_left = sorted_left[sorted_places(windows.level[of_levels][sorted_left])]
    ends = pairwise(accumulate(counts, initial=0))
    return [(of_levels[begin:end], by_left[begin:end] - begin) for begin, end in ends]


def best_windows(field: Field, windows: Windows, most: int, stagger: int) -> IntArray:
    """Return the places of the ``most`` best windows to bid on, best first.

    Low levels stand first but do not crowd out higher ones; within a level windows in the tightest
    nodesets, which leave the least behind, alternate with windows spread over the cluster.
    """
    if len(windows) < 2:  # noqa: PLR2004 - nothing to order
        return np.arange(len(windows))[:most]
    # Jobs that ask alike share windows, and their ranks.
    levels: list[tuple[IntArray, IntArray]] = field.once(("ranked", windows), lambda: _ranked(field, windows))
    places = [members[_tight_and_spread(tight, most, stagger)] for members, tight in levels]
    if len(places) == 1:
        return places[0][:most]
    return np.concatenate(places)[_by_weight(tuple(map(len, places)), most)]


@lru_cache(maxsize=4096)
def _by_weight(counts: tuple[int, ...], most: int) -> IntArray:
    """Return the ``most`` best places of each level: the k-th of level l weighs k·(l + 1)."""
    weights = [np.arange(count) * (above + 1) for above, count in enumerate(counts)]
    best: IntArray = np.argsort(np.concatenate(weights), kind="stable")[:most]
    best.flags.writeable = False
    return best


def _tight_and_spread(tight: IntArray, most: int, stagger: int) -> IntArray:
    """Return at most ``most`` places, spread ones and the tightest in turn."""
    count = len(tight)
    if count <= 1:
        return np.arange(count)
    apart = spread(count, most, stagger).tolist()
    tightest = tight[: min((most + 1) // 2, len(apart))].tolist()
    # A few dozen at most: Python's own set of keys is faster than sorting them.
    both = [-1] * (2 * len(apart))
    both[0::2] = apart
    both[1 : 2 * len(tightest) : 2] = tightest
    places = dict.fromkeys(both)
    places.pop(-1, None)
    return np.fromiter(places, np.int64, len(places))[:most]


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
