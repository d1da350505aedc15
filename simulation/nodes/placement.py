"""Which cores of its nodes each job held, for charts; a simulation only counts cores."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from ..placement import Runs
from .result import NodeResult


def place_on_nodes(result: NodeResult) -> dict[int, Runs]:
    """Return the cores of each job, numbered through all nodes in order: the lowest free of each node."""
    total = result.columns.total.cores
    first = np.concatenate([[0], np.cumsum(total)])[:-1].tolist()
    free = [list(range(begin, begin + count)) for begin, count in zip(first, total.tolist(), strict=True)]
    for cores in free:
        heapify(cores)
    held: dict[int, list[tuple[int, int]]] = {}
    # Ends come before starts at one time. The machine's own clock: counted from the first submission,
    # rounding may put an end after a start that it made room for.
    events = [(result.played[job].start_s, 1, job) for job in range(len(result.starts))]
    events += [
        (result.played[job].start_s + result.played[job].run_s, 0, job) for job in range(len(result.starts))
    ]
    for _, starting, job in sorted(events):
        if starting:
            held[job] = _take(result, job, free)
        else:
            for node, core in held[job]:
                heappush(free[node], core)
    return {job: _runs(sorted(core for _, core in cores)) for job, cores in held.items()}


def _take(result: NodeResult, job: int, free: list[list[int]]) -> list[tuple[int, int]]:
    spot = result.played[job].spot
    counts = zip(spot.nodes.tolist(), spot.held.cores.tolist(), strict=True)
    return [(node, heappop(free[node])) for node, count in counts for _ in range(count)]


def _runs(cores: list[int]) -> Runs:
    """Return sorted numbers as runs: first number and how many."""
    numbers = np.array(cores, np.int64)
    begins = np.flatnonzero(np.diff(numbers, prepend=-2) != 1)
    counts = np.diff(np.append(begins, len(numbers)))
    return tuple(zip(numbers[begins].tolist(), counts.tolist(), strict=True))
