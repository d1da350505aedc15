"""Dynamic ESP: table I, the four configurations of table II, and what no configuration may break."""

from __future__ import annotations

from statistics import mean
from typing import Any

import pytest
from support.evolving import check_cores

from aucsched.cluster.errors import OptionError
from aucsched.negotiation.evolving.fairness import same_for_every_user
from aucsched.simulation.evolving.evolving_loop import PROVIDERS, WORKLOADS, simulate_evolving
from aucsched.simulation.evolving.evolving_options import EvolvingOptions
from aucsched.simulation.evolving.evolving_report import (
    EvolvingRun,
    dynamic_figures,
    evolving_metrics,
    waits_by_type,
)
from aucsched.simulation.workloads.esp import ESP_TYPES
from aucsched.simulation.workloads.evolving import (
    QUADFLOW,
    EvolvingJob,
    EvolvingWorkload,
    dynamic_cores,
    dynamic_esp,
    quadflow,
    quadflow_phases,
)

STATIC = EvolvingOptions(requests="refuse")
QUICK = [name for name in PROVIDERS if name != "auction"]


def _run(seed: int, options: EvolvingOptions) -> EvolvingRun:
    run = simulate_evolving(dynamic_esp(seed), options)
    _check(run)
    return run


def _check(run: EvolvingRun) -> None:
    for played in run.played.values():
        assert played.core_s > 0
        assert played.grown_s is not None or played.cores == played.static_cores
    check_cores(run)


def test_table_1() -> None:
    """Prabhakaran: table I dynamic ESP."""
    cores = [dynamic_cores(entry) for entry in ESP_TYPES]
    assert cores == [4, 8, 64, 32, 64, 8, 16, 21, 4, 8, 13, 16, 32, 120]
    assert sum(entry.count for entry in ESP_TYPES) == 230
    assert sum(entry.count for entry in ESP_TYPES if entry.dynamic_s is not None) == 69
    for entry, count in zip(ESP_TYPES, cores, strict=True):
        if entry.dynamic_s is not None:
            assert entry.dynamic_s == int(entry.static_s * count / (count + 4))


def test_submission() -> None:
    jobs = dynamic_esp(1).jobs
    assert [job.arrival_s for job in jobs[:52]] == [*[0.0] * 50, 30.0, 60.0]
    assert [(job.kind, job.arrival_s) for job in jobs[-3:]][1:] == [("Z", 178 * 30.0 + 1800)] * 2
    assert dynamic_esp(1) == dynamic_esp(1)
    assert [job.id for job in dynamic_esp(2).jobs] != [job.id for job in jobs]


def test_table_2_over_a_few_orders() -> None:
    """Prabhakaran: table II."""
    seeds = range(8)
    static = [_run(seed, STATIC) for seed in seeds]
    served = [_run(seed, EvolvingOptions()) for seed in seeds]
    limited = [_run(seed, EvolvingOptions(limits=same_for_every_user(500))) for seed in seeds]

    def minutes(runs: list[EvolvingRun]) -> float:
        return mean((evolving_metrics(run)["makespan_s"] or 0.0) / 60 for run in runs)

    assert 228 <= minutes(static) <= 242
    assert minutes(served) < 0.95 * minutes(static)
    assert {dynamic_figures(run)["asked"] for run in static} == {69}
    assert {len(run.grants) for run in static} == {0}
    assert mean(len(run.grants) for run in served) > mean(len(run.grants) for run in limited) > 15


def test_nothing_starts_while_a_whole_machine_job_waits() -> None:
    run = _run(3, EvolvingOptions())
    first = [played for played in run.played.values() if played.job.kind == "Z"]
    last = max(played.start_s for played in first)
    between = [
        played
        for played in run.played.values()
        if played.job.kind != "Z" and first[0].job.arrival_s <= played.start_s < last
    ]
    assert not between


@pytest.mark.parametrize("table", [True, False])
def test_run_times_after_a_grant(table: bool) -> None:
    run = _run(5, EvolvingOptions(det="table" if table else "remaining", job_overhead_s=20.0))
    assert run.grants
    for time_s, grant in run.grants:
        played = run.played[grant.request.job]
        elapsed = time_s - played.start_s
        ran = played.end_s - played.start_s - 20
        assert elapsed in [pytest.approx(one) for one in played.job.asks_s]
        left = (played.job.static_s - elapsed) * played.static_cores / played.cores
        expected = played.job.dynamic_s if table else elapsed + left
        assert ran == pytest.approx(expected)


def _largest_delay(run: EvolvingRun, interval_s: float, decay: float) -> float:
    """Return the most that any user was delayed by in an interval, what the last one left included."""
    spent: dict[str, dict[int, float]] = {}
    for time_s, grant in run.grants:
        for delay in grant.delays:
            if delay.owner.user != run.played[grant.request.job].job.user:
                by = spent.setdefault(delay.owner.user, {})
                number = int(time_s // interval_s)
                by[number] = by.get(number, 0.0) + delay.seconds
    most = 0.0
    for by in spent.values():
        left = 0.0
        for number in range(max(by) + 1):
            left = left * decay + by.get(number, 0.0)
            most = max(most, left)
    return most


@pytest.mark.parametrize("decay", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("limit", [60, 500])
def test_no_user_is_delayed_by_more_than_the_limit(limit: float, decay: float) -> None:
    fairness = same_for_every_user(limit, decay=decay)
    largest = [_largest_delay(_run(seed, EvolvingOptions(limits=fairness)), 3600, decay) for seed in range(4)]
    assert all(value <= limit * (1 + 1e-9) for value in largest)
    unlimited = [_largest_delay(_run(seed, EvolvingOptions()), 3600, decay) for seed in range(4)]
    assert max(unlimited) > limit


def test_preallocated_jobs_always_get_their_cores() -> None:
    run = _run(0, EvolvingOptions(serve_by="preallocation"))
    assert len(run.grants) == 69


def test_a_partition_is_never_held_by_static_jobs() -> None:
    run = _run(0, EvolvingOptions(serve_by="partition", dynamic_partition=12))
    assert max(played.static_cores for played in run.played.values()) == 108
    changes = sorted(
        change
        for played in run.played.values()
        if played.grown_s is not None
        for change in ((played.grown_s, 4), (played.end_s, -4))
    )
    held, most = 0, 0
    for _, change in changes:
        held += change
        most = max(most, held)
    assert most == 12


def test_a_merged_job_waits_behind_the_queue() -> None:
    merged, served = _run(0, EvolvingOptions(serve_by="merge")), _run(0, EvolvingOptions())
    assert merged.grants
    after = [time_s - merged.played[grant.request.job].start_s for time_s, grant in merged.grants]
    first = [merged.played[grant.request.job].job.asks_s[0] for _, grant in merged.grants]
    assert any(one > other + 1 for one, other in zip(after, first, strict=True))
    assert mean(wait["wait_mean_s"] or 0 for wait in waits_by_type(merged).values()) != mean(
        wait["wait_mean_s"] or 0 for wait in waits_by_type(served).values()
    )


def test_an_auction_of_requests_and_queue() -> None:
    jobs = tuple(
        EvolvingJob(
            id=f"{kind}{number}",
            kind=kind,
            user=f"user {kind}",
            cores=cores,
            arrival_s=float(number),
            static_s=run,
            asks_s=(20.0, 40.0) if kind == "E" else (),
            more_cores=2 if kind == "E" else 0,
            rest=0.5,
        )
        for number, (kind, cores, run) in enumerate(
            [("E", 4, 100.0), ("R", 4, 60.0), ("E", 2, 100.0), ("R", 8, 50.0)]
        )
    )
    workload = EvolvingWorkload(name="few", nodes=3, cores_per_node=4, jobs=jobs)
    free = simulate_evolving(workload, EvolvingOptions(serve_by="auction"))
    _check(free)
    assert free.grants
    for limit in (1, 25):
        fairness = same_for_every_user(limit, interval_s=1000)
        run = simulate_evolving(workload, EvolvingOptions(serve_by="auction", limits=fairness))
        _check(run)
        assert _largest_delay(run, 1000, 0.0) <= limit


def test_preemptible_jobs_begin_anew() -> None:
    options = EvolvingOptions(preemptible="A")
    run = simulate_evolving(dynamic_esp(1), options)
    _check(run)
    assert run.preemptions
    assert run.lost_core_s > 0
    assert len(run.grants) > len(_run(1, EvolvingOptions()).grants)
    for played in run.played.values():
        if played.job.kind == "A":
            assert played.end_s - played.start_s == pytest.approx(267)
    values = evolving_metrics(run)
    held = sum(played.core_s for played in run.played.values()) + run.lost_core_s
    assert (values["cpu_utilization"] or 0) * (values["makespan_s"] or 0) * 120 == pytest.approx(held)


def test_shrinkable_jobs_take_longer_and_hold_less() -> None:
    options = EvolvingOptions(shrinkable="L,M")
    run = simulate_evolving(dynamic_esp(1), options)
    assert run.shrinks
    assert len(run.grants) > len(_run(1, EvolvingOptions()).grants)
    for played in run.played.values():
        if played.job.kind in "LM":
            # Linear speedup: the core-seconds stay.
            assert played.core_s == pytest.approx(played.static_cores * played.job.static_s)
            assert played.cores >= played.static_cores // 2


def _on_one_node(cores: int, *jobs: EvolvingJob, **options: Any) -> EvolvingRun:
    workload = EvolvingWorkload(name="t", nodes=1, cores_per_node=cores, jobs=jobs)
    return simulate_evolving(workload, EvolvingOptions(**options))


def test_a_shrunk_job_that_is_granted_cores_ends_by_what_is_left_of_it() -> None:
    own: dict[str, Any] = {"kind": "G", "user": "g", "arrival_s": 0.0}
    g = EvolvingJob(
        id="G", cores=8, static_s=1000.0, asks_s=(500.0,), more_cores=2, dynamic_s=800.0, rest=0.8, **own
    )
    f = EvolvingJob(
        id="F", cores=2, static_s=300.0, asks_s=(100.0,), more_cores=4, rest=0.5, **(own | {"kind": "F"})
    )
    run = _on_one_node(10, g, f, shrinkable="G")
    assert [(time_s, grant.request.job) for time_s, grant in run.grants] == [(100.0, "F"), (500.0, "G")]
    # 4 of 8 cores from 100 s: until 1900 s; 0.8 of the 1400 s that are left at 500 s.
    assert run.played["G"].end_s == pytest.approx(500 + 0.8 * 1400)


def test_a_job_that_was_stopped_and_granted_again_is_satisfied_once() -> None:
    own: dict[str, Any] = {"arrival_s": 0.0, "cores": 4}
    low = EvolvingJob(
        id="L", kind="L", user="l", static_s=1000.0, asks_s=(10.0,), more_cores=2, rest=0.6, **own
    )
    first = EvolvingJob(
        id="F", kind="F", user="f", static_s=300.0, asks_s=(100.0,), more_cores=4, rest=0.5, **own
    )
    run = _on_one_node(10, low, first, preemptible="L")
    assert [grant.request.job for _, grant in run.grants] == ["L", "F", "L"]
    figures = dynamic_figures(run)
    assert (figures["asked"], figures["satisfied"], figures["granted_cores"]) == (2, 2, 6)


def test_quadflow_phases() -> None:
    """Prabhakaran: figure 7 Quadflow."""
    plate, cylinder = QUADFLOW
    for case, saved in ((plate, 0.17), (cylinder, 0.33)):
        growth = 2.0 if case is plate else 0.84 / (0.84 - saved)
        phases = quadflow_phases(case, growth)
        assert len(phases) == case.adaptations + 1
        static = sum(phase.seconds for phase in phases)
        dynamic = sum(phase.seconds for phase in phases[:-1]) + phases[-1].on(32, case.threshold)
        wide = sum(phase.on(32, case.threshold) for phase in phases)
        assert static == pytest.approx(case.hours * 3600)
        assert 1 - dynamic / static == pytest.approx(saved, abs=0.005)
        # Up to the last adaptation 32 processes bring nothing (section IV-A).
        assert wide == pytest.approx(dynamic)


def test_quadflow_runs_ask_only_above_their_threshold() -> None:
    workload = quadflow(1)
    assert workload == quadflow(1)
    runs = [job for job in workload.jobs if job.user == "quadflow"]
    assert {bool(job.asks_s) for job in runs} == {True, False}
    served, refused = (
        simulate_evolving(workload, EvolvingOptions(requests="serve" if serves else "refuse"))
        for serves in (True, False)
    )
    assert served.grants
    assert not refused.grants
    for _, grant in served.grants:
        played = served.played[grant.request.job]
        assert played.cores == 32
        assert played.end_s - played.start_s < played.job.static_s


def test_a_result_says_how_many_cores_were_kept() -> None:
    assert EvolvingOptions(serve_by="partition").settings()["dynamic_partition"] == 8
    assert EvolvingOptions().settings()["dynamic_partition"] is None


def test_options_that_do_not_fit_are_refused() -> None:
    with pytest.raises(OptionError, match="partition"):
        EvolvingOptions(dynamic_partition=4)
    with pytest.raises(OptionError, match="nobody"):
        EvolvingOptions(serve_by="nobody")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="120 is not from 1 to 119"):
        simulate_evolving(
            WORKLOADS["dynamic-esp"](0), EvolvingOptions(serve_by="partition", dynamic_partition=120)
        )
