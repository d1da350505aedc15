"""The jobs of the thesis's experiment (Nagendra, 7.3): ESP, a share of it malleable or moldable."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from ...cluster.errors import InputError
from ...cluster.jobs import JobKind
from ...negotiation.parties.batch_state import Arrival
from ...negotiation.runtime.records import MapEntry, NodeCount
from ...negotiation.runtime.speedup import LINEAR, relative_speed
from ..workloads.esp import ESP_TYPES, FULL_MACHINE

#: ESP jobs come 50 at once and one each 30 s, or all at once.
Arrivals = Literal["esp", "at-once"]
_AT_ONCE, _EACH_S = 50, 30.0
#: When the two jobs of the whole machine come (Soner, 7.3.1).
_FULL_MACHINE_S = (40 * 60.0, 120 * 60.0)
#: Priority of the first job; each later one has one less (Slurm's priority/basic).
_FIRST_PRIORITY = 4_294_901_760


@dataclass(frozen=True, slots=True, kw_only=True)
class Changeability:
    """Which of the jobs may change their size.

    Attributes:
        share: of the jobs, from 0 to 1.
        kind: malleable, or moldable: chosen at their start only.
        speedup: their model.
    """

    share: float = 0.0
    kind: JobKind = JobKind.MALLEABLE
    speedup: str = LINEAR


def entry_of(  # noqa: PLR0913 - a job's figures
    job: str,
    size: int,
    run_time_s: float,
    *,
    priority: int,
    kind: JobKind = JobKind.RIGID,
    bounds: tuple[int, int] | None = None,
    speedup: str = LINEAR,
    true_run_time_s: float | None = None,
    partition: str = "",
    can_suspend: bool = True,
    name: str = "",
) -> MapEntry:
    """Return a job whose run time is known at its nominal size; the model converts it to the minimum."""
    least, most = bounds if bounds is not None and kind is not JobKind.RIGID else (size, size)
    slower = relative_speed(speedup, size, least)
    return MapEntry(
        job=job,
        type=kind,
        node_cnt=0,
        node_count=NodeCount(min=least, max=most),
        min_nodes=least,
        max_nodes=most,
        priority=priority,
        time_at_min_s=run_time_s * slower,
        true_time_at_min_s=None if true_run_time_s is None else true_run_time_s * slower,
        speedup=speedup,
        partition=partition,
        can_suspend=can_suspend,
        name=name,
    )


def esp_arrivals(
    nodes: int,
    mix: Changeability,
    *,
    order: int = 0,
    arrivals: Arrivals = "esp",
    with_full_machine: bool = False,
) -> tuple[Arrival, ...]:
    """Return the ESP jobs without Z in a random order of submission; a share of them has sizes ⌈n/2⌉ to 2n.

    Args:
        nodes: of the machine; sizes are whole nodes.
        mix: which jobs may change their size; those of a smaller share are among those of a larger one.
        order: the seed of the order and of the choice.
        arrivals: how they come.
        with_full_machine: add both Z, urgent, at 40 and 120 min.
    """
    jobs = [
        (entry, number) for entry in ESP_TYPES if entry.name != FULL_MACHINE for number in range(entry.count)
    ]
    generator = random.Random(order)  # noqa: S311 - an order of submission, no secret
    generator.shuffle(jobs)
    ranks = list(range(len(jobs)))
    generator.shuffle(ranks)
    elastic = set(ranks[: round(mix.share * len(jobs))])
    found = []
    for rank, (kind, number) in enumerate(jobs):
        size = kind.units(nodes)
        job = entry_of(
            f"{kind.name}{number + 1}",
            size,
            kind.run_time_s,
            priority=_FIRST_PRIORITY - rank,
            kind=mix.kind if rank in elastic else JobKind.RIGID,
            bounds=(-(-size // 2), min(nodes, 2 * size)),
            speedup=mix.speedup,
            name=kind.name,
        )
        late = 0.0 if arrivals == "at-once" else max(0, rank - _AT_ONCE + 1) * _EACH_S
        found.append(Arrival(time_s=late, job=job))
    if with_full_machine:
        found += _full_machine(nodes)
    return tuple(sorted(found, key=lambda arrival: arrival.time_s))


def _full_machine(nodes: int) -> list[Arrival]:
    (kind,) = [entry for entry in ESP_TYPES if entry.name == FULL_MACHINE]
    return [
        Arrival(
            time_s=time,
            job=entry_of(f"{kind.name}{number + 1}", nodes, kind.run_time_s, priority=_FIRST_PRIORITY + 1),
            urgent=True,
        )
        for number, time in enumerate(_FULL_MACHINE_S)
    ]


def node_names(count: int) -> tuple[str, ...]:
    """Return names of that many nodes."""
    if count < 1:
        raise InputError(f"{count} is below 1", path="nodes")
    width = len(str(count))
    return tuple(f"n{number:0{width}}" for number in range(1, count + 1))
