"""Forecasts beside a live Slurm: each job's on its first pass, against the start that came."""

from collections import deque
from collections.abc import Iterable
from statistics import median
from typing import TypeAlias

import numpy as np

from ...cluster.jobs import may_start
from ...cluster.snapshot import Snapshot
from ...formats.hostlist import expand
from ...simulation.forecast.calibration import Calibrator
from ...simulation.forecast.forecaster import StartForecast
from ...simulation.forecast.snapshot_queue import SnapshotForecaster
from ...simulation.workloads.imported import LoggedJob
from ..answers.running_jobs import End, SlurmStart
from .loop_metrics import Metrics

#: Futures of a forecast beside a live Slurm, and ended jobs that run times are learnt from.
_FUTURES, _ENDED = 100, 5_000
#: Outcomes that the figures are over.
_OUTCOMES = 500
#: P10, P50 and P90 by job.
Quantiles: TypeAlias = dict[str, tuple[float, float, float]]


class LiveForecasts:
    """The forecasts of one process; run times and calibration are learnt from its own passes."""

    def __init__(self) -> None:
        self._calibrator = Calibrator()
        self._ended: dict[tuple[str, float], LoggedJob] = {}
        self._asked: dict[str, StartForecast] = {}
        self._seen: set[str] = set()
        self._held: deque[bool] = deque(maxlen=_OUTCOMES)
        self._misses: deque[float] = deque(maxlen=_OUTCOMES)

    def look(self, snapshot: Snapshot, started: Iterable[tuple[SlurmStart, End | None]]) -> Quantiles:
        """Return P10, P50 and P90 of new jobs in seconds since the epoch."""
        now = snapshot.time or 0.0
        running = []
        for job, end in started:
            known = LoggedJob(
                id=job.job,
                submit_s=job.submit,
                start_s=job.start,
                run_s=(now if end is None else end.end) - job.start,
                limit_s=job.limit_s,
                cores=job.cores,
                nodes=len(expand(job.nodes, f"job {job.job} nodes")),
                priority=job.priority,
                user=job.user,
                account=job.account,
                partition=job.partition,
            )
            self._learn(job)
            if end is None:
                running.append(known)
            else:
                self._ended[job.job, job.start] = known
        # Of jobs that were cancelled nothing comes.
        there = {job.id for job in snapshot.jobs}
        self._asked = {job: asked for job, asked in self._asked.items() if job in there}
        for key in list(self._ended)[: max(len(self._ended) - _ENDED, 0)]:
            del self._ended[key]
        new = [job.id for job in snapshot.jobs if may_start(job) and job.id not in self._seen]
        self._seen = {job.id for job in snapshot.jobs if may_start(job)}
        if not new:
            return {}
        past = [*self._ended.values(), *running]
        forecaster = SnapshotForecaster(
            snapshot, past, decides=False, futures=_FUTURES, calibrator=self._calibrator
        )
        made = [one for one in forecaster.forecasts(new) if one.quantiles]
        self._asked.update({str(one.id): one for one in made})
        return {
            str(one.id): (
                round(now + one.p10_s, 1),
                round(now + one.p50_s, 1),
                round(now + one.p90_s, 1),
            )
            for one in made
        }

    def tell(self, figures: Metrics) -> None:
        """Keep the figures of the forecasts whose jobs have started."""
        figures.set("aucsched_forecasts", len(self._held))
        if self._held:
            figures.set("aucsched_forecast_coverage_ratio", sum(self._held) / len(self._held))
            figures.set("aucsched_forecast_miss_seconds", median(self._misses))

    def _learn(self, job: SlurmStart) -> None:
        """Learn what came of a forecast; a start before it was asked is of an earlier run."""
        asked = self._asked.get(job.job)
        if asked is None or job.start < asked.asked_s - 1:
            return
        del self._asked[job.job]
        came = max(job.start - asked.asked_s, 0.0)
        self._held.append(asked.p10_s <= came <= asked.p90_s)
        self._misses.append(abs(came - asked.p50_s))
        if asked.features is not None:
            self._calibrator.learn(asked.features, np.array(asked.quantiles), came)
