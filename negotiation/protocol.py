"""What a party's transition function takes and returns besides messages: events, sends, phases, refusals."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from ..cluster.errors import AucschedError
from .job_records import MapEntry
from .messages import Message


class ProtocolError(AucschedError):
    """A message that may not come now, or says what cannot be; the party's state is as before."""


class SessionPhase(StrEnum):
    """Where a connection stands (figures 6.1 and 6.2).

    ::

        CLOSED ── START ──▶ STARTING ── RESPONSE ──▶ WAITING ◀─────────────┐
                                                     │ OFFER 1             │ OFFER 0, empty Map, abort
                                                     ▼                     │
        CLOSED ◀── RESPONSE ── ENDING ◀── END ── NEGOTIATING ── Map, OFFER 1, Map … ──┘
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
    """The batch scheduler has a connection to a runtime scheduler: it opens the negotiation, maybe again."""


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
