"""Partitions and their limits: ``scontrol show partition`` as text or JSON, or slurmrestd's."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Self

from ...cluster.checks import plain
from ...cluster.errors import InputError
from ...cluster.jobs import Job
from ...cluster.nodes import Partition, PartitionState
from ...cluster.value_types import Choice
from ...formats.hostlist import names_in
from ...formats.notes import Notes
from .answer_record import KeyedRecord, Record, answer_entries
from .answer_text import WORDS, Paragraph
from .versions import note_unknown

_ALL = "ALL"
#: Words for nothing; of 26.05 for a partition that has no mode of its own to stop jobs.
_NOTHING = {"CLUSTER_GLOBAL", "DISABLED", "OFF", "NONE"}
#: Keys of what a partition is, without rules for who may use it.
LIMIT_KEYS = tuple(WORDS["partition_limits"])
_MEMBERS: Mapping[str, Sequence[str]] = {**WORDS["partition_limits"], **WORDS["partition_rules"]}
_FLAT, _GROUPED = ({key: members[form] for key, members in _MEMBERS.items()} for form in range(2))


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultMemory:
    """A job's memory in MiB if it asks for none; both None: all of each node's."""

    per_cpu: int | None = None
    per_node: int | None = None

    @property
    def members(self) -> dict[str, int]:
        """The member of a request that says it; a job asks for memory in one way."""
        if self.per_cpu:
            return {"memory_mib_per_core": self.per_cpu}
        return {"memory_mib_per_node": self.per_node} if self.per_node else {}

    def __bool__(self) -> bool:
        return bool(self.members)

    @classmethod
    def of(cls, entry: Paragraph) -> Self:
        """Return what a partition sets, or the configuration of the cluster; 0 is none."""
        per_cpu, per_node = entry.count("DefMemPerCPU"), entry.count("DefMemPerNode")
        return cls(per_cpu=per_cpu or None, per_node=per_node or None)


def _ignored_rules(entry: Paragraph) -> Iterator[str]:
    """Yield the rules that aucsched ignores; JSON has preemption among them only from 26.05 on."""
    if entry.text("AllowGroups") not in ("", _ALL):
        yield f"AllowGroups={entry.text('AllowGroups')}"
    for key in ("PreemptMode", "SelectTypeParameters", "JobDefaults"):
        words = [word for word in entry.text(key).split(",") if word and word.upper() not in _NOTHING]
        if words:
            yield f"{key}={','.join(words)}"


def _allowed(text: str) -> frozenset[str] | None:
    return None if text.upper() in ("", _ALL) else _names(text)


def _names(text: str) -> frozenset[str]:
    return frozenset(filter(None, (name.strip().lower() for name in text.split(","))))


def _above(account: str, parents: Mapping[str, str]) -> Iterator[str]:
    """Yield an account and those above it, in lower case."""
    found: set[str] = set()
    while account and account not in found:
        found.add(account)
        yield account.lower()
        account = parents.get(account, "")


#: Words of 26.05's ``Exclusive=`` that give whole nodes: ``TOPO`` gives whole blocks of them.
_WHOLE = {"NODE", "TOPO"}
#: Flags of a partition whose rules are not looked at (26.05).
_FLAGS = {"LLN": "LLN=YES", "REQ_RESV": "ReqResv=YES"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFigures:
    """A partition as read, and what of it only the import uses.

    Attributes:
        partition: its limits; ``nodes`` are of the cluster.
        exclusive: its jobs get whole nodes (``OverSubscribe=EXCLUSIVE``, 26.05 ``Exclusive=NODE``).
        exclusive_topo: its jobs get whole blocks (``ExclusiveTopo=YES``, ``Exclusive=TOPO``).
        topology: the name of its topology, where the cluster has several; else empty.
        tier: Slurm starts jobs of a higher tier first, whatever their priority.
        accounts, qos: which may use it, by name in lower case; None: all but the denied.
        denied_accounts, denied_qos: read where no list of allowed ones exists, as in Slurm.
        own_qos: the QOS whose limits hold for all jobs of the partition; empty: none.
        memory: what a job gets that asks for none; empty: the cluster's default.
        ignored: limits that a snapshot does not hold, as Slurm calls them.
    """

    partition: Partition
    exclusive: bool
    exclusive_topo: bool
    topology: str
    tier: int
    accounts: frozenset[str] | None
    qos: frozenset[str] | None
    denied_accounts: frozenset[str]
    denied_qos: frozenset[str]
    own_qos: str
    memory: DefaultMemory
    ignored: tuple[str, ...]

    def refusal(self, job: Job, parents: Mapping[str, str] | None) -> str | None:
        """Return Slurm's word for why a job may not use the partition, None where it may.

        A list of accounts names all below them too. Where no ``parents`` are told, an account may be
        below any that is allowed. Without accounting there is no QOS to look at.
        """
        names = set(_above(job.account, parents or {}))
        is_closed = parents is not None and self.accounts is not None and not names & self.accounts
        if names & self.denied_accounts if self.accounts is None else is_closed:
            return "AccountNotAllowed"
        # Of a job without a limit Slurm tells the default: None is UNLIMITED (tried on 22.05).
        if job.time_limit_s is None and self.partition.max_time_limit_s is not None:
            return "PartitionTimeLimit"
        word = job.qos.lower()
        if word and (word in self.denied_qos if self.qos is None else word not in self.qos):
            return "QOSNotAllowed"
        return None

    def takes_all_of(self, other: Self) -> bool:
        """Return whether jobs that both allow can start here whenever they can in the other."""
        mine, theirs = self.partition, other.partition
        return (
            mine.state is PartitionState.UP
            and {*mine.nodes} >= {*theirs.nodes}
            and (mine.max_nodes or inf) >= (theirs.max_nodes or inf)
            and (mine.max_time_limit_s or inf) >= (theirs.max_time_limit_s or inf)
            and (self.exclusive, self.exclusive_topo) <= (other.exclusive, other.exclusive_topo)
        )


def read_partitions(content: bytes, nodes: Collection[str], notes: Notes) -> tuple[PartitionFigures, ...]:
    """Return the partitions; names of nodes that the cluster does not have are dropped.

    Raises:
        InputError: the answer is malformed or of an unknown shape, or a partition is listed twice.
    """
    entries = answer_entries(content, "PartitionName", "partitions", lambda one: _keys(one, notes))
    return settle_partitions(((partition_of(entry), entry.path) for entry in entries), nodes, notes)


def settle_partitions(
    read: Iterable[tuple[PartitionFigures, str]], nodes: Collection[str], notes: Notes
) -> tuple[PartitionFigures, ...]:
    """Return partitions fitted to the cluster's nodes; ``read`` gives each with its place.

    Raises:
        InputError: a partition is listed twice.
    """
    found: dict[str, PartitionFigures] = {}
    for figures, path in read:
        name = figures.partition.name
        if name in found:
            raise InputError(f"partition {name!r} is listed twice", path=path)
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


def _keys(record: Record, notes: Notes) -> Mapping[str, str]:
    record.require("name")
    note_unknown(record.members, "partitions", notes)
    return _GROUPED if _is_grouped(record) else _FLAT


def _is_grouped(record: Record) -> bool:
    """Whether a record is of 23.02 or later, whose members stand in groups.

    Raises:
        InputError: a member is missing without which limits are not known.
    """
    if not record.has("maximums"):
        record.require("nodes", "state", "maximum_nodes_per_job", "max_time_limit")
        return False
    record.require("nodes", "maximums", "partition")
    limits, nodes, state = (record.child(name) for name in ("maximums", "nodes", "partition"))
    if limits is None or nodes is None or state is None or len(state.texts("state")) != 1:
        raise record.unknown("partition", "a partition with one state")
    limits.require("nodes", "time")
    return True


def partition_of(entry: Paragraph) -> PartitionFigures:
    """Return the partition that ``scontrol show partition`` shows as an entry."""
    exclusive, ignored = _sharing(entry)
    return PartitionFigures(
        partition=_partition(entry),
        exclusive=bool(exclusive & _WHOLE),
        exclusive_topo="TOPO" in exclusive,
        topology=entry.text("Topology"),
        tier=entry.count("PriorityTier") or 0,
        accounts=_allowed(entry.text("AllowAccounts")),
        qos=_allowed(entry.text("AllowQos")),
        denied_accounts=_names(entry.text("DenyAccounts")),
        denied_qos=_names(entry.text("DenyQos")),
        own_qos=entry.text("QoS"),
        memory=DefaultMemory.of(entry),
        ignored=(*_ignored_limits(entry), *ignored, *_ignored_rules(entry)),
    )


def _partition(entry: Paragraph) -> Partition:
    """Return a partition; a limit of 0 nodes or seconds, which lets no job start, closes it."""
    path, name, nodes = entry.path, entry.verbatim("PartitionName"), entry.text("Nodes")
    state = Choice(PartitionState, any_case=True).coerced(entry.text("State"), f"{path} state")
    plain(name, path)
    max_nodes, max_time_s = entry.count("MaxNodes"), entry.duration("MaxTime")
    if 0 in (max_nodes, max_time_s) and state is PartitionState.UP:
        state = PartitionState.INACTIVE
    return Partition(
        name=name,
        nodes=names_in(nodes, f"{path} nodes"),
        max_nodes=max_nodes or None,
        max_time_limit_s=max_time_s or None,
        state=state,
    )


def _ignored_limits(entry: Paragraph) -> Iterator[str]:
    if (least := entry.count("MinNodes") or 0) > 1:
        yield f"MinNodes={least}"
    for key in ("MaxCPUsPerNode", "MaxCPUsPerSocket"):
        if most := entry.count(key):
            yield f"{key}={most}"
    for key in ("MaxMemPerNode", "MaxMemPerCPU"):
        if amount := entry.limit(key):
            yield f"{key}={amount}"


def _sharing(entry: Paragraph) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return what a partition's jobs have for themselves (26.05's words), and what is not read."""
    if not isinstance(entry, KeyedRecord):
        return _sharing_of_text(entry)
    limits = entry.record.child("maximums")
    # Nothing in 22.05's record tells OverSubscribe=EXCLUSIVE.
    return (frozenset(), ()) if limits is None else _sharing_of_groups(entry.record, limits)


def _sharing_of_text(entry: Paragraph) -> tuple[frozenset[str], tuple[str, ...]]:
    sharing = entry.text("OverSubscribe") or entry.text("Shared")
    words = set(filter(None, entry.text("Exclusive").upper().split(",")))
    flags = ("ExclusiveUser", "ReqResv", "LLN")
    ignored = [f"{key}=YES" for key in flags if entry.text(key) == "YES"]
    ignored += _ignored_exclusive(words)
    if sharing.startswith(("FORCE", "YES")):
        ignored.append(f"OverSubscribe={sharing}")
    words |= {"NODE"} if sharing == "EXCLUSIVE" else set()
    words |= {"TOPO"} if entry.text("ExclusiveTopo") == "YES" else set()
    return frozenset(words), tuple(ignored)


def _ignored_exclusive(words: Iterable[str]) -> Iterator[str]:
    """Yield what of 26.05's ``Exclusive=`` is more than whole nodes or blocks, as one user's."""
    yield from (f"Exclusive={word}" for word in sorted(words) if word not in ("NO", "NODE", "TOPO"))


def _sharing_of_groups(record: Record, limits: Record) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the same of JSON; 26.05's has a word for whole nodes, and shares of 0."""
    ignored: list[str] = []
    shared = limits.child("oversubscribe")
    if shared and ((shared.number("jobs") or 0) > 1 or shared.texts("flags")):
        ignored.append("OverSubscribe")
    ignored += (f"OverSubscribe={word}" for word in sorted(_words(record, "oversubscribe") - {"NO"}))
    words = _words(record, "exclusive")
    ignored += _ignored_exclusive(words)
    ignored += (shown for flag, shown in _FLAGS.items() if flag in record.words("flags"))
    if not words and limits.members.get("shares") == 0:
        words = frozenset({"NODE"})
    return words, tuple(ignored)


def _words(record: Record, member: str) -> frozenset[str]:
    """Return the words of a member of 26.05's JSON, upper case; none in earlier answers."""
    state = record.child("partition") or record
    return frozenset(word.upper() for word in record.words(member) | state.words(member))
