"""EASY with predicted run times, shortest first behind the head: EASY++ and its learnt successors.

docs/policies.md (predicted) says what a pass does. A job that outlives its prediction gets a longer
one, and that is a pass of its own, for the head's reservation moves.

Sources: Tsafrir, Etsion and Feitelson (2007), "Backfilling using system-generated predictions
rather than user runtime estimates": shortest first (SJBF), the mean of the last two run times,
corrections (EASY++). Gaussier, Glesser, Reis and Trystram (SC'15), "Improving backfilling by using
machine learning to predict running times": the regression and its cross-validated loss.
"""

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from math import cos, inf, log, pi, sin
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..events import DAY_S, WEEK_S
from ..log_columns import Requests
from ..run_times import RunTimes
from ..stepping import Changes, Resort
from .easy import FREE, STARTED, Easy, release, start

#: Seconds that a job's first, second, … correction adds to its prediction (Tsafrir and others).
CORRECTIONS_S = (60, 300, 900, 1800, 3600, 7200, 18_000, 36_000, 72_000, 180_000, 360_000)


class EstimatePredictor:
    """Predicts the user's estimate: EASY, shortest first behind the head."""

    def __init__(self, requests: Requests) -> None:
        self._asked = requests

    def predict(self, now: float, job: int) -> float:  # noqa: ARG002 - others read the time
        """Return the run time of a job that arrives, in seconds."""
        return self._asked.estimate[job]

    def renew(self, job: int, predicted: float) -> float:  # noqa: ARG002 - as above
        """Return the prediction of a job that waits, now that others have ended."""
        return predicted

    def correct(self, job: int, elapsed: float, times: int) -> float:  # noqa: ARG002 - as above
        """Return a longer prediction of a running job, corrected for so many times before."""
        return elapsed + CORRECTIONS_S[min(times, len(CORRECTIONS_S) - 1)]

    def begin(self, now: float, job: int) -> None:
        """Hear that a job starts."""

    def end(self, now: float, job: int, run: float) -> None:
        """Learn how long a job ran."""


class LastTwo(EstimatePredictor):
    """Predicts the mean of the last two run times of the job's user; before, the estimate."""

    def __init__(self, requests: Requests) -> None:
        super().__init__(requests)
        self._last: dict[int, tuple[float, ...]] = {}

    def predict(self, now: float, job: int) -> float:
        """Return that mean; whose user is not known has the estimate."""
        return self.renew(job, super().predict(now, job))

    def renew(self, job: int, predicted: float) -> float:
        """Return that mean."""
        last = self._last.get(self._asked.user[job], ())
        return sum(last) / 2 if len(last) == 2 else predicted  # noqa: PLR2004 - two

    def end(self, now: float, job: int, run: float) -> None:  # noqa: ARG002 - others read the time
        """Remember the run time."""
        user = self._asked.user[job]
        if user >= 0:
            self._last[user] = (*self._last.get(user, ())[-1:], run)


class LearntMedian(EstimatePredictor):
    """Predicts the median of the forecasts' distribution (run_times.py), given the time so far."""

    def __init__(self, requests: Requests) -> None:
        super().__init__(requests)
        self._known = RunTimes()
        self._rows: dict[int, NDArray[np.int64]] = {}

    def predict(self, now: float, job: int) -> float:  # noqa: ARG002 - others read the time
        """Return the median of what the jobs that are like it ran."""
        asked = self._asked
        rows = self._known.rows(
            limit_s=asked.estimate[job],
            user=None if asked.user[job] < 0 else asked.user[job],
            cores=asked.size[job],
        )
        self._rows[job] = rows
        return self._median(job, 0.0)

    def correct(self, job: int, elapsed: float, times: int) -> float:  # noqa: ARG002 - every time
        """Return the median of those that ran longer."""
        return self._median(job, elapsed)

    def end(self, now: float, job: int, run: float) -> None:  # noqa: ARG002 - others read the time
        """Add the run time to the distributions."""
        self._known.learn(self._rows.pop(job), limit_s=self._asked.estimate[job], run_s=run)

    def _median(self, job: int, elapsed: float) -> float:
        limit = self._asked.estimate[job]
        return self._known.quantile(self._rows[job], 0.5, limit_s=limit, elapsed_s=elapsed)


class _UserHistory:
    """What the regression reads of a user: run times, the latest last; and what runs, by start."""

    def __init__(self) -> None:
        self.last: list[float] = []
        self.jobs = 0
        self.run_s = self.cores = 0.0
        self.ended: float | None = None
        self.running: dict[int, tuple[float, int]] = {}


class Regression(EstimatePredictor):
    """Predicts by a polynomial of degree 2, learnt online; its loss fears long predictions more.

    The loss of predicting f for a run of p seconds on m processors is, as the cross-validated
    triple has it::

        (1 + log(m·p)) · ((f − p)² if f > p else p − f)

    Weights follow the normalised adaptive gradient (Ross, Mineiro and Langford, 2013), which wants
    no scale of the features. We leave out the regularisation.
    """

    #: Of the gradient, as SC'15's experiments have it.
    RATE = 5000.0

    def __init__(self, requests: Requests) -> None:
        super().__init__(requests)
        self._users: dict[int, _UserHistory] = {}
        self._features: dict[int, NDArray[np.float64]] = {}
        self._pairs = np.triu_indices(18)
        count = 1 + 18 + len(self._pairs[0])
        self._weights, self._scale, self._gradients = np.zeros(count), np.zeros(count), np.zeros(count)
        self._norm, self._learnt = 0.0, 0

    def predict(self, now: float, job: int) -> float:
        """Return what the polynomial says, at least a second."""
        self._features[job] = self._features_of(now, job)
        return self.renew(job, 1.0)

    def renew(self, job: int, predicted: float) -> float:  # noqa: ARG002 - none is kept
        """Return what it says of a job as it was on arrival."""
        return max(abs(float(self._weights @ self._features[job])), 1.0)

    def begin(self, now: float, job: int) -> None:
        """Note what runs of the user."""
        self._history(job).running[job] = (now, self._asked.size[job])

    def end(self, now: float, job: int, run: float) -> None:
        """Learn the run time of a job, and what it says of its user."""
        history, size = self._history(job), self._asked.size[job]
        del history.running[job]
        history.last = [*history.last[-2:], run]
        history.jobs += 1
        history.run_s += run
        history.cores += size
        history.ended = now
        self._fit(self._features.pop(job), run, 1.0 + log(max(size * run, 1.0)))

    def _history(self, job: int) -> _UserHistory:
        return self._users.setdefault(self._asked.user[job], _UserHistory())

    def _features_of(self, now: float, job: int) -> NDArray[np.float64]:
        """Return the features that SC'15 learns from, with 1, their products and squares."""
        estimate, size = self._asked.estimate[job], self._asked.size[job]
        history = self._history(job)
        last = [min(run, estimate) for run in reversed(history.last)]
        three = [*last, estimate, estimate, estimate][:3]
        elapsed = [now - began for began, _ in history.running.values()]
        day, week = 2 * pi * (now % DAY_S) / DAY_S, 2 * pi * (now % WEEK_S) / WEEK_S
        plain = np.array(
            [
                *three,
                estimate,
                sum(last[:2]) / len(last[:2]) if last else estimate,
                sum(last) / len(last) if last else estimate,
                history.run_s / history.jobs if history.jobs else 0.0,
                0.0 if history.ended is None else now - history.ended,
                size * history.jobs / history.cores if history.jobs else 0.0,
                sum(cores for _, cores in history.running.values()),
                sum(elapsed),
                len(elapsed),
                max(elapsed, default=0.0),
                cos(day),
                sin(day),
                cos(week),
                sin(week),
                size,
            ]
        )
        return np.concatenate([[1.0], plain, plain[self._pairs[0]] * plain[self._pairs[1]]])

    def _fit(self, features: NDArray[np.float64], run: float, weight: float) -> None:
        """Make one step of the gradient."""
        magnitude = np.abs(features)
        grown = magnitude > self._scale
        self._weights[grown] *= self._scale[grown] / magnitude[grown]
        self._scale[grown] = magnitude[grown]
        known = self._scale > 0
        self._norm += float(np.sum((features[known] / self._scale[known]) ** 2))
        self._learnt += 1
        over = float(self._weights @ features) - run
        slope = weight * (2.0 * over if over > 0 else -1.0)
        gradient = slope * features
        self._gradients += gradient**2
        moved = self._gradients > 0
        step = np.sqrt(self._norm / self._learnt * self._gradients[moved]) * self._scale[moved]
        self._weights[moved] -= self.RATE * gradient[moved] / step


#: Parameter ``by`` -> what predicts.
PREDICTORS: dict[str, Callable[[Requests], EstimatePredictor]] = {
    "estimate": EstimatePredictor,
    "last-two": LastTwo,
    "regression": Regression,
    "median": LearntMedian,
}


class Predicted(Easy):
    """EASY by one of ``PREDICTORS``, over a queue sorted by job number or ``resort``."""

    def __init__(self, requests: Requests, resort: Resort | None, by: str) -> None:
        super().__init__(requests, self._sort)
        self._asked, self._order = requests, resort
        self._predictor = PREDICTORS[by](requests)
        own: Any = list(requests.estimate)
        self._state = self._state._replace(estimate=own)
        self._queue: Any = self._state.queue
        self._prediction: Any = self._state.estimate
        self._began: dict[int, float] = {}
        self._corrected: dict[int, int] = {}
        self._due: list[tuple[float, int]] = []

    @property
    def alarm(self) -> float:
        """When the next prediction is outlived."""
        while self._due and self._due[0][1] not in self._began:
            heappop(self._due)
        return self._due[0][0] if self._due else inf

    def step(self, now: float, seen: Changes) -> Sequence[int]:
        """Learn from what ended, predict what arrives, correct what is outlived; then the pass."""
        ended, arrived = seen
        for job in ended:
            self._predictor.end(now, job, now - self._began.pop(job))
        if ended:
            for job in self._queue:
                self._predict(job, self._predictor.renew(job, self._prediction[job]))
        self._correct(now)
        for job in arrived:
            self._predict(job, self._predictor.predict(now, job))
        started = self._sorted_step(now, seen, self._sort)
        for job in started:
            self._began[job] = now
            self._predictor.begin(now, job)
            heappush(self._due, (now + self._prediction[job], job))
        return started

    def _sort(self, now: float, queue: list[int]) -> None:
        """Sort the queue, behind the first job that does not fit by predictions."""
        size, free = self._asked.size, self._state.counts[FREE]
        if self._order:
            self._order(now, queue)
        else:
            queue.sort()
        place = 0
        while place < len(queue) and size[queue[place]] <= free:
            free -= size[queue[place]]
            place += 1
        prediction = self._prediction
        queue[place + 1 :] = sorted(queue[place + 1 :], key=lambda job: (prediction[job], job))

    def _correct(self, now: float) -> None:
        """Give those that have outlived their predictions longer ones."""
        while self.alarm <= now:
            _, job = heappop(self._due)
            elapsed, times = now - self._began[job], self._corrected.get(job, 0)
            self._corrected[job] = times + 1
            release(self._state, job)
            self._predict(job, self._predictor.correct(job, elapsed, times))
            self._state.counts[STARTED] = 0
            start(self._state, self._began[job], job)
            end = self._began[job] + self._prediction[job]
            if end > now:
                heappush(self._due, (end, job))

    def _predict(self, job: int, seconds: float) -> None:
        self._prediction[job] = min(seconds, self._asked.estimate[job])
