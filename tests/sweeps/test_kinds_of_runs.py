"""Axes of workloads: networks, preemption, and both schedulers of a negotiation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.run import aucsched
from support.sweeps import rows_of, workload

import aucsched as package
from aucsched.cluster.errors import InputError, OptionError
from aucsched.formats.native.cluster_file import load_workload
from aucsched.sweeps.call import sweep


def paid(folder: Path) -> Path:
    """Write the workload of sixteen jobs, of which every fourth pays four times as much."""
    path = workload(folder)
    document = json.loads(path.read_text())
    for place, job in enumerate(document["jobs"]):
        job |= {"user": f"u{place % 4}", "credits_per_core_h": 4 if place % 4 == 3 else 1}
    path.write_text(json.dumps(document))
    return path


def test_preemption_and_its_credits_are_axes(tmp_path: Path) -> None:
    path, out = paid(tmp_path), tmp_path / "p.csv"
    grid = ("--policy", "aucsched3", "--work-limit", "0", "--preempt", "off,on", "--workers", "1")
    done = aucsched("sweep", path, *grid, "-o", out)
    assert done.returncode == 0, done.stderr
    off, on = rows_of(out)
    assert (off["preempt"], on["preempt"]) == ("off", "on")
    for row, options in ((off, ()), (on, ("--preempt",))):
        alone = aucsched(
            "simulate", path, "--policy", "aucsched3", "--work-limit", "0", *options, "--format", "json"
        )
        metrics = json.loads(alone.stdout)["metrics"]
        assert float(row["wait_mean_s"]) == metrics["wait_mean_s"]
    with pytest.raises(OptionError, match=r"^credits needs preempt"):
        sweep(path, policy="aucsched3", credits=[5])
    rows = sweep(path, policy="aucsched3", work_limit=0, preempt=True, credits=[0, 500]).rows
    assert [row["credits"] for row in rows] == [0, 500]


def test_networks_are_an_axis_of_snapshots_and_workloads(tmp_path: Path) -> None:
    path = workload(tmp_path)
    found = sweep(path, policy="easy", topology=["linear", "torus:2x2x2"])
    assert [row["topology"] for row in found.rows] == ["linear", "torus:2x2x2"]
    assert "hops_mean" not in found.rows[0]
    assert float(str(found.rows[1]["hops_mean"])) > 0
    with pytest.raises(InputError, match="9"):
        sweep(path, policy="easy", topology=["torus:3x3"])
    with pytest.raises(OptionError, match=r"is not linear, or a network's sizes"):
        sweep(path, policy="easy", topology=[str(path)])
    nodes = [package.Node(name=f"n{place}", cores=4) for place in range(4)]
    snapshot = package.Snapshot(
        nodes=nodes, jobs=[package.Job(id="1", priority=1, request=package.Request(cores=8))]
    )
    rows = sweep(snapshot, topology=["linear", "torus:2x2"], work_limit=3).rows
    assert [row["jobs_started"] for row in rows] == [1, 1]


def test_a_negotiation_is_a_policy_of_sweeps(tmp_path: Path) -> None:
    path, out = workload(tmp_path), tmp_path / "n.csv"
    grid = ("--policy", "easy,negotiate", "--mapper", "greedy,auction", "--parts", "1,2", "--workers", "1")
    done = aucsched("sweep", path, *grid, "-o", out)
    assert done.returncode == 0, done.stderr
    rows = rows_of(out)
    points = [(row["policy"], row["mapper"], row["parts"]) for row in rows]
    assert points == [
        ("easy", "", ""),
        *(("negotiate", mapper, parts) for mapper in ("greedy", "auction") for parts in ("1", "2")),
    ]
    alone = aucsched("negotiate", path, "--mapper", "auction", "--parts", "2", "--format", "json")
    metrics = json.loads(alone.stdout)["metrics"]
    for name in ("makespan_s", "wait_mean_s", "utilization", "transactions"):
        assert float(rows[-1][name]) == metrics[name]


@pytest.mark.parametrize(
    ("axes", "why"),
    [
        ({"policy": "easy", "mapper": ["greedy"]}, "^mapper needs policy negotiate"),
        ({"policy": "negotiate", "mapper": ["magic"]}, "^mapper: 'magic' is not one of greedy, auction"),
        ({"policy": "negotiate", "window": [5]}, "^window: policy negotiate does not read it"),
        (
            {"policy": "negotiate", "mapper": ["greedy"], "work_limit": [5]},
            "^work_limit needs mapper auction",
        ),
    ],
)
def test_what_a_negotiation_does_not_read_is_refused(
    axes: dict[str, object], why: str, tmp_path: Path
) -> None:
    loaded = load_workload(workload(tmp_path))
    with pytest.raises(OptionError, match=why):
        sweep(loaded, **axes)
