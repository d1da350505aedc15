"""The messages of the negotiation (Nagendra, figure 4.2), as frozen typed values.

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
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from .runtime.records import Hint, JobReport, JobState, MapEntry, NodeCount, OfferReservation

__all__ = [
    "PROTOCOL_VERSION",
    "Code",
    "DynRelease",
    "DynRequest",
    "DynResponse",
    "DynState",
    "DynStatus",
    "FromBatch",
    "FromRuntime",
    "Hint",
    "JobReport",
    "JobState",
    "MapEntry",
    "Message",
    "NegotiationEnd",
    "NegotiationEndResponse",
    "NegotiationStart",
    "NegotiationStartResponse",
    "NodeCount",
    "OfferReservation",
    "RequestResourceOffer",
    "ResourceOffer",
    "ResponseResourceOffer",
    "StatusReport",
    "UrgentJob",
    "UrgentJobResponse",
]

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
