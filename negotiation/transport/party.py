"""A party that outlives its process: a state, its transition function, and the journal of what happened."""

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import msgspec

from ...cluster.errors import AucschedError, InputError
from ...cluster.version import __version__
from ...formats.jsontext import decode
from ..messages import Event, Message, NegotiationEnd, NegotiationEndResponse, ProtocolError, Send
from .framing import one_line
from .party_journal import Checkpoint, Happening, PartyJournal, digest_of

State = TypeVar("State")


class JournalError(AucschedError):
    """The journal cannot be written: what happened is not noted, nothing was sent."""


#: Is called at every transition, also of those that are replayed: before, what happened, after, what is sent.
Watch = Callable[[State, Happening, State, Sequence[Send]], None]


class WatchNotes(Protocol):
    """What a watcher has noted of the transitions so far, which a checkpoint keeps in their place."""

    def saved(self) -> bytes:
        """Return it as JSON."""

    def restore(self, text: bytes) -> None:
        """Take it from that JSON."""


class StructCodec(Generic[State]):
    """How a state is written into a checkpoint: as msgspec does, unless a kind of it says otherwise."""

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
        state: at the beginning; with a journal that holds something, ``state`` afterwards is what followed.
        step: the transition function.
        journal: None: nothing outlives the process.
        watch: is called at every transition.
        memory: what ``watch`` notes, where that has to outlive a checkpoint.
        codec: how a state is written; by default as msgspec does.
        tell: hears of a checkpoint that cannot be read back; the journal is then continued as it is.

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
        memory: WatchNotes | None = None,
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
        if journal is not None and journal.checkpoint is not None:
            self._restore(journal.checkpoint, journal)
        first = self.transitions + 1
        for number, (happening, digest) in enumerate(journal.happened if journal else (), start=first):
            self._replay(happening, digest, number)

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
        """What the other said when it ended the negotiation, after a colon; empty when it said nothing."""
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
        """Let the journal begin again with this state; one that cannot be read back leaves it as it is."""
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
        noted, made = self._memory.saved(), type(self._memory)()
        made.restore(noted)
        if made.saved() != noted:
            raise InputError("what was noted with the state is other when it is read back")
        return text, noted

    def _restore(self, checkpoint: Checkpoint, journal: PartyJournal) -> None:
        try:
            self.state = self._codec.read(bytes(checkpoint.state))
            if self._memory is not None:
                self._memory.restore(bytes(checkpoint.memory))
        except Exception as error:
            raise journal.error(f"its checkpoint cannot be read: {_shown(error)}") from error
        self.transitions = checkpoint.entries
        self._last = checkpoint.last_event if checkpoint.last_event is not None else checkpoint.last_message

    def _replay(self, happening: Happening, digest: str, number: int) -> None:
        journal = self._journal
        if journal is None:
            return
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
