"""How sure a difference of waits is: intervals over days that are drawn anew."""

from __future__ import annotations

import numpy as np
import pytest

from aucsched.simulation.events import DAY_S
from aucsched.simulation.waits import Resampling, used_between


def test_a_difference_that_every_job_has_is_certain() -> None:
    drawn = Resampling(np.arange(400, dtype=np.float64) * DAY_S / 40)
    everybody = np.ones(400, bool)
    assert drawn.blocks == 10
    assert drawn.of_means(np.full(400, -3.0), everybody) == (-3, -3)
    waits = np.arange(400.0)
    assert drawn.of_percentiles(waits + 5, waits, 95) == (5, 5)


def test_one_day_has_no_interval_and_weeks_are_drawn_of_long_histories() -> None:
    assert Resampling(np.arange(50.0)).of_means(np.arange(50.0), np.ones(50, bool)) is None
    assert Resampling(np.arange(100, dtype=np.float64) * DAY_S).block_s == 7 * DAY_S


@pytest.mark.parametrize("days", [4, 20])
def test_intervals_hold_the_truth_about_as_often_as_they_say(days: int) -> None:
    """Jobs of a day share its difference, so that only days are independent; the true mean is 0."""
    rng = np.random.default_rng(1)
    drawn = Resampling(np.repeat(np.arange(days, dtype=np.float64), 10) * DAY_S)
    held = 0
    for _ in range(200):
        values = np.repeat(rng.normal(size=days), 10)
        low, high = drawn.of_means(values, np.ones(len(values), bool)) or (1.0, 0.0)
        held += low <= 0 <= high
    assert 0.90 <= held / 200 <= 0.99


def test_cores_are_used_from_the_start_to_the_end() -> None:
    edges = np.array([0.0, 10.0, 30.0])
    used = used_between(edges, np.array([5.0, 0.0]), np.array([10.0, 100.0]), np.array([2.0, 1.0]))
    assert used.tolist() == [2 * 5 + 10, 2 * 5 + 20]
