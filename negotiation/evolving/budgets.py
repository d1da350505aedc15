"""Fairness as the engine's limits: what users may still be put off by, counted as licences of milliseconds.

A request that bids takes of each budget what its grant alone would delay that budget's jobs: one row of the
program for each (bidgen/families/licenses.py). Delays of several grants may add up to more than each alone,
so that awards are measured once more, together, before they count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil, floor, inf

from ...cluster.checks import LARGEST_COUNT
from ...cluster.limits import Owned
from .fairness import Accounts, Delay, Fairness, counts, credentials

_MS = 1000
#: A budget of nothing, of which any delay takes something.
_FORBIDDEN = -1.0


class Budgets:
    """What is left of each limit that requests would touch, and what each request takes.

    Args:
        fairness: the configuration.
        accounts: of this interval.

    Attributes:
        left: milliseconds by budget.
        costs: milliseconds by budget, by request.
    """

    def __init__(self, fairness: Fairness, accounts: Accounts) -> None:
        self._fairness, self._accounts = fairness, accounts
        self.left: dict[str, int] = {}
        self.costs: dict[str, dict[str, int]] = {}

    def add(self, request: str, requester: Owned, delays: Iterable[Delay]) -> None:
        """Count what a request alone would delay."""
        taken = self.costs.setdefault(request, {})
        for delay in delays:
            if not counts(delay, requester):
                continue
            cost = LARGEST_COUNT if delay.seconds == inf else ceil(_MS * delay.seconds)
            for name, left_s in self._rows(delay):
                self.left[name] = max(0, min(LARGEST_COUNT, floor(_MS * left_s)))
                taken[name] = min(LARGEST_COUNT, taken.get(name, 0) + cost)

    def _rows(self, delay: Delay) -> Iterator[tuple[str, float]]:
        """Yield the budgets of a delayed job, and the seconds that are left of each."""
        policy, accounts = self._fairness.policy, self._accounts
        for kind, name in credentials(delay.owner):
            limits = self._fairness.of(kind, name)
            if limits.permitted is False:
                yield f"no delay of {kind} {name}", _FORBIDDEN
            if policy.limits_intervals and limits.target_s:
                used = accounts.targets.get((kind, name), 0.0)
                yield f"delay of {kind} {name}", limits.target_s - used
            if policy.limits_jobs and limits.single_s:
                used = accounts.singles.get(delay.job, 0.0)
                yield f"delay of job {delay.job} by {kind}", limits.single_s - used
