"""The smallest change that starts a job: against every set of nodes, and by scheduling the changed job."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_snapshots import random_snapshot
from support.build import snapshot, tree
from support.fits import fits_somewhere, with_awards

from aucsched import Job, Request, Snapshot, Span, schedule
from aucsched.auction.explain.job_changes import Change, ChangeKind, ChangeSearch, FreeRoom, kinds_of
from aucsched.auction.options import StepOptions
from aucsched.auction.state import state_of
from aucsched.auction.step import take_step

NODES: list[dict[str, Any]] = [
    {"name": "n1", "cores": 8, "gres": {"gpu": 2}},
    {"name": "n2", "cores": 8, "free_cores": 2, "gres": {"gpu": 2}, "free_gres": {"gpu": 1}},
    {"name": "n3", "cores": 8, "gres": {"gpu": 2}, "free_gres": {"gpu": 1}},
    {"name": "n4", "cores": 8, "free_cores": 0, "gres": {"gpu": 2}},
    {"name": "n5", "cores": 8, "gres": {"gpu": 2}, "free_gres": {"gpu": 0}},
    {"name": "n6", "cores": 8, "free_cores": 5, "gres": {"gpu": 2}, "free_gres": {"gpu": 0}},
]


def changes(cluster: Snapshot, **options: Any) -> tuple[Change, ...]:
    """Return the changes that would start the cluster's last job beside those that start."""
    step = take_step(cluster, StepOptions(**{"work_limit": 20, **options})).with_bids()
    job = cluster.jobs[-1]
    awards = [award for award in step.schedule.started if award.job != job.id]
    return ChangeSearch(FreeRoom(step.state, awards, step.cluster.guards), job).found()


def tried(
    job: dict[str, Any], *before: dict[str, Any], **members: Any
) -> list[tuple[tuple[str, ...], float]]:
    found = changes(snapshot(NODES, [*before, job], **members))
    return [(change.words, round(change.given_up, 3)) for change in found]


def test_fewer_nodes_cores_and_gpus_are_the_most_that_fit() -> None:
    assert tried({"nodes": 5, "cores_per_node": 5}) == [
        (("4 nodes instead of 5",), 0.2),
        (("2 cores a node instead of 5",), 0.6),
    ]
    assert tried({"cores": 40}) == [(("31 cores instead of 40",), 0.225)]
    assert tried({"nodes": 3, "cores_per_node": 1, "gres_per_node": {"gpu": 2}}) == [
        (("1 gpu a node instead of 2",), 0.5),
        (("1 node instead of 3",), 0.667),
    ]


def test_cores_stay_whole_tasks_and_keep_to_the_nodes() -> None:
    # 3 nodes of 8 free cores: 4 nodes would hold 8 + 8 + 8 + 4 in tasks of 2.
    assert tried({"nodes": 4, "cores": 32, "cores_per_task": 2}) == [
        (("28 cores instead of 32",), 0.125),
        (("3 nodes instead of 4", "24 cores instead of 32"), 0.25),
    ]
    assert tried({"cores": 32, "min_cores_per_node": 8}) == [(("24 cores instead of 32",), 0.25)]


def test_conditions_on_the_nodes_cost_nothing() -> None:
    assert tried({"nodes": 3, "cores_per_node": 4, "contiguous": True})[0] == (
        ("nodes that need not be consecutive",), 0.0,
    )  # fmt: skip
    topology = tree([f"n{place}" for place in range(1, 7)], 2)
    found = tried({"nodes": 4, "cores_per_node": 5, "max_switches": 1}, topology=topology)
    assert found[0] == (("any leaf switches",), 0.0)
    found = tried({"nodes": 3, "cores_per_node": 5, "max_switches": 1}, topology=topology)
    assert found[0] == (("up to 2 leaf switches instead of 1",), 0.0)
    assert tried({"cores": 4, "required_nodes": "n4"}) == [(("other nodes than those it names",), 0.0)]
    assert tried({"nodes": 2, "cores": 2, "exclusive": True})[0] == (
        ("nodes shared with other jobs",),
        0.0,
    )


def test_what_others_take_counts() -> None:
    before = {"nodes": 1, "cores_per_node": 8, "required_nodes": "n5", "priority": 5000}
    assert tried({"nodes": 3, "cores_per_node": 8}, before) == [
        (("2 nodes instead of 3",), 0.333),
        (("5 cores a node instead of 8",), 0.375),
    ]


def test_licences_and_memory() -> None:
    licenses = {"matlab": {"total": 4, "free": 3}}
    before = {"cores": 1, "licenses": {"matlab": 1}, "priority": 5000}
    assert tried({"cores": 1, "licenses": {"matlab": 4}}, before, licenses=licenses) == [
        (("2 matlab licences instead of 4",), 0.5)
    ]
    nodes = [{"name": f"n{place}", "cores": 4, "memory_mib": 1000 * place} for place in range(1, 4)]
    found = changes(snapshot(nodes, [{"nodes": 2, "cores": 8, "memory_mib_per_node": 2500}]))
    assert [change.words for change in found] == [
        ("2000 MiB a node instead of 2500",),
        ("1 node instead of 2", "4 cores instead of 8"),
    ]


def test_two_changes_only_where_no_single_one_is_enough() -> None:
    found = tried({"nodes": 3, "cores_per_node": 8, "gres_per_node": {"gpu": 2}, "contiguous": True})
    assert all(len(words) == 1 for words, _ in found)
    # Four nodes with 5 cores, three with 6: either way 3 GPUs are free on them.
    found = tried({"nodes": 4, "cores_per_node": 6, "gres_total": {"gpu": 9}})
    assert found[:2] == [
        (("5 cores a node instead of 6", "3 gpu in all instead of 9"), 0.722),
        (("3 nodes instead of 4", "3 gpu in all instead of 9"), 0.75),
    ]


def test_a_job_that_fits_needs_no_change() -> None:
    cluster = snapshot(NODES, [{"cores": 1}, {"cores": 1, "priority": 1}])
    (change,) = changes(cluster, window=1)
    assert (change.words, change.given_up, change.job) == ((), 0.0, cluster.jobs[-1])


def test_nothing_starts_what_no_node_could_take() -> None:
    assert tried({"cores": 1, "excluded_nodes": "n[1-6]"}) == []
    assert tried({"cores": 1, "partition": "nowhere"}) == []


def test_a_shorter_time_limit_ends_before_what_is_reserved() -> None:
    entry = {
        "name": "weekly", "nodes": "n[1-6]", "start": "2026-11-20T10:00:00Z", "end": "2026-11-20T12:00:00Z",
        "users": ["ann"],
    }  # fmt: skip
    job = {"nodes": 3, "cores_per_node": 8, "time_limit_s": 3600}
    assert tried(job, reservations=[entry]) == [(("a time limit of 30 min instead of 1 h",), 0.5)]
    assert tried({**job, "time_limit_s": None}, reservations=[entry]) == [
        (("a time limit of 30 min instead of none",), 1.0)
    ]
    partition = {"name": "debug", "nodes": "n[1-6]", "max_time_limit_s": 900}
    assert tried({**job, "partition": "debug"}, partitions=[partition]) == [
        (("a time limit of 15 min instead of 1 h",), 0.75)
    ]


def test_room_beside_a_reservation_for_a_blocked_job_is_kept() -> None:
    nodes = [{"name": "n[1-4]", "cores": 4}]
    jobs: list[dict[str, Any]] = [
        {"nodes": 4, "cores_per_node": 3, "time_limit_s": 600},
        {"nodes": 2, "cores_per_node": 2, "time_limit_s": 600},
    ]
    running = [{"id": "r", "nodes": {"n1": {"cores": 4}}, "end_time": "2026-11-20T09:31:40Z"}]
    cluster = snapshot(nodes, jobs, running=running)
    found = [change.words for change in changes(cluster, reserve=1)]
    assert found == [
        ("1 core a node instead of 2",),
        ("a time limit of 1 min 40 s instead of 10 min",),
    ]


def small(seed: int) -> Snapshot:
    """Return a random cluster of 7 nodes and 3 jobs, the last of them hard to place."""
    rng = random.Random(seed)
    nodes = [
        {
            "name": f"n{place}", "cores": 6, "free_cores": rng.choice([0, 1, 2, 3, 4, 5, 6]),
            "gres": {"gpu": 2}, "free_gres": {"gpu": rng.randint(0, 2)},
            "memory_mib": 60, "free_memory_mib": rng.choice([20, 30, 60]),
        }
        for place in range(7)
    ]  # fmt: skip
    jobs = [{"cores": rng.randint(1, 8), "licenses": {"l": 1}} for _ in range(2)]
    return snapshot(
        nodes,
        [*jobs, _hard(rng)],
        topology=tree([str(node["name"]) for node in nodes], rng.choice([2, 3])),
        licenses={"l": {"total": 3, "free": 3}},
    )


def _hard(rng: random.Random) -> dict[str, Any]:
    count, step = rng.randint(2, 5), rng.choice([1, 1, 2])
    shapes: list[dict[str, Any]] = [
        {"cores": step * rng.randint(4, 16), "min_cores_per_node": rng.choice([1, 1, 2, 3])},
        {"nodes": count, "cores": step * rng.randint(count, 3 * count)},
        {"nodes": count, "cores_per_node": step * rng.randint(1, 3)},
    ]
    job = {**rng.choice(shapes), "cores_per_task": step}
    extras: list[dict[str, Any]] = [
        {"contiguous": True}, {"max_switches": rng.randint(1, 2)},
        {"gres_per_node": {"gpu": rng.randint(1, 2)}},
        {"memory_mib_per_node": rng.choice([25, 50])}, {"memory_mib_per_core": 12}, {"licenses": {"l": 2}},
        {"required_nodes": "n3"},
    ]  # fmt: skip
    for extra in rng.sample(extras, rng.choice([1, 1, 2])):
        job |= extra
    if "memory_mib_per_core" in job:
        job.pop("memory_mib_per_node", None)
    return job


def alternatives(job: Job) -> list[list[tuple[float, Job]]]:
    """Return, kind by kind and written anew, every request that asks for less, with the share given up."""
    request = job.request
    kinds = [*conditions(request), *sizes(request), *amounts(request)]
    return [
        [(share, replace(job, request=replace(request, **members))) for share, members in kind]
        for kind in kinds
    ]


Members = list[tuple[float, dict[str, Any]]]


def conditions(request: Request) -> Iterator[Members]:
    if request.contiguous:
        yield [(0.0, {"contiguous": False})]
    if request.max_switches is not None:
        yield [(0.0, {"max_switches": most}) for most in (2, 3, None) if most != request.max_switches]
    if request.required_nodes:
        yield [(0.0, {"required_nodes": ()})]


def sizes(request: Request) -> Iterator[Members]:
    nodes, cores, step, each = (
        request.nodes, request.cores, request.cores_per_task, request.cores_per_node,
    )  # fmt: skip
    if nodes is not None:
        count = nodes.minimum
        fewer = range(max(1, len(request.required_nodes)), count)
        scaled = {
            less: {} if cores is None else {"cores": cores // step * less // count * step} for less in fewer
        }
        yield [(1 - less / count, {"nodes": Span.exactly(less), **scaled[less]}) for less in fewer]
    if each is not None:
        yield [(1 - less / each, {"cores_per_node": less}) for less in range(step, each, step)]
    elif cores is not None:
        lowest = 1 if nodes is None else nodes.minimum
        yield [(1 - less / cores, {"cores": less}) for less in range(step, cores, step) if less >= lowest]


def amounts(request: Request) -> Iterator[Members]:
    for name, span in request.gres_per_node.items():
        most = span.minimum
        yield [
            (1 - less / most, {"gres_per_node": {name: Span(minimum=less, maximum=most)}})
            for less in range(most)
        ]
    for member in ("memory_mib_per_node", "memory_mib_per_core"):
        asked = getattr(request, member)
        if asked:
            yield [(1 - less / asked, {member: less}) for less in range(1, asked)]
    for name, count in request.licenses.items():
        yield [(1 - less / count, {"licenses": {name: less} if less else {}}) for less in range(count)]


@given(st.integers(0, 10**6))
@settings(max_examples=120, deadline=None)
def test_the_smallest_change_of_every_kind_is_found(seed: int) -> None:
    cluster = small(seed)
    job = cluster.jobs[-1]
    result = schedule(replace(cluster, jobs=cluster.jobs[:-1]), work_limit=5)
    rest = with_awards(cluster, result.started)
    found = ChangeSearch(FreeRoom(state_of(cluster), result.started, ()), job).found()
    if fits_somewhere(rest, job):
        assert [change.words for change in found] == [()]
        return
    best = []
    for kind in alternatives(job):
        shares = [share for share, changed in kind if fits_somewhere(rest, changed)]
        best += [min(shares)] if shares else []
    if best:
        assert sorted(round(change.given_up, 9) for change in found) == sorted(
            round(share, 9) for share in best
        )
        return
    assert_two_kinds(rest, job, found)


def every(kind: ChangeKind) -> list[int]:
    return [value for stop in kind.values for value in (*kind.finer(stop), stop)]


def assert_two_kinds(rest: Snapshot, job: Job, found: tuple[Change, ...]) -> None:
    """Assert that the best of any two kinds together was found."""
    kinds = kinds_of(job, rest, (), len({switch.name for switch in rest.switches or () if switch.nodes}))
    best = 2.0
    for one, other in combinations(kinds, 2):
        for first in every(one):
            for second in every(other):
                given_up = 1 - (1 - one.share(first)) * (1 - other.share(second))
                if given_up < best and fits_somewhere(rest, other.apply(one.apply(job, first), second)):
                    best = given_up
    assert [round(change.given_up, 9) for change in found[:1]] == [round(best, 9)] * (best < 2)


@pytest.mark.parametrize("start", range(0, 60, 6))
def test_the_changed_job_starts_when_it_is_scheduled_beside_the_award(start: int) -> None:
    tried = 0
    for seed in range(start, start + 6):
        cluster = random_snapshot(seed)
        result = schedule(cluster, work_limit=5)
        rest = with_awards(cluster, result.started)
        for refusal in result.pending:
            job = next(job for job in cluster.jobs if job.id == refusal.job)
            if refusal.reason.value in {"held", "not_eligible", "not_expressible"}:
                continue
            for change in ChangeSearch(FreeRoom(state_of(cluster), result.started, ()), job).found():
                again = schedule(replace(rest, jobs=(replace(change.job, priority=1),)), work_limit=5)
                assert [award.job for award in again.started] == [job.id], (seed, change.words)
                assert 0 <= change.given_up <= 1
                tried += 1
    assert tried
