"""``workload describe`` over nodes and jobs: figures counted by hand, and the options of logs refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from support.run import aucsched, refused
from support.spoiled import WORKLOAD as GOOD

from aucsched.formats.native.cluster_file import parse_workload
from aucsched.formats.swf import parse_swf
from aucsched.simulation.log_columns import workload_from_swf
from aucsched.simulation.workloads.describe import cluster_text, describe, describe_cluster


def test_figures_by_hand() -> None:
    figures = describe_cluster(parse_workload(json.dumps(GOOD).encode()))
    assert (figures["nodes"], figures["cores"], figures["gres"], figures["switches"]) == (
        5,
        40,
        {"gpu": 8},
        3,
    )
    assert (figures["jobs"], figures["users"], figures["span_s"]) == (2, 1, 12.5)
    # 16 cores for 60 s and 4 for 600.25 s.
    assert figures["theoretical_s"] == pytest.approx((16 * 60 + 4 * 600.25) / 40)
    assert figures["offered_load"] == pytest.approx(figures["theoretical_s"] / 12.5)
    # One GPU on one node, the fewest that job 2 accepts.
    assert figures["gres_load"] == {"gpu": pytest.approx(600.25 / 8 / 12.5)}
    shares = {label: share for label, share in figures["shares"].items() if share}
    assert shares == {"cores": 0.5, "nodes and cores": 0.5, "gres": 0.5, "gres ranges": 0.5}
    assert (figures["size"]["mean"], figures["run_s"]["max"], figures["limit_s"]["mean"]) == (10, 600.25, 90)


def test_nobody_is_no_user_of_a_log() -> None:
    rows = b"1 0 -1 5 1 -1 -1 1 5 -1 1 7\n2 0 -1 5 1 -1 -1 1 5 -1 1 -1\n3 0 -1 5 1 -1 -1 1 5 -1 1 8\n"
    log = parse_swf(b"; MaxProcs: 4\n" + rows)
    assert describe(workload_from_swf(log), log)["users"] == 2


def test_an_empty_queue_is_described() -> None:
    figures = describe_cluster(parse_workload(json.dumps({**GOOD, "jobs": []}).encode()))
    assert (figures["jobs"], figures["offered_load"], figures["size"]) == (0, None, None)
    assert "0 jobs on 5 nodes" in cluster_text(figures, "empty")


def test_the_command_tells_workloads_from_logs(tmp_path: Path) -> None:
    plain, packed = tmp_path / "w.json", tmp_path / "w.json.gz"
    plain.write_text(json.dumps(GOOD))
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    for path in (plain, packed):
        done = aucsched("workload", "describe", path)
        assert (done.returncode, done.stderr) == (0, "")
        assert "2 jobs on 5 nodes, 40 cores, 8 gpu, 3 switches" in done.stdout
    document = json.loads(
        aucsched("workload", "describe", "-", "--format", "json", stdin=json.dumps(GOOD)).stdout
    )
    assert document["notes"] == ["made by hand"]
    assert "w.json is a workload" in refused("workload", "describe", plain, "--processors", "5")
    assert "w.json is a workload" in refused("workload", "describe", plain, "--plot", tmp_path / "x.png")
    plain.write_text(json.dumps({**GOOD, "nodes": []}))
    assert f"{plain}: nodes: " in refused("workload", "describe", plain)
