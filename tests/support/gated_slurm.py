"""A Slurm of a few nodes in this process: answers the loop's commands, starts jobs, can fail at any point.

It does what was seen of Slurm 22.05: a job whose licence a reservation holds waits; one with named nodes
starts on these alone; a second reservation of the same licences is refused; a removed node kills the jobs
that name it; an operator, who is no administrator, may not write a job's AdminComment.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aucsched.cluster.errors import InputError
from aucsched.formats.hostlist import expand, join
from aucsched.slurm.answers.live import Ask, Command
from aucsched.slurm.live.actions import CommandRunner, Words
from aucsched.slurm.live.loop import Loop
from aucsched.slurm.live.loop_options import Settings
from support.block_rule import legal_sets

CORES = 4
LICENCES = 1000
CONFIG = """\
Configuration data as of 2026-11-22T10:00:00
PreemptMode             = REQUEUE
PreemptType             = preempt/partition_prio
"""
#: What a look asks for behind the queue and the nodes: what changes then is not seen.
LAST_OF_LOOK: Command = ("scontrol", "-o", "show", "partitions")


class Killed(BaseException):
    """The loop's process ends here."""


@dataclass
class FakeJob:
    """A job, as submitted and as it is now."""

    number: int
    cpus: int
    run_s: float = 15.0
    least: int = 1
    most: int = 0
    licenses: str = "auction:1"
    priority: int = 100
    user: str = "ann"
    partition: str = "p"
    limit_min: int = 10
    exclusive: bool = False
    features: str = ""
    segment: int = 0
    dependency: str = ""
    begin: float = 0.0
    #: Until the next cycle 22.05 shows no reason of a job that was updated.
    is_updated: bool = False
    state: str = "PENDING"
    min_cpus: int = 1
    required: tuple[str, ...] = ()
    #: Slurm found that its required nodes break a rule, and took its priority.
    breaks_rules: bool = False
    #: Slurm takes no named nodes for it.
    takes_no_pin: bool = False
    #: The array of which it is a task, and which one; the heterogeneous job of which it is a part.
    array: int = 0
    task: int = 0
    het: int = 0
    comment: str = ""
    own_comment: str = ""
    reservation: str = ""
    held: dict[str, int] = field(default_factory=dict)
    end: float = 0.0
    starts: list[tuple[str, ...]] = field(default_factory=list)

    def asked(self) -> tuple[object, ...]:
        """What it asks for, which a pin changes and a put-back restores."""
        return (self.cpus, self.least, self.most, self.min_cpus, self.required, self.reservation)


@dataclass
class FakeSlurm:
    """The cluster, its clock, and the point at which the loop's process ends."""

    nodes: dict[str, str]
    now: float = 1_000_000.0
    jobs: dict[str, FakeJob] = field(default_factory=dict)
    reservations: dict[str, dict[str, Any]] = field(default_factory=dict)
    partition_state: str = "UP"
    tiers: dict[str, int] = field(default_factory=lambda: {"p": 1})
    preempts: bool = False
    preempt_mode: str = "REQUEUE"
    version: str = ""
    #: When slurmctld started, and what tells the cluster from others; the configuration has them if set.
    booted: float = 0.0
    name: str = ""
    #: Nodes of a block, in the nodes' order; 0: there are no blocks.
    block: int = 0
    is_up: bool = True
    disk_is_full: bool = False
    is_operators: bool = False
    die_at: int = -1
    points: int = 0
    answer_s: float = 0.0
    between: Callable[[], object] = lambda: None
    sent: list[Words] = field(default_factory=list)
    asked: list[Command] = field(default_factory=list)
    lines: list[Mapping[str, Any]] = field(default_factory=list)

    def point(self) -> None:
        """Be a point at which the loop's process may end."""
        self.points += 1
        if self.points - 1 == self.die_at:
            raise Killed

    def submit(self, cpus: int, **options: Any) -> FakeJob:
        """Submit a job."""
        job = FakeJob(number=len(self.jobs) + 1, cpus=cpus, **options)
        self.jobs[f"{job.array}_{job.task}" if job.array else str(job.number)] = job
        return job

    # The journal's side.

    def write(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Keep the loop's lines."""
        for line in lines:
            self.point()
            if self.disk_is_full:
                raise InputError("No space left on device", file="run.jsonl")
            self.lines.append(line)

    def events(self, *names: str) -> list[Mapping[str, Any]]:
        """Return the lines of these events."""
        return [line for line in self.lines if line["event"] in names]

    # The side of Slurm's commands.

    def ask(self, command: Command) -> bytes:
        """Answer a command that changes nothing."""
        self.point()
        self.asked.append(command)
        self.now += self.answer_s
        if command == LAST_OF_LOOK:
            self.between()
        if not self.is_up:
            raise InputError("Unable to contact slurm controller", file=" ".join(command))
        if command == ("squeue", "--json"):
            jobs = [self._job(job) for job in self.jobs.values()]
            return json.dumps({"jobs": jobs}).encode()
        if command == ("sinfo", "--json"):
            return json.dumps({"nodes": [self._node(name) for name in self.nodes]}).encode()
        text = self._text(command)
        if text is None:
            raise InputError("not here", file=" ".join(command))
        return text.encode()

    def _text(self, command: Command) -> str | None:
        is_told = self.preempts or self.version or self.name or self.booted
        if command == ("scontrol", "show", "config") and is_told:
            told = self._preemption() if self.preempts else CONFIG.splitlines(keepends=True)[0]
            told += self._version() + f"SlurmctldHost[0]        = {self.name}\n" * bool(self.name)
            return told + f"BOOT_TIME               = {self.booted:.0f}\n" * bool(self.booted)
        if command == ("scontrol", "show", "topology") and self.block:
            return "".join(
                f"BlockName=b{at} BlockIndex={at} Nodes={join(names)} BlockSize={self.block}\n"
                for at, names in enumerate(self._blocks())
            )
        if command == ("scontrol", "-o", "show", "reservations"):
            return "".join(map(self._reservation, self.reservations)) or "No reservations in the system\n"
        if command == ("scontrol", "-o", "show", "licenses"):
            held = sum(one["licences"] for one in self.reservations.values())
            free = LICENCES
            return f"LicenseName=auction Total={free} Used=0 Free={free} Reserved={held} Remote=no\n"
        if command == ("scontrol", "-o", "show", "partitions"):
            return "".join(map(self._partition, self.tiers))
        return self._rows(command)

    def _preemption(self) -> str:
        return CONFIG.replace("REQUEUE", self.preempt_mode)

    def _version(self) -> str:
        return f"SLURM_VERSION           = {self.version}\n" if self.version else ""

    def _blocks(self) -> list[list[str]]:
        names = list(self.nodes)
        return [names[at : at + self.block] for at in range(0, len(names), self.block)]

    def _breaks(self, job: FakeJob) -> bool:
        """Whether Slurm could never give a job its required nodes (topology/block, one block size)."""
        if not self.block or not job.required:
            return False
        counts = tuple(len(set(job.required) & set(names)) for names in self._blocks())
        sizes, nodes = (self.block,), len(job.required)
        return counts not in legal_sets(sizes, counts, nodes, job.segment or None)

    def _rows(self, command: Command) -> str | None:
        """Return what a look in few words asks for; without -r squeue merges an array's pending tasks."""
        if command[0] == "squeue":
            groups: dict[object, list[FakeJob]] = {}
            for job in self.jobs.values():
                merged = job.array and job.state == "PENDING" and "-r" not in command
                groups.setdefault((job.array, self.reason(job)) if merged else job.number, []).append(job)
            return "".join(self._line(jobs, command[-1]) for jobs in groups.values())
        if command[0] != "sinfo":
            return None
        idle = self.free()
        rows = (
            f"{name}|{state}|{CORES - idle[name]}/{idle[name]}/0/{CORES}\n"
            for name, state in self.nodes.items()
        )
        return "".join(rows)

    def _partition(self, name: str) -> str:
        return (
            f"PartitionName={name} State={self.partition_state} Nodes={join(self.nodes)} "
            f"PriorityTier={self.tiers[name]} PreemptMode={'REQUEUE' if self.preempts else 'OFF'}\n"
        )

    def _line(self, jobs: Sequence[FakeJob], line: str) -> str:
        """Return a line of squeue -o, of a job or of tasks with the first one's fields."""
        job, name = jobs[0], str(jobs[0].number)
        if job.array:
            name = f"{job.array}_{job.task}"
            if len(jobs) > 1:
                name = f"{job.array}_[{','.join(str(one.task) for one in jobs)}]"
        elif job.het:
            name = f"{job.het}+{job.number - job.het}"
        fields = {"%i": name, "%A": job.number, "%T": job.state, "%N": join(job.held)}
        for letter, value in (fields | {"%n": ",".join(job.required), "%W": job.licenses}).items():
            line = line.replace(letter, str(value))
        return f"{line}\n"

    def _reservation(self, name: str) -> str:
        one = self.reservations[name]
        licences = f"auction:{one['licences']}" if one["licences"] else "(null)"
        return (
            f"ReservationName={name} StartTime={one['start']:.0f} EndTime={one['end']:.0f} "
            f"Nodes={join(one['cores']) or '(null)'} CoreCnt={sum(one['cores'].values())} Flags=ANY_NODES "
            f"Users=root Accounts=(null) Licenses={licences}\n"
        )

    def _node(self, name: str) -> dict[str, Any]:
        used = CORES - self.free()[name]
        base = "mixed" if used else "idle"
        return {
            "name": name,
            "state": "down" if self.nodes[name] == "down" else base,
            "state_flags": self._flags(name),
            "cpus": CORES,
            "alloc_cpus": used,
            "real_memory": 1000,
            "alloc_memory": 0,
            "sockets": 1,
            "cores": CORES,
            "threads": 1,
            "gres": "",
            "gres_used": "",
            "features": "",
            "active_features": "",
            "partitions": list(self.tiers),
        }

    def _flags(self, name: str) -> list[str]:
        reserved = any(name in one["cores"] for one in self.reservations.values())
        flags = ["DRAIN"] * (self.nodes[name] == "drain") + ["RESERVED"] * reserved
        return flags + ["NOT_RESPONDING"] * self.nodes[name].endswith("*")

    def _job(self, job: FakeJob) -> dict[str, Any]:
        record: dict[str, Any] = {
            "job_id": job.number,
            "name": f"j{job.number}",
            "job_state": job.state,
            "flags": [],
            "state_reason": self.reason(job) if job.state == "PENDING" else "None",
            "priority": job.priority,
            "dependency": job.dependency,
            "partition": job.partition,
            "user_name": job.user,
            "group_name": "g",
            "account": "a",
            "qos": "",
            "cpus": job.cpus,
            "tasks": job.cpus,
            "cpus_per_task": None,
            "max_nodes": job.most,
            "node_count": job.least,
            "tres_req_str": f"cpu={job.cpus},node={job.least}",
            "tasks_per_node": 0,
            "minimum_cpus_per_node": job.min_cpus,
            "tres_per_node": "",
            "tres_per_job": "",
            "tres_per_task": "",
            "memory_per_node": None,
            "memory_per_cpu": None,
            "contiguous": False,
            "shared": "none" if job.exclusive else None,
            "features": job.features,
            "required_nodes": ",".join(job.required),
            "excluded_nodes": "",
            "licenses": job.licenses,
            **({"segment_size": job.segment} if self.block else {}),
            "resv_name": job.reservation,
            "time_limit": job.limit_min,
            "submit_time": 1_000_000,
            "eligible_time": int(job.begin) or 1_000_000,
            "start_time": 0,
            "end_time": int(job.end),
            "array_job_id": job.array,
            "array_task_id": job.task or None,
            "het_job_id": job.het,
            "array_task_string": "",
            "nodes": join(job.held),
            "gres_detail": [],
            "admin_comment": job.comment,
            "comment": job.own_comment,
        }
        if job.held:
            record["job_resources"] = {
                "nodes": join(job.held),
                "allocated_nodes": [
                    {
                        "nodename": name,
                        "sockets": {"0": {"cores": dict.fromkeys(map(str, range(cores)), "allocated")}},
                    }
                    | {"cpus_used": 0, "memory_used": 0, "memory_allocated": 0}
                    for name, cores in job.held.items()
                ],
            }
        return record

    def hand(self, commands: Sequence[Words]) -> tuple[str, ...]:
        """Carry out scontrol's commands one by one; each is a point."""
        said = []
        for words in commands:
            self.point()
            if not self.is_up:
                raise InputError("Unable to contact slurm controller")
            self.sent.append(words)
            problem = self._do(words)
            if problem:
                said.append(problem)
        self.point()
        return tuple(said)

    def _do(self, words: Words) -> str:
        values = dict(word.partition("=")[::2] for word in words[1:] if "=" in word)
        name = values.get("ReservationName", "")
        if words[0] == "release":
            values = {"JobId": words[1], "Priority": "100"}
        if "JobId" in values:
            return self.update(values)
        if words[0] == "create":
            return self._create(name, values)
        if name not in self.reservations:
            return "Requested reservation is invalid"
        if words[0] == "delete":
            if any(job.reservation == name for job in self.jobs.values() if job.state == "PENDING"):
                return "Requested reservation is in use"
            del self.reservations[name]
        else:
            end = self.now + int(values["EndTime"].removeprefix("now+"))
            if end <= self.reservations[name]["start"]:
                return "Invalid time specified"
            self.reservations[name]["end"] = end
        return ""

    def _create(self, name: str, values: Mapping[str, str]) -> str:
        if name in self.reservations:
            return "Duplicate reservation name"
        licences = int(values.get("Licenses", "auction:0").partition(":")[2])
        if licences and any(one["licences"] for one in self.reservations.values()):
            return "Invalid license specification"
        cores: dict[str, int] = {}
        if "Nodes" in values:
            counts = map(int, values["CoreCnt"].split(","))
            cores = dict(zip(expand(values["Nodes"]), counts, strict=True))
            if any(self.nodes.get(node) != "idle" for node in cores):
                return "Requested nodes are busy"
        end = values.get("EndTime", "now+600").removeprefix("now+")
        self.reservations[name] = {
            "start": self.now,
            "end": self.now + int(end),
            "licences": licences,
            "cores": cores,
            "made": self.now,
        }
        return ""

    def update(self, values: Mapping[str, str]) -> str:
        """Change a job by scontrol's words; return what Slurm says against it."""
        job = self.jobs.get(values["JobId"])
        if (
            job is not None
            and job.state == "RUNNING"
            and values.keys() <= {*("JobId", "AdminComment", "Comment", "Licenses")}
        ):
            job.comment = values.get("AdminComment", job.comment)
            job.own_comment = values.get("Comment", job.own_comment)
            job.licenses = values.get("Licenses", job.licenses)
            return ""
        if job is None or job.state != "PENDING":
            return "Invalid job id specified" if job is None else "Job is no longer pending execution"
        if self.is_operators and "AdminComment" in values:
            return f"Access/permission denied for job {job.number}"
        required = expand(values["ReqNodeList"]) if values.get("ReqNodeList") else ()
        if required and job.takes_no_pin:
            return "Requested node configuration is not available"
        if any(node not in self.nodes for node in required):
            return "Invalid node name specified"
        if "ReqNodeList" in values:
            job.required = required
        job.is_updated = True
        if "Priority" in values:
            job.breaks_rules, job.priority = False, int(values["Priority"])
        job.licenses = values.get("Licenses", job.licenses)
        job.comment = values.get("AdminComment", job.comment)
        job.own_comment = values.get("Comment", job.own_comment)
        job.min_cpus = int(values.get("MinCPUsNode", job.min_cpus))
        job.cpus = int(values.get("NumCPUs", job.cpus))
        job.reservation = values.get("ReservationName", job.reservation)
        if "NumNodes" in values:
            job.least, job.most = map(int, values["NumNodes"].split("-"))
        return ""

    # The controller's side.

    @property
    def gate_is_up(self) -> bool:
        """Whether jobs behind the gate are kept there."""
        return any(one["licences"] and one["end"] > self.now for one in self.reservations.values())

    def reason(self, job: FakeJob) -> str:
        """Return why a waiting job waits."""
        if job.priority == 0:
            return "BadConstraints" if job.breaks_rules else "JobHeldUser"
        if job.is_updated:
            return "None"
        if job.dependency:
            return "Dependency"
        if job.begin > self.now:
            return "BeginTime"
        if self.partition_state != "UP":
            return "PartitionDown"
        return "Licenses" if "auction" in job.licenses and self.gate_is_up else "Resources"

    def free(self) -> dict[str, int]:
        """Return the free cores by node, also of nodes that take no jobs."""
        free = dict.fromkeys(self.nodes, CORES)
        for job in self.jobs.values():
            for name, cores in job.held.items():
                if name in free:
                    free[name] -= cores
        return free

    def remove(self, name: str) -> None:
        """Take a node out of slurm.conf and restart: jobs that name it are killed."""
        del self.nodes[name]
        for job in self.jobs.values():
            if name in job.required or name in job.held:
                job.state, job.held = "FAILED", {}

    def requeue(self, job: FakeJob) -> None:
        """Put a running job back into the queue, as it was when it started."""
        job.state, job.held = "PENDING", {}

    def tick(self, seconds: float = 1.0) -> None:
        """Let time pass: jobs end, reservations end, jobs start by priority."""
        self.now += seconds
        if not self.is_up:
            return
        for job in self.jobs.values():
            job.is_updated = False
            if job.state == "RUNNING" and job.end <= self.now:
                job.state, job.held = "COMPLETED", {}
        for name, one in list(self.reservations.items()):
            users = [
                job
                for job in self.jobs.values()
                if job.reservation == name and job.state in {"PENDING", "RUNNING"}
            ]
            if one["end"] <= self.now or (one["cores"] and not users and self.now - one["made"] > 60):
                del self.reservations[name]
        order = sorted(
            self.jobs.values(), key=lambda one: (-self.tiers[one.partition], -one.priority, one.number)
        )
        for job in order:
            if job.state == "PENDING" and self.reason(job) == "Resources":
                if self._breaks(job):
                    job.breaks_rules, job.priority = True, 0
                    continue
                self._start(job)
                self._preempt_for(job)

    def _preempt_for(self, job: FakeJob) -> None:
        """Requeue running jobs of lower tiers, the last started first, where that lets a job start."""
        lower = [
            other
            for other in self.jobs.values()
            if other.state == "RUNNING" and self.tiers[other.partition] < self.tiers[job.partition]
        ]
        while self.preempts and job.state == "PENDING" and lower:
            self.requeue(lower.pop())
            self._start(job)

    def _start(self, job: FakeJob) -> None:
        free = {name: cores for name, cores in self.free().items() if self.nodes[name] == "idle"}
        for name, one in self.reservations.items():
            if name != job.reservation:
                inside = [other.held for other in self.jobs.values() if other.reservation == name]
                for node, cores in one["cores"].items():
                    if node in free:
                        free[node] -= cores - sum(held.get(node, 0) for held in inside)
        place = self._place(job, free)
        if place is None:
            return
        job.held, job.state = place, "RUNNING"
        job.end = self.now + job.run_s
        job.starts.append(tuple(sorted(place)))

    def _place(self, job: FakeJob, free: Mapping[str, int]) -> dict[str, int] | None:
        if job.reservation:
            cores = self.reservations.get(job.reservation, {}).get("cores")
            fits = cores and all(free.get(name, 0) >= count for name, count in cores.items())
            return dict(cores) if cores and fits else None
        names = [*job.required, *(name for name in free if name not in job.required)]
        place: dict[str, int] = {}
        left = job.cpus
        for name in names:
            here = min(free.get(name, 0), left)
            if job.exclusive and free.get(name, 0) < CORES:
                here = 0
            if name in job.required and job.required:
                here = min(here, job.cpus // len(job.required) or 1)
            if here < job.min_cpus:
                if name in job.required:
                    return None
                continue
            if left > 0:
                place[name] = CORES if job.exclusive else here
                left -= here
        return place if left <= 0 and len(place) <= (job.most or len(place)) else None


def loop_on(
    fake: FakeSlurm,
    *,
    host: str = "one",
    user: str = "root",
    runner: CommandRunner | None = None,
    ask: Ask | None = None,
    **settings: Any,
) -> Loop:
    """Return a loop over a fake cluster, on its clock; the auction alone, the same each time."""
    from aucsched.auction.options import StepOptions  # noqa: PLC0415 - after the engine's own imports

    return Loop(
        Settings(host=host, user=user, **settings),
        StepOptions(work_limit=0, promise="none", reserve=0),
        ask=ask or fake.ask,
        runner=runner or fake.hand,
        journal=fake.write,
        clock=lambda: fake.now,
        now=lambda: fake.now,
    )
