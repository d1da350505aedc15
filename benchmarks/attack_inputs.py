"""Small good files of every kind, from which mutants are made, and the commands that read them."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from attack_evolving import EVOLVING, evolving_files
from attack_snapshots import hostile_document

from aucsched.simulation.negotiated.negotiated_run import add_to_history

ROOT = Path(__file__).parent.parent
_SLURM = ROOT / "tests" / "fixtures" / "slurm"

#: Files by name.
Files = Mapping[str, bytes]

_CONF = b"""\
# a site in small
ClusterName=small
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
Licenses=matlab:3,ansys*2
NodeName=DEFAULT RealMemory=1000 Sockets=2 CoresPerSocket=4 Weight=10
NodeName=n[01-03] Feature=old,ib
NodeName=DEFAULT CPUs=10 Sockets=2 CoresPerSocket=5 \\
    RealMemory=2000
NodeName=g[1-2] Gres=gpu:a100:2 Feature=new  # GPUs
NodeName=d1 State=DOWN MemSpecLimit=500
PartitionName=DEFAULT State=UP DefaultTime=1:00:00 MaxTime=1-00
PartitionName=batch Nodes=n[01-03],g[1-2] Default=YES DefMemPerCPU=100 AllowQOS=normal
PartitionName=quick Nodes=ALL MaxTime=30 DefaultTime=10 MaxNodes=2
PartitionName=whole Nodes=n[01-02] OverSubscribe=EXCLUSIVE
"""
_GRES = b"AutoDetect=off\nNodeName=g1 Name=gpu File=/dev/nvidia[0-1]\nNodeName=g2 Name=gpu Count=2\n"
_TOPOLOGY = b"SwitchName=a Nodes=n[01-09]\nSwitchName=b Nodes=g[1-2],d1\nSwitchName=top Switches=a,b\n"
_SUBMISSIONS = (
    "-n 4 -t 10 -p batch",
    "-N 2-3 --ntasks-per-node=2 --exclusive --mem=100",
    "--gres=gpu:a100:1 -c 2 -C new -L matlab:1 -t 1-02:03:04",
    "-w g1 -x n01 --mem-per-cpu=10 -J 'a b' --qos=normal -A me --switches=1@10",
    "--array=1-3 --dependency=afterok:7 --constraint=[old|new] -N 1",
    "-G 2 -p quick,batch --priority=7 --contiguous",
)
_NODES = b"""sn,cpu_milli,memory_mib,gpu,model
cpu-1,32000,131072,0,
gpu-1,8000,61440,2,P100
gpu-2,96000,393216,8,G2
"""
_PODS = b"""name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,\
creation_time,deletion_time,scheduled_time
whole,12000,16384,1,1000,,LS,Running,100,900,110
share,6500,12288,1,460,P100|T4,LS,Succeeded,90,290,90
eight,64000,65536,8,1000,G2,Guaranteed,Failed,120,500,130
plain,2000,1024,0,0,,BE,Running,130,130,130
never,1000,1024,1,500,,BE,Pending,140,200,
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A kind of file.

    Attributes:
        target: the file to be mutated.
        files: good files, the target among them; the seed tells which, where there are several.
        commands: that read them, in the folder they stand in; a case runs one.
        other_ends: what a line of stderr holds that another exit code than 0 and 2 is good for.
    """

    name: str
    target: str
    files: Callable[[int], Files]
    commands: tuple[str, ...]
    other_ends: bytes = b""


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _snapshot(seed: int) -> Files:
    """Return a snapshot that mutants of one change can still be."""
    places = iter(range(seed % 97, 10**6))
    document = next(one for one in map(hostile_document, places) if len(one["nodes"]) <= 24)
    return {"snapshot.json": _json(document)}


def _workload(seed: int) -> Files:
    rng = random.Random(f"workload {seed % 50}")  # noqa: S311 - not a secret
    document = json.loads(_snapshot(seed)["snapshot.json"])
    for member in ("running", "reservations", "time"):
        document.pop(member, None)
    for node in document["nodes"]:
        for member in ("free_cores", "free_gres", "free_memory_mib"):
            node.pop(member, None)
    for license_ in document.get("licenses", {}).values():
        license_.pop("free", None)
    for place, job in enumerate(document["jobs"]):
        job |= {"arrival_s": 9.5 * (place // 3), "run_time_s": rng.choice([0.5, 1, 60.25, 900])}
        if rng.random() < 0.2:
            job["gres_run_time_factor"] = rng.choice([0.5, 0.75])
    return {"workload.json": _json({**document, "format": "aucsched-workload/1", "name": "attacked"})}


def _log(seed: int) -> Files:
    lines = (ROOT / "examples" / "days.swf").read_text().splitlines()
    head = [line for line in lines if line.startswith(";")]
    jobs = [line for line in lines if not line.startswith(";")]
    start = seed % max(1, len(jobs) - 40)
    return {"log.swf": "\n".join([*head, *jobs[start : start + 40], ""]).encode()}


def _slurm(seed: int) -> Files:
    """Return Slurm's answers: of a cluster in use, or some of the many requests."""
    use, newer = _SLURM / "use", _SLURM / "newer"
    files = {
        "squeue.json": (use / "squeue.json").read_bytes(),
        "sinfo.json": (use / "sinfo.json").read_bytes(),
        "topology.conf": (use / "topology.conf").read_bytes(),
        "job_detail.txt": (use / "job_detail.txt").read_bytes(),
        **{path.name: path.read_bytes() for path in sorted(newer.iterdir())},
    }
    if seed % 2:
        document = json.loads((_SLURM / "requests" / "squeue.json").read_bytes())
        rng = random.Random(f"requests {seed % 200}")  # noqa: S311 - not a secret
        document["jobs"] = rng.sample(document["jobs"], 4)
        files["squeue.json"] = _json(document)
        files["sinfo.json"] = (_SLURM / "requests" / "sinfo.json").read_bytes()
        files["job_detail.txt"] = b""
    return files


_ANSWERS = "snapshot slurm --jobs squeue.json --nodes sinfo.json --time 2026-11-20T09:30:00Z"
_IN_USE = f"{_ANSWERS} --topology topology.conf --licenses licenses.txt"


def _in_use(seed: int) -> Files:
    return _slurm(2 * seed)


def _site(seed: int) -> Files:
    del seed
    lines = (
        f"-dt {at} -e submit_batch_job | -sim-walltime 60.00 {text} -J j{at} run.sh"
        for at, text in enumerate(_SUBMISSIONS)
    )
    events = "\n".join(lines).encode() + b"\n"
    return {
        "conf/slurm.conf": _CONF,
        "conf/gres.conf": _GRES,
        "conf/topology.conf": _TOPOLOGY,
        "week.events": events,
    }


def _alibaba(seed: int) -> Files:
    del seed
    return {"nodes.csv": _NODES, "pods.csv": _PODS}


@cache
def _made() -> Files:
    """Return what commands write: a sweep's journal, a negotiation's trace and journal."""
    workload = ROOT / "examples" / "overtaken.json"
    program = [sys.executable, "-m", "aucsched"]
    both = [*program, "irtsched", "w.json", "--listen", "unix:s", "--journal", "j", "-o", "metrics.txt"]
    with tempfile.TemporaryDirectory() as place:
        shutil.copy(workload, Path(place) / "w.json")
        runtime = subprocess.Popen(both, cwd=place, stderr=subprocess.DEVNULL)  # noqa: S603 - our own
        for line in (
            ["ibsched", "w.json", "--connect", "unix:s", "--journal", "j"],
            ["sweep", "w.json", "--policy", "fcfs,easy", "--workers", "1", "-o", "s.csv"],
            ["negotiate", "w.json", "--trace", "t.jsonl", "-o", "n.txt"],
        ):
            subprocess.run([*program, *line], cwd=place, check=True, capture_output=True)  # noqa: S603 - our own
        runtime.wait(timeout=60)
        names = ("w.json", "s.csv", "s.csv.journal", "t.jsonl", "j/irtsched.journal", "j/ibsched.journal")
        return {name: (Path(place) / name).read_bytes() for name in names}


@cache
def _fitted() -> bytes:
    line = [sys.executable, "-m", "aucsched", "workload", "fit", str(ROOT / "examples" / "days.swf")]
    return subprocess.run(line, check=True, capture_output=True).stdout  # noqa: S603 - our own


def _model(seed: int) -> Files:
    del seed
    return {"model.json": _fitted()}


def _some(*names: str) -> Callable[[int], Files]:
    return lambda _: {name: _made()[name] for name in names}


_GRAPH = {"kind": "graph", "nodes": "n[1-6]", "links": [["n[1-3]", "s1"], ["n[4-6]", "s2"], ["s1", "s2"]]}
_AUCTION = {
    "format": "aucsched-auction/1",
    "capacities": {"gpu": 2, "node": 4.5},
    "bids": [
        {"bidder": "a", "value": 10.25, "items": {"gpu": 1, "node": 2}},
        {"value": 3, "items": {"node": 1}},
    ],
}
_CATS = b"% made\ngoods 3\nbids 3\ndummy 1\n0\t10.5\t0\t1\t#\n1\t4.5\t0\t3\t#\n7\t2.25\t2\t#\n"
_OPTIONS = b'[check]\nformat = "json"\n[schedule]\nwindow = 5\ntime-limit = 1.5\n'


def _always(**files: bytes) -> Callable[[int], Files]:
    named = {name.replace("_", "."): content for name, content in files.items()}
    return lambda _: named


def _history(seed: int) -> Files:
    """Return a workload and a history of some runs."""
    del seed
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "runs.sqlite"
        add_to_history(
            path, [(f"name {number % 3}", str(number), 1 + number % 4, 9.5) for number in range(40)]
        )
        workload = (ROOT / "examples" / "overtaken.json").read_bytes()
        return {"workload.json": workload, "runs.sqlite": path.read_bytes()}


def _configured(seed: int) -> Files:
    return {**_snapshot(seed), "site.toml": _OPTIONS}


def _failing(seed: int) -> Files:
    files = _workload(seed)
    name = json.loads(files["workload.json"])["nodes"][0]["name"]
    outages = [{"nodes": name, "down_s": 5, "up_s": 9.5}, {"nodes": name, "down_s": 20}]
    return {**files, "failures.json": _json({"format": "aucsched-failures/1", "failures": outages})}


_STEP = "schedule snapshot.json --time-limit 0.2 --format"
READERS: tuple[Reader, ...] = (
    Reader(
        name="snapshot",
        target="snapshot.json",
        files=_snapshot,
        commands=(
            *("check snapshot.json", "check snapshot.json --format json"),
            *(f"{_STEP} text", f"{_STEP} json", f"{_STEP} slurm", f"{_STEP} json --reserve 1"),
            *("plan snapshot.json --jobs 5", "plan snapshot.json --jobs 5 --format json"),
            *("compare snapshot.json --time-limit 0.1", "explain snapshot.json --time-limit 0.1"),
            *("evolve snapshot.json", "evolve snapshot.json --format json --snapshot-out after.json"),
        ),
    ),
    Reader(
        name="workload",
        target="workload.json",
        files=_workload,
        commands=(
            *("workload describe workload.json", "workload describe workload.json --format json"),
            *("simulate workload.json --policy fcfs", "simulate workload.json --policy backfill-slurm"),
            "simulate workload.json --policy aucsched3 --work-limit 0 --format json",
        ),
    ),
    Reader(
        name="swf",
        target="log.swf",
        files=_log,
        commands=(
            *("workload describe log.swf", "simulate log.swf --policy easy --jobs-out jobs.csv"),
            "simulate log.swf --policy fcfs --swf-out out.swf --processors 128",
        ),
    ),
    Reader(name="squeue", target="squeue.json", files=_slurm, commands=(_ANSWERS, f"{_ANSWERS} -o now.json")),
    Reader(name="sinfo", target="sinfo.json", files=_slurm, commands=(_ANSWERS, f"{_ANSWERS} -o now.json")),
    Reader(
        name="job-detail",
        target="job_detail.txt",
        files=_in_use,
        commands=(f"{_ANSWERS} --job-detail job_detail.txt",),
    ),
    Reader(name="topology-conf", target="topology.conf", files=_in_use, commands=(_IN_USE,)),
    *(
        Reader(name=f"{what}-{form}", target=f"{what}.{form}", files=_in_use, commands=(line,))
        for what, form in (
            *(("topology", "yaml"), ("partitions", "json"), ("partitions", "txt"), ("licenses", "json")),
            *(("licenses", "txt"), ("reservations", "json"), ("reservations", "txt")),
        )
        for line in (f"{_ANSWERS} --{what} {what}.{form}",)
    ),
    *(
        Reader(
            name=f"site-{target.rpartition('/')[2].replace('.', '-')}",
            target=target,
            files=_site,
            commands=("workload slurm-events week.events --conf conf -o workload.json",),
        )
        for target in ("conf/slurm.conf", "conf/gres.conf", "conf/topology.conf", "week.events")
    ),
    *(
        Reader(
            name=f"alibaba-{which}",
            target=f"{which}.csv",
            files=_alibaba,
            commands=(
                "workload alibaba --nodes nodes.csv --pods pods.csv",
                "workload alibaba --nodes nodes.csv --pods pods.csv --gpus separate --unscheduled lifetime",
            ),
        )
        for which in ("nodes", "pods")
    ),
    *(
        Reader(name=target.replace(".", "-"), target=target, files=evolving_files, commands=commands)
        for target, commands in EVOLVING.items()
    ),
    Reader(
        name="auction",
        target="bids.json",
        files=_always(bids_json=_json(_AUCTION)),
        commands=("winners bids.json --time-limit 0.2", "winners bids.json --work-limit 9 --strategy exact"),
    ),
    Reader(
        name="cats",
        target="bids.txt",
        files=_always(bids_txt=_CATS),
        commands=("winners bids.txt --time-limit 0.2", "winners bids.txt --strategy greedy --no-round"),
    ),
    Reader(
        name="graph",
        target="graph.json",
        files=_always(graph_json=_json(_GRAPH)),
        commands=("topology graph.json", "topology graph.json --format json"),
    ),
    Reader(
        name="failures",
        target="failures.json",
        files=_failing,
        commands=("simulate workload.json --policy fcfs --failures failures.json",),
    ),
    Reader(
        name="config",
        target="site.toml",
        files=_configured,
        commands=("--config site.toml check snapshot.json",),
    ),
    Reader(
        name="history",
        target="runs.sqlite",
        files=_history,
        commands=("negotiate workload.json --mapper greedy --history runs.sqlite",),
    ),
    Reader(
        name="sweep-journal",
        target="s.csv.journal",
        files=_some("w.json", "s.csv", "s.csv.journal"),
        commands=("sweep w.json --policy fcfs,easy --workers 1 -o s.csv",),
    ),
    Reader(
        name="trace-model",
        target="model.json",
        files=_model,
        commands=("workload ischeduler system --jobs 20 --model model.json -o made.swf",),
    ),
    Reader(
        name="negotiation-trace",
        target="t.jsonl",
        files=_some("t.jsonl"),
        commands=("negotiate --replay t.jsonl", "negotiate --replay t.jsonl --format json"),
    ),
    Reader(
        name="negotiation-journal",
        target="j/irtsched.journal",
        files=_some("w.json", "j/irtsched.journal"),
        commands=("irtsched w.json --connect unix:absent --wait 0 --journal j",),
        other_ends=b"absent",
    ),
)


def packed(files: Files, target: str) -> dict[str, bytes]:
    """Return the files, the target as gzip."""
    return {**files, target: gzip.compress(files[target], mtime=0)}
