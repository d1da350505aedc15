"""What users, administrators and machines do while jobs are behind the gate, and what becomes of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.gated_slurm import FakeJob, FakeSlurm, loop_on

from aucsched.slurm.answers.live import RESERVATIONS, Command, UnreachableError, ask_slurm
from aucsched.slurm.answers.reservation_records import read_reservations
from aucsched.slurm.live.actions import Words, one_scontrol
from aucsched.slurm.live.live_queue import Mark, read_mark, write_mark
from aucsched.slurm.live.loop import Loop, PassReport
from aucsched.slurm.live.pass_plan import cleared, read_all


def cluster(nodes: int = 4) -> FakeSlurm:
    return FakeSlurm(nodes={f"n{number}": "idle" for number in range(nodes)})


def between(fake: FakeSlurm, loop: Loop, change: Callable[[], object]) -> PassReport:
    """Run a pass in which something changes after the look and before the plan is carried out."""
    fake.between = change
    report = loop.one_pass()
    fake.between = lambda: None
    return report


def pinned(fake: FakeSlurm, *, run_s: float = 15, **options: Any) -> tuple[Loop, FakeJob]:
    """A loop and a job that it pinned, which has not started yet; ``options`` are the loop's."""
    job = fake.submit(4, run_s=run_s)
    loop = loop_on(fake, **options)
    assert loop.one_pass().pinned == 1
    assert job.required
    return loop, job


def passes(fake: FakeSlurm, loop: Loop, count: int) -> list[PassReport]:
    reports = []
    for _ in range(count):
        reports.append(loop.one_pass())
        for _ in range(10):
            fake.tick()
    return reports


def cancel(job: FakeJob) -> None:
    job.state = "CANCELLED"


def take_licence_off(job: FakeJob) -> None:
    job.licenses = ""


def ask_for_a_node(job: FakeJob) -> None:
    job.required = ("n3",)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (cancel, "it is cancelled"),
        (take_licence_off, "its licences were changed"),
        (ask_for_a_node, "its nodes were changed"),
    ],
)
def test_a_job_changed_since_the_look_is_left_alone(change: Callable[[FakeJob], None], why: str) -> None:
    fake = cluster()
    job = fake.submit(4)
    loop = loop_on(fake)
    assert between(fake, loop, lambda: change(job)).dropped == 1
    assert fake.events("drop")[0]["changed"] == why
    assert not any("JobId" in word for words in fake.sent for word in words)


@pytest.mark.parametrize("state", ["drain", "down"])
def test_a_node_that_goes_since_the_look_gets_no_job(state: str) -> None:
    fake = cluster(1)
    job = fake.submit(4)
    loop = loop_on(fake)
    report = between(fake, loop, lambda: fake.nodes.update(n0=state))
    assert (report.pinned, report.dropped) == (0, 1)
    assert job.required == ()


def test_somebody_elses_job_on_the_node_since_the_look_keeps_ours_behind_the_gate() -> None:
    fake = cluster(1)
    job = fake.submit(4)
    loop = loop_on(fake)

    def start_another() -> None:
        fake.submit(1, licenses="", priority=999)
        fake.tick()

    assert between(fake, loop, start_another).dropped == 1
    assert fake.events("drop")[0]["changed"] == "node n0 has 3 idle CPUs, not 4"
    assert job.licenses == "auction:1"


@pytest.mark.parametrize("state", ["drain", "down"])
def test_a_pinned_job_leaves_a_node_that_goes_at_once_and_runs_elsewhere(state: str) -> None:
    fake = cluster(2)
    loop, job = pinned(fake)
    gone = job.required[0]
    fake.nodes[gone] = state
    assert passes(fake, loop, 1)[0].put_back == 1
    assert f"node {gone} takes no jobs" in fake.events("done")[-1]["why"]
    passes(fake, loop, 3)
    assert job.state == "COMPLETED"
    assert len(job.starts) == 1
    assert gone not in job.starts[0]


def test_a_node_removed_with_a_restart_kills_only_what_was_pinned_to_it_a_moment_ago() -> None:
    """Slurm kills pending jobs that name a removed node: no job names one for longer than --pin-for."""
    fake = cluster(4)
    jobs = [fake.submit(4, priority=100 - number, run_s=300) for number in range(6)]
    loop = loop_on(fake)
    passes(fake, loop, 2)
    naming = {job.number for job in jobs if job.required}
    assert naming == {job.number for job in jobs if job.state == "RUNNING"}
    fake.remove("n0")
    assert [job.state for job in jobs].count("FAILED") == 1
    waiting = [job for job in jobs if job.state == "PENDING"]
    passes(fake, loop, 70)
    assert all(job.state == "COMPLETED" for job in waiting)


def test_a_pinned_job_that_is_held_goes_back_behind_the_gate_and_stays_held() -> None:
    fake = cluster()
    loop, job = pinned(fake)
    job.priority = 0
    passes(fake, loop, 3)
    assert (job.state, job.licenses, job.required) == ("PENDING", "auction:1", ())
    job.priority = 5
    passes(fake, loop, 3)
    assert job.state == "COMPLETED"


def test_a_held_job_and_one_that_waits_for_another_are_not_started() -> None:
    fake = cluster()
    held, behind = fake.submit(4, priority=0), fake.submit(4, dependency="afterok:1")
    passes(fake, loop_on(fake), 2)
    assert (held.starts, behind.starts) == ([], [])
    behind.dependency = ""
    passes(fake, loop_on(fake), 1)
    assert len(behind.starts) == 1


def test_a_requeued_job_is_put_back_and_auctioned_again() -> None:
    fake = cluster()
    loop, job = pinned(fake)
    fake.tick()
    assert job.state == "RUNNING"
    taken = fake.submit(4, licenses="", priority=999, run_s=900)
    fake.requeue(job)
    taken.held, taken.state, taken.end = {job.required[0]: 4}, "RUNNING", fake.now + 900
    passes(fake, loop, 10)
    assert [line["kind"] for line in fake.events("done")] == ["pin", "unpin", "pin"]
    assert len(job.starts) == 2
    assert job.starts[0] != job.starts[1]


def test_a_requeued_job_leaves_its_nodes_in_the_pass_that_sees_it() -> None:
    """Slurm lets it begin later: until then its nodes are those of others."""
    fake = cluster(1)
    loop, job = pinned(fake, run_s=300)
    other = fake.submit(4)
    passes(fake, loop, 2)
    assert job.state == "RUNNING"
    fake.requeue(job)
    job.begin = fake.now + 120
    report = loop.one_pass()
    assert (report.put_back, report.pinned) == (1, 1)
    assert fake.events("done")[-2]["why"] == "it was requeued"
    assert (job.licenses, job.required, other.required) == ("auction:1", (), ("n0",))


def test_a_user_who_changes_a_pinned_job_keeps_the_change_when_it_goes_back() -> None:
    fake = cluster()
    job = fake.submit(8, least=2, most=3)
    loop = loop_on(fake)
    loop.one_pass()
    assert (job.least, job.most, job.cpus, job.min_cpus) == (2, 2, 8, 4)
    job.cpus, job.most = 6, 4
    fake.nodes[job.required[0]] = "drain"
    assert loop.one_pass().put_back == 1
    assert (job.cpus, job.most) == (6, 4)
    assert job.required == ()


def test_a_closed_partition_starts_nothing_and_its_jobs_wait() -> None:
    fake = cluster()
    fake.partition_state = "DOWN"
    job = fake.submit(4)
    loop = loop_on(fake)
    assert passes(fake, loop, 2)[-1].pinned == 0
    assert (job.licenses, job.required) == ("auction:1", ())
    fake.partition_state = "UP"
    passes(fake, loop, 2)
    assert len(job.starts) == 1


def test_a_partition_that_closes_over_a_pinned_job_puts_it_back_in_the_end() -> None:
    fake = cluster()
    loop, job = pinned(fake)
    fake.partition_state = "DOWN"
    passes(fake, loop, 9)
    assert (job.licenses, job.required) == ("auction:1", ())


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0])
def test_a_clock_that_jumps_costs_a_pin_and_no_job(jump: float) -> None:
    """Forward, the gate ends at once and Slurm takes what waits; backward, the pin's age is not known."""
    fake = cluster(1)
    first = fake.submit(4, priority=200)
    loop = loop_on(fake)
    loop.one_pass()
    second = fake.submit(4)
    fake.nodes["n0"] = "drain"
    loop.one_pass()
    fake.now += jump
    fake.nodes["n0"] = "idle"
    passes(fake, loop, 12)
    assert [len(job.starts) for job in (first, second)] == [1, 1]
    assert {job.state for job in (first, second)} == {"COMPLETED"}


def test_a_full_disk_changes_nothing_and_lets_the_gate_end() -> None:
    fake = cluster()
    loop = loop_on(fake)
    loop.one_pass()
    fake.disk_is_full = True
    job, count = fake.submit(4), len(fake.sent)
    reports = passes(fake, loop, 12)
    assert "No space left" in reports[0].outcome
    assert len(fake.sent) == count
    assert not fake.gate_is_up
    passes(fake, loop, 2)
    assert len(job.starts) == 1
    assert job.required == ()
    fake.disk_is_full = False
    assert passes(fake, loop, 1)[0].outcome == "done"
    assert fake.gate_is_up


def test_a_disk_that_fills_between_plan_and_change_changes_nothing() -> None:
    fake = cluster()
    job = fake.submit(4)

    def fill() -> None:
        fake.disk_is_full = True

    report = between(fake, loop_on(fake), fill)
    assert "No space left" in report.outcome
    assert (job.licenses, job.required) == ("auction:1", ())


def test_a_controller_that_is_gone_and_comes_back_is_waited_for() -> None:
    fake = cluster()
    loop, job = pinned(fake)
    fake.is_up = False
    assert "Unable to contact" in passes(fake, loop, 2)[1].outcome
    fake.is_up = True
    assert passes(fake, loop, 2)[-1].outcome == "done"
    assert len(job.starts) == 1


def restart(fake: FakeSlurm) -> None:
    """Restart slurmctld: its nodes do not respond for a while."""
    fake.booted = fake.now
    fake.nodes.update(dict.fromkeys(fake.nodes, "idle*"))


def tries(job: FakeJob) -> int:
    mark = read_mark(job.comment)
    return 0 if mark is None else mark.tries


@pytest.mark.parametrize("words", ["licenses", "topology", "-d show job", "partitions"])
def test_a_controller_that_leaves_one_question_open_starts_nothing(
    words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the licences a job that asks for one would be handed over as not expressible."""
    fake = cluster()
    loop_on(fake).one_pass()
    fake.submit(4, licenses="auction:1,matlab:1")
    answer = fake.ask

    def ask(command: Command) -> bytes:
        if words in " ".join(command):
            raise UnreachableError("slurmctld cannot be reached", file=" ".join(command))
        return answer(command)

    monkeypatch.setattr(fake, "ask", ask)
    assert "cannot be reached" in loop_on(fake).one_pass().outcome
    assert not any(words[0] == "update" and words[1].startswith("JobId=") for words in fake.sent)


def test_nodes_that_do_not_respond_cost_a_pinned_job_no_try() -> None:
    fake = cluster(1)
    loop, job = pinned(fake, tries=1)
    for _ in range(3):
        restart(fake)
        assert loop.one_pass().put_back == 1
        assert (job.licenses, tries(job)) == ("auction:1", 0)
        fake.nodes["n0"] = "idle"
        assert loop.one_pass().pinned == 1
    passes(fake, loop, 1)
    assert len(job.starts) == 1


@pytest.mark.parametrize(
    ("booted", "kind"), [(-100, "hand over"), (-50, "unpin"), (10, "unpin"), (None, "hand over")]
)
def test_a_pin_that_met_a_restart_of_slurmctld_is_no_try(booted: int | None, kind: str) -> None:
    fake = cluster(1)
    loop, job = pinned(fake, tries=1)
    if booted is not None:
        fake.booted = fake.now + booted
    # Nothing starts.
    fake.now += 61
    loop.one_pass()
    (line,) = (line for line in fake.events("done") if line["kind"] != "pin")
    assert line["kind"] == kind
    assert "did not start within 60 s" in line["why"]
    assert tries(job) == 0


def test_a_job_that_ran_before_it_lost_its_node_was_tried() -> None:
    fake = cluster(1)
    loop, job = pinned(fake, tries=1)
    passes(fake, loop, 1)
    loop.one_pass()
    fake.requeue(job)
    restart(fake)
    assert loop.one_pass().handed_over == 1


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_a_job_that_is_cancelled_before_its_pin_is_not_counted_as_pinned(*, is_forgotten: bool) -> None:
    fake = cluster()
    job, other = fake.submit(4), fake.submit(4)

    def hand(commands: Sequence[Words]) -> tuple[str, ...]:
        if any("JobId=1" in words for words in commands):
            cancel(job)
            if is_forgotten:
                del fake.jobs["1"]
        return fake.hand(commands)

    report = loop_on(fake, runner=hand).one_pass()
    assert (report.pinned, report.refused) == (1, 1)
    assert [line["job"] for line in fake.events("done")] == [str(other.number)]


@pytest.mark.parametrize("is_forgotten", [False, True])
@pytest.mark.parametrize("tries", [1, 3])
def test_a_job_that_is_cancelled_before_it_is_put_back_or_handed_over_counts_as_neither(
    tries: int, *, is_forgotten: bool
) -> None:
    fake = cluster()
    job = fake.submit(4)

    def hand(commands: Sequence[Words]) -> tuple[str, ...]:
        if job.required and any("JobId=1" in words for words in commands):
            cancel(job)
            if is_forgotten:
                del fake.jobs["1"]
        return fake.hand(commands)

    loop = loop_on(fake, tries=tries, runner=hand)
    assert loop.one_pass().pinned == 1
    fake.nodes[job.required[0]] = "drain"
    report = loop.one_pass()
    assert (report.put_back, report.handed_over, report.refused) == (0, 0, 1)
    assert report.why in {"Invalid job id specified", "Job is no longer pending execution"}


def test_a_job_that_is_handed_over_and_then_cancelled_as_it_runs_was_handed_over() -> None:
    fake = cluster()
    job = fake.submit(4, features="a|b")

    def hand(commands: Sequence[Words]) -> tuple[str, ...]:
        said = fake.hand(commands)
        if "auction" not in job.licenses:
            fake.tick()
            fake.tick()
            cancel(job)
        return said

    report = loop_on(fake, runner=hand).one_pass()
    assert len(job.starts) == 1
    assert (report.handed_over, report.refused) == (1, 0)


def test_a_pinned_job_that_has_started_and_ended_by_the_next_look_was_pinned() -> None:
    fake = cluster()
    fake.submit(4, run_s=1)

    def hand(commands: Sequence[Words]) -> tuple[str, ...]:
        said = fake.hand(commands)
        fake.tick()
        fake.tick()
        return said

    assert loop_on(fake, runner=hand).one_pass().pinned == 1
    assert fake.jobs["1"].state == "COMPLETED"


def test_without_rest_nothing_is_asked_of_slurmrestd_which_may_be_gone() -> None:
    """Whatever a pass does, Slurm's commands do it: pin, put back, clear, keep the gate."""
    fake = cluster(2)
    loop, job = pinned(fake)
    uneven = fake.submit(3, least=2, most=2)
    fake.nodes[job.required[0]] = "drain"
    reports = passes(fake, loop, 3)
    assert {report.outcome for report in reports} == {"done"}
    assert uneven.state == "PENDING"
    assert {command[0] for command in fake.asked} == {"squeue", "sinfo", "scontrol"}
    assert {words[0] for words in fake.sent} <= {"update", "create", "delete"}


def test_a_gate_put_down_by_hand_is_put_up_again_and_what_slurm_started_meanwhile_counts() -> None:
    fake = cluster(1)
    loop = loop_on(fake)
    loop.one_pass()
    fake.reservations.clear()
    by_slurm = fake.submit(4)
    fake.tick()
    assert by_slurm.state == "RUNNING"
    behind = fake.submit(4)
    assert passes(fake, loop, 1)[0].pinned == 0
    assert fake.gate_is_up
    passes(fake, loop, 4)
    assert [len(job.starts) for job in (by_slurm, behind)] == [1, 1]


def test_a_job_before_its_begin_time_is_not_pinned_though_slurm_shows_no_reason() -> None:
    fake = cluster()
    fake.now += 5
    later, after = fake.submit(4, begin=fake.now + 3600), fake.submit(4, dependency="afterok:7(unfulfilled)")
    for job in (later, after):
        # As after any update of a job: 22.05 shows no reason until its next cycle.
        job.is_updated = True
    report = loop_on(fake).one_pass()
    assert (report.outcome, report.pinned) == ("done", 0)
    assert (later.required, after.required) == ((), ())
    later.begin, after.dependency = fake.now - 1, "afterok:7(fulfilled)"
    assert loop_on(fake).one_pass().pinned == 2


@pytest.mark.parametrize("is_stale", [False, True])
def test_clearing_leaves_nothing_of_ours_on_any_job(*, is_stale: bool) -> None:
    fake = cluster()
    fake.submit(4, own_comment="theirs", required=("n1",), least=1, most=2)
    fake.submit(6, least=2, most=2)
    fake.submit(4, begin=fake.now + 3600)
    before = {name: (*job.asked(), job.comment) for name, job in fake.jobs.items()}
    loop = loop_on(fake)
    assert loop.one_pass().pinned == 2
    if is_stale:
        fake.reservations.pop("auction_one_root")
    running = fake.submit(4, required=("n3",), comment=write_mark(Mark(since=1, cores=(4,))))
    running.state, running.held = "RUNNING", {"n3": 4}
    reserved = read_reservations(fake.ask(RESERVATIONS))
    found = cleared(read_all(fake.ask), "auction", reserved)
    assert not fake.hand([words for one in found for words in one.commands])
    assert {name: (*job.asked(), job.comment) for name, job in fake.jobs.items() if name != "4"} == before
    assert {job.licenses for job in fake.jobs.values() if job.state == "PENDING"} == {""}
    assert (running.comment, running.required, running.licenses) == ("", ("n3",), "")
    assert not [name for name in fake.reservations if name.startswith("aucsched-")]
    # Once more changes nothing.
    assert not cleared(read_all(fake.ask), "auction", read_reservations(fake.ask(RESERVATIONS)))


def test_a_gate_that_slurm_does_not_extend_is_made_anew_and_said_once() -> None:
    fake = cluster()
    loop = loop_on(fake, gate_for=30)
    fake.submit(4, dependency="singleton")
    assert loop.one_pass().outcome == "done"
    # The clock was set back: the gate begins 40 s from now, and ends before that.
    fake.now -= 40
    reports = [loop.one_pass() for _ in range(3)]
    assert [report.outcome for report in reports] == ["done"] * 3
    assert fake.reservations["auction_one_root"]["start"] <= fake.now
    assert loop.remarks == [
        "the gate auction_one_root was made anew, as Slurm did not move its end: Invalid time specified"
    ]


def test_bytes_that_are_no_text_in_scontrol_s_answer_end_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "scontrol"
    program.write_text("#!/bin/sh\nprintf 'job \\377\\376 is unknown\\n' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert one_scontrol([("update", "JobId=7", "Comment=x")]) == ("job \ufffd\ufffd is unknown",)


def test_a_user_s_own_settings_of_commands_change_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``SQUEUE_USERS`` would hide jobs, ``SLURM_CLUSTERS`` ask and change another cluster.

    ``SLURM_DEBUG_FLAGS`` would write to stderr, where refusals stand.
    """
    program = tmp_path / "scontrol"
    program.write_text("#!/bin/sh\nenv >&2\nenv\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    kept = {"SQUEUE_ALL", "SINFO_ALL", "SCONTROL_ALL", "SLURM_CONF"}
    others = {"SQUEUE_USERS", "SINFO_PARTITION", "SLURM_CLUSTERS", "SLURM_TOPO_LEN", "SCONTROL_FUTURE"}
    others |= {"SCONTROL_LOCAL", "SACCT_FORMAT", "SACCT_FEDERATION", "SLURM_DEBUG_FLAGS", "SLURM_JSON"}
    for name in (*kept, *others, "SLURM_TIME_FORMAT", "SLURM_BITSTR_LEN"):
        monkeypatch.setenv(name, "x")
    asked = ask_slurm(("scontrol",)).decode().splitlines()
    changed = one_scontrol([("update", "JobId=7")])
    for lines in (asked, changed):
        names = {line.partition("=")[0] for line in lines}
        assert kept <= names
        assert not names & others
    assert {"SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0"} <= {*asked}
    assert not [line for line in changed if line.startswith(("SLURM_TIME_FORMAT", "SLURM_BITSTR_LEN"))]


def test_a_signal_to_the_loop_s_group_does_not_reach_the_commands_of_its_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ctrl-C sends one: the pass is finished, and needs their answers."""
    program = tmp_path / "scontrol"
    program.write_text("#!/bin/sh\nps -o pgid= -p $$ | tee /dev/stderr\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    groups = ask_slurm(("scontrol",)).decode(), *one_scontrol([("update", "JobId=7")])
    assert os.getpgrp() not in map(int, groups)


def test_a_command_that_hangs_ends_with_all_that_its_wrapper_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "squeue"
    program.write_text(f"#!/bin/sh\nsleep 60 &\necho $! > {tmp_path}/started\nwait\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(UnreachableError, match=r"^squeue --json: no answer in 1 s$"):
        ask_slurm(("squeue", "--json"), timeout_s=1)
    state = Path(f"/proc/{(tmp_path / 'started').read_text().strip()}/status")
    until = time.monotonic() + 10
    # Killed: gone, or still to be waited for by its parent.
    while state.exists() and "State:\tZ" not in state.read_text():
        assert time.monotonic() < until


def test_tasks_of_an_array_are_looked_at_one_by_one() -> None:
    """Without -r squeue prints waiting tasks that share a reason as one, with the licences of the first."""
    fake = cluster()
    tasks = [fake.submit(4, array=1, task=number, priority=100 - number) for number in range(1, 7)]
    loop = loop_on(fake)
    assert (loop.one_pass().pinned, len(fake.events("refused"))) == (4, 0)
    # The scheduler rests: all pins are late, the reason of all tasks is the same.
    fake.now += 61
    report = loop.one_pass()
    assert (report.put_back, report.dropped, report.refused) == (4, 0, 0)
    assert [task.licenses for task in tasks] == ["auction:1"] * 6


def test_parts_of_a_heterogeneous_job_are_handed_over() -> None:
    """By %i squeue prints 1+0 and 1+1 for jobs that are 1 and 2 in its JSON."""
    fake = cluster()
    parts = [fake.submit(1, het=1) for _ in range(2)]
    report = loop_on(fake).one_pass()
    assert (report.handed_over, report.dropped) == (2, 0)
    assert [part.licenses for part in parts] == ["", ""]
