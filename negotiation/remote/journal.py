"""A party's journal: every event and message that changed its state, on the disk before anybody hears of it.

State follows from the journal alone, because transitions are pure. The first line says whose journal it is;
each other line is an event or a message, and a digest of what the transition sent: a program whose
transitions differ is refused instead of continuing a state that was never there.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ...cluster.errors import InputError
from ...formats.checked_lines import CheckedLines
from ...formats.jsontext import decode
from ..events import Event, Send
from ..messages import Message
from .codec import encode_message

FORMAT = "aucsched-negotiation-journal/1"
#: What a transition takes.
Happening = Event | Message


class _Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: str
    identity: dict[str, str]


class _Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    event: Event | None = None
    message: Message | None = None
    sent: str = ""
    notes: dict[str, str] = {}


class Journal:
    """An open journal; ``held`` is what it held when it was opened, with the digests of what was sent.

    ``notes`` are facts beside the state, by name: the last of each name counts.

    Args:
        path: the file.
        identity: whose it is, by name: the party, the workload, its settings.

    Raises:
        InputError: it is another's, damaged, in use, or cannot be written.
    """

    def __init__(self, path: Path, identity: Mapping[str, str]) -> None:
        self.notes: dict[str, str] = {}
        self._lines = CheckedLines(path, kind="journal of a negotiation", owner="process")
        try:
            self.held = self._read(identity)
        except BaseException:
            self._lines.close()
            raise

    def close(self) -> None:
        """Let the file go."""
        self._lines.close()

    def add(self, happening: Happening, sends: Sequence[Send]) -> None:
        """Add what happened; with something to be sent, all of it is on the disk when this returns."""
        digest = digest_of(sends)
        if isinstance(happening, Event):
            line = _Line(event=happening, sent=digest)
        else:
            line = _Line(message=happening, sent=digest)
        self._lines.hold(msgspec.json.encode(line))
        if sends:
            self._lines.flush()

    def note(self, notes: Mapping[str, str]) -> None:
        """Keep facts beside the state; those that it has already are not written again."""
        if {**self.notes, **notes} != self.notes:
            self.notes.update(notes)
            self._lines.append(msgspec.json.encode(_Line(notes=dict(notes))))

    def flush(self) -> None:
        """Bring to the disk what came without an answer."""
        self._lines.flush()

    def error(self, message: str) -> InputError:
        """Return an error that names the file."""
        return self._lines.error(message)

    def _read(self, identity: Mapping[str, str]) -> tuple[tuple[Happening, str], ...]:
        if not self._lines.held:
            self._lines.append(msgspec.json.encode(_Head(format=FORMAT, identity=dict(identity))))
            return ()
        first, *others = self._lines.held
        self._check_head(first, identity)
        lines = [self._line(text, number) for number, text in enumerate(others, start=2)]
        for line in lines:
            self.notes.update(line.notes)
        happenings = ((line.event if line.event is not None else line.message, line.sent) for line in lines)
        return tuple((happening, sent) for happening, sent in happenings if happening is not None)

    def _check_head(self, text: bytes, identity: Mapping[str, str]) -> None:
        try:
            head = decode(text, _Head)
        except InputError as error:
            raise self.error(f"it is no journal of a negotiation: {error}") from error
        if head.format != FORMAT:
            raise self.error(f"{head.format!r} is not {FORMAT!r}")
        for name in {**head.identity, **identity}:
            then, now = head.identity.get(name, "none"), identity.get(name, "none")
            if then != now:
                difference = f"it was begun with {name} {then}, this run has {now}"
                raise self.error(f"{difference}; remove it to begin anew")

    def _line(self, text: bytes, number: int) -> _Line:
        try:
            return decode(text, _Line)
        except InputError as error:
            raise self.error(f"line {number}: {error}") from error


def digest_of(sends: Sequence[Send]) -> str:
    """Return a digest of what a transition sends, empty when it sends nothing."""
    if not sends:
        return ""
    checksum = 0
    for send in sends:
        checksum = zlib.crc32(encode_message(send.message), checksum)
    return f"{checksum:08x}"
