"""Partitions, licences and reservations: text and JSON say the same, and what they lose is noted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aucsched import InputError, Job, License, Partition, Reservation, Snapshot, load_snapshot, save_snapshot
from aucsched.cluster.nodes import NodeState, PartitionState
from aucsched.slurm.answers.snapshot_of_answers import SlurmSources, SlurmText, import_slurm

FIXTURES = Path(__file__).parents[2] / "fixtures" / "slurm"
NEWER = FIXTURES / "newer"
SHARED = Path(__file__).parents[4] / "shared" / "data" / "slurm"
FORMS = ["txt", "json"]


def text(path: Path) -> SlurmText:
    return SlurmText(name=path.name, content=path.read_bytes())


SMALL = SlurmSources(
    jobs=text(FIXTURES / "use" / "squeue.json"),
    nodes=text(FIXTURES / "use" / "sinfo.json"),
    job_detail=text(FIXTURES / "use" / "job_detail.txt"),
)


def with_form(form: str) -> SlurmSources:
    return replace(
        SMALL,
        partitions=text(NEWER / f"partitions.{form}"),
        licenses=text(NEWER / f"licenses.{form}"),
        reservations=text(NEWER / f"reservations.{form}"),
    )


def edited(member: str, edit: Callable[[Any], object]) -> SlurmSources:
    document = json.loads((NEWER / f"{member}.json").read_text())
    edit(document)
    return replace(SMALL, **{member: SlurmText(name="edited", content=json.dumps(document).encode())})


def nodes(first: int, last: int) -> tuple[str, ...]:
    return tuple(f"n{number:02}" for number in range(first, last + 1))


@pytest.mark.parametrize("form", FORMS)
def test_partitions(form: str) -> None:
    snapshot, _ = import_slurm(with_form(form))
    assert snapshot.partitions == (
        Partition(name="p", nodes=nodes(1, 12)),
        Partition(name="long", nodes=nodes(5, 12), max_nodes=4, max_time_limit_s=172800),
        Partition(name="debug", nodes=nodes(11, 12), max_time_limit_s=1800, state=PartitionState.DRAIN),
        Partition(name="whole", nodes=nodes(9, 10)),
    )
    assert [note for note in snapshot.notes if "artition" in note] == [
        "partition long: MinNodes=2 is not looked at",
        "partition debug: nodes not of the cluster are dropped: 1, the first n99",
    ]


@pytest.mark.parametrize("form", FORMS)
def test_licences(form: str) -> None:
    snapshot, _ = import_slurm(with_form(form))
    assert snapshot.licenses == {"ansys": License(total=2, free=2), "matlab": License(total=4, free=2)}
    assert "licence matlab: 1 of 4 are reserved, so not free" in snapshot.notes
    job = next(job for job in snapshot.jobs if job.id == "98")
    assert job.request.licenses == {"matlab": 2}
    assert not job.unsupported


@pytest.mark.parametrize("form", FORMS)
def test_reservations(form: str) -> None:
    snapshot, _ = import_slurm(with_form(form))

    def kept(name: str, first: int, last: int, *users: str) -> Reservation:
        start, end = 1795180000, 1795190000
        return Reservation(name=name, nodes=nodes(first, last), start=start, end=end, users=users)

    assert snapshot.reservations == (
        kept("upkeep", 1, 2),
        kept("course", 3, 4),
        kept("pull", 5, 5, "anna", "ben"),
        kept("half", 6, 7),
        kept("odd", 8, 8),
    )
    both = "users anna,ben; accounts physics"
    assert [note for note in snapshot.notes if note.startswith("reservation ")] == [
        "reservation upkeep: only jobs that ask for it may use it (users root): closed to all others",
        "reservation course: nodes not of the cluster are dropped: 1",
        f"reservation course: only jobs that ask for it may use it ({both}): closed to all others",
        "reservation pull: it repeats daily: only its next time is known",
        "reservation half: it holds 8 of its nodes' 16 cores: taken as all of them",
        "reservation half: only jobs that ask for it may use it (users anna): closed to all others",
        "reservation odd: the flag SPARKLING is not known and not looked at",
        "reservation odd: whose jobs it attracts is not known here (accounts physics): closed to all",
        "reservation gone: nodes not of the cluster are dropped: 4",
        "reservation gone: it names no node of the cluster and is dropped",
    ]


@pytest.mark.parametrize("form", FORMS)
def test_it_reads_back_equal(form: str, tmp_path: Path) -> None:
    snapshot, _ = import_slurm(with_form(form))
    save_snapshot(snapshot, tmp_path / "made.json")
    assert load_snapshot(tmp_path / "made.json") == snapshot


@pytest.mark.parametrize(("since_s", "is_told"), [(600, True), (30, False), (-600, False)])
def test_licences_of_a_reservation_are_unread_until_it_starts(since_s: int, is_told: bool) -> None:
    now = import_slurm(edited("reservations", lambda _: None))[0].time
    assert now is not None
    begins, ends = int(now) + since_s, int(now) + 7200
    sources = edited(
        "reservations",
        lambda d: d["reservations"][0].update(licenses="matlab:2", start_time=begins, end_time=ends),
    )
    text = "reservation upkeep: licences matlab:2 are not kept for it before it starts"
    assert (text in import_slurm(sources)[0].unread) is is_told


def in_reservation(cores: int) -> Snapshot:
    """Job 87 holds 8 cores of n02 and 3 of n03, inside a reservation of so many cores."""
    document = json.loads(SMALL.jobs.content)
    next(job for job in document["jobs"] if job["job_id"] == 87)["resv_name"] = "half"
    sources = edited(
        "reservations",
        lambda d: d["reservations"][3].update(node_list="n[02-03]", core_count=cores, start_time=1795170000),
    )
    machine = json.loads(SMALL.nodes.content)
    for node in machine["nodes"][1:3]:
        node["state_flags"] = ["RESERVED"]
    jobs, records = (
        SlurmText(name=name, content=json.dumps(one).encode())
        for name, one in (("jobs", document), ("nodes", machine))
    )
    return import_slurm(replace(sources, jobs=jobs, nodes=records))[0]


def test_a_reservation_of_cores_that_its_job_holds_keeps_nothing_else() -> None:
    """Uneven jobs are placed by such reservations: they must not close their nodes to others."""
    snapshot = in_reservation(11)
    assert "half" not in {entry.name for entry in snapshot.reservations}
    assert (
        "reservation half: running jobs hold all its 11 cores: it keeps nothing else from jobs"
        in snapshot.notes
    )
    assert [node.state for node in snapshot.nodes[1:3]] == [NodeState.MIXED] * 2
    kept = in_reservation(12)
    assert "half" in {entry.name for entry in kept.reservations}
    assert [node.state for node in kept.nodes[1:3]] == [NodeState.RESERVED] * 2


def test_a_job_that_asks_for_a_reservation_is_not_expressible() -> None:
    document = json.loads(SMALL.jobs.content)
    document["jobs"][-1]["resv_name"] = "course"
    jobs = SlurmText(name="jobs", content=json.dumps(document).encode())
    snapshot, _ = import_slurm(replace(with_form("json"), jobs=jobs))
    assert snapshot.jobs[-1].unsupported == ("--reservation course",)


def in_partition(name: str) -> tuple[Job, Snapshot]:
    document = json.loads(SMALL.jobs.content)
    document["jobs"][-1]["partition"] = name
    jobs = SlurmText(name="jobs", content=json.dumps(document).encode())
    snapshot, _ = import_slurm(replace(with_form("txt"), jobs=jobs))
    return snapshot.jobs[-1], snapshot


def test_a_partition_of_whole_nodes_makes_its_jobs_exclusive() -> None:
    assert not in_partition("p")[0].request.exclusive
    assert in_partition("whole")[0].request.exclusive
    job, snapshot = in_partition("p,whole")
    assert job.request.exclusive
    assert job.partition == "p,whole"
    assert any("gets whole nodes in each of its partitions" in note for note in snapshot.notes)


def test_a_limit_of_nothing_closes_a_partition() -> None:
    def edit(document: Any) -> None:
        document["partitions"][0]["maximums"]["nodes"] = {"set": True, "infinite": False, "number": 0}

    closed = import_slurm(edited("partitions", edit))[0].partitions[0]
    assert (closed.state, closed.max_nodes) == (PartitionState.INACTIVE, None)


UNKNOWN: dict[str, tuple[str, Callable[[Any], object], str]] = {
    "state": (
        "partitions",
        lambda d: d["partitions"][1]["partition"].update(state=["ASLEEP"]),
        "partitions[1] state: 'ASLEEP' is not one of up, down, drain, inactive",
    ),
    "time": (
        "partitions",
        lambda d: d["partitions"][1]["maximums"].update(time="2-00:00:00"),
        'partitions[1].maximums.time: "2-00:00:00" is not a number as Slurm writes it',
    ),
    "nodes": (
        "partitions",
        lambda d: d["partitions"][1].update(nodes="n[1-"),
        'partitions[1].nodes: "n[1-" is not an object',
    ),
    "partition twice": (
        "partitions",
        lambda d: d["partitions"].append(d["partitions"][0]),
        "partitions[4]: partition 'p' is listed twice",
    ),
    "total": (
        "licenses",
        lambda d: d["licenses"][0].update(Total="two"),
        'licenses[0].Total: "two" is not a number as Slurm writes it',
    ),
    "no free": (
        "licenses",
        lambda d: d["licenses"][0].pop("Free"),
        "licenses[0]: the member 'Free' is missing",
    ),
    "no licences": ("licenses", lambda d: d.pop("licenses"), "the member 'licenses' is missing"),
    "start": (
        "reservations",
        lambda d: d["reservations"][0].update(start_time="now"),
        'reservations[0].start_time: "now" is not a number as Slurm writes it',
    ),
    "end": (
        "reservations",
        lambda d: d["reservations"][0].update(end_time=5),
        "reservations[0]: it ends before it starts",
    ),
    "hostlist": (
        "reservations",
        lambda d: d["reservations"][0].update(node_list="n[1-"),
        "reservations[0].node_list: 'n[1-' is not a hostlist",
    ),
    "no users": (
        "reservations",
        lambda d: d["reservations"][0].pop("users"),
        "reservations[0]: the member 'users' is missing",
    ),
}


@pytest.mark.parametrize("kind", UNKNOWN)
def test_an_unknown_shape_is_named(kind: str) -> None:
    member, edit, expected = UNKNOWN[kind]
    with pytest.raises(InputError) as caught:
        import_slurm(edited(member, edit))
    assert str(caught.value) == f"edited: {expected}"


TEXTS = {
    ("partitions", "PartitionName=p Nodes=n01 State=ODD"): (
        "PartitionName=p state: 'ODD' is not one of up, down, drain, inactive"
    ),
    ("partitions", "PartitionName=p MaxTime=soon State=UP"): (
        "PartitionName=p MaxTime: 'soon' is not a duration as Slurm writes it"
    ),
    ("partitions", "hello"): "line 1: 'hello' is not what scontrol shows of a PartitionName",
    ("licenses", "LicenseName=a Total=two Free=1"): (
        "LicenseName=a Total: 'two' is not a number as Slurm writes it"
    ),
    ("licenses", "LicenseName=a Total=2"): "LicenseName=a Free: '' is not a count",
    ("reservations", "ReservationName=r StartTime=soon EndTime=2026-11-20T13:00:00"): (
        "ReservationName=r StartTime: 'soon' is not a time as Slurm writes it"
    ),
}


@pytest.mark.parametrize(("member", "content"), TEXTS)
def test_an_unknown_text_is_named(member: str, content: str) -> None:
    source = SlurmText(name="bad.txt", content=content.encode())
    with pytest.raises(InputError) as caught:
        import_slurm(replace(SMALL, **{member: source}))
    assert str(caught.value) == f"bad.txt: {TEXTS[member, content]}"


@pytest.mark.parametrize("who", ["AllowedPartitions=long", "QOS=urgent"])
def test_a_magnetic_reservation_that_is_not_for_all_of_a_users_jobs_is_closed(who: str) -> None:
    """25.11 and later: a snapshot knows reservations by their users only."""
    text = (
        "ReservationName=r StartTime=1795180000 EndTime=1795190000 Nodes=n05 CoreCnt=8 "
        f"Flags=MAGNETIC,TRES_PER_NODE Users=anna Accounts=(null) {who}\n"
    )
    source = SlurmText(name="reservations", content=text.encode())
    snapshot = import_slurm(replace(SMALL, reservations=source))[0]
    assert snapshot.reservations[0].users == ()
    assert any("whose jobs it attracts is not known" in note for note in snapshot.notes)
    assert not any("is not known and not looked at" in note for note in snapshot.notes)


@pytest.mark.parametrize("content", ["No reservations in the system\n", '{"reservations": []}'])
def test_none_at_all(content: str) -> None:
    source = SlurmText(name="none", content=content.encode())
    assert import_slurm(replace(SMALL, reservations=source))[0].reservations == ()


@pytest.mark.skipif(not (SHARED / "emulated-1408").is_dir(), reason="the sample is not here")
@pytest.mark.parametrize("file", ["rest_partitions.json", "scontrol_partition.txt"])
def test_partitions_of_22_05(file: str) -> None:
    sources = replace(
        SMALL,
        nodes=text(SHARED / "emulated-1408" / "sinfo.json"),
        jobs=SlurmText(name="jobs", content=b'{"jobs": []}'),
        partitions=text(SHARED / "emulated-1408" / file),
    )
    expected = Partition(name="p", nodes=tuple(f"n{number:04}" for number in range(1408)))
    assert import_slurm(sources)[0].partitions == (expected,)
