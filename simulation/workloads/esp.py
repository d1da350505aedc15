"""The ESP-2 benchmark's jobs (Soner, table 7.1), and workloads of them, also with GPUs (7.3.1).

esp.csv has the table; beside it are the users and run times of dynamic ESP (Prabhakaran, table I).
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files

from ...cluster.checks import at_least
from ...cluster.errors import OptionError
from ...cluster.jobs import Request, Span
from ...cluster.workload import ClusterWorkload
from .named_clusters import (
    ARRIVAL_SHARE,
    EvenCluster,
    UndatedJob,
    gaussian_arrivals,
    make_workload,
    stream,
    theoretical_s,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EspType:
    """A job type of the benchmark, and of dynamic ESP.

    Attributes:
        name: its letter.
        size: the share of the machine that each job of it takes, exactly as printed.
        count: how many jobs of it a workload has.
        run_time_s: the run time at that size, in seconds.
        user: whose its jobs are in dynamic ESP, as the next two.
        static_s: the run time there without further cores.
        dynamic_s: the run time there with further cores; None: it asks for none.
    """

    name: str
    size: Fraction
    count: int
    run_time_s: int
    user: str
    static_s: int
    dynamic_s: int | None

    def units(self, machine: int) -> int:
        """Return the job's nodes or cores on a machine of so many: nearest, halves up, at least 1.

        Raises:
            InputError: the machine has no unit.
        """
        at_least(machine, 1, "machine")
        return max(1, int(self.size * machine + Fraction(1, 2)))


_ROWS = csv.DictReader(files(__package__).joinpath("esp.csv").read_text("utf-8").splitlines())
#: Tables 7.1 and I, in their order. The shares of 7.1 sum to 11 011 s of the whole machine; in
#: whole units of 32 to 256, powers of two, to the 10 984.25 s that the thesis prints.
ESP_TYPES: tuple[EspType, ...] = tuple(
    EspType(
        name=row["name"],
        size=Fraction(row["size"]),
        count=int(row["count"]),
        run_time_s=int(row["run_time_s"]),
        user=row["user"],
        static_s=int(row["static_s"]),
        dynamic_s=int(row["dynamic_s"]) if row["dynamic_s"] else None,
    )
    for row in _ROWS
)

#: The jobs of the whole machine, which ask for it at a time of their own.
FULL_MACHINE = "Z"
#: Fifty jobs come at once and one each 30 s after them (Nagendra, 7.3; Prabhakaran, IV-B).
_AT_ONCE, _EACH_S = 50, 30.0


def numbered_jobs(*, is_full: bool = False) -> list[tuple[EspType, int]]:
    """Return the jobs that ask for the whole machine, or the others: their types and numbers."""
    types = [entry for entry in ESP_TYPES if (entry.name == FULL_MACHINE) is is_full]
    return [(entry, number) for entry in types for number in range(entry.count)]


def comes_s(rank: int) -> float:
    """Return when a job comes, by its place in the order of submission."""
    return max(0, rank - _AT_ONCE + 1) * _EACH_S


def machine_seconds(types: Sequence[EspType] = ESP_TYPES) -> Fraction:
    """Return for how many seconds all jobs of these types keep the whole machine busy, exactly."""
    return sum((entry.size * entry.count * entry.run_time_s for entry in types), Fraction(0))


#: When the two jobs of the whole machine come; with GPUs twice as late, as all else is doubled.
FULL_MACHINE_S = (40 * 60.0, 120 * 60.0)
#: GPUs on each node of a copy.
_COPY_GPUS = 2
#: Times between arrivals: standard deviation over mean. At a half, 2 % would be negative and are 0.
_SD_OF_MEAN = 0.5


def esp_workload(
    cluster: EvenCluster,
    *,
    seed: int,
    gpus: bool = False,
    arrival_mean_s: float | None = None,
    arrival_sd_s: float | None = None,
) -> ClusterWorkload:
    """Return an ESP workload: 230 jobs, or 458 where each but Z has a copy with two GPUs a node.

    Sizes are whole nodes' cores, the nearest to the table's share. Z comes at 40 and 120 min (80
    and 240 min with GPUs), the others in random order with Gaussian times between them.

    Args:
        cluster: the machine, which table 7.1's sizes are shares of.
        seed: of the order and the arrivals.
        gpus: add the copies.
        arrival_mean_s: mean of the times between arrivals, seconds; None: it spreads them over the
            first quarter of the theoretical run time.
        arrival_sd_s: their standard deviation, seconds; None: half the mean.

    Raises:
        OptionError: copies are asked for on nodes with fewer than two GPUs.
    """
    if gpus and cluster.gpus < _COPY_GPUS:
        raise OptionError(f"esp-gpu needs {_COPY_GPUS} GPUs a node, the cluster has {cluster.gpus}")
    name = "esp-gpu" if gpus else "esp"
    small = [entry for entry in ESP_TYPES if entry.name != FULL_MACHINE]
    drafts = [
        draft for entry in small for _ in range(entry.count) for draft in _jobs(entry, cluster, gpus=gpus)
    ]
    full = [draft for entry in ESP_TYPES if entry.name == FULL_MACHINE for draft in _jobs(entry, cluster)]
    table_s = machine_seconds([*ESP_TYPES, *small] if gpus else ESP_TYPES)
    full_at_s = [time * (2 if gpus else 1) for time in FULL_MACHINE_S]
    quarter_s = ARRIVAL_SHARE * float(theoretical_s([*drafts, *full, *full], cluster))
    mean_s = quarter_s / (len(drafts) - 1) if arrival_mean_s is None else arrival_mean_s
    sd_s = _SD_OF_MEAN * mean_s if arrival_sd_s is None else arrival_sd_s
    stream(seed, name, "order").shuffle(drafts)
    arrivals = gaussian_arrivals(len(drafts), mean_s, sd_s, stream(seed, name, "arrivals"))
    return make_workload(
        name,
        cluster,
        [*zip(arrivals, drafts, strict=True), *((at_s, full[0]) for at_s in full_at_s)],
        (
            f"ESP, table 7.1, which sums to {float(table_s):.0f} s; sizes rounded to whole nodes",
            f"seed {seed}; times between arrivals Gaussian, mean {mean_s:g} s, standard deviation {sd_s:g} s",
        ),
    )


def _jobs(entry: EspType, cluster: EvenCluster, *, gpus: bool = False) -> list[UndatedJob]:
    """Return a job of a type, and its copy with GPUs."""
    cores = entry.units(cluster.nodes) * cluster.cores
    requests = [Request(cores=cores)]
    if gpus:
        requests.append(Request(cores=cores, gres_per_node={"gpu": Span.exactly(_COPY_GPUS)}))
    return [UndatedJob(request=request, run_time_s=entry.run_time_s) for request in requests]
