"""Prices of nodes: the bound they prove, by hand; what bids and awards cost; what explain says of them."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_snapshots import random_snapshot
from support.build import ALONE, document, snapshot, tiny
from support.run import aucsched, refused

from aucsched import Snapshot, schedule
from aucsched.auction.explain.explanation import Explanation, explain
from aucsched.auction.explain.overview import overview
from aucsched.auction.explain.unit_prices import Market, market_of
from aucsched.auction.options import MODELS, StepOptions
from aucsched.auction.step import take_step
from aucsched.cluster.resources.capacity import Resource
from aucsched.cluster.schedule import Award
from aucsched.formats.hostlist import expand

CORES = Resource("cores")

EXAMPLES = Path(__file__).parents[3] / "examples"
FULL = EXAMPLES / "emulated-1408-full.json"


def market(cluster: Snapshot, **options: Any) -> Market:
    chosen = StepOptions(**{**ALONE, "work_limit": 20, **options})
    found = market_of(take_step(cluster, chosen).with_bids(), chosen)
    assert found is not None
    return found


def explained(cluster: Snapshot, job: str, **options: Any) -> Explanation:
    return explain(cluster, job, StepOptions(**{**ALONE, "work_limit": 20, **options}))


def one_node(*jobs: dict[str, Any], **node: Any) -> Snapshot:
    return snapshot([{"name": "n1", "cores": 4, **node}], list(jobs))


def test_two_jobs_for_one_node_bid_it_up_to_the_losers_priority() -> None:
    cluster = one_node({"cores": 4, "priority": 10}, {"cores": 4, "priority": 8})
    won, lost = explained(cluster, "J1").quote, explained(cluster, "J2").quote
    assert won is not None
    assert lost is not None
    assert 8 <= won.price <= 10
    assert (lost.worth, lost.price, lost.nodes) == (8, won.price, ("n1",))
    assert lost.gain == 8 - won.price


def test_what_nobody_competes_for_is_free_of_charge() -> None:
    cluster = one_node({"cores": 2, "priority": 10}, {"cores": 2, "priority": 8})
    found = market(cluster)
    assert found.cost.tolist() == [0.0] * len(found.cost)
    assert found.prices.bound == found.award == 18


def test_the_scarce_resource_has_the_price() -> None:
    jobs = [{"cores": 1, "priority": priority, "gres_per_node": {"gpu": 1}} for priority in (9, 8, 7)]
    found = market(one_node(*jobs, gres={"gpu": 2})).prices
    assert found.of_nodes[CORES].tolist() == [0.0]
    assert 7 <= found.of_nodes[Resource("gres", "gpu")][0] <= 8
    licensed = [{"cores": 1, "priority": priority, "licenses": {"m": 1}} for priority in (9, 8)]
    cluster = snapshot([{"name": "n1", "cores": 4}], licensed, licenses={"m": {"total": 1, "free": 1}})
    found = market(cluster).prices
    assert found.of_nodes[CORES].tolist() == [0.0]
    assert 8 <= found.of_pools[Resource("licenses", "m")] <= 9


def test_room_beside_a_reservation_has_a_price_for_jobs_that_outlast_its_start() -> None:
    jobs: list[dict[str, Any]] = [
        {"nodes": 4, "cores": 12, "time_limit_s": 600, "min_cores_per_node": 3},
        *({"cores": 1, "nodes": 1, "time_limit_s": 600, "required_nodes": "n2"} for _ in range(2)),
        {"cores": 1, "nodes": 1, "time_limit_s": 60, "required_nodes": "n2"},
    ]
    running = [{"id": "r", "nodes": {"n1": {"cores": 4}}, "end_time": "2026-11-20T09:31:40Z"}]
    cluster = snapshot([{"name": "n[1-4]", "cores": 4}], jobs, running=running)
    ((guard, amounts),) = market(cluster, reserve=1).prices.of_rooms
    assert guard.job.id == "J1"
    assert amounts[CORES].tolist() == [0.0, pytest.approx(998, abs=3), 0.0, 0.0]
    assert explained(cluster, "J3", reserve=1).quote.price == pytest.approx(998, abs=3)  # type: ignore[union-attr]
    short = explained(cluster, "J4", reserve=1).quote
    assert short is not None
    assert short.price == 0


@given(st.integers(0, 10**6), st.sampled_from(MODELS), st.sampled_from(["priority", "priority_cores"]))
@settings(max_examples=25, deadline=None)
def test_the_bound_is_what_the_prices_prove_and_no_award_exceeds_it(
    seed: int, model: str, objective: str
) -> None:
    cluster = random_snapshot(seed)
    found = take_step(cluster, StepOptions(model=model, objective=objective, work_limit=20, reserve=0))  # type: ignore[arg-type]
    if found.best is None:
        return
    chosen = StepOptions(model=model, objective=objective, work_limit=20, reserve=0)  # type: ignore[arg-type]
    told_market = market_of(found, chosen)
    assert told_market is not None
    assert told_market.prices.bound == pytest.approx(proved(cluster, told_market), rel=1e-6, abs=1e-6)
    if model in {"aucsched2", "aucsched3"}:
        assert told_market.award <= told_market.prices.bound * (1 + 1e-9)


def proved(cluster: Snapshot, found: Market) -> float:
    """Return what weak duality says of the prices, in plain Python: all capacities, and each job's gain."""
    table, prices = found.table, found.prices
    value = 0.0
    for place, node in enumerate(cluster.nodes):
        free = {"cores": node.free.cores, "memory": node.free.memory_mib or 0, **node.free.gres}
        value += sum(price[place] * free.get(what.label, 0) for what, price in prices.of_nodes.items())
    value += sum(price * cluster.licenses[what.name].free for what, price in prices.of_pools.items())
    gains: dict[int, float] = {}
    for bid, job in enumerate(table.job.tolist()):
        cost = sum(
            price * table.demands[job].job.request.licenses.get(what.name, 0)
            for what, price in prices.of_pools.items()
        )
        for entry in range(table.indptr[bid], table.indptr[bid + 1]):
            amounts = {"cores": table.cores, **table.gres}
            if table.memory is not None:
                amounts["memory"] = table.memory
            node = table.node[entry]
            cost += sum(
                price[node] * amounts[what.label][entry]
                for what, price in prices.of_nodes.items()
                if what.label in amounts
            )
        assert found.cost[bid] == pytest.approx(cost, rel=1e-9, abs=1e-9)
        gains[job] = max(gains.get(job, 0.0), float(found.worth[bid]) - cost)
    return float(value + sum(gains.values()))


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_prices_are_close_to_the_best_any_prices_could_prove(seed: int) -> None:
    cluster = tiny(seed)
    found = market(cluster)
    # The least bound that any prices prove is the linear program's optimum.
    best = linear_bound(found)
    assert best <= found.prices.bound * (1 + 1e-7)
    assert found.prices.bound <= best * 1.02


def linear_bound(found: Market) -> float:
    """Return the optimum of the linear program over the bids, by HiGHS."""
    import highspy  # noqa: PLC0415 - only here

    from aucsched.bidgen.families.registry import claims_of  # noqa: PLC0415
    from aucsched.models.search.packing import packing_within  # noqa: PLC0415

    table = found.table
    packing = packing_within(table, claims_of(table, found.cluster.columns), reduces=False)
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    bids = [solver.addVariable(0, 1, float(worth)) for worth in found.worth]
    solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
    for _, group in itertools.groupby(range(len(bids)), key=lambda bid: int(table.job[bid])):
        solver.addConstr(sum(bids[bid] for bid in group) <= 1)
    rows: dict[int, list[Any]] = {}
    for bid, variable in enumerate(bids):
        for place in range(packing.indptr[bid], packing.indptr[bid + 1]):
            rows.setdefault(int(packing.row[place]), []).append(int(packing.amount[place]) * variable)
    for row, terms in rows.items():
        solver.addConstr(sum(terms) <= int(packing.capacity[row]))
    solver.run()
    return float(solver.getObjectiveValue())


def paid(prices: dict[str, dict[str, float]], award: Award) -> float:
    return sum(
        prices[name].get("cores", 0.0) * use.cores
        + sum(prices[name].get(kind, 0.0) * count for kind, count in use.gres.items())
        for name, use in award.nodes.items()
    )


def test_the_document_lets_every_price_be_recomputed() -> None:
    text = aucsched("explain", FULL, "--work-limit", "50", "--reserve", "0", "--format", "json").stdout
    answer = json.loads(text)
    assert answer["format"] == "aucsched-prices/1"
    from aucsched import load_snapshot  # noqa: PLC0415

    cluster = load_snapshot(FULL)
    result = schedule(cluster, work_limit=50, reserve=0)
    prices = {node: group["prices"] for group in answer["nodes"] for node in expand(group["nodes"])}
    assert len(prices) == sum(group["count"] for group in answer["nodes"])
    assert len(prices) + answer["unwanted"]["count"] == 1408
    awards = {award.job: award for award in result.started}
    costs = {line["job"]: line["price"] for line in answer["jobs"] if line["starts"]}
    assert costs.keys() == awards.keys()
    for job, award in awards.items():
        assert costs[job]["price"] == pytest.approx(paid(prices, award))
    assert answer["award"]["price"] == pytest.approx(sum(cost["price"] for cost in costs.values()))
    assert answer["award"]["worth"] == float(result.objective.priority) <= answer["award"]["bound"]
    assert (
        aucsched("explain", FULL, "--work-limit", "50", "--reserve", "0", "--format", "json").stdout == text
    )
    (line,) = (line for line in answer["jobs"] if line["job"] == "70")
    given = ("--work-limit", "50", "--reserve", "0", "--format", "json")
    single = json.loads(aucsched("explain", FULL, "70", *given).stdout)
    assert single["price"] == line["price"]
    assert single["price"]["price"] == min(bid["price"] for bid in single["bids"])


def test_a_job_beyond_the_window_is_priced_by_bids_of_its_own() -> None:
    cluster = one_node({"cores": 4}, {"cores": 4, "priority": 900}, {"cores": 3, "priority": 1})
    found = explained(cluster, "J3", window=2)
    assert found.bids == ()
    assert found.quote is not None
    assert found.quote.price == pytest.approx(explained(cluster, "J2", window=2).quote.price * 3 / 4)  # type: ignore[union-attr]


def test_jobs_that_no_change_concerns_have_neither_price_nor_change() -> None:
    cluster = one_node({"cores": 4}, {"cores": 1, "hold": "JobHeldUser"}, {"cores": 1, "unsupported": ["x"]})
    for job in ("J2", "J3"):
        found = explained(cluster, job)
        assert (found.quote, found.changes) == (None, None)
    assert explained(cluster, "J1").changes is None


def test_a_queue_without_jobs_has_no_prices() -> None:
    empty = overview(one_node(), StepOptions(reserve=0))
    assert (empty.groups, empty.unwanted, empty.jobs, empty.worth) == ((), ("n1",), (), 0.0)
    held = explained(one_node({"cores": 1, "hold": "JobHeldUser"}), "J1").to_dict()
    assert held["award"] == {"worth": None, "bound": None}
    json.dumps(empty.to_dict())


def test_the_command_says_prices_and_changes() -> None:
    text = aucsched("explain", FULL, "--work-limit", "50", "--reserve", "0").stdout
    for words in (
        "in units of priority",
        "no award over these bids is worth more than",
        "a core",
        "short by",
    ):
        assert words in text
    text = aucsched("explain", FULL, "75", "--work-limit", "50", "--reserve", "0").stdout
    assert "its best bid, on n" in text
    assert "would start" in text
    jobs: list[dict[str, Any]] = [
        {"cores": 4, "priority": 10},
        {"nodes": 2, "cores_per_node": 4, "priority": 8, "contiguous": True},
    ]
    nodes = [{"name": "n[1-3]", "cores": 4}, {"name": "n4", "cores": 4, "free_cores": 3}]
    told_text = aucsched(
        "explain",
        "-",
        "J2",
        *("--reserve", "0"),
        stdin=json.dumps(document(nodes[:1], [{**jobs[0], "required_nodes": "n2"}, jobs[1]])),
    ).stdout
    assert "with nodes that need not be consecutive, on n[1,3], left free by the jobs that start" in told_text
    assert "'--window': 0 is not in the range 1<=x" in refused("explain", FULL, "--window", "0")


def test_prices_do_not_depend_on_the_clock() -> None:
    cluster = tiny(3)
    first, again = (market(cluster, seed=1) for _ in range(2))
    assert np.array_equal(first.cost, again.cost)
