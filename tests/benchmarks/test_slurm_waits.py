"""The lists of waits under Slurm share cores and stay the same; ratios are to a list's own backfill."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from against_slurm import Ran
from slurm_waits import SEEDS, columns, job_list, print_table


def test_a_list_has_100_jobs_that_share_64_cores() -> None:
    for seed in SEEDS.values():
        workload = job_list(seed)
        assert workload == job_list(seed)
        assert sum(node.total.cores for node in workload.nodes) == 64
        assert len(workload.jobs) == 100
        for one in workload.jobs:
            assert 1 <= one.job.request.fewest_cores <= 32
            assert one.job.time_limit_s is not None
            assert one.run_time_s + 60 <= one.job.time_limit_s <= 3 * one.run_time_s + 120


def test_ratios_are_to_the_backfill_of_the_same_list(capsys: pytest.CaptureFixture[str]) -> None:
    workload = job_list(SEEDS["1"])
    ran = {
        one.job.id: Ran(submit_s=0, start_s=100, end_s=100 + one.run_time_s, nodes=("n01",))
        for one in workload.jobs
    }
    base = columns(workload, ran)
    assert (base["mean"], base["longest"]) == (100, 100)
    half = {**base, "mean": 50.0, "longest": 110.0}
    print_table({("1", "backfill"): [base], ("1", "run"): [half, half]})
    row = capsys.readouterr().out.splitlines()[-1]
    assert row.startswith("| 1 | run | 2 | 50 | 110 |")
    assert row.endswith("| 0.50 | 1.10 |")


def test_the_page_has_the_table_of_the_recorded_runs(capsys: pytest.CaptureFixture[str]) -> None:
    root = Path(__file__).parents[2]
    rows = json.loads((root / "benchmarks" / "results" / "slurm-waits.json").read_text())
    print_table({(row["list"], row["mode"]): row["runs"] for row in rows})
    assert capsys.readouterr().out in (root / "benchmarks" / "notes" / "slurm.md").read_text()
