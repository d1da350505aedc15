"""Who gives nodes for whom, and how many: the shrink operations of algorithm 5."""

from __future__ import annotations

from .draft import Draft, waiting_first
from .machine import Running


def step_size(span: int, attempts: int) -> int:
    """Return the nodes of one step: max(1, ⌈span / attempts⌉), so that the last attempt reaches the end.

    As printed most small jobs have a step of 0 and never shrink (SPEC 2).
    """
    return max(1, -(-span // attempts))


def shrunk_count(count: int, least: int, attempt: int, attempts: int) -> int:
    """Return what a job shrinks to in an attempt: ``count`` − step · attempt, not below ``least``."""
    return max(least, count - step_size(count - least, attempts) * attempt)


class Shrinking:
    """What running jobs can still give in one attempt; kept while algorithm 5 takes from them."""

    def __init__(self, draft: Draft, attempt: int, attempts: int) -> None:
        self._draft = draft
        self._floor: dict[str, int] = {}
        self._jobs: dict[str, list[Running]] = {}
        for partition in draft.machine.partitions:
            jobs = waiting_first(draft.elastic(partition))
            self._jobs[partition] = jobs
            for job in jobs:
                least = shrunk_count(job.count, job.entry.min_nodes, attempt, attempts)
                self._floor[job.entry.job] = least

    def can_give(self, partition: str) -> int:
        """Return how many nodes the jobs of a partition can give together."""
        return sum(max(0, self._spare(job)) for job in self._jobs[partition])

    def _spare(self, job: Running) -> int:
        return self._draft.count[job.entry.job] - self._floor[job.entry.job]

    def take(self, partition: str, need: int, waiting: str, *, spare: tuple[str, ...] = ()) -> int:
        """Shrink jobs until ``need`` nodes are gained, and return how many were.

        Classes: (1) expanded for the waiting job, (2) for none, (3) for others; in each by rising priority.
        ``spare`` names jobs that give nothing; with them class 1 is left out too, as when a holder of a
        dependency is expanded.
        """
        gained = 0
        for job in self._in_classes(partition, waiting, skip_own=bool(spare)):
            if gained >= need:
                break
            name = job.entry.job
            give = min(need - gained, self._spare(job))
            if give > 0 and name not in spare:
                self._draft.resize(name, self._draft.count[name] - give)
                gained += give
        return gained

    def _in_classes(self, partition: str, waiting: str, *, skip_own: bool) -> list[Running]:
        grown_for = self._draft.grown_for
        classes: tuple[list[Running], ...] = ([], [], [])
        for job in self._jobs[partition]:
            target = grown_for.get(job.entry.job, "")
            classes[0 if target == waiting else 2 if target else 1].append(job)
        return [*(() if skip_own else classes[0]), *classes[1], *classes[2]]
