"""The reports: one file each, no request to anybody, what they show is what the result holds."""
# ruff: noqa: E501 - scripts for the browser

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from support.build import snapshot, tree
from support.chromium import CHROMIUM, opened

from aucsched import schedule
from aucsched.auction.explain.comparison import first_fit_by_priority
from aucsched.cli import run
from aucsched.cluster.version import __version__
from aucsched.reports.auction_pages import schedule_page
from aucsched.reports.page import page_of, table

EXAMPLES = Path(__file__).parents[2] / "examples"
FULL, DAYS, OVERTAKEN, HISTORY = (
    str(EXAMPLES / name)
    for name in ("emulated-1408-full.json", "days.swf", "overtaken.json", "history.txt.gz")
)
COMMANDS = {
    "schedule": ["schedule", FULL, "--work-limit", "1"],
    "explain": ["explain", FULL, "64", "--work-limit", "1"],
    "prices": ["explain", FULL, "--work-limit", "1"],
    "compare": ["compare", FULL, "--work-limit", "1"],
    "gain": ["gain", "--sacct", HISTORY, "--nodes", f"{EXAMPLES}/history-nodes.txt"],
    "log": ["simulate", DAYS, "--policy", "fcfs,easy"],
    "nodes": ["simulate", OVERTAKEN, "--policy", "aucsched3"],
    "sweep": ["sweep", DAYS, "--policy", "fcfs,easy", "--order", "fcfs,sjf", "-o", "sweep.csv"],
}
KINDS = {
    "schedule": ["facts", "machine", "table", "table"],
    "explain": ["facts", "table", "table"],
    "prices": ["facts", "table", "table"],
    "compare": ["table", "table"],
    "gain": ["facts", "table", "spread", "table", "lines", "table", "table"],
    "log": ["table", "spread", "lines", *["gantt", "spread", "table", "spread", "table", "table"] * 2],
    "nodes": ["table", "lines", "gantt", "table"],
    "sweep": ["scatter", "table"],
}
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, arguments in COMMANDS.items():
            assert run([*arguments, "--html", f"{name}.html"]) == 0
    return {name: folder / f"{name}.html" for name in COMMANDS}


def _sections(page: Path) -> list[dict[str, Any]]:
    found = re.search(
        r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL
    )
    assert found is not None
    sections: list[dict[str, Any]] = json.loads(found[1])["sections"]
    return sections


def test_a_page_names_no_other_host_and_its_policy_allows_none(pages: dict[str, Path]) -> None:
    for page in pages.values():
        text = page.read_text()
        assert "default-src 'none'" in text
        assert not re.search(
            r"https?:|//\w+\.\w+|<link|<img|<iframe|\bsrc=|\bfetch\(|import\(|XMLHttp|@import", text
        )
        assert text.count("<script") == 3


def test_each_report_has_its_parts(pages: dict[str, Path]) -> None:
    for name, page in pages.items():
        assert [one["kind"] for one in _sections(page)] == KINDS[name], name


def test_a_page_holds_what_the_result_holds(pages: dict[str, Path]) -> None:
    starts, waits = _sections(pages["schedule"])[2:]
    assert len(starts["columns"]["job"]) + len(waits["columns"]["job"]) == 66
    machine = _sections(pages["schedule"])[1]
    assert len(machine["names"]) == 1408
    assert sum(len(nodes) for _, nodes in machine["leaves"]) == 1408
    assert [job for job, _ in machine["starts"]] == starts["columns"]["job"]
    cores = {job: sum(count for _, count in uses) for job, uses in machine["starts"]}
    assert cores == dict(zip(starts["columns"]["job"], starts["columns"]["cores"], strict=True))
    gantt = _sections(pages["nodes"])[2]
    assert len(gantt["jobs"]) == 26
    area = sum(count * (gantt["end"][job] - gantt["start"][job]) for job, _, count in gantt["rects"])
    held = sum(
        size * (end - start)
        for size, start, end in zip(gantt["cores"], gantt["start"], gantt["end"], strict=True)
    )
    per_node = sum(gantt["cores"]) and 16 / gantt["rows"]
    assert area * per_node == pytest.approx(held)


def test_a_workload_without_jobs_has_a_page_and_its_columns(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    empty, page = tmp_path / "empty.json", tmp_path / "page.html"
    empty.write_text('{"format": "aucsched-workload/1", "nodes": [{"name": "n", "cores": 4}]}')
    assert run(["simulate", str(empty), "--policy", "easy,backfill-slurm", "--html", str(page)]) == 0
    assert [one["kind"] for one in _sections(page)] == KINDS["nodes"][:1] + ["table"] * 2
    capfd.readouterr()
    assert run(["simulate", str(empty), "--policy", "easy", "--jobs-out", "-", "--format", "json"]) == 0
    assert capfd.readouterr().out.startswith("id,submit_s,start_s,end_s,")


def test_percentiles_are_those_of_the_jobs(pages: dict[str, Path]) -> None:
    sections = _sections(pages["log"])
    spread, jobs = sections[4], sections[8]
    assert spread["title"].startswith("Waits by size")
    assert jobs["title"].startswith("Jobs, fcfs")
    for group in spread["groups"]:
        name = group["name"].split()[0]
        low, _, high = name.partition("-")
        inside = [
            wait
            for cores, wait in zip(jobs["columns"]["cores"], jobs["columns"]["wait_s"], strict=True)
            if int(low) <= cores <= int(high or low)
        ]
        assert len(inside) == group["jobs"]
        assert max(inside) == group["max"]
        assert sum(inside) / len(inside) == pytest.approx(group["mean"])
        assert sum(wait <= group["p50"] for wait in inside) >= len(inside) / 2


def test_a_page_says_when_and_of_what_it_was_made(
    monkeypatch: pytest.MonkeyPatch, pages: dict[str, Path]
) -> None:
    digest = hashlib.sha256(Path(DAYS).read_bytes()).hexdigest()
    assert f"{DAYS}: SHA-256 <code>{digest}</code>" in pages["log"].read_text()
    monkeypatch.setattr(sys, "argv", ["/usr/bin/aucsched", "simulate", "two words.swf", "--html", "<x>"])
    page = page_of("title", "subtitle", [])
    assert "<code>aucsched simulate &#x27;two words.swf&#x27; --html &#x27;&lt;x&gt;&#x27;</code>" in page
    assert re.search(rf"\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ, aucsched {__version__}<br>", page)


def test_policies_share_a_chart(pages: dict[str, Path]) -> None:
    use = _sections(pages["log"])[2]
    assert [(one["label"], one["name"]) for one in use["series"]] == [
        ("cores in use, of 128", "fcfs"),
        ("cores in use, of 128", "easy"),
        ("jobs waiting", "fcfs"),
        ("jobs waiting", "easy"),
    ]


CELLS = """(() => {
  const rows = [...document.querySelector("section").querySelectorAll("tbody tr")];
  return Object.fromEntries(rows.map((row) => [row.children[0].textContent, row.children[2].textContent]));
})()"""


@needs_chromium
def test_durations_and_shares_are_written_as_people_do(pages: dict[str, Path]) -> None:
    found = opened(pages["log"], CELLS)
    assert found["error"] is None
    assert found["value"]["mean wait"] == "1 h 53 min"
    assert found["value"]["longest wait"] == "14 h 44 min"
    assert found["value"]["cpu utilization"] == "84.5 %"
    assert found["value"]["mean bounded slowdown"] == "15.133"


@needs_chromium
def test_moments_are_dates_and_large_priorities_numbers(tmp_path: Path) -> None:
    page = tmp_path / "moments.html"
    columns: dict[str, list[Any]] = {
        "slurm": [1.7e9, None],
        "priority": [4294901760, 4294901759],
        "wait_s": [90000.0, 0.25],
    }
    page.write_text(page_of("title", "subtitle", [table("Jobs", columns)]))
    found = opened(page, "[...document.querySelectorAll('td')].map((one) => one.textContent)")
    assert found["error"] is None
    assert found["value"] == ["2023-11-14 22:13", "4294901760", "1 d 1 h", "", "4294901759", "0.25 s"]


HOSTILE = "</script><script>document.documentElement.dataset.hacked='1'</script><!--\u202e"


def test_names_from_files_stay_text(tmp_path: Path) -> None:
    page = tmp_path / "hostile.html"
    page.write_text(page_of(HOSTILE, HOSTILE, [table(HOSTILE, {HOSTILE: [HOSTILE, None, 1.5]})]))
    text = page.read_text()
    assert text.count("<script") == 3
    assert "\u202e" not in text
    assert _sections(page)[0]["columns"] == {HOSTILE: [HOSTILE, None, 1.5]}
    if CHROMIUM is not None:
        found = opened(
            page, "[document.documentElement.dataset.hacked || '', document.querySelectorAll('td').length]"
        )
        assert found["error"] is None
        assert found["value"] == ["", 3]


@needs_chromium
def test_chromium_opens_every_report_without_an_error_or_a_request(pages: dict[str, Path]) -> None:
    for name, page in pages.items():
        found = opened(page, "[...document.querySelectorAll('section')].map((one) => one.dataset.kind)")
        assert found["error"] is None, name
        assert found["ready_ms"] is not None, name
        assert found["value"] == KINDS[name]
        assert found["requests"] == [], name


SORTS = """(() => {
  const box = [...document.querySelectorAll("section")].filter((one) => one.dataset.kind === "table")[1];
  const cells = (place) => [...box.querySelectorAll("tbody tr")].map((row) => row.children[place].textContent);
  const heads = [...box.querySelectorAll("th")], at = (name) => heads.findIndex((one) => one.textContent === name);
  const said = { before: cells(at("priority")) };
  heads[at("priority")].click(); said.up = cells(at("priority")); heads[at("priority")].click(); said.down = cells(at("priority"));
  const input = box.querySelector("input"); input.value = "reason:outbid"; input.dispatchEvent(new Event("input"));
  said.reasons = [...new Set(cells(at("reason")))]; input.value = "zzz"; input.dispatchEvent(new Event("input"));
  said.none = cells(0); return said;
})()"""


@needs_chromium
def test_tables_sort_and_filter(pages: dict[str, Path]) -> None:
    said = opened(pages["schedule"], SORTS)
    assert said["error"] is None
    value = {name: list(map(str, cells)) for name, cells in said["value"].items()}
    waits = _sections(pages["schedule"])[3]["columns"]["job"]
    assert len(value["before"]) == len(waits)
    assert value["up"] == sorted(value["before"], key=float)
    assert value["down"] == sorted(value["before"], key=float, reverse=True)
    assert value["reasons"] == ["outbid"]
    assert value["none"] == []


HOVERS = """(() => {
  const canvas = document.querySelector("[data-kind=machine] canvas"), box = canvas.getBoundingClientRect(), said = new Set();
  for (let x = 0; x < box.width; x += 3) for (let y = 0; y < box.height; y += 5) {
    canvas.dispatchEvent(new MouseEvent("mousemove", { clientX: box.left + x, clientY: box.top + y }));
    if (document.getElementById("tip").style.display === "block") said.add(document.getElementById("tip").textContent);
  }
  return [...said];
})()"""


@needs_chromium
def test_the_machine_says_who_starts_where(tmp_path: Path) -> None:
    nodes = [{"name": f"n{place}", "cores": 4} for place in range(8)]
    names = [str(node["name"]) for node in nodes]
    jobs = [{"nodes": 2, "cores_per_node": 3}, {"cores": 1}]
    running = [{"id": "old", "nodes": {"n7": {"cores": 4}}}]
    cluster = snapshot(nodes, jobs, topology=tree(names, 4), running=running)
    result = schedule(cluster)
    page = tmp_path / "machine.html"
    page.write_text(schedule_page(cluster, result, first_fit_by_priority(cluster, 100), "test"))
    said = opened(page, HOVERS)["value"]
    assert len(said) == 8
    for award in result.started:
        for name, use in award.nodes.items():
            (hovered,) = [text for text in said if text.startswith(f"{name}:")]
            assert f"job {award.job} starts, {use.cores} core" in hovered
    assert any(text.startswith("n7: 0 of 4 cores were free\njob old runs, 4 cores") for text in said)


ZOOMS = """(() => {
  const canvas = document.querySelector("[data-kind=gantt] canvas"), box = canvas.getBoundingClientRect(), views = [canvas.view()];
  const at = { clientX: box.left + box.width / 2, clientY: box.top + 100, bubbles: true, cancelable: true };
  const wheel = (more) => { canvas.dispatchEvent(new WheelEvent("wheel", { ...at, ...more })); views.push(canvas.view()); };
  wheel({ deltaY: -600 }); wheel({ deltaY: -600, shiftKey: true });
  canvas.dispatchEvent(new MouseEvent("mousedown", at));
  canvas.dispatchEvent(new MouseEvent("mousemove", { ...at, clientX: at.clientX - 80 })); views.push(canvas.view());
  dispatchEvent(new MouseEvent("mouseup", at)); canvas.dispatchEvent(new MouseEvent("dblclick", at)); views.push(canvas.view());
  return views;
})()"""


@needs_chromium
def test_the_chart_zooms_moves_and_comes_back(pages: dict[str, Path]) -> None:
    found = opened(pages["log"], ZOOMS)
    assert found["error"] is None
    whole, zoomed, shifted, moved, back = found["value"]
    assert zoomed["t1"] - zoomed["t0"] < 0.5 * (whole["t1"] - whole["t0"])
    assert (zoomed["r0"], zoomed["r1"]) == (whole["r0"], whole["r1"])
    assert shifted["r1"] - shifted["r0"] < whole["r1"] - whole["r0"]
    assert moved["t0"] > shifted["t0"]
    assert back == whole
