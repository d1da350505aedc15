"""Ages and fair-share behind the gate, as Slurm counts them: ``python benchmarks/slurm_ages.py``.

Needs Debian's slurm-wlm, slurmdbd, mariadb-server and faketime. A cluster of two nodes with accounting is
started on this host, its clock ten times as fast. Two users of equal shares each have a job behind the gate
and one that waits for resources in front of it; one of them keeps the cluster busy, so that their fair-share
parts. Printed: age and fair-share factors of all four, some minutes apart. Asserted: behind the gate they
move exactly as in front of it.
"""

from __future__ import annotations

import argparse
import contextlib
import getpass
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from slurm_accounts import ACCOUNTING, accounting, missing_accounting, until
from slurm_host import SlurmHost, fast_clock, free_ports, missing, missing_clock, running_host

_SITE = """\
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000,bf_interval=10
PriorityType=priority/multifactor
PriorityWeightAge=100000
PriorityWeightFairshare=100000
PriorityMaxAge=01:00:00
PriorityCalcPeriod=1
PriorityDecayHalfLife=01:00:00
Licenses=auction:1000000
NodeName=DEFAULT CPUs=4 Sockets=1 CoresPerSocket=4 RealMemory=1000 Gres=gpu:1
NodeName=n[0-1] {{common}} Port=[{{p0}}-{{p1}}]
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def main() -> None:
    """Start everything, watch the priorities, print them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10, help="of the cluster's clock")
    parser.add_argument("--speed", type=int, default=10)
    options = parser.parse_args()
    problem = missing() or missing_clock() or missing_accounting()
    if problem:
        sys.exit(f"slurm_ages.py: {problem}")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm-")))
        clock = stack.enter_context(fast_clock(options.speed))
        ports = free_ports(2)
        stack.enter_context(accounting(folder, ports, clock))
        host = SlurmHost(
            nodes=["n0", "n1"],
            site=(ACCOUNTING + _SITE).format(dbd=ports),
            gres="AutoDetect=off\nName=gpu File={folder}/dev/gpu[0-0]\n",
            topology="SwitchName=s0 Nodes=n[0-1]\n",
            accounting="accounting_storage/slurmdbd",
        )
        environment = stack.enter_context(running_host(folder / "host", host, clock))
        watch(environment, options)


def watch(environment: Mapping[str, str], options: argparse.Namespace) -> None:
    """Submit the jobs, let one user use the cluster, print the factors as they move."""

    def shell(line: str) -> str:
        done = subprocess.run(
            ["sh", "-c", line], check=False, capture_output=True, text=True, env=environment
        )
        assert done.returncode == 0, (line, done.stderr)
        return done.stdout

    user = getpass.getuser()
    for account in ("busy", "idle"):
        shell(f"sacctmgr -i add account {account} fairshare=1 || true")
        shell(f"sacctmgr -i add user {user} account={account} fairshare=1")
    until(lambda: "busy" in shell("scontrol show assoc_mgr flags=assoc"), "the controller knows the accounts")
    shell(f"{sys.executable} -m aucsched slurm gate up --for 36000")
    sbatch = "sbatch --parsable -t 300 -o /dev/null --chdir=/ --wrap='sleep 36000'"
    shell(f"{sbatch} -A busy --exclusive -N 2")
    jobs = {
        f"{account}, {place}": shell(f"{sbatch} -A {account} -N 2 --exclusive {more}").strip()
        for account in ("busy", "idle")
        for place, more in (("behind the gate", "-L auction:1"), ("in front of it", ""))
    }
    print(f"{'minute':>7}" + "".join(f"{name:>26}" for name in jobs) + "   (age, fair-share)")
    rows: list[dict[str, tuple[int, int]]] = []
    began = time.monotonic()
    for step in range(6):
        time.sleep(max(0.0, began + step * options.minutes * 60 / 5 / options.speed - time.monotonic()))
        lines = (line.split() for line in shell("sprio -h -o '%i %A %F'").splitlines())
        found = {name: (int(float(age)), int(float(share))) for name, age, share in lines}
        rows.append({name: found[job] for name, job in jobs.items()})
        shown = "".join(f"{f'{age}, {share}':>26}" for age, share in rows[-1].values())
        print(f"{step * options.minutes / 5:7.0f}{shown}", flush=True)
    for account in ("busy", "idle"):
        for row in rows:
            behind, front = row[f"{account}, behind the gate"], row[f"{account}, in front of it"]
            # Submitted some seconds apart, on the fast clock: an hour is the whole of the factor.
            assert abs(behind[0] - front[0]) < 1500, row
            assert behind[1] == front[1], row
    first, last = rows[0], rows[-1]
    assert last["busy, behind the gate"][0] > first["busy, behind the gate"][0], "ages do not grow"
    assert last["busy, behind the gate"][1] < last["idle, behind the gate"][1], "fair-share does not move"
    print("ages and fair-share move behind the gate as in front of it")


if __name__ == "__main__":
    main()
