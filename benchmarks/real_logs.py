"""The logs of real.py, what makes them doubtful, and how one is played."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from aucsched.cluster.workload import ClusterWorkload
from aucsched.formats.alibaba import import_alibaba
from aucsched.formats.alibaba_options import AlibabaOptions
from aucsched.formats.swf import load_swf
from aucsched.simulation.backfilling.easy import Easy
from aucsched.simulation.log_columns import Workload, workload_from_swf
from aucsched.simulation.logs.counts import simulate_counts
from aucsched.simulation.logs.policies import play_log
from aucsched.simulation.nodes.node_policies import NodeOptions, play
from aucsched.simulation.result import Simulation
from aucsched.simulation.simulate_options import PolicyOptions
from aucsched.simulation.workloads.imported import workload_of_log
from aucsched.simulation.workloads.named_clusters import EvenCluster
from aucsched.slurm.site.scheduler_log import import_events

#: Name -> file under swf, and processors where the header is not to be believed.
LOGS: Mapping[str, tuple[str, int | None]] = {
    "KTH-SP2": ("KTH-SP2-1996-2.swf", 100),
    "SDSC-SP2 first 5k": ("SDSC-SP2-1998-4-first5k.swf", None),
    "HPC2N first": ("HPC2N-first.swf", None),
    "theta 2023": ("theta_2023.swf", None),
}
UB, ALIBABA = "UB week", "Alibaba 2023"
CLUSTERS = (UB, ALIBABA)
#: A log on nodes of two processors, as the machine had them.
DOUBTED_NODES = "HPC2N on nodes"
_SDSC = EvenCluster(nodes=128, cores=1, gpus=0, tree=False)
_KTH = EvenCluster(nodes=100, cores=1, gpus=0, tree=False)
#: Name -> log, its jobs from which up to which, and the nodes that they are put on. Promises have constants
#: that were chosen on them.
ON_NODES: Mapping[str, tuple[str, slice, EvenCluster]] = {
    DOUBTED_NODES: ("HPC2N first", slice(None), EvenCluster(nodes=120, cores=2, gpus=0, tree=False)),
    "KTH-SP2 1-2500 on nodes": ("KTH-SP2", slice(2500), _KTH),
    "SDSC-SP2 1-1500 on nodes": ("SDSC-SP2 first 5k", slice(1500), _SDSC),
    "SDSC-SP2 1501-3000 on nodes": ("SDSC-SP2 first 5k", slice(1500, 3000), _SDSC),
    "SDSC-SP2 3001-4500 on nodes": ("SDSC-SP2 first 5k", slice(3000, 4500), _SDSC),
    "KTH-SP2 2501-5000 on nodes": ("KTH-SP2", slice(2500, 5000), _KTH),
    "KTH-SP2 on nodes": ("KTH-SP2", slice(None), _KTH),
}
#: The baseline to beat: EASY, first whom waited a day in the order of submission, then the shortest.
OVERDUE = "overdue"
_DAY_S = 86_400


def _estimates(workload: Workload, factor: float) -> Workload:
    asked = workload.requests
    return replace(workload, requests=replace(asked, estimate=tuple(one * factor for one in asked.estimate)))


def _exact(workload: Workload) -> Workload:
    return replace(workload, requests=replace(workload.requests, estimate=workload.run))


def _crowded(workload: Workload) -> Workload:
    asked = workload.requests
    return replace(workload, requests=replace(asked, submit=tuple(one / 1.2 for one in asked.submit)))


DOUBTS: Mapping[str, Callable[[Workload], Workload]] = {
    "exact estimates": _exact,
    "estimates × 2": lambda workload: _estimates(workload, 2),
    "estimates × 5": lambda workload: _estimates(workload, 5),
    "estimates × 10": lambda workload: _estimates(workload, 10),
    "arrivals × 1.2": _crowded,
}
NODE_DOUBTS: Mapping[str, Mapping[str, float]] = {
    "passes every 300 s": {"interval_s": 300.0},
    "nodes fail": {"interval_s": 300.0, "mtbf_s": 30 * _DAY_S, "mttr_s": 4 * 3600.0},
    "passes every 30 s": {"interval_s": 30.0},
    "passes every 1 s": {"interval_s": 1.0},
}


def is_here(log: str, data: Path) -> bool:
    """Return whether a log's files are in the data's folder."""
    if log in CLUSTERS:
        return (data / ("ub" if log == UB else "gpu")).is_dir()
    return (data / "swf" / LOGS[ON_NODES[log][0] if log in ON_NODES else log][0]).is_file()


@cache
def _log(name: str, data: Path) -> Workload:
    file, processors = LOGS[name]
    return workload_from_swf(load_swf(data / "swf" / file), processors=processors)


@cache
def _cluster(name: str, data: Path) -> ClusterWorkload:
    if name in ON_NODES:
        log, part, cluster = ON_NODES[name]
        read = load_swf(data / "swf" / LOGS[log][0])
        return part_of_cluster(workload_of_log(name, read, cluster.empty())[0], part)
    if name == UB:
        return import_events(data / "ub" / "workload_week.events.gz", data / "ub")[0]
    nodes, pods = (data / "gpu" / f"openb_{kind}.csv" for kind in ("node_list_gpu_node", "pod_list_default"))
    options = AlibabaOptions(gpus="separate", time_limits="run-time")
    return import_alibaba(nodes, pods, options)[0]


def part_of_cluster(workload: ClusterWorkload, part: slice) -> ClusterWorkload:
    """Return a workload of some of the jobs, from the arrival of the first on."""
    jobs = workload.jobs[part]
    first = jobs[0].arrival_s
    return replace(workload, jobs=tuple(replace(job, arrival_s=job.arrival_s - first) for job in jobs))


def played(log: str, doubt: str, options: Mapping[str, Any], data: Path) -> tuple[Simulation, int]:
    """Play a log; return the result and how many jobs can never start."""
    if log in LOGS:
        workload = _log(log, data)
        workload = DOUBTS[doubt](workload) if doubt else workload
        if options["policy"] == OVERDUE:
            return play_overdue(workload), 0
        told = {name: value for name, value in options.items() if name not in ("policy", "order")}
        order = options.get("order", "fcfs")
        return play_log(workload, options["policy"], order=order, options=PolicyOptions(**told)), 0
    result = play(_cluster(log, data), NodeOptions(**options))
    return result, len(result.record.never)


def play_overdue(workload: Workload) -> Simulation:
    """Play EASY in the order of who has waited a day, by submission, then the shortest."""
    asked = workload.requests

    def sort(now: float, queue: list[int]) -> None:
        queue.sort(
            key=lambda job: (
                (0, asked.submit[job], job)
                if now - asked.submit[job] >= _DAY_S
                else (1, asked.estimate[job], job)
            )
        )

    starts = simulate_counts(workload, Easy(asked, sort))
    return Simulation(workload=workload, policy=OVERDUE, order="fcfs", starts=tuple(starts), seconds=0.0)
