"""A negotiation between two processes: what each says it plays, and what the runtime scheduler's side notes.

The runtime scheduler's process sees every message in the order in which both parties in one process would
have sent them, so that its result is the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ...cluster.errors import InputError
from ...formats.jsontext import decode
from ...negotiation.messages import FromBatchBase, NegotiationEnd, NegotiationEndResponse, StatusReport
from ...negotiation.offer_events import Send
from ...negotiation.parties.batch_state import BatchSettings
from ...negotiation.parties.irtsched import RuntimeState
from ...negotiation.parties.pair import Sent
from ...negotiation.remote.party_journal import Happening
from ...negotiation.runtime.settings import RuntimeSettings
from .negotiated_run import Held, Negotiated, Recorder
from .plays import Play

#: The note in which the batch scheduler sends its settings.
_BATCH = "batch"


def terms_of(play: Play, urgency: str) -> dict[str, str]:
    """Return what both processes must have alike: the jobs, the nodes, what urgent jobs may do."""
    text = msgspec.json.encode((play.nodes, dict(play.partitions), play.arrivals), order="deterministic")
    return {"workload": hashlib.sha256(text).hexdigest()[:16], "urgent": urgency}


def settings_text(settings: BatchSettings | RuntimeSettings) -> str:
    """Return settings as a text that equal ones have alike.

    ``steps`` came after the first journals, which name a negotiation's settings by this text. The text
    leaves it out where it has its default, so that such a journal still loads.
    """
    members = msgspec.to_builtins(settings)
    if settings.steps == "ceiling":
        del members["steps"]
    return msgspec.json.encode(members).decode()


def batch_notes(settings: BatchSettings) -> dict[str, str]:
    """Return what the batch scheduler sends of itself."""
    return {_BATCH: settings_text(settings)}


def batch_settings_in(notes: Mapping[str, str]) -> BatchSettings:
    """Return the settings that a batch scheduler has sent.

    Raises:
        InputError: it has sent none, none that can be, or something else.
        OptionError: one of them is out of its range.
    """
    if others := sorted(notes.keys() - {_BATCH}):
        raise InputError(f"unknown note {others[0]!r}")
    if _BATCH not in notes:
        raise InputError("the batch scheduler has not sent its settings", path=_BATCH)
    return decode(notes[_BATCH].encode(), BatchSettings)


class _Noted(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A run log as a checkpoint keeps it."""

    sent: list[Sent]
    own: list[Sent]
    lost_node_s: float
    held: list[Held]
    since: dict[str, tuple[float, int]]


class RunLog:
    """Notes every message and who holds which nodes, from the transitions of a runtime scheduler.

    Args:
        progress: hears how many jobs are done.
    """

    def __init__(self, progress: Callable[[int], None] | None = None) -> None:
        self._recorder, self._progress = Recorder(), progress
        self._sent: list[Sent] = []
        self._own: list[Sent] = []
        self._lost_node_s = 0.0

    def watch(
        self, before: RuntimeState, happening: Happening, after: RuntimeState, sends: Sequence[Send]
    ) -> None:
        """Take note of a transition.

        Messages that came together are noted together, before what the first of them led to.
        """
        has_more = False
        if isinstance(happening, FromBatchBase | NegotiationEnd | NegotiationEndResponse):
            self._sent.append(Sent(time_s=before.machine.now_s, from_batch=True, peer="", message=happening))
            has_more = isinstance(happening, FromBatchBase) and happening.more
        now = after.machine.now_s
        self._own += [Sent(time_s=now, from_batch=False, peer="", message=send.message) for send in sends]
        for send in sends:
            if isinstance(send.message, StatusReport):
                for report in send.message.reports:  # one by one: the sum of floats depends on the order
                    self._lost_node_s += report.lost_node_s
        if not has_more:
            self._sent += self._own
            self._own = []
        self._recorder.see(after.machine)
        if self._progress is not None:
            self._progress(len(after.machine.done))

    def saved(self) -> bytes:
        """Return what was noted, as JSON."""
        return msgspec.json.encode(
            _Noted(
                sent=self._sent,
                own=self._own,
                lost_node_s=self._lost_node_s,
                held=self._recorder.held,
                since=self._recorder.since,
            )
        )

    def restore(self, text: bytes) -> None:
        """Take what was noted before."""
        noted = decode(text, _Noted)
        self._sent, self._own, self._lost_node_s = noted.sent, noted.own, noted.lost_node_s
        self._recorder.held, self._recorder.since = noted.held, noted.since

    def result(self, play: Play, batch: BatchSettings, state: RuntimeState) -> Negotiated:
        """Return the finished run.

        Raises:
            InputError: jobs are left.
        """
        left = [arrival.job.job for arrival in play.arrivals if arrival.job.job not in state.machine.done]
        if left:
            text = f"the batch scheduler ended the negotiation, and {len(left)} jobs are not done"
            raise InputError(f"{text}: {left[0]}")
        return Negotiated(
            play=play,
            batch=batch,
            runtime=state.settings,
            done=state.machine.done,
            held=tuple(self._recorder.held),
            sent=tuple(self._sent + self._own),
            lost_node_s=self._lost_node_s,
        )
