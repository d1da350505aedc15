"""Live commands of a Slurm that writes JSON for all, of 22.05 that does not, and files in their place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.newer import newer_nodes
from support.run import aucsched

FIXTURES = Path(__file__).parents[2] / "fixtures" / "slurm"
USE, NEWER = FIXTURES / "use", FIXTURES / "newer"

#: What every version answers with text.
TEXTS = {
    "-d show job": USE / "job_detail.txt",
    "show topology": USE / "topology.conf",
    "show config": NEWER / "config.txt",
    "show assoc_mgr flags=qos,assoc": NEWER / "assoc_mgr.txt",
}


def printing(path: Path) -> str:
    return f"while IFS= read -r line; do printf '%s\\n' \"$line\"; done < '{path}'"


def installed(folder: Path, name: str, answers: dict[str, Path]) -> None:
    """Make a command that answers these arguments and fails for all others, as 22.05 does for --json."""
    cases = "\n".join(f'"{words}") {printing(path)} ;;' for words, path in answers.items())
    program = folder / name
    program.write_text(
        f'#!/bin/sh\n[ "$SLURM_TIME_FORMAT" = %s ] || exit 1\ncase "$*" in\n{cases}\n*) exit 1 ;;\nesac\n'
    )
    program.chmod(0o755)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "bin"
    path.mkdir()
    installed(path, "squeue", {"--json": USE / "squeue.json"})
    return path


def made(folder: Path, *arguments: str | Path) -> tuple[dict[str, Any], str]:
    result = aucsched("snapshot", "slurm", *arguments, env={"PATH": str(folder)})
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout), result.stderr


def limits(document: dict[str, Any]) -> dict[str, Any]:
    return {name: document[name] for name in ("nodes", "partitions", "licenses", "reservations")}


def test_json_where_scontrol_writes_it(folder: Path, tmp_path: Path) -> None:
    """A newer sinfo --json, which groups nodes, is never asked."""
    nodes = tmp_path / "nodes.json"
    nodes.write_text(json.dumps(newer_nodes(json.loads((USE / "sinfo.json").read_text()))) + "\n")
    answers = dict(TEXTS)
    answers |= {"show reservations --json": NEWER / "reservations.json", "show nodes --json": nodes}
    answers |= {f"-o show {name}": NEWER / f"{name}.txt" for name in ("licenses", "partitions")}
    installed(folder, "scontrol", answers)
    newer, said = made(folder)
    assert "command" not in said
    assert [entry["name"] for entry in newer["partitions"]] == ["p", "long", "debug", "whole"]

    (folder / "scontrol").unlink()
    answers = dict(TEXTS)
    answers |= {
        f"-o show {name}": NEWER / f"{name}.txt" for name in ("partitions", "licenses", "reservations")
    }
    installed(folder, "scontrol", answers)
    installed(folder, "sinfo", {"--json": USE / "sinfo.json"})
    older, said = made(folder)
    assert "command" not in said
    assert limits(older) == limits(newer)


def test_files_in_their_place(folder: Path) -> None:
    names = ("partitions", "licenses", "reservations")
    given = [part for name in names for part in (f"--{name}", NEWER / f"{name}.json")]
    saved = ["--jobs", USE / "squeue.json", "--nodes", USE / "sinfo.json", *given]
    document, _ = made(folder, *saved, "--topology", NEWER / "topology.yaml")
    assert limits(document)["licenses"]["matlab"] == {"total": 4, "free": 2}
    assert document["topology"]["switches"][0]["name"] == "top"


def test_what_cannot_be_asked_is_noted(folder: Path) -> None:
    installed(folder, "sinfo", {"--json": USE / "sinfo.json"})
    document, said = made(folder)
    assert "partitions" not in document
    for name in (
        "licences are not known",
        "limits of partitions are not known",
        "reservations are not known",
    ):
        assert any(name in note for note in document["notes"])
    assert "scontrol -o show partitions: the command is not installed here" in " ".join(document["notes"])
    assert "note: " in said


def test_limits_of_now_are_not_asked_for_a_saved_queue(folder: Path) -> None:
    installed(folder, "scontrol", {"-o show partitions": NEWER / "partitions.txt"})
    document, _ = made(folder, "--jobs", USE / "squeue.json", "--nodes", USE / "sinfo.json")
    assert "partitions" not in document
    assert not any("partitions" in note for note in document["notes"])


def test_local_times_are_noted(folder: Path, tmp_path: Path) -> None:
    text = (NEWER / "reservations.txt").read_text()
    local = tmp_path / "local.txt"
    local.write_text(
        text.replace("1795180000", "2026-11-20T13:06:40").replace("1795190000", "2026-11-20T15:53:20")
    )
    saved = ("--jobs", USE / "squeue.json", "--nodes", USE / "sinfo.json", "--reservations", local)
    document, _ = made(folder, *saved)
    assert "times of reservations have no zone: read as this machine's local time" in document["notes"]
    assert len(document["reservations"]) == 5
