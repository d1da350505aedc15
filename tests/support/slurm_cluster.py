"""The real Slurm cluster that tests place jobs on: 64 nodes of three kinds below four leaf switches."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from slurm_host import SlurmHost, missing, running_host

__all__ = ["NODES", "missing", "running_cluster"]

NODES = 64

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
