"""Where work is counted, branch and bound settles small auctions: as HiGHS does, and before it is asked."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from random_snapshots import random_snapshot
from support.build import ALONE, snapshot

from aucsched import Job, Request, Resources, RunningJob, Snapshot, Status, winners
from aucsched.auction import attempt, strategies
from aucsched.auction.options import StepOptions
from aucsched.auction.step import take_step
from aucsched.models.search import proving

MODELS = ["aucsched1", "aucsched2", "aucsched3"]
Worth = tuple[Fraction, float, bool]


def dealt(seed: int) -> Snapshot:
    """Return jobs whose cores may lie on their nodes in many ways, more of them than there is room for."""
    rng = random.Random(seed)
    nodes = [{"name": f"n{place}", "cores": rng.randint(2, 5)} for place in range(rng.randint(2, 5))]
    jobs = []
    for _ in range(rng.randint(2, 7)):
        count = rng.randint(1, 2)
        cores = rng.randint(count, 4 * count)
        jobs.append({"nodes": count, "cores": cores, "priority": rng.choice([1, 2, 3, 10**9])})
    return snapshot(nodes, jobs)


def beside_running(seed: int) -> Snapshot:
    """Return such jobs behind two wide ones, for which nodes are kept until running jobs end."""
    rng, cluster = random.Random(seed), dealt(seed)
    held = {
        one.name: {one.name: Resources(cores=1)} for one in rng.sample(cluster.nodes, len(cluster.nodes) - 1)
    }
    ends = [(cluster.time or 0.0) + rng.choice([60, 120]) for _ in held]
    running = (
        RunningJob(id=name, nodes=held[name], end_time=end) for name, end in zip(held, ends, strict=True)
    )
    request = Request(nodes=len(cluster.nodes), cores_per_node=2)
    # Of two alike either may win, and another reservation follows.
    ranked = ((f"W{place}", 10**10 - place) for place in range(2))
    wide = (Job(id=name, priority=rank, request=request, time_limit_s=60) for name, rank in ranked)
    jobs = (replace(job, time_limit_s=rng.choice([30, 90, 300])) for job in cluster.jobs)
    nodes = tuple(
        replace(one, free=Resources(cores=one.free.cores - (one.name in held))) for one in cluster.nodes
    )
    return replace(cluster, nodes=nodes, jobs=(*wide, *jobs), running=tuple(running))


def worth_of(cluster: Snapshot, model: Any, reserve: int = 0, **options: Any) -> Worth:
    """Return what an award is worth, by priority and by preference, and whether that is proved."""
    options |= {"reserve": reserve, "award_alone": not reserve, "promise": "none" if reserve else None}
    told = StepOptions(model=model, strategy="exact", **{"work_limit": 50, **options})
    best = take_step(cluster, told).best
    if best is None:
        return Fraction(0), 0.0, True
    return best.answer.value[0], round(best.answer.value[1], 7), best.proved


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What HiGHS is given."""
    found: list[Any] = []
    solve: Any = vars(strategies)["_solved"]

    def counted(*given: Any) -> Any:
        found.append(given)
        return solve(*given)

    monkeypatch.setattr(strategies, "_solved", counted)
    return found


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("made", "reserve"), [(dealt, 0), (random_snapshot, 0), (beside_running, 2)])
def test_an_award_is_worth_what_highs_finds(
    made: Any, reserve: int, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle, settled = vars(strategies)["_proved"], []

    def counted(instance: Any) -> Any:
        settled.append(result := settle(instance))
        return result

    for seed in range(30):
        cluster = made(seed)
        with monkeypatch.context() as patched:
            patched.setattr(strategies, "_proved", counted)
            found = worth_of(cluster, model, reserve)
        with monkeypatch.context() as patched:
            patched.setattr(strategies, "_proved", lambda _: None)
            asked = worth_of(cluster, model, reserve)
        if asked[2]:
            assert found == asked, seed
        assert found >= asked, seed
    # Of random jobs most start without an auction; those of AUCSCHED1 often ask for memory by core.
    least = {dealt: 25, beside_running: 15}.get(made, 2 if model == "aucsched1" else 8)
    assert sum(one is not None for one in settled) >= least


@pytest.mark.parametrize("model", MODELS)
def test_highs_is_not_asked_for_what_is_settled(
    model: Any, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(20):
        assert worth_of(dealt(seed), model)[2]
    assert not asked
    worth_of(dealt(1), model, weights="paper")
    assert len(asked) == 1
    # The time of a clock alone is HiGHS's; beside one that has hardly begun, steps count.
    assert worth_of(dealt(1), model, time_limit_s=60)[2]
    assert len(asked) == 1
    assert worth_of(dealt(1), model, work_limit=None, time_limit_s=60)[2]
    assert len(asked) == 2
    monkeypatch.setattr(proving, "_FIRST_LOOKS", 1)
    monkeypatch.setattr(proving, "_LOOKS", 1)
    assert worth_of(dealt(1), model)[2]
    assert len(asked) == 3


def test_jobs_that_counts_choose_are_placed_from_the_hardest_on() -> None:
    """By priority the first job takes the node that has enough GPUs for the second."""
    nodes = [{"name": f"n{gpus}", "cores": 8, "gres": {"gpu": gpus}} for gpus in (3, 1)]
    jobs = [{"nodes": 1, "cores_per_node": 8, "gres_per_node": {"gpu": gpus}} for gpus in (1, 3)]
    options = StepOptions(work_limit=1, **ALONE)
    step = take_step(snapshot(nodes, jobs), options)
    window, cluster = step.decision.window, step.cluster
    found = attempt.placed_by_counts(window, cluster, options)
    assert found is not None
    assert [place is not None and place.nodes.tolist() for place in found[1]] == [[1], [0]]
    assert step.decision.selected == {"J1", "J2"}
    # Their auction begins with these places: without them a limit that comes at once leaves one out.
    bids = attempt.bids_of_step(window, cluster, options, None, None)
    assert len(attempt.starts_of(bids, cluster, options)[1]) == 2


def test_a_limit_counts_all_cores_of_a_job_also_those_that_are_dealt() -> None:
    nodes = [{"name": name, "cores": 8} for name in ("n1", "n2")]
    limits = [{"name": "all", "jobs": {}, "max": {"cores": 9}}]
    jobs = [
        {"nodes": 2, "cores": 6, "priority": 3},
        {"nodes": 2, "cores": 5, "priority": 2},
        {"cores": 3, "priority": 1},
    ]
    cluster = snapshot(nodes, jobs, limits=limits)
    assert worth_of(cluster, "aucsched1")[0] == 4


def test_winners_of_a_settled_auction_have_no_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    bids = [
        ("ann", 3, {"a": 1}),
        ("bob", 2, {"a": 1, "b": 1}),
        ("cid", 2, {"b": 1}),
        ("dan", 4, {"a": 1, "b": 1}),
    ]
    monkeypatch.setattr("aucsched.models.winners.determine.solve_lexicographic", None)
    found = winners(bids, {"a": 1, "b": 1}, strategy="exact", work_limit=1, second=[1, 1, 1, 1])
    assert (found.chosen, found.value, found.bound, found.gap) == ((0, 2), 5, 5, 0.0)
    assert found.proved
    assert found.status is Status.OPTIMAL
    with pytest.raises(TypeError, match="not callable"):
        winners(bids, {"a": 1, "b": 1}, strategy="exact", time_limit_s=60)


def test_awards_to_which_no_cores_can_be_dealt_are_cut_off(
    asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any two of three jobs can hold their cores beside each other, all three cannot."""
    nodes = [{"name": name, "cores": 3} for name in ("n1", "n2")]
    cluster = snapshot(nodes, [{"nodes": 2, "cores": 3, "priority": 1} for _ in range(3)])
    # Without tighter rows only the cut tells: six cores for nine.
    monkeypatch.setattr(proving, "strengthened", lambda program, *_: program)
    assert worth_of(cluster, "aucsched1")[0] == 2
    assert worth_of(replace(cluster, jobs=cluster.jobs[:2]), "aucsched1")[0] == 2
    assert not asked
