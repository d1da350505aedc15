"""What a negotiated run comes to: metrics (Nagendra, chapter 7), JSON, text, a row a job."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import fsum
from typing import Any

import numpy as np

from ...cluster.text import one_line, plural
from ...negotiation.batch.mapping import BatchSettings
from ...negotiation.job_records import JobReport, Known
from ...negotiation.messages import ResourceOffer, ResponseResourceOffer, UrgentJobResponse
from ...negotiation.pair import Sent
from ...negotiation.runtime.settings import RuntimeSettings
from ..events import HOUR_S
from ..report import RunReport, Timeline, mean_of, ratio
from .plays import Play

FORMAT = "aucsched-negotiation/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A stretch of time in which a job held the same nodes, or parts of them (numbers as bits)."""

    job: str
    start_s: float
    end_s: float
    nodes: int


@dataclass(frozen=True, kw_only=True, repr=False)
class Negotiated(RunReport):
    """A finished run. Not slotted: its columns are computed when first asked for, and kept.

    Attributes:
        play: what was played.
        batch, runtime: the parties' settings.
        done: the last report of each job.
        held: every stretch, by job and time.
        sent: every message.
        lost_node_s: work that kills lost.
        settings: those that neither party has.
        known: runs of a history, before this one.
    """

    play: Play
    batch: BatchSettings
    runtime: RuntimeSettings
    done: Mapping[str, JobReport]
    held: tuple[Held, ...]
    sent: tuple[Sent, ...]
    lost_node_s: float
    settings: Mapping[str, Any] = field(default_factory=dict)
    known: Known = field(default_factory=dict)

    @cached_property
    def arrival_s(self) -> dict[str, float]:
        """When each job came."""
        return {arrival.job.job: arrival.time_s for arrival in self.play.arrivals}

    @cached_property
    def attempts(self) -> tuple[int, ...]:
        """The attempts of each transaction that was committed."""
        return tuple(
            sent.message.attempt
            for sent in self.sent
            if isinstance(sent.message, ResourceOffer) and sent.message.negotiation == 0
        )

    @cached_property
    def engine_calls(self) -> int:
        """How many awards the auction's engine has made: one for each Map that is not empty."""
        if self.batch.mapper != "auction":
            return 0
        return sum(isinstance(s.message, ResponseResourceOffer) and bool(s.message.map) for s in self.sent)

    @cached_property
    def urgent(self) -> tuple[UrgentJobResponse, ...]:
        """The answers to urgent jobs."""
        return tuple(s.message for s in self.sent if isinstance(s.message, UrgentJobResponse))

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A row for each job, in order of arrival."""
        return job_columns_of(self.play, self.done)

    def to_dict(self) -> dict[str, Any]:
        """Return the run's document (``aucsched-negotiation/1``) as plain values."""
        parties = {"batch": asdict(self.batch), "runtime": asdict(self.runtime)}
        return {
            "format": FORMAT,
            "workload": {
                "name": self.play.name,
                "jobs": len(self.play.arrivals),
                "nodes": len(self.play.nodes),
            },
            "settings": {**self.settings, **parties},
            "metrics": negotiated_metrics(self),
        }

    def to_text(self, name: str) -> str:
        """Return the metrics for people."""
        metrics = negotiated_metrics(self)
        machine = f"{plural(len(self.play.arrivals), 'job')}, {plural(len(self.play.nodes), 'node')}"
        rows = [
            *_SHOWN,
            *(_SHOWN_DEADLINES if metrics["deadlines"] else ()),
            *(_SHOWN_URGENT if self.urgent else ()),
        ]
        lines = []
        for label, key, form, unit in rows:
            value = metrics[key]
            lines.append(f"  {label:<16}{'-' if value is None else form.format(value / unit)}")
        return "\n".join([f"{one_line(name)}: {machine}, mapper {self.batch.mapper}", *lines]) + "\n"


def negotiated_metrics(result: Negotiated) -> dict[str, float | int | None]:
    """Return every metric by name; times in seconds, None without a job.

    ``makespan_s``: first submission to last end; ``utilization``: node-seconds held over nodes ×
    makespan; ``work_bound_s``: node-seconds of the jobs at their smallest sizes over the nodes, a
    lower bound under linear speedup; ``loss_of_capacity``: the share idle while a job waited;
    ``transactions``: those committed; ``attempts_mean``: theirs; ``deadlines``, ``deadlines_met``:
    jobs that had one, kept it; ``engine_calls``: awards of the auction's engine, one a Map.
    """
    jobs, arrival = list(result.done.values()), result.arrival_s
    first = min(arrival.values(), default=0.0)
    makespan = max((job.end_s for job in jobs), default=0.0) - first
    waits = [job.start_s - arrival[job.job] for job in jobs]
    responses = [job.end_s - arrival[job.job] for job in jobs]
    nodes = len(result.play.nodes)
    held = fsum(job.node_s for job in jobs)
    sizes = _changes(result)
    urgent = [arriving.job.job for arriving in result.play.arrivals if arriving.urgent]
    parts, entries = result.runtime.parts, [arriving.job for arriving in result.play.arrivals]
    deadlines = {entry.job: entry.deadline_s for entry in entries if entry.deadline_s is not None}
    # How much of each of its nodes a job has at least.
    shares = [1 if parts == 1 else entry.node_share[0] / entry.node_share[1] for entry in entries]
    work_node_s = fsum(
        entry.min_nodes * share * (entry.true_time_at_min_s or entry.time_at_min_s)
        for entry, share in zip(entries, shares, strict=True)
    )
    return {
        "makespan_s": makespan if jobs else None,
        "wait_mean_s": mean_of(waits),
        "wait_max_s": max(waits, default=None),
        "response_mean_s": mean_of(responses),
        "response_max_s": max(responses, default=None),
        "utilization": ratio(held, nodes * makespan),
        "work_bound_s": work_node_s / nodes,
        "loss_of_capacity": _lost_s(result, nodes * parts) / (nodes * parts * makespan) if makespan else None,
        "throughput_per_h": ratio(len(jobs) * HOUR_S, makespan),
        "transactions": len(result.attempts),
        "attempts_mean": mean_of(list(result.attempts)),
        "messages": len(result.sent),
        "engine_calls": result.engine_calls,
        "expansions": sizes[0],
        "shrinks": sizes[1],
        "deadlines": len(deadlines),
        "deadlines_met": sum(result.done[job].end_s <= end for job, end in deadlines.items()),
        "urgent_started": sum(answer.code == "accept" for answer in result.urgent),
        "urgent_wait_max_s": max((result.done[job].start_s - arrival[job] for job in urgent), default=None),
        "suspended": sum(len(answer.suspended) for answer in result.urgent),
        "killed": sum(len(answer.killed) for answer in result.urgent),
        "lost_node_s": result.lost_node_s,
    }


def _changes(result: Negotiated) -> tuple[int, int]:
    """Return how often jobs grew and shrank while they ran."""
    grown = shrunk = 0
    last: dict[str, int] = {}
    for held in sorted(result.held, key=lambda held: held.start_s):
        count = held.nodes.bit_count()
        grown += count > last.get(held.job, count)
        shrunk += count < last.get(held.job, count)
        last[held.job] = count
    return grown, shrunk


def _lost_s(result: Negotiated, nodes: int) -> float:
    """Return the node-seconds idle while a job waited for its start."""
    changes: list[tuple[float, int, int]] = []
    for held in result.held:
        count = held.nodes.bit_count()
        changes += [(held.start_s, count, 0), (held.end_s, -count, 0)]
    for job in result.done.values():
        changes += [(result.arrival_s[job.job], 0, 1), (job.start_s, 0, -1)]
    return Timeline.of(*np.array(changes, np.float64).T).lost_s(nodes)


_SHOWN = (
    ("makespan", "makespan_s", "{:.1f} min", 60),
    ("work bound", "work_bound_s", "{:.1f} min", 60),
    ("mean wait", "wait_mean_s", "{:.1f} min", 60),
    ("mean response", "response_mean_s", "{:.1f} min", 60),
    ("utilization", "utilization", "{:.1f} %", 0.01),
    ("transactions", "transactions", "{:.0f}", 1),
    ("attempts, mean", "attempts_mean", "{:.2f}", 1),
    ("expansions", "expansions", "{:.0f}", 1),
    ("shrinks", "shrinks", "{:.0f}", 1),
)
_SHOWN_DEADLINES = (("deadlines", "deadlines", "{:.0f}", 1), ("of these met", "deadlines_met", "{:.0f}", 1))
_SHOWN_URGENT = (
    ("urgent started", "urgent_started", "{:.0f}", 1),
    ("suspended", "suspended", "{:.0f}", 1),
    ("killed", "killed", "{:.0f}", 1),
)


def job_columns_of(play: Play, finished: Mapping[str, JobReport]) -> dict[str, list[Any]]:
    """Return a row a job, in order of arrival: what it asked for, when it ran, what it held."""
    jobs = [(arrival.time_s, arrival.job, finished[arrival.job.job]) for arrival in play.arrivals]
    return {
        "job": [entry.job for _, entry, _ in jobs],
        "type": [entry.type.value for _, entry, _ in jobs],
        "min_nodes": [entry.min_nodes for _, entry, _ in jobs],
        "max_nodes": [entry.max_nodes for _, entry, _ in jobs],
        "arrival_s": [time_s for time_s, _, _ in jobs],
        "start_s": [done.start_s for _, _, done in jobs],
        "end_s": [done.end_s for _, _, done in jobs],
        "wait_s": [round(done.start_s - time_s, 6) for time_s, _, done in jobs],
        "run_time_s": [done.run_time_s for _, _, done in jobs],
        "node_s": [done.node_s for _, _, done in jobs],
    }
