"""The picture of a machine: every core and GPU is drawn once, files are whole, refusals one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_snapshots import random_snapshot
from support.build import snapshot, tree
from support.run import aucsched, refused

from aucsched import InputError, Snapshot, load_snapshot, save_snapshot, schedule
from aucsched.cluster.limits import of_gres
from aucsched.reports.machine_layout import (
    Layout,
    boxes_of,
    changed_part,
    layout_of,
    place_of_number,
)
from aucsched.reports.machine_picture import draw_machine

EXAMPLE = Path(__file__).parents[3] / "examples" / "emulated-1408-full.json"


def laid_out(cluster: Snapshot) -> Layout:
    return layout_of(cluster, 7, 6)


def small() -> Snapshot:
    nodes = [
        {"name": "n1", "cores": 8, "gres": {"gpu": 2}, "free_cores": 6, "free_gres": {"gpu": 1}},
        {"name": "n2", "cores": 8, "gres": {"gpu": 2}},
        {"name": "n3", "cores": 8, "state": "drained"},
    ]
    return snapshot(nodes, [{"nodes": 2, "cores_per_node": 3, "gres_per_node": {"gpu": 1}}])


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_every_core_and_gpu_of_a_random_machine_is_drawn_once_inside_its_cell(seed: int) -> None:
    cluster = random_snapshot(seed)
    started = schedule(cluster).started
    layout = laid_out(cluster)
    boxes = boxes_of(cluster, started, layout)
    assert len(boxes("frames")) == len(cluster.nodes)
    inside = np.stack([layout.x, layout.y], axis=1)
    assert (boxes("frames")[:, :2] >= inside).all()
    assert (boxes("frames")[:, :2] + boxes("frames")[:, 2:] <= inside + 1).all()
    full = boxes("frames")[0, 2]
    busy = sum((node.total.cores - node.free.cores) / node.total.cores for node in cluster.nodes)
    assert boxes("busy")[:, 2].sum() == pytest.approx(full * busy)
    cores = {node.name: node.total.cores for node in cluster.nodes}
    for award in started:
        share = sum(use.cores / cores[name] for name, use in award.nodes.items())
        assert boxes("jobs", award.job)[:, 2].sum() == pytest.approx(full * share)
        held = sum(of_gres("gpu", use.gres) for use in award.nodes.values())
        assert len(boxes("taken_gpus", award.job)) == held
    taken_gpus = sum(len(boxes("taken_gpus", award.job)) for award in started)
    marks = len(boxes("used_gpus")) + len(boxes("free_gpus")) + taken_gpus
    assert marks == sum(of_gres("gpu", node.total.gres) for node in cluster.nodes)


@given(st.integers(1, 400), st.integers(1, 80), st.booleans())
@settings(max_examples=60, deadline=None)
def test_no_two_cells_overlap_and_all_stand_on_the_page(count: int, leaf: int, linear: bool) -> None:
    nodes = [{"name": f"n{place}", "cores": 1} for place in range(count)]
    members = {} if linear else {"topology": tree([str(node["name"]) for node in nodes], leaf)}
    layout = laid_out(snapshot(nodes, [], **members))
    places = set(zip(layout.x.round(6).tolist(), layout.y.round(6).tolist(), strict=True))
    assert len(places) == count
    rows: dict[float, list[float]] = {}
    for x, y in places:
        rows.setdefault(y, []).append(x)
    for xs in rows.values():
        assert (np.diff(sorted(xs)) > 0.999).all()
    assert (np.diff(sorted(rows)) > 0.39).all()
    assert layout.x.max() + 1 <= layout.width + 1e-9
    assert layout.y.max() + 1 <= layout.height + 1e-9
    assert layout.width * layout.cell_in <= 7 + 1e-9


def test_columns_are_as_short_as_whole_groups_allow() -> None:
    layout = laid_out(load_snapshot(EXAMPLE))
    # 88 leaves in 11 groups of 8: 4, 4 and 3 groups, 3 gaps of 0.6 in the tallest column.
    assert layout.height == pytest.approx(4 * 8 + 3 * 0.6)
    assert len({x for x, _, _ in layout.labels}) == 3


def test_what_each_box_is() -> None:
    cluster = small()
    boxes = boxes_of(cluster, schedule(cluster).started, laid_out(cluster))
    first, second, third = boxes("frames").tolist()
    assert boxes("busy")[0, 2] == pytest.approx(first[2] / 4)
    assert boxes("jobs", "J1")[:, 2] == pytest.approx([first[2] * 3 / 8] * 2)
    assert boxes("jobs", "J1")[0, 0] == pytest.approx(first[0] + first[2] / 4)  # beside the busy cores
    assert boxes("jobs", "J1")[1, 0] == pytest.approx(second[0])
    assert boxes("closed")[0] == pytest.approx(third)
    assert (len(boxes("used_gpus")), len(boxes("free_gpus")), len(boxes("taken_gpus", "J1"))) == (1, 1, 2)


def test_a_number_stands_in_a_box_that_holds_it_or_over_a_run() -> None:
    boxes = np.array([[0.0, 0, 0.9, 1], [1, 0, 0.9, 1], [2, 0, 0.9, 1], [7, 0, 0.95, 1]])
    assert place_of_number(boxes, 0.5) == (1, 0, 0.9, 1)
    assert place_of_number(boxes, 2.0) == pytest.approx((0, 0, 2.9, 1))


def test_the_same_picture_is_the_same_bytes_and_a_png(tmp_path: Path) -> None:
    cluster = small()
    result = schedule(cluster)
    for name in ("a.png", "b.png", "a.svg", "b.svg", "a.pdf", "b.pdf"):
        draw_machine(cluster, result, tmp_path / name)
    for suffix in ("png", "svg", "pdf"):
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("count", [1, 4, 33])
def test_machines_of_every_size_and_no_award_are_drawn(tmp_path: Path, count: int) -> None:
    cluster = snapshot([{"name": f"n[1-{count}]", "cores": 4, "gres": {"gpu": 9}}], [])
    draw_machine(cluster, schedule(cluster), tmp_path / "m.png")
    assert (tmp_path / "m.png").stat().st_size > 1000


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    cluster = small()
    with pytest.raises(InputError):
        draw_machine(cluster, schedule(cluster), tmp_path / "no" / "m.png")
    assert list(tmp_path.iterdir()) == []


def test_the_command_draws_and_prints_the_schedule(tmp_path: Path) -> None:
    save_snapshot(small(), tmp_path / "s.json")
    done = aucsched("schedule", tmp_path / "s.json", "--plot", tmp_path / "m.png")
    assert (done.returncode, done.stderr) == (0, "")
    assert "J1" in done.stdout
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")


def test_a_suffix_that_is_none_is_refused_before_the_auction(tmp_path: Path) -> None:
    line = refused("schedule", EXAMPLE, "--plot", tmp_path / "m.gif")
    assert line.endswith("m.gif: the name ends in none of .png, .pdf, .svg")


def test_without_matplotlib_one_line_says_what_to_install(tmp_path: Path) -> None:
    code = f"""
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "matplotlib" else found(name, *rest)
from aucsched.cli import main
main(["schedule", {str(EXAMPLE)!r}, "--plot", {str(tmp_path / "m.png")!r}])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "aucsched: --plot needs matplotlib: pip install 'aucsched[plot]'\n"
    assert done.stdout == ""


def test_of_a_full_machine_only_what_changes_is_drawn() -> None:
    names = [f"n{place}" for place in range(64)]
    nodes = [{"name": name, "cores": 4} for name in names]
    running = [
        {"id": "wide", "nodes": {name: {"cores": 4} for name in names[:58]}},
        {"id": "half", "nodes": {names[58]: {"cores": 2}}},
    ]
    cluster = snapshot(nodes, [{"nodes": 3, "cores_per_node": 2}], running=running, topology=tree(names, 4))
    result = schedule(cluster)
    part = changed_part(cluster, result)
    assert [node.name for node in part.nodes] == names[56:]
    assert {job.id: sorted(job.nodes) for job in part.running} == {"wide": ["n56", "n57"], "half": ["n58"]}
    assert part.switches is not None
    assert sorted(name for switch in part.switches for name in switch.nodes) == sorted(names[56:])
    few = snapshot(nodes[:8], [{"nodes": 1, "cores_per_node": 2}], topology=tree(names[:8], 4))
    assert changed_part(few, schedule(few)) is few
    empty = snapshot(nodes, [{"nodes": 1, "cores_per_node": 2}], topology=tree(names, 4))
    assert changed_part(empty, schedule(empty)) is empty


def test_without_matplotlib_commands_that_draw_nothing_run(tmp_path: Path) -> None:
    """Also none of what they import may load it."""
    days = EXAMPLE.parent / "days.swf"
    code = f"""
import sys
sys.modules["matplotlib"] = None
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "matplotlib" else found(name, *rest)
from aucsched.cli import run
for words in (
    ["schedule", {str(EXAMPLE)!r}, "-o", {str(tmp_path / "a.txt")!r}],
    ["simulate", {str(days)!r}, "--policy", "easy", "-o", {str(tmp_path / "b.txt")!r}],
    ["plan", {str(EXAMPLE)!r}, "--jobs", "2", "-o", {str(tmp_path / "c.txt")!r}],
):
    assert run(words) == 0, words
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
