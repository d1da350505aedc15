"""How good forecasts were: coverage, sharpness, CRPS and reliability, and how far their medians were off."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .calibration import LEVELS, LOWER, MIDDLE, UPPER
from .logged import AnsweredForecast

Floats = NDArray[np.float64]

#: Waits of at most this many seconds are left out where only those who wait count.
NO_WAIT_S = 60.0
#: Shorter times count as this many seconds in ratios.
_SHORTEST_S = 1.0
_QUARTERS = (0.25, 0.5, 0.75)


class ForecastColumns(NamedTuple):
    """Forecasts with what came, a row each; times in seconds from when they were asked.

    Attributes:
        cores: of the job.
        waited: seconds for which it had waited by then.
        quantiles: shape (rows, levels).
        plan: by limits alone.
        came: until it started.
    """

    cores: Floats
    waited: Floats
    quantiles: Floats
    plan: Floats
    came: Floats

    @property
    def wait(self) -> Floats:
        """The job's whole wait."""
        return self.waited + self.came

    def where(self, chosen: NDArray[np.bool_]) -> ForecastColumns:
        """Return some of the rows."""
        return ForecastColumns(*(column[chosen] for column in self))


def columns_of(answered: Iterable[AnsweredForecast], submit: Iterable[float]) -> ForecastColumns:
    """Return forecasts as columns; those that say never are left out.

    Args:
        answered: the forecasts.
        submit: by job number, when the job came.
    """
    came_at = list(submit)
    rows = [one for one in answered if one.forecast.quantiles]
    return ForecastColumns(
        cores=np.array([one.forecast.cores for one in rows], np.float64),
        waited=np.array([one.forecast.asked_s - came_at[one.number] for one in rows], np.float64),
        quantiles=np.array([one.forecast.quantiles for one in rows]).reshape(len(rows), len(LEVELS)),
        plan=np.array([one.forecast.plan_s for one in rows], np.float64),
        came=np.array([one.came_s for one in rows], np.float64),
    )


def scores(rows: ForecastColumns) -> dict[str, Any]:
    """Return every figure by name, empty where there is no row; docs/forecast.md defines them."""
    if not len(rows.came):
        return {}
    lower, median, upper = (rows.quantiles[:, level] for level in (LOWER, MIDDLE, UPPER))
    held = (lower <= rows.came) & (rows.came <= upper)
    error, plan_error = np.abs(rows.came - median), np.abs(rows.came - rows.plan)
    return {
        "forecasts": len(rows.came),
        "coverage": float(held.mean()),
        "below_p10": float((rows.came < lower).mean()),
        "above_p90": float((rows.came > upper).mean()),
        "coverage_by_size": _by_quarter(held, rows.cores),
        "coverage_by_wait": _by_quarter(held, rows.wait),
        "coverage_by_predicted_wait": _by_quarter(held, median),
        "width_median": float(np.median(_longer(upper) / _longer(lower))),
        "within_factor_2": float(_within_factor_2(rows.came, median).mean()),
        "plan_within_factor_2": float(_within_factor_2(rows.came, rows.plan).mean()),
        "median_error_s": float(np.median(error)),
        "plan_median_error_s": float(np.median(plan_error)),
        "within_1_min": float((error <= 60).mean()),  # noqa: PLR2004
        "within_10_min": float((error <= 600).mean()),  # noqa: PLR2004
        "plan_within_10_min": float((plan_error <= 600).mean()),  # noqa: PLR2004
        "now_within_10_min": float((rows.came <= 600).mean()),  # noqa: PLR2004
        "crps_s": float(crps(rows.quantiles, rows.came).mean()),
        "plan_crps_s": float(plan_error.mean()),
        "reliability": dict(
            zip(LEVELS.tolist(), (rows.came[:, None] <= rows.quantiles).mean(0).tolist(), strict=True)
        ),
    }


def crps(quantiles: Floats, came: Floats) -> Floats:
    """Return the continuous ranked probability score of each row in seconds: 0 is a perfect forecast.

    It is twice the pinball loss, integrated over the levels; of a single number it is the absolute
    error.
    """
    over = came[:, None] - quantiles
    loss = np.where(over >= 0, LEVELS * over, (LEVELS - 1) * over)
    edges = np.concatenate([[0.0], (LEVELS[1:] + LEVELS[:-1]) / 2, [1.0]])
    found: Floats = 2 * (loss * np.diff(edges)).sum(1)
    return found


def _longer(seconds: Floats) -> Floats:
    return np.maximum(seconds, _SHORTEST_S)


def _within_factor_2(came: Floats, said: Floats) -> NDArray[np.bool_]:
    ratio = _longer(said) / _longer(came)
    return (ratio >= 0.5) & (ratio <= 2)  # noqa: PLR2004 - the factor of the name


def _by_quarter(held: NDArray[np.bool_], values: Floats) -> list[float]:
    """Return the coverage in each quarter of the rows by a value; equal values are in one quarter."""
    quarter = np.searchsorted(np.quantile(values, _QUARTERS), values, side="right")
    return [float(held[quarter == place].mean()) for place in range(4) if (quarter == place).any()]
