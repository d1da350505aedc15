"""The iScheduler benchmark's tables: gates by their figures, the paper's numbers beside ours."""

from __future__ import annotations

import pytest
from ischeduler_points import Point, sweep_points, system_points, user_points
from ischeduler_tables import TABLE_3, report


class Fixed:
    """Means that follow from the policy alone, or by table 3."""

    traces, jobs = 2, 10

    def __init__(self, ours_s: float, slower: float = 1.0) -> None:
        self.asked: set[Point] = set()
        self._totals = {"ideal-only": 1000.0, "ideal-backfill": 100.0, "moldable": 100.0}
        self._ours_s, self._slower = ours_s, slower

    def of(self, point: Point, column: str) -> float:
        """Return a mean."""
        self.asked.add(point)
        if column == "success" and point.limit == 3:
            return float("nan")
        if column == "per_hour" and point.kind == "GE":
            share = 0.3 if point.share == 1.0 else point.share
            names = ("ideal-only", "moldable", "ideal-backfill", "Low-Imp-FR")
            if point.policy in names:
                return TABLE_3[point.load, share][names.index(point.policy)] / self._slower
        return self._totals.get(point.policy, self._ours_s)


def test_gates_hold_and_fail_by_their_figures() -> None:
    """Weissman: tables 2, 3."""
    good = report(Fixed(10.0), 0.7)
    assert "FAILS" not in good
    assert "holds  load .5: wait of ideal-only over ours: 100.0, at least 70" in good
    assert "nan" not in good
    bad = report(Fixed(90.0, slower=1.2), 0.7)
    assert "FAILS  load .7: total of ideal-only over ours" not in bad
    assert "FAILS  load 0.6: total below backfill, %: 10.0, at least 15" in bad
    assert "FAILS: farthest of IO, IB, LIFR 16.7%" in bad


@pytest.mark.parametrize("load", [0.5, 0.7])
def test_every_point_that_a_table_reads_is_simulated(load: float) -> None:
    """Weissman: figures 9 to 16."""
    rows = Fixed(10.0)
    report(rows, load)
    made = {*sweep_points(), *user_points("GE"), *user_points("MIXED")}
    made |= {*system_points(load, "linear"), *system_points(load, "parabolic")}
    assert rows.asked <= made
