"""The auction's side of a comparison, a process of its own: the program of an instance, and its award.

    python benchmarks/ours.py export KIND SEED SNAPSHOT PROGRAM
    python benchmarks/ours.py schedule KIND SNAPSHOT SECONDS STRATEGY ANSWER

``export`` writes the snapshot and what ``aucsched schedule --export`` writes of it. ``schedule`` runs the
real auction and names its winners as columns of that program. STRATEGY may be ``default``.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from instances.generate import KINDS, snapshot_bytes
from peers import Answer, Values, write_answer

from aucsched import Award, Snapshot, load_snapshot
from aucsched.auction.decide import bidders
from aucsched.auction.export import export
from aucsched.auction.options import StepOptions
from aucsched.auction.queue import queue_of
from aucsched.auction.state import state_of
from aucsched.auction.stated import Stated
from aucsched.auction.step import run_step
from aucsched.auction.strategies import bid_options, state
from aucsched.bidgen.generate import generate_bids
from aucsched.bidgen.table import BidTable

#: A job, the nodes it gets, and on each its cores and gres.
Placed = tuple[str, tuple[tuple[str, int, tuple[tuple[str, int], ...]], ...]]


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
    """Run the auction; its values are None when it awards what is no bid of the whole window.

    The bound of a window that was halved bounds that half only: there is none then.
    """
    result = run_step(snapshot, options_of(kind, seconds, strategy))
    is_whole = bool(result.attempts) and result.window == result.attempts[0].size
    return Answer(
        status=result.status.value if is_whole else f"{result.status.value}, window {result.window}",
        bound=result.objective.bound if is_whole else None,
        seconds=result.seconds.total,
        values=_values(kind, snapshot, result.started),
        worth=float(result.objective.priority),
        jobs=len(result.started),
    )


def _program_of(kind: str, snapshot: Snapshot) -> tuple[BidTable, Stated]:
    options = options_of(kind)
    cluster = state_of(snapshot)
    columns, topology = cluster.columns, cluster.topology
    window, others = bidders(cluster, queue_of(snapshot, columns, options).window, options.reserve)
    table = generate_bids(window, columns, topology, bid_options(options), others=others).table
    return table, state(table, columns, topology, options)


def _values(kind: str, snapshot: Snapshot, awards: tuple[Award, ...]) -> Values | None:
    table, stated = _program_of(kind, snapshot)
    names = np.array([node.name for node in snapshot.nodes])
    column = {_bid(table, bid, names): stated.names[bid] for bid in range(len(table))}
    placed = [_award(award) for award in awards]
    return {column[one]: 1.0 for one in placed} if all(one in column for one in placed) else None


def _bid(table: BidTable, bid: int, names: np.ndarray) -> Placed:
    held = table.entries(bid)
    gres = [
        tuple((name, int(counts[place])) for name, counts in sorted(table.gres.items()) if counts[place])
        for place in range(held.start, held.stop)
    ]
    nodes = zip(names[table.node[held]].tolist(), table.cores[held].tolist(), gres, strict=True)
    return table.demands[int(table.job[bid])].job.id, tuple(sorted(nodes))


def _award(award: Award) -> Placed:
    nodes = (
        (name, use.cores, tuple(sorted((kind, count) for kind, count in use.gres.items() if count)))
        for name, use in award.nodes.items()
    )
    return award.job, tuple(sorted(nodes))


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
