"""The copy of the machine on which EASY plays, beside EASY itself."""

from __future__ import annotations

from typing import Any

import pytest
from support.contended import contended
from support.plain import J, workload_of

from aucsched.bidgen.generate import place_alone
from aucsched.cluster.jobs import Job, Request
from aucsched.cluster.limits import JobSet, Limit
from aucsched.cluster.nodes import Node, Resources
from aucsched.cluster.resources.allocation import StartingJob
from aucsched.cluster.resources.columns import Columns
from aucsched.cluster.resources.demand import Demand
from aucsched.cluster.workload import ArrivingJob, ClusterWorkload
from aucsched.simulation.logs.policies import play_log
from aucsched.simulation.nodes import node_promises
from aucsched.simulation.nodes.core_plan import whole_nodes
from aucsched.simulation.nodes.node_machine import Machine
from aucsched.simulation.nodes.node_policies import NodeOptions, play
from aucsched.simulation.nodes.node_promises import EasyCopy, Promises


def _easy_by_counts(workload: ClusterWorkload) -> float:
    """Return the longest wait when EASY counts nodes."""
    first = workload.jobs[0].arrival_s
    jobs = [
        J(int(one.arrival_s - first), int(one.run_time_s), one.job.request.fewest_cores, int(one.run_time_s))
        for one in workload.jobs
    ]
    return float(max(play_log(workload_of(jobs, len(workload.nodes)), "easy").wait))


def test_a_job_of_an_excepted_qos_counts_on_it_only_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three such jobs end; of the four that the limit holds back, one runs at a time."""
    jobs = [
        ArrivingJob(
            job=Job(id=f"{number}", priority=1, request=Request(cores=1), time_limit_s=100, qos=qos),
            arrival_s=arrival_s,
            run_time_s=100,
        )
        for number, (qos, arrival_s) in enumerate([("high", 0)] * 3 + [("normal", 200)] * 4)
    ]
    limits = [Limit(name="few", jobs=JobSet(except_qos=("high",)), most={"jobs": 1})]
    nodes = [Node(name="n", cores=8)]
    copies: list[EasyCopy] = []
    plain = EasyCopy.follow

    def follow(self: EasyCopy, *given: Any) -> None:
        plain(self, *given)
        copies.append(self)

    monkeypatch.setattr(EasyCopy, "follow", follow)
    workload = ClusterWorkload(nodes=nodes, jobs=jobs, limits=limits)
    play(workload, NodeOptions(policy="aucsched3", objective="response"))
    copies[-1].follow(10.0**6, ())
    assert copies[-1].longest_s == 300


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_counted", [True, False])
def test_where_limits_are_exact_its_longest_wait_is_easy_s(
    seed: int, is_counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = contended(seed, has_exact_limits=True)
    if not is_counted:
        monkeypatch.setattr(node_promises, "whole_nodes", lambda *_: 0)
    copies: list[EasyCopy] = []
    found: list[float] = []
    plain = EasyCopy.follow

    def follow(self: EasyCopy, *given: Any) -> None:
        plain(self, *given)
        copies.append(self)
        found.append(self.longest_s)

    monkeypatch.setattr(EasyCopy, "follow", follow)
    play(workload, NodeOptions(policy="aucsched3", objective="response"))
    assert found == sorted(found)
    copies[-1].follow(10.0**6, ())
    by_nodes = max(play(workload, NodeOptions(policy="easy")).wait)
    assert found[-1] == (_easy_by_counts(workload) if is_counted else by_nodes)


@pytest.mark.parametrize("cores", [1, 2], ids=["counted", "on nodes"])
def test_it_learns_a_run_time_though_nobody_waited_when_the_job_ended(cores: int) -> None:
    amount = Resources(cores=cores)
    jobs = [
        ArrivingJob(
            job=Job(id=str(rank), priority=1, request=Request(cores=cores), time_limit_s=1000),
            arrival_s=arrival,
            run_time_s=10,
        )
        for rank, arrival in enumerate((0.0, 200.0))
    ]
    workload = ClusterWorkload(name="two", nodes=[Node(name="n", total=amount, free=amount)], jobs=jobs)
    machine = Machine(workload)
    first, second = (machine.reader.read(one.job, rank) for rank, one in enumerate(jobs))
    assert isinstance(first, Demand)
    assert isinstance(second, Demand)
    copy = EasyCopy(machine)
    copy.follow(0.0, [first])
    allocation = place_alone(first, machine.columns, machine.topology)
    assert allocation is not None
    machine.start(StartingJob(demand=first, allocation=allocation), 100.0)
    copy.follow(105.0, [])
    machine.end(0, 110.0)
    copy.follow(300.0, [second])
    assert copy.longest_s == 100
    copy.follow(900.0, [])
    assert copy.longest_s == 100
    assert (copy._on_nodes is None) == (cores == 1)  # noqa: SLF001 - no answer says it


@pytest.mark.parametrize("seed", range(6))
def test_from_the_first_job_that_asks_for_others_it_is_played_on_nodes(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Limits are exact: what was counted before is played again as it would have been played at once."""
    workload = contended(seed, has_exact_limits=True)
    counted: list[bool] = []
    found: dict[float, object] = {}
    plain = EasyCopy.follow

    def follow(self: EasyCopy, *given: Any) -> None:
        plain(self, *given)
        counted.append(self._on_nodes is None)
        if self._on_nodes is not None:
            running = self._on_nodes._machine.running.items()  # noqa: SLF001 - no answer has it
            held = {job: one.allocation.nodes.tolist() for job, one in running}
            found[given[0]] = (self._on_nodes._longest_s, held)  # noqa: SLF001 - the same

    def played(first: int) -> dict[float, object]:
        def whole(demand: Demand, columns: Columns) -> int:
            return whole_nodes(demand, columns) if demand.index < first else 0

        found.clear()
        counted.clear()
        monkeypatch.setattr(node_promises, "whole_nodes", whole)
        play(workload, NodeOptions(policy="aucsched3", objective="response"))
        return dict(found)

    monkeypatch.setattr(EasyCopy, "follow", follow)
    later = played(12)
    assert set(counted) == {True, False}
    always = played(0)
    both = later.keys() & always.keys()
    assert len(both) > 10
    assert {now: later[now] for now in both} == {now: always[now] for now in both}


def test_it_leaves_the_real_machine_alone() -> None:
    machine = Machine(contended(0))
    machine.columns.free.cores[0] = 0
    other = machine.empty()
    assert other.columns.free.cores.tolist() == [1] * 6
    other.columns.free.cores[1] = 0
    assert machine.columns.free.cores.tolist() == [0, *[1] * 5]


def test_only_promises_that_follow_the_waits_have_one() -> None:
    machine = Machine(contended(0))
    assert Promises(machine, "auto")._copy is not None  # noqa: SLF001
    assert Promises(machine, "60s")._copy is None  # noqa: SLF001
