"""The runs of thesis.py as benchmarks/RESULTS.md and as figures 8.1 to 8.19: means over seeds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from marked_part import replace_part
from thesis_cells import Cell, Run, cells_of, order
from thesis_orderings import held
from thesis_plots import draw_figures
from thesis_tables import IN_TABLE_8_3, MACHINES, MODELS, ORDERINGS, TABLES, WHOLE_QUEUE

from aucsched.simulation.nodes.node_policies import NodeOptions, step_options

#: Table → columns: heading, metric, what it is multiplied by, digits.
_LEVELS = (
    ("utilisation %", "cpu_utilization", 100, 1),
    ("level", "level_mean", 1, 2),
    ("span", "span_mean", 1, 0),
)
_WAITS = (
    ("wait h", "wait_h", 1, 2),
    ("slowdown", "slowdown_mean", 1, 1),
    ("utilisation %", "cpu_utilization", 100, 1),
)
_FRAGMENTS = (
    ("utilisation %", "cpu_utilization", 100, 1),
    ("run time h", "makespan_h", 1, 2),
    ("wait h", "wait_h", 1, 2),
    ("fragmentation", "fragmentation_mean", 1, 2),
    ("spread", "spread_mean", 1, 2),
)
_COLUMNS = {"A.1": _WAITS, "A.2": _WAITS, "A.3": _FRAGMENTS, "A.4": _LEVELS, "A.5": _LEVELS}
_ABOUT = {
    "A.1": "ESP with GPUs: the eight experiments of table 8.3.",
    "A.2": "The generator's mixes I to V: the eight experiments of table 8.3.",
    "A.3": "The twelve workloads of table 8.4, contiguity as asked; AUCSCHED2 with GPU ranges in 7 to 12.",
    "A.4": "The eight workloads of table 8.5: 1024 nodes.",
    "A.5": "The nine workloads of table 8.6, 1408 nodes. Contiguity is dropped, as in the thesis's runs.",
}
_INTRODUCTION = """\
Soner's appendix A beside our runs of the same workloads, drawn anew from a seed. *Thesis* is the number
printed there, an emulation's mean of seven repetitions; ours is the mean over the seeds that were run, with
its standard error. *Fluid* is the utilisation of the workload when the whole machine is one pool of cores and
GPUs, jobs come first come first served, those that do not fit are skipped, and passes are as frequent as in
our run. The thesis's *spread* of tables A.4 and A.5 is our *span* (last node − first + 1). Every start of
every run was checked against the job's request and the nodes' capacity, and no job was lost. A row is named
for what ran: a model's name alone is that model with the solver or the search, its steps complete as the
command's are by default: whoever could start on what an award leaves starts too. Orderings are of the seeds
that both rows have. *Award alone* is the model's award and nothing beside
it, as in the thesis; what is greedy or balanced says so. One node of branch and bound (work_limit 1) is no
limit here: with 200 of them the starts of A.1 were the same (experiments 2, 4, 6 and 8, seed 2), and in A.3
each of the first passes of workload 2 was proved. *Sees* is how many jobs of the queue a pass looks at; a
complete step looks at the rest, too, once its award is made. Beside those of figure 4.5, a model's bids are
first-fit's, packings and spread bids, and of identical jobs only as many bid as could start. Why ours use
more than the thesis's in places was not measured: for A.3 and A.5 no one cause can be (docs/errata.md).
Above the fluid bound is who lets the longest jobs go first, and with ranges of GPUs who shortens jobs."""
#: How the machine's size was chosen: by Slurm's backfill alone, seed 1, before any auction ran.
_SIZED = {
    "A.1": (
        "Sizes of ESP are shares of the machine, and backfill uses 91 to 94 % on 16, 32, 48 and 64 nodes:"
        " the thesis's 90 % is no matter of size. On 32 nodes table 7.1 needs no rounding."
    ),
    "A.2": (
        "Its size, and 4 whole nodes as the most that a job asks for, were chosen so that backfill uses what"
        " the thesis's does where that can be had: 96, 95 and 94 % in mixes I to III (95 each there); in IV"
        " and V, 93 and 80 %, no size that was tried comes near the thesis's 88 and 62."
    ),
}
#: Why an ordering of the thesis is not reproduced, as far as it can be said.
_WHY = {
    "A.1": (
        "AUCSCHED1 does not wait longer than backfill here. Neither its bids nor complete steps are why: "
        "by the thesis's bids alone (figure 4.5, where the first jobs use up the 150; neither first-fit's"
        " placements nor packings) it waits as little, uses half a point less and is in fewer pieces; "
        "with its award alone it waits 0.1 h longer, three quarters of an hour less than backfill, and "
        "uses 0.9 points less. What is left between us and the thesis, an emulation in which starting, "
        "ending and solving take time, was not measured. AUCSCHED1 packs jobs less tightly than backfill,"
        " not more: spread bids, fewer cores a node on more nodes, are among its bids; Slurm's backfill "
        "here always finds the fewest nodes, and IPSCHED too. Its spread is below backfill's, as in the "
        "thesis, clearly so by the thesis's bids. IPSCHED's orders beside backfill are the thesis's: more"
        " utilisation, shorter waits. AUCSCHED1's rows and awards alone ran at later commits than the "
        "others."
    ),
    "A.2": (
        "AUCSCHED1 waits less than backfill and not more, as in table A.1, and jobs are in fewer pieces "
        "in all mixes, not more. Utilisation is that of the whole run, to the end of the last job: in II "
        "to V the auctions start many small jobs first, since the objective counts jobs and nothing is "
        "reserved, and the widest run last on a machine that is partly empty (longest waits are up to 1.1"
        " h above backfill's). So AUCSCHED1 uses less than IPSCHED and backfill in II and III, where it "
        "is asked for 4 or 8 cores on each of so many nodes and IPSCHED, which knows no cores per node, "
        "for cores and nodes; with GPUs it is above IPSCHED in IV, as in the thesis, and in V, whose GPUs"
        " are short and where no auction uses more than backfill. Seed 1 ran before packings were bids of"
        " AUCSCHED1, seeds 2 to 7 after it. Why, is read from the code and not measured. Passes that a limit "
        "ends without a proof, and that then start nothing (page 36), were played in I and IV, seed 1, with "
        "one node of branch and bound: waits change by at most 0.05 h and stay below backfill's."
    ),
    "A.3": (
        "All workloads have seven seeds; what follows is seed 1's, and means differ little. "
        "Where the models alone differ AUCSCHED2 uses more than AUCSCHED1 in ten of twelve, by "
        "0.1 to 2.0 points, where the thesis has 4 to 6, and 0.2 less in 5 and 12; AUCSCHED1 uses more "
        "than backfill in ten of twelve, by 0.5 to 8.1 points, and up to 2.5 less in 7 and 10. With the "
        "search AUCSCHED2 uses at most 0.2 points less than AUCSCHED1 (2, 11) and at most 2.7 more (7). "
        "With awards alone (1 to 3, 7 to 9) the models differ by up to 3.3 points, nearer to the thesis; "
        "but AUCSCHED1 then uses less than backfill in five of six, by 0.6 to 5.3 points: what its 150 "
        "bids leave goes unused. Waits are shorter under the auctions than under backfill in all twelve, "
        "as in the thesis in 1 and 3 to 6, and unlike it in 2 under AUCSCHED1 and in the mixes with GPUs;"
        " with awards alone they are backfill's to within 8 %. Completions, whoever could start on what "
        "an award leaves, are most of what our spreads and pieces have over the thesis's where jobs ask "
        "for neighbours: AUCSCHED1's award alone has a spread of 5.9 in 2 and 3.6 in 8 (6.8 and 1.7 "
        "there; 14 with completions) and 2.7 and 3.2 pieces (2.0 and 1.3; 6 and 16). Where nobody asks "
        "for them (1, 7) awards alone are spread less, but are in as many pieces, 17 to 33, where the "
        "thesis has 2, and 18 under AUCSCHED2 in 1 alone. The tree is one cause: section 8.3 names no "
        "switches, and on a line backfill's jobs are in 4.6, 2.9 and 12.3 pieces in workloads 1, 2 and 7 in "
        "place of 13.3, 4.5 and 28.7 (2.4, 2.1 and 2.1 there); their spread is 45, 20 and 30 there (33, 21 "
        "and 26 with the tree, 17, 12 and 4 in the thesis). AUCSCHED1's award alone, by the "
        "bids of figure 4.5 and on a line, has 2.5 pieces and a spread of 6.6 in 2, where the thesis has 2.0 "
        "and 6.8. With the tree AUCSCHED1 is spread less "
        "than backfill in 1, 2, 4 and 5, as in the thesis, and in 7 and 8 by its awards alone. The same "
        "model with a balance uses more than all others in 1, 4, 7, 9, 10 and 12, and less than the "
        "auctions in 2, 3, 5, 6, 8 and 11; why was not measured. Nothing is reserved under the auctions. "
        "Seeds 1 and 2 were played before counts chose who bids; in seeds 3 to 7 they do, and complete "
        "rows of AUCSCHED1 and AUCSCHED2 differ less (docs/results/thesis.md). "
        "Seed 1 took 182 minutes of processor time, on a slower machine, seeds 3 to 7 took 55, 50, "
        "50, 52 and 52, with other work beside them. "
        "Seven seeds would take six hours, or three on two cores; a table is to take one."
    ),
    "A.4": (
        "AUCSCHED3's spans are below backfill's, as in the thesis, though spans of both are several times "
        "those printed. With the bids, caps and objective of the published plug-in, awards alone, they are "
        ".72, .76, .44, .38, .58 and .44 of backfill's in workloads 1 to 6, where the thesis has .70, .69, "
        ".47, .36, .44 and .37 (seed 1; .70, .47 and .61 in 1, 3 and 5 over seeds 1 to 3). "
        "The complete steps with the engine's bids have .71 to .86. Levels "
        "are below backfill's, but for workload 2 with complete steps. AUCSCHED3 uses more than backfill in "
        "1, 2 and 6 as in the thesis, but in 4 too. It uses less in 3 as in the thesis, but in 5 too, where "
        "ranges of GPUs (5') let it use 5 points more than backfill. The plug-in uses more in 1 and 2 and "
        "less in 3 to 6; the thesis has less in 3 and 4 only. Backfill over the whole queue uses at most .7 "
        "points less than over 100 jobs, on spans from 7 % narrower to 2 % wider, and its jobs wait up to "
        ".2 h less (seed 1). With 4 cores a GPU (section 7.3.2) all rows of workloads 5 and 6 use less. In 5 "
        "the order of the methods stays; in 6 AUCSCHED3 then uses 3.9 points less than backfill, and 1.8 "
        "more in the other reading. The same model with a balance uses more than both in 1 to 6."
    ),
    "A.5": (
        "Seven seeds; contiguity is dropped, so that 4 to 9 repeat 1 to 3 with other draws, as the thesis's "
        "numbers do. In the mean AUCSCHED3 uses 0.4 to 0.8 points more than backfill where jobs ask for "
        "cores and nodes only (1, 2, 4, 5, 7, 8), where the thesis has 1, and 0.8 to 1.4 less where they "
        "ask for GPUs (3, 6, 9), where it has 7 to 9 more: that is not reproduced. Of 42 runs without GPUs "
        "one uses less than backfill, of 21 with GPUs two use more. The longest waits there are 0.4 h above "
        "backfill's, though mean waits are 15 to 23 % shorter in all. Spans are narrower than backfill's "
        "in 1, 4 and 7 only, and 2.3 to 4.2 times those printed under both. The same model with a balance "
        "uses 1.9 to 5.6 points more than backfill, on narrower spans. In workload 3 seed 1 ran in all "
        "rows. There the sight decides the sign: over 100 jobs awards alone use 2.8 points less than "
        "backfill, and over the whole queue a complete step uses 3.4 points more "
        "(88.9 and 85.5). The plug-in's spans are .46 of backfill's (thesis .79), and it uses 84.0 %. With "
        "4 cores a GPU (section 7.3.2) GPUs are not scarce, and backfill and AUCSCHED3 use 96.2 and 96.0 "
        "%. With ranges of GPUs (the jobs of section 8.3) AUCSCHED3 uses 90.5 %, 73 % of its starts from "
        "behind the window. None of these has backfill at 89 and AUCSCHED3 at 97. Awards alone have "
        "spans of .70 to 1.00 of backfill's and lower levels in all nine; they use 0.2 to 0.4 points more "
        "in 1, 4 and 7, 0.3 to 0.5 less in 2, 5 and 8, and 2.5 to 3.0 less with GPUs."
    ),
}
#: The heading of what a row's starts were.
_STARTS = "starts %: awards / completed in the window / from behind it"
#: A difference of so many points of utilisation gets a sentence.
_WITHIN = 0.01


def write_results(results: Path, target: Path, figures: Path) -> None:
    """Write all runs that there are: one section a table, between two marks of the file."""
    runs: dict[str, list[Run]] = {}
    facts: dict[str, list[dict[str, Any]]] = {}
    for folder in sorted(results.glob("table-*")):
        found = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
        rows = [run for run in found if isinstance(run, dict)]
        if rows:
            runs.setdefault(rows[0]["table"], []).extend(rows)
            told = folder / "run.json"
            facts.setdefault(rows[0]["table"], []).extend(
                json.loads(told.read_text()) if told.exists() else []
            )
    lines = ["# The thesis's tables", "", *_INTRODUCTION.splitlines()]
    for table in TABLES:
        if table in runs:
            lines += ["", *_section(table, runs[table], facts.get(table, []))]
        else:
            lines += ["", f"## Table {table}", "", f"Not run: `python benchmarks/thesis.py --table {table}`."]
    drawn = draw_figures([row for rows in runs.values() for row in rows], figures)
    lines += ["", "## Figures", ""]
    lines += [f"![{title}]({path.relative_to(target.parent)})" for title, path in drawn]
    replace_part(target, "thesis", lines)


def _section(table: str, rows: list[Run], facts: list[dict[str, Any]]) -> list[str]:
    lines = [f"## Table {table}", "", _ABOUT[table] + _machine(rows), ""]
    lines += [*_commands(facts), _ran(rows)]
    lines += ["", *_settings(rows)]
    cells = cells_of(rows)
    orderings = [held(one, cells) for one in ORDERINGS if one.table == table]
    if any(orderings):
        lines += ["", "What the thesis says of it:", "", *filter(None, orderings)]
        lines += ["", _WHY[table]] if table in _WHY else []
    lines += ["", *_table(table, cells)]
    return lines


def _commands(facts: list[dict[str, Any]]) -> list[str]:
    """Return the commands that made the runs, once for all seeds."""
    seeds: dict[str, set[str]] = {}
    for one in facts:
        words = one["command"].split(" --seed ")
        rest = words[-1].partition(" ")
        of = seeds.setdefault(f"{words[0]} --seed N {rest[2]}", set())
        of.add(rest[0])
    return [f"- `{command}`, N = {', '.join(sorted(of, key=int))}" for command, of in seeds.items()]


def _ran(rows: list[Run]) -> str:
    """Return which seeds were run, of which commits, and what they cost."""
    seeds = ", ".join(str(one) for one in sorted({row["seed"] for row in rows}))
    commits = ", ".join(sorted({row["commit"] for row in rows if "commit" in row}))
    minutes = sum(row.get("cpu_s", 0.0) for row in rows) / 60
    made = f", commit {commits}" if commits else ""
    return (
        f"\nRuns: {len(rows)}, seeds {seeds}{made}; {minutes:.1f} minutes of processor time, one core a run."
    )


def _machine(rows: list[Run]) -> str:
    """Return which cluster stands for the one that tables A.1 and A.2 do not name."""
    table = rows[0]["table"]
    if table not in MACHINES:
        return ""
    nodes = ", ".join(str(one) for one in sorted({row["nodes"] for row in rows}))
    numbers = ", ".join(f"{ours} is {theirs}" for ours, theirs in IN_TABLE_8_3.items())
    return (
        f" The thesis names no cluster for them; ours has {nodes} nodes of 12 cores and 3 GPUs."
        f" {_SIZED[table]} Experiments are numbered as the table prints them; in table 8.3 {numbers}."
    )


def _settings(rows: list[Run]) -> list[str]:
    """Return what each method was told."""
    told: dict[str, list[str]] = {}
    for row in rows:
        text = ", ".join(f"{name} {value}" for name, value in _told(row).items())
        told.setdefault(f"`{row['label']}`: {row['policy']}, {text}", []).append(row["workload"])
    return [
        f"- {text} (workloads {', '.join(sorted(set(of), key=order))})" for text, of in sorted(told.items())
    ]


def _told(row: Run) -> dict[str, Any]:
    """Return a run's options, with the strategy of an auction where its default chose it."""
    options = NodeOptions(policy=row["policy"], **row["options"])
    chosen = {"strategy": step_options(options).chosen_strategy} if row["policy"] in MODELS else {}
    return {**row["options"], **chosen}


def _table(table: str, cells: list[Cell]) -> list[str]:
    columns = _COLUMNS[table]
    heads = [f"{name}: thesis | ours" for name, *_ in columns]
    head = [
        "workload",
        "method",
        "seeds",
        "sees",
        *heads,
        "fluid %",
        "wait h mean / longest",
        "GPU %",
        _STARTS,
        "difference",
    ]
    lines = ["| " + " | ".join(head) + " |"]
    lines.append("|" + "---|" * (len(head) + len(columns)))
    for cell in cells:
        shown = [cell.first["workload"], cell.first["label"], str(len(cell.runs)), _sight(cell.first)]
        for _, metric, factor, digits in columns:
            printed, ours = cell.first["printed"].get(metric), cell.mean(metric)
            shown.append("–" if printed is None else f"{factor * printed:.{digits}f}")
            shown.append("–" if ours is None else ours.shown(factor, digits))
        mean, longest = cell.mean("wait_mean_s"), max(run["metrics"]["wait_max_s"] for run in cell.runs)
        gpu = cell.mean("gpu_utilization")
        shown += [
            f"{100 * cell.fluid():.1f}",
            f"{(mean.value if mean else 0) / 3600:.2f} / {longest / 3600:.2f}",
        ]
        shown += ["–" if gpu is None else f"{100 * gpu.value:.1f}", _starts(cell), _difference(cell)]
        lines.append("| " + " | ".join(shown) + " |")
    return lines


def _sight(row: Run) -> str:
    """Return how many jobs a pass looks at: for its award, and for who starts beside it."""
    options = NodeOptions(policy=row["policy"], **row["options"])
    if row["policy"] not in MODELS:
        return "all" if options.window == WHOLE_QUEUE else str(options.window)
    step = step_options(options)
    return str(step.jobs_in_sight or f"{step.window}, then all")


def _starts(cell: Cell) -> str:
    """Return what an auction's starts were, in per cent of them; nothing of backfill's and of older runs."""
    counts = [run["starts"] for run in cell.runs if run.get("starts")]
    if not counts:
        return ""
    kinds = ("awards", "completions", "behind the window")
    sums = [sum(one.get(kind, 0) for one in counts) for kind in kinds]
    return " / ".join(f"{100 * one / sum(sums):.0f}" for one in sums)


def _difference(cell: Cell) -> str:
    """Return a sentence on the utilisation, where it differs from the thesis's by more than a point."""
    printed, mean = cell.first["printed"].get("cpu_utilization"), cell.mean("cpu_utilization")
    if printed is None or mean is None:
        return ""
    ours, fluid = mean.value, cell.fluid()
    if abs(ours - printed) <= _WITHIN:
        return "within one point"
    points = f"{100 * abs(ours - printed):.1f} points"
    if ours > printed:
        over = ", and above the fluid bound" if ours > fluid else ""
        return f"{points} above{over}"
    if fluid < printed:
        return f"{points} below: the fluid bound itself is {100 * (printed - fluid):.1f} points below"
    return f"{points} below: {100 * (fluid - ours):.1f} points under the fluid bound"
