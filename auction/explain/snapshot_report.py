"""A report on a snapshot: nodes, free resources, switches, jobs, and every note of its source.

Also one on its topology: its graph, levels, how far apart its nodes are, in groups and in order.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from ...cluster.jobs import Job, JobType, is_held, may_start
from ...cluster.limits import JOB_MEMBERS, Limit, limited
from ...cluster.network import SIZES, Network, NetworkKind
from ...cluster.nodes import Node, Resources, Switch
from ...cluster.resources.capacity import IntArray, Resource
from ...cluster.resources.demand import Ineligible
from ...cluster.snapshot import Snapshot
from ...cluster.text import plural
from ...formats.hostlist import join
from ...formats.native.topology_wire import written_topology
from ...topology.distances import MOST_MEASURED
from ...topology.networks import extent, graph_of, tree_graph
from ...topology.tree import Topology, topology_of
from ..impossible import ImpossibleRequests
from ..state import SnapshotState, state_of

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


def report_on(snapshot: Snapshot) -> dict[str, Any]:
    """Return what a snapshot holds as plain dicts, lists, numbers and text (``aucsched-check/1``).

    Its members are:

    - ``nodes``: how many, and by state; ``amounts``: ``cores``, ``memory_mib`` (if limited) and
      each gres by name: on all nodes, and free on nodes that take jobs;
    - ``switches_by_level``: leaves at 0; empty in the linear topology;
    - ``partitions``: nodes and state of each, also of those only nodes name;
    - ``jobs``: pending ones by type (1, 2 and 3 of Soner, section 4.1), by special properties, by
      parts of requests not expressible, and by why no node could ever take them (``ineligible``);
    - ``running``: number, those without estimated end; ``licenses``, ``reservations``, ``limits``;
    - ``notes`` of the source, and of them the site's rules that nothing looks at, ``unread``.
    """
    jobs, state = snapshot.jobs, state_of(snapshot)
    reader = state.reader
    states = {entry.name: entry.state.value for entry in snapshot.partitions}
    return {
        "format": FORMAT,
        "time": snapshot.time,
        "nodes": {
            "count": len(snapshot.nodes),
            "by_state": dict(Counter(node.state.value for node in snapshot.nodes).most_common()),
        },
        "amounts": _amounts(snapshot),
        "switches_by_level": _levels(snapshot, state.topology),
        "partitions": {
            name: {"nodes": int(reader.partition_masks[name].sum()), "state": states.get(name, "up")}
            for name in states | reader.partition_masks
        },
        "jobs": {
            "pending": len(jobs),
            "by_type": {kind.value: sum(job.request.type is kind for job in jobs) for kind in JobType},
            "by_member": {name: sum(map(bool, map(has, jobs))) for name, has in _MEMBERS.items()},
            "unsupported": dict(Counter(text for job in jobs for text in job.unsupported).most_common()),
            "ineligible": dict(_ineligible(state).most_common()),
        },
        "running": {
            "count": len(snapshot.running),
            "without_end": sum(job.end_time is None for job in snapshot.running),
        },
        "licenses": {
            name: {"total": entry.total, "free": entry.free} for name, entry in snapshot.licenses.items()
        },
        "reservations": {entry.name: join(entry.nodes) for entry in snapshot.reservations},
        "limits": {entry.name: _limit_words(entry) for entry in snapshot.limits},
        "notes": list(snapshot.notes),
        "unread": list(snapshot.unread),
    }


def _ineligible(state: SnapshotState) -> Counter[str]:
    impossible = ImpossibleRequests(state)
    read = (state.reader.read(job, 0) for job in state.snapshot.jobs)
    why = (one.detail if isinstance(one, Ineligible) else impossible.why(one) for one in read)
    return Counter(filter(None, why))


def _amounts(snapshot: Snapshot) -> dict[str, dict[str, int]]:
    total: Counter[str] = Counter()
    free: Counter[str] = Counter()
    for node in snapshot.nodes:
        total.update(_by_label(node.total))
        if node.state.takes_jobs:
            free.update(_by_label(node.free))
    return {name: {"total": count, "free": free[name]} for name, count in total.items() if count}


def _limit_words(limit: Limit) -> str:
    most = ", ".join(limited(what, count) for what, count in limit.most.items())
    members = ((member, getattr(limit.jobs, member)) for member in JOB_MEMBERS)
    whose = [f"{member} {' or '.join(names)}" for member, names in members if names]
    each = f", for each {limit.per}" if limit.per else ""
    but = f" except qos {' or '.join(limit.jobs.except_qos)}" if limit.jobs.except_qos else ""
    return f"at most {most} of {' and '.join(whose) or 'all jobs'}{but}{each}"


def _by_label(amounts: Resources) -> dict[str, int]:
    gres = {Resource("gres", kind).label: count for kind, count in amounts.gres.items()}
    return {"cores": amounts.cores, "memory_mib": amounts.memory_mib or 0, **gres}


def _levels(snapshot: Snapshot, topology: Topology) -> dict[str, int]:
    if snapshot.switches is None:
        return {}
    names = {switch.name for switch in snapshot.switches}
    levels = Counter(
        level for name, level in zip(topology.names, topology.level.tolist(), strict=True) if name in names
    )
    return {str(level): count for level, count in sorted(levels.items())}


def render_report(report: Mapping[str, Any], console: Console) -> None:
    """Print a report."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    nodes, jobs, running = report["nodes"], report["jobs"], report["running"]
    table.add_row("nodes", f"{nodes['count']}: {_counts(nodes['by_state'])}")
    for name, amount in report["amounts"].items():
        table.add_row(name, f"{amount['free']} of {amount['total']} free on nodes that take jobs")
    levels = (
        f"{count} {'leaves' if level == '0' else f'at level {level}'}"
        for level, count in report["switches_by_level"].items()
    )
    table.add_row("switches", ", ".join(levels) or "none: nodes in a row")
    partitions = (
        f"{name} ({plural(one['nodes'], 'node')}{'' if one['state'] == 'up' else ', ' + one['state']})"
        for name, one in report["partitions"].items()
    )
    table.add_row("partitions", ", ".join(partitions) or "none")
    without = running["without_end"]
    endless = f", {without} of them without an estimated end" if without else ""
    table.add_row("running", f"{plural(running['count'], 'job')}{endless}")
    table.add_row("pending", plural(jobs["pending"], "job"))
    table.add_row(
        "by request", ", ".join(f"{kind}: {count}" for kind, count in jobs["by_type"].items() if count)
    )
    table.add_row("of these", _counts(jobs["by_member"]) or "none is special")
    for head, member in (("not expressible", "unsupported"), ("ineligible", "ineligible")):
        for text, count in jobs[member].items():
            table.add_row(head, f"{text} ({plural(count, 'job')})")
    for name, amount in report["licenses"].items():
        table.add_row("licences", f"{name}: {amount['free']} of {amount['total']} free")
    for name, where in report["reservations"].items():
        table.add_row("reservation", f"{name} on {where}")
    for name, said in report["limits"].items():
        table.add_row("limit", f"{name}: {said}")
    for note in report["notes"] or ("none",):
        table.add_row("not looked at" if note in report["unread"] else "note", note)
    console.print(table)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


TOPOLOGY_FORMAT = "aucsched-topology/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkLevel:
    """A level's groups: how many, fewest and most nodes of one, links between two nodes of one."""

    level: int
    groups: int
    nodes: tuple[int, int]
    mean_hops: float | None
    most_hops: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkReport:
    """A topology described.

    Attributes:
        kind: ``linear``, ``tree``, or the network's.
        switches, links: of its graph; a linear topology has neither.
        trees: that no switch joins; 1 of all but a forest.
        levels: from the leaves up.
        step_hops: mean links between neighbours in the order; None where nothing is measured.
        snapshot: its nodes (of one core), switches and network.
    """

    kind: str
    switches: int
    links: int
    trees: int
    levels: tuple[NetworkLevel, ...]
    step_hops: float | None
    snapshot: Snapshot

    def title(self) -> str:
        """Return the kind, the sizes and the number of nodes."""
        sizes = _sizes(self.snapshot.network)
        what = f"{self.kind} ({sizes})" if sizes else self.kind
        return f"{what}: {plural(len(self.snapshot.nodes), 'node')}"


def network_report(
    names: Sequence[str], switches: tuple[Switch, ...] | None, network: Network | None
) -> NetworkReport:
    """Describe a topology by its graph; distances where it has at most ``MOST_MEASURED`` nodes.

    Raises:
        InputError: it is no topology of these nodes.
    """
    snapshot = Snapshot(
        nodes=tuple(Node(name=name, cores=1) for name in names), switches=switches, network=network
    )
    topology = topology_of(snapshot)
    trees, vertices, links = 1, len(names), 0
    if network is not None and not network.units:
        vertices, links = extent(network)
    elif snapshot.switches is not None:
        vertices += len(snapshot.switches)
        links = sum(len(one.nodes) + len(one.switches) for one in snapshot.switches)
        trees = vertices - links
    place = np.arange(len(names))
    measured = len(names) <= MOST_MEASURED
    hops = topology.hops(place[:-1], place[1:]) if measured and len(names) > 1 else None
    return NetworkReport(
        kind=network.kind.value if network else "linear" if switches is None else "tree",
        switches=vertices - len(names),
        links=links,
        trees=trees,
        levels=tuple(_network_levels(topology, measured=measured)),
        step_hops=None if hops is None else float(hops.mean()),
        snapshot=snapshot,
    )


def graph_of_snapshot(snapshot: Snapshot) -> Any:
    """Return the graph of a snapshot's network or tree; roots of a forest stand apart."""
    network = snapshot.network
    if network is None or network.units:
        return tree_graph(snapshot.switches or ())
    return graph_of(network)


def _sizes(network: Network | None) -> str:
    if network is None or not network.sizes:
        return ""
    if network.kind is NetworkKind.TORUS:
        return f"{'x'.join(map(str, network.sizes))}, order {network.order}"
    if network.kind is NetworkKind.BLOCKS:
        return f"of {', '.join(map(str, network.sizes))} nodes"
    named = zip(network.sizes, SIZES[network.kind], strict=True)
    return ", ".join(f"{size} {name.replace('_', ' ')}" for size, name in named)


def _network_levels(topology: Topology, *, measured: bool) -> list[NetworkLevel]:
    found: list[NetworkLevel] = []
    sizes = topology.high - topology.low
    within = _within(topology) if measured else None
    for level in range(topology.max_level + 1):
        here = np.flatnonzero(topology.level == level)
        links = None if within is None else within[:, here]
        pairs = 0 if links is None else int(links[1].sum())
        found.append(
            NetworkLevel(
                level=level,
                groups=len(here),
                nodes=(int(sizes[here].min()), int(sizes[here].max())),
                mean_hops=int(links[0].sum()) / pairs if links is not None and pairs else None,
                most_hops=int(links[2].max()) if links is not None and pairs else None,
            )
        )
    return found


def _within(topology: Topology) -> IntArray:
    """Return links between two nodes below each switch: sum, pairs, greatest; shape (3, switches).

    Each pair counts once, at its lowest common switch; a switch then adds those of all below it.
    """
    switches = len(topology.level)
    total, pairs, most = np.zeros((3, switches), np.int64)
    for place, node in enumerate(topology.order[:-1].tolist()):
        others = topology.order[place + 1 :]
        one = np.full(len(others), node)
        hops, common = topology.hops(one, others), topology.common_switch(one, others)
        total += np.bincount(common, hops, switches).astype(np.int64)
        pairs += np.bincount(common, minlength=switches)
        np.maximum.at(most, common, hops)
    for above, below in zip(topology.path.T[-2::-1], topology.path.T[:0:-1], strict=True):
        edge = np.unique(np.stack([above, below], axis=1)[above != below], axis=0)
        np.add.at(total, edge[:, 0], total[edge[:, 1]])
        np.add.at(pairs, edge[:, 0], pairs[edge[:, 1]])
        np.maximum.at(most, edge[:, 0], most[edge[:, 1]])
    return np.stack([total, pairs, most])


def network_document(report: NetworkReport) -> dict[str, Any]:
    """Return a report as plain dicts, lists, numbers and text (``aucsched-topology/1``).

    ``topology`` is the member to put into a snapshot or workload.
    """
    written = written_topology(report.snapshot.switches, report.snapshot.network)
    return {
        "format": TOPOLOGY_FORMAT,
        "kind": report.kind,
        "nodes": len(report.snapshot.nodes),
        "switches": report.switches,
        "links": report.links,
        "step_hops": report.step_hops,
        "levels": [asdict(level) for level in report.levels],
        "order": [node.name for node in report.snapshot.nodes],
        "topology": {"kind": "linear"} if written is None else msgspec.to_builtins(written),
    }


def render_network(report: NetworkReport, console: Console) -> None:
    """Print a report."""
    parts = [report.title()]
    if report.links:
        parts += [plural(report.switches, "switch"), plural(report.links, "link")]
        parts += [f"{report.trees} trees that no switch joins"] if report.trees > 1 else []
    console.print(", ".join(parts), soft_wrap=True)
    if report.step_hops is not None:
        console.print(f"neighbours in the order are {report.step_hops:.2f} links apart in the mean")
    table = Table(box=None, pad_edge=False)
    for title in ("level", "groups", "nodes of one", "links between two of its nodes"):
        table.add_column(title, justify="right")
    for level in report.levels:
        nodes = "-".join(map(str, dict.fromkeys(level.nodes)))
        links = "-" if level.mean_hops is None else f"mean {level.mean_hops:.2f}, at most {level.most_hops}"
        table.add_row(str(level.level), str(level.groups), nodes, links)
    console.print(table)
