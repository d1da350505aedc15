"""Waits compared: statistics, classes of size, and how sure a difference of two runs is."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ..cluster.text import plural
from .events import DAY_S

Floats = NDArray[np.float64]
Interval = tuple[float, float]
Statistic = Callable[[Iterable[float | None]], float | None]
#: The one figure that is a share: its differences are percentage points.
UTILISATION = "utilisation (%)"
#: Histories of at least so many weeks are drawn anew by weeks, shorter ones by days.
_WEEKS = 10
_DRAWS, _SEED = 1000, 20261124
#: A group of jobs that is empty in more draws than the rest has no interval.
_KNOWN = 0.9
#: What 95 % of a normal distribution lie within, in standard deviations.
_Z = NormalDist().inv_cdf(0.975)


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are known, None where none is."""
    known = [float(value) for value in values if value is not None]
    return float(np.mean(known)) if known else None


def percentile(share: float) -> Statistic:
    """Return the function that gives this percentile (0 to 100) of the values that are known."""

    def of(values: Iterable[float | None]) -> float | None:
        known = [float(value) for value in values if value is not None]
        return float(np.percentile(known, share)) if known else None

    return of


#: Name -> what it is of waits.
STATISTICS: dict[str, Statistic] = {
    "mean": mean,
    "median": percentile(50),
    "95th percentile of the": percentile(95),
    "longest": percentile(100),
}


def size_class(cores: int | None) -> str:
    """Return a job's class of size: 1, 2-4, 5-16 and so on.

    Examples:
        >>> size_class(1), size_class(12)
        ('1 core', '5-16 cores')
    """
    if cores is None or cores <= 1:
        return "1 core"
    high = 4
    while high < cores:
        high *= 4
    return f"{high // 4 + 1}-{high} cores"


def size_rank(name: str) -> int:
    """Return what classes of size are sorted by."""
    return int(name.partition("-")[0].partition(" ")[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How a figure differs between two columns, with its 95 % interval; None: it has none.

    Attributes:
        figure, of, than: ``of`` less ``than``.
        base: the figure of ``than``.
    """

    figure: str
    of: str
    than: str
    base: float
    value: float
    low: float | None
    high: float | None

    def words(self) -> str:
        """Return it as a sentence: in per cent of ``base``, else in its own unit."""
        more, less = ("longer", "shorter") if "wait" in self.figure else ("higher", "lower")
        ends = (self.value, self.low or 0.0, self.high or 0.0)
        in_percent = self.base > 0 and -self.base <= min(ends) and max(ends) <= 2 * self.base

        def said(value: float) -> str:
            if not round(abs(value), 9):
                return "no different"
            if self.figure == UTILISATION:
                amount = plural(f"{abs(value):.2g}", "percentage point")
            elif in_percent:
                amount = f"{100 * abs(value) / self.base:.2g} %"
            else:
                amount = duration(abs(value)) if "wait" in self.figure else f"{abs(value):.2g}"
            return f"{amount} {more if value > 0 else less}"

        figure = f"the {self.figure.removesuffix(' (s)').removesuffix(' (%)')}"
        name = f"{self.of}: {figure}"
        if self.low is None or self.high is None:
            return f"{name} is {said(self.value)} than with {self.than} (one history: no interval)"
        span = f"(95 %: {said(self.low)} to {said(self.high)})"
        # The history shows it where 0 is outside its interval.
        if self.low <= 0 <= self.high:
            return f"{self.of}: this history shows no difference in {figure} {span}"
        return f"{name} is {said(self.value)} than with {self.than} {span}"


def duration(seconds: float) -> str:
    """Return a duration for people in the unit that suits it."""
    units = ((2 * DAY_S, DAY_S, "days"), (7200, 3600, "h"), (120, 60, "min"), (0, 1, "s"))
    return next(f"{seconds / size:.3g} {unit}" for least, size, unit in units if seconds >= least)


class Resampling:
    """A history drawn anew, block by block, many times: a block is a day of submissions, or a week.

    Jobs of one day wait for each other, so that days are drawn and not jobs. Both runs that are
    compared keep their jobs of a day together (paired). Few blocks make the percentiles too narrow:
    both arms are widened as Student's t is wider than the normal distribution, and as a sample's
    variance is by n / (n - 1).

    Args:
        arrival_s: of the jobs, seconds after the history's beginning.
    """

    def __init__(self, arrival_s: Floats) -> None:
        last = float(arrival_s.max())
        self.block_s = DAY_S * (7 if last >= _WEEKS * 7 * DAY_S else 1)
        number = np.floor_divide(arrival_s, self.block_s).astype(np.int64)
        self.blocks = int(number.max()) + 1
        self.edges = np.minimum(np.arange(self.blocks + 1) * self.block_s, max(last, 1.0))
        self._of_job = number
        draw = np.random.default_rng(_SEED)
        shares = np.full(self.blocks, 1 / self.blocks)
        self._counts = draw.multinomial(self.blocks, shares, size=_DRAWS).astype(np.float64)

    def of_means(self, differences: Floats, members: NDArray[np.bool_]) -> Interval | None:
        """Return the 95 % interval of the mean of some jobs' differences; None: it has none."""
        blocks = self._of_job[members]
        sums, jobs = (
            np.bincount(blocks, weights=weights, minlength=self.blocks).astype(np.float64)
            for weights in (differences[members], np.ones(len(blocks)))
        )
        return self.of_ratios(sums, jobs)

    def of_ratios(self, above: Floats, below: Floats) -> Interval | None:
        """Return the 95 % interval of a sum over blocks by another."""
        whole = self._counts @ below
        with np.errstate(invalid="ignore", divide="ignore"):
            return self._interval(np.where(whole > 0, (self._counts @ above) / whole, np.nan))

    def of_percentiles(self, first: Floats, second: Floats, share: float) -> Interval | None:
        """Return the 95 % interval of the first's percentile (0 to 100) less the second's."""
        return self._interval(self._percentiles(first, share) - self._percentiles(second, share))

    def _percentiles(self, values: Floats, share: float) -> Floats:
        order = np.argsort(values, kind="stable")
        ranked, blocks = values[order], self._of_job[order]
        found = []
        for counts in self._counts:
            below = np.cumsum(counts[blocks])
            place = np.searchsorted(below, below[-1] * share / 100)
            found.append(ranked[place] if below[-1] else np.nan)
        return np.array(found)

    def _interval(self, drawn: Floats) -> Interval | None:
        known = drawn[~np.isnan(drawn)]
        if self.blocks == 1 or len(known) < _KNOWN * len(drawn):
            return None
        free = self.blocks - 1
        # Student's t from the normal distribution: first terms of Fisher's and Cornish's expansion.
        wide = _Z + (_Z**3 + _Z) / (4 * free) + (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / (96 * free**2)
        wider = wide / _Z * sqrt(self.blocks / free)
        low, middle, high = np.percentile(known, (2.5, 50, 97.5))
        return float(middle - (middle - low) * wider), float(middle + (high - middle) * wider)


def used_between(edges: Floats, start_s: Floats, run_s: Floats, cores: Floats) -> Floats:
    """Return the core-seconds that jobs use between neighbouring edges."""
    return np.diff([float((cores * np.clip(edge - start_s, 0, run_s)).sum()) for edge in edges])
