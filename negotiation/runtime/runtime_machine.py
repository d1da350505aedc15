"""The nodes, who holds them, and how work goes on: the runtime scheduler's state (Nagendra, 6.2).

Everything is a value: an operation returns the machine afterwards. Node sets are integers, bit
``i`` for node ``i``: unions and counts are cheap at a thousand nodes; equal states compare equal.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache, reduce
from operator import or_

import msgspec

from ...cluster.errors import InputError, errors_below
from ...cluster.jobs import JobKind
from ..job_records import DIGITS, JobReport, JobState, MapEntry
from ..speedup import relative_speed


class RunRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job that has started (``run_job_record``).

    Attributes:
        entry: what was asked for; its speedup model and bounds.
        nodes: which nodes it holds, 0 while suspended.
        count: how many.
        start_s: its first start.
        since_s: when ``left_s`` was true.
        left_s: work left, as seconds at ``min_nodes``; ``planned_left_s`` by the estimate.
        pace: the node count that its progress is accounted at.
        held_s, node_s: seconds and node-seconds that it held nodes, up to ``since_s``.
        holds_for: the waiting job that depends on its end, or empty.
        grown_for: the waiting job it was expanded for, or empty.
        is_urgent: it came as an urgent job: nobody takes nodes from it.
        harvests: how often it shrank.
        paces: of a job with a name, the node counts that its progress was accounted at.
    """

    entry: MapEntry
    nodes: int
    count: int
    start_s: float
    since_s: float
    left_s: float
    planned_left_s: float
    pace: int
    held_s: float = 0.0
    node_s: float = 0.0
    holds_for: str = ""
    grown_for: str = ""
    is_urgent: bool = False
    harvests: int = 0
    paces: tuple[int, ...] = ()

    @property
    def is_malleable(self) -> bool:
        """Whether it may grow and shrink while it runs."""
        return self.entry.type is JobKind.MALLEABLE and not self.is_urgent

    @property
    def rate(self) -> float:
        """Work done in a second, as seconds at ``min_nodes``."""
        model = self.entry.true_speedup or self.entry.speedup
        return relative_speed(model, self.pace, self.entry.min_nodes)

    @property
    def planned_rate(self) -> float:
        """Work done in a second by the model that is expected."""
        return relative_speed(self.entry.speedup, self.pace, self.entry.min_nodes)

    @property
    def end_s(self) -> float:
        """When it will end as it runs now."""
        return round(self.since_s + self.left_s / self.rate, DIGITS)

    def planned_end_s(self, count: int, now_s: float) -> float:
        """Return when it is expected to end on that many nodes from now on; never before now."""
        left = self.planned_left_s - (now_s - self.since_s) * self.planned_rate
        rate = relative_speed(self.entry.speedup, count, self.entry.min_nodes)
        return round(now_s + max(left, 0.0) / rate, DIGITS)

    def least_count(self, now_s: float) -> int:
        """Return to how many nodes it may shrink.

        Its least; with a deadline the fewest that keep it. One that would miss it now keeps what it
        has, as long as more nodes could help.
        """
        entry = self.entry
        if entry.deadline_s is None:
            return entry.min_nodes
        for count in range(entry.min_nodes, self.count + 1):
            if self.planned_end_s(count, now_s) <= entry.deadline_s:
                return count
        could_help = self.planned_end_s(entry.max_nodes, now_s) <= entry.deadline_s
        return self.count if could_help else entry.min_nodes

    def rescue_count(self, now_s: float) -> int:
        """Return to how many nodes it must grow for its deadline; what it has where none helps."""
        entry = self.entry
        if entry.deadline_s is None or self.planned_end_s(self.count, now_s) <= entry.deadline_s:
            return self.count
        counts = range(self.count + 1, entry.max_nodes + 1)
        return next((n for n in counts if self.planned_end_s(n, now_s) <= entry.deadline_s), self.count)

    def brought_to(self, now_s: float) -> "RunRecord":
        """Return the same job with its progress accounted up to now."""
        passed = now_s - self.since_s
        if passed <= 0:
            return self
        done, planned = passed * self.rate, passed * self.planned_rate
        is_new = bool(self.entry.name) and self.pace not in self.paces
        return msgspec.structs.replace(
            self,
            since_s=now_s,
            left_s=max(0.0, self.left_s - done),
            planned_left_s=max(0.0, self.planned_left_s - planned),
            held_s=self.held_s + passed,
            node_s=self.node_s + passed * self.count,
            paces=(*self.paces, self.pace) if is_new else self.paces,
        )

    def on(self, nodes: int, now_s: float, *, pace: int | None = None) -> "RunRecord":
        """Return the job on other nodes from now on."""
        count = nodes.bit_count()
        job = self.brought_to(now_s)
        return msgspec.structs.replace(
            job,
            nodes=nodes,
            count=count,
            pace=pace or count or job.pace,
            harvests=job.harvests + (0 < count < job.count),
        )


class MachineState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nodes and the jobs on them at one moment.

    Attributes:
        names: of the nodes; of each part its node's, where nodes are given out in parts.
        partitions: name -> its nodes; disjoint.
        now_s: the clock.
        idle: nodes that nobody holds.
        running, suspended: by job, in order of their starts.
        done: reports of the jobs that ended.
        parts: of each node; all sets and counts are of parts (runtime/placement_constraints.py).
    """

    names: tuple[str, ...]
    partitions: dict[str, int]
    parts: int = 1
    now_s: float = 0.0
    idle: int = 0
    running: dict[str, RunRecord] = {}
    suspended: dict[str, RunRecord] = {}
    done: dict[str, JobReport] = {}

    def knows(self, job: str) -> bool:
        """Whether a job has started here, so that it must not start again."""
        return job in self.running or job in self.suspended or job in self.done

    def names_of(self, nodes: int) -> tuple[str, ...]:
        """Return a node set by name, in the machine's order."""
        return tuple(dict.fromkeys(self.names[place] for place in places(nodes)))

    def next_end_s(self) -> float | None:
        """Return when the next job ends, None when nothing runs."""
        return min((job.end_s for job in self.running.values()), default=None)


def empty_machine(
    names: Iterable[str], partitions: Mapping[str, Iterable[str]] | None = None, *, parts: int = 1
) -> MachineState:
    """Return idle nodes, in so many parts each; without ``partitions`` all are in one, unnamed.

    Raises:
        InputError: a name is listed twice, a partition names a node that is none, or two share one.
    """
    nodes = tuple(names)
    if len(set(nodes)) < len(nodes) or not nodes:
        raise InputError("node names are missing or listed twice", path="nodes")
    nodes = tuple(name for name in nodes for _ in range(parts))
    place = bits_of(nodes)
    every = (1 << len(nodes)) - 1
    masks = {"": every} if not partitions else {}
    seen = 0
    for name, members in (partitions or {}).items():
        with errors_below(f"partitions.{name}"):
            masks[name] = _mask(members, place)
            if seen & masks[name]:
                raise InputError("shares nodes with another partition", path="")
        seen |= masks[name]
    return MachineState(names=nodes, partitions=masks, idle=every, parts=parts)


@lru_cache(maxsize=64)
def bits_of(names: tuple[str, ...]) -> dict[str, int]:
    """Return each node's bits by name: one, or those of its parts."""
    bits: dict[str, int] = {}
    for place, name in enumerate(names):
        bits[name] = bits.get(name, 0) | 1 << place
    return bits


def _mask(members: Iterable[str], place: Mapping[str, int]) -> int:
    mask = 0
    for member in members:
        if member not in place:
            raise InputError(f"{member!r} is not a node", path="")
        mask |= place[member]
    return mask


def places(nodes: int) -> list[int]:
    """Return the node numbers of a set, rising."""
    found = []
    while nodes:
        lowest = nodes & -nodes
        found.append(lowest.bit_length() - 1)
        nodes ^= lowest
    return found


def union_of(sets: Iterable[int]) -> int:
    """Return the union of node sets."""
    return reduce(or_, sets, 0)


def lowest(nodes: int, count: int) -> int:
    """Return the ``count`` first nodes of a set."""
    if nodes.bit_count() <= count:
        return nodes
    taken = 0
    for _ in range(count):
        bit = nodes & -nodes
        taken |= bit
        nodes ^= bit
    return taken


def highest(nodes: int, count: int) -> int:
    """Return the ``count`` last nodes of a set."""
    return nodes & ~lowest(nodes, nodes.bit_count() - count)


def nearest(nodes: int, held: int, count: int) -> int:
    """Return ``count`` nodes of a set next to those held: neighbours first, on either side."""
    if nodes.bit_count() <= count:
        return nodes
    taken = 0
    first, last = (held & -held).bit_length() - 1, held.bit_length() - 1
    for _ in range(count):
        inside = nodes & ((1 << max(last + 1, 0)) - 1) & ~((1 << max(first, 0)) - 1)
        below, above = nodes & ((1 << max(first, 0)) - 1), nodes >> (last + 1)
        up = (above & -above).bit_length() + last if above else None
        down = below.bit_length() - 1 if below else None
        if inside:
            place = (inside & -inside).bit_length() - 1
        elif down is None or (up is not None and up - last <= first - down):
            place = up if up is not None else 0
        else:
            place = down
        first, last = min(first, place) if first >= 0 else place, max(last, place)
        taken |= 1 << place
        nodes &= ~(1 << place)
    return taken


def started(entry: MapEntry, nodes: int, now_s: float, *, at_minimum: bool = False) -> RunRecord:
    """Return a started job; ``at_minimum``: counted at ``min_nodes`` to its first periodic step."""
    count = nodes.bit_count()
    planned = entry.time_at_min_s
    true = planned if entry.true_time_at_min_s is None else entry.true_time_at_min_s
    return RunRecord(
        entry=entry,
        nodes=nodes,
        count=count,
        start_s=now_s,
        since_s=now_s,
        left_s=true,
        planned_left_s=planned,
        pace=entry.min_nodes if at_minimum else count,
    )


def advanced(machine: MachineState, now_s: float) -> tuple[MachineState, tuple[str, ...]]:
    """Return the machine at a later time, and the jobs ended until then; their nodes are idle."""
    ended = [(job.end_s, name) for name, job in machine.running.items() if job.end_s <= now_s]
    if not ended:
        return msgspec.structs.replace(machine, now_s=now_s), ()
    running, done, idle = dict(machine.running), dict(machine.done), machine.idle
    for end, name in sorted(ended):
        job = running.pop(name)
        idle |= job.nodes
        done[name] = report(machine, job, JobState.DONE, end)
    after = msgspec.structs.replace(machine, now_s=now_s, running=running, done=done, idle=idle)
    return after, tuple(name for _, name in sorted(ended))


def report(machine: MachineState, job: RunRecord, state: JobState, now_s: float) -> JobReport:
    """Return what is said about a job now; its end is the expected one while it runs."""
    at = job.brought_to(now_s)
    return JobReport(
        job=job.entry.job,
        state=state,
        node_count=-(-job.count // max(job.entry.parts, 1)),
        nodes=machine.names_of(job.nodes),
        start_s=job.start_s,
        run_time_s=at.held_s,
        end_s=now_s if state is JobState.DONE else at.planned_end_s(max(at.count, 1), now_s),
        node_s=at.node_s if machine.parts == 1 else at.node_s / machine.parts,
        measured=_measured(at) if state is JobState.DONE else (),
    )


def _measured(job: RunRecord) -> tuple[tuple[int, float], ...]:
    """Return the seconds of the whole job on each count that it ran on: its work over its speed."""
    entry = job.entry
    true_s = entry.time_at_min_s if entry.true_time_at_min_s is None else entry.true_time_at_min_s
    model = entry.true_speedup or entry.speedup
    each = max(entry.parts, 1)
    return tuple(
        (count // each, round(true_s / relative_speed(model, count, entry.min_nodes), DIGITS))
        for count in sorted(job.paces)
        if count % each == 0
    )


def reports(machine: MachineState, jobs: Iterable[str] | None = None) -> tuple[JobReport, ...]:
    """Return the reports of some jobs, or of all that ever started; equal ends in order of id."""
    chosen = jobs if jobs is not None else (*machine.done, *machine.suspended, *machine.running)
    found = []
    for name in chosen:
        state = JobState.SUSPENDED if name in machine.suspended else JobState.RUNNING
        job = machine.suspended.get(name) or machine.running.get(name)
        found.append(machine.done[name] if job is None else report(machine, job, state, machine.now_s))
    return tuple(found)
