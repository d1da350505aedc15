"""Prabhakaran's figures 8 to 12: what is drawn is what was played, and what was asked for was granted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import evolving_plots
import pytest
from evolving_plots import draw_waits, overhead

from aucsched.reports.curves import waits_in_order

#: The captions: whose waits each figure shows, 9 of type L alone.
CAPTIONS = {
    8: ["Static", "Dyn-HP"],
    9: ["Static", "Dyn-HP", "Dyn-500", "Dyn-600"],
    10: ["Static", "Dyn-HP", "Dyn-500"],
    11: ["Static", "Dyn-HP", "Dyn-600"],
}


def test_figures_8_to_11_draw_the_waits_of_their_captions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prabhakaran: figures 8 to 11 waits."""
    pytest.importorskip("matplotlib")
    drawn: list[dict[str, list[float]]] = []

    def watched(axes: Any, runs: Any, kind: str | None) -> None:
        waits_in_order(axes, runs, kind)
        lines = {str(line.get_label()): list(line.get_ydata()) for line in axes.get_lines()}
        for name, run in runs.items():
            of = [job for job in run.workload.jobs if kind in (None, job.kind)]
            assert lines[name] == [(run.played[job.id].start_s - job.arrival_s) / 60 for job in of]
        drawn.append(lines)

    monkeypatch.setattr(evolving_plots, "waits_in_order", watched)
    draw_waits(0, tmp_path)
    assert [list(lines) for lines in drawn] == list(CAPTIONS.values())
    assert [len(next(iter(lines.values()))) for lines in drawn] == [230, 36, 230, 230]
    assert drawn[0]["Static"] != drawn[0]["Dyn-HP"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"figure-{one}.png" for one in CAPTIONS)


@pytest.mark.parametrize("loaded", [False, True])
def test_figure_12_times_grants_of_1_to_10_nodes(loaded: bool) -> None:
    """Prabhakaran: figure 12 time of an allocation."""
    found = overhead(loaded=loaded, repeats=1)
    assert list(found) == list(range(1, 11))
    assert all(len(times) == 1 and times[0] > 0 for times in found.values())
