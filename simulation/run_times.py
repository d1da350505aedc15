"""Run times as distributions, learnt online from ended jobs: one part for all that needs them.

The distribution is that of a job's share of its time limit, in bins that are equal on a logarithmic
scale; the last bin holds jobs that run to their limit. Levels refine each other, from all jobs to
those of one user with one limit and size. The counts of a group fade with each further job of it,
so that a late habit outweighs an old one. What a group says is mixed with what the level above
says, by a trust that grows where the group foretold its last jobs better (context tree weighting,
Willems and others). So a new user borrows from others with such limits, a regular one is foretold
closely, and a fickle one is not.

The functions are plain Python over columns that numba compiles as they stand.
"""

from collections.abc import Sequence
from math import exp, log
from typing import Any, NamedTuple

import numpy as np

from ..cluster.kernels.harness import Column, Floats, FloatTable, Ints, kernel

#: Bins of the share below the limit; one more is for the limit itself.
BINS = 40
#: Shares below this one are in the first bin.
SMALLEST = 1e-4
#: Shares from here on are the limit itself.
WHOLE = 0.9999
_DEPTH = -log(SMALLEST)
#: How a share spreads over its bin and its neighbours: 0.4, 0.2, 0.1.
_SPREAD = (0.4, 0.2, 0.1)
#: Jobs of a user whose mean share a policy's worth reads.
REMEMBERED = 20
#: Seconds of the shortest run that is drawn.
_SHORTEST_S = 1.0
#: By level, from the widest (all, limits, user, name, limit, size): what of its counts a further
#: job leaves, how many jobs its parent counts for, and the trust at first. They were chosen by the
#: likelihood of what running jobs did next on the first halves of two logs.
FADING = (0.9999, 0.98, 0.65, 0.65, 0.65, 0.9)
PARENT = (4.0, 16.0, 4.0, 4.0, 4.0, 4.0)
TRUST = (0.9, 0.7, 0.4, 0.4, 0.4, 0.4)
#: How much of the first trust comes back with each job.
_FORGIVING = 0.1
#: Rows of the table at first.
_ROWS = 256


class ShareTable(NamedTuple):
    """What has been learnt: a row for each group of each level.

    Attributes:
        mass: faded counts by row and bin.
        jobs: faded, by row.
        trust: by row, what its own counts weigh against its parent.
        fading, parent, first: by level.
    """

    mass: FloatTable
    jobs: Floats
    trust: Floats
    fading: Floats
    parent: Floats
    first: Floats


class LastShares(NamedTuple):
    """What shares of their estimates the last jobs of each user ran for.

    Attributes:
        last: shares, ``REMEMBERED`` places a user, the oldest overwritten.
        ended: by user, how many jobs have ended.
        mean: of those shares, by user; 1 where no job has ended.
    """

    last: Floats | list[float]
    ended: Ints | list[int]
    mean: Floats | list[float]


@kernel
def remember_share(shares: LastShares, user: int, share: float) -> None:
    """Add the share of a user's job that has ended."""
    first = user * REMEMBERED
    shares.last[first + shares.ended[user] % REMEMBERED] = share
    shares.ended[user] += 1
    known = min(shares.ended[user], REMEMBERED)
    total = 0.0
    for place in range(first, first + known):
        total += shares.last[place]
    shares.mean[user] = total / known


@kernel
def mean_share(shares: LastShares, user: int) -> float:
    """Return the mean share of a user's last jobs; 1 where none has ended."""
    mean: float = shares.mean[user] if user >= 0 else 1.0
    return mean


@kernel
def position(share: float) -> float:
    """Return where a share is on the scale of the bins, from 0 to ``BINS``."""
    if share >= WHOLE:
        return float(BINS)
    if share <= SMALLEST:
        return 0.0
    return (1.0 + log(share) / _DEPTH) * BINS


@kernel
def bin_of(share: float) -> int:
    """Return the bin of a share."""
    if share >= WHOLE:
        return BINS
    return min(int(position(share)), BINS - 1)


@kernel
def learn_share(table: ShareTable, rows: Column, share: float) -> None:
    """Add the share of a job that has ended to the row of each of its levels; −1: it has none."""
    mass = table.mass
    middle = bin_of(share)
    foretold = 1.0 / (BINS + 1)
    for level in range(len(rows)):
        row = rows[level]
        if row < 0:
            continue
        if table.jobs[row] == 0.0:
            table.trust[row] = table.first[level]
        else:
            parent, trust = table.parent[level], table.trust[row]
            own = (mass[row, middle] + parent * foretold) / (table.jobs[row] + parent)
            mixed = trust * own + (1.0 - trust) * foretold
            table.trust[row] += (1.0 - _FORGIVING) * (trust * own / mixed) - trust
            table.trust[row] += _FORGIVING * table.first[level]
            foretold = mixed
        fading = table.fading[level]
        for place in range(BINS + 1):
            mass[row, place] *= fading
        table.jobs[row] = table.jobs[row] * fading + 1.0
        if middle == BINS:
            mass[row, BINS] += 1.0
            continue
        for step in range(-2, 3):
            mass[row, min(max(middle + step, 0), BINS - 1)] += _SPREAD[abs(step)]


@kernel
def mixed_shares(table: ShareTable, rows: Column, share: Column) -> None:
    """Write the probability of each bin for a job of these rows; all equal while none has ended."""
    for place in range(BINS + 1):
        share[place] = 1.0 / (BINS + 1)
    for level in range(len(rows)):
        row = rows[level]
        if row < 0 or table.jobs[row] == 0.0:
            continue
        parent, trust = table.parent[level], table.trust[row]
        total = table.jobs[row] + parent
        for place in range(BINS + 1):
            own = (table.mass[row, place] + parent * share[place]) / total
            share[place] = trust * own + (1.0 - trust) * share[place]


@kernel
def run_time_at(share: Column, quantile: float, limit: float, elapsed: float) -> float:
    """Return a quantile of a job's run time (s), given how long it has run; at most its limit."""
    if elapsed + _SHORTEST_S >= limit:
        return limit
    gone = 0.0
    if elapsed > 0.0:
        reached = position(elapsed / limit)
        whole = min(int(reached), BINS)
        for place in range(whole):
            gone += share[place]
        if whole < BINS:
            gone += share[whole] * (reached - whole)
        if gone >= 1.0 - 1e-9:
            return elapsed + quantile * (limit - elapsed)
    wanted = gone + quantile * (1.0 - gone)
    below = 0.0
    for place in range(BINS):
        if below + share[place] >= wanted:
            reached = place + (wanted - below) / share[place] if share[place] > 0.0 else place
            run = limit * exp(_DEPTH * (reached / BINS - 1.0))
            return min(max(run, _SHORTEST_S, elapsed + _SHORTEST_S), limit)
        below += share[place]
    return limit


class RunTimes:
    """What ended jobs say of those that run or wait; nothing else is read.

    Examples:
        >>> known = RunTimes()
        >>> rows = known.rows(limit_s=3600, user="ann", cores=4)
        >>> for _ in range(50):
        ...     known.learn(rows, limit_s=3600, run_s=1800)
        >>> bool(1500 < known.quantile(rows, 0.5, limit_s=3600) < 2100)
        True
    """

    def __init__(self) -> None:
        self.table = ShareTable(
            mass=np.zeros((_ROWS, BINS + 1)),
            jobs=np.zeros(_ROWS),
            trust=np.zeros(_ROWS),
            fading=np.array(FADING),
            parent=np.array(PARENT),
            first=np.array(TRUST),
        )
        self._places: dict[object, int] = {}
        #: Lists that grow with the users.
        self._last: Any = LastShares(last=[], ended=[], mean=[])
        self._users: dict[object, int] = {}

    def rows(
        self,
        *,
        limit_s: float,
        user: object = None,
        cores: int = 1,
        account: object = None,
        partition: object = None,
        name: object = None,
    ) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return a job's row at each level; −1 for that of its name where it has none.

        A job without a user is one of its account; those without either are one user's.
        """
        owner = user if user is not None else account
        length = int(np.floor(np.log2(max(limit_s, 1.0))))
        keys = (
            ("all",),
            ("limits", partition, length),
            ("user", owner),
            None if name is None else ("name", owner, name),
            ("limit", owner, limit_s),
            ("size", owner, limit_s, cores),
        )
        return np.array([-1 if key is None else self._row(key) for key in keys], np.int64)

    def learn(self, rows: Sequence[int] | Column, *, limit_s: float, run_s: float) -> None:
        """Add a job that has ended."""
        learn_share(self.table, rows, run_s / limit_s if limit_s > 0 else 1.0)

    def remember(self, user: object, share: float) -> None:
        """Add the share of its limit a user's job ran, for ``mean_share``; nobody's is not kept."""
        if user in (None, ""):
            return
        place = self._users.setdefault(user, len(self._users))
        if place == len(self._last.ended):
            for column, added in zip(self._last, ([1.0] * REMEMBERED, [0], [1.0]), strict=True):
                column.extend(added)
        remember_share(self._last, place, min(share, 1.0))

    def mean_share(self, user: object) -> float:
        """Return the mean share of a user's last jobs; 1 where none has ended."""
        return mean_share(self._last, self._users.get(user, -1))

    def quantile(
        self, rows: Sequence[int] | Column, quantile: float, *, limit_s: float, elapsed_s: float = 0.0
    ) -> float:
        """Return a quantile of a job's run time in seconds, given how long it runs already."""
        share = np.zeros(BINS + 1)
        mixed_shares(self.table, rows, share)
        return float(run_time_at(share, quantile, limit_s, elapsed_s))

    def _row(self, key: object) -> int:
        row = self._places.setdefault(key, len(self._places))
        if row == len(self.table.jobs):
            columns = {name: getattr(self.table, name) for name in ("mass", "jobs", "trust")}
            longer = {name: np.concatenate([one, np.zeros_like(one)]) for name, one in columns.items()}
            self.table = self.table._replace(**longer)
        return row
