"""The week's benchmark on a small site: every job and every metric, the report's other parts left alone."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "ub_week.py"
CONF = """\
ClusterName=small
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
NodeName=n[1-4] CPUs=8 RealMemory=1000 Gres=gpu:2 Feature=ib
PartitionName=batch Nodes=ALL Default=YES MaxTime=60 DefMemPerCPU=10
"""
TOPOLOGY = "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[3-4]\nSwitchName=top Switches=a,b\n"
EVENTS = "".join(
    f"-dt {place} -e submit_batch_job | -sim-walltime {run} -J j{place} {options} job.sh\n"
    for place, run, options in [
        (1, 40, "-n 8 -t 1"),
        (2, 90, "-N 3 -n 24 -t 1"),
        (3, 20, "-n 4 -t 1 --gres=gpu:1"),
        (4, 20, "-n 40 -t 1"),
        (5, 20, "-n 2 -t 1 -d afterok:1"),
        (6, 20, "-n 8 -t 2 --mem=900"),
    ]
)


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_every_job_and_every_metric_is_in_the_report(tmp_path: Path) -> None:
    site, report = tmp_path / "site", tmp_path / "RESULTS.md"
    site.mkdir()
    (site / "slurm.conf").write_text(CONF)
    (site / "topology.conf").write_text(TOPOLOGY)
    (site / "workload_week.events.gz").write_bytes(gzip.compress(EVENTS.encode()))
    report.write_text("before\n\n<!-- ub: begin -->\nold\n<!-- ub: end -->\n\nafter\n")
    arguments = (site, "--workers", "1", "--results", tmp_path / "results", "--report", report)
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    text = report.read_text()
    assert text.startswith("before\n\n<!-- ub: begin -->\n\n# UB-HPC week\n")
    assert text.endswith("\n<!-- ub: end -->\n\nafter\n")
    assert "old" not in text
    for row in (
        "| submitted | 6 | 6 | 6 | 6 |",
        "| ran to their end | 3 | 3 | 3 | 3 |",
        "| ran to their time limit, longer in truth | 1 | 1 | 1 | 1 |",
        "| never start | 2 | 2 | 2 | 2 |",
        "| – it cannot be expressed: --dependency=afterok:1 | 1 | 1 | 1 | 1 |",
        "| – it fits nowhere on the empty machine | 1 | 1 | 1 | 1 |",
        "| lost | 0 | 0 | 0 | 0 |",
    ):
        assert row in text
    kept = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "results").rglob("*.json")}
    backfill = {"backfill-slurm every 30 s", "backfill-slurm every 120 s"}
    assert kept.keys() == backfill | {"aucsched3", "aucsched3 response"}
    for found in kept.values():
        assert {"makespan_s", "wait_max_s", "gpu_utilization", "level_job_shares"} <= found["metrics"].keys()
        for name, value in found["metrics"].items():
            shares = [f"{name} {level}" for level in value] if isinstance(value, dict) else [name]
            assert all(f"| `{share}` | " in text for share in shares)
    # A second command finds its runs done and writes the same.
    again = run(*arguments)
    assert (again.returncode, again.stderr) == (0, "")
    assert report.read_text() == text


def test_without_the_data_it_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, "--report", tmp_path / "RESULTS.md")
    assert done.returncode == 2
    assert done.stderr.startswith(f"{tmp_path / 'workload_week.events.gz'}: there is no such file")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())
