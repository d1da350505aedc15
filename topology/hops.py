"""How many links apart nodes of a network are, where its switches are groups and do not say it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..cluster.network import Network, NetworkKind
from .distances import HopArray, check_size, hop_table
from .hilbert import grid, torus_hops

IntArray = npt.NDArray[np.int64]
#: Links between node pairs, elementwise.
Hops: TypeAlias = Callable[[IntArray, IntArray], IntArray]


def hops_of(network: Network, names: Sequence[str]) -> Hops | None:
    """Return the distances of a network's nodes, by their place in ``names``; None: its tree knows them.

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
    """Return distances from a table, made with the first; its key is long, so that it is asked for once."""
    table = cache(made)
    return lambda first, last: table()[place[first], place[last]].astype(np.int64)


def global_links_of(sizes: Sequence[int]) -> IntArray:
    """Return a dragonfly's global links (Kim et al., ISCA 2008), each once, shape (links, 2).

    Routers are numbered group by group. Global ports count through a group: router r has ports r·h to
    r·h + h − 1. Port k·(g − 1) + o − 1 leads to the o-th group after this one, to its port for the way back;
    ports beyond the last whole round stay free.
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

    All routers of a group are linked: a hub above them and two vertices for a global link make every link
    two, so that there are as many as routers and global links.
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
    """Return links by numbers of their ends, shape (links, 2), and the names: the members' come first."""
    number = {name: place for place, name in enumerate(members)}
    ends = [number.setdefault(name, len(number)) for pair in links for name in pair]
    return np.array(ends, np.int64).reshape(-1, 2), list(number)
