"""Fat trees built from equal switches: the tree that topology.conf describes.

With switches of radix k and h levels, every switch below the top has k/2 ports down and k/2 up, a top
switch k down: 2·(k/2)^h nodes. Slurm's documentation advises to describe such a network by the plain tree
of its node groups; ``fat_tree`` builds that one, ``graphs.fat_tree_graph`` the redundant wiring.
"""

from __future__ import annotations

from ..cluster.errors import OptionError
from ..cluster.nodes import Switch

#: More levels than any machine's.
MOST_LEVELS = 32


def _check(levels: int, radix: int) -> None:
    if not 1 <= levels <= MOST_LEVELS:
        raise OptionError(f"levels: {levels} is not 1 to {MOST_LEVELS}")
    if radix < 2 or radix % 2:  # noqa: PLR2004 - half the ports go up
        raise OptionError(f"radix: {radix} is not an even number of ports")


def _arities(levels: int, radix: int) -> list[int]:
    """Return how many parts every switch's node group has, leaves first."""
    return [radix // 2] * (levels - 1) + [radix]


def fat_tree_size(levels: int, radix: int) -> int:
    """Return the nodes of a fat tree of such switches."""
    nodes: int = 2 * (radix // 2) ** levels
    return nodes


def fat_tree(levels: int, radix: int) -> tuple[tuple[str, ...], tuple[Switch, ...]]:
    """Return node names and the switches of the tree that stands for a fat tree.

    Args:
        levels: switch levels, 1 or more; the root has level ``levels`` − 1.
        radix: ports of every switch, even.

    Returns:
        2·(radix/2)^levels node names ``n00…``, and switches ``s<level>-<number>``, leaves first.
    """
    _check(levels, radix)
    arities = _arities(levels, radix)
    count = fat_tree_size(levels, radix)
    nodes = tuple(f"n{index:0{len(str(count - 1))}d}" for index in range(count))
    switches: list[Switch] = []
    below: list[str] = list(nodes)
    for level, arity in enumerate(arities):
        groups = [tuple(below[start : start + arity]) for start in range(0, len(below), arity)]
        below = [f"s{level}-{number}" for number in range(len(groups))]
        for name, group in zip(below, groups, strict=True):
            switches.append(
                Switch(name=name, nodes=group) if level == 0 else Switch(name=name, switches=group)
            )
    return nodes, tuple(switches)
