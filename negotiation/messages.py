"""What is said: the messages of the negotiation (Nagendra, figure 4.2) and what they say of jobs (5.1, 6.2).

::

    NEGOTIATION_START            iBSched → iRTSched      RESPONSE_NEGOTIATION_START   ←
    REQUEST_RESOURCE_OFFER       iBSched → iRTSched
    RESOURCE_OFFER               iRTSched → iBSched      RESPONSE_RESOURCE_OFFER      ←
    STATUS_REPORT                iRTSched → iBSched
    URGENT_JOB                   iBSched → iRTSched      RESPONSE_URGENT_JOB          ←
    NEGOTIATION_END              either side             RESPONSE_NEGOTIATION_END     the other
    DYN_REQUEST, DYN_RELEASE,
    DYN_STATUS                   application → dynsched  RESPONSE_DYN                 ←

The last three are evolving jobs' (Prabhakaran, figures 3 and 4: tm_dynget and tm_dynfree).
The runtime scheduler holds the clock: its messages carry the time. The batch scheduler's carry how many jobs
it has queued and when the next one comes, which tells a simulated clock how far it may go on.

All are frozen structs rather than dataclasses: thousands a second are built, encoded and decoded.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from ..cluster.jobs import JobKind


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


#: Parties that speak another version do not negotiate.
PROTOCOL_VERSION = 1


class Code(StrEnum):
    """How a message answers the one before (the thesis's error code and message)."""

    ACCEPT = "accept"
    REJECT = "reject"


class FromRuntimeBase(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="message",
):
    """What every message of the runtime scheduler carries: its clock, in seconds."""

    time_s: float


class FromBatchBase(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="message",
):
    """What every message of the batch scheduler carries.

    Attributes:
        queued: jobs that wait, forwarded or not.
        next_arrival_s: when the next job comes, None when none is known.
        next_urgent_s: when the next urgent job comes, None when none is known.
        more: another message follows at once.
    """

    queued: int = 0
    next_arrival_s: float | None = None
    next_urgent_s: float | None = None
    more: bool = False


class NegotiationStart(FromBatchBase, frozen=True, tag="NEGOTIATION_START"):
    """The batch scheduler connects, or connects again: every open transaction is void.

    ``started``: how many jobs it believes to run here.
    """

    version: int
    max_attempts: int
    interval_s: float
    started: int = 0


class NegotiationStartResponse(FromRuntimeBase, frozen=True, tag="RESPONSE_NEGOTIATION_START"):
    """The runtime scheduler agrees, with the nodes it manages by partition, or refuses and says why."""

    version: int
    code: Code
    text: str = ""
    partitions: dict[str, tuple[str, ...]] = {}


class RequestResourceOffer(FromBatchBase, frozen=True, tag="REQUEST_RESOURCE_OFFER"):
    """Jobs have come to an empty queue: please offer; ``jobs`` says what they would need."""

    jobs: tuple[MapEntry, ...]


class ResourceOffer(FromRuntimeBase, frozen=True, tag="RESOURCE_OFFER"):
    """Idle nodes and reservations.

    Attributes:
        negotiation: 1 while the transaction is open; 0: this closes it.
        transaction, attempt: numbered from 1.
        idle: nodes that nobody holds, by name.
        reservations: of the jobs forwarded last, in the order of their Map.
        code: whether the Map before was accepted.
    """

    negotiation: int
    transaction: int
    attempt: int
    idle: tuple[str, ...] = ()
    reservations: tuple[OfferReservation, ...] = ()
    code: Code = Code.ACCEPT
    text: str = ""


class ResponseResourceOffer(FromBatchBase, frozen=True, tag="RESPONSE_RESOURCE_OFFER"):
    """The answer to an offer, accepting or not, always with a Map; an empty one closes the transaction.

    ``atomic``: all mapped jobs of the Map start together, or none does (an auction's award).
    """

    transaction: int
    attempt: int
    code: Code
    map: tuple[MapEntry, ...] = ()
    atomic: bool = False
    text: str = ""


class StatusReport(FromRuntimeBase, frozen=True, tag="STATUS_REPORT"):
    """What has become of jobs; an empty one only tells the time.

    ``complete``: jobs that it does not name have never started here, as after a new connection.
    """

    reports: tuple[JobReport, ...] = ()
    complete: bool = False


class UrgentJob(FromBatchBase, frozen=True, tag="URGENT_JOB"):
    """A job that shall start at once, at the expense of those that run."""

    job: MapEntry


class UrgentJobResponse(FromRuntimeBase, frozen=True, tag="RESPONSE_URGENT_JOB"):
    """Whether the urgent job runs, and who paid for it."""

    job: str
    code: Code
    nodes: tuple[str, ...] = ()
    shrunk: tuple[str, ...] = ()
    suspended: tuple[str, ...] = ()
    killed: tuple[str, ...] = ()
    text: str = ""


class NegotiationEnd(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="message", tag="NEGOTIATION_END"
):
    """Either side leaves."""

    text: str = ""


class NegotiationEndResponse(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    tag_field="message",
    tag="RESPONSE_NEGOTIATION_END",
):
    """The other side lets it go."""

    text: str = ""


class DynState(StrEnum):
    """Where a request of an application stands.

    >>> DynState("pending") is DynState.PENDING
    True
    """

    GRANTED = "granted"
    PENDING = "pending"
    REFUSED = "refused"
    RELEASED = "released"
    KNOWN = "known"


class FromApplicationBase(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="message",
):
    """What every message of an application carries: its job's name."""

    job: str


class DynRequest(FromApplicationBase, frozen=True, tag="DYN_REQUEST"):
    """The job asks for more cores, or for nodes with that many cores each.

    ``serial`` numbers what a job says, from 1; the same once more asks what has become of it. ``timeout_s``:
    how long the request may wait; 0: it is granted or refused at once.
    """

    serial: int
    cores: int | None = None
    nodes: int | None = None
    cores_per_node: int | None = None
    timeout_s: float = 0.0


class DynRelease(FromApplicationBase, frozen=True, tag="DYN_RELEASE"):
    """The job gives back cores by node; with all of them it has ended."""

    serial: int
    nodes: dict[str, int]


class DynStatus(FromApplicationBase, frozen=True, tag="DYN_STATUS"):
    """The job asks what it holds: as after a restart."""


class DynResponse(FromRuntimeBase, frozen=True, tag="RESPONSE_DYN"):
    """What became of it.

    Attributes:
        job, serial: whose, and of which message; 0 where nothing was said yet.
        state: where it stands.
        nodes: what a grant gave, cores by node.
        held: all that the job holds now.
        earliest_s: of a request that waits or was refused for want of resources: when they could be there.
        text: of a refusal.
    """

    job: str
    serial: int
    state: DynState
    nodes: dict[str, int] = {}
    held: dict[str, int] = {}
    earliest_s: float | None = None
    text: str = ""


FromApplication = DynRequest | DynRelease | DynStatus

FromBatch = (
    NegotiationStart
    | RequestResourceOffer
    | ResponseResourceOffer
    | UrgentJob
    | NegotiationEnd
    | NegotiationEndResponse
)
FromRuntime = (
    NegotiationStartResponse
    | ResourceOffer
    | StatusReport
    | UrgentJobResponse
    | NegotiationEnd
    | NegotiationEndResponse
)
Message = FromBatch | FromRuntime | FromApplication | DynResponse
