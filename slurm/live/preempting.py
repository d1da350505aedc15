"""Jobs that Slurm would start by stopping others or by waking nodes: they are handed over.

The auction stops no job and wakes no node. A job behind the gate that found no place is Slurm's
from then on, if Slurm's own rules would stop running jobs of a lower tier or of a QOS that its own
may stop, or if it would fit with nodes that are powered down. Slurm itself decides which jobs stop,
and how (requeued, cancelled, suspended); what it requeues comes back behind the gate.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ...cluster.errors import InputError
from ...cluster.jobs import Job, RunningJob
from ...cluster.nodes import NodeState
from ...cluster.schedule import Reason, Schedule
from ...cluster.snapshot import Snapshot
from ..answers.answer_text import Paragraph, answered, paragraphs
from ..answers.live import PARTITIONS, Ask, Command
from ..answers.snapshot_of_answers import SlurmText
from ..answers.states import JobPhase
from .live_queue import LiveJob

QOS: Command = ("sacctmgr", "-n", "-P", "show", "qos", "format=name,preempt,preemptmode")
_COLUMNS = 3
_OFF = {"off", "disabled"}
#: States of nodes whose jobs' cores can be another's next.
_WORKING = {NodeState.IDLE, NodeState.MIXED, NodeState.ALLOCATED}
#: A job that waits for room, now or behind others; no other reason goes away when running jobs do.
_FOR_ROOM = {Reason.OUTBID, Reason.NO_FIT, Reason.WINDOW, Reason.BID_CAP, Reason.RESERVATION}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmPreemption:
    """Whom Slurm stops for whom.

    Attributes:
        tiers: of partitions, where a higher one stops a lower one (``preempt/partition_prio``).
        kept: partitions whose jobs nothing stops.
        stopped: QOS that jobs of a QOS may stop (``preempt/qos``).
        by_priority: only jobs of a lower priority are stopped (``PreemptMode=PRIORITY``, 25.05).
    """

    tiers: Mapping[str, int] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()
    stopped: Mapping[str, frozenset[str]] = field(default_factory=dict)
    by_priority: bool = False

    def stops(self, job: Job, other: RunningJob) -> bool:
        """Whether Slurm may stop a running job for a waiting one."""
        if other.partition in self.tiers and other.partition not in self.kept:
            mine = max((self.tiers.get(name, 0) for name in job.partition.split(",")), default=0)
            if mine > self.tiers[other.partition]:
                return True
        # Of several QOS the first is the job's own, the others are its partitions'.
        return other.qos.partition(",")[0] in self.stopped.get(job.qos.partition(",")[0], frozenset())


def read_preemption(settings: Paragraph, partitions: SlurmText | None, ask: Ask) -> SlurmPreemption | None:
    """Return by what rules the site stops running jobs, None where it stops none.

    ``partitions``: the look's, in scontrol's text; None: Slurm is asked for them.

    Raises:
        InputError: they cannot be had.
    """
    kind = settings.text("PreemptType")
    if not kind.startswith("preempt/") or kind == "preempt/none":
        return None
    if kind == "preempt/qos":
        rules = _by_qos(answered(ask(QOS)))
    else:
        rules = _by_tier(answered(ask(PARTITIONS) if partitions is None else partitions.content))
    return replace(rules, by_priority="PRIORITY" in settings.text("PreemptMode").upper().split(","))


def _by_tier(text: str) -> SlurmPreemption:
    entries = list(paragraphs(text, "PartitionName"))
    return SlurmPreemption(
        tiers={entry.pairs["PartitionName"]: entry.count("PriorityTier") or 0 for entry in entries},
        kept=frozenset(
            entry.pairs["PartitionName"] for entry in entries if entry.text("PreemptMode").lower() in _OFF
        ),
    )


def _by_qos(text: str) -> SlurmPreemption:
    rows = [line.split("|") for line in text.splitlines() if line]
    if any(len(row) != _COLUMNS for row in rows):
        raise InputError("not what was asked for", file=" ".join(QOS))
    kept = {name for name, _, mode in rows if mode.lower() in _OFF}
    return SlurmPreemption(
        stopped={name: frozenset(filter(None, names.split(","))) - kept for name, names, _ in rows}
    )


def by_stopping(
    snapshot: Snapshot,
    schedule: Schedule,
    queue: Mapping[str, LiveJob],
    licence: str,
    preemption: SlurmPreemption,
    asleep: Mapping[str, int],
) -> list[LiveJob]:
    """Return the jobs behind the gate that Slurm would make room for, by priority; none share room.

    On the snapshot pinned jobs run. ``asleep``: cores of nodes that Slurm would wake, by name.
    """
    jobs = {job.id: job for job in snapshot.jobs}
    gated = {name for name, job in queue.items() if job.is_waiting and job.needs(licence)}
    waiting = [
        jobs[one.job]
        for one in schedule.pending
        if one.reason in _FOR_ROOM and one.job in jobs and one.job in gated
    ]
    running = [job for job in snapshot.running if job.id in queue and queue[job.id].phase is JobPhase.HOLDING]
    room = _Room(snapshot, schedule, running, asleep)
    # The snapshot's priorities may be lifted by tiers.
    ids = [*(job.id for job in waiting), *(job.id for job in running)]
    first = {name: queue[name].priority or 0 for name in ids}

    def stops(job: Job, other: RunningJob) -> bool:
        is_first = first[job.id] > first[other.id] or not preemption.by_priority
        return is_first and preemption.stops(job, other)

    found = (job for job in sorted(waiting, key=lambda job: -job.priority) if room.takes(job, stops))
    return [queue[job.id] for job in found]


class _Room:
    """Cores by node: what the pass leaves free, what jobs hold that may be stopped, what sleeps."""

    def __init__(
        self,
        snapshot: Snapshot,
        schedule: Schedule,
        running: Iterable[RunningJob],
        asleep: Mapping[str, int],
    ) -> None:
        self._asleep = dict(asleep)
        self._free = {node.name: node.free.cores for node in snapshot.nodes if node.state in _WORKING}
        self._free |= dict.fromkeys(asleep, 0)
        self._features = {node.name: node.features for node in snapshot.nodes}
        self._partitions = {node.name: set(node.partitions) for node in snapshot.nodes}
        for partition in snapshot.partitions:
            for name in partition.nodes:
                self._partitions.setdefault(name, set()).add(partition.name)
        for award in schedule.started:
            for name, use in award.nodes.items():
                if name in self._free:
                    self._free[name] -= use.cores
        self._running = {job.id: job for job in running}

    def takes(self, job: Job, stops: Callable[[Job, RunningJob], bool]) -> bool:
        """Take the room for a job, if stopping others or waking nodes makes it; else take none."""
        own = set(filter(None, job.partition.split(",")))
        places = {
            name: free
            for name, free in self._free.items()
            if not own or own & self._partitions[name]
            if job.request.features <= self._features[name]
        }
        stopped = [other for other in self._running.values() if stops(job, other)]
        held = {name: self._asleep.get(name, 0) for name in places}
        for other in stopped:
            for name, use in other.nodes.items():
                if name in held:
                    held[name] += use.cores
        cores = {name: free + held[name] for name, free in places.items() if free + held[name] > 0}
        enough = sum(cores.values()) >= job.request.fewest_cores and len(cores) >= job.request.fewest_nodes
        if not any(held.values()) or not enough:
            return False
        self._take(job, cores, stopped)
        return True

    def _take(self, job: Job, cores: Mapping[str, int], stopped: Iterable[RunningJob]) -> None:
        """Count the roomiest nodes as the job's until it has enough; whoever runs there goes."""
        used: set[str] = set()
        left = job.request.fewest_cores
        for name in sorted(cores, key=lambda name: (-cores[name], name)):
            if left <= 0 and len(used) >= job.request.fewest_nodes:
                break
            used.add(name)
            left -= cores[name]
        for name in used & self._asleep.keys():
            self._free[name] += self._asleep.pop(name)
        for other in (job for job in stopped if used & job.nodes.keys()):
            for name, use in self._running.pop(other.id).nodes.items():
                if name in self._free:
                    self._free[name] += use.cores
        left = job.request.fewest_cores
        for name in used:
            share = min(self._free[name], max(1, left))
            self._free[name] -= share
            left -= share
