"""Evolving jobs under an interval: turns at which nothing can have changed are left out."""

import pytest

from aucsched.negotiation.evolving.fairness import same_for_every_user
from aucsched.simulation.evolving.evolving_loop import WORKLOADS, simulate_evolving
from aucsched.simulation.evolving.evolving_options import EvolvingOptions


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
