"""``aucsched evolve`` as a user runs it: figure 1 on real nodes, and what may be taken from others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aucsched.cli import run
from aucsched.formats.native.cluster_file import load_snapshot

HOUR = 3600


def _node(cores: int) -> dict[str, int]:
    return {"cores": cores}


def figure_1(**changes: Any) -> dict[str, Any]:
    """Six nodes of 8 cores: A and B run, C waits for four nodes."""
    return {
        "format": "aucsched-snapshot/1",
        "time": 0,
        "nodes": [{"name": "n[0-5]", "cores": 8}],
        "running": [
            {"id": "A", "nodes": {"n[0-1]": _node(8)}, "end_time": 8 * HOUR, "user": "a"},
            {"id": "B", "nodes": {"n[2-3]": _node(8)}, "end_time": 4 * HOUR, "user": "b"},
        ],
        "jobs": [
            {
                "id": "C",
                "priority": 1,
                "nodes": 4,
                "cores_per_node": 8,
                "time_limit_s": 4 * HOUR,
                "user": "c",
            }
        ],
        **changes,
    }


class Files:
    """A snapshot and its requests in a folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys

    def write(self, name: str, document: Any) -> str:
        """Write a document and return its path."""
        path = self.folder / name
        path.write_text(json.dumps(document))
        return str(path)

    def evolve(self, snapshot: Any, asked: dict[str, Any], *options: str) -> dict[str, Any]:
        """Return what the command prints."""
        requests = {"format": "aucsched-requests/1", **asked}
        line = ["evolve", self.write("s.json", snapshot), "--requests", self.write("r.json", requests)]
        assert run([*line, "--format", "json", *options]) == 0
        found: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        return found

    def refused(self, snapshot: Any, asked: dict[str, Any], *options: str) -> str:
        """Return the one line of a refusal."""
        requests = {"format": "aucsched-requests/1", **asked}
        line = ["evolve", self.write("s.json", snapshot), "--requests", self.write("r.json", requests)]
        assert run([*line, *options]) == 2
        captured = self._capsys.readouterr()
        assert not captured.out
        assert captured.err.count("\n") == 1
        return captured.err


@pytest.fixture
def files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Files:
    return Files(tmp_path, capsys)


TWO_NODES = {"requests": [{"job": "A", "nodes": 2, "cores_per_node": 8}]}


BOTH = pytest.mark.parametrize("serve_by", ["iteration", "auction"])


@BOTH
def test_figure_1(files: Files, serve_by: str) -> None:
    found = files.evolve(figure_1(), TWO_NODES, "--serve-by", serve_by)
    (granted,) = found["granted"]
    assert granted["job"] == "A"
    assert {name: use["cores"] for name, use in granted["nodes"].items()} == {"n4": 8, "n5": 8}
    assert granted["delays"] == [{"job": "C", "user": "c", "seconds": 4.0 * HOUR, "counts": True}]
    assert (found["started"], found["waiting"]) == ([], 1)


@BOTH
def test_figure_1_with_a_limit(files: Files, serve_by: str) -> None:
    path = files.folder / "maui.cfg"
    for limit, granted in ((4 * HOUR, 1), (4 * HOUR - 1, 0)):
        path.write_text(f"DFSPOLICY DFSSINGLEJOBDELAY\nUSERCFG[c] DFSSINGLEDELAYTIME={limit}\n")
        found = files.evolve(figure_1(), TWO_NODES, "--fairness", str(path), "--serve-by", serve_by)
        assert len(found["granted"]) == granted
        assert len(found["refused"]) == 1 - granted
    if serve_by == "iteration":
        assert "user c" in found["refused"][0]["reason"]


def test_an_auction_trades_requests_against_each_other(files: Files) -> None:
    # Either delays C by four hours; together they would be the same four, but each takes all of the budget.
    snapshot = figure_1()
    snapshot["running"][1]["end_time"] = 8 * HOUR
    snapshot["jobs"][0]["nodes"] = 2
    asked = {"requests": [{"job": name, "nodes": 1, "cores_per_node": 8} for name in "AB"]}
    found = files.evolve(snapshot, asked, "--serve-by", "auction", "--fairness", f"target:{8 * HOUR}")
    assert [one["job"] for one in found["granted"]] == ["A"]
    found = files.evolve(snapshot, asked, "--serve-by", "auction")
    assert [one["job"] for one in found["granted"]] == ["A", "B"]
    found = files.evolve(snapshot, asked, "--serve-by", "auction", "--fairness", "target:1")
    assert not found["granted"]
    assert [one["job"] for one in found["started"]] == ["C"]


@BOTH
def test_a_job_behind_a_hundred_others_starts_beside_them(files: Files, serve_by: str) -> None:
    queue = [{"id": f"W{place}", "priority": 2, "nodes": 7, "cores_per_node": 8} for place in range(100)]
    last = {"id": "C", "priority": 1, "cores": 1, "time_limit_s": HOUR}
    found = files.evolve(figure_1(jobs=[*queue, last]), TWO_NODES, "--serve-by", serve_by)
    assert [one["job"] for one in found["granted"]] == ["A"]
    found = files.evolve(figure_1(jobs=[*queue, last]), {"requests": []}, "--serve-by", serve_by)
    assert [one["job"] for one in found["started"]] == ["C"]


def test_an_auction_takes_from_idle_nodes_only(files: Files) -> None:
    assert "idle" in files.refused(figure_1(), {"preemptible": ["B"]}, "--serve-by", "auction")


def test_accounts_survive_a_restart(files: Files) -> None:
    accounts = str(files.folder / "delays.json")
    options = ["--fairness", f"target:{5 * HOUR}", "--accounts", accounts]
    assert files.evolve(figure_1(), TWO_NODES, *options)["granted"]
    # The same once more would be eight hours.
    assert files.evolve(figure_1(), TWO_NODES, *options)["refused"]
    # An hour later the interval is another.
    later = figure_1(time=HOUR)
    assert files.evolve(later, TWO_NODES, *options)["granted"]
    whole = Path(accounts).read_bytes()
    Path(accounts).write_bytes(whole[: len(whole) // 2])
    assert "delays.json" in files.refused(figure_1(), TWO_NODES, *options)


def test_cores_near_the_jobs_own(files: Files) -> None:
    snapshot = figure_1(jobs=[])
    snapshot["running"][0]["nodes"] = {"n4": _node(4)}
    found = files.evolve(snapshot, {"requests": [{"job": "A", "cores": 6}]})
    assert {name: use["cores"] for name, use in found["granted"][0]["nodes"].items()} == {"n4": 4, "n5": 2}


def test_a_refusal_says_when(files: Files) -> None:
    found = files.evolve(figure_1(jobs=[]), {"requests": [{"job": "A", "nodes": 3, "cores_per_node": 8}]})
    assert found["refused"][0]["earliest"] == 4 * HOUR
    too_many = {"requests": [{"job": "A", "nodes": 5, "cores_per_node": 8}]}
    assert files.evolve(figure_1(), too_many)["refused"][0]["earliest"] is None


def test_the_text_says_who_is_refused_why_and_when(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    asked = {"format": "aucsched-requests/1", "requests": [{"job": "B", "nodes": 4, "cores_per_node": 8}]}
    line = ["evolve", files.write("s.json", figure_1(jobs=[])), "--requests", files.write("r.json", asked)]
    assert run(line) == 0
    assert capsys.readouterr().out == "refused  B: not enough resources are free\n0 jobs wait\n"
    asked["requests"] = [{"job": "A", "nodes": 4, "cores_per_node": 8}]
    assert run([*line[:-1], files.write("r.json", asked)]) == 0
    assert capsys.readouterr().out.startswith(
        "refused  A: not enough resources are free; could be there at 14400\n"
    )


def test_memory_goes_back_with_all_of_a_nodes_cores(files: Files) -> None:
    held, after = {"cores": 8, "memory_mib": 100}, files.folder / "after.json"
    running = [{"id": "A", "nodes": {"n[0-1]": held}, "end_time": 8 * HOUR}]
    nodes = [{"name": "n[0-5]", "cores": 8, "memory_mib": 1000}]
    asked = {"releases": [{"job": "A", "nodes": {"n0": 3, "n1": 8}}]}
    files.evolve(figure_1(nodes=nodes, running=running, jobs=[]), asked, "--snapshot-out", str(after))
    free = {node.name: node.free for node in load_snapshot(str(after)).nodes}
    assert (free["n0"].cores, free["n0"].memory_mib) == (3, 900)
    assert (free["n1"].cores, free["n1"].memory_mib) == (8, 1000)


def test_releases_come_first(files: Files) -> None:
    out = files.folder / "after.json"
    asked = {
        "requests": [{"job": "A", "nodes": 3, "cores_per_node": 8}],
        "releases": [{"job": "B", "nodes": {"n3": 8}}],
    }
    found = files.evolve(figure_1(), asked, "--snapshot-out", str(out))
    assert sorted(found["granted"][0]["nodes"]) == ["n3", "n4", "n5"]
    after = {job.id: set(job.nodes) for job in load_snapshot(out).running}
    assert after == {"A": {"n0", "n1", "n3", "n4", "n5"}, "B": {"n2"}}


def test_a_job_that_gives_all_back_has_ended(files: Files) -> None:
    out = files.folder / "after.json"
    found = files.evolve(
        figure_1(), {"releases": [{"job": "B", "nodes": {"n[2-3]": 8}}]}, "--snapshot-out", str(out)
    )
    assert [one["job"] for one in found["started"]] == ["C"]
    assert {job.id for job in load_snapshot(out).running} == {"A", "C"}


def test_preemptible_before_malleable(files: Files) -> None:
    snapshot = figure_1(jobs=[])
    snapshot["running"] += [
        {"id": "L", "nodes": {"n4": _node(8)}, "end_time": 9 * HOUR},
        {"id": "M", "nodes": {"n5": _node(4)}, "end_time": 9 * HOUR},
    ]
    more = {"preemptible": ["M", "L"], "malleable": [{"job": "B", "min_nodes": 1}]}

    def ask(nodes: int) -> dict[str, Any]:
        asked = {"requests": [{"job": "A", "nodes": nodes, "cores_per_node": 8}], **more}
        return files.evolve(snapshot, asked)

    (one,) = ask(1)["granted"]
    assert (one["preempted"], one["shrunk"]) == (["M"], {})
    (two,) = ask(2)["granted"]
    assert (two["preempted"], two["shrunk"]) == (["M", "L"], {})
    (three,) = ask(3)["granted"]
    assert (three["preempted"], three["shrunk"]) == (["M", "L"], {"B": ["n3"]})
    assert sorted(three["nodes"]) == ["n3", "n4", "n5"]
    assert ask(4)["refused"]
    del more["preemptible"]
    (shrunk,) = ask(1)["granted"]
    assert (shrunk["preempted"], shrunk["shrunk"]) == ([], {"B": ["n3"]})


def test_only_as_many_stop_as_are_needed(files: Files) -> None:
    snapshot = figure_1(jobs=[])
    snapshot["running"] += [
        {"id": "L", "nodes": {"n4": _node(4)}, "end_time": 9 * HOUR},
        {"id": "M", "nodes": {"n4": _node(4), "n5": _node(8)}, "end_time": 9 * HOUR},
    ]
    asked = {"requests": [{"job": "A", "nodes": 1, "cores_per_node": 8}], "preemptible": ["L", "M"]}
    assert files.evolve(snapshot, asked)["granted"][0]["preempted"] == ["M"]


def test_a_job_that_a_request_before_stops_gets_nothing(files: Files) -> None:
    snapshot = figure_1(jobs=[])
    snapshot["running"] += [{"id": "L", "nodes": {"n4": _node(8)}, "end_time": 9 * HOUR}]
    asks = [{"job": "A", "nodes": 2, "cores_per_node": 8}, {"job": "L", "cores": 1}]
    out = files.folder / "out.json"
    found = files.evolve(snapshot, {"requests": asks, "preemptible": ["L"]}, "--snapshot-out", str(out))
    assert [one["preempted"] for one in found["granted"]] == [["L"]]
    assert [(one["job"], one["earliest"]) for one in found["refused"]] == [("L", None)]
    assert {job.id for job in load_snapshot(out).running} == {"A", "B"}


def test_two_preemptible_jobs_do_not_stop_each_other(files: Files) -> None:
    snapshot = figure_1(jobs=[])
    snapshot["running"] += [{"id": "L", "nodes": {"n[4-5]": _node(8)}, "end_time": 9 * HOUR}]

    def ask(job: str) -> list[list[str]]:
        asked = {"requests": [{"job": job, "cores": 1}], "preemptible": ["L", "B"]}
        return [one["preempted"] for one in files.evolve(snapshot, asked)["granted"]]

    assert (ask("A"), ask("B"), ask("L")) == ([["L"]], [["L"]], [])


def test_a_node_that_a_job_has_given_up_is_not_its_own(files: Files) -> None:
    snapshot = figure_1(jobs=[])
    snapshot["running"] += [{"id": "L", "nodes": {"n[4-5]": _node(8)}, "end_time": 9 * HOUR}]
    asks = [{"job": "A", "cores": 2}, {"job": "B", "nodes": 1, "cores_per_node": 4}]
    found = files.evolve(snapshot, {"requests": asks, "malleable": [{"job": "B", "min_nodes": 1}]})
    assert [(one["job"], list(one["nodes"])) for one in found["granted"]] == [("A", ["n3"]), ("B", ["n3"])]


def test_backfill_beside_a_grant(files: Files) -> None:
    snapshot = figure_1()
    snapshot["jobs"].append(
        {"id": "D", "priority": 1, "nodes": 1, "cores_per_node": 8, "time_limit_s": HOUR, "user": "d"}
    )
    asked = {"requests": [{"job": "A", "nodes": 1, "cores_per_node": 8}]}
    found = files.evolve(snapshot, asked)
    assert [job["job"] for job in found["granted"]] == ["A"]
    assert [job["job"] for job in found["started"]] == ["D"]
    text = files.folder / "s.json"
    assert run(["evolve", str(text), "--requests", str(files.folder / "r.json")]) == 0


def test_limits_of_a_site_hold_for_requests(files: Files) -> None:
    for most, granted in ((32, 1), (31, 0)):
        limits = [{"name": "a", "jobs": {"user": "a"}, "max": {"cores": most, "jobs": 1}}]
        found = files.evolve(figure_1(limits=limits), TWO_NODES)
        assert len(found["granted"]) == granted


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"requests": [{"job": "X", "cores": 1}]}, "requests[0].job: 'X' does not run"),
        ({"requests": [{"job": "A", "cores": 1}, {"job": "A", "cores": 2}]}, "one request at a time"),
        ({"requests": [{"job": "A", "cores": 0}]}, "requests[0].cores"),
        ({"requests": [{"job": "A"}]}, "requests[0]"),
        ({"requests": [{"job": "A", "nodes": 1}]}, "cores_per_node"),
        ({"requests": [{"job": "A", "cores": 1, "nodes": 1, "cores_per_node": 1}]}, "either"),
        ({"releases": [{"job": "B", "nodes": {"n3": 9}}]}, "n3"),
        ({"releases": [{"job": "B", "nodes": {"n0": 1}}]}, "n0"),
        ({"releases": [{"job": "B", "nodes": {}}]}, "releases[0].nodes: nothing is given back"),
        ({"releases": [{"job": "B", "nodes": {"n1": 0}}]}, "releases[0].nodes.n1: 0 is below 1"),
        ({"preemptible": ["B", "B"]}, "preemptible[1]"),
        ({"malleable": [{"job": "B", "min_nodes": 3}]}, "above the 2 nodes"),
        ({"malleable": [{"job": "B", "min_nodes": 0}]}, "min_nodes"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_bad_requests_are_refused(files: Files, asked: dict[str, Any], said: str) -> None:
    assert said in files.refused(figure_1(), asked)


def test_a_snapshot_without_time(files: Files) -> None:
    snapshot = figure_1()
    del snapshot["time"]
    assert "time" in files.refused(snapshot, TWO_NODES)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    running=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3), st.integers(1, 9)), max_size=3),
    queue=st.lists(st.tuples(st.integers(1, 48), st.integers(1, 9)), max_size=5),
    cores=st.integers(1, 40),
    limit=st.integers(1, 9),
    serve_by=st.sampled_from(["iteration", "auction"]),
)
def test_no_core_is_held_twice_and_no_limit_exceeded(
    files: Files,
    running: list[tuple[int, int, int]],
    queue: list[tuple[int, int]],
    cores: int,
    limit: int,
    serve_by: str,
) -> None:
    snapshot = figure_1(
        running=[
            {
                "id": f"R{number}",
                "nodes": {f"n{(first + step) % 6}": _node(2) for step in range(count)},
                "end_time": end * HOUR,
                "user": "r",
            }
            for number, (first, count, end) in enumerate(running)
        ],
        jobs=[
            {"id": f"J{number}", "priority": 1, "cores": wants, "time_limit_s": hours * HOUR, "user": "q"}
            for number, (wants, hours) in enumerate(queue)
        ],
    )
    out = files.folder / "after.json"
    asked = {"requests": [{"job": f"R{number}", "cores": cores} for number in range(len(running))]}
    options = ["--fairness", f"target:{limit * HOUR}", "--snapshot-out", str(out), "--serve-by", serve_by]
    found = files.evolve(snapshot, asked, *options)
    assert sum(delay["seconds"] for one in found["granted"] for delay in one["delays"]) <= limit * HOUR
    after = load_snapshot(out)  # which refuses nodes that are held twice
    held = {job.id: sum(use.cores for use in job.nodes.values()) for job in after.running}
    for one in found["granted"]:
        (before,) = [job for job in snapshot["running"] if job["id"] == one["job"]]
        assert held[one["job"]] == 2 * len(before["nodes"]) + cores
    assert sum(held.values()) + sum(node.free.cores for node in after.nodes) == 48
    assert len(found["granted"]) + len(found["refused"]) == len(running)
