"""The report of a shadow's log: figures worked out by hand, and the command as a user runs it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import mean

import msgspec
import pytest
from support.chromium import CHROMIUM, opened
from support.run import aucsched, refused

from aucsched import Job, Node, Request, Snapshot, parse_workload
from aucsched.formats.notes import Notes
from aucsched.reports.run_pages import shadow_page
from aucsched.slurm.answers.running_jobs import End, SlurmStart
from aucsched.slurm.answers.topology_conf import parse_topology
from aucsched.slurm.live.replay import cluster_document, request_document, workload_of
from aucsched.slurm.live.shadow_log import Offer, ShadowPass, Waiting, encode
from aucsched.slurm.live.shadow_report import ShadowReport


def entry(time: float, **members: object) -> ShadowPass:
    known = {
        "interval_s": 60,
        "read_s": 0,
        "decide_s": 0,
        "cores": 100,
        "used": 50,
        "waiting": 0,
        "running": 0,
    }
    return ShadowPass(time=time, **{**known, **members})  # type: ignore[arg-type]


def waiting(job: str, submit: float, user: str = "ann", nodes: int = 2) -> Waiting:
    return Waiting(job=job, submit=submit, cores=8, nodes=nodes, limit_s=600, user=user, account="a")


def offer(job: str, cores: int = 8, level: int = 0) -> Offer:
    return Offer(job=job, nodes="n[1-2]", cores=cores, level=level)


def start(job: str, submit: float, at: float, user: str = "ann", level: int = 1) -> SlurmStart:
    owner = {"user": user, "account": "a", "limit_s": 600}
    return SlurmStart(job=job, submit=submit, start=at, nodes="n[1-2]", cores=8, level=level, **owner)  # type: ignore[arg-type]


@pytest.fixture
def made() -> ShadowReport:
    """Six jobs: earlier, same, later, still waiting, never seen waiting, offered and never started."""
    first = [waiting("1", 900), waiting("2", 990, "bob"), waiting("3", 1000, "bob")]
    both = [start("2", 990, 1090, "bob"), start("3", 1000, 1100, "bob"), start("5", 1070, 1075)]
    ends = [End(job="5", start=1075, end=1085, state="COMPLETED")]
    later = [
        End(job="2", start=1090, end=1140, state="COMPLETED"),
        End(job="3", start=1100, end=1180, state="forgotten"),
    ]
    before, plan = [start("0", 500, 600)], {"1": 1150.0, "2": 1095.0}
    entries = [
        entry(
            1000,
            seen=first,
            is_first=True,
            started=before,
            would=[offer("1", 20)],
            unread=["rule"],
            planned=plan,
        ),
        entry(
            1060,
            seen=[waiting("4", 1050, "cy"), waiting("6", 1050)],
            planned={"1": 1165.0, "2": 0.0},
            would=[offer("1", 20), offer("2", 8, 1)],
        ),
        entry(1120, started=both, would=[offer("1"), offer("6")], used=74, ended=ends),
        entry(1180, started=[start("1", 900, 1170)], used=80, ended=later),
    ]
    return ShadowReport(entries=entries, starved_s=250, torn=0)


def test_each_job_gets_its_verdict(made: ShadowReport) -> None:
    assert {job.job: job.verdict for job in made.jobs} == {
        "1": "earlier",  # offered at 1000, started at 1170
        "2": "same",  # offered at 1060, started at 1090, within a pass
        "3": "later",
        "4": "waiting",
        "5": "not compared",  # came and started between two passes
        "6": "earlier",  # offered, and Slurm has not started it yet
    }


def test_figures_worked_out_by_hand(made: ShadowReport) -> None:
    rows = {row["figure"]: row for row in made.figures}
    assert rows["jobs started / offered"] | {"figure": ""} == {
        "figure": "",
        "slurm": 4,
        "auction": 3,
        "jobs": None,
    }
    # Jobs 1 and 2: waits of 270 and 100 s, offered after 100 and 70 s.
    assert rows["mean wait (s)"] == {"figure": "mean wait (s)", "slurm": 185, "auction": 85, "jobs": 2}
    assert rows["longest wait (s)"]["slurm"] == 270
    # Job 1 still runs: its limit of 600 s; job 2 ran 50 s.
    slurm, auction = mean([870 / 600, 150 / 50]), mean([700 / 600, 120 / 50])
    assert math.isclose(rows["mean bounded slowdown"]["slurm"], slurm)
    assert math.isclose(rows["mean bounded slowdown"]["auction"], auction)
    assert rows["mean switch level, jobs of several nodes"]["slurm"] == 1
    assert rows["mean switch level, jobs of several nodes"]["auction"] == 0.5
    # Three spans of a minute; the last pass has none.
    use = rows["cores in use (share), with offers"]
    assert math.isclose(use["slurm"], mean([0.5, 0.5, 0.74]))
    assert math.isclose(use["auction"], mean([0.7, 0.78, 0.9]))
    # The first estimates were 1150 and 1095, the starts 1170 and 1090.
    miss = rows["median miss of Slurm's first estimate (s)"]
    assert (miss["slurm"], miss["jobs"]) == (12.5, 2)
    # 250 s: job 1 alone waited so long, and it had an offer before.
    starved = next(row for name, row in rows.items() if name.startswith("jobs that waited"))
    assert (starved["slurm"], starved["auction"]) == (1, 0)


def test_who_gains_and_who_loses(made: ShadowReport) -> None:
    users = {row["name"]: row for row in made.groups["user"]}
    assert set(users) == {"ann", "bob", "cy"}
    assert (users["ann"]["jobs"], users["ann"]["earlier"], users["ann"]["gain (s)"]) == (3, 2, 170)
    assert (users["bob"]["same"], users["bob"]["later"], users["bob"]["gain (s)"]) == (1, 1, 30)
    assert users["cy"]["gain (s)"] is None
    assert [row["name"] for row in made.groups["size"]] == ["5-16 cores"]


def test_it_says_what_it_cannot_say(made: ShadowReport) -> None:
    document = made.to_dict()
    assert document["unread"] == ["rule"]
    assert any("the means of offered waits leave them out" in text for text in document["caveats"])
    page = shadow_page(made, "log")
    assert "each job alone could have had its offered wait" in page
    assert "https://" not in page.replace("https://www.w3.org", "")
    assert len(made.columns["job"]) == 6


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_the_page_draws_and_asks_nobody(tmp_path: Path, made: ShadowReport) -> None:
    page = tmp_path / "page.html"
    page.write_text(shadow_page(made, "log"))
    found = opened(page, "[...document.querySelectorAll('section')].map((one) => one.dataset.kind)")
    assert (found["error"], found["requests"]) == (None, [])
    assert found["value"] == ["facts", "table", "facts", "lines", "table", "table", "table", "table", "table"]


def test_one_pass_is_a_report() -> None:
    made = ShadowReport(entries=[entry(5.0)])
    assert made.figures[-3]["slurm"] == 0.5
    assert made.groups["user"] == []
    shadow_page(made, "log")


def test_the_command_reads_logs_in_any_order(tmp_path: Path, made: ShadowReport) -> None:
    old, new, page = (tmp_path / name for name in ("log.1", "log", "page.html"))
    lines = [encode(one) for one in made.entries]
    old.write_bytes(b"".join(lines[:2]) + lines[2][:50])
    new.write_bytes(b"".join(lines[2:]))
    done = aucsched("slurm", "report", new, old, "--format", "json", "--starved", "0.1", "--html", page)
    assert done.stderr == "note: lines cut short and left out: 1\n"
    document = json.loads(done.stdout)
    assert document["figures"][1] == {"figure": "mean wait (s)", "slurm": 185.0, "auction": 85.0, "jobs": 2}
    assert "Shadow of Slurm" in page.read_text()
    text = aucsched("slurm", "report", new, old).stdout
    assert "Who gains and who loses, by user" in text
    assert "the means of offered waits leave them out" in " ".join(text.split())
    none = tmp_path / "none"
    assert refused("slurm", "report", none) == f"{none}: No such file or directory"


def test_the_report_writes_the_log_as_a_workload(tmp_path: Path) -> None:
    log, played = tmp_path / "log.jsonl", tmp_path / "played.json"
    cluster = {"format": "aucsched-workload/1", "nodes": [{"name": "n[1-2]", "cores": 8}]}
    ends = [End(job="1", start=1030, end=1050, state="COMPLETED")]
    entries = [
        entry(1000, is_first=True, cluster=cluster),
        entry(1060, started=[start("1", 1010, 1030)], ended=ends),
    ]
    log.write_bytes(b"".join(map(encode, entries)))
    done = aucsched("slurm", "report", log, "--workload", played)
    assert done.returncode == 0, done.stderr
    assert "taken to ask for the cores and nodes they got: 1" in done.stderr
    (job,) = json.loads(played.read_text())["jobs"]
    assert (job["id"], job["arrival_s"], job["run_time_s"]) == ("1", 10, 20)


def test_a_job_that_was_requeued_is_replayed_twice() -> None:
    cluster = {"format": "aucsched-workload/1", "nodes": [{"name": f"n{one}", "cores": 8} for one in (1, 2)]}
    ends = [End(job="7", start=600, end=1030, state="REQUEUED")]
    asks = request_document(Job(id="7", priority=1, request=Request(cores=8), time_limit_s=600))
    again = msgspec.structs.replace(waiting("7", 1030), request=asks)
    entries = [
        entry(1000, is_first=True, cluster=cluster, started=[start("7", 500, 600)]),
        entry(1060, ended=ends, seen=[again]),
        entry(1120, started=[start("7", 1030, 1090)]),
    ]
    workload, notes = workload_of(entries)
    played = [(one.job.id, one.arrival_s, one.run_time_s) for one in workload.jobs]
    assert played == [("7.before", 0, 30), ("7", 30, 600)]
    assert not any("left out" in text for text in notes.texts())


def test_the_cluster_of_a_log_keeps_its_network() -> None:
    lines = "BlockName=b0 Nodes=n[0-1]\nBlockName=b1 Nodes=n[2-3]\nBlockSizes=2,4\n"
    nodes = [Node(name=f"n{one}", cores=8) for one in range(4)]
    network = parse_topology(lines, Notes()).fitted([node.name for node in nodes], Notes()).network
    assert network is not None
    document = cluster_document(Snapshot(nodes=nodes, jobs=[], network=network))
    assert parse_workload(msgspec.json.encode(document)).network == network


def test_in_a_replay_a_job_without_an_end_or_a_limit_runs_to_the_end_of_the_log() -> None:
    cluster = {"format": "aucsched-workload/1", "nodes": [{"name": f"n{one}", "cores": 8} for one in (1, 2)]}
    ran, came = (
        msgspec.structs.replace(one, limit_s=None) for one in (start("0", 500, 600), start("1", 1005, 1010))
    )
    entries = [
        entry(1000, is_first=True, cluster=cluster, started=[ran, start("2", 500, 700)]),
        entry(1060, started=[came, start("3", 1020, 1030)]),
        entry(4600),
    ]
    workload, notes = workload_of(entries)
    runs = {one.job.id: one.run_time_s for one in workload.jobs}
    assert runs == {"0": 3600, "1": 3590, "2": 300, "3": 600}
    assert [text for text in notes.texts() if text.endswith("to the end of the log: 2")]
