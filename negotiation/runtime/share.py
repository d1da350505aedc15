"""Who gives and gets nodes: algorithm 5's shrinking, equipartition, transformations (5.2.2)."""

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from ..malleable.application_columns import empty_active
from ..malleable.harvesting import CLEARLY, take
from ..malleable.malleable_policies import IschedulerPolicy
from ..speedup import speed
from .runtime_machine import MachineState, RunRecord
from .tentative import TentativeState, waiting_first

#: Who gives first in a class: the lowest priority, all it can (the thesis), or a harvest policy.
ShrinkOrder = Literal["priority", "even", "fair", "long", "short", "low_impact", "priced"]
#: How a range is divided by the attempts: rounded up, or as the thesis prints it.
Steps = Literal["ceiling", "printed"]


def step_size(span: int, attempts: int, steps: Steps) -> int:
    """Return the nodes by which a job shrinks in one step.

    ``ceiling`` is max(1, ⌈span / attempts⌉), so that the last attempt reaches the end of the range.
    ``printed`` is the quotient of algorithms 3 and 5 (Nagendra 2016, 5.2.1 and 5.2.2), read as a
    division of integers: ⌊span / attempts⌋, 0 for a job with a range of fewer nodes than attempts.
    """
    return span // attempts if steps == "printed" else max(1, -(-span // attempts))


def shrunk_count(count: int, least: int, attempt: int, attempts: int, steps: Steps) -> int:
    """Return a job's size in an attempt: ``count`` − step · attempt, but never below ``least``."""
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

        Classes: (1) expanded for the waiting job, (2) for none, (3) for others; in each by the
        shrink order. ``spare`` names jobs that give nothing; with them class 1 is left out too, as
        when a holder of a dependency is expanded.
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
        if self._order == "priced":
            return self._cheapest(jobs, need)
        if self._order != "priority":
            return self._harvested(jobs, need)
        given: list[int] = []
        for job in jobs:
            given.append(min(self._spare(job), need - sum(given)))
        return given

    def _harvested(self, jobs: list[RunRecord], need: int) -> list[int]:
        """Let iScheduler's harvest policy of that name choose; of equals the oldest gives first."""
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
        """Take nodes one by one where worth least: the speed that one adds, over the work left."""
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


def equipartition(draft: TentativeState, *, with_starts: bool = True) -> None:
    """Give idle nodes to running malleable jobs, one by one to the smallest share.

    ``with_starts``: also to malleable jobs that start; else these begin as mapped (the thesis).
    """
    for partition in draft.machine.partitions:
        _share_out(draft, partition, with_starts=with_starts)


def _share_out(draft: TentativeState, partition: str, *, with_starts: bool) -> None:
    idle = draft.idle_in(partition).bit_count()
    if not idle:
        return
    room = {job.entry.job: draft.reach(job.entry.job) for job in draft.elastic(partition)}
    held = {name: draft.count[name] for name in room}
    for name, (entry, nodes) in draft.starts.items() if with_starts else ():
        if entry.partition == partition and entry.type == "malleable":
            room[name], held[name] = draft.reach(name), nodes.bit_count()
    before = dict(held)
    open_jobs = [name for name in held if held[name] < room[name]]
    while idle and open_jobs:
        name = min(open_jobs, key=held.__getitem__)
        held[name] += 1
        idle -= 1
        if held[name] == room[name]:
            open_jobs.remove(name)
    for name, count in held.items():
        if count != before[name]:
            draft.resize(name, count)


def full_transformation(machine: MachineState) -> MachineState:
    """Return the machine after a full transformation: idle nodes go to who makes most of them.

    Jobs that need not miss their deadline take idle nodes first. Then come holders of dependencies,
    at the expense of jobs without; else nodes go by speedup: idle ones to the job that gains most
    by one more, and from the job that loses least while another gains more.
    """
    draft = TentativeState(machine)
    for partition in machine.partitions:
        jobs = draft.elastic(partition)
        _rescue(draft, jobs)
        holders = [job for job in jobs if job.entry.job in draft.holds_for]
        others = [job for job in jobs if job.entry.job not in draft.holds_for]
        for holder in holders:
            _expand_first(draft, holder, others)
        _by_speedup(draft, jobs, partition, movable=others if not holders else [])
    return draft.committed()


def _rescue(draft: TentativeState, jobs: list[RunRecord]) -> None:
    """Let idle nodes go to jobs that keep their deadline with them, the earliest first."""
    late = [job for job in jobs if job.rescue_count(draft.now_s) > job.count]
    for job in sorted(late, key=lambda job: job.entry.deadline_s or 0.0):
        name, wanted = job.entry.job, job.rescue_count(draft.now_s)
        if wanted - job.count <= draft.idle_in(draft.partition_of[name]).bit_count():
            draft.resize(name, wanted)


def _expand_first(draft: TentativeState, holder: RunRecord, others: list[RunRecord]) -> None:
    """Expand a holder to its maximum; jobs without dependencies shrink, down to their least."""
    name, most = holder.entry.job, holder.entry.max_nodes
    idle = draft.idle_in(draft.partition_of[name]).bit_count()
    least = {job.entry.job: job.least_count(draft.now_s) for job in others}
    shrink(draft, others, least, most - draft.count[name] - idle)
    idle = draft.idle_in(draft.partition_of[name]).bit_count()
    if draft.count[name] < most and idle:
        draft.resize(name, min(most, draft.count[name] + idle))
        draft.grown_for[name] = draft.holds_for[name]


def shrink(
    draft: TentativeState, jobs: Iterable[RunRecord], least: Mapping[str, int], missing: int
) -> list[str]:
    """Let jobs give the missing nodes, lowest priority first, and return those that did."""
    shrunk = []
    for job in waiting_first(jobs):
        name = job.entry.job
        give = min(missing, draft.count[name] - least[name])
        if give > 0:
            draft.resize(name, draft.count[name] - give)
            missing -= give
            shrunk.append(name)
    return shrunk


def _by_speedup(
    draft: TentativeState, jobs: list[RunRecord], partition: str, *, movable: list[RunRecord]
) -> None:
    """Hand idle nodes to the largest gain; move nodes while a gain is clearly above a loss."""
    now_s, names = draft.now_s, [job.entry.job for job in jobs]
    models = {job.entry.job: job.entry.speedup for job in jobs}
    left = dict(zip(names, jobs, strict=True))
    count = {name: draft.count[name] for name in names}
    most = {name: draft.reach(name) for name in names}

    def gain(name: str, at: int) -> float:
        """Return the speedup that one node more than ``at`` brings."""
        return round(speed(models[name], at + 1) - speed(models[name], at), 9)

    for _ in range(draft.idle_in(partition).bit_count()):
        takers = [name for name in names if count[name] < most[name]]
        if not takers:
            break
        # Among equals the one that would end last.
        count[
            max(takers, key=lambda one: (gain(one, count[one]), left[one].planned_end_s(count[one], now_s)))
        ] += 1
    for _ in range(sum(job.count for job in movable)):
        givers = [job.entry.job for job in movable if count[job.entry.job] > job.least_count(now_s)]
        takers = [name for name in names if count[name] < most[name]]
        if not givers or not takers:
            break
        giver = min(givers, key=lambda one: gain(one, count[one] - 1))
        taker = max(takers, key=lambda one: gain(one, count[one]))
        if gain(taker, count[taker]) <= CLEARLY * gain(giver, count[giver] - 1):
            break
        count[giver] -= 1
        count[taker] += 1
    # Those that give first.
    for name in sorted(count, key=lambda one: count[one] - draft.count[one]):
        if count[name] != draft.count[name]:
            draft.resize(name, count[name])


def partial_transformation(machine: MachineState, attempts: int, steps: Steps = "ceiling") -> MachineState:
    """Return the machine after a partial transformation: jobs above equal shares shrink a step."""
    draft = TentativeState(machine)
    for partition in machine.partitions:
        jobs = draft.elastic(partition)
        if not jobs:
            continue
        nodes = sum(job.count for job in jobs) + draft.idle_in(partition).bit_count()
        share = nodes // len(jobs)
        for job in jobs:
            least = max(share, job.least_count(machine.now_s))
            if job.count > least:
                step = step_size(job.count - job.entry.min_nodes, attempts, steps)
                draft.resize(job.entry.job, max(least, job.count - step))
    return draft.committed()


def settled(machine: MachineState) -> MachineState:
    """Return the machine with each job accounted at its nodes: its first periodic step has come."""
    running = {
        name: job if job.pace == job.count else job.on(job.nodes, machine.now_s)
        for name, job in machine.running.items()
    }
    return msgspec.structs.replace(machine, running=running)
