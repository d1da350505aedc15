"""The shadow: a whole day beside a cluster that goes on, where nothing but questions is ever asked."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.fake_slurm import CORES, FakeSlurm, FakeWait, day_of_jobs
from support.run import Done
from support.run import aucsched as commanded

import aucsched
from aucsched.auction.options import StepOptions
from aucsched.cluster.errors import InputError
from aucsched.formats.hostlist import expand
from aucsched.slurm.answers.live import Command
from aucsched.slurm.live.live_forecasts import LiveForecasts
from aucsched.slurm.live.loop_metrics import Metrics
from aucsched.slurm.live.passes import take_look, take_pass, watch
from aucsched.slurm.live.replay import workload_of
from aucsched.slurm.live.shadow_log import RotatedLog, ShadowPass, encode, read_logs
from aucsched.slurm.live.ticker import Ticker

BEGIN = 1_795_000_000
INTERVAL = 600
#: What only asks, whatever follows; of scontrol nothing but ``show``.
ASKING = {"squeue", "sinfo", "sprio", "sdiag"}


def changes_nothing(command: Command) -> bool:
    if command[0] in ASKING:
        return True
    words = [word for word in command[1:] if not word.startswith("-")]
    return command[0] == "scontrol" and (words[:1] == ["show"] or command[1:] == ("--version",))


def play(
    cluster: FakeSlurm,
    passes: int,
    interval: int = INTERVAL,
    failed: list[InputError] | None = None,
    ask: Callable[[Command], bytes] | None = None,
    forecasts: LiveForecasts | None = None,
) -> list[ShadowPass]:
    entries: list[ShadowPass] = []
    options = StepOptions(strategy="greedy")

    def clock() -> float:
        return float(cluster.now)

    watch(
        lambda: take_pass(take_look(ask=ask or cluster.ask, now=clock), options),
        entries.append,
        Ticker(interval_s=interval, passes=passes, clock=clock, stopping=FakeWait(cluster)),
        Metrics(loop="shadow"),
        options={"strategy": "greedy"},
        failed=(failed if failed is not None else list[InputError]()).append,
        forecasts=None if forecasts is None else lambda look: forecasts.look(look.snapshot, look.started),
    )
    return entries


@pytest.fixture(scope="module")
def day() -> tuple[FakeSlurm, list[ShadowPass]]:
    """A day of 8 nodes, and what the shadow wrote."""
    cluster = FakeSlurm(8, day_of_jobs(1, nodes=8, begin=BEGIN), now=BEGIN)

    def forbidden(*what: object, **more: object) -> None:
        raise AssertionError(f"the cluster is asked in one place only, not by {what}, {more}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", forbidden)
        patch.setattr(os, "system", forbidden)
        patch.setattr(os, "posix_spawn", forbidden)
        patch.setattr(socket.socket, "connect", forbidden)
        return cluster, play(cluster, 86400 // INTERVAL)


def test_a_pass_forecasts_the_jobs_that_are_new() -> None:
    cluster = FakeSlurm(8, day_of_jobs(1, nodes=8, begin=BEGIN), now=BEGIN)
    entries = play(cluster, 12, forecasts=LiveForecasts())
    found = [job for entry in entries for job in entry.forecast]
    assert len(found) == len(set(found)) > 1
    assert all(p10 <= p50 <= p90 for entry in entries for p10, p50, p90 in entry.forecast.values())


def test_a_whole_day_and_nothing_but_questions(day: tuple[FakeSlurm, list[ShadowPass]]) -> None:
    cluster, entries = day
    assert len(entries) == 144
    assert entries[-1].time - entries[0].time == 86400 - INTERVAL
    commands = Counter(cluster.asked)
    assert commands["squeue", "--json"] == 144
    assert [command for command in commands if not changes_nothing(command)] == []


def test_every_start_and_end_of_slurms_is_written_once(day: tuple[FakeSlurm, list[ShadowPass]]) -> None:
    cluster, entries = day
    told = [(start.job, start.start) for entry in entries for start in entry.started]
    last = entries[-1].time
    assert sorted(told) == sorted(
        (str(job.id), float(job.start)) for job in cluster.jobs if job.start is not None and job.start <= last
    )
    assert len(told) > 50
    jobs = {str(job.id): job for job in cluster.jobs}
    for entry in entries:
        for start in entry.started:
            assert expand(start.nodes) == jobs[start.job].places
            assert start.cores == CORES * jobs[start.job].nodes
        for end in entry.ended:
            # Jobs are listed for five minutes, a pass is made every ten.
            late = end.end - (jobs[end.job].end or 0)
            assert late == 0 if end.state == "COMPLETED" else 300 <= late < INTERVAL
    ends = Counter(end.job for entry in entries for end in entry.ended)
    assert set(ends.values()) == {1}
    assert set(ends) == {str(job.id) for job in cluster.jobs if job.end is not None and job.end <= last}
    assert {end.state for entry in entries for end in entry.ended} == {"COMPLETED", "forgotten"}


def test_what_we_would_start_waits_and_fits_beside_what_runs(day: tuple[FakeSlurm, list[ShadowPass]]) -> None:
    cluster, entries = day
    waiting: set[str] = set()
    offers = 0
    for entry in entries:
        running = {
            name
            for job in cluster.jobs
            if job.start is not None and job.start <= entry.time < (job.end or 0)
            for name in job.places
        }
        waiting |= {job.job for job in entry.seen}
        waiting -= {start.job for start in entry.started} | set(entry.gone)
        assert len(waiting) == entry.waiting
        places = [name for offer in entry.would for name in expand(offer.nodes)]
        assert {offer.job for offer in entry.would} <= waiting
        assert len(places) == len(set(places))
        assert not running & set(places)
        assert entry.used == CORES * len(running)
        assert entry.cores == 8 * CORES
        offers += len(entry.would)
    # The cluster does not backfill, the auction does: it has something to say.
    assert offers > 20
    levels = {offer.level for entry in entries for offer in entry.would}
    assert levels <= {0, 1}
    assert {start.level for entry in entries for start in entry.started} == {0, 1}


def test_a_pass_that_fails_is_told_and_the_next_one_says_what_it_missed() -> None:
    cluster = FakeSlurm(4, day_of_jobs(2, nodes=4, begin=BEGIN, load=0.05), now=BEGIN)
    failures: list[InputError] = []

    def ask(command: Command) -> bytes:
        if command[0] == "squeue" and cluster.now == BEGIN + 50 * INTERVAL:
            raise InputError("the command failed: slurmctld is down", file="squeue --json")
        return cluster.ask(command)

    entries = play(cluster, 144, failed=failures, ask=ask)
    assert len(entries) == 143
    assert [str(error) for error in failures] == ["squeue --json: the command failed: slurmctld is down"]
    started = [start.job for entry in entries for start in entry.started]
    assert sorted(started, key=int) == [str(job.id) for job in cluster.jobs]


def test_the_log_played_again_under_the_same_rule_starts_every_job_when_slurm_did() -> None:
    cluster = FakeSlurm(8, day_of_jobs(3, nodes=8, begin=BEGIN), now=BEGIN)
    # What runs when the shadow comes holds its nodes; passes come before Slurm forgets an end.
    cluster.advance(9000)
    first = cluster.now
    assert cluster.running()
    # Nothing waits, so that the order of the queue is that of the submissions.
    while cluster.waiting():
        cluster.advance(60)
        first = cluster.now
    entries = play(cluster, 100, interval=240)
    workload, notes = workload_of(entries)
    assert workload.nodes[0].name == "n00"
    assert {switch.name for switch in workload.switches or ()} == {"s0", "s1", "top"}
    last = entries[-1].time
    # Later starts may wait for jobs whose run times were cut short by the end of the log.
    known = [job for job in cluster.jobs if job.submit > first and job.end is not None and job.end < last]
    played = aucsched.simulate(workload, "fcfs").columns
    starts = dict(zip(played["id"], played["start_s"], strict=True))
    same = [job.id for job in known if starts[str(job.id)] + first == job.start]
    assert len(known) > 12
    assert [job.id for job in known if job.id not in same] == []
    assert any("left out" in text for text in notes.texts())
    # Requeued in the last pass: its first run is the one that is played.
    again = next(start for one in entries for start in one.started if start.submit > first)
    last_pass = replace(entries[-1], started=(*entries[-1].started, replace(again, start=again.start + 1e6)))
    _, noted = workload_of([*entries[:-1], last_pass])
    assert "later runs of requeued jobs, left out: 1" in noted.texts()
    assert "later runs of requeued jobs, left out: 1" not in notes.texts()


def entry(time: float) -> ShadowPass:
    return ShadowPass(time=time, interval_s=30, read_s=0, decide_s=0, cores=8, used=0, waiting=0, running=0)


def test_logs_are_put_aside_and_read_together(tmp_path: Path) -> None:
    path = tmp_path / "shadow.jsonl"
    size = len(encode(entry(1000.0)))
    with RotatedLog(path, most_bytes=3 * size, keep=2) as log:
        for number in range(10):
            log.append(encode(entry(1000.0 + number)))
        with pytest.raises(InputError, match="another process is writing it"):
            RotatedLog(path, most_bytes=1, keep=1)
    assert sorted(one.name for one in tmp_path.iterdir()) == [
        "shadow.jsonl",
        "shadow.jsonl.1",
        "shadow.jsonl.2",
    ]
    read, torn = read_logs([str(one) for one in tmp_path.iterdir()])
    assert [one.time for one in read] == [1003.0 + number for number in range(7)]
    assert torn == 0


def test_a_log_that_somebody_else_renames_or_removes_goes_on_under_its_name(tmp_path: Path) -> None:
    """As logrotate does; a log that nobody could read later is none."""
    folder = tmp_path / "logs"
    folder.mkdir()
    path = folder / "shadow.jsonl"
    with RotatedLog(path, most_bytes=10**6, keep=1) as log:
        log.append(encode(entry(1.0)))
        path.rename(folder / "old")
        log.append(encode(entry(2.0)))
        assert [one.time for one in read_logs([str(path)])[0]] == [2.0]
        folder.rename(tmp_path / "away")
        with pytest.raises(InputError, match=r"shadow\.jsonl: No such file or directory"):
            log.append(encode(entry(3.0)))
        folder.mkdir()
        log.append(encode(entry(4.0)))
    assert [one.time for one in read_logs([str(path)])[0]] == [4.0]


@pytest.mark.parametrize("left", [encode(entry(2.0))[:40], encode(entry(2.0))[:9] + bytes(80), bytes(99)])
def test_a_line_cut_short_by_a_kill_or_a_crash_of_the_host_is_left_out(tmp_path: Path, left: bytes) -> None:
    path = tmp_path / "shadow.jsonl"
    path.write_bytes(encode(entry(1.0)) + left)
    with RotatedLog(path, most_bytes=10**6, keep=1) as log:
        log.append(encode(entry(3.0)))
    read, torn = read_logs([str(path)])
    assert ([one.time for one in read], torn) == ([1.0, 3.0], 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it holds no pass"),
        (b"hello\n", "line 1: not a line of a shadow log"),
        (
            b'{"format":"aucsched-shadow/1","time":"x"}\n',
            "line 1: not a line of a shadow log: Expected `float`",
        ),
        (
            b'{"event":"begin","at":1.0,"number":1}\n',
            "line 1: not a line of a shadow log: this is a log of slurm run",
        ),
        (encode(entry(1.0)).replace(b"shadow/1", b"shadow/9"), "line 1 format: 'aucsched-shadow/9' is not"),
    ],
)
def test_what_is_no_log_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_logs([str(path)])
    assert str(caught.value).startswith(f"{path}: {message}")


def installed(folder: Path, cluster: FakeSlurm, spy: Path) -> Path:
    """Install commands that write down how they are called and print what the cluster answers now."""
    folder.mkdir()
    for program in ("squeue", "sinfo", "scontrol"):
        lines = ["#!/bin/sh", f"echo \"{program} $*\" >> '{spy}'", 'case "$*" in']
        for command in (
            ("squeue", "--json"),
            ("sinfo", "--json"),
            ("scontrol", "show", "topology"),
            ("scontrol", "-d", "show", "job"),
        ):
            if command[0] == program:
                answer = folder / f"{'_'.join(command)}.txt"
                answer.write_bytes(cluster.ask(command).rstrip(b"\n") + b"\n")
                lines.append(
                    f'"{" ".join(command[1:])}") while IFS= read -r line; do printf \'%s\\n\' "$line"; '
                    f"done < '{answer}' ;;"
                )
        (folder / program).write_text("\n".join([*lines, "*) exit 1 ;;", "esac", ""]))
        (folder / program).chmod(0o755)
    return folder


def shadow(path: Path | str, *arguments: str | Path) -> Done:
    return commanded("slurm", "shadow", *arguments, env={"PATH": str(path)})


def test_the_command_as_a_user_runs_it(tmp_path: Path) -> None:
    cluster = FakeSlurm(4, day_of_jobs(2, nodes=4, begin=BEGIN), now=BEGIN)
    cluster.advance(40_000)
    spy, log = tmp_path / "spy", tmp_path / "log.jsonl"
    path = installed(tmp_path / "bin", cluster, spy)
    done = shadow(path, "--passes", "2", "--interval", "0.1", "-o", log, "--strategy", "greedy")
    assert (done.returncode, done.stdout) == (0, "")
    entries, _ = read_logs([str(log)])
    assert [one.is_first for one in entries] == [True, False]
    assert entries[0].waiting == len(cluster.waiting())
    assert {job.job for job in entries[0].seen} == {str(job.id) for job in cluster.waiting()}
    assert entries[1].seen == []
    assert entries[0].options == {"strategy": "greedy"}
    called = [tuple(line.split()) for line in spy.read_text().splitlines()]
    assert len(called) > 10
    assert all(changes_nothing(command) for command in called)
    printed = shadow(path, "--once", "--strategy", "greedy")
    assert json.loads(printed.stdout)["format"] == "aucsched-shadow/1"


def test_a_signal_ends_it_after_the_pass(tmp_path: Path) -> None:
    cluster = FakeSlurm(4, day_of_jobs(2, nodes=4, begin=BEGIN), now=BEGIN)
    path = installed(tmp_path / "bin", cluster, tmp_path / "spy")
    command = [
        sys.executable,
        "-m",
        "aucsched",
        "slurm",
        "shadow",
        "--interval",
        "3600",
        "--strategy",
        "greedy",
    ]
    environment = {**os.environ, "PATH": str(path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as running:
        assert running.stdout is not None
        line = running.stdout.readline()
        running.send_signal(signal.SIGTERM)
        rest, _ = running.communicate(timeout=60)
    assert running.returncode == 0
    assert json.loads(line)["is_first"] is True
    assert rest == b""


def test_one_pass_that_fails_is_the_commands_failure(tmp_path: Path) -> None:
    done = shadow(tmp_path, "--once")
    assert done.returncode == 2
    assert done.stderr.startswith("squeue --json: the command is not installed here")
    many = shadow(tmp_path, "--passes", "2", "--interval", "0.1")
    assert many.returncode == 0
    assert many.stderr.count("the command is not installed here") == 2


def test_a_promise_of_simulations_is_refused_before_the_first_pass(tmp_path: Path) -> None:
    done = shadow(tmp_path, "--promise", "12h", "--passes", "2", "--interval", "0.1")
    assert (done.returncode, "'12h' is for simulations" in done.stderr) == (2, True)
    assert "squeue" not in done.stderr


def test_nothing_is_appended_to_what_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "now.json"
    for content in ('{"format": "aucsched-snapshot/1", "nodes": []}\n', "; MaxProcs: 4\n", "x"):
        path.write_text(content)
        with pytest.raises(InputError, match="it is not a log of a loop: nothing is appended"):
            RotatedLog(path, most_bytes=10**6, keep=1)
        assert path.read_text() == content
    for content in ("", '{"format":"aucsched-sha', '{"event":"pass"}\n'):
        path.write_text(content)
        with RotatedLog(path, most_bytes=10**6, keep=1):
            pass
