"""Random workloads, machines and configurations: every job ends, no core is held twice, no limit exceeded."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.evolving import check_cores

from aucsched.negotiation.evolving.fairness import DelayLimits, DelayPolicy, Fairness
from aucsched.simulation.events import EventKind, EventQueue
from aucsched.simulation.evolving.evolving_loop import PROVIDERS, simulate_evolving
from aucsched.simulation.evolving.evolving_options import EvolvingOptions
from aucsched.simulation.evolving.evolving_report import EvolvingRun
from aucsched.simulation.workloads.evolving import EvolvingJob, EvolvingWorkload

QUICK = [name for name in PROVIDERS if name != "auction"]
_ALMOST = 1 + 1e-9

_JOBS = st.lists(
    st.tuples(st.integers(1, 12), st.integers(1, 50), st.integers(0, 60), st.integers(0, 4), st.booleans()),
    max_size=12,
)
_LIMITS = st.builds(
    DelayLimits,
    permitted=st.sampled_from([None, True, True, False]),
    single_s=st.sampled_from([None, 0.0, 1.0, 10.0, 40.0]),
    target_s=st.sampled_from([None, 0.0, 1.0, 10.0, 40.0]),
)
_FAIRNESS = st.builds(
    Fairness,
    policy=st.sampled_from(list(DelayPolicy)),
    interval_s=st.sampled_from([7.0, 40.0, 1000.0]),
    decay=st.sampled_from([0.0, 0.4, 1.0]),
    limits=st.dictionaries(
        st.tuples(st.just("user"), st.sampled_from(["u0", "u1", "u2", "DEFAULT"])), _LIMITS, max_size=4
    ),
)


def _workload(drawn: list[tuple[int, int, int, int, bool]]) -> EvolvingWorkload:
    jobs = tuple(
        EvolvingJob(
            id=f"J{number}",
            kind="JKL"[number % 3],
            user=f"u{number % 4}",
            cores=cores,
            arrival_s=float(arrival),
            static_s=float(run),
            asks_s=(0.2 * run, 0.5 * run) if more else (),
            more_cores=more,
            rest=0.5 if more else 1.0,
            drains=drains,
        )
        for number, (cores, run, arrival, more, drains) in enumerate(sorted(drawn, key=lambda one: one[2]))
    )
    return EvolvingWorkload(name="drawn", nodes=3, cores_per_node=4, jobs=jobs)


def _check_limits(run: EvolvingRun, fairness: Fairness) -> None:
    """Count delays again, from the grants alone, as the paper's section III-D says."""
    if fairness.policy is DelayPolicy.NONE:
        return
    spent: dict[str, float] = {}
    by_job: dict[str, float] = {}
    last = 0
    for time_s, grant in run.grants:
        number = int(time_s // fairness.interval_s)
        spent = {user: seconds * fairness.decay ** (number - last) for user, seconds in spent.items()}
        last = number
        for delay in grant.delays:
            user = delay.owner.user
            if user == run.played[grant.request.job].job.user:
                continue
            limits = fairness.limits.get(("user", user), DelayLimits())
            default = fairness.limits.get(("user", "DEFAULT"), DelayLimits())
            assert (limits.permitted if limits.permitted is not None else default.permitted) is not False
            spent[user] = spent.get(user, 0.0) + delay.seconds
            by_job[delay.job] = by_job.get(delay.job, 0.0) + delay.seconds
            target = limits.target_s if limits.target_s is not None else default.target_s
            single = limits.single_s if limits.single_s is not None else default.single_s
            if target and fairness.policy in {DelayPolicy.TARGET, DelayPolicy.BOTH}:
                assert spent[user] <= target * _ALMOST
            if single and fairness.policy in {DelayPolicy.SINGLE, DelayPolicy.BOTH}:
                assert by_job[delay.job] <= single * _ALMOST


@settings(max_examples=150)
@given(
    drawn=_JOBS,
    serve_by=st.sampled_from(QUICK),
    fairness=_FAIRNESS,
    interval=st.sampled_from([None, 7.0]),
    overhead=st.sampled_from([0.0, 3.0]),
    preemptible=st.sampled_from(["", "J", "JK"]),
    malleable=st.sampled_from(["", "L", "JKL"]),
)
def test_any_workload_is_played_to_its_end(
    drawn: list[tuple[int, int, int, int, bool]],
    serve_by: str,
    fairness: Fairness,
    interval: float | None,
    overhead: float,
    preemptible: str,
    malleable: str,
) -> None:
    workload = _workload(drawn)
    alone = serve_by == "iteration"
    options = EvolvingOptions(
        serve_by=serve_by,  # type: ignore[arg-type]
        dynamic_partition=4 if serve_by == "partition" else None,
        limits=fairness,
        interval_s=interval,
        job_overhead_s=overhead,
        preemptible=",".join(preemptible) if alone else None,
        shrinkable=",".join(malleable) if alone else None,
    )
    run = simulate_evolving(workload, options)
    assert len(run.played) == len(workload.jobs)
    if not (run.preemptions or run.shrinks):
        check_cores(run)
    if alone:
        _check_limits(run, fairness)


@settings(max_examples=12)
@given(drawn=_JOBS, fairness=_FAIRNESS, strategy=st.sampled_from(["greedy", "anytime"]))
def test_an_auction_exceeds_no_limit(
    drawn: list[tuple[int, int, int, int, bool]], fairness: Fairness, strategy: str
) -> None:
    workload = _workload(drawn)
    options = EvolvingOptions(serve_by="auction", limits=fairness, strategy=strategy)  # type: ignore[arg-type]
    run = simulate_evolving(workload, options)
    assert len(run.played) == len(workload.jobs)
    check_cores(run)
    _check_limits(run, fairness)


def test_jobs_that_may_stop_each_other_do_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are preemptible and evolve, and grown there is no room for the other's growth: one gives way."""
    pushed, push = 0, EventQueue.push

    def counted(queue: EventQueue, time: float, kind: EventKind, job: int) -> int:
        nonlocal pushed
        pushed += 1
        assert pushed < 100, "a job is stopped again and again"
        return push(queue, time, kind, job)

    monkeypatch.setattr(EventQueue, "push", counted)
    workload = _workload([(4, 50, 0, 3, False), (4, 50, 1, 3, False)])
    options = EvolvingOptions(serve_by="iteration", preemptible="J,K")
    run = simulate_evolving(workload, options)
    assert run.played["J0"].grown_s is not None
    assert not run.preemptions
