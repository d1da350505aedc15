"""``--format slurm`` on a real Slurm of 64 nodes: every job lands on exactly its nodes, cores and GPUs.

Runs where Debian's slurm-wlm is installed and AUCSCHED_SLURM=1 says that daemons may be started.
"""

from __future__ import annotations

import getpass
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.slurm_cluster import NEEDS_SLURM, Shell, running_cluster, shell_in, wait_for

pytestmark = NEEDS_SLURM

#: What jobs hold: node -> (cores, GPUs by type).
Place = dict[str, tuple[int, dict[str, int]]]

FILLERS = [
    "-w n00 -n 5",
    "-w n01 -n 11 --gres=gpu:1",
    "-p left -w n02 -n 1 --gres=gpu:3",
    "-p right -w n33 -n 7 --gres=gpu:v100:1",
    "-p right --exclusive -w n[60-63] -N 4",
]
#: Every kind of request, each job held; names are what the assertions call them.
HELD = {
    "cores": "-n 24",
    "cores_odd": "-n 31",
    "cores_much": "-n 100",
    "tasks": "-n 10 -c 3",
    "nodes": "-N 3 -n 9",
    "nodes_odd": "-N 3 -n 7",
    "nodes_range": "-N 2-4 -n 8",
    "per_node": "-N 4 --ntasks-per-node=2",
    "per_node_tasks": "-N 2 --ntasks-per-node=2 -c 2",
    "mincpus": "-n 8 --mincpus=3",
    "gpus": "-N 3 -n 3 --gres=gpu:2",
    "gpus_odd": "-N 2 -n 5 --gres=gpu:1",
    "gpus_total": "-N 2 -n 4 --gpus=6",
    "gpus_anyhow": "-N 2 -n 4 --gpus=2",
    "gpus_total_one_node": "-N 1 -n 4 --gpus=2",
    "gpus_per_task": "-N 2 --ntasks-per-node=1 --gpus-per-task=1",
    "typed": "-p right -N 2 -n 4 --gres=gpu:a100:2",
    "untyped": "-p right -N 1 -n 2 --gres=gpu:2",
    "exclusive": "--exclusive -n 3",
    "exclusive_wide": "--exclusive -N 2",
    "contiguous": "--contiguous -n 30",
    "switches": "--switches=1 -n 30",
    "memory": "-n 6 --mem-per-cpu=100",
    "memory_node": "-N 2 -n 4 --mem=300",
    "right_odd": "-p right -N 3 -n 10",
    "right_only": "-p right -w n50 -N 2 -n 5",
    "both": "-p left,right -n 9 -x n[00-59]",
    "between": "-p left,right -N 2 -n 5 -w n[38-39]",
    "required": "-w n10 -N 2 -n 6",
    "excluded": "-x n[00-31] -n 3",
    "licences": "-L matlab:2 -n 4",
    "array": "--array=1-4%3 -n 3",
    "one": "-n 1",
}


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A cluster, and a function that runs a line of shell on it."""
    # Sockets and paths of Slurm's are short.
    with running_cluster(tmp_path_factory.mktemp("slurm") / "c") as environment:
        yield shell_in(environment)


def submit(shell: Shell, name: str, options: str) -> str:
    """Submit a job that sleeps; return its id."""
    line = f"sbatch --parsable -J {name} -t 60 -o /dev/null --chdir=/ {options} --wrap='sleep 900'"
    return shell(line).strip()


_USE = re.compile(r"\sNodes=(\S+) CPU_IDs=(\S*) Mem=\d+ GRES=(\S*)")


def held_by(shell: Shell, job: str) -> Place:
    """What Slurm says that a running job holds."""
    place: Place = {}
    for hosts, cpus, gres in _USE.findall(shell(f"scontrol -d show job {job}")):
        cores = sum(int(last or first) - int(first) + 1 for first, _, last in map(spread, cpus.split(",")))
        found: Counter[str] = Counter()
        for kind, count in re.findall(r"([\w:]+):(\d+)\(IDX", gres):
            found[kind] += int(count)
        for host in shell(f"scontrol show hostnames '{hosts}'").split():
            place[host] = (cores, {kind: count for kind, count in found.items() if count})
    return place


def spread(part: str) -> tuple[str, str, str]:
    return part.partition("-")


def aucsched(shell: Shell, *arguments: str) -> str:
    return shell(" ".join([sys.executable, "-m", "aucsched", *arguments]))


def awarded(schedule: str) -> dict[str, Place]:
    return {
        award["job"]: {node: (use["cores"], use.get("gres", {})) for node, use in award["nodes"].items()}
        for award in json.loads(schedule)["started"]
    }


def test_every_job_lands_where_it_was_awarded(shell: Shell, tmp_path: Path) -> None:
    for number, options in enumerate(FILLERS):
        submit(shell, f"filler{number}", options)
    wait_for(lambda: shell("squeue -h -t R").count("\n") == len(FILLERS), shell, "fillers run")
    # Nobody held "free", which Slurm keeps behind "wide".
    names = {submit(shell, "wide", "-p left -N 40 --exclusive"): "wide"}
    names[submit(shell, "free", "-p left -n 2")] = "free"
    names |= {submit(shell, name, f"-H {options}"): name for name, options in HELD.items()}

    snapshot, schedule, commands = (tmp_path / name for name in ("snapshot", "schedule", "commands"))
    aucsched(shell, "snapshot slurm --held schedule -o", str(snapshot))
    # Two runs of one award: under a work limit, not a clock, they are the same. It is proved before that.
    options = f"{snapshot} --promise none --reserve 0 --work-limit 400"
    schedule.write_text(aucsched(shell, "schedule", options, "--format json"))
    commands.write_text(aucsched(shell, "schedule", options, "--format slurm"))
    awards = awarded(schedule.read_text())
    for job in unplaceable(commands.read_text()):
        # Slurm spreads a count over all nodes by itself: an uneven award of it has no command.
        assert names[job] == "gpus_anyhow"
        del awards[job]
    shell(f"sh {commands}")
    shell(f"scontrol hold {next(job for job, name in names.items() if name == 'wide')}")
    wait_for(lambda: awards.keys() <= {*shell("squeue -h -t R -o %i").split()}, shell, "awarded jobs run")
    placed = {job: held_by(shell, job) for job in awards}
    assert placed == awards
    check_variety(awards, names, commands.read_text())
    check_the_next_step(shell, tmp_path / "next")


def unplaceable(commands: str) -> list[str]:
    return re.findall(r"^# job (\S+) cannot be placed: ", commands, re.MULTILINE)


def check_variety(awards: dict[str, Place], names: dict[str, str], commands: str) -> None:
    """The queue must have shown every form of command, and everything in it that could start."""
    started = Counter(names[job.partition("_")[0]] for job in awards)
    assert started.pop("array") == 3, "its limit"
    del started["gpus_anyhow"]
    assert started.keys() == {*HELD, "free"} - {"array", "both", "gpus_anyhow"}, "both: its nodes are taken"
    assert commands.count("CoreCnt=") >= 5
    assert commands.count("MinCPUsNode=") >= 15
    assert "Gres=gpu:a100:2" in commands or "Gres=gpu:v100:2" in commands
    assert "TresPerJob=" in commands
    assert "Gres=gpu:3" in commands


def check_the_next_step(shell: Shell, snapshot: Path) -> None:
    """Reservations whose cores their jobs hold close no node to others; partitions have their limits."""
    aucsched(shell, "snapshot slurm -o", str(snapshot))
    document = json.loads(snapshot.read_text())
    assert "aucsched" in shell("scontrol show reservation")
    assert not document.get("reservations")
    assert {partition["name"]: partition.get("max_nodes") for partition in document["partitions"]} == {
        "left": None,
        "right": 8,
    }


def test_a_job_outside_stays_out_of_its_users_reservation(shell: Shell) -> None:
    """Why reservations are imported as closed to jobs that do not ask for them."""
    node = shell("sinfo -h -N -t idle -p right -o %N | head -1").strip()
    own = f"ReservationName=own Nodes={node} StartTime=now Duration=90 Users={getpass.getuser()}"
    shell(f"scontrol create reservation {own}")
    inside = submit(shell, "inside", f"-p right -w {node} -n 1 --reservation=own")
    wait_for(lambda: inside in shell("squeue -h -t R -o %i").split(), shell, "the job inside runs")
    outside = submit(shell, "outside", f"-p right -w {node} -n 1")
    wait_for(lambda: "ReqNodeNotAvail" in shell(f"squeue -h -j {outside} -o %R"), shell, "the other waits")


def test_a_placed_job_that_does_not_start_gets_its_request_back(shell: Shell, tmp_path: Path) -> None:
    """As docs/place-by-hand.md says it: with fewer words Slurm gives such a job too few CPUs."""
    page = (Path(__file__).parents[2] / "docs/place-by-hand.md").read_text()
    (line,) = re.findall(r"scontrol update JobId=88 (ReqNodeList=.*)", page)
    names = re.findall(r"(\w+)=", line)
    shell(f"scancel -u {getpass.getuser()}")
    wait_for(lambda: not shell("squeue -h").strip(), shell, "nothing runs")
    forms = ("-n 24", "-N 2-4 -n 8", "-N 3 -n 9", "-N 2 -n 4 --gpus=6")
    jobs = [submit(shell, f"back{number}", f"-H {form}") for number, form in enumerate(forms)]
    before = {job: request(shell, job) for job in jobs}
    snapshot, commands = tmp_path / "snapshot", tmp_path / "commands"
    aucsched(shell, "snapshot slurm --held schedule -o", str(snapshot))
    aucsched(shell, f"schedule {snapshot} --promise none --reserve 0 --format slurm -o {commands}")
    shell("scontrol update NodeName=n[00-63] State=DRAIN Reason=test")
    try:
        shell(f"sh {commands}")
        for job in jobs:
            was = before[job]
            assert request(shell, job) != was
            shell(f"scontrol hold {job}")
            shell(f"scontrol update JobId={job} " + " ".join(f"{name}={was[name]}" for name in names))
            if job == jobs[-1]:
                shell(f"scontrol update JobId={job} TresPerNode= TresPerJob= TresPerTask=")
                shell(f"scontrol update JobId={job} TresPerJob={was['TresPerJob']}")
            shell(f"scontrol release {job}")
            assert request(shell, job) == was
    finally:
        shell("scontrol update NodeName=n[00-63] State=RESUME")
    wait_for(lambda: {*jobs} <= {*shell("squeue -h -t R -o %i").split()}, shell, "all start again")
    assert [request(shell, job)["NumCPUs"] for job in jobs] == [before[job]["NumCPUs"] for job in jobs]


def request(shell: Shell, job: str) -> dict[str, str]:
    """What Slurm says that a job asks for; no nodes' limit is one of as many nodes as CPUs."""
    shown = dict(re.findall(r"(\S+?)=(\S*)", shell(f"scontrol -o show job {job}")))
    wanted = ("NumNodes", "NumCPUs", "ReqNodeList", "MinCPUsNode", "TresPerJob", "TresPerNode")
    found = {name: shown.get(name, "").replace("(null)", "") for name in wanted}
    if "-" not in found["NumNodes"]:
        found["NumNodes"] += f"-{found['NumCPUs']}"
    return {**found, "ReservationName": ""}
