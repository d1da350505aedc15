"""The loop on a cluster in this process: who starts where, and what a death at any point leaves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from support.gated_slurm import FakeJob, FakeSlurm, Killed, loop_on

from aucsched.auction.state import SnapshotState, state_of
from aucsched.cluster.jobs import Job, Request
from aucsched.cluster.limits import Limit
from aucsched.cluster.network import Network, NetworkKind
from aucsched.cluster.nodes import (
    License,
    Node,
    NodeState,
    Partition,
    PartitionState,
    Reservation,
    Resources,
    Switch,
)
from aucsched.cluster.resources.demand import Demand
from aucsched.cluster.snapshot import Snapshot
from aucsched.formats.hostlist import expand
from aucsched.simulation.nodes.node_machine import why_never
from aucsched.slurm.answers.live import Command
from aucsched.slurm.live.actions import create_words, shown_by
from aucsched.slurm.live.loop import Loop
from aucsched.slurm.live.loop_options import Settings
from aucsched.slurm.live.pass_plan import NeverFits


def cluster(nodes: int = 4) -> FakeSlurm:
    return FakeSlurm(nodes={f"n{number}": "idle" for number in range(nodes)})


def queue_of_all_kinds(fake: FakeSlurm) -> list[FakeJob]:
    """Even and uneven cores, a range, an exclusive one, more than the cluster holds at once."""
    return [
        fake.submit(8, priority=90),
        fake.submit(7, least=2, most=2, priority=80),
        fake.submit(6, least=2, most=3, priority=70),
        fake.submit(1, exclusive=True, priority=60),
        *(fake.submit(2, priority=50 - number, comment=f"site {number}") for number in range(4)),
    ]


def go_on(fake: FakeSlurm, loop: Loop, until: float) -> None:
    """Run passes each 10 s while the controller works each second, until all jobs have ended."""
    while fake.now < until and not all_ended(fake):
        loop.one_pass()
        for _ in range(10):
            fake.tick()


def all_ended(fake: FakeSlurm) -> bool:
    return all(job.state == "COMPLETED" for job in fake.jobs.values())


def intended(fake: FakeSlurm, job: FakeJob) -> set[tuple[str, ...]]:
    lines = fake.events("intend")
    return {tuple(sorted(x["nodes"])) for x in lines if x["job"] == str(job.number) and x["kind"] == "pin"}


def test_jobs_start_where_the_log_says_and_wait_behind_the_gate_until_then() -> None:
    fake = cluster()
    jobs = queue_of_all_kinds(fake)
    loop = loop_on(fake)
    report = loop.one_pass()
    assert report.outcome == "done"
    assert report.pinned > 2
    assert report.waiting == len(jobs)
    fake.tick()
    assert {job.state for job in jobs} == {"RUNNING", "PENDING"}
    assert all("auction" in job.licenses for job in jobs if job.state == "PENDING")
    go_on(fake, loop, fake.now + 300)
    assert all_ended(fake)
    for job in jobs:
        assert len(job.starts) == 1
        assert set(job.starts) == intended(fake, job)
    assert len(fake.events("runs")) == len(jobs)
    assert not fake.events("misplaced", "refused")


def test_a_job_that_ends_node_by_node_is_not_on_other_nodes() -> None:
    fake = cluster()
    job = fake.submit(8)
    loop = loop_on(fake)
    loop.one_pass()
    fake.tick()
    assert len(job.held) == 2
    # As squeue of 22.05 lists it while it ends.
    job.held.popitem()
    loop.one_pass()
    assert [line["job"] for line in fake.events("runs", "misplaced")] == [str(job.number)]
    assert not fake.events("misplaced")


def behind_a_gate() -> tuple[FakeSlurm, list[FakeJob]]:
    """A cluster whose gate is up, and its queue."""
    fake = cluster()
    loop_on(fake).one_pass()
    fake.points = 0
    return fake, queue_of_all_kinds(fake)


def points_of_a_run() -> int:
    fake, _ = behind_a_gate()
    go_on(fake, loop_on(fake), fake.now + 30)
    return fake.points


@pytest.mark.parametrize(("others", "step"), [(0, 1), (60, 3)])
def test_a_death_at_any_point_loses_nothing_and_starts_nothing_twice(others: int, step: int) -> None:
    """Killed at each point between two actions; the next loop comes ``others`` s later, and goes on."""
    asked_before = [job.asked() for job in behind_a_gate()[1]]
    assert points_of_a_run() > 60
    for point in range(0, points_of_a_run(), step):
        fake, jobs = behind_a_gate()
        fake.die_at = point
        with pytest.raises(Killed):
            go_on(fake, loop_on(fake), fake.now + 400)
        fake.die_at = -1
        for _ in range(others):
            fake.tick()
        go_on(fake, loop_on(fake), fake.now + 400)
        assert all_ended(fake), point
        for job, asked in zip(jobs, asked_before, strict=True):
            assert len(job.starts) == 1, (point, job)
            assert set(job.starts) <= intended(fake, job), (point, job)
            assert job.cpus == asked[0], (point, job)
        assert not fake.events("misplaced"), point


def test_a_loop_that_dies_for_good_hands_the_queue_back() -> None:
    """At each point: the gate ends, pinned or not every job runs once, on what it asked for."""
    for point in range(0, points_of_a_run(), 7):
        fake, jobs = behind_a_gate()
        fake.die_at = point
        with pytest.raises(Killed):
            go_on(fake, loop_on(fake), fake.now + 400)
        for _ in range(400):
            fake.tick()
        assert all_ended(fake), point
        assert all(len(job.starts) == 1 for job in jobs), point


def test_a_pinned_job_that_does_not_start_goes_back_as_it_was_and_is_handed_over_in_the_end() -> None:
    fake = cluster()
    job = fake.submit(6, least=2, most=3, comment="site's, 100 %")
    before = job.asked()
    loop = loop_on(fake)
    seen = []
    for _ in range(40):
        loop.one_pass()
        seen.append((job.required, job.licenses))
        # Nothing starts: the controller's scheduler does not run.
        fake.now += 10
        fake.reservations["auction_one_root"]["end"] = fake.now + 60
    assert [bool(nodes) for nodes, _ in seen].count(True) > 6
    assert job.asked() == before
    assert job.licenses == ""
    puts = [line for line in fake.events("done") if line["kind"] != "pin"]
    assert [line["kind"] for line in puts] == ["unpin", "unpin", "hand over"]
    assert all("did not start within 60 s" in line["why"] for line in puts)
    # scontrol reads no comment with blanks back: it stays in the mark.
    assert "site%27s" in job.comment


def test_only_one_leader_and_the_second_takes_over_when_the_first_is_gone() -> None:
    fake = cluster()
    job = fake.submit(4)
    first, second = loop_on(fake), loop_on(fake, host="two")
    first.one_pass()
    count = len(fake.sent)
    report = second.one_pass()
    assert (report.outcome, report.leader) == ("standby", "auction_one_root")
    assert len(fake.sent) == count
    job.priority = 0  # It does not start meanwhile.
    for _ in range(130):
        fake.tick()
    assert second.one_pass().leader == "auction_two_root"
    assert first.one_pass().outcome == "standby"


def test_loops_of_two_users_on_a_host_are_two_and_a_gate_put_up_by_hand_is_anyones() -> None:
    fake = cluster()
    fake.submit(4)
    fake.hand([create_words("auction_one", "auction", 1000, 900, "root")])
    first, second = loop_on(fake), loop_on(fake, user="ann")
    assert first.one_pass().outcome == "done"
    assert list(fake.reservations) == ["auction_one_root"]
    count = len(fake.sent)
    report = second.one_pass()
    assert (report.outcome, report.leader, len(fake.sent)) == ("standby", "auction_one_root", count)
    for _ in range(130):
        fake.tick()
    assert second.one_pass().leader == "auction_one_ann"
    assert first.one_pass().outcome == "standby"


def test_jobs_that_are_handed_over_come_behind_the_pins() -> None:
    """However many they are, they leave the pins their share of the changes of a pass."""
    fake = cluster()
    for _ in range(3):
        fake.submit(4, features="a|b", priority=900)
    job = fake.submit(4)
    report = loop_on(fake, changes=2).one_pass()
    assert (report.pinned, report.handed_over, report.deferred) == (1, 1, 2)
    assert job.required


def test_a_dry_run_sends_nothing() -> None:
    fake = cluster()
    queue_of_all_kinds(fake)
    shown: list[str] = []
    loop_on(fake, dry_run=True, runner=shown_by(shown.append)).one_pass()
    assert len(shown) > 4
    assert not fake.sent
    assert not fake.reservations


def test_limits_on_changes_of_a_pass_and_of_a_minute() -> None:
    fake = cluster(8)
    for number in range(8):
        fake.submit(4, priority=100 - number)
    loop = loop_on(fake, changes=3, changes_a_minute=5)
    reports = []
    for _ in range(8):
        reports.append(loop.one_pass())
        for _ in range(10):
            fake.tick()
    assert [one.pinned for one in reports][:3] == [3, 2, 0]
    assert reports[0].deferred == 5
    assert sum(one.pinned for one in reports) == 8


@pytest.mark.parametrize("changes", [{"changes": 1}, {"changes": 2}, {"changes_a_minute": 1}])
def test_an_action_of_more_commands_than_the_limit_is_carried_out(changes: dict[str, Any]) -> None:
    """A pin on uneven cores makes a reservation first: two commands."""
    fake = cluster(2)
    job = fake.submit(7, least=2, most=2, priority=90)
    loop = loop_on(fake, **changes)
    reports = [loop.one_pass() for _ in range(2)]
    assert reports[0].changes == 2
    assert reports[0].pinned == 1
    assert job.required


def test_pins_come_before_the_hand_overs_of_jobs_that_never_fit() -> None:
    fake = cluster()
    for number in range(3):
        fake.submit(17, priority=90 - number)
    fits = fake.submit(16, run_s=400)
    loop = loop_on(fake, changes=3)
    report = loop.one_pass()
    assert (report.pinned, report.handed_over + report.deferred) == (1, 3)
    fake.tick()
    assert fits.state == "RUNNING"
    assert report.handed_over + loop.one_pass().handed_over == 3


def test_a_plan_too_old_is_not_carried_out() -> None:
    fake = cluster()
    fake.submit(4)
    loop = loop_on(fake, plan_age=5)
    fake.answer_s = 3
    report = loop.one_pass()
    assert (report.pinned, report.dropped) == (0, 1)
    assert "s old" in fake.events("drop")[0]["changed"]


def test_jobs_outside_the_gate_are_slurms_own() -> None:
    fake = cluster()
    own = fake.submit(4, licenses="")
    loop_on(fake).one_pass()
    assert own.required == ()
    assert not fake.events("intend")


def test_a_job_that_the_auction_cannot_express_is_handed_over() -> None:
    fake = cluster()
    odd = fake.submit(4, features="a|b")
    report = loop_on(fake).one_pass()
    assert report.handed_over == 1
    assert odd.licenses == ""
    assert odd.required == ()


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The jobs that are placed on the empty machine, each time that one is."""
    found: list[str] = []

    def counting(jobs: Iterable[Job], machine: SnapshotState) -> list[Demand | str]:
        listed = list(jobs)
        found.extend(job.id for job in listed)
        return why_never(listed, machine)

    monkeypatch.setattr("aucsched.slurm.live.pass_plan.why_never", counting)
    return found


def test_a_job_that_fits_nowhere_even_when_all_is_up_and_free_is_handed_over_and_tried_once(
    tried: list[str],
) -> None:
    fake = cluster()
    fake.nodes |= {"n2": "drain", "n3": "down"}
    first, large, whole, held = (fake.submit(cores, run_s=400) for cores in (1, 17, 16, 99))
    held.priority = 0
    loop = loop_on(fake)
    report = loop.one_pass()
    assert (report.pinned, report.handed_over, report.dropped) == (1, 1, 0)
    (line,) = [one for one in fake.events("done") if one["kind"] == "hand over"]
    assert (line["job"], line["why"]) == (str(large.number), "it fits nowhere on the empty machine")
    assert [job.licenses for job in (first, large, whole, held)] == ["", "", "auction:1", "auction:1"]
    for _ in range(3):
        fake.tick()
        assert loop.one_pass().handed_over == 0
    assert tried == [str(large.number), str(whole.number)]
    # A cluster of other nodes is another one.
    del fake.nodes["n3"]
    assert loop.one_pass().handed_over == 1
    assert (whole.licenses, held.licenses) == ("", "auction:1")


@pytest.mark.parametrize(
    "asks",
    [
        {"gres_per_node": {"gpu": 3}, "nodes": 4},
        {"gres_total": {"gpu": 24}},
        {"gres_total": {"gpu": 24}, "nodes": 6, "cores": 6},
        {"max_switches": 1, "nodes": 4},
        {"features": {"big"}},
    ],
)
def test_what_one_type_one_leaf_or_no_node_has_never_fits(asks: dict[str, Any]) -> None:
    """Slurm starts the first three: it mixes types of GPUs, and gives up a wish for few switches."""
    names = ("a0", "a1", "a2", "b0", "b1", "b2")
    snapshot = Snapshot(
        nodes=[
            Node(name=name, total=Resources(cores=4, gres={f"gpu:{name[0]}": 4}), state=NodeState.DOWN)
            for name in names
        ],
        switches=[
            Switch(name="s0", nodes=["a0", "a1", "a2"]),
            Switch(name="s1", nodes=["b0", "b1", "b2"]),
            Switch(name="top", switches=["s0", "s1"]),
        ],
        jobs=[
            Job(id="never", priority=2, request=Request(**{"cores": 4} | asks)),
            Job(id="later", priority=1, request=Request(cores=24, nodes=6, licenses={"matlab": 1})),
        ],
        licenses={"matlab": License(total=1, free=0)},
        reservations=[Reservation(name="all", nodes=names, start=0, end=1e9, users=["other"])],
    )
    closed = replace(
        snapshot,
        jobs=[replace(job, partition="p") for job in snapshot.jobs],
        partitions=[Partition(name="p", nodes=["a0"], state=PartitionState.DOWN)],
    )
    assert not NeverFits().why(closed.jobs, state_of(closed))
    (why,) = NeverFits().why(snapshot.jobs, state_of(snapshot)).items()
    assert why[0] == "never"
    assert why[1] in {"it fits nowhere on the empty machine", "no node has the features big"}


_BUDGET = Limit(name="budget", most={"core_seconds": 9})
_NETWORK = Network(
    kind=NetworkKind.GRAPH,
    members=("n0", "n1"),
    nodes=("n0", "n1"),
    switches=(Switch(name="top", nodes=["n0", "n1"]),),
)
_NODES = [Node(name=name, total=Resources(cores=4)) for name in ("n0", "n1")]
_BEFORE = Snapshot(
    nodes=_NODES,
    jobs=[Job(id="7", priority=1, request=Request(cores=99))],
    partitions=[Partition(name="p", nodes=["n1"])],
)
_ON_GRAPH = replace(_BEFORE, network=_NETWORK)


@pytest.mark.parametrize(
    ("before", "change", "count"),
    [
        (_BEFORE, {"nodes": list(map(replace, _NODES)), "limits": [_BUDGET]}, 1),
        (_BEFORE, {"nodes": [replace(_NODES[0], total=Resources(cores=8)), _NODES[1]]}, 2),
        (_BEFORE, {"nodes": [replace(_NODES[0], features={"big"}), _NODES[1]]}, 2),
        (_BEFORE, {"nodes": [replace(_NODES[0], partitions=["q"]), _NODES[1]]}, 2),
        (_BEFORE, {"nodes": [replace(_NODES[0], name="n9"), _NODES[1]]}, 2),
        (_BEFORE, {"nodes": _NODES[1:]}, 2),
        (_BEFORE, {"partitions": [Partition(name="p", nodes=["n0"])]}, 2),
        (_BEFORE, {"switches": [Switch(name="s", nodes=["n0", "n1"])]}, 2),
        (_ON_GRAPH, {"limits": [_BUDGET]}, 1),
        (_ON_GRAPH, {"network": replace(_NETWORK, order="members")}, 2),
    ],
)
def test_jobs_are_tried_again_where_the_empty_machine_is_another_one_not_where_a_budget_shrinks(
    tried: list[str], before: Snapshot, change: dict[str, Any], count: int
) -> None:
    never, last = NeverFits(), None
    for snapshot in (before, replace(before, **change)):
        last = state_of(snapshot, last)
        assert "7" in never.why(snapshot.jobs, last)
    assert len(tried) == count


def test_a_restarted_loop_counts_pinned_jobs_as_holding_their_nodes() -> None:
    fake = cluster()
    first = fake.submit(16, priority=90)
    loop_on(fake).one_pass()
    second = fake.submit(16, priority=99)
    report = loop_on(fake).one_pass()
    assert expand(",".join(first.required)) == ("n0", "n1", "n2", "n3")
    assert report.pinned == 0
    assert second.required == ()


def test_rules_have_the_commands_defaults() -> None:
    own = Settings(host="one", user="root")
    assert (own.licence, own.pin_for, own.tries) == ("auction", 60.0, 3)


def test_cores_beside_a_reservation_of_ours_take_other_jobs() -> None:
    fake = cluster(2)
    fake.submit(5, least=2, most=2, run_s=300)
    loop = loop_on(fake)
    loop.one_pass()
    assert list(fake.reservations) == ["auction_one_root", "aucsched-1"]
    fake.tick()
    small = [fake.submit(1) for _ in range(3)]
    assert loop.one_pass().pinned == 3
    fake.tick()
    assert [job.state for job in small] == ["RUNNING"] * 3


def test_an_operator_marks_jobs_in_their_own_comment_and_gives_it_back() -> None:
    """Slurm 22.05 refuses an operator's update that writes AdminComment, all of it."""
    fake = cluster(1)
    fake.is_operators = True
    job = fake.submit(4, own_comment="mine", comment="site's")
    loop = loop_on(fake)
    report = loop.one_pass()
    assert (report.pinned, report.refused, job.required) == (0, 1, ())
    assert report.why == fake.events("pass")[-1]["why"] == "Access/permission denied"
    loop.one_pass()
    (remark,) = loop.remarks
    assert remark == "Access/permission denied: an operator needs --mark comment; run slurm doctor"
    loop = loop_on(fake, mark="comment")
    assert loop.one_pass().pinned == 1
    assert list(job.required) == ["n0"]
    fake.nodes["n0"] = "drain"
    assert loop.one_pass().put_back == 1
    assert (job.licenses, list(job.required), job.comment) == ("auction:1", [], "site's")
    for _ in range(2):
        fake.nodes["n0"] = "idle"
        assert loop.one_pass().pinned == 1
        fake.nodes["n0"] = "drain"
        loop.one_pass()
    assert (job.licenses, job.own_comment) == ("", "mine")


def test_a_loop_that_marks_comments_already_is_not_told_to() -> None:
    fake = cluster(1)
    fake.submit(4)

    def denying(commands: Sequence[Command]) -> tuple[str, ...]:
        jobs = [words for words in commands if any(word.startswith("JobId=") for word in words)]
        said = fake.hand([words for words in commands if words not in jobs])
        return (*said, *("Access/permission denied for job 1" for _ in jobs))

    loop = loop_on(fake, mark="comment", runner=denying)
    assert loop.one_pass().refused == 1
    assert loop.remarks == ["Access/permission denied: the user lacks rights; run slurm doctor"]


def test_a_job_that_was_pinned_often_enough_is_handed_over_behind_new_pins() -> None:
    fake = cluster()
    often = fake.submit(4)
    loop = loop_on(fake, tries=1, changes=1)
    assert loop.one_pass().pinned == 1
    often.priority = 0
    fake.submit(4)
    report = loop.one_pass()
    assert (report.pinned, report.handed_over, report.deferred) == (1, 0, 1)


def test_only_the_pin_on_which_a_job_ran_says_that_it_was_requeued() -> None:
    fake = cluster()
    job = fake.submit(4, run_s=900)
    loop = loop_on(fake)
    loop.one_pass()
    fake.tick()
    assert loop.one_pass().running == 1
    fake.requeue(job)
    # Another leader put it back and pinned it anew, later.
    job.comment = re.sub(r"since=(\d+)", lambda found: f"since={int(found[1]) + 1}", job.comment)
    job.begin = fake.now + 600
    loop.one_pass()
    assert [line["why"] for line in fake.events("intend") if line["kind"] == "unpin"] == []
