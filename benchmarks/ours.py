"""The auction's side of a comparison, a process of its own: the program of an instance, and its award.

    python benchmarks/ours.py export KIND SEED INSTANCE PROGRAM START
    python benchmarks/ours.py schedule KIND INSTANCE SECONDS STRATEGY ANSWER

``export`` writes the snapshot, what ``aucsched schedule --export`` writes of it, and the award that a step
begins with as columns that are 1: every solver begins with it; for a kind of instances/families.py the file
of bids and what ``aucsched winners --export`` writes. ``schedule`` determines the winners among the same
bids, as columns of that program. STRATEGY may be ``default``. Seconds are of the processor.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from time import process_time

import numpy as np
from instances.families import FAMILIES, auction_text
from instances.generate import KINDS, snapshot_bytes
from peers import Answer, write_answer, write_start

from aucsched import Snapshot, load_snapshot
from aucsched.auction.attempt import bids_of_step, starts_of
from aucsched.auction.decide import MANY, cap_identical_jobs
from aucsched.auction.options import StepOptions
from aucsched.auction.queue import queue_of
from aucsched.auction.state import StepState, state_of
from aucsched.auction.step_pass import split
from aucsched.auction.strategies import build_model, export, preferences
from aucsched.bidgen.first_fit import Cluster
from aucsched.bidgen.generate import Others
from aucsched.bidgen.table import BidTable
from aucsched.cluster.resources.capacity import FloatArray, IntArray
from aucsched.cluster.resources.demand import Demand
from aucsched.formats.auction_file import load_auction
from aucsched.models.model import Model, bid_weights
from aucsched.models.search.compiled_search import compiled_loop
from aucsched.models.search.packing import Packing, packing_of
from aucsched.models.search.search_parameters import SearchLimits
from aucsched.models.winners.determine import determine
from aucsched.models.winners.instance import ProblemInstance, export_instance, read_instance


def options_of(kind: str, seconds: float = 3.0, strategy: str = "default") -> StepOptions:
    """Return the options of the auction over a kind's instances."""
    chosen = KINDS[kind]
    options = StepOptions(
        window=chosen.window,
        max_bids=chosen.max_bids,
        max_bids_per_job=chosen.max_bids_per_job,
        time_limit_s=seconds,
        promise="plan",
        reserve=0,
    )
    return options if strategy == "default" else replace(options, strategy=strategy)  # type: ignore[arg-type]


def write_instance(kind: str, seed: int, instance: Path, program: Path, start: Path) -> None:
    """Write an instance, the program over all of its bids, and the columns that a step begins with."""
    if kind in FAMILIES:
        instance.write_text(auction_text(kind, seed), encoding="utf-8")
        lot, names = _lot(instance)
        export_instance(lot, names, str(program))
        write_start(start, ())
        return
    instance.write_bytes(snapshot_bytes(kind, seed))
    _, model, begin = _program_of(kind, load_snapshot(instance))
    export(model, str(program), weighted=False)
    write_start(start, [model.names[bid] for bid in begin.tolist()])


def auctioned(kind: str, instance: Path, seconds: float, strategy: str) -> Answer:
    """Determine the winners among the program's bids, as every step does: the same bids as the others have.

    A step goes on from there, with rounds of further bids; benchmarks/whole_step.py shows what it comes to.
    """
    if kind in FAMILIES:
        lot, given = _lot(instance)
        names = [given[place] for place in lot.place.tolist()]
        nobody = np.zeros(0, np.int64)
        return _answer(lot.packing, lot.values, np.zeros(len(names)), names, nobody, seconds, strategy)
    options = options_of(kind, seconds, strategy)
    snapshot = load_snapshot(instance)
    table, model, begin = _program_of(kind, snapshot)
    ground = state_of(snapshot)
    cluster = Cluster(columns=ground.columns, topology=ground.topology)
    packing = packing_of(table, cluster.columns)
    preference, _ = preferences(table, cluster, options)
    weights = bid_weights(table, options.objective)
    return _answer(packing, weights, preference, model.names, begin, seconds, options.chosen_strategy)


def _answer(
    packing: Packing,
    values: Sequence[int | Fraction],
    preference: FloatArray,
    names: Sequence[str],
    begin: IntArray,
    seconds: float,
    strategy: str,
) -> Answer:
    compiled_loop()
    began = process_time()
    limits = SearchLimits(deadline=began + seconds, steps=None, seed=0, clock=process_time)
    chosen = "anytime" if strategy == "default" else strategy
    found = determine(packing, values, preference, begin, limits, strategy=chosen)
    return Answer(
        status=found.status.value,
        bound=float(found.bound or 0),
        seconds=process_time() - began,
        values={names[bid]: 1.0 for bid in found.award.tolist()},
    )


def _lot(instance: Path) -> tuple[ProblemInstance, tuple[str, ...]]:
    """Return the bids of a file, and the names of their columns as ``aucsched winners --export`` has them."""
    auction = load_auction(instance)
    names = tuple(f"bid{number}" for number in auction.numbers)
    return read_instance(auction.bids, auction.capacities, auction.groups), names


def bidders(
    state_now: StepState, window: tuple[Demand, ...], reserve: int
) -> tuple[tuple[Demand, ...], Others]:
    """Return the jobs of a window that bid, with their places among them, and what the others are to them."""
    views = state_now.views_on(state_now.columns)
    able = views.startable(window)
    bidding = cap_identical_jobs(window, able, views, reserve, MANY, lambda demand: demand.kind)
    return split(window, bidding, able)


def _program_of(kind: str, snapshot: Snapshot) -> tuple[BidTable, Model, IntArray]:
    """Return the bids of a step, the program over them, and the award that the step begins with."""
    options = options_of(kind)
    state_now = state_of(snapshot)
    columns, topology = state_now.columns, state_now.topology
    cluster = Cluster(columns=columns, topology=topology)
    queue = queue_of(snapshot, state_now.reader, options)
    window, others = bidders(state_now, queue.window, options.reservations)
    bids = bids_of_step(window, cluster, options, None, others)
    _, begin = starts_of(bids, cluster, options)
    return bids.table, build_model(bids.table, cluster, options), begin


def main() -> int:
    """Do what the arguments say."""
    what, kind, *rest = sys.argv[1:]
    if what == "export":
        write_instance(kind, int(rest[0]), *map(Path, rest[1:]))
    else:
        instance, seconds, strategy, answer = rest
        write_answer(answer, auctioned(kind, Path(instance), float(seconds), strategy))
    return 0


if __name__ == "__main__":
    sys.exit(main())
