"""Adaptive backfilling: the policy that would have served the recent jobs best.

Chapter 3, the fifth parameter; after Talby and Feitelson. Each time a number of jobs has been submitted,
the last submitted jobs are simulated, on an empty machine from the first of their submissions on, under
each candidate: with the run times of those that have ended, and the estimates of the others. The candidate
with the smallest mean bounded slowdown takes over; between equals the present one stays, else the first
named wins.

Taking over: the new policy receives the running jobs' starts in their order, then, now, of all that
wait. Promises of the old one, such as reservations, are not kept.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import fsum

from ...cluster.errors import OptionError
from ..log_columns import SHORTEST_S, Requests, Workload
from ..result import BOUND_S
from ..simulate_options import PolicyOptions
from ..stepping import Changes, CountPolicy, Renumbered, Resort
from .counts import simulate_counts

#: A policy over jobs numbered in queue order.
Factory = Callable[[Requests, Resort | None], CountPolicy]


class Adaptive(CountPolicy):
    """The best of several policies, looked for again and again.

    Where ``resort`` changes the queue's order with time, it orders the real queue only: the recent jobs are
    simulated in order of submission.

    Args:
        requests: the jobs.
        resort: sorts the queue before each pass.
        options: submissions between two comparisons, and how many of the last are simulated.
        candidates: factories by name; the first serves until the first comparison.
    """

    def __init__(
        self,
        requests: Requests,
        resort: Resort | None,
        options: PolicyOptions,
        candidates: Mapping[str, Factory],
    ) -> None:
        if not candidates:
            raise OptionError("--candidates names no policy")
        self._requests = requests
        self._resort = resort
        self._candidates = candidates
        self._every = options.adapt_every
        self._new = 0
        self._name = next(iter(candidates))
        self._policy = candidates[self._name](requests, resort)
        self._recent: deque[int] = deque(maxlen=options.adapt_window)
        self._run_of: dict[int, float] = {}
        # Running jobs by start, in the order in which they were chosen; and those that wait.
        self._start_of: dict[int, float] = {}
        self._waiting: set[int] = set()

    def step(self, now: float, seen: Changes) -> Sequence[int]:
        """Ask the present policy; before that, compare the candidates when it is time."""
        ended, arrived = seen
        for job in ended:
            # An end less its start may be a last digit above the estimate, or below the shortest run time.
            run = max(now - self._start_of.pop(job), SHORTEST_S)
            self._run_of[job] = min(run, self._requests.estimate[job])
        self._waiting.update(arrived)
        self._recent.extend(arrived)
        self._new += len(arrived)
        if self._new >= self._every:
            self._new = 0
            best = self._best()
            if best != self._name:
                self._name, self._policy = best, self._taking_over(best)
                ended, arrived = (), sorted(self._waiting)
        started = self._policy.step(now, (ended, arrived))
        self._waiting.difference_update(started)
        self._start_of.update(dict.fromkeys(started, now))
        return started

    def _taking_over(self, name: str) -> CountPolicy:
        """Return a new policy that knows the running jobs: alone, each starts when it is submitted."""
        policy = self._candidates[name](self._requests, self._resort)
        for job, start in self._start_of.items():
            policy.step(start, ((), (job,)))
        return policy

    def _best(self) -> str:
        jobs = list(self._recent)
        run = [self._run_of.get(job, self._requests.estimate[job]) for job in jobs]
        score = {name: self._score(factory, jobs, run) for name, factory in self._candidates.items()}
        best = min(score, key=score.__getitem__)
        return best if score[best] < score[self._name] else self._name

    def _score(self, factory: Factory, jobs: Sequence[int], run: Sequence[float]) -> float:
        """Return the jobs' mean bounded slowdown under a candidate."""
        requests = self._requests.taken(jobs)
        first = requests.submit[0]
        submit = tuple(time - first for time in requests.submit)
        requests = replace(requests, submit=submit)
        numbers = tuple(range(len(jobs)))
        workload = Workload(requests=requests, run=tuple(run), ids=numbers, row=numbers, rows=len(jobs))
        # Jobs are numbered in queue order here too: it need not be that of submission.
        in_order = sorted(numbers, key=jobs.__getitem__)
        policy = Renumbered(factory(requests.taken(in_order), None), in_order)
        starts = simulate_counts(workload, policy)
        return fsum(
            max(1.0, (start - begun + seconds) / max(seconds, BOUND_S))
            for start, begun, seconds in zip(starts, submit, run, strict=True)
        ) / len(jobs)
