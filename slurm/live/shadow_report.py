"""What a shadow's log says: Slurm's starts, and the passes in which the auction would make them.

An *offer* is the first pass in which the auction would have started a waiting job. The queue
followed Slurm's starts all along, so an offer is no prediction: nodes are offered again until Slurm
gives them to a job, and a job that Slurm started first was never ours to start.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from ...cluster.tabular import Tabular, rows_of
from ...cluster.text import plural
from ...simulation.events import DAY_S
from ...simulation.report import bounded_slowdown
from ...simulation.waits import STATISTICS, mean, percentile, size_class, size_rank
from ..answers.running_jobs import SlurmStart
from .shadow_log import FORGOTTEN, ShadowPass, Waiting

FORMAT = "aucsched-shadow-report/1"

#: What such a log can say and what it cannot; stands on every report.
OFFERED = (
    "An offer is the first pass that would have started a waiting job. Each pass offers the same free nodes "
    "until Slurm fills them. So each job alone could have had its offered wait; all together could not."
)
LATER = (
    "If Slurm started a job that no pass had offered, the auction would have started it later. The log "
    "cannot tell how much later. Such jobs count as later, and the means of offered waits leave them out."
)
USE = (
    "Cores in use, with offers, adds a pass's offers to that pass only. To learn what a machine run by the "
    "auction would reach, simulate the same jobs."
)
CAVEATS = (OFFERED, LATER, USE)


@dataclass(slots=True, kw_only=True)
class ShadowJob:
    """A job as the passes saw it. Times are seconds since the epoch, None for what did not happen.

    Attributes:
        offered: the first pass that would have started it.
        pace_s: from that pass to the next.
        planned: Slurm's first estimate of its start.
        start, end: by Slurm; the end is None while it runs, or if it is not known.
        ended_by: its end, or when Slurm listed it no more.
        level, offered_level: of the lowest common switch of Slurm's nodes, of the first offer's.
        forecast: P10, P50 and P90 of its start, as its first pass said.
        was_waiting: some pass saw it wait, so that it could be offered.
        is_gone: it waited and did not any more, without having started.
        request: as a workload file has it; None: it came and started between two passes.
        free_at: since when nothing held it.
        begun: its first start.
    """

    job: str
    user: str
    account: str
    cores: int
    submit: float
    limit_s: int | None
    nodes: int = 1
    offered: float | None = None
    pace_s: float = 0.0
    planned: float | None = None
    start: float | None = None
    end: float | None = None
    ended_by: float | None = None
    level: int | None = None
    offered_level: int | None = None
    forecast: tuple[float, float, float] | None = None
    was_waiting: bool = False
    is_gone: bool = False
    request: Mapping[str, Any] | None = None
    free_at: float | None = None
    begun: SlurmStart | None = None

    @classmethod
    def first_seen(cls, job: Waiting | SlurmStart) -> Self:
        """Return a job of which only this is known yet."""
        known = ("job", "user", "account", "cores", "submit", "limit_s")
        return cls(**{name: getattr(job, name) for name in known})

    @property
    def verdict(self) -> str:
        """``earlier``, ``same`` (within a pass), ``later``, ``waiting``, or ``not compared``."""
        if self.start is None:
            if self.is_gone:
                return "not compared"
            return "waiting" if self.offered is None else "earlier"
        if not self.was_waiting:
            return "not compared"
        if self.offered is None:
            return "later"
        return "same" if self.start - self.offered <= self.pace_s else "earlier"

    @property
    def wait_s(self) -> float | None:
        """How long it waited for Slurm; None while it does."""
        return None if self.start is None else self.start - self.submit

    @property
    def offered_wait_s(self) -> float | None:
        """How long it would have waited for its first offer."""
        return None if self.offered is None else max(self.offered - self.submit, 0.0)

    @property
    def run_s(self) -> float | None:
        """How long it ran; its time limit where the end is not known."""
        if self.start is not None and self.end is not None:
            return self.end - self.start
        return self.limit_s


@dataclass(frozen=True, kw_only=True)
class ShadowReport(Tabular):
    """A log's jobs and passes, and the figures over them.

    Attributes:
        entries: the passes, in the order of time.
        starved_s: a wait as long as this is starvation.
        torn: lines of the log that a kill cut short, or a crash of the host.
    """

    entries: Sequence[ShadowPass]
    starved_s: float = DAY_S
    torn: int = 0

    @cached_property
    def jobs(self) -> tuple[ShadowJob, ...]:
        """All jobs that waited, or that Slurm started, while the shadow looked."""
        return jobs_of(self.entries)

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The jobs by column."""
        names = ("job", "user", "account", "cores", "nodes", "submit", "offered", "planned", "start", "end")
        more = ("wait_s", "offered_wait_s", "level", "offered_level", "verdict")
        found = {name: [getattr(job, name) for job in self.jobs] for name in (*names, *more)}
        if any(job.forecast for job in self.jobs):
            for place, name in enumerate(("p10", "p50", "p90")):
                found[name] = [job.forecast[place] if job.forecast else None for job in self.jobs]
        return found

    def title(self) -> str:
        """Return the report in one line."""
        return f"Shadow of {plural(len(self.entries), 'pass')} over {plural(len(self.jobs), 'job')}"

    @cached_property
    def figures(self) -> list[dict[str, Any]]:
        """Figures side by side: ``figure``, ``slurm``, ``auction``, ``jobs`` (over how many)."""
        # Slurm started them, and some pass had offered them before.
        both = [job for job in self.jobs if job.start is not None and job.offered is not None]
        waits = [job.wait_s for job in both], [job.offered_wait_s for job in both]
        slow = (
            [_slowdown(job.wait_s, job) for job in both],
            [_slowdown(job.offered_wait_s, job) for job in both],
        )
        levels = [
            job for job in both if job.level is not None and job.offered_level is not None and job.nodes > 1
        ]
        planned = [(job.start, job.planned) for job in self.jobs]
        misses = [abs(at - plan) for at, plan in planned if at is not None and plan is not None]
        rows = [
            (
                "jobs started / offered",
                sum(job.start is not None for job in self.jobs),
                sum(job.offered is not None for job in self.jobs),
                None,
            ),
            *((f"{name} wait (s)", of(waits[0]), of(waits[1]), len(both)) for name, of in STATISTICS.items()),
            *(
                (f"{name} bounded slowdown", of(slow[0]), of(slow[1]), len(both))
                for name, of in list(STATISTICS.items())[:2]
            ),
            (
                "mean switch level, jobs of several nodes",
                mean([job.level for job in levels]),
                mean([job.offered_level for job in levels]),
                len(levels),
            ),
            ("cores in use (share), with offers", *self._use(), None),
            ("median miss of Slurm's first estimate (s)", percentile(50)(misses), None, len(misses)),
            *self._forecasts(),
            (f"jobs that waited {self.starved_s / 3600:g} h or more", *self._starved(), None),
        ]
        return [dict(zip(("figure", "slurm", "auction", "jobs"), row, strict=True)) for row in rows]

    def _use(self) -> tuple[float | None, float | None]:
        """Return the time-weighted mean shares of cores in use, without and with passes' offers."""
        spans = np.diff([entry.time for entry in self.entries], append=self.entries[-1].time)
        weights = spans if spans.sum() > 0 else np.ones(len(self.entries))
        cores = np.array([max(entry.cores, 1) for entry in self.entries], np.float64)
        used = np.array([entry.used for entry in self.entries], np.float64)
        offers = np.array([sum(offer.cores for offer in entry.would) for entry in self.entries], np.float64)
        return float(np.average(used / cores, weights=weights)), float(
            np.average(np.minimum(used + offers, cores) / cores, weights=weights)
        )

    def _forecasts(self) -> list[tuple[str, float | None, float | None, int | None]]:
        """Return how far our forecasts and Slurm's plans were off, over the jobs that started."""
        told = [(job, job.forecast, job.start) for job in self.jobs if job.forecast and job.start]
        if not told:
            return []
        both = [(job.start, job.planned, said[1]) for job, said, _ in told if job.planned is not None]
        misses = [abs(start - said[1]) for _, said, start in told]
        held = [said[0] <= start <= said[2] for _, said, start in told]
        return [
            (
                "median miss of Slurm's first estimate, of P50 (s)",
                percentile(50)([abs((start or 0.0) - plan) for start, plan, _ in both]),
                percentile(50)([abs((start or 0.0) - said) for start, _, said in both]),
                len(both),
            ),
            ("median miss of P50 (s)", None, percentile(50)(misses), len(told)),
            ("starts from P10 to P90 (share)", None, sum(held) / len(held), len(held)),
        ]

    def _starved(self) -> tuple[int, int]:
        """Return how many jobs waited so long for Slurm, and of them, so long for an offer."""
        last = self.entries[-1].time
        long = [
            job for job in self.jobs if (job.start or last) - job.submit >= self.starved_s and job.was_waiting
        ]
        unoffered = [job for job in long if job.offered is None or job.offered - job.submit >= self.starved_s]
        return len(long), len(unoffered)

    @cached_property
    def groups(self) -> dict[str, list[dict[str, Any]]]:
        """Who gains and who loses: rows by ``user``, ``account`` and ``size``."""
        found = {
            "user": _grouped(self.jobs, lambda job: job.user or "none"),
            "account": _grouped(self.jobs, lambda job: job.account or "none"),
            "size": _grouped(self.jobs, lambda job: size_class(job.cores)),
        }
        found["size"].sort(key=lambda row: size_rank(row["name"]))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain dicts, lists, numbers and text."""
        first, last = self.entries[0], self.entries[-1]
        return {
            "format": FORMAT,
            "from": first.time,
            "to": last.time,
            "passes": len(self.entries),
            "lines_cut_short": self.torn,
            "options": dict(last.options),
            "unread": list(dict.fromkeys(text for entry in self.entries for text in entry.unread)),
            "caveats": list(CAVEATS),
            "figures": self.figures,
            "verdicts": _verdicts(self.jobs),
            "by": self.groups,
            "jobs": rows_of(self.columns),
        }


def jobs_of(entries: Sequence[ShadowPass]) -> tuple[ShadowJob, ...]:
    """Return the jobs that the passes saw wait, or come and start, in the order they did."""
    jobs: dict[str, ShadowJob] = {}
    for entry in entries:
        _read_queue(jobs, entry)
        for start in entry.started:
            # What ran when the shadow came, nobody could have offered.
            if start.job not in jobs and start.submit >= entries[0].time:
                jobs[start.job] = ShadowJob.first_seen(start)
                jobs[start.job].free_at = start.submit
            if (job := jobs.get(start.job)) is not None and job.begun is None:
                job.begun, job.start, job.level, job.cores = start, start.start, start.level, start.cores
        for end in entry.ended:
            if (job := jobs.get(end.job)) is not None and job.start == end.start:
                job.ended_by = end.end
                job.end = job.end if end.state == FORGOTTEN else end.end
    gone = {name for entry in entries for name in entry.gone}
    for name in gone & jobs.keys():
        jobs[name].is_gone = True
    return tuple(jobs.values())


def _read_queue(jobs: dict[str, ShadowJob], entry: ShadowPass) -> None:
    """Keep what a pass says of waiting jobs: each job's first offer, plan and forecast."""
    for seen in entry.seen:
        is_new = seen.job not in jobs
        job = jobs.setdefault(seen.job, ShadowJob.first_seen(seen))
        job.was_waiting, job.nodes = True, seen.nodes
        job.request = seen.request if is_new else job.request
        if job.free_at is None and not seen.held:
            # A job held at first is free from the pass on that sees it so.
            job.free_at = seen.submit if is_new else entry.time
    for offer in entry.would:
        if (known := jobs.get(offer.job)) is not None and known.offered is None:
            known.offered, known.offered_level = entry.time, offer.level
            known.pace_s = entry.interval_s
    for name, at in entry.planned.items():
        if (known := jobs.get(name)) is not None and known.planned is None:
            known.planned = at or None
    for name, said in entry.forecast.items():
        if (known := jobs.get(name)) is not None and known.forecast is None:
            known.forecast = said


def _slowdown(wait_s: float | None, job: ShadowJob) -> float | None:
    if wait_s is None or job.run_s is None:
        return None
    return float(bounded_slowdown(np.array([wait_s]), np.array([job.run_s]))[0])


def _verdicts(jobs: Iterable[ShadowJob]) -> dict[str, int]:
    found = dict.fromkeys(("earlier", "same", "later", "waiting", "not compared"), 0)
    for job in jobs:
        found[job.verdict] += 1
    return found


def _grouped(jobs: Iterable[ShadowJob], of: Callable[[ShadowJob], str]) -> list[dict[str, Any]]:
    groups: dict[str, list[ShadowJob]] = {}
    for job in jobs:
        groups.setdefault(of(job), []).append(job)
    rows = []
    for name, members in sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        both = [job for job in members if job.start is not None and job.offered is not None]
        slurm, auction = mean([job.wait_s for job in both]), mean([job.offered_wait_s for job in both])
        rows.append(
            {
                "name": name,
                "jobs": len(members),
                **_verdicts(members),
                "mean wait (s)": slurm,
                "mean offered wait (s)": auction,
                "gain (s)": None if slurm is None or auction is None else slurm - auction,
            }
        )
    return rows
