"""What the messages say of jobs: map entries, reservations, reports (Nagendra, 5.1 and 6.2).

And how long a job takes on how many nodes: by its model, as runs of its name have shown, for its
deadline. Models are learned from ended jobs, for those of the same name (Nagendra, section 4.1.1):
such a job's report says how long the whole job takes on each node count that it ran on, as the
runtime scheduler measured it. The mean over all runs of a name on a count is what is known of it. A
deadline (section 4.3) that no count can keep binds nothing: the job runs as others do.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from math import isfinite
from typing import TypeAlias

import msgspec

from ..cluster.checks import LARGEST_COUNT
from ..cluster.errors import InputError
from ..cluster.jobs import JobKind
from .message_rules import Amount, Count, Names, Positive, RunTime
from .speedup import curve, relative_speed


class JobState(StrEnum):
    """Where a job stands; it is in exactly one of these at any time."""

    QUEUED = "queued"
    RUNNING = "running"
    SUSPENDED = "suspended"
    DONE = "done"


class NodeCount(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """The range of node counts that a negotiation stands at (``qos_rsrc_t``)."""

    min: int
    max: int


class RecordBase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A record as JSON: members with their default are left out."""


class MapEntry(RecordBase, frozen=True, kw_only=True):
    """One job of a Map (``forward_job_record``).

    Attributes:
        job: its id.
        type: what may change about its size.
        node_cnt: nodes it is mapped to; 0: forwarded without a mapping.
        nodes: the nodes, by name; they bind where they are idle.
        node_count: the range that the negotiation stands at, within min_nodes and max_nodes.
        priority: higher goes first.
        time_at_min_s: run time at ``min_nodes`` by the estimate, in seconds.
        true_time_at_min_s: the run time that a simulation plays; None: as estimated.
        speedup: the model's text (negotiation/speedup.py).
        true_speedup: the model that a simulation plays; None: as expected.
        name: jobs of one name are runs of the same; empty: it is like no other.
        partition: where it may run; empty: anywhere.
        start_s: the start that it was promised last, None without one.
        deadline_s: when it should have ended.
        can_suspend: whether it may be suspended for an urgent job.
        eligible: sets of node names, one of which must hold all of its nodes; empty: any nodes.
        contiguous: it starts on nodes that stand side by side, and takes only such when it grows.
        max_switches: it starts below at most so many leaf switches, by its Map, and does not grow.
        node_share: how much of each of its nodes it asks for, (of it, the whole): a runtime
            scheduler that gives out parts of nodes lets others have the rest.
        parts: within a runtime scheduler that counts parts of nodes, how many make one of the
            job's; 0: all counts are nodes. No message has it.
    """

    job: str
    type: JobKind
    node_cnt: int
    node_count: NodeCount
    min_nodes: Positive
    max_nodes: int
    priority: int
    time_at_min_s: RunTime
    nodes: tuple[str, ...] = ()
    true_time_at_min_s: RunTime | None = None
    speedup: str = "linear"
    partition: str = ""
    start_s: float | None = None
    deadline_s: float | None = None
    can_suspend: bool = True
    eligible: tuple[tuple[str, ...], ...] = ()
    contiguous: bool = False
    max_switches: int | None = None
    name: str = ""
    true_speedup: str | None = None
    node_share: tuple[int, int] = (1, 1)
    parts: int = 0

    def check_together(self) -> None:
        """Refuse what cannot be: counts that contradict each other, an invalid share or model."""
        least, most, span = self.min_nodes, self.max_nodes, self.node_count
        if not least <= most <= LARGEST_COUNT:
            raise InputError(f"{most} is not from {least} to {LARGEST_COUNT}", path="max_nodes")
        if not least <= span.min <= span.max <= most:
            message = f"[{span.min}, {span.max}] is not a range within [{least}, {most}]"
            raise InputError(message, path="node_count")
        if self.node_cnt and not least <= self.node_cnt <= most:
            raise InputError(f"{self.node_cnt} is not within [{least}, {most}]", path="node_cnt")
        if self.nodes and len(self.nodes) != self.node_cnt:
            raise InputError(f"{len(self.nodes)} nodes are not node_cnt {self.node_cnt}", path="nodes")
        part, whole = self.node_share
        if not 0 < part <= whole <= LARGEST_COUNT:
            raise InputError(f"{part} of {whole} is not a share of a node", path="node_share")
        if self.parts:
            raise InputError("it is not a message's", path="parts")
        if self.priority < 0:
            raise InputError(f"{self.priority} is below 0", path="priority")
        curve(self.speedup)


class OfferReservation(RecordBase, frozen=True, kw_only=True, gc=False):
    """What an offer promises to a job (``job_resv_t``); ``node_count`` 0: it starts later."""

    job: str
    node_count: Count
    start_s: float
    end_s: float
    nodes: tuple[str, ...] = ()

    def check_together(self) -> None:
        """Refuse another number of nodes than it says, and a span of time that is none."""
        if len(self.nodes) != self.node_count:
            message = f"{len(self.nodes)} nodes are not node_count {self.node_count}"
            raise InputError(message, path="nodes")
        if not (isfinite(self.start_s) and self.end_s >= self.start_s):
            raise InputError(f"[{self.start_s:g}, {self.end_s:g}] is not a time span", path="")


class JobReport(RecordBase, frozen=True, kw_only=True, gc=False):
    """One job of a status report (``job_status_t``).

    Attributes:
        job: its id.
        state: where it stands now; ``queued``: it was killed for an urgent job and starts anew.
        node_count: nodes it holds, or held last.
        nodes: by name.
        start_s: its first start.
        run_time_s: time it has held nodes; ``node_s``: how many nodes for how long, together.
        end_s: its end, expected or past.
        lost_node_s: node-seconds of work that its death lost.
        measured: of a job with a name that ended: the node counts that it ran on, and the seconds
            that the whole job takes on each (its performance model).
    """

    job: str
    state: JobState
    node_count: Count
    start_s: Amount
    run_time_s: Amount
    end_s: Amount
    nodes: Names = ()
    node_s: Amount = 0.0
    lost_node_s: Amount = 0.0
    measured: tuple[tuple[int, float], ...] = ()


#: Times are kept to the microsecond, so that ends which are equal on paper are equal here.
DIGITS = 6


def run_time_s(entry: MapEntry, count: int) -> float:
    """Return how long a job is expected to run on that many nodes."""
    rate = relative_speed(entry.speedup, count, entry.min_nodes)
    return round(entry.time_at_min_s / rate, DIGITS)


def needed_count(entry: MapEntry, now_s: float) -> int:
    """Return the fewest nodes on which a job started now ends in time; its least if none do."""
    if entry.deadline_s is None:
        return entry.min_nodes
    counts = range(entry.min_nodes, entry.max_nodes + 1)
    fitting = (count for count in counts if now_s + run_time_s(entry, count) <= entry.deadline_s)
    return next(fitting, entry.min_nodes)


def is_pressing(entry: MapEntry, now_s: float) -> bool:
    """Whether a waiting job can keep its deadline, with less slack than it will run."""
    if entry.deadline_s is None:
        return False
    shortest_s = min(run_time_s(entry, count) for count in range(entry.min_nodes, entry.max_nodes + 1))
    return now_s + shortest_s <= entry.deadline_s < now_s + 2 * shortest_s


#: Of a job's name and a node count: how many runs, and their mean run time in seconds.
Known: TypeAlias = dict[str, dict[int, tuple[int, float]]]
#: A name, a node count, and the seconds that the whole job takes on it.
Measured: TypeAlias = tuple[str, int, float]


def learned(known: Known, measured: Iterable[Measured]) -> Known:
    """Return what is known after some measurements."""
    after = dict(known)
    for name, count, seconds in measured:
        counts = dict(after.get(name, {}))
        runs, mean = counts.get(count, (0, 0.0))
        counts[count] = (runs + 1, mean + (seconds - mean) / (runs + 1))
        after[name] = counts
    return after


def informed(entry: MapEntry, known: Mapping[str, Mapping[int, tuple[int, float]]]) -> MapEntry:
    """Return a job with the run time and the speedup that runs of its name have shown.

    One count known: the user's model converts its run time. Several: their run times are the model,
    a table that the user's continues beyond them; as no model falls with more nodes, a count that
    was slower than fewer nodes counts as they do. The job's true run time stays what it was.
    """
    counts = known.get(entry.name) if entry.name else None
    if not counts:
        return entry
    model = entry.true_speedup or entry.speedup
    true_s = entry.time_at_min_s if entry.true_time_at_min_s is None else entry.true_time_at_min_s
    first = min(counts)
    at_first_s = counts[first][1]
    text = _table(counts, entry, model) if len(counts) > 1 else model
    least_s = at_first_s * relative_speed(text, first, entry.min_nodes)
    return msgspec.structs.replace(
        entry, time_at_min_s=least_s, speedup=text, true_time_at_min_s=true_s, true_speedup=model
    )


def _table(counts: Mapping[int, tuple[int, float]], entry: MapEntry, model: str) -> str:
    """Return a table of speedups, in units of which the first count known has its own number."""
    first, last = min(counts), max(counts)
    points: dict[int, float] = {}
    if entry.min_nodes < first:
        points[entry.min_nodes] = first * relative_speed(model, entry.min_nodes, first)
    best = 0.0
    for count in sorted(counts):
        points[count] = best = max(best, first * counts[first][1] / counts[count][1])
    if entry.max_nodes > last:
        points[entry.max_nodes] = best * relative_speed(model, entry.max_nodes, last)
    return "table:" + ",".join(f"{count}={value!r}" for count, value in points.items())
