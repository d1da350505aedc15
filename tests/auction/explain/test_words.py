"""What explanations say: why a job can never start, what bids on the same nodes differ in, when in UTC."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console
from support.build import ALONE, snapshot

from aucsched.auction.explain.explanation import explain
from aucsched.auction.explain.words import dealt, moment, shortened
from aucsched.auction.options import StepOptions
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
        render_explanation(explain(cluster, job, StepOptions(**ALONE, work_limit=2)), cluster.time, console)
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
