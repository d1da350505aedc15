"""When will a job start: forecasts of a queue that is followed event by event.

A forecaster hears of submissions, starts and ends as they happen and holds nothing else, so that no
forecast can read ahead.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any, NamedTuple, Self
from zlib import crc32

import numpy as np

from ...cluster.jobs import Job, RunningJob
from ...cluster.kernels.harness import Floats, FloatTable, Ints
from ...cluster.text import plural
from ..events import DAY_S
from ..run_times import FADING, RunTimes
from ..workloads.imported import LoggedJob
from .calibration import LEVELS, LOWER, MIDDLE, SHORTEST_S, UPPER, Calibrator, Features
from .futures import Past, starts_of
from .futures_kernel import EASY, FutureJobs, FutureRules

#: Futures of a forecast.
FUTURES = 200
#: Random numbers that a user's jobs of one limit share with each other: jobs of one burst run
#: alike.
_ALIKE = 0.7
#: Jobs to come in a future at most, and jobs that must be known before any comes.
_ARRIVALS, _KNOWN = 400, 50
#: Jobs that are known of the past at most.
_PAST = 20_000
_WEEK, _DAYS = 7, 28
#: A job without a limit, in seconds: longer than any that is played.
_NO_LIMIT_S = 1e9
#: Seconds of the shortest limit.
_SHORTEST_LIMIT_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedRequest:
    """A job as a forecast sees it.

    Attributes:
        id: of the job.
        submit_s: when it came, or from when on it may start, in seconds.
        cores: that it takes.
        limit_s: how long it may run; None: for ever.
        user, account, partition, name: what its run time may follow.
        queue: for which the calibration may differ.
        pools: those whose nodes it can use, as bits; −1: all.
        rank: smaller ones stand before larger ones in the queue.
    """

    id: Hashable
    submit_s: float
    cores: int
    limit_s: float | None = None
    user: Hashable = None
    account: Hashable = None
    partition: Hashable = None
    name: Hashable = None
    queue: Hashable = None
    pools: int = -1
    rank: float = 0.0

    @classmethod
    def of(cls, job: Job | RunningJob | LoggedJob, **members: Any) -> Self:
        """Return a job of a cluster: its run time may follow whose it is, and its partition."""
        owner: dict[str, Any] = {
            name: getattr(job, name) or None for name in ("user", "account", "partition")
        }
        return cls(**owner, **members)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartForecast:
    """When a job will start, in seconds from when it was asked.

    Attributes:
        id: of the job.
        asked_s: when, on the clock of the events.
        cores: of the job.
        quantiles: at the levels of ``calibration.LEVELS``; empty where it can never start.
        plan_s: its start if every job ran to its limit and nobody else came.
        never: why it can never start; empty where it can.
        features: what its calibration wants once the job has started; None where nothing is
            uncertain.
    """

    id: Hashable
    asked_s: float
    cores: int
    quantiles: tuple[float, ...] = ()
    plan_s: float = inf
    never: str = ""
    features: Features | None = field(default=None, compare=False)

    @property
    def p10_s(self) -> float:
        """One start in ten comes earlier."""
        return self.quantiles[LOWER]

    @property
    def p50_s(self) -> float:
        """One start in two comes earlier."""
        return self.quantiles[MIDDLE]

    @property
    def p90_s(self) -> float:
        """One start in ten comes later."""
        return self.quantiles[UPPER]

    def probability_by(self, seconds: float) -> float:
        """Return the probability that the job has started so many seconds after it was asked."""
        if not self.quantiles or seconds < 0:
            return 0.0
        if self.quantiles[-1] == 0.0:
            return 1.0
        known = [0.0, *self.quantiles, 2.0 * self.quantiles[-1]]
        return float(np.interp(seconds, known, [0.0, *LEVELS, 1.0]))


class _Asked(NamedTuple):
    """A forecast that waits for its outcome."""

    asked_s: float
    features: Features
    quantiles: Floats
    is_now: bool


class Forecaster:
    """Follows a machine's events and says when waiting jobs will start.

    Args:
        cores: of the machine, by pool.
        policy: that the futures play, of futures_kernel.py; conservative backfilling on one pool.
        is_exact: the policy is played as it is, so that who starts now in every future does.
        depth: waiting jobs that the policy looks at.
        futures: that are played for a forecast.
        seed: of their random numbers.
        calibrator: with the record of past forecasts; None: an empty one.

    Examples:
        >>> forecaster = Forecaster([4], futures=50)
        >>> forecaster.submit(QueuedRequest(id=1, submit_s=0, cores=4, limit_s=3600))
        >>> forecaster.start(1, 0)
        >>> forecaster.submit(QueuedRequest(id=2, submit_s=10, cores=1, limit_s=60))
        >>> [found] = forecaster.forecast(10, [2])
        >>> bool(0 < found.p10_s < found.p90_s <= found.plan_s), found.plan_s
        (True, 3590.0)
    """

    def __init__(
        self,
        cores: Sequence[int],
        *,
        policy: int = EASY,
        is_exact: bool = True,
        depth: int | None = None,
        futures: int = FUTURES,
        seed: int = 0,
        calibrator: Calibrator | None = None,
    ) -> None:
        self._pools = np.array(cores, np.int64)
        self._free = self._pools.copy()
        self._policy, self._depth = policy, 2**31 if depth is None else depth
        self._is_exact = is_exact
        self._futures, self._seed = futures, seed
        self.calibrator = calibrator or Calibrator()
        #: Of those that would start now, most jobs: they would leave no room for the others'
        #: record.
        self._at_once = Calibrator()
        self.run_times = RunTimes()
        self._jobs = _Columns(len(self._pools))
        self._number: dict[Hashable, int] = {}
        self._live: list[int] = []
        self._chances: dict[Hashable, Floats] = {}
        self._asked: dict[Hashable, list[_Asked]] = {}
        self._longest = 0.0
        self._share_of_day = np.random.default_rng(seed).random((2, futures))

    def submit(self, job: QueuedRequest) -> None:
        """Add a job that waits from now on."""
        self._number[job.id] = self._add(job)
        self._live.append(self._number[job.id])

    def _add(self, job: QueuedRequest) -> int:
        rows = self.run_times.rows(
            limit_s=_limit(job.limit_s),
            user=job.user,
            cores=job.cores,
            account=job.account,
            partition=job.partition,
            name=job.name,
        )
        return self._jobs.add(job, rows, self.run_times.mean_share(job.user))

    def _learn(self, number: int, run_s: float) -> None:
        """Learn how long a job ran that has ended."""
        jobs = self._jobs
        request, limit = jobs.requests[number], float(jobs.limit[number])
        self.run_times.learn(jobs.rows[number], limit_s=limit, run_s=run_s)
        self.run_times.remember(request.user, run_s / limit)

    def remember(self, ended: Sequence[tuple[QueuedRequest, float, float]]) -> None:
        """Learn from jobs that have ended before anything else is told.

        Args:
            ended: jobs with when they started and for how many seconds they ran.
        """
        numbers = {}
        for place, (job, start, run) in sorted(enumerate(ended), key=lambda one: one[1][0].submit_s):
            number = numbers[place] = self._add(job)
            limit = self._jobs.limit[number]
            self._jobs.start[number], self._jobs.run[number] = max(start, 0.0), min(run, limit)
        for place, (_, _, run) in sorted(enumerate(ended), key=lambda one: one[1][1] + one[1][2]):
            self._learn(numbers[place], run)

    def start(self, job: Hashable, now: float) -> None:
        """Let a waiting job run on the first pools that it can use; learn from its forecasts.

        Args:
            job: its id.
            now: when it started.
        """
        number, jobs = self._number[job], self._jobs
        jobs.start[number] = max(now, 0.0)
        jobs.held[number] = self._taken(number)
        self._free -= jobs.held[number]
        self._longest = max(self._longest, now - jobs.submit[number])
        for asked in self._asked.pop(job, ()):
            calibrator = self._at_once if asked.is_now else self.calibrator
            calibrator.learn(asked.features, asked.quantiles, now - asked.asked_s)

    @property
    def running(self) -> list[Any]:
        """The ids of the jobs that run."""
        return [self._jobs.requests[number].id for number in self._live if self._jobs.start[number] >= 0]

    def hold(self, held: Iterable[Sequence[int]]) -> None:
        """Say which cores by pool each of the ``running`` jobs holds, in place of those assumed."""
        for job, cores in zip(self.running, held, strict=True):
            number = self._number[job]
            self._free += self._jobs.held[number] - np.array(cores, np.int64)
            self._jobs.held[number] = cores

    def end(self, job: Hashable, now: float) -> None:
        """Let a running job end; how long it ran is now known."""
        number, jobs = self._number.pop(job), self._jobs
        self._free += jobs.held[number]
        self._live.remove(number)
        self._chances.pop(job, None)
        run = now - jobs.start[number]
        if run > 0:
            jobs.run[number] = min(run, jobs.limit[number])
            self._learn(number, run)

    def forecast(
        self, now: float, ids: Sequence[Hashable], *, is_decided: bool = False
    ) -> list[StartForecast]:
        """Return when waiting jobs will start; the calibration learns from what comes of it.

        Args:
            now: in seconds, not before the last event.
            ids: of the jobs; every one waits.
            is_decided: the pass of now has been: no waiting job starts before something happens.
        """
        place = {number: at for at, number in enumerate(self._live)}
        targets = np.array([place[self._number[job]] for job in ids], np.int64)
        starts, plans = self._starts(now, targets, is_decided=is_decided)
        return [self._calibrated(now, job, starts[at], float(plans[at])) for at, job in enumerate(ids)]

    def _calibrated(self, now: float, job: Hashable, starts: Floats, plan_s: float) -> StartForecast:
        request = self._jobs.requests[self._number[job]]
        made = partial(StartForecast, id=job, asked_s=now, cores=request.cores, plan_s=plan_s)
        if not np.isfinite(starts).any():
            return made(never=self._why_never(request))
        starts = starts[np.isfinite(starts)]
        is_now = not starts.any()
        if is_now and self._is_exact:
            # It starts in this pass, in every future: nothing is uncertain.
            return made(quantiles=(0.0,) * len(LEVELS))
        calibrator = self._at_once if is_now else self.calibrator
        quantiles, features = calibrator.calibrate(
            starts, plan_s=plan_s, cores=request.cores, queue=request.queue
        )
        if is_now:
            # Times this short are not told apart: they are now.
            quantiles = np.where(quantiles <= SHORTEST_S + 1, 0.0, quantiles)
        self._asked.setdefault(job, []).append(_Asked(now, features, quantiles, is_now))
        return made(quantiles=tuple(quantiles.tolist()), features=None if is_now else features)

    def _why_never(self, request: QueuedRequest) -> str:
        usable = sum(int(cores) for pool, cores in enumerate(self._pools) if request.pools >> pool & 1)
        if request.cores > usable:
            return f"it asks for {plural(request.cores, 'core')}, and the nodes that it can use have {usable}"
        return "it waits for cores that no end of a running job frees"

    def _starts(self, now: float, targets: Ints, *, is_decided: bool) -> tuple[Floats, Floats]:
        """Return the starts of the live jobs at some places as things are now (``starts_of``)."""
        jobs, numbers = self._jobs, np.array(self._live, np.int64)
        waiting = numbers[jobs.start[numbers] < 0]
        waited = now - jobs.submit[waiting]
        past = self._past(now)
        shares = [self.run_times.mean_share(jobs.requests[number].user) for number in numbers.tolist()]
        submit = jobs.submit[numbers]
        chance = [self._chance(jobs.requests[number]) for number in numbers.tolist()]
        return starts_of(
            self.run_times.table,
            self._free,
            jobs.taken(
                numbers,
                run=np.zeros(len(numbers)),
                share=np.array(shares),
                chance=np.array(chance).reshape(len(numbers), self._futures),
            ),
            FutureRules(
                now=float(now),
                live=len(numbers),
                arrivals=_ARRIVALS if len(past.jobs.submit) else 0,
                depth=self._depth,
                policy=self._policy,
                begins=int(bool((submit > now).any())),
                longest=max(self._longest, float(waited.max(initial=0.0))),
                cores=float(self._pools.sum()),
                decided=int(is_decided),
            ),
            past,
            targets,
        )

    def _chance(self, job: QueuedRequest) -> Floats:
        """Return a job's random numbers by future: its own, or its user's for jobs of its limit."""
        found = self._chances.get(job.id)
        if found is None:
            own = self._random(("job", job.id))
            shared = self._random(("burst", job.user, job.limit_s))
            is_shared = self._random(("is shared", job.id)) < (0.0 if job.user is None else _ALIKE)
            found = self._chances[job.id] = np.where(is_shared, shared, own)
        return found

    def _random(self, key: object) -> Floats:
        """Return a number from 0 to 1 by future, evenly spread; the key determines their order."""
        draw = np.random.default_rng([self._seed, crc32(repr(key).encode())])
        return (draw.permutation(self._futures) + draw.random(self._futures)) / self._futures

    def _past(self, now: float) -> Past:
        """Return the jobs that came before now and the moments after which futures copy them.

        A moment is at the same hour of an earlier day, in half of the futures of the same day of
        the week.
        """
        jobs = self._jobs
        last = jobs.count
        first = max(0, last - _PAST)
        if last - first < _KNOWN or now <= jobs.came[first]:
            first = last
        known = slice(first, last)
        span = 0.0 if first == last else now - float(jobs.came[first])
        days, weeks = min(int(span / DAY_S), _DAYS), min(int(span / DAY_S / _WEEK), _DAYS // _WEEK)
        chosen, of_week = self._share_of_day
        back = 1.0 + np.floor(chosen * days)
        if weeks:
            back = np.where(of_week < 0.5, _WEEK * (1.0 + np.floor(chosen * weeks)), back)  # noqa: PLR2004
        moments = now - (back * DAY_S if days else (1.0 - chosen) * span)
        run = np.where(jobs.run[known] >= 0, jobs.run[known], 0.5 * jobs.limit[known])
        came = jobs.taken(known, run=run, share=jobs.share[known], chance=np.zeros((0, 0)))
        return Past(came._replace(submit=jobs.came[known]), moments)

    def _taken(self, number: int) -> Ints:
        """Return cores from the first pools that a job can use."""
        missing, pools = int(self._jobs.size[number]), int(self._jobs.pools[number])
        held = np.zeros_like(self._free)
        for pool, free in enumerate(self._free.tolist()):
            if pools >> pool & 1:
                held[pool] = min(missing, max(free, 0))
                missing -= held[pool]
        return held


class _Columns:
    """Every job that came, in order of submission, as columns that grow."""

    def __init__(self, pools: int) -> None:
        self.count = 0
        self.requests: list[QueuedRequest] = []
        jobs = 256
        self.size = np.zeros(jobs, np.int64)
        self.limit, self.submit, self.rank = np.zeros(jobs), np.zeros(jobs), np.zeros(jobs)
        #: The times of submission, each at least the one before: where times run backwards.
        self.came = np.zeros(jobs)
        self.start, self.run, self.share = np.full(jobs, -1.0), np.full(jobs, -1.0), np.ones(jobs)
        self.pools, self.held = np.zeros(jobs, np.int64), np.zeros((jobs, pools), np.int64)
        self.rows = np.full((jobs, len(FADING)), -1, np.int64)

    def add(self, job: QueuedRequest, rows: Ints, share: float) -> int:
        """Add a job with its rows of run times and its user's mean share; return its number."""
        number = self.count
        if number == len(self.size):
            for name, column in tuple(vars(self).items()):
                if isinstance(column, np.ndarray):
                    setattr(self, name, np.concatenate([column, np.full_like(column, -1)]))
        self.requests.append(job)
        self.submit[number] = job.submit_s
        self.came[number] = max(job.submit_s, self.came[number - 1]) if number else job.submit_s
        self.size[number], self.limit[number] = job.cores, _limit(job.limit_s)
        self.pools[number], self.rank[number] = job.pools, job.rank
        self.rows[number], self.share[number] = rows, share
        self.start[number] = self.run[number] = -1.0
        self.held[number] = 0
        self.count += 1
        return number

    def taken(self, which: Ints | slice, *, run: Floats, share: Floats, chance: FloatTable) -> FutureJobs:
        """Return some jobs as futures know them: run times, shares of limits, random numbers."""
        names = ("size", "limit", "submit", "start", "pools", "rank", "held", "rows")
        columns = {name: getattr(self, name)[which] for name in names}
        length, drawn = self.limit[which] * share, np.zeros((0, 0))
        return FutureJobs(**columns, run=run, length=length, chance=chance, drawn=drawn)


def _limit(limit_s: float | None) -> float:
    return _NO_LIMIT_S if limit_s is None else max(float(limit_s), _SHORTEST_LIMIT_S)
