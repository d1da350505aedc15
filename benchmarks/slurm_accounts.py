"""Accounting on this host: MariaDB and slurmdbd, below one folder, beside a cluster of slurm_host.py.

Needs Debian's slurmdbd and mariadb-server (22.05). All of it is started by the user who runs it, on two ports
of the loopback, and ends with it.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from slurm_host import SBIN

#: What slurm.conf needs to use it; ``{dbd}`` is its port.
ACCOUNTING = """\
AccountingStorageHost=127.0.0.1
AccountingStoragePort={dbd}
"""
_DBD = """\
AuthType=auth/none
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={dbd}
SlurmUser={user}
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={sql}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
PluginDir={plugins}
"""
_CLIENT = """\
ClusterName=aucsched
SlurmctldHost=localhost
AuthType=auth/none
CredType=cred/none
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={dbd}
PluginDir={plugins}
"""
_USERS = """\
CREATE DATABASE slurm;
CREATE USER 'slurm'@'127.0.0.1' IDENTIFIED BY 'slurm';
GRANT ALL ON slurm.* TO 'slurm'@'127.0.0.1';
"""
_WAIT_S = 60


def missing_accounting() -> str:
    """Return what keeps accounting from starting here, empty when nothing does."""
    is_here = (SBIN / "slurmdbd").exists() and (SBIN / "mariadbd").exists()
    return "" if is_here else "Debian's slurmdbd and mariadb-server are not both installed"


@contextlib.contextmanager
def accounting(folder: Path, port: int, clock: Mapping[str, str]) -> Iterator[None]:
    """Start MariaDB and slurmdbd on two ports of this host, and tell them the cluster and its users."""
    data = folder / "sql"
    user = getpass.getuser()
    plugins = next(Path("/usr/lib").glob("*/slurm-wlm"))
    _run(
        "mariadb-install-db",
        f"--datadir={data}",
        f"--user={user}",
        "--auth-root-authentication-method=normal",
    )
    text = _DBD.format(dbd=port, sql=port + 1, user=user, folder=folder, plugins=plugins)
    (folder / "slurmdbd.conf").write_text(text)
    (folder / "slurmdbd.conf").chmod(0o600)
    socket = folder / "sql.sock"
    sql = [str(SBIN / "mariadbd"), f"--datadir={data}", f"--socket={socket}", f"--user={user}"]
    with contextlib.ExitStack() as stack:
        log = stack.enter_context((folder / "start.log").open("wb"))
        bind = [f"--port={port + 1}", "--bind-address=127.0.0.1", f"--pid-file={folder}/sql.pid"]
        stack.enter_context(_daemon([*sql, *bind], log, {}))
        until(socket.exists, "MariaDB listens")
        command = ["mariadb", f"--socket={socket}", "-u", "root"]
        until(
            lambda: not subprocess.run(command, input=b"", capture_output=True, check=False).returncode,
            "it answers",
        )
        subprocess.run(command, input=_USERS.encode(), check=True)
        environment = {**_environment(clock), "SLURM_CONF": str(folder / "slurmdbd.conf")}
        stack.enter_context(_daemon([str(SBIN / "slurmdbd"), "-D"], log, environment))
        # slurmctld ends where the database does not know its cluster.
        (folder / "client.conf").write_text(_CLIENT.format(dbd=port, plugins=plugins))
        client = {**environment, "SLURM_CONF": str(folder / "client.conf")}
        add = ["sacctmgr", "-i", "add", "cluster", "aucsched"]
        until(
            lambda: not subprocess.run(add, capture_output=True, check=False, env=client).returncode,
            "slurmdbd answers",
        )
        yield


def _environment(clock: Mapping[str, str]) -> dict[str, str]:
    return {**os.environ, **clock}


@contextlib.contextmanager
def _daemon(command: list[str], log: BinaryIO, environment: Mapping[str, str]) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=log, stderr=log, env=environment or None)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def until(condition: Callable[[], object], what: str) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + _WAIT_S
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {_WAIT_S} s"
        time.sleep(0.3)
