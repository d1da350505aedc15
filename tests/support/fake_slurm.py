"""A cluster that answers as Slurm 22.05 does while its own clock goes on; jobs start strictly in order.

Whole nodes only. What it was asked is kept, so that a test can look at every command.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aucsched.cluster.errors import InputError
from aucsched.slurm.answers.live import Command

USE = Path(__file__).parents[1] / "fixtures" / "slurm" / "use"
META: dict[str, Any] = {"meta": {"Slurm": {"release": "22.05.8"}}, "errors": []}
_RECORDS = json.loads((USE / "squeue.json").read_text())["jobs"]
_WAITING = next(job for job in _RECORDS if job["job_id"] == 99)
_NODE = next(node for node in json.loads((USE / "sinfo.json").read_text())["nodes"] if node["name"] == "n01")
CORES = 8
#: So long an ended job is still listed (MinJobAge).
_REMEMBERED_S = 300


@dataclass(slots=True, kw_only=True)
class FakeJob:
    """A job of whole nodes; ``run_s`` is known to the cluster alone."""

    id: int
    submit: int
    nodes: int
    run_s: int
    limit_s: int
    user: str = "ann"
    start: int | None = None
    places: tuple[str, ...] = ()

    @property
    def end(self) -> int | None:
        """When it ends, once it has started."""
        return None if self.start is None else self.start + self.run_s


@dataclass(slots=True)
class FakeSlurm:
    """The cluster: nodes below two leaf switches, and its jobs by their submission."""

    node_count: int
    jobs: Sequence[FakeJob]
    now: int = 0
    asked: list[Command] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The nodes' names."""
        return [f"n{number:02}" for number in range(self.node_count)]

    def advance(self, seconds: float) -> None:
        """Let time go on to the next event, and the next, until so many seconds have passed."""
        until = self.now + round(seconds)
        while self.now < until:
            events = [job.submit for job in self.jobs] + [job.end for job in self.jobs if job.end]
            self.now = min((at for at in events if self.now < at <= until), default=until)
            self.schedule()

    def schedule(self) -> None:
        """Start jobs in the order of their submission until one does not fit: no backfilling."""
        for job in self.jobs:
            if job.submit > self.now or job.start is not None:
                continue
            free = [name for name in self.names if name not in self.busy()]
            if len(free) < job.nodes:
                return
            job.start, job.places = self.now, tuple(free[: job.nodes])

    def busy(self) -> dict[str, FakeJob]:
        """Return the nodes in use, and by which job."""
        return {name: job for job in self.running() for name in job.places}

    def running(self) -> list[FakeJob]:
        """Return the jobs that run."""
        return [job for job in self.jobs if job.start is not None and self.now < (job.end or 0)]

    def waiting(self) -> list[FakeJob]:
        """Return the jobs that wait."""
        return [job for job in self.jobs if job.submit <= self.now and job.start is None]

    def ask(self, command: Command) -> bytes:
        """Answer as the command would."""
        self.asked.append(command)
        answers = {
            ("squeue", "--json"): self._squeue,
            ("sinfo", "--json"): self._sinfo,
            ("scontrol", "show", "topology"): self._topology,
            ("scontrol", "-d", "show", "job"): self._detail,
        }
        if command not in answers:
            raise InputError("the command failed: unrecognized option", file=" ".join(command))
        return answers[command]().encode()

    def _listed(self) -> list[FakeJob]:
        return [
            job
            for job in self.jobs
            if job.submit <= self.now and (job.end is None or self.now < job.end + _REMEMBERED_S)
        ]

    def _squeue(self) -> str:
        return json.dumps(META | {"jobs": [self._record(job) for job in self._listed()]})

    def _record(self, job: FakeJob) -> dict[str, Any]:
        ended = job.end is not None and job.end <= self.now
        state = "PENDING" if job.start is None else ("COMPLETED" if ended else "RUNNING")
        cores = CORES * job.nodes
        end = job.end if ended else (0 if job.start is None else job.start + job.limit_s)
        return {
            **_WAITING,
            "job_id": job.id,
            "name": f"j{job.id}",
            "job_state": state,
            "priority": 1_000_000 - job.id,
            "user_name": job.user,
            "account": f"of-{job.user}",
            "cpus": cores,
            "tasks": cores,
            "node_count": job.nodes,
            "max_nodes": job.nodes,
            "tres_req_str": f"cpu={cores},node={job.nodes}",
            "memory_per_node": None,
            "required_nodes": "",
            "flags": [],
            "submit_time": job.submit,
            "eligible_time": job.submit,
            "start_time": job.start or 0,
            "end_time": end,
            "time_limit": job.limit_s // 60,
            "nodes": ",".join(job.places),
            "job_resources": None,
        }

    def _sinfo(self) -> str:
        busy = self.busy()
        nodes = [
            _NODE
            | {
                "name": name,
                "state": "allocated" if name in busy else "idle",
                "alloc_cpus": CORES if name in busy else 0,
                "alloc_memory": 0,
                "gres": "",
                "gres_used": "",
            }
            for name in self.names
        ]
        return json.dumps(META | {"nodes": nodes})

    def _topology(self) -> str:
        half = self.node_count // 2
        names = self.names
        return (
            f"SwitchName=s0 Level=0 LinkSpeed=1 Nodes={','.join(names[:half])}\n"
            f"SwitchName=s1 Level=0 LinkSpeed=1 Nodes={','.join(names[half:])}\n"
            f"SwitchName=top Level=1 LinkSpeed=1 Nodes={','.join(names)} Switches=s0,s1\n"
        )

    def _detail(self) -> str:
        return "".join(
            f"JobId={job.id} JobName=j{job.id}\n   UserId={job.user}(1) GroupId=g(1)\n"
            f"   NumNodes={job.nodes} CPUs/Task=1\n"
            + (f"     Nodes={','.join(job.places)} CPU_IDs=0-{CORES - 1} Mem=0 GRES=\n" if job.places else "")
            + "\n"
            for job in self._listed()
        )


class FakeWait(threading.Event):
    """An event to wait for that lets the cluster's time go on instead."""

    def __init__(self, cluster: FakeSlurm) -> None:
        super().__init__()
        self._cluster = cluster

    def wait(self, timeout: float | None = None) -> bool:
        """Let so many seconds pass."""
        self._cluster.advance(timeout or 0)
        return self.is_set()


def day_of_jobs(seed: int, *, nodes: int, begin: int, load: float = 0.9) -> list[FakeJob]:
    """Return a day's jobs that keep so much of the nodes busy."""
    draw = random.Random(seed)
    jobs: list[FakeJob] = []
    work = 0.0
    while work < load * nodes * 86400:
        run = draw.choice((300, 900, 1800, 3600, 7200)) + draw.randrange(60)
        size = draw.choice((1, 1, 2, 3, nodes // 2, nodes))
        work += run * size
        limit = 60 * -(-round(run * draw.choice((1.1, 1.5, 3))) // 60)
        submit = begin + draw.randrange(72000)
        jobs.append(
            FakeJob(id=0, submit=submit, nodes=size, run_s=run, limit_s=limit, user=draw.choice("abc"))
        )
    jobs.sort(key=lambda job: job.submit)
    for number, job in enumerate(jobs, 1):
        job.id = number
    return jobs
