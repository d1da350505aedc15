"""A report on a snapshot: nodes, free resources, switches, jobs, and every note of its source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from ...cluster.jobs import Job, JobType, is_held, may_start
from ...cluster.limits import JOB_MEMBERS, Limit
from ...cluster.nodes import Resources
from ...cluster.resources.capacity import Resource
from ...cluster.snapshot import Snapshot
from ...cluster.text import plural
from ...formats.hostlist import join
from ...topology.tree import topology_of

FORMAT = "aucsched-check/1"

#: What may be special about a job, and how to see it.
_MEMBERS: Mapping[str, Callable[[Job], object]] = {
    "held": is_held,
    "not eligible": lambda job: not may_start(job) and not is_held(job),
    "contiguous": lambda job: job.request.contiguous,
    "exclusive": lambda job: job.request.exclusive,
    "gres": lambda job: job.request.gres_per_node or job.request.gres_total,
    "memory": lambda job: job.request.memory_mib_per_node or job.request.memory_mib_per_core,
    "licenses": lambda job: job.request.licenses,
    "features": lambda job: job.request.features,
    "max_switches": lambda job: job.request.max_switches,
    "segment": lambda job: job.request.segment,
    "exclusive_topo": lambda job: job.request.exclusive_topo,
    "required_nodes": lambda job: job.request.required_nodes,
    "excluded_nodes": lambda job: job.request.excluded_nodes,
    "no time limit": lambda job: job.time_limit_s is None,
    "expected_start_time": lambda job: job.expected_start_time is not None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """How much of something there is on all nodes, how much is free on nodes that take jobs."""

    total: int
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotReport:
    """What a snapshot holds.

    Attributes:
        states: nodes by state.
        amounts: ``cores``, ``memory_mib`` (of nodes that limit it) and each gres by name.
        levels: switches by level, leaves at 0; empty in the linear topology.
        partitions: (nodes, state) of each partition, also of those only nodes name.
        types: pending jobs by type, 1, 2 and 3 of Soner, section 4.1.
        members: pending jobs by what is special about them.
        unsupported: jobs by what of their request cannot be expressed.
        endless: running jobs without an estimated end.
        unread: rules of the site that nothing looks at.
    """

    time: float | None
    states: Mapping[str, int]
    amounts: Mapping[str, Amount]
    levels: Mapping[int, int]
    partitions: Mapping[str, tuple[int, str]]
    types: Mapping[str, int]
    members: Mapping[str, int]
    unsupported: Mapping[str, int]
    running: int
    endless: int
    licenses: Mapping[str, Amount]
    reservations: Mapping[str, str]
    limits: Mapping[str, str]
    notes: tuple[str, ...]
    unread: tuple[str, ...]


def report_on(snapshot: Snapshot) -> SnapshotReport:
    """Return what a snapshot holds."""
    jobs = snapshot.jobs
    return SnapshotReport(
        time=snapshot.time,
        states=dict(Counter(node.state.value for node in snapshot.nodes).most_common()),
        amounts=_amounts(snapshot),
        levels=_levels(snapshot),
        partitions=_partitions(snapshot),
        types={kind.value: sum(job.request.type is kind for job in jobs) for kind in JobType},
        members={name: sum(map(bool, map(has, jobs))) for name, has in _MEMBERS.items()},
        unsupported=dict(Counter(text for job in jobs for text in job.unsupported).most_common()),
        running=len(snapshot.running),
        endless=sum(job.end_time is None for job in snapshot.running),
        licenses={
            name: Amount(total=entry.total, free=entry.free) for name, entry in snapshot.licenses.items()
        },
        reservations={entry.name: join(entry.nodes) for entry in snapshot.reservations},
        limits={entry.name: _limit_words(entry) for entry in snapshot.limits},
        notes=snapshot.notes,
        unread=snapshot.unread,
    )


def _amounts(snapshot: Snapshot) -> dict[str, Amount]:
    total: Counter[str] = Counter()
    free: Counter[str] = Counter()
    for node in snapshot.nodes:
        total.update(_by_label(node.total))
        if node.state.takes_jobs:
            free.update(_by_label(node.free))
    return {name: Amount(total=count, free=free[name]) for name, count in total.items() if count}


def _limit_words(limit: Limit) -> str:
    most = ", ".join(f"{count} {what.replace('_', '-')}" for what, count in limit.most.items())
    members = ((member, getattr(limit.jobs, member)) for member in JOB_MEMBERS)
    whose = [f"{member} {' or '.join(names)}" for member, names in members if names]
    each = f", for each {limit.per}" if limit.per else ""
    return f"at most {most} of {' and '.join(whose) or 'all jobs'}{each}"


def _by_label(amounts: Resources) -> dict[str, int]:
    gres = {Resource("gres", kind).label: count for kind, count in amounts.gres.items()}
    return {"cores": amounts.cores, "memory_mib": amounts.memory_mib or 0, **gres}


def _levels(snapshot: Snapshot) -> dict[int, int]:
    if snapshot.switches is None:
        return {}
    names = {switch.name for switch in snapshot.switches}
    topology = topology_of(snapshot)
    levels = Counter(
        level for name, level in zip(topology.names, topology.level.tolist(), strict=True) if name in names
    )
    return dict(sorted(levels.items()))


def _partitions(snapshot: Snapshot) -> dict[str, tuple[int, str]]:
    members: dict[str, set[str]] = {entry.name: set(entry.nodes) for entry in snapshot.partitions}
    states = {entry.name: entry.state.value for entry in snapshot.partitions}
    for node in snapshot.nodes:
        for name in node.partitions:
            members.setdefault(name, set()).add(node.name)
    return {name: (len(nodes), states.get(name, "up")) for name, nodes in members.items()}


def report_document(report: SnapshotReport) -> dict[str, Any]:
    """Return a report as plain dicts, lists, numbers and text (``aucsched-check/1``)."""
    return {
        "format": FORMAT,
        "time": report.time,
        "nodes": {"count": sum(report.states.values()), "by_state": dict(report.states)},
        "amounts": {name: asdict(amount) for name, amount in report.amounts.items()},
        "switches_by_level": {str(level): count for level, count in report.levels.items()},
        "partitions": {
            name: {"nodes": count, "state": state} for name, (count, state) in report.partitions.items()
        },
        "jobs": {
            "pending": sum(report.types.values()),
            "by_type": dict(report.types),
            "by_member": dict(report.members),
            "unsupported": dict(report.unsupported),
        },
        "running": {"count": report.running, "without_end": report.endless},
        "licenses": {name: asdict(amount) for name, amount in report.licenses.items()},
        "reservations": dict(report.reservations),
        "limits": dict(report.limits),
        "notes": list(report.notes),
        "unread": list(report.unread),
    }


def render_report(report: SnapshotReport, console: Console) -> None:
    """Print a report."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    table.add_row("nodes", f"{sum(report.states.values())}: {_counts(report.states)}")
    for name, amount in report.amounts.items():
        table.add_row(name, f"{amount.free} of {amount.total} free on nodes that take jobs")
    levels = (
        f"{count} {f'at level {level}' if level else 'leaves'}" for level, count in report.levels.items()
    )
    table.add_row("switches", ", ".join(levels) or "none: nodes in a row")
    partitions = (
        f"{name} ({plural(count, 'node')}{'' if state == 'up' else f', {state}'})"
        for name, (count, state) in report.partitions.items()
    )
    table.add_row("partitions", ", ".join(partitions) or "none")
    endless = f", {report.endless} of them without an estimated end" if report.endless else ""
    table.add_row("running", f"{plural(report.running, 'job')}{endless}")
    table.add_row("pending", f"{plural(sum(report.types.values()), 'job')}: {_counts(report.types)}")
    table.add_row("of these", _counts(report.members) or "none is special")
    for text, count in report.unsupported.items():
        table.add_row("not expressible", f"{text} ({plural(count, 'job')})")
    for name, amount in report.licenses.items():
        table.add_row("licences", f"{name}: {amount.free} of {amount.total} free")
    for name, nodes in report.reservations.items():
        table.add_row("reservation", f"{name} on {nodes}")
    for name, said in report.limits.items():
        table.add_row("limit", f"{name}: {said}")
    for note in report.notes or ("none",):
        table.add_row("not looked at" if note in report.unread else "note", note)
    console.print(table)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)
