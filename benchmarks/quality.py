"""How far below the best known values the auction and its peers end, by family and release, as a page.

    python benchmarks/quality.py > benchmarks/notes/quality.md

The runs are those of ``compare.py --journal``, by default of instances/runs.jsonl. Each was checked
against its program when it was made. A gap is (best known - value) / best known, in percent, the mean over
a family's instances.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean

from journal import OURS, Run, runs_in
from known import Known, best_known

#: Solver, seconds and, of the auction, the commit: a column.
Column = tuple[str, float, str]
_NEAR = 1e-9


def page(runs: Sequence[Run], known: dict[str, Known]) -> str:
    """Return the page over the runs of programs that are known."""
    mine = [run for run in runs if run.instance in known and run.program == known[run.instance].program]
    columns = sorted({_column(run) for run in mine}, key=lambda one: (one[0] != OURS, *one))
    families = list(dict.fromkeys(run.instance.partition("/")[0] for run in mine))
    head = [_title(column) for column in columns]
    lines = [
        "| family | " + " | ".join(head) + " |",
        "|---|" + "--:|" * len(columns),
        *(_row(family, columns, mine, known) for family in families),
    ]
    return _TEXT + "\n".join(lines) + "\n"


def _column(run: Run) -> Column:
    return run.solver, run.limit, run.commit if run.solver == OURS else ""


def _title(column: Column) -> str:
    solver, limit, commit = column
    return f"{solver} {limit:g} s" + (f", {commit}" if commit else "")


def _row(family: str, columns: Iterable[Column], runs: Sequence[Run], known: dict[str, Known]) -> str:
    mine = [run for run in runs if run.instance.partition("/")[0] == family]
    cells = [_cell([run for run in mine if _column(run) == column], known) for column in columns]
    return f"| {family} | " + " | ".join(cells) + " |"


def _cell(runs: Sequence[Run], known: dict[str, Known]) -> str:
    """Return the mean gap, instances that were proved, and instances in all; what found nothing is named."""
    if not runs:
        return ""
    found = [(run, run.value) for run in runs if run.value is not None]
    gaps = [100 * (1 - value / known[run.instance].value) for run, value in found]
    proved = sum(run.bound is not None and run.bound <= value * (1 + _NEAR) for run, value in found)
    shown = f"{max(0.0, mean(gaps)):.2f}" if gaps else "–"
    without = len(runs) - len(found)
    return f"{shown} ({proved}/{len(runs)})" + (f", {without} without an award" if without else "")


_TEXT = """# Quality by family and release

How far below the best value that is known of an instance each solver ends, in percent: the mean over the
family's instances; in brackets how many of them it proved, and of how many. Every solver has the same
integer program, the same solution to begin with where there is one (the step's, decision 90), one thread
and so many seconds of the processor; each solution was checked against the program. The instances are made
by `benchmarks/instances/`; the best known values stand with their solutions in `best_known.json` there
(`python benchmarks/known.py` checks them), the runs in `runs.jsonl`. `regions`, `arbitrary`, `L4`, `L6`,
`matching`, `paths` and `scheduling` are combinatorial auctions after Leyton-Brown, Pearson and Shoham
(2000); in the others bids are those of a window of jobs.

    python benchmarks/compare.py --all --ours 1 3 10 --seconds 60 --update \\
        --journal benchmarks/instances/runs.jsonl
    python benchmarks/quality.py > benchmarks/notes/quality.md

What was stopped goes on where it was. `--all` is ten instances a family: the brackets say how many of them
have run. The search was tuned on `tsubame/0`, `tsubame/4`, `tsubame-even/0`, on CATS's own regions, L6 and
arbitrary files (benchmarks/cats.py), and on instances of these families with seeds from 100 on. Where no
peer comes near, as on `tsubame` and `tsubame-even`, the best values that are known are this search's own,
the newest release's most of all: nearness to them tells releases apart, not how much is left. Gaps to
bounds: decisions 0090 and 0091. Since 0090 programs hold bids that fit beside each other: runs of older
programs are no longer shown. HiGHS has run on every instance, CBC on one of seven families each.

"""


def main() -> int:
    """Print the page."""
    names = sys.argv[1:] or [str(Path(__file__).parent / "instances" / "runs.jsonl")]
    runs = [run for name in names for run in runs_in(Path(name))]
    sys.stdout.write(page(runs, best_known()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
