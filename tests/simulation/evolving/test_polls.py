"""Evolving jobs under an interval: turns at which nothing can have changed are left out."""

import pytest

from aucsched.negotiation.evolving.fairness import same_for_every_user
from aucsched.simulation.evolving.evolving_loop import WORKLOADS, simulate_evolving
from aucsched.simulation.evolving.evolving_options import EvolvingOptions
from aucsched.simulation.workloads.evolving import EvolvingJob, EvolvingWorkload


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("serve_by", ["iteration", "merge"])
def test_a_short_interval_costs_no_turn_in_which_nothing_happens(workload: str, serve_by: str) -> None:
    played = WORKLOADS[workload](0)
    options = {"serve_by": serve_by}
    plain = simulate_evolving(played, EvolvingOptions(**options))  # type: ignore[arg-type]
    often = simulate_evolving(played, EvolvingOptions(interval_s=0.001, **options))  # type: ignore[arg-type]
    assert often.passes < 2 * plain.passes
    ends = [max(one.end_s for one in run.played.values()) for run in (plain, often)]
    assert ends[1] == pytest.approx(ends[0], abs=1)


def test_a_kept_request_is_asked_again_when_accounts_begin_anew() -> None:
    """Recorded when every turn was a pass: there were 1 106."""
    fair = same_for_every_user(500, interval_s=1000)
    options = EvolvingOptions(
        interval_s=13.0, limits=fair, fairness="target:500", keep_requests=True, preemptible="A,B"
    )
    run = simulate_evolving(WORKLOADS["dynamic-esp"](1), options)
    assert run.passes < 1000
    grown = [job.grown_s for job in run.played.values() if job.grown_s is not None]
    assert len(grown) == 54
    assert sum(grown) == pytest.approx(380697.88, abs=0.01)


@pytest.mark.parametrize("serve_by", ["iteration", "auction"])
def test_a_request_that_only_new_accounts_make_fair_is_granted_then(serve_by: str) -> None:
    jobs = [
        EvolvingJob(id=name, kind="F", user=name, cores=2, arrival_s=0, static_s=20000.0,
                    asks_s=(first_s, 19000.0), more_cores=2, rest=0.5)
        for name, first_s in (("E1", 100.0), ("E2", 200.0))
    ]  # fmt: skip
    jobs += [
        EvolvingJob(id=name, kind="A", user=user, cores=cores, arrival_s=came_s, static_s=run_s)
        for name, user, cores, came_s, run_s in (
            ("B", "b", 4, 0, 10000.0), ("Q1", "q", 8, 1, 10.0), ("Q2", "q", 6, 2, 10.0)
        )
    ]  # fmt: skip
    workload = EvolvingWorkload(name="t", nodes=1, cores_per_node=12, jobs=tuple(jobs))
    options = EvolvingOptions(
        serve_by=serve_by,  # type: ignore[arg-type]
        limits=same_for_every_user(15000.0),
        keep_requests=True,
        interval_s=60.0,
    )
    run = simulate_evolving(workload, options)
    assert [(time_s, grant.request.job) for time_s, grant in run.grants] == [(100.0, "E1"), (3600.0, "E2")]
