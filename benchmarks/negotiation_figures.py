"""Draw figures 7.1 to 7.3 of the thesis again: ``python benchmarks/negotiation_figures.py [--orders N]``.

228 ESP jobs on 16 nodes, a share of them malleable (7.1: completion; 7.2: mean wait and response) or moldable
(7.3: completion). The thesis does not say in which order the jobs were submitted: bars are means over
several, lines reach from the least to the most. Beside what its text says of its figures stand ``--preset
thesis`` with chapter 7's accounting (new jobs at their minimum, 1.5 s a transaction), the preset alone, and
what the command ships. Runs are kept, a line each, and not made again: a run that was interrupted goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import click
from marked_part import can_draw, page_of

from aucsched.cluster.jobs import JobKind
from aucsched.negotiation.batch.mapping import BatchSettings
from aucsched.negotiation.runtime.settings import RuntimeSettings
from aucsched.reports.canvas import save_figure
from aucsched.simulation.negotiated.negotiated_report import negotiated_metrics
from aucsched.simulation.negotiated.negotiated_run import negotiate
from aucsched.simulation.negotiated.negotiation_options import THESIS
from aucsched.simulation.negotiated.plays import Changeability, esp_play

HERE = Path(__file__).parent
ROWS, PICTURE = HERE / "results/figures-7.jsonl", HERE.parent / "docs/images/figures-7.png"
NODES, BOUND_MIN = 16, 215.0
SHARES, MOLDABLE = tuple(range(0, 101, 10)), (10, 50, 100)
#: What the text of section 7.3 says, in minutes.
PAPER = {"malleable": 230.0, "moldable": 240.0}
FIGURES = ("makespan", "wait_mean", "response_mean", "utilization")
_COLORS = {"accounted": "#c9302c", "thesis": "#e8a33d", "shipped": "#1f6fb4"}
NAMES = {
    "accounted": "--preset thesis, chapter 7's accounting",
    "thesis": "--preset thesis",
    "shipped": "as shipped (mapper auction)",
}


def settings_of(which: str) -> tuple[BatchSettings, RuntimeSettings]:
    """Return both parties' settings."""
    batch, runtime = BatchSettings(mapper="auction", ends_when_done=True), RuntimeSettings()
    if which == "shipped":
        return batch, runtime
    of_batch = {
        "mapper": "mapper",
        "decision": "decision",
        "third_of": "third_of",
        "max_attempts": "max_attempts",
        "steps": "steps",
    }
    batch = replace(batch, **{ours: THESIS[name] for name, ours in of_batch.items()})
    of_runtime = ("dependencies", "equipartition", "reject_idle", "shrink", "steps")
    chosen: dict[str, Any] = {name: THESIS[name] for name in of_runtime}
    runtime = replace(runtime, last_backfill=not THESIS["no_last_backfill"], **chosen)
    if which == "accounted":
        runtime = replace(runtime, start_at_minimum=True, transaction_s=1.5)
    return batch, runtime


def made(which: str, kind: JobKind, share: int, order: int) -> dict[str, Any]:
    """Return a run's figures in minutes."""
    batch, runtime = settings_of(which)
    play = esp_play(NODES, Changeability(share=share / 100, kind=kind), order=order)
    result = negotiate(play, batch, runtime)
    assert len(result.done) == len(play.arrivals)  # nothing is drawn of a run that left jobs out
    metrics = negotiated_metrics(result)
    names = ("makespan_s", "wait_mean_s", "response_mean_s")
    figures = {name.removesuffix("_s"): round((metrics[name] or 0) / 60, 4) for name in names}
    used = round(metrics["utilization"] or 0, 5)
    return {
        "which": which,
        "kind": kind.value,
        "share": share,
        "order": order,
        **figures,
        "utilization": used,
    }


def wanted(orders: int) -> Iterable[tuple[str, JobKind, int, int]]:
    """Yield the runs of the figures, one order after another, so that an interrupted run has whole orders."""
    for order in range(orders):
        for which in NAMES:
            for kind, shares in ((JobKind.MALLEABLE, SHARES), (JobKind.MOLDABLE, MOLDABLE)):
                for share in shares:
                    yield which, kind, share, order


@click.command()
@click.option(
    "--picture", type=click.Path(path_type=Path), help="Default: in docs, of other rows beside them."
)
@click.option("--rows", type=click.Path(path_type=Path), default=ROWS)
@click.option("--orders", type=click.IntRange(1), default=6, show_default=True)
def main(picture: Path | None, rows: Path, orders: int) -> None:
    """Make the runs that are missing, draw, and print a table."""
    found = [json.loads(line) for line in rows.read_text().splitlines()] if rows.exists() else []
    known = {(row["which"], row["kind"], row["share"], row["order"]) for row in found}
    with rows.open("a") as file:
        for which, kind, share, order in wanted(orders):
            if (which, kind.value, share, order) not in known:
                row = made(which, kind, share, order)
                found.append(row)
                file.write(json.dumps(row) + "\n")
                file.flush()
    found = [row for row in found if row["order"] < orders]
    if can_draw():
        draw(found, picture or page_of(rows.parent, ROWS.parent, PICTURE))
    else:
        click.echo("no picture is drawn: it needs matplotlib, pip install 'aucsched[plot]'", err=True)
    click.echo(table(found))


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the means over the orders as rows of a page: least and most of the completion beside it."""
    lines = [
        "| share | text | " + " | ".join(f"{name}: completion | wait | response" for name in NAMES) + " |"
    ]
    lines.append("|---|--:|" + "--:|" * 3 * len(NAMES))
    for kind, shares in (("malleable", SHARES), ("moldable", MOLDABLE)):
        for share in shares:
            cells = [f"{share} % {kind}", f"about {PAPER[kind]:.0f}"]
            for which in NAMES:
                ends, waits, responses = (values(rows, which, kind, share, name) for name in FIGURES[:3])
                cells += [f"{fmean(ends):.1f} ({min(ends):.1f}-{max(ends):.1f})"]
                cells += [f"{fmean(waits):.1f}", f"{fmean(responses):.1f}"]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def values(rows: Iterable[dict[str, Any]], which: str, kind: str, share: int, name: str) -> list[float]:
    """Return one figure of each order."""
    asked = (which, kind, share)
    return [row[name] for row in rows if (row["which"], row["kind"], row["share"]) == asked]


def draw(rows: Sequence[dict[str, Any]], picture: Path) -> None:
    """Draw the three figures side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.2), dpi=120, layout="constrained")
    axes = figure.subplots(1, 3, width_ratios=(5, 5, 2.2))
    bars(axes[0], rows, "malleable", ("makespan",), "7.1 time for completion, malleable")
    bars(axes[1], rows, "malleable", ("wait_mean", "response_mean"), "7.2 mean wait, and response above it")
    bars(axes[2], rows, "moldable", ("makespan",), "7.3 completion, moldable")
    for place, kind in ((0, "malleable"), (2, "moldable")):
        text = f"thesis: around {PAPER[kind]:.0f} min"
        axes[place].axhline(PAPER[kind], color="#20242a", linewidth=1.2, linestyle="--", label=text)
        axes[place].axhline(BOUND_MIN, color="#8a8f98", linewidth=1, label="all work on 16 nodes")
        axes[place].set_ylim(200, 260)
    # The third picture has the colours of the first, and no room for their names.
    axes[0].legend(fontsize=7, loc="upper right")
    axes[2].annotate(
        "thesis: around 240 min",
        (0.98, PAPER["moldable"] + 1),
        xycoords=("axes fraction", "data"),
        fontsize=7,
        ha="right",
    )
    axes[1].set_ylim(0, 95)
    axes[1].legend(fontsize=7, loc="upper right")
    save_figure(figure, picture)


def bars(axes: Any, rows: Sequence[dict[str, Any]], kind: str, names: tuple[str, ...], title: str) -> None:
    """Draw bars for each share; of two figures the smaller one stands before the other."""
    shares = SHARES if kind == "malleable" else MOLDABLE
    width = 0.8 / len(NAMES)
    for place, which in enumerate(NAMES):
        x = [number + width * (place - 1) for number in range(len(shares))]
        for number, name in enumerate(reversed(names)):
            found = [values(rows, which, kind, share, name) for share in shares]
            means = [fmean(one) for one in found]
            is_front = number == len(names) - 1
            axes.bar(
                x,
                means,
                width=width * 0.95,
                color=_COLORS[which],
                alpha=1 if is_front else 0.4,
                label=NAMES[which] if is_front else None,
            )
            reach = [[mean - min(one) for mean, one in zip(means, found, strict=True)]]
            reach.append([max(one) - mean for mean, one in zip(means, found, strict=True)])
            axes.errorbar(x, means, yerr=reach, fmt="none", ecolor="#20242a", elinewidth=0.6)
    axes.set_xticks(range(len(shares)), [f"{share}" for share in shares])
    axes.set_xlabel(f"{kind} jobs, %")
    axes.set_ylabel("minutes")
    axes.set_title(title, fontsize=10)


if __name__ == "__main__":
    main()
