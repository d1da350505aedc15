"""A pinned job names only partitions that may start it, and all of them again when it is put back."""

from __future__ import annotations

from dataclasses import replace

import pytest

import aucsched
from aucsched import Job, Node, Request, Resources, Snapshot
from aucsched.slurm.answers.states import JobPhase
from aucsched.slurm.live.actions import pin, unpin
from aucsched.slurm.live.live_queue import Carrier, LiveJob, read_mark

WAITING = LiveJob(
    id="7",
    phase=JobPhase.PENDING,
    licenses="auction:1",
    carrier=Carrier.ADMIN_COMMENT,
    comment="",
    mark=None,
    required="",
    nodes="",
    cpus=2,
    min_cpus=1,
    least_nodes=1,
    most_nodes=0,
    priority=1,
    is_expedited=False,
    reservation="",
    reason="Licenses",
    partition="hi,lo,p",
    user="ann",
    tasks="",
)


def pinned(allowed: str) -> tuple[dict[str, str], LiveJob]:
    """Return what a pin says of a job that may start in some of its partitions, and the job after it."""
    job = Job(id="7", priority=1, request=Request(cores=2), partition=allowed)
    node = Node(name="n1", total=Resources(cores=4), partitions=frozenset({"hi", "lo", "p"}))
    snapshot = Snapshot(nodes=(node,), jobs=(job,))
    (award,) = aucsched.schedule(snapshot).started
    (words,) = pin(snapshot, award, WAITING, "auction", 1000).commands
    said = dict(word.split("=", 1) for word in words[1:])
    partition = said.get("Partition", WAITING.partition)
    return said, replace(WAITING, partition=partition, required="n1", cpus=2, min_cpus=2, licenses="")


@pytest.mark.parametrize("allowed", ["lo,p", "p"])
def test_a_pin_leaves_out_partitions_that_refuse_the_job(allowed: str) -> None:
    """Slurm 22.05 starts no job with named nodes in a partition that refuses its account (tried)."""
    said, job = pinned(allowed)
    assert said["Partition"] == allowed
    mark = read_mark(said["AdminComment"])
    assert mark is not None
    (words,) = unpin(job, mark, "auction", "late").commands
    assert "Partition=hi,lo,p" in words
    # What somebody has changed since stays theirs.
    (words,) = unpin(replace(job, partition="other"), mark, "auction", "late").commands
    assert not [word for word in words if word.startswith("Partition=")]


def test_a_pin_changes_no_partitions_that_all_take_the_job() -> None:
    said, job = pinned("hi,lo,p")
    assert "Partition" not in said
    mark = read_mark(said["AdminComment"])
    assert mark is not None
    (words,) = unpin(job, mark, "auction", "late").commands
    assert not [word for word in words if word.startswith("Partition=")]
