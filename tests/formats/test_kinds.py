"""A file of the wrong kind is named for what it is, with the command that reads it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import aucsched
from aucsched.cli import run
from aucsched.formats.file_kinds import kind_of

EXAMPLES = Path(__file__).parents[2] / "examples"
SQUEUE = "   JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n  7 p a b R 1 1 n1\n"
SCHEDULE = aucsched.schedule(aucsched.Snapshot(nodes=[aucsched.Node(name="n", cores=2)])).to_json()


def _contents() -> dict[str, bytes]:
    return {
        "log": (EXAMPLES / "days.swf").read_bytes(),
        "snapshot": (EXAMPLES / "emulated-1408-full.json").read_bytes(),
        "workload": (EXAMPLES / "overtaken.json").read_bytes(),
        "schedule": SCHEDULE.encode(),
        "squeue": SQUEUE.encode(),
        "json": gzip.decompress((EXAMPLES / "source" / "squeue.json.gz").read_bytes()),
        "sinfo": b"PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\np* up 1:00 2 idle n[1-2]\n",
        "scontrol": b"NodeName=n1 Arch=x86_64 CoresPerSocket=4\n",
        "sacct": b"JobID|Partition|State|Submit|Start\n1|p|COMPLETED|2|3\n",
    }


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    ("command", "name", "message"),
    [
        (
            "schedule",
            "log",
            "this is a log in the Standard Workload Format, not a snapshot: aucsched",
        ),
        ("plan", "workload", "this is a workload of nodes, not a snapshot: aucsched simulate"),
        ("compare", "squeue", "this is what squeue prints, as text, not a snapshot: aucsched snapshot slurm"),
        ("schedule", "json", "this is Slurm's JSON of its jobs, not a snapshot: aucsched snapshot slurm"),
        ("schedule", "schedule", "this is a schedule, not a snapshot: aucsched explain SNAPSHOT --award"),
        ("check", "sinfo", "this is what sinfo prints, as text, not a snapshot"),
        ("explain", "scontrol", "this is what scontrol prints, not a snapshot"),
        ("simulate", "snapshot", "this is a snapshot, not a workload: aucsched schedule"),
        ("simulate", "squeue", "this is what squeue prints, as text, not a log"),
        ("simulate", "sacct", "this is what sacct prints, not a log: aucsched gain --sacct"),
        ("simulate", "schedule", "this is a schedule, not a workload"),
        ("winners", "snapshot", "this is a snapshot, not an auction: aucsched schedule"),
    ],
)
def test_the_line_names_the_file_the_kind_and_the_command(
    command: str, name: str, message: str, packed: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, content = tmp_path / "input", _contents()[name]
    file.write_bytes(gzip.compress(content) if packed else content)
    assert run([command, str(file)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"{file}: ")
    assert message in err


@pytest.mark.parametrize(
    ("content", "message"),
    [(b'[{"format": 1}]', "is not an object"), (b"\xef\xbb\xbf{}", "the member 'format' is missing")],
)
@pytest.mark.parametrize("arguments", [["simulate"], ["workload", "describe"], ["sweep", "-o", "s.csv"]])
def test_json_is_no_log(
    arguments: list[str], content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "log.swf"
    file.write_bytes(content)
    assert run([*arguments, str(file)]) == 2
    assert message in capsys.readouterr().err
    with pytest.raises(aucsched.InputError, match=message):
        aucsched.simulate(file)


@pytest.mark.parametrize("command", ["schedule", "explain", "plan", "compare", "check"])
def test_the_live_queue_is_no_file_until_a_command_makes_one(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run([command, "slurm"]) == 2
    advice = "aucsched snapshot slurm -o now.json makes one of the live queue"
    assert capsys.readouterr().err == f"slurm: this is not a snapshot file: {advice}\n"
    Path("slurm").write_bytes(_contents()["snapshot"])
    assert run(["check", "slurm"]) == 0


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"a": 1}', b"hello\n", b"\xff\xfe", b"1 2 3\n", b"{" * 5000]
)
def test_nothing_is_said_of_what_is_not_known(content: bytes) -> None:
    assert kind_of(content) is None
    with pytest.raises(aucsched.InputError) as refused:
        aucsched.parse_snapshot(content)
    assert "this is" not in str(refused.value)


def test_what_is_of_the_kind_keeps_its_own_error() -> None:
    broken = json.loads(_contents()["workload"])
    del broken["nodes"]
    with pytest.raises(aucsched.InputError, match="'nodes' is missing"):
        aucsched.parse_workload(json.dumps(broken).encode())
