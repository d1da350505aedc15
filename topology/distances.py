"""How many links apart nodes of a network are, where its switches are groups and do not say it."""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..cluster.errors import InputError
from ..cluster.network import Network, NetworkKind
from ..cluster.resources.capacity import IntArray, ranges
from .hilbert import grid, torus_hops

HopArray = npt.NDArray[np.int32]
ByteArray = npt.NDArray[np.uint8]
#: Links between node pairs, elementwise.
Hops: TypeAlias = Callable[[IntArray, IntArray], IntArray]

#: Of more vertices than these no table of distances is made.
MOST_MEASURED = 5_000
MOST_VERTICES = 50_000
#: Links of a graph at most; and links times measured vertices, which bounds the time of a table.
MOST_LINKS = 1_000_000
_MOST_WORK = 5 * 10**8
#: One pair of vertices costs as much as so many bytes of a whole step.
_BYTES_A_PAIR = 64


def check_size(measured: int, vertices: int, links: int) -> None:
    """Refuse a graph too large for a table of distances between ``measured`` of its vertices.

    Raises:
        InputError: it is.
    """
    if measured > MOST_MEASURED or vertices > MOST_VERTICES:
        message = f"{measured} of {vertices} vertices: distances are known of {MOST_MEASURED} at most"
        raise InputError(message, path="topology")
    if links > MOST_LINKS or links * measured > _MOST_WORK:
        most = min(MOST_LINKS, _MOST_WORK // max(1, measured))
        message = f"{links} links: between {measured} vertices distances are known of {most} at most"
        raise InputError(message, path="topology")


def hop_table(links: IntArray, vertices: int, wanted: IntArray) -> HopArray:
    """Return the fewest links between some vertices of a graph.

    All of them search breadth first at once. A step of few new pairs follows the links of each
    pair; another step is one over all links and a row of bits for each vertex. Time is bounded by
    links times ``wanted``, however long the ways are.

    Args:
        links: numbers of the vertices at both ends, shape (links, 2).
        vertices: how many there are.
        wanted: the vertices to measure, each once.

    Returns:
        Shape (wanted, wanted); -1 where no way leads.

    Raises:
        InputError: the graph is too large (``check_size``).
    """
    check_size(len(wanted), vertices, len(links))
    search = BreadthFirst(links, vertices, wanted)
    steps = 0
    while search.pairs is None or len(search.pairs):
        steps += 1
        search.step(steps)
    return search.hops


class BreadthFirst:
    """A breadth-first search from several vertices.

    Attributes:
        hops: from each source to each wanted vertex, -1 where it is not reached yet.
        pairs: newly reached, as vertex · sources + source; None: many, only ``_reached`` has them.
    """

    def __init__(self, links: IntArray, vertices: int, wanted: IntArray) -> None:
        ends = np.concatenate([links, links[:, ::-1]])
        self._near = ends[np.argsort(ends[:, 0], kind="stable"), 1]
        self._degree = np.bincount(ends[:, 0], minlength=vertices)
        self._start = np.cumsum(self._degree) - self._degree
        self._linked = np.flatnonzero(self._degree)
        self._wanted, self._count = wanted, len(wanted)
        self._place = np.full(vertices, -1, np.int64)
        self._place[wanted] = np.arange(len(wanted))
        self._width = (len(wanted) + 7) // 8
        self._reached = np.zeros((vertices, self._width), np.uint8)
        self.hops: HopArray = np.full((len(wanted), len(wanted)), -1, np.int32)
        self.pairs: IntArray | None = wanted * len(wanted) + np.arange(len(wanted))
        self.reach(self.pairs, 0)

    def step(self, steps: int) -> None:
        """Reach what is one link further."""
        if self.pairs is not None:
            ways = int(self._degree[self.pairs // self._count].sum())
            if ways * _BYTES_A_PAIR < len(self._near) * self._width:
                self.reach(self._next_pairs(), steps)
                return
        fresh = np.zeros_like(self._reached)
        fresh[self._linked] = np.bitwise_or.reduceat(self._reached[self._near], self._start[self._linked])
        fresh &= ~self._reached
        self._reached |= fresh
        is_new = np.unpackbits(fresh[self._wanted], axis=1, count=self._count).astype(bool)
        self.hops[is_new] = steps
        self.pairs = self._few(fresh)

    def _next_pairs(self) -> IntArray:
        """Return the pairs of neighbours of the pairs' vertices that are not reached yet."""
        assert self.pairs is not None  # noqa: S101 - the caller looked
        vertex, source = np.divmod(self.pairs, self._count)
        degree = self._degree[vertex]
        further = self._near[ranges(self._start[vertex], degree)]
        source = np.repeat(source, degree)
        is_new = (self._reached[further, source >> 3] >> (7 - (source & 7))) & 1 == 0
        # Half as long as numpy's unique, on the short arrays of long ways.
        found: IntArray = np.sort(further[is_new] * self._count + source[is_new])
        is_first = np.ones(len(found), np.bool_)
        is_first[1:] = found[1:] != found[:-1]
        return found[is_first]

    def reach(self, pairs: IntArray, steps: int) -> None:
        """Keep pairs as reached."""
        vertex, source = np.divmod(pairs, self._count)
        bit = (128 >> (source & 7)).astype(np.uint8)
        np.bitwise_or.at(self._reached.reshape(-1), vertex * self._width + (source >> 3), bit)
        place = self._place[vertex]
        is_wanted = place >= 0
        self.hops[place[is_wanted], source[is_wanted]] = steps
        self.pairs = pairs

    def _few(self, fresh: ByteArray) -> IntArray | None:
        """Return new pairs of a whole step; None where they are many."""
        if np.count_nonzero(fresh) * _BYTES_A_PAIR > fresh.size:
            return None
        vertex, byte = np.nonzero(fresh)
        row, bit = np.nonzero(np.unpackbits(fresh[vertex, byte][:, None], axis=1))
        found: IntArray = vertex[row] * self._count + byte[row] * 8 + bit
        return found


def hops_of(network: Network, names: Sequence[str]) -> Hops | None:
    """Return distances of a network's nodes, by place in ``names``; None: its tree knows them.

    Tables of dragonflies and graphs are made when the first distance is asked for.
    """
    number = {name: place for place, name in enumerate(network.members)}
    place = np.array([number[name] for name in names], np.int64)
    if network.kind is NetworkKind.TORUS:
        points = grid(network.sizes)[place]
        return lambda first, last: torus_hops(network.sizes, points[first], points[last])
    if network.kind is NetworkKind.DRAGONFLY:
        routers = _looked_up(lambda: _router_table(network.sizes), place // network.sizes[2])
        return lambda first, last: np.where(first == last, 0, routers(first, last) + 2)
    if network.kind is NetworkKind.GRAPH:
        return _looked_up(lambda: linked_table(network.links, network.members), place)
    return None


def _looked_up(made: Callable[[], HopArray], place: IntArray) -> Hops:
    """Return distances from a table, made at the first use; its key is long: it is built once."""
    table = cache(made)
    return lambda first, last: table()[place[first], place[last]].astype(np.int64)


def global_links_of(sizes: Sequence[int]) -> IntArray:
    """Return a dragonfly's global links (Kim et al., ISCA 2008), each once, shape (links, 2).

    Routers are numbered group by group. Global ports count through a group: router r has ports r·h
    to r·h + h − 1. Port k·(g − 1) + o − 1 leads to the o-th group after this one, to its port for
    the way back; ports beyond the last whole round stay free.
    """
    groups, routers, _, links = sizes
    rounds = routers * links // (groups - 1) if groups > 1 else 0
    group, further, turn = np.meshgrid(
        np.arange(groups), np.arange(1, groups), np.arange(rounds), indexing="ij"
    )
    port, back = turn * (groups - 1) + further - 1, turn * (groups - 1) + groups - further - 1
    one = group * routers + port // links
    other = (group + further) % groups * routers + back // links
    pairs = np.unique(np.minimum(one, other) * groups * routers + np.maximum(one, other))
    return np.stack(np.divmod(pairs, groups * routers), axis=1)


@lru_cache(maxsize=4)
def _router_table(sizes: tuple[int, ...]) -> HopArray:
    """Return the links between routers.

    All routers of a group are linked: a hub above them and two vertices for a global link make
    every link two, so that there are as many as routers and global links.
    """
    groups, routers, _, _ = sizes
    count = groups * routers
    check_size(count, count, 0)
    place = np.arange(count)
    hubs = np.stack([place, count + place // routers], axis=1)
    links = global_links_of(sizes)
    between = count + groups + np.arange(len(links))
    halves = [np.stack([links[:, end], between], axis=1) for end in (0, 1)]
    return hop_table(np.concatenate([hubs, *halves]), count + groups + len(links), place) // 2


@lru_cache(maxsize=4)
def linked_table(links: tuple[tuple[str, str], ...], members: tuple[str, ...]) -> HopArray:
    """Return the distances between members of a connected graph, shape (members, members)."""
    ends, names = numbered_links(links, members)
    return hop_table(ends, len(names), np.arange(len(members)))


def numbered_links(links: Sequence[tuple[str, str]], members: Sequence[str]) -> tuple[IntArray, list[str]]:
    """Return links by numbers of their ends, shape (links, 2), and the names: members' first."""
    number = {name: place for place, name in enumerate(members)}
    ends = [number.setdefault(name, len(number)) for pair in links for name in pair]
    return np.array(ends, np.int64).reshape(-1, 2), list(number)
