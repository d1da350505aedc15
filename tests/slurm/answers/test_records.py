"""Slurm's records edited one by one: disagreements, rare states, later versions' shapes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aucsched import Job, NodeState, Resources, Snapshot
from aucsched.slurm.answers.snapshot_of_answers import SlurmSources, SlurmText, import_slurm

USE = Path(__file__).parents[2] / "fixtures" / "slurm" / "use"

Records = list[dict[str, Any]]


def use(name: str) -> SlurmText:
    return SlurmText(name=name, content=(USE / name).read_bytes())


SMALL = SlurmSources(jobs=use("squeue.json"), nodes=use("sinfo.json"), job_detail=use("job_detail.txt"))


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


def node_of(snapshot: Snapshot, name: str) -> Any:
    return next(node for node in snapshot.nodes if node.name == name)


@pytest.mark.parametrize(
    "word", ["BLOCKED", "EXTERNAL", "POWER_DOWN_ASAP", "POWER_DOWN_FORCE", "POWER_DRAIN"]
)
def test_states_of_later_versions_take_no_jobs(word: str) -> None:
    snapshot = changed(nodes=lambda records: of(records, "n06").update(state="idle", state_flags=[word]))
    assert not node_of(snapshot, "n06").state.takes_jobs
    assert f"node n06: {word.lower()}: taken as not available now" in snapshot.notes


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


def test_running_tasks_count_against_an_arrays_limit() -> None:
    def edit(records: Records) -> None:
        array = next(record for record in records if record["array_task_string"])
        array["state_reason"] = "Priority"
        array["array_task_string"] = "3-6%3"
        array["array_max_tasks"] = 3

    holds = {job.id: job.hold for job in changed(jobs=edit).jobs if job.id.startswith("90_")}
    assert holds == {"90_3": None, **dict.fromkeys(("90_4", "90_5", "90_6"), "JobArrayTaskLimit")}


def test_waiting_tasks_with_records_of_their_own_count_against_their_arrays_limit() -> None:
    def edit(records: Records) -> None:
        array = next(record for record in records if record["array_task_string"])
        array |= {"state_reason": "Priority", "array_task_string": "3-6%4", "array_max_tasks": 4}
        own = [
            {
                **array,
                "job_id": 900 + task,
                "array_task_id": task,
                "array_task_string": "",
                "state_reason": why,
            }
            for task, why in ((11, "Priority"), (12, "JobHeldUser"), (17, "Priority"))
        ]
        at = records.index(array)
        records[at : at + 1] = [*own[:2], array, own[2]]

    holds = {job.id: job.hold for job in changed(jobs=edit).jobs if job.id.startswith("90_")}
    assert holds.pop("90_12") == "JobHeldUser"
    # Two tasks run.
    assert [name for name, hold in holds.items() if hold is None] == ["90_11", "90_3"]
    assert set(holds.values()) == {None, "JobArrayTaskLimit"}


@pytest.mark.parametrize(("saved", "others"), [("0", None), ("7", "JobArrayTaskLimit")])
def test_a_held_task_takes_a_place_of_its_array_only_where_it_is_lifted(
    saved: str, others: str | None
) -> None:
    document = json.loads(SMALL.jobs.content)
    array = next(record for record in document["jobs"] if record["array_task_string"])
    array |= {"state_reason": "Priority", "array_task_string": "4-6%3", "array_max_tasks": 3}
    own = {"job_id": 903, "array_task_id": 3, "array_task_string": "", "state_reason": "JobHeldUser"}
    document["jobs"].insert(document["jobs"].index(array), {**array, **own})
    sources = SlurmSources(
        jobs=SlurmText(name="jobs", content=json.dumps(document).encode()),
        nodes=SMALL.nodes,
        priorities=SlurmText(name="sprio", content=f"JOBID PRIORITY\n90_3 {saved}\n90 100\n".encode()),
    )
    # Two tasks run, so that one more may start.
    jobs = {job.id: job for job in import_slurm(sources, schedule_held=True)[0].jobs}
    assert jobs["90_4"].hold == others
    assert jobs["90_5"].hold == "JobArrayTaskLimit"
    assert jobs["90_3"].hold == ("JobHeldUser" if saved == "0" else None)


def test_a_cut_list_of_tasks_is_noted() -> None:
    def edit(records: Records) -> None:
        array = next(record for record in records if record["array_task_string"])
        array["array_task_string"] = "3,5,7,9-10,1..."

    snapshot = changed(jobs=edit)
    tasks = [job.id for job in snapshot.jobs if job.id.startswith("90_")]
    assert tasks == ["90_3", "90_5", "90_7", "90_9", "90_10"]
    assert any("cut off, 5 are read" in note for note in snapshot.notes)


@pytest.mark.parametrize(
    ("job", "text", "held"),
    [
        ("gpu_one", "cpu=2,node=1,gres/gpu=1,gres/gpu:a100=1", [{"gpu:a100": 1}]),
        ("uneven", "cpu=3,node=2,gres/gpu=4", [{"gpu:a100": 2}, {"gpu:a100": 2}]),
        ("uneven", "cpu=3,node=2,gres/gpu=3", [{}, {}]),
    ],
)
def test_gres_of_a_job_without_details_are_equal_shares_of_its_tres(
    job: str, text: str, held: list[dict[str, int]]
) -> None:
    snapshot = changed(jobs=lambda records: of(records, job).update(gres_detail=[], tres_alloc_str=text))
    number = {"gpu_one": "85", "uneven": "87"}[job]
    running = next(one for one in snapshot.running if one.id == number)
    assert [dict(use.gres) for use in running.nodes.values()] == held


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


@pytest.mark.parametrize(("weights", "is_noted"), [((1, 1), False), ((1, 50), True), ((50, 50), True)])
def test_weights_of_nodes_that_differ_are_noted(weights: tuple[int, int], is_noted: bool) -> None:
    """The other nodes of the cluster weigh 1."""

    def edit(records: Records) -> None:
        for record in records:
            record["weight"] = 1
        of(records, "n01")["weight"], of(records, "n02")["weight"] = weights

    note = "weights of nodes differ and are not looked at: Slurm takes nodes of lower weight first"
    assert (note in changed(nodes=edit).notes) == is_noted


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
        ("PENDING", "Reservation", 5, None),
        ("PENDING", "ReqNodeNotAvail", 5, None),
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
        ("idle*", [], NodeState.DOWN),
        ("idle~", [], NodeState.UNKNOWN),
        ("mixed-", [], NodeState.MIXED),
        ("idle$", [], NodeState.MAINT),
        ("idle@", [], NodeState.UNKNOWN),
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
