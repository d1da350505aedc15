"""How promises follow a log: the same constants where processors are counted and on nodes."""

from __future__ import annotations

from ...cluster.promises import AUTO, BACKFILL, NONE, promised_duration_s
from .promise_state import PromiseRules

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


def rules_of(processors: int, objective: str, promise: str | None) -> PromiseRules:
    """Return the rules that an objective and a promise make on a machine.

    Args:
        processors: of the machine.
        objective: ``priority`` or ``response``.
        promise: ``plan``, ``auto``, ``backfill``, ``none`` or a duration; None: ``auto`` for ``response`` and
            ``backfill`` for ``priority``.

    Raises:
        OptionError: no such promise.
    """
    if promise is None:
        promise = AUTO if objective == "response" else BACKFILL
    is_auto = promise == AUTO
    has_promises = promise not in {BACKFILL, NONE}
    return PromiseRules(
        promises=int(has_promises),
        follows=int(is_auto),
        window_s=promised_duration_s(promise) if has_promises and not is_auto else 0.0,
        share=SHARE,
        limits=LIMITS,
        looseness=LOOSENESS,
        latest=LATEST,
        overdue=OVERDUE,
        response=int(objective == "response"),
        processors=processors,
    )
