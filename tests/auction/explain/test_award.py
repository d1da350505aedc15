"""`explain --award FILE`: the award that was made is explained, not the one that would be made now."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from support.build import snapshot
from support.run import refused

import aucsched
from aucsched.cli import run

FULL = Path(__file__).parents[3] / "examples" / "emulated-1408-full.json"


def test_a_schedule_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    made = aucsched.schedule(aucsched.load_snapshot(FULL), work_limit=1, reserve=0)
    (tmp_path / "award.json").write_text(made.to_json())
    assert aucsched.load_schedule(tmp_path / "award.json").to_json() == made.to_json()


def test_the_award_made_is_explained() -> None:
    jobs = [{"cores": 5, "priority": 3}, {"cores": 4, "priority": 2}, {"cores": 4, "priority": 2}]
    cluster = snapshot([{"name": "n1", "cores": 8}], jobs)
    now = aucsched.schedule(cluster, reserve=0)
    assert sorted(award.job for award in now.started) == ["J2", "J3"]
    other = aucsched.schedule(snapshot([{"name": "n1", "cores": 8}], jobs[:1]), reserve=0)
    outbid, names = aucsched.Reason.OUTBID, ("J2", "J3")
    waits = tuple(aucsched.Refusal(job=name, reason=outbid, detail="as it was then") for name in names)
    made = replace(other, pending=waits)
    assert aucsched.explain(cluster, "J1", reserve=0).refusal is not None
    assert aucsched.explain(cluster, "J1", award=made).award == made.started[0]
    found = aucsched.explain(cluster, "J2", award=made)
    assert found.refusal == waits[0]
    assert all(lack.held_by == ("J1",) for bid in found.bids for lack in bid.lacks)


def test_the_command_reads_it_and_refuses_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    award = tmp_path / "award.json"
    assert run(["schedule", str(FULL), "--work-limit", "1", "--format", "json", "-o", str(award)]) == 0
    made = json.loads(award.read_text())
    started = made["started"]
    assert run(["explain", str(FULL), started[0]["job"], "--award", str(award), "--work-limit", "1"]) == 0
    assert "starts" in capsys.readouterr().out
    assert "name it" in refused("explain", FULL, "--award", award)
    spoiled = json.loads(award.read_text())
    spoiled["started"].pop()
    award.write_text(json.dumps(spoiled))
    assert "the award is not for this snapshot" in refused("explain", FULL, "64", "--award", award)
    assert "this is a snapshot, not a schedule" in refused("explain", FULL, "64", "--award", FULL)
    spoiled["started"][0]["bid"]["level"] = -1
    found = refused("explain", FULL, "64", "--award", "-", stdin=json.dumps(spoiled))
    assert "started[0].bid.level: -1 is not an integer >= 0" in found
    other = refused(
        "explain", FULL, started[0]["job"], "--award", "-", stdin=json.dumps(made | {"model": "x"})
    )
    assert "model: the award is of model 'x', this is aucsched3" in other
    short = '{"format": "aucsched-schedule/1"}'
    assert "'model' is missing" in refused("explain", FULL, "64", "--award", "-", stdin=short)


def test_an_award_with_a_node_that_is_none_or_with_less_than_an_exclusive_job_has_is_refused() -> None:
    jobs = [{"cores": 4, "exclusive": True, "priority": 2}, {"cores": 4, "priority": 1}]
    nodes = [{"name": "n1", "cores": 8, "gres": {"gpu": 2}}, {"name": "n2", "cores": 8, "gres": {"gpu": 0}}]
    cluster = snapshot(nodes, jobs)
    made = aucsched.schedule(cluster, reserve=0)
    whole = next(award for award in made.started if award.job == "J1")
    others = tuple(award for award in made.started if award.job != "J1")
    holds_all = aucsched.Resources(cores=8, gres={"gpu": 2})
    for held, words in (
        ({"n1": holds_all}, ""),
        ({"n1": aucsched.Resources(cores=8)}, "n1 is not empty or not all the job's"),
        ({"n3": holds_all}, "the award is not for this snapshot: 'n3'"),
    ):
        spoiled = replace(made, started=(replace(whole, nodes=held), *others))
        with pytest.raises(aucsched.InputError, match=words) if words else nullcontext():
            aucsched.explain(cluster, "J1", award=spoiled, reserve=0)
