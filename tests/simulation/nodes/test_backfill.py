"""Backfilling looks for a reservation only where somebody behind it could start."""

from __future__ import annotations

import pytest
from support.contended import contended

from aucsched.bidgen.demand import Demand
from aucsched.simulation.nodes.backfill import Backfill, Pass
from aucsched.simulation.nodes.kernel import simulate_nodes
from aucsched.simulation.nodes.machine import Machine
from aucsched.simulation.nodes.queue import NodeQueue
from aucsched.simulation.nodes.select import SELECTIONS


class Watched(Backfill):
    """Counts reservations."""

    made = 0

    def _reserve(self, demand: Demand, state: Pass) -> None:
        self.made += 1
        super()._reserve(demand, state)


class Eager(Watched):
    """Has every reservation made before the next job is looked at."""

    def _may_start(self, demand: Demand, state: Pass) -> bool:  # noqa: ARG002 - whoever it is
        return True


def played(policy: type[Watched], seed: int, reservations: int) -> tuple[dict[int, float], Watched]:
    workload = contended(seed)
    machine = Machine(workload)
    selector = SELECTIONS["first"](machine.columns, machine.topology)
    made = policy(machine, selector, reservations=reservations)
    run = simulate_nodes(workload, machine, made, NodeQueue())
    return {number: entry.start_s for number, entry in run.played.items()}, made


@pytest.mark.parametrize("reservations", [1, 3])
@pytest.mark.parametrize("seed", range(6))
def test_the_same_jobs_start_with_fewer_reservations(seed: int, reservations: int) -> None:
    eager, every = played(Eager, seed, reservations)
    lazy, some = played(Watched, seed, reservations)
    assert lazy == eager
    assert 0 < some.made < every.made
