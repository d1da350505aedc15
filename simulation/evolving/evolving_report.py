"""One simulation of evolving jobs, and what came of it: table II, waits by type, a row for each job."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import fsum, inf
from typing import Any

from ...cluster.errors import OptionError
from ...cluster.option_table import StrategyName
from ...negotiation.evolving.count_board import Credentials
from ...negotiation.evolving.fairness import Fairness, at_start, delays_document
from ...negotiation.evolving.iteration import Depths, default_depths
from ..report import FORMAT, count_lines, csv_of, shown
from ..result import mean_of
from ..workloads.evolving import EvolvingWorkload, dynamic_esp, quadflow
from .evolving_loop import EvolvingRun, Playing, Setting, play_evolving
from .providers import Iteration, Merged, Preallocated, RequestAuction, Reserved

_HOUR_S = 3600.0
#: Significant digits of the figures of a job.
_DIGITS = 10
JOB_COLUMNS = "id,type,user,submit_s,start_s,end_s,cores,cores_at_end,wait_s,asked,granted_s"


def evolving_metrics(run: EvolvingRun) -> dict[str, float | None]:
    """Return every metric by name; times in seconds.

    ``makespan_s``: first submission to last end; ``theoretical_runtime_s``: static core-seconds over all
    cores; ``cpu_utilization``: core-seconds held over cores × makespan, which counts cores that are held for
    nothing; slowdowns divide by the run time that the job had.
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
        "granted_cores": sum(grant.cores for grant in run.grants),
        "predicted_delay_s": fsum(
            delay.seconds for grant in run.grants for delay in grant.delays if delay.seconds < inf
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


def evolving_document(played: Played, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outcome as plain values."""
    run = played.run
    return {
        "format": FORMAT,
        "policy": "evolving",
        "workload": run.workload.name,
        **settings,
        "processors": run.workload.cores,
        "jobs": len(run.workload.jobs),
        "passes": run.passes,
        "seconds": round(played.seconds, 6),
        "metrics": evolving_metrics(run),
        "dynamic": dynamic_figures(run),
        "wait_by_type": waits_by_type(run),
        "grants": [
            {
                "time_s": grant.time_s,
                "job": grant.job,
                "cores": grant.cores,
                "delays": delays_document(grant.delays, Credentials(user=run.played[grant.job].job.user)),
            }
            for grant in run.grants
        ],
    }


def evolving_text(played: Played, settings: Mapping[str, Any]) -> str:
    """Return the outcome as a table for people."""
    run = played.run
    text = ", ".join(f"{name} {value}" for name, value in settings.items() if value is not None)
    lines = [
        f"{run.workload.name}: evolving, {text}, {len(run.workload.jobs)} jobs on {run.workload.cores} cores",
        "",
    ]
    values: dict[str, Any] = {**evolving_metrics(run), **dynamic_figures(run)}
    lines += count_lines(values, width=26)
    lines += ["", f"{'type':<12}{'jobs':>8}{'mean wait (s)':>18}{'longest (s)':>16}"]
    for kind, waits in waits_by_type(run).items():
        mean, longest = shown(waits["wait_mean_s"]), shown(waits["wait_max_s"])
        lines.append(f"{kind:<12}{waits['jobs']:>8}{mean:>18}{longest:>16}")
    return "\n".join(lines) + "\n"


def evolving_jobs_csv(run: EvolvingRun) -> str:
    """Return one row for each job in order of submission."""
    return csv_of(JOB_COLUMNS, (_job_row(run.played[job.id]) for job in run.workload.jobs))


def _job_row(played: Playing) -> tuple[Any, ...]:
    job = played.job
    times = (job.arrival_s, played.start_s, played.end_s)
    figures = (*times, played.static_cores, played.cores, _wait(played))
    granted = None if played.grown_s is None else _short(played.grown_s)
    return (job.id, job.kind, job.user, *map(_short, figures), played.asked, granted)


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


#: Workloads by name, of a seed.
WORKLOADS: dict[str, Callable[[int], EvolvingWorkload]] = {"dynamic-esp": dynamic_esp, "quadflow": quadflow}
#: Default size, in cores, of the partition kept for requests: a node.
PARTITION = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolvingOptions:
    """How to play.

    Attributes:
        serve_by: a name of PROVIDERS.
        partition: cores kept for requests, of ``partition`` only.
        strategy: of the engine, of ``auction`` only.
        fairness, setting: see each.
        depths: None: the paper's five and five; of an auction's reservations one, as in other
            simulations.
    """

    serve_by: str = "iteration"
    partition: int | None = None
    strategy: StrategyName | None = None
    fairness: Fairness = field(default_factory=Fairness)
    depths: Depths | None = None
    setting: Setting = field(default_factory=Setting)

    def __post_init__(self) -> None:
        if self.serve_by not in PROVIDERS:
            raise OptionError(f"serve_by: {self.serve_by!r} is not one of {', '.join(PROVIDERS)}")
        if self.partition is not None and self.serve_by != "partition":
            raise OptionError(f"--dynamic-partition needs --serve-by partition, not {self.serve_by}")
        if self.strategy is not None and self.serve_by != "auction":
            raise OptionError(f"--strategy needs --serve-by auction, not {self.serve_by}")

    @property
    def chosen_depths(self) -> Depths:
        """The depths, the default resolved."""
        return self.depths or default_depths(self.serve_by)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A finished run, its options, the delays that were charged, and its wall time."""

    run: EvolvingRun
    options: EvolvingOptions
    provider: Iteration
    seconds: float


#: Who serves requests, by name.
PROVIDERS: dict[str, type[Iteration]] = {
    "iteration": Iteration,
    "auction": RequestAuction,
    "partition": Reserved,
    "preallocation": Preallocated,
    "merge": Merged,
}


def _provider(workload: EvolvingWorkload, options: EvolvingOptions) -> Iteration:
    accounts = at_start(options.fairness, 0.0)
    given = (workload, options.chosen_depths, options.fairness, accounts)
    kind = PROVIDERS[options.serve_by]
    if kind is Reserved:
        return Reserved(*given, partition=PARTITION if options.partition is None else options.partition)
    if kind is RequestAuction:
        return RequestAuction(*given, strategy=options.strategy)
    return kind(*given)


def simulate_evolving(workload: EvolvingWorkload, options: EvolvingOptions) -> Played:
    """Play a workload.

    Raises:
        OptionError: the options do not fit the machine.
    """
    provider = _provider(workload, options)
    began = time.perf_counter()
    run = play_evolving(workload, provider, options.setting)
    return Played(run=run, options=options, provider=provider, seconds=time.perf_counter() - began)
