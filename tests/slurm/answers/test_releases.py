"""One small queue as 24.05 to 26.05 tell it: the same requests are read, whatever the form."""

from __future__ import annotations

import json
import runpy
from dataclasses import replace
from pathlib import Path

import pytest

from aucsched import Job, License, NodeState, Snapshot
from aucsched.slurm.answers.snapshot_of_answers import SlurmSources, SlurmText, import_slurm
from aucsched.slurm.live.license_gate import gates

FOLDER = Path(__file__).parents[2] / "fixtures" / "slurm" / "releases"
TRIM = Path(__file__).parents[3] / "examples" / "trim_slurm.py"
RELEASES = ["24.05", "24.11", "25.05", "25.11", "26.05"]
#: JSON as each release writes it by itself, and 26.05's in the version that is asked for.
FORMS = [*((release, "") for release in RELEASES), ("26.05", "_v44")]
#: 26.05's JSON tells nothing of sharing: scontrol's text stands in.
BLIND = "26.05's JSON does not tell which jobs ask for whole nodes, so all get whole nodes"


def text(release: str, name: str) -> SlurmText:
    return SlurmText(name=name, content=(FOLDER / release / name).read_bytes())


def sources(release: str, suffix: str = "", *, partitions: str = "json") -> SlurmSources:
    return SlurmSources(
        jobs=text(release, f"jobs{suffix}.json"),
        nodes=text(release, "nodes.json"),
        topology=text(release, "topology.txt"),
        job_detail=text(release, "job_detail.txt"),
        licenses=text(release, "licenses.txt"),
        partitions=text(release, f"partitions{suffix * (partitions == 'json')}.{partitions}"),
        reservations=text(release, "reservations.txt"),
    )


def read(release: str, suffix: str = "", *, partitions: str = "json") -> Snapshot:
    return import_slurm(sources(release, suffix, partitions=partitions), gate="auction")[0]


def by_id(snapshot: Snapshot) -> dict[str, Job]:
    return {job.id: job for job in snapshot.jobs}


@pytest.mark.parametrize(("release", "suffix"), FORMS)
@pytest.mark.parametrize("form", ["json", "txt"])
def test_who_gets_whole_nodes(release: str, suffix: str, form: str) -> None:
    jobs = by_id(read(release, suffix, partitions=form))
    assert not jobs["1"].request.exclusive
    assert jobs["2"].request.exclusive, "--exclusive"
    assert jobs["3"].unsupported == ("nodes shared only within user (--exclusive=user)",)
    assert jobs["4"].request.exclusive, "the partition gives no others"
    assert jobs["5"].unsupported == ("nodes shared only within topo (--exclusive=topo)",)


@pytest.mark.parametrize(("release", "suffix"), FORMS)
@pytest.mark.parametrize("form", ["json", "txt"])
def test_rules_of_partitions_that_are_not_looked_at(release: str, suffix: str, form: str) -> None:
    said = [note for note in read(release, suffix, partitions=form).notes if note.startswith("partition")]
    assert not any("partition p:" in note or "partition whole:" in note for note in said), said
    assert any(note.startswith("partition shared: OverSubscribe") for note in said)
    tells_user = form == "txt" or (release == "26.05" and not suffix)
    assert any(note.startswith("partition own: Exclusive") for note in said) == tells_user


def test_where_nothing_tells_it_every_job_gets_whole_nodes() -> None:
    made = import_slurm(replace(sources("26.05"), job_detail=None), gate="auction")[0]
    assert all(job.request.exclusive for job in made.jobs)
    assert sum(note.startswith(BLIND) for note in made.notes) == 1
    assert any(note.startswith(BLIND) for note in made.unread)
    told = import_slurm(replace(sources("26.05", "_v44"), job_detail=None), gate="auction")[0]
    assert not by_id(told)["1"].request.exclusive
    assert not any(note.startswith(BLIND) for note in (*told.notes, *read("26.05").notes))


@pytest.mark.parametrize("release", RELEASES)
def test_licences(release: str) -> None:
    snapshot = read(release)
    jobs = by_id(snapshot)
    assert jobs["1"].request.licenses == {"matlab": 2}
    assert not jobs["1"].unsupported
    if release >= "25.05":
        assert snapshot.licenses["flat"] == License(total=16, free=16)
        assert jobs["8"].request.licenses == {"flat": 3}
        assert jobs["6"].unsupported == ("the licences matlab:2|ansys, which are no plain counts",)
        assert jobs["9"].unsupported == ("the licences flat(n[1-4]):3, which are no plain counts",)


@pytest.mark.parametrize("release", RELEASES)
def test_the_gate_is_seen(release: str) -> None:
    (gate,) = gates(lambda _: text(release, "reservations.txt").content, "auction")
    assert (gate.name, gate.held) == ("auction_head", 1000)


@pytest.mark.parametrize("release", RELEASES)
def test_what_no_member_of_a_request_says(release: str) -> None:
    jobs = by_id(read(release))
    if release >= "25.05":
        assert jobs["7"].unsupported == ("--segment=2",)
    if release >= "25.11":
        assert jobs["10"].unsupported == ("--requeue=expedite",)
        assert jobs["11"].unsupported == ("it starts again before all others (EXPEDITING)",)


@pytest.mark.parametrize("release", RELEASES)
def test_nodes_and_topology(release: str) -> None:
    snapshot = read(release)
    states = [node.state for node in snapshot.nodes]
    assert states[:2] == [NodeState.IDLE] * 2
    assert states[2].takes_jobs == (release < "26.05")
    assert states[3].takes_jobs == (release < "25.11")
    assert not any("not known" in note for note in snapshot.notes)
    assert snapshot.switches is None
    assert any(" are no switches: " in note for note in snapshot.unread)


@pytest.mark.parametrize(("release", "suffix"), FORMS)
def test_trimmed_output_says_the_same(release: str, suffix: str) -> None:
    """What a bug report is made of must not read as a weaker request."""
    trim = runpy.run_path(str(TRIM))
    whole = sources(release, suffix)

    def trimmed(source: SlurmText, member: str) -> SlurmText:
        kept = trim[f"{member.upper()[:-1]}_MEMBERS"].split()
        document = trim["trim"](json.loads(source.content), member, kept)
        return SlurmText(name=source.name, content=json.dumps(document).encode())

    small = replace(whole, jobs=trimmed(whole.jobs, "jobs"), nodes=trimmed(whole.nodes, "nodes"))
    assert import_slurm(small, gate="auction")[0] == read(release, suffix)
