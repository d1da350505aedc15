"""The gate and the loop on a real Slurm of 8 nodes: jobs wait there, start where they are pinned, come back.

Runs where Debian's slurm-wlm is installed and AUCSCHED_SLURM=1 says that daemons may be started.
"""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from slurm_host import SlurmHost, running_host
from support.slurm_cluster import NEEDS_SLURM, Shell, shell_in, wait_for

from aucsched.formats.hostlist import expand
from aucsched.slurm.answers.policy import config_of
from aucsched.slurm.live.live_queue import Mark, write_mark

pytestmark = NEEDS_SLURM

_SITE = """\
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000,bf_interval=2,sched_interval=2
PriorityType=priority/multifactor
PriorityWeightJobSize=1000
PriorityWeightAge=1000
Licenses=auction:1000000,matlab:3
JobSubmitPlugins=lua
NodeName=DEFAULT CPUs=4 Sockets=1 CoresPerSocket=4 RealMemory=1000 Gres=gpu:2
NodeName=n[0-7] {common} Port=[{p0}-{p7}]
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=debug Nodes=ALL MaxTime=INFINITE State=UP
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
"""
_PLUGIN = (
    files("aucsched.slurm.live")
    .joinpath("job_submit.lua")
    .read_text()
    .replace("local past_partitions = {}", 'local past_partitions = {["debug"] = true}')
)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A cluster, and a function that runs a line of shell on it."""
    host = SlurmHost(
        nodes=[f"n{number}" for number in range(8)],
        site=_SITE,
        gres="AutoDetect=off\nName=gpu File={folder}/dev/gpu[0-1]\n",
        topology="SwitchName=l0 Nodes=n[0-3]\nSwitchName=l1 Nodes=n[4-7]\nSwitchName=top Switches=l[0-1]\n",
        files={"job_submit.lua": _PLUGIN},
    )
    with running_host(tmp_path_factory.mktemp("slurm") / "c", host) as environment:
        run = shell_in(environment)
        yield run
        run(f"{sys.executable} -m aucsched slurm gate down")


def submit(shell: Shell, options: str, seconds: int = 300) -> str:
    line = f"sbatch --parsable -t 10 -o /dev/null --chdir=/ {options} --wrap='sleep {seconds}'"
    return shell(line).strip()


def aucsched(shell: Shell, arguments: str) -> str:
    return shell(f"{sys.executable} -m aucsched slurm {arguments} 2>&1")


def job_of(shell: Shell, job: str) -> dict[str, Any]:
    jobs = json.loads(shell("squeue --json"))["jobs"]
    return next(
        one for one in jobs if job in {str(one["job_id"]), f"{one['array_job_id']}_{one['array_task_id']}"}
    )


def events(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


#: What a job asks for, which must be the same after it was pinned and put back.
ASKED = ("cpus", "tasks", "max_nodes", "minimum_cpus_per_node", "required_nodes", "tres_req_str", "licenses")


def test_the_roll_back_leaves_nothing_of_ours_on_any_job(shell: Shell, tmp_path: Path) -> None:
    """A job before its begin time is not pinned; gate clear puts every request back, at any moment."""
    log = tmp_path / "clear.jsonl"
    free = submit(shell, "-n 1", 600)
    wait_for(lambda: job_of(shell, free)["job_state"] == "RUNNING", shell, "Slurm starts a job itself")
    assert "auction" in job_of(shell, free)["licenses"]
    aucsched(shell, "gate up --for 600")
    full = submit(shell, "-N 6 --exclusive", 600)
    aucsched(shell, f"run --once --log {log}")
    wait_for(lambda: job_of(shell, full)["job_state"] == "RUNNING", shell, "the first job runs")
    later = submit(shell, "-n 1 --begin=now+1hour")
    asked = {later: {name: job_of(shell, later)[name] for name in ASKED}}
    # An update makes 22.05 forget the reason until its next cycle, here 2 s later: none comes in between.
    end = tmp_path / "end"
    updates = f"while [ ! -e {end} ]; do scontrol update JobId={later} TimeLimit=11; done"
    shell(f"({updates}) & {sys.executable} -m aucsched slurm run --once --log {log} 2>&1; touch {end}; wait")
    assert job_of(shell, later)["required_nodes"] == ""
    shell(f"scontrol update JobId={later} TimeLimit=10")
    comes = submit(shell, "-n 2 -L matlab:1")
    shell(f"scontrol update JobId={comes} AdminComment=theirs")
    asked[comes] = {name: job_of(shell, comes)[name] for name in ASKED}
    mark = write_mark(Mark(since=1, cores=(2,), cpus=2, comment="theirs"))
    taken = expand(job_of(shell, full)["nodes"])[0]
    pin = f"Licenses=matlab:1 ReqNodeList={taken} MinCPUsNode=2 NumCPUs=2 'AdminComment={mark}'"
    shell(f"scontrol update JobId={comes} {pin}")
    gated = shell("squeue -h -a -t PD -o 'JobId=%A Licenses=%W' | grep auction")
    assert f"{later}: afterwards the licence is off" in aucsched(shell, "gate clear --dry-run")
    assert gated == shell("squeue -h -a -t PD -o 'JobId=%A Licenses=%W' | grep auction")
    said = aucsched(shell, "gate clear")
    assert f"{comes}: unpinned, its request is as it was" in said
    assert f"{later}: the licence is off" in said
    assert f"{full}: runs: mark and licence are off; its nodes stay required" in said
    for job, before in asked.items():
        now = job_of(shell, job)
        bare = {name: now[name] for name in ASKED}
        licences = ",".join(filter(None, before["licenses"].replace("auction:1", "").split(",")))
        assert bare == {**before, "licenses": licences}
    assert job_of(shell, comes)["admin_comment"] == "theirs"
    assert "aucsched" not in shell("scontrol show job")
    assert "auction" not in shell("scontrol show job")
    assert aucsched(shell, "gate clear").strip() == "no job has anything of the gate"
    # As docs/operate.md puts jobs back for an upgrade.
    shell(f"echo '{gated}' | xargs -L1 scontrol update")
    assert {name: job_of(shell, later)[name] for name in ASKED} == asked[later]
    shell(f"scancel {free} {full} {later} {comes}")
    wait_for(lambda: not shell("squeue -h"), shell, "all jobs are gone")


def test_the_gate_from_submission_to_the_end(shell: Shell, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    assert "up, ends in 600 s" in aucsched(shell, "gate up")
    requests = {
        "even": "-N 2 -n 4",
        "uneven": "-N 2 -n 3",
        "range": "-N 2-3 -n 6",
        "gpu": "-n 2 --gres=gpu:1",
        "licence": "-L matlab:2 -n 1",
        "whole": "--exclusive -N 1",
        "array": "--array=1-2 -n 1",
    }
    jobs = {name: submit(shell, options) for name, options in requests.items()}
    past = submit(shell, "-p debug -n 1")
    wait_for(
        lambda: job_of(shell, past)["job_state"] == "RUNNING", shell, "a job that goes past the gate runs"
    )
    wait_for(
        lambda: job_of(shell, jobs["even"])["state_reason"] == "Licenses", shell, "the others wait for it"
    )
    assert job_of(shell, jobs["licence"])["licenses"] == "matlab:2,auction:1"
    assert job_of(shell, jobs["even"])["priority"] > 0
    doctor = aucsched(shell, "doctor")
    assert "fail" not in doctor
    assert "controller's clock differs by" in doctor
    settings = config_of(shell("SLURM_TIME_FORMAT=%s scontrol show config"))
    assert all(map(settings.text, ("ClusterName", "SlurmctldHost[0]", "SlurmctldPort")))
    assert 0 < settings.moment("BOOT_TIME") <= time.time()

    before = shell("scontrol -o show reservations")
    shown = aucsched(shell, "run --dry-run")
    assert "scontrol update JobId=" in shown
    assert shell("scontrol -o show reservations") == before
    assert "8 pinned" in aucsched(shell, f"run --once --log {log}")
    names = [job for name, job in jobs.items() if name != "array"] + [
        f"{jobs['array']}_{task}" for task in (1, 2)
    ]
    wait_for(
        lambda: all(job_of(shell, job)["job_state"] == "RUNNING" for job in names), shell, "pinned jobs run"
    )
    assert "8 run" in aucsched(shell, f"run --once --log {log}")
    pins = {line["job"]: line["nodes"] for line in events(log) if line["event"] == "intend"}
    assert {job: set(expand(job_of(shell, job)["nodes"])) for job in names} == {
        job: set(pins[job]) for job in names
    }
    assert not [line for line in events(log) if line["event"] in {"drop", "refused", "misplaced", "said"}]
    shell("scancel -f " + " ".join(jobs.values()) + f" {past}")


def test_a_pin_that_cannot_start_is_put_back_as_it_was(shell: Shell, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    aucsched(shell, "gate up")
    wait_for(lambda: not shell("squeue -h"), shell, "the cluster is empty")
    jobs = [
        submit(shell, options) for options in ("-n 8", "-N 2 -n 5", "-N 2-3 -n 6", "-L matlab:1 -n 3 -c 1")
    ]
    before = {job: {name: job_of(shell, job)[name] for name in ASKED} for job in jobs}
    shown = aucsched(shell, "run --dry-run").splitlines()
    commands = [line.removeprefix("scontrol ") for line in shown if "aucsched" in line]
    # Their users hold them a moment before they are pinned: none starts.
    shell("scontrol hold " + " ".join(jobs))
    for command in commands:
        shell(f"scontrol {' '.join(map(shlex.quote, command.split()))}")
    assert all("auction" not in job_of(shell, job)["licenses"] for job in jobs)
    said = aucsched(shell, f"run --once --log {log}")
    assert "4 put back" in said, said
    after = {job: {name: job_of(shell, job)[name] for name in ASKED} for job in jobs}
    for job in jobs:
        assert set(after[job].pop("licenses").split(",")) == set(before[job].pop("licenses").split(","))
    assert after == before
    shell("scontrol release " + " ".join(jobs))
    aucsched(shell, f"run --passes 2 --interval 3 --log {log}")
    wait_for(lambda: all(job_of(shell, job)["job_state"] == "RUNNING" for job in jobs), shell, "they run")
    shell("scancel -f " + " ".join(jobs))


def test_a_job_for_which_slurm_stops_others_is_handed_over_and_they_come_back(
    shell: Shell, tmp_path: Path
) -> None:
    log = tmp_path / "run.jsonl"
    aucsched(shell, "gate up")
    wait_for(lambda: not shell("squeue -h"), shell, "the cluster is empty")
    low = submit(shell, "-N 8 -n 32")
    assert "1 pinned" in aucsched(shell, f"run --once --log {log}")
    wait_for(lambda: job_of(shell, low)["job_state"] == "RUNNING", shell, "the pinned job runs")
    peer, urgent = submit(shell, "-n 4"), submit(shell, "-p urgent -n 4")
    assert "1 handed over" in aucsched(shell, f"run --once --log {log}")
    assert job_of(shell, peer)["licenses"] == "auction:1"
    wait_for(lambda: job_of(shell, urgent)["job_state"] == "RUNNING", shell, "Slurm starts the urgent job")
    wait_for(lambda: job_of(shell, low)["job_state"] == "PENDING", shell, "it stopped the other")
    time.sleep(1)
    aucsched(shell, f"run --once --pin-for 1 --log {log}")
    assert job_of(shell, low)["licenses"] == "auction:1"
    shell(f"scancel -f {low} {peer} {urgent}")


def test_jobs_that_only_slurm_can_place_are_handed_over_and_run(shell: Shell, tmp_path: Path) -> None:
    """Both parts of a heterogeneous job, and one wider than a leaf: Slurm waits 5 s for one switch."""
    log = tmp_path / "run.jsonl"
    aucsched(shell, "gate up")
    jobs = [submit(shell, options) for options in ("-n 1 : -n 2", "--switches=1@00:00:05 -N 5 -n 5")]
    wait_for(lambda: job_of(shell, jobs[1])["state_reason"] == "Licenses", shell, "they wait for the gate")
    assert "0 pinned, 0 run, 0 put back, 3 handed over, 0 dropped" in aucsched(
        shell, f"run --once --log {log}"
    )
    whys = {line["job"]: line["why"] for line in events(log) if line["event"] == "done"}
    assert whys[jobs[0]].startswith("cannot be expressed: parts of a heterogeneous job start together")
    assert whys[jobs[1]] == "it fits nowhere on the empty machine"
    wait_for(
        lambda: all(job_of(shell, job)["job_state"] == "RUNNING" for job in jobs), shell, "Slurm starts them"
    )
    shell("scancel -f " + " ".join(jobs))
    wait_for(lambda: not shell("squeue -h"), shell, "the cluster is empty")


def test_a_dead_loop_hands_the_queue_back(shell: Shell, tmp_path: Path) -> None:
    aucsched(shell, "gate down")
    wait_for(lambda: not shell("squeue -h"), shell, "the cluster is empty")
    aucsched(shell, f"run --once --gate-for 20 --log {tmp_path / 'run.jsonl'}")
    job = submit(shell, "-n 2")
    time.sleep(2)
    assert job_of(shell, job)["job_state"] == "PENDING"
    wait_for(lambda: job_of(shell, job)["job_state"] == "RUNNING", shell, "Slurm starts it itself")
    assert "no gate is up" in shell(f"{sys.executable} -m aucsched slurm gate status || true")
    shell(f"scancel -f {job}")
