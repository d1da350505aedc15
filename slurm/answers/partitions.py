"""Partitions and their limits, from ``scontrol show partition`` as text or JSON, or from slurmrestd."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...cluster.checks import plain
from ...cluster.errors import InputError
from ...cluster.nodes import Partition, PartitionState
from ...formats.hostlist import expand
from ...formats.notes import Notes
from .answer_record import INFINITE, Record, is_json, read_document
from .answer_text import Paragraph, paragraphs
from .partition_rules import (
    PartitionRules,
    ignored_rules_of_flat,
    ignored_rules_of_groups,
    ignored_rules_of_text,
    rules_of_flat,
    rules_of_groups,
    rules_of_text,
)

_MINUTE_S = 60
#: What 22.05's slurmrestd writes for a limit that is not there.
_NO_LIMIT = -1
#: Words of 26.05's ``Exclusive=`` that give whole nodes: ``TOPO`` gives whole blocks of them.
_WHOLE = {"NODE", "TOPO"}
#: Flags of a partition whose rules are not looked at (26.05).
_FLAGS = {"LLN": "LLN=YES", "REQ_RESV": "ReqResv=YES"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFigures:
    """A partition as read, and what of it only the import uses.

    Attributes:
        partition: its limits; ``nodes`` are of the cluster.
        exclusive: its jobs get whole nodes (``OverSubscribe=EXCLUSIVE``, 26.05: ``Exclusive=NODE``).
        tier: Slurm starts jobs of a higher tier first, whatever their priority.
        rules: whose jobs it takes and what they get.
        ignored: limits that a snapshot does not hold, as Slurm calls them.
    """

    partition: Partition
    exclusive: bool
    tier: int
    rules: PartitionRules
    ignored: tuple[str, ...]


def read_partitions(content: bytes, nodes: Collection[str], notes: Notes) -> tuple[PartitionFigures, ...]:
    """Return the partitions; names of nodes that the cluster does not have are dropped.

    Raises:
        InputError: the answer is malformed or of an unknown shape, or a partition stands twice.
    """
    return settle_partitions(_json(content) if is_json(content) else _text(content), nodes, notes)


def settle_partitions(
    read: Iterable[tuple[PartitionFigures, str]], nodes: Collection[str], notes: Notes
) -> tuple[PartitionFigures, ...]:
    """Return partitions fitted to the cluster's nodes; ``read`` gives each with its place.

    Raises:
        InputError: a partition stands twice.
    """
    found: dict[str, PartitionFigures] = {}
    for figures, path in read:
        name = figures.partition.name
        if name in found:
            raise InputError(f"partition {name!r} stands twice", path=path)
        for limit in figures.ignored:
            notes.unread("partitions", f"partition {name}: {limit} is not looked at")
        found[name] = replace(figures, partition=_known(figures.partition, nodes, notes))
    return tuple(found.values())


def _known(partition: Partition, nodes: Collection[str], notes: Notes) -> Partition:
    known = tuple(name for name in partition.nodes if name in nodes)
    if dropped := len(partition.nodes) - len(known):
        first = next(name for name in partition.nodes if name not in nodes)
        text = (
            f"partition {partition.name}: nodes not of the cluster are dropped: {dropped}, the first {first}"
        )
        notes.add("partitions", text)
    return replace(partition, nodes=known)


def _made(
    name: str, nodes: str, state: str, max_nodes: int | None, max_time_s: int | None, path: str
) -> Partition:
    """Return a partition; a limit of 0 nodes or seconds, which lets no job start, closes it."""
    try:
        state_known = PartitionState(state.lower())
    except ValueError as error:
        wanted = ", ".join(known.value for known in PartitionState)
        raise InputError(f"{state!r} is not one of {wanted}", path=f"{path} state") from error
    plain(name, path)
    if 0 in (max_nodes, max_time_s) and state_known is PartitionState.UP:
        state_known = PartitionState.INACTIVE
    return Partition(
        name=name,
        nodes=expand(nodes, f"{path} nodes") if nodes else (),
        max_nodes=max_nodes or None,
        max_time_limit_s=max_time_s or None,
        state=state_known,
    )


def _text(content: bytes) -> Iterator[tuple[PartitionFigures, str]]:
    for entry in paragraphs(content.decode(errors="replace"), "PartitionName"):
        yield partition_of(entry), entry.path


def partition_of(entry: Paragraph) -> PartitionFigures:
    """Return the partition that ``scontrol show partition`` prints as an entry."""
    sharing = entry.text("OverSubscribe") or entry.text("Shared")
    partition = _made(
        entry.pairs["PartitionName"],
        entry.text("Nodes"),
        entry.text("State"),
        entry.count("MaxNodes"),
        entry.duration("MaxTime"),
        entry.path,
    )
    return PartitionFigures(
        partition=partition,
        exclusive=sharing == "EXCLUSIVE"
        or bool(_WHOLE & _exclusive_words(entry))
        or entry.text("ExclusiveTopo") == "YES",
        tier=entry.count("PriorityTier") or 0,
        rules=rules_of_text(entry),
        ignored=(*_ignored_in(entry, sharing), *ignored_rules_of_text(entry)),
    )


def _ignored_in(entry: Paragraph, sharing: str) -> Iterator[str]:
    if (least := entry.count("MinNodes") or 0) > 1:
        yield f"MinNodes={least}"
    for key in ("MaxCPUsPerNode", "MaxCPUsPerSocket"):
        if entry.count(key):
            yield f"{key}={entry.pairs[key]}"
    for key in ("MaxMemPerNode", "MaxMemPerCPU"):
        if entry.text(key) not in ("", "UNLIMITED", "0"):
            yield f"{key}={entry.pairs[key]}"
    flags = ("ExclusiveUser", "ExclusiveTopo", "ReqResv", "LLN")
    yield from (f"{key}=YES" for key in flags if entry.text(key) == "YES")
    yield from _ignored_exclusive(_exclusive_words(entry))
    if sharing.startswith(("FORCE", "YES")):
        yield f"OverSubscribe={sharing}"


def _exclusive_words(entry: Paragraph) -> frozenset[str]:
    return frozenset(filter(None, entry.text("Exclusive").upper().split(",")))


def _ignored_exclusive(words: frozenset[str]) -> Iterator[str]:
    """Yield what of 26.05's ``Exclusive=`` is more than whole nodes, as one user's or whole blocks."""
    yield from (f"Exclusive={word}" for word in sorted(words - {"NO", "NODE"}))


def _json(content: bytes) -> Iterator[tuple[PartitionFigures, str]]:
    document = read_document(content)
    if "partitions" not in document.members:
        raise InputError("the member 'partitions' is missing")
    for record in document.children("partitions"):
        record.require("name")
        if not record.text("name"):
            raise record.unknown("name", "a partition's name")
        yield (_grouped(record) if record.has("maximums") else _flat(record)), record.path


def _flat(record: Record) -> PartitionFigures:
    """Read 22.05's record, all members of which stand side by side."""
    record.require("nodes", "state", "maximum_nodes_per_job", "max_time_limit")
    minutes = _limit(record, "max_time_limit")
    partition = _made(
        record.text("name"),
        record.text("nodes"),
        record.text("state"),
        _limit(record, "maximum_nodes_per_job"),
        None if minutes is None else minutes * _MINUTE_S,
        record.path,
    )
    # Nothing in it tells OverSubscribe=EXCLUSIVE.
    return PartitionFigures(
        partition=partition,
        exclusive=False,
        tier=record.number("priority_tier") or 0,
        rules=rules_of_flat(record),
        ignored=(
            *_ignored(record, (("min nodes per job", "MinNodes"),), 1),
            *_ignored(record, (("maximum_cpus_per_node", "MaxCPUsPerNode"),), 0),
            *ignored_rules_of_flat(record),
        ),
    )


def _grouped(record: Record) -> PartitionFigures:
    """Read a record of 23.02 and later, whose members stand in groups."""
    record.require("nodes", "maximums", "partition")
    limits, nodes, state = (record.child(name) for name in ("maximums", "nodes", "partition"))
    if limits is None or nodes is None or state is None or len(state.texts("state")) != 1:
        raise record.unknown("partition", "a partition with one state")
    limits.require("nodes", "time")
    minutes = _limit(limits, "time")
    partition = _made(
        record.text("name"),
        nodes.text("configured"),
        state.texts("state")[0],
        _limit(limits, "nodes"),
        None if minutes is None else minutes * _MINUTE_S,
        record.path,
    )
    priority = record.child("priority")
    return PartitionFigures(
        partition=partition,
        exclusive=_gives_whole_nodes(record, limits),
        tier=(priority.number("tier") if priority else None) or 0,
        rules=rules_of_groups(record),
        ignored=(*_ignored_groups(record, limits), *ignored_rules_of_groups(record)),
    )


def _gives_whole_nodes(record: Record, limits: Record) -> bool:
    """Whether a partition's jobs get whole nodes; 26.05's JSON has a word for it, and shares of 0."""
    words = _words(record, "exclusive")
    return bool(words & _WHOLE) if words else limits.members.get("shares") == 0


def _words(record: Record, member: str) -> frozenset[str]:
    """Return the words of a member of 26.05's JSON, upper case; none in earlier answers."""
    state = record.child("partition") or record
    return frozenset(word.upper() for word in record.words(member) | state.words(member))


def _ignored_groups(record: Record, limits: Record) -> Iterator[str]:
    if least := record.child("minimums"):
        yield from _ignored(least, (("nodes", "MinNodes"),), 1)
    per_node = ("cpus_per_node", "MaxCPUsPerNode"), ("cpus_per_socket", "MaxCPUsPerSocket")
    memory = ("partition_memory_per_cpu", "MaxMemPerCPU"), ("partition_memory_per_node", "MaxMemPerNode")
    yield from _ignored(limits, (*per_node, *memory), 0)
    shared = limits.child("oversubscribe")
    if shared and ((shared.number("jobs") or 0) > 1 or shared.texts("flags")):
        yield "OverSubscribe"
    words = _words(record, "oversubscribe") - {"NO"}
    yield from (f"OverSubscribe={word}" for word in sorted(words))
    yield from _ignored_exclusive(_words(record, "exclusive"))
    yield from (shown for flag, shown in _FLAGS.items() if flag in record.words("flags"))
    if record.text("topology"):
        yield f"Topology={record.text('topology')}"


def _ignored(record: Record, members: Sequence[tuple[str, str]], above: int) -> Iterator[str]:
    for member, shown in members:
        value = _limit(record, member)
        if value is not None and value > above:
            yield f"{shown}={value}"


def _limit(record: Record, member: str) -> int | None:
    """Return a limit, None for none: -1 in 22.05, infinite or not set later."""
    if record.members.get(member) == _NO_LIMIT:
        return None
    value = record.number_or_infinite(member)
    return None if value is None or value == INFINITE else int(value)
