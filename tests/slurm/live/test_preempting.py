"""Jobs that only Slurm's own preemption starts are handed over to it; what it stops comes back."""

from __future__ import annotations

import json

import pytest
from support.gated_slurm import FakeJob, FakeSlurm, loop_on

from aucsched.cluster.errors import InputError
from aucsched.cluster.jobs import Job, Request, RunningJob
from aucsched.cluster.nodes import Resources
from aucsched.slurm.answers.answer_text import Paragraph
from aucsched.slurm.answers.live import PARTITIONS, Ask, Command
from aucsched.slurm.answers.policy import config_of
from aucsched.slurm.live.preempting import QOS, SlurmPreemption, read_preemption

CONFIG = (
    "Configuration data as of now\nPreemptMode             = REQUEUE\nPreemptType             = preempt/{}\n"
)


def settings(kind: str) -> Paragraph:
    return config_of(CONFIG.format(kind))


def test_nothing_is_asked_where_nothing_is_stopped() -> None:
    def ask(command: Command) -> bytes:
        raise AssertionError(command)

    assert read_preemption(settings("none"), None, ask) is None
    assert read_preemption(Paragraph({}, "config"), None, ask) is None


def job(partition: str = "", qos: str = "") -> Job:
    return Job(id="1", priority=1, request=Request(cores=1), partition=partition, qos=qos)


def running(partition: str = "", qos: str = "") -> RunningJob:
    return RunningJob(id="2", nodes={"n0": Resources(cores=1)}, partition=partition, qos=qos)


def test_a_higher_tier_stops_a_lower_one_but_no_partition_that_is_kept() -> None:
    text = (
        b"PartitionName=low PriorityTier=1 PreemptMode=REQUEUE\n"
        b"PartitionName=kept PriorityTier=1 PreemptMode=OFF\n"
        b"PartitionName=high PriorityTier=10 PreemptMode=REQUEUE\n"
    )
    rules = read_preemption(settings("partition_prio"), None, lambda _: text)
    assert rules is not None
    pairs = {
        (mine, theirs)
        for mine in ("low", "kept", "high", "low,high", "")
        for theirs in ("low", "kept", "high", "")
        if rules.stops(job(mine), running(theirs))
    }
    assert pairs == {("high", "low"), ("low,high", "low")}


def test_a_qos_stops_those_that_it_names_but_none_that_is_off() -> None:
    text = b"normal||cluster\nhigh|normal,rigid|cluster\nrigid||OFF\n"
    rules = read_preemption(settings("qos"), None, lambda _: text)
    assert rules == SlurmPreemption(
        stopped={"normal": frozenset(), "high": frozenset({"normal"}), "rigid": frozenset()}
    )
    assert rules.stops(job(qos="high,partition"), running(qos="normal"))
    assert not rules.stops(job(qos="normal"), running(qos="high"))
    assert not rules.stops(job(qos="high"), running(qos="rigid"))
    assert read_preemption(settings("qos"), None, lambda _: b"\n" + text + b"\n") == rules
    for row in (b"high|normal", b"high|normal|cluster|more"):
        with pytest.raises(InputError, match=r"^sacctmgr -n -P show qos .*: not what was asked for"):
            read_preemption(settings("qos"), None, {QOS: row}.__getitem__)


def cluster(nodes: int = 2, *, preempts: bool = True) -> tuple[FakeSlurm, list[FakeJob]]:
    """A cluster that jobs of the lower tier fill, which the loop pinned."""
    fake = FakeSlurm(
        nodes={f"n{number}": "idle" for number in range(nodes)},
        tiers={"p": 1, "urgent": 10},
        preempts=preempts,
    )
    low = [fake.submit(4, run_s=400) for _ in range(nodes)]
    loop_on(fake).one_pass()
    fake.tick()
    assert {one.state for one in low} == {"RUNNING"}
    return fake, low


def test_a_job_of_a_higher_tier_is_slurms_and_what_it_stops_comes_back_behind_the_gate() -> None:
    fake, low = cluster()
    loop = loop_on(fake)
    urgent = fake.submit(4, partition="urgent", priority=10, run_s=20)
    assert loop.one_pass().handed_over == 1
    assert (urgent.licenses, urgent.required) == ("", ())
    assert fake.events("done")[-1]["why"] == "Slurm may stop running jobs for it, the auction stops none"
    fake.tick()
    assert urgent.state == "RUNNING"
    assert [one.state for one in low] == ["RUNNING", "PENDING"]
    for _ in range(12):
        loop.one_pass()
        for _ in range(10):
            fake.tick()
    assert urgent.state == "COMPLETED"
    assert [one.state for one in low] == ["RUNNING", "RUNNING"]
    assert [len(one.starts) for one in low] == [1, 2]


def test_partitions_are_asked_for_once_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    fake, _ = cluster()
    asked: list[Command] = []
    answer = fake.ask

    def ask(command: Command) -> bytes:
        asked.append(command)
        return answer(command)

    monkeypatch.setattr(fake, "ask", ask)
    urgent = fake.submit(4, partition="urgent", priority=10)
    assert loop_on(fake).one_pass().handed_over == 1
    assert urgent.licenses == ""
    assert [command for command in asked if "partitions" in command] == [PARTITIONS]


def test_no_more_are_handed_over_than_stopping_makes_room_for() -> None:
    fake, low = cluster()
    urgent = [fake.submit(4, partition="urgent", priority=20 - number) for number in range(3)]
    # It would fit if all nodes were up.
    fake.nodes["n2"] = "drain"
    large = fake.submit(12, partition="urgent", priority=99)
    assert loop_on(fake).one_pass().handed_over == 2
    assert [one.licenses for one in (*urgent, large)] == ["", "", "auction:1", "auction:1"]
    fake.tick()
    assert {one.state for one in low} == {"PENDING"}


def test_free_nodes_are_the_auctions_first() -> None:
    fake, low = cluster()
    fake.nodes["n9"] = "idle"
    urgent = fake.submit(4, partition="urgent")
    report = loop_on(fake).one_pass()
    assert (report.pinned, report.handed_over) == (1, 0)
    fake.tick()
    assert urgent.starts == [("n9",)]
    assert {one.state for one in low} == {"RUNNING"}


@pytest.mark.parametrize("what", ["no preemption", "same tier", "held", "pinned, not running"])
def test_others_wait_behind_the_gate(what: str) -> None:
    fake, low = cluster(preempts=what != "no preemption")
    if what == "pinned, not running":
        for one in low:
            # Requeued a moment ago: its nodes are claimed, and nothing is there to be stopped.
            fake.requeue(one)
    waiting = fake.submit(
        4, partition="p" if what == "same tier" else "urgent", priority=0 if what == "held" else 50
    )
    report = loop_on(fake).one_pass()
    assert (report.outcome, report.handed_over) == ("done", 0)
    assert waiting.licenses == "auction:1"
    assert {one.state for one in low} == {"PENDING" if what == "pinned, not running" else "RUNNING"}


def test_rules_that_cannot_be_asked_for_break_no_pass() -> None:
    fake, _ = cluster()
    fake.submit(4, partition="urgent")
    config = CONFIG.format("qos").encode()

    def ask(command: Command) -> bytes:
        if command[0] == "sacctmgr":
            raise InputError("slurmdbd does not answer", file="sacctmgr")
        return config if command == ("scontrol", "show", "config") else fake.ask(command)

    loop = loop_on(fake, ask=ask)
    assert loop.one_pass().outcome == "done"
    assert fake.events("said")[-1]["text"] == "sacctmgr: slurmdbd does not answer"


def test_where_slurm_stops_only_jobs_of_a_lower_priority() -> None:
    """``PreemptMode=PRIORITY`` of 25.05: a job of a higher tier does not stop one of a higher priority."""
    fake, low = cluster()
    fake.preempt_mode = "REQUEUE,PRIORITY"
    low[0].priority = low[1].priority = 500
    first = fake.submit(4, partition="urgent", priority=400)
    assert loop_on(fake).one_pass().outcome == "done"
    assert first.licenses, "it waits behind the gate"
    second = fake.submit(4, partition="urgent", priority=600)
    assert loop_on(fake).one_pass().outcome == "done"
    assert (first.licenses, second.licenses) == ("auction:1", "")


def asleep(fake: FakeSlurm, *names: str) -> Ask:
    """Return what answers of a cluster some nodes of which are powered down."""

    def ask(command: Command) -> bytes:
        answer = fake.ask(command)
        if command != ("sinfo", "--json"):
            return answer
        document = json.loads(answer)
        for node in document["nodes"]:
            if node["name"] in names:
                node["state_flags"] = ["CLOUD", "POWERED_DOWN"]
        return json.dumps(document).encode()

    return ask


def test_jobs_that_fit_only_on_nodes_that_sleep_are_slurms_to_wake_them_for() -> None:
    fake = FakeSlurm(nodes={f"n{number}": "idle" for number in range(3)})
    awake = fake.submit(4, priority=9)
    wide = fake.submit(8, least=2, most=2, priority=8)
    late = fake.submit(4, priority=7)
    loop = loop_on(fake, ask=asleep(fake, "n1", "n2"))
    assert loop.one_pass().outcome == "done"
    assert (awake.required, awake.licenses) == (("n0",), "")
    assert (wide.required, wide.licenses) == ((), "")
    assert late.licenses == "auction:1", "the job before it has all that sleeps"
    (done,) = [line for line in fake.events("done") if line["kind"] == "hand over"]
    assert done["why"] == "Slurm may wake nodes or stop running jobs for it, the auction does neither"
