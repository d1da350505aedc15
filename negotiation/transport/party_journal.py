"""A party's journal: every event and message that changed its state, on the disk before anybody hears of it.

State follows from the journal alone, because transitions are pure. The first line says whose journal it is;
each other line is an event or a message, and a digest of what the transition sent: a program with other
transitions is refused instead of continuing a state that was never there. Now and then the journal begins
again with a checkpoint, the state that all before it led to, so that it stays short and is soon read.

Equal values have equal digests, in every process. The JSON of a message would not do:
``omit_defaults`` leaves a member out where it is the default *object*, and a process that has read
its state from a checkpoint holds another object of the same value.
"""

import zlib
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from ...cluster.errors import InputError
from ...cluster.version import __version__
from ...formats.checked_lines import CheckedLines
from ...formats.jsontext import decode
from ..messages import Event, Message, Send

_ENCODER = msgspec.json.Encoder()
#: Types of most members: they are as they are.
_PLAIN = frozenset({str, int, bool, type(None)})


def digest_of(sends: Sequence[Send]) -> str:
    """Return a digest of what a transition sends, empty when it sends nothing.

    1 and 1.0 are equal; the order of a mapping counts, as that of a sequence.
    """
    if not sends:
        return ""
    text = _ENCODER.encode([_plain(send.message) for send in sends])
    return f"={zlib.crc32(text):08x}"


def _plain(value: Any) -> Any:
    """Return a value as lists, texts and numbers: a member that has its default like any other."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value if isfinite(value) else str(value)
    if isinstance(value, msgspec.Struct):
        return [value.__struct_config__.tag, *map(_plain, msgspec.structs.astuple(value))]
    if isinstance(value, dict):
        return [[key, _plain(one)] for key, one in value.items()]
    if isinstance(value, tuple):
        return [*map(_plain, value)]
    return value  # a name of an enumeration


FORMAT = "aucsched-negotiation-journal/1"


#: What a transition takes.
Happening = Event | Message


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """All that the entries before it led to.

    Attributes:
        version: of the program that made it.
        entries: how many there were.
        state: the party's, as its codec writes it.
        memory: what was noted beside it (``party.WatchNotes``).
        last_event, last_message: what happened last.
    """

    version: str
    entries: int
    state: msgspec.Raw
    memory: msgspec.Raw = msgspec.Raw(b"null")
    last_event: Event | None = None
    last_message: Message | None = None


class _Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: str
    identity: dict[str, str]


class _Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    event: Event | None = None
    message: Message | None = None
    sent: str = ""
    notes: dict[str, str] = {}
    checkpoint: Checkpoint | None = None


class PartyJournal(CheckedLines):
    """An open journal.

    ``checkpoint`` is what it begins with, None where it has all entries; ``happened`` the entries
    behind it when it was opened, with the digests of what was sent; ``notes`` facts beside the
    state, by name: the last of each name counts.

    Args:
        path: the file.
        identity: whose it is, by name: the party, the workload, its settings.
        checkpoint_entries: entries from one checkpoint to the next, at least: the journal also has to have
            twice the length of its last one, so that all checkpoints together are as much work as
            the entries; 0: never.

    Raises:
        InputError: it is another's, damaged, in use, or cannot be written.
    """

    def __init__(self, path: Path, identity: Mapping[str, str], *, checkpoint_entries: int = 0) -> None:
        self.notes: dict[str, str] = {}
        self.checkpoint: Checkpoint | None = None
        self._every, self._identity = checkpoint_entries, dict(identity)
        super().__init__(path, kind="journal of a negotiation", owner="process")
        try:
            self.happened = self._entries_of(identity)
        except BaseException:
            self.close()
            raise
        self._begun_with = len(self.checkpoint.state) + len(self.checkpoint.memory) if self.checkpoint else 0
        self._entries = len(self.happened)

    @property
    def is_long(self) -> bool:
        """Whether it should begin again with a checkpoint."""
        return 0 < self._every <= self._entries and self.size >= 2 * self._begun_with

    def begin_with(self, checkpoint: Checkpoint) -> None:
        """Hold a checkpoint instead of what led to it; one that cannot replace the old file is dropped."""
        head = _Head(format=FORMAT, identity=self._identity)
        texts = [msgspec.json.encode(head), msgspec.json.encode(_Line(checkpoint=checkpoint))]
        if self.notes:
            texts.append(msgspec.json.encode(_Line(notes=self.notes)))
        if self.begin_again(texts):
            self._begun_with = self.size
        self.postpone()

    def postpone(self) -> None:
        """Ask for no checkpoint before as many entries again."""
        self._entries = 0

    def add(self, happening: Happening, sends: Sequence[Send]) -> None:
        """Add what happened; with something to be sent, all of it is on the disk when this returns."""
        digest = digest_of(sends)
        if isinstance(happening, Event):
            line = _Line(event=happening, sent=digest)
        else:
            line = _Line(message=happening, sent=digest)
        self.hold(msgspec.json.encode(line))
        self._entries += 1
        if sends:
            self.flush()

    def note(self, notes: Mapping[str, str]) -> None:
        """Keep facts beside the state; those that it has already are not written again."""
        if {**self.notes, **notes} != self.notes:
            self.notes.update(notes)
            self.append(msgspec.json.encode(_Line(notes=dict(notes))))

    def _entries_of(self, identity: Mapping[str, str]) -> tuple[tuple[Happening, str], ...]:
        if not self.held:
            self.append(msgspec.json.encode(_Head(format=FORMAT, identity=dict(identity))))
            return ()
        self._check_head(self.held[0], identity)
        lines = self.decoded(_Line, first=2)
        for line in lines:
            self.notes.update(line.notes)
        self.checkpoint = lines[0].checkpoint if lines else None
        if any(line.checkpoint is not None for line in lines[1:]):
            raise self.error("a checkpoint stands behind entries")
        if self.checkpoint is not None and self.checkpoint.version != __version__:
            version = self.checkpoint.version
            raise self.error(f"its checkpoint is of aucsched {version}, this is {__version__}")
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
