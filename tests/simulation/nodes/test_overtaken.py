"""A wide job that narrow ones overtake for ever, and what a reservation changes: examples/overtaken.json."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from support.run import aucsched

from aucsched import ClusterWorkload, load_workload
from aucsched.simulation.nodes.node_policies import NodeOptions, play

FILE = Path(__file__).parents[3] / "examples" / "overtaken.json"
AUCTIONS = ("ipsched", "aucsched1", "aucsched2", "aucsched3")


@pytest.fixture(scope="module")
def example() -> ClusterWorkload:
    return load_workload(FILE)


def starts(workload: ClusterWorkload, **options: object) -> dict[str, float]:
    result = play(workload, NodeOptions(objective="priority", **options))  # type: ignore[arg-type]
    assert not result.record.never
    return {one.demand.job.id: one.start_s for one in result.played}


@pytest.mark.parametrize("policy", AUCTIONS)
def test_without_a_reservation_every_later_job_overtakes_it(policy: str, example: ClusterWorkload) -> None:
    found = starts(example, policy=policy, reserve=0)
    assert found["wide"] == max(found.values()) == 1300
    # As long as narrow jobs come: half as many, half the wait; its priority is above all theirs.
    half = replace(example, jobs=example.jobs[:14])
    assert starts(half, policy=policy, reserve=0)["wide"] == 700
    wide = example.jobs[1].job
    assert all(wide.priority > arriving.job.priority for arriving in example.jobs[2:])


@pytest.mark.parametrize("policy", AUCTIONS)
@pytest.mark.parametrize("reserve", [None, 1, 2])
def test_with_one_it_starts_when_what_ran_before_it_ends(
    policy: str, reserve: int | None, example: ClusterWorkload
) -> None:
    # 100 is its first shadow time: the job that ran before it ends by then. The default is one reservation.
    assert starts(example, policy=policy, reserve=reserve)["wide"] == 100


def test_as_a_user_sees_it(tmp_path: Path) -> None:
    for reserve, wait in (("0", "1299"), ("1", "99")):
        rows = tmp_path / f"{reserve}.csv"
        options = ("--policy", "aucsched3", "--objective", "priority", "--reserve", reserve)
        done = aucsched("simulate", FILE, *options, "--jobs-out", rows, "-o", tmp_path / "text")
        assert (done.returncode, done.stderr) == (0, "")
        with rows.open() as file:
            waits = {row["id"]: row["wait_s"] for row in csv.DictReader(file)}
        assert waits["wide"] == wait
