"""`aucsched sweep --plot`: what goes where, and that the picture shows the rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from support.sweeps import TRACE, small, workload

from aucsched.cli import run
from aucsched.cluster.errors import OptionError
from aucsched.sweeps.axes import Row, Value
from aucsched.sweeps.results import check_panels, draw_sweep, layout_of
from aucsched.sweeps.run_plan import RunPlan, make_plan

MODELS, ROUNDS = ("aucsched2", "aucsched3"), (1, 2, 3)


def planned(folder: Path, **axes: tuple[int | str, ...]) -> RunPlan:
    return make_plan(str(small(folder)), axes, repeat=2)


def rows_for(plan: RunPlan) -> list[Row]:
    """Return rows whose figures tell which run they are of."""
    return [
        {
            "run": one.number,
            **one.options,
            "status": "feasible",
            "priority": 100.0 + int(str(one.options["window"])) + int(str(one.options["max_bids"])) / 1000,
            "gap": 0.5,
            "seconds.cpu": 0.25 * int(str(one.options["window"])),
        }
        for one in plan.runs
    ]


def test_window_runs_across_caps_are_lines_and_the_rest_are_panels(tmp_path: Path) -> None:
    layout = layout_of(
        planned(tmp_path, model=MODELS, window=(4, 8), max_bids=(20, 60), work_limit=ROUNDS, reserve=(1,))
    )
    assert layout.across == ("window", (4, 8))
    assert layout.lines == ("max_bids", (20, 60))
    assert layout.panels == (("model", MODELS), ("work_limit", ROUNDS))


def test_without_a_window_a_cap_runs_across_and_without_both_the_longest_axis(tmp_path: Path) -> None:
    layout = layout_of(planned(tmp_path, max_bids=(20, 60), model=MODELS))
    assert (layout.across[0], layout.lines[0], layout.panels) == ("max_bids", "model", ())
    layout = layout_of(make_plan(str(TRACE), {"policy": ("easy", "fcfs"), "order": ("sjf", "ljf", "area")}))
    assert (layout.across[0], layout.lines[0], layout.panels) == ("order", "policy", ())
    layout = layout_of(planned(tmp_path))
    assert (layout.across, layout.lines, layout.panels) == (("", (None,)), ("", (None,)), ())


def test_the_panels_show_the_means_of_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr("aucsched.sweeps.results.save_figure", lambda figure, _: drawn.append(figure))
    plan = planned(tmp_path, model=MODELS, window=(4, 8), max_bids=(20, 60), work_limit=ROUNDS)
    rows = rows_for(plan)
    # aucsched2 with one step: a repetition is better by 1, and one of another point has failed.
    rows[1]["priority"] = float(str(rows[1]["priority"])) + 1
    rows[6] = {**plan.runs[6].options, "run": 6, "status": "failed", "error": "no memory"}
    draw_sweep(plan, rows, tmp_path / "p.png")
    (figure,) = drawn
    panels = [axes for axes in figure.axes if axes.get_visible()]
    assert len(panels) == 6 * 3
    first = next(axes for axes in panels if axes.get_title() == "model aucsched2\nsteps 1")
    bars = [one for one in first.containers if isinstance(one, ErrorbarContainer)]
    lines = {one.get_label(): one.lines[0] for one in bars}
    assert set(lines) == {"20", "60"}
    assert np.asarray(lines["20"].get_xdata()).tolist() == [4, 8]
    best = 108.06
    assert np.asarray(lines["20"].get_ydata()).tolist() == pytest.approx(
        [100 * 104.52 / best, 100 * 108.02 / best]
    )
    assert figure.get_suptitle() == "1 of 48 runs failed and are not drawn"
    assert panels[0].get_ylabel() == "Priority sum\n(% of the best)"


def test_a_policy_that_does_not_read_an_option_is_drawn_at_each_of_its_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr("aucsched.sweeps.results.save_figure", lambda figure, _: drawn.append(figure))
    axes: dict[str, Sequence[Value]] = {
        "policy": ("easy", "aucsched3"),
        "window": (4, 8),
        "max_bids": (20, 60),
    }
    plan = make_plan(str(workload(tmp_path)), axes)
    assert sum("window" not in one.options for one in plan.runs) == 1
    waits: Row = {"status": "done", "wait_mean_s": 60.0}
    draw_sweep(plan, [{"run": one.number, **one.options, **waits} for one in plan.runs], None)
    panels = [panel for panel in drawn[0].axes if panel.lines]
    assert len(panels) == len(axes["policy"])
    for panel in panels:
        bars = [one for one in panel.containers if isinstance(one, ErrorbarContainer)]
        assert [np.asarray(one.lines[0].get_xdata()).tolist() for one in bars] == [[4, 8], [4, 8]]


def test_equal_rows_are_equal_bytes_in_each_form(tmp_path: Path) -> None:
    plan = planned(tmp_path, window=(4, 8), max_bids=(20, 60))
    for suffix, signature in ((".pdf", b"%PDF"), (".svg", b"<?xml")):
        written = []
        for name in ("a", "b"):
            draw_sweep(plan, rows_for(plan), tmp_path / f"{name}{suffix}")
            written.append((tmp_path / f"{name}{suffix}").read_bytes())
        assert written[0] == written[1]
        assert written[0].startswith(signature)


def test_more_than_a_person_reads_is_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = ",".join(map(str, range(1, 13)))
    out, picture = tmp_path / "x.csv", tmp_path / "x.png"
    arguments = ["sweep", str(small(tmp_path)), "--window", "4,8", "--max-bids", many]
    assert run([*arguments, "-o", str(out), "--plot", str(picture)]) == 2
    assert capsys.readouterr().err == "aucsched: --plot: 12 lines in a panel (max_bids) are more than 10\n"
    assert not out.exists()
    wide = planned(tmp_path, window=(4, 8), max_bids=(20, 60), model=MODELS, work_limit=tuple(range(13)))
    with pytest.raises(OptionError, match="26 panels for each figure are more than 24"):
        check_panels(wide)
