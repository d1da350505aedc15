"""``--topology``: a snapshot or workload on another network than its file's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ..cluster.errors import errors_in
from ..cluster.option_fields import Option
from ..cluster.text import plural
from .built_options import record_options
from .outputs import note

if TYPE_CHECKING:
    from ..cluster.snapshot import Snapshot
    from ..cluster.workload import ClusterWorkload

#: Members of arriving jobs that only negotiations read.
_NEGOTIATED = ("not_before_s", "deadline_s", "budget_core_h")

T = TypeVar("T", "Snapshot", "ClusterWorkload")


@dataclass(kw_only=True)
class TopologyOption:
    """Which network the nodes are on."""

    topology: Option[str | None] = Option(
        "Put its nodes on another network in the file's order: linear, or what aucsched topology reads "
        "(a file, torus:16x8x8, dragonfly:9x4x2x2, fat-tree:3x16, blocks:8x18).",
        unit="TOPOLOGY",
    )


topology_option = record_options(TopologyOption)


def with_topology(read: T, source: str | None) -> T:
    """Return a snapshot or workload with its nodes on a network; as it is where none is named.

    Raises:
        InputError: the network cannot be read, or is none of these nodes.
    """
    if source is None:
        return read
    from ..formats.notes import Notes
    from ..slurm.answers.topology_any import laid_on
    from .snapshot import tell

    notes = Notes()
    with errors_in(source):
        made = laid_on(read, source, notes)
    tell(notes.summary())
    return made


def note_unread(workload: ClusterWorkload) -> None:
    """Say which members of its jobs no simulation of nodes looks at."""
    for name in _NEGOTIATED:
        if count := sum(getattr(arriving, name) is not None for arriving in workload.jobs):
            note(f"{name} of {plural(count, 'job')} is not looked at: aucsched negotiate honours it")
