"""One job that makes a step fail is set aside; all others are scheduled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.build import refuse_awards, snapshot

from aucsched import Reason, Schedule, Status, schedule
from aucsched.auction.options import MODELS
from aucsched.bidgen.first_fit import FirstFitPlacer, Placement
from aucsched.cli import run
from aucsched.cluster.jobs import Job
from aucsched.cluster.resources.demand import Demand, DemandReader
from aucsched.models.solve.solver import SolverStatus

NODES: list[dict[str, Any]] = [
    {"name": "n1", "cores": 8, "memory_mib": 1000},
    {"name": "n2", "cores": 8, "memory_mib": 700},
]
#: Two tasks of three cores leave two of a node's eight: the job holds the memory of all eight.
ODD = {"cores": 3, "cores_per_task": 3, "memory_mib_per_core": 100, "exclusive": True}
JOBS: list[dict[str, Any]] = [{"cores": 2, "priority": 9}, {"cores": 3, "priority": 5}, {"cores": 4}]


def reasons(result: Schedule) -> dict[str, Reason]:
    return {refusal.job: refusal.reason for refusal in result.pending}


@pytest.mark.parametrize("model", MODELS)
def test_an_exclusive_job_counts_memory_for_all_its_cores(model: Any) -> None:
    result = schedule(snapshot(NODES, [ODD, {"cores": 1}]), model=model)
    held = {award.job: award.nodes for award in result.started}
    assert set(held) == {"J1", "J2"}
    # 800 MiB are free on the first node only.
    assert {name: (use.cores, use.memory_mib) for name, use in held["J1"].items()} == {"n1": (8, 800)}


@pytest.mark.parametrize("model", MODELS)
def test_a_job_that_cannot_be_read_is_set_aside(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read = DemandReader.read

    def failing(self: DemandReader, job: Job, index: int) -> object:
        if job.id == "J2":
            raise ZeroDivisionError("by nothing")
        return read(self, job, index)

    monkeypatch.setattr(DemandReader, "read", failing)
    result = schedule(snapshot(NODES, JOBS), model=model)
    assert {award.job for award in result.started} == {"J1", "J3"}
    assert reasons(result) == {"J2": Reason.SET_ASIDE}
    assert result.status is Status.FEASIBLE
    assert "ZeroDivisionError: by nothing" in result.pending[0].detail


@pytest.mark.parametrize("model", MODELS)
def test_a_job_whose_bids_fail_is_set_aside(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    place = FirstFitPlacer.place

    def failing(self: FirstFitPlacer, demand: Demand) -> Placement | None:
        if demand.job.id in {"J1", "J3"}:
            raise IndexError("no such place")
        return place(self, demand)

    monkeypatch.setattr(FirstFitPlacer, "place", failing)
    result = schedule(snapshot(NODES, JOBS), model=model)
    assert [award.job for award in result.started] == ["J2"]
    assert reasons(result) == {"J1": Reason.SET_ASIDE, "J3": Reason.SET_ASIDE}
    assert result.status is Status.FEASIBLE


@pytest.mark.parametrize("model", MODELS)
def test_a_job_whose_award_the_check_refuses_is_set_aside(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_awards(monkeypatch, "J1")
    result = schedule(snapshot(NODES, JOBS), model=model)
    assert {award.job for award in result.started} == {"J2", "J3"}
    assert reasons(result) == {"J1": Reason.SET_ASIDE}


def test_greedy_awards_set_a_job_aside_too(monkeypatch: pytest.MonkeyPatch) -> None:
    place = FirstFitPlacer.place

    def failing(self: FirstFitPlacer, demand: Demand) -> Placement | None:
        if demand.job.id == "J1":
            raise IndexError("no such place")
        return place(self, demand)

    monkeypatch.setattr(FirstFitPlacer, "place", failing)
    result = schedule(snapshot(NODES, JOBS), strategy="greedy")
    assert {award.job for award in result.started} == {"J2", "J3"}
    assert reasons(result) == {"J1": Reason.SET_ASIDE}


def test_what_no_job_is_to_blame_for_still_ends_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr("aucsched.auction.step.check_schedule", failing)
    with pytest.raises(RuntimeError, match="out of order"):
        schedule(snapshot(NODES, JOBS))


def test_the_command_says_loudly_who_was_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "queue.json"
    jobs = [{"id": f"J{place}", "priority": 1, **asked} for place, asked in enumerate(JOBS, 1)]
    file.write_text(json.dumps({"format": "aucsched-snapshot/1", "nodes": NODES, "jobs": jobs}))
    refuse_awards(monkeypatch, "J2")
    assert run(["schedule", str(file), "--format", "json"]) == 0
    said = capsys.readouterr()
    assert "note: job J2 was set aside" in said.err
    assert {one["job"]: one["reason"] for one in json.loads(said.out)["pending"]} == {"J2": "set_aside"}


@pytest.mark.parametrize("model", ["aucsched1", "aucsched2", "aucsched3"])
def test_a_solver_that_awards_more_than_there_is_starts_what_fits(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside huge counts HiGHS's tolerance is some cores; here it awards every bid there is, and no core."""

    def all_at_once(stated: Any, *_: object) -> Any:
        values = np.array([1.0 if weight else 0.0 for weight in stated.weights])
        return values, SolverStatus.OPTIMAL, True, None

    monkeypatch.setattr("aucsched.auction.strategies._solved", all_at_once)
    jobs = [{"cores": 6, "priority": place} for place in range(1, 6)]
    result = schedule(snapshot(NODES, jobs), model=model, strategy="exact", time_limit_s=60)
    assert result.status == "feasible"
    assert {award.job for award in result.started} == {"J4", "J5"}
    assert Reason.SET_ASIDE not in reasons(result).values()
