"""Every file that the command reads: a good one of each, and a command line that reads little else."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from support.spoiled import SNAPSHOT, WORKLOAD

FIXTURES = Path(__file__).parents[1] / "fixtures"
_SLURM = FIXTURES / "slurm"

_CONF = """\
# a site
SelectTypeParameters=CR_Core_Memory
Licenses=matlab:4
NodeName=DEFAULT CPUs=8 RealMemory=16000 State=UNKNOWN
NodeName=n[1-8] Feature=ib,nvme
NodeName=g[1-2] Sockets=2 CoresPerSocket=8 ThreadsPerCore=1 CPUs=16 Gres=gpu:a100:2
PartitionName=DEFAULT MaxTime=1-00:00:00 State=UP
PartitionName=batch Nodes=n[1-8] Default=YES DefMemPerCPU=500 \\
    OverSubscribe=NO
PartitionName=gpu Nodes=g[1-2] MaxNodes=2 OverSubscribe=EXCLUSIVE
"""
_GRES = "Name=gpu Type=a100 NodeName=g[1-2] File=/dev/nvidia[0-1] # two\n"
_TOPOLOGY = """\
SwitchName=leaf1 Nodes=n[1-8] LinkSpeed=10
SwitchName=leaf2 Nodes=g[1-2]
SwitchName=core Switches=leaf[1-2]
"""
_YAML = """\
- topology: fabric
  cluster_default: true
  tree:
    switches:
      - switch: leaf1
        nodes: n[1-8]
      - {switch: leaf2, nodes: "g[1-2]"}
      - switch: core
        children: leaf[1-2]
- topology: flat
  flat: true
"""
_EVENTS = """\
# submissions
-dt 0 -e submit_batch_job | -J "one job" -sim-walltime 60 --uid=ann -t 00:10:00 -n 4 -p batch --mem=1000 a.sh
-dt 12.5 -e submit_batch_job | -J two -sim-walltime 600 --uid=bob -t 1-0 -N 1-2 -n 8 -p batch,gpu -C ib b.sh
-dt 13 -e submit_batch_job | -J three -sim-walltime 5 --gres=gpu:a100:1 -p gpu -w g[1-2] -L matlab:2 c.sh
"""
_CSV_NODES = "sn,cpu_milli,memory_mib,gpu,model\ncpu-1,32000,131072,0,\ngpu-1,8000,61440,2,P100\n"
_CSV_PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
whole,12000,16384,1,1000,,LS,Running,100,900,110
share,6500,12288,1,460,P100|T4,LS,Succeeded,90,290.0,90
never,1000,1024,1,500,,BE,Pending,140,200,
"""
_PARTITIONS = """\
PartitionName=batch
   AllowGroups=ALL Default=YES QoS=N/A
   MaxNodes=UNLIMITED MaxTime=1-00:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED
   Nodes=n[1-4]
   PriorityTier=1 OverSubscribe=NO State=UP TotalCPUs=32

PartitionName=night
   MaxNodes=2 MaxTime=UNLIMITED Nodes=n[1-2] PriorityTier=2 OverSubscribe=EXCLUSIVE State=DOWN
"""
_RESERVATIONS = """\
ReservationName=maint StartTime=2026-11-20T12:00:00 EndTime=2026-11-20T13:00:00 Duration=01:00:00
   Nodes=n[1-2] NodeCnt=2 CoreCnt=16 Features=(null) PartitionName=(null) Flags=MAINT,SPEC_NODES
   Users=ann,bob Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null)

ReservationName=course StartTime=1795000000 EndTime=1795003600 Nodes=n3 CoreCnt=4 Flags=MAGNETIC Users=eve
"""
_LICENSES = """\
LicenseName=matlab Total=4 Used=1 Free=3 Reserved=1 Remote=no
LicenseName=ansys Total=10 Used=0 Free=10 Reserved=0 Remote=no
"""
_DETAIL = """\
JobId=7 JobName=x y UserId=a(1) GroupId=a(1) JobState=PENDING CPUs/Task=2 Switches=1@0 Comment=Switches=9@0
   Command=/home/a/run me.sh WorkDir=/home/a

JobId=8 JobName=run UserId=b(2) JobState=RUNNING
     Nodes=n[1-2] CPU_IDs=0-3,6 Mem=512 GRES=gpu:2(IDX:0-1)
   Command=(null) WorkDir=/tmp
"""


def _squeue() -> bytes:
    waiting = {
        **dict.fromkeys(("tres_per_node", "tres_per_job", "tres_per_task", "features"), ""),
        **dict.fromkeys(("required_nodes", "excluded_nodes", "licenses", "shared", "group_name"), ""),
        "job_id": 7,
        "job_state": "PENDING",
        "priority": {"set": True, "infinite": False, "number": 900},
        "state_reason": "Priority",
        "time_limit": 60,
        "partition": "batch",
        "user_name": "ann",
        "cpus": 8,
        "tasks": 4,
        "max_nodes": 2,
        "tres_req_str": "cpu=8,mem=4G,node=1,billing=8",
        "tasks_per_node": 0,
        "minimum_cpus_per_node": 1,
        "memory_per_node": 1000,
        "memory_per_cpu": None,
        "contiguous": False,
        "flags": ["EXACT_CPU_COUNT_REQUESTED"],
        "name": "x y",
        "submit_time": 1795000000,
        "array_job_id": 7,
        "array_task_id": None,
        "array_task_string": "1-5:2%2",
    }
    gres = {"job_id": 9, "array_task_string": "", "tres_per_node": "gres:gpu:a100:1", "licenses": "matlab:1"}
    held = {"job_id": 10, "array_task_string": "", "required_nodes": "n[1-2]", "features": "ib&nvme"}
    running = {
        "job_id": 8,
        "job_state": "RUNNING",
        "time_limit": 60,
        "end_time": 1795003600,
        "gres_detail": ["gpu:2(IDX:0-1)"],
        "job_resources": {
            "nodes": "n1",
            "allocated_nodes": [
                {
                    "nodename": "n1",
                    "memory_allocated": 512,
                    "sockets": {"0": {"cores": {"0": "allocated", "1": "unallocated"}}},
                }
            ],
        },
    }
    jobs = [waiting, {**waiting, **gres}, {**waiting, **held}, running]
    return json.dumps({"meta": {"Slurm": {"release": "22.05.8"}}, "errors": [], "jobs": jobs}).encode()


def _nodes() -> bytes:
    node = {
        "state": "idle",
        "state_flags": [],
        "cpus": 8,
        "alloc_cpus": 0,
        "real_memory": 16000,
        "alloc_memory": 0,
        "sockets": 2,
        "cores": 4,
        "threads": 1,
        "partitions": ["batch"],
        "gres": "gpu:a100:2(S:0-1),shard:8",
        "gres_used": "gpu:a100:0(IDX:N/A)",
        "features": "ib,nvme",
    }
    nodes = [{"name": f"n{number}", **node} for number in range(1, 5)]
    return json.dumps({"errors": [], "nodes": nodes}).encode()


def _records(member: str, *records: dict[str, object]) -> bytes:
    return json.dumps({"errors": [], member: list(records)}).encode()


_JSON_PARTITIONS = _records(
    "partitions",
    {
        "name": "batch",
        "nodes": "n[1-4]",
        "state": "UP",
        "maximum_nodes_per_job": -1,
        "max_time_limit": 1440,
        "priority_tier": 1,
        "min nodes per job": 0,
    },
)
_JSON_RESERVATIONS = _records(
    "reservations",
    {
        "name": "maint",
        "node_list": "n[1-2]",
        "start_time": 1795000000,
        "end_time": 1795003600,
        "users": "ann",
        "flags": ["MAINT"],
        "core_count": 16,
        "accounts": "",
        "groups": "",
    },
)
_JSON_LICENSES = _records(
    "licenses", {"LicenseName": "matlab", "Total": 4, "Free": 3, "Used": 1, "Reserved": 0, "Remote": False}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A file that a command reads.

    Attributes:
        good: a content that is read without an error.
        command: the arguments; ``{}`` is the file, ``@`` the folder with the files beside it.
        beside: what else the command reads, by name.
        name: the file's name in the folder.
    """

    good: bytes
    command: str
    beside: dict[str, bytes] = field(default_factory=dict)
    name: str = "file"

    def prepared(self, folder: Path) -> Callable[[bytes], list[str]]:
        """Write the files beside it; return a function that writes the file and returns the arguments."""
        for name, content in self.beside.items():
            (folder / name).write_bytes(content)

        def written(content: bytes) -> list[str]:
            (folder / self.name).write_bytes(content)
            return self.command.replace("{}", str(folder / self.name)).replace("@", str(folder)).split()

        return written


_OUT = "-o @/out.json"
_SITE = {"slurm.conf": _CONF.encode(), "gres.conf": _GRES.encode(), "topology.conf": _TOPOLOGY.encode()}
_EVENTS_COMMAND = f"workload slurm-events @/events --conf @ {_OUT}"
_SITE_FILES = {**_SITE, "events": _EVENTS.encode()}
_ALIBABA = {"nodes.csv": _CSV_NODES.encode(), "pods.csv": _CSV_PODS.encode()}
_ALIBABA_COMMAND = f"workload alibaba --nodes @/nodes.csv --pods @/pods.csv --gpus separate {_OUT}"
_ANSWERS = {
    "jobs.json": _squeue(),
    "nodes.json": _nodes(),
    "topology": b"SwitchName=s1 Nodes=n[1-4]\n",
    "detail": _DETAIL.encode(),
    "partitions": _PARTITIONS.encode(),
    "reservations": _RESERVATIONS.encode(),
    "licenses": _LICENSES.encode(),
}
_ANSWERS_COMMAND = (
    "snapshot slurm --jobs @/jobs.json --nodes @/nodes.json --topology @/topology --job-detail @/detail"
    f" --partitions @/partitions --reservations @/reservations --licenses @/licenses {_OUT}"
)


def _answer(name: str, good: bytes | None = None) -> Reader:
    good = _ANSWERS[name] if good is None else good
    return Reader(good=good, command=_ANSWERS_COMMAND, beside=_ANSWERS, name=name)


def _site(name: str, good: bytes | None = None) -> Reader:
    good = _SITE_FILES[name] if good is None else good
    return Reader(good=good, command=_EVENTS_COMMAND, beside=_SITE_FILES, name=name)


_SNAPSHOT_TEXT, _WORKLOAD_TEXT = json.dumps(SNAPSHOT).encode(), json.dumps(WORKLOAD).encode()
_LOG = (FIXTURES / "swf" / "small.swf").read_bytes()

#: Every reader by name.
READERS: dict[str, Reader] = {
    "snapshot": Reader(good=_SNAPSHOT_TEXT, command="check {} --format json -o @/out"),
    "snapshot-gzip": Reader(
        good=gzip.compress(_SNAPSHOT_TEXT, mtime=0), command="check {} --format json -o @/out"
    ),
    "workload": Reader(good=_WORKLOAD_TEXT, command="workload describe {}"),
    "workload-gzip": Reader(good=gzip.compress(_WORKLOAD_TEXT, mtime=0), command="workload describe {}"),
    "log": Reader(good=_LOG, command="workload describe {}"),
    "log-gzip": Reader(good=gzip.compress(_LOG, mtime=0), command="workload describe {}"),
    "advance": Reader(
        good=b"# kept\n0,600,2\n600,1800.5,1\n",
        command="simulate @/log.swf --policy planning --processors 64 --advance {} -o @/out",
        beside={"log.swf": b"1 0 -1 100 4 -1 -1 4 200\n"},
    ),
    "alibaba-nodes": Reader(
        good=_ALIBABA["nodes.csv"], command=_ALIBABA_COMMAND, beside=_ALIBABA, name="nodes.csv"
    ),
    "alibaba-pods": Reader(
        good=_ALIBABA["pods.csv"], command=_ALIBABA_COMMAND, beside=_ALIBABA, name="pods.csv"
    ),
    "events": _site("events"),
    "slurm.conf": _site("slurm.conf"),
    "gres.conf": _site("gres.conf"),
    "topology.conf": _site("topology.conf"),
    "topology.yaml": _site("topology.conf", _YAML.encode()),
    "squeue": _answer("jobs.json"),
    "scontrol-nodes": _answer("nodes.json"),
    "scontrol-topology": _answer("topology"),
    "job-detail": _answer("detail"),
    "partitions": _answer("partitions"),
    "partitions-json": _answer("partitions", _JSON_PARTITIONS),
    "reservations": _answer("reservations"),
    "reservations-json": _answer("reservations", _JSON_RESERVATIONS),
    "licenses": _answer("licenses"),
    "licenses-json": _answer("licenses", _JSON_LICENSES),
    "cats": Reader(
        good=b"% made\ngoods 3\nbids 3\ndummy 1\n0\t10.5\t0\t1\t#\n1\t4.5\t0\t3\t#\n7\t2.25\t2\t#\n",
        command="winners {} --work-limit 10 -o @/out",
    ),
    "auction": Reader(
        good=b'{"format":"aucsched-auction/1","capacities":{"gpu":2,"node":4.5},"bids":['
        b'{"bidder":"a","value":10.25,"items":{"gpu":1,"node":2}},{"value":3,"items":{"node":1}}]}',
        command="winners {} --work-limit 10 -o @/out",
    ),
    "graph": Reader(
        good=b'{"kind":"graph","nodes":"n[1-6]","links":[["n[1-3]","s1"],["n[4-6]","s2"],["s1","s2"]]}',
        command="topology {} -o @/out",
    ),
    "failures": Reader(
        good=b'{"format":"aucsched-failures/1","failures":[{"nodes":"n01","down_s":5,"up_s":9.5}]}',
        command="simulate @/workload.json --policy fcfs --failures {} -o @/out",
        beside={"workload.json": _WORKLOAD_TEXT},
    ),
    "config": Reader(
        good=b'[check]\nformat = "json"\n[schedule]\nwindow = 5\ntime-limit = 1.5\n',
        command="--config {} check @/snapshot.json -o @/out",
        beside={"snapshot.json": _SNAPSHOT_TEXT},
    ),
}
