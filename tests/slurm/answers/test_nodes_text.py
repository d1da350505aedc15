"""Nodes of scontrol's text are those of its JSON; what it tells of gres, states, threads and licences."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import aucsched
from aucsched import InputError, Node, Request, Snapshot
from aucsched.cluster.nodes import NodeState
from aucsched.formats.notes import Notes
from aucsched.slurm.answers.node_records import empty_machine, node_document, read_nodes
from aucsched.slurm.answers.policy import backfill_settings
from aucsched.slurm.answers.snapshot_of_answers import SlurmSources, SlurmText, import_slurm

#: As 22.05 prints it without -o; the second node's Reason and OS hold blanks and signs.
TEXT = b"""\
NodeName=g1 Arch=x86_64 CoresPerSocket=8
   CPUAlloc=4 CPUEfctv=30 CPUTot=32 CPULoad=0.10
   AvailableFeatures=a100,ib ActiveFeatures=a100,ib
   Gres=gpu:a100:4(S:0-1)
   RealMemory=256000 AllocMem=8000 FreeMem=1 Sockets=2 Boards=1 MemSpecLimit=6000
   State=MIXED+PLANNED ThreadsPerCore=2 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=gpu,all

NodeName=c1 Arch=x86_64 CoresPerSocket=8
   CPUAlloc=0 CPUTot=16 Gres=(null) OS=Linux 6.1 #1 SMP
   RealMemory=64000 Sockets=2 State=DOWN* ThreadsPerCore=1 Weight=1
   Partitions=all
   Reason=disk = broken [root@2026-01-01T00:00:00]
"""
MEMBERS = [
    {
        "name": "g1",
        "cpus": 32,
        "effective_cpus": 30,
        "alloc_cpus": 4,
        "real_memory": 256000,
        "specialized_memory": 6000,
        "sockets": 2,
        "cores": 8,
        "threads": 2,
        "gres": "gpu:a100:4(S:0-1)",
        "features": "a100,ib",
        "partitions": ["gpu", "all"],
        "state": ["MIXED", "PLANNED"],
    },
    {"name": "c1", "cpus": 16, "alloc_cpus": 0, "real_memory": 64000, "partitions": ["all"], "state": "down"},
]


def test_what_people_write_of_a_node_overrides_none_of_its_fields() -> None:
    """``Reason=`` and ``Comment=`` stand behind them; a word in them may look like a field."""
    told = TEXT.replace(b"DOWN*", b"IDLE+DRAIN").replace(b"disk = broken", b"waits for State=IDLE CPUTot=1")
    assert [node.state for node in read_nodes_of(told)] == [NodeState.MIXED, NodeState.DRAINED]
    assert [node.total.cores for node in read_nodes_of(told)] == [30, 16]


def read_nodes_of(content: bytes) -> list[Node]:
    return [one.node for one in read_nodes(node_document(content), Notes())]


def test_text_and_json_are_the_same_nodes() -> None:
    made, notes = empty_machine(TEXT)
    nodes = made.nodes
    assert nodes == empty_machine(json.dumps({"nodes": MEMBERS}).encode())[0].nodes
    assert not made.jobs
    assert nodes[0] == Node(
        name="g1",
        cores=30,
        memory_mib=250_000,
        gres={"gpu:a100": 4},
        features=("a100", "ib"),
        partitions=("gpu", "all"),
    )
    assert "nodes that take no jobs now, taken as working: 1" in notes.texts() == made.notes


@pytest.mark.parametrize(
    ("line", "free"),
    [
        ("AllocTRES=cpu=4,mem=8000M,gres/gpu=3,gres/gpu:a100=3", 1),
        ("AllocTRES=cpu=4,mem=8000M,gres/gpu=3", 1),
        ("AllocTRES=cpu=4,mem=8000M,gres/gpu=3,gres/gpu:a100=1", 1),
        ("GresUsed=gpu:a100:2(IDX:0-1)\n   AllocTRES=cpu=4,gres/gpu=3", 2),
        ("AllocTRES=cpu=4,mem=8000M", 4),
    ],
)
def test_gres_in_use_are_those_of_alloc_tres_where_gres_used_is_not_printed(line: str, free: int) -> None:
    text = TEXT.replace(b"   Partitions=gpu,all\n", f"   Partitions=gpu,all\n   {line}\n".encode())
    node = read_nodes(node_document(text), Notes())[0].node
    assert node.free.gres == {"gpu:a100": free}


def test_gpus_that_a_site_also_shares_are_told_of() -> None:
    notes = Notes()
    text = TEXT.replace(b"Gres=gpu:a100:4", b"Gres=gpu:a100:4,shard:16")
    assert read_nodes(node_document(text), notes)[0].node.total.gres == {"gpu:a100": 4, "shard": 16}
    assert [one for one in notes.policies if one.startswith("shard counts by itself")]


def test_gres_in_use_without_a_type_are_of_types_that_the_site_does_not_count() -> None:
    """AccountingStorageTRES=gres/gpu,gres/gpu:a100: none of the two in use is an a100."""
    line = "CfgTRES=cpu=30,gres/gpu=6,gres/gpu:a100=4\n   AllocTRES=cpu=4,mem=8000M,gres/gpu=2"
    text = TEXT.replace(b"   Partitions=gpu,all\n", f"   Partitions=gpu,all\n   {line}\n".encode())
    text = text.replace(b"Gres=gpu:a100:4", b"Gres=gpu:a100:4,gpu:v100:2")
    node = read_nodes(node_document(text), Notes())[0].node
    assert node.free.gres == {"gpu:a100": 4, "gpu:v100": 0}


@pytest.mark.parametrize("text", [b"", b"NodeName=n1 State=IDLE", b"JobId=3"])
def test_what_holds_no_nodes_is_refused(text: bytes) -> None:
    with pytest.raises(InputError):
        empty_machine(text)


def test_backfill_s_settings() -> None:
    head = "Configuration data as of 2026-01-01\nSchedulerParameters = "
    assert backfill_settings(f"{head}defer,bf_interval=90,bf_max_job_test=250") == (250, 90)
    assert backfill_settings(f"{head}(null)") == (None, None)
    with pytest.raises(InputError, match="bf_interval: 'x' is not a number above 0"):
        backfill_settings(f"{head}bf_interval=x")
    notes = Notes()
    assert backfill_settings(f"{head}bf_interval=-1,bf_max_job_test=9", notes) == (9, None)
    assert notes.texts() == ("bf_interval=-1: Slurm does not backfill; the simulated one does",)


@pytest.mark.parametrize("count", [b"2T", b"2199023255552"])
def test_a_count_that_nothing_can_hold_is_left_out_and_named(count: bytes) -> None:
    """As storage in bytes on a node: one number must not refuse the cluster."""
    notes = Notes()
    told = TEXT.replace(b"Gres=gpu:a100:4(S:0-1)", b"Gres=gpu:a100:4(S:0-1),storage:local:%b" % count)
    told = told.replace(b"   RealMemory=256000", b"   GresUsed=storage:local:1G RealMemory=256000")
    (node, _) = (one.node for one in read_nodes(node_document(told), notes))
    assert node.total.gres == {"gpu:a100": 4}
    assert "node g1: its storage:local are more than 1000000000000: they are left out" in notes.policies
    assert not any("in use" in text for text in notes.texts())


QUEUE: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "fixtures" / "slurm" / "use" / "squeue.json").read_text()
)
PENDING: dict[str, Any] = next(job for job in QUEUE["jobs"] if job["job_id"] == 99)
RUNNING: dict[str, Any] = next(job for job in QUEUE["jobs"] if job["job_id"] == 88)
GPUS = "cpu=8,mem=1000M,gres/gpu=4,gres/gpu:a100=4"


def node(name: str, more: str = "", *, gres: str = "gpu:a100:4(S:0-1)", threads: int = 1) -> str:
    cores = 8 // threads
    return (
        f"NodeName={name} CoresPerSocket={cores}\n   CPUAlloc=0 CPUTot=8 Gres={gres}\n   RealMemory=1000 "
        f"Sockets=1 State=IDLE ThreadsPerCore={threads} Weight=1\n   Partitions=p\n   {more}\n\n"
    )


def job(number: int, **members: Any) -> dict[str, Any]:
    return PENDING | {"job_id": number, "memory_per_node": 1, "required_nodes": "", **members}


def holding(tres: str, *names: str) -> dict[str, Any]:
    """Return a running job on one core of each node, without gres_detail."""
    uses = [
        {"nodename": name, "memory_allocated": 0, "sockets": {"0": {"cores": {"0": "allocated"}}}}
        for name in names
    ]
    held = {"nodes": ",".join(names), "allocated_nodes": uses}
    return RUNNING | {"nodes": ",".join(names), "job_resources": held, "tres_alloc_str": tres}


def read(nodes: str, *jobs: dict[str, Any], **answers: str) -> Snapshot:
    queue = {"meta": {"Slurm": {"release": "22.05.8"}}, "errors": [], "jobs": list(jobs)}
    texts = {"jobs": json.dumps(queue), "nodes": nodes, **answers}
    sources = {name: SlurmText(name=name, content=text.encode()) for name, text in texts.items()}
    return import_slurm(SlurmSources(**sources), time=1_795_176_000)[0]


def free(made: Snapshot) -> list[dict[str, int]]:
    return [dict(one.free.gres) for one in made.nodes]


@pytest.mark.parametrize(
    ("gres", "used", "left"),
    [
        ("gpu:a100:4", GPUS, {"gpu:a100": 0}),
        ("gpu:a100:4", "cpu=8,gres/gpu=3", {"gpu:a100": 1}),
        ("gpu:4", "gres/gpu=3,gres/gpu:a100=3", {"gpu": 1}),
        # Types that Slurm counts are known; what they leave of the sum is of another.
        ("gpu:a:2,gpu:b:2", "gres/gpu=3,gres/gpu:b=2", {"gpu:a": 1, "gpu:b": 0}),
        ("gpu:a:2,gpu:b:2", "gres/gpu=3,gres/gpu:a=2", {"gpu:a": 0, "gpu:b": 1}),
        ("gpu:a100:4", "", {"gpu:a100": 4}),
        ("gpu:a100:4", f"{GPUS} GresUsed=gpu:a100:1(IDX:0)", {"gpu:a100": 3}),
    ],
)
def test_gres_in_use_without_gresused(gres: str, used: str, left: dict[str, int]) -> None:
    made = read(node("n1", f"CfgTRES={GPUS} AllocTRES={used}", gres=gres))
    assert free(made) == [left]
    assert not any("do not tell" in note for note in made.notes)


def test_a_job_that_asks_for_gres_that_are_left_out_is_told_which() -> None:
    told = node("n1", gres="storage:local:2T")
    (asked,) = read(told, job(7, tres_per_node="gres:storage:5")).jobs
    assert asked.unsupported == ("tres_per_node storage=5: no node is known to have storage",)
    assert asked.request.gres_per_node == {}
    # Where a node has some that are counted, it may start there.
    (other,) = read(told + node("n2", gres="storage:local:9"), job(7, tres_per_node="gres:storage:5")).jobs
    assert (other.unsupported, set(other.request.gres_per_node)) == ((), {"storage"})


def test_gres_that_slurm_does_not_count_are_noted() -> None:
    made = read(node("n1", "CfgTRES=cpu=8 AllocTRES=cpu=1"), holding("gres/gpu=2", "n1"))
    assert free(made) == [{"gpu:a100": 2}]
    text = "records of nodes do not tell how many gpu:a100 are in use: only those of jobs are known"
    assert [note for note in made.notes if "gpu" in note] == [f"{text} (scontrol -d show nodes tells)"]


def test_gres_of_a_job_without_gres_detail() -> None:
    nodes = node("n1", f"CfgTRES={GPUS} AllocTRES=gres/gpu=2") + node("n2", f"CfgTRES={GPUS}")
    made = read(nodes, holding("cpu=2,gres/gpu=4,gres/gpu:a100=4", "n1", "n2"))
    assert [use.gres for use in made.running[0].nodes.values()] == [{"gpu:a100": 2}] * 2
    assert free(made) == [{"gpu:a100": 2}] * 2
    assert [note for note in made.notes if "gpu" in note] == [
        "node n2: by its record 4 gpu:a100 are free, by its jobs 2: the less is taken"
    ]
    made = read(nodes, holding("gres/gpu=3", "n1", "n2"))
    assert free(made) == [{"gpu:a100": 2}, {"gpu:a100": 4}]
    assert "job 88: its gres on each node are not known" in made.notes


@pytest.mark.parametrize(
    ("code", "state"),
    [
        ("*", NodeState.DOWN),
        ("~", NodeState.UNKNOWN),
        ("#", NodeState.UNKNOWN),
        ("!", NodeState.UNKNOWN),
        ("%", NodeState.UNKNOWN),
        ("$", NodeState.MAINT),
        ("@", NodeState.UNKNOWN),
        ("^", NodeState.DOWN),
        ("-", NodeState.IDLE),
        ("?", NodeState.UNKNOWN),
        ("*+DRAIN", NodeState.DRAINED),
    ],
)
def test_a_code_behind_a_state_is_its_flag(code: str, state: NodeState) -> None:
    text = node("n1").replace("IDLE", f"IDLE{code}")
    members = {"name": "n1", "cpus": 8, "alloc_cpus": 0, "state": f"idle{code}"}
    for nodes in (text, json.dumps({"nodes": [members]})):
        made = read(nodes)
        assert made.nodes[0].state is state
        assert ("node n1: ?: not known, so it takes no jobs" in made.notes) == (code == "?")


@pytest.mark.parametrize(
    ("threads", "asked", "request_"),
    [
        (1, {"cpus": 1}, Request(cores=1)),
        (2, {"cpus": 1}, Request(cores=2, cores_per_task=2)),
        (4, {"cpus": 6, "tasks": 3, "cpus_per_task": 2}, Request(cores=8, cores_per_task=4)),
        (2, {"cpus": 6, "tasks": 2, "cpus_per_task": 3}, Request(cores=8, cores_per_task=4)),
        (2, {"cpus": 9, "tasks": 3, "cpus_per_task": 3, "max_nodes": 1}, Request(cores=10, nodes=1)),
        (2, {"cpus": 3, "max_nodes": 2}, Request(cores=4, nodes=2, cores_per_task=2)),
        # Each node gets a core, so that four CPUs on four nodes take eight.
        (
            2,
            {"cpus": 4, "max_nodes": 4, "tres_req_str": "cpu=4,node=4"},
            Request(cores=8, nodes=4, cores_per_task=2),
        ),
        (2, {"cpus": 6, "max_nodes": 2, "tasks_per_node": 3}, Request(cores_per_node=4, nodes=2)),
        (
            4,
            {"cpus": 8, "minimum_cpus_per_node": 6},
            Request(cores=8, min_cores_per_node=8, cores_per_task=4),
        ),
    ],
)
def test_a_job_gets_whole_cores(threads: int, asked: dict[str, Any], request_: Request) -> None:
    asked = {"tasks": asked["cpus"], "tres_req_str": "", **asked}
    made = read("".join(node(f"n{n}", threads=threads) for n in range(4)), job(1, **asked))
    assert replace(made.jobs[0].request, memory_mib_per_node=None) == request_
    assert made.jobs[0].unsupported == ()
    assert not any("ThreadsPerCore" in text for text in made.unread)


def test_jobs_of_one_cpu_share_no_core() -> None:
    made = read(node("n1", threads=4), *(job(n, cpus=1, tasks=1) for n in (1, 2, 3)))
    assert len(aucsched.schedule(made).started) == 2


def test_where_threads_differ_cores_are_not_counted() -> None:
    nodes = node("n1", threads=2) + node("n2")
    made = read(nodes, job(1, cpus=1, tasks=1))
    text = "nodes of p differ in ThreadsPerCore: CPUs of their jobs are not rounded up to whole cores"
    assert text in made.unread
    assert made.jobs[0].request.cores == 1
    # In two partitions each has its own; a job of both has the larger one.
    nodes = nodes.replace("Partitions=p", "Partitions=q", 1)
    made = read(nodes, *(job(n, cpus=1, tasks=1, partition=name) for n, name in enumerate(("p", "q", "p,q"))))
    assert [one.request.cores for one in made.jobs] == [1, 2, 2]
    assert not any("ThreadsPerCore" in text for text in made.unread)


@pytest.mark.parametrize("names", ["(null)", "n1"])
@pytest.mark.parametrize(
    ("licenses", "start", "told"),
    [
        ("m:4", 1_795_176_600, "m:4"),
        ("auction:9,m:4", 1_795_176_600, "m:4"),
        ("auction:9", 1_795_176_600, ""),
        ("m:4", 1_795_175_000, ""),  # its licences are Reserved= by now
        ("(null)", 1_795_176_600, ""),
    ],
)
def test_licences_of_a_reservation_to_come(names: str, licenses: str, start: int, told: str) -> None:
    text = (
        f"ReservationName=r StartTime={start} EndTime=1795190000\n   Nodes={names} CoreCnt=0 "
        f"Flags=LICENSE_ONLY\n   Users=root Licenses={licenses} State=INACTIVE\n"
    )
    made = read(node("n1"), reservations=text)
    assert made.unread == (
        (f"reservation r: licences {told} are not kept for it before it starts",) if told else ()
    )
    is_dropped = "reservation r: it names no node of the cluster and is dropped" in made.notes
    assert is_dropped == (names == "(null)" and not told)
