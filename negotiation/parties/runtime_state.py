"""The runtime scheduler's state, and what it knows of when something happens next."""

from __future__ import annotations

import msgspec

from ...runtime.machine import Machine
from ...runtime.settings import RuntimeSettings
from ..protocol import Phase


class RuntimeState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything the runtime scheduler knows.

    Attributes:
        machine: nodes and jobs, as committed.
        base: the state that the open transaction's transformations start from, None without one.
        transaction, attempt: of the last offer.
        rejected_with: how many jobs would have started when this party last rejected in the transaction.
        voided: the last transaction that an urgent job aborted; a Map may still come for it.
        queued, next_arrival_s, next_urgent_s: as the batch scheduler sent last.
        awaits_more: the batch scheduler has said that another message follows.
        next_step_s: when the next periodic step comes; ``offers_next``: whether it is one with an offer.
    """

    settings: RuntimeSettings
    machine: Machine
    phase: Phase = Phase.CLOSED
    base: Machine | None = None
    transaction: int = 0
    attempt: int = 0
    rejected_with: int | None = None
    voided: int = 0
    queued: int = 0
    next_arrival_s: float | None = None
    next_urgent_s: float | None = None
    awaits_more: bool = False
    next_step_s: float = 0.0
    offers_next: bool = False

    def awaits_message(self) -> bool:
        """Whether the batch scheduler is going to send something before the clock may go on."""
        if self.phase in {Phase.CLOSED, Phase.ENDING, Phase.NEGOTIATING} or self.awaits_more:
            return True
        now = self.machine.now_s
        if self.next_urgent_s is not None and self.next_urgent_s <= now:
            return True
        return not self.queued and self.next_arrival_s is not None and self.next_arrival_s <= now

    def next_wake_s(self) -> float | None:
        """Return the next time at which something happens here; None: only a message can change anything."""
        if self.awaits_message():
            return None
        times = [self.machine.next_end_s(), self.next_urgent_s]
        if self.machine.running or self.machine.suspended or self.queued:
            times.append(self.next_step_s)
        if not self.queued:
            times.append(self.next_arrival_s)
        due = [time for time in times if time is not None]
        # A step that fell due while a transaction was open is made now.
        return max(self.machine.now_s, min(due)) if due else None
