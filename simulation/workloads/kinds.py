"""Job kinds A to E, C' and D' (Soner, table 7.3), and jobs drawn from a mix of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from random import Random

from ...cluster.jobs import Request, Span
from .drafts import RUN_TIMES_S, UndatedJob, in_shares, stream
from .named_clusters import EvenCluster

#: A job asks for the cores of 1 to 43 whole nodes.
MOST_WHOLE_NODES = 43
#: N(1, 0.5) of (7.1), truncated below.
_FACTOR_SD = 0.5
_LEAST_FACTOR = 0.1

#: GPUs on each node by kind; B asks for nodes without GPUs, A for cores only.
_GPUS: Mapping[str, Span | None] = {
    "A": None,
    "B": None,
    "C": Span.exactly(1),
    "D": Span.exactly(2),
    "E": Span.exactly(3),
}
#: C' and D': the same jobs with the GPUs they could use.
_RANGES = {"C": Span(minimum=1, maximum=3), "D": Span(minimum=2, maximum=3)}

ONLY_A: Mapping[str, int] = {"A": 1}
ONLY_B: Mapping[str, int] = {"B": 1}
ALL_KINDS: Mapping[str, int] = {"A": 1, "B": 1, "C": 1, "D": 1, "E": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadMix:
    """What jobs are drawn from.

    Attributes:
        kinds: shares of the kinds A to E.
        jobs: how many.
        contiguous: the share of the jobs, 0 to 1, whose nodes must be consecutive.
        divisors: a job of kinds B to E takes its cores over one of these, rounded up, as nodes.
        ranges: C and D are C' and D'.
        cores_per_gpu: a job of kinds C to E takes its cores over one of these and over its GPUs a
            node, rounded up, as nodes (section 7.3.2, p. 69); empty: by divisors, as kind B.
        most_whole_nodes: a job asks for the cores of 1 to this many whole nodes.
    """

    kinds: Mapping[str, int]
    jobs: int
    contiguous: float
    divisors: tuple[int, ...]
    ranges: bool
    cores_per_gpu: tuple[int, ...] = ()
    most_whole_nodes: int = MOST_WHOLE_NODES


def draw_jobs(mix: WorkloadMix, cluster: EvenCluster, *key: object) -> list[UndatedJob]:
    """Return the jobs of a mix; the same key draws the same sizes and times whatever ranges and contiguity.

    Args:
        mix: what to draw from.
        cluster: the machine, whose cores per node sizes are multiples of.
        key: what the streams of random numbers are named by.

    """
    kinds = in_shares(mix.kinds, mix.jobs, stream(*key, "kinds"))
    # To the nearest whole: half of 3491 jobs are 1746.
    held_together = int(mix.contiguous * mix.jobs + 0.5)
    shares = {True: held_together, False: mix.jobs - held_together}
    contiguous = in_shares(shares, mix.jobs, stream(*key, "contiguous"))
    sizes, times, divisors, per_gpu = (
        stream(*key, name) for name in ("cores", "run times", "divisors", "cores per GPU")
    )
    factors = stream(*key, "factors")
    drafts = []
    for kind, together in zip(kinds, contiguous, strict=True):
        cores = cluster.cores * sizes.randint(1, mix.most_whole_nodes)
        divisor = divisors.choice(mix.divisors)
        fewest = _GPUS[kind]
        if mix.cores_per_gpu and fewest is not None:
            divisor = per_gpu.choice(mix.cores_per_gpu) * fewest.minimum
        factor = _factor(factors)
        gpus = _RANGES.get(kind) if mix.ranges and kind in _RANGES else _GPUS[kind]
        drafts.append(
            UndatedJob(
                request=_request(kind, cores, divisor, gpus, contiguous=together),
                cores=cores,
                run_time_s=times.randint(*RUN_TIMES_S),
                gres_run_time_factor=None if gpus is None or gpus.is_exact else factor,
            )
        )
    return drafts


def _request(kind: str, cores: int, divisor: int, gpus: Span | None, *, contiguous: bool) -> Request:
    """Return the request of a kind: x cores; or x cores on y nodes, with GPUs on each."""
    return Request(
        cores=cores,
        nodes=None if kind == "A" else Span.exactly(ceil(cores / divisor)),
        gres_per_node={} if gpus is None else {"gpu": gpus},
        contiguous=contiguous,
    )


def _factor(random: Random) -> float:
    """Draw N of (7.1): normal about 1, drawn again while it is below the least."""
    while (factor := random.gauss(1.0, _FACTOR_SD)) < _LEAST_FACTOR:
        pass
    return factor
