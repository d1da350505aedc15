"""One simulation of evolving jobs, and what came of it: table II, waits by type, a row for each job."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import fsum, inf
from typing import Any

from ...cluster.text import plural
from ...negotiation.evolving.fairness import delays_document
from ..report import FORMAT, RunReport, count_lines, shown
from ..result import mean_of
from ..workloads.evolving import EvolvingWorkload, dynamic_esp, quadflow
from .evolving_loop import EvolvingRun, Playing, play_evolving
from .evolving_options import EvolvingOptions
from .providers import Iteration, Merged, Preallocated, RequestAuction, Reserved

_HOUR_S = 3600.0
#: Significant digits of the figures of a job.
_DIGITS = 10


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
    held = fsum(played.core_s for played in jobs) + run.lost_core_s
    static = fsum(played.job.cores * played.job.static_s for played in jobs)
    return {
        "makespan_s": makespan if jobs else None,
        "theoretical_runtime_s": static / cores,
        "cpu_utilization": held / (cores * makespan) if makespan else None,
        "wait_mean_s": mean_of(waits),
        "wait_max_s": max(waits, default=None),
        "response_mean_s": mean_of(responses),
        "bounded_slowdown_mean": mean_of(
            [
                max(1.0, response / max(played.end_s - played.start_s, 10.0))
                for played, response in zip(jobs, responses, strict=True)
            ]
        ),
        "throughput_per_h": len(jobs) * _HOUR_S / makespan if makespan else None,
    }


def _wait(played: Playing) -> float:
    return played.start_s - played.job.arrival_s


def dynamic_figures(run: EvolvingRun) -> dict[str, Any]:
    """Return what became of requests: jobs that asked, those that were satisfied, requests in all."""
    return {
        "asked": sum(played.asked > 0 for played in run.played.values()),
        "satisfied": len(run.grants),
        "requests": run.requests,
        "granted_cores": sum(grant.request.cores for _, grant in run.grants),
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


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


@dataclass(frozen=True, kw_only=True, repr=False)
class Played(RunReport):
    """A finished run, its options and the seed of its workload, and its wall time."""

    run: EvolvingRun
    options: EvolvingOptions
    seconds: float
    seed: int = 0

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A row for each job in order of submission."""
        played = [self.run.played[job.id] for job in self.run.workload.jobs]
        figures: dict[str, list[float]] = {
            "submit_s": [one.job.arrival_s for one in played],
            "start_s": [one.start_s for one in played],
            "end_s": [one.end_s for one in played],
            "cores": [one.static_cores for one in played],
            "cores_at_end": [one.cores for one in played],
            "wait_s": list(map(_wait, played)),
        }
        return {
            "id": [one.job.id for one in played],
            "type": [one.job.kind for one in played],
            "user": [one.job.user for one in played],
            **{name: list(map(_short, values)) for name, values in figures.items()},
            "asked": [one.asked for one in played],
            "granted_s": [None if one.grown_s is None else _short(one.grown_s) for one in played],
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain values."""
        run = self.run
        return {
            "format": FORMAT,
            "policy": "evolving",
            "workload": run.workload.name,
            "seed": self.seed,
            **self.options.settings(),
            "processors": run.workload.cores,
            "jobs": len(run.workload.jobs),
            "passes": run.passes,
            "seconds": round(self.seconds, 6),
            "metrics": evolving_metrics(run),
            "dynamic": dynamic_figures(run),
            "wait_by_type": waits_by_type(run),
            "grants": [
                {
                    "time_s": time_s,
                    "job": grant.request.job,
                    "cores": grant.request.cores,
                    "delays": delays_document(grant.delays, grant.request.owner),
                }
                for time_s, grant in run.grants
            ],
        }

    def to_text(self, name: str) -> str:
        """Return the outcome as a table for people."""
        run, settings = self.run, {"seed": self.seed, **self.options.settings()}
        text = ", ".join(f"{key} {value}" for key, value in settings.items() if value is not None)
        machine = f"{plural(len(run.workload.jobs), 'job')} on {plural(run.workload.cores, 'core')}"
        lines = [f"{name}: evolving, {text}, {machine}", ""]
        values: dict[str, Any] = {**evolving_metrics(run), **dynamic_figures(run)}
        lines += count_lines(values, width=26)
        lines += ["", f"{'type':<12}{'jobs':>8}{'mean wait (s)':>18}{'longest (s)':>16}"]
        for kind, waits in waits_by_type(run).items():
            mean, longest = shown(waits["wait_mean_s"]), shown(waits["wait_max_s"])
            lines.append(f"{kind:<12}{waits['jobs']:>8}{mean:>18}{longest:>16}")
        return "\n".join(lines) + "\n"


#: Workloads by name, of a seed.
WORKLOADS: dict[str, Callable[[int], EvolvingWorkload]] = {"dynamic-esp": dynamic_esp, "quadflow": quadflow}
#: Who serves requests, by name.
PROVIDERS: dict[str, type[Iteration]] = {
    "iteration": Iteration,
    "auction": RequestAuction,
    "partition": Reserved,
    "preallocation": Preallocated,
    "merge": Merged,
}


def simulate_evolving(workload: EvolvingWorkload, options: EvolvingOptions, *, seed: int = 0) -> Played:
    """Play a workload; ``seed`` is what it was drawn by.

    Raises:
        OptionError: the options do not fit the machine.
    """
    provider = PROVIDERS[options.serve_by](workload, options)
    began = time.perf_counter()
    run = play_evolving(workload, provider, options)
    return Played(run=run, options=options, seed=seed, seconds=time.perf_counter() - began)
