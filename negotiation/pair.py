"""Both parties in one process, on the runtime scheduler's simulated clock."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from ..cluster.errors import AucschedError
from .batch import ibsched
from .batch.batch_state import BatchState
from .messages import Connect, Event, Message, Send, Wake
from .runtime import irtsched
from .runtime.irtsched import RuntimeState
from .runtime.runtime_machine import MachineState


class StuckError(AucschedError):
    """Jobs wait, nothing runs and nothing is to come: no event will start them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A message as sent: when on its runtime scheduler's clock, by which party, with which peer."""

    time_s: float
    from_batch: bool
    peer: str
    message: Message


#: Wakes with nothing running and nothing to come after which nothing will start any more.
PATIENCE = 100


class Pair:
    """A batch scheduler and its runtime schedulers; messages arrive in the order of sending."""

    def __init__(
        self,
        batch: BatchState,
        runtimes: dict[str, RuntimeState],
        observe: Callable[[Sent], None] | None = None,
        watch: Callable[[str, MachineState], None] | None = None,
    ) -> None:
        self.batch = batch
        self.runtimes = dict(runtimes)
        self._observe, self._watch = observe, watch
        self._to_batch: deque[Send] = deque()
        self._to_runtime: deque[Send] = deque()

    def connect(self) -> None:
        """Open the negotiation with every runtime scheduler."""
        for peer in self.runtimes:
            self._batch(Connect(), peer)
        self.deliver()

    def deliver(self) -> None:
        """Hand over messages until none is left."""
        while self._to_batch or self._to_runtime:
            if self._to_runtime:
                send = self._to_runtime.popleft()
                self._runtime(send.message, send.peer)
            else:
                send = self._to_batch.popleft()
                self._batch(send.message, send.peer)

    def wake(self) -> bool:
        """Move the clock to the next event of any runtime scheduler; False when there is none."""
        times = {peer: state.next_wake_s() for peer, state in self.runtimes.items()}
        due = [(time, peer) for peer, time in times.items() if time is not None]
        if not due:
            return False
        time = min(due)[0]
        # All clocks are the same one: a job that comes at this time must find every machine there.
        for peer, state in list(self.runtimes.items()):
            if state.machine.now_s < time or times[peer] == time:
                self._runtime(Wake(time_s=time), peer)
        self.deliver()
        return True

    def run(self) -> None:
        """Negotiate until the batch scheduler has ended it.

        Raises:
            StuckError: something waits that nothing will start.
        """
        self.connect()
        idle = 0
        while idle < PATIENCE and self.wake():
            works = any(state.machine.running for state in self.runtimes.values())
            idle = 0 if works or self.batch.next_arrival_s() is not None else idle + 1
        if not self.batch.is_finished:
            waiting = ", ".join(list(self.batch.queue)[:3]) or "jobs to come"
            raise StuckError(f"nothing happens any more, but there are: {waiting}")

    def submit(self, event: Event) -> None:
        """Let something happen to the batch scheduler, and hand over what follows."""
        self._batch(event, "")
        self.deliver()

    def _batch(self, event: Event | Message, peer: str) -> None:
        self.batch, sends = ibsched.step(self.batch, event, peer)
        for send in sends:
            self._note(send, from_batch=True)
            self._to_runtime.append(send)

    def _runtime(self, event: Event | Message, peer: str) -> None:
        self.runtimes[peer], sends = irtsched.step(self.runtimes[peer], event, peer)
        if self._watch is not None:
            self._watch(peer, self.runtimes[peer].machine)
        for send in sends:
            self._note(send, from_batch=False)
            self._to_batch.append(send)

    def _note(self, send: Send, *, from_batch: bool) -> None:
        if self._observe is not None:
            # A transaction's seconds pass on the clock of its own runtime scheduler alone.
            now = self.runtimes[send.peer].machine.now_s
            self._observe(Sent(time_s=now, from_batch=from_batch, peer=send.peer, message=send.message))
