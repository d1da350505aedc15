"""On a real Slurm with slurmdbd: an operator who is not root runs the loop, limits hold, a shadow only asks.

Runs where Debian's slurm-wlm, slurmdbd and mariadb-server are installed and AUCSCHED_SLURM=1 says that
daemons may be started. The users are ones that every Debian has; to become them takes root.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from slurm_accounts import ACCOUNTING, accounting, missing_accounting, until
from slurm_host import SlurmHost, free_ports, running_host
from slurm_shadow import QUESTION, spying
from support.slurm_cluster import NEEDS_SLURM

import aucsched
from aucsched.formats.hostlist import expand
from aucsched.slurm.live.live_queue import Mark, write_mark

pytestmark = [
    *NEEDS_SLURM,
    pytest.mark.skipif(bool(missing_accounting()), reason=missing_accounting() or "nothing is missing"),
    pytest.mark.skipif(os.getuid() != 0, reason="only root becomes other users"),
]

#: Who runs the loop, who only submits, and who submits in another account.
OPERATOR, USER, OTHER = "nobody", "games", "daemon"
_SITE = """\
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000,bf_interval=2,sched_interval=2
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightFairshare=1000
AccountingStorageEnforce=associations,limits,qos
Licenses=auction:1000000
NodeName=DEFAULT CPUs=4 Sockets=1 CoresPerSocket=4 RealMemory=1000 Gres=gpu:2
NodeName=n[0-3] {{common}} Port=[{{p0}}-{{p3}}]
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
_SACCTMGR = f"""\
add qos small GrpTRES=cpu=4
add qos many MaxJobsPA=5
add account physics
add account biology
add user {USER} account=physics qos=normal,small
add user {OTHER} account=biology maxjobs=1 qos=normal,many
add user root account=physics
add user {OPERATOR} account=physics adminlevel=operator
"""


@dataclass(frozen=True, kw_only=True)
class Site:
    """A cluster, and a function that runs a line of shell there as a user."""

    folder: Path
    environment: Mapping[str, str]
    python: str

    def run(self, line: str, user: str = "root", *, code: int = 0) -> str:
        """Run a line of shell; its output and what it says."""
        paths = [str(Path(aucsched.__file__).parents[1]), sysconfig.get_path("purelib")]
        home = self.folder / f"home-{user}"
        own = {"HOME": str(home), "PYTHONPATH": ":".join(paths), "AUCSCHED_NUMBA": "0"}
        entry = pwd.getpwnam(user)
        done = subprocess.run(
            ["sh", "-c", line],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            text=True,
            cwd="/",
            env={**self.environment, **own},
            user=entry.pw_uid,
            group=entry.pw_gid,
            extra_groups=[],
        )
        assert done.returncode == code, (line, done.stdout)
        return done.stdout

    def aucsched(self, arguments: str, user: str = OPERATOR, *, code: int = 0) -> str:
        """Run a command of aucsched's."""
        return self.run(f"{self.python} -m aucsched slurm {arguments}", user, code=code)

    def submit(self, options: str, user: str = USER) -> str:
        """Submit a job behind the gate."""
        words = f"-L auction:1 -t 10 -o /dev/null --chdir=/ {options}"
        return self.run(f"sbatch --parsable {words} --wrap='sleep 300'", user).strip()

    def job(self, number: str) -> dict[str, Any]:
        """Return a job as squeue has it."""
        jobs: list[dict[str, Any]] = json.loads(self.run("squeue --json"))["jobs"]
        return next(job for job in jobs if str(job["job_id"]) == number)

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds."""
        end = time.monotonic() + 45
        while not condition():
            assert time.monotonic() < end, f"{what}: {self.run('squeue -a')}"
            time.sleep(0.3)

    def clear(self) -> None:
        """End all jobs and the gate."""
        self.run("scancel -f -u games; scancel -f -u daemon; scancel -f -u root")
        self.aucsched("gate down", "root")
        self.wait(lambda: not self.run("squeue -h"), "the cluster is empty")


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A cluster with accounting, in a folder that all users may read."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm-")))
        folder.chmod(0o755)
        for user in ("root", OPERATOR, USER, OTHER):
            home = folder / f"home-{user}"
            home.mkdir()
            os.chown(home, pwd.getpwnam(user).pw_uid, -1)
        python = _python(folder)
        port = free_ports(2)
        stack.enter_context(accounting(folder, port, {}))
        client = {**os.environ, "SLURM_CONF": str(folder / "client.conf")}
        for line in _SACCTMGR.splitlines():
            subprocess.run(["sacctmgr", "-i", *line.split()], check=True, capture_output=True, env=client)
        host = SlurmHost(
            nodes=[f"n{number}" for number in range(4)],
            site=(ACCOUNTING + _SITE).format(dbd=port),
            gres="AutoDetect=off\nName=gpu File={folder}/dev/gpu[0-1]\n",
            topology="SwitchName=s0 Nodes=n[0-3]\n",
            accounting="accounting_storage/slurmdbd",
        )
        environment = stack.enter_context(running_host(folder / "c", host))
        made = Site(folder=folder, environment=environment, python=python)
        until(
            lambda: "biology" in made.run("scontrol show assoc_mgr flags=assoc"),
            "the controller knows accounts",
        )
        yield made
        made.clear()


def _python(folder: Path) -> str:
    """Return a Python that other users may run: this one may stand where only root looks."""
    for python in (sys.executable, "/usr/bin/python3"):
        found = Site(folder=folder, environment=os.environ, python=python)
        with contextlib.suppress(AssertionError):
            if "version" in found.run(f"{python} -m aucsched --version", OPERATOR):
                return python
    pytest.skip("other users cannot run a Python that has aucsched's dependencies")


def events(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def pinned(log: Path) -> dict[str, set[str]]:
    """Return the nodes of each pin; what else was meant, as to remove a reservation that is idle, is none."""
    intended = [line for line in events(log) if line["event"] == "intend" and line["kind"] == "pin"]
    return {line["job"]: set(line["nodes"]) for line in intended}


def test_an_operator_who_is_not_root_runs_the_loop(site: Site) -> None:
    doctor = site.aucsched("doctor")
    assert re.search(r"ok\s+rights\s+nobody is an operator: slurm run --mark comment", doctor)
    assert "fail" not in doctor
    log = site.folder / f"home-{OPERATOR}" / "run.jsonl"
    assert "up, ends in 600 s" in site.aucsched("gate up --for 600")
    jobs = [site.submit(options) for options in ("-N 2 -n 4", "-N 2 -n 3", "-n 1 --gres=gpu:1", "-n 2")]
    site.run(f"scontrol update JobId={jobs[0]} Comment=mine", USER)
    denied = site.aucsched(f"run --once --log {log.with_name('denied.jsonl')}", code=1)
    assert "aucsched: Slurm refused 4 changes and accepted no pin" in denied
    assert "4 refused (Access/permission denied)" in denied
    assert "an operator needs --mark comment" in denied
    assert "4 pinned" in site.aucsched(f"run --once --mark comment --log {log}")
    site.wait(lambda: all(site.job(job)["job_state"] == "RUNNING" for job in jobs), "pinned jobs run")
    assert {job: set(expand(site.job(job)["nodes"])) for job in jobs} == pinned(log)
    late = site.submit("--exclusive -N 4")
    site.run(f"scontrol update JobId={late} Comment=theirs", USER)
    # Pinned to nodes that others hold, and long ago: a loop that finds it so puts it back.
    mark = write_mark(Mark(since=1, cores=(4,) * 4, span=(4, 4), cpus=4, comment="theirs"))
    site.run(f"scontrol update JobId={late} Licenses= 'ReqNodeList=n[0-3]' 'Comment={mark}'", OPERATOR)
    assert "1 put back" in site.aucsched(f"run --once --mark comment --log {log}")
    back = site.job(late)
    assert (back["licenses"], back["required_nodes"], back["comment"][:9]) == ("auction:1", "", "aucsched?")
    site.wait(lambda: site.job(late)["state_reason"] == "Licenses", "it waits behind the gate")
    assert not [line for line in events(log) if line["event"] in {"refused", "misplaced", "said"}]
    # A loop of another user on the host changes nothing while this one's gate is up.
    before = site.run("scontrol -o show reservations")
    standby = site.aucsched(f"run --once --log {site.folder / f'home-{USER}' / 'standby.jsonl'}", USER)
    assert re.search(rf"auction_\S+_{OPERATOR} leads, its gate ends in", standby)
    assert site.run("scontrol -o show reservations") == before
    site.clear()


def test_a_user_who_is_no_operator_is_refused_and_changes_nothing(site: Site) -> None:
    assert re.search(r"fail\s+rights\s+games is not an operator", site.aucsched("doctor", USER, code=1))
    job = site.submit("-n 1", OTHER)
    site.run(f"scontrol update JobId={job} Licenses=")
    site.wait(lambda: site.job(job)["job_state"] == "RUNNING", "a job runs")
    other = site.run(
        "sbatch --parsable -N 4 --exclusive -t 10 -o /dev/null --chdir=/ --wrap='sleep 300'", OTHER
    )
    before = site.run("scontrol -o show reservations")
    log = site.folder / f"home-{USER}" / "run.jsonl"
    assert "Invalid user id" in site.aucsched(f"run --once --log {log}", USER, code=1)
    assert "Invalid user id" in site.aucsched("gate up", USER, code=2)
    site.run(f"{site.python} -m aucsched slurm gate add || true", USER)
    assert site.run("scontrol -o show reservations") == before
    assert site.job(other.strip())["licenses"] == ""
    assert [line["event"] for line in events(log)] == ["begin", "pass"]
    site.clear()


def test_limits_of_a_qos_and_of_an_association_hold_behind_the_gate(site: Site) -> None:
    """Of two jobs that a limit lets run one by one, one is pinned: Slurm has nothing to refuse."""
    log = site.folder / f"home-{OPERATOR}" / "limits.jsonl"
    site.aucsched("gate up --for 600")
    pairs = [[site.submit("-q small -n 4") for _ in range(2)], [site.submit("-n 1", OTHER) for _ in range(2)]]
    assert "2 pinned" in site.aucsched(f"run --once --mark comment --log {log}")
    site.wait(
        lambda: all([site.job(job)["job_state"] for job in pair].count("RUNNING") == 1 for pair in pairs),
        "one job of each limit runs",
    )
    assert "0 pinned, 2 run, 0 put back" in site.aucsched(f"run --once --mark comment --log {log}")
    waiting = [job for pair in pairs for job in pair if site.job(job)["job_state"] == "PENDING"]
    assert [site.job(job)["licenses"] for job in waiting] == ["auction:1"] * 2
    site.run("scancel -f " + " ".join(job for pair in pairs for job in pair if job not in waiting))
    site.wait(lambda: not site.run("squeue -h -t R,CG"), "the first two are gone")
    assert "2 pinned" in site.aucsched(f"run --once --mark comment --log {log}")
    site.clear()


def test_a_qos_that_says_how_many_jobs_stands_for_the_association(site: Site) -> None:
    """Two jobs run where the association allows one. They count: one of another QOS waits."""
    log = site.folder / f"home-{OPERATOR}" / "stands.jsonl"
    site.aucsched("gate up --for 600")
    jobs = [site.submit("-q many -n 1", OTHER) for _ in range(2)]
    assert "2 pinned" in site.aucsched(f"run --once --mark comment --log {log}")
    site.wait(lambda: all(site.job(job)["job_state"] == "RUNNING" for job in jobs), "both jobs run")
    site.submit("-n 1", OTHER)
    assert "0 pinned" in site.aucsched(f"run --once --mark comment --log {log}")
    site.clear()


def test_a_shadow_beside_it_only_asks(site: Site, tmp_path: Path) -> None:
    """Every command that it runs is written down: they are questions."""
    spied, folder = tmp_path / "spied", tmp_path / "bin"
    spying(folder, spied, {})
    job = site.run("sbatch --parsable -n 1 -t 10 -o /dev/null --chdir=/ --wrap='sleep 300'").strip()
    log = tmp_path / "shadow.jsonl"
    line = f"{site.python} -m aucsched slurm shadow -o {log} --interval 1 --passes 4"
    site.run(f"PATH={folder}:$PATH {line}")
    asked = set(spied.read_text().splitlines())
    assert "squeue --json" in asked
    assert not [command for command in asked if not QUESTION.fullmatch(command)]
    assert len([line for line in log.read_text().splitlines() if line]) >= 4
    assert site.job(job)["job_state"] == "RUNNING"
    site.clear()
