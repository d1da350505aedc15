"""The site's rules put on its jobs: which partitions take them, whose limits count them, who goes first.

Slurm looks at jobs of a higher ``PriorityTier`` first, whatever their priorities, counts the jobs
of a partition in that partition's own QOS beside theirs, and starts none in a partition that does
not allow its account or QOS. ``scontrol show config`` says what the cluster gives jobs that do not
say, and which of its rules hold.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, inf

from ...cluster.errors import InputError
from ...cluster.jobs import Job, Request, RunningJob, Span
from ...cluster.limits import of_gres
from ...cluster.nodes import License
from ...formats.notes import Notes
from .answer_text import Paragraph
from .associations import Associations, OneJob, is_limit_of
from .detail import JobDetail
from .node_records import NodeFigures, threads_in_partitions
from .partitions import DefaultMemory, PartitionFigures
from .reservation_records import ReservationFigures
from .topology_any import Named

_LINE = re.compile(r"^(\w+(?:\[\d+\])?)[ \t]*= ?(.*)$", re.MULTILINE)
_HEAD = "Configuration data as of"
#: SelectTypeParameters that give jobs more than the cores of their CPUs.
_CHANGING = ("CR_SOCKET", "CR_ONE_TASK_PER_CORE")
#: AccountingStorageEnforce's words under which limits of QOS and associations hold; ``safe`` implies them.
_ENFORCING = {"limits", "safe", "all"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """What of the configuration bears on one step; None of a member: not known.

    Attributes:
        memory: what a job gets that asks for none, where its partition says nothing.
        counts_memory: jobs use memory up (``SelectTypeParameters=CR_…_Memory``).
        enforces_limits: limits of QOS and associations hold (``AccountingStorageEnforce``).
        is_safe: of minutes that a limit leaves, all that a job could use must be left.
    """

    memory: DefaultMemory = field(default_factory=DefaultMemory)
    counts_memory: bool | None = None
    enforces_limits: bool | None = None
    is_safe: bool = True


def read_config(text: str, notes: Notes) -> ClusterConfig:
    """Return what ``scontrol show config`` says; what bears on starts and is not looked at is noted.

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
        memory=DefaultMemory.of(entry),
        counts_memory="MEMORY" in entry.text("SelectTypeParameters").upper(),
        enforces_limits=bool(enforced & _ENFORCING) if "AccountingStorageEnforce" in entry.pairs else None,
        is_safe="limits" not in enforced or "safe" in enforced,
    )


def backfill_settings(text: str) -> tuple[int | None, float | None]:
    """Return SchedulerParameters' bf_max_job_test (jobs) and bf_interval (s), None where not given.

    Raises:
        InputError: the text is another's, or a value is no number above 0.
    """
    entry = config_of(text)
    pairs = (word.partition("=") for word in entry.text("SchedulerParameters").split(","))
    given = {name.strip(): value.strip() for name, _, value in pairs}

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


#: Why a job waits in Slurm's words where a partition does not take it.
PARTITION_REASONS = {"AccountNotAllowed", "QOSNotAllowed", "PartitionTimeLimit"}


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
    schedule_held: bool = False
    key: object = None

    @cached_property
    def threads(self) -> dict[str, set[int]]:
        """How many CPUs a core is on the nodes of each partition."""
        return threads_in_partitions(self.nodes.values())

    @cached_property
    def inactive(self) -> frozenset[str]:
        """Features that no node has now and that Slurm could give some."""
        active = frozenset[str]().union(*(one.node.features for one in self.nodes.values()))
        return frozenset[str]().union(*(node.inactive for node in self.nodes.values())) - active

    @cached_property
    def elsewhere(self) -> dict[str, str]:
        """The partitions on another topology with rules for which nodes a job may get, and its name.

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
        rules = (self.partitions, self.config, self.limits, frozenset(self.licenses), self.gate)
        return (nodes, self.inactive, self.elsewhere, *rules)

    def memory_of(self, partition: str) -> DefaultMemory:
        """Return what a job gets that asks for no memory; of several partitions Slurm has said it already."""
        figures = self.partitions.get(partition)
        return figures.memory if figures is not None and figures.memory else self.config.memory

    def admitted(self, job: Job, notes: Notes) -> Job:
        """Return a pending job as the rules let it start: in fewer partitions, capped, or not eligible."""
        names = list(filter(None, job.partition.split(",")))
        # Slurm's word is of one partition, also where another takes the job (tried on 22.05).
        if job.hold in PARTITION_REASONS and any(self._refusal(job, name) == job.hold for name in names):
            job = replace(job, hold=None)
        refusals = {name: self._refusal(job, name) for name in names}
        allowed = [name for name in names if refusals[name] is None]
        if names and not allowed:
            return replace(job, hold=job.hold or refusals[names[0]])
        if len(allowed) < len(names):
            closed = ", ".join(f"{name} ({refusals[name]})" for name in names if refusals[name])
            notes.add("partitions", f"job {job.id}: partitions that do not take it: {closed}")
        partition, qos = ",".join(allowed), self._qos(job.qos, allowed)
        if (partition, qos) != (job.partition, job.qos):
            job = replace(job, partition=partition, qos=qos)
        # What a limit says that is read, also one of the partition's QOS, is for that limit to say.
        if any(is_limit_of(one, job.hold or "", job) for one in self.limits.limits):
            job = replace(job, hold=None)
        return self._within(job)

    def with_counts(self, job: RunningJob) -> RunningJob:
        """Return a running job as the limits count it: in its partition's QOS too."""
        qos = self._qos(job.qos, job.partition.split(","))
        return job if qos == job.qos else replace(job, qos=qos)

    def _refusal(self, job: Job, partition: str) -> str | None:
        figures = self.partitions.get(partition)
        return None if figures is None else figures.refusal(job, self.limits.parents)

    def _qos(self, own: str, partitions: Iterable[str]) -> str:
        names = [own] if own else []
        for name in partitions:
            figures = self.partitions.get(name)
            if figures is not None and figures.own_qos and figures.own_qos not in names:
                names.append(figures.own_qos)
        return ",".join(names)

    def _within(self, job: Job) -> Job:
        """Stop a job that asks for more than one job may; let it get no more nodes than that."""
        for limit in self.limits.each:
            if not limit.jobs.holds(job):
                continue
            if reason := _beyond(job, limit):
                return replace(job, hold=job.hold or reason)
            most = limit.most.get("nodes")
            if most is not None:
                job = replace(job, request=_on_at_most(job.request, most))
        return job


#: What a limit of one job counts, in Slurm's words.
_WORDS = {"cores": "Cpu", "nodes": "Node", "core_seconds": "CpuMinutes"}


def _beyond(job: Job, limit: OneJob) -> str | None:
    """Return Slurm's word for the limit of one job that a job breaks."""
    kind = "QOS" if limit.jobs.qos else "Assoc"
    request = job.request
    asked: dict[str, float] = {"cores": request.fewest_cores, "nodes": request.fewest_nodes}
    asked["core_seconds"] = request.fewest_cores * (job.time_limit_s or inf)
    for what, most in limit.most.items():
        if what.startswith("gres/"):
            if of_gres(what, request.fewest_gres) > most:
                return f"{kind}MaxGRESPerJob"
        elif asked[what] > most:
            return f"{kind}Max{_WORDS[what]}PerJobLimit"
    if limit.time_s is not None and (job.time_limit_s is None or job.time_limit_s > limit.time_s):
        return f"{kind}MaxWallDurationPerJobLimit"
    return None


def _on_at_most(request: Request, most: int) -> Request:
    span = request.node_counts
    if span is None:
        return replace(request, nodes=Span(minimum=1, maximum=most))
    if request.nodes is None or span.maximum <= most:
        return request
    return replace(request, nodes=Span(minimum=span.minimum, maximum=most))


def by_tier(jobs: Sequence[Job], partitions: Mapping[str, PartitionFigures], notes: Notes) -> tuple[Job, ...]:
    """Return jobs whose priorities put those of a higher ``PriorityTier`` first.

    To each priority is added what all jobs of lower tiers have together, so that a job of a higher
    tier is worth more than all of those; within a tier differences stay what they are. A job that
    names several partitions has the highest tier of them. Held jobs stay at 0.
    """
    tier: dict[str, int] = {}
    for job in jobs:
        known = [partitions[name] for name in job.partition.split(",") if name in partitions]
        tier[job.id] = max((one.tier for one in known), default=0)
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
