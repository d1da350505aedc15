"""The same sweep on a Dask cluster of separate processes, one of them killed while it works."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.dask_cluster import Cluster, dask_cluster
from support.run import aucsched
from support.sweeps import GRID, HANGS_S, lasting, small

from aucsched.cli import run

pytest.importorskip("distributed")

#: Thousands of runs, each a future that the scheduler gets before the first row.
LONG = ("--seed", "1", "--reserve", ",".join(map(str, range(100))))


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with dask_cluster(tmp_path_factory.mktemp("dask")) as cluster:
        yield cluster


def started(cluster: Cluster, source: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "aucsched", "sweep", source, *GRID, *more]
    command += ["--dask", cluster.address, "-o", out]
    return subprocess.Popen(
        list(map(str, command)), stderr=subprocess.PIPE, text=True, env=cluster.environment
    )


def test_a_cluster_gives_the_same_rows_one_worker_killed_and_the_sweep_resumed(
    cluster: Cluster, tmp_path: Path
) -> None:
    source, here, there = small(tmp_path), tmp_path / "here.csv", tmp_path / "there.csv"
    assert aucsched("sweep", source, *GRID, "--workers", "1", "-o", here).returncode == 0

    def wait_for(rows: int, process: subprocess.Popen[str], out: Path = there) -> None:
        journal = out.with_name(f"{out.name}.journal")
        while process.poll() is None and (not journal.exists() or journal.read_bytes().count(b"\n") <= rows):
            time.sleep(0.01)

    # The sweep itself is killed, then goes on, and a worker is killed under it.
    with started(cluster, source, there) as process:
        wait_for(3, process)
        process.kill()
    with started(cluster, source, there) as process:
        wait_for(8, process)
        cluster.workers[0].send_signal(signal.SIGKILL)
        _, err = process.communicate(timeout=HANGS_S)
    assert process.returncode == 0, err
    assert re.fullmatch(r"note: \d+ of 24 runs are done already\n", err)
    assert cluster.workers[0].wait() == -signal.SIGKILL
    assert lasting(there) == lasting(here)

    # Nobody is left at work, then the scheduler goes. A row proves that the sweep has connected; there are
    # enough runs that it is not done before.
    lost = tmp_path / "lost.csv"
    with started(cluster, source, lost, *LONG) as process:
        wait_for(1, process, lost)
        cluster.workers[1].kill()
        cluster.scheduler.kill()
        _, err = process.communicate(timeout=HANGS_S)
    assert process.returncode == 1
    assert err.startswith("aucsched: the Dask cluster failed: ")
    assert err.count("\n") == 1


def test_no_scheduler_at_the_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aucsched.auction.parts.workers._PATIENCE", "500ms")
    for address in ("tcp://127.0.0.1:1", "nonsense:nonsense"):
        arguments = [str(small(tmp_path)), "--dask", address, "-o", str(tmp_path / "x.csv")]
        assert run(["sweep", *arguments]) == 2
        assert capsys.readouterr().err == f"aucsched: --dask {address}: no scheduler answers there\n"


def test_dask_is_refused_without_its_extra(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aucsched.auction.parts.workers.find_spec", lambda _: None)
    assert (
        run(["sweep", str(small(tmp_path)), "--dask", "tcp://127.0.0.1:1", "-o", str(tmp_path / "x.csv")])
        == 2
    )
    said = "aucsched: --dask needs distributed: pip install 'aucsched[dask]'\n"
    assert capsys.readouterr().err == said
