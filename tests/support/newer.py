"""Slurm 22.05's records rewritten into the shapes of 24.05 and 25.05, whose meaning is the same.

Written after slurmrestd's v0.0.41 and v0.0.42: numbers and times become structures, states and words lists,
a job's resources move below ``nodes``, flags get new names, gres a slash.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aucsched.slurm.answers.detail import JobDetail

Document = dict[str, Any]

_META = {"slurm": {"version": {"major": "24", "micro": "3", "minor": "05"}, "release": "24.05.3"}}
_NUMBERS = {
    "array_job_id", "array_task_id", "array_max_tasks", "cores_per_socket", "cpus", "deadline",
    "eligible_time", "end_time", "het_job_id", "last_sched_evaluation", "max_nodes", "memory_per_cpu",
    "memory_per_node", "minimum_cpus_per_node", "minimum_tmp_disk_per_node", "node_count", "priority",
    "sockets_per_node", "start_time", "submit_time", "tasks", "tasks_per_board", "tasks_per_core",
    "tasks_per_node", "tasks_per_socket", "threads_per_core", "time_limit", "time_minimum",
}  # fmt: skip
_FLAGS = {"JOB_CPUS_SET": "EXACT_CPU_COUNT_REQUESTED", "JOB_MEM_SET": "EXACT_MEMORY_REQUESTED"}


def number(value: int | None) -> Document:
    """Return a number as 23.02 and later write it."""
    return {"set": value is not None, "infinite": False, "number": value or 0}


def newer_jobs(document: Document, details: Mapping[int, JobDetail]) -> Document:
    """Return the answer of ``squeue --json`` as 24.05 would give it.

    ``details`` is what 22.05's JSON leaves out and later versions have: switches and CPUs of a task.
    """
    jobs = [_job(job, details[job["job_id"]]) for job in document["jobs"]]
    return {"jobs": jobs, "last_update": number(0), "meta": _META, "errors": [], "warnings": []}


def _job(job: Document, detail: JobDetail) -> Document:
    new = {name: number(value) if name in _NUMBERS else value for name, value in job.items()}
    if job["time_limit"] is None:
        new["time_limit"] = {"set": False, "infinite": True, "number": 0}
    for name in ("tres_per_node", "tres_per_job", "tres_per_task"):
        new[name] = (job[name] or "").replace("gres:", "gres/")
    new["cpus_per_task"] = number(detail.numbers.get("cpus_per_task"))
    new["required_switches"] = detail.numbers.get("required_switches", 0)
    new["tasks_per_tres"] = number(detail.numbers.get("tasks_per_tres"))
    new["thread_spec"] = job["thread_spec"] or 0x7FFE
    new["core_spec"] = job["core_spec"] or 0
    new["job_state"] = [job["job_state"]]
    new["flags"] = [_FLAGS.get(flag, flag) for flag in job["flags"]]
    new["shared"] = [job["shared"]] if job["shared"] else []
    new["exclusive"] = ["true"] if job["shared"] == "none" else []
    new["job_resources"] = _resources(job["job_resources"]) if job.get("job_resources") else {}
    return new


def _resources(old: Document) -> Document:
    nodes = old["allocated_nodes"]
    allocation = [_allocated(index, node) for index, node in enumerate(nodes)]
    return {"select_type": ["CORE"], "nodes": {"count": len(nodes), "allocation": allocation}}


def _allocated(index: int, node: Document) -> Document:
    sockets = [
        {"index": int(place), "cores": [_core(int(core), word) for core, word in socket["cores"].items()]}
        for place, socket in node["sockets"].items()
    ]
    memory = {"used": 0, "allocated": node["memory_allocated"]}
    return {"index": index, "name": node["nodename"], "memory": memory, "sockets": sockets}


def _core(index: int, word: str) -> Document:
    # Only cores of the job are listed in 22.05.
    return {"index": index, "status": ["ALLOCATED" if word.startswith("allocated") else "UNALLOCATED"]}


def newer_nodes(document: Document) -> Document:
    """Return the answer of ``scontrol show nodes --json`` as 24.05 would give it."""
    nodes = [
        {
            **node,
            "state": [node["state"].upper(), *node["state_flags"]],
            "features": node["features"].split(","),
            "active_features": node["active_features"].split(","),
            "effective_cpus": node["cpus"],
            "specialized_memory": 0,
        }
        for node in document["nodes"]
    ]
    for node in nodes:
        del node["state_flags"]
    return {"nodes": nodes, "last_update": number(0), "meta": _META, "errors": [], "warnings": []}
