"""The thesis's generators (Soner, 7.3.2): mixes I to V, and kinds A to E with tables 8.4 to 8.6."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil
from random import Random
from typing import Any

from ...cluster.errors import OptionError
from ...cluster.jobs import Request, Span
from ...cluster.workload import ClusterWorkload
from .named_clusters import (
    HYPOTHETICAL,
    RUN_TIMES_S,
    TSUBAME,
    EvenCluster,
    UndatedJob,
    in_shares,
    make_workload,
    stream,
    theoretical_s,
    uniform_arrivals,
)
from .workload_options import SonerOptions, TableOptions


class SizeKind(StrEnum):
    """How a job states its size (the columns of table 7.2)."""

    CORES = "cores"
    NODES = "nodes"
    ONE_GPU = "1 GPU a node"
    TWO_GPUS_OF_SIZE = "2 GPUs a node"


#: Table 7.2, in shares: 33.3, 33.3, 16.6 and 16.6 % are two, two, one and one of six.
MIXES: Mapping[str, Mapping[SizeKind, int]] = {
    "I": {SizeKind.CORES: 1},
    "II": {SizeKind.NODES: 1},
    "III": {SizeKind.CORES: 1, SizeKind.NODES: 1},
    "IV": {SizeKind.CORES: 2, SizeKind.NODES: 2, SizeKind.ONE_GPU: 1},
    "V": {SizeKind.CORES: 2, SizeKind.NODES: 2, SizeKind.ONE_GPU: 1, SizeKind.TWO_GPUS_OF_SIZE: 1},
}

_CORES_PER_NODE = (4, 8)
_CORES_PER_GPU = (1, 2)
_GPUS_OF_SIZE = {SizeKind.ONE_GPU: 1, SizeKind.TWO_GPUS_OF_SIZE: 2}


def soner_workload(mix: str, cluster: EvenCluster, *, seed: int, options: SonerOptions) -> ClusterWorkload:
    """Return a workload of mix I to V: jobs are added until the theoretical run time is reached.

    Cores are a multiple of a node's, uniform up to the most; run times uniform from 60 to 600 s. A
    node job takes 4 or 8 cores on ⌈cores/4⌉ or ⌈cores/8⌉ nodes, a GPU job 1 or 2 cores for each
    GPU. The same seed gives the same jobs in both forms of node jobs.

    Args:
        mix: I, II, III, IV or V.
        cluster: the machine.
        seed: of everything drawn.
        options: the parameters.

    Raises:
        OptionError: the largest job would not fit the cluster.
    """
    max_cores = MOST_WHOLE_NODES * cluster.cores if options.max_cores is None else options.max_cores
    _check(mix, cluster, max_cores)
    drafts = _drafts(mix, cluster, max_cores, seed, options)
    within_s = options.arrival_share * float(theoretical_s(drafts, cluster))
    arrivals = uniform_arrivals(len(drafts), within_s, stream(seed, "soner", mix, "arrivals"))
    form = "cores and nodes" if options.for_ipsched else "nodes and cores per node"
    return make_workload(
        f"soner/{mix}",
        cluster,
        list(zip(arrivals, drafts, strict=True)),
        (
            f"mix {mix} of table 7.2 over {options.hours:g} h, up to {max_cores} cores; node jobs as {form}",
            f"seed {seed}; arrivals uniform over {within_s:g} s",
        ),
    )


def _check(mix: str, cluster: EvenCluster, max_cores: int) -> None:
    """Refuse a mix whose largest job has no place on the empty cluster."""
    if max_cores < cluster.cores:
        raise OptionError(f"--max-cores: {max_cores} is below one node's {cluster.cores}")
    largest = max_cores // cluster.cores * cluster.cores
    gpus = max((_GPUS_OF_SIZE.get(size, 0) for size in MIXES[mix]), default=0)
    if gpus > cluster.gpus:
        raise OptionError(f"mix {mix} asks for {gpus} GPUs a node, the cluster has {cluster.gpus}")
    for size in MIXES[mix]:
        per_node = {SizeKind.CORES: cluster.cores, SizeKind.NODES: min(_CORES_PER_NODE)}.get(size)
        nodes = ceil(largest / (per_node or min(_CORES_PER_GPU) * _GPUS_OF_SIZE[size]))
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
        request = Request(cores=cores)
    elif size is SizeKind.NODES:
        per_node = choice.choice(_CORES_PER_NODE)
        nodes = ceil(cores / per_node)
        whole: dict[str, Any] = {"cores": nodes * per_node} if for_ipsched else {"cores_per_node": per_node}
        request = Request(nodes=Span.exactly(nodes), **whole)
    else:
        gpus = _GPUS_OF_SIZE[size]
        nodes = ceil(cores / (choice.choice(_CORES_PER_GPU) * gpus))
        request = Request(cores=cores, nodes=Span.exactly(nodes), gres_per_node={"gpu": Span.exactly(gpus)})
    return UndatedJob(request=request, run_time_s=seconds)


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


#: Kinds B to E take x/4 or x/8 nodes (8.4, 8.6), with which A.5's 97 % can be reached, and x/8 or
#: x/16 (8.5): x/4 or x/8 would saturate the GPUs there at 83 %, where A.4 reports 89.
_OF_12_CORES = (4, 8)
_OF_16_CORES = (8, 16)


@dataclass(frozen=True, slots=True)
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
    contiguous: float = 0.0
    divisors: tuple[int, ...] = _OF_12_CORES
    ranges: bool = False
    cores_per_gpu: tuple[int, ...] = ()
    most_whole_nodes: int = MOST_WHOLE_NODES


def draw_jobs(mix: WorkloadMix, cluster: EvenCluster, *key: object) -> list[UndatedJob]:
    """Return the jobs of a mix; a key draws the same sizes and times for all ranges and contiguity.

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
        # N of (7.1): normal about 1, drawn again while it is below the least.
        while (factor := factors.gauss(1.0, _FACTOR_SD)) < _LEAST_FACTOR:
            pass
        gpus = _RANGES.get(kind) if mix.ranges and kind in _RANGES else _GPUS[kind]
        drafts.append(
            UndatedJob(
                # x cores; or x cores on y nodes, with GPUs on each.
                request=Request(
                    cores=cores,
                    nodes=None if kind == "A" else Span.exactly(ceil(cores / divisor)),
                    gres_per_node={} if gpus is None else {"gpu": gpus},
                    contiguous=together,
                ),
                run_time_s=times.randint(*RUN_TIMES_S),
                gres_run_time_factor=None if gpus is None or gpus.is_exact else factor,
            )
        )
    return drafts


#: Kind E asks for so many GPUs on each node.
_MOST_GPUS = 3
#: 22 nodes for 330 s is what a job of these tables takes on average.
_MEAN_JOB_NODE_S = 22 * 330


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadTable:
    """A table of workloads: its machine, and its rows by workload id."""

    cluster: EvenCluster
    rows: Mapping[str, WorkloadMix]


_HOURS_8_4 = (6.28, 6.27, 6.26, 12.53, 12.54, 12.48, 5.43, 5.42, 5.50, 10.90, 10.63, 10.89)
_RATIOS = (0.0, 0.5, 1.0)

#: Jobs that make the theoretical run time (table 8.4 gives no counts); half of the rows are kind A.
_OF_A_8_4 = len(_HOURS_8_4) // 2
_JOBS_8_4 = [round(hours * 3600 * TSUBAME.nodes / _MEAN_JOB_NODE_S) for hours in _HOURS_8_4]
_TABLE_8_4 = {
    str(place + 1): WorkloadMix(ONLY_A if place < _OF_A_8_4 else ALL_KINDS, jobs, _RATIOS[place % 3])
    for place, jobs in enumerate(_JOBS_8_4)
}
_TABLE_8_5 = {
    "1": WorkloadMix(ONLY_A, 350, divisors=_OF_16_CORES),
    "2": WorkloadMix(ONLY_A, 2095, divisors=_OF_16_CORES),
    "3": WorkloadMix(ONLY_B, 350, divisors=_OF_16_CORES),
    "4": WorkloadMix(ONLY_B, 2095, divisors=_OF_16_CORES),
    "5": WorkloadMix(ALL_KINDS, 350, divisors=_OF_16_CORES),
    "6": WorkloadMix(ALL_KINDS, 2095, divisors=_OF_16_CORES),
    "5'": WorkloadMix(ALL_KINDS, 350, divisors=_OF_16_CORES, ranges=True),
    "6'": WorkloadMix(ALL_KINDS, 2095, divisors=_OF_16_CORES, ranges=True),
}
_TABLE_8_6 = {
    str(3 * block + place + 1): WorkloadMix(kinds, jobs, ratio)
    for block, ratio in enumerate(_RATIOS)
    for place, (kinds, jobs) in enumerate(((ONLY_A, 3491), (ONLY_B, 2095), (ALL_KINDS, 3491)))
}

TABLES: Mapping[str, WorkloadTable] = {
    "8.4": WorkloadTable(cluster=TSUBAME, rows=_TABLE_8_4),
    "8.5": WorkloadTable(cluster=HYPOTHETICAL, rows=_TABLE_8_5),
    "8.6": WorkloadTable(cluster=TSUBAME, rows=_TABLE_8_6),
}


def table_workload(table: str, row: str, *, seed: int, options: TableOptions) -> ClusterWorkload:
    """Return a workload of a table. A seed's jobs are the same whatever contiguity and ranges are.

    Args:
        table: 8.4, 8.5 or 8.6.
        row: the workload id, as printed.
        seed: of everything drawn.
        options: what may differ from the table.

    Raises:
        OptionError: there is no such row, or an option would change nothing in it.
    """
    cluster = TABLES[table].cluster
    mix = _mix(table, row, options)
    key = (seed, table, row.removesuffix("'"))
    drafts = draw_jobs(mix, cluster, *key)
    within_s = options.arrival_share * float(theoretical_s(drafts, cluster))
    arrivals = uniform_arrivals(len(drafts), within_s, stream(*key, "arrivals"))
    return make_workload(
        f"table-{table}/{row}", cluster, list(zip(arrivals, drafts, strict=True)), _notes(mix, seed, within_s)
    )


def _mix(table: str, row: str, options: TableOptions) -> WorkloadMix:
    """Return the row's mix with the options applied."""
    rows = TABLES[table].rows
    if row not in rows:
        raise OptionError(f"--id: {row!r} is not one of {', '.join(rows)}")
    mix = rows[row]
    if options.gpu_ranges and (mix.ranges or not mix.kinds.keys() & {"C", "D"}):
        raise OptionError(f"--gpu-ranges would change nothing in workload {row} of table {table}")
    if options.divisors is not None and mix.kinds == ONLY_A:
        raise OptionError(f"--divisors would change nothing in workload {row} of table {table}")
    per_gpu = options.cores_per_gpu or ()
    if per_gpu and not mix.kinds.keys() & {"C", "D", "E"}:
        raise OptionError(f"--cores-per-gpu would change nothing in workload {row} of table {table}")
    most = TABLES[table].cluster.cores // _MOST_GPUS
    if max(per_gpu, default=0) > most:
        raise OptionError(f"--cores-per-gpu: a node has {most} cores for each GPU, not more")
    return replace(
        mix,
        contiguous=0.0 if options.contiguity == "drop" else mix.contiguous,
        divisors=mix.divisors if options.divisors is None else options.divisors,
        cores_per_gpu=per_gpu,
        ranges=mix.ranges or options.gpu_ranges,
    )


def _notes(mix: WorkloadMix, seed: int, within_s: float) -> tuple[str, ...]:
    whole = sum(mix.kinds.values())
    kinds = ", ".join(
        f"{kind + chr(39) if mix.ranges and kind in 'CD' else kind} {share / whole:.0%}"
        for kind, share in mix.kinds.items()
    )
    nodes = "" if mix.kinds == ONLY_A else f"; {_node_counts(mix)} nodes, rounded up"
    return (
        f"{mix.jobs} jobs: {kinds}; {mix.contiguous:.0%} contiguous{nodes}",
        f"seed {seed}; arrivals uniform over {within_s:g} s",
    )


def _node_counts(mix: WorkloadMix) -> str:
    """Return the sentence about how many nodes x cores take."""
    over = " or ".join(f"x/{divisor}" for divisor in mix.divisors)
    if not mix.cores_per_gpu:
        return f"kinds B to E on {over}"
    per_gpu = " or ".join(f"x/({cores}·GPUs)" for cores in mix.cores_per_gpu)
    return f"kind B on {over}, kinds C to E on {per_gpu}"
