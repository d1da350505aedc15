"""Every request kind that sbatch takes, as an emulated 22.05 cluster showed it, arrives exactly.

tests/fixtures/slurm/requests.txt has the sbatch options behind each name.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from aucsched import Job, License, Request, Snapshot, Span
from aucsched.formats.notes import Notes
from aucsched.slurm.answers.answer_record import Record
from aucsched.slurm.answers.detail import parse_job_detail
from aucsched.slurm.answers.request import unsupported_parts
from aucsched.slurm.answers.snapshot_of_answers import SlurmSources, SlurmText, import_slurm

FOLDER = Path(__file__).parents[2] / "fixtures" / "slurm" / "requests"
LICENSES = {"matlab": License(total=4, free=4), "ansys": License(total=2, free=2)}


def text(name: str) -> SlurmText:
    return SlurmText(name=name, content=(FOLDER / name).read_bytes())


def queue(*, detail: bool = True, licenses: bool = False, held: bool = False) -> Snapshot:
    sources = SlurmSources(
        jobs=text("squeue.json"),
        nodes=text("sinfo.json"),
        topology=text("topology.txt"),
        job_detail=text("job_detail.txt") if detail else None,
        licenses=text("licenses.txt") if licenses else None,
    )
    return import_slurm(sources, schedule_held=held)[0]


def named(snapshot: Snapshot) -> dict[str, Job]:
    """Jobs by their Slurm name; of an array and of a heterogeneous job the first."""
    records = json.loads((FOLDER / "squeue.json").read_text())["jobs"]
    names = {str(record["job_id"]): record["name"] for record in records}
    jobs: dict[str, Job] = {}
    for job in snapshot.jobs:
        jobs.setdefault(names[job.id.partition("_")[0]], job)
    return jobs


@pytest.fixture(scope="module")
def jobs() -> dict[str, Job]:
    return named(queue())


def per_node(nodes: int | tuple[int, int], cores: int, **more: Any) -> Request:
    """Type 3."""
    return sized(nodes, cores_per_node=cores, **more)


def sized(nodes: int | tuple[int, int], cores: int | None = None, **more: Any) -> Request:
    """Type 2, or 3 with cores_per_node."""
    low, high = (nodes, nodes) if isinstance(nodes, int) else nodes
    return Request(cores=cores, nodes=Span(minimum=low, maximum=high), **more)


def gpus(count: int, name: str = "gpu") -> dict[str, Span]:
    return {name: Span.exactly(count)}


EXPRESSIBLE = {
    "cores": Request(cores=8),
    "nodes": sized(2, 8),
    "nodes_only": sized(3, 3),
    "range": sized((2, 4), 8),
    "range_only": per_node((2, 4), 1),
    "range_cpus": per_node((2, 4), 2, cores_per_task=2),
    "tasks_per_node": per_node(4, 2),
    "tpn_only": per_node(1, 2),
    "tpn_tasks": per_node(4, 2),
    "tpn_odd": per_node(4, 2),
    "tpn_fewer": per_node(4, 4),
    "tpn_range": per_node((2, 4), 2),
    "tpn_cpus": per_node(2, 6, cores_per_task=3),
    "cpus_per_task": Request(cores=12, cores_per_task=4),
    "cpus_nodes": sized(2, 12, cores_per_task=3),
    "mincpus": Request(cores=9, min_cores_per_node=4),
    "mincpus_nodes": per_node(4, 4),
    "mincpus_tpn": per_node(2, 5),
    "overcommit": sized(2, 2),
    "gres": sized(2, 2, gres_per_node=gpus(2)),
    "gres_cores": Request(cores=4, gres_per_node=gpus(1)),
    "gres_typed": sized(1, 1, gres_per_node=gpus(1, "gpu:a100")),
    "gpus": Request(cores=4, gres_total=gpus(5)),
    "gpus_typed": sized(2, 4, gres_total=gpus(3, "gpu:a100")),
    "gpus_both": sized(2, 4, gres_per_node=gpus(2)),
    "gpus_per_node": sized(2, 2, gres_per_node=gpus(2)),
    "gpt_fixed": per_node(2, 2, gres_per_node=gpus(2)),
    "gpt_one": Request(cores=1, gres_per_node=gpus(2)),
    "gpt_each": sized(2, 2, gres_per_node=gpus(1, "gpu:a100")),
    "cpus_per_gpu": per_node(2, 6, gres_per_node=gpus(2)),
    "mem_per_gpu": sized(1, 1, gres_per_node=gpus(2), memory_mib_per_node=2000),
    "mem": Request(cores=4, memory_mib_per_node=3000),
    "mem_per_cpu": Request(cores=4, memory_mib_per_core=500),
    "mem_all_excl": sized(1, 1, exclusive=True),
    "exclusive": sized(2, 4, exclusive=True),
    "share": Request(cores=4),
    "feature": Request(cores=4, features=frozenset({"ib"})),
    "feature_and": Request(cores=4, features=frozenset({"ib", "fast"})),
    "prefer": Request(cores=4),
    "required": Request(cores=8, required_nodes=("n03", "n05")),
    "required_more": sized(5, 5, required_nodes=("n01", "n02")),
    "excluded": Request(cores=4, excluded_nodes=frozenset({"n01", "n02", "n03", "n04"})),
    "switches": sized(4, 4, max_switches=1),
    "switches_two": sized(4, 4, max_switches=2),
    "contiguous": Request(cores=12, contiguous=True),
    "partition": Request(cores=2),
    "partitions": Request(cores=2),
    "unlimited": Request(cores=1),
    "time_min": Request(cores=1),
    "deadline": Request(cores=1),
    "dependency": Request(cores=1),
    "begin": Request(cores=1),
    "held": Request(cores=4),
    "held_dependency": Request(cores=1),
    "held_begin": Request(cores=1),
    "array": Request(cores=2),
    "array_step": Request(cores=2),
    "array_held": Request(cores=1),
    "array_long": Request(cores=1),
    "spread": sized((1, 4), 4),
    "min_nodes": Request(cores=12),
}

NOT_EXPRESSIBLE = {
    "gpt_open": ("1 gpu for each task (tres_per_task): tasks per node are not fixed",),
    "gpus_per_socket": ("--sockets-per-node=2", "tres_per_socket gres:gpu:1"),
    "cpg_open": ("--cpus-per-gpu (gres:gpu:3) where the GPUs of a node are not fixed",),
    "tasks_per_gpu": ("--ntasks-per-gpu=1",),
    "binding": ("--gres-flags=enforce-binding",),
    "mem_all": ("all the memory of each node (--mem=0)",),
    "excl_user": ("nodes shared only within user (--exclusive=user)",),
    "excl_mcs": ("nodes shared only within mcs (--exclusive=mcs)",),
    "feature_or": ("the constraint fast|big",),
    "feature_count": ("the constraint [fast*1&big*1]",),
    "reservation": ("--reservation later",),
    "licenses": ("the licences matlab:2,ansys, whose totals are not known",),
    "threads": ("--threads-per-core=1",),
    "tasks_per_core": ("--ntasks-per-core=1",),
    "tasks_per_socket": ("--ntasks-per-socket=1",),
    "sockets": ("--sockets-per-node=2",),
    "core_spec": ("--core-spec or --thread-spec=1",),
    "tmp": ("--tmp=100",),
    "burst_buffer": ("--bb capacity=1G",),
    "reboot": ("--reboot",),
    "het": ("parts of a heterogeneous job start together (83-84)",),
}

HOLDS = {
    "dependency": "Dependency",
    "begin": "BeginTime",
    "held": "JobHeldUser",
    "held_dependency": "Dependency",
    "held_begin": "BeginTime",
    "array_held": "JobHeldUser",
    "array_long": "JobHeldUser",
    "reservation": "Reservation",
}


@pytest.mark.parametrize("name", EXPRESSIBLE)
def test_the_request_arrives_exactly(jobs: dict[str, Job], name: str) -> None:
    assert jobs[name].request == EXPRESSIBLE[name]
    assert jobs[name].unsupported == ()


@pytest.mark.parametrize("name", NOT_EXPRESSIBLE)
def test_what_cannot_be_said_is_named(jobs: dict[str, Job], name: str) -> None:
    assert jobs[name].unsupported == NOT_EXPRESSIBLE[name]


def test_no_job_is_left_out(jobs: dict[str, Job]) -> None:
    lines = (FOLDER.parent / "requests.txt").read_text().splitlines()
    names = {line.split()[0] for line in lines if not line.startswith("#")}
    assert set(jobs) == names | {"het"} == set(EXPRESSIBLE) | set(NOT_EXPRESSIBLE)


def test_holds(jobs: dict[str, Job]) -> None:
    assert {name: job.hold for name, job in jobs.items() if job.hold} == HOLDS


def test_partitions_and_times(jobs: dict[str, Job]) -> None:
    assert jobs["cores"].partition == "p"
    assert jobs["partition"].partition == "long"
    assert jobs["partitions"].partition == "p,long"
    assert jobs["cores"].time_limit_s == 600
    assert jobs["unlimited"].time_limit_s is None
    assert jobs["cores"].user == jobs["cores"].group == "root"
    assert jobs["cores"].submit_time == 1795175974
    assert jobs["cores"].priority == 833


def test_an_array_becomes_its_tasks() -> None:
    by_id = {job.id: job for job in queue().jobs}
    tasks = [by_id[f"69_{task}"] for task in range(1, 7)]
    assert [task.hold for task in tasks] == [None, None, *["JobArrayTaskLimit"] * 4]
    assert {task.priority for task in tasks} == {520}
    assert [name for name in by_id if name.startswith("70_")] == ["70_1", "70_5", "70_9", "70_12"]
    assert "69" not in by_id


def test_known_licences_are_counted() -> None:
    job = named(queue(licenses=True))["licenses"]
    assert job.request == Request(cores=1, licenses={"matlab": 2, "ansys": 1})
    assert job.unsupported == ()
    assert queue(licenses=True).licenses == LICENSES


def test_without_job_detail_the_loss_is_noted() -> None:
    snapshot = queue(detail=False)
    assert named(snapshot)["switches"].request == sized(4, 4)
    assert any("switch counts that jobs ask for are not known" in note for note in snapshot.notes)
    # All else is in the JSON.
    with_detail = named(queue())
    for name, job in named(snapshot).items():
        if name not in ("switches", "switches_two", "tasks_per_gpu", "range_cpus"):
            assert job == with_detail[name]
    assert named(snapshot)["range_cpus"].request == per_node((2, 4), 2)


def test_preferences_are_noted(jobs: dict[str, Job]) -> None:
    notes = queue().notes
    for name in (
        "prefer",
        "time_min",
        "deadline",
        "spread",
        "min_nodes",
        "share",
        "tpn_odd",
        "mincpus_nodes",
    ):
        assert any(note.startswith(f"job {jobs[name].id}: ") for note in notes), name
    for name in ("cores", "range_only", "nodes", "gres"):
        assert not any(note.startswith(f"job {jobs[name].id}: ") for note in notes), name


def test_every_unsupported_part_is_noted(jobs: dict[str, Job]) -> None:
    notes = queue().notes
    for name, parts in NOT_EXPRESSIBLE.items():
        for part in parts:
            assert f"job {jobs[name].id}: not expressible: {part}" in notes


def test_held_jobs_can_be_scheduled() -> None:
    snapshot = queue(held=True)
    jobs = named(snapshot)
    for name in ("held", "array_held", "array_long"):
        assert jobs[name].hold is None
        assert 0 < jobs[name].priority < 1
    for name in ("held_dependency", "held_begin", "dependency", "begin"):
        assert jobs[name].hold == HOLDS[name]
    lifted = [job for job in snapshot.jobs if 0 < job.priority < 1]
    by_priority = sorted(lifted, key=lambda job: -job.priority)
    assert by_priority == sorted(lifted, key=lambda job: job.submit_time or 0)
    assert len({job.priority for job in lifted}) == len(lifted) == 28


def with_answers(**texts: bytes) -> Snapshot:
    given = {name: SlurmText(name=name, content=content) for name, content in texts.items()}
    own = {"jobs": text("squeue.json"), "nodes": text("sinfo.json"), "job_detail": text("job_detail.txt")}
    return import_slurm(SlurmSources(**own | given))[0]


def test_a_line_feed_in_a_users_text_ends_no_look() -> None:
    written = text("job_detail.txt").content + b"\nJobId=4000000 JobName=a\nJobId=xx JobName=b UserId=c\n"
    made = with_answers(job_detail=written)
    assert made.jobs == queue().jobs
    (said,) = (note for note in made.notes if note.startswith("job detail: "))
    assert said.endswith("the record is not read")


@pytest.mark.parametrize("order", [1, -1])
def test_of_a_job_that_a_users_text_lists_again_no_record_is_read(order: int) -> None:
    """Which is Slurm's own nobody knows."""
    detail = text("job_detail.txt").content.decode()
    number = re.findall(r"^JobId=(\d+)", detail, re.MULTILINE)[0]
    forged = f"JobId=4000000 JobName=a\nJobId={number} JobName=b UserId=c Switches=9\n"
    notes, wanted = Notes(), parse_job_detail(detail)
    found = parse_job_detail("\n".join([detail, forged, forged][::order]), notes=notes)
    assert found == {one: wanted[one] for one in wanted if one != int(number)}
    assert f"job detail: JobId={number}: the job is listed twice: the record is not read" in notes.texts()


@pytest.mark.parametrize(
    "name",
    [b"caf\xe9", "café".encode(), b"cafe", b"run\x85", b"run "],
    ids=["latin", "utf-8", "ascii", "windows", "blank"],
)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "byte order mark"])
def test_a_users_text_in_another_encoding_ends_no_look(mark: bytes, name: bytes) -> None:
    """The same byte in JSON and in scontrol's text: still the same job."""
    jobs, detail = text("squeue.json").content, text("job_detail.txt").content
    assert b'"name":"switches"' in jobs
    made = with_answers(
        jobs=mark + jobs.replace(b'"name":"switches"', b'"name":"%b"' % name),
        job_detail=mark + detail.replace(b"JobName=switches\n", b"JobName=%b\n" % name),
    )
    assert made.jobs == queue().jobs


class Everything(dict[str, Any]):
    """A record of Slurm's in which each member asks for something."""

    def get(self, name: str, _: Any = None) -> Any:
        """Return a value that a reader of the member takes."""
        flags = ["GRES_ENFORCE_BIND", "EXPEDITED_REQUEUE"]
        texts = dict.fromkeys(("burst_buffer", "batch_features", "resv_name", "tres_per_socket"), "x")
        return {"flags": flags, "job_state": flags, "reboot": True, "het_job_id_set": "1-2", **texts}.get(
            name, 2
        )


def test_the_page_lists_every_option_that_has_no_native_term() -> None:
    page = (Path(__file__).parents[3] / "docs" / "slurm-configuration.md").read_text()
    parts = list(unsupported_parts(Record(Everything(), "jobs[0]"), threads=True))
    words = {word for part in parts for word in re.findall("--[a-z=-]+[a-z]|tres_per_socket", part)}
    assert len(words) > 12
    assert sorted(word for word in words if f"`{word}`" not in page) == []
