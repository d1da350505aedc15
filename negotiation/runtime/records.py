"""What both schedulers say about jobs: map entries, reservations, reports (Nagendra, sections 5.1 and 6.2).

These are structs rather than dataclasses because messages are made of them: thousands a second are built,
encoded and decoded.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from ...cluster.jobs import JobKind


class Hint(StrEnum):
    """What limits a job (``enum job_hint``)."""

    NONE = "none"
    COMPUTE = "compute"
    MEMORY = "memory"
    IO = "io"


class JobState(StrEnum):
    """Where a job stands; it is in exactly one of these at any time."""

    QUEUED = "queued"
    RUNNING = "running"
    SUSPENDED = "suspended"
    DONE = "done"


class NodeCount(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """The range of node counts that a negotiation stands at (``qos_rsrc_t``)."""

    min: int
    max: int


class MapEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One job of a Map (``forward_job_record``).

    Attributes:
        job: its id.
        type: what may change about its size.
        node_cnt: nodes it is mapped to; 0: forwarded without a mapping.
        nodes: the nodes, by name; they bind where they are idle.
        node_count: the range that the negotiation stands at, within min_nodes and max_nodes.
        priority: higher goes first.
        time_at_min_s: run time at ``min_nodes`` by the estimate, in seconds.
        true_time_at_min_s: the run time that a simulation plays; None: as estimated.
        speedup: the model's text (negotiation/runtime/speedup.py).
        true_speedup: the model that a simulation plays; None: as expected.
        name: jobs of one name are runs of the same; empty: it is like no other.
        partition: where it may run; empty: anywhere.
        start_s: the start that it was promised last, None without one.
        deadline_s: when it should have ended.
        hint: what limits it.
        can_suspend: whether it may be suspended for an urgent job.
        eligible: sets of nodes by name, of which all of its nodes must stand in one; empty: any there are.
        contiguous: it starts on nodes that stand side by side, and takes only such when it grows.
        max_switches: it starts below at most that many leaf switches, where its Map says, and does not grow.
        node_share: how much of each of its nodes it asks for, (of it, the whole): a runtime scheduler that
            gives out parts of nodes lets others have the rest.
        parts: within a runtime scheduler that counts parts of nodes, how many make one of the job's; 0: all
            counts are nodes. No message has it.
    """

    job: str
    type: JobKind
    node_cnt: int
    node_count: NodeCount
    min_nodes: int
    max_nodes: int
    priority: int
    time_at_min_s: float
    nodes: tuple[str, ...] = ()
    true_time_at_min_s: float | None = None
    speedup: str = "linear"
    partition: str = ""
    start_s: float | None = None
    deadline_s: float | None = None
    hint: Hint = Hint.NONE
    can_suspend: bool = True
    eligible: tuple[tuple[str, ...], ...] = ()
    contiguous: bool = False
    max_switches: int | None = None
    name: str = ""
    true_speedup: str | None = None
    node_share: tuple[int, int] = (1, 1)
    parts: int = 0


class OfferReservation(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False
):
    """What an offer promises to a job (``job_resv_t``); ``node_count`` 0: it starts later."""

    job: str
    node_count: int
    start_s: float
    end_s: float
    nodes: tuple[str, ...] = ()


class JobReport(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False
):
    """One job of a status report (``job_status_t``).

    Attributes:
        job: its id.
        state: where it stands now; ``queued``: it was killed for an urgent job and starts anew.
        node_count: nodes it holds, or held last.
        nodes: by name.
        start_s: its first start.
        run_time_s: time it has held nodes; ``node_s``: how many nodes for how long, together.
        end_s: its end, expected or past.
        lost_node_s: node-seconds of work that its death lost.
        measured: of a job with a name that ended: the node counts that it ran on, and the seconds that the
            whole job takes on each (its performance model).
    """

    job: str
    state: JobState
    node_count: int
    start_s: float
    run_time_s: float
    end_s: float
    nodes: tuple[str, ...] = ()
    node_s: float = 0.0
    lost_node_s: float = 0.0
    measured: tuple[tuple[int, float], ...] = ()
