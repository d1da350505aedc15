"""Draw figures 7.1 to 7.3 of the thesis again: ``python benchmarks/negotiation_figures.py FILE.png``.

228 ESP jobs on 16 nodes in one order of submission (the thesis does not say which), a share of them malleable
(7.1: completion; 7.2: mean wait and response) or moldable (7.3: completion). Beside what its text says
of its figures stand ``--preset thesis`` with chapter 7's accounting (new jobs at their minimum, 1.5 s a
transaction), and the command's default. Runs are kept in a file and not made again.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from aucsched.cluster.jobs import JobKind
from aucsched.commands.negotiate_options import THESIS
from aucsched.formats.drawing import save_figure
from aucsched.negotiation.parties.batch_state import BatchSettings
from aucsched.runtime.settings import RuntimeSettings
from aucsched.simulation.negotiated.esp import Mix
from aucsched.simulation.negotiated.plays import esp_play
from aucsched.simulation.negotiated.report import negotiated_metrics
from aucsched.simulation.negotiated.run import negotiate

NODES, BOUND_MIN = 16, 215.0
SHARES, MOLDABLE = tuple(range(0, 101, 10)), (10, 50, 100)
#: What the text of section 7.3 says, in minutes.
PAPER = {"malleable": 230.0, "moldable": 240.0}
_COLORS = {"thesis": "#c9302c", "default": "#1f6fb4"}
_NAMES = {"thesis": "--preset thesis, chapter 7's accounting", "default": "default (mapper auction)"}


def settings_of(which: str) -> tuple[BatchSettings, RuntimeSettings]:
    """Return both parties' settings."""
    batch, runtime = BatchSettings(mapper="auction", ends_when_done=True), RuntimeSettings()
    if which == "default":
        return batch, runtime
    batch = replace(batch, **{name: THESIS[name] for name in ("mapper", "decision", "third_of")})
    of_runtime = ("dependencies", "equipartition", "reject_idle", "shrink")
    told: dict[str, Any] = {name: THESIS[name] for name in of_runtime}
    return batch, replace(runtime, last_backfill=False, start_at_minimum=True, transaction_s=1.5, **told)


def made(which: str, kind: JobKind, share: int, order: int) -> dict[str, Any]:
    """Return a run's figures in minutes."""
    batch, runtime = settings_of(which)
    play = esp_play(NODES, Mix(share=share / 100, kind=kind), order=order)
    metrics = negotiated_metrics(negotiate(play, batch, runtime))
    names = ("makespan_s", "wait_mean_s", "response_mean_s")
    figures = {name.removesuffix("_s"): (metrics[name] or 0) / 60 for name in names}
    return {"which": which, "kind": kind.value, "share": share, "order": order, **figures}


@click.command()
@click.argument("picture", type=click.Path(path_type=Path))
@click.option("--rows", type=click.Path(path_type=Path), required=True, help="Runs, JSON lines.")
@click.option("--order", type=int, default=0, show_default=True)
def main(picture: Path, rows: Path, order: int) -> None:
    """Make the runs that are missing, draw, and print a table."""
    found = [json.loads(line) for line in rows.read_text().splitlines()] if rows.exists() else []
    wanted = [
        (which, kind, share)
        for which in _NAMES
        for kind, shares in ((JobKind.MALLEABLE, SHARES), (JobKind.MOLDABLE, MOLDABLE))
        for share in shares
    ]
    known = {(row["which"], row["kind"], row["share"], row["order"]) for row in found}
    with rows.open("a") as file:
        for which, kind, share in wanted:
            if (which, kind.value, share, order) not in known:
                row = made(which, kind, share, order)
                found.append(row)
                file.write(json.dumps(row) + "\n")
                file.flush()
    draw([row for row in found if row["order"] == order], picture)
    for row in sorted(found, key=lambda row: (row["kind"], row["which"], row["share"])):
        figures = "".join(f"{row[name]:9.1f}" for name in ("makespan", "wait_mean", "response_mean"))
        click.echo(f"{row['kind']:10}{row['which']:9}{row['share']:4} %{figures}")


def draw(rows: list[dict[str, Any]], picture: Path) -> None:
    """Draw the three figures side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.6), dpi=160, layout="constrained")
    axes = figure.subplots(1, 3)
    bars(axes[0], rows, "malleable", ("makespan",), "7.1 time for completion, malleable")
    bars(axes[1], rows, "malleable", ("wait_mean", "response_mean"), "7.2 mean wait and response, malleable")
    bars(axes[2], rows, "moldable", ("makespan",), "7.3 time for completion, moldable")
    for place, kind in ((0, "malleable"), (2, "moldable")):
        axes[place].axhline(PAPER[kind], color="#20242a", linewidth=1, linestyle="--", label="thesis: about")
        axes[place].axhline(BOUND_MIN, color="#8a8f98", linewidth=0.8, label="work on 16 nodes")
        axes[place].set_ylim(190, 250)
    for one in axes:
        one.legend(fontsize=6, loc="lower right")
    save_figure(figure, picture)


def bars(axes: Any, rows: list[dict[str, Any]], kind: str, names: tuple[str, ...], title: str) -> None:
    """Draw bars for each share, those of the second name above the first."""
    for place, which in enumerate(_NAMES):
        mine = sorted((row for row in rows if (row["kind"], row["which"]) == (kind, which)), key=_share)
        x = [number + 0.4 * place - 0.2 for number in range(len(mine))]
        for number, name in enumerate(reversed(names)):
            values = [row[name] for row in mine]
            label = _NAMES[which] if number == 0 else None
            axes.bar(
                x,
                values,
                width=0.38,
                color=_COLORS[which],
                alpha=0.45 if number < len(names) - 1 else 1,
                label=label,
            )
    shares = sorted({row["share"] for row in rows if row["kind"] == kind})
    axes.set_xticks(range(len(shares)), [f"{share}" for share in shares])
    axes.set_xlabel(f"{kind} jobs, %")
    axes.set_ylabel("minutes")
    axes.set_title(title, fontsize=9)


def _share(row: dict[str, Any]) -> int:
    return int(row["share"])


if __name__ == "__main__":
    main()
