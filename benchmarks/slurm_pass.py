"""How long a pass of ``aucsched slurm run`` takes on a large queue: ``python benchmarks/slurm_pass.py``.

A real Slurm of 1408 nodes on this host, 2 000 jobs like table 8.6's behind the gate, and passes one after the
other; the first places what fits on the empty cluster, the others find it full. Printed: the phases by the
loop's own log, wall time, and the processor time of the loop with the commands that it runs. Then what sdiag
tells of slurmctld, for as long without the loop and with it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from against_slurm import asked, host_of, made
from slurm_host import missing, running_host

from aucsched.simulation.workloads.clusters import EvenCluster

_CYCLES = (("main scheduler", "Main schedule statistics"), ("backfill", "Backfilling stats"))


def main() -> None:
    """Start the cluster, fill its queue, run passes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=1408)
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--watch", type=float, default=30, help="seconds that sdiag is watched, each way")
    options = parser.parse_args()
    if problem := missing():
        sys.exit(f"slurm_pass.py: {problem}")
    cluster = EvenCluster(nodes=options.nodes)
    asking = argparse.Namespace(jobs=options.jobs, contiguous=0.0, largest=32, seed=1)
    workload = made(cluster, asking)
    more = "Licenses=auction:1000000\n"
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm-")))
        began = time.monotonic()
        host = host_of(cluster, workload, 100, more)
        environment = stack.enter_context(running_host(folder / "host", host))
        print(f"{options.nodes} nodes are up after {time.monotonic() - began:.0f} s", flush=True)
        _shell([sys.executable, "-m", "aucsched", "slurm", "gate", "up", "--for", "3600"], environment)

        def submit(options_of_job: list[str]) -> None:
            command = [
                "sbatch",
                "--parsable",
                "-o",
                "/dev/null",
                "-D",
                "/",
                "-L",
                "auction:1",
                *options_of_job,
            ]
            script = "#!/bin/sh\nexec sleep 3600\n"
            subprocess.run(command, input=script, text=True, check=True, capture_output=True, env=environment)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(submit, map(asked, workload.jobs)))
        print(f"{options.jobs} jobs wait after {time.monotonic() - began:.0f} s", flush=True)
        watched("without the loop", options.watch, environment)
        log = folder / "run.jsonl"
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        loop = [sys.executable, "-m", "aucsched", "slurm", "run", "--log", str(log), "--interval", "10"]
        _shell(["sdiag", "-r"], environment)
        _shell([*loop, "--passes", str(options.passes)], environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        told("with the loop", environment)
        spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        print(f"processor time of loop and commands: {spent / options.passes:.2f} s a pass, start included")
        for line in log.read_text().splitlines():
            entry = json.loads(line)
            if entry["event"] == "pass":
                names = ("read_s", "decide_s", "check_s", "place_s", "verify_s", "total_s")
                phases = ", ".join(f"{name.removesuffix('_s')} {entry[name]:.2f}" for name in names)
                print(f"pass {entry['number']}: {entry['waiting']} wait, {entry['pinned']} pinned; {phases}")


def _shell(command: list[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(command, check=False, capture_output=True, env=environment, text=True)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


def watched(what: str, seconds: float, environment: Mapping[str, str]) -> None:
    """Let time pass and print what slurmctld did in it."""
    _shell(["sdiag", "-r"], environment)
    time.sleep(seconds)
    told(what, environment)


def told(what: str, environment: Mapping[str, str]) -> None:
    """Print sdiag's mean cycles, and how long slurmctld takes to answer a question of one job."""
    text = _shell(["sdiag"], environment)
    for name, head in _CYCLES:
        found = re.search(r"Mean cycle:\s+(\d+)", text.partition(head)[2].partition("\n\n")[0])
        print(f"{what}: {name}'s mean cycle {found[1] if found else '-'} µs", flush=True)
    times = []
    for _ in range(20):
        began = time.perf_counter()
        _shell(["scontrol", "ping"], environment)
        times.append(time.perf_counter() - began)
    print(f"{what}: scontrol ping, median of 20: {1000 * sorted(times)[10]:.1f} ms", flush=True)


if __name__ == "__main__":
    main()
