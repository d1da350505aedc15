"""Nodes of scontrol's text are those of its JSON, everything free."""

from __future__ import annotations

import json

import pytest

from aucsched import InputError, Node
from aucsched.formats.notes import Notes
from aucsched.slurm.answers.node_records import empty_machine, node_document, read_nodes
from aucsched.slurm.answers.policy import backfill_settings

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
