"""Cost of a step: seconds and peak memory of loading, bids, PuLP's build, reading, solving.

    python benchmarks/step.py                 the whole table (some minutes)
    python benchmarks/step.py --quick         the named figures and the smallest rows

Every row runs in a process of its own, so that its peak memory is its own. The solve gets 3 seconds once
(on_timeout=incumbent); its award is checked before it counts.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from clusters import MACHINES, fragmented_document

WINDOWS = (25, 50, 100, 200, 400)
CAPS = (150, 600, 2_400, 6_000, 25_000)


def main() -> int:
    """Print the table, or one row of it when called for one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--row", nargs=3, metavar=("MACHINE", "WINDOW", "MAX_BIDS"), help=argparse.SUPPRESS)
    parser.add_argument("--figure", choices=sorted(FIGURES), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.figure:
        print(FIGURES[arguments.figure]())
    elif arguments.row:
        machine, window, max_bids = arguments.row
        print(_row(machine, int(window), int(max_bids)))
    else:
        _table(quick=arguments.quick)
    return 0


def _table(*, quick: bool) -> None:
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}\n")
    for figure in FIGURES:
        _child("--figure", figure)
    heading = " machine  window    cap     bids  entries |  load   bids  build  solve  total (s)"
    print(f"\n{heading} | peak MB | priority")
    windows, caps = (WINDOWS[:3], CAPS[:3]) if quick else (WINDOWS, CAPS)
    for machine in MACHINES:
        for window in windows:
            for cap in caps:
                _child("--row", machine, str(window), str(cap))


def _child(*arguments: str) -> None:
    subprocess.run([sys.executable, __file__, *arguments], check=True)  # noqa: S603 - ourselves


def _best(run: Callable[[], object], times: int = 5) -> float:
    """Return the least seconds of several runs: what the work costs when nothing else runs."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _help() -> str:
    command = [sys.executable, "-m", "aucsched", "--help"]
    seconds = _best(lambda: subprocess.run(command, check=True, capture_output=True))  # noqa: S603 - ourselves
    return f"aucsched --help: {seconds:.3f} s"


def _load() -> str:
    from aucsched import load_snapshot

    document = fragmented_document("frontier", 10_000, 0)
    extra: list[dict[str, object]] = [
        {"name": f"x{place}", "cores": 64} for place in range(10_000 - len(document["nodes"]))
    ]
    document["nodes"] += extra
    document["topology"]["switches"].append(
        {"name": "extra", "nodes": ",".join(str(node["name"]) for node in extra)}
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "snapshot.json"
        file.write_bytes(msgspec.json.encode(document))
        seconds = _best(lambda: load_snapshot(file), 3)
        size = file.stat().st_size / 2**20
    return f"load 10 000 nodes and 10 000 jobs ({size:.1f} MB): {seconds:.2f} s"


def _bids() -> str:
    from aucsched.bidgen.families.registry import columns_of
    from aucsched.bidgen.first_fit import Cluster
    from aucsched.bidgen.generate import BidOptions, generate_bids
    from aucsched.cluster.resources.demand import Demand, DemandReader
    from aucsched.formats.native.cluster_file import parse_snapshot
    from aucsched.models.auction_model import Aucsched3
    from aucsched.models.model import ModelInput
    from aucsched.models.solve.solver import SolverOptions, prepared, read_pulp
    from aucsched.topology.tree import topology_of

    document = fragmented_document("tsubame", 0, 0, busy=0.2)
    document["jobs"] = [
        {
            "id": str(place),
            "priority": 1000 - place,
            "nodes": 20,
            "cores_per_node": 1 + place % 4,
            "gres_per_node": {"gpu": 1},
        }
        for place in range(250)
    ]
    snapshot = parse_snapshot(msgspec.json.encode(document))
    columns, topology = columns_of(snapshot), topology_of(snapshot)
    reader = DemandReader(snapshot, columns)
    read = (reader.read(job, place) for place, job in enumerate(snapshot.jobs))
    demands = tuple(demand for demand in read if isinstance(demand, Demand))
    options = BidOptions(max_bids=25_000, max_bids_per_job=100)
    bid_seconds = _best(lambda: generate_bids(demands, Cluster(columns, topology), options))
    table = generate_bids(demands, Cluster(columns, topology), options).table
    assert len(table) == 25_000
    assert (table.lengths == 20).all()
    given = ModelInput(table=table, columns=columns, topology=topology)
    build_seconds = _best(lambda: Aucsched3(given), 2)
    model = Aucsched3(given)
    pass_seconds = _best(
        lambda: prepared(read_pulp(model.problem, model.variables), SolverOptions(time_limit_s=1))
    )
    program = model.program
    return (
        f"25 000 bids of 20 nodes over 1408 nodes: generated {bid_seconds:.3f} s, "
        f"PuLP's build {build_seconds:.2f} s, "
        f"read from PuLP and passed to HiGHS {pass_seconds:.3f} s "
        f"({program.rows} rows, {program.nonzeros} entries; peak {_peak_mb():.0f} MB)"
    )


def _row(machine: str, window: int, max_bids: int) -> str:
    from aucsched import load_snapshot, schedule

    document = fragmented_document(machine, window, 0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "snapshot.json"
        file.write_bytes(msgspec.json.encode(document))
        del document
        began = time.perf_counter()
        snapshot = load_snapshot(file)
        loaded = time.perf_counter() - began
    per_job = max(60, max_bids // window)
    result = schedule(
        snapshot,
        window=window,
        max_bids=max_bids,
        max_bids_per_job=per_job,
        on_timeout="incumbent",
        reserve=0,
    )
    seconds, sizes = result.seconds, result.sizes
    gap = "unknown" if result.objective.gap is None else f"{result.objective.gap:.2%}"
    times = (loaded, seconds.bids, seconds.build, seconds.solve, seconds.total)
    return (
        f"{machine:>8} {window:>7} {max_bids:>6} {sizes.bids:>8} {sizes.nonzeros:>8} | "
        f"{'  '.join(f'{value:5.2f}' for value in times)}     | {_peak_mb():7.0f} | "
        f"{float(result.objective.priority):.0f}, gap {gap} ({len(result.started)} start)"
    )


FIGURES: dict[str, Callable[[], str]] = {"help": _help, "load": _load, "bids": _bids}


if __name__ == "__main__":
    sys.exit(main())
