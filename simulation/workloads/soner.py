"""The thesis's first generator: mixes I to V of jobs by cores, nodes and GPUs (Soner, section 7.3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from random import Random

from ...cluster.errors import OptionError
from ...cluster.jobs import Request, Span
from ...cluster.workload import ClusterWorkload
from .drafts import (
    ARRIVAL_SHARE,
    RUN_TIMES_S,
    UndatedJob,
    in_shares,
    make_workload,
    stream,
    theoretical_s,
    uniform_arrivals,
)
from .named_clusters import EvenCluster
from .thesis_tables import MOST_WHOLE_NODES


class SizeKind(StrEnum):
    """How a job states its size (the columns of table 7.2)."""

    CORES = "cores"
    NODES = "nodes"
    ONE_GPU = "1 GPU a node"
    TWO_GPUS = "2 GPUs a node"


#: Table 7.2, in shares: 33.3, 33.3, 16.6 and 16.6 % are two, two, one and one of six.
MIXES: Mapping[str, Mapping[SizeKind, int]] = {
    "I": {SizeKind.CORES: 1},
    "II": {SizeKind.NODES: 1},
    "III": {SizeKind.CORES: 1, SizeKind.NODES: 1},
    "IV": {SizeKind.CORES: 2, SizeKind.NODES: 2, SizeKind.ONE_GPU: 1},
    "V": {SizeKind.CORES: 2, SizeKind.NODES: 2, SizeKind.ONE_GPU: 1, SizeKind.TWO_GPUS: 1},
}

_CORES_PER_NODE = (4, 8)
_CORES_PER_GPU = (1, 2)
_GPUS = {SizeKind.ONE_GPU: 1, SizeKind.TWO_GPUS: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class SonerOptions:
    """The generator's parameters.

    Attributes:
        hours: the theoretical run time to reach.
        max_cores: the most cores a job asks for; None: 43 whole nodes' (as in tables 8.4 to 8.6).
        for_ipsched: node jobs as (cores, nodes), since ipsched knows no cores per node.
        arrival_share: arrivals are uniform over this share of the theoretical run time.
    """

    hours: float = 4.0
    max_cores: int | None = None
    for_ipsched: bool = False
    arrival_share: float = ARRIVAL_SHARE


def soner_workload(
    mix: str, cluster: EvenCluster, *, seed: int, options: SonerOptions | None = None
) -> ClusterWorkload:
    """Return a workload of mix I to V: jobs are added until the theoretical run time is reached.

    Cores are a multiple of a node's, uniform up to the most; run times uniform from 60 to 600 s. A node
    job takes 4 or 8 cores on ⌈cores/4⌉ or ⌈cores/8⌉ nodes, a GPU job 1 or 2 cores for each GPU. The same
    seed gives the same jobs in both forms of node jobs.

    Args:
        mix: I, II, III, IV or V.
        cluster: the machine.
        seed: of everything drawn.
        options: the parameters.

    Raises:
        OptionError: the largest job would not fit the cluster.

    """
    chosen = SonerOptions() if options is None else options
    max_cores = MOST_WHOLE_NODES * cluster.cores if chosen.max_cores is None else chosen.max_cores
    _check(mix, cluster, max_cores)
    drafts = _drafts(mix, cluster, max_cores, seed, chosen)
    within_s = chosen.arrival_share * float(theoretical_s(drafts, cluster))
    arrivals = uniform_arrivals(len(drafts), within_s, stream(seed, "soner", mix, "arrivals"))
    form = "cores and nodes" if chosen.for_ipsched else "nodes and cores per node"
    return make_workload(
        f"soner/{mix}",
        cluster,
        list(zip(arrivals, drafts, strict=True)),
        (
            f"mix {mix} of table 7.2 over {chosen.hours:g} h, up to {max_cores} cores; node jobs as {form}",
            f"seed {seed}; arrivals uniform over {within_s:g} s",
        ),
    )


def _check(mix: str, cluster: EvenCluster, max_cores: int) -> None:
    """Refuse a mix whose largest job has no place on the empty cluster."""
    if max_cores < cluster.cores:
        raise OptionError(f"--max-cores: {max_cores} is below one node's {cluster.cores}")
    largest = max_cores // cluster.cores * cluster.cores
    gpus = max((_GPUS.get(size, 0) for size in MIXES[mix]), default=0)
    if gpus > cluster.gpus:
        raise OptionError(f"mix {mix} asks for {gpus} GPUs a node, the cluster has {cluster.gpus}")
    for size in MIXES[mix]:
        per_node = {SizeKind.CORES: cluster.cores, SizeKind.NODES: min(_CORES_PER_NODE)}.get(size)
        nodes = ceil(largest / (per_node or min(_CORES_PER_GPU) * _GPUS[size]))
        if nodes > cluster.nodes:
            raise OptionError(
                f"--max-cores: a job of {largest} cores by {size} takes {nodes} nodes, "
                f"the cluster has {cluster.nodes}"
            )
    if SizeKind.NODES in MIXES[mix] and max(_CORES_PER_NODE) > cluster.cores:
        raise OptionError(f"mix {mix} takes {max(_CORES_PER_NODE)} cores a node, a node has {cluster.cores}")


def _drafts(
    mix: str, cluster: EvenCluster, max_cores: int, seed: int, options: SonerOptions
) -> list[UndatedJob]:
    """Draw sizes and run times until they fill the hours, then share the jobs out to the mix."""
    random = stream(seed, "soner", mix, "sizes")
    wanted = options.hours * 3600 * cluster.total_cores
    drawn: list[tuple[int, int]] = []
    while wanted > 0:
        cores = cluster.cores * random.randint(1, max_cores // cluster.cores)
        seconds = random.randint(*RUN_TIMES_S)
        drawn.append((cores, seconds))
        wanted -= cores * seconds
    sizes = in_shares(MIXES[mix], len(drawn), stream(seed, "soner", mix, "mix"))
    choice = stream(seed, "soner", mix, "per node")
    return [
        _undated(size, cores, seconds, choice, for_ipsched=options.for_ipsched)
        for size, (cores, seconds) in zip(sizes, drawn, strict=True)
    ]


def _undated(size: SizeKind, cores: int, seconds: int, choice: Random, *, for_ipsched: bool) -> UndatedJob:
    """Return a job of a column of table 7.2."""
    if size is SizeKind.CORES:
        return UndatedJob(request=Request(cores=cores), cores=cores, run_time_s=seconds)
    if size is SizeKind.NODES:
        per_node = choice.choice(_CORES_PER_NODE)
        nodes = ceil(cores / per_node)
        exact = Span.exactly(nodes)
        request = (
            Request(cores=nodes * per_node, nodes=exact)
            if for_ipsched
            else Request(nodes=exact, cores_per_node=per_node)
        )
        return UndatedJob(request=request, cores=nodes * per_node, run_time_s=seconds)
    gpus = _GPUS[size]
    nodes = ceil(cores / (choice.choice(_CORES_PER_GPU) * gpus))
    request = Request(cores=cores, nodes=Span.exactly(nodes), gres_per_node={"gpu": Span.exactly(gpus)})
    return UndatedJob(request=request, cores=cores, run_time_s=seconds)
