"""Every figure of the README stands in a file that a benchmark wrote, or in what a command prints now."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import aucsched

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
README = (ROOT / "README.md").read_text()
CROWDED = str(ROOT / "examples" / "emulated-1408-full.json")
#: Numbers of the README that measure nothing: versions, options, years, sizes that a sentence defines.
NO_FIGURES = {"3.11", "2.0", "1408", "2016", "22.05", "21.08", "26.05", "64", "10 s"}


def real(log: str, policy: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((RESULTS / "real" / f"{log}_{policy}.json").read_text())
    return document


def of_table(workload: str, label: str) -> float:
    runs = [
        json.loads(path.read_text()) for path in RESULTS.glob(f"table-A.5-seed-*/{workload} {label}.json")
    ]
    return 100 * fmean(run["metrics"]["cpu_utilization"] for run in runs)


def grouped(number: float) -> str:
    return f"{number:,.0f}".replace(",", " ")


def of_real_logs() -> Iterator[str]:
    logs = ("KTH-SP2", "SDSC-SP2-first-5k", "HPC2N-first", "theta-2023")
    ours, easy = ([real(log, name) for log in logs] for name in ("aucsched3-response", "easy"))
    waits = [one["wait_mean"] / other["wait_mean"] for one, other in zip(ours, easy, strict=True)]
    longest = [one["wait_max"] / other["wait_max"] for one, other in zip(ours, easy, strict=True)]
    yield f"On four public logs the mean wait is {min(waits):.2f} to {max(waits):.2f} of EASY's"
    yield f"the longest wait at most {max(longest):.2f} times EASY's"
    yield f"On KTH-SP2 the mean bounded slowdown is {ours[0]['slowdown_mean']:.1f}"
    yield f"EASY has {easy[0]['slowdown_mean']:.1f}"


def of_gpu_machines() -> Iterator[str]:
    labels = "AUCSCHED3 balanced greedy", "Backfill"
    used = [[of_table(str(number), label) for label in labels] for number in range(1, 10)]
    gains = [balance - backfill for balance, backfill in used]
    more = f"{min(gains):.1f} to {max(gains):.1f} points more of the cores"
    yield f"On nine generated workloads `--balance` used {more} than our model of Slurm's backfill"


def notes_rows(number: str) -> Iterator[list[str]]:
    """Yield the cells of the rows of benchmarks/notes/slurm.md with these numbers in the first cell."""
    for line in (ROOT / "benchmarks" / "notes" / "slurm.md").read_text().splitlines():
        if re.match(rf"\| {number} \| ", line):
            yield [cell.strip() for cell in line.split("|")[1:-1]]


def of_slurm_waits() -> Iterator[str]:
    """The first series; the busier host has only tables in the notes, whose last cells are ratios."""
    runs = {
        (one["list"], one["mode"]): {
            name: fmean(run[name] for run in one["runs"]) for name in ("mean", "longest")
        }
        for one in json.loads((RESULTS / "slurm-waits.json").read_text())
    }
    cuts, longest = (
        [runs[number, "response"][name] / runs[number, "backfill"][name] for number in "123"]
        for name in ("mean", "longest")
    )
    ratios = [(float(row[-2]), float(row[-1])) for row in notes_rows("[123]") if row[1] == "response"]
    least, busy = map(max, zip(*ratios, strict=True))
    yield f"cut mean waits by {100 - 100 * max(*cuts, least):.0f} to {100 - 100 * min(cuts):.0f} %"
    yield f"up to {max(longest):.2f} times backfill's, on a busier host up to {busy:.2f} times"


def of_passes() -> Iterator[str]:
    seconds = [float(row[-1]) for row in notes_rows("[1234]") if re.match(r"[12] \d{3}, \d+$", row[1])]
    assert len(seconds) == 4
    later = f"{min(seconds):.1f} to {max(seconds[1:]):.1f} s"
    first = f"2 000 waiting jobs the first pass of `slurm run` took {seconds[0]:.1f} s"
    yield f"{first}, later passes {later}"


def of_quality() -> Iterator[str]:
    """The table of benchmarks/notes/quality.md, which benchmarks/quality.py writes from runs.jsonl."""
    lines = (ROOT / "benchmarks" / "notes" / "quality.md").read_text().splitlines()
    head = next(line for line in lines if line.startswith("| family"))
    rows = [line.split("|")[1:-1] for line in lines if re.match(r"\| [a-zA-Z0-9-]+ \| ", line)][1:]
    names = [name.strip() for name in head.split("|")[1:-1]]
    ours, peer = names.index("aucsched 3 s, 312a42b"), names.index("highs 60 s")
    assert len(rows) == 12
    worst = [max(float(row[place].split()[0]) for row in rows) for place in (ours, peer)]
    yield f"mean gap to the best value known is at most {worst[0]:.2f} % after 3 seconds"
    yield f"has at most {worst[1]:.2f} % after 60 seconds"


def of_tests() -> Iterator[str]:
    times = json.loads((RESULTS / "test-times.json").read_text())
    minutes = times["minutes"]
    yield f"{minutes['test']:.0f} minutes on two cores once all is compiled"


def of_published() -> Iterator[str]:
    """59.32 is other people's: benchmarks/published.json has it with its source."""
    published = json.loads((ROOT / "benchmarks" / "published.json").read_text())
    one = published["KTH-SP2, variants of EASY, longest flow at most 1.1 times EASY's"]
    count, best = grouped(one["variants"]), one["best"]
    yield f"the best of Gaussier's {count} variants of EASY"
    yield f"with a longest flow of at most 1.1 times EASY's has {best:.2f}"


OF_README = (of_real_logs, of_gpu_machines, of_slurm_waits, of_passes)


@pytest.mark.parametrize(
    ("source", "page"),
    [
        *((source, "README.md") for source in OF_README),
        (of_quality, "docs/results/search.md"),
        (of_published, "docs/results/board.md"),
        (of_tests, "CONTRIBUTING.md"),
    ],
)
def test_claims_are_what_the_results_say(source: Any, page: str) -> None:
    text = " ".join((ROOT / page).read_text().split())
    for claim in source():
        assert claim in text


def crowded() -> Iterator[str]:
    """The table of the first auction, from the commands themselves; a work limit makes them repeat."""
    compared = aucsched.compare(CROWDED, promise="none", reserve=0, time_limit_s=600, work_limit=20)
    default = aucsched.schedule(CROWDED, time_limit_s=600, work_limit=20)
    cores = sum(use.cores for award in default.started for use in award.nodes.values())
    assert default.objective.priority is not None
    for name, jobs, used, priority in (
        (
            "the auction by default: what backfilling starts, one reservation",
            *(len(default.started), cores, default.objective.priority),
        ),
        ("the auction with `--promise none --reserve 0`", *totals(compared.auction)),
        ("first-fit by priority, nothing reserved", *totals(compared.first_fit)),
    ):
        yield f"| {name} | {jobs} | {used} | {grouped(float(priority))} |"


def totals(side: Any) -> tuple[int, int, float]:
    return side.jobs, side.cores, side.priority


def test_the_first_auction_starts_what_the_table_says() -> None:
    for row in crowded():
        assert row in README


def test_no_other_figure_stands_in_the_readme() -> None:
    text = re.sub(r"```.*?```|^    .*?$|\]\([^)]*\)|`[^`]*`", " ", README, flags=re.DOTALL | re.MULTILINE)
    text = " ".join(text.split())
    known = [one for source in OF_README for one in source()]
    for claim in (
        *known,
        *crowded(),
        "32 free cores and 66 waiting jobs",
        "at most 1.6 % below",
    ):
        text = text.replace(" ".join(re.sub(r"`[^`]*`", " ", claim).split()), " ")
    found = re.findall(r"(?<![\w.-])\d[\d ]*(?:\.\d+)?(?![\w-])", text)
    assert {one.strip() for one in found} <= NO_FIGURES


def test_the_example_is_as_the_readme_describes_it() -> None:
    snapshot = aucsched.load_snapshot(CROWDED)
    free = sum(node.free.cores for node in snapshot.nodes if node.free is not None)
    assert (len(snapshot.nodes), len(snapshot.jobs)) == (1408, 66)
    assert free >= 32
    alone = aucsched.schedule(snapshot, promise="none", reserve=0, time_limit_s=600, work_limit=20)
    assert alone.objective.bound_over_placements is not None
    over = alone.objective.bound_over_placements / float(alone.objective.priority or 1) - 1
    assert 0.015 <= over <= 0.016


@pytest.mark.parametrize(
    ("name", "log", "peer"),
    [
        ("KTH-SP2", "KTH-SP2", "easy"),
        ("SDSC-SP2, first 5 000 rows", "SDSC-SP2-first-5k", "easy"),
        ("HPC2N, first rows", "HPC2N-first", "easy"),
        ("theta 2023", "theta-2023", "easy"),
    ],
)
def test_the_table_of_real_logs_is_what_the_runs_say(name: str, log: str, peer: str) -> None:
    ours, other = real(log, "aucsched3-response"), real(log, peer)
    ratios = (f"{ours[one] / other[one]:.3f}" for one in ("wait_mean", "wait_max", "slowdown_mean"))
    row = f"| {name} | {grouped(ours['jobs'])} | {' | '.join(ratios)} |"
    assert row in (ROOT / "docs" / "real.md").read_text()


def test_the_row_of_the_week_has_backfill_as_often_as_the_auction() -> None:
    ours, other = (
        json.loads((RESULTS / "ub-week" / f"{row}.json").read_text())
        for row in ("aucsched3 response", "backfill-slurm every 30 s")
    )
    assert ours["options"]["interval_s"] == other["options"]["backfill_interval_s"]
    names = ("wait_mean_s", "wait_max_s", "bounded_slowdown_mean")
    ratios = (f"{ours['metrics'][name] / other['metrics'][name]:.3f}" for name in names)
    row = f"| UB week | {grouped(ours['jobs'])} | {' | '.join(ratios)} |"
    assert row in (ROOT / "docs" / "real.md").read_text()
