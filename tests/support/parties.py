"""Parties served in threads over sockets, for tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from aucsched.negotiation.batch import ibsched
from aucsched.negotiation.batch.batch_state import Arrival, BatchState
from aucsched.negotiation.batch.mapping import BatchSettings
from aucsched.negotiation.runtime import irtsched
from aucsched.negotiation.runtime.irtsched import RuntimeState
from aucsched.negotiation.runtime.settings import RuntimeSettings
from aucsched.negotiation.transport.handshake import Identity, PartyName
from aucsched.negotiation.transport.link import LinkLimits, address_of
from aucsched.negotiation.transport.listener import Link, Listener
from aucsched.negotiation.transport.party import Party
from support.negotiation import check_jobs, machine, malleable, rigid

NODES = 4
ARRIVALS = (
    Arrival(time_s=0.0, job=rigid("a", 3, 100)),
    Arrival(time_s=0.0, job=malleable("m", 1, 4, 90, priority=99)),
    Arrival(time_s=20.0, job=rigid("b", 4, 30, priority=98)),
    Arrival(time_s=40.0, job=rigid("z", 2, 7, priority=1), urgent=True),
    Arrival(time_s=400.0, job=malleable("c", 1, 2, 10, priority=97)),
)
LIMITS = LinkLimits(timeout_s=20.0, wait_s=20.0)


def identity(party: PartyName, secret: bytes | None = None) -> Identity:
    return Identity(party=party, terms={"workload": "w"}, notes={}, secret=secret)


def batch_party(arrivals: tuple[Arrival, ...] = ARRIVALS) -> Party[BatchState]:
    return Party(BatchState(settings=BatchSettings(ends_when_done=True), arrivals=arrivals), ibsched.step)


def runtime_party(nodes: int = NODES) -> Party[RuntimeState]:
    return Party(RuntimeState(settings=RuntimeSettings(), machine=machine(nodes)), irtsched.step)


class Served(threading.Thread):
    """A party that is served in a thread; ``end`` waits for it and raises what it raised."""

    def __init__(self, serve: Callable[..., None], party: Party[Any], link: Link) -> None:
        super().__init__(daemon=True)
        self.party, self.told = party, list[str]()
        self._serve, self._link = serve, link
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        """Serve it."""
        try:
            self._serve(self.party, self._link, self.told.append)
        except BaseException as error:  # noqa: BLE001 - it is raised again by end
            self._error = error
        finally:
            self._link.close()

    def end(self) -> None:
        """Wait until it has ended."""
        self.join(30)
        assert not self.is_alive()
        if self._error is not None:
            raise self._error


@contextmanager
def listening(
    party: PartyName, limits: LinkLimits = LIMITS, address: str = "127.0.0.1:0", secret: bytes | None = None
) -> Iterator[tuple[Listener, list[str]]]:
    """Give a listener, and what it tells of strangers."""
    told: list[str] = []
    listener = Listener(address_of(address), identity(party, secret), limits, told.append)
    try:
        yield listener, told
    finally:
        listener.close()


def check_done(batch: Party[BatchState], runtime: Party[RuntimeState]) -> None:
    """Assert that all jobs ran once, as both parties see it."""
    names = sorted(arrival.job.job for arrival in batch.state.arrivals)
    assert sorted(batch.state.done) == sorted(runtime.state.machine.done) == names
    assert not runtime.state.machine.running
    assert runtime.state.machine.idle == (1 << NODES) - 1
    check_jobs(batch.state, runtime.state.machine)
