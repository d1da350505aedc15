"""Failures and repairs of the nodes of a simulation, and what happens to the jobs on them."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ...cluster.errors import OptionError
from ...cluster.failures import Outage, outages_by_node
from .node_machine import Machine

#: Requeues of one job after which it is lost: a job longer than its nodes ever stay up would never end.
MAX_REQUEUES = 100
#: Failures that are drawn for one simulation.
_MOST_DRAWN = 1_000_000

#: (down, up) in seconds, rising; up is infinite where the node never comes back.
Times = Iterator[tuple[float, float]]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Failures:
    """What a simulation's nodes do.

    Attributes:
        times: when each node that ever fails is down, by its place; read as the simulation goes on.
        requeues: jobs on a node that goes down wait again; otherwise they are lost.
        max_requeues: how often one job may.
    """

    times: Mapping[int, Times] = field(default_factory=dict)
    requeues: bool = True
    max_requeues: int = MAX_REQUEUES


def known_times(outages: Iterable[Outage], machine: Machine) -> dict[int, Times]:
    """Return the times of outages that are known beforehand.

    Raises:
        InputError: a node is not the machine's, takes no jobs anyway, or is down twice at once.
    """
    columns = machine.columns
    takes_jobs = dict(zip(columns.names, columns.takes_jobs.tolist(), strict=True))
    found = outages_by_node(outages, takes_jobs)
    return {columns.index[name]: iter(times) for name, times in found.items()}


def drawn_times(mtbf_s: float, mttr_s: float, seed: int, machine: Machine) -> dict[int, Times]:
    """Return exponential times, drawn for each node that takes jobs from its name and the seed alone.

    They do not depend on what the policy does: every policy meets the same failures.

    Args:
        mtbf_s: mean seconds that a node is up.
        mttr_s: mean seconds that it is down.
        seed: of all draws.
        machine: whose nodes fail.

    Raises:
        OptionError: more failures than a simulation may have, as soon as that many have been read.
    """
    columns = machine.columns
    count = iter(range(_MOST_DRAWN))

    def times(name: str) -> Times:
        rng = random.Random(f"{seed}/{name}")  # noqa: S311 - not a secret
        up = 0.0
        while next(count, None) is not None:
            down = up + _exponential(rng, mtbf_s)
            up = down + _exponential(rng, mttr_s)
            yield down, up
        raise OptionError(
            f"--mtbf {mtbf_s:g}: jobs still wait after {_MOST_DRAWN} failures; its nodes are hardly ever up"
        )

    places = columns.takes_jobs.nonzero()[0].tolist()
    return {place: times(columns.names[place]) for place in places}


def _exponential(rng: random.Random, mean: float) -> float:
    return -mean * math.log(1.0 - rng.random())
