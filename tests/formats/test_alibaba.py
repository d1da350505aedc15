"""`aucsched workload alibaba`: Alibaba's GPU cluster traces of 2023 as workloads."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aucsched import schedule
from aucsched.cli import run
from aucsched.cluster.errors import InputError
from aucsched.cluster.jobs import Span
from aucsched.cluster.nodes import Resources
from aucsched.cluster.workload import ClusterWorkload
from aucsched.formats.alibaba import import_alibaba
from aucsched.formats.alibaba_options import AlibabaOptions
from aucsched.formats.native.cluster_file import load_workload

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "gpu"
NODES = """sn,cpu_milli,memory_mib,gpu,model
cpu-1,32000,131072,0,
gpu-1,8000,61440,2,P100
gpu-2,96000,393216,8,G2
"""
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,\
creation_time,deletion_time,scheduled_time
whole,12000,16384,1,1000,,LS,Running,100,900,110
share,6500,12288,1,460,P100|T4,LS,Succeeded,90,290,90
eight,64000,65536,8,1000,G2,Guaranteed,Failed,120,500,130
plain,2000,1024,0,0,,BE,Running,130,130,130
never,1000,1024,1,500,,BE,Pending,140,200,
huge,97000,1024,0,0,,BE,Failed,150,160,151
"""


def imported(
    tmp_path: Path, nodes: str = NODES, pods: str = PODS, **options: Any
) -> tuple[ClusterWorkload, tuple[str, ...]]:
    (tmp_path / "nodes.csv").write_text(nodes)
    (tmp_path / "pods.csv").write_text(pods)
    workload, notes = import_alibaba(tmp_path / "nodes.csv", tmp_path / "pods.csv", AlibabaOptions(**options))
    assert notes.texts() == workload.notes
    return workload, workload.notes


def test_nodes_and_pods_become_a_workload(tmp_path: Path) -> None:
    workload, _ = imported(tmp_path)
    assert [(node.name, node.total.cores, dict(node.total.gres)) for node in workload.nodes] == [
        ("cpu-1", 32000, {}),
        ("gpu-1", 8000, {"gpu_milli": 2000}),
        ("gpu-2", 96000, {"gpu_milli": 8000}),
    ]
    assert workload.nodes[1].total.memory_mib == 61440
    assert workload.nodes[1].features == {"P100"}
    jobs = {one.job.id: one for one in workload.jobs}
    assert list(jobs) == ["share", "whole", "eight", "plain", "huge"]
    share = jobs["share"]
    assert (share.arrival_s, share.run_time_s, share.job.partition) == (0, 200, "P100,T4")
    assert share.job.request.cores == 6500
    assert share.job.request.nodes == Span.exactly(1)
    assert share.job.request.memory_mib_per_node == 12288
    assert share.job.request.gres_per_node == {"gpu_milli": Span.exactly(460)}
    assert (jobs["whole"].arrival_s, jobs["whole"].run_time_s) == (10, 790)
    assert jobs["eight"].job.request.gres_per_node == {"gpu_milli": Span.exactly(8000)}
    assert jobs["plain"].job.request.gres_per_node == {}
    assert all(one.job.time_limit_s is None for one in workload.jobs)
    priorities = [one.job.priority for one in workload.jobs]
    assert priorities == sorted(priorities, reverse=True)


def test_what_the_workload_does_not_hold_is_counted(tmp_path: Path) -> None:
    _, notes = imported(tmp_path)
    said = "\n".join(notes)
    assert "1 pods (first never) were never scheduled: left out" in said
    assert "1 pods (first plain) ran less than a second: one second" in said
    assert "1 pods (first whole) still ran when the trace ended, at 900" in said
    assert "1 pods (first huge) fit no node" in said
    assert "a share of one GPU may be granted where only parts of several are free (1 of 5 jobs" in said
    assert "no time limits" in said


def test_options_say_what_the_trace_leaves_open(tmp_path: Path) -> None:
    workload, notes = imported(tmp_path, unscheduled="lifetime", time_limits="run-time")
    jobs = {one.job.id: one for one in workload.jobs}
    assert (jobs["never"].run_time_s, jobs["never"].job.time_limit_s) == (60, 60)
    assert any("taken to run as long as from creation to deletion" in note for note in notes)


def test_a_share_is_never_split_where_gpus_are_separate(tmp_path: Path) -> None:
    """Two GPUs with 500 free on each take no share of 600; counted together they would."""
    nodes = "sn,cpu_milli,memory_mib,gpu,model\nn,8000,61440,2,P100\n"
    pods = PODS.splitlines()[0] + "\nj,1000,1024,1,{share},,LS,Running,0,9,0\n"

    def starts(free: dict[str, int], share: int, gpus: str) -> bool:
        workload, _ = imported(tmp_path, nodes, pods.format(share=share), gpus=gpus)
        node = workload.nodes[0]
        left = Resources(cores=8000, memory_mib=61440, gres=free)
        busy = replace(workload.snapshot(), nodes=(replace(node, free=left),))
        return bool(schedule(busy).started)

    assert starts({"gpu_milli": 1000}, 600, "shares")
    assert not starts({"gpu_milli:0": 500, "gpu_milli:1": 500}, 600, "separate")
    assert starts({"gpu_milli:0": 500, "gpu_milli:1": 500}, 500, "separate")
    assert starts({"gpu_milli:0": 500, "gpu_milli:1": 1000}, 1000, "separate")


def test_pods_of_several_gpus_name_them_where_gpus_are_separate(tmp_path: Path) -> None:
    workload, notes = imported(tmp_path, gpus="separate")
    jobs = {one.job.id: one.job.request.gres_per_node for one in workload.jobs}
    assert jobs["eight"] == {f"gpu_milli:{gpu}": Span.exactly(1000) for gpu in range(8)}
    assert jobs["share"] == {"gpu_milli": Span.exactly(460)}
    assert workload.nodes[1].total.gres == {"gpu_milli:0": 1000, "gpu_milli:1": 1000}
    assert any("jobs of several GPUs (1) take a node's first ones" in note for note in notes)
    only_huge = [note for note in notes if "fit no node" in note]
    assert only_huge == ["1 pods (first huge) fit no node: they stay pending"]


@pytest.mark.parametrize(
    ("nodes", "pods", "message"),
    [
        ("sn,gpu\n", PODS, r"nodes\.csv: line 1: the columns cpu_milli, memory_mib, model are missing"),
        ("", PODS, r"nodes\.csv: line 1: there is no header"),
        (NODES + "x,1\n", PODS, r"nodes\.csv: line 5: 2 fields where the header has 5"),
        (NODES + "x,-1,1,1,\n", PODS, r"nodes\.csv: line 5: cpu_milli: '-1' is not a whole number"),
        (NODES + "x,0,1,1,\n", PODS, r"nodes\.csv: line 5: cores: 0 is below 1"),
        (NODES + "gpu-2,1,1,1,\n", PODS, r"nodes\.csv: nodes\[3\]\.name: 'gpu-2' is listed at nodes\[2\]"),
        (NODES, PODS + "a,1,1,1,1500,,,,1,2,1\n", r"pods\.csv: line 8: gpu_milli: 1500 a GPU with num_gpu 1"),
        (NODES, PODS + "a,1,1,2,0,,,,1,2,1\n", r"pods\.csv: line 8: gpu_milli: 0 a GPU with num_gpu 2"),
        (
            NODES,
            PODS + "a,1,1,0,0,,,,x,2,1\n",
            r"pods\.csv: line 8: creation_time: 'x' is not a whole number",
        ),
        (
            NODES,
            PODS + "share,1,1,0,0,,,,200,300,210\n",
            r"pods\.csv: jobs\[\d\]\.id: 'share' is listed at jobs",
        ),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, nodes: str, pods: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        imported(tmp_path, nodes, pods)


def test_the_command_writes_a_workload(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes, pods, out = (tmp_path / name for name in ("nodes.csv", "pods.csv.gz", "workload.json"))
    nodes.write_text("\ufeff" + NODES.replace("\n", "\r\n"))
    pods.write_bytes(gzip.compress(PODS.encode()))
    arguments = ["workload", "alibaba", "--nodes", str(nodes), "--pods", str(pods), "-o", str(out)]
    assert run(arguments) == 0
    assert "note: 1 pods (first never) were never scheduled" in capsys.readouterr().err
    loaded = load_workload(out)
    assert len(loaded.jobs) == 5
    written = out.read_bytes()
    assert run(arguments) == 0
    assert out.read_bytes() == written
    assert run(["workload", "alibaba", "--nodes", "-", "--pods", "-"]) == 2
    assert run(["workload", "alibaba", "--nodes", str(tmp_path / "none"), "--pods", str(pods)]) == 2


@pytest.mark.skipif(not DATA.exists(), reason="the shared data are not here")
def test_the_published_trace() -> None:
    nodes, pods = DATA / "openb_node_list_all_node.csv", DATA / "openb_pod_list_default.csv"
    workload, _ = import_alibaba(nodes, pods)
    assert len(workload.nodes) == 1523
    assert sum(node.total.gres.get("gpu_milli", 0) for node in workload.nodes) == 6_212_000
    everything, _ = import_alibaba(nodes, pods, AlibabaOptions(unscheduled="lifetime"))
    assert (len(workload.jobs), len(everything.jobs)) == (8152 - 897, 8152)
