"""The real Slurm cluster that tests place jobs on: 64 nodes of three kinds below four leaf switches."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from slurm_host import SlurmHost, missing, running_host

NODES = 64
#: Runs a line of shell on a cluster.
Shell = Callable[[str], str]
#: What a test that starts daemons is marked with.
NEEDS_SLURM = [
    pytest.mark.slurm,
    pytest.mark.skipif(
        os.environ.get("AUCSCHED_SLURM") != "1", reason="AUCSCHED_SLURM=1 lets it start daemons"
    ),
    pytest.mark.skipif(bool(missing()), reason=missing() or "nothing is missing"),
]

_SITE = """\
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=10
# Strictly by priority: the test decides what waits behind what. With priority/basic as well, 22.05 tries
# a held job in the other partition of the one that started before it, and leaves it there (BadConstraints).
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000,sched_interval=5
PriorityType=priority/multifactor
Licenses=matlab:3
NodeName=DEFAULT RealMemory=1000
NodeName=n[00-31] CPUs=12 Sockets=2 CoresPerSocket=6 Gres=gpu:3 {common} Port=[{p0}-{p31}]
NodeName=n[32-47] CPUs=12 Sockets=2 CoresPerSocket=6 Gres=gpu:a100:2,gpu:v100:2 {common} Port=[{p32}-{p47}]
NodeName=n[48-63] CPUs=8 Sockets=1 CoresPerSocket=8 {common} Port=[{p48}-{p63}]
PartitionName=left Nodes=n[00-39] Default=YES MaxTime=INFINITE State=UP
PartitionName=right Nodes=n[32-63] MaxNodes=8 MaxTime=120 State=UP
"""
_GRES = """\
AutoDetect=off
NodeName=n[00-31] Name=gpu File={folder}/dev/gpu[0-2]
NodeName=n[32-47] Name=gpu Type=a100 File={folder}/dev/gpu[0-1]
NodeName=n[32-47] Name=gpu Type=v100 File={folder}/dev/gpu[2-3]
"""
_TOPOLOGY = """\
SwitchName=leaf0 Nodes=n[00-15]
SwitchName=leaf1 Nodes=n[16-31]
SwitchName=leaf2 Nodes=n[32-47]
SwitchName=leaf3 Nodes=n[48-63]
SwitchName=top Switches=leaf[0-3]
"""


@contextlib.contextmanager
def running_cluster(folder: Path) -> Iterator[dict[str, str]]:
    """Start the cluster below ``folder``; yield the environment of its commands; stop what was started."""
    names = tuple(f"n{number:02}" for number in range(NODES))
    host = SlurmHost(nodes=names, site=_SITE, gres=_GRES, topology=_TOPOLOGY)
    with running_host(folder, host) as environment:
        yield environment


def shell_in(environment: dict[str, str]) -> Shell:
    """Return what runs a line of shell in the environment of a cluster's commands."""

    def run(line: str) -> str:
        done = subprocess.run(
            ["sh", "-c", line], capture_output=True, check=False, text=True, env=environment
        )
        assert done.returncode == 0, (line, done.stderr)
        return done.stdout

    return run


def wait_for(condition: Callable[[], bool], shell: Shell, what: str, seconds: float = 45) -> None:
    """Wait until something is so; a cluster on which it does not become so shows its queue."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"{what}: not within {seconds} s:\n{shell('squeue -a')}")
        time.sleep(0.3)
