"""Metrics against values worked out by hand, and the files that hold them."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucsched.formats.swf import SwfField, load_swf, swf_text
from aucsched.simulation.log_columns import Workload, workload_from_swf
from aucsched.simulation.logs.counts import simulate_counts
from aucsched.simulation.logs.policies import make_policy
from aucsched.simulation.result import Simulation, batsim_csv, simulated_log
from aucsched.simulation.stepping import NEVER
from aucsched.simulation.workloads.describe import describe

SMALL = Path(__file__).parents[1] / "fixtures" / "swf" / "small.swf"


def result_of(workload: Workload, policy: str = "easy") -> Simulation:
    starts = simulate_counts(workload, make_policy(policy, workload.requests))
    return Simulation(workload=workload, policy=policy, order="fcfs", starts=tuple(starts), seconds=0.25)


@pytest.fixture
def small() -> Simulation:
    """Four processors; see the fixture: EASY starts 1 and 3 beside each other and 2 after both."""
    return result_of(workload_from_swf(load_swf(SMALL)))


def test_small_schedule(small: Simulation) -> None:
    # Job 1 runs 0-10 on 2; job 2 needs all 4, its shadow time is job 1's estimated end, 20. Job 3 (one
    # processor, estimate 8) ends by then: 2-7; job 4 (estimate 60) does not, and the head leaves no extra;
    # job 5: 3-9. At 10 job 2 starts, 10-40; then job 4, 40-90.
    assert small.starts == (0, 10, 2, 40, 3)


def test_metrics_by_hand(small: Simulation) -> None:
    """Soner: equations (7.2), (7.3).

    Nagendra: metrics of users and of the system (7).
    """
    values = small.metrics
    work = 10 * 2 + 30 * 4 + 5 * 1 + 50 * 2 + 6 * 1
    assert values["makespan_s"] == 90
    assert values["theoretical_runtime_s"] == work / 4
    assert values["cpu_utilization"] == work / 4 / 90
    waits, runs, sizes = [0, 9, 0, 37, 0], [10, 30, 5, 50, 6], [2, 4, 1, 2, 1]
    responses = [wait + run for wait, run in zip(waits, runs, strict=True)]
    assert values["wait_mean_s"] == sum(waits) / 5
    assert values["wait_std_s"] == pytest.approx(math.sqrt(sum((w - 9.2) ** 2 for w in waits) / 5))
    assert values["wait_max_s"] == 37
    assert values["response_mean_s"] == sum(responses) / 5
    slowdowns = [response / run for response, run in zip(responses, runs, strict=True)]
    assert values["slowdown_mean"] == pytest.approx(sum(slowdowns) / 5)
    bounded = [max(1, r / max(run, 10)) for r, run in zip(responses, runs, strict=True)]
    assert values["bounded_slowdown_mean"] == pytest.approx(sum(bounded) / 5)
    width = sum(size * response for size, response in zip(sizes, responses, strict=True)) / sum(sizes)
    assert values["response_weighted_by_width_s"] == pytest.approx(width)
    areas = [size * run for size, run in zip(sizes, runs, strict=True)]
    area = sum(a * s for a, s in zip(areas, slowdowns, strict=True)) / sum(areas)
    assert values["slowdown_weighted_by_area"] == pytest.approx(area)
    assert values["throughput_per_h"] == 5 / (90 / 3600)


def test_loss_of_capacity_by_hand(small: Simulation) -> None:
    # A job waits from 1 on (job 2), 10-40 job 4 does but nothing is idle. Idle while one waits:
    # 1-2: 2, 2-3: 1, 3-7: 0, 7-9: 1, 9-10: 2 processors.
    assert small.metrics["loss_of_capacity"] == (1 * 2 + 1 * 1 + 0 + 2 * 1 + 1 * 2) / (4 * 90)


def test_capacity_is_lost_up_to_the_last_end_only(small: Simulation) -> None:
    # Job 2 never starts; the others end at 60 (job 4 at 10). Another never starts, and comes at 900.
    requests = small.workload.requests
    late = replace(requests, submit=(*requests.submit[:4], 900))
    starts = (0, NEVER, 2, 10, NEVER)
    found = replace(small, workload=replace(small.workload, requests=late), starts=starts)
    # Job 2 waits from 1 on; 1-2: 2 are idle, 2-7: 1, 7-10: 2, 10-60: 2.
    assert found.makespan == 60
    assert found.metrics["loss_of_capacity"] == (1 * 2 + 5 * 1 + 3 * 2 + 50 * 2) / (4 * 60)


def test_what_a_counts_only_machine_cannot_have_is_null(small: Simulation) -> None:
    values = small.metrics
    nodes = ("gpu_utilization", "spread_mean", "span_mean", "level_mean", "fragmentation_mean")
    assert all(values[name] is None for name in (*nodes, "packing_factor_mean"))


def test_a_run_that_started_nothing_has_no_metrics(small: Simulation) -> None:
    nothing = Simulation(
        workload=small.workload, policy="easy", order="fcfs", starts=(NEVER,) * 5, seconds=0.0
    )
    assert set(nothing.metrics.values()) == {None}
    assert nothing.jobs_csv().splitlines()[1] == "1,0,,,2,,,10,20,1"
    assert len(batsim_csv(nothing).splitlines()) == 1
    assert "-" in nothing.to_text("x")


def test_jobs_that_never_start_are_not_killed_at_their_estimate(small: Simulation) -> None:
    workload = replace(small.workload, killed=frozenset({0, 2}))
    for starts, killed in ((small.starts, 2), ((0, 10, NEVER, 40, 3), 1), ((NEVER,) * 5, 0)):
        result = replace(small, workload=workload, starts=starts)
        assert result.to_dict()["killed_at_estimate"] == killed


def test_document_has_the_promised_members(small: Simulation) -> None:
    document = small.to_dict()
    assert document["format"] == "aucsched-simulation/1"
    assert list(document) == [
        "format", "policy", "order", "processors", "jobs", "rows", "dropped", "killed_at_estimate",
        "never_started", "seconds", "metrics",
    ]  # fmt: skip
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_jobs_rows_are_in_order_of_submission(small: Simulation) -> None:
    rows = list(csv.DictReader(io.StringIO(small.jobs_csv())))
    assert list(rows[0])[:6] == ["id", "submit_s", "start_s", "end_s", "cores", "nodes"]
    assert [row["id"] for row in rows] == ["1", "2", "3", "4", "5"]
    assert [row["start_s"] for row in rows] == ["0", "10", "2", "40", "3"]
    assert {row["nodes"] for row in rows} == {""}


def test_batsim_rows_have_batsims_columns(small: Simulation) -> None:
    rows = list(csv.DictReader(io.StringIO(batsim_csv(small))))
    assert [row["job_id"] for row in rows] == ["3", "5", "1", "2", "4"], "in order of end"
    second = rows[3]
    assert second["starting_time"] == "10"
    assert second["turnaround_time"] == "39"
    assert second["stretch"] == "1.3"
    assert second["allocated_resources"] == "0-3"
    assert second["final_state"] == "COMPLETED_SUCCESSFULLY"
    assert None not in second


def test_simulated_log_reads_back_as_the_same_workload(small: Simulation) -> None:
    log = simulated_log(small, load_swf(SMALL))
    assert log.column(SwfField.WAIT).tolist() == [0, 9, 0, 37, 0]
    assert log.column(SwfField.SUBMIT).tolist() == [100, 101, 102, 103, 103]
    again = workload_from_swf(log)
    assert again.requests == small.workload.requests
    assert again.run == small.workload.run
    assert "Note: simulated by aucsched, policy easy" in swf_text(log)


@given(st.data())
def test_means_and_maxima_of_bins_are_those_of_the_steps(data: st.DataObject) -> None:
    log = load_swf(SMALL)
    timeline = result_of(workload_from_swf(log)).timeline
    cuts = sorted(data.draw(st.sets(st.integers(1, 89), max_size=6)))
    edges = np.array([0, *cuts, 90], dtype=np.float64)
    seconds = np.arange(90)
    at = timeline.used[np.searchsorted(timeline.times, seconds, side="right") - 1]
    bins = list(zip(edges[:-1].astype(int), edges[1:].astype(int), strict=True))
    assert timeline.mean(timeline.used, edges).tolist() == pytest.approx([at[i:j].mean() for i, j in bins])
    assert timeline.most(timeline.used, edges).tolist() == [at[i:j].max() for i, j in bins]


def test_description_by_hand() -> None:
    log = load_swf(SMALL)
    figures = describe(workload_from_swf(log), log)
    assert figures["jobs"] == 5
    assert figures["users"] == 3
    assert figures["span_s"] == 3
    assert figures["offered_load"] == 251 / (4 * 3)
    assert figures["shares"]["serial"] == 0.4
    assert figures["shares"]["whole_machine"] == 0.2
    assert figures["run_s"]["median"] == 10
    assert figures["gap_s"]["mean"] == 0.75
