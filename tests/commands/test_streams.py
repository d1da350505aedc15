"""Every command with a standard output that takes nothing, with narrow encodings, and with closed streams."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aucsched.cli import COMMANDS

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
USE = ROOT / "tests" / "fixtures" / "slurm" / "use"
AUCSCHED = f"{sys.executable} -m aucsched"
SNAPSHOT = {
    "format": "aucsched-snapshot/1",
    "nodes": [{"name": "n[1-4]", "cores": 4}],
    "jobs": [
        {"id": "1", "priority": 3, "cores": 6, "user": "ä"},
        {"id": "中", "priority": 2, "cores": 20, "unsupported": ["--é"]},
    ],
    "notes": ["ünï → 中"],
}
WORKLOAD: dict[str, Any] = {
    "format": "aucsched-workload/1",
    "name": "two → jobs",
    "nodes": [{"name": "n[1-4]", "cores": 4}],
    "jobs": [
        {"id": "ä", "priority": 3, "nodes": 2, "cores_per_node": 4, "arrival_s": 0, "run_time_s": 9},
        {"id": "中", "priority": 2, "nodes": 3, "cores_per_node": 4, "arrival_s": 1, "run_time_s": 9},
    ],
}
HISTORY = {**WORKLOAD, "jobs": [{**job, "started_s": 2} for job in WORKLOAD["jobs"]]}
BIDS = {
    "format": "aucsched-auction/1",
    "capacities": {"gpu": 2},
    "bids": [{"bidder": "ann", "value": 10.25, "items": {"gpu": 2}}],
}
SLURM = " ".join(
    f"--{option} {USE / name}"
    for option, name in (
        *(("jobs", "squeue.json"), ("nodes", "sinfo.json"), ("topology", "topology.conf")),
        *(("job-detail", "job_detail.txt"), ("licenses", "licenses.txt")),
    )
)
#: Of each command one that prints; ``sweep`` prints nothing, the two parties are run as a pair below.
PRINTING = {
    "man": "man pages",
    "examples": "examples",
    "evolve": "evolve snapshot.json",
    "winners": "winners bids.json",
    "help": "--help",
    "version": "--version",
    "schedule": "schedule snapshot.json",
    "schedule --format json": "schedule snapshot.json --format json",
    "schedule --format slurm": "schedule snapshot.json --format slurm",
    "explain": "explain snapshot.json",
    "gain": "gain history.json",
    "check": "check snapshot.json",
    "compare": "compare snapshot.json",
    "topology": "topology torus:2x2",
    "plan": "plan snapshot.json",
    "forecast": "forecast snapshot.json",
    "negotiate": "negotiate workload.json",
    "schema": "schema snapshot",
    "completion": "completion bash",
    "snapshot": f"snapshot slurm {SLURM}",
    "board": f"board {EXAMPLES / 'days.swf'}",
    "simulate": f"simulate {EXAMPLES / 'days.swf'}",
    "simulate on nodes": "simulate workload.json --format json",
    "workload": "workload describe workload.json",
    "workload esp": "workload esp",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("streams")
    (place / "snapshot.json").write_text(json.dumps(SNAPSHOT, ensure_ascii=False))
    (place / "bids.json").write_text(json.dumps(BIDS))
    (place / "workload.json").write_text(json.dumps(WORKLOAD, ensure_ascii=False))
    (place / "history.json").write_text(json.dumps(HISTORY, ensure_ascii=False))
    return place


def shell(script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        check=False,
        cwd=folder,
        env={**os.environ, **environment},
        timeout=120,
    )


def test_every_command_is_among_them() -> None:
    tried = {name.split()[0] for name in PRINTING}
    assert {place.replace(":", ".").rpartition(".")[2] for place in COMMANDS} - tried == {
        "slurm",
        "sweep",
        "ibsched",
        "irtsched",
        "dynsched",
    }


def lost(script: str, folder: Path, words: bytes = b"") -> None:
    """Check that a script whose output is lost ends with code 1 and says these words alone beside notes."""
    done = shell(script, folder)
    said = re.sub(rb"(?m)^note: .*\n", b"", done.stderr)
    assert (done.returncode, said) == (1, words), script


FULL = b"aucsched: standard output: No space left on device\n"


@pytest.mark.parametrize("arguments", PRINTING.values(), ids=PRINTING.keys())
def test_a_full_disk_is_one_line_and_code_1(arguments: str, folder: Path) -> None:
    lost(f"{AUCSCHED} {arguments} > /dev/full", folder, FULL)


@pytest.mark.parametrize("name", ["help", "check", "schedule --format slurm", "negotiate"])
def test_a_closed_output_and_a_reader_that_has_gone_end_quietly(name: str, folder: Path) -> None:
    lost(f"{AUCSCHED} {PRINTING[name]} >&-", folder)
    lost(f"set -o pipefail; (sleep 0.3; {AUCSCHED} {PRINTING[name]}) | true", folder)


def test_what_is_written_to_a_file_is_there_though_the_output_is_lost(folder: Path) -> None:
    for redirected in ("> /dev/full", ">&-"):
        assert shell(f"{AUCSCHED} schema plan -o plan.json {redirected}", folder).returncode == 0
        assert json.loads((folder / "plan.json").read_text())
    sweep = f"{AUCSCHED} sweep snapshot.json --window 1,2 --work-limit 1 --workers 1 -o rows.csv >&-"
    # The summary is lost, the table is not.
    done = shell(sweep, folder)
    assert (done.returncode, done.stderr) == (1, b"")
    assert len((folder / "rows.csv").read_text().splitlines()) == 3


def test_a_reader_that_has_seen_enough_gets_what_it_asked_for(folder: Path) -> None:
    done = shell(f"set -o pipefail; {AUCSCHED} workload esp --nodes 1000 | head -n 1", folder)
    assert done.stdout.count(b"\n") == 1
    assert done.stderr == b""


@pytest.mark.parametrize("redirected", ["2> /dev/full", "2>&-"])
def test_a_lost_error_output_leaves_the_code_as_it_is(redirected: str, folder: Path) -> None:
    assert shell(f"{AUCSCHED} check snapshot.json {redirected}", folder).returncode == 0
    assert shell(f"{AUCSCHED} check none.json {redirected}", folder).returncode == 2


def test_a_closed_input_is_one_line(folder: Path) -> None:
    for command in ("check -", "simulate -", "sweep - -o rows2.csv"):
        done = shell(f"{AUCSCHED} {command} <&-", folder)
        assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1), done


def test_no_file_takes_the_place_of_a_closed_stream(folder: Path) -> None:
    """Without care the first file that is opened would be standard output, and get what is printed."""
    done = shell(f"{AUCSCHED} negotiate workload.json --trace trace.txt <&- >&- 2>&-", folder)
    assert done.returncode == 1
    trace = (folder / "trace.txt").read_text().splitlines()
    assert all("iBSched" in line for line in trace)


def test_both_parties_end_quietly_without_an_output(folder: Path) -> None:
    for redirected in ("> /dev/full", ">&-"):
        script = (
            f"{AUCSCHED} irtsched workload.json --listen unix:./s {redirected} & "
            f"{AUCSCHED} ibsched workload.json --connect unix:./s {redirected}; echo $? >&2; "
            "wait $!; echo $? >&2"
        )
        said = [
            line for line in shell(script, folder).stderr.splitlines() if not line.startswith(b"aucsched: ")
        ]
        assert said == [b"1", b"1"], redirected


#: Runs one command after another as processes of their own would, each with files as its streams.
ONE_AFTER_ANOTHER = """
import os, sys
from aucsched.cli import main
for number, line in enumerate(sys.stdin.read().splitlines()):
    for stream, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{number}.{name}", os.O_WRONLY | os.O_CREAT), stream)
    try:
        main(line.split())
    except SystemExit as ended:
        print(ended.code, file=open(f"{number}.code", "w"))
"""


@pytest.fixture(scope="module")
def narrow(folder: Path) -> Path:
    """Return the folder in which every command was run with an encoding that lacks most characters."""
    command, lines = [sys.executable, "-c", ONE_AFTER_ANOTHER], "\n".join(PRINTING.values())
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    subprocess.run(command, input=lines, text=True, check=True, cwd=folder, env=environment)
    return folder


@pytest.mark.parametrize("name", PRINTING)
def test_no_encoding_breaks_a_command(name: str, narrow: Path) -> None:
    number = list(PRINTING).index(name)
    code, out, error = ((narrow / f"{number}.{kind}").read_bytes() for kind in ("code", "out", "err"))
    assert code == b"0\n", error
    assert out
    assert b"Traceback" not in error


def test_json_stays_json_in_every_encoding(folder: Path) -> None:
    for encoding in ("ascii", "latin-1"):
        done = shell(f"{AUCSCHED} check snapshot.json --format json", folder, PYTHONIOENCODING=encoding)
        assert json.loads(done.stdout.decode(encoding))["notes"] == SNAPSHOT["notes"]
    text = shell(f"{AUCSCHED} check snapshot.json", folder, PYTHONIOENCODING="latin-1").stdout
    assert "ünï \\u2192 \\u4e2d".encode("latin-1") in text


def test_help_prints_in_ascii(folder: Path) -> None:
    names = ("sweep", "simulate", "schedule")
    script = "; ".join(f"{AUCSCHED} {name} --help || exit 9" for name in names)
    done = shell(script, folder, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()


def test_a_file_name_that_is_no_text_is_one_line(folder: Path) -> None:
    name = b"\xff\x1b[31m\n.json"
    (Path(os.fsdecode(bytes(folder) + b"/" + name))).write_text(json.dumps(WORKLOAD))
    for arguments in ("simulate", "workload describe", "schedule"):
        done = shell(f"{AUCSCHED} {arguments} $'\\xff\\x1b[31m\\n.json'", folder)
        assert done.returncode in (0, 2)
        for stream in (done.stdout, done.stderr):
            assert b"\x1b" not in stream
            assert b"Traceback" not in stream
        assert done.stderr.count(b"\n") == (done.returncode == 2)
    done = shell(f"{AUCSCHED} schema plan -o $'\\xff\\x1b[31m\\n/none.json'", folder)
    assert (done.returncode, done.stderr.count(b"\n"), done.stderr.count(b"\x1b")) == (2, 1, 0)
