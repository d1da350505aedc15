"""Limits of QOS and associations, from scontrol's association manager and from sacctmgr's tables."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from aucsched import InputError, Job, Request
from aucsched.cluster.limits import JobSet, Limit
from aucsched.formats.notes import Notes
from aucsched.slurm.answers.associations import OneJob, is_limit_of, read_limits
from aucsched.slurm.answers.partitions import read_partitions
from aucsched.slurm.answers.snapshot_of_answers import SlurmSources, SlurmText, import_slurm

FIXTURES = Path(__file__).parents[2] / "fixtures" / "slurm" / "use"

MANAGER = """Current Association Manager state

Association Records

ClusterName=c Account=root UserName= Partition= Priority=0 ID=1
    SharesRaw/Norm/Level/Factor=1/0.00/1/0.00
    ParentAccount= Lft=1 DefAssoc=No
    GrpJobs=N(0) GrpJobsAccrue=N(0)
    GrpSubmitJobs=N(0) GrpWall=N(0.00)
    GrpTRES=cpu=N(0),mem=N(0),node=N(0)
ClusterName=c Account=physics UserName= Partition= Priority=0 ID=2
    ParentAccount=root(1) Lft=2 DefAssoc=No
    GrpJobs=7(1) GrpJobsAccrue=N(0)
    GrpSubmitJobs=100(0) GrpWall=N(0.00)
    GrpTRES=cpu=64(4),mem=1000(0),gres/gpu=8(1)
    GrpTRESMins=cpu=100(40),mem=N(0)
    GrpTRESRunMins=cpu=50(2)
    MaxJobs=3(0) MaxJobsAccrue= MaxSubmitJobs= MaxWallPJ=
    MaxTRESPJ=cpu=16
ClusterName=c Account=optics UserName= Partition= Priority=0 ID=3
    ParentAccount=physics(2) Lft=3 DefAssoc=No
ClusterName=c Account=optics UserName=ann(1001) Partition=batch Priority=0 ID=4
    ParentAccount= Lft=4 DefAssoc=Yes
    GrpTRES=node=2(0)
    MaxJobs=1(0)
    MaxTRESPJ=cpu=16
ClusterName=c Account=optics UserName=ann(1001) Partition= Priority=0 ID=5
    ParentAccount= Lft=5 DefAssoc=No
    MaxJobs=9(0)
    MaxTRESPJ=cpu=32
ClusterName=c Account=physics UserName=bob(1002) Partition= Priority=0 ID=6
    ParentAccount= Lft=6 DefAssoc=Yes
    MaxJobs=3(0)

QOS Records

QOS=normal(1)
    UsageRaw=0.000000
    GrpJobs=40(2) GrpJobsAccrue=N(0) GrpSubmitJobs=N(0) GrpWall=N(0.00)
    GrpTRES=cpu=512(128),mem=N(0),node=N(3),gres/gpu:a100=16(0)
    GrpTRESRunMins=cpu=N(34359760595000),mem=N(18446744073709551615)
    MaxTRESPU=cpu=32
    Account Limits
      physics
        MaxJobsPA=9(0) MaxJobsAccruePA=N(0) MaxSubmitJobsPA=N(0)
        MaxTRESPA=cpu=N(0),gres/gpu=8(0)
    User Limits
      ann(1001)
        MaxJobsPU=5(1) MaxJobsAccruePU=N(0) MaxSubmitJobsPU=N(0)
        MaxTRESPU=cpu=32(4)
"""

QOS = (
    "Name|Priority|GrpTRES|GrpTRESMins|GrpJobs|GrpSubmit|MaxTRES|MaxTRESPU|MaxJobsPU|MaxSubmitPU"
    "|Preempt|MaxWall"
)


def test_the_association_manager() -> None:
    notes = Notes()
    found = read_limits(MANAGER, notes, partitions={"batch": "", "debug": ""})
    limits = {limit.name: limit for limit in found.limits}
    assert found.parents == {"physics": "root", "optics": "physics"}
    assert found.qos == {"normal"}
    # What an account says of a job or a user, each user's association says for itself: 16, 32, nothing.
    batch, debug = (JobSet(account=("optics",), user=("ann",), partition=(p,)) for p in ("batch", "debug"))
    assert found.each == (
        OneJob(name="account optics user ann partition batch", jobs=batch, most={"cores": 16}),
        OneJob(name="account optics user ann", jobs=debug, most={"cores": 32}),
    )
    physics = JobSet(account=("physics", "optics"))
    most = {"gres/gpu": 8, "core_seconds": 3600}
    assert limits["account physics"] == Limit(name="account physics", jobs=physics, most=most)
    # Of its jobs in a QOS that says how many cores or jobs, the QOS says so alone.
    others = limits["account physics except qos normal"]
    assert others.jobs == replace(physics, except_qos=("normal",))
    assert others.most == {"cores": 64, "jobs": 7}
    bob = limits["account physics user bob except qos normal"]
    assert (bob.jobs.account, bob.jobs.user, bob.most, bob.per) == (("physics",), ("bob",), {"jobs": 3}, None)
    assert limits["account physics GrpTRESRunMins"].most == {"core_seconds": 3000}
    ann = limits["account optics user ann partition batch"]
    assert (ann.jobs, ann.most, ann.per) == (batch, {"nodes": 2}, None)
    assert limits[f"{ann.name} except qos normal"].most == {"jobs": 1}
    other = limits["account optics user ann except qos normal"]
    assert (other.jobs, other.most) == (replace(debug, except_qos=("normal",)), {"jobs": 9})
    assert limits["qos normal"].most == {"cores": 512, "gres/gpu:a100": 16, "jobs": 40}
    users = limits["qos normal each user"]
    assert (users.jobs, users.most, users.per) == (JobSet(qos=("normal",)), {"cores": 32, "jobs": 5}, "user")
    accounts = limits["qos normal each account"]
    assert (accounts.most, accounts.per) == ({"gres/gpu": 8, "jobs": 9}, "account")
    assert len(limits) == 10
    assert set(notes.texts()) == {
        "account physics: GrpTRES of mem is not read",
    }
    assert set(notes.policies) == set(notes.texts())


def test_counts_of_gres_may_have_a_unit() -> None:
    notes = Notes()
    told = (
        "QOS=normal(1)\n    GrpTRES=gres/shard=2K(512),gres/ssd=1.50M,gres/gpu=3,mem=1.5T\n    MaxTRESPJ=\n"
    )
    (limit,) = read_limits(f"Association Manager\n{told}", notes).limits
    assert limit.most == {"gres/shard": 2048, "gres/ssd": 3 * 2**19, "gres/gpu": 3}
    table = f"{QOS}\nnormal|0|gres/shard=1K|||||||||\n"
    with pytest.raises(InputError, match="line 2 GrpTRES: '2X' is not a number as Slurm writes it"):
        read_limits(table.replace("1K", "2X"), notes)


TREE = "which accounts are below others is not told: associations with ParentName tell"


def test_without_the_parents_of_accounts_none_is_refused() -> None:
    """Sacctmgr prints no parents by default: the account may be below one that is allowed."""
    line = b"PartitionName=p Nodes=n1 State=UP AllowAccounts=phys"
    (partition,) = read_partitions(line, ["n1"], Notes())
    job = Job(id="1", priority=1, request=Request(cores=1), account="physa")
    for column, row, word in (
        ("", "c|physa|", None),
        ("|ParentName", "c|physa||phys", None),
        ("|ParentName", "c|physa||root", "AccountNotAllowed"),
    ):
        notes = Notes()
        parents = read_limits(f"Cluster|Account|User{column}\n{row}\n", notes).parents
        assert partition.refusal(job, parents) == word
        assert notes.texts() == (() if column else (TREE,))


def test_tables_of_sacctmgr_one_after_another() -> None:
    notes = Notes()
    text = f"""{QOS}
normal|10|cpu=512,mem=4T|cpu=100|40|7|cpu=8|gres/gpu=2|3|9||1-12:00:00
high|20|||||||||normal|
Cluster|Account|User|Partition|GrpJobs|GrpTRES|MaxJobs|MaxWall
c|physics|||5|node=4||
c|physics|ann|||cpu=8|2|01:30:00
"""
    found = read_limits(text, notes)
    limits = {limit.name: limit for limit in found.limits}
    ann = JobSet(account=("physics",), user=("ann",), except_qos=("normal",))
    assert found.each == (
        OneJob(name="qos normal", jobs=JobSet(qos=("normal",)), most={"cores": 8}, time_s=36 * 3600),
        OneJob(name="account physics user ann", jobs=ann, time_s=5400),
    )
    assert limits["qos normal"].most == {"cores": 512, "jobs": 40}
    assert limits["qos normal each user"].most == {"gres/gpu": 2, "jobs": 3}
    assert limits["account physics"].most == {"nodes": 4}
    assert limits["account physics except qos normal"].most == {"jobs": 5}
    assert limits["account physics user ann except qos normal"].most == {"cores": 8, "jobs": 2}
    assert len(limits) == 5
    assert set(notes.texts()) == {
        "qos normal: GrpTRES of mem is not read",
        "qos normal: GrpTRESMins is not read: only scontrol show assoc_mgr tells the usage",
        "qos high: Preempt is not read",
        TREE,
    }
    assert TREE in notes.policies
    assert found.parents is None


def test_a_limit_above_all_counts_holds_back_jobs_without_a_time_limit_and_comes_before_others() -> None:
    """As sites write for none: one number must not refuse the cluster."""
    notes = Notes()
    (each,) = read_limits("Name|MaxTRESMins\nnormal|cpu=20000000000\n", notes).each
    job = Job(id="1", priority=1, request=Request(cores=4), qos="normal")
    assert each.refusal(job, 1) == "QOSMaxCpuMinutesPerJobLimit"
    assert each.refusal(replace(job, time_limit_s=10**9), 1) is None
    text = MANAGER.replace("GrpTRESRunMins=cpu=N(34359760595000)", "GrpTRESRunMins=cpu=20000000000(5)")
    found = {limit.name: limit.most for limit in read_limits(text, notes).limits}
    assert found["qos normal GrpTRESRunMins"] == {"core_seconds": 10**12}
    assert found["account physics GrpTRESRunMins except qos normal"] == {"core_seconds": 3000}
    said = "qos normal: MaxTRESMins=cpu=20000000000 is beyond all that is counted"
    assert f"{said}: taken as 1000000000000 core_seconds" in notes.texts()


CLUSTERS = """Cluster|Account|User|MaxJobs|MaxTRES
east|physics|ann|3|
east|physics|bob||cpu=2
west|physics|ann|1|cpu=1
"""


def test_of_several_clusters_only_the_associations_of_this_one_count() -> None:
    """As sacctmgr -P show assoc prints where a slurmdbd serves two clusters; its names are lower case."""
    found = read_limits(CLUSTERS, Notes(), cluster="East")
    assert [limit.most for limit in found.limits] == [{"jobs": 3}]
    assert [(one.name, one.most) for one in found.each] == [("account physics user bob", {"cores": 2})]
    west = read_limits(CLUSTERS, Notes(), cluster="west")
    assert [limit.most for limit in west.limits] == [{"jobs": 1}]


@pytest.mark.parametrize(
    ("cluster", "what"),
    [
        ("", "the name of this cluster is not known (--conf tells)"),
        ("north", "this cluster is north"),
    ],
)
def test_associations_of_another_cluster_are_refused(cluster: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        read_limits(CLUSTERS, Notes(), cluster=cluster)
    assert str(caught.value) == f"Cluster: the associations are of east, west; {what}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "line 1: neither"),
        (f"{QOS}\nnormal|1", "line 2: 2 fields, the heading has 12"),
        ("Name|GrpJobs\nnormal|many", "line 2 GrpJobs: 'many' is not a number"),
        ("Name|GrpTRES\nnormal|cpu=x", "line 2 GrpTRES: 'x' is not a number"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_limits(text, Notes())
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("reason", "job", "is_said"),
    [
        ("QOSGrpCpuLimit", {"qos": "normal"}, True),
        ("QOSMaxCpuPerUserLimit", {"qos": "normal"}, True),
        # Slurm's words for limits of an account in a QOS do not name the QOS.
        ("MaxJobsPerAccount", {"qos": "normal"}, True),
        ("MaxGRESPerAccount", {"qos": "normal"}, True),
        ("MaxCpuPerAccount", {"qos": "normal"}, False),
        ("MaxJobsPerAccount", {"qos": "other", "account": "physics"}, False),
        ("QOSGrpNodeLimit", {"qos": "normal"}, False),
        ("QOSGrpCpuLimit", {"qos": "other"}, False),
        ("QOSGrpCpuLimit", {"qos": "other", "account": "physics"}, False),
        ("AssocGrpCpuLimit", {"account": "optics"}, True),
        ("AssocMaxJobsLimit", {"account": "physics", "user": "bob"}, True),
        ("AssocGrpCPURunMinutesLimit", {"account": "physics"}, True),
        ("AssocGrpCpuLimit", {"account": "biology", "qos": "normal"}, False),
        ("AssocGrpMemLimit", {"account": "physics"}, False),
        ("Priority", {"account": "physics", "qos": "normal"}, False),
    ],
)
def test_a_limit_lifts_what_slurm_holds_for_it_only(reason: str, job: dict[str, str], is_said: bool) -> None:
    """A limit that the file does not have, or that counts other jobs, says nothing of this one."""
    limits = read_limits(MANAGER, Notes()).limits
    asks = Job(
        id="1",
        priority=1,
        request=Request(cores=1),
        qos=job.get("qos", ""),
        account=job.get("account", ""),
        user=job.get("user", ""),
    )
    assert any(is_limit_of(limit, reason, asks) for limit in limits) == is_said


def test_a_snapshot_holds_them_and_lifts_what_slurm_holds_for_them() -> None:
    jobs = json.loads((FIXTURES / "squeue.json").read_text())
    waiting = [job for job in jobs["jobs"] if job["job_state"] == "PENDING" and not job["array_task_string"]]
    for job, reason in zip(waiting, ("QOSGrpCpuLimit", "AssocGrpMemLimit"), strict=False):
        job |= {"state_reason": reason, "qos": "normal"}
    changed = SlurmText(name="squeue.json", content=json.dumps(jobs).encode())
    sources = SlurmSources(
        jobs=changed, nodes=SlurmText(name="sinfo", content=(FIXTURES / "sinfo.json").read_bytes())
    )
    before, _ = import_slurm(sources)
    assert before.limits == ()
    holds = {job.id: job.hold for job in before.jobs}
    first, second = str(waiting[0]["job_id"]), str(waiting[1]["job_id"])
    assert holds[first] == "QOSGrpCpuLimit"
    limits = SlurmText(name="assoc", content=MANAGER.encode())
    after, _ = import_slurm(replace(sources, limits=limits))
    assert len(after.limits) == 10
    found = {job.id: job.hold for job in after.jobs}
    assert found == holds | {first: None}
    assert found[second] == "AssocGrpMemLimit"
    assert all(job.user and job.partition for job in after.running)
