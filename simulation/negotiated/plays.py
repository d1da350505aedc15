"""What the negotiating schedulers play: workload files, and the thesis's ESP (Nagendra, 7.3).

Negotiation shares whole nodes (Nagendra, 4.1.1: only the node count is negotiated). What else a job
asks for says which nodes it may use (eligibility.py); what that cannot say is refused.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import Any, Literal

import msgspec

from ...cluster.errors import InputError, OptionError, errors_below
from ...cluster.jobs import Job, JobKind, hold_words, is_held, may_start
from ...cluster.nodes import Node, Switch
from ...cluster.workload import FIRST_PRIORITY, ArrivingJob, ClusterWorkload
from ...negotiation.batch.batch_state import Arrival
from ...negotiation.job_records import MapEntry, NodeCount, run_time_s
from ...negotiation.runtime.runtime_machine import MachineState, empty_machine
from ...negotiation.speedup import LINEAR, model_text, relative_speed
from ..events import HOUR_S
from ..workloads.esp import FULL_MACHINE_S, comes_s, numbered_jobs
from ..workloads.named_clusters import node_names
from .eligibility import PartitionNodes

#: ESP jobs come 50 at once and one each 30 s, or all at once.
Arrivals = Literal["esp", "at-once"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changeability:
    """Which of the jobs may change their size.

    Attributes:
        share: of the jobs, from 0 to 1.
        kind: malleable, or moldable: chosen at their start only.
        speedup: their model.
    """

    share: float = 0.0
    kind: JobKind = JobKind.MALLEABLE
    speedup: str = LINEAR


def entry_of(
    job: str,
    size: int,
    run_time_s: float,
    *,
    kind: JobKind = JobKind.RIGID,
    bounds: tuple[int, int] | None = None,
    speedup: str = LINEAR,
    true_run_time_s: float | None = None,
    **others: Any,
) -> MapEntry:
    """Return a job with its run time at the nominal size; the model converts it to the minimum.

    ``others`` are further members, its priority among them.
    """
    least, most = bounds if bounds is not None and kind is not JobKind.RIGID else (size, size)
    slower = relative_speed(speedup, size, least)
    return MapEntry(
        job=job,
        type=kind,
        node_cnt=0,
        node_count=NodeCount(min=least, max=most),
        min_nodes=least,
        max_nodes=most,
        time_at_min_s=run_time_s * slower,
        true_time_at_min_s=None if true_run_time_s is None else true_run_time_s * slower,
        speedup=speedup,
        **others,
    )


def esp_play(
    nodes: int, mix: Changeability, *, order: int = 0, arrivals: Arrivals = "esp", with_z: bool = False
) -> "Play":
    """Return the thesis's experiment: the ESP jobs without Z in a random order of submission.

    A share of them has sizes ⌈n/2⌉ to 2n.

    Args:
        nodes: of the machine; sizes are whole nodes.
        mix: which jobs may change their size; a smaller share's are among a larger one's.
        order: the seed of the order and of the choice.
        arrivals: how they come.
        with_z: add both Z, urgent, at 40 and 120 min.
    """
    jobs = numbered_jobs()
    generator = random.Random(order)  # noqa: S311 - an order of submission, no secret
    generator.shuffle(jobs)
    elastic = _chosen(len(jobs), mix, generator)
    found = []
    for rank, (kind, number) in enumerate(jobs):
        size = kind.units(nodes)
        job = entry_of(
            f"{kind.name}{number + 1}",
            size,
            kind.run_time_s,
            priority=FIRST_PRIORITY - rank,
            kind=mix.kind if rank in elastic else JobKind.RIGID,
            bounds=(-(-size // 2), min(nodes, 2 * size)),
            speedup=mix.speedup,
            name=kind.name,
        )
        found.append(Arrival(time_s=0.0 if arrivals == "at-once" else comes_s(rank), job=job))
    of_whole = zip(numbered_jobs(is_full=True), FULL_MACHINE_S, strict=True) if with_z else ()
    for (full, number), time in of_whole:
        name, priority = f"{full.name}{number + 1}", FIRST_PRIORITY + 1
        job = entry_of(name, nodes, full.run_time_s, priority=priority)
        found.append(Arrival(time_s=time, job=job, urgent=True))
    found.sort(key=lambda arrival: arrival.time_s)
    names = node_names(nodes)
    return Play(name="esp", nodes=names, partitions={"": names}, arrivals=tuple(found))


#: A budget that is met to the last digit is met.
_ROUNDING = 1e-9
#: Jobs of this quality of service are urgent.
URGENT_QOS = "urgent"
#: The largest priority that a message carries.
_LARGEST_PRIORITY = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """What a negotiation is run on.

    Attributes:
        name: for people.
        nodes: their names, in order.
        partitions: name -> its nodes.
        arrivals: the jobs, by time.
        switches: the nodes' tree, None when they stand in a row.
        runtimes: how many runtime schedulers share the nodes.
    """

    name: str
    nodes: tuple[str, ...]
    partitions: Mapping[str, tuple[str, ...]]
    arrivals: tuple[Arrival, ...]
    switches: tuple[Switch, ...] | None = None
    runtimes: int = 1

    def __post_init__(self) -> None:
        parts = self._parts()
        sizes: dict[str, int] = {}
        for part in parts:
            for name, members in part.items():
                sizes[name] = max(sizes.get(name, 0), len(members))
        for arrival in self.arrivals:
            least, most = arrival.job.min_nodes, sizes.get(arrival.job.partition, 0)
            if least > most:
                message = f"{least} nodes are above the {most} that a runtime scheduler has"
                raise InputError(f"job {arrival.job.job}: {message}", path="jobs")

    def machines(self, in_parts: int = 1) -> dict[str, MachineState]:
        """Return each runtime scheduler's idle nodes, in so many parts; one alone has no name."""
        parts = self._parts()
        names = [""] if len(parts) == 1 else [f"r{number}" for number in range(1, len(parts) + 1)]
        return {
            name: empty_machine([node for members in part.values() for node in members], part, parts=in_parts)
            for name, part in zip(names, parts, strict=True)
        }

    def _parts(self) -> list[dict[str, tuple[str, ...]]]:
        """Deal the partitions to the runtime schedulers, or the nodes of a single one."""
        groups, count = list(self.partitions.items()), self.runtimes
        name, members = groups[0]
        dealt, what = len(groups), f"the workload has {len(groups)} partitions"
        if dealt == 1:
            dealt, what = len(members), f"there are {len(members)} nodes"
        if count > dealt:
            raise OptionError(f"--runtimes {count}: {what}")
        # Neighbours, so that each one's nodes are together among all.
        cuts = pairwise(dealt * number // count for number in range(count + 1))
        if len(groups) > 1:
            return [dict(groups[first:last]) for first, last in cuts]
        return [{name: members[first:last]} for first, last in cuts]


def play_of(
    workload: ClusterWorkload, mix: Changeability | None, *, nodes: int | None = None, order: int = 0
) -> Play:
    """Return a workload as the negotiating schedulers play it.

    Args:
        workload: the file's.
        mix: a share of the jobs gets sizes ⌈n/2⌉ to 2n; None: as the file says.
        nodes: play it on that many nodes like the file's.
        order: the seed of that share's choice.

    Raises:
        InputError: a job asks for more than whole nodes (names it); or there are limits, or blocks.
        OptionError: the mix or the nodes contradict the file.
    """
    if workload.limits:
        raise InputError("the negotiating schedulers keep no limits over sets of jobs", path="limits")
    if nodes is None and workload.network is not None and workload.network.units:
        message = f"the negotiating schedulers do not know the rules of {workload.network.kind}"
        raise InputError(message, path="topology.kind")
    machine = _machine(workload, nodes)
    if mix is not None and any(arriving.job.kind is not JobKind.RIGID for arriving in workload.jobs):
        raise OptionError("--malleable: the workload says itself which jobs are malleable")
    chosen = _chosen(len(workload.jobs), mix, random.Random(order)) if mix is not None else set()  # noqa: S311 - a choice of jobs, no secret
    # What makes every priority an integer, exactly.
    scale = lcm(*(Fraction(arriving.job.priority).denominator for arriving in workload.jobs))
    arrivals = []
    for index, arriving in enumerate(workload.jobs):
        with errors_below(f"jobs[{index}]"):
            _refuse_held(arriving.job)
            entry = _entry(arriving, machine, mix, is_chosen=index in chosen, scale=scale)
        urgent = arriving.job.qos == URGENT_QOS
        # Before its start time a job is in nobody's queue.
        comes_s = float(max(arriving.arrival_s, arriving.not_before_s or 0.0))
        arrivals.append(Arrival(time_s=comes_s, job=entry, urgent=urgent))
    arrivals.sort(key=lambda arrival: arrival.time_s)
    partitions = {name: tuple(node.name for node in part.members) for name, part in machine.items()}
    return Play(
        name=workload.name,
        nodes=tuple(name for names in partitions.values() for name in names),
        partitions=partitions,
        arrivals=tuple(arrivals),
        switches=None if nodes is not None else workload.switches,
    )


def _machine(workload: ClusterWorkload, nodes: int | None) -> dict[str, PartitionNodes]:
    """Return the nodes that take jobs by partition, or that many like them."""
    usable = [node for node in workload.nodes if node.state.takes_jobs]
    if not usable:
        raise InputError("no node takes jobs", path="nodes")
    if nodes is not None:
        first = usable[0]
        if any((node.total, node.features) != (first.total, first.features) for node in usable):
            raise OptionError("--nodes: the workload's nodes are not alike")
        if workload.partitions or any(node.partitions for node in usable):
            raise OptionError("--nodes: the workload has partitions")
        return {"": PartitionNodes([replace(first, name=name) for name in node_names(nodes)], None)}
    members: dict[str, list[Node]] = {}
    added = {partition.name: set(partition.nodes) for partition in workload.partitions}
    for node in usable:
        mine = {*node.partitions, *(name for name, names in added.items() if node.name in names)}
        if len(mine) > 1:
            raise InputError(f"{node.name!r} is in several partitions", path="nodes")
        members.setdefault(min(mine, default=""), []).append(node)
    return {name: PartitionNodes(mine, workload.switches) for name, mine in members.items()}


def _chosen(count: int, mix: Changeability, generator: random.Random) -> set[int]:
    """Return which jobs may change their size; a smaller share's are among a larger one's."""
    ranks = list(range(count))
    generator.shuffle(ranks)
    return set(ranks[: round(mix.share * count)])


def _entry(
    arriving: ArrivingJob,
    machine: Mapping[str, PartitionNodes],
    mix: Changeability | None,
    *,
    is_chosen: bool,
    scale: int,
) -> MapEntry:
    job = arriving.job
    part = machine.get(job.partition)
    if part is None:
        known = ", ".join(name or "none" for name in machine)
        raise InputError(f"{job.partition!r} is not a partition of whole nodes ({known})", path="partition")
    wishes, there, kind = part.of(job), len(part.members), job.kind
    size, least, most = _sizes(job, wishes.members)
    if job.request.node_counts is None:
        size = max(size, wishes.fewest)
    elif most < wishes.fewest:
        message = f"it takes {wishes.fewest} nodes to hold so much, whichever they are"
        raise InputError(message, path="gres_total")
    least, most = max(least, wishes.fewest), max(most, wishes.fewest)
    if is_chosen and mix is not None:
        kind, least, most = mix.kind, max(-(-size // 2), wishes.fewest), min(there, 2 * size)
    elif kind is JobKind.RIGID and most > least:
        kind = JobKind.MOLDABLE
    if least > there:
        raise InputError(f"{least} nodes are above the partition's {there}", path="nodes")
    if least > wishes.largest:
        raise InputError(f"{least} nodes are above the {wishes.largest} that it may use", path="nodes")
    priority = int(job.priority * scale)
    if priority > _LARGEST_PRIORITY:
        raise InputError(f"{float(job.priority):g} cannot be carried exactly by a message", path="priority")
    limit, own = job.time_limit_s, model_text(job.speedup)
    part.check(job, wishes, least)
    entry = entry_of(
        job.id,
        size,
        float(limit or arriving.run_time_s),
        priority=priority,
        kind=kind,
        bounds=(least, max(least, min(most, wishes.largest))),
        speedup=mix.speedup if mix is not None and job.speedup is None else own,
        true_run_time_s=float(min(arriving.run_time_s, limit)) if limit else None,
        partition=job.partition,
        name=arriving.name,
        eligible=wishes.eligible,
        contiguous=wishes.contiguous,
        max_switches=wishes.max_switches,
        deadline_s=arriving.deadline_s,
        node_share=part.share(job, wishes.members, least).as_integer_ratio(),
    )
    return _within_budget(entry, arriving.budget_core_h, wishes.members)


def _within_budget(entry: MapEntry, budget_core_h: float | None, members: Sequence[Node]) -> MapEntry:
    """Return a job on the counts up to which all estimated core-hours keep its budget.

    On each count a part of the work costs its share at most: growing and shrinking keep it too.

    Raises:
        InputError: it would exceed it on its least nodes.
    """
    if budget_core_h is None:
        return entry
    cores = max(node.total.cores for node in members)
    most_node_s = budget_core_h * HOUR_S / cores
    affordable = 0
    for count in range(entry.min_nodes, entry.max_nodes + 1):
        if count * run_time_s(entry, count) > most_node_s * (1 + _ROUNDING):
            break
        affordable = count
    if not affordable:
        needed = entry.min_nodes * run_time_s(entry, entry.min_nodes) * cores / HOUR_S
        raise InputError(
            f"{budget_core_h:g} is below the {needed:g} of its least nodes", path="budget_core_h"
        )
    span = NodeCount(min=entry.node_count.min, max=affordable)
    return msgspec.structs.replace(entry, max_nodes=affordable, node_count=span)


def _refuse_held(job: Job) -> None:
    if not may_start(job):
        held = "is held" if is_held(job) else "may not start"
        raise InputError(f"the job {held}: {hold_words(job)}", path="hold")
    if job.unsupported:
        raise InputError(f"{job.unsupported[0]!r} is not negotiated", path="unsupported")


def _sizes(job: Job, members: Sequence[Node]) -> tuple[int, int, int]:
    """Return a job's nominal, least and most nodes; ``members`` are those that it may use."""
    request = job.request
    counts = request.node_counts
    if counts is None:
        least = most = -(-(request.cores or 1) // min(node.total.cores for node in members))
    else:
        least, most = counts.minimum, counts.maximum
    size = least
    if job.kind is not JobKind.RIGID:
        size = least if counts is None or counts.is_exact else most
        least, most = job.min_nodes or least, job.max_nodes or most
    elif job.min_nodes or job.max_nodes:
        raise InputError("given for a rigid job", path="min_nodes" if job.min_nodes else "max_nodes")
    return size, least, most
