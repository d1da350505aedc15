"""``aucsched ibsched`` and ``aucsched irtsched`` as a user runs them: equal results, kills, refusals."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.run import aucsched, refused

ROOT = Path(__file__).parents[3]
#: Jobs of every kind, in their order; b and f come while others run, u is urgent.
JOBS: list[dict[str, Any]] = [
    {"id": "a", "priority": 9, "nodes": 3, "arrival_s": 0, "run_time_s": 400},
    {"id": "b", "priority": 8, "nodes": 2, "arrival_s": 5, "run_time_s": 300, "kind": "malleable",
     "min_nodes": 1, "max_nodes": 6},
    {"id": "c", "priority": 7, "nodes": 6, "arrival_s": 5, "run_time_s": 90, "time_limit_s": 120},
    {"id": "d", "priority": 6, "nodes": 2, "arrival_s": 9, "run_time_s": 200, "kind": "moldable",
     "min_nodes": 1, "max_nodes": 4},
    {"id": "u", "priority": 9, "nodes": 4, "arrival_s": 130, "run_time_s": 50, "qos": "urgent"},
    *({"id": f"f{number}", "priority": 5, "nodes": 1 + number % 3, "arrival_s": 150 + 40 * number,
       "run_time_s": 60 + 7 * number} for number in range(24)),
]  # fmt: skip


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    """Return a workload file."""
    nodes = [{"name": "n[1-6]", "cores": 1}]
    jobs = [{"cores_per_node": 1, **job} for job in JOBS]
    path = tmp_path / "small.json"
    path.write_text(
        json.dumps({"format": "aucsched-workload/1", "name": "small", "nodes": nodes, "jobs": jobs})
    )
    return path


@contextmanager
def background(*arguments: str | Path, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a command meanwhile; it is killed if it has not ended."""
    command = [sys.executable, "-m", "aucsched", *map(str, arguments)]
    with subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def heard_address(process: subprocess.Popen[str]) -> str:
    """Return where a party says that it listens."""
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.fullmatch(r"aucsched: i\w+ listens on (\S+)\n", line)
    assert found, line
    return found[1]


@pytest.mark.parametrize(("mapper", "checkpoint"), [("greedy", "5"), ("auction", "0")])
def test_two_processes_give_the_bytes_of_one(
    mapper: str, checkpoint: str, workload: Path, tmp_path: Path
) -> None:
    play: list[str | Path] = [workload, "--urgent", "suspend"]
    files: list[str | Path] = ["--format", "json", "--trace"]
    alone = aucsched(
        "negotiate", *play, "--mapper", mapper,
        *files, "one.jsonl", "-o", "one.json", "--jobs-out", "one.csv", cwd=tmp_path,
    )  # fmt: skip
    assert alone.returncode == 0, alone.stderr
    (tmp_path / "secret").write_text("open sesame\n")
    (tmp_path / "secret").chmod(0o600)
    secret: list[str | Path] = [
        "--secret-file",
        "secret",
        "--journal",
        "journals",
        "--checkpoint",
        checkpoint,
    ]
    runtime: list[str | Path] = [
        "--listen",
        "127.0.0.1:0",
        *files,
        "two.jsonl",
        "-o",
        "two.json",
        "--jobs-out",
        "two.csv",
    ]
    with background("irtsched", *play, *secret, *runtime, cwd=tmp_path) as process:
        where = ["--connect", heard_address(process)]
        batch = aucsched(
            "ibsched", *play, *secret, *where, "--mapper", mapper, "--jobs-out", "batch.csv", cwd=tmp_path
        )
        assert (batch.returncode, batch.stderr) == (0, "")
        assert batch.stdout == f"small: {len(JOBS)} of {len(JOBS)} jobs are done\n"
        assert process.wait(30) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
    for one, two in (("one.jsonl", "two.jsonl"), ("one.json", "two.json"), ("one.csv", "two.csv")):
        assert (tmp_path / one).read_bytes() == (tmp_path / two).read_bytes()
    assert (tmp_path / "batch.csv").read_bytes() == (tmp_path / "one.csv").read_bytes()
    for journal in (tmp_path / "journals").iterdir():
        assert b"sesame" not in journal.read_bytes()
        assert (b'"checkpoint"' in journal.read_bytes()) == (checkpoint != "0")
    # Started once more when all is done, the runtime scheduler writes the same result from its journal.
    (tmp_path / "two.json").unlink()
    again = aucsched("irtsched", *play, *secret, *runtime, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    assert aucsched("negotiate", "--replay", "two.jsonl", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("slow", ["s[1-2]", "s[1-3]"])
def test_one_runtime_scheduler_holds_several_partitions(slow: str, tmp_path: Path) -> None:
    """Each job stays in its own; all of it is as in one process, and as with a party for each partition."""
    partitions = {"fast": "f[1-2]", "slow": slow}
    document = {
        "format": "aucsched-workload/1",
        "name": "two",
        "nodes": [{"name": nodes, "cores": 1, "partitions": [name]} for name, nodes in partitions.items()],
        "jobs": [
            {"id": f"{name[0]}{number}", "priority": 9 - number, "nodes": 1 + number % 2, "cores_per_node": 1,
             "arrival_s": 10 * number, "run_time_s": 50, "partition": name}
            for number in range(4) for name in partitions
        ],
    }  # fmt: skip
    path = tmp_path / "two.json"
    path.write_text(json.dumps(document))
    rows = []
    for runtimes in ("1", "2"):
        done = aucsched("negotiate", path, "--runtimes", runtimes, "--jobs-out", "j.csv", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        rows.append((tmp_path / "j.csv").read_text())
    out = ["--format", "json", "--trace", "t.jsonl", "-o", "m.json", "--jobs-out", "r.csv"]
    with background("irtsched", path, "--listen", "unix:s", *out, cwd=tmp_path) as process:
        batch = aucsched("ibsched", path, "--connect", "unix:s", "--jobs-out", "b.csv", cwd=tmp_path)
        assert batch.returncode == 0, batch.stderr
        assert process.wait(30) == 0
    rows += [(tmp_path / name).read_text() for name in ("r.csv", "b.csv")]
    assert rows[0] == rows[2] == rows[3]
    assert sorted(rows[0].splitlines()) == sorted(rows[1].splitlines())
    for line in (tmp_path / "t.jsonl").read_text().splitlines()[1:]:
        for entry in json.loads(line).get("message", {}).get("map", []):
            assert {name[0] for name in entry.get("nodes", [])} <= {entry["partition"][0]}


def test_kills_lose_nothing(workload: Path) -> None:
    """A few of the benchmark's kills; it exits with 1 when a job is lost or done twice, or a node shared."""
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "negotiation_kill.py", "--kills", "6", "--mapper", "greedy",
         workload, "--urgent", "kill"],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"kills +6 \(ibsched \d, irtsched \d\)", done.stdout), done.stdout
    assert f"{len(JOBS)} ends: each job once" in done.stdout


def test_kills_at_random_moments_with_checkpoints_lose_nothing(workload: Path) -> None:
    """Some of the benchmark's: its moments are drawn by the clock, as a journal with checkpoints shrinks."""
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "negotiation_kill.py", "--kills", "4", "--checkpoint", "8",
         "--mapper", "greedy", workload],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"kills +[1-4] \(ibsched \d, irtsched \d\)", done.stdout), done.stdout
    assert re.search(r"checkpoints +ibsched after [1-9]\d+, irtsched after [1-9]\d+ entries", done.stdout)
    assert f"{len(JOBS)} jobs, each done once" in done.stdout


def test_kills_after_checkpoints_lose_nothing(workload: Path, tmp_path: Path) -> None:
    """Each party is killed when its journal has just begun again, and a few entries later."""
    play: list[str | Path] = [workload, "--urgent", "kill", "--journal", "journals", "--checkpoint", "4"]
    lines = {
        "irtsched": ["irtsched", *play, "--listen", "unix:socket", "--jobs-out", "irtsched.csv"],
        "ibsched": ["ibsched", *play, "--connect", "unix:socket", "--jobs-out", "ibsched.csv"],
    }
    running: dict[str, subprocess.Popen[bytes]] = {}

    def start(party: str) -> None:
        command = [sys.executable, "-m", "aucsched", *map(str, lines[party])]
        running[party] = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def began(party: str) -> int:
        """Return which file the journal is: a checkpoint makes another one."""
        path = tmp_path / "journals" / f"{party}.journal"
        return path.stat().st_ino if path.exists() else 0

    killed = 0
    try:
        for party in lines:
            start(party)
        for number in range(6):
            party = list(lines)[number % 2]
            first, until = began(party), time.monotonic() + 60
            while began(party) == first and running[party].poll() is None and time.monotonic() < until:
                time.sleep(0.001)
            killed += running[party].poll() is None
            running[party].kill()
            running[party].wait()
            start(party)
        assert [process.wait(60) for process in running.values()] == [0, 0]
    finally:
        for process in running.values():
            process.kill()
            process.wait()
    assert killed >= 3
    rows = [(tmp_path / f"{party}.csv").read_text() for party in lines]
    assert rows[0] == rows[1]
    assert len(rows[0].splitlines()) == 1 + len(JOBS)


def test_who_plays_something_else_is_told_so(workload: Path, tmp_path: Path) -> None:
    with background("irtsched", workload, "--listen", "unix:s", cwd=tmp_path) as runtime:
        heard_address(runtime)
        other = aucsched("ibsched", "esp", "--connect", "unix:s", cwd=tmp_path)
        assert other.returncode == 1
        assert re.fullmatch(
            r"aucsched: the other party refuses: workload: irtsched has \w+, ibsched has \w+\n",
            other.stderr,
        )
        (tmp_path / "secret").write_text("s")
        lonely = aucsched("ibsched", workload, "--connect", "unix:s", "--secret-file", "secret", cwd=tmp_path)
        assert "ibsched asks for a shared secret, and irtsched has none" in lonely.stderr
        assert lonely.returncode == 1


def test_what_cannot_be_is_refused_in_one_line(workload: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "journals").mkdir()
    (tmp_path / "journals" / "ibsched.journal").write_text("something\n")
    for options, why in (
        ([], "give one of --listen and --connect"),
        (["--listen", "unix:s", "--connect", "unix:s"], "give one of --listen and --connect"),
        (["--connect", "nowhere"], "'nowhere' is not an address"),
        (["--connect", "unix:s", "--interval", "1e-9"], "1e-09 is not in the range x>=1"),
        (["--listen", "0.0.0.0:0"], "a shared secret is needed"),
        (["--connect", "unix:s", "--secret-file", "empty"], "empty: the file holds no secret"),
        (["--connect", "unix:s", "--journal", "journals"], "not a journal of a negotiation"),
        (["--connect", "unix:s", "--third-of", "queue", "--decision", "objective"], "--third-of needs"),
    ):
        assert why in refused("ibsched", workload, *options, cwd=tmp_path)
    (tmp_path / "journals" / "ibsched.journal").unlink()
    (tmp_path / "journals" / "ibsched.journal").symlink_to("/dev/null")
    line = refused("ibsched", workload, "--connect", "unix:s", "--journal", "journals", cwd=tmp_path)
    assert line.endswith("ibsched.journal: it is not a regular file, and not a journal of a negotiation")
    why = "/dev/zero: a secret of more than 4096 bytes"
    assert why in refused("ibsched", workload, "--connect", "unix:s", "--secret-file", "/dev/zero")
    absent = aucsched("ibsched", workload, "--connect", "unix:s", "--wait", "0.1", cwd=tmp_path)
    assert absent.returncode == 1
    assert absent.stderr == "aucsched: unix:s: No such file or directory, for 0.1 s\n"


@pytest.mark.parametrize("mode", [0o640, 0o602])
def test_a_secret_that_others_may_read_or_change_draws_a_remark(
    mode: int, workload: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("open sesame")
    line: list[str | Path] = [workload, "--connect", "unix:s", "--wait", "0", "--secret-file", secret]
    secret.chmod(mode)
    remark, error = aucsched("ibsched", *line, cwd=tmp_path).stderr.splitlines()
    assert remark.startswith(f"aucsched: {secret}: mode {mode:04o} lets others read or change the secret")
    assert "sesame" not in remark
    assert error.startswith("aucsched: unix:s: No such file")
    bad_address = [*line[:2], "memory", *line[3:]]
    assert "not an address" in refused("ibsched", *bad_address, cwd=tmp_path)
    secret.chmod(0o600)
    assert aucsched("ibsched", *line, cwd=tmp_path).stderr.splitlines() == [error]
