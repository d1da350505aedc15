"""The published instance set, and the comparison of solvers over it."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import compare
import journal
import known
import mps
import msgspec
import numpy as np
import peers
import pytest
import quality
import rows
from instances.families import FAMILIES, auction_text
from instances.generate import KINDS, snapshot_bytes
from support.build import ALONE

from aucsched import Request, Snapshot, schedule
from aucsched.formats.auction_file import load_auction
from aucsched.formats.native.cluster_file import parse_snapshot

BENCHMARKS = Path(compare.__file__).parent
GENERATED = [name for name, kind in KINDS.items() if not kind.example]
#: A maximisation of 3a + 2b + 4c: a and b exclude each other, 2a + 3c ≤ 4.
PROGRAM = """* Minimise
NAME
ROWS
 N  Obj
 L  r0
 L  r1
COLUMNS
    MARK0000  'MARKER'                 'INTORG'
    a         Obj       -3             r0        1
    a         r1        2
    b         Obj       -2             r0        1
    c         Obj       -4
    c         r1        3
    MARK0001  'MARKER'                 'INTEND'
RHS
    RHS_V     r0        1              r1        4
BOUNDS
 BV BOUND     a
 BV BOUND     b
 BV BOUND     c
ENDATA
"""


def loaded(kind: str, seed: int) -> Snapshot:
    return parse_snapshot(snapshot_bytes(kind, seed))


def program_in(folder: Path, text: str = PROGRAM) -> mps.Program:
    file = folder / "program.mps"
    file.write_text(text, encoding="utf-8")
    return mps.read_mps(file)


def answer(values: dict[str, float] | None, bound: float | None = None) -> peers.Answer:
    return peers.Answer(status="done", bound=bound, seconds=1.0, values=values)


def settings(*solvers: str) -> compare.Settings:
    return compare.Settings(ours=(60.0,), seconds=60.0, strategy="default", solvers=solvers)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_bytes_in_any_process(kind: str) -> None:
    command = [sys.executable, str(BENCHMARKS / "instances" / "generate.py"), kind, "--seed", "3"]
    printed = subprocess.run(command, check=True, capture_output=True).stdout
    assert printed == snapshot_bytes(kind, 3)


@pytest.mark.parametrize("kind", GENERATED)
def test_another_seed_gives_another_instance(kind: str) -> None:
    assert snapshot_bytes(kind, 0) != snapshot_bytes(kind, 1)


@pytest.mark.parametrize(
    ("kind", "digest"),
    [
        ("tsubame", "e2fefeefbaa7942f"),
        ("tree1024", "9e6160a2a9061f11"),
        ("frontier", "94f09e6983e11b2c"),
        ("fragmented", "694e8a4eda99ea3c"),
        ("tiny", "5cccb32ef59583f4"),
    ],
)
def test_published_instances_stay_as_they_are(kind: str, digest: str) -> None:
    assert hashlib.sha256(snapshot_bytes(kind, 0)).hexdigest()[:16] == digest


@pytest.mark.parametrize(
    ("kind", "nodes", "cores", "gpus", "levels", "jobs"),
    [
        ("tsubame", 1408, 12, 3, 3, 100),
        ("tree1024", 1024, 16, 3, 3, 100),
        ("fragmented", 1024, 16, 3, 3, 100),
        ("frontier", 9408, 64, 8, 3, 1000),
    ],
)
def test_sizes_are_what_they_say(
    kind: str, nodes: int, cores: int, gpus: int, levels: int, jobs: int
) -> None:
    snapshot = loaded(kind, 1)
    assert len(snapshot.nodes) == nodes
    assert {(node.total.cores, node.total.gres["gpu"]) for node in snapshot.nodes} == {(cores, gpus)}
    assert len(snapshot.jobs) == KINDS[kind].window == jobs
    assert snapshot.switches is not None
    assert len({switch.name[:2] for switch in snapshot.switches}) == levels
    leaves = [len(switch.nodes) for switch in snapshot.switches if switch.nodes]
    assert leaves == [16] * (nodes // 16)


@pytest.mark.parametrize("seed", range(5))
def test_demand_exceeds_what_is_free_and_that_lies_in_fragments(seed: int) -> None:
    snapshot = loaded("tsubame", seed)
    free = [node.free.cores for node in snapshot.nodes]
    assert sum(free) / (1408 * 12) == pytest.approx(0.4, abs=0.001)
    assert sum(0 < count < 12 for count in free) > 1408 / 2
    assert sum(_cores(snapshot)) > 1.5 * sum(free)


def _cores(snapshot: Snapshot) -> list[int]:
    return [_cores_of(job.request) for job in snapshot.jobs]


def _cores_of(request: Request) -> int:
    if request.cores is not None:
        return request.cores
    assert request.nodes is not None
    assert request.cores_per_node is not None
    return request.nodes.minimum * request.cores_per_node


def test_almost_all_nodes_of_the_hard_instance_are_partly_busy() -> None:
    free = [node.free.cores for node in loaded("fragmented", 0).nodes]
    assert sum(count < 16 for count in free) > 0.95 * len(free)
    assert np.median(free) <= 4


def test_a_program_is_read_as_the_auction_wrote_it(tmp_path: Path) -> None:
    snapshot = loaded("tiny", 0)
    exported = tmp_path / "program.mps"
    caps: dict[str, Any] = {"max_bids": 120, "max_bids_per_job": 10}
    result = schedule(snapshot, **ALONE, **caps, strategy="exact", export=str(exported))
    program = mps.read_mps(exported)
    assert len(program.names) == result.sizes.variables
    assert len(program.row_lower) == result.sizes.constraints
    assert len(program.value) == result.sizes.nonzeros
    priorities = {float(job.priority) for job in snapshot.jobs}
    assert set((-program.objective).tolist()) <= priorities


def test_a_right_solution_counts_for_what_it_is_worth(tmp_path: Path) -> None:
    row = rows.judged("one", program_in(tmp_path), answer({"b": 1.0, "c": 1.0 + 1e-9}, 6.6))
    assert (row.value, row.jobs, row.bound) == (6.0, 2, 6.6)
    assert row.gap == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"a": 1.0, "b": 1.0}, "1 of 2 rows are broken"),
        ({"a": 1.0, "c": 1.0}, "1 of 2 rows are broken"),
        ({"c": 0.5}, "a value is not an integer"),
        ({"c": 2.0}, "a value is out of its bounds"),
        ({"d": 1.0}, "there is no column d"),
    ],
)
def test_a_wrong_solution_is_refused(tmp_path: Path, values: dict[str, float], why: str) -> None:
    row = rows.judged("one", program_in(tmp_path), answer(values, 7.0))
    assert row.value is None
    assert row.note == f"refused: {why}"


def test_a_program_that_is_not_understood_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the column a is not an integer"):
        program_in(tmp_path, PROGRAM.replace("    MARK0000  'MARKER'                 'INTORG'\n", ""))
    with pytest.raises(ValueError, match="the section RANGES is not read"):
        program_in(tmp_path, PROGRAM.replace("BOUNDS\n", "RANGES\n    R r0 1\nBOUNDS\n"))


@pytest.mark.parametrize("solver", ["aucsched", *peers.PEERS])
def test_every_solver_finds_the_best_of_a_tiny_instance(solver: str) -> None:
    if solver != "aucsched" and solver not in peers.installed():
        pytest.skip(f"{solver} is not installed")
    program, (row,) = compare.compare("tiny", 0, settings(solver))
    assert (row.value, row.jobs) == (452_253, 9)
    assert row.bound == pytest.approx(452_253)
    entry = compare.found(program, [row])
    assert entry is not None
    assert known.verdict(program, entry) == ""


def test_the_command_prints_a_row_for_each_solver(tmp_path: Path) -> None:
    output = tmp_path / "table.md"
    command = [sys.executable, str(BENCHMARKS / "compare.py"), "tiny", "--solvers", "aucsched,highs"]
    printed = subprocess.run(
        [*command, "--ours", "60", "--seconds", "60", "--output", str(output)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    shown = [line.split(" | ")[:3] for line in printed.splitlines() if line.startswith(("| auc", "| hi"))]
    assert shown == [["| aucsched 60 s", "452,253", "452,253"], ["| highs 60 s", "452,253", "452,253"]]
    assert output.read_text(encoding="utf-8").split() == printed.split()


def test_a_process_over_its_time_is_killed_with_all_it_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "GRACE_S", 0.5)
    child = "import subprocess; subprocess.run(['sleep', '60'])"
    assert compare.run_limited([sys.executable, "-c", child], 0.02) == "killed"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_no_solver_outlives_a_comparison(number: int, tmp_path: Path) -> None:
    place, done = tmp_path / "pid", tmp_path / "done"
    child = (
        f"import os, time, pathlib; pathlib.Path({str(place)!r}).write_text(str(os.getpid())); time.sleep(60)"
    )
    program = (
        "import pathlib, sys, compare\n"
        f"def run(_):\n compare.run_limited([sys.executable, '-c', {child!r}], 60)\n"
        f" pathlib.Path({str(done)!r}).touch()\n"
        "compare.compare = lambda *_: list(compare.ThreadPoolExecutor(1).map(run, [0]))\n"
        "sys.argv = ['compare.py', 'tiny', '--solvers', 'aucsched']\n"
        "compare.main()"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=BENCHMARKS, stdout=subprocess.DEVNULL) as main:
        while not (place.exists() and place.read_text()):
            time.sleep(0.02)
        main.send_signal(number)
        assert main.wait(20) == 128 + number
    with pytest.raises(ProcessLookupError):
        os.kill(int(place.read_text()), 0)
    assert not done.exists()


def test_a_solver_that_fails_says_why_in_its_row() -> None:
    child = "raise SystemExit('no such thing')"
    assert compare.run_limited([sys.executable, "-c", child], 5.0) == "failed: no such thing"


def test_best_known_keeps_the_better_value_and_the_lesser_bound(tmp_path: Path) -> None:
    file = tmp_path / "best_known.json"
    first = known.Known(value=10.0, by="x", bound=14.0, bound_by="x", program="p")
    known.update({"one/0": first}, file)
    known.update({"one/0": known.Known(value=11.0, by="y", bound=15.0, bound_by="y", program="p")}, file)
    known.update({"one/0": known.Known(value=9.0, by="z", program="p")}, file)
    best = known.Known(value=11.0, by="y", bound=14.0, bound_by="x", program="p")
    assert known.best_known(file) == {"one/0": best}
    other = known.Known(value=5.0, by="x", bound=6.0, bound_by="x", program="q")
    known.update({"one/0": other}, file)
    assert known.best_known(file) == {"one/0": other}


def test_a_bound_below_a_checked_value_and_awards_of_other_bids_do_not_count(tmp_path: Path) -> None:
    program = program_in(tmp_path)
    judged = [
        rows.Row(solver="wrong", note="", value=4.0, bound=5.0, columns=(2,)),
        rows.Row(solver="right", note="", value=6.0, bound=7.0, columns=(1, 2)),
        rows.Row(solver="beside", note="", value=8.0, bound=8.0, in_program=False, columns=(0,)),
    ]
    entry = compare.found(program, judged)
    assert entry is not None
    assert (entry.value, entry.bound, entry.bound_by) == (6.0, 7.0, "right")
    assert "| wrong | 4 | (5) |" in rows.table("one", program, judged, None)


def test_what_is_published_is_known_of_the_program_as_it_is_now() -> None:
    entries = known.best_known()
    program, _ = compare.compare("tiny", 0, settings())
    assert known.verdict(program, entries["tiny/0"]) == ""
    for name, entry in entries.items():
        kind, _, seed = name.partition("/")
        assert kind in KINDS or kind in FAMILIES
        assert entry.columns
        assert seed.isdigit()
        assert entry.bound is None or entry.bound >= entry.value


@pytest.mark.parametrize(
    ("family", "digest"),
    [
        ("regions", "c9caee69479c9e63"),
        ("arbitrary", "0105f3330b161192"),
        ("L4", "c6a030623a781bce"),
        ("L6", "6e328fd3f892a18e"),
        ("matching", "1d6cad8a16d084e5"),
        ("paths", "aeff7735a75825fa"),
        ("scheduling", "0ee56ed0f32c5bc0"),
    ],
)
def test_published_auctions_stay_as_they_are(family: str, digest: str) -> None:
    assert hashlib.sha256(auction_text(family, 0, 200, 64).encode()).hexdigest()[:16] == digest


@pytest.mark.parametrize("family", FAMILIES)
def test_bids_of_a_family_are_read_and_none_is_dominated(family: str, tmp_path: Path) -> None:
    file = tmp_path / "auction.txt"
    file.write_text(auction_text(family, 3, 150, 49), encoding="utf-8")
    auction = load_auction(file)
    bids = [(frozenset(items), value) for _, value, items in auction.bids]
    assert len(bids) >= 150
    assert all(any(int(item) < 49 for item in items) for items, _ in bids)
    for place, (items, value) in enumerate(bids):
        others = (bid for at, bid in enumerate(bids) if at != place)
        assert not any(other <= items and worth >= value for other, worth in others)


def test_bids_of_the_families_are_of_the_kind_that_the_paper_describes() -> None:
    def bids(family: str) -> list[tuple[int, list[int]]]:
        lines = [line.split() for line in auction_text(family, 5, 300, 64).splitlines()]
        listed = [line for line in lines if line[-1] == "#"]
        return [(int(line[1]), [int(good) for good in line[2:-1] if int(good) < 64]) for line in listed]

    assert all(goods == list(range(goods[0], goods[-1] + 1)) for _, goods in bids("scheduling"))
    # A flight starts at one airport and lands later at another: goods are time by time.
    assert all(
        len(goods) == 2 and goods[0] // 4 < goods[1] // 4 and goods[0] % 4 != goods[1] % 4
        for _, goods in bids("matching")
    )
    # On a map of 8 × 8 most goods of a bundle have a neighbour in it.
    near = [
        any(max(abs(one // 8 - two // 8), abs(one % 8 - two % 8)) == 1 for two in goods)
        for _, goods in bids("regions")
        if len(goods) > 1
        for one in goods
    ]
    assert np.mean(near) > 0.9
    assert np.mean([len(goods) for _, goods in bids("L6")]) > np.mean([len(goods) for _, goods in bids("L4")])
    assert all(1000 * len(goods) <= price <= 1_000_000 * len(goods) for price, goods in bids("L4"))


def test_what_stands_in_the_journal_is_not_run_again(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    first = settings("aucsched", "highs")
    first = compare.Settings(
        ours=(1.0, 2.0), seconds=5.0, strategy="default", solvers=first.solvers, journal=file, commit="a"
    )
    program, ran = compare.compare("tiny", 0, first)
    assert [row.name for row in ran] == ["aucsched 1 s", "aucsched 2 s", "highs 5 s"]
    runs = journal.runs_in(file)
    assert [(run.value, run.limit) for run in runs] == [(452_253, 1.0), (452_253, 2.0), (452_253, 5.0)]
    # Cut off in the middle of a line, as by a kill.
    file.write_bytes(file.read_bytes() + b'{"instance": "ti')
    digest = program.digest()
    assert set(journal.done(file, digest, "a")) == {("aucsched", 1.0), ("aucsched", 2.0), ("highs", 5.0)}
    assert set(journal.done(file, digest, "b")) == {("highs", 5.0)}
    assert not journal.done(file, "another", "a")
    again = compare.compare("tiny", 0, first)[1]
    assert [row.cpu for row in again] == [run.cpu for run in runs]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, ""),
        ({"value": 7.0}, "its solution brings 6, not 7"),
        ({"columns": "0 1"}, "1 of 2 rows are broken"),
        ({"columns": "9"}, "tuple index out of range"),
        ({"bound": 5.0}, "its bound 5 is below its value"),
        ({"program": "x"}, "its program is x, made anew it is"),
    ],
)
def test_the_checker_believes_no_entry(tmp_path: Path, change: dict[str, object], problem: str) -> None:
    program = program_in(tmp_path)
    entry = known.Known(value=6.0, by="me", bound=7.0, program=program.digest(), columns="1 2")
    said = known.verdict(program, msgspec.structs.replace(entry, **change))
    assert said.startswith(problem)
    assert bool(said) == bool(problem)


def test_the_page_of_quality_has_the_mean_gap_of_each_family_and_what_was_proved() -> None:
    def run(instance: str, solver: str, value: float | None, bound: float) -> journal.Run:
        return journal.Run(
            instance=instance,
            program="p",
            commit="abc" if solver == "aucsched" else "other",
            solver=solver,
            limit=3.0,
            value=value,
            bound=bound,
            seconds=3.0,
            cpu=3.0,
            jobs=1,
            note="",
        )

    best = {name: known.Known(value=200.0, by="x", program="p") for name in ("a/0", "a/1", "b/0")}
    runs = [
        run("a/0", "aucsched", 200.0, 200.0),
        run("a/1", "aucsched", 198.0, 210.0),
        run("b/0", "aucsched", 200.0, 201.0),
        run("a/0", "highs", None, 300.0),
        run("c/0", "highs", 1.0, 1.0),
    ]
    lines = quality.page(runs, best).splitlines()[-4:]
    assert lines == [
        "| family | aucsched 3 s, abc | highs 3 s |",
        "|---|--:|--:|",
        "| a | 0.50 (1/2) | – (0/1), 1 without an award |",
        "| b | 0.00 (0/1) |  |",
    ]
