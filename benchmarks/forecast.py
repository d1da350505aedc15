"""Forecasts of starts on logs, against what came: ``python benchmarks/forecast.py``.

Each log is played under EASY, conservative backfilling and ``--objective response``. Every job is
asked for on arrival and after 25, 50 and 75 % of its wait. Constants were chosen on the first halves of
KTH-SP2 and SDSC-SP2. Figures of the others were seen while the code was written, and intervals became whole
seconds because of Lublin's. Figures go to benchmarks/results/forecast/, a file a run that
is not made again, and to docs/forecasts.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from os import cpu_count
from pathlib import Path
from typing import Any

import click
import numpy as np
from marked_part import page_of, replace_part
from ub_week import FOLDER, week

from aucsched.formats.swf import load_swf
from aucsched.simulation.forecast.logged import AnsweredForecast, forecasts_of
from aucsched.simulation.forecast.record import ForecastColumns, scores
from aucsched.simulation.log_columns import Workload, workload_from_swf
from aucsched.simulation.logs.policies import play_log
from aucsched.simulation.nodes.node_forecasts import node_forecasts_of
from aucsched.simulation.nodes.node_policies import NodeOptions, play
from aucsched.simulation.simulate_options import PolicyOptions

HERE = Path(__file__).parent
#: Waits of at most this many seconds are left out where only those who wait count.
NO_WAIT_S = 60.0
RESULTS = HERE / "results" / "forecast"
DATA = HERE.parent.parent / "shared" / "data" / "swf"
#: Name, file, processors where the header does not say, futures.
LOGS: dict[str, tuple[str, int | None]] = {
    "KTH-SP2": ("KTH-SP2-1996-2.swf", 100),
    "SDSC-SP2 5k": ("SDSC-SP2-1998-4-first5k.swf", None),
    "HPC2N": ("HPC2N-first.swf", None),
    "theta": ("theta_2023.swf", None),
    "Lublin": ("lublin_256.swf", None),
}
#: A week of nodes, under the site's own backfill as benchmarks/ub_week.py plays it.
UB, _SLURM = "UB week", "backfill-slurm"
EVERY: dict[str, Any] = {"interval_s": 30.0, "window": 2500, "backfill_interval_s": 30.0}
#: Logs of which the first half was looked at while constants were chosen.
TUNED = ("KTH-SP2", "SDSC-SP2 5k")
POLICIES: dict[str, dict[str, Any]] = {
    "easy": {"policy": "easy"},
    "conservative": {"policy": "conservative"},
    "response": {"policy": "aucsched3", "options": PolicyOptions(objective="response")},
}


def measured(log: str, policy: str, folder: Path, futures: int) -> dict[str, Any]:
    """Return the figures of one log under one policy: whole, its halves, and by when it was asked."""
    if log == UB:
        return measured_week(futures)
    file, processors = LOGS[log]
    rows = load_swf(folder / file)
    jobs = workload_from_swf(rows, processors=processors)
    result = play_log(jobs, **POLICIES[policy])
    began = time.process_time()
    by_worth = policy == "response"
    answered = list(forecasts_of(result, rows, by_worth=by_worth, futures=futures))
    seconds = time.process_time() - began
    return {**_names(log, policy, futures, seconds), **answers(answered, jobs)}


def _names(log: str, policy: str, futures: int, seconds: float) -> dict[str, Any]:
    head = ["git", "-C", str(HERE), "rev-parse", "--short=8", "HEAD"]
    commit = subprocess.run(head, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603
    names = {"log": log, "policy": policy, "futures": futures, "commit": commit, "cores": cpu_count()}
    return {**names, "processor_s": round(seconds, 1)}


def measured_week(futures: int) -> dict[str, Any]:
    """Return the figures of the UB week under backfill-slurm; every 40th job is asked for."""
    workload, _ = week(FOLDER)
    result = play(workload, NodeOptions(policy=_SLURM, **EVERY))
    began = time.process_time()
    asked = node_forecasts_of(result, depth=EVERY["window"], futures=futures, every=40)
    found = answers(list(asked), result.workload)
    return {**_names(UB, _SLURM, futures, time.process_time() - began), **found}


def answers(asked: list[AnsweredForecast], jobs: Workload) -> dict[str, Any]:
    """Return the figures of forecasts with what came."""
    answered = [one for one in asked if one.forecast.quantiles]
    came_at = jobs.requests.submit
    found = ForecastColumns.of(
        (one.cores, one.asked_s - came_at[number], one.quantiles, one.plan_s, came)
        for number, one, came in answered
    )
    number = np.array([one.number for one in answered])
    return {"forecasts": len(answered), **figures(found, number >= len(jobs) / 2)}


def figures(found: ForecastColumns, is_late: Any) -> dict[str, Any]:
    """Return the figures of who waits: all, each half of the log, by when they were asked; and of all."""
    waits = found.wait > NO_WAIT_S
    share = np.round(found.waited / np.maximum(found.wait, 1e-9), 2)

    def of(chosen: Any) -> dict[str, Any]:
        return scores(ForecastColumns(*(column[chosen] for column in found)))

    return {
        "waiting": of(waits),
        "first_half": of(waits & ~is_late),
        "second_half": of(waits & is_late),
        "asked": {
            name: of(waits & (share == at))
            for name, at in (("arrival", 0.0), ("25 %", 0.25), ("50 %", 0.5), ("75 %", 0.75))
        },
        "all_on_arrival": of(found.waited == 0),
    }


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _row(name: str, one: dict[str, Any]) -> str:
    def percent(key: str) -> str:
        return f"{100 * one[key]:.0f} %"

    def three(first: str, second: str, error: str) -> str:
        return f"{percent(first)}, {percent(second)}, {one[error] / 60:.0f} min"

    quarters = " ".join(f"{100 * share:.0f}" for share in one["coverage_by_size"])
    waits = " ".join(f"{100 * share:.0f}" for share in one["coverage_by_wait"])
    ratio = one["median_error_s"] / max(one["plan_median_error_s"], 1)
    return _line(
        [
            name,
            str(one["forecasts"]),
            three("plan_within_10_min", "plan_within_factor_2", "plan_median_error_s"),
            three("within_10_min", "within_factor_2", "median_error_s"),
            f"{ratio:.2f}",
            percent("coverage"),
            f"{one['width_median']:.1f}",
            quarters,
            waits,
        ]
    )


def section(runs: list[dict[str, Any]]) -> list[str]:
    """Return the page's tables."""
    lines = []
    for policy in dict.fromkeys(run["policy"] for run in runs):
        lines += [
            f"**{policy}**, jobs that wait over a minute, asked four times.",
            "",
            _line(
                [
                    "log",
                    "forecasts",
                    "plan: within 10 min, within 2 ×, median error",
                    "P50: the same",
                    "error / plan's",
                    "in P10-P90",
                    "P90/P10",
                    "by size",
                    "by wait",
                ]
            ),
            "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
        ]
        ratios = []
        for run in runs:
            if run["policy"] != policy:
                continue
            parts = (
                [("first half, tuned on", "first_half"), ("second half", "second_half")]
                if run["log"] in TUNED
                else [("", "waiting")]
            )
            for words, part in parts:
                if run[part]:
                    lines.append(_row(f"{run['log']} {words}".strip(), run[part]))
            whole = run["waiting"]
            # Where limits are the run times, as in Lublin, the plan is exact: there is nothing to divide by.
            if whole["plan_median_error_s"] > NO_WAIT_S:
                ratios.append(whole["median_error_s"] / whole["plan_median_error_s"])
        if ratios:
            mean = float(np.exp(np.mean(np.log(ratios))))
            words = "Median error over the plan's, geometric mean of whole logs with a plan that errs"
            lines += ["", f"{words}: {mean:.2f}.", ""]
    lines += ["*All jobs on arrival: the share of starts near P50, and near two plain forecasts.*"]
    heads = ["log", "policy", "P50 within 1 min", "within 10 min", "plan by limits within 10 min"]
    lines += ["", _line([*heads, '"now" within 10 min']), "|---|---|--:|--:|--:|--:|"]
    kinds = ("within_1_min", "within_10_min", "plan_within_10_min", "now_within_10_min")
    for run in runs:
        shares = [f"{100 * run['all_on_arrival'][kind]:.0f} %" for kind in kinds]
        lines.append(_line([run["log"], run["policy"], *shares]))
    return lines


def _file(results: Path, log: str, policy: str) -> Path:
    return results / f"{log.replace(' ', '-')}_{policy}.json"


@click.command()
@click.option("--data", type=click.Path(path_type=Path), default=DATA, show_default=False)
@click.option("--logs", default=",".join([*LOGS, UB]), show_default=False, help="Names, by commas.")
@click.option("--policies", default=",".join(POLICIES), show_default=True)
@click.option("--futures", default=200, show_default=True)
@click.option("--results", type=click.Path(path_type=Path), default=RESULTS, show_default=False)
def main(data: Path, logs: str, policies: str, futures: int, results: Path) -> None:
    """Measure what is not measured yet, and write the tables of all that is."""
    results.mkdir(parents=True, exist_ok=True)
    for log in logs.split(","):
        for policy in [_SLURM] if log == UB else policies.split(","):
            path = _file(results, log, policy)
            if path.exists():
                continue
            if log != UB and not (data / LOGS[log][0]).exists():
                click.echo(f"{data / LOGS[log][0]}: there is no such file", err=True)
                sys.exit(2)
            run = measured(log, policy, data, futures)
            path.write_text(json.dumps(run, indent=1) + "\n")
            click.echo(f"{run['processor_s']:7.0f} s  {log} {policy}", err=True)
    files = [_file(results, log, policy) for policy in (*POLICIES, _SLURM) for log in (*LOGS, UB)]
    runs = [json.loads(path.read_text()) for path in files if path.exists()]
    lines = section(runs)
    click.echo("\n".join(lines))
    page = HERE.parent / "docs" / "forecasts.md"
    replace_part(page_of(results, RESULTS, page), "forecast", lines)


if __name__ == "__main__":
    main()
