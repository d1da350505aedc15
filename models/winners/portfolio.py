"""Several searches of one packing side by side, in processes, each with a seed of its own.

Where work is counted, how many searches there are and how far each goes follows from the limit
alone: any number of processes gives the same award, and more work is never worse. Where a clock
counts, each process is one search.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context

from ...cluster.resources.capacity import FloatArray, IntArray
from ..search.anytime import AnytimeSearch
from ..search.compiled_search import compiled_loop
from ..search.packing import Packing
from ..search.search_parameters import Found, SearchLimits

#: Steps of the first search before there are others, and how many there are then.
ALONE, _SEARCHES = 400, 4


def search_side_by_side(
    packing: Packing,
    weights: list[int],
    second: FloatArray,
    start: IntArray,
    limits: SearchLimits,
    workers: int,
) -> Found:
    """Return the best of several searches; arguments as in ``AnytimeSearch``, and how many processes."""
    first, *others = _limits(limits, workers)
    search = partial(AnytimeSearch, packing, weights, second, start)
    if workers == 1 or not others:
        found = [search(one).run() for one in (first, *others)]
    else:
        # Spawned: nothing of this process's threads or state comes along.
        with ProcessPoolExecutor(min(workers - 1, len(others)), get_context("spawn")) as pool:
            waiting = [pool.submit(_searched, search, one) for one in others]
            found = [search(first).run(), *(one.result() for one in waiting)]
    return _joined(found, weights, second)


def _limits(limits: SearchLimits, workers: int) -> list[SearchLimits]:
    """Return the limits of each search, the first with the seed that was given."""
    if limits.steps is None or limits.deadline is not None:
        return [replace(limits, seed=limits.seed + number) for number in range(workers)]
    alone, more = min(limits.steps, ALONE), max(0, limits.steps - ALONE)
    shares = [(more + place) // _SEARCHES for place in reversed(range(_SEARCHES))]
    steps = [alone + shares[0], *(share for share in shares[1:] if share)]
    return [replace(limits, steps=most, seed=limits.seed + number) for number, most in enumerate(steps)]


def _searched(search: Callable[[SearchLimits], AnytimeSearch], limits: SearchLimits) -> Found:
    # In a process of its own nothing is compiled or loaded yet.
    compiled_loop()
    return search(limits).run()


def _joined(found: list[Found], weights: list[int], second: FloatArray) -> Found:
    """Return the best award, of equals the first search's, with the least bound of all."""

    def value(one: Found) -> tuple[int, float]:
        return sum(weights[bid] for bid in one.award.tolist()), round(float(second[one.award].sum()), 9)

    best = max(found, key=value)
    bounds = [one.bound for one in found if one.bound is not None]
    bound = min(bounds, default=None)
    priced = min(found, key=lambda one: (one.bound is None, one.bound or 0))
    proved = any(one.proved for one in found) or (bound is not None and value(best)[0] >= bound)
    return replace(best, bound=bound, proved=proved, price=priced.price)
