"""The loop beside a Slurm that answers as 24.05 does: it decides and changes what it does beside 22.05."""

from __future__ import annotations

import json
from collections import defaultdict

from support.gated_slurm import FakeSlurm, loop_on
from support.newer import newer_jobs, newer_nodes

from aucsched.slurm.answers.detail import JobDetail
from aucsched.slurm.answers.live import Ask, Command

_NOTHING = JobDetail(name="", max_switches=None, cpus_per_task=None, tasks_per_gres=None, use={})


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


def test_a_job_that_slurm_starts_again_before_all_others_is_handed_over() -> None:
    """``--requeue=expedite`` of 25.11: Slurm keeps nodes for it, so no pin may name others."""
    fake = FakeSlurm(nodes={"n0": "idle"})
    fake.submit(1)
    fake.submit(1)
    expedited, other = fake.jobs

    def ask(command: Command) -> bytes:
        answer = fake.ask(command)
        if command != ("squeue", "--json"):
            return answer
        document = json.loads(answer)
        # Slurm lets a requeued job begin two minutes later.
        document["jobs"][0] |= {"job_state": ["PENDING", "EXPEDITING"], "flags": ["EXPEDITED_REQUEUE"]}
        document["jobs"][0] |= {"state_reason": "BeginTime", "eligible_time": int(fake.now) + 120}
        return json.dumps(document).encode()

    assert loop_on(fake, ask=ask).one_pass().outcome == "done"
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

    def ask(command: Command) -> bytes:
        answer = fake.ask(command)
        if command != ("squeue", "--json"):
            return answer
        document = json.loads(answer)
        text = "No suitable topology unit found for segment"
        document["jobs"][0] |= {"state_reason": "Resources", "state_description": text}
        return json.dumps(document).encode()

    loop = loop_on(fake, ask=ask)
    assert loop.one_pass().outcome == "done"
    fake.now += 61
    assert loop.one_pass().outcome == "done"
    (action,) = [line for line in fake.events("intend") if line["kind"] == "unpin"]
    reason = "Resources: No suitable topology unit found for segment"
    assert action["why"] == f"it did not start within 60 s ({reason})"
