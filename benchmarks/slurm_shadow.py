"""A shadow beside a real Slurm for a whole day of its clock: ``python benchmarks/slurm_shadow.py FOLDER``.

A cluster of a few nodes is started on this host, its clock fast; jobs arrive through the day and Slurm's
backfill starts them. ``aucsched slurm shadow`` looks each five minutes, and every command of Slurm's that it
runs is written down by a script of the same name in front of it. Asserted: none of them changes anything,
every job that Slurm started stands in the log once, with its start and its end. Then its report.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import ceil
from pathlib import Path

from against_slurm import host_of, made, submit
from slurm_host import fast_clock, missing, missing_clock, running_host

from aucsched import ArrivingJob, ClusterWorkload
from aucsched.simulation.workloads.named_clusters import EvenCluster

#: Slurm's commands that a user could run; each is listened to.
COMMANDS = (
    *("sacct", "sacctmgr", "salloc", "sbatch", "sbcast", "scancel", "scontrol", "sdiag", "sinfo", "sprio"),
    *("squeue", "srun", "sshare", "strigger"),
)
#: Those that only ask.
QUESTION = re.compile(
    r"squeue --json|sinfo --json|scontrol --version|scontrol (-[od] )?show [a-z_=, ]+( --json)?"
)
_DAY_S = 24 * 60 * 60


def main() -> None:
    """Start the cluster, the shadow and the jobs, wait for the day to end, check."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--speed", type=int, default=120, help="of the cluster's clock")
    parser.add_argument("--interval", type=int, default=300, help="of the shadow, seconds of that clock")
    options = parser.parse_args()
    if problem := missing() or missing_clock():
        sys.exit(f"slurm_shadow.py: {problem}")
    options.folder.mkdir(parents=True, exist_ok=True)
    cluster = EvenCluster(nodes=options.nodes)
    workload = through_a_day(
        made(cluster, argparse.Namespace(jobs=options.jobs, contiguous=0.0, largest=4, seed=1))
    )
    spied, log = options.folder / "spied.txt", options.folder / "shadow.jsonl"
    for file in (spied, log):
        file.unlink(missing_ok=True)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm-")))
        clock = stack.enter_context(fast_clock(options.speed))
        environment = stack.enter_context(
            running_host(folder / "host", host_of(cluster, workload, 100), clock)
        )
        end = time.monotonic() + _DAY_S / options.speed
        passes = ["--passes", str(_DAY_S // options.interval)]
        command = [sys.executable, "-m", "aucsched", "slurm", "shadow", "-o", str(log), *passes]
        stack.enter_context(
            running(
                [*command, "--interval", str(options.interval)], spying(folder / "bin", spied, environment)
            )
        )
        submit(workload.jobs, environment, options.speed)
        while time.monotonic() < end:
            time.sleep(1)
        started = (folder / "host" / "log" / "jobcomp.txt").read_text().splitlines()
    check(spied.read_text().splitlines(), log, {line.partition(" ")[0][6:] for line in started})
    report = [sys.executable, "-m", "aucsched", "slurm", "report", str(log)]
    print(subprocess.run(report, check=True, capture_output=True, text=True).stdout)


def through_a_day(workload: ClusterWorkload) -> ClusterWorkload:
    """Return a workload whose jobs arrive over the first 22 hours and run six times as long."""
    last_s = workload.jobs[-1].arrival_s

    def later(arriving: ArrivingJob) -> ArrivingJob:
        run_s = 6 * arriving.run_time_s
        return replace(
            arriving,
            arrival_s=float(arriving.arrival_s) / float(last_s) * 22 / 24 * _DAY_S,
            run_time_s=run_s,
            job=replace(arriving.job, time_limit_s=60 * (ceil(run_s / 60) + 5)),
        )

    return replace(workload, jobs=tuple(map(later, workload.jobs)))


def spying(folder: Path, spied: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which each of Slurm's commands is written down before it is run."""
    folder.mkdir()
    for name in COMMANDS:
        script = folder / name
        script.write_text(f'#!/bin/sh\necho "{name} $*" >> {spied}\nexec /usr/bin/{name} "$@"\n')
        script.chmod(0o755)
    return {**environment, "PATH": f"{folder}:{os.environ['PATH']}"}


@contextlib.contextmanager
def running(command: list[str], environment: Mapping[str, str]) -> Iterator[None]:
    """Run a process meanwhile; SIGTERM ends it."""
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=60)


def check(spied: list[str], log: Path, ended: set[str]) -> None:
    """Assert that only questions were asked, and that what Slurm ran was seen."""
    counts = Counter(spied)
    changing = [command for command in counts if not QUESTION.fullmatch(command)]
    assert not changing, changing
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    started = Counter(str(job["id"]) for entry in entries for job in entry.get("started", ()))
    assert set(started.values()) <= {1}, "a job's start is listed twice"
    missed = ended - set(started)
    hours = (entries[-1]["time"] - entries[0]["time"]) / 3600
    print(f"{len(entries)} passes in {hours:.1f} hours of the clock; {len(spied)} commands, all questions:")
    for command, count in counts.most_common():
        print(f"  {count:5} {command}")
    print(
        f"{len(ended)} jobs ended by Slurm's log, {len(started)} starts in the shadow's, {len(missed)} missed"
    )
    assert not missed, missed


if __name__ == "__main__":
    main()
