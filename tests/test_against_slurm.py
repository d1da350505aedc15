"""What the comparison with Slurm tells sbatch is what the jobs ask for; its log is read as written."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from against_slurm import asked, made, read_log

from aucsched.formats.slurm_conf import parse_slurm_conf
from aucsched.formats.slurm_notes import Notes
from aucsched.formats.slurm_sbatch import parse_sbatch
from aucsched.formats.slurm_submission import SubmissionReader
from aucsched.simulation.workload_clusters import EvenCluster

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
    reader = SubmissionReader(conf=conf)
    for arriving in workload.jobs:
        told = reader.read(parse_sbatch(asked(arriving), "sbatch"), arriving.job.id, 1, "sbatch")
        assert told.request == arriving.job.request
        assert told.time_limit_s == arriving.job.time_limit_s
        assert told.time_limit_s is not None
        assert 60 <= told.time_limit_s - arriving.run_time_s < 120
    assert not reader.remarks
    kinds = {(job.job.request.nodes is None, bool(job.job.request.gres_per_node)) for job in workload.jobs}
    assert len(kinds) == 3


def test_slurm_s_log_is_read_as_it_writes_it() -> None:
    ran = read_log(LOG)["2"]
    assert (ran.start_s - ran.submit_s, ran.end_s - ran.start_s, ran.nodes) == (15, 331, ("n001", "n002"))
    with pytest.raises(AssertionError, match="Slurm did not complete job 2"):
        read_log(LOG.replace("COMPLETED", "TIMEOUT"))
