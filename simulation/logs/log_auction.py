"""The auction on a machine that counts processors: one kind of item, and promises as rows.

Where all nodes are alike an auction's program has no bids to choose between: a job takes its processors or
waits. What is left is a program over counts: the greatest worth of what starts, subject to the processors
free now and, for every waiting job, to a plan in which it starts by its promise. It is solved greedily:
jobs are tried by their worth for what they take, and each that leaves the plan feasible starts (awards.py).

- Objective ``priority``: the order of the queue. Without promises the first job that does not fit has a
  reservation, so that the starts are EASY's, one by one.
- Objective ``response``: what a second less of waiting saves in bounded slowdown, 1 / max(estimate, 10 s).

A promise is the start by which a job runs when it comes, only ever bettered, and kept as long as no job runs
beyond its estimate (promised/plan.py):

- ``plan``: given on arrival: the start in a plan of all that wait, one after another in the order of their
  promises.
- a duration: given on arrival: the later of that and so long after submission.
- ``auto``: given when a job is due (promised/promise_plan.py). That follows the log: 55 % of the longest wait
  that EASY would have made so far, played on a copy of the machine (promised/easy_reference.py), at most four
  times the estimate, less for jobs of nearly all processors. The plan's start counts 1.8 times as far, for
  estimates are long, up to a wait of that longest one; whoever has waited for 60 % of it is tried first.
- ``backfill`` and ``none``: none; where processors are counted, backfilling is all that is left to award.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from ...cluster.errors import OptionError
from ...cluster.kernels.harness import Column
from ..log_columns import Requests
from ..promised.easy_reference import longest_wait
from ..promised.promise_state import COPY_NOW, WAITING, empty_state, rules_of
from ..promised.promise_stepping import STEP
from ..stepping import Changes, CountPolicy, Resort

OBJECTIVES = ("priority", "response")


class LogAuction(CountPolicy):
    """The auction over a queue sorted by job number.

    Args:
        requests: the jobs.
        resort: sorts the queue before each pass, under ``priority``.
        objective: ``priority`` or ``response``.
        promise: ``plan``, ``backfill``, ``none``, ``auto`` or a duration; None: the objective's own, ``auto``
            for ``response`` and ``backfill`` for ``priority``.

    Raises:
        OptionError: no such objective or promise.
    """

    def __init__(
        self,
        requests: Requests,
        resort: Resort | None,
        *,
        objective: str = "priority",
        promise: str | None = None,
    ) -> None:
        if objective not in OBJECTIVES:
            raise OptionError(f"--objective {objective!r} is none of {', '.join(OBJECTIVES)} on a log")
        self._resort = resort
        self._rules = rules_of(requests.processors, objective, promise)
        self._step, self._is_compiled = STEP.for_jobs(len(requests))
        self._state = empty_state(
            processors=requests.processors,
            submit=requests.submit,
            size=requests.size,
            estimate=requests.estimate,
            user=requests.user,
            is_compiled=self._is_compiled,
        )
        self._started = self._ints([0] * (len(requests) + 1))

    def step(self, now: float, seen: Changes) -> Sequence[int]:
        """Make one pass."""
        ended, arrived = seen
        if self._resort is not None:
            self._rank(self._resort, now, arrived)
        if self._is_compiled:
            ended, arrived = self._ints(ended), self._ints(arrived)
        count = self._step(self._state, self._rules, float(now), ended, arrived, self._started)
        started = self._started[:count]
        return started.tolist() if self._is_compiled else started  # type: ignore[no-any-return]

    @property
    def is_compiled(self) -> bool:
        """Whether numba compiled the step."""
        return self._is_compiled

    def longest_wait_under_easy(self, now: float) -> float:
        """Return the longest wait up to now had EASY played the jobs, as far as their run times are known."""
        return longest_wait(self._state, now)

    @property
    def promises(self) -> Sequence[float]:
        """By job, the start promised last; infinite where none was."""
        jobs, now = self._state.jobs, self._state.copy.clock[COPY_NOW]
        is_made = [not self._rules.follows or due <= now for due in jobs.due]
        return [float(one) if made else inf for one, made in zip(jobs.promise, is_made, strict=True)]

    def _rank(self, resort: Resort, now: float, arrived: Sequence[int]) -> None:
        """Say where jobs stand in an order that changes with time."""
        machine = self._state.machine
        queue = [int(machine.waiting[place]) for place in range(machine.counts[WAITING])] + list(arrived)
        resort(now, queue)
        for place, job in enumerate(queue):
            self._state.jobs.rank[job] = place

    def _ints(self, numbers: Sequence[int]) -> Column:
        return np.array(numbers, np.int64) if self._is_compiled else list(numbers)
