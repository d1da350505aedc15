"""A party that outlives its process: a state, its transition function, the journal of events.

Every event and message that changes the state is on the disk before others hear of it. State
follows from the journal alone, because transitions are pure. The first line says whose journal it
is; each other line is an event or a message, and a digest of what the transition sent: a program
with other transitions is refused instead of continuing a state that never was. Now and then the
journal begins again with a checkpoint, the state so far, so that it stays short and is soon read.

Equal values have equal digests, in every process. The JSON of a message would not do:
``omit_defaults`` leaves a member out where it is the default *object*, and a process that has read
its state from a checkpoint holds another object of the same value.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from ...cluster.errors import AucschedError, InputError
from ...cluster.version import __version__
from ...formats.checked_lines import CheckedLines
from ...formats.jsontext import decode
from ..messages import Event, Message, NegotiationEnd, NegotiationEndResponse, ProtocolError, Send
from .framing import one_line

State = TypeVar("State")
#: What a transition takes.
Happening = Event | Message
FORMAT = "aucsched-negotiation-journal/1"
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


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """All that the entries before it led to.

    Attributes:
        version: of the program that made it.
        entries: how many there were.
        state: the party's, as its codec writes it.
        memory: what was noted beside it.
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
        checkpoint_entries: entries from one checkpoint to the next, at least: the journal also has
            to have twice the length of its last one, so that all checkpoints together are as much
            work as the entries; 0: never.

    Raises:
        InputError: it is another's, damaged, in use, or cannot be written.
    """

    def __init__(self, path: Path, identity: Mapping[str, str], *, checkpoint_entries: int = 0) -> None:
        self.notes: dict[str, str] = {}
        self.checkpoint: Checkpoint | None = None
        self._every, self._identity = checkpoint_entries, dict(identity)
        self.happened: tuple[tuple[Happening, str], ...] = ()
        super().__init__(path, kind="journal of a negotiation", owner="process")
        self._begun_with = len(self.checkpoint.state) + len(self.checkpoint.memory) if self.checkpoint else 0
        self._entries = len(self.happened)

    @property
    def is_long(self) -> bool:
        """Whether it should begin again with a checkpoint."""
        return 0 < self._every <= self._entries and self.size >= 2 * self._begun_with

    def begin_with(self, checkpoint: Checkpoint) -> None:
        """Hold a checkpoint in place of its past; drop one that cannot replace the old file."""
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
        """Add what happened; if something is to be sent, all is on the disk when this returns."""
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

    def take_up(self) -> None:
        """Read what happened; a journal that has yet to begin says whose it is."""
        if not self.held:
            self.append(msgspec.json.encode(_Head(format=FORMAT, identity=self._identity)))
            return
        self._check_head(self.held[0])
        lines = self.decoded(_Line, first=2)
        for line in lines:
            self.notes.update(line.notes)
        self.checkpoint = lines[0].checkpoint if lines else None
        if any(line.checkpoint is not None for line in lines[1:]):
            raise self.error("a checkpoint follows entries")
        if self.checkpoint is not None and self.checkpoint.version != __version__:
            version = self.checkpoint.version
            raise self.error(f"its checkpoint is of aucsched {version}, this is {__version__}")
        happenings = ((line.event if line.event is not None else line.message, line.sent) for line in lines)
        self.happened = tuple((one, sent) for one, sent in happenings if one is not None)

    def _check_head(self, text: bytes) -> None:
        try:
            head = decode(text, _Head, FORMAT)
        except InputError as error:
            raise self.error(f"it is not a journal of a negotiation: {error}") from error
        for name in {**head.identity, **self._identity}:
            then, now = head.identity.get(name, "none"), self._identity.get(name, "none")
            if then != now:
                difference = f"it was begun with {name} {then}, this run has {now}"
                raise self.error(f"{difference}; remove it to start over")


class JournalError(AucschedError):
    """The journal cannot be written: what happened is not noted, nothing was sent."""


#: Is called at every transition, also of replayed ones: before, what happened, after, what is sent.
Watch = Callable[[State, Happening, State, Sequence[Send]], None]


class StructCodec(Generic[State]):
    """How a checkpoint writes a state: as msgspec does, unless a kind of it says otherwise."""

    def __init__(self, kind: type[State]) -> None:
        self._kind = kind

    def write(self, state: State) -> bytes:
        """Return a state as JSON."""
        return msgspec.json.encode(state)

    def read(self, text: bytes) -> State:
        """Return the state in that JSON."""
        return decode(text, self._kind)


class Party(Generic[State]):
    """One side of a negotiation.

    Args:
        state: at the beginning; what a journal holds replaces it by the state that this leads to.
        step: the transition function.
        journal: None: nothing outlives the process.
        watch: is called at every transition.
        memory: what ``watch`` has noted of the transitions: a checkpoint keeps it in their place.
        codec: how a state is written; by default as msgspec does.
        tell: hears of a checkpoint that cannot be read back; the journal then goes on as it is.

    Raises:
        InputError: the journal does not lead where it says.
    """

    def __init__(
        self,
        state: State,
        step: Callable[[State, Happening, str], tuple[State, tuple[Send, ...]]],
        journal: PartyJournal | None = None,
        watch: Watch[State] | None = None,
        *,
        memory: msgspec.Struct | None = None,
        codec: StructCodec[State] | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self.state = state
        self._step, self._journal, self._watch = step, journal, watch
        self._memory, self._codec = memory, codec or StructCodec(type(state))
        self._tell = tell
        self._last: Happening | None = None
        #: How often it has passed from one state to the next.
        self.transitions = 0
        if journal is not None:
            self._replay(journal)

    @property
    def has_history(self) -> bool:
        """Whether anything has happened yet."""
        return self._last is not None

    @property
    def has_ended(self) -> bool:
        """Whether the negotiation was ended, rather than cut."""
        return isinstance(self._last, NegotiationEnd | NegotiationEndResponse)

    @property
    def last_words(self) -> str:
        """What the other said as it ended the negotiation, after a colon; empty: nothing."""
        last = self._last
        return f": {one_line(last.text)}" if isinstance(last, NegotiationEnd) and last.text else ""

    def take(self, happening: Happening) -> tuple[Message, ...]:
        """Make a transition, note it, and return what is to be sent.

        Raises:
            ProtocolError: a message may not come now; nothing has changed.
            InputError: it says what cannot be; nothing has changed.
            JournalError: it cannot be noted; nothing has changed.
        """
        after, sends = self._stepped(happening)
        if self._journal is not None:
            try:
                self._journal.add(happening, sends)
            except InputError as error:
                raise JournalError(str(error)) from error
        self._passed(happening, after, sends)
        if self._journal is not None and self._journal.is_long:
            self._begin_again(self._journal)
        return tuple(send.message for send in sends)

    def _stepped(self, happening: Happening) -> tuple[State, tuple[Send, ...]]:
        try:
            return self._step(self.state, happening, "")
        except AucschedError:
            raise
        except Exception as error:
            if isinstance(happening, Event):
                raise
            # Transitions are pure: whatever a message does to one, the state is what it was.
            raise ProtocolError(f"it leads nowhere: {type(error).__name__}: {error}") from error

    def close(self) -> None:
        """Bring to the disk what is still to be noted."""
        if self._journal is not None:
            self._journal.flush()

    def _begin_again(self, journal: PartyJournal) -> None:
        """Begin the journal again with this state; one that cannot be read back changes nothing."""
        try:
            text, noted = self._read_back()
        except Exception as error:  # noqa: BLE001 - the journal has all that happened
            if self._tell is not None:
                dropped = f"the checkpoint is dropped: {_shown(error)}; the journal is continued as it is"
                self._tell(str(journal.error(dropped)))
            journal.postpone()
            return
        last = self._last
        journal.begin_with(
            Checkpoint(
                version=__version__,
                entries=self.transitions,
                state=msgspec.Raw(text),
                memory=msgspec.Raw(noted),
                last_event=last if isinstance(last, Event) else None,
                last_message=None if isinstance(last, Event) else last,
            )
        )

    def _read_back(self) -> tuple[bytes, bytes]:
        """Return this state and its notes as JSON from which a restart could continue.

        The bytes are compared, too: a state of other objects of the same values is written alike.

        Raises:
            InputError: they are other when they are read back; any error where they cannot be.
        """
        text = self._codec.write(self.state)
        read = self._codec.read(text)
        if read != self.state or self._codec.write(read) != text:
            raise InputError("the state is another when it is read back")
        if self._memory is None:
            return text, b"null"
        noted = _ENCODER.encode(self._memory)
        if _ENCODER.encode(decode(noted, type(self._memory))) != noted:
            raise InputError("what was noted with the state is other when it is read back")
        return text, noted

    def _replay(self, journal: PartyJournal) -> None:
        if (begun := journal.checkpoint) is not None:
            try:
                self.state = self._codec.read(bytes(begun.state))
                if self._memory is not None:
                    noted = decode(bytes(begun.memory), type(self._memory))
                    for name in noted.__struct_fields__:
                        setattr(self._memory, name, getattr(noted, name))
            except Exception as error:
                raise journal.error(f"its checkpoint cannot be read: {_shown(error)}") from error
            self.transitions = begun.entries
            self._last = begun.last_message if begun.last_event is None else begun.last_event
        for number, (happening, digest) in enumerate(journal.happened, start=self.transitions + 1):
            try:
                after, sends = self._step(self.state, happening, "")
            except Exception as error:
                raise journal.error(f"entry {number} cannot have happened then: {_shown(error)}") from error
            if digest_of(sends) != digest:
                raise journal.error(f"entry {number} leads elsewhere: another version has written it")
            self._passed(happening, after, sends)

    def _passed(self, happening: Happening, after: State, sends: Sequence[Send]) -> None:
        before, self.state, self._last = self.state, after, happening
        self.transitions += 1
        if self._watch is not None:
            self._watch(before, happening, after, sends)


def _shown(error: Exception) -> str:
    """Return what went wrong in a line."""
    return one_line(str(error) or type(error).__name__)
