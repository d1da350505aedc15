"""A Dask cluster of separate processes, for tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

#: No warning goes by unseen in any process; Dask's own configuration stays out of the home directory.
ENVIRONMENT = os.environ | {"PYTHONWARNINGS": "error"}


class Cluster:
    """A scheduler and workers without nannies, each a process of one thread, on a port of this machine."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self.environment = ENVIRONMENT | {"DASK_CONFIG": str(folder), "DASK_TEMPORARY_DIRECTORY": str(folder)}
        self._log = folder / "scheduler.log"
        # Also without a dashboard a scheduler serves HTTP: 8787 may be another cluster's.
        http = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")
        scheduler = ("scheduler", "--host", "127.0.0.1", "--port", "0", *http)
        self.scheduler = self._start(self._log, *scheduler)
        self.address = said(self._log, self.scheduler, r"Scheduler at: +(tcp://\S+)")
        logs = [folder / f"worker-{number}.log" for number in range(2)]
        self.workers = [self._add_worker(log) for log in logs]
        # Both are at work: a scheduler that has taken them answers a sweep too.
        for log, worker in zip(logs, self.workers, strict=True):
            said(log, worker, r"Registered to: +(tcp://\S+)")

    def _add_worker(self, log: Path) -> subprocess.Popen[bytes]:
        return self._start(log, "worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard")

    def _start(self, log: Path, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *arguments]
        with log.open("wb") as file:
            process = subprocess.Popen(
                command, stdout=file, stderr=subprocess.STDOUT, env=self.environment, cwd=self._folder
            )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process


def said(log: Path, process: subprocess.Popen[bytes], pattern: str) -> str:
    """Return what a process writes to its log, as soon as it does."""
    while process.poll() is None:
        found = re.search(pattern, log.read_text())
        if found:
            return found[1]
        time.sleep(0.02)
    raise AssertionError(log.read_text())


@contextmanager
def dask_cluster(folder: Path) -> Iterator[Cluster]:
    """Yield a cluster that keeps its files in a folder."""
    with ExitStack() as stack:
        yield Cluster(folder, stack)
