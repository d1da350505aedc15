"""What a partition allows and gives: accounts, QOS, memory by default; from scontrol's text or JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from .answer_record import INFINITE, Record
from .answer_text import Paragraph

_ALL = "ALL"
#: Words of 26.05 for a partition that has no mode of its own to stop jobs.
_NO_MODES = {"CLUSTER_GLOBAL", "DISABLED", "OFF"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultMemory:
    """The memory that a job gets which asks for none, in MiB; neither: all of each node's."""

    per_cpu: int | None = None
    per_node: int | None = None

    def __bool__(self) -> bool:
        return bool(self.per_cpu or self.per_node)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRules:
    """A partition's rules about its jobs.

    Attributes:
        accounts, qos: which may use it, by name in lower case; None: all but those denied.
        denied_accounts, denied_qos: looked at where no list of allowed ones stands, as in Slurm.
        own_qos: the QOS whose limits hold for all jobs of the partition; empty: none.
        memory: what a job gets that asks for none; empty: the cluster's default.
    """

    accounts: frozenset[str] | None = None
    qos: frozenset[str] | None = None
    denied_accounts: frozenset[str] = frozenset()
    denied_qos: frozenset[str] = frozenset()
    own_qos: str = ""
    memory: DefaultMemory = field(default_factory=DefaultMemory)

    def refusal(self, accounts: frozenset[str], qos: str) -> str | None:
        """Return Slurm's word for why a job may not use the partition, None where it may.

        Args:
            accounts: the job's account and those above it; a list of accounts names all below them too.
            qos: the job's QOS; empty where there is no accounting, and then not looked at (tried on 22.05).
        """
        names = frozenset(name.lower() for name in accounts)
        if names & self.denied_accounts if self.accounts is None else not names & self.accounts:
            return "AccountNotAllowed"
        word = qos.lower()
        if not word:
            return None
        if word in self.denied_qos if self.qos is None else word not in self.qos:
            return "QOSNotAllowed"
        return None


def rules_of_text(entry: Paragraph) -> PartitionRules:
    """Return the rules that ``scontrol show partition`` prints."""
    return PartitionRules(
        accounts=_allowed(entry.text("AllowAccounts")),
        qos=_allowed(entry.text("AllowQos")),
        denied_accounts=_names(entry.text("DenyAccounts")),
        denied_qos=_names(entry.text("DenyQos")),
        own_qos=entry.text("QoS"),
        memory=DefaultMemory(per_cpu=entry.count("DefMemPerCPU"), per_node=entry.count("DefMemPerNode")),
    )


def ignored_rules_of_text(entry: Paragraph) -> Iterator[str]:
    """Yield the rules that nothing here looks at, as Slurm writes them."""
    if entry.text("AllowGroups") not in ("", _ALL):
        yield f"AllowGroups={entry.text('AllowGroups')}"
    mode = entry.text("PreemptMode")
    if mode not in ("", "OFF"):
        yield f"PreemptMode={mode}"
    for key in ("SelectTypeParameters", "JobDefaults"):
        if entry.text(key):
            yield f"{key}={entry.text(key)}"


def rules_of_flat(record: Record) -> PartitionRules:
    """Return the rules of a record of 22.05's slurmrestd."""
    return PartitionRules(
        accounts=_allowed(record.text("allowed_accounts")),
        qos=_allowed(record.text("allowed_qos")),
        denied_accounts=_names(record.text("denied_accounts")),
        denied_qos=_names(record.text("denied_qos")),
        own_qos=record.text("qos"),
        memory=_memory(record, "default_memory_per_cpu", "default_memory_per_node"),
    )


def ignored_rules_of_flat(record: Record) -> Iterator[str]:
    """Yield the rules that nothing here looks at."""
    if record.text("allowed_groups") not in ("", _ALL):
        yield f"AllowGroups={record.text('allowed_groups')}"
    modes = [mode for mode in record.texts("preemption_mode") if mode.lower() not in ("disabled", "off")]
    if modes:
        yield f"PreemptMode={','.join(modes)}"


def rules_of_groups(record: Record) -> PartitionRules:
    """Return the rules of a record of 23.02 and later, whose members stand in groups."""
    accounts, qos = record.child("accounts"), record.child("qos")
    defaults = record.child("defaults")
    memory = DefaultMemory()
    if defaults is not None:
        memory = _memory(defaults, "partition_memory_per_cpu", "partition_memory_per_node")
    return PartitionRules(
        accounts=_allowed(_text(accounts, "allowed")),
        qos=_allowed(_text(qos, "allowed")),
        denied_accounts=_names(_text(accounts, "deny")),
        denied_qos=_names(_text(qos, "deny")),
        own_qos=_text(qos, "assigned"),
        memory=memory,
    )


def ignored_rules_of_groups(record: Record) -> Iterator[str]:
    """Yield the rules that nothing here looks at; only from 26.05 on is preemption among them."""
    groups = _text(record.child("groups"), "allowed")
    if groups not in ("", _ALL):
        yield f"AllowGroups={groups}"
    jobs = _text(record.child("defaults"), "job")
    if jobs:
        yield f"JobDefaults={jobs}"
    if kinds := [kind for kind in record.texts("select_type") if kind != "NONE"]:
        yield f"SelectTypeParameters={','.join(kinds)}"
    if modes := [mode for mode in record.texts("preempt_mode") if mode not in _NO_MODES]:
        yield f"PreemptMode={','.join(modes)}"


def _text(record: Record | None, member: str) -> str:
    return "" if record is None else ",".join(record.texts(member))


def _memory(record: Record, per_cpu: str, per_node: str) -> DefaultMemory:
    def amount(member: str) -> int | None:
        value = record.number_or_infinite(member)
        return None if value is None or value == INFINITE else int(value) or None

    return DefaultMemory(per_cpu=amount(per_cpu), per_node=amount(per_node))


def _allowed(text: str) -> frozenset[str] | None:
    return None if text.upper() in ("", _ALL) else _names(text)


def _names(text: str) -> frozenset[str]:
    return frozenset(filter(None, (name.strip().lower() for name in text.split(","))))


def above(account: str, parents: Mapping[str, str]) -> frozenset[str]:
    """Return an account and those above it."""
    found: set[str] = set()
    while account and account not in found:
        found.add(account)
        account = parents.get(account, "")
    return frozenset(found)
