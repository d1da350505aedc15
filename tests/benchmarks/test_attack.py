"""The attack itself: its checker finds what is wrong, its harness outlives its cases, good files are good."""

from __future__ import annotations

import copy
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import attack_lines
import msgspec
import pytest
from attack_cases import Outcome, Section, Tally, attack
from attack_checker import problems
from attack_command import inside, judge, run_command
from attack_inputs import READERS, Reader
from attack_lines import command_line
from attack_readers import mutant
from attack_snapshots import TOUCHES, hostile_document
from attack_steps import random_options, run_case

from aucsched import schedule
from aucsched.formats.native.cluster_file import parse_snapshot

ROOT = Path(__file__).parents[2]

SNAPSHOT: dict[str, Any] = {
    "format": "aucsched-snapshot/1",
    "time": "2026-11-20T09:30:00Z",
    "nodes": [
        {"name": "a", "cores": 8, "gres": {"gpu:x": 2}, "memory_mib": 1000, "partitions": ["p"]},
        {"name": "b", "cores": 8, "gres": {"gpu:x": 2, "gpu:y": 2}, "features": ["f"], "partitions": ["p"]},
        {"name": "c", "cores": 8, "free_cores": 4, "partitions": ["p"]},
        {"name": "d", "cores": 8, "state": "down", "features": ["f"], "partitions": ["p"]},
    ],
    "topology": {
        "kind": "tree",
        "switches": [
            {"name": "s1", "nodes": "a,b"},
            {"name": "s2", "nodes": "c,d"},
            {"name": "s", "switches": "s1,s2"},
        ],
    },
    "partitions": [{"name": "p", "max_nodes": 2, "max_time_limit_s": 100}],
    "reservations": [
        {"name": "r", "nodes": "c", "start": "2026-11-20T09:31:00Z", "end": "2026-11-20T12:00:00Z"}
    ],
    "licenses": {"m": {"total": 3, "free": 1}},
    "running": [{"id": "9", "nodes": {"a": {"cores": 2, "gres": {"gpu:x": 1}, "memory_mib": 100}}}],
    "jobs": [],
}
JOB: dict[str, Any] = {"id": "1", "priority": 5, "cores": 4}


def held(**nodes: dict[str, Any]) -> dict[str, Any]:
    return nodes


#: what the job asks for beside its cores, what it was given, what is wrong
WRONG: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, held(a={"cores": 3}), "instead of 4"),
    ({"cores": 7}, held(a={"cores": 7}), "6 are free"),
    ({}, held(d={"cores": 4}), "is down"),
    ({"hold": "held"}, held(a={"cores": 4}), "must not start"),
    ({"priority": 0}, held(a={"cores": 4}), "must not start"),
    ({}, held(z={"cores": 4}), "stands on"),
    ({}, {}, "stands on nothing"),
    ({"features": ["f"]}, held(a={"cores": 4}), "lacks a feature"),
    ({"excluded_nodes": "a"}, held(a={"cores": 4}), "is excluded"),
    ({"required_nodes": "b"}, held(a={"cores": 4}), "required node is missing"),
    ({"exclusive": True}, held(a={"cores": 8, "gres": {"gpu:x": 2}}), "not empty"),
    ({"exclusive": True}, held(b={"cores": 4, "gres": {"gpu:x": 2, "gpu:y": 2}}), "4 of the 8 cores"),
    ({"exclusive": True}, held(b={"cores": 8}), "does not hold all gres"),
    ({"memory_mib_per_core": 10}, held(a={"cores": 4, "memory_mib": 30}), "30 MiB"),
    ({"memory_mib_per_node": 950}, held(a={"cores": 4, "memory_mib": 950}), "900 are free"),
    ({"time_limit_s": 90}, held(c={"cores": 4}), "runs into the reservation"),
    ({"partition": "q"}, held(a={"cores": 4}), "no partition"),
    ({"partition": "p", "time_limit_s": 101}, held(a={"cores": 4}), "no partition"),
    ({"partition": "p", "cores": 3}, held(a={"cores": 1}, b={"cores": 1}, c={"cores": 1}), "no partition"),
    ({"nodes": 2}, held(a={"cores": 4}), "1 nodes instead of 2"),
    ({"nodes": 2, "cores_per_node": 2}, held(a={"cores": 3}, b={"cores": 1}), "instead of 2 on each"),
    ({"min_cores_per_node": 3}, held(a={"cores": 2}, b={"cores": 2}), "2 cores on a node"),
    ({"cores_per_task": 2}, held(a={"cores": 3}, b={"cores": 1}), "is split"),
    ({"cores": 2, "contiguous": True}, held(a={"cores": 1}, c={"cores": 1}), "not contiguous"),
    ({"max_switches": 1}, held(b={"cores": 2}, c={"cores": 2}), "2 leaf switches"),
    ({"gres_per_node": {"gpu": 1}}, held(a={"cores": 4}), "asked for gpu"),
    ({"gres_per_node": {"gpu": 1}}, held(b={"cores": 4, "gres": {"gpu:x": 1, "gpu:y": 1}}), "mixes"),
    ({"gres_total": {"gpu:y": 1}}, held(b={"cores": 4, "gres": {"gpu:y": 2}}), "2 in all"),
    ({"gres_per_node": {"gpu:x": 2}}, held(a={"cores": 4, "gres": {"gpu:x": 2}}), "1 are free"),
    ({}, held(b={"cores": 4, "gres": {"gpu:y": 1}}), "did not ask for"),
    ({"licenses": {"m": 2}}, held(a={"cores": 4}), "1 are free"),
]


def document(award: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {
        "started": [{"job": "1", "nodes": award, "bid": {}}],
        "pending": [],
        "objective": {"priority": 5.0, "bound": 5.0},
        "status": "optimal",
        "window": {"size": 1},
        **members,
    }


@pytest.mark.parametrize(("asked", "award", "wrong"), WRONG)
def test_the_checker_finds_what_is_wrong_with_an_award(
    asked: dict[str, Any], award: dict[str, Any], wrong: str
) -> None:
    snapshot = copy.deepcopy(SNAPSHOT)
    snapshot["jobs"] = [{**JOB, **asked}]
    assert wrong in " ".join(text for _, text in problems(snapshot, document(award), 100, "priority"))


def test_the_checker_finds_lost_jobs_wrong_sums_and_wrong_claims() -> None:
    snapshot = {**SNAPSHOT, "jobs": [JOB, {**JOB, "id": "2"}]}
    good = document(held(a={"cores": 4}))
    pending = {"pending": [{"job": "2", "reason": "outbid", "detail": "why"}]}

    def rules(**members: Any) -> list[str]:
        return [rule for rule, _ in problems(snapshot, {**good, **members}, 100, "priority")]

    whole = {"window": {"size": 2}}
    assert rules(**pending, **whole) == []
    assert rules(**whole) == ["lost"]
    assert rules(**pending, started=[*good["started"], *good["started"]], **whole)[0] == "lost"
    assert rules(**pending, **whole, objective={"priority": 6.0, "bound": None}) == ["invalid"]
    assert rules(**pending, **whole, objective={"priority": 5.0, "bound": 4.0}) == ["invalid"]
    assert rules(**pending) == ["claim"]


def test_the_checker_agrees_with_schedules_of_random_snapshots() -> None:
    started = 0
    for seed in range(30):
        members = hostile_document(seed)
        if len(members["nodes"]) > 24 or seed == 0:
            continue
        try:
            result = schedule(parse_snapshot(msgspec.json.encode(members)), model="aucsched3", work_limit=3)
        except Exception:  # noqa: BLE001, S112 - what stops a step is the attack's business
            continue
        started += len(result.started)
        assert not list(problems(members, result.to_dict(), 100, "priority"))
    assert started > 20


def test_hostile_snapshots_are_legal_and_every_touch_is_used() -> None:
    for seed in range(150):
        parse_snapshot(msgspec.json.encode(hostile_document(seed)))
    assert len({touch.__name__ for touch in TOUCHES}) == len(TOUCHES)


def _case(seed: int, folder: Path) -> Outcome:
    del folder
    outcome = Outcome(replay=f"case {seed}", counts=Counter(seen=1))
    if seed == 1:
        os._exit(9)
    if seed == 2:
        time.sleep(60)
    if seed == 3:
        raise RuntimeError("the section's own")
    if seed == 4:
        bytearray(8 << 30)
    if seed == 5:
        outcome.fail("rule", "detail")
    return outcome


def test_crashes_hangs_errors_and_memory_are_failures_of_their_case_only(tmp_path: Path) -> None:
    section = Section(name="mine", count=7, quick=7, run=_case, hangs_after_s=2.0)
    reported: list[int] = []

    def tell(tally: Tally, seed: int, outcome: Outcome) -> None:
        del tally, outcome
        reported.append(seed)

    tally = attack(section, range(7), tmp_path, tell=tell)
    assert reported == list(range(7))
    found = {seed: outcome.failures[0].rule for seed, outcome in tally.failed}
    assert found == {1: "crash", 2: "hangs", 3: "section", 4: "section", 5: "rule"}
    assert "MemoryError" in dict(tally.failed)[4].failures[0].detail
    assert tally.counts["seen"] == 3


def test_a_command_is_run_and_judged(tmp_path: Path) -> None:
    with inside(tmp_path):
        good, bad = run_command(["--version"]), run_command(["check", "absent.json"])
    assert (good.code, good.err) == (0, b"")
    assert good.out.startswith(b"aucsched")
    assert (bad.code, bad.out) == (2, b"")
    outcome = Outcome()
    judge(["check", "absent.json"], bad, outcome)
    assert not outcome.failures
    bad.err += b"and a second line\n"
    judge([], bad, outcome)
    bad.err, bad.out = b"one \x1b[31m line\n", b"half"
    judge([], bad, outcome)
    bad.code, bad.cost.wall_s, bad.cost.cpu_s, bad.cost.peak_mib = 1, 3.0, 3.0, 2000.0
    judge([], bad, outcome)
    rules = {failure.rule for failure in outcome.failures}
    assert rules == {"lines", "text", "half", "exit", "slow", "memory"}


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_good_files_are_read_by_every_command_of_their_reader(reader: Reader, tmp_path: Path) -> None:
    for name, content in reader.files(6).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    for line in reader.commands:
        with inside(tmp_path):
            ran = run_command(line.split())
        assert (ran.code, ran.escaped) == (0, ""), ran.err
    mutated, _ = mutant(reader, 3)
    assert mutated == mutant(reader, 3)[0]


def test_seeds_decide_and_cases_differ() -> None:
    assert [command_line(seed) for seed in range(40)] == [command_line(seed) for seed in range(40)]
    assert len({tuple(command_line(seed)) for seed in range(200)}) > 150
    rng = [random_options(random.Random(seed)) for seed in range(300)]
    assert {one["model"] for one in rng} == {"ipsched", "aucsched1", "aucsched2", "aucsched3"}
    assert {one.get("strategy") for one in rng} == {None, "exact", "anytime"}


def test_a_server_with_a_good_snapshot_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = ["dynsched", "snapshot.json", "--listen", "unix:s"]
    monkeypatch.setattr(attack_lines, "command_line", lambda _: line)
    monkeypatch.setattr(attack_lines, "_files", lambda: {"snapshot.json": json.dumps(SNAPSHOT).encode()})
    outcome = attack_lines.run_case(0, tmp_path)
    assert (outcome.failures, outcome.counts["done"]) == ([], 1)


def test_a_step_is_judged(tmp_path: Path) -> None:
    outcome = run_case(1, tmp_path)
    assert outcome.replay.startswith("aucsched schedule steps-1.json")
    assert outcome.files


def test_the_program_fails_when_a_case_does(tmp_path: Path) -> None:
    program = [sys.executable, str(ROOT / "benchmarks" / "attack.py"), "--keep", str(tmp_path / "kept")]
    done = subprocess.run(
        [*program, "--only", "readers:snapshot", "--count", "3"], capture_output=True, text=True, check=False
    )
    assert "readers:snapshot: 3 cases, seeds 0 to 2" in done.stdout, done.stderr
    assert done.returncode == ("FAILED" in done.stdout)
