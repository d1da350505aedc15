"""Attack the sockets of a negotiation: crowds of strangers, garbage before and after the handshake, kills.

    python benchmarks/attack_sockets.py --repeats 5 --sequences 500 --kills 20

Each party listens in a process of its own, over TCP on 127.0.0.1 and over a unix socket, with a shared
secret and without. Measured is how long the true party waits, from its connect to the first answer to its
first message, while 200 connections say nothing, 200 send garbage (a quarter of it the slowest there is to
decode) and 50 send a byte now and then; and how
long a whole negotiation takes while strangers go on connecting. Then come sequences of bytes that are no
messages, from strangers and from who has proved the secret; the listener must be there afterwards, without
a traceback, and negotiate to the end. Last, ``negotiation_kill`` kills both parties. The exit code is 1 when
the true party waits longer than the limit, or anything else of this fails.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import negotiation_kill
from socket_garbage import garbage, sequences
from socket_listener import ENDPOINTS, BrokenError, Listening, listening, play_in, small_workload

from aucsched.cluster.errors import AucschedError
from aucsched.negotiation.transport.framing import PeerLostError, framed
from aucsched.simulation.negotiated.plays import Play

#: The longest that the true party may wait under the load, in seconds.
WITHIN_S = 2.0
#: How often each of the slow ones sends a byte, and how many connect a second while a negotiation runs.
_SLOW_S, _RATE = 0.2, 200
#: Negotiations alone, and in a crowd: both mostly start a process, whose time depends on the machine's load.
_PACES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How many strangers connect at once, and what they do."""

    silent: int = 200
    garbage: int = 200
    slow: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What came of it.

    Attributes:
        served_s: how long the true party waited under the load, by listener, a number a repeat.
        strangers: how many connected at once.
        before, after: sequences that were no messages, before the handshake and after it, by listener.
        quiet_s, crowded_s: a whole negotiation alone, and while strangers go on connecting, the shortest of
            three each.
        connected: how many did.
        kills: of both parties, with nothing lost.
    """

    served_s: dict[str, tuple[float, ...]]
    strangers: int
    before: dict[str, int]
    after: dict[str, int]
    quiet_s: float
    crowded_s: float
    connected: int
    kills: int


# Crowds.


@contextmanager
def crowd(listener: Listening, load: Load, generator: random.Random) -> Iterator[None]:
    """Keep a crowd of strangers connected; the slow ones send a byte of a hello each now and then."""
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(listener.stranger()) for _ in range(load.silent)]
        for _ in range(load.garbage):
            stranger = stack.enter_context(listener.stranger())
            with contextlib.suppress(OSError):
                stranger.sendall(garbage(generator))
        slow = [stack.enter_context(listener.stranger()) for _ in range(load.slow)]
        ends = threading.Event()
        thread = threading.Thread(target=_drip, args=(slow, ends), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ends.set()
            thread.join()
            del silent


def _drip(slow: Sequence[socket.socket], ends: threading.Event) -> None:
    text = framed(b'{"message":"HELLO","version":1,"party":"ibsched"' + b" " * 500, 1000)
    for place in range(len(text)):
        for stranger in slow:
            with contextlib.suppress(OSError):
                stranger.send(text[place : place + 1])
        if ends.wait(_SLOW_S):
            return


def served_under_load(listener: Listening, load: Load, repeats: int, generator: random.Random) -> list[float]:
    """Return how long the true party waits under the load, a number of seconds a repeat."""
    found = []
    for _ in range(repeats):
        with crowd(listener, load, generator):
            found.append(listener.served_s())
        listener.check_alive(b"a crowd")
    return found


def crowded_negotiation(listener: Listening, rate: int = _RATE) -> tuple[float, int]:
    """Return how long a negotiation takes while strangers go on connecting, in seconds, and how many did."""
    ends, count = threading.Event(), [0]

    def connect() -> None:
        open_ = list[socket.socket]()
        while not ends.wait(1 / rate):
            with contextlib.suppress(OSError):
                open_.append(listener.stranger())
                count[0] += 1
            if len(open_) > 200:
                open_.pop(0).close()
        for stranger in open_:
            stranger.close()

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    try:
        return listener.negotiate(), count[0]
    finally:
        ends.set()
        thread.join()


# Garbage.


def said_before(listener: Listening, count: int, generator: random.Random) -> int:
    """Send sequences to a listener as strangers do; return how many."""
    for text in sequences(count, generator):
        with listener.stranger() as stranger, contextlib.suppress(OSError):
            stranger.sendall(text)
            stranger.shutdown(socket.SHUT_WR)
            while stranger.recv(2**16):
                pass
        listener.check_alive(text)
    return count


def said_after(listener: Listening, count: int, generator: random.Random) -> int:
    """Send sequences to a listener as one does who has proved the secret; return how many."""
    for text in sequences(count, generator):
        transport = listener.proved()
        with contextlib.suppress(OSError, PeerLostError):
            connection = transport._socket  # noqa: SLF001 - past its own checks
            connection.sendall(text)
            connection.shutdown(socket.SHUT_WR)
            while transport.receive(30.0):
                pass
        transport.close()
        listener.check_alive(text)
    return count


# All of it.


def run(
    seed: int,
    *,
    repeats: int = 5,
    sequences_each: int = 500,
    kills: int = 20,
    load: Load | None = None,
    within_s: float = WITHIN_S,
) -> Figures:
    """Attack every listener, and return the figures.

    Args:
        seed: of what is sent, of the workload, and of the kills.
        repeats: crowds a listener.
        sequences_each: sequences before the handshake, and as many after it, shared out among the listeners.
        kills: of both parties together.
        load: the crowd.
        within_s: the longest that the true party may wait under it.

    Raises:
        BrokenError: a listener has ended, printed what it should not, or let the other wait for too long.
        LostError: a kill lost something.
    """
    generator, load = random.Random(seed), load or Load()  # noqa: S311 - bytes to send, no secrets
    served: dict[str, tuple[float, ...]] = {}
    before: dict[str, int] = {}
    after: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as place:
        workload = small_workload(Path(place), seed)
        play = play_in(workload)
        for number, endpoint in enumerate(ENDPOINTS):
            share = len(range(number, sequences_each, len(ENDPOINTS)))
            with listening(endpoint, play, workload) as listener:
                served[str(endpoint)] = tuple(served_under_load(listener, load, repeats, generator))
                before[str(endpoint)] = said_before(listener, share, generator)
                after[str(endpoint)] = said_after(listener, share, generator)
                listener.negotiate()
            _check_times(served, within_s)
        quiet_s, crowded_s, connected = _paces(play, workload)
        killed = negotiation_kill.run(
            [str(workload)], mapper="greedy", party="either", kills=kills, seed=seed
        )
    return Figures(
        served_s=served,
        strangers=load.silent + load.garbage + load.slow,
        before=before,
        after=after,
        quiet_s=quiet_s,
        crowded_s=crowded_s,
        connected=connected,
        kills=killed.kills.total(),
    )


def _paces(play: Play, workload: Path) -> tuple[float, float, int]:
    """Return the shortest of a few negotiations alone, of as many in a crowd, and how many connected."""
    quiet_s, crowded = [], []
    for _ in range(_PACES):
        with listening(ENDPOINTS[0], play, workload) as listener:
            quiet_s.append(listener.negotiate())
        with listening(ENDPOINTS[0], play, workload) as listener:
            crowded.append(crowded_negotiation(listener))
    return min(quiet_s), min(took_s for took_s, _ in crowded), sum(count for _, count in crowded)


def _check_times(served: dict[str, tuple[float, ...]], within_s: float) -> None:
    for endpoint, times in served.items():
        if max(times, default=0.0) > within_s:
            raise BrokenError(
                f"{endpoint}: the true party waited {max(times):.2f} s, not within {within_s:g} s"
            )


def lines(figures: Figures) -> Iterator[str]:
    """Give the figures for people."""
    times = [time_s for found in figures.served_s.values() for time_s in found]
    for endpoint, found in figures.served_s.items():
        each = " ".join(f"{time_s:.3f}" for time_s in found)
        said = f"{figures.before[endpoint]} and {figures.after[endpoint]} sequences"
        yield f"  {endpoint:<26} served after {each} s; {said}"
    longest = f"{max(times, default=0):.3f} s at most in {len(times)} times"
    yield f"  served      {longest}, under {figures.strangers} strangers"
    before, after = sum(figures.before.values()), sum(figures.after.values())
    yield f"  sequences   {before} before the handshake, {after} after it: the listeners went on"
    pace = f"{figures.quiet_s:.2f} s alone, {figures.crowded_s:.2f} s while {figures.connected} connect"
    yield f"  negotiation {pace}"
    yield f"  kills       {figures.kills}, nothing lost or done twice"


def main() -> int:
    """Attack, and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5, help="crowds a listener")
    parser.add_argument("--sequences", type=int, default=500, help="before the handshake, and after it")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--json", action="store_true", help="print one object")
    arguments = parser.parse_args()
    figures = run(
        arguments.seed, repeats=arguments.repeats, sequences_each=arguments.sequences, kills=arguments.kills
    )
    print(json.dumps(asdict(figures)) if arguments.json else "\n".join(lines(figures)))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (BrokenError, negotiation_kill.LostError, AucschedError) as error:
        sys.exit(f"FAILED: {error}")
