"""Prabhakaran's table II over many orders of submission (``python benchmarks/evolving.py --help``).

Each configuration plays the same orders; a row an order is kept in a file and not made again. Settings were
chosen on seeds 0 to 59, the seeds from 60 on were held back: both halves are reported.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from statistics import mean, stdev
from typing import NamedTuple

from aucsched.negotiation.evolving.fairness import Fairness, same_for_every_user
from aucsched.simulation.evolving.evolving_loop import simulate_evolving
from aucsched.simulation.evolving.evolving_options import EvolvingOptions
from aucsched.simulation.evolving.evolving_report import dynamic_figures, evolving_metrics
from aucsched.simulation.workloads.evolving import dynamic_esp, quadflow


class Config(NamedTuple):
    """A configuration: its name, where it stands in the tables, and what it is."""

    table: str
    name: str
    serves: bool = True
    target: float | None = None
    decay: float = 0.0
    by_table: bool = True
    serve_by: str = "iteration"
    partition: int | None = None
    preemptible: str = ""
    malleable: str = ""
    strategy: str | None = None
    keeps: bool | None = None

    @property
    def options(self) -> EvolvingOptions:
        """As the command has it."""
        emulated = self.table == "emulated"
        fairness = Fairness()
        if self.target is not None:
            fairness = same_for_every_user(self.target, decay=self.decay)
        return EvolvingOptions(
            serve_by=self.serve_by,  # type: ignore[arg-type]
            dynamic_partition=self.partition,
            strategy=self.strategy,  # type: ignore[arg-type]
            limits=fairness,
            requests="serve" if self.serves else "refuse",
            det="table" if self.by_table else "remaining",
            interval_s=60.0 if emulated else None,
            job_overhead_s=20.0 if emulated else 0.0,
            keep_requests=self.keeps,
            preemptible=",".join(self.preemptible) or None,
            shrinkable=",".join(self.malleable) or None,
        )


def _four(table: str, *, by_table: bool = True) -> list[Config]:
    limits = [
        Config(table, f"Dyn-{target}, decay {decay:g}", target=target, decay=decay, by_table=by_table)
        for decay in (0.0, 1.0)
        for target in (500, 600)
    ]
    return [
        Config(table, "Static", serves=False, by_table=by_table),
        Config(table, "Dyn-HP", by_table=by_table),
        *limits,
    ]


def _rivals(table: str, *, by_table: bool) -> list[Config]:
    return [
        *(
            Config(table, f"partition {cores}", serve_by="partition", partition=cores, by_table=by_table)
            for cores in (4, 8, 16)
        ),
        Config(table, "preallocation", serve_by="preallocation", by_table=by_table),
        Config(table, "merge", serve_by="merge", by_table=by_table),
    ]


#: Not in the paper's experiments: where nothing is idle, others stop or shrink.
OTHERS = (
    Config("plain", "Dyn-HP, A preemptible", preemptible="A"),
    Config("plain", "Dyn-HP, L and M shrink", malleable="LM"),
    Config("plain", "Dyn-HP, --keep-requests", keeps=True),
)
CONFIGS = (
    *_four("plain"),
    *_four("remaining", by_table=False),
    *_four("emulated"),
    *_rivals("plain", by_table=True),
    *_rivals("remaining", by_table=False),
    *OTHERS,
)
AUCTIONS = (
    Config("plain", "auction", serve_by="auction"),
    Config("plain", "auction, --no-keep-requests", serve_by="auction", keeps=False),
)
TITLES = {
    "plain": "Without overhead, run times after a grant as in table I",
    "remaining": "Without overhead, what is left scaled after a grant",
    "emulated": "60 s poll, requests served at once, 20 s a job",
}
PAPER = {"Static": (265.78, 0, 77.45), "Dyn-HP": (238.78, 43, 85.02)}
_PAPER_LIMITS = {"Dyn-500": (248.85, 20, 82.26), "Dyn-600": (241.06, 27, 83.57)}


class Row(NamedTuple):
    """An order: minutes, satisfied jobs, utilisation in percent, mean wait in minutes."""

    minutes: float
    satisfied: float
    utilization: float
    wait: float


def played(config: Config, seed: int) -> Row:
    """Play one order."""
    run = simulate_evolving(dynamic_esp(seed), config.options)
    values, asked = evolving_metrics(run), dynamic_figures(run)
    assert asked["asked"] == 69
    return Row(
        minutes=(values["makespan_s"] or 0.0) / 60,
        satisfied=asked["satisfied"],
        utilization=100 * (values["cpu_utilization"] or 0.0),
        wait=(values["wait_mean_s"] or 0.0) / 60,
    )


class Rows:
    """Rows by configuration and seed, kept in a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.known: dict[tuple[str, str], dict[int, Row]] = {}
        for line in file.read_text().splitlines() if file.exists() else ():
            table, name, seed, row = json.loads(line)
            self.known.setdefault((table, name), {})[seed] = Row(*row)

    def make(self, configs: Iterable[Config], seeds: range) -> None:
        """Play what is missing, order by order."""
        for seed in seeds:
            for config in configs:
                rows = self.known.setdefault((config.table, config.name), {})
                if seed not in rows:
                    rows[seed] = played(config, seed)
                    with self._file.open("a") as file:
                        file.write(json.dumps([config.table, config.name, seed, rows[seed]]) + "\n")

    def of(self, config: Config, seeds: range) -> dict[int, Row]:
        """Return the rows of a configuration that are there."""
        rows = self.known.get((config.table, config.name), {})
        return {seed: rows[seed] for seed in seeds if seed in rows}


def _error(values: list[float]) -> float:
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0


def _pm(values: list[float]) -> str:
    return f"{mean(values):.2f} ± {_error(values):.2f}"


def table_of(rows: Rows, configs: list[Config], seeds: range) -> str:
    """Return a table: means with standard errors, the gain over Static order by order."""
    static = rows.of(configs[0], seeds)
    lines = [
        "| configuration | orders | min | gain over Static (%) | satisfied | held (%) | wait (min) | paper |",
        "|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    for config in configs:
        found = rows.of(config, seeds)
        if not found:
            continue
        both = sorted(found.keys() & static.keys())
        gains = [100 * (1 - found[seed].minutes / static[seed].minutes) for seed in both]
        columns = [_pm([getattr(row, name) for row in found.values()]) for name in Row._fields]
        figures = PAPER.get(config.name) or _PAPER_LIMITS.get(config.name.partition(",")[0])
        paper = f"{figures[0]} min, {figures[1]}, {figures[2]} %" if figures else ""
        lines.append(
            f"| {config.name} | {len(found)} | {columns[0]} | {_pm(gains)} | {columns[1]} | {columns[2]} | "
            f"{columns[3]} | {paper} |"
        )
    return "\n".join(lines) + "\n"


def report(rows: Rows, seeds: range) -> str:
    """Return every table over some seeds."""
    parts = [f"## Seeds {seeds.start} to {seeds.stop - 1}\n"]
    for table, title in TITLES.items():
        configs = [config for config in (*CONFIGS, *AUCTIONS) if config.table == table]
        parts.append(f"### {title}\n\n{table_of(rows, configs, seeds)}")
    served = rows.of(CONFIGS[1], seeds)
    for config in AUCTIONS:
        auction = rows.of(config, seeds)
        both = sorted(served.keys() & auction.keys())
        if both:
            minutes = [auction[seed].minutes - served[seed].minutes for seed in both]
            satisfied = [auction[seed].satisfied - served[seed].satisfied for seed in both]
            parts.append(
                f"{config.name} less Dyn-HP, order by order over {len(both)}: {_pm(minutes)} min, "
                f"{_pm(satisfied)} satisfied.\n"
            )
    return "\n".join(parts)


def quadflow_table(seeds: range) -> str:
    """Return what requests bring on the Quadflow-like load: to runs that ask, and to rigid jobs."""
    lines = [
        "| requests | makespan (h) | satisfied | turnaround of runs that ask (h) | of rigid jobs (h) |",
        "|---|--:|--:|--:|--:|",
    ]
    for name, serves, target in (
        ("refused", False, None),
        ("served", True, None),
        ("served, 1 h a user", True, 3600),
    ):
        fairness = Fairness() if target is None else same_for_every_user(target, interval_s=86_400)
        options = EvolvingOptions(limits=fairness, requests="serve" if serves else "refuse")
        spans, granted, asked, asking, rigid = [], 0, 0, [], []
        for seed in seeds:
            run = simulate_evolving(quadflow(seed), options)
            spans.append((evolving_metrics(run)["makespan_s"] or 0.0) / 3600)
            granted += len(run.grants)
            asked += dynamic_figures(run)["asked"]
            turnaround = [(one.job, (one.end_s - one.job.arrival_s) / 3600) for one in run.played.values()]
            asking.append(mean([hours for job, hours in turnaround if job.asks_s] or [0.0]))
            rigid.append(mean([hours for job, hours in turnaround if job.kind == "rigid"]))
        lines.append(f"| {name} | {_pm(spans)} | {granted} of {asked} | {_pm(asking)} | {_pm(rigid)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=120)
    parser.add_argument("--rows", type=Path, default=Path("evolving-rows.jsonl"), help="kept here")
    parser.add_argument("--auction", action="store_true", help="the auction's orders, from 60 on first")
    parser.add_argument("--report-only", action="store_true")
    options = parser.parse_args()
    rows = Rows(options.rows)
    if not options.report_only:
        if options.auction:
            for config in AUCTIONS:
                rows.make([config], range(60, options.orders))
        else:
            rows.make(CONFIGS, range(options.orders))
    for seeds in (range(60), range(60, options.orders)):
        print(report(rows, seeds))
    print(f"## Quadflow-like load, seeds 0 to 59\n\n{quadflow_table(range(60))}")


if __name__ == "__main__":
    main()
