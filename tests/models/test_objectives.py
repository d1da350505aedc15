"""Objectives, over their table: what a started job counts, in every model, step and explanation."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest
from random_snapshots import random_document
from support.run import aucsched

from aucsched import load_snapshot, schedule
from aucsched.auction.options import MODELS
from aucsched.auction.queue import valued
from aucsched.cluster.jobs import Job
from aucsched.cluster.option_table import OPTIONS_BY_NAME
from aucsched.models.model import OBJECTIVES


def factor(objective: str, job: Job, nodes: int) -> int:
    """What the priority of a job on so many nodes is multiplied by, read from the option's help."""
    if objective == "priority":
        return 1
    request = job.request
    return request.cores if request.cores is not None else (request.cores_per_node or 0) * nodes


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Random snapshots with a queue, on disk."""
    folder, paths = tmp_path_factory.mktemp("objectives"), []
    for seed in range(16):
        document = random_document(41_000 + seed, most_nodes=12, most_jobs=12)
        if document["jobs"]:
            paths.append(folder / f"{seed}.json")
            paths[-1].write_bytes(msgspec.json.encode(document))
    return paths


def test_the_option_has_these_values() -> None:
    assert set(OPTIONS_BY_NAME["objective"].choices) == set(OBJECTIVES)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("model", MODELS)
def test_an_award_is_worth_what_its_jobs_count(objective: str, model: str, snapshots: list[Path]) -> None:
    started = 0
    for path in snapshots:
        snapshot = load_snapshot(path)
        options: Any = {"model": model, "objective": objective}
        found = schedule(snapshot, **options, reserve=0, promise="none", work_limit=5)
        jobs = {job.id: job for job in snapshot.jobs}
        worth = Fraction(0)
        for award in found.started:
            job = jobs[award.job]
            if objective == "response":
                job = valued(job, snapshot.time)
            worth += Fraction(job.priority) * factor(objective, job, len(award.nodes))
        assert Fraction(found.objective.priority) == worth
        started += len(found.started)
    assert started > 5


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_prices_name_the_objective_s_unit(objective: str) -> None:
    path = Path(__file__).parents[2] / "examples" / "emulated-1408-full.json"
    done = aucsched("explain", path, "--objective", objective, "--work-limit", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"in units of {OBJECTIVES[objective].words};" in done.stdout
