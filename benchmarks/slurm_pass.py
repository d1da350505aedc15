"""How long a pass of ``aucsched slurm run`` takes on a large queue: ``python benchmarks/slurm_pass.py``.

A real Slurm of 1408 nodes on this host, 2 000 jobs like table 8.6's behind the gate, and passes one after the
other; the first places what fits on the empty cluster, the others find it full. Printed: the phases by the
loop's own log, wall time, and the processor time of the loop with its commands, and of slurmctld. Then, on
the full cluster, how slurmctld answers somebody else's questions of one job: by sdiag, which counts its own
time, and as they are waited for; turn by turn while the loop runs and while it does not.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from against_slurm import asked, host_of, made
from slurm_host import missing, running_host

from aucsched.simulation.workloads.named_clusters import EvenCluster


def main() -> None:
    """Start the cluster, fill its queue, run passes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=1408)
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--watch", type=float, default=20, help="seconds of each turn")
    parser.add_argument("--turns", type=int, default=3, help="without the loop, with it")
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
        log = folder / "run.jsonl"
        loop = [sys.executable, "-m", "aucsched", "slurm", "run", "--log", str(log), "--interval", "10"]
        with timed(folder / "host", options.passes):
            _shell([*loop, "--passes", str(options.passes)], environment)
        tell_passes(log)
        process = subprocess.Popen(loop, env=environment, stderr=subprocess.DEVNULL)
        time.sleep(options.watch)
        found: dict[str, list[Answers]] = {"without the loop": [], "with the loop": []}
        for _ in range(options.turns):
            # Stopped and not ended: what a start costs is no part of it.
            process.send_signal(signal.SIGSTOP)
            found["without the loop"].append(probed(options.watch, environment))
            process.send_signal(signal.SIGCONT)
            found["with the loop"].append(probed(options.watch, environment))
        process.terminate()
        process.wait()
        compare(found)


@contextlib.contextmanager
def timed(host: Path, passes: int) -> Iterator[None]:
    """Print the processor time that is spent meanwhile, a pass."""
    pid = (host / "run" / "slurmctld.pid").read_text().strip()
    before, theirs = resource.getrusage(resource.RUSAGE_CHILDREN), _processor_s(pid)
    yield
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    print(f"processor time of loop and commands: {spent / passes:.2f} s a pass, start included")
    print(f"processor time of slurmctld: {(_processor_s(pid) - theirs) / passes:.2f} s a pass", flush=True)


def _processor_s(pid: str) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def tell_passes(log: Path) -> None:
    """Print the phases of each pass, wall time."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """How slurmctld answered for a while.

    Attributes:
        own_us: its own time for a question of one job, the mean by sdiag.
        waits_ms: what each question was waited for.
        cycle_us: the main scheduler's mean cycle.
    """

    own_us: float
    waits_ms: list[float]
    cycle_us: float


def probed(seconds: float, environment: Mapping[str, str]) -> Answers:
    """Ask slurmctld for one job five times a second, and sdiag at the end."""
    _shell(["sdiag", "-r"], environment)
    waits, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.perf_counter()
        _shell(["scontrol", "show", "job", "1"], environment)
        waits.append(1000 * (time.perf_counter() - began))
        time.sleep(0.2)
    text = _shell(["sdiag"], environment)
    own = re.search(r"REQUEST_JOB_INFO_SINGLE .*?ave_time:(\d+)", text)
    cycle = re.search(r"Main schedule.*?Mean cycle:\s+(\d+)", text, re.DOTALL)
    assert own, text
    return Answers(own_us=float(own[1]), waits_ms=waits, cycle_us=float(cycle[1]) if cycle else 0.0)


def compare(found: Mapping[str, list[Answers]]) -> None:
    """Print both ways' answers, and by how much the loop's are worse."""
    own: dict[str, float] = {}
    for what, turns in found.items():
        waits = sorted(wait for turn in turns for wait in turn.waits_ms)
        own[what] = statistics.median(turn.own_us for turn in turns)
        each = ", ".join(f"{turn.own_us:.0f}" for turn in turns)
        late = waits[len(waits) * 95 // 100]
        print(f"{what}: sdiag's mean of a question, median of turns {own[what]:.0f} µs ({each})", end="; ")
        print(f"waited for, median {statistics.median(waits):.1f} ms, p95 {late:.1f} ms")
        print(f"{what}: main scheduler's mean cycle {statistics.mean(t.cycle_us for t in turns):.0f} µs")
    without, beside = own["without the loop"], own["with the loop"]
    print(f"slurmctld's own time for a question: {100 * (beside / without - 1):+.1f} % with the loop")


if __name__ == "__main__":
    main()
