"""How a negotiation's range of node counts opens with its attempts (Nagendra, 5.2.1 and 6.3)."""

from __future__ import annotations

from ...cluster.jobs import JobKind
from ...runtime.records import MapEntry, NodeCount
from ...runtime.shrink import step_size

#: Kinds whose size may be chosen at their start.
CHOOSES_SIZE = frozenset({JobKind.MOLDABLE, JobKind.MALLEABLE})


def step_of(entry: MapEntry, attempts: int) -> int:
    """Return a job's step: max(1, ⌈(max_nodes − min_nodes) / attempts⌉)."""
    return step_size(entry.max_nodes - entry.min_nodes, attempts)


def first_range(entry: MapEntry, attempts: int) -> NodeCount:
    """Return the range at the beginning of a transaction: [max_nodes − step, max_nodes]."""
    return relaxed_range(entry, attempts, 0)


def relaxed_range(entry: MapEntry, attempts: int, times: int) -> NodeCount:
    """Return the range after that many relaxations; after ``attempts − 1`` it reaches ``min_nodes``."""
    low = entry.max_nodes - step_of(entry, attempts) * (1 + times)
    return NodeCount(min=max(entry.min_nodes, low), max=entry.max_nodes)
