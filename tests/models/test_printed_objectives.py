"""What the papers' objectives (3.1), (4.1), (5.1), (6.1) count, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.build import snapshot, tree

from aucsched.auction.options import StepOptions
from aucsched.bidgen.families.registry import columns_of
from aucsched.bidgen.first_fit import Cluster
from aucsched.bidgen.generate import BidOptions, generate_bids
from aucsched.bidgen.table import BidTable
from aucsched.cluster.resources.columns import Columns
from aucsched.cluster.resources.demand import Demand, DemandReader
from aucsched.models.auction_model import CORRECTED, TABLE_4_4, cost_k, preference_f
from aucsched.models.model import ModelInput
from aucsched.topology.tree import Topology, topology_of

NAMES = [f"n{place}" for place in range(4)]


def bids_of(jobs: list[dict[str, Any]], *, use_switches: bool = True) -> tuple[BidTable, Columns, Topology]:
    """Bids on four nodes of two cores and two GPUs, two nodes a switch."""
    nodes = [{"name": name, "cores": 2, "gres": {"gpu": 2}} for name in NAMES]
    cluster = snapshot(nodes, jobs, topology=tree(NAMES, 2))
    columns, topology = columns_of(cluster), topology_of(cluster)
    reader = DemandReader(cluster, columns)
    demands = tuple(
        one for place, job in enumerate(cluster.jobs) if isinstance(one := reader.read(job, place), Demand)
    )
    return (
        generate_bids(demands, Cluster(columns, topology), BidOptions(use_switches=use_switches)).table,
        columns,
        topology,
    )


def bid_on(table: BidTable, nodes: list[int], gpus: int | None = None) -> int:
    """The bid on these nodes, with so many GPUs on each."""
    return next(
        bid
        for bid in range(len(table))
        if table.node[table.entries(bid)].tolist() == nodes
        and (gpus is None or set(table.gres["gpu"][table.entries(bid)].tolist()) == {gpus})
    )


def weights_of(model: str, jobs: list[dict[str, Any]], **options: Any) -> tuple[BidTable, list[float]]:
    """The printed objective's coefficient of each bid, or of each s of IPSCHED."""
    asked = StepOptions(model=model, weights="paper", **options)  # type: ignore[arg-type]
    table, columns, topology = bids_of(jobs, use_switches=asked.auction.uses_switches)
    stated = asked.auction(
        ModelInput(
            table=table,
            columns=columns,
            topology=topology,
            guards=(),
            objective=asked.objective,
            preference_table=asked.preference_table,
        )
    )
    return table, stated.printed().tolist()


#: Three jobs on two whole nodes each: 18 bids, one of class A on each switch, B on the middle, C on the rest.
JOBS = [{"nodes": 2, "cores": 4, "priority": priority} for priority in (10, 7, 1)]


def test_f_falls_with_nodes_and_nodesets() -> None:
    """(4.12) of a job of cores alone: 1 − k1 − k2·|N_c|/5 − k3·1/3.

    Soner: equations (4.11), (4.12).
    """
    table, _, _ = bids_of([{"cores": 4}], use_switches=False)
    assert table.general_nodesets == 2  # of all nodes, and the same with two GPUs on each
    found = preference_f(table, 4, TABLE_4_4)
    for nodes, expected in (
        ([0, 1], 1 - 0.25 * 2 / 5),
        ([0, 1, 2, 3], 1 - 0.25 * 4 / 5),
        ([1, 2], 1 - 0.25 - 0.25 * 2 / 5),
        ([0, 2], 1 - 0.5 - 0.25 * 2 / 5 - 0.25 * 1 / 3),
    ):
        assert found[bid_on(table, nodes)] == pytest.approx(expected)


def test_f_and_k_rise_and_fall_with_gpus() -> None:
    """(5.7): k4·(R + 1)/(R_max + 1); (6.5): 1 + N/|N| + L/L_max − R/G_max, of one or two GPUs a node.

    Soner: equation (5.7).
    Soner: equation (6.5).
    """
    table, _, topology = bids_of([{"nodes": 2, "cores_per_node": 1, "gres_per_node": {"gpu": [1, 2]}}])
    preference, cost = preference_f(table, 4, CORRECTED), cost_k(table, 4, topology.max_level)
    for nodes, gpus, liked, paid in (
        ([0, 1], 2, 1 + 0.1, 1 + 2 / 4 + 0 - 1),
        ([0, 1], 1, 1 + 0.1 * 2 / 3, 1 + 2 / 4 + 0 - 1 / 2),
        ([1, 2], 2, 1 - 0.4 + 0.1, 1 + 2 / 4 + 1 - 1),
        ([1, 2], 1, 1 - 0.4 + 0.1 * 2 / 3, 1 + 2 / 4 + 1 - 1 / 2),
    ):
        bid = bid_on(table, nodes, gpus)
        assert preference[bid] == pytest.approx(liked)
        assert cost[bid] == pytest.approx(paid)


@pytest.mark.parametrize(("objective", "times"), [("priority", 1), ("priority_cores", 4)])
def test_ipsched_counts_priorities_less_a_share_for_each_node(objective: str, times: int) -> None:
    """(3.1), (3.5): P·s − P·Σt/(2|N|), and P·R^cpu instead of P.

    Soner: equation (3.1).
    """
    _, weights = weights_of("ipsched", JOBS, objective=objective)
    on_s, on_t, on_x = weights[:3], weights[3:15], weights[15:]
    assert on_s == [10 * times, 7 * times, times]
    assert on_t == [-priority * times / 8 for priority in (10, 7, 1) for _ in range(4)]
    assert not any(on_x)


@pytest.mark.parametrize(("model", "of_a", "of_b"), [("aucsched1", 1.0, 0.5), ("aucsched2", 1.1, 0.7)])
def test_auctions_add_a_share_of_f(model: str, of_a: float, of_b: float) -> None:
    """(4.1), (5.1): P + α·F with α = P_min/(|B| + 1) = 1/19 of (4.10), (5.6).

    Soner: equations (4.9), (4.10), (5.5), (5.6).
    """
    table, weights = weights_of(model, JOBS)
    assert len(table) == 18
    for job, priority in enumerate((10, 7, 1)):
        of_job = np.array(weights[:18])[table.job == job] - priority
        of_class = table.bid_class[table.job == job]
        assert of_job[of_class == 0] == pytest.approx(of_a / 19)
        assert of_job[of_class == 1] == pytest.approx(of_b / 19)


def test_aucsched3_takes_off_a_share_of_k() -> None:
    """(6.1): P − β·K, β = P_min_diff/3 = (10 − 7)/3 of (6.6), (6.7); K is 1.5 below a switch, else 2.5.

    Soner: equations (6.6), (6.7).
    """
    table, weights = weights_of("aucsched3", JOBS)
    below = table.level == 0
    assert below.sum() == 6
    assert weights == (np.array([10, 7, 1])[table.job] - np.where(below, 1.5, 2.5)).tolist()
    equal = [{"nodes": 2, "cores": 4, "priority": priority} for priority in (7, 10, 7)]
    assert set(weights_of("aucsched3", equal)[1]) == {7.0, 10.0}
    assert set(weights_of("aucsched3", JOBS[:1])[1]) == {10 - 1.5 * 10 / 3, 10 - 2.5 * 10 / 3}
