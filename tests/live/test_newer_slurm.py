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
