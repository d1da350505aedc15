"""Which of many windows become bids: spread over the cluster, staggered, the tight ones too."""

from __future__ import annotations

import numpy as np

from .columns import IntArray
from .fields import Field
from .windows import Windows

_GOLDEN = (np.sqrt(5) - 1) / 2


def spread(count: int, most: int, stagger: int) -> IntArray:
    """Return at most ``most`` of ``count`` positions, evenly apart, rotated by ``stagger``.

    Any beginning of the answer is spread nearly evenly too (the fractional parts of multiples of the
    golden ratio are), so a caller may take as many as it has room for.
    """
    most = min(count, most)
    if most == 0:
        return np.zeros(0, np.int64)
    even = (np.arange(most) * count) // most
    visit = np.argsort(np.argsort((np.arange(most) * _GOLDEN) % 1.0))
    return (even[visit] + stagger) % count


def order_windows(field: Field, windows: Windows, most: int, stagger: int) -> Windows:
    """Return the ``most`` best windows to bid on, best first.

    Low levels stand first but do not crowd out higher ones; within a level windows in the tightest
    nodesets, which leave the least behind, alternate with windows spread over the cluster.
    """
    places: list[IntArray] = []
    weights: list[IntArray] = []
    for above, level in enumerate(np.unique(windows.level)):
        members = np.flatnonzero(windows.level == level)
        picked = members[_tight_and_spread(field, windows.only(members), most, stagger)]
        places.append(picked)
        weights.append(np.arange(len(picked)) * (above + 1))
    if not places:
        return windows
    by_weight = np.argsort(np.concatenate(weights), kind="stable")[:most]
    return windows.only(np.concatenate(places)[by_weight])


def _tight_and_spread(field: Field, windows: Windows, most: int, stagger: int) -> IntArray:
    if len(windows) <= 1:
        return np.arange(len(windows))
    apart = spread(len(windows), most, stagger)
    last = windows.start + windows.length - 1
    left = field.run_last[last] - field.run_first[windows.start] + 1 - windows.length
    tight = np.argsort(left, kind="stable")[: (most + 1) // 2]
    both = np.full(2 * len(apart), -1, np.int64)
    both[0::2] = apart
    both[1 : 2 * len(tight) : 2] = tight[: len(apart)]
    both = both[both >= 0]
    _, first = np.unique(both, return_index=True)
    return both[np.sort(first)]
