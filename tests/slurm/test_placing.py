"""``--format slurm``: the commands for each form of award, and what cannot be placed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.run import aucsched

from aucsched import Job, Node, Request, Resources, Snapshot, Span, save_snapshot
from aucsched.cluster.nodes import Partition
from aucsched.cluster.schedule import (
    Award,
    BidClass,
    BidSummary,
    Objective,
    Schedule,
    Seconds,
    Sizes,
    Status,
)
from aucsched.slurm.answers.node_records import THREADS_NOTE
from aucsched.slurm.place import placement

GPUS = {"gpu:a100": 2, "gpu:v100": 2}
NODES = tuple(
    Node(
        name=f"n{number}",
        total=Resources(cores=8, gres=GPUS if number > 4 else {"gpu": 2}),
        free=Resources(cores=8, gres=GPUS if number > 4 else {"gpu": 2}),
        partitions=("left",) if number < 4 else ("left", "right"),
    )
    for number in range(1, 9)
)


def cluster(job: Job, **members: Any) -> Snapshot:
    return Snapshot(nodes=NODES, jobs=(job,), **members)


def asking(name: str = "17", *, limit: int | None = 3600, **request: Any) -> Job:
    return Job(
        id=name,
        priority=1,
        user="anna",
        partition="right,left",
        time_limit_s=limit,
        request=Request(**{"cores": 4, **request}),
    )


def awarding(job: Job, nodes: dict[str, Resources]) -> Schedule:
    bid = BidSummary(bid_class=BidClass.A, level=None, preference=None)
    return Schedule(
        model="aucsched3",
        status=Status.OPTIMAL,
        objective=Objective(priority=1, preference=0.0, bound=1.0, gap=0.0),
        started=(Award(job=job.id, nodes=nodes, bid=bid),),
        pending=(),
        next_window=1,
        window=1,
        attempts=(),
        sizes=Sizes(),
        seconds=Seconds(),
    )


def use(cores: int, **gres: int) -> Resources:
    return Resources(cores=cores, gres={name.replace("_", ":"): count for name, count in gres.items()})


def line(job: Job, nodes: dict[str, Resources], **members: Any) -> str:
    text, problems = placement(cluster(job, **members), awarding(job, nodes))
    assert problems == ()
    assert text.startswith("# 1 of 1 started jobs, ")
    return text.splitlines()[-1]


def problem(job: Job, nodes: dict[str, Resources], **members: Any) -> str:
    text, problems = placement(cluster(job, **members), awarding(job, nodes))
    assert text.startswith("# 0 of 1 started jobs, ")
    assert text.splitlines()[-1] == f"# {problems[0]}"
    assert "\nscontrol" not in text
    return problems[0]


def test_the_same_cores_on_every_node() -> None:
    assert line(asking(), {"n1": use(2), "n3": use(2)}) == (
        "scontrol hold 17"
        " && scontrol update JobId=17 NumNodes=2-2 'ReqNodeList=n[1,3]' MinCPUsNode=2"
        " && scontrol release 17"
    )


def test_an_array_task_on_one_node() -> None:
    assert line(asking("12_3"), {"n1": use(4)}) == (
        "scontrol hold 12_3"
        " && scontrol update JobId=12_3 NumNodes=1-1 ReqNodeList=n1 MinCPUsNode=4"
        " && scontrol release 12_3"
    )


def test_different_cores_take_a_reservation() -> None:
    assert line(asking(), {"n4": use(3), "n5": use(1)}) == (
        "scontrol hold 17"
        " && scontrol create reservation ReservationName=aucsched-17 'Nodes=n[4-5]' CoreCnt=3,1 StartTime=now"
        " Duration=70 Users=anna Flags=PURGE_COMP=00:01:00 PartitionName=right"
        " && scontrol update JobId=17 NumNodes=2-2 'ReqNodeList=n[4-5]' ReservationName=aucsched-17"
        " && scontrol release 17"
    )


def test_the_reservation_is_in_a_partition_of_all_its_nodes() -> None:
    nodes = {"n3": use(3), "n4": use(1)}
    assert "PartitionName=left" in line(asking(), nodes)
    listed = (Partition(name="right", nodes=("n3",)),)
    assert "PartitionName=right" in line(asking(), nodes, partitions=listed)


def test_a_job_without_limit_has_a_reservation_without() -> None:
    assert " Duration=UNLIMITED " in line(asking(limit=None), {"n1": use(3), "n2": use(1)})
    assert " Duration=11 " in line(asking(limit=5), {"n1": use(3), "n2": use(1)})


def test_whole_nodes_need_no_count_of_cores() -> None:
    command = line(asking(exclusive=True), {"n4": use(8, gpu=2), "n5": use(6, gpu_a100=2)})
    assert "MinCPUsNode" not in command
    assert "CoreCnt" not in command
    assert "Gres" not in command


CLEARED = "scontrol update JobId=17 TresPerNode= TresPerJob= TresPerTask= && "


@pytest.mark.parametrize(
    ("request_", "held", "option"),
    [
        ({"gres_per_node": {"gpu": Span.exactly(2)}}, {"n1": use(2, gpu=2), "n2": use(2, gpu=2)}, None),
        ({"gres_per_node": {"gpu:a100": Span.exactly(2)}}, {"n5": use(4, gpu_a100=2)}, None),
        ({"gres_per_node": {"gpu": Span.exactly(2)}}, {"n5": use(4, gpu_v100=2)}, "Gres=gpu:v100:2"),
        ({"gres_per_node": {"gpu": Span(minimum=1, maximum=2)}}, {"n1": use(4, gpu=1)}, "Gres=gpu:1"),
        ({"gres_per_node": {"gpu": Span(minimum=0, maximum=2)}}, {"n1": use(4)}, "TresPerNode="),
        ({"gres_total": {"gpu": Span.exactly(2)}}, {"n1": use(4, gpu=2)}, None),
        ({"gres_total": {"gpu": Span.exactly(2)}}, {"n1": use(2, gpu=1), "n2": use(2, gpu=1)}, "Gres=gpu:1"),
    ],
)
def test_gres_are_fixed_where_the_request_leaves_a_choice(
    request_: dict[str, Any], held: dict[str, Resources], option: str | None
) -> None:
    command = line(asking(**request_), held)
    if option is None:
        assert "Gres=" not in command
        assert CLEARED not in command
    else:
        assert f" {option} " in command
        assert CLEARED in command


def test_a_total_that_differs_from_node_to_node_cannot_be_placed() -> None:
    job = asking(gres_total={"gpu": Span.exactly(3)})
    assert problem(job, {"n1": use(2, gpu=2), "n2": use(2, gpu=1)}) == (
        "job 17 cannot be placed: Slurm gives the same gres on each node, the award does not "
        "(n1 gpu:2, n2 gpu:1)"
    )


def test_threads_cannot_be_reserved() -> None:
    said = problem(asking(), {"n1": use(3), "n2": use(1)}, notes=(THREADS_NOTE,))
    assert said.endswith("which Slurm counts in cores and the snapshot in threads")
    assert "MinCPUsNode=2" in line(asking(), {"n1": use(2), "n2": use(2)}, notes=(THREADS_NOTE,))


@pytest.mark.parametrize("name", ["J1", "0", "1;reboot", "$(reboot)", "12_", "1 2", "1٢"])
def test_a_name_that_is_no_slurm_id_stays_a_comment(name: str) -> None:
    said = problem(asking(name), {"n1": use(4)})
    assert said == f"job {name!r} cannot be placed: its id is not a job id of Slurm"


def test_what_a_user_writes_is_quoted() -> None:
    job = Job(id="1", priority=1, user="a;reboot", request=Request(cores=4))
    assert "'Users=a;reboot'" in line(job, {"n1": use(3), "n2": use(1)})


def test_the_command_prints_them(tmp_path: Path) -> None:
    jobs = (asking("5", cores=16), asking("J1", cores=2))
    save_snapshot(Snapshot(nodes=NODES, jobs=jobs), tmp_path / "snapshot.json")
    result = aucsched("schedule", tmp_path / "snapshot.json", "--format", "slurm")
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith("# 1 of 2 started jobs, to place with: sh")
    assert [text for text in lines if not text.startswith("#")] == [
        next(text for text in lines if "JobId=5 " in text)
    ]
    assert result.stderr == "note: job 'J1' cannot be placed: its id is not a job id of Slurm\n"


def test_the_shell_stops_a_line_at_the_first_failure(tmp_path: Path) -> None:
    """A job must never be released without its place."""
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/said\n[ "$1" != update ]\n')
    scontrol.chmod(0o755)
    job = asking()
    text = placement(cluster(job), awarding(job, {"n1": use(4)}))[0]
    subprocess.run(["sh"], input=text, text=True, check=False, env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert (tmp_path / "said").read_text().split("\n")[:-1] == [
        "hold 17",
        "update JobId=17 NumNodes=1-1 ReqNodeList=n1 MinCPUsNode=4",
    ]
