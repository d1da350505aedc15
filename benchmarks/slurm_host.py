"""A real Slurm cluster of many nodes on this one host: loopback only, no munge, everything below one folder.

Needs Debian's slurm-wlm (22.05): one slurmctld and one slurmd for each node, all started by the user who runs
it. Facts that it rests on: the daemons look at the name they are started under; a GPU needs a file, any will
do; ``auth/none`` and ``cred/none`` make munge unnecessary; ``config_overrides`` lets nodes claim cores that
the host lacks. With Debian's faketime the cluster's clock runs faster than the host's: limits have a
resolution of a minute, so that the clock is scaled and not the jobs.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SBIN = Path("/usr/sbin")
_PLUGINS = Path("/usr/lib")
_VERSION = "22.05"
_TIMEOUT_S = 60
_DAY_S = 24 * 60 * 60
#: So many files stand for the GPUs of every node.
_DEVICES = 4

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
AccountingStorageType={accounting}
PropagateResourceLimits=NONE
SwitchType=switch/none
MailProg=/bin/true
ReturnToService=2
KillWait=2
SelectType=select/cons_tres
TopologyPlugin=topology/tree
GresTypes=gpu
"""
_COMMON = "NodeHostname={host} NodeAddr=127.0.0.1 ThreadsPerCore=1 State=UNKNOWN"
#: Prints the environment that gives a process the shared fast clock; keeps that clock until its input ends.
_HOLDER = (
    "import json, os, sys; names = ('LD_PRELOAD', 'FAKETIME');"
    "print(json.dumps({k: v for k, v in os.environ.items() if k.startswith(names)}), flush=True);"
    "sys.stdin.read()"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmHost:
    """What a cluster is made of.

    Attributes:
        nodes: the nodes' names, in the order of their ports.
        site: lines of slurm.conf; ``{common}`` stands for what every node has, ``{p0}`` for the first one's
            port, ``{folder}`` for the cluster's folder.
        gres: gres.conf, with ``{folder}``; the GPUs' files are ``{folder}/dev/gpu0`` to ``gpu3``.
        topology: topology.conf.
        files: further files beside slurm.conf, by name.
        accounting: its plugin.
    """

    nodes: Sequence[str]
    site: str
    gres: str
    topology: str
    files: Mapping[str, str] = field(default_factory=dict)
    accounting: str = "accounting_storage/none"


def missing() -> str:
    """Return what keeps a cluster from starting here, empty when nothing does."""
    if not all((SBIN / f"{name}-wlm").exists() for name in ("slurmctld", "slurmd", "slurmstepd")):
        return "Debian's slurm-wlm is not installed"
    answer = subprocess.run([SBIN / "slurmctld-wlm", "-V"], capture_output=True, check=False)
    version = answer.stdout.decode().split()[-1:]
    if not version or not version[0].startswith(_VERSION):
        return f"slurm-wlm {' '.join(version)} is here, the cluster's configuration is of {_VERSION}"
    return ""


def missing_clock() -> str:
    """Return what keeps a cluster's clock from running faster here, empty when nothing does."""
    return "" if shutil.which("faketime") else "Debian's faketime is not installed"


@contextlib.contextmanager
def fast_clock(speed: int) -> Iterator[Mapping[str, str]]:
    """Yield the environment under which processes share a clock ``speed`` times as fast as the host's."""
    if speed == 1:
        yield {}
        return
    # The clock starts at midnight, UTC: sdiag's counts begin anew there, and no run is as long as a day.
    since_midnight_s = int(time.time()) % _DAY_S
    command = ["faketime", "-m", "-f", f"-{since_midnight_s} x{speed}", sys.executable, "-c", _HOLDER]
    environment = {**os.environ, "FAKETIME_DONT_RESET": "1"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    ) as holder:
        assert holder.stdout is not None
        yield json.loads(holder.stdout.readline())
        holder.communicate("")


@contextlib.contextmanager
def running_host(
    folder: Path, host: SlurmHost, clock: Mapping[str, str] | None = None
) -> Iterator[dict[str, str]]:
    """Start a cluster below ``folder``; yield the environment of its commands; stop what was started."""
    _prepare(folder, host)
    environment = {**os.environ, **(clock or {}), "SLURM_CONF": str(folder / "slurm.conf")}
    daemons: list[subprocess.Popen[bytes]] = []
    with (folder / "log" / "start.log").open("wb") as log:

        def start(name: str, *options: str) -> None:
            command = [str(folder / "sbin" / name), "-D", "-f", str(folder / "slurm.conf"), *options]
            daemons.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))

        try:
            start("slurmctld")
            for name in host.nodes:
                start("slurmd", "-N", name, "-d", str(folder / "sbin" / "slurmstepd"))
            _wait_until_idle(folder, len(host.nodes), environment)
            yield environment
        finally:
            _stop(daemons, environment)


def _prepare(folder: Path, host: SlurmHost) -> None:
    for name in ("state", "spool", "run", "log", "sbin", "dev"):
        (folder / name).mkdir(parents=True)
    for name in ("slurmctld", "slurmd", "slurmstepd"):
        (folder / "sbin" / name).symlink_to(SBIN / f"{name}-wlm")
    for number in range(_DEVICES):
        (folder / "dev" / f"gpu{number}").touch()
    name, port = socket.gethostname().split(".")[0], free_ports(len(host.nodes) + 1)
    ports = {f"p{number}": str(port + 1 + number) for number in range(len(host.nodes))}
    values = {
        "host": name,
        "port": str(port),
        "user": getpass.getuser(),
        "plugins": str(next(_PLUGINS.glob("*/slurm-wlm"))),
        "folder": str(folder),
        "accounting": host.accounting,
        "common": _COMMON.format(host=name),
        **ports,
    }
    (folder / "slurm.conf").write_text((_CONFIG + host.site).format(**values))
    (folder / "gres.conf").write_text(host.gres.format(folder=folder))
    (folder / "topology.conf").write_text(host.topology)
    for file, text in host.files.items():
        (folder / file).write_text(text)


def free_ports(count: int) -> int:
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


def _wait_until_idle(folder: Path, nodes: int, environment: dict[str, str]) -> None:
    end = time.monotonic() + _TIMEOUT_S + nodes / 4
    count = "none"
    while time.monotonic() < end:
        answer = subprocess.run(
            ["sinfo", "-h", "-N", "-o", "%N %t"], capture_output=True, check=False, env=environment
        )
        # A node stands once for each of its partitions; one that does not answer yet has a mark: idle*.
        lines = {line for line in answer.stdout.decode().splitlines() if line.endswith(" idle")}
        count = str(len(lines))
        if count == str(nodes):
            return
        time.sleep(0.3)
    log = (folder / "log" / "start.log").read_text(errors="replace")[-2000:]
    raise RuntimeError(f"{count} of {nodes} nodes are idle: {log}")


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
