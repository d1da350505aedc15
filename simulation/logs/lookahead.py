"""Backfilling with lookahead (Chapter 3, the sixth parameter; Shmueli and Feitelson's LOS).

One pass: start from the head while it fits. Then the head has EASY's reservation, shadow time and *extra*,
and of the rest of the queue those jobs start that together use most processors while they leave the head
its reservation: all fit now, and those whose estimate ends after the shadow time fit into *extra*. EASY takes
them one at a time instead, and may leave processors idle that another choice fills.

Of equally full selections the one that holds the earlier jobs is taken (``ties`` first), or, as some
published simulators do, the later (last).
"""

from __future__ import annotations

from itertools import islice

from ...cluster.errors import OptionError
from ..log_columns import Requests
from ..stepping import Resort
from ..subset import Candidate, fullest
from .front import FrontFirst


class Lookahead(FrontFirst):
    """LOS over a queue sorted by job number, or by ``resort`` before each pass.

    Args:
        requests: the jobs.
        resort: sorts the queue before each pass.
        depth: how many jobs after the head are looked at; None: all.
        ties: ``first`` or ``last``.

    """

    def __init__(
        self, requests: Requests, resort: Resort | None, *, depth: int | None = None, ties: str = "first"
    ) -> None:
        if depth is not None and depth < 1:
            raise OptionError(f"--lookahead-depth {depth} is below 1")
        if ties not in {"first", "last"}:
            raise OptionError(f"--lookahead-ties {ties!r} is none of first, last")
        super().__init__(requests, resort)
        self._depth = depth
        self._last = ties == "last"

    def backfill(self, now: float) -> list[int]:
        """Start the fullest selection beside the head's reservation."""
        free = self._running.free
        looked_at = islice(self._queue, 1, None if self._depth is None else self._depth + 1)
        fitting = [job for job in looked_at if self._size[job] <= free]
        if not fitting:
            return []
        shadow, extra = self._running.shadow(self._size[self._queue[0]])
        candidates = [Candidate(job, self._size[job], now + self._estimate[job] > shadow) for job in fitting]
        if self._last:
            candidates.reverse()
        chosen = fullest(candidates, free, extra)
        for job in chosen:
            self._running.start(job, now)
        return chosen
