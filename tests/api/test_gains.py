"""What a site would gain: three columns worked out by hand, and words that follow from the intervals."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.run import aucsched, refused

import aucsched as au
from aucsched.simulation.waits import Difference

EXAMPLES = Path(__file__).parents[2] / "examples"
#: Four cores. Job, cores, submitted, run time and limit in minutes, start (first come, first served).
JOBS = (
    ("A", 4, 0, 10, 0),
    ("B", 3, 1, 10, 10),
    ("C", 4, 2, 10, 20),
    ("D", 1, 3, 10, 30),
    ("E", 1, 4, 20, 30),
    ("F", 2, 5, 1, 30),
)


@pytest.fixture
def sacct(tmp_path: Path) -> Path:
    header = "JobID|User|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|NCPUS|State"
    rows = [
        f"{name}|u|{60 * came}|{60 * began}|{60 * (began + run)}|{60 * run}|{run}|1|{cores}|COMPLETED"
        for name, cores, came, run, began in JOBS
    ]
    path = tmp_path / "sacct.txt"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_three_columns_by_hand(sacct: Path) -> None:
    done = aucsched(
        "gain", "--sacct", sacct, "--nodes", "1", "--cores", "4", "--since", "0", "--format", "json"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    rows = {row["figure"]: row for row in found["figures"]}
    # Backfilling lets D run beside B from minute 10 to 20, when C is due; the auction does the same.
    own, simulated = [0, 9, 18, 27, 26, 25], [0, 9, 18, 7, 26, 25]
    columns = found["columns"]
    assert columns["wait_s happened"] == [60 * wait for wait in own]
    assert (
        columns["wait_s backfill-slurm"] == columns["wait_s aucsched3"] == [60 * wait for wait in simulated]
    )
    for column, waits in (("happened", own), ("backfill-slurm", simulated), ("aucsched3", simulated)):
        assert rows["mean wait (s)"][column] == pytest.approx(60 * mean(waits))
        assert rows["longest wait (s)"][column] == 60 * max(waits)
        slow = [(wait + job[3]) / job[3] for wait, job in zip(waits, JOBS, strict=True)]
        assert rows["mean bounded slowdown"][column] == pytest.approx(mean(slow))
        # Up to the last submission A holds all four cores.
        assert rows["utilisation (%)"][column] == pytest.approx(100)
    assert rows["median wait (s)"]["happened"] == 60 * (18 + 25) / 2
    assert rows["median wait (s)"]["aucsched3"] == 60 * (9 + 18) / 2
    (error,) = (
        row for row in found["differences"] if (row["than"], row["figure"]) == ("happened", "mean wait (s)")
    )
    assert error["value"] == pytest.approx(-60 * 20 / 6)
    assert found["too_short"]
    assert found["words"] == [
        "This history is too short to say what you would gain: 6 jobs in 5 min; 100 jobs in 2 days are enough"
    ]


NUMBERS = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))


@given(NUMBERS, NUMBERS, NUMBERS, st.floats(0, 1e6), st.sampled_from(["mean wait (s)", "utilisation (%)"]))
def test_words_follow_from_the_interval(
    low: float, value: float, high: float, base: float, figure: str
) -> None:
    low, value, high = sorted((low, value, high))
    one = Difference(figure=figure, of="a", than="b", base=base, value=value, low=low, high=high)
    more, less = ("longer", "shorter") if "wait" in figure else ("higher", "lower")
    text = one.words()
    claim = text.partition(" (95 %")[0]
    if low > 0:
        assert claim.endswith(f" {more} than with b")
    elif high < 0:
        assert claim.endswith(f" {less} than with b")
    else:
        assert claim == f"a: this history shows no difference in the {figure.partition(' (')[0]}"


def test_a_difference_without_an_interval_says_so() -> None:
    one = Difference(figure="longest wait (s)", of="a", than="b", base=100.0, value=5.0, low=None, high=None)
    assert one.words() == "a: the longest wait is 5 % longer than with b (one history: no interval)"


def test_the_example_says_what_its_intervals_say_and_how_far_the_model_is_off(tmp_path: Path) -> None:
    sources = ("--sacct", EXAMPLES / "history.txt.gz", "--nodes", EXAMPLES / "history-nodes.txt")
    made = aucsched("workload", "from-sacct", *sources[1:], "-o", tmp_path / "week.json")
    assert made.returncode == 0, made.stderr
    week = au.load_workload(tmp_path / "week.json")
    assert {(node.total.cores, node.partitions) for node in week.nodes} == {(16, ("batch",)), (32, ("gpu",))}
    found = au.gain(week)
    assert len(found.compared) > 250
    assert not found.is_too_short
    clear = [one for one in found.differences("aucsched3", "backfill-slurm") if one.low is not None]
    assert len(clear) == 5
    assert all(
        one.low <= one.value <= one.high for one in clear if one.low is not None and one.high is not None
    )
    assert found.words[-2].startswith("model error: the mean wait is ")
    assert ("means little" in found.words[-1]) == (
        abs(clear[0].value) <= abs(found.differences("backfill-slurm", "happened")[0].value)
    )
    assert len(found.groups) <= 10


def test_jobs_that_the_machine_cannot_hold_are_counted_with_the_reason() -> None:
    done = aucsched("gain", "--sacct", EXAMPLES / "history.txt.gz", "--nodes", "20", "--cores", "16")
    assert "history.txt.gz: 239 of 299 jobs compared" in done.stdout
    assert "60 jobs (first 1003) asked for gpu, which no node has: left out" in done.stdout


def test_a_topology_file_is_taken_and_json_has_the_total_of_the_text(tmp_path: Path) -> None:
    sources = ("--sacct", EXAMPLES / "history.txt.gz", "--nodes", EXAMPLES / "history-nodes.txt")
    week, conf = tmp_path / "history.txt.gz", tmp_path / "topology.conf"
    assert aucsched("workload", "from-sacct", *sources[1:], "-o", week.with_suffix(".json")).returncode == 0
    flat = au.load_workload(week.with_suffix(".json"))
    names = [node.name for node in flat.nodes]
    leaves = {"s0": names[::2], "s1": names[1::2]}
    lines = [f"SwitchName={leaf} Nodes={','.join(below)}" for leaf, below in leaves.items()]
    conf.write_text("\n".join([*lines, "SwitchName=top Switches=s[0-1]", ""]))
    done = aucsched("gain", *sources, "--topology", conf, "--format", "json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    tree = [au.Switch(name=leaf, nodes=below) for leaf, below in leaves.items()]
    expected = au.gain(replace(flat, switches=[*tree, au.Switch(name="top", switches=["s0", "s1"])]))
    assert document["columns"] == expected.columns
    assert document["columns"] != au.gain(flat).columns, "the switches matter"
    title = f"{document['jobs']} of {document['total']} jobs compared"
    assert title in expected.title()
    assert f"history.txt.gz: {title}" in aucsched("gain", *sources, "--topology", conf).stdout
    assert "none.conf: No such file" in refused("gain", *sources, "--topology", tmp_path / "none.conf")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give one of: --sacct FILE, slurm, a workload file"),
        (("slurm", "--sacct", "x"), "give one of"),
        (("--sacct", "SACCT"), "--nodes is missing"),
        (("--sacct", "SACCT", "--nodes", "2"), "needs --cores"),
        (("--sacct", "SACCT", "--nodes", "SACCT"), "is not what scontrol shows of a NodeName"),
        (("--sacct", "SACCT", "--nodes", "SACCT", "--cores", "2"), "--cores is for a number of equal nodes"),
        (
            ("--sacct", "SACCT", "--nodes", "1", "--cores", "4", "--since", "soon"),
            "--since: 'soon' is neither",
        ),
        (
            ("--sacct", "SACCT", "--nodes", "1", "--cores", "4", "--conf", "SACCT"),
            "not what scontrol show config",
        ),
        (
            ("--sacct", "SACCT", "--nodes", "1", "--cores", "4", "--since", "2027-01-01"),
            "--since, --until leave no job: all came from 1970-01-01T00:00:00+00:00 to 1970-01-01T00:05",
        ),
        (("--sacct", "none.txt", "--nodes", "1", "--cores", "4"), "none.txt: No such file"),
        (("--sacct", "SACCT", "--nodes", "1", "--cores", "4", "--policy", "eazy"), "eazy"),
        (("w.json", "--nodes", "4"), "--nodes is for sacct's output"),
        (("overtaken.json",), "no job says when it started"),
    ],
)
def test_what_is_wrong_is_one_line(sacct: Path, arguments: tuple[str, ...], message: str) -> None:
    named = [
        {"SACCT": str(sacct), "overtaken.json": str(EXAMPLES / "overtaken.json")}.get(one, one)
        for one in arguments
    ]
    output = sacct.with_name("gain.txt")
    assert message in refused("gain", *named, "-o", output)
    assert not output.exists()


def _answers(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_slurm_is_asked_for_jobs_nodes_and_settings(sacct: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = sacct.parent
    _answers(folder, "sacct", f'echo "$@" > {folder}/asked; cat {sacct}')
    nodes = "NodeName=n1 CPUTot=4 CPUAlloc=0 State=DOWN+DRAIN Gres=(null)"
    config = "Configuration data as of now\nSchedulerParameters = bf_interval=60,bf_max_job_test=7"
    _answers(
        folder,
        "scontrol",
        f'case "$*" in *--json) exit 1;; *nodes) echo "{nodes}";; *config) echo "{config}";; esac',
    )
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    done = aucsched("gain", "slurm", "--since", "0", "--until", "86400", "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["columns"]["wait_s backfill-slurm"] == [0, 540, 1080, 420, 1560, 1500]
    assert "nodes that take no jobs now, taken as working: 1" in found["notes"]
    asked = (folder / "asked").read_text()
    assert asked.startswith("-a -X -P --format=JobID,User,")
    assert " -S 19" in asked
    assert " -E 19" in asked


def test_a_workload_with_starts_is_a_history_too(tmp_path: Path) -> None:
    nodes = '"nodes": [{"name": "n", "cores": 4}]'
    job = '"priority": 1, "cores": 4, "time_limit_s": 60, "arrival_s": 10, "run_time_s": 60'
    text = f'{{"format": "aucsched-workload/1", {nodes}, "jobs": [{{"id": "a", {job}, "started_s": %s}}]}}'
    path = tmp_path / "week.json"
    path.write_text(text % 30)
    done = aucsched("gain", path)
    assert done.returncode == 0, done.stderr
    assert "too short to say what you would gain: 1 job in 0 s" in done.stdout
    path.write_text(text % 5)
    assert "jobs[0].started_s: 5 is not from 10" in refused("gain", path)


def test_no_window_is_named_that_nobody_gave(sacct: Path) -> None:
    lines = sacct.read_text().splitlines()
    sacct.write_text("\n".join(lines[:2]) + "\n")
    said = refused("gain", "--sacct", sacct, "--nodes", "1", "--cores", "4")
    assert "no job" in said
    assert "--since" not in said


def test_objective_and_promise_are_the_auctions(sacct: Path) -> None:
    line = ("gain", "--sacct", sacct, "--nodes", "1", "--cores", "4", "--since", "0")
    asked = ("--objective", "response", "--promise", "none", "--policy", "easy", "--format", "json")
    plain, found = (
        json.loads(aucsched(*line, *more).stdout) for more in (("--policy", "easy", *asked[-2:]), asked)
    )
    assert plain["options"] == []
    assert found["options"] == ["objective response", "promise none"]
    # At minute 10 F (2 cores, 1 minute) saves most slowdown, and D fits beside B, which is due when F ends.
    waits = [0, 10, 19, 7, 27, 5]
    assert found["columns"].pop("wait_s aucsched3") == [60 * wait for wait in waits]
    assert plain["columns"].pop("wait_s aucsched3") != [60 * wait for wait in waits]
    assert found["columns"] == plain["columns"]
    assert refused(*line, "--promise", "soon").startswith("aucsched: --promise 'soon' is not")
