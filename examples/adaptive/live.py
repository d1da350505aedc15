"""A live iScheduler: it grows and shrinks adaptive applications that run on this machine (Weissman 2.1)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, Queue
from threading import Thread

from aucsched.negotiation.malleable.malleable_policies import IschedulerPolicy

from .protocol import Adaptive
from .scheduler import Application, Decision, Event, decide


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An application's processors from a moment on, in seconds since the scheduler began."""

    time_s: float
    name: str
    processors: int


@dataclass(slots=True, kw_only=True)
class _Running:
    """An application that runs, and what the scheduler keeps of it."""

    adaptive: Adaptive
    count: int
    start_s: float
    harvests: int = 0


@dataclass(slots=True)
class LiveScheduler:
    """An iScheduler over processors of this machine.

    Attributes:
        processors: how many it shares out.
        policy: its components.
        model: of execution, by which it weighs applications (policies.EXECUTION_MODELS).
        history: every change that it made, in order.
    """

    processors: int
    policy: IschedulerPolicy
    model: str = "linear"
    history: list[Change] = field(default_factory=list)
    _running: dict[str, _Running] = field(default_factory=dict)
    _queued: list[Adaptive] = field(default_factory=list)
    _began: float = 0.0

    def run(self, arrivals: Sequence[tuple[float, Adaptive]]) -> None:
        """Run applications to their ends.

        Args:
            arrivals: seconds from now on with the application that comes then, rising.

        Raises:
            Exception: what went wrong in an application.
        """
        self._began = time.monotonic()
        ended: Queue[str] = Queue()
        coming = list(arrivals)
        while coming or self._running or self._queued:
            timeout = coming[0][0] - self._now() if coming else None
            try:
                name = ended.get(timeout=None if timeout is None else max(timeout, 0.0))
            except Empty:
                self._queued.append(coming.pop(0)[1])
                self._decide(Event.ARRIVAL, ended)
                continue
            gone = self._running.pop(name)
            self._keep(name, 0)
            gone.adaptive.wait()
            self._decide(Event.END, ended)

    def _now(self) -> float:
        return time.monotonic() - self._began

    def _keep(self, name: str, processors: int) -> None:
        self.history.append(Change(time_s=self._now(), name=name, processors=processors))

    def _decide(self, event: Event, ended: Queue[str]) -> None:
        active = [self._sensed(name, one) for name, one in self._running.items()]
        queued = [_waiting(adaptive) for adaptive in self._queued]
        found = decide(event, self._now(), self.model, active, queued, self.processors, self.policy)
        self._actuate(found, ended)

    def _sensed(self, name: str, one: _Running) -> Application:
        """Return what is known of a running application."""
        resources = one.adaptive.resources()
        return Application(
            name=name,
            least=resources.least,
            ideal=max(resources.ideal, one.count),
            left_s=_left_s(one.adaptive),
            # What has ended since the last event holds its processors until its own event comes.
            count=one.count,
            start_s=one.start_s,
            harvests=one.harvests,
        )

    def _actuate(self, found: Decision, ended: Queue[str]) -> None:
        """Let applications give first, then grow, then start."""
        for name in found.harvested:
            self._running[name].harvests += 1
        changes = [
            (count - self._running[name].count, name)
            for name, count in found.counts.items()
            if name in self._running
        ]
        for change, name in sorted(changes):
            one = self._running[name]
            if change < 0:
                one.adaptive.remove_processors(-change)
            else:
                one.adaptive.add_processors(change)
            one.count += change
            self._keep(name, one.count)
        for adaptive in [one for one in self._queued if one.name in found.counts]:
            self._queued.remove(adaptive)
            count = found.counts[adaptive.name]
            self._running[adaptive.name] = _Running(adaptive=adaptive, count=count, start_s=self._now())
            adaptive.start(count)
            self._keep(adaptive.name, count)
            Thread(target=_report, args=(adaptive, ended), daemon=True).start()


def _report(adaptive: Adaptive, ended: Queue[str]) -> None:
    """Say when an application has ended; what went wrong in it is for who asks it then."""
    with suppress(Exception):
        adaptive.wait()
    ended.put(adaptive.name)


def _waiting(adaptive: Adaptive) -> Application:
    resources = adaptive.resources()
    return Application(
        name=adaptive.name, least=resources.least, ideal=resources.ideal, left_s=_left_s(adaptive)
    )


def _left_s(adaptive: Adaptive) -> float:
    """Return the predicted seconds that the iterations to come take."""
    predicted = adaptive.exec_time(1, 0).predicted_s
    return adaptive.iterations_left * (predicted or 0.0)
