"""Policies of other people: as good as ours where they say the same, and never trusted."""

# ruff: noqa: D101, D102, ARG002 - policies as people write them
from __future__ import annotations

import csv
import json
import random
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from math import inf
from pathlib import Path
from typing import Any

import pytest

import aucsched
from aucsched import AwardError, MachineView, Node, OptionError, PolicyError, QueuedJob, Request, Resources
from aucsched.cli import run
from aucsched.cluster.text import plural
from aucsched.simulation import own_policy

FIXTURES = Path(__file__).parents[1] / "fixtures" / "swf"
EXAMPLES = Path(__file__).parents[2] / "examples"


class Fcfs:
    """The front of the queue, while it fits."""

    def step(self, now: float, machine: MachineView) -> None:
        for job in machine.waiting:
            if not machine.start(job):
                return


class Easy:
    """EASY as a page of the literature states it."""

    def step(self, now: float, machine: MachineView) -> None:
        waiting = list(machine.waiting)
        started: list[tuple[float, int]] = []
        while waiting and machine.start(waiting[0]):
            job = waiting.pop(0)
            started.append((now + job.estimate_s, job.cores))
        if not waiting:
            return
        head, *others = waiting
        ends = sorted([*started, *((one.expected_end_s, one.cores) for one in machine.running)])
        free, shadow = machine.free_cores, inf
        for end, cores in ends:
            if free >= head.cores and end > shadow:
                break
            free += cores
            if free >= head.cores:
                shadow = end
        extra = free - head.cores
        for job in others:
            if now + job.estimate_s <= shadow:
                machine.start(job)
            elif job.cores <= extra and machine.start(job):
                extra -= job.cores


def _log(seed: int, jobs: int = 150) -> aucsched.SwfLog:
    rng = random.Random(seed)
    rows, submit = ["; MaxProcs: 16"], 0
    for number in range(jobs):
        submit += rng.randrange(12)
        estimate = rng.randint(5, 90)
        rows.append(
            f"{number} {submit} -1 {rng.randint(1, estimate)} {rng.randint(1, 16)} "
            f"-1 -1 -1 {estimate} -1 -1 {seed}"
        )
    return aucsched.parse_swf("\n".join(rows).encode())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("order", ["fcfs", "sjf", "multifactor"])
def test_the_same_rule_gives_the_same_starts(seed: int, order: Any) -> None:
    log = _log(seed)
    for name, policy in (("fcfs", Fcfs), ("easy", Easy)):
        ours = aucsched.simulate(log, name, order=order)
        theirs = aucsched.simulate(log, policy, order=order)
        assert theirs.columns == ours.columns, (name, order)
        assert theirs.metrics == ours.metrics


def _workload(seed: int, jobs: int = 60) -> aucsched.ClusterWorkload:
    rng = random.Random(seed)
    nodes = [Node(name=f"n{place}", cores=8, gres={"gpu": place % 3}) for place in range(6)]
    arriving, now = [], 0.0
    for number in range(jobs):
        now += rng.random() * 20
        gres = {"gpu": rng.randint(1, 2)} if rng.random() < 0.3 else {}
        request = Request(nodes=rng.randint(1, 3), cores_per_node=rng.randint(1, 8), gres_per_node=gres)
        job = aucsched.Job(
            id=str(number), priority=10_000 - number, request=request, time_limit_s=rng.randint(20, 200)
        )
        arriving.append(aucsched.ArrivingJob(job=job, arrival_s=now, run_time_s=rng.randint(1, 200)))
    return aucsched.ClusterWorkload(name="random", nodes=nodes, jobs=arriving)


@pytest.mark.parametrize("seed", range(3))
def test_first_come_first_served_on_nodes_is_ours(seed: int) -> None:
    workload = _workload(seed)
    ours, theirs = aucsched.simulate(workload, "fcfs"), aucsched.simulate(workload, Fcfs)
    assert theirs.columns == ours.columns
    assert theirs.result.workload.rows == 60


class OnNamedNodes:
    """Starts each job on the last nodes that hold it, by name."""

    def step(self, now: float, machine: MachineView) -> None:
        for job in machine.waiting:
            assert job.job is not None
            request = job.job.request
            count = request.fewest_nodes
            use = Resources(
                cores=request.cores_per_node or 0,
                gres={kind: span.minimum for kind, span in request.gres_per_node.items()},
            )
            for first in reversed(range(7 - count)):
                if machine.start(job, {f"n{place}": use for place in range(first, first + count)}):
                    break


def test_a_policy_may_name_nodes() -> None:
    found = aucsched.simulate(_workload(7), OnNamedNodes)
    done = [nodes for nodes in found.columns["nodes"] if nodes is not None]
    assert len(done) > 40
    assert any("n5" in nodes for nodes in done)


class _Base:
    def __init__(self) -> None:
        self.seen: Sequence[QueuedJob] = ()


class StartsTheSame(_Base):
    def step(self, now: float, machine: MachineView) -> None:
        for job in [machine.waiting[0]] * 2:
            machine.start(job)


class Fails(_Base):
    def step(self, now: float, machine: MachineView) -> None:
        raise ZeroDivisionError("by me")


class OptionFails(_Base):
    def step(self, now: float, machine: MachineView) -> None:
        raise OptionError("by mine")


class AwardFails:
    def __init__(self) -> None:
        raise AwardError("by mine")

    def step(self, now: float, machine: MachineView) -> None: ...


class CannotBeMade:
    def __init__(self) -> None:
        raise ValueError("no luck")

    def step(self, now: float, machine: MachineView) -> None: ...


class Unknown:
    def step(self, now: float, machine: MachineView) -> None:
        machine.start(machine.waiting[0], {"nowhere": 1})


class TooFew:
    def step(self, now: float, machine: MachineView) -> None:
        machine.start(machine.waiting[0], {"n0": 1})


class Idle:
    def step(self, now: float, machine: MachineView) -> None: ...


class Nothing:
    pass


@pytest.mark.parametrize("workload", [_log(1), _workload(1)], ids=["log", "nodes"])
@pytest.mark.parametrize(
    ("policy", "error", "message"),
    [
        (StartsTheSame, AwardError, "^policy .*:StartsTheSame: at .* s it starts job .* a job starts once"),
        (Fails, PolicyError, "its step at 0 s: ZeroDivisionError: by me|its step at .* s: ZeroDivisionError"),
        (OptionFails, PolicyError, "^policy .*:OptionFails: its step at .* s: OptionError: by mine"),
        (AwardFails, PolicyError, "^policy .*:AwardFails: making it: AwardError: by mine"),
        (CannotBeMade, PolicyError, "making it: ValueError: no luck"),
        (Unknown, AwardError, "not a node|has none"),
        (Nothing, OptionError, "has no step"),
    ],
)
def test_a_policy_that_breaks_a_rule_ends_the_run(
    workload: aucsched.SwfLog | aucsched.ClusterWorkload,
    policy: own_policy.Factory,
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        aucsched.simulate(workload, policy)


def test_less_than_a_job_asks_for_is_refused_on_nodes() -> None:
    with pytest.raises(AwardError, match=r"^policy .*:TooFew: job"):
        aucsched.simulate(_workload(1), TooFew)


def test_a_policy_that_starts_nothing_leaves_all_jobs_waiting() -> None:
    assert set(aucsched.simulate(_log(1), Idle).columns["start_s"]) == {None}
    assert set(aucsched.simulate(_workload(1), Idle).columns["start_s"]) == {None}


@pytest.mark.parametrize("workload", [_log(3), _workload(3)], ids=["log", "nodes"])
def test_more_than_is_free_is_not_started(workload: aucsched.SwfLog | aucsched.ClusterWorkload) -> None:
    class Greedy:
        def step(self, now: float, machine: MachineView) -> None:
            assert machine.cores - machine.free_cores == sum(one.cores for one in machine.running)
            answers = [machine.start(job) for job in machine.waiting]
            assert machine.free_cores >= 0
            assert len(machine.waiting) == answers.count(False)

    found = aucsched.simulate(workload, Greedy)
    assert any(start is not None for start in found.columns["start_s"])


class SmallOnly:
    def step(self, now: float, machine: MachineView) -> None:
        for job in machine.waiting:
            if job.cores <= 8:
                machine.start(job)


@pytest.mark.parametrize("workload", [_log(1), _workload(1)], ids=["log", "nodes"])
def test_jobs_that_a_policy_leaves_are_listed(
    workload: aucsched.SwfLog | aucsched.ClusterWorkload,
) -> None:
    found = aucsched.simulate(workload, SmallOnly)
    starts = dict(zip(map(str, found.columns["id"]), found.columns["start_s"], strict=True))
    left = [job for job, start in starts.items() if start is None]
    document = found.to_dict()
    never = document["never_started"]
    assert [one["job"] for one in never] == left != []
    assert document["jobs"] == len(starts) - len(left)
    assert all("no place" not in one["reason"] for one in never)
    assert f"never started{len(left):>25}" in found.to_text("")
    # Some of the jobs on nodes fit nowhere; easy starts all others.
    easy = aucsched.simulate(workload, "easy").to_dict()["never_started"]
    assert {one["reason"] for one in easy} <= {"it fits nowhere on the empty machine"}
    assert len(easy) < len(never)


MINE = """
class Policy:
    def step(self, now, machine):
        for job in sorted(machine.waiting, key=lambda job: job.cores):
            machine.start(job)


instance = Policy()
"""


def test_the_command_takes_a_module_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "aucsched_mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    tables = []
    for name in ("aucsched_mine:Policy", f"{tmp_path / 'aucsched_mine.py'}:Policy"):
        assert run(["simulate", str(EXAMPLES / "days.swf"), "--policy", name, "--jobs-out", "jobs.csv"]) == 0
        assert name in capsys.readouterr().out
        tables.append((tmp_path / "jobs.csv").read_text())
    assert tables[0] == tables[1]
    assert run(["simulate", str(EXAMPLES / "overtaken.json"), "--policy", "aucsched_mine:Policy"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    ("name", "message", "code"),
    [
        ("no_such_module:Policy", "there is no module no_such_module", 2),
        ("aucsched_mine2:Nobody", "aucsched_mine2 has no class Nobody", 2),
        ("aucsched_mine2:instance", "aucsched_mine2 has no class instance", 2),
        ("nowhere.py:Policy", "there is no file nowhere.py", 2),
        ("broken.py:Policy:k=3", "it takes no parameters here", 2),
        ("broken.py:Policy", "loading it: SyntaxError", 1),
        ("esay", "'esay' is not a policy: did you mean easy", 2),
    ],
)
def test_a_name_that_is_none_is_one_line(
    name: str,
    message: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "aucsched_mine2.py").write_text(MINE)
    (tmp_path / "broken.py").write_text("class Policy(:\n")
    monkeypatch.chdir(tmp_path)
    assert run(["simulate", str(EXAMPLES / "days.swf"), "--policy", name]) == code
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


OTHERS = """
class SmallOnly:
    def step(self, now, machine):
        for job in machine.waiting:
            if job.cores <= machine.cores // 2:
                machine.start(job)

class Twice:
    def step(self, now, machine):
        for job in machine.waiting:
            machine.start(job)
            machine.start(job)

class Raises:
    def step(self, now, machine):
        self.look(dict)

    def look(self, kind):
        return {}["missing"]

class Idle:
    def step(self, now, machine):
        pass
"""


@pytest.mark.parametrize("source", ["days.swf", "overtaken.json"])
def test_the_command_says_what_a_policy_left_or_broke(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, path = tmp_path / "others.py", str(EXAMPLES / source)
    file.write_text(OTHERS)
    left = len(aucsched.simulate(path, f"{file}:SmallOnly").to_dict()["never_started"])
    jobs = len(aucsched.simulate(path, "easy").columns["id"])
    first = aucsched.simulate(path, "easy").columns["id"][0]
    assert 0 < left < jobs
    said = f"note: policy {file}:SmallOnly never starts {plural(left, 'job')}; its figures leave them out\n"
    assert run(["simulate", path, "--policy", f"{file}:SmallOnly"]) == 0
    assert capsys.readouterr().err == said
    assert run(["simulate", path, "--policy", f"{file}:SmallOnly,easy"]) == 0
    out, err = capsys.readouterr()
    assert err == said
    assert f": {jobs} jobs, " in out
    assert [line.split()[-1] for line in out.splitlines()[-3:]] == ["start", str(left), "-"]
    table = str(tmp_path / "rows.csv")
    assert run(["sweep", path, "--policy", f"easy,{file}:SmallOnly", "-o", table, "--workers", "1"]) == 0
    assert capsys.readouterr().err == said.replace(":SmallOnly", ":SmallOnly, run 1,")
    found = csv.DictReader(Path(table).read_text().splitlines())
    assert [(one["jobs"], one["never_started"]) for one in found] == [
        (str(jobs), "0"),
        (str(jobs - left), str(left)),
    ]
    assert run(["simulate", path, "--policy", f"{file}:Twice"]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"aucsched: policy {file}:Twice: at 0 s it starts job {first}, submitted at ")
    assert err.endswith("which does not wait: a job starts once\n")
    assert "Error" not in err
    assert run(["simulate", path, "--policy", f"{file}:Raises"]) == 1
    assert "its step at 0 s: KeyError: 'missing' (others.py, line 19)\n" in capsys.readouterr().err


def test_a_board_s_edge_is_of_policies_that_start_all_jobs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, days = tmp_path / "others.py", str(EXAMPLES / "days.swf")
    file.write_text(OTHERS)
    assert run(["board", days, "--policy", f"{file}:SmallOnly", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    rows = json.loads(out)["policies"]
    own = next(row for row in rows if row["policy"].endswith("SmallOnly"))
    assert own["bounded_slowdown_mean"] == min(row["bounded_slowdown_mean"] for row in rows)
    assert own["never_started"] > 0
    assert not own["on_edge"]
    assert any(row["on_edge"] and not row["never_started"] for row in rows)
    assert err.startswith(f"note: policy {file}:SmallOnly never starts {own['never_started']} jobs;")
    assert run(["board", days, "--policy", f"{file}:SmallOnly"]) == 0
    lines = [text for text in capsys.readouterr().out.splitlines() if text and "left out" not in text]
    assert f"{own['never_started']} never start" in lines[-1]
    assert run(["board", days, "--policy", f"{file}:Idle"]) == 2
    assert f"--policy {file}:Idle starts no job" in capsys.readouterr().err


def test_installed_packages_list_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint(name="mine", value=f"{__name__}:Fcfs", group=own_policy.GROUP)
    monkeypatch.setattr(own_policy, "listed", lambda: {"mine": entry})
    monkeypatch.setattr(EntryPoint, "load", lambda _: Fcfs)
    log = _log(2)
    assert aucsched.simulate(log, "mine").columns == aucsched.simulate(log, "fcfs").columns


def test_options_that_no_own_policy_reads_are_refused() -> None:
    with pytest.raises(OptionError, match="slack"):
        aucsched.simulate(_log(1), Fcfs, slack=0.5)
    with pytest.raises(OptionError, match=r"^window needs"):
        aucsched.simulate(_workload(1), Fcfs, window=5)
    with pytest.raises(OptionError, match="no such option"):
        aucsched.simulate(_workload(1), Fcfs, nonsense=5)  # type: ignore[call-arg]
