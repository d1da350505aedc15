"""A planning system: a full schedule with a start for every job, replanned on every change (Chapter 3).

Advance reservations come first; they are fixed. Beside them every waiting job has a planned start. When a
job is submitted, or ends before its estimate, the plan is made anew, in one of two ways:

- ``keep``: planned starts are promises. Jobs move earlier one at a time in queue order, round after round,
  and never later; a new job gets the earliest start beside all others. Without advance reservations that is
  conservative backfilling, job by job.
- ``rebuild``: as the Chapter describes it. All jobs that do not run are taken out of the schedule, sorted
  and put back one after another, each at its earliest start. A job may then be planned later than before.

A planned start is now, or where a running or planned job or an advance reservation ends. The first two are
events of their own or come after one; at the last the policy wakes.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

from ...cluster.errors import OptionError
from ..requests import Requests
from .advance import Advance, check_advance
from .conservative import Conservative
from .orderings import Resort


class Planning(Conservative):
    """Planning over a queue sorted by job number, or by ``resort``.

    Args:
        requests: the jobs.
        resort: sorts jobs before they are planned.
        advance: accepted beforehand; refused where they need more than the machine.
        replan: ``keep`` or ``rebuild``.

    Attributes:
        wakes: when advance reservations end, in seconds.

    """

    def __init__(
        self, requests: Requests, resort: Resort | None, advance: Sequence[Advance], replan: str
    ) -> None:
        if replan not in {"keep", "rebuild"}:
            raise OptionError(f"--replan {replan!r} is none of keep, rebuild")
        check_advance(advance, requests.processors)
        super().__init__(requests, resort, advance)
        self._rebuilds = replan == "rebuild"
        self.wakes: Sequence[float] = sorted({one.end_s for one in advance})

    def step(self, now: float, ended: Sequence[int], arrived: Sequence[int]) -> Sequence[int]:
        """Replan after a change; start what is due."""
        if not self._rebuilds:
            return super().step(now, ended, arrived)
        changed = self._release(now, ended) > now or bool(arrived)
        self._profile.advance(now)
        if changed:
            self._take_out(self._queue)
            for job in arrived:
                insort(self._queue, job)
            if self._resort:
                self._resort(now, self._queue)
            for job in self._queue:
                self._reserve(job, self._profile.earliest(self._size[job], self._estimate[job]))
        return self._due(now)

    def _take_out(self, jobs: Sequence[int]) -> None:
        for job in jobs:
            start = self._start_of.pop(job)
            self._profile.add(start, start + self._estimate[job], self._size[job])
