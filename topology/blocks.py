"""Slurm's rule for jobs on blocks of nodes, over counts of free nodes by block.

Blocks count in the order of their file. A group of level k is 2^k neighbours from the first block
on; the last one may be short. Which levels there are the block sizes say: b·2^k nodes, b those of a
base block, nominally. Down, busy or missing nodes only lower what is free.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, combinations, islice
from math import comb

#: So many choices of parts are all tried; of more those with the most free nodes.
_MOST_CHOICES = 200
#: Sets of wholly free blocks that are tried for segments larger than a block, smallest first.
_MOST_TRIES = 16
#: Steps of the search for segments larger than a block, if one after another does not find them.
_MOST_STEPS = 20_000

Counts = Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Where so many nodes may be: in one group of blocks, on at most some of its parts.

    Attributes:
        group: blocks of a group (level L).
        part: blocks of a part (level l).
        parts: how many parts at most (m).
    """

    group: int
    part: int
    parts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockRequest:
    """What a job asks of blocks.

    Attributes:
        nodes: how many.
        segment: nodes of a segment; None: the job is placed as a whole.
        spread: no two segments in one block.
        consolidated: all segments in one group of the least level that holds them.
        required: nodes that must be among the job's, by block; empty: none.
    """

    nodes: int
    segment: int | None = None
    spread: bool = False
    consolidated: bool = False
    required: tuple[int, ...] = ()

    @property
    def unit(self) -> int:
        """Nodes placed together: a segment's, or all. A segment above all nodes is none."""
        return self.nodes if self.segment is None else min(self.segment, self.nodes)


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """A machine's blocks.

    Attributes:
        sizes: nodes of a base block and of each group above it, ascending.
        nodes: how many nodes each block has.
    """

    sizes: tuple[int, ...]
    nodes: tuple[int, ...]

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """Blocks of a group of each level, the whole machine last."""
        made = {size // self.sizes[0] for size in self.sizes}
        return (*sorted(size for size in made if size < len(self.nodes)), len(self.nodes))

    @lru_cache(maxsize=4096)  # noqa: B019 - a few machines
    def reach(self, count: int) -> Reach:
        """Return where ``count`` nodes may be: x, L, l and m of Slurm's documentation of blocks."""
        blocks = -(-count // self.sizes[0])
        doubled = 1 << (blocks - 1).bit_length()
        made = [size // self.sizes[0] for size in self.sizes]
        group = next((size for size in made if size >= doubled), len(self.nodes))
        part = max((size for size in made if size < doubled), default=1)
        return Reach(group=group, part=part, parts=-(-count // (part * self.sizes[0])))

    def width(self, asked: BlockRequest) -> int:
        """Return the blocks of the group that all nodes of a job must be in."""
        unit = asked.unit
        if unit == asked.nodes:
            return self.reach(unit).group
        if not asked.consolidated:
            return len(self.nodes)
        base = self.sizes[0]
        held = -(-unit // base) * base * (asked.nodes // unit) if asked.spread else asked.nodes
        return self.reach(held).group

    def is_legal(self, counts: Counts, asked: BlockRequest) -> bool:
        """Return whether a job may have exactly so many nodes of each block."""
        touched = {place // self.width(asked) for place, count in enumerate(counts) if count}
        lacks = any(count < least for count, least in zip(counts, asked.required, strict=False))
        if sum(counts) != asked.nodes or len(touched) > 1 or lacks:
            return False
        return self._placed(counts, asked, range(len(counts))) is not None

    def choice(self, free: Counts, asked: BlockRequest) -> list[int] | None:
        """Return how many nodes of each block Slurm would take; None where the rule holds for none.

        Of a job with segments and required nodes, these are all of its nodes.
        """
        if asked.required and asked.unit < asked.nodes:
            return list(asked.required) if self.is_legal(asked.required, asked) else None
        groups = self._tightest(free, self.width(asked))
        found = (self._placed(free, asked, group) for group in groups)
        return next((one for one in found if one is not None), None)

    def choices(self, free: Counts, asked: BlockRequest) -> Iterator[list[int]]:
        """Yield counts of nodes by block for a job, of the lowest groups first if they matter.

        In each group first what breaks the fewest blocks that are wholly free, then Slurm's choice.
        """
        if asked.required and asked.unit < asked.nodes:
            chosen = self.choice(free, asked)
            yield from [] if chosen is None else [chosen]
            return
        if self.choice(free, asked) is None:
            return
        yielded: set[tuple[int, ...]] = set()
        widths = [width for width in self.groups if width <= self.width(asked)]
        # Of segments that may be anywhere the common group says nothing: all blocks come first.
        is_anywhere = asked.unit < asked.nodes and not asked.consolidated
        for width in widths[::-1] if is_anywhere else widths:
            for group in self._tightest(free, width):
                if sum(free[place] for place in group) < asked.nodes:
                    continue
                for chosen in (self._sparing(free, asked, group), self._placed(free, asked, group)):
                    if chosen is not None and tuple(chosen) not in yielded:
                        yielded.add(tuple(chosen))
                        yield chosen

    def most(self, free: Counts, reach: Reach) -> tuple[int, int]:
        """Return the most free nodes that a group has where they may be, and its first block."""
        found: list[tuple[int, int]] = []
        for group in self._cut(range(len(free)), reach.group):
            cut = self._cut(group, reach.part)
            parts = sorted(sum(free[place] for place in part) for part in cut)
            found.append((sum(parts[-reach.parts :]), group.start))
        return max(found)

    def _cut(self, places: range, width: int) -> list[range]:
        """Return the parts of some neighbouring blocks by groups of ``width``."""
        starts = range(places.start // width * width, places.stop, width)
        low, high = places.start, places.stop
        return [range(max(start, low), min(start + width, high)) for start in starts]

    def _tightest(self, free: Counts, width: int, places: range | None = None) -> list[range]:
        """Return groups of so many blocks, of some or all: fullest first, of equals the last."""
        groups = self._cut(range(len(free)) if places is None else places, width)
        return sorted(groups, key=lambda group: (sum(free[place] for place in group), -group.start))

    def _placed(self, free: Counts, asked: BlockRequest, places: range) -> list[int] | None:
        """Return what Slurm would take of some blocks, unit after unit."""
        reach = self.reach(asked.unit)
        if reach.group == 1 and asked.unit < asked.nodes:
            # The rest of a block is the tightest fit for the next segment as long as it holds one.
            return _in_slots(free, asked, sorted(places, key=lambda place: (free[place], -place)))
        left, taken = list(free), [0] * len(free)
        for _ in range(asked.nodes // asked.unit):
            groups = self._tightest(left, reach.group, places)
            found = (_unit(left, asked, reach, group) for group in groups)
            unit = next((one for one in found if one is not None), None)
            if unit is None:
                return None if asked.unit == asked.nodes else self._searched(free, asked, places)
            for place, count in unit.items():
                taken[place] += count
                left[place] = 0 if asked.spread else left[place] - count
        return taken

    def _searched(self, free: Counts, asked: BlockRequest, places: range) -> list[int] | None:
        """Return what some blocks hold of segments larger than a block, if any order holds them."""
        reach = self.reach(asked.unit)
        taken, missing = [0] * len(free), asked.nodes // asked.unit
        for group in self._cut(places, reach.group):
            have = tuple(free[place] for place in group)
            units = _Search(asked, reach, group).most(have, missing)
            for unit in units:
                for place, count in unit.items():
                    taken[place] += count
            missing -= len(units)
        return None if missing else taken

    def _sparing(self, free: Counts, asked: BlockRequest, places: range) -> list[int] | None:
        """Return what breaks the fewest wholly free blocks: others first, then the largest."""
        is_whole = [count == most for count, most in zip(free, self.nodes, strict=True)]
        unit = asked.unit
        if unit < asked.nodes and unit > self.sizes[0]:
            whole = [place for place in places if is_whole[place] and free[place]]
            kept = chain.from_iterable(combinations(whole, count) for count in range(len(whole) + 1))
            lefts = (
                [0 if place in {*whole} - {*some} else count for place, count in enumerate(free)]
                for some in islice(kept, _MOST_TRIES)
            )
            placed = (self._placed(left, asked, places) for left in lefts)
            return next((one for one in placed if one is not None), None)
        if unit < asked.nodes:
            # The fullest of those that are broken, so that the others still hold larger segments.
            size = [-count if whole else count for count, whole in zip(free, is_whole, strict=True)]
            order = sorted(places, key=lambda one: (is_whole[one], size[one], -one))
            return _in_slots(free, asked, order)
        reach = self.reach(unit)
        cut = self._cut(places, reach.part)
        parts = [part for part in cut if any(free[place] for place in part)]
        needed = {place // reach.part for place, count in enumerate(asked.required) if count}
        found: list[tuple[int, list[int]]] = []
        # All sets of so many parts if they are few, else those with the most free nodes.
        ranked = sorted(parts, key=lambda part: -sum(free[place] for place in part))
        most = min(reach.parts, len(parts))
        limit = _MOST_CHOICES if comb(len(parts), most) > _MOST_CHOICES else None
        for some in islice(combinations(ranked, most), limit):
            if not needed <= {part.start // reach.part for part in some}:
                continue
            filled = _filled(free, is_whole, asked, [place for part in some for place in part])
            if filled is not None:
                pairs = zip(is_whole, filled, strict=True)
                broken = sum(whole and count > 0 for whole, count in pairs)
                found.append((broken, filled))
        return min(found, key=lambda one: one[0])[1] if found else None


def _in_slots(free: Counts, asked: BlockRequest, order: Iterable[int]) -> list[int] | None:
    """Return segments of one block each, as many as a block holds, of one block after another."""
    taken, missing = [0] * len(free), asked.nodes // asked.unit
    for place in order:
        slots = free[place] // asked.unit
        count = min(missing, slots, 1) if asked.spread else min(missing, slots)
        taken[place] = count * asked.unit
        missing -= count
    return None if missing else taken


def _filled(
    free: Counts, is_whole: Sequence[bool], asked: BlockRequest, places: Sequence[int]
) -> list[int] | None:
    """Return the required nodes and others of some blocks, wholly free ones last; None: too few."""
    taken = list(asked.required) or [0] * len(free)
    missing = asked.nodes - sum(taken)
    breaks = [whole and not count for whole, count in zip(is_whole, taken, strict=True)]
    for place in sorted(places, key=lambda one: (breaks[one], -free[one], -one)):
        count = min(missing, free[place] - taken[place])
        taken[place] += count
        missing -= count
    return None if missing else taken


def _unit(left: Counts, asked: BlockRequest, reach: Reach, places: range) -> dict[int, int] | None:
    """Return what Slurm takes of a group of blocks for one unit; None: the rule holds for none.

    Slurm's own order of blocks may take too many parts where others would do: then of those parts
    that have the most free nodes.
    """
    is_whole = asked.unit == asked.nodes
    required = {place: count for place, count in enumerate(asked.required) if count and is_whole}
    if not all(place in places and count <= left[place] for place, count in required.items()):
        return None
    by_part: dict[int, int] = {}
    for place in places:
        by_part[place // reach.part] = by_part.get(place // reach.part, 0) + left[place]
    used = {place // reach.part for place in required}
    others = sorted((part for part in by_part if part not in used), key=lambda part: -by_part[part])
    most = used | set(others[: max(0, reach.parts - len(used))])
    if len(used) > reach.parts or sum(by_part[part] for part in most) < asked.unit:
        return None
    for allowed in (set(by_part), most):
        taken, in_use = dict(required), set(used)
        missing = asked.unit - sum(required.values())
        while missing > 0:
            open_ = [
                (place, left[place] - taken.get(place, 0))
                for place in places
                if place // reach.part in (in_use if len(in_use) == reach.parts else allowed)
            ]
            open_ = [one for one in open_ if one[1]]
            place, count = _next_block(open_, in_use, missing, reach.part)
            if not count:
                break
            taken[place] = taken.get(place, 0) + min(count, missing)
            missing -= min(count, missing)
            in_use.add(place // reach.part)
        if not missing:
            return taken
    return None


def _next_block(open_: list[tuple[int, int]], in_use: set[int], missing: int, part: int) -> tuple[int, int]:
    """Return the block that Slurm takes next, and its free nodes; no block has 0.

    Of a part in use if there is one; the smallest that holds all that is missing, else the largest;
    of equals the last.
    """
    open_ = [one for one in open_ if one[0] // part in in_use] or open_
    enough = [one for one in open_ if one[1] >= missing]
    if enough:
        return min(enough, key=lambda one: (one[1], -one[0]))
    return max(open_, key=lambda one: (one[1], one[0]), default=(0, 0))


class _Search:
    """Finds the most segments in a group of blocks, each of them in some of its parts only."""

    def __init__(self, asked: BlockRequest, reach: Reach, group: range) -> None:
        self._asked, self._reach, self._group = asked, reach, group
        self._steps = _MOST_STEPS
        self._known: dict[tuple[tuple[int, ...], int], list[dict[int, int]]] = {}

    def most(self, free: tuple[int, ...], wanted: int) -> list[dict[int, int]]:
        """Return segments, by block, as many as there may be but no more than are wanted."""
        if (free, wanted) in self._known or not wanted or sum(free) < self._asked.unit:
            return self._known.get((free, wanted), [])
        best: list[dict[int, int]] = []
        for unit in self._units(free, 0, self._asked.unit, {}):
            self._steps -= 1
            left = tuple(
                (0 if self._asked.spread and place in unit else count - unit.get(place, 0))
                for place, count in zip(self._group, free, strict=True)
            )
            found = [unit, *self.most(left, wanted - 1)]
            best = max(best, found, key=len)
            if len(best) == wanted or self._steps <= 0:
                break
        self._known[free, wanted] = best
        return best

    def _units(
        self, free: tuple[int, ...], at: int, missing: int, taken: dict[int, int]
    ) -> Iterator[dict[int, int]]:
        """Yield every way to take one segment of the blocks from one on."""
        if not missing:
            yield taken
            return
        if at == len(free):
            return
        place = self._group[at]
        most = min(missing, free[at])
        # A block that no other segment may use gives all that it can.
        counts = (most,) if self._asked.spread else range(most, 0, -1)
        parts = {one // self._reach.part for one in (*taken, place)}
        if most and len(parts) <= self._reach.parts:
            for count in counts:
                yield from self._units(free, at + 1, missing - count, {**taken, place: count})
        yield from self._units(free, at + 1, missing, taken)
