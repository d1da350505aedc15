"""Weissman's chapter 4: figures 9 to 16, tables 2 and 3 (``python benchmarks/ischeduler.py --help``).

System-centric traces on 128 processors for every policy, M and min_%_of_ideal, user-centric ones on 64, the
paper's figures beside ours, and what of it holds. Rows are kept in a file and not made again; policies that
do not depend on M or min_% are played once a trace.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from ischeduler_plots import draw_all
from ischeduler_points import COLUMNS, Point, policy_of, sweep_points, system_points, user_points
from ischeduler_tables import report
from marked_part import can_draw

from aucsched.cluster.kernels.harness import Floats
from aucsched.negotiation.malleable.malleable_policies import BASELINES
from aucsched.simulation.log_columns import Workload, workload_from_swf
from aucsched.simulation.malleable_run import PLAY, Outcome, moved_bytes, simulate_malleable
from aucsched.simulation.workloads.application_traces import SDSC_SP2, system_trace, user_trace


def trace(point: Point, seed: int, jobs: int) -> tuple[Workload, Floats | None]:
    """Return a point's trace of a seed, and the bytes that adaptations move; None: they are free."""
    is_system = point.kind == "system"
    if is_system:
        log = system_trace(SDSC_SP2, load=point.load, seed=seed, jobs=jobs)
    else:
        log = user_trace(point.kind, beta=point.load, seed=seed, jobs=jobs)
    made = workload_from_swf(log)
    return made, None if is_system else moved_bytes(made, log)


def figures(found: Outcome, ideal_only: Outcome) -> list[float]:
    """Return what is kept of a simulation: see COLUMNS."""
    waits = found.wait
    assert (waits >= 0).all() and (found.execution > 0).all()  # noqa: PT018 - nothing is averaged that is wrong
    no_worse = found.total <= ideal_only.total * (1 + 1e-9)
    jobs = len(found.workload)
    metrics = {name: float("nan") if one is None else one for name, one in found.metrics.items()}
    return [
        float(waits.mean()),
        float(found.execution.mean()),
        float(found.total.mean()),
        metrics["harvest_success_rate"],
        metrics["harvest_events_per_job"],
        float(no_worse.mean()),
        jobs * 3600 / found.makespan,
        float(waits.max()),
    ]


class Rows:
    """Means over traces by point, kept in a file."""

    def __init__(self, file: Path, traces: int, jobs: int) -> None:
        self.file, self.traces, self.jobs = file, traces, jobs
        lines = file.read_text().splitlines() if file.exists() else []
        known = [json.loads(line) for line in lines]
        self.known = {Point(*one["point"]): one["means"] for one in known if one["of"] == [traces, jobs]}

    def make(self, points: list[Point], threads: int) -> None:
        """Play what is missing: each trace is made once for all points of its kind and load."""
        missing = [point for point in dict.fromkeys(points) if point not in self.known]
        groups: dict[tuple[str, float], list[Point]] = {}
        for point in missing:
            groups.setdefault((point.kind, point.load), []).append(point)
        for group in groups.values():
            began, worked = time.perf_counter(), time.process_time()
            with ThreadPoolExecutor(threads) as pool:
                tables = list(pool.map(lambda seed, group=group: self._play(group, seed), range(self.traces)))
            # A point at which no trace asked for a harvest has no success rate.
            table = np.ma.masked_invalid(np.array(tables)).mean(axis=0)
            self._keep(group, table.filled(np.nan).tolist())
            played = len(group) * self.traces * self.jobs
            wall, cpu = time.perf_counter() - began, time.process_time() - worked
            print(
                f"{group[0].kind} {group[0].load:g}: {len(group)} points, {played / 1e6:.1f} million jobs in "
                f"{wall:.0f} s of wall and {cpu:.0f} s of processor time: {played / cpu:,.0f} jobs/s a core",
                flush=True,
            )

    def _play(self, group: list[Point], seed: int) -> list[list[float]]:
        made, data = trace(group[0], seed, self.jobs)
        against = simulate_malleable(made, BASELINES["ideal-only"], data=data)
        return [
            figures(
                simulate_malleable(
                    made, policy_of(point), model=point.model, min_of_ideal=point.share, data=data
                ),
                against,
            )
            for point in group
        ]

    def _keep(self, group: list[Point], means: list[list[float]]) -> None:
        with self.file.open("a") as file:
            for point, row in zip(group, means, strict=True):
                self.known[point] = row
                of = [self.traces, self.jobs]
                file.write(json.dumps({"point": point, "of": of, "means": row}) + "\n")

    def of(self, point: Point, column: str) -> float:
        """Return a mean."""
        return float(self.known[point][COLUMNS.index(column)])


def main() -> None:
    """Play, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--load", type=float, default=0.7, help="of the grid: figures 10 to 14, table 2")
    parser.add_argument("--grid-only", action="store_true", help="only time the linear grid at --load")
    parser.add_argument("--rows", type=Path, default=Path("ischeduler-rows.jsonl"), help="kept here")
    parser.add_argument("--figures", type=Path, help="draw figures 9 to 16 into this folder")
    parser.add_argument("--report", type=Path, help="write the tables here too")
    options = parser.parse_args()
    if options.figures is not None and not can_draw():
        parser.error("--figures needs matplotlib: pip install 'aucsched[plot]'")
    if PLAY.compiled() is None:
        print("numba is not installed: this takes twenty times as long")
    rows = Rows(options.rows, options.traces, options.jobs)
    if options.grid_only:
        rows.make(list(system_points(options.load, "linear")), options.threads)
        return
    points = [*sweep_points(), *user_points("GE"), *user_points("MIXED")]
    for model in ("linear", "parabolic"):
        points += system_points(options.load, model)
    rows.make(points, options.threads)
    text = report(rows, options.load)
    print(text)
    if options.report is not None:
        options.report.write_text(text)
    if options.figures is not None:
        draw_all(rows, options.load, options.figures)


if __name__ == "__main__":
    main()
