"""The calibration: intervals that hold what they promise, whatever the futures' error is."""

from __future__ import annotations

import numpy as np
import pytest

from aucsched.simulation.forecast.calibration import LEVELS, LOWER, MIDDLE, UPPER, Calibrator


def test_levels_hold_p10_p50_and_p90() -> None:
    assert [LEVELS[place] for place in (LOWER, MIDDLE, UPPER)] == [0.1, 0.5, 0.9]


def test_without_a_record_the_futures_speak() -> None:
    quantiles, _ = Calibrator().calibrate(np.linspace(1000, 2000, 101), plan_s=5000, cores=4)
    assert (np.diff(quantiles) >= 0).all()
    assert abs(quantiles[MIDDLE] - 1500) < 50


@pytest.mark.parametrize(("bias", "spread"), [(1.0, 0.2), (3.0, 0.5), (0.4, 1.0)])
def test_futures_that_err_are_put_right(bias: float, spread: float) -> None:
    random = np.random.default_rng(1)
    calibrator, held, middles = Calibrator(), [], []
    for _ in range(1500):
        true = float(np.exp(random.normal(8, 1)))
        futures = true * np.exp(random.normal(0, 0.1, 50))
        came = true * bias * float(np.exp(random.normal(0, spread)))
        quantiles, features = calibrator.calibrate(futures, plan_s=3 * true, cores=4)
        held.append(quantiles[LOWER] <= came <= quantiles[UPPER])
        middles.append(came > quantiles[MIDDLE])
        calibrator.learn(features, quantiles, came)
    assert 0.76 < np.mean(held[300:]) < 0.84
    assert 0.44 < np.mean(middles[300:]) < 0.56


def test_the_record_is_bounded() -> None:
    calibrator = Calibrator()
    quantiles, features = calibrator.calibrate(np.array([60.0, 90.0]), plan_s=100, cores=1)
    for _ in range(4100):
        calibrator.learn(features, quantiles, 80)
    assert len(calibrator) <= 4000
