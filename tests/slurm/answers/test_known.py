"""What was read of the look before is what reading anew gives, whatever changed between the two."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path
from typing import Any

import pytest

from aucsched.cluster.errors import InputError
from aucsched.slurm.answers.answer_record import Known
from aucsched.slurm.answers.live import Command, UnreachableError, collect
from aucsched.slurm.answers.slurm_files import SlurmFiles
from aucsched.slurm.answers.snapshot_of_answers import SlurmSources, SlurmText, import_slurm
from aucsched.slurm.live.live_queue import read_queue

USE = Path(__file__).parents[2] / "fixtures" / "slurm" / "use"
TIME = 1_700_000_000.0


class Changing:
    """Slurm's answers, of which something is another each time."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.jobs = json.loads((USE / "squeue.json").read_text())
        self.nodes = json.loads((USE / "sinfo.json").read_text())
        # As without -o: the times of a job on lines of their own.
        lines = (USE / "job_detail.txt").read_text()
        self.detail = lines.replace(" RunTime=", "\n   RunTime=").replace(" SubmitTime=", "\n   SubmitTime=")
        self.accounts, self.now = "ALL", TIME

    def change(self) -> None:
        """Change a job or several, a node, a rule, the clock; always the time of the last look."""
        pick = self.random
        for job in self.jobs["jobs"]:
            job["last_sched_evaluation"] = int(self.now)
        for _ in range(pick.randrange(3)):
            job, other = pick.sample(self.jobs["jobs"], 2)
            name = pick.choice(["priority", "time_limit", "licenses", "state_reason", "features"])
            job[name] = other.get(name)
        job = pick.choice(self.jobs["jobs"])
        change = pick.randrange(8)
        if change == 0:
            job["priority"], job["eligible_time"] = 0, int(self.now + 30)
        elif change == 1:
            self.jobs["jobs"].remove(job)
        elif change == 2:
            pick.choice(self.nodes["nodes"])["alloc_cpus"] = pick.randrange(4)
        elif change == 3:
            pick.choice(self.nodes["nodes"])["real_memory"] = 500 + pick.randrange(2)
        elif change == 4:
            self.accounts = pick.choice(["ALL", "nobody"])
        elif change == 5:
            self.detail = self.detail.replace("Switches=0", "Switches=1", 1)
        elif change == 6:
            self.take_back(job)
        self.now += 20

    def take_back(self, job: dict[str, Any]) -> None:
        """Take memory from a running job, as 26.05 may, and a feature from a node."""
        for held in (job.get("job_resources") or {}).get("allocated_nodes", ()):
            held["memory_allocated"] //= 2
        self.random.choice(self.nodes["nodes"])["active_features"] = self.random.choice(["", "fast"])

    def sources(self) -> SlurmSources:
        """Return the answers as they are now."""
        names = ",".join(node["name"] for node in self.nodes["nodes"])
        line = f"PartitionName=p AllowAccounts={self.accounts} State=UP Nodes={names}\n"
        texts = {"jobs": json.dumps(self.jobs), "nodes": json.dumps(self.nodes), "job_detail": self.detail}
        texts["partitions"] = line
        return SlurmSources(
            **{name: SlurmText(name=name, content=text.encode()) for name, text in texts.items()}
        )


@pytest.mark.parametrize("seed", range(12))
def test_a_look_after_another_finds_what_a_first_look_finds(seed: int) -> None:
    slurm, known = Changing(seed), Known()
    for _ in range(12):
        sources = slurm.sources()
        again, notes = import_slurm(sources, time=slurm.now, gate="auction", known=known)
        first, said = import_slurm(sources, time=slurm.now, gate="auction")
        assert again == first
        assert (list(notes.summary()), notes.policies) == (list(said.summary()), said.policies)
        jobs = sources.jobs.content
        assert read_queue(jobs, "jobs", known) == read_queue(jobs, "jobs")
        slurm.change()


def test_what_did_not_change_is_not_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    slurm, known = Changing(0), Known()
    import_slurm(slurm.sources(), time=slurm.now, known=known)
    read: list[str] = []
    for name in ("pending_jobs._job", "node_records._node", "detail._detail"):
        module, function = name.split(".")
        path = f"aucsched.slurm.answers.{module}.{function}"
        monkeypatch.setattr(path, lambda *_, name=name: read.append(name))
    for job in slurm.jobs["jobs"]:
        job["last_sched_evaluation"] += 30
    slurm.detail = slurm.detail.replace("RunTime=00:", "RunTime=01:")
    import_slurm(slurm.sources(), time=slurm.now + 30, known=known)
    assert read == []
    slurm.nodes["nodes"][0]["comment"] = "new"
    with pytest.raises(AttributeError):
        import_slurm(slurm.sources(), time=slurm.now + 30, known=known)
    assert read == ["node_records._node"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'{"jobs": [{"job_id": 1}', "not JSON"),
        (b'{"jobs": [3]}', "3 is not an object"),
        (b"[]", "not an object"),
        (b"{}", "'jobs' is missing"),
        (b'{"errors": [{"error": "no such"}], "jobs": []}', "Slurm reports an error: no such"),
    ],
)
def test_an_answer_that_is_none_is_refused_in_the_same_words(text: bytes, words: str) -> None:
    for known in (None, Known()):
        with pytest.raises(InputError, match=words) as raised:
            import_slurm(_with_jobs(text), time=TIME, known=known)
        assert raised.value.file == "jobs"


def _with_jobs(text: bytes) -> SlurmSources:
    nodes = SlurmText(name="nodes", content=(USE / "sinfo.json").read_bytes())
    return SlurmSources(jobs=SlurmText(name="jobs", content=text), nodes=nodes)


def test_commands_are_asked_at_the_same_time_and_each_answer_stands_in_its_place() -> None:
    together = threading.Barrier(4, timeout=20)
    first: set[Command] = set()

    def ask(command: Command) -> bytes:
        # Which release the commands are of is asked before all else.
        if len(first) < 4 and command != ("scontrol", "--version"):
            first.add(command)
            together.wait()
        if "--json" in command and command[0] == "scontrol":
            raise InputError("unrecognized option", file=" ".join(command))
        return " ".join(command).encode()

    sources, notes = collect(SlurmFiles(), ask=ask, at_once=4)
    alone, said = collect(SlurmFiles(), ask=ask)
    assert sources == alone
    assert list(notes.summary()) == list(said.summary())
    assert sources.nodes.name == "sinfo --json"


def test_a_command_that_fails_among_others_is_told_as_when_asked_alone() -> None:
    def ask(command: Command) -> bytes:
        if command[0] == "squeue":
            raise InputError("Unable to contact slurm controller", file=" ".join(command))
        return b""

    for at_once in (1, 4):
        with pytest.raises(InputError, match="Unable to contact"):
            collect(SlurmFiles(), ask=ask, at_once=at_once)


def test_a_controller_that_is_down_is_waited_for_once(tmp_path: Path) -> None:
    asked: list[Command] = []

    def ask(command: Command) -> bytes:
        asked.append(command)
        if command == ("scontrol", "--version"):
            return b"slurm 22.05.8"
        raise UnreachableError("slurmctld cannot be reached", file=" ".join(command))

    (tmp_path / "saved").write_text("{}")
    saved = str(tmp_path / "saved")
    _, notes = collect(SlurmFiles(jobs=saved, nodes=saved), ask=ask)
    assert len(asked) - (("scontrol", "--version") in asked) == 1
    assert sum("cannot be reached" in text for text in notes.summary()) >= 1
