"""Who gives nodes for whom, and how many: algorithm 5's shrink operations, and harvest policies."""

from __future__ import annotations

from typing import Literal

from ..malleable.application_columns import empty_active
from ..malleable.harvesting import take
from ..malleable.malleable_policies import IschedulerPolicy
from ..speedup import speed
from .runtime_machine import RunRecord
from .tentative import TentativeState, waiting_first

#: Who gives first within a class: the lowest priority, all that it can (the thesis), or a harvest policy.
ShrinkOrder = Literal["priority", "even", "fair", "long", "short", "low_impact", "priced"]
#: How a range is divided by the attempts: rounded up, or as the thesis prints it.
Steps = Literal["ceiling", "printed"]


def step_size(span: int, attempts: int, steps: Steps) -> int:
    """Return the nodes by which a job shrinks in one step.

    ``ceiling`` is max(1, ⌈span / attempts⌉), so that the last attempt reaches the end of the range.
    ``printed`` is the quotient of algorithms 3 and 5 (Nagendra 2016, 5.2.1 and 5.2.2), read as a division
    of integers: ⌊span / attempts⌋, 0 for a job with a range of fewer nodes than attempts.
    """
    return span // attempts if steps == "printed" else max(1, -(-span // attempts))


def shrunk_count(count: int, least: int, attempt: int, attempts: int, steps: Steps) -> int:
    """Return what a job shrinks to in an attempt: ``count`` − step · attempt, not below ``least``."""
    return max(least, count - step_size(count - least, attempts, steps) * attempt)


class Shrinking:
    """What running jobs can still give in one attempt; kept while algorithm 5 takes from them."""

    def __init__(
        self,
        draft: TentativeState,
        attempt: int,
        attempts: int,
        order: ShrinkOrder = "priority",
        steps: Steps = "ceiling",
    ) -> None:
        self._draft = draft
        self._order = order
        self._floor: dict[str, int] = {}
        self._jobs: dict[str, list[RunRecord]] = {}
        for partition in draft.machine.partitions:
            elastic = draft.elastic(partition)
            jobs = waiting_first(elastic) if order == "priority" else elastic
            self._jobs[partition] = jobs
            for job in jobs:
                least = job.least_count(draft.now_s)
                self._floor[job.entry.job] = shrunk_count(job.count, least, attempt, attempts, steps)

    def can_give(self, partition: str) -> int:
        """Return how many nodes the jobs of a partition can give together."""
        return sum(max(0, self._spare(job)) for job in self._jobs[partition])

    def _spare(self, job: RunRecord) -> int:
        return self._draft.count[job.entry.job] - self._floor[job.entry.job]

    def take(self, partition: str, need: int, waiting: str, *, spare: tuple[str, ...] = ()) -> int:
        """Shrink jobs until ``need`` nodes are gained, and return how many were.

        Classes: (1) expanded for the waiting job, (2) for none, (3) for others; in each by the shrink order.
        ``spare`` names jobs that give nothing; with them class 1 is left out too, as when a holder of a
        dependency is expanded.
        """
        gained = 0
        for jobs in self._classes(partition, waiting, skip_own=bool(spare)):
            able = [job for job in jobs if job.entry.job not in spare and self._spare(job) > 0]
            wanted = min(need - gained, sum(map(self._spare, able)))
            if wanted <= 0:
                continue
            for job, give in zip(able, self._gifts(able, wanted), strict=True):
                if give > 0:
                    self._draft.resize(job.entry.job, self._draft.count[job.entry.job] - give)
            gained += wanted
        return gained

    def _gifts(self, jobs: list[RunRecord], need: int) -> list[int]:
        """Return how many nodes each job of a class gives, together ``need``."""
        if self._order == "priority":
            return _first_all(list(map(self._spare, jobs)), need)
        if self._order == "priced":
            return self._cheapest(jobs, need)
        return self._harvested(jobs, need)

    def _harvested(self, jobs: list[RunRecord], need: int) -> list[int]:
        """Let iScheduler's harvest policy of that name choose; among equals who started first gives first."""
        active = empty_active(len(jobs))
        for place, job in enumerate(jobs):
            name = job.entry.job
            active.held[place], active.floor[place] = self._draft.count[name], self._floor[name]
            active.ideal[place], active.harvests[place] = job.entry.max_nodes, job.harvests
            active.start[place], active.end[place] = job.start_s, self._draft.end_s(job)
        rules = IschedulerPolicy(harvest=self._order).rules("linear")
        take(active, len(jobs), need, self._draft.now_s, rules)
        return [int(count) for count in active.taken]

    def _cheapest(self, jobs: list[RunRecord], need: int) -> list[int]:
        """Take one node at a time where it is worth least: the speed it adds, over the time that is left."""
        given = [0] * len(jobs)
        for _ in range(need):
            able = [place for place, job in enumerate(jobs) if given[place] < self._spare(job)]
            given[min(able, key=lambda place: self._price(jobs[place], given[place]))] += 1
        return given

    def _price(self, job: RunRecord, given: int) -> float:
        """Return the share of a job's work left that its last node does in a second."""
        count = self._draft.count[job.entry.job] - given
        rise = speed(job.entry.speedup, count) - speed(job.entry.speedup, count - 1)
        left_s = self._draft.end_s(job) - self._draft.now_s
        work = left_s * speed(job.entry.speedup, self._draft.count[job.entry.job])
        return rise / work if work > 0 else float("inf")

    def _classes(self, partition: str, waiting: str, *, skip_own: bool) -> list[list[RunRecord]]:
        grown_for = self._draft.grown_for
        classes: tuple[list[RunRecord], ...] = ([], [], [])
        for job in self._jobs[partition]:
            target = grown_for.get(job.entry.job, "")
            classes[0 if target == waiting else 2 if target else 1].append(job)
        return [*([] if skip_own else [classes[0]]), classes[1], classes[2]]


def _first_all(spares: list[int], need: int) -> list[int]:
    """Let the first give all that they can, until there is enough."""
    given = []
    for spare in spares:
        given.append(min(spare, need))
        need -= given[-1]
    return given
