"""Shadow time: when a waiting job could start at the latest if running jobs end as estimated."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_snapshots import random_snapshot
from support.build import snapshot
from support.optimum import fits_alone

from aucsched import Snapshot, schedule
from aucsched.auction.forecast import Forecast, ReservedPlace, ShadowStart, shadow_time
from aucsched.auction.state import state_of
from aucsched.cluster.jobs import RunningJob
from aucsched.cluster.nodes import Node, NodeState, Resources
from aucsched.cluster.resources.allocation import allocation_of_resources
from aucsched.cluster.snapshot import held_resources

NOW = 1_795_167_000.0  # 2026-11-20T09:30:00Z, the time of support.build's snapshots


def running(*ends: float | None) -> list[dict[str, Any]]:
    """Return one job on each of n1, n2, …, which holds all 8 cores and ends this many seconds from now."""
    return [
        {"id": f"R{place}", "nodes": {f"n{place}": {"cores": 8, "gres": {"gpu": 1}}}}
        | ({} if end is None else {"end_time": NOW + end})
        for place, end in enumerate(ends, 1)
    ]


def nodes(count: int, **members: Any) -> list[dict[str, Any]]:
    return [{"name": f"n[1-{count}]", "cores": 8, "gres": {"gpu": 1}, **members}]


def first(cluster: Snapshot, **options: Any) -> ShadowStart | None:
    return shadow_time(state_of(cluster), cluster.jobs[0], **options)


def test_it_waits_for_as_many_ends_as_it_needs() -> None:
    cluster = snapshot(nodes(4, state="allocated"), [{"cores": 24}], running=running(300, 100, 400, 200))
    assert first(cluster) == ShadowStart(time=NOW + 300, nodes=("n1", "n2", "n4"), at_once=False)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ({"nodes": 2, "cores": 2, "contiguous": True}, (300, ("n1", "n2"))),
        ({"nodes": 2, "cores": 2}, (200, ("n2", "n4"))),
        ({"cores": 1, "required_nodes": "n3"}, (400, ("n3",))),
        ({"nodes": 1, "cores": 8, "exclusive": True}, (100, ("n2",))),
        ({"nodes": 3, "cores_per_node": 1, "gres_per_node": {"gpu": 1}}, (300, ("n1", "n2", "n4"))),
    ],
)
def test_every_kind_of_request(job: dict[str, Any], expected: tuple[int, tuple[str, ...]]) -> None:
    cluster = snapshot(nodes(4), [job], running=running(300, 100, 400, 200))
    assert first(cluster) == ShadowStart(time=NOW + expected[0], nodes=expected[1], at_once=False)


def test_what_fits_now_starts_now_and_an_end_in_the_past_is_awaited() -> None:
    assert first(snapshot(nodes(2), [{"cores": 16}])) == ShadowStart(
        time=NOW, nodes=("n1", "n2"), at_once=True
    )
    late = snapshot(nodes(2), [{"cores": 16}], running=running(-50, -1))
    assert first(late) == ShadowStart(time=NOW, nodes=("n1", "n2"), at_once=False)
    beside = snapshot(nodes(3), [{"cores": 8}], running=running(-50, -1))
    assert first(beside) == ShadowStart(time=NOW, nodes=("n3",), at_once=True)


def test_never_is_none() -> None:
    assert first(snapshot(nodes(2), [{"cores": 16}], running=running(100, None))) is None
    assert first(snapshot(nodes(2), [{"cores": 17}], running=running(100))) is None
    assert first(snapshot(nodes(2, state="drained"), [{"cores": 1}])) is None
    assert first(snapshot(nodes(2), [{"cores": 1, "partition": "nowhere"}])) is None
    licensed = [{"cores": 1, "licenses": {"matlab": 2}}]
    assert first(snapshot(nodes(1), licensed, licenses={"matlab": {"total": 2, "free": 1}})) is None


@pytest.mark.parametrize(
    ("member", "expected"),
    [
        ({"limits": [{"name": "all", "max": {"cores": 12}}]}, 500),
        ({"limits": [{"name": "all", "max": {"gres/gpu": 1}}]}, 500),
        ({"limits": [{"name": "all", "max": {"jobs": 1}}]}, 500),
        ({"licenses": {"m": {"total": 2, "free": 2}}}, 500),
        # A budget does not come back.
        ({"limits": [{"name": "all", "max": {"core_seconds": 5000}}]}, None),
        ({"limits": [{"name": "all", "max": {"cores": 16}}]}, 0),
    ],
)
def test_awards_hold_limits_and_licences_until_their_time_limit(
    member: dict[str, Any], expected: int | None
) -> None:
    asks = {"cores": 8, "nodes": 1, "gres_per_node": {"gpu": 1}, "time_limit_s": 500}
    asks |= {"licenses": {"m": 2}} if "licenses" in member else {}
    cluster = snapshot(nodes(2), [{**asks, "priority": 2000}, asks], **member)
    awards = [one for one in schedule(cluster).started if one.job == "J1"]
    assert shadow_time(state_of(cluster), cluster.jobs[1]) is not None
    after = shadow_time(state_of(cluster), cluster.jobs[1], awards)
    assert (None if after is None else after.time - NOW) == expected


@pytest.mark.parametrize(("end", "expected"), [(400, 400), (None, None), (-60, 0)])
def test_running_jobs_hold_their_shares_of_limits_until_their_ends(
    end: float | None, expected: int | None
) -> None:
    """Nodes are free at once: only the limit, which a running job holds, is waited for."""
    limits = [{"name": "each", "per": "user", "jobs": {"account": "a"}, "max": {"jobs": 1}}]
    holder, other = ({**one, "user": "ann", "account": "a"} for one in running(end, 900))
    asks = {"cores": 8, "user": "ann", "account": "a"}
    cluster = snapshot(nodes(3), [asks], running=[holder, {**other, "account": "b"}], limits=limits)
    after = first(cluster)
    assert (None if after is None else after.time - NOW) == expected
    assert after is None or not after.at_once


def test_awards_hold_until_their_time_limit() -> None:
    jobs = [{"cores": 16, "time_limit_s": 500, "priority": 2}, {"cores": 16, "priority": 1}]
    cluster = snapshot(nodes(2), jobs)
    awards = schedule(cluster).started
    assert [award.job for award in awards] == ["J1"]
    at_once = shadow_time(state_of(cluster), cluster.jobs[1])
    assert at_once == ShadowStart(time=NOW, nodes=("n1", "n2"), at_once=True)
    after = shadow_time(state_of(cluster), cluster.jobs[1], awards)
    assert after == ShadowStart(time=NOW + 500, nodes=("n1", "n2"), at_once=False)
    endless = snapshot(nodes(2), [{"cores": 16, "priority": 2}, jobs[1]])
    assert shadow_time(state_of(endless), endless.jobs[1], schedule(endless).started) is None


def test_a_reservation_is_waited_for() -> None:
    entry = {"name": "r", "nodes": "n[1-2]", "start": NOW + 50, "end": NOW + 900}
    job = {"cores": 16, "time_limit_s": 100}
    assert first(snapshot(nodes(2), [job], reservations=[entry])) == ShadowStart(
        time=NOW + 900, nodes=("n1", "n2"), at_once=False
    )
    # One that begins later stands in the way of the later start only.
    later = {"name": "r", "nodes": "n[1-2]", "start": NOW + 350, "end": NOW + 900}
    held = snapshot(nodes(2), [job], running=running(300), reservations=[later])
    assert first(held) == ShadowStart(time=NOW + 900, nodes=("n1", "n2"), at_once=False)


def test_a_snapshot_without_a_time() -> None:
    cluster = dataclasses.replace(snapshot(nodes(2), [{"cores": 16}], running=running(100)), time=None)
    assert first(cluster) == ShadowStart(time=NOW + 100, nodes=("n1", "n2"), at_once=False)
    free = dataclasses.replace(snapshot(nodes(2), [{"cores": 16}]), time=None)
    assert first(free) == ShadowStart(time=0.0, nodes=("n1", "n2"), at_once=True)


@given(st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_it_fits_then_and_not_before_as_an_independent_optimum_says(seed: int) -> None:
    cluster = busy(seed)
    moments = sorted({job.end_time for job in cluster.running if job.end_time is not None})
    for job in cluster.jobs:
        found = shadow_time(state_of(cluster), job)
        free = dataclasses.replace(job, hold=None, priority=1, unsupported=())
        fitting = (time for time in [NOW, *moments] if fits_alone(at(cluster, time), free))
        assert (None if found is None else found.time) == next(fitting, None)


def busy(seed: int) -> Snapshot:
    """Return a random snapshot without reservations on which jobs hold much of what is free."""
    rng = random.Random(seed)
    base = dataclasses.replace(random_snapshot(seed), reservations=())
    held = [
        RunningJob(
            id=f"R{place}",
            nodes={node.name: Resources(cores=rng.randint(0, node.free.cores), gres=node.free.gres)},
            end_time=NOW + rng.choice([10, 20, 30, 40]),
        )
        for place, node in enumerate(base.nodes)
        if rng.random() < 0.7
    ]
    uses = held_resources(held)
    taken = tuple(_less(node, uses.get(node.name), 1) for node in base.nodes)
    return dataclasses.replace(base, nodes=taken, running=tuple(held))


def at(cluster: Snapshot, time: float) -> Snapshot:
    """Return the cluster after the ends up to ``time``."""
    ended = held_resources(job for job in cluster.running if (job.end_time or 0) <= time)
    left = tuple(job for job in cluster.running if (job.end_time or 0) > time)
    freed = tuple(_less(node, ended.get(node.name), -1) for node in cluster.nodes)
    return dataclasses.replace(cluster, nodes=freed, running=left, time=time)


def _less(node: Any, use: Resources | None, sign: int) -> Any:
    if use is None:
        return node
    gres = {name: count - sign * use.gres.get(name, 0) for name, count in node.free.gres.items()}
    free = dataclasses.replace(node.free, cores=node.free.cores - sign * use.cores, gres=gres)
    state = NodeState.MIXED if sign < 0 and node.state is NodeState.ALLOCATED else node.state
    return dataclasses.replace(node, free=free, state=state)


def test_a_place_is_left_where_nothing_kept_needs_it_meanwhile() -> None:
    held = {"n": Resources(cores=3)}
    running = RunningJob(id="r", nodes={"n": Resources(cores=2)}, end_time=50)
    node = Node(name="n", cores=4, free=Resources(cores=2), state=NodeState.ALLOCATED)
    state = state_of(Snapshot(nodes=[node], running=[running], time=0))
    taken = allocation_of_resources(held, state.columns)
    forecast = Forecast(state)
    other = ReservedPlace(allocation_of_resources({"n": Resources(cores=2)}, state.columns), 70, 90)
    # At 10 the node takes no jobs, and has too few cores; at 60 both have come back.
    assert not forecast.leaves(ReservedPlace(taken, 10, 60), ())
    assert forecast.leaves(ReservedPlace(taken, 60, 200), ())
    # A reservation counts that begins while the job would run there, and no other.
    assert not forecast.leaves(ReservedPlace(taken, 60, 80), (other,))
    assert not forecast.leaves(ReservedPlace(taken, 75, 80), (other,))
    assert forecast.leaves(ReservedPlace(taken, 60, 70), (other,))
    assert forecast.leaves(ReservedPlace(taken, 90, 95), (other,))
