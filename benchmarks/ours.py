"""The auction's side of a comparison, a process of its own: the program of an instance, and its award.

    python benchmarks/ours.py export KIND SEED SNAPSHOT PROGRAM
    python benchmarks/ours.py schedule KIND SNAPSHOT SECONDS STRATEGY ANSWER

``export`` writes the snapshot and what ``aucsched schedule --export`` writes of it. ``schedule`` determines
the winners among the same bids, as columns of that program. STRATEGY may be ``default``.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np
from instances.generate import KINDS, snapshot_bytes
from peers import Answer, write_answer

from aucsched import Snapshot, load_snapshot
from aucsched.auction.decide import bidders
from aucsched.auction.export import export
from aucsched.auction.options import StepOptions
from aucsched.auction.queue import queue_of
from aucsched.auction.state import state_of
from aucsched.auction.stated import Stated, bid_weights
from aucsched.auction.strategies import Cluster, bid_options, preferences, state
from aucsched.bidgen.generate import generate_bids
from aucsched.bidgen.table import BidTable
from aucsched.models.search.anytime import Limits
from aucsched.models.search.compiled import compiled_loop
from aucsched.models.search.packing import packing_of
from aucsched.models.winners.determine import determine


def options_of(kind: str, seconds: float = 3.0, strategy: str = "default") -> StepOptions:
    """Return the options of the auction over a kind's instances."""
    chosen = KINDS[kind]
    options = StepOptions(
        window=chosen.window,
        max_bids=chosen.max_bids,
        max_bids_per_job=chosen.max_bids_per_job,
        time_limit_s=seconds,
    )
    return options if strategy == "default" else replace(options, strategy=strategy)


def write_instance(kind: str, seed: int, snapshot: Path, program: Path) -> None:
    """Write an instance's snapshot, and the program over its whole window."""
    snapshot.write_bytes(snapshot_bytes(kind, seed))
    _, stated = _program_of(kind, load_snapshot(snapshot))
    export(stated, str(program), weighted=False)


def auctioned(kind: str, snapshot: Snapshot, seconds: float, strategy: str) -> Answer:
    """Determine the winners among the program's bids, as every step does: the same bids as the others have.

    A step goes on from there, with rounds of further bids; benchmarks/whole_step.py shows what it comes to.
    """
    options = options_of(kind, seconds, strategy)
    table, stated = _program_of(kind, snapshot)
    ground = state_of(snapshot)
    cluster = Cluster(columns=ground.columns, topology=ground.topology)
    packing = packing_of(table, cluster.columns)
    preference, _ = preferences(table, cluster, options)
    compiled_loop()
    began = perf_counter()
    limits = Limits(deadline=began + seconds, steps=None, seed=options.seed, clock=perf_counter)
    found = determine(
        packing,
        bid_weights(table, options.objective),
        preference,
        np.zeros(0, np.int64),
        limits,
        strategy=options.chosen_strategy,
    )
    return Answer(
        status=found.status.value,
        bound=float(found.bound),
        seconds=perf_counter() - began,
        values={stated.names[bid]: 1.0 for bid in found.award.tolist()},
    )


def _program_of(kind: str, snapshot: Snapshot) -> tuple[BidTable, Stated]:
    options = options_of(kind)
    cluster = state_of(snapshot)
    columns, topology = cluster.columns, cluster.topology
    window, others = bidders(cluster, queue_of(snapshot, columns, options).window, options.reserve)
    table = generate_bids(window, columns, topology, bid_options(options), others=others).table
    return table, state(table, columns, topology, options)


def main() -> int:
    """Do what the arguments say."""
    what, kind, *rest = sys.argv[1:]
    if what == "export":
        write_instance(kind, int(rest[0]), Path(rest[1]), Path(rest[2]))
    else:
        snapshot, seconds, strategy, answer = rest
        write_answer(answer, auctioned(kind, load_snapshot(snapshot), float(seconds), strategy))
    return 0


if __name__ == "__main__":
    sys.exit(main())
