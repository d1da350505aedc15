"""The record of past forecasts in an SQLite file, and how good they were (coverage, CRPS, …)."""

from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...cluster.errors import InputError
from ...cluster.kernels.harness import Floats
from ...formats.sqlite_file import SqliteTable
from .calibration import LEVELS, LONGEST_S, LOWER, MIDDLE, UPPER, Calibrator, Features
from .forecaster import StartForecast

_FORECASTS = SqliteTable(
    name="forecasts",
    schema="""
CREATE TABLE forecasts (
    job TEXT NOT NULL,
    asked_s REAL NOT NULL,
    queue TEXT NOT NULL,
    cores INTEGER NOT NULL CHECK (cores > 0),
    submit_s REAL NOT NULL,
    futures_s REAL NOT NULL CHECK (futures_s >= 0),
    spread REAL NOT NULL CHECK (spread >= 1),
    plan_s REAL NOT NULL CHECK (plan_s >= 0),
    p10_s REAL NOT NULL CHECK (p10_s >= 0),
    p50_s REAL NOT NULL CHECK (p50_s >= p10_s),
    p90_s REAL NOT NULL CHECK (p90_s >= p50_s),
    start_s REAL,
    PRIMARY KEY (job, asked_s)
) STRICT, WITHOUT ROWID
""",
    what="record of forecasts",
    kind="record",
)
_QUERY = "SELECT * FROM forecasts ORDER BY coalesce(start_s, 9e99), asked_s, job"


class RecordedForecast(NamedTuple):
    """A forecast and what came of it; ``asked_s``, ``submit_s``, ``start_s`` are since the epoch.

    Attributes:
        job: its id.
        asked_s: when.
        queue: its partition.
        cores: of the job.
        submit_s: when it came.
        futures_s, spread: the futures' median, and their P90 over their P10.
        plan_s: by limits.
        p10_s, p50_s, p90_s: as they were said.
        start_s: when it started; None: not known.
    """

    job: str
    asked_s: float
    queue: str
    cores: int
    submit_s: float
    futures_s: float
    spread: float
    plan_s: float
    p10_s: float
    p50_s: float
    p90_s: float
    start_s: float | None

    @property
    def came_s(self) -> float:
        """Seconds from when it was asked until the job started."""
        return 0.0 if self.start_s is None else self.start_s - self.asked_s

    @property
    def quantiles(self) -> Floats:
        """Seconds at the levels of a forecast, linear between those that are kept."""
        known = [self.p10_s, self.p50_s, self.p90_s]
        return np.asarray(np.interp(LEVELS, LEVELS[[LOWER, MIDDLE, UPPER]], known))


def load_record(path: Path) -> list[RecordedForecast]:
    """Return the forecasts of a file by the starts of their jobs; one that is not there holds none.

    Raises:
        InputError: it cannot be read, or is no record.
    """
    rows = [RecordedForecast(*row) for row in _FORECASTS.read(path, _QUERY)]
    for row in rows:
        numbers = [one for one in row[4:] if one is not None]
        if not all(isinstance(one, float) and isfinite(one) for one in numbers):
            raise InputError("a number is not finite", file=str(path), path=f"forecasts.{row.job[:60]}")
    return rows


def save_starts(path: Path, starts: Mapping[str, float], record: Iterable[RecordedForecast]) -> bool:
    """Write the starts of jobs that were forecast; return whether any is new.

    Args:
        path: of the record.
        starts: by job, seconds since the epoch.
        record: what the file holds.
    """
    found = [
        (starts[one.job], one.job, one.asked_s)
        for one in record
        if one.start_s is None and starts.get(one.job, -1.0) >= one.asked_s
    ]
    if found:
        _FORECASTS.write(path, "UPDATE forecasts SET start_s = ? WHERE job = ? AND asked_s = ?", found)
    return bool(found)


def save_forecasts(path: Path, rows: Iterable[RecordedForecast]) -> None:
    """Add forecasts to a record; one of a job and a time that it holds stays."""
    places = ", ".join("?" * len(RecordedForecast._fields))
    _FORECASTS.write(path, f"INSERT OR IGNORE INTO forecasts VALUES ({places})", rows)  # noqa: S608


def recorded(found: StartForecast, queue: str, submit_s: float) -> RecordedForecast:
    """Return a forecast as a record keeps it."""
    assert found.features is not None  # noqa: S101 - only what is calibrated is kept
    middle, spread, plan, _ = found.features.logs
    return RecordedForecast(
        job=str(found.id),
        asked_s=found.asked_s,
        queue=queue,
        cores=found.cores,
        submit_s=submit_s,
        futures_s=float(np.exp(middle)),
        spread=float(np.exp(spread)),
        plan_s=min(float(np.exp(middle + plan)), LONGEST_S),
        p10_s=found.p10_s,
        p50_s=found.p50_s,
        p90_s=found.p90_s,
        start_s=None,
    )


def calibrator_of(record: Iterable[RecordedForecast]) -> Calibrator:
    """Return a calibrator that has learnt from all whose outcome is known, in a record's order."""
    calibrator = Calibrator()
    for one in record:
        if one.start_s is None:
            continue
        features = Features.of(
            futures_s=one.futures_s,
            spread=one.spread,
            plan_s=one.plan_s,
            cores=one.cores,
            queue=one.queue or None,
        )
        calibrator.learn(features, one.quantiles, one.came_s)
    return calibrator


def columns_of_record(record: Iterable[RecordedForecast]) -> "ForecastColumns":
    """Return the forecasts whose outcome is known as columns of figures."""
    return ForecastColumns.of(
        (one.cores, one.asked_s - one.submit_s, one.quantiles, one.plan_s, one.came_s)
        for one in record
        if one.start_s is not None
    )


#: Shorter times count as this many seconds in ratios.
_SHORTEST_TIME_S = 1.0
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

    @classmethod
    def of(cls, rows: Iterable[tuple[Any, ...]]) -> "ForecastColumns":
        """Return rows as columns."""
        columns = list(zip(*rows, strict=True)) or [()] * len(cls._fields)
        made = cls(*(np.array(column, np.float64) for column in columns))
        return made._replace(quantiles=made.quantiles.reshape(len(made.came), len(LEVELS)))

    @property
    def wait(self) -> Floats:
        """The job's whole wait."""
        return self.waited + self.came


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
    """Return each row's continuous ranked probability score in seconds: 0 is a perfect forecast.

    It is twice the pinball loss, integrated over the levels; of a single number it is the absolute
    error.
    """
    over = came[:, None] - quantiles
    loss = np.where(over >= 0, LEVELS * over, (LEVELS - 1) * over)
    edges = np.concatenate([[0.0], (LEVELS[1:] + LEVELS[:-1]) / 2, [1.0]])
    found: Floats = 2 * (loss * np.diff(edges)).sum(1)
    return found


def _longer(seconds: Floats) -> Floats:
    return np.maximum(seconds, _SHORTEST_TIME_S)


def _within_factor_2(came: Floats, said: Floats) -> NDArray[np.bool_]:
    ratio = _longer(said) / _longer(came)
    return (ratio >= 0.5) & (ratio <= 2)  # noqa: PLR2004 - the factor of the name


def _by_quarter(held: NDArray[np.bool_], values: Floats) -> list[float]:
    """Return the coverage in each quarter of the rows by a value; equal values share a quarter."""
    quarter = np.searchsorted(np.quantile(values, _QUARTERS), values, side="right")
    return [float(held[quarter == place].mean()) for place in range(4) if (quarter == place).any()]
