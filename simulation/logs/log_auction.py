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
- ``auto``: given when a job is due (promised/promise_plan.py). That follows the log: 55 % of the
  longest wait that EASY would have made so far, played on a copy of the machine
  (promised/promise_stepping.py), at most four times the estimate, less for jobs of nearly all
  processors. The plan's start counts 1.8 times as far, for estimates are long, up to a wait of that
  longest one; whoever has waited for 60 % of it is tried first.
  Under overload promises are withdrawn (promised/overload.py).
- ``backfill`` and ``none``: none; where processors are counted, backfilling is all that is left to award.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ...cluster.errors import OptionError
from ...cluster.kernels.harness import Column, Loop
from ..log_columns import LogColumns, Requests, count_users
from ..promised.promise_state import WAITING, PromisedPlay, PromisedState, empty_state, rules_of
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
        self._requests = requests
        self._resort = resort
        self._rules = rules_of(requests.processors, objective, promise)

    @property
    def loop(self) -> str | None:
        """The compiled loop that gives the same starts."""
        return None if self._resort else "promised"

    def columns(self, log: LogColumns) -> PromisedPlay:
        """Return what plays a log from its beginning."""
        return self._play(log, log.user, is_compiled=True)

    def _play(self, asked: LogColumns | Requests, user: Column, *, is_compiled: bool) -> PromisedPlay:
        state = empty_state(
            processors=self._requests.processors,
            submit=asked.submit,
            size=asked.size,
            estimate=asked.estimate,
            user=user,
            is_compiled=is_compiled,
        )
        return PromisedPlay(state, self._rules)

    @cached_property
    def stepping(self) -> tuple[Loop, bool, PromisedPlay]:
        """What makes a pass, whether numba compiled it, and what it works on: a compiled loop needs none."""
        step, is_compiled = STEP.for_jobs(len(self._requests))
        users = count_users(self._requests.user).tolist()
        return step, is_compiled, self._play(self._requests, users, is_compiled=is_compiled)

    def step(self, now: float, seen: Changes) -> Sequence[int]:
        """Make one pass."""
        ended, arrived = seen
        step, is_compiled, (state, rules) = self.stepping
        if self._resort is not None:
            self._rank(self._resort, now, arrived, state)
        # What is learnt does not hang on the order in which those that end at one time were chosen.
        events: list[Column] = [sorted(ended), list(arrived)]
        if is_compiled:
            events = [np.array(jobs, np.int64) for jobs in events]
        count = step(state, rules, float(now), *events)
        chosen: Column = state.machine.easy.started[:count]
        return chosen.tolist() if is_compiled else chosen  # type: ignore[no-any-return]

    def _rank(self, resort: Resort, now: float, arrived: Sequence[int], state: PromisedState) -> None:
        """Say where jobs stand in an order that changes with time."""
        machine = state.machine
        queue = [int(machine.waiting[place]) for place in range(machine.counts[WAITING])] + list(arrived)
        resort(now, queue)
        for place, job in enumerate(queue):
            state.jobs.rank[job] = place
