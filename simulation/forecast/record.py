"""The record of past forecasts: an SQLite file with what was said of each job, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...cluster.errors import InputError
from ...formats.sqlite_file import SqliteTable
from .calibration import LEVELS, LOWER, MIDDLE, UPPER, Calibrator, Features
from .forecaster import StartForecast
from .metrics import ForecastColumns

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
#: A plan that never comes is kept as this many seconds.
_NEVER_S = 1e12


class RecordedForecast(NamedTuple):
    """A forecast with what came of it; ``asked_s``, ``submit_s`` and ``start_s`` are since the epoch.

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
        plan_s=min(float(np.exp(middle + plan)), _NEVER_S),
        p10_s=found.p10_s,
        p50_s=found.p50_s,
        p90_s=found.p90_s,
        start_s=None,
    )


def calibrator_of(record: Iterable[RecordedForecast]) -> Calibrator:
    """Return a calibrator that has learnt from all whose outcome is known, as a record sorts them."""
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
        quantiles = np.interp(LEVELS, LEVELS[[LOWER, MIDDLE, UPPER]], [one.p10_s, one.p50_s, one.p90_s])
        calibrator.learn(features, quantiles, one.came_s)
    return calibrator


def columns_of_record(record: Iterable[RecordedForecast]) -> ForecastColumns:
    """Return the forecasts whose outcome is known as columns of figures."""
    rows = [one for one in record if one.start_s is not None]
    levels = LEVELS[[LOWER, MIDDLE, UPPER]]
    return ForecastColumns(
        cores=np.array([one.cores for one in rows], np.float64),
        waited=np.array([one.asked_s - one.submit_s for one in rows], np.float64),
        quantiles=np.array(
            [np.interp(LEVELS, levels, [one.p10_s, one.p50_s, one.p90_s]) for one in rows]
        ).reshape(len(rows), len(LEVELS)),
        plan=np.array([one.plan_s for one in rows], np.float64),
        came=np.array([one.came_s for one in rows], np.float64),
    )
