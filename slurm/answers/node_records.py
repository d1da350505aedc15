"""Slurm's node records: what a node has, what it says is free, and whether it takes jobs."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...cluster.checks import LARGEST_COUNT, all_plain
from ...cluster.errors import InputError
from ...cluster.nodes import Node, NodeState, Resources
from ...cluster.workload import ClusterWorkload
from ...formats.file_kinds import is_json
from ...formats.hostlist import expand
from ...formats.notes import Notes
from .answer_record import Known, Record, read_document
from .answer_text import WORDS, Paragraph, answered, paragraphs
from .consumables import gres_of_tres, parse_gres, parse_request, settle
from .versions import note_unknown

_BASE = {word: NodeState[state] for word, state in WORDS["node_states"].items()}
_DECIDING = {flag: NodeState[state] for flag, state in WORDS["node_flags"].items()}
#: Flags that leave the base as it is: a planned node is idle until its job starts.
_HARMLESS = {"PLANNED", "REBOOT_CANCELED", "CLOUD", "DYNAMIC_NORM", "DYNAMIC_FUTURE", "RESUME", "UNDRAIN"}
#: What a snapshot with such nodes says in its notes.
THREADS_NOTE = "cores are hardware threads on nodes with several a core; Slurm allocates them core by core"
#: What a snapshot of nodes that differ in weight says in its notes.
WEIGHTS_NOTE = "weights of nodes differ and are not looked at: Slurm takes nodes of lower weight first"


_TEXTS = {"name", "gres", "gres_used", "tres", "tres_used", "features", "state"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFigures:
    """A node as its record says, before running jobs are taken into account.

    Attributes:
        node: CPUs are its ``cores``: hardware threads where Slurm counts those.
        threads: CPUs that an allocated core stands for.
        weight: Slurm's: nodes of lower weight are taken first there.
        inactive: features that Slurm could give it by a reboot.
        is_asleep: it is powered down, or going up or down.
        untold: gres whose use the record does not tell; all of them are in ``free``.
        topology: where Slurm put it by itself (25.05), ``topology:block``; empty if a file does.
    """

    node: Node
    threads: int
    weight: int
    inactive: frozenset[str] = frozenset()
    is_asleep: bool = False
    untold: frozenset[str] = frozenset()
    topology: str = ""


def read_nodes(document: Record, notes: Notes) -> tuple[NodeFigures, ...]:
    """Return the nodes of ``sinfo --json`` (22.05), ``scontrol show nodes --json`` or slurmrestd.

    Raises:
        InputError: there are no node records, or one is not as any Slurm version writes it.
    """
    if "nodes" not in document.members:
        grouped = " (grouped by sinfo: use scontrol show nodes --json)" if document.has("sinfo") else ""
        raise InputError(f"the member 'nodes' is missing{grouped}")
    records = tuple(document.children("nodes"))
    # Slurm writes each member of each node.
    note_unknown(records[0].members if records else (), "nodes", notes)
    nodes = tuple(record.noted("node", partial(_node, record), notes) for record in records)
    if any(node.threads > 1 for node in nodes):
        notes.add("threads", THREADS_NOTE)
    if mixed := [name for name, counts in threads_in_partitions(nodes).items() if len(counts) > 1]:
        text = "differ in ThreadsPerCore: CPUs of their jobs are not rounded up to whole cores"
        notes.unread("threads", f"nodes of {', '.join(sorted(mixed))} {text}")
    if len({node.weight for node in nodes}) > 1:
        notes.add("node weights", WEIGHTS_NOTE)
    return nodes


def threads_in_partitions(nodes: Iterable[NodeFigures]) -> dict[str, set[int]]:
    """Return how many CPUs a core is on the nodes of each partition."""
    found: dict[str, set[int]] = {}
    for one in nodes:
        for name in one.node.partitions:
            found.setdefault(name, set()).add(one.threads)
    return found


def asleep_cores(document: Record) -> dict[str, int]:
    """Return the cores of nodes that Slurm would wake for a job, by name."""
    nodes = (one.node for one in read_nodes(document, Notes()) if one.is_asleep)
    return {node.name: node.free.cores for node in nodes if node.state is NodeState.UNKNOWN}


def empty_machine(content: bytes) -> tuple[ClusterWorkload, Notes]:
    """Return a site's nodes, everything free, from answers of ``read_nodes`` or scontrol's text.

    All of them take jobs: what is down or drained now may have worked while a history was made.

    Raises:
        InputError: as ``read_nodes``, or the text holds no nodes.
    """
    notes = Notes()
    nodes = [figures.node for figures in read_nodes(node_document(content), notes)]
    if not nodes:
        raise InputError("there are no nodes")
    for entry in [entry for entry in notes.entries if entry[0] == "node figures"]:
        # They are about what is in use.
        del notes.entries[entry]
    away = sum(not node.state.is_working for node in nodes)
    if away:
        notes.add("node states", f"nodes that take no jobs now, taken as working: {away}")
    empty = [replace(node, free=node.total, state=NodeState.IDLE) for node in nodes]
    return ClusterWorkload(name="", nodes=empty, notes=notes.texts()), notes


def node_document(content: bytes, known: Known | None = None) -> Record:
    """Return the JSON of nodes, or scontrol's text as the same; ``known``: of the look before.

    Raises:
        InputError: it is neither.
    """
    if is_json(content) or not content.strip():
        return read_document(content) if known is None else known.document(content, "nodes")
    listed = [_members(entry) for entry in paragraphs(answered(content), "NodeName")]
    return Record({"nodes": listed}, "")


def _members(entry: Paragraph) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for member, key in WORDS["node_keys"].items():
        if text := entry.text(key):
            members[member] = text if member in _TEXTS else entry.count(key)
    members["partitions"] = list(filter(None, entry.text("Partitions").split(",")))
    return members


def _node(record: Record, notes: Notes) -> NodeFigures:
    record.require("name", "state", "cpus", "alloc_cpus")
    name = record.text("name")
    if expand(name, record.place("name")) != (name,):
        raise record.unknown("name", "the name of one node")
    total, free = _resources(record, name, notes)
    member = "active_features" if "active_features" in record.members else "features"
    features = _features(record, member)
    all_plain(features, record.place(member))
    partitions = record.texts("partitions")
    all_plain(partitions, record.place("partitions"))
    threads = record.number("threads") or 1
    cores = (record.number("sockets") or 0) * (record.number("cores") or 0)
    return NodeFigures(
        node=Node(
            name=name,
            total=total,
            free=free,
            state=_state(record, name, notes),
            features=features,
            partitions=partitions,
        ),
        # A site may count cores as CPUs on nodes that have threads: then a core is one CPU.
        threads=threads if record.count("cpus") == cores * threads else 1,
        weight=record.number("weight") or 0,
        inactive=_features(record, "features") - features,
        is_asleep=any(word.startswith("POWER") for word in _state_words(record)),
        untold=frozenset(_untold(record, total, notes)),
        topology=record.text("topology"),
    )


def _resources(record: Record, name: str, notes: Notes) -> tuple[Resources, Resources]:
    used = record.count("alloc_cpus")
    if record.count("cpus") == 0:
        raise record.unknown("cpus", "above 0")
    # Cores and memory set aside for the system (CoreSpecCount, MemSpecLimit) are no job's.
    cpus = record.number("effective_cpus") or record.count("cpus")
    if used > cpus:
        notes.add("node figures", f"node {name}: {used} CPUs of {cpus} are allocated: taken as all")
    memory = record.number("real_memory")
    if memory is not None:
        memory = max(0, memory - (record.number("specialized_memory") or 0))
    if "no_consume" in record.text("gres"):
        notes.add("gres", f"node {name}: its no_consume gres are counted as if jobs used them up")
    beyond: list[str] = []
    gres = parse_gres(record.text("gres"), record.place("gres"), beyond)
    for kind in beyond:
        notes.unread("gres", f"node {name}: its {kind} are more than {LARGEST_COUNT}: they are left out")
    all_plain(gres, record.place("gres"))
    for shared in sorted({"mps", "shard"} & {kind.partition(":")[0] for kind in gres}):
        notes.unread(
            "gres", f"{shared} counts by itself: that it takes GPUs from gpu, as in Slurm, is not looked at"
        )
    used_gres = parse_gres(record.text("gres_used"), record.place("gres_used"), [])
    if not used_gres:
        # Plain scontrol show nodes has no GresUsed. AllocTRES lists no type that is free.
        counted, _ = parse_request(record.text("tres"), record.place("tres"))
        in_use = gres_of_tres(record.text("tres_used"), record.place("tres_used"))
        used_gres = dict.fromkeys(counted.keys() & gres.keys(), 0) | in_use
    held, lost = settle(used_gres, gres)
    left_out = {kind.partition(":")[0] for kind in beyond}
    for kind in (kind for kind in lost if kind.partition(":")[0] not in left_out):
        said = f"node {name}: {lost[kind]} {kind} in use are not among its gres {gres or 'none'}"
        notes.add("node figures", said)
    left = None if memory is None else max(0, memory - (record.number("alloc_memory") or 0))
    return (
        Resources(cores=cpus, memory_mib=memory, gres=gres),
        Resources(
            cores=max(0, cpus - used),
            memory_mib=left,
            gres={kind: count - held.get(kind, 0) for kind, count in gres.items()},
        ),
    )


def _untold(record: Record, total: Resources, notes: Notes) -> Iterator[str]:
    """Yield the gres that neither GresUsed nor AllocTRES counts: CfgTRES has those that it does."""
    counted, _ = parse_request(record.text("tres"), record.place("tres"))
    for name in () if record.has("gres_used") else total.gres:
        if name not in counted and name.partition(":")[0] not in counted:
            text = f"records of nodes do not tell how many {name} are in use: only those of jobs are known"
            notes.add("node figures", f"{text} (scontrol -d show nodes tells)")
            yield name


def _features(record: Record, member: str) -> frozenset[str]:
    return frozenset(name for text in record.texts(member) for name in text.split(",") if name)


def _state_words(record: Record) -> set[str]:
    text = " ".join((*record.texts("state"), *record.texts("state_flags"))).upper()
    return {WORDS["node_signs"].get(word, word) for word in re.findall(r"\w+|[^\w\s+]", text)}


def _state(record: Record, name: str, notes: Notes) -> NodeState:
    words = _state_words(record)
    bases = [_BASE[word] for word in words if word in _BASE]
    if len(bases) != 1:
        raise record.unknown("state", f"one of {', '.join(_BASE).lower()}")
    strange = words - _BASE.keys() - _DECIDING.keys() - _HARMLESS - {"DRAIN"}
    if strange:
        notes.add("node states", f"node {name}: {', '.join(sorted(strange))}: not known, so it takes no jobs")
        return NodeState.UNKNOWN
    return _decided(bases[0], words, name, notes)


def _decided(base: NodeState, words: set[str], name: str, notes: Notes) -> NodeState:
    """Return the state that Slurm's base and flags make together."""
    if base in (NodeState.DOWN, NodeState.UNKNOWN):
        return base
    for word, state in _DECIDING.items():
        if word in words and "DRAIN" not in words:
            if state is NodeState.UNKNOWN:
                notes.add("node states", f"node {name}: {word.lower()}: taken as not available now")
            return state
    if "DRAIN" in words:
        busy = base is not NodeState.IDLE or "COMPLETING" in words
        return NodeState.DRAINING if busy else NodeState.DRAINED
    return base
