"""What a party's transition function takes besides the other's messages."""

from __future__ import annotations

import msgspec

from .messages import Message
from .runtime.records import MapEntry


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
