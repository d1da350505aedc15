"""Start times, deadlines and budgets (Nagendra, 4.3) in negotiations, and chapter 5's own rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.run import aucsched

from aucsched import InputError
from aucsched.cluster.jobs import JobKind
from aucsched.formats.native.cluster_file import parse_workload, workload_to_json
from aucsched.negotiation.batch.mapping import BatchSettings
from aucsched.negotiation.job_records import MapEntry, NodeCount, is_pressing, needed_count, run_time_s
from aucsched.negotiation.runtime.runtime_machine import empty_machine, started
from aucsched.negotiation.runtime.settings import RuntimeSettings
from aucsched.negotiation.runtime.share import equipartition, full_transformation, partial_transformation
from aucsched.negotiation.runtime.tentative import TentativeState
from aucsched.negotiation.runtime.transform import transform
from aucsched.simulation.negotiated.negotiated_report import Negotiated, negotiated_metrics
from aucsched.simulation.negotiated.negotiated_run import negotiate
from aucsched.simulation.negotiated.plays import play_of


def entry(job: str, least: int, most: int, seconds: float, **members: Any) -> MapEntry:
    kind = JobKind.MALLEABLE if most > least else JobKind.RIGID
    return MapEntry(
        job=job, type=kind, node_cnt=0, node_count=NodeCount(min=least, max=most),
        min_nodes=least, max_nodes=most, priority=1, time_at_min_s=seconds, **members,
    )  # fmt: skip


def workload(jobs: list[dict[str, Any]], nodes: int = 4) -> str:
    common = {"cores_per_node": 2, "time_limit_s": 1000}
    rows = [{"id": str(place), "priority": 10 - place, **common, **job} for place, job in enumerate(jobs)]
    machine = [{"name": f"n[1-{nodes}]", "cores": 2}]
    return json.dumps({"format": "aucsched-workload/1", "name": "w", "nodes": machine, "jobs": rows})


def played(text: str, mapper: str = "greedy", **runtime: Any) -> Negotiated:
    play = play_of(parse_workload(text.encode()), None)
    return negotiate(play, BatchSettings(mapper=mapper, ends_when_done=True), RuntimeSettings(**runtime))  # type: ignore[arg-type]


def test_the_fewest_nodes_that_keep_a_deadline() -> None:
    job = entry("a", 2, 8, 400, deadline_s=300)
    counts = [needed_count(job, now) for now in (0, 100, 200, 201)]
    assert counts == [3, 4, 8, 2]  # 400·2/n seconds on n nodes; none would do from 201 s on
    assert [is_pressing(job, now) for now in (0, 100, 101, 200, 201)] == [False, False, True, True, False]
    assert needed_count(entry("b", 2, 8, 400), 10**6) == 2


def test_running_jobs_do_not_shrink_below_what_their_deadline_needs() -> None:
    job = started(entry("a", 2, 8, 400, deadline_s=200), 0b1111, 0.0)
    assert job.least_count(0.0) == 4
    assert started(entry("a", 2, 8, 400, deadline_s=150), 0b1111, 0.0).least_count(0.0) == 4
    assert started(entry("a", 2, 8, 400, deadline_s=150), 0b1111, 0.0).rescue_count(0.0) == 6
    lost = started(entry("a", 2, 8, 400, deadline_s=90), 0b1111, 0.0)
    assert (lost.least_count(0.0), lost.rescue_count(0.0)) == (2, 4)


@pytest.mark.parametrize("deadline", [None, 200.0])
def test_shrinking_for_others_stops_at_the_deadline(deadline: float | None) -> None:
    """Nagendra: constraints of invasive jobs (4.3): start, deadline, budget."""
    machine = empty_machine([f"n{place}" for place in range(4)])
    running = started(entry("a", 1, 4, 800, deadline_s=deadline), 0b1111, 0.0)
    machine = type(machine)(
        names=machine.names, partitions=machine.partitions, idle=0, running={"a": running}
    )
    done = transform(machine, [entry("b", 2, 2, 10)], RuntimeSettings(), attempt=5)
    assert done.started == (() if deadline else ("b",))
    other = started(entry("c", 1, 4, 800), 0, 0.0)
    assert partial_transformation(machine, 1).running["a"].count == 4
    assert other.count == 0


def test_idle_nodes_go_first_to_who_keeps_a_deadline_with_them() -> None:
    machine = empty_machine([f"n{place}" for place in range(6)])
    late = started(entry("late", 1, 4, 600, deadline_s=200), 0b1, 0.0)
    free = started(entry("free", 1, 6, 6000), 0b10, 0.0)
    machine = type(machine)(
        names=machine.names,
        partitions=machine.partitions,
        idle=0b111100,
        running={"free": free, "late": late},
    )
    after = full_transformation(machine).running["late"]
    assert after.count >= 3
    assert after.end_s <= 200


@pytest.mark.parametrize("mapper", ["greedy", "auction"])
def test_a_job_about_to_miss_its_deadline_goes_first(mapper: str) -> None:
    jobs = [{"nodes": 4, "arrival_s": 0, "run_time_s": 100, "time_limit_s": 100}] * 5
    late = {"nodes": 4, "arrival_s": 0, "run_time_s": 100, "time_limit_s": 100}
    text = workload([*jobs, late | {"deadline_s": 300}])
    result = played(text, mapper)
    assert result.done["5"].end_s <= 300
    metrics = negotiated_metrics(result)
    assert (metrics["deadlines"], metrics["deadlines_met"]) == (1, 1)
    assert played(workload([*jobs, late]), "greedy").done["5"].end_s == 600
    hopeless = played(workload([*jobs, late | {"deadline_s": 50}]), "greedy")
    assert hopeless.done["5"].end_s == 600
    assert negotiated_metrics(hopeless)["deadlines_met"] == 0


def test_a_job_does_not_start_before_its_start_time() -> None:
    """Nagendra: constraints of invasive jobs (4.3): start, deadline, budget."""
    rows = [{"nodes": 1, "arrival_s": 0, "run_time_s": 10, "not_before_s": 77}]
    rows.append({"nodes": 1, "arrival_s": 5, "run_time_s": 10})
    done = played(workload(rows)).done
    assert (done["0"].start_s, done["1"].start_s) == (77, 5)


def test_a_budget_bounds_the_nodes_a_job_takes_and_grows_to() -> None:
    """Nagendra: constraints of invasive jobs (4.3): start, deadline, budget."""
    elastic = {"nodes": 1, "arrival_s": 0, "run_time_s": 900, "time_limit_s": 900, "kind": "malleable"}
    elastic |= {"min_nodes": 1, "max_nodes": 4, "speedup": {"model": "amdahl", "serial": 0.2}}
    free = played(workload([elastic]))
    assert free.done["0"].node_s > 1.5 * 900
    budget_core_h = 2 * 1.25 * 900 / 3600
    bound = played(workload([elastic | {"budget_core_h": budget_core_h}]))
    assert 900 <= bound.done["0"].node_s <= 1.25 * 900
    with pytest.raises(InputError, match=r"is below the 0\.5 of its least nodes"):
        played(workload([elastic | {"budget_core_h": 0.4}]))
    play = play_of(parse_workload(workload([elastic | {"budget_core_h": budget_core_h}]).encode()), None)
    job = play.arrivals[0].job
    assert job.max_nodes * run_time_s(job, job.max_nodes) <= budget_core_h * 1800 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"deadline_s": 5}, "5 is not after 9, its first start"),
        ({"deadline_s": 50, "not_before_s": 60}, "50 is not after 60"),
        ({"not_before_s": -1}, "-1 is not above 0"),
        ({"budget_core_h": 0}, "0 is not above 0"),
    ],
)
def test_wishes_that_cannot_be_are_refused(members: dict[str, float], message: str) -> None:
    rows = [{"nodes": 1, "arrival_s": 9, "run_time_s": 10, **members}]
    with pytest.raises(InputError, match=message):
        parse_workload(workload(rows).encode())


def test_wishes_are_written_and_read_again() -> None:
    rows = [
        {
            "nodes": 1,
            "arrival_s": 1,
            "run_time_s": 1,
            "not_before_s": 2,
            "deadline_s": 3.5,
            "budget_core_h": 4,
        }
    ]
    read = parse_workload(workload(rows).encode())
    assert parse_workload(workload_to_json(read).encode()) == read
    assert read.jobs[0].deadline_s == 3.5


def test_equipartition_leaves_out_jobs_that_start_where_asked() -> None:
    machine = empty_machine([f"n{place}" for place in range(6)])
    running = started(entry("a", 1, 6, 800), 0b1, 0.0)
    machine = type(machine)(
        names=machine.names, partitions=machine.partitions, idle=0b111110, running={"a": running}
    )
    counts = []
    for with_starts in (True, False):
        draft = TentativeState(machine)
        draft.start(entry("b", 1, 6, 10), 1)
        equipartition(draft, with_starts=with_starts)
        counts.append((draft.count["a"], draft.starts["b"][1].bit_count()))
    assert counts == [(3, 3), (5, 1)]


def test_the_thesis_rejects_while_any_node_stays_idle() -> None:
    machine = empty_machine(["n1", "n2", "n3"])
    jobs = [entry("a", 1, 1, 10), entry("b", 1, 1, 10)]
    useful = transform(machine, jobs, RuntimeSettings(), attempt=1)
    any_idle = transform(machine, jobs, RuntimeSettings(reject_idle="any"), attempt=1)
    assert (useful.is_accepted, any_idle.is_accepted, any_idle.why) == (True, False, "nodes would stay idle")
    assert transform(machine, jobs, RuntimeSettings(reject_idle="any"), attempt=5).is_accepted


def test_the_preset_is_chapter_5_and_what_stands_beside_it_stands(tmp_path: Path) -> None:
    """Nagendra: chapter 5's choices (--preset thesis)."""
    rows = [{"nodes": 1, "arrival_s": 0, "run_time_s": 10}]
    (tmp_path / "w.json").write_text(workload(rows))
    args = ("negotiate", tmp_path / "w.json", "--format", "json", "--preset", "thesis")
    settings = json.loads(aucsched(*args).stdout)["settings"]
    assert settings["preset"] == "thesis"
    batch, runtime = settings["batch"], settings["runtime"]
    assert (batch["mapper"], batch["decision"], batch["third_of"]) == ("greedy", "paper", "queue")
    assert (runtime["dependencies"], runtime["last_backfill"]) == ("one", False)
    assert (runtime["equipartition"], runtime["reject_idle"]) == ("running", "any")
    assert (batch["steps"], runtime["steps"]) == ("printed", "printed")
    beside = json.loads(aucsched(*args, "--dependencies", "all", "--mapper", "auction").stdout)["settings"]
    assert (beside["runtime"]["dependencies"], beside["batch"]["mapper"]) == ("all", "auction")
    assert beside["runtime"]["last_backfill"] is False
    beside = json.loads(aucsched(*args, "--steps", "ceiling").stdout)["settings"]
    assert (beside["batch"]["steps"], beside["runtime"]["steps"]) == ("ceiling", "ceiling")
    shipped = json.loads(aucsched(*args[:-2]).stdout)["settings"]
    assert (shipped["batch"]["steps"], shipped["runtime"]["steps"]) == ("ceiling", "ceiling")
