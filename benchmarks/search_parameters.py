"""What each parameter of the search changes: counted steps on small instances, with and without it.

    python benchmarks/search_parameters.py --seed 0 1 2 3 4 --parameters near=0 merge_every=1000000000

Each row compares runs with one parameter changed with runs by the defaults: values, bounds and proofs, and
processor time. No clock takes part in what is found, so that every run can be repeated.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from time import process_time

import numpy as np
import ours
from instances.families import auction_text
from instances.generate import snapshot_bytes

from aucsched import load_snapshot
from aucsched.auction.attempt import bids_of_step, starts_of
from aucsched.auction.queue import queue_of
from aucsched.auction.state import state_of
from aucsched.auction.strategies import preferences
from aucsched.bidgen.first_fit import Cluster
from aucsched.cluster.resources.capacity import FloatArray, IntArray
from aucsched.models.model import bid_weights
from aucsched.models.search.compiled_search import compiled_loop
from aucsched.models.search.packing import Packing, packing_of
from aucsched.models.search.search_parameters import Found, SearchLimits, parameters_of
from aucsched.models.winners.determine import determine

#: Bids of each family's instances over 100 goods: so many that most are not proved in 40 steps.
BIDS = {"regions": 500, "arbitrary": 380, "L6": 500, "matching": 1500, "paths": 1200, "scheduling": 1500}
#: Kinds of snapshots; of each window 1 200 bids, 24 of a job at most.
KINDS = ("tsubame", "exclusive", "fragmented")


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """What ``determine`` is given."""

    packing: Packing
    values: list[int | Fraction]
    second: FloatArray
    start: IntArray

    def worth(self, found: Found) -> float:
        """Return what an award is worth."""
        return float(sum(self.values[bid] for bid in found.award.tolist()))

    def solved(self, parameters: str, steps: int) -> tuple[Found, float]:
        """Return what so many steps find, and the seconds of the processor that they take."""
        began = process_time()
        limits = SearchLimits(
            deadline=None,
            steps=steps,
            seed=0,
            clock=process_time,
            parameters=parameters_of(parameters, "--parameters"),
        )
        found = determine(self.packing, self.values, self.second, self.start, limits)
        return found, process_time() - began


def of_family(kind: str, seed: int, folder: Path) -> Instance:
    """Return a combinatorial auction."""
    file = folder / "auction.txt"
    file.write_text(auction_text(kind, seed, bids=BIDS[kind], goods=100), encoding="utf-8")
    lot, _ = ours._lot(file)  # noqa: SLF001 - the same bids as the comparison's
    return Instance(lot.packing, list(lot.values), np.zeros(len(lot.place)), np.zeros(0, np.int64))


def of_snapshot(kind: str, seed: int, folder: Path) -> Instance:
    """Return the bids of a window."""
    file = folder / "snapshot.json"
    file.write_bytes(snapshot_bytes(kind, seed))
    snapshot = load_snapshot(file)
    options = replace(ours.options_of(kind), max_bids=1200, window=100, max_bids_per_job=24)
    state = state_of(snapshot)
    cluster = Cluster(state.columns, state.topology)
    window, others = ours.bidders(state, queue_of(snapshot, state.reader, options).window, 0)
    bids = bids_of_step(window, cluster, options, None, others)
    _, start = starts_of(bids, cluster, options)
    second, _ = preferences(bids.table, cluster, options)
    weights = bid_weights(bids.table, options.objective)
    return Instance(packing_of(bids.table, cluster.columns), list(weights), second, start)


def main() -> int:
    """Print a row for each changed parameter: how runs differ from those by the defaults, in percent."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", nargs="+", type=int, default=[0])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--parameters", nargs="+", default=[""], metavar="NAME=NUMBER")
    arguments = parser.parse_args()
    compiled_loop()
    with tempfile.TemporaryDirectory() as name:
        made = [
            make(kind, seed, Path(name))
            for make, kinds in ((of_family, BIDS), (of_snapshot, KINDS))
            for kind in kinds
            for seed in arguments.seed
        ]
    plain = [one.solved("", arguments.steps) for one in made]
    print("| parameter | runs | value mean | least | most | bound mean | proofs | processor time |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for changed in arguments.parameters:
        found = [one.solved(changed, arguments.steps) for one in made]
        worth = [
            100 * (one.worth(new) / one.worth(old) - 1)
            for one, (new, _), (old, _) in zip(made, found, plain, strict=True)
        ]
        bound = [
            100 * float((new.bound or 0) / (old.bound or 1) - 1)
            for (new, _), (old, _) in zip(found, plain, strict=True)
        ]
        proofs = sum(new.proved for new, _ in found) - sum(old.proved for old, _ in plain)
        share = sum(seconds for _, seconds in found) / sum(seconds for _, seconds in plain)
        print(
            f"| {changed} | {len(made)} | {np.mean(worth):+.4f} | {min(worth):+.3f} | {max(worth):+.3f} "
            f"| {np.mean(bound):+.4f} | {proofs:+d} | {share:.2f} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
