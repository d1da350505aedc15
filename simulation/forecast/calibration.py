"""Calibration of forecasts by their own record: what came of those that were like this one.

A forecast's error is the logarithm of (what came / the futures' median). Past errors count by how
alike their forecasts were (predicted wait, spread, the plan's distance, size, queue) and by how
recent they are. Together with the futures' own spread they make a distribution. It is read at
levels that move online until a tenth of the outcomes lies below P10 and a tenth above P90 (adaptive
conformal inference, Gibbs and Candès). An outcome is used once the job has started, never before.
"""

from collections.abc import Hashable
from math import log
from typing import NamedTuple

import numpy as np

from ...cluster.kernels.harness import Floats

#: Levels at which a forecast is known: P10, P50 and P90 are among them.
LEVELS = np.array(
    [0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98]
)
LOWER, MIDDLE, UPPER = 2, 8, 14
#: Shorter waits count as this many seconds where logarithms are taken.
SHORTEST_S = 30.0
#: A plan that never comes counts, and is kept, as this many seconds.
LONGEST_S = 1e12
#: A distance of 1 between two forecasts in the logarithms of the predicted wait, of the spread, of
#: the plan over the predicted wait, and of the size.
_WIDTHS = np.array([1.5, 0.7, 1.5, 3.0 * log(2.0)])
#: What an error of a forecast for another queue counts.
_OTHER_QUEUE = 0.5
#: Errors that are looked at, and after how many an error counts 1/e.
_REMEMBERED, _FADING = 2000, 600.0
#: What the futures' own spread counts, as errors.
_OWN = 15.0
_OWN_LEVELS = np.linspace(0.05, 0.95, 10)
#: By how much an outcome moves the levels, and how far they go.
_STEP, _FARTHEST = 0.005, 0.09


class Features(NamedTuple):
    """What is known of a forecast when it is made.

    Attributes:
        point: logarithms of the predicted wait, the spread, the plan over the predicted wait, the
            size; each in units of ``_WIDTHS``.
        queue: the job's queue or partition.
    """

    point: Floats
    queue: Hashable

    @classmethod
    def of(cls, *, futures_s: float, spread: float, plan_s: float, cores: int, queue: Hashable) -> "Features":
        """Return the features of futures with a median and a P90 over their P10."""
        middle = log(max(futures_s, SHORTEST_S))
        plan = log(max(min(plan_s, LONGEST_S), SHORTEST_S))
        logs = np.array([middle, log(max(spread, 1.0)), plan - middle, log(max(cores, 1))])
        return cls(logs / _WIDTHS, queue)

    @property
    def logs(self) -> Floats:
        """The logarithms themselves."""
        found: Floats = self.point * _WIDTHS
        return found


class Calibrator:
    """The errors of past forecasts, and the distribution that they give a new one.

    Examples:
        >>> calibrator = Calibrator()
        >>> futures = np.linspace(600, 1200, 50)
        >>> made, _ = calibrator.calibrate(futures, plan_s=3600, cores=4)
        >>> bool(600 <= made[LOWER] < made[MIDDLE] < made[UPPER] <= 1200)
        True
    """

    def __init__(self) -> None:
        self._points = np.zeros((2 * _REMEMBERED, len(_WIDTHS)))
        self._errors = np.zeros(2 * _REMEMBERED)
        self._queues: list[Hashable] = []
        #: How far P10 and P90 have moved outward.
        self._moved = np.zeros(2)

    def __len__(self) -> int:
        """Return how many errors are remembered."""
        return len(self._queues)

    def calibrate(
        self, futures: Floats, *, plan_s: float, cores: int, queue: Hashable = None
    ) -> tuple[Floats, Features]:
        """Return the seconds at ``LEVELS``, and what ``learn`` wants once the job has started.

        Args:
            futures: seconds until the start, by future; finite.
            plan_s: the same by limits alone.
            cores: of the job.
            queue: of the job.
        """
        logs = np.log(np.maximum(np.quantile(futures, [*_OWN_LEVELS, 0.1, 0.5, 0.9]), SHORTEST_S))
        own, (lower, middle, upper) = logs[:-3], logs[-3:]
        found = Features.of(
            futures_s=float(np.exp(middle)),
            spread=float(np.exp(upper - lower)),
            plan_s=plan_s,
            cores=cores,
            queue=queue,
        )
        errors, weights = self._like(found)
        errors = np.concatenate([errors, own - middle])
        weights = np.concatenate([weights, np.full(len(own), _OWN / len(own))])
        order = np.argsort(errors, kind="stable")
        errors, weights = errors[order], weights[order]
        reached = (np.cumsum(weights) - 0.5 * weights) / weights.sum()
        seconds = np.exp(middle + np.interp(self._levels(), reached, errors))
        # Schedulers count whole seconds: an interval holds those that it touches.
        seconds[:MIDDLE] = np.floor(seconds[:MIDDLE])
        seconds[MIDDLE + 1 :] = np.ceil(seconds[MIDDLE + 1 :])
        return seconds, found

    def learn(self, features: Features, quantiles: Floats, came_s: float) -> None:
        """Add what came of a forecast.

        Args:
            features: as ``calibrate`` returned them.
            quantiles: the same.
            came_s: seconds from when it was asked until the job started.
        """
        count = len(self._queues)
        if count == len(self._errors):
            self._points[:_REMEMBERED] = self._points[_REMEMBERED:]
            self._errors[:_REMEMBERED] = self._errors[_REMEMBERED:]
            del self._queues[:_REMEMBERED]
            count = _REMEMBERED
        came = log(max(came_s, SHORTEST_S))
        self._points[count] = features.point
        self._errors[count] = came - features.logs[0]
        self._queues.append(features.queue)
        lower, upper = np.log(np.maximum(quantiles[[LOWER, UPPER]], SHORTEST_S))
        missed = np.array([came < lower, came > upper], np.float64)
        moved = self._moved + _STEP * (missed - LEVELS[LOWER])
        self._moved = np.clip(moved, -_FARTHEST, _FARTHEST)

    def _like(self, asked: Features) -> tuple[Floats, Floats]:
        """Return past errors with what each counts here."""
        count = len(self._queues)
        first = max(0, count - _REMEMBERED)
        gap = ((self._points[first:count] - asked.point) ** 2).sum(1)
        age = count - np.arange(first, count)
        weights = np.exp(-0.5 * gap - age / _FADING)
        others = [queue != asked.queue for queue in self._queues[first:]]
        weights[np.array(others, bool)] *= _OTHER_QUEUE
        return self._errors[first:count], weights

    def _levels(self) -> Floats:
        """Return which levels to read for ``LEVELS``: P10 and P90 have moved, others with them."""
        lower, upper = self._moved
        known = [0.0, LEVELS[LOWER], 0.5, LEVELS[UPPER], 1.0]
        read = [0.0, LEVELS[LOWER] - lower, 0.5, LEVELS[UPPER] + upper, 1.0]
        moved: Floats = np.interp(LEVELS, known, read)
        return moved
