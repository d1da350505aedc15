"""How promises follow a log: the same constants where processors are counted and on nodes."""

from __future__ import annotations

from .state import Rules

#: After which share of the longest wait under EASY a job is due,
SHARE = 0.55
#: after how many of its estimates at most: short jobs are promised near starts,
LIMITS = 4.0
#: by how much a plan's start is stretched, for estimates are long,
LOOSENESS = 1.8
#: up to which share of that longest wait,
LATEST = 1.0
#: and after which share of it a job comes before all that have waited for less, where processors are counted.
OVERDUE = 0.6


def rules_of(processors: int, *, window_s: float | None, is_response: bool) -> Rules:
    """Return how promises are made on a machine, and what a start is worth.

    Args:
        processors: of the machine.
        window_s: a job is promised no start earlier than so long after its submission; negative: it is
            promised none; None: promises follow the log.
        is_response: whether starts are worth what they save in slowdown.
    """
    follows = window_s is None
    return Rules(
        promises=int(follows or (window_s is not None and window_s >= 0)),
        follows=int(follows),
        window_s=max(window_s or 0.0, 0.0),
        share=SHARE,
        limits=LIMITS,
        looseness=LOOSENESS,
        latest=LATEST,
        overdue=OVERDUE,
        response=int(is_response),
        processors=processors,
    )
