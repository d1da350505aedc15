"""What ends a step: work, the clock above it, and what a timeout leads to in the pass after it."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.build import crowded, snapshot
from support.run import aucsched

from aucsched import explain, schedule
from aucsched.auction.impossible import ImpossibleRequests
from aucsched.auction.options import StepOptions
from aucsched.auction.queue import in_order
from aucsched.bidgen.candidates import GuardedViews
from aucsched.cluster.resources.demand import Demand
from aucsched.formats.native.cluster_file import snapshot_to_json
from aucsched.slurm.answers.snapshot_of_answers import SlurmSources, SlurmText
from aucsched.slurm.live.passes import Look, take_pass


def ticking(step_s: float) -> Callable[[], float]:
    """Return a clock that goes on by so much at every look, as on a machine that is busy."""
    ticks = itertools.count()
    return lambda: next(ticks) * step_s


def test_a_busy_machine_decides_and_explains_the_same() -> None:
    queue = dataclasses.replace(crowded(), jobs=in_order(crowded().jobs)[:24])
    options: dict[str, Any] = {"promise": "none", "reserve": 0}
    quick, slow = (schedule(queue, **options, clock=ticking(step_s)) for step_s in (0.0, 1e-4))
    assert (quick.started, quick.pending, quick.objective) == (slow.started, slow.pending, slow.objective)
    loser = quick.pending[0].job
    told = [explain(queue, loser, **options, clock=ticking(step_s)).to_json() for step_s in (0.0, 1e-4)]
    assert told[0] == told[1]


def test_of_a_job_that_was_not_tried_nobody_says_that_it_does_not_fit() -> None:
    cluster = snapshot([{"name": "n1", "cores": 8}], [{"cores": 2}, {"cores": 2}])
    ahead = "1 job of the window is ahead of it"
    alone = schedule(cluster, window=1, award_alone=True)
    assert [refusal.detail for refusal in alone.pending] == [ahead]
    late = schedule(cluster, window=1, clock=ticking(10.0))
    assert [award.job for award in late.started] == ["J1"]
    why = f"{ahead}, and no time was left to look whether it fits beside the award"
    assert [refusal.detail for refusal in late.pending] == [why]


def noted_jobs(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> list[str]:
    """Return the jobs that a method of a class will be called with, in order."""
    looked: list[str] = []
    plain = getattr(owner, name)

    def noted(self: object, demand: Demand) -> Any:
        looked.append(demand.job.id)
        return plain(self, demand)

    monkeypatch.setattr(owner, name, noted)
    return looked


def test_jobs_behind_the_window_are_counted_only_while_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = noted_jobs(monkeypatch, GuardedViews, "could_start")
    jobs = [{"cores": 2}, *({"cores": cores} for cores in range(9, 99))]
    queue = snapshot([{"name": "n1", "cores": 99, "free_cores": 8}], jobs)
    options: dict[str, Any] = {"window": 1, "strategy": "exact", "promise": "none", "reserve": 0}
    schedule(queue, **options)
    assert {f"J{number}" for number in range(1, 92)} <= {*looked}
    looked.clear()
    schedule(queue, **options, time_limit_s=1, clock=ticking(0.05))
    assert 1 <= len(looked) < 30


def test_one_reason_holds_for_all_jobs_that_ask_alike_behind_a_used_up_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked = noted_jobs(monkeypatch, ImpossibleRequests, "able")
    jobs = [{"cores": 1, "user": user} for user in ["ann"] * 40 + ["eve"] * 40 + ["bob"]]
    held = [{"id": user, "user": user, "nodes": {"n2": {"cores": 1}}} for user in ("ann", "eve")]
    limit = {"name": "one each", "per": "user", "max": {"jobs": 1}}
    nodes = [{"name": "n1", "cores": 2}, {"name": "n2", "cores": 2, "free_cores": 0}]
    found = schedule(snapshot(nodes, jobs, running=held, limits=[limit]), window=2)
    assert [award.job for award in found.started] == ["J81"]
    assert len({(one.job, one.reason) for one in found.pending if one.reason == "limit"}) == 80
    assert [user for user in ("ann", "eve") for one in found.pending if one.detail.endswith(f" {user}")] == (
        ["ann"] * 40 + ["eve"] * 40
    )
    assert len(looked) == 2


def test_the_time_limit_ends_a_step_whose_work_would_take_longer() -> None:
    stopped = schedule(crowded(), promise="none", reserve=0, clock=ticking(0.05))
    assert stopped.seconds.total < 6
    assert stopped.status == "feasible"
    # Half of the queue: what the clock ended is a timeout, what made all its steps is none.
    assert stopped.next_window == 30
    assert schedule(crowded(), promise="none", reserve=0, work_limit=1).next_window == 100


@pytest.mark.parametrize("jobs", [25, 100])
def test_the_window_that_timed_out_is_halved_and_the_next_pass_reads_it(jobs: int) -> None:
    """Soner: time limit, window halved (3.2)."""
    queue = dataclasses.replace(crowded(), jobs=in_order(crowded().jobs)[:jobs])
    count = len(queue.jobs)
    first = schedule(queue, reserve=0, work_limit=0, on_timeout="halve")
    assert (first.status, first.next_window) == ("feasible", count // 2)
    second = schedule(queue, reserve=0, work_limit=0, on_timeout="halve", window_from=first)
    assert second.window == count // 2


def test_the_command_reads_the_window_of_the_pass_before(tmp_path: Path) -> None:
    now, last = tmp_path / "now.json", tmp_path / "last.json"
    now.write_text(snapshot_to_json(crowded()))
    options = ("--reserve", "0", "--work-limit", "0", "--on-timeout", "halve", "--format", "json")
    assert aucsched("schedule", now, *options, "-o", last).returncode == 0
    done = aucsched("schedule", now, *options, "--window-from", last)
    assert json.loads(done.stdout)["window"]["size"] == json.loads(last.read_text())["window"]["next"] == 30
    for wrong in (now, tmp_path / "none.json"):
        done = aucsched("schedule", now, "--window-from", wrong)
        assert done.returncode == 2
        assert wrong.name in done.stderr


def test_the_live_loop_looks_at_half_after_a_timeout() -> None:
    options = StepOptions(reserve=0, work_limit=0, on_timeout="halve")
    nothing = SlurmText(name="", content=b"")
    sources = SlurmSources(jobs=nothing, nodes=nothing)
    look = Look(snapshot=crowded(), sources=sources, at=0.0, read_s=0.0)
    first = take_pass(look, options)
    second = take_pass(look, options, last=first)
    assert (first.step.schedule.window, second.step.schedule.window) == (60, 30)
