"""An auction that is told what changes: kept state is as made anew, and an error changes nothing."""

from __future__ import annotations

import os
import pickle
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from copy import copy, deepcopy
from dataclasses import fields, replace
from random import Random
from time import sleep
from typing import Any, cast
from unittest.mock import Mock

import numpy as np
import pytest
from support.build import snapshot

import aucsched
from aucsched import Auction, InputError, Job, Request, Reservation, Snapshot
from aucsched.auction.check import check_schedule
from aucsched.auction.continual import ClusterChanges, _ChangedCluster
from aucsched.auction.options import StepOptions
from aucsched.auction.state import SnapshotState, state_of
from aucsched.auction.step import take_step
from aucsched.cluster.resources.demand import Demand, DemandReader
from aucsched.cluster.schedule import Reason
from aucsched.slurm.answers.snapshot_of_answers import SlurmSources, SlurmText
from aucsched.slurm.live.passes import Look, take_pass

#: Random sequences of changes that are played; 10 000 take about 40 minutes.
SEQUENCES = int(os.environ.get("AUCSCHED_SEQUENCES", "60"))
CHOICES: list[dict[str, Any]] = [
    {"work_limit": 1},
    {"work_limit": 1, "promise": "none", "reserve": 0, "model": "aucsched2"},
    {"strategy": "greedy", "promise": "none", "reserve": 1},
    {"work_limit": 1, "window": 3},
    {"work_limit": 1, "model": "aucsched1", "strategy": "exact"},
    {"work_limit": 1, "objective": "response"},
    {"work_limit": 1, "promise": "plan"},
    {"work_limit": 1, "award_alone": True},
    {"work_limit": 1, "model": "ipsched"},
]
TIME = 1_000.0


def cluster(draw: Random) -> Snapshot:
    nodes = [
        {
            "name": f"n{place}",
            "cores": draw.choice([2, 4]),
            **({"gres": {"gpu": 2}} if draw.random() < 0.4 else {}),
            **({"memory_mib": 4000} if draw.random() < 0.4 else {}),
            "partitions": ["batch"] if draw.random() < 0.8 else ["debug"],
        }
        for place in range(draw.randint(2, 6))
    ]
    limits = [{"name": "few", "jobs": {"user": "ann"}, "max": {"cores": 5, "jobs": 2}}]
    found = snapshot(
        nodes,
        [],
        licenses={"matlab": {"total": 2}},
        limits=limits if draw.random() < 0.4 else [],
        partitions=[{"name": "batch"}, {"name": "debug"}],
    )
    return replace(found, time=TIME)


def job(draw: Random, name: str) -> Job:
    gpus: dict[str, Any] = {"gres_per_node": {"gpu": 1}} if draw.random() < 0.2 else {}
    request: dict[str, Any] = (
        {"cores": draw.randint(1, 6)}
        if draw.random() < 0.6
        else {"nodes": draw.randint(1, 2), "cores_per_node": draw.randint(1, 2)}
    )
    if draw.random() < 0.2:
        request["licenses"] = {"matlab": 1}
    if draw.random() < 0.3:
        request["memory_mib_per_core"] = 900
    return Job(
        id=name,
        priority=draw.randint(1, 9),
        user=draw.choice(["ann", "bob"]),
        partition=draw.choice(["", "batch", "batch,debug"]),
        time_limit_s=draw.choice([60, 600]),
        request=Request(**request, **gpus),
    )


def change(draw: Random, auction: Auction, number: int) -> dict[str, Any]:
    """Return a random change of some kinds that the cluster allows."""
    now, waiting = auction.cluster, [one.id for one in auction.cluster.jobs]
    running = [one.id for one in now.running]
    names = [node.name for node in now.nodes]
    chosen: dict[str, Any] = {}
    if draw.random() < 0.7:
        chosen["time"] = now.time + draw.choice([0, 1, 50])  # type: ignore[operator]
    if draw.random() < 0.6:
        chosen["arrived"] = [job(draw, f"J{number}-{place}") for place in range(draw.randint(1, 4))]
    if waiting and draw.random() < 0.2:
        chosen["cancelled"] = [waiting.pop(draw.randrange(len(waiting)))]
    if waiting and draw.random() < 0.3:
        chosen["priorities"] = {draw.choice(waiting): draw.randint(1, 9)}
    gone = draw.sample(running, min(len(running), draw.randint(0, 2)))
    if gone:
        chosen["failed" if draw.random() < 0.3 else "ended"] = gone
    if "failed" in chosen and draw.random() < 0.5:
        # It starts again before anybody asks for an award: the same job, another end.
        again = next(one for one in now.running if one.id == gone[0])
        chosen["started"] = [replace(again, end_time=(again.end_time or now.time) + 7)]  # type: ignore[operator]
    if draw.random() < 0.2:
        chosen["drained"] = [draw.choice(names)]
    if draw.random() < 0.3:
        chosen["returned"] = [draw.choice([name for name in names if name not in chosen.get("drained", ())])]
    if draw.random() < 0.15:
        kept = Reservation(name="r", nodes=(draw.choice(names),), start=TIME, end=TIME + 5000, users=["bob"])
        chosen["reservations"] = [kept] if draw.random() < 0.6 else []
    return chosen


def content(demand: Demand) -> dict[str, Any]:
    """Return all that a demand says but the numbers of its kind."""
    found = {one.name: getattr(demand, one.name) for one in fields(demand)}
    found |= {"kind": None, "form": None, "required": demand.required.tolist()}
    found["variants"] = [
        (one.eligible.tolist(), one.gres, one.gres_total, one.max_nodes) for one in demand.variants
    ]
    return found


def assert_same(kept: SnapshotState, anew: SnapshotState, jobs: tuple[Job, ...]) -> None:
    assert kept.columns.names == anew.columns.names
    for one, other in ((kept.columns.free, anew.columns.free), (kept.columns.total, anew.columns.total)):
        assert list(one.resources()) == list(other.resources())
        assert all((one.amounts(what) == other.amounts(what)).all() for what in other.resources())
    assert (kept.columns.takes_jobs == anew.columns.takes_jobs).all()
    assert (kept.columns.is_empty == anew.columns.is_empty).all()
    assert [hold.end for hold in kept.holds] == [hold.end for hold in anew.holds]
    for mine, made in zip(kept.holds, anew.holds, strict=True):
        assert mine.allocation.nodes.tolist() == made.allocation.nodes.tolist()
        one, other = mine.allocation.held, made.allocation.held
        assert list(one.resources()) == list(other.resources())
        assert all((one.amounts(what) == other.amounts(what)).all() for what in other.resources())
    assert (kept.now, kept.is_timed, kept.changes) == (anew.now, anew.is_timed, anew.changes)
    assert kept.comes_back is not None
    assert anew.comes_back is not None
    assert (kept.comes_back == anew.comes_back).all()
    numbers: dict[str, set[tuple[int, int]]] = {"kind": set(), "form": set()}
    for job_read in jobs:
        asked, again = kept.reader.read(job_read, 0), anew.reader.read(job_read, 0)
        if isinstance(asked, Demand) and isinstance(again, Demand):
            assert content(asked) == content(again)
            for what, pairs in numbers.items():
                pairs.add((getattr(asked, what), getattr(again, what)))
        else:
            assert asked == again
    for pairs in numbers.values():
        assert len(pairs) == len({first for first, _ in pairs}) == len({second for _, second in pairs})


def free_by_hand(now: Snapshot, total: Snapshot) -> dict[str, tuple[int, int, int]]:
    held: Counter[tuple[str, str]] = Counter()
    for running in now.running:
        for name, use in running.nodes.items():
            held[name, "cores"] += use.cores
            held[name, "memory"] += use.memory_mib or 0
            held[name, "gpu"] += use.gres.get("gpu", 0)
    return {
        node.name: (
            node.total.cores - held[node.name, "cores"],
            0 if node.total.memory_mib is None else node.total.memory_mib - held[node.name, "memory"],
            node.total.gres.get("gpu", 0) - held[node.name, "gpu"],
        )
        for node in total.nodes
    }


def test_each_kind_of_change_is_drawn() -> None:
    drawn: Counter[str] = Counter()
    for seed in range(6):
        draw = Random(seed)
        auction = Auction(cluster(draw), strategy="greedy")
        for number in range(5):
            told = change(draw, auction, number)
            auction.update(**told)
            drawn.update([*told, *(["reserved"] if told.get("reservations") else [])])
            started = auction.award().started
            auction.update(started=started)
            drawn["started"] += len(started)
    kinds = set(ClusterChanges.__annotations__)
    assert set(drawn) == kinds | {"reserved"}


@pytest.mark.parametrize("part", range(6))
def test_kept_state_is_as_made_anew_and_awards_the_same(part: int) -> None:
    for seed in range(part, SEQUENCES, 6):
        draw = Random(seed)
        begun = cluster(draw)
        options = CHOICES[seed % len(CHOICES)]
        auction = Auction(begun, **options)
        other = Auction(begun, **options)
        for number in range(5):
            told = change(draw, auction, number)
            auction.update(**told)
            other.update(**told)
            other.forget()
            assert auction.cluster == other.cluster
            by_hand = free_by_hand(auction.cluster, begun)
            for node in auction.cluster.nodes:
                free = node.free
                assert by_hand[node.name] == (free.cores, free.memory_mib or 0, free.gres.get("gpu", 0))
            found, anew = auction.award(), other.award()
            check_schedule(auction.cluster, found)
            assert found.started == anew.started
            assert found.pending == anew.pending
            assert found.objective == anew.objective
            assert found.next_window == anew.next_window
            assert auction._state is not None  # noqa: SLF001 - what is kept
            assert_same(auction._state, state_of(auction.cluster), auction.cluster.jobs)  # noqa: SLF001
            taken = [one for one in found.started if draw.random() < 0.8]
            auction.update(started=taken)
            other.update(started=taken)


def test_a_live_loop_awards_the_same_whether_it_keeps_its_last_pass_or_not() -> None:
    nothing = SlurmText(name="", content=b"")
    options, starts = StepOptions(work_limit=1), 0
    for seed in range(20):
        draw = Random(seed)
        auction, last = Auction(cluster(draw), work_limit=1), None
        for number in range(5):
            auction.update(**change(draw, auction, number))
            sources = SlurmSources(jobs=nothing, nodes=nothing)
            look = Look(snapshot=auction.cluster, sources=sources, at=0.0, read_s=0.0)
            last = take_pass(look, options, last=last)
            kept, anew = last.step.schedule, take_pass(look, options).step.schedule
            assert (kept.started, kept.pending, kept.objective) == (
                anew.started,
                anew.pending,
                anew.objective,
            )
            auction.update(started=kept.started)
            starts += len(kept.started)
    assert starts > 50


def test_jobs_that_are_gone_are_forgotten_though_none_was_ever_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aucsched.cluster.resources.demand._FEW_JOBS", 1)
    empty, last = snapshot([{"name": "n", "cores": 1}], []), None
    for number in range(9):
        held = Job(id=f"{number}", priority=1, request=Request(cores=1), hold="Dependency")
        last = take_step(replace(empty, jobs=(held,)), StepOptions(work_limit=1), last=last).state
        assert len(last.reader.looked_at) <= 5


def test_a_job_that_could_not_be_read_is_read_anew_in_the_next_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(id="a", priority=1, request=Request(cores=1))
    auction = Auction(replace(snapshot([{"name": "n", "cores": 1}], []), jobs=(job,)), work_limit=1)
    with monkeypatch.context() as once:
        once.setattr(DemandReader, "read", Mock(side_effect=MemoryError("none left")))
        assert [refusal.reason for refusal in auction.award().pending] == [Reason.SET_ASIDE]
    auction.update()
    assert [award.job for award in auction.award().started] == ["a"]


def test_nothing_is_decided_anew_where_nothing_has_changed() -> None:
    auction = Auction(cluster(Random(1)), work_limit=1)
    auction.update(arrived=[job(Random(2), "a")])
    found = auction.award()
    assert auction.award() is found
    auction.update(time=TIME + 1)
    assert auction.award() is not found


def test_what_has_not_changed_is_not_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [aucsched.Node(name=f"n{place}", cores=4) for place in range(6)]
    jobs = [Job(id=f"{place}", priority=1, request=Request(cores=3), time_limit_s=9) for place in range(9)]
    auction = Auction(Snapshot(nodes=nodes, jobs=jobs, time=0), work_limit=1, promise="none", reserve=0)
    found = auction.award()
    last = found.pending[-1].job
    read: list[str] = []
    made = DemandReader.read

    def noted(self: Any, one: Job, index: int) -> Any:
        read.append(one.id)
        return made(self, one, index)

    monkeypatch.setattr("aucsched.cluster.resources.demand.DemandReader.read", noted)
    monkeypatch.setattr("aucsched.auction.state.topology_of", None)
    auction.update(time=5, started=found.started, priorities={last: 2})
    auction.award()
    assert read == [last]
    auction.update(drained=["n1"])
    auction.award()
    # Which nodes take jobs is part of what a job may use.
    assert len(read) > len(auction.cluster.jobs)


ONE = Job(id="y", priority=1, request=Request(cores=1))
AWARDED = aucsched.schedule(Snapshot(nodes=[aucsched.Node(name="n0", cores=2)], jobs=[ONE]))
WRONG: list[tuple[str, Any, str]] = [
    ("time", float("nan"), "update.time: nan is not a time in seconds since 1970"),
    ("time", 10**400, "update.time: a number of more than 60 digits is not a time in seconds since 1970"),
    ("started", AWARDED, "update.started: a Schedule is not a list: give its started"),
    ("started", ["w"], "update.started[0]: 'w' is not of type Award or RunningJob"),
    ("started", AWARDED.started, "update.started[0]: no job 'y' waits"),
    (
        "started",
        [replace(AWARDED.started[0], job="w", nodes={"n0": cast("Any", 2)})],
        "update.started[0].nodes.n0: 2 is not of type Resources",
    ),
    ("ended", AWARDED.started, "update.ended[0]: an Award is not a text"),
    ("ended", ["J" * 100_000], f"update.ended[0]: no job '{'J' * 60}…' runs"),
    ("cancelled", [ONE], "update.cancelled[0]: a Job is not a text"),
    ("drained", [aucsched.Node(name="n0", cores=2)], "update.drained[0]: a Node is not a text"),
    ("priorities", [("w", 5)], "update.priorities: a list is not of type Mapping"),
    ("priorities", "abc", "update.priorities: 'abc' is not of type Mapping"),
    (
        "priorities",
        {"w": 10**400},
        "update.priorities.w: a number of more than 60 digits has too many digits",
    ),
    ("reservations", ["x"], "update.reservations[0]: 'x' is not of type Reservation"),
    ("reservations", "x", "update.reservations: 'x' is not a list"),
    ("arrived", ONE, "update.arrived: a Job is not a list"),
    ("arrived", None, "update.arrived: None is not a list"),
]


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"time": 999.0}, "update.time: 999 is before 1000"),
        ({"time": "now"}, "update.time: 'now' is not a number"),
        ({"ended": ["J"]}, "update.ended[0]: no job 'J' runs"),
        ({"ended": "ab"}, "update.ended: 'ab' is not a list"),
        ({"drained": "n0"}, "update.drained: 'n0' is not a list"),
        ({"failed": ["J"]}, "update.failed[0]: 'J' did not start here: end it and let it arrive"),
        ({"cancelled": ["w", "J"]}, "update.cancelled[1]: no job 'J' waits"),
        ({"priorities": {"J": 3}}, "update.priorities.J: no job 'J' waits"),
        ({"priorities": {"w": "high"}}, "update.priorities.w: 'high' is not a number"),
        ({"drained": ["n0", "n9"]}, "update.drained[1]: 'n9' is not a node of this cluster"),
        *(({name: wrong}, message) for name, wrong, message in WRONG),
        (
            {"arrived": [Job(id="w", priority=1, request=Request(cores=1))]},
            "update.arrived[0].id: 'w' is known already",
        ),
        ({"arrived": ["w"]}, "update.arrived[0]: 'w' is not of type Job"),
        (
            {"arrived": [Job(id="x", priority=1, request=Request(cores=1, licenses={"nag": 1}))]},
            "update.arrived[0].licenses.nag: 'nag' is not a licence of this cluster",
        ),
        (
            {"started": [aucsched.RunningJob(id="w", nodes={"n0": aucsched.Resources(cores=3)})]},
            "update.started[0].nodes.n0.cores: it holds 1 more than is free",
        ),
        (
            {"reservations": [Reservation(name="r", nodes=["n7"], start=0, end=1)]},
            "update.reservations[0].nodes: 'n7' is not a node of this cluster",
        ),
    ],
)
def test_an_error_names_the_change_and_changes_nothing(told: dict[str, Any], message: str) -> None:
    nodes = [aucsched.Node(name="n0", cores=2)]
    waits = Job(id="w", priority=1, request=Request(cores=2))
    auction = Auction(Snapshot(nodes=nodes, jobs=[waits], time=TIME), work_limit=1)
    before = auction.cluster
    with pytest.raises(InputError) as error:
        auction.update(**{"arrived": [replace(waits, id="new")], **told})
    assert str(error.value) == message
    assert auction.cluster is before
    assert [award.job for award in auction.award().started] == ["w"]


def test_one_update_says_one_thing_of_a_job_or_node() -> None:
    auction = Auction(Snapshot(nodes=[aucsched.Node(name="n0", cores=2)], jobs=[ONE], time=TIME))
    auction.update(started=auction.award().started)
    with pytest.raises(InputError, match=r"^update.failed\[0\]: 'y' is in ended, too$"):
        auction.update(ended=["y"], failed=["y"])
    with pytest.raises(InputError, match=r"^update.returned\[0\]: 'n0' is in drained, too$"):
        auction.update(drained=["n0"], returned=["n0"])
    assert len(auction.cluster.running) == 1


def test_a_change_that_there_is_not_is_refused() -> None:
    auction = Auction(cluster(Random(1)))
    with pytest.raises(aucsched.OptionError, match="endd: update has no such change"):
        auction.update(endd=["1"])  # type: ignore[call-arg, unused-ignore]
    with pytest.raises(aucsched.OptionError, match="windw: Auction has no such option"):
        Auction(cluster(Random(1)), windw=3)  # type: ignore[call-arg]


def test_threads_share_an_auction(monkeypatch: pytest.MonkeyPatch) -> None:
    one = job(Random(2), "a")
    auction = Auction(cluster(Random(1)), work_limit=1)
    made = _ChangedCluster.snapshot

    def slowly(*given: Any) -> Snapshot:
        sleep(0.001)  # Another thread has its turn within an update.
        return made(*given)

    def queue(thread: int) -> None:
        for place in range(20):
            auction.update(arrived=[replace(one, id=f"{thread}-{place}")])

    monkeypatch.setattr(_ChangedCluster, "snapshot", slowly)
    with ThreadPoolExecutor(3) as threads:
        queued = [threads.submit(queue, thread) for thread in range(3)]
        while not all(one.done() for one in queued):
            auction.award()
    assert len(auction.cluster.jobs) == 60
    assert len(auction.award().started) + len(auction.award().pending) == 60


@pytest.mark.parametrize("copied", [copy, deepcopy, lambda one: pickle.loads(pickle.dumps(one))])  # noqa: S301
def test_a_copy_goes_on_by_itself(copied: Any) -> None:
    auction = Auction(cluster(Random(1)), work_limit=1)
    auction.update(arrived=[job(Random(2), "a"), job(Random(3), "b")])
    started = auction.award().started
    other = copied(auction)
    assert other.award().started == started
    other.update(started=started)
    assert len(auction.cluster.jobs) == 2
    other.update(failed=[started[0].job])
    assert [one.id for one in other.cluster.jobs] == [started[0].job]


def test_licences_of_jobs_that_started_here_come_back() -> None:
    held = Job(id="a", priority=2, request=Request(cores=1, licenses={"matlab": 1}), time_limit_s=60)
    nodes = [aucsched.Node(name="n", cores=4)]
    licenses = {"matlab": aucsched.License(total=1)}
    auction = Auction(Snapshot(nodes=nodes, jobs=[held], licenses=licenses, time=0), work_limit=1)
    auction.update(started=auction.award().started, arrived=[replace(held, id="b")])
    assert auction.cluster.running[0].end_time == 60
    assert not auction.award().started
    auction.update(time=9, failed=["a"])
    assert {award.job for award in auction.award().started} < {"a", "b"}
    assert np.array_equal([one.id for one in auction.cluster.jobs], ["b", "a"])


def test_a_licence_that_is_taken_already_is_refused_in_the_singular() -> None:
    job = Job(id="a", priority=1, request=Request(cores=1, licenses={"matlab": 1}), time_limit_s=60)
    other = replace(job, id="b")
    licenses = {"matlab": aucsched.License(total=1)}
    now = Snapshot(nodes=[aucsched.Node(name="n", cores=4)], jobs=[job, other], licenses=licenses, time=0)
    auction = Auction(now, work_limit=1)
    auction.update(started=Auction(replace(now, jobs=[job]), work_limit=1).award().started)
    late = Auction(replace(now, jobs=[other]), work_limit=1).award().started
    with pytest.raises(aucsched.InputError, match="it takes 1 matlab licence, 0 free"):
        auction.update(started=late)


def test_the_state_is_that_of_a_step() -> None:
    now = cluster(Random(4))
    step = take_step(now, StepOptions())
    later = replace(now, time=TIME + 5)
    assert state_of(later, step.state).columns.index is step.state.columns.index
    fewer = replace(now, nodes=now.nodes[1:])
    assert_same(state_of(fewer, step.state), state_of(fewer), ())


def test_a_promise_that_no_queue_can_make_is_refused_at_once() -> None:
    with pytest.raises(aucsched.OptionError, match="'12h' is for simulations"):
        Auction(snapshot([{"name": "n", "cores": 1}], []), promise="12h")


def test_a_clock_that_is_read_within_an_award_may_ask_the_auction() -> None:
    def clock() -> float:
        auction.forget()
        return 0.0

    auction = Auction(cluster(Random(1)), work_limit=1, time_limit_s=1, clock=clock)
    auction.update(arrived=[job(Random(2), "a")])
    assert auction.award().started
