"""What both parties' transition functions share: the refusal of a message that may not come now."""

from __future__ import annotations

from enum import StrEnum

from ..cluster.errors import AucschedError


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
