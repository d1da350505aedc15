"""The loop beside a Slurm that answers as 24.05 does: it decides and changes what it does beside 22.05."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.gated_slurm import FakeSlurm, loop_on
from support.newer import newer_jobs, newer_nodes

from aucsched.auction.options import StepOptions
from aucsched.slurm.answers.detail import JobDetail
from aucsched.slurm.answers.live import Ask, Command
from aucsched.slurm.live.actions import ActionKind
from aucsched.slurm.live.live_queue import read_queue
from aucsched.slurm.live.loop_options import Settings
from aucsched.slurm.live.loop_snapshot import with_claims
from aucsched.slurm.live.pass_plan import decided
from aucsched.slurm.live.passes import take_look, take_pass

_NOTHING = JobDetail(name="")


def newer(fake: FakeSlurm) -> Ask:
    """Return what answers as a later Slurm in front of the same cluster."""

    def ask(command: Command) -> bytes:
        if command == ("scontrol", "show", "nodes", "--json"):
            return json.dumps(newer_nodes(json.loads(fake.ask(("sinfo", "--json"))))).encode()
        if command == ("squeue", "--json"):
            document = json.loads(fake.ask(command))
            for job in document["jobs"]:
                job |= {"thread_spec": None, "core_spec": None}
            return json.dumps(newer_jobs(document, defaultdict(lambda: _NOTHING))).encode()
        return fake.ask(command)

    return ask


def story(*, is_newer: bool) -> tuple[FakeSlurm, list[tuple[str, ...]]]:
    """Pins of all kinds, starts, a put-back, a held job; return the cluster and what was sent."""
    fake = FakeSlurm(nodes={f"n{number}": "idle" for number in range(4)})
    loop = loop_on(fake, ask=newer(fake) if is_newer else fake.ask)
    for options in ({"cpus": 8}, {"cpus": 3, "least": 2, "most": 2}, {"cpus": 1, "exclusive": True}):
        fake.submit(**options)
    fake.submit(2, least=1, most=3, comment="site's")
    fake.submit(1, priority=0)
    for number in range(8):
        report = loop.one_pass()
        assert report.outcome == "done", report.outcome
        if number == 0:
            pinned = next(job for job in fake.jobs.values() if job.required)
            fake.nodes[pinned.required[0]] = "drain"
        if number == 2:
            fake.nodes = dict.fromkeys(fake.nodes, "idle")
        for _ in range(10):
            fake.tick()
    return fake, fake.sent


def test_the_loop_does_the_same_beside_a_later_slurm() -> None:
    (old, sent_before), (new, sent) = story(is_newer=False), story(is_newer=True)
    assert sent == sent_before
    assert len(sent) > 12
    assert [job.starts for job in new.jobs.values()] == [job.starts for job in old.jobs.values()]
    assert [job.state for job in new.jobs.values()] == ["COMPLETED"] * 4 + ["PENDING"]


def edited(fake: FakeSlurm, edit: Callable[[dict[str, Any]], object]) -> Ask:
    """Return what answers as the cluster, with an edit of its queue."""

    def ask(command: Command) -> bytes:
        answer = fake.ask(command)
        if command[:1] != ("squeue",) or "--json" not in command[1]:
            return answer
        document = json.loads(answer)
        edit(document)
        return json.dumps(document).encode()

    return ask


def with_matlab(fake: FakeSlurm) -> Ask:
    """Return what answers as a cluster that has two more licences."""

    def ask(command: Command) -> bytes:
        answer = fake.ask(command)
        if command == ("scontrol", "-o", "show", "licenses"):
            for name in ("matlab", "ansys"):
                answer += f"LicenseName={name} Total=9 Used=0 Free=9 Reserved=0 Remote=no\n".encode()
        return answer

    return ask


def licenses_sent(fake: FakeSlurm) -> list[tuple[str, str, bool]]:
    """Each update's job, the licences that it is given, and whether its nodes are named."""
    found = []
    for words in fake.sent:
        values = dict(word.partition("=")[::2] for word in words)
        if "JobId" in values:
            found.append((values["JobId"], values["Licenses"], bool(values.get("ReqNodeList"))))
    return found


def test_other_licences_survive_pins_and_put_backs() -> None:
    """25.05 writes lists with semicolons: a pin takes the gate's licence off and no other."""
    fake = FakeSlurm(nodes={f"n{number}": "idle" for number in range(2)})
    loop = loop_on(fake, ask=with_matlab(fake))
    for licenses in ("auction:1;matlab:2", "ansys;matlab:1;auction:1", "auction:1;matlab(n[0,1]):2"):
        fake.submit(2, licenses=licenses)
    first, second, third = fake.jobs
    assert loop.one_pass().outcome == "done"
    assert sorted(licenses_sent(fake)) == [
        (first, "matlab:2", True),
        (second, "ansys;matlab:1", True),
        (third, "matlab(n[0,1]):2", False),
    ]
    fake.sent.clear()
    fake.nodes = dict.fromkeys(fake.nodes, "drain")
    assert loop.one_pass().outcome == "done"
    assert sorted(licenses_sent(fake)) == [
        (first, "matlab:2,auction:1", False),
        (second, "ansys;matlab:1;auction:1", False),
    ]


def test_the_cpus_of_a_job_that_slurm_rounds_up_to_whole_cores_stay_as_asked() -> None:
    """With more CPUs than its tasks ask for 22.05 gives a job no gres (BadConstraints)."""
    fake = FakeSlurm(nodes=dict.fromkeys(("n0", "n1", "n2"), "idle"))

    def ask(command: Command) -> bytes:
        answer = fake.ask(command)
        if "--json" not in command or b'"threads"' not in answer:
            return answer
        document = json.loads(answer)
        for node in document["nodes"]:
            node.update(cores=2, threads=2)
        return json.dumps(document).encode()

    fake.submit(1)
    fake.submit(2)
    fake.submit(3, least=2, most=2)
    loop = loop_on(fake, ask=ask)
    assert loop.one_pass().outcome == "done"
    odd, even, wide = (
        dict(word.partition("=")[::2] for word in words)
        for words in sorted(fake.sent)
        if "Licenses=" in words
    )
    # Over two nodes whole cores are named: Slurm could deal them otherwise.
    assert (wide["MinCPUsNode"], wide["NumCPUs"]) == ("2", "4")
    assert "NumCPUs" not in odd
    assert "MinCPUsNode" not in odd
    assert even["NumCPUs"] == "2"


def test_a_job_that_slurm_starts_again_before_all_others_is_handed_over() -> None:
    """``--requeue=expedite`` of 25.11: Slurm keeps nodes for it, so no pin may name others."""
    fake = FakeSlurm(nodes={"n0": "idle"})
    fake.submit(1)
    fake.submit(1)
    expedited, other = fake.jobs

    def edit(document: dict[str, Any]) -> None:
        # Slurm lets a requeued job begin two minutes later.
        document["jobs"][0] |= {"job_state": ["PENDING", "EXPEDITING"], "flags": ["EXPEDITED_REQUEUE"]}
        document["jobs"][0] |= {"state_reason": "BeginTime", "eligible_time": int(fake.now) + 120}

    assert loop_on(fake, ask=edited(fake, edit)).one_pass().outcome == "done"
    assert sorted(licenses_sent(fake)) == [(expedited, "", False), (other, "", True)]


def test_a_pinned_job_that_is_requeued_before_all_others_keeps_no_pin() -> None:
    """It ran on its pin and was requeued: Slurm keeps its nodes, and the loop no longer."""
    fake = FakeSlurm(nodes={"n0": "idle"})
    fake.submit(1)
    assert loop_on(fake).one_pass().outcome == "done"
    (job,) = fake.jobs
    assert fake.jobs[job].required == ("n0",)

    def ask(command: Command) -> bytes:
        answer = fake.ask(command)
        if command[:2] == ("squeue", "-h"):
            return answer.replace(b"|PENDING|", b"|EXPEDITING|")
        if command != ("squeue", "--json"):
            return answer
        document = json.loads(answer)
        document["jobs"][0]["job_state"] = ["PENDING", "EXPEDITING"]
        return json.dumps(document).encode()

    assert loop_on(fake, ask=ask).one_pass().outcome == "done"
    (action,) = fake.events("done")[-1:]
    assert (action["kind"], action["why"]) == ("hand over", "Slurm starts it before all others")
    assert (fake.jobs[job].required, fake.jobs[job].licenses, fake.jobs[job].comment) == ((), "", "")


def test_a_pin_that_takes_a_jobs_priority_is_taken_back_with_it() -> None:
    """Slurm finds a pin that breaks a rule of its topology: BadConstraints, priority 0 (24.05 and later)."""
    fake = FakeSlurm(nodes={"n0": "idle"})
    fake.submit(1)
    loop = loop_on(fake)
    assert loop.one_pass().outcome == "done"
    (job,) = fake.jobs.values()
    job.breaks_rules, job.priority = True, 0
    assert loop.one_pass().outcome == "done"
    (action,) = fake.events("done")[-1:]
    assert (action["kind"], action["why"]) == ("hand over", "Slurm holds it (BadConstraints)")
    assert fake.sent[-1] == ("release", "1")
    assert (job.required, job.licenses, job.priority) == ((), "", 100)
    fake.tick()
    assert job.state == "RUNNING"


def test_what_26_05_adds_to_a_reason_is_said() -> None:
    fake = FakeSlurm(nodes={"n0": "idle"})
    fake.submit(1)

    text = "No suitable topology unit found for segment"
    said = {"state_reason": "Resources", "state_description": text}
    loop = loop_on(fake, ask=edited(fake, lambda document: document["jobs"][0].update(said)))
    assert loop.one_pass().outcome == "done"
    fake.now += 61
    assert loop.one_pass().outcome == "done"
    (action,) = [line for line in fake.events("intend") if line["kind"] == "unpin"]
    assert action["why"] == f"it did not start within 60 s (Resources: {text})"


def on_blocks(version: str = "26.05.1") -> FakeSlurm:
    """Three blocks of two nodes; the outer nodes of the first two are busy."""
    fake = FakeSlurm(nodes={f"n{number}": "idle" for number in range(6)}, block=2, version=version)
    for node in ("n0", "n3"):
        fake.submit(4, licenses="", required=(node,), run_s=100.0)
    fake.tick()
    assert [job.state for job in fake.jobs.values()] == ["RUNNING"] * 2
    return fake


def test_pins_keep_the_rules_of_blocks() -> None:
    """Nodes n1 and n2 are neighbours and free, in two blocks: no job of two nodes may have them."""
    fake = on_blocks()
    for priority in (9, 8):
        fake.submit(8, least=2, most=2, priority=priority)
    loop = loop_on(fake)
    assert loop.one_pass().outcome == "done"
    fake.tick()
    first, second = list(fake.jobs.values())[2:]
    assert first.starts == [("n4", "n5")]
    assert (second.state, second.required) == ("PENDING", ())
    for _ in range(12):
        assert loop.one_pass().outcome == "done"
        for _ in range(10):
            fake.tick()
    assert second.starts == [("n4", "n5")]
    assert not any(job.breaks_rules for job in fake.jobs.values())


def test_a_placement_that_breaks_a_rule_of_blocks_is_handed_over() -> None:
    """Whatever placed it: here a step that knows no blocks."""
    fake = on_blocks()
    fake.nodes |= {"n4": "drain", "n5": "drain"}
    job = fake.submit(8, least=2, most=2)
    look = take_look(gate="auction", ask=fake.ask, now=lambda: fake.now)
    queue = read_queue(look.sources.jobs.content, "squeue")
    blind = replace(look, snapshot=with_claims(replace(look.snapshot, network=None), queue, "auction"))
    taken = take_pass(blind, StepOptions(work_limit=0, promise="none", reserve=0))
    assert [award.job for award in taken.step.schedule.started] == ["3"]
    (pinned,) = decided(taken, queue, Settings(host="one", user="root"), fake.now, {}, {})
    assert (pinned.kind, pinned.nodes) == (ActionKind.PIN, ("n1", "n2"))
    (action,) = decided(replace(taken, look=look), queue, Settings(host="one", user="root"), fake.now, {}, {})
    assert action.kind is ActionKind.HAND_OVER
    assert action.why == "on these nodes it is on too many blocks: Slurm would hold it"
    fake.hand(pinned.commands)
    fake.tick()
    assert (job.breaks_rules, job.priority) == (True, 0), "what the pin would have done"


@pytest.mark.parametrize(("version", "is_pinned"), [("25.05.9", False), ("25.11.3", True), ("", False)])
def test_segments_are_pinned_where_slurm_takes_named_nodes_for_them(version: str, *, is_pinned: bool) -> None:
    fake = on_blocks(version)
    job = fake.submit(8, least=2, most=2, segment=1)
    assert loop_on(fake).one_pass().outcome == "done"
    assert job.licenses == ""
    assert bool(job.required) == is_pinned
    (done,) = fake.events("done")
    if not is_pinned:
        why = "before Slurm 25.11 a job with --segment may name no nodes"
        assert (done["kind"], done["why"]) == ("hand over", why)
    fake.tick()
    assert job.state == "RUNNING"
    assert not job.breaks_rules


def test_a_job_that_wants_its_block_alone_is_pinned_and_keeps_others_off() -> None:
    fake = on_blocks()
    alone = fake.submit(4, least=1, most=1, priority=50)
    others = [fake.submit(4, least=1, most=1, priority=40 - number) for number in range(3)]

    def edit(document: dict[str, Any]) -> None:
        next(job for job in document["jobs"] if job["job_id"] == alone.number)["shared"] = ["topo"]

    loop = loop_on(fake, ask=edited(fake, edit))
    assert loop.one_pass().outcome == "done"
    assert alone.required in {("n4",), ("n5",)}
    # Whole nodes are named, not counted; the others get the nodes beside busy ones only.
    assert alone.min_cpus == 1
    pinned = sorted(one.required for one in others)
    assert pinned == [(), ("n1",), ("n2",)]
    assert loop.one_pass().outcome == "done", "the pin is a claim now"
    assert sorted(one.required for one in others) == pinned
    assert not [event for event in fake.events("done") if event["kind"] == "hand over"]


def test_a_loop_reads_the_topology_that_it_is_given(tmp_path: Path) -> None:
    """Two blocks of three nodes, where scontrol shows three of two."""
    fake = on_blocks()
    file = tmp_path / "topology.yaml"
    file.write_text(
        "- topology: racks\n  cluster_default: true\n"
        "  block: {blocks: [{block: a, nodes: 'n[0,3,5]'}, {block: b, nodes: 'n[1-2,4]'}]}\n"
    )
    job = fake.submit(12, least=3, most=3)
    assert loop_on(fake, topology=str(file)).one_pass().outcome == "done"
    assert set(job.required) == {"n1", "n2", "n4"}
    file.write_text("- topology: racks\n  block: 3\n")
    outcome = loop_on(fake, topology=str(file)).one_pass().outcome
    assert outcome == f"{file}: [0].block: the member 'blocks' is missing or not a list"


@pytest.mark.parametrize(
    ("state", "is_pinned"), [("mix-", True), ("idle", True), ("idle*", False), ("mix@", False)]
)
def test_nodes_that_slurm_plans_for_a_job_take_others(state: str, *, is_pinned: bool) -> None:
    """The mark behind a state says that the node takes no jobs, but for the one of backfill's plans."""
    fake = FakeSlurm(nodes={"n0": "idle"})
    job = fake.submit(1)

    def ask(command: Command) -> bytes:
        answer = fake.ask(command)
        return answer.replace(b"|idle|", f"|{state}|".encode()) if command[:2] == ("sinfo", "-h") else answer

    assert loop_on(fake, ask=ask).one_pass().outcome == "done"
    assert bool(job.required) == is_pinned


def test_a_job_whose_pin_slurm_refuses_again_and_again_is_handed_over() -> None:
    """24.05 and 24.11 do not tell ``--segment``, and refuse named nodes beside it."""
    fake = FakeSlurm(nodes={"n0": "idle"})
    job = fake.submit(1, takes_no_pin=True)
    loop = loop_on(fake)
    for _ in range(3):
        assert loop.one_pass().refused == 1
        assert job.licenses == "auction:1"
    assert loop.one_pass().handed_over == 1
    assert (job.licenses, job.required) == ("", ())
    assert fake.events("done")[-1]["why"] == "Slurm refused its pin (tries: 3)"
    fake.tick()
    assert job.state == "RUNNING"
