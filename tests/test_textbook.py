"""Examples of Nagendra (2016, 3.1.2) under every policy and order, worked by hand, and what no order changes.

That section shows no examples: the jobs are ours, the situations are those it describes. The further rules of
each policy are tested elsewhere.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_snapshots import random_snapshot
from support.plain import J, starts_of, workload_of, workloads

from aucsched.auction.planning.plan import plan as make_plan
from aucsched.simulation.log_columns import Workload
from aucsched.simulation.logs.counts import simulate_counts
from aucsched.simulation.logs.policies import POLICIES, make_policy
from aucsched.simulation.logs.reservations import Candidate, fullest
from aucsched.simulation.simulate_options import PolicyOptions

#: "We need to know the runtimes of job 1 and job 2 to determine when their processors will be freed in favor
#: of job 3, and … make sure backfilling job 4 will not delay job 3": 10 processors.
FIGURE = [J(0, 10, 5, 10), J(0, 6, 3, 6), J(1, 8, 10, 8), J(2, 5, 2, 5)]


@pytest.mark.parametrize("policy", POLICIES)
def test_the_figure_of_backfilling(policy: str) -> None:
    """All but FCFS and one queue for all let job 4 pass job 3, which starts at the shadow time 10 as well.

    Nagendra: figures 3.1, 3.2 backfilling.
    """
    expected = [0, 0, 10, 18] if policy in {"fcfs", "queues"} else [0, 0, 10, 2]
    assert starts_of(FIGURE, 10, policy) == expected


@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_that_would_delay_the_reservation_waits(policy: str) -> None:
    """Job 4's estimate passes the shadow time by 1, and job 3 needs all processors.

    Slack and selective let job 3 wait that second, and so do selections by fit, which reserve nothing;
    speculative bets, loses and starts job 4 again.
    """
    delaying = [*FIGURE[:3], J(2, 9, 2, 9)]
    fits = {"first-fit", "best-fit", "next-fit"}
    expected = [0, 0, 11, 2] if policy in {"slack", "selective"} | fits else [0, 0, 10, 18]
    assert starts_of(delaying, 10, policy) == expected


@pytest.mark.parametrize(
    ("order", "starts"),
    [
        ("fcfs", [0, 4, 0, 6]),
        ("sjf", [3, 1, 3, 0]),
        ("ljf", [0, 4, 0, 6]),
        ("area", [1, 5, 0, 0]),
    ],
)
@pytest.mark.parametrize("policy", ["conservative", "planning"])
def test_the_figure_of_orders(order: str, starts: list[float], policy: str) -> None:
    """Four jobs at once on 4 processors, each placed as soon as possible in the order's turn.

    The chapter: figures 3.1, 3.2 backfilling and its variations.
    """
    jobs = [J(0, 4, 2, 4), J(0, 2, 4, 2), J(0, 3, 1, 3), J(0, 1, 3, 1)]
    assert starts_of(jobs, 4, policy, order=order) == starts


# What no order of input may change ------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=12), st.integers(0, 2**32))
def test_the_fullest_selection_is_as_full_in_any_order(sizes: list[tuple[int, bool]], seed: int) -> None:
    candidates = [Candidate(job, *one) for job, one in enumerate(sizes)]
    shuffled = random.Random(seed).sample(candidates, len(candidates))

    def used(order: list[Candidate]) -> int:
        return sum(candidates[job].size for job in fullest(order, 9, 5))

    assert used(candidates) == used(shuffled)


@given(
    case=workloads(),
    policy=st.sampled_from(sorted(POLICIES)),
    moved=st.integers(1, 10**6),
    times=st.sampled_from([2, 1000]),
)
def test_names_and_units_of_time_change_nothing(
    case: tuple[list[J], int], policy: str, moved: int, times: int
) -> None:
    """Other users, queue weights and job numbers; the same workload in other units of time."""
    jobs, processors = case
    # Options in seconds, and slowdowns bounded by seconds, are distinguished from what is unit-free.
    options = PolicyOptions(class_limits_s=(4.0,), candidates=("easy",))
    longer = PolicyOptions(class_limits_s=(4.0 * times,), candidates=("easy",))
    workload = workload_of(jobs, processors)
    named = replace(
        workload,
        requests=replace(
            workload.requests,
            user=tuple(user + moved for user in workload.requests.user),
            weight=tuple(range(1, len(jobs) + 1)),
        ),
        ids=tuple(int(number) + moved for number in workload.ids),
    )
    starts = played(workload, policy, options)
    assert played(named, policy, options) == starts
    slower = [J(times * job.submit, times * job.run, job.size, times * job.estimate) for job in jobs]
    assert played(workload_of(slower, processors), policy, longer) == [times * start for start in starts]


def played(workload: Workload, policy: str, options: PolicyOptions) -> list[float]:
    return simulate_counts(workload, make_policy(policy, workload.requests, options=options))


@given(st.integers(0, 10**6))
def test_a_plan_does_not_depend_on_the_order_of_the_file(seed: int) -> None:
    """Jobs of different priority and running jobs may stand in any order."""
    cluster = random_snapshot(seed)
    jobs = tuple(replace(job, priority=1 + place) for place, job in enumerate(cluster.jobs))
    ordered = replace(cluster, jobs=jobs)
    rng = random.Random(seed)
    shuffled = replace(
        cluster,
        jobs=tuple(rng.sample(jobs, len(jobs))),
        running=tuple(rng.sample(cluster.running, len(cluster.running))),
    )
    first, second = make_plan(ordered), make_plan(shuffled)
    assert first.planned == second.planned
    assert first.unplanned == second.unplanned
