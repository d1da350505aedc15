"""What a shadow's log says: Slurm's starts beside the passes in which the auction would have made them.

An *offer* is the first pass in which the auction would have started a job that waited. The queue followed
Slurm's starts all along, so an offer is not a prediction: nodes are offered again and again until Slurm gives
them to somebody, and a job that Slurm started first was never ours to start.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ...cluster.tabular import Tabular, rows_of
from ...simulation.waits import STATISTICS, bounded_slowdown, mean, percentile, size_class, size_rank
from ..answers.running_jobs import SlurmStart
from .shadow_log import FORGOTTEN, ShadowPass

FORMAT = "aucsched-shadow-report/1"
DAY_S = 86400.0

#: What such a log can say and what it cannot; stands on every report.
OFFERED = (
    "An offer is the first pass that would have started a waiting job. The queue followed Slurm's starts, so "
    "the same free nodes are offered again until Slurm fills them: offered waits are what each job alone "
    "could have had, and not all of them together."
)
LATER = (
    "Where Slurm started a job that no pass had offered, the auction would have started it later; how much "
    "later the log cannot tell. Such jobs count as later and stand in no mean of offered waits."
)
USE = (
    "Cores in use with offers counts the offers of one pass on top of what ran then; it is not what a "
    "machine run by the auction would reach. That takes a simulation of the same jobs, or aucsched slurm run."
)
CAVEATS = (OFFERED, LATER, USE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowJob:
    """A job as the passes saw it. Times are seconds since the epoch, None for what did not happen.

    Attributes:
        offered: the first pass that would have started it.
        planned: Slurm's first estimate of its start.
        start, end: by Slurm; the end is None while it runs, or where nobody knows when it was.
        level, offered_level: of the lowest common switch of Slurm's nodes, and of those of the first offer.
        forecast: P10, P50 and P90 of its start, as its first pass said.
        was_waiting: some pass saw it wait, so that it could be offered.
        verdict: ``earlier``, ``same`` (within a pass), ``later``, ``waiting``, or ``not compared``.
    """

    job: str
    user: str
    account: str
    cores: int
    nodes: int
    submit: float
    limit_s: int | None
    offered: float | None
    planned: float | None
    start: float | None
    end: float | None
    level: int | None
    offered_level: int | None
    forecast: tuple[float, float, float] | None
    was_waiting: bool
    verdict: str

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
        jobs: all jobs that waited, or that Slurm started, while the shadow looked.
        entries: the passes.
        starved_s: a wait as long as this is starvation.
        torn: lines of the log that a kill cut short.
    """

    jobs: tuple[ShadowJob, ...]
    entries: tuple[ShadowPass, ...]
    starved_s: float
    torn: int

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
        return f"Shadow of {len(self.entries)} passes over {len(self.jobs)} jobs"

    @cached_property
    def both(self) -> tuple[ShadowJob, ...]:
        """The jobs that Slurm started and some pass had offered before."""
        return tuple(job for job in self.jobs if job.start is not None and job.offered is not None)

    @cached_property
    def figures(self) -> list[dict[str, Any]]:
        """Figures side by side: ``figure``, ``slurm``, ``auction``, ``jobs`` (over how many)."""
        both = self.both
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
                self._offered(),
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

    def _offered(self) -> int:
        return sum(job.offered is not None for job in self.jobs)

    def _use(self) -> tuple[float | None, float | None]:
        """Return the mean shares of cores in use, weighted by time, without and with the pass's offers."""
        spans = np.diff([entry.time for entry in self.entries], append=self.entries[-1].time)
        weights = spans if spans.sum() > 0 else np.ones(len(self.entries))
        cores = np.array([max(entry.cores, 1) for entry in self.entries], np.float64)
        used = np.array([entry.used for entry in self.entries], np.float64)
        offers = np.array([sum(offer.cores for offer in entry.would) for entry in self.entries], np.float64)
        return float(np.average(used / cores, weights=weights)), float(
            np.average(np.minimum(used + offers, cores) / cores, weights=weights)
        )

    def _forecasts(self) -> list[tuple[str, float | None, float | None, int | None]]:
        """Return how far our forecasts and Slurm's own plans were off, over the jobs that started."""
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
        """Return how many jobs waited so long for Slurm, and how many of them so long for an offer."""
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


def report_on(entries: Sequence[ShadowPass], *, starved_s: float = DAY_S, torn: int = 0) -> ShadowReport:
    """Return what the passes of a log say, in the order of time.

    Args:
        entries: at least one.
        starved_s: a wait as long as this is starvation.
        torn: lines that were left out.
    """
    drafts = _Drafts(begin=entries[0].time)
    for entry in entries:
        drafts.read(entry)
    gone = {job for entry in entries for job in entry.gone}
    jobs = tuple(
        ShadowJob(**draft, verdict=_verdict(draft, drafts.pace.get(name, 0.0), is_gone=name in gone))
        for name, draft in drafts.jobs.items()
    )
    return ShadowReport(jobs=jobs, entries=tuple(entries), starved_s=starved_s, torn=torn)


@dataclass(slots=True)
class _Drafts:
    """The jobs as far as the passes that were read know them.

    Attributes:
        begin: of the log.
        jobs: the members of each.
        pace: seconds to the next pass where a job was first offered.
    """

    begin: float
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    pace: dict[str, float] = field(default_factory=dict)

    def read(self, entry: ShadowPass) -> None:
        """Read a pass."""
        for job in entry.seen:
            self.jobs.setdefault(job.job, _report_text(job)).update(was_waiting=True, nodes=job.nodes)
        for offer in entry.would:
            if self._lacks(offer.job, "offered"):
                self.jobs[offer.job].update(offered=entry.time, offered_level=offer.level)
                self.pace[offer.job] = entry.interval_s
        for name, at in entry.planned.items():
            self._first(name, "planned", at or None)
        for name, said in entry.forecast.items():
            self._first(name, "forecast", said)
        for start in entry.started:
            self._start(start)
        for end in entry.ended:
            if self.jobs.get(end.job, {}).get("start") == end.start and end.state != FORGOTTEN:
                self.jobs[end.job]["end"] = end.end

    def _start(self, start: SlurmStart) -> None:
        # What ran when the shadow came, nobody could have offered.
        if start.job not in self.jobs and start.submit < self.begin:
            return
        draft = self.jobs.setdefault(start.job, _report_text(start))
        if draft["start"] is None:
            draft.update(start=start.start, level=start.level, cores=start.cores)

    def _first(self, job: str, member: str, value: object) -> None:
        """Keep what was first said of a job."""
        if self._lacks(job, member):
            self.jobs[job][member] = value

    def _lacks(self, job: str, member: str) -> bool:
        return job in self.jobs and self.jobs[job][member] is None


def _report_text(job: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(("offered", "planned", "start", "end", "level", "offered_level", "forecast"))
    known = {name: getattr(job, name) for name in ("job", "user", "account", "cores", "submit", "limit_s")}
    return {**known, **nothing, "nodes": 1, "was_waiting": False}


def _verdict(draft: dict[str, Any], interval_s: float, *, is_gone: bool) -> str:
    start, offered = draft["start"], draft["offered"]
    if start is None:
        if is_gone:
            return "not compared"
        return "waiting" if offered is None else "earlier"
    if not draft["was_waiting"]:
        return "not compared"
    if offered is None:
        return "later"
    return "same" if start - offered <= interval_s else "earlier"


def _slowdown(wait_s: float | None, job: ShadowJob) -> float | None:
    if wait_s is None or job.run_s is None:
        return None
    return bounded_slowdown(wait_s, job.run_s)


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
