"""A real application that grows while it runs: Jacobi's iteration, on the cores that dynsched gives it.

    aucsched dynsched snapshot.json --listen unix:socket --journal server &
    python examples/growing_jacobi.py A unix:socket --journal A.journal

It iterates on the cores that its job holds, asks for two more after a quarter of the work, computes on what
it got, and gives all of it back; at its end it gives back the rest, which ends the job. Killed at any moment
and started again, it asks for nothing twice. The result is compared with a serial computation, bit for bit.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from adaptive.jacobi import JacobiApplication, serial_jacobi

from aucsched import DynState, EvolvingClient

_MORE = 2
_POLL_S = 0.01


def main() -> None:
    """Iterate, ask, grow, give back."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job")
    parser.add_argument("address")
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--secret-file", type=Path)
    parser.add_argument("--size", type=int, default=130)
    parser.add_argument("--iterations", type=int, default=400)
    parser.add_argument("--pause", type=float, default=0.002, help="seconds after each iteration")
    parser.add_argument("--timeout", type=float, default=5.0, help="of the request, in seconds")
    options = parser.parse_args()
    secret = None if options.secret_file is None else options.secret_file.read_bytes().rstrip(b"\r\n")
    with EvolvingClient(options.job, options.address, secret=secret, journal=options.journal) as client:
        last = client.recover()
        if last is not None and last.state is DynState.RELEASED and not last.held:
            print(f"{options.job}: had ended before")
            return
        _run(client, options, has_asked=last is not None)


def _run(client: EvolvingClient, options: argparse.Namespace, *, has_asked: bool) -> None:
    held = client.status().held
    application = JacobiApplication(
        options.job,
        size=options.size,
        iterations=options.iterations,
        most=64,
        after=lambda _: time.sleep(options.pause),
    )
    cores = sum(held.values())
    application.start(cores)
    _reach(application, options.iterations // 4)
    answer = client.recover() if has_asked else client.request(cores=_MORE, timeout_s=options.timeout)
    if answer is not None and answer.state is DynState.PENDING:
        answer = client.wait()
    grown = 0
    if answer is not None and answer.state is DynState.GRANTED:
        grown = sum(answer.held.values()) - cores
        if grown > 0:
            application.add_processors(grown)
        print(f"{options.job}: granted {answer.nodes}, computes on {application.processors}", flush=True)
        _reach(application, 3 * options.iterations // 4)
        if len(application.pids) > _MORE:
            application.remove_processors(_MORE)
        client.release(answer.nodes)
    application.wait()
    if not np.array_equal(application.result(), serial_jacobi(options.size, options.iterations)):
        raise SystemExit(f"{options.job}: the result differs from the serial one")
    client.release(client.status().held)
    print(f"{options.job}: done, equal to the serial result", flush=True)


def _reach(application: JacobiApplication, iteration: int) -> None:
    """Wait until an application has made this many iterations."""
    while application.iteration < iteration and not application.wait(0):
        time.sleep(_POLL_S)


if __name__ == "__main__":
    main()
