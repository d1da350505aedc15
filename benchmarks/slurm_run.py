"""``aucsched slurm run`` beside Slurm's own backfill, on a real Slurm: ``benchmarks/slurm_run.py FOLDER``.

The clusters and jobs of against_slurm.py: started on this host with a fast clock, the jobs submitted as
they arrive, once with sched/backfill alone and once behind the gate, with ``aucsched slurm run`` as it ships
beside it. Checked first: every job completed once, and on exactly the nodes of its last pin by the loop's
log. Then both beside the simulations of both. ``--kills N`` ends the loop with SIGKILL at N random moments
and starts it anew, ``--restarts N`` does so with slurmctld. Records stand in FOLDER and are not made anew.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from against_slurm import (
    _FORMS,
    PUT_BACK,
    Ran,
    as_held,
    backfill_cycles,
    figures,
    from_table,
    host_of,
    made,
    read_log,
    submit,
    wait_for,
)
from slurm_host import fast_clock, missing, missing_clock, running_host

from aucsched import ClusterWorkload
from aucsched.formats.hostlist import expand
from aucsched.simulation.nodes.node_policies import NodeOptions, play
from aucsched.simulation.workloads.named_clusters import EvenCluster
from aucsched.simulation.workloads.soner import TABLES

_LICENCES = "Licenses=auction:1000000\n"
#: How jobs end; the last two only where a controller is killed as it starts a job or hears of its end.
_ENDS = ("COMPLETED", "FAILED", "TIMEOUT")


def main() -> None:
    """Run what is not recorded yet, check it, and print all side by side."""
    options = _options()
    if problem := missing() or (missing_clock() if options.speed > 1 else ""):
        sys.exit(f"slurm_run.py: {problem}")
    cluster = TABLES[options.table].cluster if options.table else EvenCluster(nodes=options.nodes)
    workload = from_table(options) if options.table else made(cluster, options)
    workload = replace(workload, jobs=workload.jobs[: options.jobs])
    print(f"{len(workload.jobs)} jobs on {cluster.nodes} nodes, {options.speed} times the clock", flush=True)
    options.folder.mkdir(parents=True, exist_ok=True)
    ran: dict[str, dict[str, Ran]] = {}
    for name in options.only:
        log = options.folder / f"{name}.log"
        if not log.exists():
            record(name, cluster, workload, options)
        ran[name] = read_log(log.read_text(), _ENDS if options.restarts else _ENDS[:1])
        for state in _ENDS[1:] if options.restarts else ():
            print(f"{name}: {log.read_text().count(f' JobState={state} ')} jobs ended as {state}", flush=True)
        lost = [one.job.id for one in workload.jobs if one.job.id not in ran[name]]
        assert not lost or options.restarts, f"{name}: jobs {lost} did not end"
        workload = replace(workload, jobs=tuple(one for one in workload.jobs if one.job.id not in lost))
    if "run" in ran:
        check(options.folder / "run.log", options.folder / "run.jsonl")
        passes(options.folder / "run.jsonl", options.speed)
    beside(workload, ran, options)


def delay_s(journal: Path) -> float:
    """Return the mean time from a job's end until others start on its nodes, in seconds of the clock.

    Half the time between two passes until one looks, and all of a pass until it has placed.
    """
    entries = [json.loads(line) for line in journal.read_text().splitlines() if '"event":"pass"' in line]
    done = [entry for entry in entries if entry["outcome"] == "done"]
    between = (done[-1]["at"] - done[0]["at"]) / (len(done) - 1)
    return float(between / 2 + sum(entry["total_s"] for entry in done) / len(done))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--table", choices=list(TABLES), help="its workload --id; contiguity dropped")
    parser.add_argument("--id", default="3", help="of the table's workload")
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--largest", type=int, default=8, help="whole nodes that the largest job asks for")
    parser.add_argument("--contiguous", type=float, default=0.0, help="share of the jobs")
    parser.add_argument("--depth", type=int, default=100, help="jobs of the queue that a pass looks at")
    parser.add_argument("--speed", type=int, default=10, help="of the cluster's clock")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--interval", type=float, default=10, help="of the loop, seconds of the clock")
    parser.add_argument("--kills", type=int, default=0, help="of the loop")
    parser.add_argument("--restarts", type=int, default=0, help="of slurmctld")
    parser.add_argument("--only", nargs="+", choices=["backfill", "run"], default=["backfill", "run"])
    parser.add_argument("--more", nargs="*", default=[], help="options of slurm run, without their dashes")
    return parser.parse_args()


def record(name: str, cluster: EvenCluster, workload: ClusterWorkload, options: argparse.Namespace) -> None:
    """Run the jobs on a cluster of their own and keep its log of them."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm-"))) / "host"
        clock = stack.enter_context(fast_clock(options.speed))
        host = host_of(cluster, workload, options.depth, _LICENCES)
        environment = stack.enter_context(running_host(folder, host, clock))
        began = time.monotonic()
        if name == "run":
            log = options.folder / "run.jsonl"
            log.unlink(missing_ok=True)
            shown = stack.enter_context((options.folder / "run.out").open("w"))
            loop = LoopProcess(command=_command(log, options), environment=environment, shown=shown)
            stack.enter_context(_driven(loop, options))
            stack.enter_context(_restarted(folder, environment, options))
        more = ["-L", "auction:1"] if name == "run" else []
        numbers = submit(workload.jobs, environment, options.speed, more)
        # A controller that is killed forgets what it took last: the number is given again.
        forgotten = len(numbers) - len(set(numbers))
        print(f"{forgotten} jobs were forgotten by a controller that was killed", flush=True)
        wait_for(len(set(numbers)), folder, environment)
        log_text = (folder / "log" / "jobcomp.txt").read_text() + backfill_cycles(environment)
        (options.folder / f"{name}.sdiag").write_text(_output(["sdiag"], environment))
    (options.folder / f"{name}.log").write_text(log_text)
    print(f"{name}: {time.monotonic() - began:.0f} s of wall time", flush=True)


def _output(command: list[str], environment: Mapping[str, str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, env=environment, text=True).stdout


def _command(log: Path, options: argparse.Namespace) -> list[str]:
    more = [f"--{word}" if index % 2 == 0 else word for index, word in enumerate(options.more)]
    run = [sys.executable, "-m", "aucsched", "slurm", "run", "--log", str(log)]
    return [*run, "--interval", str(options.interval), *more]


@dataclass(kw_only=True)
class LoopProcess:
    """The loop, as a process that is killed and started anew."""

    command: list[str]
    environment: Mapping[str, str]
    shown: object
    process: subprocess.Popen[bytes] | None = None
    kills: int = 0

    def start(self) -> None:
        """Start it."""
        self.process = subprocess.Popen(self.command, env=self.environment, stderr=self.shown)  # type: ignore[call-overload]

    def kill(self) -> None:
        """End it at once, as a power cut would."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.kills += 1


@contextlib.contextmanager
def _driven(loop: LoopProcess, options: argparse.Namespace) -> Iterator[None]:
    """Keep the loop going, and kill it as often as was asked for."""
    loop.start()
    # The gate stands before the first job comes: a loop whose kernels are not compiled yet takes a minute.
    end, log = time.monotonic() + 180, options.folder / "run.jsonl"
    while not (log.exists() and '"event":"pass"' in log.read_text()):
        assert time.monotonic() < end, "the loop made no pass"
        time.sleep(0.2)
    over = threading.Event()

    def kill_and_start() -> None:
        moments = random.Random(options.seed)  # noqa: S311 - the same moments each time
        for _ in range(options.kills):
            if over.wait(moments.uniform(0.3, 8.0)):
                return
            loop.kill()
            loop.start()

    killer = threading.Thread(target=kill_and_start)
    killer.start()
    try:
        yield
    finally:
        over.set()
        killer.join()
        assert loop.process is not None
        loop.process.terminate()
        loop.process.wait(timeout=60)
        print(f"the loop was killed {loop.kills} times", flush=True)


@dataclass(kw_only=True)
class _Controller:
    """slurmctld's processes that were started here in the place of the first."""

    restarts: int = 0
    latest: subprocess.Popen[bytes] | None = None
    log: list[str] = field(default_factory=list)


@contextlib.contextmanager
def _restarted(folder: Path, environment: Mapping[str, str], options: argparse.Namespace) -> Iterator[None]:
    """Kill slurmctld and start it anew, as often as was asked for."""
    control, over = _Controller(), threading.Event()
    command = [str(folder / "sbin" / "slurmctld"), "-D", "-f", str(folder / "slurm.conf")]

    def restart() -> None:
        for _ in range(options.restarts):
            if over.wait(20):
                return
            os.kill(control.latest.pid if control.latest else _pid(command), signal.SIGKILL)
            if control.latest:
                control.latest.wait()
            control.latest = subprocess.Popen(
                command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            control.restarts += 1

    thread = threading.Thread(target=restart)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        print(f"slurmctld was killed {control.restarts} times", flush=True)
        if control.latest:
            control.latest.terminate()
            control.latest.wait(timeout=60)


def _pid(command: list[str]) -> int:
    """Return the process that was started with this command, which names this run's own folder."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if (entry / "cmdline").read_bytes().decode().split("\0")[:-1] == command:
                    return int(entry.name)
    raise RuntimeError(f"{command[0]} does not run")


def check(record: Path, journal: Path) -> None:
    """Assert that every job ran once, and on the nodes of its last pin; say how many were pinned."""
    entries = [json.loads(line) for line in journal.read_text().splitlines() if line.startswith("{")]
    pins: dict[str, tuple[str, ...]] = {}
    for entry in entries:
        if entry["event"] == "intend" and entry["kind"] == "pin":
            pins[entry["job"]] = tuple(entry["nodes"])
    counts: Counter[str] = Counter()
    starts: dict[str, str] = {}
    for line in record.read_text().splitlines():
        if line.startswith("#"):
            continue
        if PUT_BACK in line:
            counts["that Slurm started and put back by itself"] += 1
            continue
        fields = dict(word.partition("=")[::2] for word in line.split())
        # A controller that is killed may record an end, forget it, and record the same start's end again.
        start = starts.setdefault(fields["JobId"], fields["StartTime"])
        assert start == fields["StartTime"], f"job {fields['JobId']} ran twice"
        nodes = set(expand(fields["NodeList"]))
        if fields["JobId"] not in pins:
            counts["never pinned"] += 1
        elif nodes == set(pins[fields["JobId"]]):
            counts["on exactly the nodes of their last pin"] += 1
        else:
            counts["on other nodes"] += 1
    print(f"behind the gate: {', '.join(f'{count} jobs {what}' for what, count in counts.items())}")
    kinds = Counter(entry["kind"] for entry in entries if entry["event"] == "done")
    others = Counter(
        entry["event"] for entry in entries if entry["event"] in {"drop", "refused", "misplaced"}
    )
    print(f"the loop's log: {dict(kinds)}; {dict(others) or 'nothing dropped, refused or misplaced'}")
    assert not others["misplaced"], "the loop saw a job on other nodes than it was pinned to"


def passes(journal: Path, speed: int) -> None:
    """Print how long passes took, in seconds of this host's clock."""
    entries = [json.loads(line) for line in journal.read_text().splitlines() if '"event":"pass"' in line]
    done = [entry for entry in entries if entry["outcome"] == "done"]
    broken = Counter(entry["outcome"][:60] for entry in entries if entry["outcome"] != "done")
    for phase in ("read_s", "decide_s", "check_s", "place_s", "verify_s", "total_s"):
        values = sorted(entry[phase] / speed for entry in done)
        print(f"  {phase}: median {values[len(values) // 2]:.3f} s, longest {values[-1]:.3f} s")
    print(f"  {len(done)} passes, {sum(broken.values())} broken off {dict(broken) or ''}")


def beside(
    workload: ClusterWorkload, ran: Mapping[str, Mapping[str, Ran]], options: argparse.Namespace
) -> None:
    """Print what ran beside its simulation: the same arrivals and run times, passes at the same interval."""
    columns: dict[str, dict[str, float]] = {}
    for name, theirs in ran.items():
        began = min(entry.submit_s for entry in theirs.values())
        played = replace(
            workload,
            jobs=tuple(
                sorted(
                    (as_held(one, theirs[one.job.id], began) for one in workload.jobs),
                    key=lambda one: (one.arrival_s, int(one.job.id)),
                )
            ),
        )
        columns[name] = figures(played, theirs)
        columns[f"{name}, simulated"] = figures(played, simulated(played, name, options, options.interval))
        if name == "run":
            # A simulated pass takes no time: at twice the delay between passes the mean delay is the loop's.
            late = delay_s(options.folder / "run.jsonl")
            columns[f"at its {late:.0f} s"] = figures(played, simulated(played, name, options, 2 * late))
    print(f"{'':24}" + "".join(f"{name:>22}" for name in columns))
    for name, form in _FORMS.items():
        print(f"{name:24}" + "".join(f"{format(values[name], form):>22}" for values in columns.values()))


def _reserve(options: argparse.Namespace) -> int:
    """Return how many reservations the loop keeps: its default, or what it was told."""
    words = options.more
    return int(words[words.index("reserve") + 1]) if "reserve" in words else 1


def simulated(
    workload: ClusterWorkload, name: str, options: argparse.Namespace, interval_s: float
) -> dict[str, Ran]:
    """Play the jobs: under Slurm's backfill as we have it, or the auction at an interval."""
    asked = (
        NodeOptions(policy="aucsched3", interval_s=interval_s, reserve=_reserve(options), promise="none")
        if name == "run"
        else NodeOptions(policy="backfill-slurm", window=options.depth, backfill_interval_s=10)
    )
    result = play(workload, asked)
    assert not result.record.never, result.record.never
    names = [node.name for node in workload.nodes]
    return {
        one.demand.job.id: Ran(
            submit_s=workload.jobs[one.demand.index].arrival_s,
            start_s=one.start_s,
            end_s=one.start_s + one.run_s,
            nodes=tuple(names[node] for node in one.allocation.nodes),
        )
        for one in result.played
    }


if __name__ == "__main__":
    main()
