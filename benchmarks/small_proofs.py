"""Small problems are proved: ``python benchmarks/small_proofs.py --count 200``.

Random snapshots of up to 12 jobs, every other one by default and the others for the auction alone. Prints
how many end ``optimal``, each that does not, and the most processor time of a step (seconds). The same seeds
make the same snapshots; ``--first-seed 100000`` makes others.
"""

from __future__ import annotations

import argparse
import time
from typing import NamedTuple

from random_snapshots import random_snapshot

import aucsched
from aucsched.auction import options


class Proof(NamedTuple):
    """How one step ended: its seed, its status, processor time (seconds), bids."""

    seed: int
    status: str
    seconds: float
    bids: int


def proof(seed: int) -> Proof:
    """Return how the step of a seed ends."""
    snapshot = random_snapshot(seed)
    began = time.process_time()
    if seed % 2:
        found = aucsched.schedule(snapshot, promise="none", reserve=0)
    else:
        found = aucsched.schedule(snapshot)
    return Proof(seed, found.status.value, time.process_time() - began, found.sizes.bids)


def main() -> None:
    """Print how many are proved."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--ceiling", type=float, help="seconds instead of 3, where the machine is very busy")
    given = parser.parse_args()
    if given.ceiling is not None:
        options.TIME_LIMIT_S = given.ceiling
    proofs = [proof(seed) for seed in range(given.first_seed, given.first_seed + given.count)]
    for one in proofs:
        if one.status != "optimal":
            print(f"{one.seed}: {one.status}, {one.bids} bids, {one.seconds:.2f} s")
    proved = sum(one.status == "optimal" for one in proofs)
    print(f"{proved} of {len(proofs)} proved, slowest {max(one.seconds for one in proofs):.2f} s")


if __name__ == "__main__":
    main()
