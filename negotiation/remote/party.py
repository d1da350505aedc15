"""A party that outlives its process: a state, its transition function, and the journal of what happened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from ...cluster.errors import AucschedError, InputError
from ..events import Event, Send
from ..messages import Message, NegotiationEnd, NegotiationEndResponse
from ..protocol import ProtocolError
from .inbound import one_line
from .journal import Happening, Journal, digest_of

State = TypeVar("State")


class JournalError(AucschedError):
    """The journal cannot be written: what happened is not noted, nothing was sent."""


#: Is told of every transition, also of those that are replayed: before, what happened, after, what is sent.
Watch = Callable[[State, Happening, State, Sequence[Send]], None]


class Party(Generic[State]):
    """One side of a negotiation.

    Args:
        state: at the beginning; with a journal that holds something, ``state`` afterwards is what followed.
        step: the transition function.
        journal: None: nothing outlives the process.
        watch: is told of every transition.

    Raises:
        InputError: the journal does not lead where it says.
    """

    def __init__(
        self,
        state: State,
        step: Callable[[State, Happening, str], tuple[State, tuple[Send, ...]]],
        journal: Journal | None = None,
        watch: Watch[State] | None = None,
    ) -> None:
        self.state = state
        self._step, self._journal, self._watch = step, journal, watch
        self._last: Happening | None = None
        for number, (happening, digest) in enumerate(journal.held if journal else (), start=1):
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

    def _replay(self, happening: Happening, digest: str, number: int) -> None:
        journal = self._journal
        if journal is None:
            return
        try:
            after, sends = self._step(self.state, happening, "")
        except Exception as error:
            raise journal.error(
                f"entry {number} cannot have happened then: {one_line(str(error))}"
            ) from error
        if digest_of(sends) != digest:
            raise journal.error(f"entry {number} leads elsewhere: another version has written it")
        self._passed(happening, after, sends)

    def _passed(self, happening: Happening, after: State, sends: Sequence[Send]) -> None:
        before, self.state, self._last = self.state, after, happening
        if self._watch is not None:
            self._watch(before, happening, after, sends)
