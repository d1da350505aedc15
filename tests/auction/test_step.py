"""Properties of whole steps: valid, complete, near the best, indifferent to what should not matter."""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_snapshots import random_snapshot
from support.build import ALONE, crowded, snapshot, tiny
from support.optimum import best_priority_sum, fits_alone

from aucsched import AwardError, OptionError, Schedule, Snapshot, schedule
from aucsched.auction.check import check_schedule
from aucsched.auction.explain.comparison import first_fit_by_priority
from aucsched.auction.options import MODELS, StepOptions
from aucsched.auction.queue import in_order
from aucsched.auction.reasons import refusals
from aucsched.auction.step import take_step
from aucsched.cluster.nodes import Resources
from aucsched.cluster.schedule import Award, BidClass, BidSummary, Reason, Refusal
from aucsched.formats.native.schedule_file import parse_schedule

SEEDS = st.integers(0, 10**6)


def test_forty_tiny_snapshots_reach_95_and_97_percent_of_free_placement() -> None:
    # AUCSCHED1 under its own caps on bids.
    least: dict[Any, float] = {"aucsched1": 0.95, "aucsched2": 0.97, "aucsched3": 0.97}
    options: dict[str, Any] = {"aucsched1": {**ALONE, "time_limit_s": 60}}
    best, reached = 0.0, dict.fromkeys(least, 0.0)
    for seed in range(40):
        cluster = tiny(seed)
        limit = best_priority_sum(cluster)
        best += limit
        for model in least:
            result = schedule(cluster, model=model, **options.get(model, {"reserve": 0}))
            assert result.objective.priority <= limit
            assert model != "aucsched1" or result.sizes.bids <= 150
            reached[model] += float(result.objective.priority)
    assert all(reached[model] >= share * best for model, share in least.items()), (best, reached)


@given(SEEDS, st.sampled_from(MODELS), st.sampled_from(["lexicographic", "paper"]))
@settings(max_examples=250, deadline=None)
def test_every_award_is_valid_and_every_job_in_one_list(seed: int, model: Any, weights: Any) -> None:
    cluster = random_snapshot(seed)
    result = schedule(cluster, model=model, weights=weights, reserve=0)
    check_schedule(cluster, result)
    assert result.objective.bound is None or result.objective.bound >= float(result.objective.priority) - 1e-6
    assert result.objective.priority == sum(
        job.priority for job in cluster.jobs if job.id in {award.job for award in result.started}
    )


@given(SEEDS)
@settings(max_examples=60, deadline=None)
def test_an_award_is_between_first_fit_and_the_best_and_no_bid_means_no_start(seed: int) -> None:
    cluster = random_snapshot(seed)
    result = schedule(cluster, reserve=0)
    assert result.objective.priority >= first_fit_by_priority(cluster, 100).priority
    assert float(result.objective.priority) <= best_priority_sum(cluster) * (1 + 1e-9) + 1e-6
    jobs = {job.id: job for job in cluster.jobs}
    for refusal in result.pending:
        if refusal.reason in {Reason.NO_FIT, Reason.INELIGIBLE, Reason.RESERVATION}:
            assert not fits_alone(cluster, jobs[refusal.job]), refusal


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_the_order_of_jobs_in_the_file_does_not_matter_without_ties(seed: int) -> None:
    cluster = tiny(seed)
    jobs = [_with_priority(job, 100 + place) for place, job in enumerate(cluster.jobs)]
    turned = random.Random(seed).sample(jobs, len(jobs))
    orders = [_with_jobs(cluster, order) for order in (jobs, turned)]
    counted = [schedule(order, work_limit=40) for order in orders]
    timed = [schedule(order, time_limit_s=60) for order in orders]
    assert _without_seconds(counted[0]) == _without_seconds(counted[1])
    # By the clock one of several awards that are worth the same is found: which, no clock promises.
    assert timed[0].objective.priority == timed[1].objective.priority
    assert timed[0].objective.preference == pytest.approx(timed[1].objective.preference)


def _with_priority(job: Any, priority: int) -> Any:
    return dataclasses.replace(job, priority=priority)


def _with_jobs(cluster: Snapshot, jobs: list[Any]) -> Snapshot:
    return dataclasses.replace(cluster, jobs=tuple(jobs))


def _without_seconds(result: Schedule) -> dict[str, Any]:
    document = result.to_dict()
    del document["seconds"]
    for one in document["window"]["attempts"]:
        del one["seconds"]
    return document


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_the_same_input_gives_the_same_schedule(seed: int) -> None:
    # Long enough for a proof, also on a busy machine: one that the clock cuts short says less.
    cluster = random_snapshot(seed)
    first, second = (schedule(cluster, seed=3, time_limit_s=600) for _ in range(2))
    assert _without_seconds(first) == _without_seconds(second)


# What the independent check must catch: one broken award for each rule.

CLUSTER: dict[str, Any] = {
    "nodes": [
        {
            "name": "n[1-4]",
            "cores": 8,
            "memory_mib": 800,
            "gres": {"gpu:a": 2, "gpu:b": 2},
            "features": ["x"],
        },
        {"name": "n5", "cores": 8, "state": "drained", "partitions": ["p"]},
    ],
}


def _award(cluster: Snapshot, nodes: dict[str, Resources]) -> Schedule:
    base = schedule(cluster)
    award = Award(job="J1", nodes=nodes, bid=BidSummary(bid_class=BidClass.A, level=None, preference=0.0))
    return dataclasses.replace(base, started=(award,), pending=())


def use(cores: int, memory: int | None = None, **gres: int) -> Resources:
    return Resources(
        cores=cores, memory_mib=memory, gres={name.replace("_", ":"): count for name, count in gres.items()}
    )


BROKEN = [
    ({"cores": 4}, {"n1": use(3)}, "cores instead of 4"),
    ({"cores": 9}, {"n1": use(9)}, "9 cores are awarded"),
    ({"cores": 4}, {"n5": use(4)}, "drained"),
    ({"nodes": 2, "cores": 4}, {"n1": use(4)}, "1 nodes"),
    ({"nodes": 2, "cores_per_node": 2}, {"n1": use(2), "n2": use(3)}, "cores a node"),
    ({"cores": 4, "min_cores_per_node": 2}, {"n1": use(1), "n2": use(3)}, "1 cores on a node"),
    ({"cores": 4, "cores_per_task": 2}, {"n1": use(1), "n2": use(3)}, "split"),
    ({"nodes": 2, "cores": 4, "contiguous": True}, {"n1": use(2), "n3": use(2)}, "contiguous"),
    ({"cores": 4, "required_nodes": "n2"}, {"n1": use(4)}, "required"),
    ({"cores": 4, "excluded_nodes": "n1"}, {"n1": use(4)}, "excluded"),
    ({"cores": 4, "features": ["y"]}, {"n1": use(4)}, "feature"),
    ({"cores": 4, "partition": "p"}, {"n1": use(4)}, "partition"),
    ({"cores": 4, "memory_mib_per_core": 10}, {"n1": use(4, 30)}, "MiB"),
    ({"cores": 4, "exclusive": True}, {"n1": use(4)}, "not all"),
    ({"cores": 4, "gres_per_node": {"gpu": 1}}, {"n1": use(4)}, "0 gpu"),
    (
        {"nodes": 2, "cores": 4, "gres_per_node": {"gpu": 1}},
        {"n1": use(2, gpu_a=1), "n2": use(2, gpu_b=1)},
        "mixes",
    ),
    ({"cores": 4, "gres_total": {"gpu": 3}}, {"n1": use(4, gpu_a=2)}, "2 gpu"),
    ({"cores": 4, "gres_per_node": {"gpu:a": 1}}, {"n1": use(4, gpu_a=3)}, "gpu:a"),
    ({"cores": 4}, {"n1": use(4, gpu_a=1)}, "did not ask"),
]


@pytest.mark.parametrize(("job", "nodes", "message"), BROKEN)
def test_the_check_catches_every_broken_rule(
    job: dict[str, Any], nodes: dict[str, Resources], message: str
) -> None:
    cluster = snapshot(CLUSTER["nodes"], [job])
    with pytest.raises(AwardError, match=message):
        check_schedule(cluster, _award(cluster, nodes))


def test_the_check_catches_a_job_in_no_list_and_one_in_both() -> None:
    cluster = snapshot(CLUSTER["nodes"], [{"cores": 1}])
    result = schedule(cluster, reserve=0)
    with pytest.raises(AwardError, match="J1 is listed 0 times"):
        check_schedule(cluster, dataclasses.replace(result, started=()))
    refusal = Refusal(job="J1", reason=Reason.OUTBID, detail="")
    with pytest.raises(AwardError, match="J1 is listed 2 times"):
        check_schedule(cluster, dataclasses.replace(result, pending=(refusal,)))


# Reasons.


def reasons(result: Schedule) -> dict[str, str]:
    return {refusal.job: refusal.reason.value for refusal in result.pending}


@pytest.mark.parametrize(
    ("ahead", "reason"),
    [
        ({"cores": 1, "gres_total": {"gpu": 2}}, "ineligible"),
        ({"cores": 9}, "ineligible"),
        ({"cores": 1, "user": "ann"}, "limit"),
        ({"cores": 1, "user": "eve", "licenses": {"one": 1}}, "no_fit"),
    ],
)
@pytest.mark.parametrize("reserve", [0, 1])
def test_jobs_that_no_award_could_start_take_no_place_in_the_window(
    ahead: dict[str, Any], reason: str, reserve: int
) -> None:
    nodes = [{"name": "n1", "cores": 4, "gres": {"gpu": 1}}, {"name": "n2", "cores": 4, "free_cores": 0}]
    limit = {"name": "one each", "per": "user", "max": {"jobs": 1}}
    running = [{"id": "r", "user": "ann", "nodes": {"n2": {"cores": 4}}}]
    licenses = {"one": {"total": 1, "free": 0}}
    cluster = snapshot(
        nodes, [*[ahead] * 6, {"cores": 4, "user": "bob"}], limits=[limit], running=running, licenses=licenses
    )
    result = schedule(cluster, window=1, promise="none", reserve=reserve, award_alone=True)
    assert [award.job for award in result.started] == ["J7"]
    assert reasons(result) == {f"J{number}": reason for number in range(1, 7)}


def test_reasons_that_are_known_are_given_when_the_time_is_up() -> None:
    wants: dict[str, Any] = {"cores": 1, "licenses": {"one": 1}}
    jobs: list[dict[str, Any]] = [{"cores": 9}, wants, {"cores": 4}, {"cores": 1}]
    cluster = snapshot([{"name": "n", "cores": 4}], jobs, licenses={"one": {"total": 1, "free": 0}})
    step = take_step(cluster, StepOptions(window=1, promise="none", reserve=0))
    late = refusals(step.state, step.queue, step.decision, lambda: True)
    found = {one.job: (one.reason.value, one.detail) for one in late}
    assert {job: reason for job, (reason, _) in found.items()} == {
        "J1": "ineligible",
        "J2": "no_fit",
        "J4": "window",
    }
    assert "no time was left" in found["J4"][1]


def test_each_reason_names_what_stood_in_the_way() -> None:
    jobs: list[dict[str, Any]] = [
        {"cores": 6},
        {"cores": 4},
        {"cores": 99},
        {"cores": 1, "partition": "nowhere"},
        {"cores": 1, "features": ["quantum"]},
        {"cores": 1, "hold": "JobHeldUser"},
        {"cores": 1, "priority": 0},
        {"cores": 1, "unsupported": ["burst buffer"]},
        {"cores": 1, "user": "bob", "required_nodes": "n2"},
        {"cores": 3, "priority": 1},
        {"cores": 1, "hold": "PartitionConfig"},
        {"cores": 1, "hold": "RequeueHold"},
        {"cores": 1, "hold": "Dependency", "priority": 0},
    ]
    reserved = {
        "name": "r",
        "nodes": "n2",
        "start": "2026-11-20T09:00:00Z",
        "end": "2026-11-20T19:00:00Z",
        "users": ["ann"],
    }
    cluster = snapshot(
        [{"name": "n1", "cores": 8}, {"name": "n2", "cores": 8}], jobs, reservations=[reserved]
    )
    result = schedule(cluster, window=3, reserve=0)
    assert reasons(result) == {
        "J2": "outbid",
        "J3": "ineligible",
        "J4": "ineligible",
        "J5": "ineligible",
        "J6": "held",
        "J7": "held",
        "J8": "not_expressible",
        "J9": "reservation",
        "J10": "window",
        "J11": "not_eligible",
        "J12": "held",
        "J13": "held",
    }
    details = {refusal.job: refusal.detail for refusal in result.pending}
    assert details["J2"] == "outbid by J1 on n1"
    assert details["J3"] == "it asks for 99 cores, there are 16"
    assert "nowhere" in details["J4"]
    assert "quantum" in details["J5"]
    assert details["J6"] == "JobHeldUser"
    assert (details["J7"], details["J13"]) == ("priority 0", "priority 0; Dependency")
    assert details["J11"] == "PartitionConfig"
    assert "burst buffer" in details["J8"]


def test_a_long_queue_of_equal_jobs_is_explained_in_time_that_grows_with_its_length() -> None:
    count = 16_000
    cluster = snapshot([{"name": "n1", "cores": 4}], [{"cores": 2, "priority": 1}] * count)
    began = time.process_time()
    found = schedule(cluster, window=count, promise="none", reserve=0, work_limit=0)
    # Each job looked for those ahead of it among all: that took 10 s.
    assert time.process_time() - began < 6
    ahead = ", ".join(f"J{number}" for number in range(1, 9))
    why = "they ask for the same, and no more of them fit at once"
    assert found.pending[-1].detail == f"outbid by {ahead} and {count - 9} more: {why}"
    assert {refusal.job: refusal.detail for refusal in found.pending}["J3"] == f"outbid by J1, J2: {why}"


def test_jobs_that_ask_alike_for_different_times_stand_for_each_other_where_nothing_is_kept() -> None:
    jobs = [{"cores": 8, "time_limit_s": 60 + place} for place in range(150)]
    found = schedule(snapshot([{"name": "n1", "cores": 8}], jobs), window=200, promise="none", reserve=0)
    details = {refusal.job: refusal.detail for refusal in found.pending}
    assert details["J3"] == "outbid by J1, J2: they ask for the same, and no more of them fit at once"


def test_licences_are_shared_by_the_whole_cluster() -> None:
    jobs = [
        {"cores": 1, "licenses": {"matlab": 2}},
        {"cores": 1, "licenses": {"matlab": 2}},
        {"cores": 1, "licenses": {"matlab": 9}},
    ]
    cluster = snapshot([{"name": "n1", "cores": 8}], jobs, licenses={"matlab": {"total": 9, "free": 3}})
    result = schedule(cluster, reserve=0)
    assert reasons(result) == {"J2": "outbid", "J3": "no_fit"}
    assert result.pending[0].detail == "outbid by J1"
    for asked, words in ((1, "1 matlab licence"), (2, "2 matlab licences")):
        jobs = [{"cores": 1, "licenses": {"matlab": asked}}]
        cluster = snapshot([{"name": "n1", "cores": 8}], jobs, licenses={"matlab": {"total": 9, "free": 0}})
        assert schedule(cluster, reserve=0).pending[0].detail == f"it asks for {words}, 0 free"


@pytest.mark.parametrize("memory", [10**12, 5 * 10**11])
def test_the_largest_memory_that_a_node_can_have_is_a_limit(memory: int) -> None:
    nodes = [{"name": "n1", "cores": 8, "memory_mib": memory}]
    jobs = [{"cores": 1, "memory_mib_per_node": memory}, {"cores": 1, "memory_mib_per_node": 1}]
    assert reasons(schedule(snapshot(nodes, jobs), reserve=0)) == {"J2": "outbid"}


# Timeouts.


def test_a_timeout_halves_the_window_while_there_is_time() -> None:
    """Soner: time limit, window halved (3.2)."""
    # Seconds of this process: other work on the machine must not eat the time for a second attempt.
    result = schedule(crowded(), strategy="exact", time_limit_s=3.0, reserve=0, clock=time.process_time)
    sizes = [one.size for one in result.attempts]
    assert sizes == [60 // 2**place for place in range(len(sizes))]
    assert len(sizes) > 1
    assert result.window in sizes
    assert result.objective.priority >= max(one.priority for one in result.attempts)
    # Optimal is said of the window that was asked for only, and the next step looks at half of it.
    assert result.status == "feasible"
    # Half of the 60 jobs, not of a window of 100: that would be all of them again.
    assert result.next_window == 30
    assert result.to_dict()["window"]["next"] == 30


def test_a_work_limit_halves_the_window_until_a_proof() -> None:
    result = schedule(crowded(), strategy="exact", work_limit=0, reserve=0)
    sizes = [one.size for one in result.attempts]
    assert sizes[:3] == [60, 30, 15]
    # The last window is one whose best priority sum is proved; the proof of its preference may be open.
    only = dataclasses.replace(crowded(), jobs=in_order(crowded().jobs)[: sizes[-1]])
    small = schedule(only, strategy="exact", time_limit_s=60, on_timeout="incumbent", reserve=0)
    assert result.attempts[-1].priority == small.objective.priority
    assert result.next_window == 30


def test_a_proof_leaves_the_next_window_as_it_was_asked_for() -> None:
    nodes = [{"name": "n[1-2]", "cores": 4}]
    for strategy in ("exact", "anytime"):
        result = schedule(snapshot(nodes, [{"cores": 4}] * 3), strategy=strategy, window=7)
        assert (result.status, result.next_window) == ("optimal", 7)
    assert schedule(snapshot(nodes, [{"cores": 4}] * 3), strategy="greedy", window=7).next_window == 7


def test_no_step_takes_longer_than_its_limit_whatever_it_does() -> None:
    """The clock counts 10 ms each time it is asked: every phase has to ask, and to end when time is up."""
    searches: list[dict[str, Any]] = [{}, {"strategy": "exact"}]
    promises: list[Mapping[str, Any]] = [{}, ALONE, {"reserve": 3}, {"promise": "none", "reserve": 3}]
    for options in ({**search, **promise} for search in searches for promise in promises):
        asked = [0.0]

        def clock(asked: list[float] = asked) -> float:
            asked[0] += 0.01
            return asked[0]

        result = schedule(crowded(), time_limit_s=1.0, clock=clock, **options)
        assert result.seconds.total <= 1.5, options


def test_an_incumbent_is_started_after_one_attempt() -> None:
    cluster = crowded()
    result = schedule(cluster, strategy="exact", time_limit_s=0.05, on_timeout="incumbent")
    assert [one.size for one in result.attempts] == [60]
    assert result.status == "feasible"
    assert result.objective.priority >= first_fit_by_priority(cluster, 100).priority
    assert result.objective.bound is None or result.objective.bound >= result.objective.priority


def test_discard_starts_nothing_without_a_proof() -> None:
    """Soner: time limit, window halved (3.2)."""
    result = schedule(crowded(), time_limit_s=0.05, on_timeout="discard", reserve=0)
    assert result.status == "no_solution"
    assert result.started == ()
    assert {refusal.reason for refusal in result.pending} <= {Reason.WINDOW, Reason.NO_FIT}


@pytest.mark.parametrize("model", ["ipsched", "aucsched1", "aucsched3"])
def test_what_highs_ends_within_its_tolerance_is_no_timeout(model: Any) -> None:
    """Soner, section 3.2: only "if the time limit is exceeded … none of the jobs are started"."""
    nodes = [{"name": "n[1-4]", "cores": 2}]
    jobs = [{"nodes": 2, "cores": 2, "priority": 4_294_901_760 - place} for place in range(3)]
    options: dict[str, Any] = {"model": model, "weights": "paper", "work_limit": 5, "reserve": 0}
    result = schedule(snapshot(nodes, jobs), **options, on_timeout="discard")
    assert len(result.started) >= 2
    assert [one.size for one in result.attempts] == [3]
    # What a tolerance of 4 units cannot tell apart is not called proved (docs/decisions/0058).
    assert result.status == "feasible"
    assert len(schedule(snapshot(nodes, jobs), **options).attempts) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"model": "aucsched9"},
        {"window": 0},
        {"max_bids": -1},
        {"max_bids_per_job": True},
        {"time_limit_s": float("nan")},
        {"time_limit_s": 0},
        {"weights": "float"},
        {"on_timeout": "panic"},
        {"objective": "fame"},
        {"strategy": "luck"},
        {"seed": -1},
        {"reserve": -1},
        {"preference_table": "other"},
    ],
)
def test_option_values_that_cannot_be_used_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        schedule(snapshot([{"name": "n1", "cores": 1}], []), **options)


@pytest.mark.parametrize("name", ["max_bids", "max_bids_per_job", "bid_order", "keep_whole"])
def test_what_says_how_jobs_bid_is_refused_where_none_does(name: str) -> None:
    given: dict[str, Any] = {name: {"bid_order": "figure-4.5", "keep_whole": True}.get(name, 10)}
    with pytest.raises(OptionError, match=f"{name}: ipsched places without bids"):
        schedule(snapshot([{"name": "n1", "cores": 1}], []), model="ipsched", **given)
    assert schedule(snapshot([{"name": "n1", "cores": 1}], []), model="ipsched", preset="plugin")


def test_an_empty_queue_is_an_empty_schedule() -> None:
    result = schedule(snapshot([{"name": "n1", "cores": 1}], []))
    assert (result.status, result.started, result.pending) == ("optimal", (), ())


def test_priority_cores_prefers_the_wide_job() -> None:
    jobs = [{"cores": 1, "priority": 10}, {"cores": 8, "priority": 9}]
    cluster = snapshot([{"name": "n1", "cores": 8}], jobs)
    assert [award.job for award in schedule(cluster, reserve=0).started] == ["J1"]
    result = schedule(cluster, objective="priority_cores", reserve=0)
    assert [award.job for award in result.started] == ["J2"]
    assert result.objective.priority == 72


def test_no_job_is_awarded_more_memory_than_an_amount_may_be() -> None:
    jobs: list[dict[str, Any]] = [
        {"cores": 4, "memory_mib_per_core": 10**12},
        {"nodes": 1, "cores": 2, "memory_mib_per_core": 10**12, "exclusive": True},
        {"cores": 1, "memory_mib_per_core": 10**12},
    ]
    model: Any
    for model in MODELS:
        result = schedule(snapshot([{"name": "n1", "cores": 8}], jobs), model=model, reserve=0)
        assert reasons(result) == {"J1": "ineligible", "J2": "ineligible"}


def test_what_steers_the_search_is_an_option() -> None:
    cluster = tiny(3)
    plain = schedule(cluster, work_limit=5)
    steered = schedule(cluster, work_limit=5, search_parameters="moves=1:near=0.02")
    assert steered.objective.priority == plain.objective.priority
    assert "search_parameters" not in plain.to_dict()
    assert steered.to_dict()["search_parameters"] == {"moves": 1, "near": 0.02}
    assert parse_schedule(steered.to_json().encode()).to_json() == steered.to_json()
    # A schedule without awards can be in a set, as before it had parameters.
    idle = Snapshot(nodes=cluster.nodes)
    assert len({schedule(idle), schedule(idle, search_parameters="moves=1")}) == 2
    parameters = {"moves": 1, "near": 0.02}
    assert schedule(cluster, work_limit=5, search_parameters=parameters) == steered
    options = StepOptions(search_parameters=parameters)
    parameters["moves"] = 9
    # A record is frozen, whatever becomes of the mapping.
    assert hash(options) == hash(StepOptions(search_parameters="moves=1:near=0.02"))
    for text, says in (
        ("move=1", "search_parameters: the search has no parameter move"),
        ("moves", "search_parameters: 'moves' is not NAME=NUMBER"),
    ):
        with pytest.raises(OptionError, match=says):
            schedule(cluster, search_parameters=text)
    with pytest.raises(OptionError, match="only strategy anytime searches"):
        schedule(cluster, strategy="exact", search_parameters="moves=1")
