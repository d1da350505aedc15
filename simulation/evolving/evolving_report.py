"""What came of a simulation of evolving jobs: table II, waits by type, a row for each job."""

from dataclasses import dataclass, field
from math import fsum, inf
from typing import Any

import numpy as np

from ...cluster.text import plural
from ...negotiation.evolving.fairness import delays_document
from ...negotiation.evolving.iteration import CountGrant, CountRequest, Held, RequestOutcome
from ..events import HOUR_S
from ..report import FORMAT, RunReport, bounded_slowdown, count_lines, mean_of, ratio, shown
from ..workloads.evolving import EvolvingJob, EvolvingWorkload
from .evolving_options import EvolvingOptions


@dataclass(slots=True, kw_only=True)
class Playing:
    """A job that has started.

    Attributes:
        job: as the workload has it.
        start_s, end_s: when it runs; its cores are its own in between.
        walltime_end_s: until when a scheduler must think it runs.
        held: by node.
        static_cores: at its start.
        is_shrunk: gave cores to a request.
        grown_s: when it was granted its cores, None: never.
        asked: how often.
        core_s: core-seconds up to ``since_s``.
        events: of its end and its requests, that are to come.
    """

    job: EvolvingJob
    start_s: float
    end_s: float
    walltime_end_s: float
    held: Held
    static_cores: int
    since_s: float
    is_shrunk: bool = False
    grown_s: float | None = None
    asked: int = 0
    core_s: float = 0.0
    events: list[int] = field(default_factory=list)

    @property
    def cores(self) -> int:
        """Cores that it holds."""
        return sum(self.held.values())


@dataclass(kw_only=True, repr=False)
class EvolvingRun(RunReport):
    """A simulation: every job's record, and every grant with its time.

    Attributes:
        options: how the workload is played; ``seed`` is what it was drawn by.
        lost_core_s: of jobs that were preempted, which begin anew.
        seconds: wall time.
    """

    workload: EvolvingWorkload
    options: EvolvingOptions
    seed: int = 0
    played: dict[str, Playing] = field(default_factory=dict)
    grants: list[tuple[float, RequestOutcome[CountRequest, CountGrant]]] = field(default_factory=list)
    requests: int = 0
    passes: int = 0
    preemptions: int = 0
    shrinks: int = 0
    lost_core_s: float = 0.0
    seconds: float = 0.0

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A row for each job in order of submission."""
        played = [self.played[job.id] for job in self.workload.jobs]
        return {
            "id": [one.job.id for one in played],
            "type": [one.job.kind for one in played],
            "user": [one.job.user for one in played],
            "submit_s": [one.job.arrival_s for one in played],
            "start_s": [one.start_s for one in played],
            "end_s": [one.end_s for one in played],
            "cores": [one.static_cores for one in played],
            "cores_at_end": [one.cores for one in played],
            "wait_s": [round(_wait(one), 6) for one in played],
            "asked": [one.asked for one in played],
            "granted_s": [one.grown_s for one in played],
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain values."""
        return {
            "format": FORMAT,
            "policy": "evolving",
            "workload": self.workload.name,
            "seed": self.seed,
            **self.options.settings(),
            "processors": self.workload.cores,
            "jobs": len(self.workload.jobs),
            "passes": self.passes,
            "seconds": round(self.seconds, 6),
            "metrics": evolving_metrics(self),
            "dynamic": dynamic_figures(self),
            "wait_by_type": waits_by_type(self),
            "grants": [
                {
                    "time_s": time_s,
                    "job": grant.request.job,
                    "cores": grant.request.cores,
                    "delays": delays_document(grant.delays, grant.request.owner),
                }
                for time_s, grant in self.grants
            ],
        }

    def to_text(self, name: str) -> str:
        """Return the outcome as a table for people."""
        settings = {"seed": self.seed, **self.options.settings()}
        given = ((key, value) for key, value in settings.items() if not (value is None or value is False))
        text = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in given)
        machine = f"{plural(len(self.workload.jobs), 'job')} on {plural(self.workload.cores, 'core')}"
        lines = [f"{name}: evolving, {machine}", text, ""]
        values: dict[str, Any] = {**evolving_metrics(self), **dynamic_figures(self)}
        lines += count_lines(values, width=26)
        lines += ["", f"{'type':<12}{'jobs':>8}{'mean wait (s)':>18}{'longest (s)':>16}"]
        for kind, waits in waits_by_type(self).items():
            mean, longest = shown(waits["wait_mean_s"]), shown(waits["wait_max_s"])
            lines.append(f"{kind:<12}{waits['jobs']:>8}{mean:>18}{longest:>16}")
        return "\n".join(lines) + "\n"


def evolving_metrics(run: EvolvingRun) -> dict[str, float | None]:
    """Return every metric by name; times in seconds.

    ``makespan_s``: first submission to last end; ``theoretical_runtime_s``: static core-seconds
    over all cores; ``cpu_utilization``: core-seconds held over cores × makespan, which counts cores
    that are held for nothing; slowdowns divide by the run time that the job had.
    """
    jobs, cores = list(run.played.values()), run.workload.cores
    first = min((played.job.arrival_s for played in jobs), default=0.0)
    makespan = max((played.end_s for played in jobs), default=0.0) - first
    waits = [_wait(played) for played in jobs]
    responses = [played.end_s - played.job.arrival_s for played in jobs]
    runs = [played.end_s - played.start_s for played in jobs]
    slowdowns = bounded_slowdown(np.array(waits), np.array(runs)).tolist()
    held = fsum(played.core_s for played in jobs) + run.lost_core_s
    static = fsum(played.job.cores * played.job.static_s for played in jobs)
    return {
        "makespan_s": makespan if jobs else None,
        "theoretical_runtime_s": static / cores,
        "cpu_utilization": ratio(held, cores * makespan),
        "wait_mean_s": mean_of(waits),
        "wait_max_s": max(waits, default=None),
        "response_mean_s": mean_of(responses),
        "bounded_slowdown_mean": mean_of(slowdowns),
        "throughput_per_h": ratio(len(jobs) * HOUR_S, makespan),
    }


def _wait(played: Playing) -> float:
    return played.start_s - played.job.arrival_s


def dynamic_figures(run: EvolvingRun) -> dict[str, Any]:
    """Return what became of requests: jobs that asked, those satisfied, requests in all."""
    grown = [one.job.more_cores for one in run.played.values() if one.grown_s is not None]
    return {
        "asked": sum(played.asked > 0 for played in run.played.values()),
        "satisfied": len(grown),
        "requests": run.requests,
        "granted_cores": sum(grown),
        "predicted_delay_s": fsum(
            delay.seconds for _, grant in run.grants for delay in grant.delays if delay.seconds < inf
        ),
        "preemptions": run.preemptions,
        "shrinks": run.shrinks,
        "lost_core_s": run.lost_core_s,
    }


def waits_by_type(run: EvolvingRun) -> dict[str, dict[str, float | int | None]]:
    """Return how many jobs of each type there are, and their mean and longest waits."""
    waits: dict[str, list[float]] = {}
    for played in run.played.values():
        waits.setdefault(played.job.kind, []).append(_wait(played))
    return {
        kind: {"jobs": len(values), "wait_mean_s": mean_of(values), "wait_max_s": max(values)}
        for kind, values in sorted(waits.items())
    }
