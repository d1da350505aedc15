"""``aucsched forecast``: the command, the Python call, changes of a request, and the record."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from support.build import document, snapshot, tree
from support.run import aucsched as run_command

import aucsched as au
from aucsched import cli
from aucsched.api.forecasts import changed_job, forecast, history_of
from aucsched.cluster.errors import InputError, OptionError
from aucsched.commands.history import moment_by
from aucsched.formats.native.cluster_file import load_snapshot
from aucsched.reports.forecast_text import forecast_page, record_words
from aucsched.simulation.forecast.calibration import LEVELS
from aucsched.simulation.forecast.record import calibrator_of, crps, load_record

EXAMPLES = Path(__file__).parents[2] / "examples"
FULL = EXAMPLES / "emulated-1408-full.json"
#: Friday, 2026-11-20.
NOW = datetime(2026, 11, 20, 9, 30, tzinfo=UTC).timestamp()
SACCT = "JobID|User|Partition|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|NCPUS"


def busy(**members: object) -> au.Snapshot:
    """Two nodes, both held for another hour, and three jobs that wait."""
    return snapshot(
        [{"name": "a", "cores": 8, "free_cores": 0}, {"name": "b", "cores": 8, "free_cores": 0}],
        [
            {"cores": 8, "time_limit_s": 3600, "user": "ann"},
            {"cores": 4, "time_limit_s": 600, "user": "bob"},
            {"cores": 64, "time_limit_s": 600},
        ],
        running=[
            {
                "id": f"R{node}",
                "nodes": {node: {"cores": 8}},
                "end_time": "2026-11-20T10:30:00Z",
                "user": "ann",
            }
            for node in "ab"
        ],
        **members,
    )


def sacct(runs: list[float], path: Path) -> Path:
    """A file of ann's jobs of two hours' limit that ran for so long, one a day until today."""
    rows = [SACCT]
    for place, run in enumerate(runs):
        start = int(NOW - (len(runs) - place) * 9000)
        rows.append(f"{place}|ann||COMPLETED|{start}|{start}|{int(start + run)}|{int(run)}|120|1|8")
    path.write_text("\n".join(rows) + "\n")
    return path


def test_forecasts_of_a_snapshot_are_ordered_and_say_never() -> None:
    found = forecast(busy(), futures=50)
    first, second, wide = found.forecasts
    assert 0 < first.p10_s <= first.p50_s <= first.p90_s
    assert first.plan_s == second.plan_s == 3600
    assert wide.never == "it asks for 64 cores, there are 16"
    assert found.columns["p50_s"][2] is None
    assert found.title() == "forecast of 3 jobs, 1 of them never"


def test_under_response_a_job_has_waited_since_it_came_whatever_came_before_it_in_the_queue() -> None:
    now, whole = 100_000, au.Request(cores=4)
    node = au.Node(name="n1", total=au.Resources(cores=4), free=au.Resources(cores=0))
    running = au.RunningJob(id="R", nodes={"n1": au.Resources(cores=4)}, end_time=now + 100)
    new = au.Job(id="new", priority=9, request=whole, time_limit_s=1000, submit_time=now - 5)
    old = au.Job(id="old", priority=1, request=whole, time_limit_s=1000, submit_time=0)
    queue = au.Snapshot(nodes=[node], running=[running], jobs=[new, old], time=now)
    found = forecast(queue, objective="response", futures=5).columns
    assert dict(zip(found["job"], found["plan_s"], strict=True)) == {"old": 100, "new": 1100}


@pytest.mark.parametrize("objective", ["priority", "response"])
def test_who_starts_now_is_who_schedule_starts(objective: Literal["priority", "response"]) -> None:
    now = load_snapshot(FULL)
    found = forecast(now, objective=objective, futures=5)
    starts = {award.job for award in au.schedule(now, objective=objective).started}
    assert len(starts) > 5
    assert {one.id for one in found.forecasts if set(one.quantiles) == {0.0}} == starts
    assert {one.id for one in found.forecasts if one.plan_s == 0} == starts
    assert all(one.cores > 0 for one in found.forecasts)


def test_who_does_not_start_now_waits_for_the_next_event() -> None:
    # Four cores are free, on two nodes: no node has them.
    nodes = [{"name": name, "cores": 4, "free_cores": 2} for name in "ab"]
    running = [
        {"id": f"R{node}", "nodes": {node: {"cores": 2}}, "end_time": end}
        for node, end in (("a", "2026-11-20T10:30:00Z"), ("b", "2026-11-20T11:30:00Z"))
    ]
    whole = {"nodes": 1, "cores_per_node": 4, "time_limit_s": 60, "priority": 9}
    small = {"cores": 1, "time_limit_s": 60, "priority": 8}
    now = snapshot(nodes, [whole, small], running=running)
    waits, starts = forecast(now, futures=20).forecasts
    assert (waits.id, starts.id) == ("J1", "J2")
    assert (waits.plan_s, starts.plan_s) == (60, 0)
    assert waits.p10_s > 0
    # On an idle cluster nothing happens before it starts.
    idle = snapshot([{"name": "a", "cores": 4}], [whole])
    assert forecast(idle, futures=20).forecasts[0].plan_s == 0


def test_a_history_of_short_jobs_forecasts_an_early_start(tmp_path: Path) -> None:
    short = forecast(busy(), "J1", history=sacct([600.0] * 40, tmp_path / "short.txt"))
    long = forecast(busy(), "J1", history=sacct([7150.0] * 40, tmp_path / "long.txt"))
    assert short.forecasts[0].p50_s < long.forecasts[0].p50_s


def test_a_table_says_the_cores_that_a_job_asks_for_though_its_gpus_count_for_more() -> None:
    node = au.Node(name="n", cores=12, gres={"gpu": 3})
    request = au.Request(nodes=1, cores_per_node=1, gres_per_node={"gpu": 3})
    job = au.Job(id="1", priority=1, request=request, time_limit_s=60)
    found = au.forecast(au.Snapshot(nodes=[node], jobs=[job], time=1.0))
    assert found.columns["cores"] == [1]


def test_a_job_of_cores_counts_for_no_more_than_it_asks_for() -> None:
    nodes = [{"name": name, "cores": 8} for name in "abc"]
    running = [{"id": "R", "nodes": {name: {"cores": 8} for name in "abc"}, "end_time": NOW + 600}]
    # 24 cores: all three start when R ends, though 11 cores are no even share of two nodes.
    jobs = [{"cores": cores, "time_limit_s": 60} for cores in (11, 12, 1)]
    found = forecast(snapshot(nodes, jobs, running=running), futures=5).forecasts
    assert [one.plan_s for one in found] == [600, 600, 600]


def test_the_same_seed_gives_the_same_forecasts() -> None:
    one, two = (forecast(busy(), futures=30, seed=4).columns for _ in range(2))
    assert one == two


def test_probabilities_and_changes() -> None:
    page = busy()
    found = forecast(page, "J1", by_s=3600, changes=["time=10m", "cores=4", "cores=99", "any"])
    assert found.columns["probability"] == [1.0] or 0 < found.columns["probability"][0] < 1
    assert len(found.changes) == 3
    medians = [one.forecast.p50_s for one in found.changes]
    assert medians == sorted(medians)
    with pytest.raises(OptionError, match="name one job"):
        forecast(page, changes=["time=10m"])


def test_a_change_may_be_of_the_partition_or_the_nodes() -> None:
    now = snapshot(
        [{"name": name, "cores": 8, "free_cores": 0} for name in "ab"],
        [{"cores": 4, "time_limit_s": 600, "partition": "late"}],
        partitions=[{"name": "soon", "nodes": "a"}, {"name": "late", "nodes": "b"}],
        running=[
            {"id": "R1", "nodes": {"a": {"cores": 8}}, "end_time": "2026-11-20T10:30:00Z"},
            {"id": "R2", "nodes": {"b": {"cores": 8}}, "end_time": "2026-11-20T12:30:00Z"},
        ],
    )
    found = forecast(now, "J1", changes=["nodes=2", "partition=soon"])
    assert found.forecasts[0].plan_s == 3 * 3600
    soon, wide = found.changes
    assert (soon.change, soon.forecast.plan_s) == ("partition=soon", 3600)
    assert wide.forecast.never


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("time=soon", "not a duration"),
        ("colour=red", "none of time, cores, nodes, partition"),
        ("cores=x", "invalid literal"),
        ("cores=0", "below 1"),
    ],
)
def test_changes_that_cannot_be_made_are_refused(change: str, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        changed_job(busy().jobs[0], change)


@pytest.mark.parametrize("jobs", [7, np.int64(7), "7", [np.int64(7)], np.array([7]), {"7"}, iter(["7"])])
def test_jobs_are_named_by_numbers_and_texts(jobs: Any) -> None:
    now = busy()
    now = replace(now, jobs=(now.jobs[0], replace(now.jobs[1], id="7")))
    assert forecast(now, jobs).columns["job"] == ["7"]


def test_a_job_that_does_not_wait_is_refused() -> None:
    with pytest.raises(InputError, match="'R9' is not a pending job of this snapshot"):
        forecast(busy(), "R9")


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"futures": 10**9}, "futures: 1000000000 is not from 2 to 10000"),
        ({"futures": 0}, "futures: 0 is not from 2"),
        ({"seed": -1}, "seed: -1 is not from 0"),
        ({"futures": None}, "futures: None is not an integer"),
        ({"seed": None}, "seed: None is not an integer"),
        ({"jobs": 1.5}, "jobs: 1.5 is not a text or an integer or a list"),
        ({"by_s": float("nan")}, "by_s: nan is not a finite number"),
        ({"record": 5}, "record: 5 is not a text or a file's name"),
        ({"history": 5}, "history: 5 is not a text or a file's name or a list"),
        ({"history": [1]}, "history: 1 is not what it takes"),
        ({"changes": np.array([1, 2])}, "changes: .* is not a text or a list"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused_and_no_record_made(
    option: dict[str, object], words: str, tmp_path: Path
) -> None:
    record = tmp_path / "record.sqlite"
    with pytest.raises(OptionError, match=words):
        forecast(busy(), **{"record": record, **option})  # type: ignore[arg-type]
    assert not record.exists()


def test_held_jobs_say_why() -> None:
    held = snapshot(
        [{"name": "a", "cores": 8}],
        [{"cores": 1, "hold": "JobHeldUser"}, {"cores": 1, "partition": "none"}],
    )
    first, second = forecast(held).forecasts
    assert first.never == "it is held: JobHeldUser"
    assert second.never == "no node is in partition none"


def test_the_record_is_kept_and_calibrates(tmp_path: Path) -> None:
    record = tmp_path / "record.db"
    forecast(busy(), record=record)
    kept = load_record(record)
    assert [one.job for one in kept] == ["J1", "J2"]
    assert len(calibrator_of(kept)) == 0
    # An hour later the history knows when they started.
    rows = [SACCT]
    for job, start in (("J1", NOW + 1200), ("J2", NOW + 60)):
        rows.append(f"{job}|ann||RUNNING|{NOW:.0f}|{start:.0f}||600|60|1|8")
    history = tmp_path / "sacct.txt"
    history.write_text("\n".join(rows) + "\n")
    found = forecast(busy(), "J1", record=record, history=history)
    assert found.record["forecasts"] == 2
    said = "Of 2 past forecasts, 50 % of starts came between P10 and P90, and 50 % of medians were within"
    assert record_words(found.record).startswith(said)
    assert "Reliability: starts that came by each level" in forecast_page(found, "busy")
    assert [one.came_s for one in load_record(record)] == [60.0, 1200.0]
    assert len(calibrator_of(load_record(record))) == 2


def test_another_file_is_no_record(tmp_path: Path) -> None:
    path = tmp_path / "text.db"
    path.write_text("hello")
    with pytest.raises(InputError, match="no record of forecasts"):
        forecast(busy(), record=path)


@pytest.mark.parametrize("runs", [[], [0.0], [-5.0, 1e9], [60.0] * 3])
def test_odd_histories_are_no_error(runs: list[float], tmp_path: Path) -> None:
    path = sacct([], tmp_path / "sacct.txt")
    text = path.read_text()
    for place, run in enumerate(runs):
        text += f"{place}|ann||COMPLETED|{NOW:.0f}|{NOW - 50:.0f}|{NOW:.0f}|{max(run, 0):.0f}|0|1|8\n"
    path.write_text(text)
    found = forecast(busy(), history=path)
    assert found.forecasts[0].p90_s > found.forecasts[0].p10_s
    assert len(history_of(path.read_bytes())) == len(runs)


@pytest.mark.parametrize(
    ("text", "hours"),
    [("+2h", 2), ("friday 10:00", 0.5), ("fri 09:00", 7 * 24 - 0.5), ("10:30", 1), ("2026-11-20T11:30", 2)],
)
def test_by_names_a_time(text: str, hours: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    assert (moment_by(text, NOW) - NOW) / 3600 == pytest.approx(hours)


def test_by_names_local_time_also_once_clocks_are_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    # Summer time ends on Sunday.
    with monkeypatch.context() as zone:
        zone.setenv("TZ", "Europe/Berlin")
        time.tzset()
        friday, monday = (datetime(2026, 10, day, 12).timestamp() for day in (23, 26))  # noqa: DTZ001
        assert monday - friday == 73 * 3600
        assert [moment_by(text, friday) for text in ("mon 12:00", "2026-10-26T12:00")] == [monday] * 2
    time.tzset()


@pytest.mark.parametrize("text", ["", "friday", "soon", "fr 09:00", "25:00", "mon tue 9:00", "+x"])
def test_by_refuses_what_is_no_time(text: str) -> None:
    with pytest.raises(OptionError, match="is not a time"):
        moment_by(text, NOW)


def test_by_counts_from_snapshots_before_the_year_1() -> None:
    assert moment_by("+2h", -1e11) == 7200 - 1e11
    with pytest.raises(OptionError, match="is not a time"):
        moment_by("10:30", -1e11)


def test_a_moment_before_the_snapshot_is_named_as_it_was_typed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["forecast", str(FULL), "97", "--by", "2026-03-29 02:30"]) == 2
    assert capsys.readouterr().err == "aucsched: --by '2026-03-29 02:30' is before the snapshot's time\n"


def test_the_command_prints_utc_wherever_it_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["forecast", str(FULL), "97", "--by", "2026-11-20T10:11Z"]
    found = []
    for zone in ("UTC", "America/New_York"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        assert cli.run(command) == 0
        found.append(capsys.readouterr().out)
    monkeypatch.undo()
    time.tzset()
    assert found[0] == found[1]
    assert "P50 is at" in found[0]
    assert "by 2026-11-20\n" in found[0]
    assert "T10:11:00Z" in found[0]


def test_the_command_prints_a_table_json_and_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = run_command("forecast", FULL, "97", "--by", "+2h", "--if", "time=5m", "--html", page)
    assert done.returncode == 0, done.stderr
    assert "Starts in" in done.stdout
    assert "With another request" in done.stdout
    assert "No record of past forecasts" in done.stdout
    assert "intervals" in page.read_text()
    done = run_command("forecast", FULL, "--format", "json")
    found = json.loads(done.stdout)
    assert found["format"] == "aucsched-forecast/1"
    assert {"job", "p10_s", "p50_s", "p90_s", "plan_s", "never"} <= set(found["jobs"][0])


def test_tasks_of_an_array_are_a_row_of_text_and_each_an_entry_of_json(tmp_path: Path) -> None:
    file, waiting = tmp_path / "array.json", {"time_limit_s": 600, "cores": 8}
    jobs = [{"id": f"22_{task}", **waiting} for task in range(3, 203)]
    jobs += [{"id": "23", **waiting}, *({"id": f"24_{task}", "cores": 9} for task in (1, 2))]
    file.write_text(json.dumps(document([{"name": "n", "cores": 8}], jobs)))
    rows = [line.split("  ") for line in run_command("forecast", file, "--futures", "9").stdout.splitlines()]
    assert [row[0] for row in rows[2:4]] == ["22_[3-202] (200 tasks)", "23"]
    first, last = rows[2][-1].split(" to ")
    assert (first.strip(), last) == ("now", "1 d 9 h")
    assert ["24_[1-2] (2 tasks)", "it asks for 9 cores, there are 8"] in rows
    assert not any("more: --top" in row[0] for row in rows)
    few = run_command("forecast", file, "--futures", "9", "--top", "1").stdout.splitlines()
    assert "1 more: --top" in few
    done = run_command("forecast", file, "--futures", "9", "--format", "json")
    assert [one["job"] for one in json.loads(done.stdout)["jobs"]] == [job["id"] for job in jobs]
    # A task that is asked for stands alone.
    assert "\n22_9  " in run_command("forecast", file, "22_9", "--futures", "9").stdout


def test_crps_of_a_point_is_its_error() -> None:
    point = np.full((1, len(LEVELS)), 100.0)
    assert crps(point, np.array([130.0]))[0] == pytest.approx(30, rel=0.05)


def test_explain_says_when_the_job_will_start(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = run_command("explain", FULL, "97", "--work-limit", "1", "--forecast", "--html", page)
    assert done.returncode == 0, done.stderr
    assert "Starts in" in done.stdout
    assert '"kind":"intervals"' in page.read_text()
    done = run_command("explain", FULL, "97", "--work-limit", "1", "--forecast", "--format", "json")
    assert json.loads(done.stdout)["forecast"][0]["job"] == "97"
    done = run_command("explain", FULL, "97", "--history", "none.txt")
    assert done.stderr == "aucsched: --history needs --forecast\n"


def test_what_no_forecast_looks_at_is_noted() -> None:
    reserved = {
        "name": "course",
        "nodes": "a",
        "start": "2026-11-20T08:00:00Z",
        "end": "2026-11-20T18:00:00Z",
    }
    shown = snapshot(
        [{"name": "a", "cores": 8}],
        [{"cores": 1, "time_limit_s": 60, "licenses": {"matlab": 1}}],
        licenses={"matlab": {"total": 2, "free": 2}},
        reservations=[reserved],
        limits=[{"name": "ann", "jobs": {"user": "ann"}, "max": {"cores": 4}}],
        time="2026-11-20T09:30:00Z",
    )
    found = au.forecast(shown, futures=5)
    assert found.notes == (
        "forecasts look at the licences of 1 waiting job for each job alone: starts may come later",
        "forecasts look at 1 limit of accounts, users or QOS for each job alone: starts may come later",
        "forecasts look at 1 advance reservation for each job alone: starts may come later",
    )
    assert found.to_dict()["notes"] == list(found.notes)
    assert not au.forecast(busy(), futures=5).notes


def named(count: int) -> list[str]:
    return [f"n{place:02}" for place in range(1, count + 1)]


@pytest.mark.parametrize(
    ("job", "members", "why"),
    [
        (
            {"cores": 300, "account": "physics"},
            {"limits": [{"name": "physics", "jobs": {"account": "physics"}, "max": {"cores": 200}}]},
            "it asks for 300 cores, the limit physics: cores is 200: it can never start",
        ),
        (
            {"cores": 80, "qos": "short"},
            {"limits": [{"name": "short", "jobs": {"qos": "short"}, "max": {"cores": 64}}]},
            "it asks for 80 cores, the limit short: cores is 64: it can never start",
        ),
        (
            {"nodes": 13, "cores_per_node": 1, "max_switches": 1},
            {"topology": tree(named(24), 12)},
            "when all is empty no nodeset holds 13 nodes, 1 core a node",
        ),
        (
            {"nodes": 2, "cores_per_node": 1, "gres_per_node": {"gpu": 2}, "required_nodes": "n01,n24"},
            {},
            "when all is empty no nodeset holds 2 nodes, 1 core a node, 2 gpu a node",
        ),
        (
            {"cores": 1, "licenses": {"matlab": 3}},
            {"licenses": {"matlab": {"total": 2, "free": 0}}},
            "it asks for 3 matlab licences, there are 2 in all",
        ),
    ],
)
def test_what_fits_on_no_empty_cluster_never_starts(
    job: dict[str, object], members: dict[str, object], why: str
) -> None:
    nodes = [
        {
            "name": name,
            "cores": 32,
            "gres": {f"gpu:{'ab'[name > 'n12']}": 2},
            "state": "allocated",
            "free_cores": 0,
        }
        for name in named(24)
    ]
    running = [
        {"id": f"R{name}", "nodes": {name: {"cores": 32}}, "end_time": NOW + 60, "account": "physics"}
        for name in named(24)
    ]
    other = {"cores": 32, "time_limit_s": 600}
    cluster = snapshot(nodes, [{**job, "time_limit_s": 600}, other], running=running, **members)
    never, starts = au.forecast(cluster, futures=20).forecasts
    assert never.never.startswith(why)
    # What never starts keeps nobody waiting.
    assert starts.plan_s == 60


def test_a_budget_that_is_nearly_spent_is_no_reason_never_to_start() -> None:
    budget = {"name": "physics", "jobs": {"account": "physics"}, "max": {"core_seconds": 6000}}
    job = {"cores": 4, "time_limit_s": 3600, "account": "physics"}
    cluster = snapshot([{"name": "a", "cores": 8}], [job], limits=[budget])
    [refusal] = au.schedule(cluster, work_limit=0).pending
    assert (
        refusal.detail
        == "it asks for 14400 core-seconds, the limit physics: core_seconds leaves 6000 of 6000"
    )
    found = au.forecast(cluster, futures=5)
    assert (found.forecasts[0].never, found.forecasts[0].p50_s) == ("", 0)
    assert found.notes == ("forecasts look at no budget (1 of core-seconds): starts may come later",)
    few = {**budget, "max": {"core_seconds": 6000, "cores": 2}}
    found = au.forecast(snapshot([{"name": "a", "cores": 8}], [job], limits=[few]), futures=5)
    assert "cores is 2: it can never start" in found.forecasts[0].never


@pytest.mark.parametrize("state", ["reserved", "maint"])
def test_a_node_that_a_reservation_holds_is_waited_for(state: str) -> None:
    nodes = [{"name": "a", "cores": 8, "state": state}, {"name": "b", "cores": 8}]
    jobs = [{"cores": 16, "time_limit_s": 600}]
    course = {"name": "course", "nodes": "a", "start": NOW - 100, "end": NOW + 5000}
    [found] = au.forecast(snapshot(nodes, jobs, reservations=[course]), futures=20).forecasts
    assert found.never == ""
    assert found.p50_s == pytest.approx(5000)
    # Without one nobody knows when it works again.
    [found] = au.forecast(snapshot(nodes, jobs), futures=20).forecasts
    assert found.never


def test_reserved_nodes_of_another_kind_start_nobody_elses_jobs() -> None:
    nodes = [{"name": "a", "cores": 8, "free_cores": 0}, {"name": "b", "cores": 16}]
    running = [{"id": "R", "nodes": {"a": {"cores": 8}}, "end_time": NOW + 3600}]
    course = {"name": "course", "nodes": "b", "start": NOW - 100, "end": NOW + 90_000}
    jobs = [{"cores": 8, "time_limit_s": 600}]
    cluster = snapshot(nodes, jobs, running=running, reservations=[course])
    [found] = au.forecast(cluster, futures=20).forecasts
    assert found.p50_s > 0


def test_a_reservation_to_come_is_waited_for_and_delays_nobody_else() -> None:
    maintenance = {"name": "maint", "nodes": "n[01-20]", "start": NOW + 1800, "end": NOW + 10_200}
    jobs = [
        {"cores": 320, "time_limit_s": 7200},
        {"cores": 32, "time_limit_s": 7200},
        {"cores": 320, "time_limit_s": 60},
    ]
    nodes = [{"name": name, "cores": 32} for name in named(24)]
    cluster = snapshot(nodes, jobs, reservations=[maintenance])
    wide, small, short = au.forecast(cluster, futures=20).forecasts
    alone = au.explain(cluster, "J1", work_limit=0).alone
    assert alone is not None
    assert wide.plan_s == alone.time - NOW == 10_200
    assert wide.p10_s > 10_000
    assert small.p90_s == short.p90_s == 0
    # Without a time it holds always.
    everywhere = replace(cluster.reservations[0], nodes=tuple(named(24)))
    timeless = replace(cluster, time=None, reservations=(everywhere,))
    wide, *_ = au.forecast(timeless, futures=20).forecasts
    assert wide.never == "it fits only on nodes with an advance reservation"
