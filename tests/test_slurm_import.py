"""Whole clusters: the emulated 1408 nodes of the examples, and a small one in many states at once."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aucsched import Job, NodeState, Resources, Snapshot, load_snapshot, save_snapshot
from aucsched.formats.slurm_gres import parse_gres
from aucsched.formats.slurm_import import SlurmSources, SlurmText, import_slurm

ROOT = Path(__file__).parents[1]
USE = Path(__file__).parent / "fixtures" / "slurm" / "use"
SHARED = ROOT.parent / "shared" / "data" / "slurm" / "emulated-1408"

Records = list[dict[str, Any]]


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


def changed(
    *, jobs: Callable[[Records], object] | None = None, nodes: Callable[[Records], object] | None = None
) -> Snapshot:
    """The small cluster with its records edited; no topology and no job detail."""
    documents = {"jobs": json.loads(SMALL.jobs.content), "nodes": json.loads(SMALL.nodes.content)}
    for member, edit in (("jobs", jobs), ("nodes", nodes)):
        if edit is not None:
            edit(documents[member][member])
    texts = {
        name: SlurmText(name=name, content=json.dumps(document).encode())
        for name, document in documents.items()
    }
    return import_slurm(SlurmSources(jobs=texts["jobs"], nodes=texts["nodes"]))[0]


def of(records: Records, name: str) -> dict[str, Any]:
    return next(record for record in records if record["name"] == name)


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


def test_a_completing_job_still_holds_its_nodes() -> None:
    """22.05 shows its CPUs free in the node's record, yet starts nothing there before the epilog ends."""
    snapshot = changed(
        jobs=lambda records: of(records, "threads").update(job_state="COMPLETING"),
        nodes=lambda records: of(records, "n11").update(
            state="idle", state_flags=["COMPLETING"], alloc_cpus=0
        ),
    )
    assert node_of(snapshot, "n11").state is NodeState.COMPLETING
    assert node_of(snapshot, "n11").free.cores == 4
    assert "88" in {job.id for job in snapshot.running}


def test_waiting_jobs_keep_slurms_reason(small: Snapshot) -> None:
    holds = {job.id: job.hold for job in small.jobs}
    assert holds == {"90_3": "JobArrayTaskLimit", "90_4": "JobArrayTaskLimit", "98": "Licenses", "99": None}


def test_running_tasks_count_against_an_arrays_limit() -> None:
    def edit(records: Records) -> None:
        array = next(record for record in records if record["array_task_string"])
        array["state_reason"] = "Priority"
        array["array_task_string"] = "3-6%3"
        array["array_max_tasks"] = 3

    holds = {job.id: job.hold for job in changed(jobs=edit).jobs if job.id.startswith("90_")}
    assert holds == {"90_3": None, **dict.fromkeys(("90_4", "90_5", "90_6"), "JobArrayTaskLimit")}


def test_a_cut_list_of_tasks_is_noted() -> None:
    def edit(records: Records) -> None:
        array = next(record for record in records if record["array_task_string"])
        array["array_task_string"] = "3,5,7,9-10,1..."

    snapshot = changed(jobs=edit)
    tasks = [job.id for job in snapshot.jobs if job.id.startswith("90_")]
    assert tasks == ["90_3", "90_5", "90_7", "90_9", "90_10"]
    assert any("cut off, 5 are read" in note for note in snapshot.notes)


def node_of(snapshot: Snapshot, name: str) -> Any:
    return next(node for node in snapshot.nodes if node.name == name)


def test_free_is_the_less_of_both_figures() -> None:
    def edit(records: Records) -> None:
        of(records, "n01")["alloc_cpus"] = 6
        of(records, "n03")["alloc_cpus"] = 0

    snapshot = changed(nodes=edit)
    assert node_of(snapshot, "n01").free.cores == 2
    assert node_of(snapshot, "n03").free.cores == 1
    assert "node n01: by its record 2 cores are free, by its jobs 5: the less is taken" in snapshot.notes
    assert "node n03: by its record 8 cores are free, by its jobs 1: the less is taken" in snapshot.notes


def test_jobs_on_unknown_nodes_are_dropped_with_a_note() -> None:
    snapshot = changed(nodes=lambda records: records.remove(of(records, "n02")))
    assert "job 87 runs on node n02, which is not of the cluster: dropped" in snapshot.notes
    running = {job.id: job for job in snapshot.running}
    assert list(running["87"].nodes) == ["n03"]
    jobs = {job.id: job for job in snapshot.jobs}
    assert jobs["99"].unsupported == ("the required node n02, which the cluster does not have",)


def test_a_job_whose_use_is_told_nowhere_is_dropped_with_a_note() -> None:
    snapshot = changed(jobs=lambda records: of(records, "uneven").update(job_resources=None))
    assert "job 87: what it holds is not known: dropped" in snapshot.notes
    assert "87" not in {job.id for job in snapshot.running}
    assert node_of(snapshot, "n02").free.cores == 0, "the node's own figure counts it"
    sources = SlurmSources(jobs=SMALL.jobs, nodes=SMALL.nodes, job_detail=SMALL.job_detail)
    document = json.loads(SMALL.jobs.content)
    del of(document["jobs"], "uneven")["job_resources"]
    without = SlurmText(name="jobs", content=json.dumps(document).encode())
    by_detail = import_slurm(replace(sources, jobs=without))[0]
    assert by_detail.running == import_slurm(sources)[0].running


def test_gres_that_are_not_consumed_are_noted() -> None:
    snapshot = changed(nodes=lambda records: of(records, "n10").update(gres="gpu:v100:2,net:no_consume:4"))
    assert node_of(snapshot, "n10").total.gres == {"gpu:v100": 2, "net": 4}
    assert "node n10: its no_consume gres are counted as if jobs used them up" in snapshot.notes


def test_more_use_than_a_node_has_is_cut_with_a_note() -> None:
    def edit(records: Records) -> None:
        node = of(records, "n02")
        node["cpus"], node["alloc_cpus"], node["real_memory"], node["gres"] = 5, 5, 700, "gpu:a100:1"
        node["gres_used"], node["alloc_memory"] = "gpu:a100:1", 700

    snapshot = changed(nodes=edit)
    assert node_of(snapshot, "n02").free == Resources(cores=0, memory_mib=0, gres={"gpu:a100": 0})
    text = "job 87 on node n02: 3 cores, 100 MiB, 1 gres above what the node has are dropped"
    assert text in snapshot.notes


def test_unknown_excluded_nodes_are_dropped_with_a_note() -> None:
    def edit(records: Records) -> None:
        of(records, "waiting")["excluded_nodes"] = "n01,old[1-3]"

    snapshot = changed(jobs=edit)
    job = next(job for job in snapshot.jobs if job.id == "99")
    assert job.request.excluded_nodes == {"n01"}
    assert "job 99: excluded nodes not of the cluster are dropped: 3" in snapshot.notes


def edited_job(**members: Any) -> tuple[Job, Snapshot]:
    """The job that waits, with members of another value."""

    def edit(records: Records) -> None:
        of(records, "waiting").update({"required_nodes": "", **members})

    snapshot = changed(jobs=edit)
    return next(job for job in snapshot.jobs if job.id == "99"), snapshot


def test_contradicting_requests_are_not_expressible() -> None:
    job, _ = edited_job(cpus=2, max_nodes=5, tres_req_str="cpu=2,node=5", minimum_cpus_per_node=0)
    assert job.request.cores_per_node == 1, "Slurm gives each node a CPU"
    job, _ = edited_job(tres_per_node="gres:gpu:1,gres:gpu:a100:1")
    assert job.unsupported
    assert job.unsupported[0].startswith("the parts of the request contradict each other")
    job, snapshot = edited_job(max_nodes=2, tres_req_str="cpu=8,node=4")
    assert job.request.nodes is not None
    assert (job.request.nodes.minimum, job.request.nodes.maximum) == (2, 2)
    assert any("4 nodes at least (tres_req_str), 2 at most (max_nodes)" in note for note in snapshot.notes)


@pytest.mark.parametrize(
    ("state", "reason", "priority", "hold"),
    [
        ("PENDING", "None", 5, None),
        ("PENDING", "Resources", 5, None),
        ("PENDING", "None", 0, "JobHeldUser"),
        ("PENDING", "JobHeldAdmin", 0, "JobHeldAdmin"),
        ("PENDING", "QOSMaxCpuPerUserLimit", 5, "QOSMaxCpuPerUserLimit"),
        ("SPECIAL_EXIT", "JobHeldUser", 0, "SpecialExit"),
        (["PENDING", "REQUEUE_HOLD"], "JobHeldUser", 0, "RequeueHold"),
        (["PENDING"], "Priority", {"set": True, "infinite": False, "number": 7}, None),
    ],
)
def test_reasons_become_holds(state: Any, reason: str, priority: Any, hold: str | None) -> None:
    job, _ = edited_job(job_state=state, state_reason=reason, priority=priority)
    assert job.hold == hold


@pytest.mark.parametrize(
    ("state", "flags", "expected"),
    [
        ("idle", ["PLANNED"], NodeState.IDLE),
        (["IDLE", "CLOUD"], [], NodeState.IDLE),
        (["MIXED", "DRAIN"], None, NodeState.DRAINING),
        ("idle", ["DRAIN", "COMPLETING"], NodeState.DRAINING),
        ("mixed", ["COMPLETING"], NodeState.COMPLETING),
        ("allocated", ["NOT_RESPONDING"], NodeState.DOWN),
        ("idle", ["RESERVED"], NodeState.RESERVED),
        ("idle", ["POWERED_DOWN"], NodeState.UNKNOWN),
        ("idle", ["BLOCKED"], NodeState.UNKNOWN),
        ("error", [], NodeState.DOWN),
        ("future", [], NodeState.UNKNOWN),
    ],
)
def test_states_and_flags_of_nodes(state: Any, flags: Any, expected: NodeState) -> None:
    snapshot = changed(nodes=lambda records: of(records, "n10").update(state=state, state_flags=flags))
    assert node_of(snapshot, "n10").state is expected
    if expected is NodeState.UNKNOWN and state == "idle":
        assert any(note.startswith("node n10: ") for note in snapshot.notes)


def test_numbers_of_later_versions_are_read() -> None:
    def wrap(value: int) -> dict[str, Any]:
        return {"set": True, "infinite": False, "number": value}

    unset = {"set": False, "infinite": False, "number": 0}
    job, _ = edited_job(
        priority=wrap(2**32 - 3),
        cpus=wrap(8),
        tasks=wrap(4),
        cpus_per_task=wrap(2),
        memory_per_node=unset,
        memory_per_cpu=wrap(50),
        threads_per_core=unset,
        time_limit={"set": True, "infinite": True, "number": 0},
    )
    assert job.priority == 2**32 - 3
    assert job.request.cores_per_task == 2
    assert job.request.memory_mib_per_core == 50
    assert job.time_limit_s is None


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
