"""Slack-based backfilling: the head's reservation may be put off, up to a slack.

Chapter 3, the second parameter; after the relaxed backfilling of Ward, Mahood and West, which the Chapter
names beside Talby and Feitelson's flexible backfilling. One pass: start from the head while it fits. The
head's promise is the earliest shadow time it ever had; its latest start is the promise and F times its
estimate, so that waiting can raise its expansion factor (wait + estimate) / estimate by at most F beyond
what was promised. Then once over the rest in queue order: a job that fits starts if, by estimates, the head
can still start by its latest start. F = 0 is EASY exactly.
"""

from __future__ import annotations

from math import isfinite

from ...cluster.errors import OptionError
from ..log_columns import Requests
from ..stepping import Resort
from .front import FrontFirst


class Slack(FrontFirst):
    """Backfilling with slack over a queue sorted by job number, or by ``resort`` before each pass.

    Args:
        requests: the jobs.
        resort: sorts the queue before each pass.
        factor: F, the slack as a multiple of the head's estimate, at or above 0.

    """

    def __init__(self, requests: Requests, resort: Resort | None, factor: float) -> None:
        if not (isfinite(factor) and factor >= 0):
            raise OptionError(f"--slack {factor:g} is not at or above 0")
        super().__init__(requests, resort)
        self._factor = factor
        # By job that was the head: the earliest shadow time it had.
        self._promise: dict[int, float] = {}

    def backfill(self, now: float) -> list[int]:
        """Start what leaves the head its latest start."""
        running, head = self._running, self._queue[0]
        fitting = [job for job in self._queue if self._size[job] <= running.free]
        need = self._size[head]
        shadow, _ = running.shadow(need)
        promise = self._promise[head] = min(self._promise.get(head, shadow), shadow)
        latest = promise + self._factor * self._estimate[head]
        started: list[int] = []
        refused: list[tuple[int, float]] = []
        for job in fitting:
            size, estimate = self._size[job], self._estimate[job]
            # No smaller and no shorter than one refused in this pass: it would be refused too.
            if size > running.free or any(size >= s and estimate >= e for s, e in refused):
                continue
            running.start(job, now)
            if running.shadow(need)[0] <= latest:
                started.append(job)
                continue
            running.release([job])
            refused = [one for one in refused if one[0] < size or one[1] < estimate]
            refused.append((size, estimate))
        return started
