"""A sweep killed at any moment goes on where it was; rows do not depend on who computed them, or when."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.build import snapshot
from support.run import aucsched
from support.sweeps import GRID, HANGS_S, LONG, RUNS, lasting, rows_of, small

from aucsched import save_snapshot
from aucsched.cluster.errors import AucschedError, InputError
from aucsched.sweeps.axes import Row
from aucsched.sweeps.drive import TRIES, Journal, run_locally
from aucsched.sweeps.run_plan import Run, Subject

IDENTITY = {"input": "snapshot " + "0" * 64, "--window": "1,2"}
#: The options of each of its runs: none, here.
OPTIONS: list[Row] = [{} for _ in range(4)]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """The rows of a sweep that nothing disturbed, by one worker, whose journal holds what its table shows."""
    folder = tmp_path_factory.mktemp("reference")
    assert aucsched("sweep", small(folder), *GRID, "--workers", "1", "-o", folder / "r.csv").returncode == 0
    entries = (folder / "r.csv.journal").read_text().splitlines()[1:]
    rows = [json.loads(line.partition(" ")[2])["row"] for line in entries]
    assert [str(row["priority"]) for row in rows] == [row["priority"] for row in rows_of(folder / "r.csv")]
    return lasting(folder / "r.csv")


def started(source: Path, out: Path, workers: int, *more: str) -> subprocess.Popen[str]:
    return running("sweep", source, *GRID, "--workers", workers, *more, "-o", out)


def running(*words: object) -> subprocess.Popen[str]:
    """Start a command as a terminal would, in a process group of its own."""
    command = [sys.executable, "-m", "aucsched", *map(str, words)]
    # A shell starts background jobs with SIGINT ignored, and a process hands that down: not to this one.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    nowhere, told = subprocess.DEVNULL, subprocess.PIPE
    try:
        return subprocess.Popen(command, stdout=nowhere, stderr=told, text=True, start_new_session=True)
    finally:
        signal.signal(signal.SIGINT, before)


def children(process: int) -> list[int]:
    """Return the workers of a sweep: its spawned processes."""
    try:
        found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return []
    return [int(child) for child in found if b"spawn_main" in command_of(child)]


def command_of(process: str) -> bytes:
    """Return a process's command line, nothing when it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def lines(journal: Path) -> int:
    """Return how many rows a journal holds."""
    return max(0, journal.read_bytes().count(b"\n") - 1) if journal.exists() else 0


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_again_and_again_it_ends_with_the_same_rows(
    reference: list[dict[str, str]], workers: int, tmp_path: Path
) -> None:
    source, out = small(tmp_path), tmp_path / "k.csv"
    journal = tmp_path / "k.csv.journal"
    rng = random.Random(workers)
    for wanted in (0, 8, 16):
        with started(source, out, workers) as process:
            while lines(journal) < wanted and process.poll() is None:
                time.sleep(0.005)
            time.sleep(rng.uniform(0, 0.03))
            before, ours = lines(journal), children(process.pid) if process.poll() is None else []
            process.kill()
        # What is on the disk is whole, in order, and nothing that was there is lost.
        assert lines(journal) >= before
        rows = rows_of(out) if out.exists() else []
        assert [row["run"] for row in rows] == sorted((row["run"] for row in rows), key=int)
        wait_for_end(ours)
    done = lines(journal)
    assert done >= 16
    (tmp_path / ".k.csv.abcdefgh").write_text("what a kill in the middle of a write leaves")
    last = aucsched("sweep", source, *GRID, "--workers", str(workers), "-o", out)
    assert last.returncode == 0
    assert last.stderr == f"note: {done} of {RUNS} runs are done already\n"
    assert lasting(out) == reference
    assert {path.name for path in tmp_path.iterdir()} == {"small.json", "k.csv", "k.csv.journal"}


def wait_for_end(processes: list[int]) -> None:
    """Wait until workers whose parent was killed have ended by themselves."""
    deadline = time.monotonic() + HANGS_S
    while any(Path(f"/proc/{process}").exists() and not is_zombie(process) for process in processes):
        assert time.monotonic() < deadline, "workers outlive their sweep"
        time.sleep(0.01)


def is_zombie(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_two_workers_one_of_them_killed_give_the_same_rows(
    reference: list[dict[str, str]], tmp_path: Path
) -> None:
    out = tmp_path / "k.csv"
    with started(small(tmp_path), out, 2) as process:
        while not lines(tmp_path / "k.csv.journal") and process.poll() is None:
            time.sleep(0.005)
        for worker in children(process.pid)[:1]:
            # It may have ended by now, on a busy machine.
            with suppress(FileNotFoundError, ProcessLookupError):
                # One at work, one that waits for the parent's death.
                assert len(list(Path(f"/proc/{worker}/task").iterdir())) <= 2
                os.kill(worker, signal.SIGKILL)
        _, err = process.communicate(timeout=HANGS_S)
    assert (process.returncode, err) == (0, "")
    assert lasting(out) == reference


def test_stopped_by_ctrl_c_it_says_so(tmp_path: Path) -> None:
    source, journal = small(tmp_path), tmp_path / "k.csv.journal"
    with started(source, tmp_path / "k.csv", 1, *LONG) as process:
        while not lines(journal) and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=HANGS_S)
    said = "note: the same command goes on where this one stopped\naucsched: interrupted\n"
    assert (process.returncode, err) == (1, said)
    assert lines(journal) >= 1


def crowded(folder: Path) -> Path:
    """Write a snapshot whose auction takes long to prove."""
    rng = random.Random(5)
    nodes = [{"name": f"n{place:03d}", "cores": 12, "free_cores": rng.randint(0, 12)} for place in range(240)]
    sizes = ({"nodes": rng.randint(2, 9), "cores_per_node": rng.randint(2, 7)} for _ in range(120))
    save_snapshot(snapshot(nodes, list(sizes)), folder / "crowded.json")
    return folder / "crowded.json"


@pytest.mark.parametrize("command", ["sweep", "schedule", "winners"])
def test_ctrl_c_ends_processes_that_are_only_starting_without_a_word(command: str, tmp_path: Path) -> None:
    """A terminal sends it to the whole group."""
    auction = tmp_path / "auction.txt"
    bids = (f"{bid}\t{9 + bid % 7}\t{bid % 40}\t{40 + bid * 7 % 40}\t#" for bid in range(400))
    auction.write_text("\n".join(["goods 80", "bids 400", "dummy 0", *bids]))
    given: dict[str, tuple[object, ...]] = {
        "sweep": (small(tmp_path), *GRID, *LONG, "-o", tmp_path / "k.csv"),
        "schedule": (crowded(tmp_path), "--part-nodes", "60", "--promise", "none", "--time-limit", "300"),
        "winners": (auction, "--time-limit", "300"),
    }
    with running(command, *given[command], "--workers", 2) as process:
        while not children(process.pid) and process.poll() is None:
            time.sleep(0.002)
        # Python runs there by now, and reads modules.
        time.sleep(0.2)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=HANGS_S)
    said = re.sub(r"(?m)^note: .*\n", "", err)
    assert (process.returncode, said.strip()) == (1, "aucsched: interrupted")


def row(number: int) -> Row:
    error = 'ünï "quoted"\nlines'
    return {"run": number, "status": "failed", "error": error, "priority": 0.1 * number, "gap": None}


def test_two_sweeps_never_write_one_file(tmp_path: Path) -> None:
    with (
        Journal(tmp_path / "j", IDENTITY, OPTIONS, {}),
        pytest.raises(InputError, match="another sweep is writing it"),
    ):
        Journal(tmp_path / "j", IDENTITY, OPTIONS, {})
    Journal(tmp_path / "j", IDENTITY, OPTIONS, {}).__exit__(None, None, None)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_journal_cut_anywhere_holds_every_row_before_the_cut(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "cut.journal"
    path.unlink(missing_ok=True)
    sizes = []
    with Journal(path, IDENTITY, OPTIONS, {"python": "3"}) as journal:
        sizes.append(path.stat().st_size)
        for number in range(4):
            journal.add(row(number))
            sizes.append(path.stat().st_size)
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    with Journal(path, IDENTITY, OPTIONS, {"python": "3"}) as again:
        kept = max((place for place, size in enumerate(sizes) if size <= cut), default=0)
        assert sorted(again.rows) == list(range(kept))
        for number in range(kept, 4):
            again.add(row(number))
    assert path.read_bytes() == whole


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_damaged_journal_is_never_taken_for_a_whole_one(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.journal"
    path.unlink(missing_ok=True)
    with Journal(path, IDENTITY, OPTIONS, {}) as journal:
        for number in range(3):
            journal.add(row(number))
    whole = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(whole) - 2))
    whole[place] ^= 1 << data.draw(st.integers(0, 6))
    path.write_bytes(whole)
    with pytest.raises(InputError, match=r"is damaged|not a journal of a sweep"):
        Journal(path, IDENTITY, OPTIONS, {})


def test_another_file_is_no_journal(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.journal"
    for content in (b"some notes\n", b"some notes", b'00000000 {"format":1}\n'):
        path.write_bytes(content)
        with pytest.raises(InputError, match="it is not a journal of a sweep"):
            Journal(path, IDENTITY, OPTIONS, {})
        assert path.read_bytes() == content


class Bomb:
    """What ends the process that unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (9,)


def subject(folder: Path) -> Subject:
    return Subject(name="small.json", kind="snapshot", content=small(folder).read_bytes())


def test_a_run_that_kills_its_process_is_a_row_and_the_others_go_on(tmp_path: Path) -> None:
    bomb: Any = Bomb()
    options: Any = {"model": "aucsched3", "work_limit": 1, "seed": 0}
    runs = [Run(number=0, options={"window": bomb}), Run(number=1, options={**options, "window": 2})]
    rows = {row["run"]: row for row in run_locally(subject(tmp_path), runs, 2)}
    assert rows[0]["status"] == "failed"
    assert rows[0]["error"] == "its process died each time it was tried"
    assert rows[1]["status"] == "optimal"
    assert TRIES == 3


def test_processes_that_cannot_start_end_the_sweep(tmp_path: Path) -> None:
    content: Any = Bomb()
    broken = Subject(name="x", kind="snapshot", content=content)
    with pytest.raises(AucschedError, match="worker processes end as they start"):
        list(run_locally(broken, [Run(number=0, options={})], 1))
    assert subject(tmp_path).kind == "snapshot"
