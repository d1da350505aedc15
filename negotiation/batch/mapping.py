"""What a mapper is given and returns, the thesis's mapper, and whether its Map accepts the offer.

A mapper answers queued jobs and an offer with a Map. The thesis's takes queue order, then best fit
by shrinking mapped jobs (Nagendra, algorithms 1-3; 5.2.1 has the decision logic). Algorithm 1 as
printed appends a mapped job twice and never resets ``mapped``; here a job has one record.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import msgspec

from ...auction.options import StepOptions
from ...cluster.checks import at_least
from ...cluster.errors import OptionError
from ...cluster.jobs import JobKind
from ...cluster.nodes import Switch
from ...cluster.option_table import StrategyName
from ..job_records import JobReport, MapEntry, NodeCount
from ..messages import Code
from ..runtime.runtime_machine import highest, lowest, places, union_of
from ..runtime.settings import MAX_ATTEMPTS, check_interval
from ..runtime.share import Steps, step_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The nodes of one runtime scheduler, as its batch scheduler knows them.

    Attributes:
        names: of the nodes; bit ``i`` of a node set is ``names[i]``.
        bits: name -> that bit.
        partitions: name -> its nodes.
    """

    names: tuple[str, ...] = ()
    bits: Mapping[str, int] = field(default_factory=dict, hash=False)
    partitions: Mapping[str, int] = field(default_factory=dict, hash=False)

    @classmethod
    def of(cls, partitions: Mapping[str, Sequence[str]]) -> "Place":
        """Return the place of partitions by name."""
        names = tuple(name for members in partitions.values() for name in members)
        bits = {name: 1 << place for place, name in enumerate(names)}
        masks = {part: sum(bits[name] for name in members) for part, members in partitions.items()}
        return cls(names=names, bits=bits, partitions=masks)

    def mask(self, names: Sequence[str]) -> int:
        """Return a node set given by names; those that are none here are left out."""
        return union_of(self.bits.get(name, 0) for name in names)

    def names_of(self, nodes: int) -> tuple[str, ...]:
        """Return a node set by name."""
        return tuple(self.names[place] for place in places(nodes))


class Dispatched(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job that has started: where, what it asked for, and its last report."""

    peer: str
    entry: MapEntry
    report: JobReport


@dataclass(slots=True)
class Slot:
    """A job on its way into the Map; ``nodes`` is empty while it is not mapped.

    Attributes:
        entry: the job.
        range: the counts that the negotiation stands at.
        nodes: what it is mapped to.
        start_s: the future start that the offer promises, None where it promises none.
    """

    entry: MapEntry
    range: NodeCount
    nodes: int = 0
    start_s: float | None = None

    @property
    def count(self) -> int:
        """Nodes it is mapped to."""
        return self.nodes.bit_count()

    def to_entry(self, place: Place) -> MapEntry:
        """Return the job as the Map holds it."""
        return msgspec.structs.replace(
            self.entry,
            node_cnt=self.count,
            nodes=place.names_of(self.nodes),
            node_count=self.range,
            start_s=self.start_s,
        )


#: Bids of one job: some for each count.
_BIDS = 24
#: Steps of the search, or branch-and-bound nodes, of a Map where neither work nor time is given.
WORK_LIMIT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """How the auction's engine decides on each Map (mapper "auction"), as in every command.

    Attributes:
        strategy: ``greedy``, ``anytime`` or ``exact``.
        work_limit: steps of the search, or branch-and-bound nodes of an exact solve; None:
            WORK_LIMIT where no time is given either.
        time_limit_s: instead of work, seconds of wall time: then one run may differ from another.
    """

    strategy: StrategyName = "greedy"
    work_limit: int | None = None
    time_limit_s: float | None = None

    def step_options(self, queued: int) -> StepOptions:
        """Return the options of one award over that many queued jobs.

        Raises:
            OptionError: a value cannot be used, or a limit would be ignored.
        """
        if self.work_limit is not None and self.time_limit_s is not None:
            raise OptionError("work_limit: it counts instead of time_limit, which would be ignored")
        has_no_limit = self.work_limit is None and self.time_limit_s is None
        return StepOptions(
            strategy=self.strategy,
            work_limit=WORK_LIMIT if has_no_limit and self.strategy != "greedy" else self.work_limit,
            time_limit_s=self.time_limit_s,
            objective="priority_cores",
            window=max(1, queued),
            max_bids_per_job=_BIDS,
            on_timeout=None if self.strategy == "greedy" else "incumbent",
            reserve=1,
        )


#: Names of DECISIONS.
DecisionName = Literal["paper", "objective"]


#: Names of MAPPERS.
MapperName = Literal["greedy", "auction"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings:
    """Choices of the batch scheduler, as its options describe them (BatchOptions).

    Attributes:
        depth: the reservation depth; with none, an empty Map would say that nothing waits.
        max_attempts, interval_s: proposed to the runtime scheduler.
        ends_when_done: end the negotiation once every job has ended and none is to come.
        engine: mapper "auction": how its engine decides on each Map.
        switches: the nodes' tree: mapper "auction" keeps jobs below few; None: a row of nodes.
    """

    mapper: MapperName = "greedy"
    decision: DecisionName = "paper"
    depth: int = 100
    third_of: Literal["forwarded", "queue"] = "forwarded"
    max_attempts: int = MAX_ATTEMPTS
    interval_s: float = 60.0
    steps: Steps = "ceiling"
    atomic: bool = False
    ends_when_done: bool = False
    patience_s: float = 5400.0
    engine: Engine = field(default_factory=Engine)
    switches: tuple[Switch, ...] | None = None

    def __post_init__(self) -> None:
        at_least(self.depth, 1, "depth")
        if not 0 <= self.patience_s < float("inf"):
            raise OptionError(f"patience {self.patience_s:g} is not at least 0 s")
        at_least(self.max_attempts, 1, "max_attempts")
        check_interval(self.interval_s)
        self.engine.step_options(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapRequest:
    """What a mapper answers: queued jobs in queue order with their ranges, and an offer.

    Attributes:
        queue: jobs, highest priority first, with the range that each stands at.
        settings: the batch scheduler's.
        came_s: when each job came.
        place: the nodes.
        idle: those that nobody holds.
        promised: nodes of reservations that start now, by job.
        later: starts of the other reservations, by job.
        now_s: the runtime scheduler's clock.
        attempt: where the transaction stands.
        running: jobs that run there, with their last reports: expected ends and sizes.
    """

    queue: Sequence[tuple[MapEntry, NodeCount]]
    settings: BatchSettings
    came_s: Mapping[str, float] = field(default_factory=dict)
    place: Place
    idle: int
    promised: Mapping[str, int]
    later: Mapping[str, float]
    now_s: float
    attempt: int
    running: Mapping[str, Dispatched] = field(default_factory=dict)

    def idle_in(self, partition: str) -> int:
        """Return the idle nodes of a partition."""
        return self.idle & self.place.partitions.get(partition, 0)

    def elastic(self, partition: str) -> int:
        """Return the nodes that running jobs of a partition could give by shrinking."""
        jobs = [one for one in self.running.values() if one.entry.type is JobKind.MALLEABLE]
        spare = [
            one.report.node_count - one.entry.min_nodes for one in jobs if one.entry.partition == partition
        ]
        return sum(max(0, count) for count in spare)


#: Maps queued jobs to an offer: returns mapped jobs and at most ``depth`` others, in the order in
#: which they are served.
Mapper = Callable[[MapRequest], list[Slot]]


def take(free: dict[str, int], partition: str, count: int) -> int:
    """Take the first ``count`` free nodes of a partition, and return them."""
    nodes = lowest(free.get(partition, 0), count)
    free[partition] = free.get(partition, 0) & ~nodes
    return nodes


class LastAttempt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a transaction remembers of its attempts.

    Attributes:
        code: this party's last decision, None at the first attempt.
        objective: the sum of priorities of the jobs mapped last.
        mapped: how many there were.
        relaxes: whether ranges still open: not once more jobs were mapped after an accept.
    """

    code: Code | None = None
    objective: int = 0
    mapped: int = 0
    relaxes: bool = True

    def after(self, code: Code, slots: Sequence[Slot]) -> "LastAttempt":
        """Return what is remembered after an attempt."""
        mapped = sum(1 for slot in slots if slot.nodes)
        stops = self.code is Code.ACCEPT and mapped > self.mapped
        return LastAttempt(
            code=code, objective=objective(slots), mapped=mapped, relaxes=self.relaxes and not stops
        )


def objective(slots: Sequence[Slot]) -> int:
    """Return the sum of priorities of the mapped jobs."""
    return sum(slot.entry.priority for slot in slots if slot.nodes)


def paper_decision(request: MapRequest, slots: Sequence[Slot], memory: LastAttempt) -> Code:
    """Return the thesis's decision.

    (a) Reject while the front job is not mapped, or fewer than a third of the jobs are; waived past
    half the attempts. (b) After an accept: accept again if the objective did not fall. (c) After a
    reject: reject if it fell, else accept unless (a).
    """
    settings, now = request.settings, objective(slots)
    if memory.code is Code.ACCEPT:
        return Code.ACCEPT if now >= memory.objective else Code.REJECT
    if memory.code is Code.REJECT and now < memory.objective:
        return Code.REJECT
    if 2 * request.attempt > settings.max_attempts or not request.queue:
        return Code.ACCEPT
    mapped = {slot.entry.job for slot in slots if slot.nodes}
    total = len(slots) if settings.third_of == "forwarded" else len(request.queue)
    asks_for_more = request.queue[0][0].job not in mapped or 3 * len(mapped) < total
    return Code.REJECT if asks_for_more else Code.ACCEPT


def objective_decision(
    request: MapRequest,
    slots: Sequence[Slot],
    memory: LastAttempt,  # noqa: ARG001 - a decision's signature
) -> Code:
    """Return accept once no further attempt could map more.

    Further attempts open ranges and shrink running jobs: they help while an unmapped job is above
    its least count, or shrinking could still make room for one; else talking on gains nothing.
    """
    for slot in (one for one in slots if not one.nodes):
        partition = slot.entry.partition
        mapped = [other for other in slots if other.nodes and other.entry.partition == partition]
        free = request.idle_in(partition) & ~union_of(other.nodes for other in mapped)
        spare = sum(other.count - other.entry.min_nodes for other in mapped)
        reach = free.bit_count() + spare + request.elastic(partition)
        if slot.entry.min_nodes <= reach:
            return Code.REJECT
    return Code.ACCEPT


#: What ``--decision`` names.
DECISIONS: dict[DecisionName, Callable[[MapRequest, Sequence[Slot], LastAttempt], Code]] = {
    "paper": paper_decision,
    "objective": objective_decision,
}


#: The step by which a mapped job shrinks, from the nodes that it has above its least.
Step = Callable[[int], int]


def greedy_map(request: MapRequest) -> list[Slot]:
    """Return the Map of algorithms 1-3."""
    free = {name: request.idle_in(name) for name in request.place.partitions}
    slots, skipped = _in_queue_order(request, free)
    step = partial(step_size, attempts=request.settings.max_attempts, steps=request.settings.steps)
    if not _best_fit(slots, free, step):
        return slots
    # Jobs beyond the depth use nodes that best fit has left, in their places of the queue.
    slots += [slot for slot in skipped if _map(slot, free)]
    rank = {entry.job: place for place, (entry, _) in enumerate(request.queue)}
    return sorted(slots, key=lambda slot: rank[slot.entry.job])


def _in_queue_order(request: MapRequest, free: dict[str, int]) -> tuple[list[Slot], list[Slot]]:
    """Algorithm 1: map what the offer promises and what fits; forward others up to the depth."""
    slots: list[Slot] = []
    skipped: list[Slot] = []
    unmapped = 0
    for entry, span in request.queue:
        slot = Slot(entry, span, start_s=request.later.get(entry.job))
        promised = request.promised.get(entry.job, 0)
        if promised:
            slot.nodes, slot.start_s = promised, None
        else:
            _map(slot, free)
        if slot.nodes:
            slots.append(slot)
        elif unmapped < request.settings.depth:
            unmapped += 1
            slots.append(slot)
        else:
            skipped.append(slot)
    return slots, skipped


def _map(slot: Slot, free: dict[str, int]) -> bool:
    """Map a job to free nodes, as many of its range as there are."""
    partition = slot.entry.partition
    there = free.get(partition, 0).bit_count()
    if there < slot.range.min:
        return False
    slot.nodes = take(free, partition, min(slot.range.max, there))
    slot.start_s = None
    return True


def _best_fit(slots: list[Slot], free: dict[str, int], step: Step) -> bool:
    """Algorithm 2: try to map each reserved job by shrinking mapped ones; say whether any was."""
    room: dict[str, int] = {}
    for slot in slots:
        if slot.nodes:
            room[slot.entry.partition] = room.get(slot.entry.partition, 0) + _can_give(slot, step)
    any_mapped = False
    for slot in slots:
        partition = slot.entry.partition
        there = free.get(partition, 0).bit_count()
        if slot.nodes or there + room.get(partition, 0) < slot.range.min:
            continue
        room[partition] -= try_schedule(slot, slots, free, step)
        room[partition] += _can_give(slot, step)
        any_mapped = True
    return any_mapped


def _can_give(slot: Slot, step: Step) -> int:
    """Return what a mapped job gives at once: one step, within its range."""
    span = slot.count - slot.range.min
    return min(span, step(span)) if span > 0 else 0


def try_schedule(slot: Slot, slots: list[Slot], free: dict[str, int], step: Step) -> int:
    """Algorithm 3: shrink mapped jobs a step each, lowest priority first, until a job's least fits.

    Returns:
        How much less the mapped jobs can give from now on.
    """
    partition = slot.entry.partition
    lost = 0
    for other in reversed(slots):
        missing = slot.range.min - free.get(partition, 0).bit_count()
        if missing <= 0:
            break
        if not other.nodes or other.entry.partition != partition:
            continue
        before = _can_give(other, step)
        given = highest(other.nodes, before)
        free[partition] |= given
        other.nodes &= ~given
        lost += before - _can_give(other, step)
    slot.nodes = take(free, partition, slot.range.min)
    slot.start_s = None
    return lost
