"""Nodes that fail while a workload is played: what becomes of their jobs, under every policy."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import attack_simulations as attack
import pytest
from support.contended import OnOnePlace
from support.run import aucsched

from aucsched.bidgen.families.registry import columns_of
from aucsched.bidgen.generate import place_alone
from aucsched.cluster.errors import AwardError, InputError, OptionError
from aucsched.cluster.jobs import Job, Request, Span
from aucsched.cluster.nodes import Node, NodeState, Resources
from aucsched.cluster.resources.allocation import StartingJob
from aucsched.cluster.resources.demand import Demand
from aucsched.cluster.workload import ArrivingJob, ClusterWorkload, Outage
from aucsched.simulation.nodes import node_machine
from aucsched.simulation.nodes.kernel import NodeKernel, NodeOutage
from aucsched.simulation.nodes.node_machine import Failures, Machine, drawn_times
from aucsched.simulation.nodes.node_policies import NODE_POLICIES, NodeOptions, play
from aucsched.simulation.nodes.node_queue import NodeQueue
from aucsched.simulation.nodes.node_result import NodeSimulation


def workload(*jobs: tuple[float, float, int], nodes: int = 4) -> ClusterWorkload:
    """Return nodes of 4 cores and jobs of (arrival, run time, nodes), which take whole nodes."""
    has = Resources(cores=4)
    return ClusterWorkload(
        name="test",
        nodes=tuple(Node(name=f"n{place}", total=has, free=has) for place in range(nodes)),
        jobs=tuple(
            ArrivingJob(
                job=Job(
                    id=str(place),
                    priority=1000 - place,
                    request=Request(nodes=Span.exactly(count), cores=4 * count),
                    time_limit_s=int(run),
                ),
                arrival_s=arrival,
                run_time_s=run,
            )
            for place, (arrival, run, count) in enumerate(jobs)
        ),
    )


def down(nodes: str, down_s: float, up_s: float | None = None) -> Outage:
    return Outage(nodes=tuple(nodes.split()), down_s=down_s, up_s=up_s)


def played(of: ClusterWorkload, *outages: Outage, policy: str = "easy", **options: Any) -> NodeSimulation:
    return play(of, NodeOptions(policy=policy, failures=outages, **options))


def times(result: NodeSimulation) -> dict[str, float]:
    return {one.demand.job.id: one.start_s for one in result.played}


ONE = workload((0, 100, 4))


def everywhere(policy: str) -> dict[str, Any]:
    """Return options with which a policy looks at every pass."""
    return {"policy": policy} | ({"backfill_interval_s": 0.0} if policy.startswith("backfill") else {})


@pytest.mark.parametrize("policy", sorted(NODE_POLICIES))
def test_a_job_on_a_node_that_fails_starts_again_from_the_beginning(policy: str) -> None:
    # 16 cores from 0 to 30 are lost; the node is back at 50, and the job runs from 50 to 150.
    result = played(ONE, down("n2", 30, 50), **everywhere(policy))
    assert times(result) == {"0": 50}
    assert result.end.tolist() == [150]
    assert result.wait.tolist() == [50]
    assert result.failure_counts() == {
        "node_failures": 1, "requeues": 1, "lost_jobs": 0, "lost_core_s": 480.0,
    }  # fmt: skip
    assert result.record.outages == [NodeOutage(2, 30, 50)]
    # All that was free is free again, and what the run used beside its last attempt counts as used.
    assert result.empty.free.cores.tolist() == [4] * 4
    assert result.timeline.used.tolist() == [16, 0, 16, 0]
    assert result.timeline.waiting.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("policy", ["easy", "aucsched3"])
def test_nothing_starts_between_outages_that_touch(policy: str) -> None:
    outages = down("n0", 10, 20), down("n0", 0, 10), down("n0", 40, 50)
    result = played(workload((5, 10, 1), nodes=1), *outages, policy=policy)
    assert times(result) == {"0": 20}
    assert not result.to_dict()["requeues"]


def test_a_lost_job_is_listed_and_counts_as_lost_work() -> None:
    of = workload((0, 100, 4), (10, 5, 1))
    result = played(of, down("n2", 30, 50), on_failure="lost")
    assert times(result) == {"1": 30}
    document = result.to_dict()
    assert document["lost"] == [{"job": "0", "reason": "n2 went down at 30 s while it ran"}]
    assert (document["jobs"], document["rows"], document["lost_jobs"]) == (1, 2, 1)
    assert document["lost_core_s"] == 480
    assert "job 0 is lost: n2 went down at 30 s while it ran" in result.to_text("test")
    assert [row.split(",")[:4] for row in result.jobs_csv().splitlines()[1:]] == [
        ["0", "0", "", ""],
        ["1", "10", "30", "35"],
    ]


def test_a_requeued_job_keeps_its_priority_and_what_ends_at_the_failure_is_done() -> None:
    # Job 0 ends as n0 goes down; job 1 is stopped then and goes before job 2, which came meanwhile.
    of = workload((0, 30, 1), (0, 100, 3), (10, 10, 4))
    result = played(of, down("n0 n1", 30, 60), policy="fcfs")
    assert times(result) == {"0": 0, "1": 60, "2": 160}
    assert [one.job for one in result.record.stopped] == [1]
    assert result.record.requeues == 1


@pytest.mark.parametrize("setting", attack.SETTINGS, ids=str)
def test_jobs_that_need_a_node_that_never_comes_back_are_listed_and_hold_up_nobody(
    setting: dict[str, Any],
) -> None:
    of = workload((0, 100, 4), (5, 20, 3), (6, 20, 1), (40, 20, 4))
    result = played(of, down("n3", 30), **setting)
    never = {of.jobs[number].job.id: why for number, why in result.record.never.items()}
    assert never == dict.fromkeys(("0", "3"), "it fits nowhere without n3, down for good")
    assert set(times(result)) == {"1", "2"}
    assert max(times(result).values()) < 90
    assert not list(attack.violations(of, NodeOptions(**setting, failures=(down("n3", 30),)), result))


def test_the_table_counts_from_the_first_job_though_it_is_lost() -> None:
    of = workload((100, 50, 4), (410, 5, 4))
    result = played(of, down("n0", 120, 130), on_failure="lost")
    rows = [row.split(",") for row in result.jobs_csv().splitlines()]
    submit, start = rows[0].index("submit_s"), rows[0].index("start_s")
    assert [(row[submit], row[start]) for row in rows[1:]] == [("0", ""), ("310", "310")]


def test_nodes_that_never_come_back_cost_a_job_one_look_at_what_remains(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = []

    def columns(*of: Any) -> Any:
        counted.append(1)
        return columns_of(*of)

    monkeypatch.setattr(node_machine, "columns_of", columns)
    of = workload((0, 1, 4), (500, 1, 4), nodes=200)
    outages = [down(f"n{node}", 10 + node) for node in range(150)]
    assert len(played(of, *outages).played) == 2
    # The machine's, and those of what remains.
    assert len(counted) == 2


def test_a_node_that_fails_stops_what_runs_on_it_without_a_look_at_every_job() -> None:
    machine = Machine(workload(*[(0, 50, 4)] * 40, nodes=40))
    for job in range(40):
        demand = machine.reader.read(Job(id=str(job), priority=1, request=Request(cores=4)), job)
        assert isinstance(demand, Demand)
        allocation = place_alone(demand, machine.columns, machine.topology)
        assert allocation is not None
        machine.start(StartingJob(demand=demand, allocation=allocation), 0.0)
    held = {node: machine.holders(node) for node in range(40)}
    assert sorted(job for jobs in held.values() for job in jobs) == list(range(40))
    # A dict that may not be walked: only who runs on the node is looked at.
    machine.end(held[3][0], 1.0)
    machine.running = _Unwalked(machine.running)
    assert (machine.holders(3), machine.holders(4)) == ([], held[4])
    assert machine.empty().holders(4) == []


class _Unwalked(dict[int, Any]):
    """Running jobs that nobody may go through."""

    def items(self) -> Any:
        raise AssertionError


def test_requeues_have_an_end() -> None:
    outages = [down("n0", 10 * place + 9, 10 * place + 10) for place in range(20)]
    result = played(ONE, *outages, max_requeues=3)
    assert result.record.lost == {0: "n0 went down at 39 s while it ran, after 3 requeues"}
    assert (len(result.record.stopped), result.record.requeues) == (4, 3)


def test_a_job_that_its_nodes_are_never_up_for_is_given_up() -> None:
    # Four nodes that are up for 1 s of 1000 are never up together.
    result = play(ONE, NodeOptions(policy="fcfs", mtbf_s=1.0, mttr_s=999.0))
    assert result.record.never == {0: "nothing could start while nodes failed 1000 times"}


def test_drawn_failures_are_the_same_under_every_policy_and_differ_by_seed() -> None:
    machine = Machine(ONE)

    def first(seed: int) -> list[tuple[float, float]]:
        return [next(one) for one in drawn_times(1000, 10, seed, machine).values()]

    assert first(1) == first(1) != first(2)
    assert len(set(first(1))) == 4
    drawn = drawn_times(1000.0, 10.0, 7, machine)[0]
    spans = [next(drawn) for _ in range(4000)]
    ups = [spans[0][0], *(later[0] - earlier[1] for earlier, later in pairwise(spans))]
    assert sum(ups) / len(ups) == pytest.approx(1000, rel=0.1)
    assert sum(up - begun for begun, up in spans) / len(spans) == pytest.approx(10, rel=0.1)


def test_the_kernel_refuses_a_start_on_a_node_that_is_down() -> None:
    of = workload((0, 10, 1), (50, 10, 1))

    allocation = play(of, NodeOptions(policy="fcfs")).played[0].allocation
    for node, message in ((0, "starts on n0, down"), (1, "")):
        failures = Failures(times={node: iter([(40.0, inf)])}, max_requeues=1)
        if message:
            with pytest.raises(AwardError, match=message):
                NodeKernel(of, Machine(of), OnOnePlace(allocation), NodeQueue(), failures=failures).played()
        else:
            assert (
                len(
                    NodeKernel(of, Machine(of), OnOnePlace(allocation), NodeQueue(), failures=failures)
                    .played()
                    .played
                )
                == 2
            )


def test_random_simulations_with_failures_break_no_rule() -> None:
    figures = attack.run(len(attack.SETTINGS), 100)
    assert figures.violations == []
    assert figures.done + figures.never + figures.lost == figures.jobs
    assert min(figures.done, figures.lost, figures.requeues) > 10


def _with(change: Callable[[NodeSimulation], None]) -> list[str]:
    """Return what the checker says of a run after a change of its record."""
    of, outage = workload((0, 100, 2), (0, 50, 2), (0, 50, 2)), down("n0", 30, 40)
    result = played(of, outage)
    options = NodeOptions(failures=(outage,))
    assert not list(attack.violations(of, options, result))
    change(result)
    return list(attack.violations(of, options, result))


def _shift(job: int, **changes: Any) -> Callable[[NodeSimulation], None]:
    def change(result: NodeSimulation) -> None:
        result.record.played[job] = replace(result.record.played[job], **changes)

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda result: result.record.played.pop(1), "job 1 is listed 0 times"),
        (lambda result: result.record.never.update({1: "x"}), "job 1 is listed 2 times"),
        (lambda result: result.record.stopped.clear(), "0 stops are 1 requeues"),
        (_shift(0, start_s=25.0), "down from 30"),
        (_shift(2, start_s=0.0), "cores') are held"),
        (_shift(1, run_s=49.0), "runs 49.0 s instead of 50"),
        (_shift(0, start_s=-1.0), "job 0 starts at -1.0"),
        (lambda result: result.record.outages.clear(), "is stopped at 30"),
    ],
)
def test_the_checker_of_the_attack_sees_what_is_wrong(
    change: Callable[[NodeSimulation], None], said: str
) -> None:
    assert any(said in one for one in _with(change))


# The command.


def native(folder: Path) -> Path:
    path = folder / "w.json"
    nodes = [{"name": "n[0-3]", "cores": 4}, {"name": "dead", "cores": 4, "state": "down"}]
    job = {"id": "a", "priority": 1, "nodes": 4, "cores": 16, "time_limit_s": 100}
    jobs = [{**job, "arrival_s": 0, "run_time_s": 100}]
    path.write_text(json.dumps({"format": "aucsched-workload/1", "nodes": nodes, "jobs": jobs}))
    return path


def failing(folder: Path, *entries: dict[str, Any], **members: Any) -> Path:
    path = folder / "f.json"
    path.write_text(json.dumps({"format": "aucsched-failures/1", "failures": entries, **members}))
    return path


def test_failures_of_a_file_are_played_and_counted(tmp_path: Path) -> None:
    file = failing(tmp_path, {"nodes": "n[0-1]", "down_s": 30, "up_s": 50}, {"nodes": "n3", "down_s": 900})
    done = aucsched("simulate", native(tmp_path), "--failures", file, "--format", "json")
    document = json.loads(done.stdout)
    assert (document["node_failures"], document["requeues"], document["lost_core_s"]) == (2, 1, 480)
    assert (document["failures"], document["metrics"]["wait_max_s"]) == (str(file), 50)
    plain = json.loads(aucsched("simulate", native(tmp_path), "--format", "json").stdout)
    assert "requeues" not in plain


GOOD = {"nodes": "n1", "down_s": 1, "up_s": 2}


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (({**GOOD, "nodes": "n[0-9]"},), "failures[0].nodes: 'n4' is not a node of the workload"),
        ((GOOD, {**GOOD, "nodes": "dead"}), "failures[1].nodes: 'dead' takes no jobs anyway"),
        (({**GOOD, "nodes": "n[1"},), "failures[0].nodes: 'n[1' is not a hostlist"),
        (({**GOOD, "up_s": 1},), "failures[0].up_s: 1 is not a time after down_s 1"),
        (({**GOOD, "down_s": -1},), "failures[0].down_s: -1 is not a time from 0"),
        (({**GOOD, "down_s": "1"},), 'failures[0].down_s: "1" is not a number'),
        (({**GOOD, "until": 3},), "failures[0]: unknown member 'until'"),
        ((GOOD, {**GOOD, "down_s": 1.5, "up_s": 9}), "failures[1].down_s: 'n1' is down already at 1.5 s"),
        (({"nodes": "n1", "down_s": 0}, GOOD), "failures[1].down_s: 'n1' is down already at 1 s"),
    ],
)
def test_a_bad_file_of_failures_is_one_line(
    entries: tuple[dict[str, Any], ...], said: str, tmp_path: Path
) -> None:
    file = failing(tmp_path, *entries)
    done = aucsched("simulate", native(tmp_path), "--failures", file, "-o", tmp_path / "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{file}: {said}")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    file = failing(tmp_path, format="aucsched-workload/1")
    done = aucsched("simulate", native(tmp_path), "--failures", file)
    assert (
        done.stderr
        == f"{file}: format: this is a workload of nodes, not failures: aucsched simulate and sweep play it\n"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mtbf_s": 5.0}, "--mtbf needs --mttr"),
        ({"mttr_s": 5.0}, "--mttr needs --mtbf"),
        ({"failure_seed": 1}, "--failure-seed needs --mtbf"),
        ({"on_failure": "lost"}, "--on-failure needs --failures or --mtbf"),
        ({"max_requeues": 1}, "--max-requeues needs --failures or --mtbf"),
        ({"failures": (), "mtbf_s": 1.0, "mttr_s": 1.0}, "--failures and --mtbf both say"),
        ({"failures": (), "on_failure": "lost", "max_requeues": 1}, "--max-requeues 1 needs --on-failure"),
        ({"mtbf_s": inf, "mttr_s": 1.0}, "--mtbf inf is not a number"),
        ({"failures": (), "on_failure": "ignore"}, "--on-failure 'ignore' is not one of"),
    ],
)
def test_options_that_say_nothing_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        NodeOptions(**options)


def test_a_node_that_takes_no_jobs_cannot_fail_in_the_library_either() -> None:
    has = Resources(cores=4)
    of = replace(ONE, nodes=(*ONE.nodes, Node(name="x", total=has, free=has, state=NodeState.DRAINED)))
    with pytest.raises(InputError, match=r"failures\[0\].nodes: 'x' takes no jobs anyway"):
        played(of, down("x", 1))


@pytest.mark.parametrize("option", ["--failures=f", "--mtbf=5", "--mttr=5", "--on-failure=lost"])
def test_a_log_has_no_nodes_that_could_fail(option: str) -> None:
    log = Path(__file__).parents[2] / "fixtures" / "swf" / "small.swf"
    done = aucsched("simulate", log, option)
    assert done.returncode == 2
    name = option.partition("=")[0]
    assert done.stderr == f"aucsched: {name} needs a workload of nodes, not a log\n"


@pytest.mark.parametrize("number", [939, 1317, 1344, 1560])
def test_awards_alone_let_nobody_wait_beside_an_empty_machine(number: int) -> None:
    """By figure 4.5 somebody has no bid there, though it fits."""
    rng = Random(f"failures/{number}")
    workload = attack.random_workload(rng, number)
    failing = attack.random_failures(rng, workload)
    told: dict[str, Any] = {
        "policy": "aucsched1",
        "award_alone": True,
        "bid_order": "figure-4.5",
        "reserve": 0,
    }
    options = NodeOptions(**told, **failing)
    assert list(attack.violations(workload, options, play(workload, options))) == []
