"""One small queue as 24.05 to 26.05 tell it: the same requests are read, whatever the form."""

from __future__ import annotations

import io
import json
import runpy
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aucsched import InputError, Job, License, NodeState, Snapshot
from aucsched.cluster.network import NetworkKind
from aucsched.formats.notes import Notes
from aucsched.slurm.answers.detail import parse_job_detail
from aucsched.slurm.answers.live import Command
from aucsched.slurm.answers.reservation_records import read_reservations
from aucsched.slurm.answers.snapshot_of_answers import SlurmSources, SlurmText, import_slurm
from aucsched.slurm.answers.topology_conf import parse_topology
from aucsched.slurm.live.actions import gates

FOLDER = Path(__file__).parents[2] / "fixtures" / "slurm" / "releases"
TRIM = Path(__file__).parents[3] / "examples" / "trim_slurm.py"
RELEASES = ["24.05", "24.11", "25.05", "25.11", "26.05"]
#: JSON as each release writes it by itself, and 26.05's in the version that is asked for.
FORMS = [*((release, "") for release in RELEASES), ("26.05", "_v44")]
FOUR = ("n1", "n2", "n3", "n4")
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
    assert jobs["5"].request.exclusive_topo
    assert not jobs["5"].request.exclusive
    assert not any(jobs[name].request.exclusive_topo for name in jobs if name != "5")


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
        assert jobs["6"].unsupported == ("the licences matlab:2|ansys, which are not plain counts",)
        assert jobs["9"].unsupported == ("the licences flat(n[1-4]):3, which are not plain counts",)


@pytest.mark.parametrize("spelling", ["cpu:4", "cpu=4"], ids=["23.11", "later"])
@pytest.mark.parametrize("is_counted", [True, False])
def test_cpus_of_a_task_are_among_what_it_asks_for(spelling: str, is_counted: bool) -> None:
    """``--cpus-per-task``: such a job waits for nothing else."""

    def edit(jobs: Any, nodes: Any) -> None:
        first, second, third, *_ = jobs["jobs"]
        nodes["nodes"][0]["gres"] = "gpu:1"
        first |= {"tres_per_task": spelling, "cpus": 8, "cpus_per_task": 4 if is_counted else None}
        second |= first | {"job_id": 2, "tres_per_task": f"{spelling},gres/gpu=1", "tasks": 1}
        jobs["jobs"].append(first | {"job_id": 70, "cpus_per_task": 1 if is_counted else None})
        third["tres_per_task"] = f"{spelling},license/matlab=1,gres/storage=2T"

    jobs = by_id(edited("25.11", edit, {"CPUs/Task=1": "CPUs/Task=4" if is_counted else ""}))
    assert jobs["1"].unsupported == jobs["2"].unsupported == ()
    assert (jobs["1"].request.cores, jobs["1"].request.cores_per_task) == (8, 4)
    assert jobs["2"].request.gres_per_node["gpu"].minimum == 1
    # Answers that disagree: no job gets less than one of them says.
    assert (jobs["70"].request.cores_per_task, jobs["70"].unsupported) == (4, ())
    unread = {"--tres-per-task=license/matlab=1", "--tres-per-task=storage=2199023255552"}
    assert unread <= {*jobs["3"].unsupported}


@pytest.mark.parametrize("release", RELEASES)
def test_the_gate_is_seen(release: str) -> None:
    (gate,) = gates(lambda _: text(release, "reservations.txt").content, "auction")
    assert (gate.name, gate.held("auction")) == ("auction_head", 1000)


@pytest.mark.parametrize("release", RELEASES)
def test_a_job_behind_a_gate_that_is_up_may_start(release: str) -> None:
    """Also where nobody names the gate, as snapshot, explain and forecast do beside a loop."""
    made = sources(release)
    behind = replace(made.jobs, content=made.jobs.content.replace(b'": "Resources"', b'": "Licenses"'))
    made = replace(made, jobs=behind)
    (job,) = (one for one in import_slurm(made)[0].jobs if one.id == "1")
    assert (job.hold, job.request.licenses) == (None, {"matlab": 2})
    shut = made.reservations
    assert shut is not None
    course = replace(shut, content=shut.content.replace(b"auction_head", b"matlab_course"))
    (gate,) = gates(lambda _: shut.content, "auction")
    for gone, time in ((None, None), (course, None), (shut, gate.end), (shut, gate.start - 3600)):
        held = by_id(import_slurm(replace(made, reservations=gone), time=time)[0])["1"]
        assert held.hold == "Licenses", "no gate is up: the licence is one like any other"


def test_a_reservation_that_cannot_be_read_does_not_hide_the_gate() -> None:
    """The gate must be moved on, and be taken down, whatever else is reserved."""
    shut = text("25.11", "reservations.txt").content
    (gate,) = gates(lambda _: shut, "auction")
    for line in (
        b"ReservationName=r StartTime=Unknown EndTime=1795180120 Nodes=n1 Licenses=(null)",
        b"ReservationName=r StartTime=1795180000 EndTime=1795180000 Nodes=bgp[000x133] Licenses=x:1",
    ):
        told = line + b"\n" + shut

        def answer(_: Command, told: bytes = told) -> bytes:
            return told

        assert [one.name for one in gates(answer, "auction")] == [gate.name]
        with pytest.raises(InputError):
            read_reservations(told)


@pytest.mark.parametrize("form", ["flags", "text", "null"])
def test_segments_spread_and_consolidated(form: str) -> None:
    """JSON has flags from v44 on; scontrol's text has words, also beside older JSON."""

    def edit(jobs: Any, _: Any) -> None:
        for job in jobs["jobs"][:2]:
            job |= {"segment_size": 2, "flags": ["SPREAD_SEGMENTS", "CONSOLIDATE_SEGMENTS"]}
            if form != "flags":
                del job["segment_size"]
                job["flags"] = [] if form == "text" else None

    words = "SegmentSize=2 SpreadSegments=Yes ConsolidateSegments=Yes NtasksPerN:B:S:C=0:0:*:*\n"
    made = edited("25.11", edit, {"OverSubscribe=OK": words})
    request = by_id(made)["1"].request
    assert (request.segment, request.spread_segments, request.consolidate_segments) == (2, True, True)


@pytest.mark.parametrize("release", ["24.05", "25.05", "25.11"])
def test_a_block_that_a_running_job_has_for_itself(release: str) -> None:
    """JSON before v0.0.44 shows its other nodes as idle."""

    def edit(jobs: Any, _: Any) -> None:
        cores = [{"index": 0, "status": ["ALLOCATED"]}]
        node = {"index": 0, "name": "n1", "sockets": [{"index": 0, "cores": cores}]}
        held = {"nodes": {"count": 1, "list": "n1", "allocation": [node]}}
        jobs["jobs"][0] |= {"job_state": ["RUNNING"], "shared": ["topo"], "job_resources": held}

    snapshot = edited(release, edit)
    assert [node.state.takes_jobs for node in snapshot.nodes][:3] == [True, False, True]
    assert "node n2: a job has its block for itself: not available" in snapshot.notes
    assert all(node.state.takes_jobs for node in read(release).nodes[:3])


PARTITIONS = (
    "PartitionName=p Nodes=n[1-4] State=UP OverSubscribe=NO Topology={0}\n"
    "PartitionName=whole Nodes=n[1-4] State=UP OverSubscribe=NO ExclusiveTopo=YES Topology={1}\n"
)
TWO = (
    "- topology: racks\n  cluster_default: true\n  block: {blocks: [{block: b1, nodes: 'n[1-2]'}, "
    "{block: b2, nodes: 'n[3-4]'}]}\n- topology: ring\n  ring: {rings: [{ring: r0, nodes: 'n[1-4]'}]}\n"
    "- topology: plain\n  flat: true\n"
)


@pytest.mark.parametrize(
    ("first", "second", "kind", "reasons"),
    [
        ("racks", "ring", "blocks", ["partition whole is on the topology ring, which is not read"]),
        ("racks", "plain", "blocks", []),
        ("ring", "ring", "ring", []),
        ("(null)", "(null)", "blocks", []),
    ],
)
def test_partitions_on_topologies_of_their_own(
    first: str, second: str, kind: str, reasons: list[str]
) -> None:
    """25.05: pins keep the rules of the one that is read; jobs on another with rules are Slurm's."""
    texts = {"topology": TWO, "partitions": PARTITIONS.format(first, second)}
    given = {name: SlurmText(name=name, content=text.encode()) for name, text in texts.items()}
    made = import_slurm(replace(sources("25.11"), **given), gate="auction")[0]
    assert made.network is not None
    assert made.network.kind.value == kind
    jobs = by_id(made)
    assert list(jobs["4"].unsupported) == reasons
    assert not jobs["1"].unsupported
    assert jobs["4"].request.exclusive_topo
    others = [note for note in made.unread if "Topology=" in note]
    assert others == [f"partition whole: Topology={second} is not looked at"] * (first != second)


def test_nodes_stand_where_slurm_itself_has_put_them() -> None:
    """25.05: ``Topology=`` of a dynamic node is in its record, and in no file."""
    yaml = TWO.replace("n[1-2]", "n1").replace("nodes: 'n[1-4]'", "nodes: 'n[1-3]'")

    def names(topology: str, places: dict[str, str]) -> tuple[dict[str, tuple[str, ...]], list[str]]:
        answers = sources("25.11")
        document = json.loads(answers.nodes.content)
        for node in document["nodes"]:
            node["topology"] = places.get(node["name"], "")
        found = replace(
            answers,
            nodes=SlurmText(name="nodes", content=json.dumps(document).encode()),
            topology=SlurmText(name="topology", content=topology.encode()),
        )
        made = import_slurm(found)[0]
        assert made.network is not None
        said = [note for note in made.unread if "its place" in note]
        return {unit.name: unit.nodes for unit in made.network.units}, said

    dynamic = names(yaml, {"n2": "ring:1,racks:b1"})
    assert dynamic == ({"b1": ("n1", "n2"), "b2": ("n3", "n4")}, [])
    moved = names(yaml, {"n2": "racks:b1", "n3": "racks:b1", "n4": "racks:b2"})
    assert moved == ({"b1": ("n1", "n2", "n3"), "b2": ("n4",)}, [])
    strange = names(yaml, {"n2": "racks:b9"})
    assert strange == (
        {"b1": ("n1",), "b2": ("n3", "n4")},
        ["node n2: its place 'b9' is not in the file"],
    )
    conf = names("BlockName=b1 Nodes=n1\nBlockName=b2 Nodes=n[3-4]\n", {"n2": "default:b2"})
    assert conf[0] == {"b1": ("n1",), "b2": ("n3", "n4", "n2")}


def test_a_dynamic_node_is_below_its_leaf_switch() -> None:
    lines = "SwitchName=s0 Nodes=n1\nSwitchName=s1 Nodes=n2\nSwitchName=top Switches=s[0-1]\n"
    notes = Notes()
    read = parse_topology(lines, notes).joined({"n3": "default:top:s1"}, notes)
    laid = read.fitted(["n1", "n2", "n3"], notes)
    assert {one.name: one.nodes for one in laid.switches or ()}["s1"] == ("n2", "n3")


def test_several_topologies_of_which_scontrol_shows_one() -> None:
    """It does not say which: only the name of topology.conf's is known."""
    given = SlurmText(name="partitions", content=PARTITIONS.format("default", "racks").encode())
    jobs = by_id(import_slurm(replace(sources("25.11"), partitions=given), gate="auction")[0])
    assert not jobs["1"].unsupported
    assert jobs["4"].unsupported == ("partition whole is on the topology racks, which is not read",)


@pytest.mark.parametrize("release", RELEASES)
def test_what_no_member_of_a_request_says(release: str) -> None:
    jobs = by_id(read(release))
    if release >= "25.05":
        assert jobs["7"].request.segment == 2
        assert not jobs["7"].unsupported
    told = "which jobs ask for --segment is not told, as before Slurm 25.05"
    assert (told in read(release).unread) == (release < "25.05")
    if release >= "25.11":
        assert jobs["10"].unsupported == ("--requeue=expedite",)
        assert jobs["11"].unsupported == ("it starts again before all others (EXPEDITING)",)


def edited(
    release: str, edit: Callable[[Any, Any], None], detail: Mapping[str, str] | None = None
) -> Snapshot:
    """Return what is read where jobs and nodes of a release are edited, and words of their detail."""
    made = sources(release)
    jobs, nodes = json.loads(made.jobs.content), json.loads(made.nodes.content)
    edit(jobs, nodes)
    written = [
        SlurmText(name=name, content=json.dumps(d).encode()) for name, d in (("j", jobs), ("n", nodes))
    ]
    assert made.job_detail is not None
    words = made.job_detail.content.decode()
    for old, new in (detail or {}).items():
        words = words.replace(old, new)
    told = SlurmText(name="detail", content=words.encode())
    return import_slurm(replace(made, jobs=written[0], nodes=written[1], job_detail=told), gate="auction")[0]


def test_members_that_nobody_knows_are_noted_once() -> None:
    def edit(jobs: Any, nodes: Any) -> None:
        jobs["meta"] = {"slurm": {"release": "27.05.1"}}
        for job in jobs["jobs"]:
            job |= {"quantum": 3, "flags": [*job["flags"], "FLY"]}
        for node in nodes["nodes"]:
            node["wings"] = []

    snapshot = edited("26.05", edit)
    said = [note for note in snapshot.notes if "not known here" in note or "newer than" in note]
    assert said == [
        "members of nodes that are not known here are not read: wings",
        (
            "Slurm 27.05.1 is newer than 26.05, the newest whose answers are known: "
            "they are read where their shapes are known"
        ),
        "members of jobs that are not known here are not read: quantum",
        "flags of jobs that are not known here are not read: FLY",
    ]
    assert said[0] in snapshot.unread
    assert said[3] in snapshot.unread


@pytest.mark.parametrize(("release", "suffix"), FORMS)
def test_nothing_of_a_known_release_is_unknown(release: str, suffix: str) -> None:
    assert not any("not known here" in note for note in read(release, suffix).notes)


def test_numbers_of_the_complex_form() -> None:
    """DataParserParameters or ``+complex`` write null, "Infinity" and bare numbers."""

    def edit(jobs: Any, _: Any) -> None:
        for name in ("priority", "cpus", "tasks", "max_nodes", "memory_per_cpu", "array_task_id"):
            number = jobs["jobs"][0][name]
            jobs["jobs"][0][name] = number["number"] if number["set"] else None
        jobs["jobs"][0]["time_limit"] = "Infinity"

    one, other = by_id(edited("25.11", edit))["1"], by_id(read("25.11"))["1"]
    assert one == replace(other, time_limit_s=None)


def test_a_feature_that_takes_a_reboot_is_slurms_to_give() -> None:
    def edit(jobs: Any, nodes: Any) -> None:
        for node in nodes["nodes"]:
            node |= {"features": ["snc4", "flat", "big"], "active_features": ["flat"]}
        nodes["nodes"][0]["active_features"] = ["big"]
        for job, features in zip(jobs["jobs"], ("snc4", "flat&big", "gone"), strict=False):
            job["features"] = features

    jobs = by_id(edited("25.11", edit))
    assert jobs["1"].unsupported == ("the feature snc4, which Slurm gives nodes by a reboot",)
    assert jobs["1"].request.features == {"snc4"}
    assert not jobs["2"].unsupported
    assert not any("reboot" in text for text in jobs["3"].unsupported)


@pytest.mark.parametrize("release", RELEASES)
def test_nodes_and_topology(release: str) -> None:
    snapshot = read(release)
    states = [node.state for node in snapshot.nodes]
    assert states[:2] == [NodeState.IDLE] * 2
    assert states[2].takes_jobs == (release < "26.05")
    assert states[3].takes_jobs == (release < "25.11")
    assert not any("not known" in note for note in snapshot.notes)
    network = snapshot.network
    assert network is not None
    if release == "26.05":
        (torus,) = network.units
        assert (network.kind, torus.dims, torus.nodes) == (NetworkKind.TORUS3D, (2, 2, 1), FOUR)
        return
    assert network.kind is NetworkKind.BLOCKS
    assert [(unit.name, unit.nodes) for unit in network.units] == [("b1", FOUR[:2]), ("b2", FOUR[2:])]
    assert network.sizes == ((2,) if release == "24.05" else (2, 4))


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


WRITTEN = """\
JobId=7 JobName=j UserId=ann(7) AllocNode:Sid=secret:9
   OverSubscribe=OK Licenses=(null)
   Command=/home/secret dir/run secret=1
   WorkDir=/home/secret dir
   AdminComment=a secret word
   Comment=my secret Switches=9
   StdErr=/home/secret dir/%j
   MailUser=secret@example.org MailType=END

"""


@pytest.mark.parametrize("behind", ["\n   ", " "], ids=["paragraphs", "lines"])
def test_job_detail_is_trimmed_of_what_its_users_wrote(
    behind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = WRITTEN.replace("\n   ", behind) + "JobId=8 JobName=k UserId=bob(8) OverSubscribe=NO\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(given))
    main = runpy.run_path(str(TRIM))["main"]
    main(["detail"])
    small = capsys.readouterr().out
    assert "secret" not in small
    assert parse_job_detail(small) == parse_job_detail(given)
    for wrong in ([], ["job"]):
        with pytest.raises(SystemExit, match="2"):
            main(wrong)
        assert "jobs,nodes,detail" in capsys.readouterr().err
