"""Times count from the first arrival, also where that job never starts."""

import pytest

import aucsched
from aucsched.cluster.workload import ArrivingJob, ClusterWorkload


def _arriving(name: str, arrival_s: float, cores: int) -> ArrivingJob:
    job = aucsched.Job(id=name, priority=5, request=aucsched.Request(cores=cores), time_limit_s=20)
    return ArrivingJob(job=job, arrival_s=arrival_s, run_time_s=10)


def test_a_makespan_is_that_of_the_table_of_jobs() -> None:
    jobs = [_arriving("large", 7, 9), _arriving("x", 107, 4), _arriving("y", 112, 4)]
    run = aucsched.simulate(ClusterWorkload(nodes=[aucsched.Node(name="a", cores=4)], jobs=jobs), "easy")
    columns, metrics = run.columns, run.metrics
    assert columns["submit_s"] == [0, 100, 105]
    assert columns["end_s"] == [None, 110, 120]
    assert metrics["makespan_s"] == 120
    assert metrics["cpu_utilization"] == pytest.approx(80 / (4 * 120))
    assert metrics["throughput_per_h"] == pytest.approx(60)
    assert (run.starts, run.timeline.times[0]) == ((100, 110), 0)
    assert run.timeline.most(run.timeline.used, run.timeline.times[[0, 1]]) == 0


def test_a_run_in_which_nothing_starts_has_no_makespan() -> None:
    for jobs in ([], [_arriving("large", 7, 9)]):
        found = aucsched.simulate(
            ClusterWorkload(nodes=[aucsched.Node(name="a", cores=4)], jobs=jobs), "easy"
        )
        assert found.metrics["makespan_s"] is None
