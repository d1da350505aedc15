"""Slurm 21.08, 24.05 and 25.05: the same queue in every shape, and other people's samples whole."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.newer import newer_jobs, newer_nodes

from aucsched import InputError, Resources, Snapshot, load_snapshot, save_snapshot
from aucsched.slurm.answers.detail import parse_job_detail
from aucsched.slurm.answers.snapshot_of_answers import SlurmSources, SlurmText, import_slurm

FIXTURES = Path(__file__).parents[2] / "fixtures" / "slurm"
SHARED = Path(__file__).parents[4] / "shared" / "data" / "slurm"


def text(path: Path) -> SlurmText:
    return SlurmText(name=path.name, content=path.read_bytes())


def written(name: str, document: Any) -> SlurmText:
    return SlurmText(name=name, content=json.dumps(document).encode())


def old(folder: str) -> SlurmSources:
    files = FIXTURES / folder
    return SlurmSources(
        jobs=text(files / "squeue.json"),
        nodes=text(files / "sinfo.json"),
        job_detail=text(files / "job_detail.txt"),
        licenses=text(files / "licenses.txt"),
    )


def new(folder: str) -> SlurmSources:
    """The same queue as 24.05 tells it, without scontrol's detail."""
    sources = old(folder)
    assert sources.job_detail is not None
    details = parse_job_detail(sources.job_detail.content.decode())
    jobs = newer_jobs(json.loads(sources.jobs.content), details)
    nodes = newer_nodes(json.loads(sources.nodes.content))
    return replace(sources, jobs=written("jobs", jobs), nodes=written("nodes", nodes), job_detail=None)


@pytest.mark.parametrize("folder", ["use", "requests"])
def test_the_same_queue_in_the_shapes_of_24_05(folder: str) -> None:
    """22.05's answers, whose import is tested member by member, are the oracle."""
    before, after = import_slurm(old(folder))[0], import_slurm(new(folder))[0]
    for one, other in zip(before.jobs, after.jobs, strict=True):
        assert one == other
    assert replace(before, notes=()) == replace(after, notes=())


def test_switches_are_known_without_job_detail() -> None:
    snapshot = import_slurm(new("requests"))[0]
    assert any(job.request.max_switches for job in snapshot.jobs)
    assert not any("switch" in note for note in snapshot.notes)


def changed(edit: Any) -> Snapshot:
    sources = new("use")
    document = json.loads(sources.jobs.content)
    edit(document)
    return import_slurm(replace(sources, jobs=written("jobs.json", document)))[0]


def running(document: Any) -> dict[str, Any]:
    found: dict[str, Any] = next(job for job in document["jobs"] if job["job_id"] == 87)
    return found


def test_the_last_update_is_the_snapshots_time() -> None:
    later = {"set": True, "infinite": False, "number": 1795200000}
    assert changed(lambda document: document.update(last_update=later)).time == 1795200000


@pytest.mark.parametrize("state", ["ALLOCATED", "IN_USE"])
def test_states_of_cores(state: str) -> None:
    def edit(document: Any) -> None:
        node = running(document)["job_resources"]["nodes"]["allocation"][1]
        for core in node["sockets"][0]["cores"]:
            core["status"] = [state]

    held = {job.id: job for job in changed(edit).running}["87"].nodes
    assert held["n03"].cores == 3
    assert held["n03"].gres == {"gpu:a100": 1}


def test_the_shape_of_21_08() -> None:
    """Nodes by their place in a hostlist, CPUs as a count (slurmrestd v0.0.37)."""

    def edit(document: Any) -> None:
        nodes = {"0": {"cpus": 8, "memory": 800}, "1": {"cpus": 3, "memory": 300}}
        running(document)["job_resources"] = {"nodes": "n[02-03]", "allocated_nodes": nodes}

    held = {job.id: job for job in changed(edit).running}["87"].nodes
    assert held == {
        "n02": Resources(cores=8, memory_mib=800, gres={"gpu:a100": 2}),
        "n03": Resources(cores=3, memory_mib=300, gres={"gpu:a100": 1}),
    }


def core_states(words: list[str]) -> Any:
    def edit(document: Any) -> None:
        node = running(document)["job_resources"]["nodes"]["allocation"][0]
        node["sockets"][1]["cores"][0]["status"] = words

    return edit


UNKNOWN = {
    "core": (
        core_states(["ASLEEP"]),
        "jobs[3].job_resources.nodes.allocation[0].sockets[1].cores[0]: 'ASLEEP' is not a core's state",
    ),
    "place": (
        lambda d: running(d).update(job_resources={"nodes": "n02", "allocated_nodes": {"7": {"cpus": 1}}}),
        "jobs[3].job_resources.allocated_nodes: '7' is not a place in nodes",
    ),
    "resources": (
        lambda d: running(d).update(job_resources={"hosts": []}),
        'jobs[3].job_resources: {"hosts": []} is not a job\'s resources as Slurm 21.08 to 26.05 write them',
    ),
    "state": (
        lambda d: running(d).update(job_state=["RUNNING", "DANCING"]),
        'jobs[3].job_state: ["RUNNING", "DANCING"] is not a job state of Slurm',
    ),
    "number": (
        lambda d: d["jobs"][-1].update(cpus={"set": True, "number": 1}),
        'jobs[15].cpus: {"set": true, "number": 1} is not a number as Slurm writes it',
    ),
    "accounting": (
        lambda d: d.update(jobs=[{"job_id": 1, "state": {"current": ["COMPLETED"]}, "steps": []}]),
        "jobs[0]: a record of accounting (sacct, slurmdbd): give squeue --json",
    ),
}


@pytest.mark.parametrize("kind", UNKNOWN)
def test_an_unknown_shape_is_named(kind: str) -> None:
    edit, expected = UNKNOWN[kind]
    with pytest.raises(InputError) as caught:
        changed(edit)
    assert str(caught.value) == f"jobs.json: {expected}"


@pytest.mark.parametrize(
    ("release", "told"),
    [("26.11.0", " (written by Slurm 26.11.0; known are versions up to 26.05)"), ("26.05.4", "")],
)
def test_a_newer_slurm_is_named_beside_what_is_not_understood(release: str, told: str) -> None:
    def edit(document: Any) -> None:
        document["meta"]["slurm"]["release"] = release
        document["jobs"][-1]["job_state"] = ["DANCING"]

    with pytest.raises(InputError) as caught:
        changed(edit)
    assert (
        str(caught.value) == f'jobs.json: jobs[15].job_state: ["DANCING"] is not a job state of Slurm{told}'
    )


def test_what_the_system_keeps_is_no_jobs() -> None:
    sources = new("use")
    document = json.loads(sources.nodes.content)
    free = next(node for node in document["nodes"] if node["name"] == "n06")
    free.update(effective_cpus=6, specialized_memory=1000)
    node = import_slurm(replace(sources, nodes=written("nodes", document)))[0].nodes[5]
    assert (node.total.cores, node.total.memory_mib) == (6, 15000)


# Other people's samples, which are not ours to keep here.

VERSIONS = ["24.05/0.0.41", "25.05/0.0.42"]
needs_samples = pytest.mark.skipif(not (SHARED / "slurmrestd").is_dir(), reason="the samples are not here")


def sample(version: str, jobs: str) -> SlurmSources:
    folder = SHARED / "slurmrestd" / version
    return SlurmSources(
        jobs=text(folder / f"{jobs}.json"),
        nodes=text(folder / "slurm-nodes.json"),
        partitions=text(folder / "slurm-partitions.json"),
        reservations=text(folder / "slurm-reservations.json"),
    )


@needs_samples
@pytest.mark.parametrize("jobs", ["slurm-jobs", "slurm-job-running", "slurm-job-pending"])
@pytest.mark.parametrize("version", VERSIONS)
def test_samples_arrive_whole(version: str, jobs: str, tmp_path: Path) -> None:
    sources = sample(version, jobs)
    snapshot, _ = import_slurm(sources)
    records = json.loads(sources.jobs.content)["jobs"]
    states = [record["job_state"] for record in records]
    assert len(snapshot.jobs) == states.count(["PENDING"])
    assert not any(job.unsupported for job in snapshot.jobs)
    assert not any("not known here" in note for note in snapshot.notes)
    names = {node.name for node in snapshot.nodes}
    for record in records:
        if record["job_state"] == ["RUNNING"]:
            held = {job.id: job for job in snapshot.running}[str(record["job_id"])]
            cores = {part["name"]: part["cpus"]["count"] for part in allocation(record)}
            assert {name: use.cores for name, use in held.nodes.items()} == cores
            assert names >= cores.keys()
    save_snapshot(snapshot, tmp_path / "made.json")
    assert load_snapshot(tmp_path / "made.json") == snapshot


def allocation(record: dict[str, Any]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = record["job_resources"]["nodes"]["allocation"]
    return parts


@needs_samples
def test_a_samples_requests_and_limits() -> None:
    snapshot, _ = import_slurm(sample("25.05/0.0.42", "slurm-jobs"))
    jobs = {job.id: job for job in snapshot.jobs}
    assert jobs["4766"].request.cores == 128
    assert jobs["4766"].request.nodes is None
    assert jobs["4766"].request.memory_mib_per_core == 512
    assert jobs["4766"].time_limit_s == 120
    assert jobs["4774"].hold == "BeginTime"
    gpu = next(node for node in snapshot.nodes if node.name == "gpu1")
    assert gpu.free.gres == {"gpu:h100": 4}
    limits = {partition.name: partition.max_time_limit_s for partition in snapshot.partitions}
    assert limits == {"normal": 7200, "gpu": 7200}


@needs_samples
@pytest.mark.parametrize("version", VERSIONS)
def test_a_sample_of_accounting_is_refused_by_name(version: str) -> None:
    with pytest.raises(InputError, match=r"slurmdb-job-completed\.json: jobs\[0\]: a record of accounting"):
        import_slurm(sample(version, "slurmdb-job-completed"))


@pytest.mark.skipif(not (SHARED / "exporter").is_dir(), reason="the sample is not here")
def test_a_sample_of_21_08() -> None:
    folder = SHARED / "exporter"
    sources = SlurmSources(
        jobs=text(folder / "squeue_out.json"),
        nodes=text(folder / "sinfo_out.json"),
        licenses=text(folder / "license_out.json"),
    )
    snapshot, _ = import_slurm(sources)
    assert [job.id for job in snapshot.jobs] == [f"58948420_{task}" for task in range(1, 11)]
    assert snapshot.licenses["AscentLintBase"].total == 420
    assert snapshot.licenses["AscentLintBase"].free == 0, "357 are reserved, 205 free"
    assert "job 26515966 runs on node cs75, which is not of the cluster: dropped" in snapshot.notes


@pytest.mark.skipif(not (SHARED / "emulated-1408").is_dir(), reason="the samples are not here")
def test_a_sample_of_22_05_has_no_member_that_nobody_knows() -> None:
    folder = SHARED / "emulated-1408"
    names = {"jobs": "squeue", "nodes": "sinfo", "partitions": "rest_partitions"}
    sources = SlurmSources(**{name: text(folder / f"{file}.json") for name, file in names.items()})
    assert not any("not known here" in note for note in import_slurm(sources)[0].notes)
