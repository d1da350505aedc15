"""``--format slurm`` with hostile values in every text of a snapshot: scontrol is called, and nothing else.

The scripts run with sh in a folder of their own, where a scontrol of ours writes down each call's arguments,
and where a call of anything else would leave a file.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.run import aucsched, refused

from aucsched import InputError, Job, Node, Request, Resources, RunningJob, Snapshot, Span, schedule
from aucsched.formats.native.cluster_file import parse_snapshot
from aucsched.slurm.place import placement

#: On whole nodes, on different cores of nodes (a reservation), with gres of a range: every kind of command.
SNAPSHOT: dict[str, Any] = {
    "format": "aucsched-snapshot/1",
    "time": "2026-11-20T09:30:00Z",
    "nodes": [
        {
            "name": "a[1-2]",
            "cores": 4,
            "gres": {"gpu:a100": 2, "gpu:v100": 1},
            "features": ["nvme"],
            "partitions": ["batch"],
        },
        {"name": "b1", "cores": 3, "partitions": ["batch"], "features": ["nvme"]},
        {"name": "b2", "cores": 1, "partitions": ["batch"]},
        {"name": "c1", "cores": 2, "state": "down"},
    ],
    "topology": {
        "kind": "tree",
        "switches": [
            {"name": "leaf1", "nodes": "a[1-2]"},
            {"name": "leaf2", "nodes": "b[1-2],c1"},
            {"name": "core", "switches": "leaf[1-2]"},
        ],
    },
    "jobs": [
        {
            "id": "17",
            "priority": 9,
            "nodes": 2,
            "cores_per_node": 2,
            "gres_per_node": {"gpu:a100": [1, 2]},
            "features": ["nvme"],
            "licenses": {"matlab": 1},
            "required_nodes": "a1",
            "excluded_nodes": "b1",
            "submit_time": "2026-11-20T09:00:00Z",
            "expected_start_time": "2026-11-20T10:00:00Z",
        },
        {
            "id": "18",
            "priority": 8,
            "cores": 4,
            "excluded_nodes": "a[1-2]",
            "partition": "batch",
            "user": "anna",
            "group": "physics",
            "account": "p1",
            "qos": "normal",
        },
        {"id": "19", "priority": 7, "cores": 1, "gres_total": {"gpu:v100": 1}, "kind": "rigid"},
        {"id": "20", "priority": 6, "cores": 1, "hold": "JobHeldUser"},
        {"id": "21", "priority": 5, "cores": 1, "unsupported": ["--bb"], "speedup": {"name": "amdahl"}},
    ],
    "running": [{"id": "9", "nodes": {"c1": {"cores": 1}}, "end_time": "2026-11-20T11:00:00Z"}],
    "licenses": {"matlab": {"total": 2}},
    "partitions": [{"name": "batch", "nodes": "a[1-2],b[1-2]", "state": "up"}],
    "reservations": [
        {
            "name": "r",
            "nodes": "c1",
            "start": "2026-11-20T12:00:00Z",
            "end": "2026-11-20T13:00:00Z",
            "users": ["ann"],
        }
    ],
    "notes": ["made by hand"],
}
#: Each would leave the file ``hit`` if a shell read it as anything but text.
HOSTILE = (
    "x\ntouch hit\n",
    "x\rtouch hit\r",
    "x; touch hit;",
    "$(touch hit)",
    "`touch hit`",
    "' ; touch hit ; '",
    '" ; touch hit ; "',
    "x && touch hit",
    "x | touch hit",
    "x > hit",
    "x\\",
    "x\x00",
    "x\x1b[2J",
    "x\u202ey",
)
CONTROLS = tuple(value for value in HOSTILE if any(not letter.isprintable() for letter in value))

Way = tuple[str | int, ...]


def texts_of(value: Any, way: Way = ()) -> Iterator[tuple[Way, bool]]:
    """Yield the way to every text of a document, and whether it is the name of a member."""
    if isinstance(value, dict):
        for name, child in value.items():
            if way and way[-1] in FREE_NAMES:
                yield (*way, name), True
            yield from texts_of(child, (*way, name))
    elif isinstance(value, list):
        for place, child in enumerate(value):
            yield from texts_of(child, (*way, place))
    elif isinstance(value, str):
        yield way, False


#: Members whose own members have names of the site's choice.
FREE_NAMES = ("gres", "gres_per_node", "gres_total", "licenses", "nodes", "speedup")


def with_text(way: Way, is_name: bool, text: str) -> dict[str, Any]:
    """Return the snapshot with one text replaced: wherever a licence, feature, … of that name stands."""
    document = copy.deepcopy(SNAPSHOT)
    place: Any = document
    for step in way[:-1]:
        place = place[step]
    before = way[-1] if is_name else place[way[-1]]
    if way[0] in ("nodes", "licenses") or (way[0] == "jobs" and is_name):
        # A name that jobs and nodes share, so that the job still starts.
        return json.loads(json.dumps(document).replace(json.dumps(before), json.dumps(text)))  # type: ignore[no-any-return]
    if is_name:
        place[text] = place.pop(before)
    else:
        place[way[-1]] = text
    return document


PLACES = list(texts_of(SNAPSHOT))


def test_the_places_are_every_text_of_a_snapshot() -> None:
    ways = {"/".join(map(str, way)) for way, _ in PLACES}
    for way in ("jobs/1/user", "nodes/0/gres/gpu:a100", "licenses/matlab", "notes/0", "running/0/nodes/c1"):
        assert way in ways


def folder_with_scontrol(folder: Path) -> Path:
    """Make a folder whose bin holds a scontrol that writes its arguments down, each behind a NUL."""
    (folder / "bin").mkdir(exist_ok=True)
    scontrol = folder / "bin" / "scontrol"
    scontrol.write_text('#!/bin/sh\nprintf "%s\\0" "$#" "$@" >> calls\n')
    scontrol.chmod(0o755)
    return folder


def called(script: str, folder: Path) -> list[list[str]]:
    """Run a script; return scontrol's arguments, call by call; nothing else may have been called."""
    (folder / "script").write_text(script)
    path = f"{folder}/bin:/usr/bin:/bin"
    done = subprocess.run(
        ["/bin/sh", folder / "script"], cwd=folder, env={"PATH": path}, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert {file.name for file in folder.iterdir()} <= {"bin", "script", "calls"}
    log = folder / "calls"
    if not log.exists():
        return []
    words = log.read_text().split("\0")[:-1]
    log.unlink()
    calls = []
    while words:
        count = int(words.pop(0))
        calls.append(words[:count])
        del words[:count]
    return calls


def script_of(snapshot: Snapshot) -> str:
    """Return the script; how its award is found does not matter."""
    return placement(snapshot, schedule(snapshot, strategy="greedy"))[0]


def test_scripts_call_scontrol_and_nothing_else_whatever_a_text_holds(tmp_path: Path) -> None:
    folder_with_scontrol(tmp_path)
    plain = called(script_of(parse_snapshot(json.dumps(SNAPSHOT).encode())), tmp_path)
    assert ["hold", "17"] in plain
    assert any("Users=anna" in call for call in plain)
    assert any("Gres=gpu:a100:2" in call for call in plain)
    ran = changed = 0
    refused_at: list[str] = []
    for way, is_name in PLACES:
        for text in HOSTILE:
            try:
                snapshot = parse_snapshot(json.dumps(with_text(way, is_name, text)).encode())
            except InputError as error:
                refused_at.append(error.path)
                continue
            if text in CONTROLS:
                assert way[0] == "notes" or way[-1] in (0, "name") or "unsupported" in way, (way, text)
            calls = called(script_of(snapshot), tmp_path)
            ran += 1
            # The words are those of the plain snapshot but for the text itself.
            assert len(calls) <= len(plain), (way, text)
            for call in calls:
                if call in plain:
                    continue
                changed += 1
                old = next(one for one in plain if one[0] == call[0] and len(one) == len(call))
                new = [word for word, before in zip(call, old, strict=True) if word != before]
                assert all(text in word or "Gres=" in word for word in new), (way, text, call)
    assert all(refused_at)
    assert ran > 200
    assert changed > 20


@pytest.mark.parametrize("text", HOSTILE)
def test_a_users_name_is_one_argument(text: str, tmp_path: Path) -> None:
    folder_with_scontrol(tmp_path)
    document = with_text(("jobs", 1, "user"), False, text)
    if text in CONTROLS:
        with pytest.raises(InputError, match=r"holds the control character U\+") as caught:
            parse_snapshot(json.dumps(document).encode())
        assert caught.value.path == "jobs[1].user"
        return
    calls = called(script_of(parse_snapshot(json.dumps(document).encode())), tmp_path)
    (reserve,) = [call for call in calls if call[0] == "create"]
    assert f"Users={text}" in reserve


@pytest.mark.parametrize("user", ["a,root", "-a", "+a"])
def test_a_user_that_scontrol_reads_as_others_is_not_placed(user: str) -> None:
    document = with_text(("jobs", 1, "user"), False, user)
    text = script_of(parse_snapshot(json.dumps(document).encode()))
    assert f"# job 18 cannot be placed: {user!r} is not a user that scontrol reads as one name" in text
    assert "Users=" not in text


def test_a_gres_of_two_names_is_not_placed() -> None:
    document = json.loads(json.dumps(SNAPSHOT).replace("gpu:a100", "gpu:a,license"))
    text = script_of(parse_snapshot(json.dumps(document).encode()))
    assert "# job 17 cannot be placed: 'gpu:a,license' is not a gres that scontrol reads as one name" in text


def test_an_award_of_the_python_api_on_a_hostlist_is_not_placed() -> None:
    node = Node(name="n1", total=Resources(cores=4), free=Resources(cores=4))
    snapshot = Snapshot(nodes=(node,), jobs=(Job(id="1", priority=1, request=Request(cores=1)),))
    made = schedule(snapshot, strategy="greedy")
    spoiled = replace(made, started=(replace(made.started[0], nodes={"n[1-9]": Resources(cores=1)}),))
    text, problems = placement(snapshot, spoiled)
    assert "# job 1 cannot be placed: 'n[1-9]' is not a node name of Slurm" in text
    assert len(problems) == 1


@pytest.mark.parametrize(("way", "is_name"), PLACES)
def test_a_control_character_in_a_name_is_refused_with_its_place(way: Way, is_name: bool) -> None:
    if way[0] in ("format", "notes") or "unsupported" in way or "speedup" in way:
        pytest.skip("no name")
    for text in ("x\ny", "x\x1b[31m", "x\x00", "x\x9b", "x\u202e", "x\u2028y"):
        with pytest.raises(InputError) as caught:
            parse_snapshot(json.dumps(with_text(way, is_name, text)).encode())
        line = str(caught.value)
        assert caught.value.path
        assert line.isprintable(), line
        assert repr(text) in line or json.dumps(text) in line, line


@pytest.mark.parametrize(
    ("build", "path"),
    [
        (lambda bad: Node(name=bad, total=Resources(cores=1), free=Resources(cores=1)), "name"),
        (lambda bad: Resources(cores=1, gres={bad: 1}), "gres"),
        (lambda bad: Request(cores=1, gres_per_node={bad: Span.exactly(1)}), "gres_per_node"),
        (lambda bad: Request(cores=1, gres_total={bad: Span.exactly(1)}), "gres_total"),
        (lambda bad: Request(cores=1, features=frozenset({bad})), "features"),
        (lambda bad: Job(id=bad, priority=1, request=Request(cores=1)), "id"),
        (lambda bad: Job(id="1", priority=1, request=Request(cores=1), hold=bad), "hold"),
        (lambda bad: RunningJob(id=bad, nodes={"n": Resources(cores=1)}), "id"),
    ],
)
def test_the_python_api_refuses_them_too(build: Any, path: str) -> None:
    with pytest.raises(InputError, match=r"'1\\nreboot' holds the control character U\+000A") as caught:
        build("1\nreboot")
    assert caught.value.path == path


FIXTURES = Path(__file__).parents[1] / "fixtures" / "slurm" / "use"


@pytest.mark.parametrize(
    ("file", "option", "change"),
    [
        ("sinfo.json", "--nodes", lambda text: text.replace("gpu:a100:2", "gpu:x\\ntouch hit:2", 1)),
        (
            "sinfo.json",
            "--nodes",
            lambda text: text.replace('"partitions":[', '"partitions":["a\\u001b",', 1),
        ),
        ("squeue.json", "--jobs", lambda text: text.replace('"account":"', '"account":"\\n')),
        ("licenses.txt", "--licenses", lambda text: text.replace("LicenseName=", "LicenseName=a\x1b[2J", 1)),
    ],
)
def test_saved_slurm_output_with_controls_in_names_is_refused(
    file: str, option: str, change: Any, tmp_path: Path
) -> None:
    text = (FIXTURES / file).read_text()
    assert change(text) != text
    (tmp_path / file).write_text(change(text))
    files = {"--nodes": "sinfo.json", "--jobs": "squeue.json", "--topology": "topology.conf"}
    files |= {"--job-detail": "job_detail.txt", "--licenses": "licenses.txt"}
    given = {name: FIXTURES / name_of for name, name_of in files.items()} | {option: tmp_path / file}
    line = refused("snapshot", "slurm", *(part for pair in given.items() for part in pair))
    assert line.startswith(f"{tmp_path / file}: ")
    assert "holds the control character" in line
    assert line.isprintable()


def test_the_command_prints_the_script_in_utf_8_whatever_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(with_text(("jobs", 1, "user"), False, "ännchen"), ensure_ascii=False))
    command = [sys.executable, "-m", "aucsched", "schedule", str(path), "--format", "slurm"]
    done = subprocess.run(
        command, capture_output=True, check=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert "Users=ännchen".encode() in done.stdout


def test_nothing_of_a_hostile_file_reaches_a_terminal_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(with_text(("jobs", 0, "id"), False, "1\x1b]0;owned\x07")))
    done = aucsched("schedule", path, "--format", "slurm")
    assert done.returncode == 2
    assert done.stderr.rstrip("\n").isprintable()
