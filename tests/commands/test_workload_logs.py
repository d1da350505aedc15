"""from-swf, from-csv and from-sacct, run as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.run import aucsched, refused

HEADER = "; MaxProcs: 64\n"
#: job, submit, wait, run, processors, …, requested processors, requested time, …, user.
ROWS = (
    "1 100 -1 50 4 -1 -1 4 60 -1 1 7 -1 -1 -1 -1 -1 -1\n"
    "2 90 -1 500 2 -1 -1 2 60 -1 1 8 -1 -1 -1 -1 -1 -1\n"
    "3 120 -1 0 2 -1 -1 2 60 -1 1 8 -1 -1 -1 -1 -1 -1\n"
    "4 130 -1 5 17 -1 -1 17 60 -1 1 8 -1 -1 -1 -1 -1 -1\n"
    "5 140 -1 5 16 -1 -1 16 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n"
)


def made(folder: Path, command: str, text: str | bytes, *arguments: str) -> tuple[dict[str, Any], str]:
    source = folder / "jobs.txt"
    source.write_bytes(text.encode() if isinstance(text, str) else text)
    done = aucsched("workload", command, source, *arguments, "-o", folder / "w.json")
    assert done.returncode == 0, done
    return json.loads((folder / "w.json").read_text()), done.stderr


def test_a_log_on_nodes(tmp_path: Path) -> None:
    found, notes = made(
        tmp_path, "from-swf", HEADER + ROWS, "--nodes", "4", "--cores", "4", "--gpus", "2", "--switch", "2"
    )
    assert found["nodes"] == [{"name": "n[1-4]", "cores": 4, "gres": {"gpu": 2}}]
    assert [one["nodes"] for one in found["topology"]["switches"][:2]] == ["n[1-2]", "n[3-4]"]
    jobs = [
        (one["id"], one["arrival_s"], one["run_time_s"], one["time_limit_s"], one["cores"])
        for one in found["jobs"]
    ]
    # In the order of submission; job 2 is killed at its limit, 3 did not run, 4 is larger than the machine.
    assert jobs == [("2", 0, 60, 60, 2), ("1", 10, 50, 60, 4), ("5", 50, 5, 5, 16)]
    assert [one.get("user") for one in found["jobs"]] == ["8", "7", None]
    assert "1 with run time 0 or missing" in notes
    assert "1 larger than the machine" in notes
    assert "1 job ran beyond the requested time" in notes


def test_what_was_imported_plays(tmp_path: Path) -> None:
    made(tmp_path, "from-swf", HEADER + ROWS, "--nodes", "4", "--cores", "4")
    done = aucsched("simulate", tmp_path / "w.json", "--policy", "easy", "--format", "json")
    assert done.returncode == 0
    # 16 cores: job 5 waits for job 1, which ends 60 s after the beginning, and job 2, which ends then too.
    assert json.loads(done.stdout)["metrics"]["wait_max_s"] == 10


def test_columns_of_a_public_gpu_trace(tmp_path: Path) -> None:
    text = (
        "\ufeffjob_id,user,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\r\n"
        "a,u1,8,64,2,COMPLETED,2020-04-01 00:00:01,2020-04-01 00:00:05,2020-04-01 00:01:05,60,q\r\n"
        "b,u2,0,4,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:05,2020-04-01 00:01:05,60,q\r\n"
        "c,u2,3,,,FAILED,2020-04-01 00:00:03,None,None,30.5,q\r\n"
        "d,u2,9,4,1,COMPLETED,2020-04-01 00:00:09,2020-04-01 00:00:05,2020-04-01 00:01:05,60,q\r\n"
    )
    found, notes = made(tmp_path, "from-csv", text, "--nodes", "4", "--cores", "32", "--gpus", "4")
    jobs = {one["id"]: one for one in found["jobs"]}
    assert list(jobs) == ["b", "a", "c"]
    assert (jobs["a"]["nodes"], jobs["a"]["cores"], jobs["a"]["gres_per_node"]) == (2, 64, {"gpu": 4})
    assert (jobs["c"]["nodes"], jobs["c"]["gres_per_node"], jobs["c"]["run_time_s"]) == (1, {"gpu": 3}, 30.5)
    assert jobs["c"]["time_limit_s"] == 31
    assert [one["arrival_s"] for one in found["jobs"]] == [0, 1, 3]
    assert "1 job (first d) larger than the machine: left out" in notes
    assert "3 jobs (first b) without a time limit" in notes
    assert "the column state is not read" in " ".join(found["notes"])


def test_columns_by_name(tmp_path: Path) -> None:
    text = "who,when,from,to,wall\nx,5,10,25,1:00:00\ny,4,10,10,UNLIMITED\nz,3,1,2,UNLIMITED\n"
    columns = "user=who,time=when,start=from,end=to"
    found, notes = made(
        tmp_path,
        "from-csv",
        text,
        "--column",
        columns,
        "--column",
        "limit=wall",
        "--nodes",
        "1",
        "--cores",
        "2",
    )
    jobs = [(one["user"], one["arrival_s"], one["run_time_s"], one["time_limit_s"]) for one in found["jobs"]]
    assert jobs == [("z", 0, 1, 1), ("x", 2, 15, 3600)]
    assert "1 job (first 3) did not run: left out" in notes


def test_columns_named_as_the_option_names_them(tmp_path: Path) -> None:
    text = "id,time,start,end,priority\nx,5,10,25,7\n"
    found, _ = made(tmp_path, "from-csv", text, "--nodes", "1", "--cores", "2")
    (job,) = found["jobs"]
    assert (job["id"], job["run_time_s"], job["started_s"], job["priority"]) == ("x", 15, 5, 7)


def test_sacct_prints_jobs_steps_and_resources(tmp_path: Path) -> None:
    text = (
        "JobID|User|Submit|ElapsedRaw|TimelimitRaw|NNodes|NCPUS|AllocTRES|State\n"
        "10|ann|2026-01-02T03:04:05|3600|120|2|16|billing=16,cpu=16,gres/gpu:a100=4,gres/gpu=4,node=2|TIMEOUT\n"
        "10.batch||2026-01-02T03:04:05|3600||1|8|cpu=8|COMPLETED\n"
        "11_3|bob|2026-01-02T03:04:00|30|Partition_Limit|1|1|cpu=1|COMPLETED\n"
        "12|bob|Unknown|0|60|1|1||CANCELLED by 5\n"
    )
    with_time = text.replace("Unknown", "2026-01-02T03:04:09")
    found, notes = made(tmp_path, "from-sacct", with_time, "--nodes", "4", "--cores", "8", "--gpus", "2")
    jobs = [(one["id"], one["time_limit_s"], one["nodes"], one.get("gres_per_node")) for one in found["jobs"]]
    # 11_3 has no limit of its own: the longest in its partition.
    assert jobs == [("11_3", 7200, 1, None), ("10", 7200, 2, {"gpu": 2})]
    assert "1 row named a step of a job: left out" in notes
    assert "1 job (first 12) did not run: left out" in notes
    # A row without a time is left out, and its job named.
    found, notes = made(tmp_path, "from-sacct", text, "--nodes", "4", "--cores", "8", "--gpus", "2")
    assert [one["id"] for one in found["jobs"]] == ["11_3", "10"]
    assert "1 row cannot be read: left out (job 12, line 5: Submit: there is no time)" in notes


def test_a_history_of_another_clusters_partitions_is_refused(tmp_path: Path) -> None:
    log, nodes = tmp_path / "sacct.txt", tmp_path / "nodes.txt"
    rows = (
        "JobID|Partition|Submit|ElapsedRaw|NCPUS",
        "1|batch|1767323045|60|1",
        "2|long,batch|1767323045|60|1",
    )
    log.write_text("\n".join(rows))
    # What is noted of the nodes is no second line of a refusal.
    node = "NodeName={} State=DOWN CPUTot=8 CPUAlloc=0 Partitions={}\n"
    nodes.write_text(node.format("n1", "a") + node.format("n2", "b,a"))
    line = refused("workload", "from-sacct", log, "--nodes", nodes)
    words = "the jobs name batch, long, the nodes a, b"
    assert line == f"{log}: no job is in a partition of the nodes: {words}"
    nodes.write_text(nodes.read_text().replace("b,a", "b,batch"))
    done = aucsched("workload", "from-sacct", log, "--nodes", nodes, "-o", tmp_path / "made.json")
    assert (done.returncode, "taken as working: 2" in done.stderr) == (0, True)


def test_names_that_come_twice_are_numbered(tmp_path: Path) -> None:
    text = "id,time,duration\na,1,5\na,0,5\n"
    found, notes = made(tmp_path, "from-csv", text, "--nodes", "1", "--cores", "1")
    assert [one["id"] for one in found["jobs"]] == ["1", "2"]
    assert "more than once" in notes


@pytest.mark.parametrize(
    ("command", "text", "arguments", "message"),
    [
        ("from-csv", "id,duration\n1,2\n", (), "no column says when"),
        ("from-csv", "time,id\n1,2\n", (), "no column says how long"),
        ("from-csv", "time,duration\n", (), "no job is left"),
        ("from-csv", "", (), "line 1: there is no header"),
        ("from-csv", "time,duration\n1\n", (), "line 2: 1 fields where the header has 2"),
        ("from-csv", "time,duration\nsoon,5\n", (), "line 2: time: 'soon' is neither seconds nor a date"),
        ("from-csv", "time,duration,cores\n1,5,2.5\n", (), "line 2: cores: '2.5' is not a count"),
        ("from-csv", "time,duration\n1,5\n", ("--column", "cores=cpus"), "no column 'cpus'"),
        ("from-csv", "time,duration\n1,5\n", ("--column", "color=time"), "'color' is not one of"),
        ("from-csv", "time,duration\n1,5\n", ("--column", "time"), "is not WHAT=NAME"),
        ("from-csv", "time,duration\n1,5\n", ("--column", "time=time,time=time"), "given twice"),
        ("from-csv", "time,duration\n1,nan5\n", (), "'nan5'"),
        ("from-csv", "time,duration\n1,1_000\n", (), "line 2: duration: '1_000' is neither seconds"),
        ("from-csv", "time,duration\n1,1e300\n", (), "'1e300'"),
        ("from-csv", "time,duration\n1,5\n", ("--switch", "4,2,1"), "--switch 4,2,1"),
        ("from-csv", "time,duration\n1,5\n", ("--switch", "0"), "--switch 0"),
        ("from-sacct", "User|Submit|ElapsedRaw\n", (), "no column JobID"),
        ("from-swf", "no log\n", (), "jobs.txt"),
        ("from-swf", HEADER, (), "the file holds no job"),
    ],
)
def test_what_cannot_be_read_is_one_line(
    tmp_path: Path, command: str, text: str, arguments: tuple[str, ...], message: str
) -> None:
    source, output = tmp_path / "jobs.txt", tmp_path / "w.json"
    source.write_text(text)
    notes = refused("workload", command, source, "--nodes", "2", "--cores", "2", *arguments, "-o", output)
    assert message in notes
    assert not output.exists()
