"""Networks that are no trees as an auction reads them: nodes in an order, and groups within groups.

Groups stand as switches: their levels are L of Soner (6.5), a leaf is the smallest group. A torus'
order is a Hilbert curve, as Soner (section 9.1) proposes; its groups are the curve's cubes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise, product
from math import prod
from typing import Any

import numpy as np

from ..cluster.checks import at_least
from ..cluster.errors import InputError
from ..cluster.network import SIZES, Network, NetworkKind
from ..cluster.nodes import MOST_DEPTH, Switch, in_groups
from ..cluster.resources.capacity import IntArray
from ..cluster.value_types import IntegerList
from .distances import MOST_LINKS, HopArray, check_size, global_links_of, linked_table, numbered_links
from .hilbert import grid, torus_places

#: More levels than any machine's.
_MOST_LEVELS = 32
#: A torus has at most so many dimensions.
_DIMENSIONS = 6
#: A place on the curve is an integer of so many bits.
_MOST_BITS = 62
#: A part of a graph without groups of its own is cut until it has at most so many nodes; three
#: halvings are a level, as the cubes of a curve in three dimensions.
_PART, _HALVINGS = 8, 3


def torus(shape: Sequence[int], members: Sequence[str], *, order: str = "hilbert") -> Network:
    """Return a torus of the given shape.

    Args:
        shape: nodes along each dimension, 1 to 6 of them.
        members: its nodes, the last dimension first.
        order: ``hilbert``, or ``members``: as they are numbered, in groups of equally many.

    Raises:
        InputError: the shape is none, or has another number of places.
    """
    shape = tuple(shape)
    if not 1 <= len(shape) <= _DIMENSIONS:
        raise InputError(f"{len(shape)} dimensions are not 1 to {_DIMENSIONS}", path="topology.shape")
    IntegerList(1).coerced(shape, "topology.shape")
    check_places("x".join(map(str, shape)), prod(shape), members)
    if len(shape) * (max(shape) - 1).bit_length() > _MOST_BITS:
        message = f"{max(shape)} is too long for a curve in {len(shape)} dimensions"
        raise InputError(message, path="topology.shape")
    # As they are numbered a level takes a bit of each dimension.
    numbered = np.arange(prod(shape)), max(1, sum(length > 1 for length in shape))
    places, bits = torus_places(shape, grid(shape)) if order == "hilbert" else numbered
    along = np.argsort(places, kind="stable")
    top = max(1, -(-int(places.max()).bit_length() // bits))
    levels = [places[along] >> (bits * level) for level in range(1, top + 1)]
    nodes = tuple(members[place] for place in along.tolist())
    return Network(
        kind=NetworkKind.TORUS,
        members=tuple(members),
        nodes=nodes,
        switches=_grouped(nodes, levels, ("cube",)),
        sizes=shape,
        order=order,
    )


def dragonfly(groups: int, routers: int, nodes: int, global_links: int, *, members: Sequence[str]) -> Network:
    """Return a dragonfly: groups of routers, all linked in a group, each with nodes, global links.

    Raises:
        InputError: a count is below 1, members are another number, or the global links of a group
            do not reach every other group.
    """
    sizes = (groups, routers, nodes, global_links)
    for name, size in zip(SIZES[NetworkKind.DRAGONFLY], sizes, strict=True):
        at_least(size, 1, f"topology.{name}")
    if routers * global_links < groups - 1:
        message = f"{routers} routers with {global_links} global links reach {routers * global_links} groups"
        raise InputError(f"{message}, not the other {groups - 1}", path="topology.global_links")
    if (ports := groups * routers * global_links) > 2 * MOST_LINKS:
        message = f"{ports} ports of global links are more than {2 * MOST_LINKS}"
        raise InputError(message, path="topology.global_links")
    check_places("x".join(map(str, sizes[:3])), prod(sizes[:3]), members)
    place = np.arange(len(members))
    levels = [place // nodes, place // (nodes * routers)]
    switches = _grouped(members, levels, ("router", "group"))
    return as_numbered(NetworkKind.DRAGONFLY, members, switches, sizes=sizes)


def as_numbered(
    kind: NetworkKind, members: Sequence[str], switches: tuple[Switch, ...], **more: Any
) -> Network:
    """Return a network whose nodes stand as they are numbered."""
    row = tuple(members)
    return Network(kind=kind, members=row, nodes=row, switches=switches, order="members", **more)


def fat_tree_size(levels: int, radix: int) -> int:
    """Return the nodes of a fat tree of such switches."""
    return int(2 * (radix // 2) ** levels)


def fat_tree(levels: int, radix: int, *, members: Sequence[str]) -> Network:
    """Return a fat tree of equal switches: the tree that stands for it.

    With switches of radix k and h levels, every switch below the top has k/2 ports down and k/2 up,
    a top switch k down: 2·(k/2)^h nodes. Slurm's documentation advises to describe such a network
    by the plain tree of its node groups. This is that tree; ``graph_of`` has the redundant wiring.

    Args:
        levels: switch levels, 1 or more; the root has level ``levels`` − 1.
        radix: ports of every switch, even.
        members: names of the 2·(radix/2)^levels nodes.

    Returns:
        The network, with switches ``s<level>-<number>``, leaves first.

    Raises:
        InputError: there is no such tree, or it has another number of nodes.
    """
    at_least(levels, 1, "topology.levels")
    if levels > _MOST_LEVELS:
        raise InputError(f"{levels} is above {_MOST_LEVELS}", path="topology.levels")
    if radix < 2 or radix % 2:  # noqa: PLR2004 - half the ports go up
        raise InputError(f"{radix} is not an even number of ports", path="topology.radix")
    check_places(f"{levels} levels of radix {radix}", fat_tree_size(levels, radix), members)
    switches: list[Switch] = []
    below: list[str] = list(members)
    for level, arity in enumerate([radix // 2] * (levels - 1) + [radix]):
        groups = in_groups(below, arity)
        below = [f"s{level}-{number}" for number in range(len(groups))]
        for name, group in zip(below, groups, strict=True):
            switches.append(
                Switch(name=name, nodes=group) if level == 0 else Switch(name=name, switches=group)
            )
    return as_numbered(NetworkKind.FAT_TREE, members, tuple(switches), sizes=(levels, radix))


def linked(links: Sequence[tuple[str, str]], members: Sequence[str]) -> Network:
    """Return any graph: vertices that are members are nodes, all others switches.

    Where distances between nodes nest (trees, fat trees, stars: of any three, the two greatest are
    equal), nodes within the same distance are a group, exactly. Elsewhere nodes are halved again
    and again, each time between two that are far from each other, and three halvings are a level.

    Raises:
        InputError: no vertex is a node, a node has no link, the graph is not connected, or it is
            too large to measure.
    """
    if not members:
        raise InputError("no vertex is a node", path="topology")
    links = tuple(sorted({(min(pair), max(pair)) for pair in links}))
    ends, names = numbered_links(links, members)
    check_size(len(members), len(names), len(links))
    _check_links(ends, names)
    hops = linked_table(links, tuple(members))
    levels = _nested(hops)
    if levels is None:
        leaf = _halved(hops)
        count = -(-int(leaf.max()).bit_length() // _HALVINGS) + 1
        levels = [leaf >> (_HALVINGS * level) for level in range(count)]
    along = np.lexsort((np.arange(len(members)), *levels))
    nodes = tuple(members[place] for place in along.tolist())
    return Network(
        kind=NetworkKind.GRAPH,
        members=tuple(members),
        nodes=nodes,
        switches=_grouped(nodes, [level[along] for level in levels], ("part",)),
        links=links,
        order="members",
    )


def extent(network: Network) -> tuple[int, int]:
    """Return how many vertices and links a network's graph has, which is not made for it."""
    nodes = len(network.members)
    if network.kind is NetworkKind.TORUS:
        # Between two places along a dimension there is one link, both ways round.
        return nodes, sum(nodes if length > 2 else nodes * (length - 1) // 2 for length in network.sizes)  # noqa: PLR2004
    if network.kind is NetworkKind.DRAGONFLY:
        groups, routers, _, _ = network.sizes
        local = groups * (routers * (routers - 1) // 2)
        return nodes + groups * routers, nodes + local + len(global_links_of(network.sizes))
    if network.kind is NetworkKind.FAT_TREE:
        levels, radix = network.sizes
        # At each level below the top as many links lead up as nodes stand below.
        return nodes + (2 * levels - 1) * nodes // radix, levels * nodes
    return len(numbered_links(network.links, network.members)[1]), len(network.links)


def graph_of(network: Network) -> Any:
    """Return a network as a networkx graph: a vertex is a node (its name), a router, a switch."""
    import networkx as nx  # noqa: PLC0415 - only who looks at a graph pays for it

    kinds = {
        NetworkKind.TORUS: _torus_links,
        NetworkKind.DRAGONFLY: _dragonfly_links,
        NetworkKind.FAT_TREE: _fat_tree_links,
    }
    if network.kind not in kinds:
        return nx.Graph(network.links)
    graph = nx.Graph()
    if network.kind is NetworkKind.DRAGONFLY:
        graph.add_nodes_from(product(*map(range, network.sizes[:2])))
    else:
        graph.add_nodes_from(network.members)
    graph.add_edges_from(kinds[network.kind](network))
    return graph


def _torus_links(network: Network) -> Iterator[tuple[Any, Any]]:
    """Yield a torus' links: from each node along each dimension, and round its ends."""
    members, points = network.members, grid(network.sizes)
    for axis, length in enumerate(network.sizes):
        further = points.copy()
        further[:, axis] = (further[:, axis] + 1) % length
        ends = np.ravel_multi_index(tuple(further.T), network.sizes).tolist()
        yield from ((members[one], members[end]) for one, end in enumerate(ends) if one != end)


def _dragonfly_links(network: Network) -> Iterator[tuple[Any, Any]]:
    """Yield a dragonfly's links; a router is the vertex (group, router).

    All routers of a group are linked, and groups by global links (Kim et al., ISCA 2008).
    """
    groups, routers, per_router, _ = network.sizes
    for group in range(groups):
        yield from combinations([(group, router) for router in range(routers)], 2)
    for one, other in global_links_of(network.sizes).tolist():
        yield divmod(one, routers), divmod(other, routers)
    for place, name in enumerate(network.members):
        yield divmod(place // per_router, routers), name


def _fat_tree_links(network: Network) -> Iterator[tuple[Any, Any]]:
    """Yield the links of a fat tree's wiring.

    A group of the tree at level l is (radix/2)^l switches here, each wired to one switch of every
    part of the group, so that any two nodes are as far apart as in the tree.
    """
    ports = range(network.sizes[1] // 2)
    for switch in network.switches:
        level = int(switch.name[1 : switch.name.index("-")])
        yield from (((switch.name, ()), node) for node in switch.nodes)
        lowers = product(ports, repeat=max(0, level - 1))
        for child, lower, port in product(switch.switches, lowers, ports):
            yield (child, lower), (switch.name, (*lower, port))


def tree_graph(switches: Iterable[Switch]) -> Any:
    """Return a tree of switches as a networkx graph, edges from each switch to what is below it."""
    import networkx as nx  # noqa: PLC0415 - only who looks at a graph pays for it

    graph = nx.DiGraph()
    for switch in switches:
        graph.add_edges_from((("switch", switch.name), ("switch", name)) for name in switch.switches)
        graph.add_edges_from((("switch", switch.name), name) for name in switch.nodes)
    return graph


def _check_links(ends: IntArray, names: Sequence[str]) -> None:
    """Raise InputError unless the vertices are one connected graph without loops at a vertex."""
    path = "topology.links"
    loops = np.flatnonzero(ends[:, 0] == ends[:, 1])
    if len(loops):
        raise InputError(f"{names[ends[loops[0], 0]]!r} is linked to itself", path=path)
    unlinked = np.flatnonzero(np.bincount(ends.ravel(), minlength=len(names)) == 0)
    if len(unlinked):
        raise InputError(f"node {names[unlinked[0]]!r} has no link", path=path)
    near: list[list[int]] = [[] for _ in names]
    for one, other in ends.tolist():
        near[one].append(other)
        near[other].append(one)
    reached, waiting = {0}, [0]
    while waiting:
        fresh = set(near[waiting.pop()]) - reached
        reached |= fresh
        waiting += fresh
    if len(reached) < len(names):
        away = next(place for place in range(len(names)) if place not in reached)
        raise InputError(f"no way leads from {names[0]!r} to {names[away]!r}", path=path)


def _nested(hops: HopArray) -> list[IntArray] | None:
    """Return each node's group within every distance there is, None where such groups overlap.

    Prim's order of nodes: each is the nearest to those before it. Distances nest exactly where each
    is the greatest step between its ends in that order; groups are cut at steps beyond a distance.
    """
    order, step = _nearest_first(hops)
    for place, node in enumerate(order[:-1].tolist()):
        greatest = np.maximum.accumulate(step[place + 1 :])
        if (hops[node, order[place + 1 :]] != greatest).any():
            return None
    distances = np.unique(step[1:])
    if len(distances) >= MOST_DEPTH:
        return None
    levels: list[IntArray] = []
    for distance in distances.tolist():
        cut = np.flatnonzero(np.append([True], step[1:] > distance))
        least = np.minimum.reduceat(order, cut)
        level = np.empty(len(order), np.int64)
        level[order] = np.repeat(least, np.diff(np.append(cut, len(order))))
        levels.append(level)
    return levels or [np.zeros(len(hops), np.int64)]


def _nearest_first(hops: HopArray) -> tuple[IntArray, HopArray]:
    """Return nodes in Prim's order from the first on, and each one's distance to those before."""
    order, step = np.zeros(len(hops), np.int64), np.zeros(len(hops), np.int32)
    beyond = np.iinfo(np.int32).max
    near = hops[0].copy()
    near[0] = beyond
    is_taken = np.zeros(len(hops), np.bool_)
    is_taken[0] = True
    for place in range(1, len(hops)):
        node = int(near.argmin())
        order[place], step[place] = node, near[node]
        is_taken[node] = True
        near = np.where(is_taken, beyond, np.minimum(near, hops[node]))
    return order, step


def _halved(hops: HopArray) -> IntArray:
    """Return each node's part, numbered so that halves of one part differ in the last bit."""
    parts = [np.arange(len(hops))]
    while len(parts[0]) > _PART:
        halves: list[IntArray] = []
        for part in parts:
            halves.extend(_two(hops, part, halves[-1][-1] if halves else part[0]))
        parts = halves
    number = np.empty(len(hops), np.int64)
    for place, part in enumerate(parts):
        number[part] = place
    return number


def _two(hops: HopArray, part: IntArray, before: int) -> tuple[IntArray, IntArray]:
    """Cut a part between two far nodes; the half nearer to the node before it comes first."""
    one = part[hops[part[0], part].argmax()]
    other = part[hops[one, part].argmax()]
    if hops[before, other] < hops[before, one]:
        one, other = other, one
    ordered = part[np.lexsort((part, hops[one, part], hops[one, part] - hops[other, part]))]
    middle = (len(part) + 1) // 2
    return ordered[:middle], ordered[middle:]


def _grouped(names: Sequence[str], levels: Sequence[IntArray], titles: Sequence[str]) -> tuple[Switch, ...]:
    """Return groups as switches, leaves first, one above all.

    Args:
        names: nodes in their order.
        levels: each node's group at every level, from the smallest; each is a run of the order
            in one of the next level. A level of single nodes, or like the one before, says nothing.
        titles: what a level's groups are called; the last for all that follow.
    """
    switches: list[Switch] = []
    below: list[str] = []
    starts = np.arange(len(names))
    for number, level in enumerate([*levels, np.zeros(len(names), np.int64)]):
        cuts = np.flatnonzero(np.diff(level, prepend=level[0] - 1))
        if len(cuts) == len(starts) and (below or len(names) > 1):
            continue
        title = titles[min(number, len(titles) - 1)] if number < len(levels) else "network"
        width = len(str(len(cuts) - 1))
        made: list[str] = []
        bounds = np.searchsorted(starts, [*cuts.tolist(), len(names)]).tolist()
        for place, (low, high) in enumerate(pairwise(bounds)):
            name = f"{title}{number}-{place:0{width}d}"
            parts = tuple(below[low:high])
            switches.append(
                Switch(name=name, switches=parts)
                if below
                else Switch(name=name, nodes=tuple(names[low:high]))
            )
            made.append(name)
        below, starts = made, cuts
    return tuple(switches)


def check_places(what: str, places: int, members: Sequence[str]) -> None:
    """Raise InputError unless a network has a place for each of its members, named once."""
    if places != len(members):
        raise InputError(f"{what} has {places} places, for {len(members)} nodes", path="topology")
    twice = [name for name, count in Counter(members).items() if count > 1]
    if twice:
        raise InputError(f"{twice[0]!r} is listed twice", path="topology.nodes")
