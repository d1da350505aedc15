"""The site's rules put on its jobs: what partitions allow, tiers, their QOS, limits of one job, memory."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import aucsched
from aucsched import InputError, Job, Snapshot
from aucsched.cluster.jobs import Span
from aucsched.cluster.limits import JobSet
from aucsched.formats.notes import Notes
from aucsched.slurm.answers.associations import read_limits
from aucsched.slurm.answers.partitions import read_partitions
from aucsched.slurm.answers.pending_jobs import read_priorities
from aucsched.slurm.answers.policy import read_config
from aucsched.slurm.answers.snapshot_of_answers import SlurmSources, SlurmText, import_slurm

USE = Path(__file__).parents[2] / "fixtures" / "slurm" / "use"
JOBS = json.loads((USE / "squeue.json").read_text())["jobs"]
TEMPLATE = next(job for job in JOBS if job["job_id"] == 99)
RUNNING = next(job for job in JOBS if job["job_id"] == 88)
META = {"meta": {"Slurm": {"release": "22.05.8"}}, "errors": []}

CONFIG = """Configuration data as of 2026-11-22T16:28:39
AccountingStorageEnforce = {enforce}
DefMemPerNode           = {memory}
PreemptMode             = {mode}
PreemptType             = {preempt}
SelectTypeParameters    = {select}
SLURM_VERSION           = 22.05.8
"""


def config(enforce: str = "limits,qos", memory: str = "UNLIMITED", select: str = "CR_CORE_MEMORY") -> str:
    return CONFIG.format(enforce=enforce, memory=memory, select=select, mode="OFF", preempt="preempt/none")


def partition(name: str, **fields: str) -> str:
    known = {"Nodes": "n[01-12]", "State": "UP", "PriorityTier": "1"} | fields
    return f"PartitionName={name}\n   " + " ".join(f"{key}={value}" for key, value in known.items()) + "\n"


def job(number: int, **members: Any) -> dict[str, Any]:
    own = {"job_id": number, "name": f"j{number}", "priority": 100 * number, "flags": []}
    return {**TEMPLATE, **own, "required_nodes": "", **members}


def idle_nodes(memory: int | None = None) -> bytes:
    """The fixture's nodes, idle and with two threads a core; with ``memory`` all have so much."""
    document = json.loads((USE / "sinfo.json").read_text())
    idle = {"state": "idle", "state_flags": [], "alloc_cpus": 0, "alloc_memory": 0, "gres_used": ""}
    idle |= {"sockets": 2, "cores": 2, "threads": 2}
    idle |= {} if memory is None else {"real_memory": memory}
    return json.dumps(document | {"nodes": [node | idle for node in document["nodes"]]}).encode()


def snapshot(
    *jobs: dict[str, Any], held: bool = False, memory: int | None = None, **answers: str
) -> Snapshot:
    """Import these jobs beside answers given as text, on nodes with nothing else on them."""
    queue = SlurmText(name="squeue", content=json.dumps(META | {"jobs": list(jobs)}).encode())
    nodes = SlurmText(name="sinfo", content=idle_nodes(memory))
    more = {name: SlurmText(name=name, content=text.encode()) for name, text in answers.items()}
    made, _ = import_slurm(SlurmSources(jobs=queue, nodes=nodes, **more), schedule_held=held)
    return made


def jobs_of(made: Snapshot) -> dict[str, Job]:
    return {one.id: one for one in made.jobs}


def started(made: Snapshot) -> set[str]:
    return {award.job for award in aucsched.schedule(made).started}


def test_a_partition_takes_the_accounts_and_qos_it_allows() -> None:
    parts = (
        partition("p", AllowAccounts="Physics,chem", AllowQos="ALL", PriorityTier="1")
        + partition("q", AllowAccounts="ALL", DenyAccounts="physics", DenyQos="slow")
        + partition("r", AllowQos="high,slow", AllowGroups="ALL")
    )
    limits = (
        "Cluster|Account|ParentName|GrpJobs\nc|root||\nc|physics|root|\nc|optics|physics|\n"
        "Name|GrpJobs\nhigh|\nslow|\nlow|\n"
    )
    rows = [
        (1, "physics", "low", "p", ("p", None)),
        (2, "bio", "low", "p", ("p", "AccountNotAllowed")),
        (3, "optics", "low", "p", ("p", None)),  # below physics
        (4, "physics", "low", "q", ("q", "AccountNotAllowed")),
        (5, "bio", "slow", "q", ("q", "QOSNotAllowed")),
        (6, "bio", "HIGH", "r", ("r", None)),
        (7, "bio", "low", "r", ("r", "QOSNotAllowed")),
        (8, "bio", "low", "p,q,r", ("q", None)),
        (9, "bio", "", "r", ("r", None)),  # no accounting: Slurm looks at no QOS
    ]
    made = snapshot(
        *(job(n, account=account, qos=qos, partition=part) for n, account, qos, part, _ in rows),
        partitions=parts,
        limits=limits,
    )
    found = jobs_of(made)
    assert {n: (found[str(n)].partition, found[str(n)].hold) for n, *_ in rows} == {
        n: expected for n, *_, expected in rows
    }
    assert "job 8: partitions that do not take it: p (AccountNotAllowed), r (QOSNotAllowed)" in made.notes
    assert made.unread == ()


def test_slurms_word_about_one_partition_holds_no_job_that_another_takes() -> None:
    parts = partition("p", AllowAccounts="physics") + partition("q")
    held = {"account": "bio", "state_reason": "AccountNotAllowed"}
    found = jobs_of(
        snapshot(
            job(1, partition="p,q", **held),
            job(2, partition="q", **held),
            partitions=parts,
            limits="Cluster|Account|ParentName\nc|bio|root\n",
        )
    )
    assert (found["1"].partition, found["1"].hold) == ("q", None)
    # The rules that are read let it start: what else Slurm knows, it knows better.
    assert found["2"].hold == "AccountNotAllowed"


@pytest.mark.parametrize(
    ("limits", "is_held"),
    [
        ({}, False),
        ({"limits": "Name|GrpJobs\nnormal|\n"}, False),
        ({"limits": "Current Association Manager state\n"}, True),  # no accounting
    ],
)
def test_accounts_are_refused_where_it_is_told_which_are_below_others(
    limits: dict[str, Any], is_held: bool
) -> None:
    made = snapshot(
        job(1, account="physa", partition="p"), partitions=partition("p", AllowAccounts="phys"), **limits
    )
    assert made.jobs[0].hold == ("AccountNotAllowed" if is_held else None)
    assert any(rule.startswith("which accounts are below others") for rule in made.unread) != is_held


def test_a_higher_tier_goes_first_whatever_the_priorities() -> None:
    parts = partition("p") + partition("q", PriorityTier="10") + partition("r", PriorityTier="3")
    rows = [(1, "p", 900), (2, "p", 800), (3, "q", 1), (4, "r", 5), (5, "p,q", 2), (6, "q", 0)]
    made = snapshot(*(job(n, partition=part, priority=value) for n, part, value in rows), partitions=parts)
    found = {n: jobs_of(made)[str(n)].priority for n, *_ in rows}
    order = sorted(found, key=lambda n: -found[n])
    assert order == [5, 3, 4, 1, 2, 6]
    # One job of a tier outweighs all below it together; differences within a tier stay.
    assert found[4] > found[1] + found[2]
    assert found[3] > found[4] + found[1] + found[2]
    assert found[5] - found[3] == 1
    assert found[6] == 0
    assert found[1] == 900


def test_one_tier_changes_no_priority() -> None:
    parts = partition("p", PriorityTier="7") + partition("q", PriorityTier="9")
    made = snapshot(job(1, partition="p"), job(2, partition="p"), partitions=parts)
    assert {one.id: one.priority for one in made.jobs} == {"1": 100, "2": 200}


def test_a_partitions_qos_counts_its_jobs_beside_their_own() -> None:
    parts = partition("p", QoS="small") + partition("q")
    limits = "Name|GrpTRES|GrpJobs\nsmall|cpu=13|\nnormal||\n"
    made = snapshot(
        RUNNING | {"partition": "p", "qos": "normal"},  # 4 cores: whole cores of two threads
        job(1, partition="p", qos="normal", cpus=4, tasks=4),
        job(2, partition="p", qos="normal", cpus=4, tasks=4),
        job(3, partition="q", qos="small", cpus=4, tasks=4),
        job(4, partition="q", qos="normal", cpus=4, tasks=4),
        partitions=parts,
        limits=limits,
        config=config(),
    )
    assert jobs_of(made)["1"].qos == "normal,small"
    assert made.running[0].qos == "normal,small"
    names = started(made)
    assert "4" in names
    assert len(names & {"1", "2", "3"}) == 2  # 4 + 4 + 4 of 13 cores
    assert made.unread == ()


#: A partition with limits of its own, on the nodes of one without, and on fewer.
_DEBUG = "Name|GrpTRES|MaxTRES\nsmall|cpu=8|cpu=8\nnormal||\n"


@pytest.mark.parametrize(
    ("listed", "cpus", "is_used", "expected"),
    [
        ("p,debug", 4, False, {"1", "2", "3"}),  # each starts in p, which is listed first
        ("debug,p", 4, False, {"1", "2", "3"}),  # the last one in p: debug has room for two
        ("debug,p", 8, True, {"1", "2", "3"}),  # debug has room for none
        ("urgent,p", 8, True, {"1", "2", "3"}),
        ("p,urgent", 4, False, {"1", "2", "3"}),  # the higher tier comes first
        ("part,debug", 8, True, {"1", "2", "3"}),
        ("debug,p", 12, False, {"1", "2", "3"}),  # more than one job may have in debug
        ("part,debug", 4, False, {"2", "3"}),  # debug has nodes that part lacks
        ("debug", 8, True, set()),
        ("debug", 12, False, set()),
    ],
)
def test_only_the_qos_of_the_partition_in_which_a_job_starts_counts_it(
    listed: str, cpus: int, is_used: bool, expected: set[str]
) -> None:
    """As tried on 22.05: Slurm tries one partition after another, by tier, then as they are listed."""
    parts = partition("p") + partition("debug", QoS="small", MaxTime="2-0")
    parts += partition("part", Nodes="n[01-05]") + partition("urgent", QoS="small", PriorityTier="2")
    rows = [job(n, partition=listed, qos="normal", cpus=cpus, tasks=cpus) for n in (1, 2, 3)]
    rows += [RUNNING | {"partition": "debug", "qos": "normal"}] * is_used  # 4 cores
    made = snapshot(*rows, partitions=parts, limits=_DEBUG, config=config())
    assert started(made) == expected


@pytest.mark.parametrize(
    ("limit", "hold"),
    [
        ("MaxTRES|cpu=7", "QOSMaxCpuPerJobLimit"),
        ("MaxTRES|cpu=8", None),
        ("MaxTRESMins|cpu=159", "QOSMaxCpuMinutesPerJobLimit"),
        ("MaxTRESMins|cpu=160", None),
        ("MinTRES|cpu=9", "QOSMinCpuNotSatisfied"),
    ],
)
def test_of_whole_nodes_all_cores_count(limit: str, hold: str | None) -> None:
    """As tried on 22.05: an exclusive job of one core waits, though it asks for less."""
    name, value = limit.split("|")
    whole = {"cpus": 1, "tasks": 1, "shared": "none", "time_limit": 20, "qos": "small"}
    made = snapshot(job(1, **whole), limits=f"Name|{name}\nsmall|{value}\n", config=config())
    assert (made.jobs[0].request.exclusive, made.jobs[0].hold) == (True, hold)


@pytest.mark.parametrize("kind", ["table", "manager"])
def test_a_job_asks_for_no_less_than_one_job_must(kind: str) -> None:
    """As tried on 22.05: an exclusive job counts with all cores, nodes as many as it can be spread over."""
    limits = "Name|MinTRES\nsmall|cpu=4,node=2,gres/gpu=1\n"
    if kind == "manager":
        limits = "Current Association Manager state\nQOS=small(1)\n    MinTRESPJ=cpu=4,node=2,gres/gpu=1\n"
    one = {"qos": "small", "cpus": 4, "tasks": 4, "tres_per_job": "gres:gpu:1", "max_nodes": 2}
    made = snapshot(
        job(1, **one),
        job(2, **one | {"cpus": 2, "tasks": 2}),
        job(3, **one | {"cpus": 2, "tasks": 2, "shared": "none"}),
        job(4, **one | {"tres_per_job": ""}),
        job(5, **one | {"max_nodes": 1}),
        limits=limits,
        config=config(),
    )
    found = jobs_of(made)
    assert {name: one.hold for name, one in found.items()} == {
        "1": None,
        "2": "QOSMinCpuNotSatisfied",
        "3": None,
        "4": "QOSMinGRES",
        "5": "QOSMinNode",
    }
    assert found["1"].request.nodes == Span(minimum=2, maximum=2)
    assert made.unread == ()


def test_a_partition_qos_that_is_not_given_is_unread() -> None:
    made = snapshot(job(1, partition="p"), partitions=partition("p", QoS="small"))
    assert made.unread == ("partition p: QoS=small is not looked at: its limits are not given",)


def test_limits_of_one_job() -> None:
    limits = "Name|MaxTRES|MaxWall\nsmall|cpu=8,node=2,gres/gpu=2|01:00:00\n"
    one = {"qos": "small", "time_limit": 60}
    made = snapshot(
        job(1, **one),
        job(2, **one | {"cpus": 9, "tasks": 9}),
        job(3, **one | {"time_limit": 61}),
        job(4, **one | {"time_limit": None}),
        job(5, **one | {"max_nodes": 3, "node_count": 3, "tres_req_str": "cpu=8,mem=1M,node=3"}),
        job(
            6, **one | {"tres_per_node": "gres:gpu:2", "tres_req_str": "cpu=8,mem=1M,node=2", "max_nodes": 2}
        ),
        job(7, **one | {"max_nodes": 4, "tres_req_str": "cpu=8,mem=1M,node=1"}),
        job(8, qos="large", cpus=9, tasks=9),
        limits=limits,
    )
    found = jobs_of(made)
    assert {name: one.hold for name, one in found.items()} == {
        "1": None,
        "2": "QOSMaxCpuPerJobLimit",
        "3": "QOSMaxWallDurationPerJobLimit",
        "4": "QOSMaxWallDurationPerJobLimit",
        "5": "QOSMaxNodePerJobLimit",
        "6": "QOSMaxGRESPerJob",
        "7": None,
        "8": None,
    }
    assert found["7"].request.nodes == Span(minimum=1, maximum=2)
    assert found["1"].request.nodes == Span(minimum=1, maximum=2)
    assert made.unread == ()


def test_a_job_without_a_limit_waits_where_the_partition_has_one() -> None:
    parts = partition("p", MaxTime="01:00:00") + partition("q", MaxTime="UNLIMITED")
    rows = [(1, "p", 60), (2, "p", None), (3, "q", None), (4, "p,q", None)]
    made = snapshot(*(job(n, partition=name, time_limit=limit) for n, name, limit in rows), partitions=parts)
    found = jobs_of(made)
    assert {name: one.hold for name, one in found.items() if one.hold} == {"2": "PartitionTimeLimit"}
    assert found["4"].partition == "q"
    assert started(made) == {"1", "3", "4"}
    told = job(1, partition="p,q", time_limit=None, state_reason="PartitionTimeLimit")
    assert started(snapshot(told, partitions=parts)) == {"1"}


def test_limits_that_slurm_does_not_enforce_are_not_looked_at() -> None:
    limits = "Name|GrpJobs|MaxWall\nsmall|1|00:01:00\n"
    rows = [job(1, qos="small"), job(2, qos="small")]
    assert len(started(snapshot(*rows, limits=limits, config=config(enforce="associations,qos")))) == 2
    assert started(snapshot(*rows, limits=limits, config=config(enforce="safe"))) == set()


def test_a_job_takes_no_more_minutes_than_one_job_may() -> None:
    """The limit itself is allowed, whatever the usage factor: as tried on 22.05."""
    manager = "Current Association Manager state\nQOS=q(1)\n    MaxTRESMinsPJ=cpu=32,node=N\n"
    table = "Cluster|Account|User|MaxTRESMins\nc|physics|ann|cpu=32\n"
    for limits, word in ((manager, "QOS"), (table, "Assoc")):
        mine = {"qos": "q", "account": "physics", "user_name": "ann"}
        rows = [job(number, time_limit=time, **mine) for number, time in ((1, 4), (2, 5), (3, None))]
        made = jobs_of(snapshot(*rows, limits=limits, config=config()))
        beyond = f"{word}MaxCpuMinutesPerJobLimit"
        assert [made[name].hold for name in "123"] == [None, beyond, beyond]


@pytest.mark.parametrize(
    ("enforce", "used", "expected"), [("limits", 4, 2), ("limits,safe", 4, 1), ("limits", 25, 0)]
)
def test_minutes_that_are_left_take_any_job_unless_limits_are_safe(
    enforce: str, used: int, expected: int
) -> None:
    """As tried on 22.05: Slurm then holds jobs only when the minutes are used up."""
    limits = f"Current Association Manager state\nQOS=q(1)\n    GrpTRESMins=cpu=25({used})\n"
    rows = [job(number, qos="q", time_limit=2) for number in (1, 2)]
    assert len(started(snapshot(*rows, limits=limits, config=config(enforce=enforce)))) == expected


def _sharing(**members: str) -> list[dict[str, Any]]:
    """Two running jobs on one node."""
    running = [RUNNING | {"job_id": number} | members for number in (3, 4)]
    for one in running:
        cores = {"0": {"cores": {str(one["job_id"] - 3): "allocated"}}}
        node = one["job_resources"]["allocated_nodes"][0] | {"sockets": cores}
        one["job_resources"] = one["job_resources"] | {"allocated_nodes": [node]}
    return running


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        # Two jobs on one node: of two nodes one is left.
        ("GrpTRES=node=2(1)", {"1"}),
        ("GrpTRES=node=1(1)", set()),
        # What runs counts half by its UsageFactor. Of 65 minutes 25 are left; the jobs take 20 and 40.
        ("GrpTRESRunMins=cpu=65(40)", {"1"}),
        ("GrpTRESRunMins=cpu=139(80)", {"1"}),
        ("GrpTRESRunMins=cpu=140(80)", {"1", "2"}),
        ("GrpTRESMins=cpu=70(5)\n GrpTRESRunMins=cpu=N(40)", {"1"}),
    ],
)
def test_what_runs_counts_as_slurm_counts_it(figures: str, expected: set[str]) -> None:
    """As tried on 22.05: nodes that jobs share count once; what waits counts without the UsageFactor."""
    running = _sharing(qos="q")
    rows = [job(n, qos="q", cpus=4, tasks=4, time_limit=5 * n, priority=9 - n) for n in (1, 2)]
    limits = f"Current Association Manager state\nQOS=q(1)\n    {figures}\n"
    made = snapshot(*running, *rows, limits=limits, config=config(enforce="safe"))
    assert started(made) == expected


@pytest.mark.parametrize(
    ("limit", "mine", "expected"),
    [
        ("MaxTRESPU|node=2", {}, {"1"}),
        ("MaxTRESPU|node=1", {}, set()),
        ("MaxTRESPA|node=2", {}, {"1"}),
        ("GrpTRES|node=2", {}, {"1"}),
        # Whose jobs share no node has no more than the limit; each account and user has its own.
        ("MaxTRESPU|node=1", {"user_name": "bob"}, {"1"}),
        ("MaxTRESPA|node=1", {"account": "optics"}, {"1"}),
        ("MaxTRESPA|node=1", {"user_name": "bob"}, set()),
    ],
)
@pytest.mark.parametrize("kind", ["table", "manager"])
def test_a_node_that_running_jobs_share_counts_once(
    kind: str, limit: str, mine: dict[str, str], expected: set[str]
) -> None:
    """As tried on 22.05: for a user, for an account and for all together."""
    name, value = limit.split("|")
    limits = f"Name|{name}\nq|{value}\n"
    if kind == "manager":
        limits = f"Current Association Manager state\nQOS=q(1)\n    {name}={value}\n"
    ann = {"qos": "q", "user_name": "ann", "account": "physics"}
    rows = [job(n, cpus=4, tasks=4, priority=9 - n, **ann | mine) for n in (1, 2)]
    made = snapshot(*_sharing(**ann), *rows, limits=limits, config=config(enforce="safe"))
    assert started(made) == expected


@pytest.mark.parametrize(
    ("qos", "association", "waiting", "expected"),
    [
        # What the job's QOS says of cores holds, its account's says nothing of its jobs but counts them.
        ("GrpTRES|cpu=8", "GrpTRES|cpu=2", ["high", "normal"], {"1"}),
        ("GrpTRES|cpu=8", "GrpTRES|cpu=8", ["normal", "high"], {"1", "2"}),
        ("GrpTRES|cpu=8", "GrpTRES|cpu=8", ["normal", "normal", "high"], {"1", "2", "3"}),
        ("GrpTRES|node=8", "GrpTRES|cpu=2", ["high", "normal"], set()),
        ("MaxTRES|cpu=8", "MaxTRES|cpu=2", ["high", "normal"], {"1"}),
        ("MaxTRESMins|cpu=800", "MaxTRESMins|cpu=2", ["high", "normal"], {"1"}),
        ("MaxWall|02:00:00", "MaxWall|00:01:00", ["high", "normal"], {"1"}),
        ("GrpJobs|5", "GrpJobs|0", ["high", "normal"], {"1"}),
        # Either way of counting jobs of each stands for MaxJobs.
        ("MaxJobsPA|5", "MaxJobs|0", ["high", "normal"], {"1"}),
        ("MaxJobsPU|5", "MaxJobs|0", ["high", "normal"], {"1"}),
        ("GrpJobs|5", "MaxJobs|0", ["high", "normal"], set()),
    ],
)
def test_a_qos_that_sets_a_limit_stands_for_that_of_the_association(
    qos: str, association: str, waiting: list[str], expected: set[str]
) -> None:
    """As tried on 22.05."""
    (name, value), (own, most) = qos.split("|"), association.split("|")
    limits = f"Name|{name}\nhigh|{value}\nnormal|\nCluster|Account|User|{own}\nc|physics|ann|{most}\n"
    ann = {"account": "physics", "user_name": "ann", "cpus": 4, "tasks": 4, "time_limit": 10}
    rows = [job(n, qos=one, priority=9 - n, **ann) for n, one in enumerate(waiting, 1)]
    assert started(snapshot(*rows, limits=limits, config=config())) == expected


def test_only_the_limits_of_its_user_are_looked_at_for_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """A site has an association for each user, with the limits that its account gives by default."""
    holds, calls = JobSet.holds, Counter[str]()

    def counted(self: JobSet, one: Any) -> bool:
        calls[one.user] += 1
        return holds(self, one)

    monkeypatch.setattr(JobSet, "holds", counted)
    users = "".join(f"c|physics|u{number}|3|cpu=8\n" for number in range(300))
    limits = f"Cluster|Account|User|MaxJobs|MaxTRES\n{users}"
    mine = {"account": "physics", "partition": "p,q", "state_reason": "AssocMaxJobsLimit"}
    rows = [job(n, user_name=f"u{n}", cpus=8 + n % 2, **mine) for n in range(1, 4)]
    made = snapshot(*rows, partitions=partition("p") + partition("q"), limits=limits, config=config())
    held = {"1": "AssocMaxJobsLimit", "2": None, "3": "AssocMaxJobsLimit"}
    assert {name: one.hold for name, one in jobs_of(made).items()} == held
    assert max(calls.values()) < 20


@pytest.mark.parametrize(
    ("flags", "listed", "expected"),
    [
        ("", "q", {"1"}),  # the partition's QOS has room for 8 cores
        ("", "p", set()),  # the job's own for 1
        ("OverPartQOS", "q", set()),
    ],
)
@pytest.mark.parametrize("key", ["MaxTRESPU", "MaxTRESPA", "GrpTRES", "MaxTRES"])
def test_a_partitions_qos_stands_for_that_of_a_job(
    key: str, flags: str, listed: str, expected: set[str]
) -> None:
    """As tried on 22.05: limit by limit; with OverPartQOS the job's comes first."""
    parts = partition("p") + partition("q", QoS="wide")
    limits = f"Name|{key}|Flags\nlow|cpu=1|{flags}\nwide|cpu=8|\n"
    row = job(1, qos="low", partition=listed, cpus=4, tasks=4)
    assert started(snapshot(row, partitions=parts, limits=limits, config=config())) == expected


@pytest.mark.parametrize(("flags", "expected"), [("", set()), ("DenyOnLimit,OverPartQOS", {"1"})])
@pytest.mark.parametrize("key", ["MaxTRESPU", "GrpTRES"])
def test_a_jobs_qos_over_its_partitions_stands_for_that_of_the_partition(
    key: str, flags: str, expected: set[str]
) -> None:
    parts = partition("q", QoS="low")
    limits = f"Name|{key}|Flags\nlow|cpu=1|\nwide|cpu=8|{flags}\n"
    row = job(1, qos="wide", partition="q", cpus=4, tasks=4)
    assert started(snapshot(row, partitions=parts, limits=limits, config=config())) == expected


def test_jobs_that_a_limit_does_not_hold_back_use_it_up() -> None:
    """Jobs that run in a QOS with a limit of its own count against their account's, as tried on 22.05."""
    limits = "Name|GrpTRES\nhigh|cpu=64\nnormal|\nCluster|Account|User|GrpTRES\nc|physics||cpu=11\n"
    mine = {"account": "physics", "user_name": "ann", "cpus": 4, "tasks": 4}
    rows = [RUNNING | {"qos": "high", "account": "physics"}]  # 4 cores
    rows += [job(n, qos=qos, priority=9 - n, **mine) for n, qos in enumerate(["normal", "normal", "high"], 1)]
    made = snapshot(*rows, limits=limits, config=config())
    assert started(made) == {"1", "3"}
    # What the running job holds of the limit comes back when it ends.
    small = snapshot(*rows[:2], limits=limits.replace("cpu=11", "cpu=4"), config=config())
    assert not started(small)
    assert [one.job for one in aucsched.plan(small).planned] == ["1"]


def test_a_job_of_several_partitions_keeps_a_limit_that_one_of_them_leaves_to_it() -> None:
    """It may start in the partition whose QOS sets no other limit."""
    parts = partition("cpu", Nodes="n[01-10]") + partition("gpu", Nodes="n[11-12]", QoS="gpuq")
    limits = "Name|GrpTRES\nnormal|\ngpuq|cpu=64\nCluster|Account|User|GrpTRES\nc|physics||cpu=4\n"
    mine = {"account": "physics", "user_name": "ann", "cpus": 4, "tasks": 4}
    rows = [job(n, qos="normal", partition="cpu,gpu", priority=9 - n, **mine) for n in range(1, 4)]
    assert started(snapshot(*rows, partitions=parts, limits=limits, config=config())) == {"1"}


def test_a_job_without_a_user_leaves_others_their_limit() -> None:
    """Two of ann's jobs share a node: she may use another, whoever else waits."""
    ann = {"user_name": "ann", "qos": "q"}
    rows = [job(1, cpus=4, tasks=4, priority=9, **ann), job(2, user_name="", qos="q")]
    made = snapshot(*_sharing(**ann), *rows, limits="Name|MaxTRESPU\nq|node=2\n", config=config("safe"))
    assert "1" in started(made)


NOTHING = {"memory_per_node": None, "memory_per_cpu": None}


@pytest.mark.parametrize(
    ("memory", "rules", "conf", "flags", "expected"),
    [
        # What Slurm gives where nothing says how much: all of each node.
        (16000, {}, config(), [], (16000, None, False)),
        (None, {}, config(), [], (None, None, True)),  # n09 and n10 have more than the others
        (None, {}, config(memory="700"), [], (700, None, False)),
        (None, {"DefMemPerNode": "300"}, config(memory="700"), [], (300, None, False)),
        (None, {"DefMemPerCPU": "50"}, config(), [], (None, 50, False)),
        (16000, {"DefMemPerNode": "300"}, config(), ["JOB_MEM_SET"], (16000, None, False)),  # --mem=0
        (16000, {"DefMemPerNode": "UNLIMITED"}, config(select="CR_CORE"), [], (None, None, False)),
    ],
)
def test_a_job_without_a_memory_request(
    memory: int | None,
    rules: dict[str, str],
    conf: str,
    flags: list[str],
    expected: tuple[int | None, int | None, bool],
) -> None:
    queued = job(1, flags=flags, **NOTHING)
    made = snapshot(queued, memory=memory, partitions=partition("p", **rules), config=conf)
    request = jobs_of(made)["1"].request
    assert (request.memory_mib_per_node, request.memory_mib_per_core, request.exclusive) == expected
    assert made.unread == ()


def test_without_the_configuration_memory_is_unread() -> None:
    made = snapshot(RUNNING, job(1, **NOTHING))
    assert jobs_of(made)["1"].request.memory_mib_per_node is None
    assert any("--conf tells" in text for text in made.unread)


def test_what_is_not_read_is_listed_field_by_field() -> None:
    notes = Notes()
    text = partition(
        "p", AllowGroups="wheel", PreemptMode="REQUEUE", MaxCPUsPerNode="4", LLN="YES", MinNodes="2",
        JobDefaults="DefCpuPerGPU=2", SelectTypeParameters="CR_SOCKET",
    )  # fmt: skip
    read_partitions(text.encode(), {"n01"}, notes)
    fields = ["MinNodes=2", "MaxCPUsPerNode=4", "LLN=YES", "AllowGroups=wheel", "PreemptMode=REQUEUE"]
    fields += ["SelectTypeParameters=CR_SOCKET", "JobDefaults=DefCpuPerGPU=2"]
    assert list(notes.policies) == [f"partition p: {name} is not looked at" for name in fields]
    read_config(
        CONFIG.format(enforce="none", memory="1", select="", mode="SUSPEND,GANG", preempt="preempt/qos"),
        notes,
    )
    assert (
        list(notes.policies)[-1]
        == "PreemptType=preempt/qos with PreemptMode=SUSPEND,GANG: no job is preempted"
    )
    more = (
        "SelectType = select/linear\nMCSPlugin = mcs/user\nMaxMemPerNode = 9\nJobDefaults = DefMemPerGPU=5\n"
    )
    read_config(config(select="CR_SOCKET_MEMORY,CR_ONE_TASK_PER_CORE") + more, notes)
    assert [text.removesuffix(" is not looked at") for text in list(notes.policies)[-6:]] == [
        "SelectType=select/linear",
        "SelectTypeParameters=CR_SOCKET_MEMORY",
        "SelectTypeParameters=CR_ONE_TASK_PER_CORE",
        "MCSPlugin=mcs/user",
        "MaxMemPerNode=9",
        "JobDefaults=DefMemPerGPU=5",
    ]
    read_limits("Name|Flags|LimitFactor\nbig|DenyOnLimit,OverPartQOS,UsageFactorSafe|2.0\nsmall||\n", notes)
    factors = ["Flags=UsageFactorSafe", "LimitFactor"]
    assert list(notes.policies)[-2:] == [f"qos big: {name} is not read" for name in factors]
    with pytest.raises(InputError, match="line 1: not what scontrol show config prints"):
        read_config("SlurmctldPort=6817\n", notes)


def test_partitions_rules_in_every_shape() -> None:
    flat = {
        "name": "p", "nodes": "n01", "state": "UP", "maximum_nodes_per_job": -1, "max_time_limit": -1,
        "allowed_accounts": "a,B", "denied_accounts": "", "allowed_qos": "", "denied_qos": "x", "qos": "own",
        "default_memory_per_cpu": 50, "default_memory_per_node": None, "priority_tier": 4,
        "preemption_mode": ["disabled"], "allowed_groups": "",
    }  # fmt: skip
    none = {"set": False, "infinite": True, "number": 0}
    grouped = {
        "name": "p", "nodes": {"configured": "n01"}, "partition": {"state": ["UP"]},
        "maximums": {"nodes": none, "time": none, "shares": 1}, "minimums": {"nodes": 0},
        "accounts": {"allowed": "a,B", "deny": ""}, "qos": {"allowed": "", "deny": "x", "assigned": "own"},
        "groups": {"allowed": ""}, "priority": {"tier": 4, "job_factor": 1}, "select_type": [],
        "defaults": {
            "memory_per_cpu": -9223372036854775296, "job": "",
            "partition_memory_per_cpu": {"set": True, "infinite": False, "number": 50},
            "partition_memory_per_node": {"set": False, "infinite": False, "number": 0},
        },
    }  # fmt: skip
    text = partition(
        "p", Nodes="n01", AllowAccounts="a,B", DenyQos="x", QoS="own", DefMemPerCPU="50", PriorityTier="4",
        AllowGroups="ALL", PreemptMode="OFF", JobDefaults="(null)", SelectTypeParameters="NONE",
    ).encode()  # fmt: skip
    shapes = [json.dumps(META | {"partitions": [one]}).encode() for one in (flat, grouped)]
    notes = Notes()
    first, *others = (read_partitions(content, {"n01"}, notes)[0] for content in (text, *shapes))
    rules = [
        (one.accounts, one.qos, one.denied_accounts, one.denied_qos, one.own_qos, one.memory)
        for one in (first, *others)
    ]
    assert rules == rules[:1] * 3
    assert first.accounts == frozenset({"a", "b"})
    assert first.memory.per_cpu == 50
    assert {one.tier for one in (first, *others)} == {4}
    assert not notes.policies


GROUPED: dict[str, Any] = {
    "name": "p", "nodes": {"configured": "n01"}, "partition": {"state": ["UP"]},
    "maximums": {"nodes": "Infinity", "time": 60}, "accounts": {"allowed": "NONE"},
}  # fmt: skip


def grouped(**members: Any) -> bytes:
    return json.dumps(META | {"partitions": [GROUPED | members]}).encode()


def test_the_complex_form_of_partitions() -> None:
    """DataParserParameters or ``+complex`` write "Infinity" for no limit."""
    (found,) = read_partitions(grouped(), {"n01"}, Notes())
    assert (found.partition.max_nodes, found.partition.max_time_limit_s) == (None, 3600)
    # In JSON a word for nothing is a name: whom it allows is no account of ours.
    assert found.accounts == frozenset({"none"})


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"accounts": {"allowed": 2**32 - 1}}, "accounts.allowed: 4294967295 is not a text"),
        ({"nodes": {"configured": {"set": False, "infinite": False, "number": 0}}}, "nodes.configured: {"),
        ({"name": 5}, "name: 5 is not a text"),
        ({"name": None}, "name: null is not a name"),
        ({"maximums": {"nodes": ["A"], "time": 60}}, r'maximums.nodes: \["A"\] is not a number'),
    ],
)
def test_a_member_of_json_of_another_type_is_named_with_its_value(members: Any, said: str) -> None:
    with pytest.raises(InputError, match=rf"^partitions\[0\].{said}"):
        read_partitions(grouped(**members), {"n01"}, Notes())


SPRIO = """\
          JOBID PARTITION     USER ACCOUNT   PRIORITY       SITE        AGE
              1 plain         root                937          0          0
              2 cpu           root     bio       9370          0          0
              2 node          root     bio        500          0          0
             10 node          root                781          0          0
          12_[1-3] node       root                  5          0          0
"""


def test_saved_priorities() -> None:
    notes = Notes()
    assert read_priorities(SPRIO.encode(), notes) == {"1": 937, "2": 9370, "10": 781, "12": 5}
    assert notes.texts() == ("jobs with a priority in each partition take their highest: 1",)
    plain = {"1": Fraction(3, 2), "7_2": 4}
    assert read_priorities(b"JOBID PRIORITY\n1 1.5\n7_2 4\n", Notes()) == plain
    assert read_priorities(b"1 1.5\n7_2 4\n", Notes()) == plain
    wrapped = {"set": True, "infinite": False, "number": 6}
    document = META | {
        "jobs": [{"job_id": 3, "priority": wrapped}, {"job_id": 4, "priority": {"priority": 7}}]
    }
    assert read_priorities(json.dumps(document).encode(), Notes()) == {"3": 6, "4": 7}
    assert read_priorities(b"", Notes()) == {}
    # Parts of a heterogeneous job, as squeue -o '%i %Q' prints them.
    assert read_priorities(b"JOBID PRIORITY\n10+0 5\n10+2 6\n", Notes()) == {"10": 5, "12": 6}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("JOBID USER\n1 root\n", "line 1: 'JOBID USER' is not a heading with JOBID and PRIORITY"),
        ("JOBID PRIORITY\n1\n", "line 2: '1' has no job id and priority"),
        ("1 many\n", "line 1: 'many' is not a priority"),
        ("1x 5\n", "line 1: '1x' is not a job id of Slurm"),
        ("1 -5\n", "line 1: '-5' is not a priority"),
    ],
)
def test_what_is_no_table_of_priorities(text: str, message: str) -> None:
    with pytest.raises(InputError, match="^" + message):
        read_priorities(text.encode(), Notes())


def test_saved_priorities_take_the_queues_place_and_give_held_jobs_theirs() -> None:
    held = {"state_reason": "JobHeldUser", "priority": 0}
    rows = [job(1), job(2), job(3, **held), job(4, submit_time=5, **held), job(5, submit_time=4, **held)]
    rows.append(job(6, array_job_id=6, array_task_string="1-2"))
    saved = "JOBID PRIORITY\n1 7\n3 50\n6 9\n99 1\n"
    skipped = snapshot(*rows, priorities=saved)
    found = jobs_of(skipped)
    assert {name: one.priority for name, one in found.items()} == {
        "1": 7, "2": 200, "3": 0, "4": 0, "5": 0, "6_1": 9, "6_2": 9,
    }  # fmt: skip
    assert "jobs without a saved priority keep the queue's: 1" in skipped.notes
    scheduled = jobs_of(snapshot(*rows, held=True, priorities=saved))
    assert (scheduled["3"].priority, scheduled["3"].hold) == (50, None)
    # Those that no file knows: behind all others, in order of submission.
    assert 7 > scheduled["5"].priority > scheduled["4"].priority > 0
    assert scheduled["4"].hold is None


def test_what_was_held_when_priorities_were_saved_stays_held() -> None:
    """The administrator's own hold came after squeue had printed 0 for the jobs of users' holds."""
    by_user, by_admin = ({"state_reason": f"JobHeld{who}", "priority": 0} for who in ("User", "Admin"))
    array = {"array_job_id": 4, "array_task_string": "1-2"}
    rows = [job(1, **by_user), job(2, **by_admin), job(3, **by_admin), job(4, **by_user, **array)]
    made = snapshot(*rows, held=True, priorities="1 0\n2 0\n3 50\n4_[1-2] 0\n")
    found = {name: (one.hold, one.priority) for name, one in jobs_of(made).items()}
    users = ("JobHeldUser", 0)
    assert found == {"1": users, "2": ("JobHeldAdmin", 0), "3": (None, 50), "4_1": users, "4_2": users}
    assert started(made) == {"3"}
    assert "held by hand, so not started: 4 (their saved priority is 0)" in made.notes


@pytest.mark.parametrize(("most", "hold"), [("cpu=13", None), ("node=3", "QOSGrpCpuLimit")])
def test_a_limit_of_the_partition_s_own_qos_lifts_what_slurm_holds_for_it(
    most: str, hold: str | None
) -> None:
    made = snapshot(
        job(1, partition="p", qos="normal", cpus=4, tasks=4, state_reason="QOSGrpCpuLimit"),
        partitions=partition("p", QoS="small") + partition("q"),
        limits=f"Name|GrpTRES|GrpJobs\nsmall|{most}|\nnormal||\n",
        config=config(),
    )
    assert [(one.qos, one.hold) for one in made.jobs] == [("normal,small", hold)]


def test_a_job_outside_the_gate_that_waits_for_licences_lacks_them() -> None:
    licences = "LicenseName=matlab\n    Total=4 Used=3 Free=1 Reserved=0 Remote=no\n"
    rows = [(1, "matlab:2"), (2, "matlab:1"), (3, "ansys:1"), (4, "matlab:1,auction:1")]
    licences += "LicenseName=auction\n    Total=9 Used=0 Free=9 Reserved=9 Remote=no\n"
    made = snapshot(*(job(n, licenses=text, state_reason="Licenses") for n, text in rows), licenses=licences)
    # Where the licences are free, Slurm knows better why a job waits.
    assert {one.id: one.hold for one in made.jobs if one.hold} == dict.fromkeys("234", "Licenses")
    (found,) = (one for one in aucsched.schedule(made).pending if one.job == "1")
    assert (found.reason, found.detail) == ("no_fit", "it asks for 2 matlab licences, 1 free")
