"""``aucsched negotiate`` as a user runs it: the metrics, the files, what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.negotiation import rigid
from support.run import Done, aucsched

from aucsched.auction.decide import decide
from aucsched.cli import run as command
from aucsched.cluster.jobs import JobKind
from aucsched.negotiation.batch import auction_map
from aucsched.negotiation.batch.batch_state import Arrival
from aucsched.negotiation.batch.mapping import BatchSettings, MapperName
from aucsched.negotiation.runtime.settings import RuntimeSettings
from aucsched.simulation.negotiated.negotiated_report import Negotiated, negotiated_metrics
from aucsched.simulation.negotiated.negotiated_run import negotiate
from aucsched.simulation.negotiated.plays import Changeability, Play, esp_play
from aucsched.simulation.workloads.named_clusters import node_names


@pytest.fixture(name="run")
def in_this_process() -> Callable[..., Done]:
    """Return what runs the command here: dozens of processes would take minutes."""
    return aucsched


#: Σ size × time of the 228 jobs on 16 nodes, in whole nodes, over 16 (215.0 min).
BOUND_S = 12_899.25


def played(
    mapper: str = "greedy", share: float = 0.0, kind: JobKind = JobKind.MALLEABLE, **options: Any
) -> Negotiated:
    play = esp_play(16, Changeability(share=share, kind=kind), **options)
    batch = BatchSettings(mapper=mapper, ends_when_done=True)  # type: ignore[arg-type]
    return negotiate(play, batch, RuntimeSettings())


def check_held(result: Negotiated) -> None:
    """Assert that no node was held by two jobs at once; each job's stretches add up to its report."""
    by_node: dict[int, list[tuple[float, float]]] = {}
    node_s: dict[str, float] = {}
    for held in result.held:
        node_s[held.job] = node_s.get(held.job, 0.0) + held.nodes.bit_count() * (held.end_s - held.start_s)
        for node in range(len(result.play.nodes)):
            if held.nodes >> node & 1:
                by_node.setdefault(node, []).append((held.start_s, held.end_s))
    for stretches in by_node.values():
        stretches.sort()
        for (_, end), (start, _) in pairwise(stretches):
            assert start >= end - 1e-6
    for job, done in result.done.items():
        assert node_s[job] == pytest.approx(done.node_s, abs=1e-3)


def test_the_esp_jobs_are_the_papers() -> None:
    jobs = esp_play(16, Changeability(share=1.0), order=3).arrivals
    assert len(jobs) == 228
    assert sum(job.job.min_nodes * job.job.time_at_min_s for job in jobs) / 16 == pytest.approx(BOUND_S)
    assert [job.time_s for job in jobs[:52]] == [0.0] * 50 + [30.0, 60.0]
    assert jobs[-1].time_s == 178 * 30
    sizes = {(job.job.min_nodes, job.job.max_nodes) for job in jobs}
    assert sizes == {(1, 2), (1, 4), (2, 6), (2, 8), (4, 16)}
    assert {job.time_s for job in esp_play(16, Changeability(), arrivals="at-once").arrivals} == {0.0}
    # The same seed gives the same jobs; a smaller share's are among a larger one's.
    assert esp_play(16, Changeability(share=1.0), order=3).arrivals == jobs
    few = {
        a.job.job
        for a in esp_play(16, Changeability(share=0.1), order=3).arrivals
        if a.job.type is JobKind.MALLEABLE
    }
    more = {
        a.job.job
        for a in esp_play(16, Changeability(share=0.5), order=3).arrivals
        if a.job.type is JobKind.MALLEABLE
    }
    assert (len(few), len(more)) == (23, 114)
    assert few < more


@pytest.mark.parametrize(
    ("mapper", "share", "most_min"), [("greedy", 0.5, 238), ("auction", 0.5, 222), ("auction", 0.1, 226)]
)
def test_one_order_of_the_experiment(mapper: str, share: float, most_min: float) -> None:
    result = played(mapper, share)
    metrics = negotiated_metrics(result)
    assert len(result.done) == 228
    assert metrics["work_bound_s"] == BOUND_S
    assert BOUND_S <= (metrics["makespan_s"] or 0) <= most_min * 60
    # Under linear speedup the work is the work, however often sizes changed.
    assert (metrics["utilization"] or 0) * (metrics["makespan_s"] or 0) == pytest.approx(BOUND_S)
    assert metrics["expansions"]
    assert metrics["shrinks"]
    check_held(result)


def test_nodes_have_the_names_that_the_peer_gives_them() -> None:
    names = ("rack 1/a", "rack 1/b")
    jobs = tuple(Arrival(time_s=5.0 * n, job=rigid(f"j{n}", 1 + n % 2, 20)) for n in range(4))
    play = Play(name="two", nodes=names, partitions={"": names}, arrivals=jobs)
    for mapper in ("auction", "greedy"):
        batch = BatchSettings(mapper=mapper, ends_when_done=True)
        assert len(negotiate(play, batch, RuntimeSettings()).done) == 4


def test_each_map_is_an_award_of_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(*arguments: Any, **options: Any) -> Any:
        calls.append(options)
        return decide(*arguments, **options)

    monkeypatch.setattr(auction_map, "decide", counted)
    names = node_names(4)
    jobs = tuple(Arrival(time_s=5.0 * n, job=rigid(f"j{n}", 1 + n % 3, 20 + n)) for n in range(9))
    play = Play(name="few", nodes=names, partitions={"": names}, arrivals=jobs)
    mappers: tuple[MapperName, ...] = ("auction", "greedy")
    for mapper in mappers:
        calls.clear()
        batch = BatchSettings(mapper=mapper, ends_when_done=True)
        metrics = negotiated_metrics(negotiate(play, batch, RuntimeSettings()))
        assert metrics["engine_calls"] == len(calls)
        assert bool(calls) is (mapper == "auction")


@pytest.mark.parametrize(
    ("options", "engine"),
    [
        ((), ("greedy", None, None)),
        (("--strategy", "exact"), ("exact", None, None)),
        (("--work-limit", "3"), ("anytime", 3, None)),
        (("--strategy", "exact", "--work-limit", "3"), ("exact", 3, None)),
        (("--time-limit", "0.5"), ("anytime", None, 0.5)),
    ],
)
def test_the_engine_gets_its_strategy_and_limits(
    run: Callable[..., Done], tmp_path: Path, options: tuple[str, ...], engine: tuple[Any, ...]
) -> None:
    done = run("negotiate", str(workload(tmp_path, SMALL)), "--format", "json", *options)
    assert done.returncode == 0, done.stderr
    given = json.loads(done.stdout)["settings"]["batch"]["engine"]
    assert (given["strategy"], given["work_limit"], given["time_limit_s"]) == engine


def test_230_jobs_with_both_z_urgent_each_starts_at_once_and_nothing_is_lost() -> None:
    result = played("auction", 0.3, with_z=True)
    assert len(result.done) == 230
    assert {job: result.done[job].start_s for job in ("Z1", "Z2")} == {"Z1": 2400.0, "Z2": 7200.0}
    assert {job: result.done[job].end_s for job in ("Z1", "Z2")} == {"Z1": 2500.0, "Z2": 7300.0}
    metrics = negotiated_metrics(result)
    assert (metrics["urgent_started"], metrics["killed"], metrics["lost_node_s"]) == (2, 0, 0)
    assert metrics["suspended"]
    assert metrics["urgent_wait_max_s"] == 0
    entries = {arrival.job.job: arrival.job for arrival in result.play.arrivals}
    for job, done in result.done.items():
        work = entries[job].min_nodes * entries[job].time_at_min_s
        assert done.node_s == pytest.approx(work, rel=1e-6, abs=1e-3)
    check_held(result)


def test_the_metrics_of_a_run_worked_out_by_hand() -> None:
    """A holds three of four nodes until 100, then b two until 150; b waits 100 s beside one idle node."""
    names = node_names(4)
    arrivals = (Arrival(time_s=0.0, job=rigid("a", 3, 100)), Arrival(time_s=0.0, job=rigid("b", 2, 50)))
    play = Play(name="two", nodes=names, partitions={"": names}, arrivals=arrivals)
    metrics = negotiated_metrics(negotiate(play, BatchSettings(ends_when_done=True), RuntimeSettings()))
    expected = {
        "makespan_s": 150.0,
        "wait_mean_s": 50.0,
        "wait_max_s": 100.0,
        "response_mean_s": 125.0,
        "response_max_s": 150.0,
        "utilization": 400 / 600,
        "work_bound_s": 100.0,
        "loss_of_capacity": 100 / 600,
        "throughput_per_h": 2 * 3600 / 150,
        "transactions": 2,
        "attempts_mean": 3.0,
        "expansions": 0,
        "urgent_wait_max_s": None,
    }
    assert {name: metrics[name] for name in expected} == pytest.approx(expected)


def workload(tmp_path: Path, jobs: list[dict[str, Any]], **members: Any) -> Path:
    nodes = members.pop("nodes", [{"name": "n[1-4]", "cores": 2, "memory_mib": 1000}])
    document = {"format": "aucsched-workload/1", "name": "small", "nodes": nodes, "jobs": jobs, **members}
    path = tmp_path / "w.json"
    path.write_text(json.dumps(document))
    return path


SMALL = [
    {"id": "a", "priority": 3, "nodes": 2, "cores_per_node": 1, "arrival_s": 0, "run_time_s": 100},
    {"id": "b", "priority": 2.5, "cores": 3, "arrival_s": 5, "run_time_s": 50, "time_limit_s": 60,
     "kind": "malleable", "min_nodes": 1, "max_nodes": 4, "speedup": "amdahl:0.1"},
    {"id": "c", "priority": 1, "cores": 8, "arrival_s": 5, "run_time_s": 100, "time_limit_s": 30},
]  # fmt: skip


def test_a_workload_without_a_name_is_called_by_its_file(run: Callable[..., Done], tmp_path: Path) -> None:
    assert run("negotiate", str(workload(tmp_path, SMALL))).stdout.startswith("small: 3 jobs, 4 nodes")
    path = str(workload(tmp_path, SMALL, name=""))
    assert run("negotiate", path).stdout.startswith(f"{path}: 3 jobs, 4 nodes")


def test_a_workload_file_is_played_with_its_own_kinds(run: Callable[..., Done], tmp_path: Path) -> None:
    out, rows = tmp_path / "out.json", tmp_path / "jobs.csv"
    done = run(
        "negotiate",
        str(workload(tmp_path, SMALL)),
        "--format",
        "json",
        "-o",
        str(out),
        "--jobs-out",
        str(rows),
    )
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(out.read_text())
    assert document["format"] == "aucsched-negotiation/1"
    assert document["workload"] == {"name": "small", "jobs": 3, "nodes": 4}
    assert {
        "makespan_s",
        "wait_mean_s",
        "response_mean_s",
        "utilization",
        "transactions",
        "attempts_mean",
    } <= set(document["metrics"])
    lines = {line.split(",")[0]: line.split(",") for line in rows.read_text().splitlines()}
    assert lines["a"][4:7] == ["0", "0", "100"]
    # b's time holds at two nodes; its range is the file's. c is killed at its limit.
    assert lines["b"][1:4] == ["malleable", "1", "4"]
    assert float(lines["c"][8]) == 30


def test_a_trace_replays_to_the_same_bytes(run: Callable[..., Done], tmp_path: Path) -> None:
    path = str(workload(tmp_path, SMALL))
    names = [str(tmp_path / name) for name in ("1.jsonl", "2.jsonl", "3.jsonl", "1.txt", "2.txt", "d.mmd")]
    assert run("negotiate", path, "--trace", names[0]).returncode == 0
    assert run("negotiate", path, "--trace", names[1]).returncode == 0
    replay = run("negotiate", "--replay", names[0], "--trace", names[2])
    assert replay.returncode == 0, replay.stderr
    first, second, third = (Path(name).read_bytes() for name in names[:3])
    assert first == second == third
    assert run("negotiate", path, "--trace", names[3], "--mermaid", names[5]).returncode == 0
    assert run("negotiate", "--replay", names[0], "--trace", names[4]).returncode == 0
    text = Path(names[3]).read_text()
    assert text == Path(names[4]).read_text()
    assert text.splitlines()[0].split() == [
        "0:00.000", "iBSched", "→", "iRTSched", "NEGOTIATION_START", "version", "1,", "5", "attempts,", "1",
        "queued",
    ]  # fmt: skip
    assert "RESOURCE_OFFER 1.1 n[1-4] idle" in text
    diagram = Path(names[5]).read_text()
    assert diagram.startswith("sequenceDiagram\n    participant B as iBSched\n")
    assert diagram.count("rect rgb") == diagram.count("\n    end\n")
    assert ";" not in diagram
    # A trace that its beginning does not lead to is refused, and the line is named.
    changed = first.replace(b'"code":"accept"', b'"code":"reject"', 1)
    Path(names[2]).write_bytes(changed)
    refused = run("negotiate", "--replay", names[0], "--order", "3")
    assert "--replay cannot be combined with --seed: it runs a trace" in refused.stderr
    refused = run("negotiate", "esp", "--replay", names[0])
    assert "--replay cannot be combined with WORKLOAD: it runs a trace" in refused.stderr
    refused = run("negotiate", "--replay", names[2])
    assert refused.returncode == 2
    assert "line 3 is not what the negotiation comes to" in refused.stderr


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (rb'"node_count":{"min":\d+', b'"node_count":{"min":0'),
        (rb'"node_count":{"min":\d+', b'"node_count":{"min":-1'),
        (rb'"partition":"[^"]*"', b'"partition":"nowhere"'),
    ],
)
def test_a_trace_that_begins_with_what_cannot_be_is_refused(
    before: bytes, after: bytes, run: Callable[..., Done], tmp_path: Path
) -> None:
    path, trace = str(workload(tmp_path, SMALL)), tmp_path / "t.jsonl"
    assert run("negotiate", path, "--trace", str(trace)).returncode == 0
    first, _, others = trace.read_bytes().partition(b"\n")
    changed = re.sub(before, after, first)
    if changed == first:
        changed = first.replace(b'"job":{', b'"job":{"partition":"nowhere",', 1)
    trace.write_bytes(changed + b"\n" + others)
    refused = run("negotiate", "--replay", str(trace))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"{trace}: ")
    assert refused.stderr.count("\n") == 1


def test_another_decision_takes_the_third_of_a_preset_away(run: Callable[..., Done], tmp_path: Path) -> None:
    done = run("negotiate", str(workload(tmp_path, SMALL)), "--preset", "thesis", "--decision", "objective")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_chart_is_drawn(run: Callable[..., Done], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pictures = [tmp_path / "1.svg", tmp_path / "2.svg"]
    for picture in pictures:
        done = run("negotiate", str(workload(tmp_path, SMALL)), "--gantt", str(picture))
        assert (done.returncode, done.stderr) == (0, "")
    assert pictures[0].read_bytes() == pictures[1].read_bytes()
    assert b"malleable" in pictures[0].read_bytes() or b"<svg" in pictures[0].read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Missing argument 'WORKLOAD'"),
        (("esp", "--malleable", "120"), "120 is not from 0 to 100 %"),
        (("esp", "--malleable", "some"), "'some' is not a share"),
        (("esp", "--moldable"), "--moldable needs --malleable"),
        (("esp", "--malleable", "10", "--speedup", "magic"), "'magic' is none of"),
        (("esp", "--speedup", "amdahl:0.1"), "--speedup needs --malleable"),
        (("esp", "--nodes", "0"), "0 is not in the range"),
        (("esp", "--decision", "objective", "--third-of", "queue"), "--third-of needs --decision paper"),
        (
            ("esp", "--preset", "thesis", "--decision", "objective", "--third-of", "queue"),
            "--third-of needs --decision paper",
        ),
        (("esp", "--mapper", "greedy", "--strategy", "exact"), "--strategy needs --mapper auction"),
        (
            ("esp", "--strategy", "greedy", "--work-limit", "5"),
            "work_limit: strategy greedy reaches no limit",
        ),
        (("esp", "--work-limit", "5", "--time-limit", "5"), "work_limit: it counts instead of time_limit"),
        (("esp", "--mapper", "greedy", "--patience", "60"), "--patience needs --mapper auction"),
        (("esp", "--patience", "inf"), "'--patience': inf is not a number"),
        (("esp", "--mermaid-messages", "5"), "--mermaid-messages needs --mermaid"),
        (("esp", "--gantt", "chart.doc"), "ends in none of"),
        (("no-such-file.json",), "no-such-file.json: No such file"),
    ],
)
def test_what_makes_no_sense_is_refused(
    run: Callable[..., Done], arguments: tuple[str, ...], said: str
) -> None:
    done = run("negotiate", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"gres_per_node": {"gpu": 2}}, "jobs[0].gres_per_node: no node of the partition has 2 gpu"),
        ({"gres_per_node": {"tape": 1}}, "jobs[0].gres_per_node: no node that it may use has the gres tape"),
        ({"features": ["fast"]}, "jobs[0].features: no node has the features fast"),
        (
            {"features": ["fast"], "gres_per_node": {"gpu": 1}},
            "json: jobs[0]: no node has the features fast",
        ),
        ({"required_nodes": "n1"}, "jobs[0].required_nodes: negotiations do not support this: remove it"),
        ({"nodes": 2, "gres_total": {"gpu": 3}}, "jobs[0].gres_total: it takes 3 nodes to hold so much"),
        ({"contiguous": True, "nodes": 3, "excluded_nodes": "n2"}, "jobs[0].nodes: 3 nodes are above the 2"),
        ({"nodes": 4, "excluded_nodes": "n2"}, "jobs[0].nodes: 4 nodes are above the 3 that it may use"),
        ({"nodes": 5}, "jobs[0].nodes: 5 nodes are above the partition's 4"),
        ({"cores_per_node": 3}, "jobs[0].cores_per_node: 3 cores a node are above the partition's 2"),
        ({"memory_mib_per_node": 2000}, "jobs[0].memory_mib_per_node: no node of the partition has 2000 MiB"),
        ({"hold": "JobHeldUser"}, "jobs[0].hold: the job is held"),
        ({"kind": "malleable", "speedup": "magic"}, "jobs[0].speedup: 'magic' is none of"),
        ({"max_nodes": 4}, "jobs[0].max_nodes: given for a rigid job"),
    ],
)
def test_a_workload_that_cannot_be_negotiated_is_refused(
    run: Callable[..., Done], tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    nodes = [{"name": "n[1-4]", "cores": 2, "memory_mib": 1000, "gres": {"gpu": 1}}]
    path = workload(tmp_path, [{**SMALL[0], **change}], nodes=nodes)
    done = run("negotiate", str(path))
    assert done.returncode == 2
    assert said in done.stderr
    assert str(path) in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--arrivals", "esp"), "--arrivals is of esp"),
        (("--seed", "1"), "--seed needs --malleable"),
        (("--order", "1"), "note: --order is the old spelling of --seed\naucsched: --seed needs --malleable"),
        (("--format", "order"), "aucsched: Invalid value for '--format': 'order' is not one of"),
        (("--malleable", "50"), "the workload says itself which jobs are malleable"),
        (("--urgent", "kill"), "no job of the workload has the qos urgent"),
    ],
)
def test_an_option_that_a_file_would_ignore_is_refused(
    run: Callable[..., Done], tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = run("negotiate", str(workload(tmp_path, SMALL)), *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert ("old spelling" in done.stderr) == ("--order" in arguments)


def test_a_share_of_a_files_rigid_jobs_and_another_machine(run: Callable[..., Done], tmp_path: Path) -> None:
    path = str(workload(tmp_path, [SMALL[0], {**SMALL[0], "id": "z", "qos": "urgent", "arrival_s": 7}]))
    done = run(
        "negotiate", path, "--malleable", "100%", "--nodes", "2", "--urgent", "kill", "--format", "json"
    )
    assert done.returncode == 0, done.stderr
    metrics = json.loads(done.stdout)["metrics"]
    assert (metrics["urgent_started"], metrics["killed"], metrics["lost_node_s"]) == (1, 1, 14)
    assert metrics["makespan_s"] == 7 + 200


def test_several_runtime_schedulers_share_one_queue(run: Callable[..., Done], tmp_path: Path) -> None:
    """Two of two nodes each: no job is given to both, and each runs on its own nodes."""
    jobs = [
        {**SMALL[0], "id": f"j{n}", "nodes": 1 + n % 2, "arrival_s": 3 * n, "run_time_s": 20 + n}
        for n in range(12)
    ]
    path = str(workload(tmp_path, jobs))
    trace, again = tmp_path / "t.jsonl", tmp_path / "u.jsonl"
    done = run("negotiate", path, "--runtimes", "2", "--format", "json", "--trace", str(trace))
    assert done.returncode == 0, done.stderr
    assert run("negotiate", "--replay", str(trace), "--trace", str(again)).returncode == 0
    assert trace.read_bytes() == again.read_bytes()
    lines = [json.loads(line) for line in trace.read_text().splitlines()[1:]]
    started: dict[str, set[str]] = {}
    for line in lines:
        for report in line["message"].get("reports", ()):
            if report["state"] == "running":
                started.setdefault(report["job"], set()).add(line["peer"])
                own = {"r1": {"n1", "n2"}, "r2": {"n3", "n4"}}[line["peer"]]
                assert set(report["nodes"]) <= own
    assert len(started) == 12
    assert all(len(peers) == 1 for peers in started.values())
    assert {peer for peers in started.values() for peer in peers} == {"r1", "r2"}
    arrivals = {job["id"]: job["arrival_s"] for job in jobs}
    for line in lines:
        assert all(r["start_s"] >= arrivals[r["job"]] for r in line["message"].get("reports", ()))
    refused = run("negotiate", path, "--runtimes", "4")
    assert refused.stderr.startswith(f"{path}: jobs: job ")
    assert "2 nodes are above the 1 that a runtime scheduler has" in refused.stderr
    assert "--runtimes 5: there are 4 nodes" in run("negotiate", path, "--runtimes", "5").stderr


def test_a_trace_has_the_clock_of_each_message_s_runtime_scheduler(
    run: Callable[..., Done], tmp_path: Path
) -> None:
    """The two seconds of one's transaction pass on its own clock."""
    trace = tmp_path / "t.jsonl"
    options = ("--mapper", "greedy", "--runtimes", "2", "--transaction-seconds", "2")
    done = run("negotiate", "esp", *options, "--trace", str(trace))
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in trace.read_text().splitlines()[1:]]
    assert all(line["message"].get("time_s", line["time_s"]) == line["time_s"] for line in lines)
    for peer in ("r1", "r2"):
        times = [line["time_s"] for line in lines if line["peer"] == peer]
        assert times == sorted(times)


@pytest.mark.parametrize(
    ("jobs", "attempts", "starts"),
    [
        # The first offer refused says that only the first job can start: the last Map holds it alone.
        ("abcd", "5", ["0", "10", "20", "30"]),
        ("abcd", "2", ["0", "10", "20", "30"]),
        # One attempt has no such offer: of four jobs two are mapped after it, then one, which starts.
        ("ab", "1", ["120", "130"]),
        ("abcd", "1", ["240", "370", "500", "510"]),
    ],
)
def test_an_atomic_map_that_was_refused_is_followed_by_one_that_can_start(
    run: Callable[..., Done], tmp_path: Path, jobs: str, attempts: str, starts: list[str]
) -> None:
    """Mapper greedy counts nodes: it mapped all jobs for ever, of whose feature there is one node."""
    nodes = [{"name": "n1", "cores": 1, "features": ["x"]}, {"name": "n[2-4]", "cores": 1}]
    job = {"priority": 1, "cores": 1, "features": ["x"], "arrival_s": 0, "run_time_s": 10}
    path = workload(tmp_path, [{**job, "id": name} for name in jobs], nodes=nodes)
    rows = tmp_path / "rows.csv"
    options = ("--atomic", "--mapper", "greedy", "--max-attempts", attempts)
    done = run("negotiate", path, *options, "--jobs-out", str(rows))
    assert done.returncode == 0, done.stderr
    assert [line.split(",")[5] for line in rows.read_text().splitlines()[1:]] == starts


def test_a_negotiation_that_stalls_has_a_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("aucsched.negotiation.pair.PATIENCE", 0)
    path = workload(tmp_path, [{"id": "a", "priority": 1, "cores": 1, "arrival_s": 5, "run_time_s": 10}])
    trace, diagram, rows = (tmp_path / name for name in ("t.txt", "d.mmd", "rows.csv"))
    files = ("--trace", str(trace), "--mermaid", str(diagram), "--jobs-out", str(rows))
    assert command(["negotiate", str(path), *files]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "note: the messages until it stalled are written, and no other file",
        "aucsched: nothing happens any more, but there are: jobs to come",
    ]
    assert "RESOURCE_OFFER 1.1 n" in trace.read_text()
    assert "RESOURCE_OFFER 1.1" in diagram.read_text()
    assert not rows.exists()


def test_a_promised_job_may_have_started_elsewhere_since(run: Callable[..., Done], tmp_path: Path) -> None:
    """Both runtime schedulers promise a start to the small job; one of them starts it first."""
    nodes = [{"name": "n[2-4]", "cores": 8}, {"name": "n[5-6]", "cores": 8, "gres": {"gpu": 2}}]
    small = {"id": "a", "priority": 510, "cores": 4, "arrival_s": 143, "run_time_s": 41}
    large = {**small, "id": "b", "priority": 990, "cores": 14, "gres_per_node": {"gpu": 2}, "run_time_s": 412}
    rows = tmp_path / "rows.csv"
    path = str(workload(tmp_path, [small, large], nodes=nodes))
    done = run("negotiate", path, "--runtimes", "2", "--jobs-out", str(rows))
    assert done.returncode == 0, done.stderr
    assert [line.split(",")[5] for line in rows.read_text().splitlines()[1:]] == ["143", "143"]


def test_partitions_are_kept_apart(run: Callable[..., Done], tmp_path: Path) -> None:
    nodes = [
        {"name": "a[1-2]", "cores": 1, "partitions": ["a"]},
        {"name": "b[1-3]", "cores": 1, "partitions": ["b"]},
    ]
    jobs = [
        {"id": f"{part}{n}", "priority": 1, "cores": 1, "arrival_s": 0, "run_time_s": 10, "partition": part}
        for part in "ab"
        for n in range(6)
    ]
    path = str(workload(tmp_path, jobs, nodes=nodes))
    for runtimes in ("1", "2"):
        rows = tmp_path / "rows.csv"
        done = run("negotiate", path, "--runtimes", runtimes, "--jobs-out", str(rows))
        assert done.returncode == 0, done.stderr
        ends = {line.split(",")[0]: float(line.split(",")[6]) for line in rows.read_text().splitlines()[1:]}
        assert max(end for job, end in ends.items() if job[0] == "a") == 30
        assert max(end for job, end in ends.items() if job[0] == "b") == 20
    wrong = str(workload(tmp_path, [{**jobs[0], "partition": ""}], nodes=nodes))
    assert "'' is not a partition of whole nodes (a, b)" in run("negotiate", wrong).stderr


def test_no_range_opens_from_beyond_a_runtime_schedulers_nodes(
    run: Callable[..., Done], tmp_path: Path
) -> None:
    jobs = [
        {"id": f"j{n}", "priority": 9 - n, "cores": 2 * size, "arrival_s": n, "run_time_s": 50,
         "kind": "malleable", "min_nodes": 1, "max_nodes": 4}
        for n, size in enumerate([2, 1, 4, 3])
    ]  # fmt: skip
    done = run("negotiate", str(workload(tmp_path, jobs)), "--runtimes", "2", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["metrics"]["transactions"]
