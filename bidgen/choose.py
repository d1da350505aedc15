"""Which of many windows become bids: spread over the cluster, staggered, the tight ones too."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, islice
from typing import cast

import numpy as np

from ..cluster.resources.capacity import IntArray
from .windows import Field, Windows

_GOLDEN = (np.sqrt(5) - 1) / 2


def spread(count: int, most: int, stagger: int) -> IntArray:
    """Return at most ``most`` of ``count`` positions, evenly apart, rotated by ``stagger``.

    Any beginning of the answer is spread nearly evenly too (the fractional parts of multiples of the
    golden ratio are), so a caller may take as many as it has room for.
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


@dataclass(frozen=True, slots=True, eq=False)
class _Ranked:
    """The windows of each level, lowest first, and their places from the tightest nodeset on."""

    windows: Windows
    members: tuple[IntArray, ...]
    tight: tuple[IntArray, ...]


def _ranked(field: Field, windows: Windows) -> _Ranked:
    """Rank windows; jobs that ask alike share windows, and their ranks."""
    # The ranks hold the windows, so that no others can have their identity.
    key = ("ranked", id(windows))
    if key not in field.windows:
        last = windows.start + windows.length - 1
        left = field.run_last[last] - field.run_first[windows.start] + 1 - windows.length
        counts = [count for count in np.bincount(windows.level).tolist() if count]
        if len(counts) <= 1:
            members: tuple[IntArray, ...] = (np.arange(len(left)),) * len(counts)
            tight: tuple[IntArray, ...] = (_sorted_places(left),) * len(counts)
        else:
            # Of all levels at once: members of a level stand together, and their places by what is left.
            of_levels = _sorted_places(windows.level)
            sorted_left = _sorted_places(left[of_levels])
            by_left = sorted_left[_sorted_places(windows.level[of_levels][sorted_left])]
            ends = list(accumulate(counts))
            begins = [0, *ends[:-1]]
            members = tuple(of_levels[begin:end] for begin, end in zip(begins, ends, strict=True))
            tight = tuple(by_left[begin:end] - begin for begin, end in zip(begins, ends, strict=True))
        field.windows[key] = _Ranked(windows, members, tight)
    return cast(_Ranked, field.windows[key])


def _sorted_places(values: IntArray) -> IntArray:
    """Return the places of values, least first, equal ones as they stand."""
    # Numbers of 16 bits are sorted by their digits, in a fraction of the time.
    few = int(values.max(initial=0)) <= np.iinfo(np.uint16).max and int(values.min(initial=0)) >= 0
    return np.argsort(values.astype(np.uint16) if few else values, kind="stable")


def order_windows(field: Field, windows: Windows, most: int, stagger: int) -> Windows:
    """Return the ``most`` best windows to bid on, best first.

    Low levels stand first but do not crowd out higher ones; within a level windows in the tightest
    nodesets, which leave the least behind, alternate with windows spread over the cluster.
    """
    ranked = _ranked(field, windows)
    places: list[IntArray] = []
    wanted = _wanted(tuple(min(len(members), most) for members in ranked.members), most)
    for above, (members, tight) in enumerate(zip(ranked.members, ranked.tight, strict=True)):
        places.append(members[_tight_and_spread(tight, most, stagger, wanted[above])])
    if not places:
        return windows
    if len(places) == 1:
        return windows.only(places[0][:most])
    return windows.only(np.concatenate(places)[_by_weight(tuple(map(len, places)), most)])


@lru_cache(maxsize=4096)
def _by_weight(counts: tuple[int, ...], most: int) -> IntArray:
    """Return the ``most`` best places of some of each level: the k-th of level l weighs k·(l + 1)."""
    weights = [np.arange(count) * (above + 1) for above, count in enumerate(counts)]
    best: IntArray = np.argsort(np.concatenate(weights), kind="stable")[:most]
    best.flags.writeable = False
    return best


@lru_cache(maxsize=1024)
def _wanted(counts: tuple[int, ...], most: int) -> tuple[int, ...]:
    """Return how many of each level can be among the ``most`` best, of levels with at least so many."""
    ranks, others = np.arange(most + 1), np.arange(len(counts))[:, None] + 1
    wanted = []
    for above in range(len(counts)):
        # Those of less weight: of the level ``other`` the ranks below weight / (other + 1).
        better = np.minimum(np.array(counts)[:, None], -(-ranks * (above + 1) // others)).sum(axis=0)
        wanted.append(min(int(np.searchsorted(better, most)), most))
    return tuple(wanted)


def _tight_and_spread(tight: IntArray, most: int, stagger: int, wanted: int) -> IntArray:
    """Return the first ``wanted`` places, spread ones and the tightest in turn."""
    count = len(tight)
    if count <= 1:
        return np.arange(count)
    apart = spread(count, most, stagger)[:wanted].tolist()
    tightest = tight[: min((most + 1) // 2, len(apart))].tolist()
    # A few dozen at most: Python's own set of keys is faster than sorting them.
    both = [-1] * (2 * len(apart))
    both[0::2] = apart
    both[1 : 2 * len(tightest) : 2] = tightest
    places = dict.fromkeys(both)
    places.pop(-1, None)
    return np.fromiter(islice(places, wanted), np.int64, min(wanted, len(places)))
