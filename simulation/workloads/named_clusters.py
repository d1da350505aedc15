"""The common part of the generators: the papers' clusters, random numbers, arrivals, workloads."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random
from typing import TypeVar

from ...cluster.jobs import Job, Request
from ...cluster.nodes import Node, Resources, Switch, in_groups
from ...cluster.workload import ArrivingJob, ClusterWorkload, basic_priority

#: Nodes below a leaf switch, and leaves below a switch of the second level (Soner, section 8.4).
LEAF_NODES = 16
SWITCH_LEAVES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class EvenCluster:
    """A cluster of equal nodes.

    Attributes:
        nodes: how many.
        cores, gpus: of each node.
        tree: nodes below leaf switches, leaves below switches, one switch above all; False is the
            linear topology.
        leaf_nodes: nodes below a leaf switch.
        switch_leaves: leaves below a switch of the second level.
    """

    nodes: int = 1408
    cores: int = 12
    gpus: int = 3
    tree: bool = True
    leaf_nodes: int = LEAF_NODES
    switch_leaves: int = SWITCH_LEAVES

    @property
    def total_cores(self) -> int:
        """The cores of all nodes."""
        return self.nodes * self.cores

    def empty(self) -> ClusterWorkload:
        """Return the cluster without jobs."""
        return ClusterWorkload(name="", nodes=self.build_nodes(), switches=self.build_switches())

    def build_nodes(self) -> tuple[Node, ...]:
        """Return the nodes, named n0001 … in order."""
        amount = Resources(cores=self.cores, gres={"gpu": self.gpus} if self.gpus else {})
        return tuple(Node(name=name, total=amount, free=amount) for name in node_names(self.nodes))

    def build_switches(self) -> tuple[Switch, ...] | None:
        """Return the switches, leaves first; None is the linear topology."""
        if not self.tree:
            return None
        groups = in_groups(node_names(self.nodes), self.leaf_nodes)
        leaves = _names("leaf", len(groups))
        switches = [Switch(name=name, nodes=nodes) for name, nodes in zip(leaves, groups, strict=True)]
        tops = leaves
        if len(leaves) > self.switch_leaves:
            groups = in_groups(leaves, self.switch_leaves)
            tops = _names("switch", len(groups))
            switches += [Switch(name=name, switches=below) for name, below in zip(tops, groups, strict=True)]
        if len(tops) > 1:
            switches.append(Switch(name="root", switches=tops))
        return tuple(switches)


#: Tsubame 2.0 and 2.5 as emulated (Soner, 8.3 and 8.4.2), and the hypothetical machine (8.4.1).
TSUBAME = EvenCluster()
HYPOTHETICAL = EvenCluster(nodes=1024, cores=16)


def node_names(count: int) -> tuple[str, ...]:
    """Return names of that many nodes."""
    return _names("n", count)


def _names(prefix: str, count: int) -> tuple[str, ...]:
    width = len(str(count))
    return tuple(f"{prefix}{number:0{width}}" for number in range(1, count + 1))


T = TypeVar("T")

#: Arrivals are spread over this share of the theoretical run time where the papers say nothing.
ARRIVAL_SHARE = 0.25
#: Run times in the thesis's own workloads, seconds, uniform between the two (section 7.3.2).
RUN_TIMES_S = (60, 600)


@dataclass(frozen=True, slots=True, kw_only=True)
class UndatedJob:
    """A job before it has an arrival and a number.

    Attributes:
        request: its fewest cores count in the theoretical run time (7.2).
        run_time_s: with the fewest GPUs, in seconds; its time limit too.
        gres_run_time_factor: N of (7.1) for jobs with a range of GPUs.
    """

    request: Request
    run_time_s: int
    gres_run_time_factor: float | None = None


def stream(*key: object) -> Random:
    """Return a stream of random numbers for each key: draws of one never shift another's."""
    # Python promises the same numbers for the same text in every version.
    return Random("/".join(map(str, key)))  # noqa: S311 - workloads, not secrets


def theoretical_s(drafts: Iterable[UndatedJob], cluster: EvenCluster) -> Fraction:
    """Return the theoretical run time in seconds: run time × cores over the cluster's (7.2)."""
    work = sum(draft.run_time_s * draft.request.fewest_cores for draft in drafts)
    return Fraction(work, cluster.total_cores)


def in_shares(shares: Mapping[T, int], count: int, random: Random) -> list[T]:
    """Return ``count`` of the keys in random order, each by its share, to the nearest whole.

    What rounding leaves goes to the largest remainders, the first key first.
    """
    whole = sum(shares.values())
    counts = {key: share * count // whole for key, share in shares.items()}
    by_remainder = sorted(shares, key=lambda key: -(shares[key] * count % whole))
    for key in by_remainder[: count - sum(counts.values())]:
        counts[key] += 1
    keys = [key for key, number in counts.items() for _ in range(number)]
    random.shuffle(keys)
    return keys


def uniform_arrivals(count: int, within_s: float, random: Random) -> list[float]:
    """Return arrivals uniform over a time, in milliseconds' precision, ascending."""
    return sorted(round(random.random() * within_s, 3) for _ in range(count))


def gaussian_arrivals(count: int, mean_s: float, sd_s: float, random: Random) -> list[float]:
    """Return arrivals with Gaussian gaps, negative ones taken as 0; the first comes at 0."""
    arrivals = [0.0] if count else []
    for _ in range(count - 1):
        arrivals.append(arrivals[-1] + max(0.0, random.gauss(mean_s, sd_s)))
    return [round(arrival, 3) for arrival in arrivals]


def make_workload(
    name: str,
    cluster: EvenCluster,
    arrivals: Sequence[tuple[float, UndatedJob]],
    notes: Iterable[str],
) -> ClusterWorkload:
    """Return the workload of drafts by arrival (s), which gives numbers and basic priorities."""
    ordered = sorted(arrivals, key=lambda pair: pair[0])
    jobs = tuple(_arriving(rank, arrival_s, draft) for rank, (arrival_s, draft) in enumerate(ordered))
    seconds = float(theoretical_s((draft for _, draft in ordered), cluster))
    notes = (*notes, f"theoretical run time {seconds:.1f} s ({seconds / 3600:.2f} h)")
    return replace(cluster.empty(), name=name, jobs=jobs, notes=notes)


def _arriving(rank: int, arrival_s: float, draft: UndatedJob) -> ArrivingJob:
    job = Job(
        id=str(rank + 1),
        priority=basic_priority(rank),
        request=draft.request,
        time_limit_s=draft.run_time_s,
    )
    return ArrivingJob(
        job=job,
        arrival_s=arrival_s,
        run_time_s=draft.run_time_s,
        gres_run_time_factor=draft.gres_run_time_factor,
    )
