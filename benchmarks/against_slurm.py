"""Our backfill-slurm beside real Slurm, the same jobs on one cluster: ``python benchmarks/against_slurm.py``.

Needs Debian's slurm-wlm and faketime. A cluster of equal nodes is started on this host (slurm_host.py), its
clock ten times as fast; the jobs of a workload like table 8.6's mix, or with ``--table`` those of a table of
the thesis, are submitted as they arrive and sleep for their run time under sched/backfill. That takes five
minutes by default. Then our simulator plays the same jobs: each arrives when Slurm says that it got it, runs
for the time that it held its nodes there (on a fast clock the daemons add to it), and backfilling looks at
the queue as often as sdiag says that Slurm's did. Printed for both: utilisation, (7.2) with those times, over
the time from the first submission to the last end.

Slurm's parameters are those of ``_SITE``: it looks at ``--depth`` jobs of the queue and plans more often than
by default. Its backfill keeps whole nodes for every job that it looks at, which backfill-planned does too;
backfill-slurm, EASY, keeps cores for the first blocked one only, and lets more jobs pass.
"""

from __future__ import annotations

import argparse
import getpass
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

import numpy as np
from slurm_host import SlurmHost, fast_clock, missing, missing_clock, running_host

from aucsched import ArrivingJob, ClusterWorkload
from aucsched.formats.hostlist import expand
from aucsched.simulation.nodes.node_policies import NodeOptions, play
from aucsched.simulation.workloads.named_clusters import (
    EvenCluster,
    make_workload,
    stream,
    theoretical_s,
    uniform_arrivals,
)
from aucsched.simulation.workloads.soner import ALL_KINDS, TABLES, WorkloadMix, draw_jobs, table_workload
from aucsched.simulation.workloads.workload_options import TableOptions
from aucsched.topology.tree import topology_of

_MINUTE_S = 60
#: Slurm's bf_interval; its daemon takes about as long for a pass at ten times the clock.
_INTERVAL_S = 10
_POLICIES = ("backfill-slurm", "backfill-planned")
_SITE = """\
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000,default_queue_depth={depth},\
partition_job_depth={depth},bf_interval={interval},bf_resolution=1,bf_max_job_test={depth},bf_continue
PriorityType=priority/basic
JobCompType=jobcomp/filetxt
JobCompLoc={{folder}}/log/jobcomp.txt
MaxJobCount=20000
MinJobAge=600
EpilogMsgTime=1
TreeWidth=65533
NodeName=DEFAULT CPUs={cores} Sockets=1 CoresPerSocket={cores} RealMemory=1000 Gres=gpu:{gpus}
NodeName={names} {{common}} Port={ports}
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
_GRES = "AutoDetect=off\nName=gpu File={{folder}}/dev/gpu[0-{last}]\n"
_TIME = "%Y-%m-%dT%H:%M:%S"
_CYCLES = "# backfill cycles: "
#: In jobcomp's line of a job that Slurm started and took back itself: it waits again.
PUT_BACK = "JobState=PENDING"
_FIELD = re.compile(r"(\w+)=(\S*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What became of a job, times in seconds of the cluster's clock."""

    submit_s: float
    start_s: float
    end_s: float
    nodes: tuple[str, ...]


def main() -> None:
    """Run both and print them side by side."""
    options = _options()
    is_kept = options.log is not None and options.log.exists()
    if not is_kept and (problem := missing() or (missing_clock() if options.speed > 1 else "")):
        sys.exit(f"against_slurm.py: {problem}")
    cluster = TABLES[options.table].cluster if options.table else EvenCluster(nodes=options.nodes)
    workload = from_table(options) if options.table else made(cluster, options)
    print(
        f"{len(workload.jobs)} jobs on {cluster.nodes} nodes of {cluster.cores} cores, {cluster.gpus} GPUs",
        flush=True,
    )
    print("; ".join(workload.notes), flush=True)
    if is_kept:
        log = options.log.read_text()
    else:
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
            log = on_slurm(Path(folder) / "host", cluster, workload, options)
        print(f"Slurm took {time.monotonic() - began:.0f} s at {options.speed} times the clock", flush=True)
        if options.log is not None:
            options.log.write_text(log)
    compare(workload, log, options.depth)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", choices=list(TABLES), help="its workload --id instead; contiguity dropped")
    parser.add_argument("--id", default="5", help="of the table's workload")
    parser.add_argument("--jobs", type=int, default=350)
    parser.add_argument("--nodes", type=int, default=256)
    parser.add_argument(
        "--largest", type=int, default=8, help="whole nodes' cores that the largest job asks for"
    )
    parser.add_argument("--contiguous", type=float, default=0.0, help="share of the jobs")
    parser.add_argument("--depth", type=int, default=100, help="jobs of the queue that a pass looks at")
    parser.add_argument("--speed", type=int, default=10, help="of the cluster's clock")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path, help="Slurm's job log: read where it is, else written")
    return parser.parse_args()


def from_table(options: argparse.Namespace) -> ClusterWorkload:
    """Return a table's workload, whose jobs ask for cores and nodes; see ``made`` for its limits."""
    drop = TableOptions(contiguity="honour" if options.table == "8.5" else "drop")
    workload = table_workload(options.table, options.id, seed=options.seed, options=drop)
    return replace(workload, jobs=tuple(_in_minutes(arriving) for arriving in workload.jobs))


def made(cluster: EvenCluster, options: argparse.Namespace) -> ClusterWorkload:
    """Return the workload; limits are whole minutes, as Slurm counts them, and never end a job."""
    mix = WorkloadMix(
        kinds=ALL_KINDS,
        jobs=options.jobs,
        contiguous=options.contiguous,
        divisors=(4, 8),
        ranges=False,
        most_whole_nodes=options.largest,
    )
    key = (options.seed, "against slurm")
    drafts = draw_jobs(mix, cluster, *key)
    within_s = float(theoretical_s(drafts, cluster)) / 4
    arrivals = uniform_arrivals(len(drafts), within_s, stream(*key, "arrivals"))
    workload = make_workload("against-slurm", cluster, list(zip(arrivals, drafts, strict=True)), ())
    return replace(workload, jobs=tuple(_in_minutes(arriving) for arriving in workload.jobs))


def _in_minutes(arriving: ArrivingJob) -> ArrivingJob:
    limit = (ceil(arriving.run_time_s / _MINUTE_S) + 1) * _MINUTE_S
    return replace(arriving, job=replace(arriving.job, time_limit_s=limit))


def on_slurm(
    folder: Path, cluster: EvenCluster, workload: ClusterWorkload, options: argparse.Namespace
) -> str:
    """Run the jobs on a real Slurm; return its log of them."""
    host = host_of(cluster, workload, options.depth)
    with fast_clock(options.speed) as clock, running_host(folder, host, clock) as environment:
        submit(workload.jobs, environment, options.speed)
        wait_for(len(workload.jobs), folder, environment)
        log = (folder / "log" / "jobcomp.txt").read_text()
        return log + backfill_cycles(environment)


def host_of(cluster: EvenCluster, workload: ClusterWorkload, depth: int, more: str = "") -> SlurmHost:
    """Return the cluster that the jobs run on; ``more`` are further lines of its slurm.conf."""
    names = tuple(node.name for node in workload.nodes)
    site = _SITE.format(
        names=",".join(names),
        cores=cluster.cores,
        gpus=cluster.gpus,
        depth=depth,
        interval=_INTERVAL_S,
        ports=f"[{{p0}}-{{p{len(names) - 1}}}]",
    )
    return SlurmHost(
        nodes=names,
        site=site + more,
        gres=_GRES.format(last=cluster.gpus - 1),
        topology="\n".join(_switches(workload)),
    )


def _switches(workload: ClusterWorkload) -> Iterable[str]:
    for switch in workload.switches or ():
        below = f"Nodes={','.join(switch.nodes)}" if switch.nodes else f"Switches={','.join(switch.switches)}"
        yield f"SwitchName={switch.name} {below}"
    yield ""


def submit(
    jobs: Iterable[ArrivingJob], environment: Mapping[str, str], speed: int, more: Sequence[str] = ()
) -> list[str]:
    """Submit each job when it arrives, return Slurm's numbers; ``more`` are further options of sbatch."""
    began, numbers = time.monotonic(), list[str]()
    for arriving in jobs:
        time.sleep(max(0.0, began + arriving.arrival_s / speed - time.monotonic()))
        command = ["sbatch", "--parsable", "-o", "/dev/null", "-D", "/tmp", *more, *asked(arriving)]  # noqa: S108
        script = f"#!/bin/sh\nexec sleep {arriving.run_time_s:g}\n"
        done = subprocess.run(
            command, input=script, text=True, check=True, capture_output=True, env=environment
        )
        numbers.append(done.stdout.strip())
    return numbers


def asked(arriving: ArrivingJob) -> list[str]:
    """Return sbatch's options for a job of table 7.3."""
    request, limit_s = arriving.job.request, arriving.job.time_limit_s
    assert limit_s is not None
    options = [f"--job-name={arriving.job.id}", f"--ntasks={request.cores}", f"--time={limit_s // _MINUTE_S}"]
    if request.nodes is not None:
        options.append(f"--nodes={request.nodes.minimum}")
    if "gpu" in request.gres_per_node:
        options.append(f"--gres=gpu:{request.gres_per_node['gpu'].minimum}")
    if request.contiguous:
        options.append("--contiguous")
    return options


def wait_for(count: int, folder: Path, environment: Mapping[str, str]) -> None:
    """Wait until every job has ended and stands in the log."""
    log = folder / "log" / "jobcomp.txt"
    done = 0
    while done < count:
        time.sleep(2)
        # A controller that is killed may record an end twice, and may put a job that it started back.
        lines = log.read_text().splitlines() if log.exists() else []
        done = len({line.partition(" ")[0] for line in lines if PUT_BACK not in line})
        if sys.stderr.isatty():
            print(f"\r{done} of {count} jobs", end="", file=sys.stderr)
    subprocess.run(
        ["squeue", "-h", "-u", getpass.getuser()], check=True, capture_output=True, env=environment
    )


def backfill_cycles(environment: Mapping[str, str]) -> str:
    """Return a line for the log: how often Slurm's backfill looked at the queue, by sdiag."""
    answer = subprocess.run(["sdiag"], check=True, capture_output=True, env=environment, text=True)
    _, _, backfill = answer.stdout.partition("Backfilling stats")
    found = re.search(r"Total cycles: (\d+)", backfill)
    assert found, f"sdiag does not tell the backfill's cycles: {answer.stdout}"
    return f"{_CYCLES}{found[1]}\n"


def read_log(text: str, ends: Collection[str] = ("COMPLETED",)) -> dict[str, Ran]:
    """Return jobcomp's records by job name; ``ends``: the states in which a job may have ended."""
    found: dict[str, Ran] = {}
    for line in text.splitlines():
        if line.startswith("#") or PUT_BACK in line:
            continue
        fields = dict(_FIELD.findall(line))
        submit, start, end = (
            time.mktime(time.strptime(fields[key], _TIME)) for key in ("SubmitTime", "StartTime", "EndTime")
        )
        if fields["Name"] in found and found[fields["Name"]].start_s == start:
            continue  # A controller that was killed forgot the end, and told it of the same start again.
        assert fields["JobState"] in ends, f"Slurm did not complete job {fields['Name']}: {line}"
        found[fields["Name"]] = Ran(
            submit_s=submit, start_s=start, end_s=end, nodes=expand(fields["NodeList"])
        )
    return found


def compare(workload: ClusterWorkload, log: str, depth: int) -> None:
    """Check that Slurm completed every job, play the same jobs, and print both."""
    theirs = read_log(log)
    lost = [arriving.job.id for arriving in workload.jobs if arriving.job.id not in theirs]
    assert not lost, f"Slurm's log lacks jobs {lost}"
    began = min(entry.submit_s for entry in theirs.values())
    as_submitted = sorted(
        (as_held(arriving, theirs[arriving.job.id], began) for arriving in workload.jobs),
        key=lambda arriving: (arriving.arrival_s, int(arriving.job.id)),
    )
    played = replace(workload, jobs=tuple(as_submitted))
    interval_s = backfill_interval(log, theirs)
    columns = {"Slurm": figures(played, theirs)}
    for policy in _POLICIES:
        columns[policy] = figures(played, ours(played, policy, depth, interval_s))
    print(f"{'':24}" + "".join(f"{name:>18}" for name in columns))
    for name, form in _FORMS.items():
        print(f"{name:24}" + "".join(f"{format(values[name], form):>18}" for values in columns.values()))
    late_s = sum(entry.end_s - entry.start_s for entry in theirs.values())
    asked_s = sum(arriving.run_time_s for arriving in workload.jobs)
    print(f"Slurm's jobs held their nodes {late_s / asked_s - 1:.2%} longer than their run times")
    print(f"its backfill looked at the queue every {interval_s:.1f} s")
    for policy in _POLICIES:
        difference = columns[policy]["utilisation"] - columns["Slurm"]["utilisation"]
        print(f"utilisation of {policy} differs by {100 * difference:+.2f} points")


def as_held(arriving: ArrivingJob, theirs: Ran, began: float) -> ArrivingJob:
    """Return a job that arrives when Slurm got it and runs as long as it held its nodes there."""
    held_s = theirs.end_s - theirs.start_s
    limit_s = arriving.job.time_limit_s
    assert limit_s is not None
    what = f"job {arriving.job.id} held its nodes for {held_s:g} of {limit_s} s: is the log of other jobs?"
    assert held_s <= limit_s, what
    return replace(arriving, arrival_s=theirs.submit_s - began, run_time_s=held_s)


def backfill_interval(log: str, theirs: Mapping[str, Ran]) -> float:
    """Return how often Slurm's backfill really looked at the queue while there was one, in seconds."""
    found = re.search(rf"^{_CYCLES}(\d+)", log, re.MULTILINE)
    if found is None or found[1] == "0":
        return _INTERVAL_S
    began, last = min(entry.submit_s for entry in theirs.values()), max(e.start_s for e in theirs.values())
    return max(_INTERVAL_S, (last - began) / int(found[1]))


def ours(workload: ClusterWorkload, policy: str, depth: int, backfill_interval_s: float) -> dict[str, Ran]:
    """Play the jobs under one of our policies; it looks behind the first blocked job as often as Slurm."""
    result = play(workload, NodeOptions(policy=policy, window=depth, backfill_interval_s=backfill_interval_s))
    assert not result.record.never, result.record.never
    names = [node.name for node in workload.nodes]
    return {
        played.demand.job.id: Ran(
            submit_s=workload.jobs[played.demand.index].arrival_s,
            start_s=played.start_s,
            end_s=played.start_s + played.run_s,
            nodes=tuple(names[node] for node in played.allocation.nodes),
        )
        for played in result.played
    }


_FORMS = {
    "utilisation": ".2%",
    "makespan, s": ".0f",
    "mean wait, s": ".0f",
    "longest wait, s": ".0f",
    "nodes a job": ".2f",
    "span": ".1f",
    "lowest common switch": ".3f",
}


def figures(workload: ClusterWorkload, ran: Mapping[str, Ran]) -> dict[str, float]:
    """Return metrics (docs/simulation.md) by the names of ``_FORMS``, of Slurm's record and of ours."""
    index = {node.name: place for place, node in enumerate(workload.nodes)}
    cores = sum(node.total.cores for node in workload.nodes)
    work = sum(arriving.run_time_s * arriving.job.request.fewest_cores for arriving in workload.jobs)
    makespan = max(entry.end_s for entry in ran.values()) - min(entry.submit_s for entry in ran.values())
    waits = [entry.start_s - entry.submit_s for entry in ran.values()]
    nodes = [np.sort([index[name] for name in entry.nodes]) for entry in ran.values()]
    topology = topology_of(replace(workload, jobs=()).snapshot())
    switches = topology.common_switch_of_sets(np.cumsum([0, *map(len, nodes)]), np.concatenate(nodes))
    return {
        "utilisation": work / cores / makespan,
        "makespan, s": makespan,
        "mean wait, s": float(np.mean(waits)),
        "longest wait, s": max(waits),
        "nodes a job": float(np.mean([len(held) for held in nodes])),
        "span": float(np.mean([held[-1] - held[0] + 1 for held in nodes])),
        "lowest common switch": float(np.mean(topology.level[switches])),
    }


if __name__ == "__main__":
    main()
