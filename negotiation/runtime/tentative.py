"""A transformation being worked out: counts that jobs would have, before anybody commits to them.

A draft is local to one transformation. It starts from a machine, which stays what it is: the
thesis's INIT (restore the state before the next attempt) is to start another draft.
"""

from collections.abc import Iterable

import msgspec

from ..job_records import MapEntry
from .placement_constraints import has_constraints, more_nodes, start_nodes
from .runtime_machine import MachineState, RunRecord, highest, started


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
        """Return the running jobs of a partition whose size may change, in order of their starts."""
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
        if job in self.starts:
            entry, nodes = self.starts[job]
            taken = self._more(job, count - nodes.bit_count())
            self.idle &= ~taken
            self.starts[job] = (entry, nodes | taken)
            return
        held, change = self.nodes[job], count - self.count[job]
        if change < 0:
            given = highest(held, -change)
            self.nodes[job] = held & ~given
            self.idle |= given
        else:
            taken = self._more(job, change)
            self.nodes[job] = held | taken
            self.idle &= ~taken
        self.count[job] = self.nodes[job].bit_count()

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
        """Return to how many nodes a running job, or one that would start, could grow on what is idle."""
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
