"""``aucsched slurm run``, ``gate`` and ``doctor`` as a user calls them, on a cluster in this process."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from support.gated_slurm import FakeSlurm

from aucsched.cli import run
from aucsched.cluster.errors import InputError
from aucsched.slurm.answers.live import Command, UnreachableError, collect
from aucsched.slurm.live.actions import Words
from aucsched.slurm.live.ticker import Stopping


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    """A cluster of two nodes that answers in the place of Slurm's commands, on the host's clock."""
    cluster = FakeSlurm(nodes={"n0": "idle", "n1": "idle"}, now=time.time())
    monkeypatch.setattr("aucsched.slurm.answers.live.ask_slurm", cluster.ask)
    monkeypatch.setattr("aucsched.slurm.live.actions.one_scontrol", cluster.hand)
    return cluster


def test_run_places_jobs_logs_them_and_says_so(
    fake: FakeSlurm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = fake.submit(8)
    log, lock = tmp_path / "run.jsonl", tmp_path / "lock"
    command = ["slurm", "run", "--once", "--log", str(log), "--lock", str(lock), "--work-limit", "0"]
    assert run(command) == 0
    assert "pass 1: 1 behind the gate, 1 pinned, 0 run" in capsys.readouterr().err
    assert job.required == ("n0", "n1")
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert events == ["begin", "intend", "done", "pass"]


def test_one_pass_whose_pins_are_all_refused_fails_and_says_so(
    fake: FakeSlurm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = fake.submit(4, takes_no_pin=True)
    fake.submit(4, takes_no_pin=True)
    files = ["--log", str(tmp_path / "log"), "--lock", str(tmp_path / "lock")]
    command = ["slurm", "run", "--once", *files, "--work-limit", "0"]
    assert run(command) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == "aucsched: Slurm refused 2 changes and accepted no pin"
    first.takes_no_pin = False
    assert run(command) == 0
    assert "1 pinned" in capsys.readouterr().err


def test_a_dry_run_prints_what_would_be_sent(fake: FakeSlurm, capsys: pytest.CaptureFixture[str]) -> None:
    job = fake.submit(8)
    assert run(["slurm", "run", "--dry-run", "--work-limit", "0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        r"scontrol create reservation ReservationName=auction_\S+ .*Flags=LICENSE_ONLY.*", lines[0]
    )
    assert re.fullmatch(r"scontrol update JobId=1 Licenses= ReqNodeList=n\[0-1\] MinCPUsNode=4 .*", lines[1])
    assert not fake.sent
    assert job.required == ()


def test_a_run_that_can_do_nothing_fails_and_says_why(
    fake: FakeSlurm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.is_up = False
    command = ["slurm", "run", "--once", "--log", str(tmp_path / "log"), "--lock", str(tmp_path / "lock")]
    assert run(command) == 1
    assert "Unable to contact slurm controller" in capsys.readouterr().err


def test_a_run_without_a_lock_waits_for_slurmctld(
    fake: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waited: list[float] = []

    def ask(command: Command) -> bytes:
        if not fake.is_up:
            raise UnreachableError("slurmctld cannot be reached", file="scontrol")
        return fake.ask(command)

    def wait(_: Stopping, seconds: float) -> None:
        waited.append(seconds)
        fake.is_up = len(waited) > 1

    monkeypatch.setattr("aucsched.slurm.answers.live.ask_slurm", ask)
    monkeypatch.setattr("aucsched.slurm.live.ticker.Stopping.wait", wait)
    monkeypatch.setattr("aucsched.slurm.live.ticker._FOLDER", tmp_path)
    fake.submit(8)
    fake.is_up, fake.name = False, "head"
    command = ["slurm", "run", "--log", str(tmp_path / "log"), "--work-limit", "0", "--interval", "7"]
    assert run([*command, "--once"]) == 2
    assert waited == []
    assert run([*command, "--passes", "1"]) == 0
    assert waited == [7, 7]
    said = capsys.readouterr().err
    assert said.count("asked again in 7 s: scontrol: slurmctld cannot be reached") == 2
    assert "1 pinned" in said
    assert len([*tmp_path.glob("aucsched-*.lock")]) == 1


def test_sigterm_finishes_the_pass(
    fake: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = fake.submit(8)
    signals: list[int] = []

    def told(commands: Sequence[Words]) -> tuple[str, ...]:
        if not signals:
            # With the first command of the pass, the gate's; a second signal would end the process.
            signals.append(signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGTERM)
        return fake.hand(commands)

    monkeypatch.setattr("aucsched.slurm.live.actions.one_scontrol", told)
    before = [(number, signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGINT)]
    try:
        command = ["slurm", "run", "--log", str(tmp_path / "log"), "--lock", str(tmp_path / "lock")]
        assert run([*command, "--work-limit", "0"]) == 0
    finally:
        for number, handler in before:
            signal.signal(number, handler)
    assert "pass 1: 1 behind the gate, 1 pinned" in capsys.readouterr().err
    assert fake.gate_is_up
    assert job.required == ("n0", "n1")


def test_the_gate_goes_up_and_down(fake: FakeSlurm, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["slurm", "gate", "status"]) == 1
    assert run(["slurm", "gate", "up", "--for", "90"]) == 0
    assert run(["slurm", "gate", "status"]) == 0
    assert run(["slurm", "gate", "up", "--for", "300"]) == 0
    assert len(fake.reservations) == 1
    assert run(["slurm", "gate", "down"]) == 0
    assert not fake.reservations
    assert run(["slurm", "gate", "down"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "no gate is up: Slurm starts jobs with the licence auction itself"
    assert re.fullmatch(r"auction_\S+: up, ends in \d+ s, holds 1000 of 1000 licences auction", said[2])
    assert said[-1] == "no gate is up"


def test_waiting_jobs_are_put_behind_the_gate(fake: FakeSlurm, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = [fake.submit(1, licenses=""), fake.submit(1, licenses="a|b"), fake.submit(1)]
    assert run(["slurm", "gate", "add", "--dry-run"]) == 0
    assert capsys.readouterr().out == "scontrol update JobId=1 Licenses=auction:1\n"
    assert run(["slurm", "gate", "add"]) == 0
    told = capsys.readouterr()
    assert told.out == "1 job was put behind the gate\n"
    assert "job 2 cannot be put behind the gate" in told.err
    assert [job.licenses for job in jobs] == ["auction:1", "a|b", "auction:1"]


def test_add_names_what_slurm_refused(
    fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = [fake.submit(1, licenses="") for _ in range(3)]

    def scontrol(commands: Sequence[Words]) -> tuple[str, ...]:
        jobs[2].state = "CANCELLED"
        return ("denied", *fake.hand([words for words in commands if "JobId=1" not in words]))

    monkeypatch.setattr("aucsched.slurm.live.actions.one_scontrol", scontrol)
    assert run(["slurm", "gate", "add"]) == 1
    told = capsys.readouterr()
    assert told.out.splitlines() == ["1: not put behind the gate", "1 job was put behind the gate"]
    assert told.err.startswith("note: denied\n")
    assert [job.licenses for job in jobs] == ["", "auction:1", ""]


def test_clear_takes_everything_of_the_gate_off(
    fake: FakeSlurm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pinned, behind = fake.submit(8), fake.submit(8)
    files = ["--log", str(tmp_path / "log"), "--lock", str(tmp_path / "lock")]
    assert run(["slurm", "run", "--once", *files, "--work-limit", "0"]) == 0
    assert pinned.required
    capsys.readouterr()
    assert run(["slurm", "gate", "clear", "--dry-run"]) == 0
    shown = capsys.readouterr()
    assert all(line.startswith("scontrol ") for line in shown.out.splitlines())
    assert "1: afterwards unpinned, its request is as it was" in shown.err
    assert pinned.required
    assert run(["slurm", "gate", "clear"]) == 0
    assert "1: unpinned, its request is as it was" in capsys.readouterr().out.splitlines()
    assert (pinned.required, pinned.licenses, behind.licenses) == ((), "", "")
    assert run(["slurm", "gate", "clear"]) == 0
    assert capsys.readouterr().out == "no job has anything of the gate\n"


def test_clear_names_what_slurm_refused_to_take_off(
    fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.submit(8)
    fake.hand([("create", "reservation", "ReservationName=aucsched-7", "Nodes=n0", "CoreCnt=1")])
    monkeypatch.setattr(
        "aucsched.slurm.live.actions.one_scontrol", lambda commands: ("denied",) * len(commands)
    )
    assert run(["slurm", "gate", "clear"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "1: still to do: afterwards the licence is off",
        "aucsched-7: still to do: afterwards removed",
    ]


def test_a_live_queue_is_forecast_with_a_note_where_run_times_are_not_known(
    fake: FakeSlurm,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def no_accounting(*_: object) -> bytes:
        raise InputError("accounting is off", file="sacct")

    monkeypatch.setattr("aucsched.slurm.answers.live.ask_slurm", no_accounting)
    monkeypatch.setattr("aucsched.slurm.answers.live.collect", partial(collect, ask=fake.ask))
    # A folder of that name is no snapshot.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slurm").mkdir()
    jobs = [fake.submit(8), fake.submit(8)]
    assert run(["forecast", "slurm", "--format", "json"]) == 0
    told = capsys.readouterr()
    assert [one["job"] for one in json.loads(told.out)["jobs"]] == [str(job.number) for job in jobs]
    assert "note: run times are not known, so that forecasts are wide: sacct: accounting is off" in told.err
    assert "note: scontrol show topology: not here; the topology is taken as linear" in told.err


def test_a_user_who_is_none_is_refused_and_one_without_jobs_is_noted(
    fake: FakeSlurm, capsys: pytest.CaptureFixture[str]
) -> None:
    job = fake.submit(1, licenses="", user="elsewhere")
    assert run(["slurm", "gate", "add", "--user", "elsewhere", "--user", "no-body"]) == 2
    told = capsys.readouterr()
    assert told.err == "aucsched: --user: 'no-body' has no job and is not a user of this host\n"
    assert (told.out, job.licenses) == ("", "")
    assert run(["slurm", "gate", "add", "--user", "elsewhere", "--user", "root"]) == 0
    told = capsys.readouterr()
    assert (told.out, told.err) == ("1 job was put behind the gate\n", "note: user root has no job\n")


def test_the_plugin_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["slurm", "gate", "lua"]) == 0
    assert "function slurm_job_submit(" in capsys.readouterr().out


def test_a_licence_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["slurm", "run", "--license", "a b"]) == 2
    assert "'a b' is not a plain name of a licence" in capsys.readouterr().err


def test_doctor_fails_where_the_controller_does_not_answer(
    fake: FakeSlurm, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.is_up = False
    assert run(["slurm", "doctor"]) == 1
    assert capsys.readouterr().out.startswith("fail controller")


@pytest.mark.parametrize("option", ["--rest", "--rest-token"])
@pytest.mark.parametrize("command", ["run", "doctor"])
def test_changes_by_slurmrestd_were_removed(
    command: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["slurm", command, option, "unix:/run/rest.sock"]) == 2
    said = capsys.readouterr().err
    assert said.strip() == f"aucsched: {option}: removed in 0.2; scontrol makes every change of a job"
