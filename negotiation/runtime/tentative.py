"""A transformation being worked out: counts that jobs would have, before anybody commits to them.

A draft is local to one transformation. It starts from a machine, which stays what it is: the
thesis's INIT (restore the state before the next attempt) is to start another draft.

Its backfill plan says which forwarded jobs start now, and when the others could (algorithm 5, line
1). Jobs are served in the Map's order; each takes its nodes for its expected run time, so that none
delays one before it (conservative backfilling; the free nodes over time are Slurm's node space
map). Running jobs that end when a reserved one would start are its dependencies (lines 5 and 15).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

import msgspec

from ...cluster.timeline.count_profile import CountProfile
from ..job_records import DIGITS, MapEntry, run_time_s
from .placement_constraints import has_constraints, more_nodes, start_nodes
from .runtime_machine import MachineState, RunRecord, highest, started, union_of


class TentativeState:
    """Node sets as they would be.

    Attributes:
        machine: the state that it started from.
        idle: nodes that nobody would hold.
        nodes, count: of each running job, by job.
        partition_of: where each running job stands, by job.
        starts: entries that would start, with their nodes, in order.
        holds_for, grown_for: the dependencies of running jobs that have any, by job.
    """

    def __init__(self, machine: MachineState) -> None:
        self.machine = machine
        self.now_s = machine.now_s
        self.idle = machine.idle
        self.nodes = {name: job.nodes for name, job in machine.running.items()}
        self.count = {name: job.count for name, job in machine.running.items()}
        self.starts: dict[str, tuple[MapEntry, int]] = {}
        self.holds_for = {name: job.holds_for for name, job in machine.running.items() if job.holds_for}
        self.grown_for = {name: job.grown_for for name, job in machine.running.items() if job.grown_for}
        only = next(iter(machine.partitions)) if len(machine.partitions) == 1 else None
        self.partition_of = {
            name: job.entry.partition if only is None else only for name, job in machine.running.items()
        }
        self._growable = [
            name
            for name, job in machine.running.items()
            if job.is_malleable and job.entry.max_nodes > job.entry.min_nodes
        ]

    def idle_in(self, partition: str) -> int:
        """Return the idle nodes of a partition."""
        return self.idle & self.machine.partitions.get(partition, 0)

    def elastic(self, partition: str) -> list[RunRecord]:
        """Return a partition's running jobs of changeable size, in order of their starts."""
        running = self.machine.running
        return [running[name] for name in self._growable if self.partition_of[name] == partition]

    def end_s(self, job: RunRecord) -> float:
        """Return when a running job is expected to end, at the size that it would have."""
        count = self.count[job.entry.job]
        return job.planned_end_s(job.pace if count == job.count else count, self.now_s)

    def resize(self, job: str, count: int) -> None:
        """Give a job another size: it gives its last nodes, or takes idle ones near its own.

        One that may not use every node may stay smaller than that.
        """
        entry, held = self._held(job)
        change = count - held.bit_count()
        given = highest(held, -change) if change < 0 else 0
        taken = self._more(job, change)
        self.idle = self.idle & ~taken | given
        nodes = held & ~given | taken
        if job in self.starts:
            self.starts[job] = (entry, nodes)
        else:
            self.nodes[job], self.count[job] = nodes, nodes.bit_count()

    def start(self, entry: MapEntry, count: int, wanted: int = 0, avoid: int = 0) -> bool:
        """Let a job start on ``wanted`` where they are idle, and the first idle nodes besides.

        Args:
            entry: the job.
            count: on how many.
            wanted: where its Map puts it.
            avoid: nodes that it may not use.

        Returns:
            Whether it starts: one that may not use every node, or not all idle ones, may not.
        """
        chosen = start_nodes(entry, self.machine, self.idle & ~avoid, count, wanted)
        if not chosen:
            return False
        self.idle &= ~chosen
        self.starts[entry.job] = (entry, chosen)
        return True

    def reach(self, job: str) -> int:
        """Return to how many nodes a running or starting job could grow on what is idle."""
        entry, held = self._held(job)
        if not has_constraints(entry):
            return entry.max_nodes
        return held.bit_count() + self._more(job, entry.max_nodes - held.bit_count()).bit_count()

    def _held(self, job: str) -> tuple[MapEntry, int]:
        """Return the entry of a job that runs or would start, and its nodes."""
        return self.starts.get(job) or (self.machine.running[job].entry, self.nodes[job])

    def _more(self, job: str, count: int) -> int:
        """Return idle nodes that a job may take, up to ``count``."""
        entry, held = self._held(job)
        return more_nodes(entry, self.machine, held, self.idle, count) if count > 0 else 0

    def saved(self) -> tuple[int, dict[str, int], dict[str, int]]:
        """Return what ``restore`` brings back: who holds which nodes."""
        return self.idle, dict(self.nodes), dict(self.count)

    def restore(self, saved: tuple[int, dict[str, int], dict[str, int]]) -> None:
        """Let running jobs hold what they held when this was saved."""
        self.idle, self.nodes, self.count = saved

    def committed(self, *, at_minimum: bool = False) -> MachineState:
        """Return the machine as it is when the draft comes true."""
        running = dict(self.machine.running)
        for name, job in self.machine.running.items():
            marks = (self.holds_for.get(name, ""), self.grown_for.get(name, ""))
            after = job if self.nodes[name] == job.nodes else self._moved(job, at_minimum=at_minimum)
            if marks != (after.holds_for, after.grown_for):
                after = msgspec.structs.replace(after, holds_for=marks[0], grown_for=marks[1])
            running[name] = after
        for name, (entry, nodes) in self.starts.items():
            running[name] = started(entry, nodes, self.now_s, at_minimum=at_minimum)
        return msgspec.structs.replace(self.machine, running=running, idle=self.idle)

    def _moved(self, job: RunRecord, *, at_minimum: bool) -> RunRecord:
        """Return a job on its new nodes; one still accounted at its minimum stays so."""
        nodes = self.nodes[job.entry.job]
        is_fresh = at_minimum and job.pace == job.entry.min_nodes != job.count
        return job.on(nodes, self.now_s, pace=job.pace if is_fresh else None)


def waiting_first(jobs: Iterable[RunRecord]) -> list[RunRecord]:
    """Return jobs by rising priority: who gives first."""
    return sorted(jobs, key=lambda job: job.entry.priority)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """When a forwarded job would start, on how many nodes."""

    entry: MapEntry
    start_s: float
    end_s: float
    count: int


def profiles_of(draft: TentativeState) -> dict[str, CountProfile]:
    """Return the free nodes of every partition over time, as running jobs leave them."""
    ends: dict[str, list[tuple[float, int]]] = {name: [] for name in draft.machine.partitions}
    for partition, end, nodes in _releases(draft):
        ends[partition].append((end, nodes.bit_count()))
    return {
        name: CountProfile.of_running(draft.now_s, draft.idle_in(name).bit_count(), sorted(ends[name]))
        for name in draft.machine.partitions
    }


def _releases(draft: TentativeState) -> Iterator[tuple[str, float, int]]:
    """Yield when which nodes of a partition should be free: of jobs that run or would start."""
    for name, job in draft.machine.running.items():
        yield draft.partition_of[name], draft.end_s(job), draft.nodes[name]
    for entry, nodes in draft.starts.values():
        end = draft.now_s + run_time_s(entry, nodes.bit_count())
        yield entry.partition, round(end, DIGITS), nodes


def plan(draft: TentativeState, entries: Sequence[MapEntry], wanted: dict[str, int]) -> list[Planned]:
    """Start in the draft what can start now, and return the reservations of the others.

    Args:
        draft: takes the starts.
        entries: in the order of the Map; those that would start already are left out.
        wanted: nodes that a mapped job is mapped to, by job.
    """
    profiles = profiles_of(draft)
    _reserve_suspended(draft, profiles)
    reserved: list[Planned] = []
    kept: list[_Kept] = []
    # Reservations only take nodes away: a job like one before it cannot start before that one.
    tried: dict[tuple[str, int, float], float] = {}
    for entry in entries:
        profile = profiles.get(entry.partition)
        if entry.job in draft.starts or profile is None:
            continue
        count = _start_now(draft, profile, entry, wanted.get(entry.job, 0), kept)
        if count:
            profile.add(draft.now_s, draft.now_s + run_time_s(entry, count), -count)
        elif has_constraints(entry):
            reserved.append(_reserve_where_it_may(draft, profile, entry, kept))
        else:
            reserved.append(_reserve(profile, entry, tried))
    return reserved


#: When a job that may not use every node would start, and the nodes that it waits for.
_Kept = tuple[float, int]


def _start_now(
    draft: TentativeState, profile: CountProfile, entry: MapEntry, wanted: int, kept: Sequence[_Kept]
) -> int:
    """Start a job in the draft where that delays none before it; return its nodes' number, or 0.

    A mapped job takes what it is mapped to; else the most of its negotiated range. One that may not
    use every node takes fewer of its range where there are not that many that it may use.
    """
    low, high = entry.node_count.min, entry.node_count.max
    if entry.node_cnt:
        low, high = min(low, entry.node_cnt) if has_constraints(entry) else entry.node_cnt, entry.node_cnt
    for count in range(min(high, profile.free[0]), low - 1, -1):
        seconds = run_time_s(entry, count)
        if not profile.holds(count, seconds):
            continue
        avoid = union_of(nodes for start_s, nodes in kept if start_s < draft.now_s + seconds)
        if draft.start(entry, count, wanted, avoid):
            return count
    return 0


def _reserve(profile: CountProfile, entry: MapEntry, tried: dict[tuple[str, int, float], float]) -> Planned:
    """Reserve the first time at which a job's least negotiated count is free."""
    count = entry.node_count.min
    seconds = run_time_s(entry, count)
    like = (entry.partition, count, seconds)
    start = profile.earliest(count, seconds, after=tried.get(like, -inf))
    tried[like] = start
    return _reserved(profile, entry, start, count)


def _reserve_where_it_may(
    draft: TentativeState, profile: CountProfile, entry: MapEntry, kept: list[_Kept]
) -> Planned:
    """Reserve the first time at which enough nodes are free that the job may use, and keep these.

    Which nodes are below few switches only its Map can say: any that it may use are kept then.
    """
    anywhere = msgspec.structs.replace(entry, max_switches=None)
    ends = sorted((end, nodes) for _, end, nodes in _releases(draft))
    taken = union_of(nodes for _, nodes in kept)
    # So many as negotiated may never be together: the range opens for jobs with a reservation.
    for count in range(entry.node_count.min, entry.min_nodes - 1, -1):
        free = draft.idle
        for end, nodes in [(draft.now_s, 0), *ends]:
            free |= nodes
            found = start_nodes(anywhere, draft.machine, free & ~taken, count)
            if found:
                kept.append((end, found))
                start = profile.earliest(count, run_time_s(entry, count), after=end)
                return _reserved(profile, entry, start, count)
    return Planned(entry=entry, start_s=inf, end_s=inf, count=entry.node_count.min)


def _reserved(profile: CountProfile, entry: MapEntry, start: float, count: int) -> Planned:
    """Cut a reservation out of the profile."""
    end = round(start + run_time_s(entry, count), DIGITS) if start < inf else start
    profile.add(start, end, -count)
    return Planned(entry=entry, start_s=start, end_s=end, count=count)


def _reserve_suspended(draft: TentativeState, profiles: dict[str, CountProfile]) -> None:
    """Let suspended jobs come first: what they wait for is nobody else's."""
    for job in draft.machine.suspended.values():
        profile = profiles[job.entry.partition]
        count = resume_count(job.entry, job.count)
        seconds = max(job.planned_end_s(count, job.since_s) - job.since_s, 0.0)
        start = profile.earliest(count, seconds)
        profile.add(start, start + seconds, -count)


def resume_count(entry: MapEntry, count: int) -> int:
    """Return the fewest nodes on which a suspended job goes on (malleable: its minimum)."""
    return entry.min_nodes if entry.type == "malleable" else count


#: Several jobs may end at one time: all of them block the waiting job, or the thesis's single one.
Dependencies = Literal["all", "one"]


def update_dependencies(draft: TentativeState, reserved: Sequence[Planned], mode: Dependencies) -> None:
    """Let running malleable jobs know which waiting job depends on their end.

    A reserved job depends on those that are expected to end when it would start; the first in the
    Map's order has the claim. A job that starts frees the ones that were kept or expanded for it.
    """
    draft.holds_for = {}
    for job in [job for job, waiting in draft.grown_for.items() if waiting in draft.starts]:
        del draft.grown_for[job]
    ends = _ends(draft)
    for planned in reserved:
        holders = ends.get((planned.entry.partition, planned.start_s), [])
        for job in holders if mode == "all" else holders[:1]:
            draft.holds_for.setdefault(job, planned.entry.job)


def _ends(draft: TentativeState) -> dict[tuple[str, float], list[str]]:
    """Return the malleable jobs by partition and expected end, the largest first."""
    ends: dict[tuple[str, float], list[str]] = {}
    for partition in draft.machine.partitions:
        for job in draft.elastic(partition):
            ends.setdefault((partition, draft.end_s(job)), []).append(job.entry.job)
    for jobs in ends.values():
        jobs.sort(key=lambda job: -draft.count[job])
    return ends


def holders_of(draft: TentativeState, waiting: str) -> list[str]:
    """Return the running jobs whose end a waiting job depends on."""
    return [job for job, claimed in draft.holds_for.items() if claimed == waiting]
