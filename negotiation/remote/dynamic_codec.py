"""dynsched's state in a checkpoint: a snapshot as its files have it, what was said and asked, the delays."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from ...formats.jsontext import decode
from ...formats.native.read import parse_snapshot
from ...formats.native.write import snapshot_to_json
from ...runtime.evolving.fairness import Accounts
from ..messages import DynRequest, DynResponse
from ..parties.dynsched import DynamicState, Pending


class _Saved(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    snapshot: msgspec.Raw
    since_s: float
    targets: list[tuple[str, str, float]]
    singles: dict[str, float]
    pending: list[tuple[DynRequest, float]]
    answers: dict[str, DynResponse]
    changed: bool


class DynamicCodec:
    """Writes and reads the states that follow from one; what never changes is taken from that.

    Args:
        first: the state at the beginning.
    """

    def __init__(self, first: DynamicState) -> None:
        self._first = first

    def write(self, state: DynamicState) -> bytes:
        """Return a state as JSON."""
        accounts = state.accounts
        snapshot = snapshot_to_json(state.snapshot).encode()
        return msgspec.json.encode(
            _Saved(
                snapshot=msgspec.Raw(msgspec.json.format(snapshot, indent=-1)),
                since_s=accounts.since_s,
                targets=[(*name, seconds) for name, seconds in accounts.targets.items()],
                singles=dict(accounts.singles),
                pending=[(one.message, one.deadline_s) for one in state.pending],
                answers=dict(state.answers),
                changed=state.changed,
            )
        )

    def read(self, text: bytes) -> DynamicState:
        """Return the state in that JSON."""
        saved = decode(text, _Saved)
        return replace(
            self._first,
            snapshot=parse_snapshot(bytes(saved.snapshot)),
            accounts=Accounts(
                since_s=saved.since_s,
                targets={(kind, name): seconds for kind, name, seconds in saved.targets},
                singles=saved.singles,
            ),
            pending=tuple(Pending(message=message, deadline_s=end) for message, end in saved.pending),
            answers=saved.answers,
            changed=saved.changed,
        )
