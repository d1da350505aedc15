"""The site's rules for its jobs: which partitions take them, which limits count them, their order.

Slurm looks at jobs of a higher ``PriorityTier`` first, whatever their priorities, counts the jobs
of a partition in that partition's own QOS beside theirs, and starts none in a partition that does
not allow its account or QOS. ``scontrol show config`` says what the cluster gives jobs that do not
say, and which of its rules hold.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property
from math import ceil
from typing import TypeVar

from ...cluster.errors import InputError
from ...cluster.jobs import Job, RunningJob, may_start
from ...cluster.limits import JobSetIndex, Limit
from ...cluster.nodes import License
from ...cluster.resources.pools import Pools, fewest
from ...formats.notes import Notes
from .answer_text import Paragraph
from .associations import Associations, OneJob, is_limit_of
from .consumables import gres_kinds
from .detail import JobDetail
from .node_records import NodeFigures, threads_in_partitions
from .partitions import DefaultMemory, PartitionFigures
from .reservation_records import LICENCE, ReservationFigures
from .topology_any import Named

_LINE = re.compile(r"^(\w+(?:\[\d+\])?)[ \t]*= ?(.*)$", re.MULTILINE)
_HEAD = "Configuration data as of"
#: SelectTypeParameters that give jobs more than the cores of their CPUs.
_CHANGING = ("CR_SOCKET", "CR_ONE_TASK_PER_CORE")
#: AccountingStorageEnforce's words that enforce limits of QOS and associations (``safe`` too).
_ENFORCING = {"limits", "safe", "all"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """What of the configuration bears on one step; None of a member: not known.

    Attributes:
        cluster: its name.
        memory: what a job gets that asks for none, where its partition says nothing.
        counts_memory: jobs use memory up (``SelectTypeParameters=CR_…_Memory``).
        enforces_limits: limits of QOS and associations hold (``AccountingStorageEnforce``).
        is_safe: of minutes that a limit leaves, all that a job could use must be left.
    """

    cluster: str = ""
    memory: DefaultMemory = field(default_factory=DefaultMemory)
    counts_memory: bool | None = None
    enforces_limits: bool | None = None
    is_safe: bool = True


def read_config(text: str, notes: Notes) -> ClusterConfig:
    """Return what ``scontrol show config`` says; note what bears on starts and is ignored.

    Raises:
        InputError: the text is another's.
    """
    entry = config_of(text)
    kind = entry.text("PreemptType")
    if kind not in ("", "preempt/none", "(null)"):
        mode = entry.text("PreemptMode") or "OFF"
        notes.unread("config", f"PreemptType={kind} with PreemptMode={mode}: no job is preempted")
    elif "GANG" in entry.text("PreemptMode").upper():
        notes.unread("config", f"PreemptMode={entry.text('PreemptMode')}: jobs share no cores in turns")
    for setting in _ignored(entry):
        notes.unread("config", f"{setting} is not looked at")
    enforced = {word.strip().lower() for word in entry.text("AccountingStorageEnforce").split(",")}
    return ClusterConfig(
        cluster=entry.text("ClusterName"),
        memory=DefaultMemory.of(entry),
        counts_memory="MEMORY" in entry.text("SelectTypeParameters").upper(),
        enforces_limits=bool(enforced & _ENFORCING) if "AccountingStorageEnforce" in entry.pairs else None,
        is_safe="limits" not in enforced or "safe" in enforced,
    )


def backfill_settings(text: str, notes: Notes | None = None) -> tuple[int | None, float | None]:
    """Return SchedulerParameters' bf_max_job_test (jobs) and bf_interval (s), None where not given.

    A bf_interval of -1 switches backfilling off: it is taken as not given, with a note.

    Raises:
        InputError: the text is another's, or a value is no number above 0.
    """
    entry = config_of(text)
    pairs = (word.partition("=") for word in entry.text("SchedulerParameters").split(","))
    given = {name.strip(): value.strip() for name, _, value in pairs}

    if given.get("bf_interval") == "-1":
        del given["bf_interval"]
        if notes is not None:
            notes.add("config", "bf_interval=-1: Slurm does not backfill; the simulated one does")

    def number(name: str) -> int | None:
        value = given.get(name)
        if value is not None and not (re.fullmatch(r"[0-9]{1,7}", value) and int(value)):
            path = f"SchedulerParameters {name}"
            raise InputError(f"{value[:60]!r} is not a number above 0", path=path)
        return None if value is None else int(value)

    return number("bf_max_job_test"), number("bf_interval")


def config_of(text: str) -> Paragraph:
    """Return the settings that ``scontrol show config`` prints.

    Raises:
        InputError: the text is another's.
    """
    if not text.lstrip().startswith(_HEAD):
        raise InputError("not what scontrol show config prints", path="line 1")
    return Paragraph({key: value.strip() for key, value in _LINE.findall(text)}, "config")


def _ignored(entry: Paragraph) -> Iterator[str]:
    """Yield settings that decide what may share a node, and that no snapshot holds."""
    if entry.text("SelectType") == "select/linear":
        yield "SelectType=select/linear"
    parameters = entry.text("SelectTypeParameters").upper().split(",")
    yield from (f"SelectTypeParameters={word}" for word in parameters if word.startswith(_CHANGING))
    if entry.text("MCSPlugin") not in ("", "mcs/none"):
        yield f"MCSPlugin={entry.text('MCSPlugin')}"
    for key in ("MaxMemPerNode", "MaxMemPerCPU", "JobDefaults"):
        if entry.text(key) not in ("", "UNLIMITED", "0"):
            yield f"{key}={entry.text(key)}"


#: A pending or a running job.
Counted = TypeVar("Counted", Job, RunningJob)


@dataclass(frozen=True, kw_only=True)
class Site:
    """A cluster as all answers but the jobs' say, and what its rules make of a job.

    Attributes:
        partitions: by name.
        details: what scontrol prints of jobs, by id; None: it was not asked.
        licenses: those of which the totals are known.
        gate: a licence that keeps jobs waiting and is no part of what they ask for; empty for none.
        priorities: by job id, in the place of the queue's own; None: the queue's own.
        tells_shared: the jobs' JSON tells which of them ask for whole nodes.
        now: the snapshot's time, seconds since the epoch, None when not known.
        pools: what running jobs leave of the limits.
        schedule_held: jobs held by hand are to be scheduled.
        key: ``against``; jobs of a known text and an equal one are not read anew.
    """

    nodes: Mapping[str, NodeFigures]
    topology: Named
    partitions: Mapping[str, PartitionFigures]
    details: Mapping[int, JobDetail] | None
    licenses: Mapping[str, License]
    reservations: tuple[ReservationFigures, ...]
    limits: Associations
    config: ClusterConfig
    priorities: Mapping[str, int | Fraction] | None
    gate: str
    tells_shared: bool = True
    now: float | None = None
    pools: Pools = field(default_factory=Pools)
    schedule_held: bool = False
    key: object = None

    @cached_property
    def threads(self) -> dict[str, set[int]]:
        """How many CPUs a core is on the nodes of each partition."""
        return threads_in_partitions(self.nodes.values())

    @cached_property
    def _cores_of_nodes(self) -> dict[str, int]:
        """The fewest cores of a node of each partition."""
        found: dict[str, int] = {}
        for node in (one.node for one in self.nodes.values()):
            for name in node.partitions:
                found[name] = min(found.get(name, node.total.cores), node.total.cores)
        return found

    @cached_property
    def inactive(self) -> frozenset[str]:
        """Features that no node has now and that Slurm could give some."""
        active = frozenset[str]().union(*(one.node.features for one in self.nodes.values()))
        return frozenset[str]().union(*(node.inactive for node in self.nodes.values())) - active

    @cached_property
    def gres_kinds(self) -> frozenset[str]:
        """The names, without types, of the gres that nodes have."""
        return gres_kinds(one.node for one in self.nodes.values())

    @cached_property
    def elsewhere(self) -> dict[str, str]:
        """Partitions on another topology with rules for which nodes a job may get, and its name.

        Where nothing names the topology that was read, it may be the one of any of them: only
        topology.conf's has a name that is known.
        """
        named = {name: one.topology for name, one in self.partitions.items() if one.topology}
        if self.topology.name:
            return {name: other for name, other in named.items() if other in self.topology.strange}
        several = len({figures.topology for figures in self.partitions.values()}) > 1
        return {name: other for name, other in named.items() if several and other != "default"}

    def against(self) -> tuple[object, ...]:
        """Return all that a job is read against beside its own text."""
        nodes = {name: (one.node.total, one.threads, one.node.partitions) for name, one in self.nodes.items()}
        rules = (self.partitions, self.config, frozenset(self.licenses), self.gate)
        return (nodes, self.inactive, self.elsewhere, *rules)

    def memory_of(self, partition: str) -> DefaultMemory:
        """Return a job's default memory; with several partitions, Slurm has already said it."""
        figures = self.partitions.get(partition)
        return figures.memory if figures is not None and figures.memory else self.config.memory

    def admitted(self, job: Job, notes: Notes) -> Job:
        """Return a pending job as the rules allow it: fewer partitions, capped, or not eligible.

        Those before it in the queue have been admitted.
        """
        names = list(filter(None, job.partition.split(","))) or [""]
        refusals = {name: self._refusal(job, name) for name in names}
        # Slurm's word is of one partition, also where another takes the job (tried on 22.05).
        if job.hold and (job.hold in refusals.values() or self._lacks_licences(job)):
            job = replace(job, hold=None)
        allowed = [name for name in names if refusals[name] is None]
        if not allowed:
            return replace(job, hold=job.hold or refusals[names[0]])
        if len(allowed) < len(names):
            closed = ", ".join(f"{name} ({refusals[name]})" for name in names if refusals[name])
            notes.add("partitions", f"job {job.id}: partitions that do not take it: {closed}")
        ways = [self.inside(job, name) for name in allowed]
        # What a limit says that is read, also one of the partition's QOS, is for that limit to say.
        hold = job.hold
        if hold and any(is_limit_of(limit, hold, way) for way in ways for limit in self._together.find(way)):
            job = replace(job, hold=None)
        partition, qos = ways[0].partition, ways[0].qos
        if len(ways) > 1:
            partition, qos = self._in_several(ways)
        if (partition, qos) != (job.partition, job.qos):
            job = replace(job, partition=partition, qos=qos)
        for limit in self._each.find(job):
            job = replace(job, request=limit.fitted(job.request))
        return job

    @cached_property
    def _each(self) -> JobSetIndex[OneJob]:
        """The limits of one job."""
        return JobSetIndex(self.limits.each)

    @cached_property
    def _together(self) -> JobSetIndex[Limit]:
        """The limits over jobs together."""
        return JobSetIndex(self.limits.limits)

    def inside(self, job: Counted, partition: str) -> Counted:
        """Return a job as the limits count it in one partition: in the partition's QOS too."""
        figures = self.partitions.get(partition)
        own = "" if figures is None else figures.own_qos
        qos = ",".join(dict.fromkeys(filter(None, (job.qos, own))))
        same = (partition, qos) == (job.partition, job.qos)
        return job if same else replace(job, partition=partition, qos=qos)

    def _in_several(self, ways: Sequence[Job]) -> tuple[str, str]:
        """Return the partitions that a job may start in now, and the QOS that then count it.

        ``ways``: the job inside each partition. Slurm tries them by tier, then as they are listed,
        and only the QOS of the one in which the job starts counts it (tried on 22.05): neither that
        of a partition whose limits have no room, nor of one behind another that has all its nodes.
        """
        roomy = [way for way in ways if self._has_room(way, ways)] or ways
        counting: list[Job] = []
        for way in sorted(roomy, key=self.tier, reverse=True):
            if not any(self._takes_all(first.partition, way.partition) for first in counting):
                counting.append(way)
        qos = dict.fromkeys(name for way in counting for name in way.qos.split(",") if name)
        return ",".join(way.partition for way in roomy), ",".join(qos)

    def _has_room(self, way: Job, ways: Sequence[Job]) -> bool:
        """Return whether the limits of a partition leave room for a job.

        Jobs ahead of it may take that room if it can start in another partition as well.
        """
        others = (one for one in ways if self._takes_all(one.partition, way.partition))
        return self.pools.hold(way) and (self.ahead.hold(way) or not any(map(self.ahead.hold, others)))

    @cached_property
    def ahead(self) -> Pools:
        """What running jobs and those that were admitted leave of the limits."""
        return self.pools.copy()

    @cached_property
    def _takes_all(self) -> Callable[[str, str], bool]:
        """Whether one partition takes jobs whenever the other can."""

        @cache
        def takes_all(first: str, other: str) -> bool:
            figures, others = self.partitions.get(first), self.partitions.get(other)
            return figures is not None and others is not None and figures.takes_all_of(others)

        return takes_all

    def tier(self, job: Job) -> int:
        """Return the highest tier of a job's partitions, 0 where none is known."""
        known = [self.partitions[name] for name in job.partition.split(",") if name in self.partitions]
        return max((one.tier for one in known), default=0)

    def _lacks_licences(self, job: Job) -> bool:
        """Return whether a job waits for licences, and the auction knows that too few are free."""
        asked = job.request.licenses
        is_lacking = any(self.licenses[name].free < count for name, count in asked.items())
        return job.hold == "Licenses" and is_lacking and (self.gate or LICENCE) not in asked

    def _refusal(self, job: Job, partition: str) -> str | None:
        """Return Slurm's word for why a job may not start in a partition, None where it may."""
        figures = self.partitions.get(partition)
        refused = None if figures is None else figures.refusal(job, self.limits.parents)
        way = self.inside(job, partition)
        cores = self._cores_of_nodes.get(partition, 0)
        words = (limit.refusal(way, cores) for limit in self._each.find(way))
        return refused or next(filter(None, words), None)


def admitted_jobs(jobs: Sequence[Job], site: Site, notes: Notes) -> tuple[Job, ...]:
    """Return pending jobs as the rules let them start, with priorities that follow from tiers."""

    def place(job: Job) -> tuple[int, int | Fraction]:
        return site.tier(job), job.priority

    counts = any("," in job.partition for job in jobs)
    found: dict[str, Job] = {}
    for job in sorted(jobs, key=place, reverse=True):
        found[job.id] = one = site.admitted(job, notes)
        if counts and may_start(one) and site.ahead.hold(one):
            site.ahead.take(one, fewest(one))
    return _by_tier([found[job.id] for job in jobs], site, notes)


def _by_tier(jobs: Sequence[Job], site: Site, notes: Notes) -> tuple[Job, ...]:
    """Return jobs whose priorities put those of a higher ``PriorityTier`` first.

    To each priority is added what all jobs of lower tiers have together, so that a job of a higher
    tier is worth more than all of those; within a tier differences stay what they are. A job that
    names several partitions has the highest tier of them. Held jobs stay at 0.
    """
    tier = {job.id: site.tier(job) for job in jobs}
    tiers: dict[int, list[int | Fraction]] = {}
    for job in jobs:
        if job.priority:
            tiers.setdefault(tier[job.id], []).append(job.priority)
    if len(tiers) <= 1:
        return tuple(jobs)
    lift: dict[int, int] = {}
    below = 0
    for one, priorities in sorted(tiers.items()):
        lift[one] = below
        below += ceil(sum(priorities) + len(priorities) * below)
    notes.add("priorities", f"PriorityTier: jobs of {len(tiers)} tiers, the highest first")
    return tuple(
        replace(job, priority=job.priority + lift[tier[job.id]]) if job.priority else job for job in jobs
    )
