"""One job that makes a pass fail is given up with a reason; all others are simulated."""

from __future__ import annotations

import pytest
from support.build import refuse_awards, snapshot

from aucsched import ArrivingJob, ClusterWorkload
from aucsched.auction.options import StepOptions
from aucsched.bidgen.first_fit import FirstFitPlacer, Placement
from aucsched.cluster.resources.demand import Demand
from aucsched.simulation.nodes import kernel
from aucsched.simulation.nodes.auction import NodeAuction
from aucsched.simulation.nodes.kernel import NodeRun
from aucsched.simulation.nodes.node_machine import Machine
from aucsched.simulation.nodes.node_queue import NodeQueue

STRATEGIES = ("anytime", "exact", "greedy")


def simulated(strategy: str) -> NodeRun:
    found = snapshot([{"name": "n1", "cores": 4}, {"name": "n2", "cores": 4}], [{"cores": 3}] * 5)
    jobs = tuple(
        ArrivingJob(job=job, arrival_s=10.0 * place, run_time_s=15) for place, job in enumerate(found.jobs)
    )
    workload = ClusterWorkload(name="", nodes=found.nodes, jobs=jobs)
    machine = Machine(workload)
    work = None if strategy == "greedy" else 2
    policy = NodeAuction(machine, StepOptions(strategy=strategy, work_limit=work))  # type: ignore[arg-type]
    return kernel.NodeKernel(workload, machine, policy, NodeQueue()).played()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_job_whose_bids_fail_in_a_pass(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, tried = FirstFitPlacer.place, list[str]()

    def failing(self: FirstFitPlacer, demand: Demand) -> Placement | None:
        tried.append(demand.job.id)
        # Whether it could ever start is looked at before anything is simulated.
        if demand.job.id == "J3" and len(tried) > 1:
            raise IndexError("no such place")
        return place(self, demand)

    monkeypatch.setattr(FirstFitPlacer, "place", failing)
    run = simulated(strategy)
    assert sorted(run.played) == [0, 1, 3, 4]
    assert list(run.never) == [2]
    assert "set aside: IndexError: no such place" in run.never[2]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_job_whose_award_the_check_refuses(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_awards(monkeypatch, "J2")
    run = simulated(strategy)
    assert sorted(run.played) == [0, 2, 3, 4]
    assert "has a fault" in run.never[1]


def test_a_job_that_cannot_be_tried_on_the_empty_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FirstFitPlacer, "place", lambda *_: 1 / 0)
    run = simulated("greedy")
    assert not run.played
    assert all("ZeroDivisionError" in why for why in run.never.values())


def test_what_no_job_is_to_blame_for_ends_the_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr("aucsched.simulation.nodes.auction.decide", failing)
    with pytest.raises(RuntimeError, match="out of order"):
        simulated("greedy")
