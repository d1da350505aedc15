"""Windows of a field: the node sets for bids of every class, found for all starts at once.

A window is ``length`` usable nodes from position ``start`` on. Inside one nodeset, a maximal
contiguous run of nodes with free cores and enough free gres (Soner, section 4.1), it is contiguous:
class A if it touches the nodeset's beginning or end, else B. Across nodesets it joins neighbours:
class C. Below switches (AUCSCHED3) nodesets of the lowest common switch count, and end with it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..cluster.resources.capacity import BoolArray, Capacity, IntArray, ranges, sums_before
from ..cluster.resources.columns import Columns
from ..cluster.resources.demand import Demand
from ..topology.tree import Topology
from .candidates import ALL, Reading, most_nodes


@dataclass(slots=True, eq=False, kw_only=True)
class Field:
    """Usable nodes of a job at one gres choice, in one scan order; array shapes (m,) or (m + 1,).

    Attributes:
        topology: the switches; ``use_switches`` lets nodesets end where a switch does (AUCSCHED3).
        nodes: node indices in scan order.
        units: units of cores that each could give (all of the node's when the job is exclusive).
        run: number of the nodeset each stands in: a maximal run consecutive in snapshot order.
        run_first, run_last: positions of the ends of that run.
        sums: prefix sums of ``units``, from 0.
        total_sums: prefix sums of each gres asked for over all nodes, from 0.
        offset: where ``nodes`` starts in the generator's pool, −1 before it is put there.
        windows: what was found of its windows already, by what was asked.
    """

    topology: Topology
    use_switches: bool
    nodes: IntArray
    units: IntArray
    run: IntArray
    run_first: IntArray
    run_last: IntArray
    sums: IntArray
    total_sums: tuple[IntArray, ...]
    offset: int = -1
    windows: dict[object, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.nodes)

    def once(self, key: object, find: Callable[[], Any]) -> Any:
        """Return what was found by what was asked, looked for where it was not yet."""
        if key not in self.windows:
            self.windows[key] = find()
        return self.windows[key]


def field_of(
    nodes: IntArray,
    units: IntArray,
    totals: tuple[IntArray, ...],
    topology: Topology,
    *,
    use_switches: bool = False,
) -> Field:
    """Return the field of ``nodes`` in the order given, with what each of them gives."""
    breaks = np.ones(len(nodes) + 1, np.bool_)
    np.not_equal(nodes[1:], nodes[:-1] + 1, out=breaks[1:-1])
    run = breaks[:-1].cumsum() - 1
    ends = breaks.nonzero()[0]
    return Field(
        topology=topology,
        use_switches=use_switches,
        nodes=nodes,
        units=units,
        run=run,
        run_first=ends[run],
        run_last=ends[run + 1] - 1,
        sums=sums_before(units),
        total_sums=tuple(sums_before(total) for total in totals),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Feasible windows of a field, ascending by start; every array of shape (k,)."""

    start: IntArray
    length: IntArray
    contiguous: BoolArray
    aligned: BoolArray
    level: IntArray

    def __len__(self) -> int:
        return len(self.start)

    def only(self, places: BoolArray | IntArray) -> "Windows":
        """Return the windows at some places, or those that a mask picks."""
        return Windows(*[getattr(self, name)[places] for name in self.__slots__])


_NO_COUNTS, _NO_FLAGS = np.zeros(0, np.int64), np.zeros(0, np.bool_)
#: Windows of a field that has none: most whole nodesets of a size stand in no other order.
_NONE = Windows(_NO_COUNTS, _NO_COUNTS, _NO_FLAGS, _NO_FLAGS, _NO_COUNTS)


def fixed_windows(field: Field, length: int, asked: Reading) -> Windows:
    """Return the windows of exactly ``length`` nodes with enough units and gres for the job."""
    key = ("fixed", length, *_asked(asked))
    found: Windows = field.once(key, lambda: _kept(field, *_of_length(field, length), asked))
    return found


def fewest_windows(field: Field, asked: Reading, *, backward: bool = False) -> Windows:
    """Return, for each start, the window of the fewest nodes that hold a cores-only job.

    ``backward`` takes, for each end of a nodeset, the fewest nodes before it.
    """

    def find() -> Windows:
        start, length = _backward(field, asked) if backward else _forward(field, asked)
        windows = _kept(field, start, length, asked)
        if backward:
            last = windows.start + windows.length - 1
            windows = windows.only(windows.aligned & (field.run_last[last] == last))
        return windows

    found: Windows = field.once(("fewest", backward, *_asked(asked)), find)
    return found


def first_window(field: Field, asked: Reading) -> IntArray | None:
    """Return the nodes of the first window of fewest nodes that holds a job; None: none does."""
    counts = [None] if asked.demand.node_counts is None else sorted(node_counts(asked, len(field)))
    for count in counts:
        start, length = _forward(field, asked) if count is None else _of_length(field, count)
        fits = _fitting(field, start, length, asked) & (length <= asked.variant.max_nodes)
        if fits.any():
            first = int(np.argmax(fits))
            return field.nodes[start[first] : start[first] + length[first]]
    return None


def _of_length(field: Field, length: int) -> tuple[IntArray, IntArray]:
    """Return where windows of so many nodes could begin, and that number for each."""
    starts = np.arange(len(field) - length + 1)
    return starts, np.full(len(starts), length)


def by_class(field: Field, windows: Windows) -> list[Windows]:
    """Return windows of class A, B and C."""

    def find() -> list[Windows]:
        joined, aligned = ~windows.contiguous, windows.aligned
        classes = (aligned & ~joined, ~aligned & ~joined, joined)
        return [windows.only(np.flatnonzero(one)) for one in classes]

    found: list[Windows] = field.once(("by class", windows), find)
    return found


def whole_nodesets(field: Field, most: int, asked: Reading) -> list[Windows]:
    """Return windows that begin and end where nodesets do, those of each length together.

    Their lengths are sizes of nodesets and of all usable nodes: the largest few up to ``most``.
    """
    sizes = field.once("sizes", lambda: sorted({*np.bincount(field.run).tolist(), len(field)}, reverse=True))
    lengths = [size for size in sizes if size <= most][:4]

    def find() -> Windows:
        first = np.flatnonzero(np.diff(field.run, prepend=-1))
        last = [first[first + length <= len(field)] + length - 1 for length in lengths]
        length = np.repeat(lengths, list(map(len, last)))
        end = np.concatenate(last)
        is_whole = field.run_last[end] == end
        return _classified(field, (end - length + 1)[is_whole], length[is_whole])

    windows: Windows = field.once(("whole", *lengths), find) if lengths else _NONE
    fitting = np.flatnonzero(_fitting(field, windows.start, windows.length, asked))
    of_lengths = (fitting[windows.length[fitting] == length] for length in lengths)
    return [windows.only(places) for places in of_lengths if len(places)]


def _asked(asked: Reading) -> tuple[object, ...]:
    """Return everything that windows of one field depend on beside their length."""
    demand = asked.demand
    own = (demand.units, demand.contiguous, demand.max_switches, demand.required.tobytes())
    return (*own, asked.choice.total)


def _needs(field: Field, asked: Reading) -> list[tuple[IntArray, int]]:
    """Return prefix sums beside the least that a window must hold of each."""
    needs = [] if asked.demand.units is None else [(field.sums, asked.demand.units)]
    lows = [low for _, _, low, _ in asked.choice.total]
    return needs + [(sums, low) for sums, low in zip(field.total_sums, lows, strict=True) if low]


def _forward(field: Field, asked: Reading) -> tuple[IntArray, IntArray]:
    starts = np.arange(len(field))
    end = starts + 1
    for sums, need in _needs(field, asked):
        end = np.maximum(end, np.searchsorted(sums, sums[:-1] + need, side="left"))
    required = _required_places(field, asked.demand)
    end = np.maximum(end, required.max(initial=-1) + 1)
    fits = end <= len(field)
    return starts[fits], (end - starts)[fits]


def _backward(field: Field, asked: Reading) -> tuple[IntArray, IntArray]:
    end = np.flatnonzero(field.run_last == np.arange(len(field))) + 1
    start = end - 1
    for sums, need in _needs(field, asked):
        start = np.minimum(start, np.searchsorted(sums, sums[end] - need, side="right") - 1)
    start = np.minimum(start, _required_places(field, asked.demand).min(initial=len(field)))
    fits = start >= 0
    return start[fits], (end - start)[fits]


def _kept(field: Field, start: IntArray, length: IntArray, asked: Reading) -> Windows:
    """Keep and classify the windows that hold the job's needs."""
    if not len(start):
        return _NONE
    fits = _fitting(field, start, length, asked)
    return _classified(field, start[fits], length[fits]) if fits.any() else _NONE


def _fitting(field: Field, start: IntArray, length: IntArray, asked: Reading) -> BoolArray:
    """Return which windows hold the job's needs."""
    demand = asked.demand
    end = start + length
    fits = np.ones(len(start), np.bool_)
    for sums, need in _needs(field, asked):
        fits &= sums[end] - sums[start] >= need
    if demand.units is not None and not demand.exclusive:
        fits &= length * demand.least <= demand.units
    if demand.contiguous:
        fits &= field.run[start] == field.run[end - 1]
    if demand.max_switches is not None:
        fits[fits] = _leaves(field, start[fits], length[fits]) <= demand.max_switches
    if len(demand.required):
        fits &= _holds(field, start, end, demand)
    return fits


def _leaves(field: Field, start: IntArray, length: IntArray) -> IntArray:
    """Return how many leaf switches each window stands below."""
    ascends = field.once("ascends", lambda: bool((np.diff(field.nodes) > 0).all()))
    if field.topology.in_snapshot_order and ascends:
        leaf = field.topology.leaf[field.nodes]
        changes = np.cumsum(np.diff(leaf, prepend=leaf[:1]) != 0)
        leaves: IntArray = changes[start + length - 1] - changes[start] + 1
        return leaves
    # Neighbours in the scan may alternate between two leaves: count them.
    return field.topology.leaf_counts(sums_before(length), field.nodes[ranges(start, length)])


def _required_places(field: Field, demand: Demand) -> IntArray:
    """Return the positions of the required nodes that are usable."""
    if not len(demand.required):
        return demand.required
    return np.flatnonzero(np.isin(field.nodes, demand.required))


def _holds(field: Field, start: IntArray, end: IntArray, demand: Demand) -> BoolArray:
    """Return which windows hold every required node."""
    places = _required_places(field, demand)
    if len(places) < len(demand.required):
        return np.zeros(len(start), np.bool_)
    holds: BoolArray = (start <= places[0]) & (places[-1] < end)
    return holds


def _classified(field: Field, start: IntArray, length: IntArray) -> Windows:
    last = start + length - 1
    contiguous = field.run[start] == field.run[last]
    topology = field.topology
    at_start = field.run_first[start] == start
    at_end = field.run_last[last] == last
    if topology.is_one_switch:
        level = np.full(len(start), topology.level[0])
        return Windows(start, length, contiguous, at_start | at_end, level)
    switch = topology.common_switch(field.nodes[start], field.nodes[last])
    if field.use_switches:
        at_start |= ~topology.below(field.nodes[np.maximum(start - 1, 0)], switch)
        at_end |= ~topology.below(field.nodes[np.minimum(last + 1, len(field) - 1)], switch)
    return Windows(start, length, contiguous, at_start | at_end, topology.level[switch])


def node_counts(asked: Reading, usable: int) -> list[int]:
    """Return the node counts to bid with, fewest first: both ends of a range and two between.

    Of a job whose run time depends on the count, all counts that it names.
    """
    demand, span = asked.demand, asked.demand.node_counts
    if span is None:
        return []
    most = most_nodes(demand, asked.variant, usable)
    if most < span.minimum:
        return []
    if demand.job.limits_by_nodes_s:
        return sorted(count for count in demand.job.limits_by_nodes_s if span.minimum <= count <= most)
    if most == span.minimum:
        return [most]
    return sorted({round(value) for value in np.linspace(span.minimum, most, 4)})


def runs(mask: BoolArray, borders: BoolArray | None = None) -> tuple[IntArray, IntArray]:
    """Return first and last indices of a mask's maximal runs; a border before a node ends a run."""
    before = np.concatenate([[False], mask[:-1]])
    after = np.concatenate([mask[1:], [False]])
    starts, ends = mask & ~before, mask & ~after
    if borders is not None:
        starts |= mask & borders
        ends |= mask & np.concatenate([borders[1:], [True]])
    return np.flatnonzero(starts), np.flatnonzero(ends)


def nodeset_numbers(columns: Columns, gres: Mapping[str, int], nodes: slice = ALL) -> IntArray:
    """Return the number of the nodeset that each node stands in, ascending with the nodes.

    Args:
        columns: the nodes and what is free on them.
        gres: the count g of each gres that every node of a nodeset has free.
        nodes: which are looked at.
    """
    free = columns.free.each(lambda counts: counts[nodes])
    mask = columns.takes_jobs[nodes] & (free.cores > 0)
    for kind, count in gres.items():
        # A job may ask for gres that no node has.
        mask = mask & (free.gres.get(kind, np.zeros_like(free.cores)) >= count)
    numbers: IntArray = np.cumsum(mask & ~np.concatenate([[False], mask[:-1]]))
    return numbers


def general_nodesets(columns: Columns, free: Capacity, topology: Topology, *, use_switches: bool) -> int:
    """Return |S|: the distinct nodesets of all nodes over every gres and every count that is free.

    With ``use_switches`` the nodes below every switch are scanned as well (AUCSCHED3).
    """
    usable = columns.takes_jobs & (free.cores > 0)
    masks = [usable]
    for counts in free.gres.values():
        masks.extend(usable & (counts >= count) for count in np.unique(counts[usable]) if count > 0)
    depths = range(topology.path.shape[1]) if use_switches else range(0)
    borders = [np.diff(topology.path[:, depth], prepend=-1) != 0 for depth in depths]
    return sum(_distinct(mask, borders) for mask in masks)


def _distinct(mask: BoolArray, borders: list[BoolArray]) -> int:
    found = [runs(mask), *(runs(mask, border) for border in borders)]
    pairs = np.concatenate([first * len(mask) + last for first, last in found])
    return len(np.unique(pairs))
