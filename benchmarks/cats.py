"""The search on combinatorial auctions that others publish: CATS (Leyton-Brown, Pearson, Shoham 2000).

    python benchmarks/cats.py FOLDER --seconds 3 --seeds 2

FOLDER holds CATS files (.txt or .txt.gz). A table of other programs' values in its README.md (a line a
file: ``| name | bids | goods | value ... |``) is set beside ours. Prices are rounded to integers. The award
is checked by the goods alone before its value counts. Seconds are of the processor, so that a busy machine
does not change what is found; HiGHS's own limits are of the wall.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aucsched.models.search.compiled_search import compiled_loop
from aucsched.models.search.packing import Packing, packing_from
from aucsched.models.search.search_parameters import Found, SearchLimits
from aucsched.models.winners.determine import determine


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Auction:
    """Bids of a file: the price of each, and the goods it wants (dummy goods among them)."""

    prices: list[int]
    goods: list[frozenset[int]]

    def packing(self) -> Packing:
        """Return the bids as the search takes them: each bidder has one, each good is there once."""
        bids = np.arange(len(self.prices))
        bid = np.repeat(bids, [len(one) for one in self.goods])
        row = np.array([good for one in self.goods for good in sorted(one)], np.int64)
        capacity = np.ones(int(row.max(initial=-1)) + 1, np.int64)
        return packing_from(bids, bid, row, np.ones(len(row), np.int64), capacity)

    def value(self, award: Sequence[int]) -> int:
        """Return what an award brings; it is checked that no good is sold twice."""
        sold = [good for bid in award for good in self.goods[bid]]
        assert len(sold) == len(set(sold)), "a good is sold twice"
        return sum(self.prices[bid] for bid in award)


def read_cats(path: Path) -> Auction:
    """Return the auction of a CATS file, plain or gzip."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    bids = [line.split() for line in text.splitlines() if line[:1].isdigit()]
    return Auction(
        prices=[round(float(bid[1])) for bid in bids],
        goods=[frozenset(int(good) for good in bid[2 : bid.index("#")]) for bid in bids],
    )


def solved(auction: Auction, seconds: float, seed: int) -> Found:
    """Search for so many seconds of the processor."""
    packing, nothing = auction.packing(), np.zeros(0, np.int64)
    clock = time.process_time
    limits = SearchLimits(deadline=clock() + seconds, steps=None, seed=seed, clock=clock)
    return determine(packing, auction.prices, np.zeros(len(packing)), nothing, limits)


def known(folder: Path) -> dict[str, list[str]]:
    """Return the columns after bids and goods of the README's table, by file; its header under ``file``."""
    readme = folder / "README.md"
    rows = readme.read_text(encoding="utf-8").splitlines() if readme.exists() else []
    cells = [[cell.strip() for cell in row.strip("| ").split("|")] for row in rows if row.startswith("|")]
    return {row[0]: row[3:] for row in cells if len(row) > 3}


def main() -> int:
    """Print a line a file as soon as it is there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=3.0, help="of the processor, for each seed (3)")
    parser.add_argument("--seeds", type=int, default=2, help="how many (2)")
    arguments = parser.parse_args()
    files = sorted(arguments.folder.glob("*.txt*"))
    if not files:
        parser.error(f"{arguments.folder}: no file *.txt or *.txt.gz")
    others = known(arguments.folder)
    print("moves:", "plain Python" if compiled_loop() is None else "compiled")
    ours = [f"seed {seed}, {arguments.seconds:g} s" for seed in range(arguments.seeds)]
    print("|", " | ".join(["file", "bids", *ours, "bound", *others.get("file", [])]), "|")
    print("|---|", "--:|" * (2 + len(ours) + len(others.get("file", []))), sep="")
    for path in files:
        auction = read_cats(path)
        found = [solved(auction, arguments.seconds, seed) for seed in range(arguments.seeds)]
        values = [f"{auction.value(one.award.tolist()):,}" for one in found]
        name = path.name.removesuffix(".gz")
        bound = min(one.bound for one in found if one.bound is not None)
        cells = [name, f"{len(auction.prices)}", *values, f"{float(bound):,.0f}", *others.get(name, [])]
        print("|", " | ".join(cells), "|", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
