"""A real Slurm cluster of many nodes on this one host, for tests: loopback only, no munge, own folder.

Needs Debian's slurm-wlm (22.05): one slurmctld and one slurmd for each node, all started by the user who runs
the test. Facts that it rests on: the daemons look at the name they are started under; a GPU needs a file,
any will do; ``auth/none`` and ``cred/none`` make munge unnecessary; ``config_overrides`` lets nodes claim
cores that the host lacks.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

SBIN = Path("/usr/sbin")
_PLUGINS = Path("/usr/lib")
_VERSION = "22.05"
_TIMEOUT_S = 60
NODES = 64

_CONFIG = """\
ClusterName=aucsched
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
PluginDir={plugins}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.log
SlurmdParameters=config_overrides
SlurmdTimeout=0
MpiDefault=none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
PropagateResourceLimits=NONE
SwitchType=switch/none
MailProg=/bin/true
ReturnToService=2
KillWait=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=10
# Strictly by priority: the test decides what waits behind what.
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000,sched_interval=5
PriorityType=priority/basic
TopologyPlugin=topology/tree
GresTypes=gpu
Licenses=matlab:3
NodeName=n[00-31] CPUs=12 Sockets=2 CoresPerSocket=6 Gres=gpu:3 {common} Port=[{p0}-{p31}]
NodeName=n[32-47] CPUs=12 Sockets=2 CoresPerSocket=6 Gres=gpu:a100:2,gpu:v100:2 {common} Port=[{p32}-{p47}]
NodeName=n[48-63] CPUs=8 Sockets=1 CoresPerSocket=8 {common} Port=[{p48}-{p63}]
PartitionName=left Nodes=n[00-39] Default=YES MaxTime=INFINITE State=UP
PartitionName=right Nodes=n[32-63] MaxNodes=8 MaxTime=120 State=UP
"""
_COMMON = "NodeHostname={host} NodeAddr=127.0.0.1 ThreadsPerCore=1 RealMemory=1000 State=UNKNOWN"
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


def missing() -> str:
    """Return what keeps the cluster from starting here, empty when nothing does."""
    if not all((SBIN / f"{name}-wlm").exists() for name in ("slurmctld", "slurmd", "slurmstepd")):
        return "Debian's slurm-wlm is not installed"
    answer = subprocess.run([SBIN / "slurmctld-wlm", "-V"], capture_output=True, check=False)
    version = answer.stdout.decode().split()[-1:]
    if not version or not version[0].startswith(_VERSION):
        return f"slurm-wlm {' '.join(version)} is here, the cluster's configuration is of {_VERSION}"
    return ""


@contextlib.contextmanager
def running_cluster(folder: Path) -> Iterator[dict[str, str]]:
    """Start the cluster below ``folder``; yield the environment of its commands; stop what was started."""
    _prepare(folder)
    environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    daemons: list[subprocess.Popen[bytes]] = []
    with (folder / "log" / "start.log").open("wb") as log:

        def start(name: str, *options: str) -> None:
            command = [str(folder / "sbin" / name), "-D", "-f", str(folder / "slurm.conf"), *options]
            daemons.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))

        try:
            start("slurmctld")
            for number in range(NODES):
                start("slurmd", "-N", f"n{number:02}", "-d", str(folder / "sbin" / "slurmstepd"))
            _wait_until_idle(folder, environment)
            yield environment
        finally:
            _stop(daemons, environment)


def _prepare(folder: Path) -> None:
    for name in ("state", "spool", "run", "log", "sbin", "dev"):
        (folder / name).mkdir(parents=True)
    for name in ("slurmctld", "slurmd", "slurmstepd"):
        (folder / "sbin" / name).symlink_to(SBIN / f"{name}-wlm")
    for number in range(4):
        (folder / "dev" / f"gpu{number}").touch()
    host, port = socket.gethostname().split(".")[0], _free_ports(NODES + 1)
    ports = {f"p{number}": str(port + 1 + number) for number in range(NODES)}
    config = _CONFIG.format(
        host=host,
        port=port,
        user=getpass.getuser(),
        plugins=next(_PLUGINS.glob("*/slurm-wlm")),
        folder=folder,
        common=_COMMON.format(host=host),
        **ports,
    )
    (folder / "slurm.conf").write_text(config)
    (folder / "gres.conf").write_text(_GRES.format(folder=folder))
    (folder / "topology.conf").write_text(_TOPOLOGY)


def _free_ports(count: int) -> int:
    """Return the first of ``count`` free ports in a row."""
    for first in range(21000 + os.getpid() % 97 * 97, 60000, count):
        with contextlib.ExitStack() as stack:
            try:
                for port in range(first, first + count):
                    one = stack.enter_context(socket.socket())
                    one.bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise RuntimeError(f"there are no {count} free ports in a row")


def _wait_until_idle(folder: Path, environment: dict[str, str]) -> None:
    end = time.monotonic() + _TIMEOUT_S
    count = "none"
    while time.monotonic() < end:
        answer = subprocess.run(
            ["sinfo", "-h", "-N", "-o", "%N %t"], capture_output=True, check=False, env=environment
        )
        # A node stands once for each of its partitions; one that does not answer yet has a mark: idle*.
        lines = {line for line in answer.stdout.decode().splitlines() if line.endswith(" idle")}
        count = str(len(lines))
        if count == str(NODES):
            return
        time.sleep(0.3)
    log = (folder / "log" / "start.log").read_text(errors="replace")[-2000:]
    raise RuntimeError(f"after {_TIMEOUT_S} s {count} of {NODES} nodes are idle: {log}")


def _stop(daemons: list[subprocess.Popen[bytes]], environment: dict[str, str]) -> None:
    """End the jobs, then the daemons that this process started."""
    user = getpass.getuser()
    subprocess.run(["scancel", "-f", "-u", user], capture_output=True, check=False, env=environment)
    end = time.monotonic() + _TIMEOUT_S / 4
    while time.monotonic() < end:
        left = subprocess.run(["squeue", "-h"], capture_output=True, check=False, env=environment)
        if not left.stdout.strip():
            break
        time.sleep(0.3)
    for daemon in daemons:
        daemon.send_signal(signal.SIGTERM)
    for daemon in daemons:
        try:
            daemon.wait(timeout=10)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
