"""slurm.conf and gres.conf: a site's nodes, partitions and defaults, without asking its Slurm."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ...cluster.checks import LARGEST_COUNT, all_plain, plain
from ...cluster.errors import InputError
from ...cluster.nodes import License, Node, NodeState, Resources
from ...formats.hostlist import charge, expand
from ...formats.notes import Notes
from ..answers.answer_text import Paragraph, count_of, joined_lines
from ..answers.consumables import counted_license, gres_kinds, license_items, parse_gres
from ..answers.node_records import THREADS_NOTE
from ..answers.partitions import (
    LIMIT_KEYS,
    DefaultMemory,
    PartitionFigures,
    partition_of,
    settle_partitions,
)

_PAIR = re.compile(r'(?<![\w/])([A-Za-z][\w/]*+)\s*+=\s*+("[^"]*"|[^\s"]*+)')
#: No line of a site has more settings; each is copied to every line that a DEFAULT line is for.
_MOST_PAIRS = 100
_COMMENT = re.compile(r"(?<!\\)#.*")
#: Slurm's spellings of one key.
_SAME_KEY = {"features": "feature", "procs": "cpus", "shared": "oversubscribe", "priority": "prioritytier"}
_NODE_KEYS = {
    "nodename",
    "cpus",
    "boards",
    "sockets",
    "socketsperboard",
    "corespersocket",
    "threadspercore",
    "realmemory",
    "feature",
    "gres",
    "state",
    "corespeccount",
    "memspeclimit",
}
#: Of a node, without a bearing on which jobs it holds.
_NODE_HARMLESS = {"nodeaddr", "nodehostname", "bcastaddr", "port", "reason", "tmpdisk", "cpubind"}
_STATES = {
    "unknown": NodeState.IDLE,
    "idle": NodeState.IDLE,
    "cloud": NodeState.IDLE,
    "down": NodeState.DOWN,
    "drain": NodeState.DRAINED,
    "fail": NodeState.FAIL,
    "failing": NodeState.FAIL,
    "future": NodeState.UNKNOWN,
}
#: Settings that decide who starts when, which a workload does not carry: its policy decides.
_NOT_MODELLED = ("prioritytype", "preempttype", "schedulerparameters", "accountingstorageenforce")


@dataclass(frozen=True, kw_only=True)
class SlurmConf:
    """A site as its configuration describes it.

    Attributes:
        nodes: in the file's order, all free.
        partitions: their limits; nodes of the site only.
        licenses: all free.
        default_partition: for jobs that name none; None where there is none.
        memory: what a job gets that asks for none, where its partition says nothing.
        times_s: seconds that a job may run which gives no limit, by partition; None: any.
        counts_memory: memory is used up by jobs (``SelectTypeParameters=CR_…_Memory``).
    """

    nodes: tuple[Node, ...]
    partitions: tuple[PartitionFigures, ...]
    licenses: Mapping[str, License]
    default_partition: str | None
    memory: DefaultMemory
    times_s: Mapping[str, int | None]
    counts_memory: bool

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the nodes."""
        return frozenset(node.name for node in self.nodes)

    @cached_property
    def gres_kinds(self) -> frozenset[str]:
        """The names, without types, of the gres that nodes have."""
        return gres_kinds(self.nodes)


def parse_slurm_conf(text: str, notes: Notes) -> SlurmConf:
    """Return the site that a slurm.conf describes.

    Raises:
        InputError: a line is none of slurm.conf's, a count is no number, or there are no nodes.
    """
    settings, lines = _lines(text, notes)
    nodes: dict[str, Node] = {}
    for line in lines["nodename"]:
        for node in _nodes(line, notes):
            if node.name in nodes:
                raise InputError(f"node {node.name!r} is listed twice", path=line.path)
            nodes[node.name] = node
    if not nodes:
        raise InputError("there are no NodeName lines")
    for key in _NOT_MODELLED:
        if value := settings.get(key):
            notes.add("slurm.conf", f"slurm.conf: {key}={value[:60]} is not looked at: a policy decides")
    chosen = [_paragraph(line, nodes) for line in lines["partitionname"]]
    for entry in chosen:
        for key in sorted(entry.pairs.keys() - set(_PARTITION_KEYS)):
            notes.add("partitions", f"partition {entry.pairs['PartitionName']}: {key} is not looked at")
    if len({entry.count("PriorityTier") or 0 for entry in chosen}) > 1:
        notes.add("partitions", "PriorityTier of the partitions is not looked at: priorities decide")
    default = [entry.pairs["PartitionName"] for entry in chosen if entry.text("Default") == "YES"]
    cluster = Paragraph({key: settings.get(key.lower(), "") for key in _PARTITION_KEYS}, "slurm.conf")
    return SlurmConf(
        nodes=tuple(nodes.values()),
        partitions=settle_partitions(((partition_of(entry), entry.path) for entry in chosen), nodes, notes),
        licenses=_licenses(settings.get("licenses", "")),
        default_partition=default[-1] if default else None,
        memory=DefaultMemory.of(cluster),
        times_s={entry.pairs["PartitionName"]: _default_time_s(entry) for entry in chosen},
        counts_memory="memory" in settings.get("selecttypeparameters", "").lower(),
    )


def _lines(text: str, notes: Notes) -> tuple[dict[str, str], dict[str, list[Paragraph]]]:
    """Return settings, and node and partition lines; ``DEFAULT`` ones change those after them."""
    settings: dict[str, str] = {}
    lines: dict[str, list[Paragraph]] = {"nodename": [], "partitionname": []}
    defaults: dict[str, dict[str, str]] = {kind: {} for kind in lines}
    for number, content in joined_lines(text, _COMMENT):
        path = f"line {number}"
        if content.lower().startswith("include"):
            notes.add("slurm.conf", f"{path}: {content[:60]!r}: included files are not read")
            continue
        line = Paragraph(_pairs(content, path), path)
        first = next(iter(line.pairs))
        if first in defaults and line.pairs[first].upper() == "DEFAULT":
            defaults[first] |= {key: value for key, value in line.pairs.items() if key != first}
        elif first in defaults:
            lines[first].append(Paragraph({**defaults[first], **line.pairs}, path))
        elif first in ("downnodes", "nodeset"):
            notes.add("slurm.conf", f"{path}: {content[:60]!r} is not read")
        elif first not in ("frontendname", "slurmctldhost"):
            settings |= line.pairs
    return settings, lines


def _pairs(content: str, path: str) -> dict[str, str]:
    if not _PAIR.match(content) or _PAIR.sub("", content).strip():
        raise InputError(f"{content[:60]!r} is not Key=Value", path=path)
    found = ((key.lower(), value.strip('"')) for key, value in _PAIR.findall(content))
    pairs = {_SAME_KEY.get(key, key): value for key, value in found}
    if len(pairs) > _MOST_PAIRS:
        raise InputError(f"{len(pairs)} settings are above the limit of {_MOST_PAIRS} a line", path=path)
    return pairs


def _nodes(line: Paragraph, notes: Notes) -> Iterator[Node]:
    """Yield the nodes of a NodeName line."""
    for key in sorted(line.pairs.keys() - _NODE_KEYS - _NODE_HARMLESS):
        notes.add("nodes", f"slurm.conf: {key} of nodes is not looked at")
    state = line.pairs.get("state", "UNKNOWN").lower()
    if state == "cloud":
        notes.add("nodes", f"slurm.conf: {line.path}: cloud nodes are taken as there from the beginning")
    if state not in _STATES:
        raise InputError(f"{state!r} is not one of {', '.join(_STATES)}", path=f"{line.path} state")
    beyond: list[str] = []
    gres = parse_gres(line.pairs.get("gres", ""), f"{line.path} gres", beyond)
    for kind in beyond:
        notes.unread("gres", f"slurm.conf: {line.path}: {kind} are above {LARGEST_COUNT}: left out")
    features = frozenset(filter(None, line.pairs.get("feature", "").split(",")))
    all_plain((*gres, *features), line.path)
    memory = None
    if "realmemory" in line.pairs:
        memory = max(0, (line.count("realmemory") or 0) - (line.count("memspeclimit") or 0))
    amount = Resources(cores=_cpus(line, notes), memory_mib=memory, gres=gres)
    names = expand(line.pairs["nodename"], f"{line.path} nodename")
    charge(len(names) * len(amount.gres), line.path)
    for name in names:
        yield Node(name=name, total=amount, free=amount, state=_STATES[state], features=features)


def _cpus(line: Paragraph, notes: Notes) -> int:
    """Return a node's CPUs: as written, or sockets × cores × threads; less those set aside."""
    threads = line.count("threadspercore") or 1
    sockets = line.count("sockets") or (line.count("boards") or 1) * (line.count("socketsperboard") or 1)
    cores = sockets * (line.count("corespersocket") or 1)
    told = line.count("cpus")
    cpus = cores * threads if told is None else told
    per_core = threads if cpus == cores * threads else 1
    if per_core > 1:
        notes.unread("threads", THREADS_NOTE)
    kept = (line.count("corespeccount") or 0) * per_core
    if 0 < cpus <= kept:
        raise InputError(f"CoreSpecCount keeps {kept} CPUs of {cpus}", path=line.path)
    return cpus - kept


def _paragraph(line: Paragraph, nodes: Mapping[str, Node]) -> Paragraph:
    """Return a PartitionName line as ``scontrol show partition`` would print it."""
    spelt = {key.lower(): key for key in _PARTITION_KEYS}
    pairs = {spelt.get(key, key): value for key, value in line.pairs.items()}
    for key in pairs.keys() & {"DefaultTime", "OverSubscribe", "Exclusive", *_YES_OR_NO}:
        # Slurm ignores their case.
        word = pairs[key].upper()
        pairs[key] = "YES" if key in _YES_OR_NO and word in {"TRUE", "UP", "1"} else word
    pairs["State"] = pairs.get("State", "UP")
    if pairs.get("Nodes", "").upper() == "ALL":
        pairs["Nodes"] = ",".join(nodes)
    return Paragraph(pairs, line.path)


_YES_OR_NO = ("Default", "ExclusiveTopo", "ExclusiveUser", "LLN", "ReqResv")
_PARTITION_KEYS = (*LIMIT_KEYS, "DefaultTime", "OverSubscribe", "Exclusive", *_YES_OR_NO)


def _default_time_s(entry: Paragraph) -> int | None:
    """Return the time limit of a partition's job that gives none: its default, else its longest."""
    time_s = entry.duration("DefaultTime")
    return entry.duration("MaxTime") if time_s is None else time_s


def _licenses(text: str) -> dict[str, License]:
    found: dict[str, License] = {}
    for item in filter(None, (item for _, item in license_items(text))):
        counted = counted_license(item)
        if counted is None:
            raise InputError(f"{item[:60]!r} is not a licence", path="Licenses")
        name, total = counted
        plain(name, "Licenses")
        found[name] = License(total=total, free=total)
    return found


def fit_gres(conf: SlurmConf, text: str, notes: Notes) -> SlurmConf:
    """Return the site with no more gres on a node than its gres.conf has.

    slurm.conf says what a node has; with less in gres.conf Slurm would close the node, and here the
    lesser count stands.

    Raises:
        InputError: a line is none of gres.conf's.
    """
    counts: dict[str, Counter[str]] = {}
    for number, content in joined_lines(text, _COMMENT):
        path = f"line {number}"
        line = Paragraph(_pairs(content, path), path)
        if "name" in line.pairs:
            # How many devices File=/dev/nvidia[0-3] names.
            files = line.pairs.get("file", line.pairs.get("multiplefiles", "")).rpartition("/")[2]
            devices = str(len(expand(files, path)) if files else 1)
            count = count_of(line.text("count") or devices)
            if count is None:
                raise line.unknown("count", "a number as Slurm writes it")
            for node in expand(line.pairs["nodename"], path) if "nodename" in line.pairs else ():
                counts.setdefault(node, Counter())[line.pairs["name"]] += count
    return replace(
        conf, nodes=tuple(_with_less(node, counts.get(node.name, {}), notes) for node in conf.nodes)
    )


def _with_less(node: Node, counts: Mapping[str, int], notes: Notes) -> Node:
    gres = dict(node.total.gres)
    for kind in dict.fromkeys(name.partition(":")[0] for name in gres):
        if kind not in counts:
            continue
        count = counts[kind]
        names = [name for name in gres if name.partition(":")[0] == kind]
        surplus = sum(gres[name] for name in names) - count
        if names and surplus > 0:
            notes.add(
                "gres", f"node {node.name}: gres.conf has {count} {kind}, {surplus} fewer than slurm.conf"
            )
        for name in reversed(names):
            cut = min(max(0, surplus), gres[name])
            gres[name] -= cut
            surplus -= cut
    amount = replace(node.total, gres=gres)
    return replace(node, total=amount, free=amount)
