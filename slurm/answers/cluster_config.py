"""``scontrol show config``: what the cluster gives jobs that do not say, and which of its rules hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ...cluster.errors import InputError
from ...formats.notes import Notes
from .answer_text import Paragraph
from .partition_rules import DefaultMemory

_LINE = re.compile(r"^(\w+)[ \t]*= ?(.*)$", re.MULTILINE)
_HEAD = "Configuration data as of"
#: AccountingStorageEnforce's words under which limits of QOS and associations hold; ``safe`` implies them.
_ENFORCING = {"limits", "safe", "all"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """What of the configuration bears on one step; None of a member: not known.

    Attributes:
        memory: what a job gets that asks for none, where its partition says nothing.
        counts_memory: jobs use memory up (``SelectTypeParameters=CR_…_Memory``).
        enforces_limits: limits of QOS and associations hold (``AccountingStorageEnforce``).
    """

    memory: DefaultMemory = field(default_factory=DefaultMemory)
    counts_memory: bool | None = None
    enforces_limits: bool | None = None


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
        memory=DefaultMemory(per_cpu=entry.count("DefMemPerCPU"), per_node=entry.count("DefMemPerNode")),
        counts_memory="MEMORY" in entry.text("SelectTypeParameters").upper(),
        enforces_limits=bool(enforced & _ENFORCING) if "AccountingStorageEnforce" in entry.pairs else None,
    )


def backfill_settings(text: str) -> tuple[int | None, float | None]:
    """Return SchedulerParameters' bf_max_job_test (jobs) and bf_interval (s), None where not given.

    Raises:
        InputError: the text is another's, or a value is no number above 0.
    """
    entry = config_of(text)
    pairs = (word.partition("=") for word in entry.text("SchedulerParameters").split(","))
    given = {name.strip(): value.strip() for name, _, value in pairs}
    found: list[int | None] = []
    for name in ("bf_max_job_test", "bf_interval"):
        value = given.get(name)
        if value is not None and not (re.fullmatch(r"[0-9]{1,7}", value) and int(value)):
            path = f"SchedulerParameters {name}"
            raise InputError(f"{value[:60]!r} is not a number above 0", path=path)
        found.append(None if value is None else int(value))
    return found[0], found[1]


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
    yield from (f"SelectTypeParameters={word}" for word in parameters if word.startswith("CR_SOCKET"))
    if entry.text("MCSPlugin") not in ("", "mcs/none"):
        yield f"MCSPlugin={entry.text('MCSPlugin')}"
    for key in ("MaxMemPerNode", "MaxMemPerCPU", "JobDefaults"):
        if entry.text(key) not in ("", "UNLIMITED", "0"):
            yield f"{key}={entry.text(key)}"
