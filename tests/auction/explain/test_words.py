"""What explanations say: why a job can never start, what bids on the same nodes differ in, when in UTC."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console
from support.build import ALONE, snapshot

from aucsched.auction.explain.explanation import explain
from aucsched.auction.explain.snapshot_report import report_on
from aucsched.auction.explain.words import dealt, moment, shortened
from aucsched.auction.options import StepOptions
from aucsched.auction.planning.plan import plan
from aucsched.auction.step import run_step
from aucsched.cluster.schedule import Reason
from aucsched.cluster.snapshot import Snapshot
from aucsched.reports.auction_pages import explanation_page
from aucsched.reports.explanation_text import render_explanation

NODES = [
    {"name": "n[1-16]", "cores": 8, "partitions": ["batch"], "features": ["nvme"]},
    {"name": "n[17-18]", "cores": 32},
]
RUNNING = [{"id": "r", "nodes": {"n1": {"cores": 8}}, "end_time": "2026-11-20T09:40:00Z"}]


def told(cluster: Snapshot, job: str) -> str:
    console = Console(width=200, force_terminal=False)
    with console.capture() as capture:
        render_explanation(explain(cluster, job, StepOptions(**ALONE, work_limit=2)), console)
    return capture.get()


@pytest.mark.parametrize(
    ("asks", "words"),
    [
        ({"cores": 300, "partition": "batch"}, "it asks for 300 cores, partition batch has 128"),
        ({"cores": 300}, "it asks for 300 cores, there are 192"),
        ({"nodes": 19, "cores": 19}, "it asks for 19 nodes, there are 18"),
        (
            {"cores": 150, "features": ["nvme"]},
            "it asks for 150 cores, the nodes that it may use have 128",
        ),
        (
            {"nodes": 1, "cores_per_node": 9, "partition": "batch"},
            "it asks for 9 cores on a node, the largest that it may use has 8",
        ),
    ],
)
def test_a_job_that_asks_for_more_than_there_is_is_told_so(asks: dict[str, Any], words: str) -> None:
    cluster = snapshot(NODES, [asks], running=RUNNING)
    (refusal,) = run_step(cluster, StepOptions(work_limit=2)).pending
    assert (refusal.reason, refusal.detail) == (Reason.INELIGIBLE, words)
    text = told(cluster, "J1")
    assert f"ineligible: {words}" in text
    assert "never: see why it waits" in text
    assert "no estimated end" not in text


SMALL = [
    {"name": "n[1-4]", "cores": 48, "memory_mib": 1000, "gres": {"gpu:a": 4}, "partitions": ["p"]},
    {"name": "big", "cores": 96, "memory_mib": 9000, "gres": {"gpu:a": 8}, "features": ["big"]},
]


@pytest.mark.parametrize("window", [1, 100])
@pytest.mark.parametrize(
    ("asks", "words"),
    [
        (
            {"nodes": 1, "cores_per_node": 1, "memory_mib_per_node": 2000, "partition": "p"},
            "it asks for 2000 MiB on a node, the largest that it may use has 1000",
        ),
        (
            {"nodes": 1, "cores_per_node": 1, "gres_per_node": {"gpu": 9}},
            "it asks for 9 gpu on a node, the largest that it may use has 8",
        ),
        ({"cores": 1, "licenses": {"m": 5}}, "it asks for 5 m licences, there are 4 in all"),
        (
            {"cores": 2, "memory_mib_per_core": 30, "exclusive": True, "partition": "p"},
            "when all is empty no nodeset holds empty nodes, 2 cores, 30 MiB a core",
        ),
        (
            {"nodes": 2, "cores_per_node": 1, "gres_per_node": {"gpu": 5}},
            "when all is empty no nodeset holds 2 nodes, 1 core a node, 5 gpu a node",
        ),
        (
            {"nodes": 2, "cores_per_node": 1, "gres_total": {"gpu:a": 13}},
            "when all is empty no nodeset holds 2 nodes, 1 core a node, 13 gpu:a in all",
        ),
        (
            {"cores": 1, "gres_per_node": {"gpu": 5}, "required_nodes": "n1"},
            "when all is empty no nodeset holds 1 core, 5 gpu a node, with n1",
        ),
    ],
)
def test_what_can_never_run_is_ineligible_in_schedule_plan_and_check(
    asks: dict[str, Any], words: str, window: int
) -> None:
    jobs = [{"cores": 1}, {"id": "never", **asks}]
    cluster = snapshot(SMALL, jobs, licenses={"m": {"total": 4, "free": 2}})
    found = {
        (one.reason, one.detail)
        for made in (
            run_step(cluster, StepOptions(window=window, work_limit=2)).pending,
            plan(cluster).unplanned,
        )
        for one in made
    }
    assert found == {(Reason.INELIGIBLE, words)}
    assert report_on(cluster)["jobs"]["ineligible"] == {words: 1}
    assert "never: see why it waits" in told(cluster, "never")
    # One less of it could run once jobs have ended.
    fewer = {"memory_mib_per_node": 1000, "memory_mib_per_core": 20, "licenses": {"m": 4}}
    fewer |= {"gres_total": {"gpu:a": 12}}
    fewer |= {"gres_per_node": {"gpu": 8 if asks.get("nodes") == 1 else 4}}
    able = {name: fewer.get(name, value) for name, value in asks.items()}
    held = {"id": "r", "nodes": {name: {"cores": 1} for name in ("n1", "n2", "n3", "n4", "big")}}
    less = snapshot(SMALL, [able], running=[held], licenses={"m": {"total": 4, "free": 2}})
    assert not report_on(less)["jobs"]["ineligible"]


@pytest.mark.parametrize(
    ("limit", "asks", "words"),
    [
        (
            {"cores": 100},
            {"nodes": 2, "cores_per_node": 1},
            "96 cores, the limit all: cores leaves 52 of 100",
        ),
        ({"cores": 100}, {"cores": 50}, "96 cores, the limit all: cores leaves 52 of 100"),
        (
            {"cores": 100},
            {"nodes": 3, "cores_per_node": 1},
            "144 cores, the limit all: cores is 100: it can never start",
        ),
        (
            {"gres/gpu": 6},
            {"nodes": 1, "cores_per_node": 1, "gres_per_node": {"gpu": 1}},
            "4 gres/gpu, the limit all: gres/gpu leaves 2 of 6",
        ),
        ({"nodes": 2}, {"cores": 50}, "2 nodes, the limit all: nodes leaves 1 of 2"),
    ],
)
@pytest.mark.parametrize("options", [{}, ALONE])
def test_exclusive_jobs_over_a_limit_name_it_and_all_that_their_nodes_have(
    limit: dict[str, int], asks: dict[str, Any], words: str, options: dict[str, Any]
) -> None:
    first = {"nodes": 1, "cores_per_node": 1, "exclusive": True, "priority": 9, "time_limit_s": 60}
    jobs = [first, {"id": "late", "exclusive": True, "time_limit_s": 60, "priority": 8, **asks}]
    cluster = snapshot(SMALL[:1], jobs, limits=[{"name": "all", "max": limit}])
    (refusal,) = run_step(cluster, StepOptions(**options, work_limit=2)).pending
    assert refusal.reason is Reason.LIMIT
    if options and "leaves" in words:
        # It bids: the sentence names who uses the limit up.
        assert refusal.detail == f"the limit all: {next(iter(limit))} is used up by J1"
    else:
        assert refusal.detail == f"it asks for {words}"
    assert "\nwaits        limit: " in told(cluster, "late")


def test_of_larger_nodes_no_limit_is_said_to_be_too_small_for_ever() -> None:
    # Only the large node is empty; a small one would be within the limit.
    held = {"id": "r", "nodes": {f"n{place}": {"cores": 1} for place in range(1, 5)}}
    nodes = [{**SMALL[0], "free_cores": 47}, SMALL[1]]
    jobs = [{"nodes": 1, "cores_per_node": 1, "exclusive": True}]
    for most, reason in ((90, Reason.NO_FIT), (98, Reason.LIMIT)):
        limits = [{"name": "all", "max": {"cores": most}}]
        (refusal,) = run_step(snapshot(nodes, jobs, running=[held], limits=limits), StepOptions()).pending
        assert refusal.reason is reason, refusal
        assert "never" not in refusal.detail


@pytest.mark.parametrize(
    ("asks", "part"),
    [
        ({"cores": 2, "exclusive": True}, "empty nodes, 2 cores"),
        ({"cores": 2, "required_nodes": "n2"}, "2 cores, with n2"),
        ({"cores": 8, "min_cores_per_node": 8}, "8 cores, at least 8 cores a node"),
        ({"cores": 15, "cores_per_task": 5}, "15 cores, 5 cores a task"),
    ],
)
def test_the_sentence_names_the_part_of_the_request_that_is_the_cause(
    asks: dict[str, Any], part: str
) -> None:
    held = {"id": "r", "nodes": {"n1": {"cores": 1}, "n2": {"cores": 8}, "n3": {"cores": 1}}}
    nodes = [{"name": f"n{place}", "cores": 8, "free_cores": free} for place, free in enumerate((7, 0, 7), 1)]
    cluster = snapshot([*nodes, {"name": "down", "cores": 8, "state": "down"}], [asks], running=[held])
    (refusal,) = run_step(cluster, StepOptions(work_limit=2)).pending
    assert refusal.reason is Reason.NO_FIT
    assert refusal.detail == f"no nodeset holds {part}; 14 cores are free on 2 nodes it may use"


def test_a_job_that_fits_once_running_ones_end_waits_for_them() -> None:
    cluster = snapshot(NODES, [{"cores": 128, "partition": "batch"}], running=RUNNING)
    (refusal,) = run_step(cluster, StepOptions(work_limit=2)).pending
    assert refusal.reason is Reason.NO_FIT
    assert "2026-11-20T09:40:00Z (in 10 min)" in told(cluster, "J1")


def test_bids_on_the_same_nodes_say_how_they_differ() -> None:
    # Two nodes hold 6 of 8 cores each: bids deal them 6+6 only; of 10 cores several ways.
    cluster = snapshot(
        [{"name": "n[1-3]", "cores": 8}],
        [{"nodes": 2, "cores": 10, "priority": 1}, {"nodes": [1, 3], "cores": 20, "priority": 9}],
    )
    for job in ("J1", "J2"):
        found = explain(cluster, job, StepOptions(**ALONE, work_limit=2))
        assert found.bids
        assert all(sum(bid.cores_by_node) == bid.cores for bid in found.bids)
        rows = [
            line.split() for line in told(cluster, job).split("in the order they were made")[1].splitlines()
        ]
        shown = [tuple(row) for row in rows[2 : 2 + len(found.bids)]]
        assert len(shown) == len(set(shown)), shown


def test_counts_of_nodes_are_written_as_slurm_does() -> None:
    assert dealt((4, 4, 4, 2)) == "4(x3),2"
    assert dealt((1,)) == "1"


def test_a_page_says_times_in_utc() -> None:
    cluster = snapshot(NODES, [{"cores": 128, "partition": "batch"}], running=RUNNING)
    page = explanation_page(explain(cluster, "J1", StepOptions(work_limit=2)), "now")
    assert "of the epoch" not in page
    assert "2026-11-20T09:40:00Z" in page
    assert moment(0.0, None) == "1970-01-01T00:00:00Z"


def test_a_hostlist_is_cut_after_seventy_characters() -> None:
    fits, long = ([f"node{place:03}" for place in range(0, 2 * count, 2)] for count in (16, 40))
    assert shortened(fits) == f"node[{','.join(f'{place:03}' for place in range(0, 32, 2))}]"
    assert 60 < len(shortened(long).partition("…")[0]) <= 70


def test_nodes_that_a_job_past_its_limit_holds_are_not_free_now() -> None:
    late = {"id": "late", "nodes": {f"n{place}": {"cores": 8} for place in (1, 2)}, "end_time": 1}
    cluster = snapshot([{"name": "n[1-2]", "cores": 8}], [{"cores": 16}], running=[late])
    text = " ".join(told(cluster, "J1").split())
    assert "could start as soon as jobs past their limit have ended on n[1-2] if nothing" in text
    free = snapshot([{"name": "n[1-4]", "cores": 8}], [{"cores": 16, "hold": "JobHeldUser"}], running=[late])
    assert "could start now on n[3-4]" in " ".join(told(free, "J1").split())
