"""A planning system: a full schedule with all starts, replanned on every change (Chapter 3).

docs/policies.md (planning) says how plans are made anew, and what becomes of fixed-time requests.
With any of these a planned start need not be an event, so the policy asks for an alarm.
"""

from bisect import insort
from collections.abc import Sequence
from math import inf

from ..backfilling.conservative import WAITING, Conservative, first_start, occupy, reserve
from ..log_columns import Requests
from ..simulate_options import PolicyOptions
from ..stepping import Changes, Resort
from .plan_constraints import Advance, StartRules, check_advance


class Planning(Conservative):
    """Planning over a queue sorted by job number, or by ``resort``.

    Args:
        options: fixed-time requests, of which those accepted beforehand are refused where they need
            more than the machine; how plans are made anew, when an unused reservation is released,
            and when jobs may start.
    """

    def __init__(self, requests: Requests, resort: Resort | None, options: PolicyOptions) -> None:
        advance, rules = options.advance, options.start_rule
        known = [one for one in advance if one.submit_s is None]
        check_advance(known, requests.processors)
        super().__init__(requests, resort, StartRules(rules, requests) if rules else None)
        self._rebuilds = options.replan == "rebuild"
        self._release_s = inf if options.release_unused_s is None else options.release_unused_s
        self._has_alarms = bool(advance or rules)
        # Unused reservations by the time of their release; requests to come by their submission.
        self._unused: list[tuple[float, Advance]] = []
        self._to_come = sorted((one for one in advance if one.submit_s is not None), key=_submission)
        self._refused: list[str] = []
        self._is_asked = bool(self._to_come)
        for one in known:
            self._accept(one)

    @property
    def loop(self) -> str | None:
        """The compiled loop that gives the same starts."""
        return None if self._rebuilds or self._has_alarms else super().loop

    @property
    def alarm(self) -> float | None:
        """The next planned start, submission or release; None where each is an event of its own."""
        if not self._has_alarms:
            return None
        times = [self._state.start_of[job] for job in self._queue]
        times += [time for time, _ in self._unused]
        times += map(_submission, self._to_come[:1])
        return min(times, default=inf)

    @property
    def refused(self) -> Sequence[str] | None:
        """The fixed-time requests that were refused, in order; None where none is submitted."""
        return self._refused if self._is_asked else None

    def step(self, now: float, seen: Changes) -> Sequence[int]:
        """Replan after a change; start what is due."""
        if self._rules is not None:
            self._rules.advance(now)
        if not self._rebuilds:
            return super().step(now, seen)
        ended, arrived = seen
        changed = self._release(now, ended) > now or bool(arrived)
        self._profile.advance(now)
        if changed:
            for job in self._queue:
                start = self._state.start_of[job]
                occupy(self._state, self._rules, job, start, start + self._state.estimate[job], 1)
            for job in arrived:
                insort(self._queue, job)
            self._state.counts[WAITING] = len(self._queue)
            if self._resort:
                self._resort(now, self._queue)
            for job in self._queue:
                start = first_start(self._state, self._rules, job, now, inf, inf)
                reserve(self._state, self._rules, job, start)
        return self._due(now)

    def _release(self, now: float, ended: Sequence[int]) -> float:
        """Take back what ended jobs and unused reservations held; then answer the requests due."""
        freed_until = super()._release(now, ended)
        self._profile.advance(now)
        for time, one in [entry for entry in self._unused if entry[0] <= now]:
            self._unused.remove((time, one))
            self._profile.add(now, one.end_s, one.processors)
            freed_until = max(freed_until, one.end_s)
        while self._to_come and _submission(self._to_come[0]) <= now:
            one = self._to_come.pop(0)
            start = self._profile.earliest(one.processors, one.duration_s, after=one.start_s)
            if start > max(one.start_s, now) or one.start_s < now:
                self._refused.append(f"{one.start_s:g},{one.duration_s:g},{one.processors},{one.submit_s:g}")
            else:
                self._accept(one)
        return freed_until

    def _accept(self, one: Advance) -> None:
        self._profile.add(one.start_s, one.end_s, -one.processors)
        release = one.start_s + self._release_s
        if not one.is_used and release < one.end_s:
            self._unused.append((release, one))


def _submission(one: Advance) -> float:
    return one.start_s if one.submit_s is None else one.submit_s
