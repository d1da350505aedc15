"""What is said: the messages of the negotiation (Nagendra, figure 4.2).

::

    NEGOTIATION_START            iBSched → iRTSched      RESPONSE_NEGOTIATION_START   ←
    REQUEST_RESOURCE_OFFER       iBSched → iRTSched
    RESOURCE_OFFER               iRTSched → iBSched      RESPONSE_RESOURCE_OFFER      ←
    STATUS_REPORT                iRTSched → iBSched
    URGENT_JOB                   iBSched → iRTSched      RESPONSE_URGENT_JOB          ←
    NEGOTIATION_END              either side             RESPONSE_NEGOTIATION_END     the other
    DYN_REQUEST, DYN_RELEASE,
    DYN_STATUS                   application → dynsched  RESPONSE_DYN                 ←

The last three are evolving jobs' (Prabhakaran, figures 3 and 4: tm_dynget and tm_dynfree). The
runtime scheduler holds the clock: its messages carry the time. The batch scheduler's carry how many
jobs it has queued and when the next one comes, which tells a simulated clock how far it may go on.

All are frozen structs, not dataclasses: thousands a second are built, encoded and decoded. Below is
what else a party's transition function takes and returns: events, sends, phases, refusals.
"""

from enum import StrEnum
from typing import Annotated

import msgspec

from ..cluster.errors import AucschedError, InputError, errors_below
from .job_records import JobReport, MapEntry, OfferReservation
from .message_rules import (
    CoresByNode,
    Count,
    Name,
    Names,
    Positive,
    Time,
    is_finite,
    unique,
    unique_jobs,
    unique_within,
)

#: Parties that speak another version do not negotiate.
PROTOCOL_VERSION = 1
#: The shortest time between periodic steps: with a far shorter one a clock makes no progress.
LEAST_INTERVAL_S = 1.0
_NO_INTERVAL = f"not a time of at least {LEAST_INTERVAL_S:g} s"
Interval = Annotated[float, lambda value: is_finite(value, LEAST_INTERVAL_S, _NO_INTERVAL)]


#: No job twice, no node twice.
Map = Annotated[
    tuple[MapEntry, ...],
    unique_jobs,
    lambda entries: unique(node for entry in entries for node in entry.nodes),
]


class Code(StrEnum):
    """How a message answers the one before (the thesis's error code and message)."""

    ACCEPT = "accept"
    REJECT = "reject"


class MessageBase(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="message",
):
    """A message as JSON: its ``message`` member names its kind; default members are left out."""


class FromRuntimeBase(MessageBase, frozen=True, kw_only=True):
    """What every message of the runtime scheduler carries: its clock, in seconds."""

    time_s: Time


class FromBatchBase(MessageBase, frozen=True, kw_only=True):
    """What every message of the batch scheduler carries.

    Attributes:
        queued: jobs that wait, forwarded or not.
        next_arrival_s: when the next job comes, None when none is known.
        next_urgent_s: when the next urgent job comes, None when none is known.
        more: another message follows at once.
    """

    queued: Count = 0
    next_arrival_s: Time | None = None
    next_urgent_s: Time | None = None
    more: bool = False


class NegotiationStart(FromBatchBase, frozen=True, tag="NEGOTIATION_START"):
    """The batch scheduler connects, or connects again: every open transaction is void.

    ``started``: how many jobs it believes to run here.
    """

    version: int
    max_attempts: Positive
    interval_s: Interval
    started: int = 0


class NegotiationStartResponse(FromRuntimeBase, frozen=True, tag="RESPONSE_NEGOTIATION_START"):
    """The runtime scheduler agrees, with its nodes by partition, or refuses and says why."""

    version: int
    code: Code
    text: str = ""
    partitions: Annotated[dict[str, tuple[str, ...]], unique_within] = {}


class RequestResourceOffer(FromBatchBase, frozen=True, tag="REQUEST_RESOURCE_OFFER"):
    """Jobs have come to an empty queue: please offer; ``jobs`` says what they would need."""

    jobs: Map


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
    transaction: Positive
    attempt: Positive
    idle: tuple[str, ...] = ()
    reservations: Annotated[tuple[OfferReservation, ...], unique_jobs] = ()
    code: Code = Code.ACCEPT
    text: str = ""

    def check_together(self) -> None:
        """Refuse a node that is offered twice."""
        if self.negotiation not in {0, 1}:
            raise InputError(f"{self.negotiation} is neither 0 nor 1", path="negotiation")
        with errors_below("idle"):
            unique((*self.idle, *(node for entry in self.reservations for node in entry.nodes)))


class ResponseResourceOffer(FromBatchBase, frozen=True, tag="RESPONSE_RESOURCE_OFFER"):
    """The answer to an offer, accepting or not, with a Map; an empty one closes the transaction.

    ``atomic``: all mapped jobs of the Map start together, or none does (an auction's award).
    """

    transaction: Positive
    attempt: Positive
    code: Code
    map: Map = ()
    atomic: bool = False
    text: str = ""


class StatusReport(FromRuntimeBase, frozen=True, tag="STATUS_REPORT"):
    """What has become of jobs; an empty one only tells the time.

    ``complete``: jobs that it does not name have never started here, as after a new connection.
    """

    reports: Annotated[tuple[JobReport, ...], unique_jobs] = ()
    complete: bool = False


class UrgentJob(FromBatchBase, frozen=True, tag="URGENT_JOB"):
    """A job that shall start at once, at the expense of those that run."""

    job: MapEntry


class UrgentJobResponse(FromRuntimeBase, frozen=True, tag="RESPONSE_URGENT_JOB"):
    """Whether the urgent job runs, and who paid for it."""

    job: str
    code: Code
    nodes: Names = ()
    shrunk: tuple[str, ...] = ()
    suspended: tuple[str, ...] = ()
    killed: tuple[str, ...] = ()
    text: str = ""


class EndBase(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="message"):
    """What both messages of the end carry: why, which is always written."""

    text: str = ""


class NegotiationEnd(EndBase, frozen=True, tag="NEGOTIATION_END"):
    """Either side leaves."""


class NegotiationEndResponse(EndBase, frozen=True, tag="RESPONSE_NEGOTIATION_END"):
    """The other side lets it go."""


class DynState(StrEnum):
    """The state of an application's request.

    >>> DynState("pending") is DynState.PENDING
    True
    """

    GRANTED = "granted"
    PENDING = "pending"
    REFUSED = "refused"
    RELEASED = "released"
    KNOWN = "known"


class FromApplicationBase(MessageBase, frozen=True, kw_only=True):
    """What every message of an application carries: its job's name."""

    job: Name


class DynRequest(FromApplicationBase, frozen=True, tag="DYN_REQUEST"):
    """The job asks for more cores, or for nodes with that many cores each.

    ``serial`` numbers what a job says, from 1; the same once more asks what has become of it.
    ``timeout_s``: how long the request may wait; 0: it is granted or refused at once.
    """

    serial: Positive
    cores: Positive | None = None
    nodes: Positive | None = None
    cores_per_node: Positive | None = None
    timeout_s: Time = 0.0

    def check_together(self) -> None:
        """Refuse a request for nothing, or for both."""
        if (self.cores is None) == (self.nodes is None):
            raise InputError("either cores or nodes are asked for", path="cores")
        if (self.nodes is None) != (self.cores_per_node is None):
            raise InputError("nodes and cores_per_node need each other", path="cores_per_node")


class DynRelease(FromApplicationBase, frozen=True, tag="DYN_RELEASE"):
    """The job gives back cores by node; with all of them it has ended."""

    serial: Positive
    nodes: CoresByNode


class DynStatus(FromApplicationBase, frozen=True, tag="DYN_STATUS"):
    """The job asks what it holds: as after a restart."""


class DynResponse(FromRuntimeBase, frozen=True, tag="RESPONSE_DYN"):
    """What became of it.

    Attributes:
        job, serial: whose, and of which message; 0 where nothing was said yet.
        state: where it stands.
        nodes: what a grant gave, cores by node.
        held: all that the job holds now.
        earliest_s: of a request that waits or lacked resources: when they could be there.
        text: of a refusal.
    """

    job: Name
    serial: Count
    state: DynState
    nodes: CoresByNode = {}
    held: CoresByNode = {}
    earliest_s: Time | None = None
    text: str = ""


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
Message = FromBatch | FromRuntime | DynRequest | DynRelease | DynStatus | DynResponse


class ProtocolError(AucschedError):
    """A message that may not come now, or says what cannot be; the party's state is as before."""


class SessionPhase(StrEnum):
    """Where a connection stands (figures 6.1 and 6.2).

    ::

        CLOSED ── START ──▶ STARTING ── RESPONSE ──▶ WAITING ◀─────────────────────────────┐
                                                     │ OFFER 1   OFFER 0, empty Map, abort │
                                                     ▼                                     │
        CLOSED ◀── RESPONSE ── ENDING ◀── END ── NEGOTIATING ── Map, OFFER 1, Map … ───────┘
    """

    CLOSED = "closed"
    STARTING = "starting"
    WAITING = "waiting"
    NEGOTIATING = "negotiating"
    ENDING = "ending"


class Submit(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Jobs come to the batch scheduler; urgent ones are sent on at once."""

    jobs: tuple[MapEntry, ...]
    urgent: bool = False


class Connect(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The batch scheduler is connected to a runtime scheduler: it opens the negotiation (again)."""


class Disconnect(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The other party is gone: an open transaction is void, nothing else changes."""


class Wake(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The runtime scheduler's clock has come to ``time_s``."""

    time_s: float


class Leave(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """This party shall end the negotiation."""

    text: str = ""


Event = Submit | Connect | Disconnect | Wake | Leave


class Send(msgspec.Struct, frozen=True):
    """What a transition asks for: that a message is sent to a peer."""

    peer: str
    message: Message
