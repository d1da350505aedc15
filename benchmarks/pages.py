"""How fast reports open: ``python benchmarks/pages.py`` writes large ones and opens them in Chromium.

A schedule of 1408 nodes with 20 000 waiting jobs, and a simulation of 20 000 jobs on 1408 nodes' cores.
Printed are seconds to write a page, its size, and milliseconds until headless Chromium has drawn it. The
gate: below 3 s.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import aucsched

NODES, JOBS, GATE_MS = 1408, 20_000, 3000


def cluster(seed: int) -> aucsched.Snapshot:
    """Return a busy machine with many waiting jobs."""
    rng = random.Random(seed)  # noqa: S311 - an instance, no secret
    nodes = [
        aucsched.Node(
            name=f"n{place:04}",
            total=aucsched.Resources(cores=12),
            free=aucsched.Resources(cores=rng.randint(0, 12)),
        )
        for place in range(NODES)
    ]
    leaves = [
        aucsched.Switch(name=f"leaf{first:04}", nodes=[node.name for node in nodes[first : first + 16]])
        for first in range(0, NODES, 16)
    ]
    root = aucsched.Switch(name="root", switches=[leaf.name for leaf in leaves])
    jobs = [
        aucsched.Job(
            id=str(number),
            priority=rng.randint(1, 10**6),
            user=f"user{rng.randrange(60)}",
            request=aucsched.Request(nodes=rng.randint(1, 16), cores_per_node=rng.randint(1, 12)),
        )
        for number in range(JOBS)
    ]
    return aucsched.Snapshot(nodes=nodes, jobs=jobs, switches=[*leaves, root])


def log(seed: int) -> aucsched.SwfLog:
    """Return a log of as many jobs."""
    rng = random.Random(seed)  # noqa: S311 - an instance, no secret
    rows, now = [f"; MaxProcs: {NODES * 12}"], 0
    for number in range(1, JOBS + 1):
        now += rng.randrange(60)
        run, size = rng.randint(60, 40_000), int(2 ** rng.uniform(0, 12))
        rows.append(f"{number} {now} -1 {run} {size} -1 -1 {size} {2 * run} -1 1 {rng.randrange(80)}")
    return aucsched.parse_swf("\n".join(rows).encode())


def _schedule() -> str:
    from aucsched.auction.explain.comparison import first_fit_by_priority
    from aucsched.reports.auction_pages import schedule_page

    snapshot = cluster(1)
    found = aucsched.schedule(snapshot, strategy="greedy")
    return schedule_page(snapshot, found, first_fit_by_priority(snapshot, 100), "a busy machine")


def _simulation() -> str:
    from aucsched.reports.run_pages import simulation_page

    return simulation_page([aucsched.simulate(log(1), "easy")], "a made-up log")


PAGES: dict[str, Callable[[], str]] = {"schedule": _schedule, "simulation": _simulation}


def main() -> int:
    """Print the table; exit 1 where a page opens late or with an error."""
    from support.chromium import CHROMIUM, opened

    if CHROMIUM is None:
        print("chromium is not installed")
        return 1
    late = 0
    for name, make in PAGES.items():
        began = time.perf_counter()
        text = make()
        seconds = time.perf_counter() - began
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / f"{name}.html"
            page.write_text(text)
            found = [opened(page) for _ in range(3)]
        assert not any(one["error"] or one["requests"] for one in found), found
        best = min(one["ready_ms"] for one in found)
        late += best > GATE_MS
        print(f"{name:<12}{seconds:>8.1f} s{len(text) / 1e6:>8.1f} MB{best:>8} ms  (at most {GATE_MS})")
    return int(late > 0)


if __name__ == "__main__":
    sys.exit(main())
