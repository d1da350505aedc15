"""What the comparison with Slurm tells sbatch is what the jobs ask for; its log is read as written."""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from against_slurm import asked, backfill_interval, compare, from_table, made, ours, read_log

from aucsched.formats.notes import Notes
from aucsched.simulation.workloads.named_clusters import EvenCluster
from aucsched.slurm.site.conf import parse_slurm_conf
from aucsched.slurm.site.sbatch import parse_sbatch
from aucsched.slurm.site.scheduler_log import Submission

LOG = (
    "JobId=3 UserId=root(0) GroupId=root(0) Name=2 JobState=COMPLETED Partition=p TimeLimit=7 "
    "StartTime=2026-11-21T19:40:10 EndTime=2026-11-21T19:45:41 NodeList=n[001-002] NodeCnt=2 ProcCnt=24 "
    "WorkDir=/tmp ReservationName= Tres=cpu=24 Account= QOS= WcKey= Cluster=unknown "
    "SubmitTime=2026-11-21T19:39:55 EligibleTime=2026-11-21T19:39:55 DerivedExitCode=0:0 ExitCode=0:0 \n"
)


def test_sbatch_is_told_what_the_jobs_ask_for(tmp_path: Path) -> None:
    options = argparse.Namespace(jobs=60, contiguous=0.5, largest=4, seed=3, log=tmp_path)
    workload = made(EvenCluster(nodes=32), options)
    conf = parse_slurm_conf("NodeName=n[01-32] CPUs=12 Gres=gpu:3\n", Notes())
    remarks: defaultdict[str, list[str]] = defaultdict(list)
    for arriving in workload.jobs:
        options_of = parse_sbatch(asked(arriving), "sbatch")
        told = Submission(
            conf=conf, options=options_of, job_id=arriving.job.id, path="sbatch", remarks=remarks
        ).job(1)
        assert told.request == arriving.job.request
        assert told.time_limit_s == arriving.job.time_limit_s
        assert told.time_limit_s is not None
        assert 60 <= told.time_limit_s - arriving.run_time_s < 120
    assert not remarks
    kinds = {(job.job.request.nodes is None, bool(job.job.request.gres_per_node)) for job in workload.jobs}
    assert len(kinds) == 3


def test_slurm_s_log_is_read_as_it_writes_it() -> None:
    ran = read_log(LOG)["2"]
    assert (ran.start_s - ran.submit_s, ran.end_s - ran.start_s, ran.nodes) == (15, 331, ("n001", "n002"))
    with pytest.raises(AssertionError, match="Slurm did not complete job 2"):
        read_log(LOG.replace("COMPLETED", "TIMEOUT"))


def test_what_slurm_did_like_us_differs_in_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    # The log is made from our own run, in which each job held its nodes three seconds longer than told.
    options = argparse.Namespace(jobs=40, contiguous=0.2, largest=4, seed=4, log=None)
    workload = made(EvenCluster(nodes=24), options)
    late = tuple(
        replace(one, arrival_s=float(round(one.arrival_s)), run_time_s=one.run_time_s + 3)
        for one in workload.jobs
    )
    first = min(one.arrival_s for one in late)
    late = tuple(replace(one, arrival_s=one.arrival_s - first) for one in late)
    ran = ours(replace(workload, jobs=late), "backfill-slurm", 100, 10.0)

    def stamp(at_s: float) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(1_700_000_000 + at_s))

    lines = [
        f"JobId={name} Name={name} JobState=COMPLETED StartTime={stamp(one.start_s)} "
        f"EndTime={stamp(one.end_s)} NodeList={','.join(one.nodes)} SubmitTime={stamp(one.submit_s)} "
        for name, one in ran.items()
    ]
    compare(workload, "\n".join([*lines, ""]), 100)
    printed = capsys.readouterr().out
    assert "utilisation of backfill-slurm differs by +0.00 points" in printed
    assert "looked at the queue every 10.0 s" in printed
    utilisation = next(line.split() for line in printed.splitlines() if line.startswith("utilisation "))
    assert utilisation[1] == utilisation[2]


def test_our_backfill_looks_at_the_queue_as_often_as_slurm_s() -> None:
    ran = read_log(LOG)
    assert backfill_interval(LOG, ran) == 10
    assert backfill_interval(f"{LOG}# backfill cycles: 1\n", ran) == 15
    assert read_log(f"{LOG}# backfill cycles: 1\n") == ran


def test_a_table_s_workload_is_told_whole(tmp_path: Path) -> None:
    workload = from_table(argparse.Namespace(table="8.5", id="5", seed=1, log=tmp_path))
    assert (len(workload.jobs), len(workload.nodes)) == (350, 1024)
    assert {one.job.request.nodes is None for one in workload.jobs} == {True, False}
    assert all(one.job.time_limit_s and one.job.time_limit_s % 60 == 0 for one in workload.jobs)
