"""The snapshot file's members and their JSON types, as msgspec decodes them.

Only types are checked here; ranges and names are checked by the types of ``cluster`` on construction.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

FORMAT = "aucsched-snapshot/1"

#: ``4`` is exact, ``[2, 8]`` a range.
SpanWire = int | tuple[int, int]
#: An ISO 8601 time (UTC where it names no zone), or seconds since the epoch.
TimeWire = str | int | float


class _Wire(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What every object of the file has in common: an unknown member is an error."""


class NodeWire(_Wire):
    """One node, or with a hostlist as its name several alike."""

    name: str
    cores: int
    free_cores: int | None = None
    memory_mib: int | None = None
    free_memory_mib: int | None = None
    gres: dict[str, int] = {}
    free_gres: dict[str, int] | None = None
    state: str = "idle"
    features: list[str] = []
    partitions: list[str] = []


class SwitchWire(_Wire):
    """A leaf switch has nodes, another has switches: hostlists."""

    name: str
    nodes: str | None = None
    switches: str | None = None


class TopologyWire(_Wire):
    """The linear topology, a tree of switches, a torus, dragonfly or fat tree by its sizes, or any graph."""

    kind: Literal["linear", "tree", "torus", "dragonfly", "fat-tree", "graph"]
    switches: list[SwitchWire] | None = None
    nodes: str | None = None
    shape: list[int] | None = None
    order: Literal["hilbert", "members"] | None = None
    groups: int | None = None
    routers: int | None = None
    nodes_per_router: int | None = None
    global_links: int | None = None
    levels: int | None = None
    radix: int | None = None
    links: list[tuple[str, str]] | None = None


class JobWire(_Wire):
    """A pending job."""

    id: str
    priority: Any  # a number, read exactly (formats.jsontext decodes with Decimal)
    cores: int | None = None
    nodes: SpanWire | None = None
    cores_per_node: int | None = None
    min_cores_per_node: int = 1
    cores_per_task: int = 1
    gres_per_node: dict[str, SpanWire] = {}
    gres_total: dict[str, SpanWire] = {}
    memory_mib_per_node: int | None = None
    memory_mib_per_core: int | None = None
    exclusive: bool = False
    max_switches: int | None = None
    contiguous: bool = False
    features: list[str] = []
    required_nodes: str | None = None
    excluded_nodes: str | None = None
    licenses: dict[str, int] = {}
    partition: str = ""
    time_limit_s: int | None = None
    submit_time: TimeWire | None = None
    expected_start_time: TimeWire | None = None
    promised_start: TimeWire | None = None
    user: str = ""
    group: str = ""
    account: str = ""
    qos: str = ""
    hold: str | None = None
    unsupported: list[str] = []
    kind: str = "rigid"
    min_nodes: int | None = None
    max_nodes: int | None = None
    speedup: Any = None


class UseWire(_Wire):
    """What a running job holds on a node."""

    cores: int
    gres: dict[str, int] = {}
    memory_mib: int | None = None


class RunningWire(_Wire):
    """A running job; the keys of ``nodes`` are names or hostlists of nodes used alike."""

    id: str
    nodes: dict[str, UseWire]
    end_time: TimeWire | None = None
    user: str = ""
    group: str = ""
    account: str = ""
    qos: str = ""
    partition: str = ""


class LicenseWire(_Wire):
    """A licence's counts."""

    total: int
    free: int | None = None


class PartitionWire(_Wire):
    """A partition's limits."""

    name: str
    nodes: str | None = None
    max_nodes: int | None = None
    max_time_limit_s: int | None = None
    state: str = "up"


class ReservationWire(_Wire):
    """An advance reservation."""

    name: str
    nodes: str
    start: TimeWire
    end: TimeWire
    users: list[str] = []


class JobSetWire(_Wire):
    """A set of jobs: of one name, or one of several, of each member that is given."""

    user: str | list[str] = []
    group: str | list[str] = []
    account: str | list[str] = []
    qos: str | list[str] = []
    partition: str | list[str] = []


class LimitWire(_Wire):
    """What the jobs of a set may hold together at most, or those of each user or account."""

    name: str
    max: dict[str, int]
    jobs: JobSetWire | None = None
    per: str | None = None


class SnapshotWire(_Wire):
    """The whole file."""

    format: str
    nodes: list[NodeWire]
    jobs: list[JobWire] = []
    time: TimeWire | None = None
    topology: TopologyWire | None = None
    running: list[RunningWire] = []
    licenses: dict[str, LicenseWire] = {}
    partitions: list[PartitionWire] = []
    reservations: list[ReservationWire] = []
    limits: list[LimitWire] = []
    notes: list[str] = []
    unread: list[str] = []
