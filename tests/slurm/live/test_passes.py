"""A pass beside a live Slurm: what is read, and that jobs behind the gate may start."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

from aucsched import load_snapshot, schedule
from aucsched.auction.options import StepOptions
from aucsched.cluster.errors import InputError
from aucsched.slurm.answers.live import Command
from aucsched.slurm.live.loop_snapshot import with_claims
from aucsched.slurm.live.passes import take_look, take_pass

SOURCE = Path(__file__).parents[3] / "examples" / "source"
LICENSES = b"LicenseName=auction Total=1000000 Used=0 Free=1000000 Reserved=1000000 Remote=no\n"


def saved(jobs: bytes) -> dict[Command, bytes]:
    return {
        ("squeue", "--json"): jobs,
        ("sinfo", "--json"): gzip.decompress((SOURCE / "sinfo.json.gz").read_bytes()),
        ("scontrol", "show", "topology"): (SOURCE / "topology.conf").read_bytes(),
        ("scontrol", "-o", "show", "licenses"): LICENSES,
    }


def test_jobs_behind_the_gate_may_start_and_need_no_licence() -> None:
    document = json.loads(gzip.decompress((SOURCE / "squeue.json.gz").read_bytes()))
    waiting = [job for job in document["jobs"] if job["job_state"] == "PENDING"]
    for job in waiting:
        job["licenses"], job["state_reason"] = "auction:1", "Licenses"
    answers = saved(json.dumps(document).encode())

    def ask(command: Command) -> bytes:
        if command not in answers:
            raise InputError("not here", file=" ".join(command))
        return answers[command]

    behind = take_pass(take_look(gate="auction", ask=ask), StepOptions(work_limit=0))
    assert not behind.look.snapshot.jobs[0].request.licenses
    assert len(behind.step.schedule.started) > 0
    without = take_pass(take_look(ask=ask), StepOptions(work_limit=0))
    assert not without.step.schedule.started
    # Job 114 waits for another job as well, which counts whatever reason Slurm shows.
    assert {job.hold for job in without.look.snapshot.jobs} == {"Licenses", "Dependency"}


def test_jobs_that_slurm_starts_are_not_eligible_unless_they_are_held() -> None:
    snapshot = load_snapshot(SOURCE.parent / "emulated-1408-full.json")
    outside = schedule(with_claims(snapshot, {}, "auction"), work_limit=0)
    found = {one.job: (one.reason.value, one.detail) for one in outside.pending}
    assert found.pop("113") == ("held", "JobHeldUser")
    assert found.pop("114") == ("not_eligible", "Dependency")
    assert set(found.values()) == {("not_eligible", "not behind the gate: Slurm starts it")}


def test_a_process_that_is_warm_compiles_nothing_in_its_first_pass() -> None:
    """Numba takes seconds where its cache is empty: a gate that is up may end meanwhile."""
    code = (
        "from aucsched.auction.options import StepOptions;from aucsched.slurm.live.passes import warm_up;"
        "from aucsched.models.search import compiled_search;assert not compiled_search.is_loaded();"
        "warm_up(StepOptions(reserve=1));import sys;assert 'highspy' in sys.modules;"
        "assert compiled_search.is_loaded() or 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
