"""Whole clusters: the emulated 1408 nodes of the examples, and a small one in many states at once."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aucsched import NodeState, Resources, Snapshot, load_snapshot, save_snapshot
from aucsched.slurm.answers.consumables import parse_gres
from aucsched.slurm.answers.snapshot_of_answers import SlurmSources, SlurmText, import_slurm

ROOT = Path(__file__).parents[3]
USE = Path(__file__).parents[2] / "fixtures" / "slurm" / "use"
SHARED = ROOT.parent / "shared" / "data" / "slurm" / "emulated-1408"


def source(name: str) -> SlurmText:
    content = (ROOT / "examples" / "source" / name).read_bytes()
    return SlurmText(name=name, content=gzip.decompress(content) if name.endswith(".gz") else content)


def use(name: str) -> SlurmText:
    return SlurmText(name=name, content=(USE / name).read_bytes())


EMULATED = SlurmSources(
    jobs=source("squeue.json.gz"),
    nodes=source("sinfo.json.gz"),
    topology=source("topology.conf"),
    job_detail=source("scontrol_job_d.txt.gz"),
)
SMALL = SlurmSources(
    jobs=use("squeue.json"),
    nodes=use("sinfo.json"),
    topology=use("topology.conf"),
    job_detail=use("job_detail.txt"),
)


@pytest.fixture(scope="module")
def emulated() -> Snapshot:
    return import_slurm(EMULATED)[0]


@pytest.fixture(scope="module")
def small() -> Snapshot:
    return import_slurm(SMALL)[0]


def test_the_emulated_cluster_arrives_whole(emulated: Snapshot) -> None:
    assert len(emulated.nodes) == 1408
    assert emulated.nodes[0].name == "n0000"
    assert emulated.nodes[-1].name == "n1407"
    assert sum(node.free.cores for node in emulated.nodes) == 32
    assert sum(node.free.cores > 0 for node in emulated.nodes) == 6
    assert len(emulated.jobs) == 66
    assert len(emulated.running) == 55
    assert emulated.switches is not None
    assert len(emulated.switches) == 88 + 11 + 1
    assert emulated.time == 1795169168
    assert emulated.notes == ("held by hand, so not started: 1 (--held schedule starts them)",)


@pytest.mark.parametrize("sources", [EMULATED, SMALL], ids=["emulated", "small"])
@pytest.mark.parametrize("detail", [True, False])
def test_running_jobs_add_up_to_what_each_node_allocates(sources: SlurmSources, *, detail: bool) -> None:
    """The nodes' own figures are the oracle: cores and GPUs of every node, and memory where it counts."""
    if not detail:
        sources = SlurmSources(jobs=sources.jobs, nodes=sources.nodes)
    cores: Counter[str] = Counter()
    memory: Counter[str] = Counter()
    gpus: Counter[str] = Counter()
    for job in import_slurm(sources)[0].running:
        for name, amount in job.nodes.items():
            cores[name] += amount.cores
            memory[name] += amount.memory_mib or 0
            gpus[name] += sum(amount.gres.values())
    for record in json.loads(sources.nodes.content)["nodes"]:
        name = record["name"]
        assert cores[name] == record["alloc_cpus"], name
        assert memory[name] == record["alloc_memory"], name
        assert gpus[name] == sum(parse_gres(record["gres_used"], "").values()), name


def test_requests_of_the_emulated_queue(emulated: Snapshot) -> None:
    """Seven workload kinds stand in the jobs' names: k0 cores … k6 CPUs for each task."""
    records = json.loads(EMULATED.jobs.content)["jobs"]
    names = {str(record["job_id"]): record["name"][:2] for record in records}
    shapes: dict[str, Callable[[Any], object]] = {
        "k0": lambda job: job.request.nodes is None and job.request.cores,
        "k1": lambda job: job.request.nodes.is_exact and job.request.cores,
        "k2": lambda job: job.request.nodes.is_exact and job.request.cores_per_node,
        "k3": lambda job: job.request.gres_per_node["gpu"].is_exact and job.request.nodes,
        "k4": lambda job: job.request.contiguous and job.request.nodes is None,
        "k5": lambda job: job.request.max_switches == 1 and job.request.nodes,
        "k6": lambda job: job.request.cores % job.request.cores_per_task == 0 and job.request.nodes is None,
    }
    for job in emulated.jobs:
        kind = names[job.id]
        if kind in shapes:
            assert shapes[kind](job), (kind, job)
    by_id = {job.id: job for job in emulated.jobs}
    assert by_id["91"].request.cores == 768
    assert by_id["91"].request.cores_per_task == 3
    assert by_id["73"].request.cores_per_node == 6
    assert not any(job.unsupported for job in emulated.jobs)


def test_held_and_dependent_jobs_do_not_start(emulated: Snapshot) -> None:
    by_id = {job.id: job for job in emulated.jobs}
    assert by_id["113"].hold == "JobHeldUser"
    assert by_id["113"].priority == 0
    assert by_id["114"].hold == "Dependency"
    assert by_id["114"].priority == 51524
    assert {job.id for job in emulated.jobs if job.hold} == {"113", "114"}


def test_held_jobs_can_be_scheduled_behind_all_others() -> None:
    by_id = {job.id: job for job in import_slurm(EMULATED, schedule_held=True)[0].jobs}
    assert by_id["113"].hold is None
    assert 0 < by_id["113"].priority < min(job.priority for job in by_id.values() if job.id != "113")
    assert by_id["114"].hold == "Dependency"


def test_a_given_time_is_the_snapshots() -> None:
    assert import_slurm(SMALL, time=5.0)[0].time == 5.0


@pytest.mark.parametrize("sources", [EMULATED, SMALL], ids=["emulated", "small"])
def test_what_is_written_reads_back_equal(tmp_path: Path, sources: SlurmSources) -> None:
    for held in (False, True):
        made, _ = import_slurm(sources, schedule_held=held)
        save_snapshot(made, tmp_path / "made.json")
        assert load_snapshot(tmp_path / "made.json") == made


def test_node_states(small: Snapshot) -> None:
    states = {node.name: node.state for node in small.nodes}
    assert states == {
        "n01": NodeState.MIXED,
        "n02": NodeState.ALLOCATED,
        "n03": NodeState.MIXED,
        "n04": NodeState.MIXED,
        "n05": NodeState.MAINT,
        "n06": NodeState.DOWN,
        "n07": NodeState.DRAINED,
        "n08": NodeState.DRAINING,
        "n09": NodeState.IDLE,
        "n10": NodeState.MIXED,
        "n11": NodeState.MIXED,
        "n12": NodeState.FAIL,
    }


def test_nodes_have_what_slurm_says(small: Snapshot) -> None:
    node = small.nodes[0]
    assert node.total == Resources(cores=8, memory_mib=16000, gres={"gpu:a100": 2})
    assert node.free == Resources(cores=5, memory_mib=13000, gres={"gpu:a100": 0})
    assert node.features == {"ib", "fast"}
    assert small.nodes[7].partitions == ("long", "p")


def test_running_jobs(small: Snapshot) -> None:
    running = {job.id: job for job in small.running}
    assert dict(running["87"].nodes) == {
        "n02": Resources(cores=8, memory_mib=800, gres={"gpu:a100": 2}),
        "n03": Resources(cores=3, memory_mib=300, gres={"gpu:a100": 1}),
    }
    assert running["87"].end_time == 1795177182
    assert running["88"].nodes["n11"].cores == 4, "two cores of two threads"
    assert running["91"].end_time is None, "no time limit, no end"
    assert {"90_1", "90_2", "94", "95"} <= running.keys()
    assert "1" not in running, "cancelled"


def test_a_suspended_job_holds_memory_and_gres_only(small: Snapshot) -> None:
    running = {job.id: job for job in small.running}
    assert dict(running["89"].nodes) == {"n09": Resources(cores=0, memory_mib=1000, gres={"gpu:v100": 1})}
    assert "job 89 is suspended: it holds memory and gres, no cores" in small.notes


def test_waiting_jobs_keep_slurms_reason(small: Snapshot) -> None:
    holds = {job.id: job.hold for job in small.jobs}
    assert holds == {"90_3": "JobArrayTaskLimit", "90_4": "JobArrayTaskLimit", "98": "Licenses", "99": None}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the whole sample is not here")
@pytest.mark.parametrize("form", ["scontrol_job_d.txt", "scontrol_job_d_multiline.txt"])
def test_trimming_changes_nothing_and_the_rest_interface_says_the_same(emulated: Snapshot, form: str) -> None:
    def shared(name: str) -> SlurmText:
        return SlurmText(name=name, content=(SHARED / name).read_bytes())

    for jobs, nodes, topology in (
        ("squeue.json", "sinfo.json", "topology.conf"),
        ("rest_jobs.json", "rest_nodes.json", "scontrol_topology.txt"),
    ):
        sources = SlurmSources(
            jobs=shared(jobs), nodes=shared(nodes), topology=shared(topology), job_detail=shared(form)
        )
        assert import_slurm(sources)[0] == emulated
