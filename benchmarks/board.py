"""The board: published policies on every public log, and ours: ``python benchmarks/board.py``.

Each log's figures are a file in benchmarks/results/board; a log whose file exists is not played again. Then
the tables are made of the files, and printed. With --write they replace those of benchmarks/notes/board.md,
and the plot of docs/results/board.md is drawn anew. With --results FOLDER all is written there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha512
from pathlib import Path
from typing import Any

import click
import numpy as np
from marked_part import can_draw, page_of, replace_part
from real_logs import LOGS, OVERDUE, play_overdue
from real_parts import part_of

from aucsched.api.simulations import BOARD_POLICIES, EASY, OURS, BoardRow, on_edge, row_of
from aucsched.formats.swf import load_swf
from aucsched.reports.curves import draw_board
from aucsched.simulation.log_columns import Workload, workload_from_swf
from aucsched.simulation.logs.policies import play_log
from aucsched.simulation.result import Simulation
from aucsched.simulation.simulate_options import PolicyOptions

HERE = Path(__file__).parent
RESULTS, PAGE = HERE / "results" / "board", HERE / "notes" / "board.md"
PICTURE = HERE.parent / "docs" / "images" / "board.png"
DATA = HERE.parent.parent / "shared" / "data" / "swf"
#: Two logs of a learnt scheduler's table beside the four of real_logs.
PLAYED = {**LOGS, "lublin_256": ("lublin_256.swf", 256), "lublin_256_new2": ("lublin_256_new2.swf", 256)}
#: As the table calls it -> what simulate plays; one is no policy of the package.
POLICIES: Mapping[str, Mapping[str, Any]] = {**BOARD_POLICIES, "overdue first": {"policy": OVERDUE}}
#: Sequences of a learnt scheduler's table: how many jobs each, how many of them, the seed.
JOBS, SEQUENCES, SEED = 1024, 10, 1
_TEN = ", ten sequences"
FIGURES = DATA.parent / "board" / "published.json"
#: As the table calls it -> the same row of other people's files. WFP3 is not: theirs takes every wait to be
#: −1 s − the submission (tests/simulation/test_learnt_scheduler_table.py).
_OF_SC15 = {
    EASY: "easy",
    "EASY, shortest first behind the head": "easy_sjbf",
    "EASY++": "easy_plus_plus",
}
_OF_LEARNT = {EASY: "fcfs", "SJF": "sjf", "F1": "f1"}
#: Of the triple that was chosen on other logs, as the file's notes have it.
_TRIPLE = {"EASY, SC'15's regression": 51.44}
_COLUMNS = (
    "policy",
    "slowdown",
    "95 %",
    "published",
    "longest wait (h)",
    "times EASY's",
    "mean wait (s)",
    "95 % (s)",
    "utilisation",
)


def dominating(rows: Sequence[BoardRow], policy: str = OURS) -> list[str]:
    """Return the policies with a lower slowdown and a lower longest wait than one of them."""
    ours = next(row for row in rows if row["policy"] == policy)
    return [
        row["policy"]
        for row in rows
        if row["bounded_slowdown_mean"] < ours["bounded_slowdown_mean"]
        and row["wait_max_s"] < ours["wait_max_s"]
    ]


@cache
def published(name: str) -> tuple[Mapping[str, float], str]:
    """Return other people's mean bounded slowdowns by policy, where rows are ours, and what else they say."""
    told = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    if name == "KTH-SP2" and told:
        found = dict(zip(told["sc15"]["columns"], told["sc15"][name], strict=True))
        bound = found["best_with_longest_flow_at_most_1.1_easy"]
        best = f"best of 5 766 combinations {found['best_triple']:.2f}"
        others = f"{best}; best with a longest flow of at most 1.1 times EASY's {bound:.2f}"
        return {**{policy: found[one] for policy, one in _OF_SC15.items()}, **_TRIPLE}, others
    if name.endswith(_TEN) and told:
        table = told["rlscheduler"]
        found = dict(zip(table["columns"], table[name.removesuffix(_TEN)], strict=True))
        others = f"learnt scheduler {found['rl']:.2f}"
        return {policy: found[one] for policy, one in _OF_LEARNT.items()}, others
    return {}, ""


def first_jobs(jobs: int) -> list[int]:
    """Return where the sequences of the learnt scheduler's table begin, as its random numbers are seeded."""
    words = np.frombuffer(sha512(str(SEED).encode()).digest()[:8] + bytes(4), "<u4")
    draw = np.random.RandomState()
    draw.seed(words[: 2 if words[1] else 1].tolist())
    return [int(draw.randint(JOBS, jobs - JOBS - 1)) for _ in range(SEQUENCES)]


def played(log: Workload, told: Mapping[str, Any]) -> Simulation:
    """Play a log."""
    if told["policy"] == OVERDUE:
        return play_overdue(log)
    options = {name: value for name, value in told.items() if name not in ("policy", "order")}
    chosen = PolicyOptions(**options)
    return play_log(log, told["policy"], order=told.get("order", "fcfs"), options=chosen)


def rows_of(name: str, file: str, processors: int | None) -> list[BoardRow]:
    """Play a log, or its ten sequences, under every policy."""
    log = workload_from_swf(load_swf(DATA / file), processors=processors)
    parts = [log]
    if name.endswith(_TEN):
        parts = [part_of(log, first, JOBS) for first in first_jobs(len(log))]
    rows = []
    for policy, told in POLICIES.items():
        began = time.process_time()
        results = [played(one, told) for one in parts]
        rows.append({**row_of(policy, results), "processor_s": round(time.process_time() - began, 2)})
        print(f"{name} {policy}: {rows[-1]['bounded_slowdown_mean']:.2f}", flush=True)
    return rows


def table(name: str, rows: Sequence[BoardRow]) -> list[str]:
    """Return a log's table, the lowest slowdown first."""
    base = next(row for row in rows if row["policy"] == EASY)
    edge = {row["policy"] for row in on_edge(rows)}
    known, others = published(name)
    lines = [
        f"### {name}",
        "",
        f"| {' | '.join(_COLUMNS)} |",
        f"|---{'|--:' * (len(_COLUMNS) - 1)}|",
    ]
    for row in sorted(rows, key=lambda one: one["bounded_slowdown_mean"]):
        policy = f"**{row['policy']}**" if row["policy"] in edge else row["policy"]
        cells = [
            policy,
            f"{row['bounded_slowdown_mean']:.2f}",
            _span(row.get("bounded_slowdown_interval"), 1),
            f"{known[row['policy']]:.2f}" if row["policy"] in known else "",
            f"{row['wait_max_s'] / 3600:.1f}",
            f"{row['wait_max_s'] / base['wait_max_s']:.2f}",
            f"{row['wait_mean_s']:.0f}",
            _span(row.get("wait_interval_s"), 0),
            f"{row['cpu_utilization']:.3f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    if others:
        lines += ["", f"Also published: {others}."]
    above = dominating(rows)
    verdict = (
        f"{', '.join(above)} dominate{'s' if len(above) == 1 else ''} ours"
        if above
        else "No policy dominates ours"
    )
    return [*lines, "", f"{verdict}.", ""]


def _span(interval: Sequence[float] | None, digits: int) -> str:
    return "" if interval is None else f"{interval[0]:.{digits}f} to {interval[1]:.{digits}f}"


@click.command()
@click.option("--results", type=click.Path(path_type=Path), default=RESULTS, help="Where the files are.")
@click.option("--write", is_flag=True, help="Replace the tables of notes/board.md and the plot of its page.")
def main(results: Path, write: bool) -> None:
    """Play what is missing; print or write the tables."""
    if not FIGURES.exists():
        if write:
            raise click.UsageError(f"--write would empty the column published: there is no {FIGURES}")
        click.echo(f"the column published is empty: there is no {FIGURES}", err=True)
    results.mkdir(parents=True, exist_ok=True)
    cases = {**PLAYED, **{name + _TEN: PLAYED[name] for name in ("lublin_256", "lublin_256_new2")}}
    logs: dict[str, list[BoardRow]] = {}
    for name, (file, processors) in cases.items():
        path = results / f"{name.replace(',', '').replace(' ', '-')}.json"
        if not path.exists() and (DATA / file).exists():
            path.write_text(json.dumps(rows_of(name, file, processors), indent=1) + "\n")
        if path.exists():
            logs[name] = json.loads(path.read_text())
    page, lines = page_of(results, RESULTS, PAGE), [line for name in logs for line in table(name, logs[name])]
    if page == PAGE and not write:
        click.echo("\n".join(lines))
        return
    replace_part(page, "board", lines)
    click.echo(f"the tables are in {page}")
    if can_draw():
        draw_board(logs, page_of(results, RESULTS, PICTURE))


if __name__ == "__main__":
    main()
