"""Charts of node-level simulations: who held which cores, and how much was used, to the bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.run import aucsched

from aucsched import ArrivingJob, ClusterWorkload, Job, Node, Request, Resources, save_workload
from aucsched.reports.curves import draw_utilization
from aucsched.reports.gantt import draw_gantt
from aucsched.simulation.nodes.node_policies import NodeOptions, play
from aucsched.simulation.nodes.node_result import NodeSimulation


def full(name: str, arrival_s: float, run_s: float, cores: int = 8) -> ArrivingJob:
    """Return a job of some of the 8 cores, without a limit."""
    job = Job(id=name, priority=100 - int(name), request=Request(cores=cores))
    return ArrivingJob(job=job, arrival_s=arrival_s, run_time_s=run_s)


def workload(*jobs: ArrivingJob) -> ClusterWorkload:
    """Return two nodes of four cores and their jobs."""
    has = Resources(cores=4)
    return ClusterWorkload(
        name="", nodes=tuple(Node(name=f"n{place}", total=has, free=has) for place in (1, 2)), jobs=jobs
    )


def played(*jobs: ArrivingJob) -> NodeSimulation:
    return play(workload(*jobs), NodeOptions(policy="fcfs"))


def unlucky() -> tuple[float, float]:
    """Return a first arrival and a run time between which rounding puts an end after the next start."""
    for tenths in range(1, 200):
        first, run = 0.1, tenths / 10
        if (first + run) - first < run:
            return first, run
    raise AssertionError("floats are exact here")


def test_a_job_may_take_the_cores_that_another_leaves_at_that_moment() -> None:
    # Counted from the first submission, the second job starts a rounding before the first one ends.
    first, run = unlucky()
    result = played(full("1", first, run), full("2", first, 5), full("3", first, 5))
    assert result.starts[1] < result.starts[0] + result.workload.run[0]
    assert result.placed == {0: ((0, 8),), 1: ((0, 8),), 2: ((0, 8),)}


def test_no_more_than_the_machine_is_ever_used() -> None:
    first, run = unlucky()
    result = played(full("1", first, run), full("2", first, 5), full("3", first, 5))
    assert result.end[0] == result.start[1]
    assert result.timeline.used.tolist() == [8, 8, 8, 0]
    assert np.all(np.diff(result.timeline.times) > 1)


def test_cores_are_numbered_through_all_nodes_the_lowest_first() -> None:
    result = played(full("1", 0, 10, cores=2), full("2", 0, 20, cores=5), full("3", 12, 5, cores=3))
    # Job 2 fills node n1 beside job 1 and goes on in n2; job 3 gets job 1's cores and the next of n2.
    assert result.placed == {0: ((0, 2),), 1: ((2, 5),), 2: ((0, 2), (7, 1))}


@pytest.mark.parametrize("option", ["--gantt", "--plot"])
@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_command_draws_them(option: str, ending: str, tmp_path: Path) -> None:
    first, run = unlucky()
    save_workload(workload(full("1", first, run), full("2", first, 5)), tmp_path / "w.json")
    done = aucsched(
        "simulate", tmp_path / "w.json", option, tmp_path / f"chart.{ending}", "-o", tmp_path / "text"
    )
    assert (done.returncode, done.stderr) == (0, "")
    drawn = (tmp_path / f"chart.{ending}").read_bytes()
    assert drawn.startswith(b"\x89PNG" if ending == "png" else b"<?xml")
    if (option, ending) == ("--gantt", "svg"):
        assert b"Cores, node by node" in drawn


def test_a_run_in_which_nothing_starts_has_empty_charts(tmp_path: Path) -> None:
    result = played(full("1", 0, 10, cores=9))
    assert result.record.never == {0: "it fits nowhere on the empty machine"}
    for name, draw in (("use.png", draw_utilization), ("gantt.png", draw_gantt)):
        draw(result, tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert result.placed == {}
