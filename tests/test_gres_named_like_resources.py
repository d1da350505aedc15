"""Gres that are named as what a node has anyway: each works just as one with a name of its own.

The oracle is the same snapshot with plain names: everything that comes out must be equal but for the names.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from aucsched.cli import run

MODELS = ("ipsched", "aucsched1", "aucsched2", "aucsched3")
#: Names of their own that sort as those they stand for; the longest first, as they hold the others.
PLAIN = ("gros/corez", "memozy_mib", "memozy_gib", "memozy", "corez")
LIKE = ("gres/cores", "memory_mib", "memory_gib", "memory", "cores")

SNAPSHOT: dict[str, Any] = {
    "format": "aucsched-snapshot/1",
    "time": "2026-11-20T09:30:00Z",
    "nodes": [
        {"name": "n[1-4]", "cores": 8, "memory_mib": 8000, "gres": dict.fromkeys(PLAIN, 2)},
        {"name": "n[5-6]", "cores": 8, "memory_mib": 8000},
    ],
    "running": [
        {
            "id": "9",
            "nodes": {"n4": {"cores": 2, "memory_mib": 100, "gres": {"corez": 1, "memozy": 2}}},
            "end_time": "2026-11-20T10:00:00Z",
        }
    ],
    "jobs": [
        {"id": "1", "priority": 90, "cores": 8, "gres_per_node": {"corez": 1}, "time_limit_s": 600},
        {"id": "2", "priority": 80, "nodes": 2, "cores": 6, "gres_per_node": {"memozy": 2}},
        {"id": "3", "priority": 70, "cores": 4, "gres_per_node": {"corez": [1, 2], "memozy": 1}},
        {"id": "4", "priority": 60, "nodes": 4, "cores": 4, "gres_per_node": {"corez": 2, "gros/corez": 1}},
        {"id": "5", "priority": 50, "cores": 3, "memory_mib_per_core": 900, "gres_total": {"memozy_mib": 2}},
        {"id": "6", "priority": 40, "cores": 2, "exclusive": True, "gres_per_node": {"memozy_gib": 1}},
        {"id": "7", "priority": 30, "cores": 9, "memory_mib_per_node": 500, "time_limit_s": 7200},
        {"id": "8", "priority": 20, "nodes": 3, "cores": 3, "gres_per_node": {"corez": 1, "memozy": 1}},
    ],
}
WORKLOAD: dict[str, Any] = {
    "format": "aucsched-workload/1",
    "name": "alike",
    "nodes": [{"name": "n[1-4]", "cores": 8, "memory_mib": 8000, "gres": dict.fromkeys(PLAIN, 2)}],
    "jobs": [
        {**job, "arrival_s": 10 * place, "run_time_s": 300 + 70 * place, "time_limit_s": 900}
        for place, job in enumerate(SNAPSHOT["jobs"])
    ],
}


def like(text: str) -> str:
    """Give the gres of a text their names that collide."""
    for plain, name in zip(PLAIN, LIKE, strict=True):
        text = text.replace(f'"{plain}"', f'"{name}"')
    return text


@pytest.mark.parametrize("reserve", ["0", "3"])
@pytest.mark.parametrize(
    ("model", "strategy"),
    [*((model, "exact") for model in MODELS), ("aucsched2", "anytime"), ("aucsched3", "anytime")],
)
def test_an_award_is_that_of_plain_names(model: str, strategy: str, reserve: str, tmp_path: Path) -> None:
    options = ("--model", model, "--strategy", strategy, "--reserve", reserve, "--seed", "1")
    command = ("schedule", "{file}", *options, "--format", "json", "-o", "{out}")
    plain, alike = outputs(tmp_path, SNAPSHOT, *command)
    assert len(plain["started"]) > 1
    for member in ("started", "pending"):
        assert keys_of(plain[member]) == keys_of(alike[member])


def written(folder: Path, document: dict[str, Any]) -> tuple[Path, Path]:
    text = json.dumps(document)
    (folder / "plain.json").write_text(text)
    (folder / "alike.json").write_text(like(text))
    return folder / "plain.json", folder / "alike.json"


def outputs(folder: Path, document: dict[str, Any], *command: str) -> tuple[Any, Any]:
    """Return the JSON that a command prints of both files."""
    results = []
    for file in written(folder, document):
        target = folder / f"{file.stem}.out"
        arguments = [part.format(file=file, out=target) for part in command]
        assert run(arguments) == 0, arguments
        results.append(json.loads(target.read_text().replace(str(file), "FILE")))
    return results[0], results[1]


def without_times(document: Any) -> Any:
    """Drop how long something took."""
    if isinstance(document, dict):
        return {
            key: without_times(value)
            for key, value in document.items()
            if not key.endswith(("_s", "seconds")) or key in {"start_s", "end_s", "wait_s", "run_time_s"}
        }
    return [without_times(value) for value in document] if isinstance(document, list) else document


@pytest.mark.parametrize("job", ["1", "4", "5", "8"])
def test_a_job_is_explained_as_with_plain_names(job: str, tmp_path: Path) -> None:
    command = ("explain", "{file}", job, "--format", "json", "-o", "{out}")
    plain, alike = outputs(tmp_path, SNAPSHOT, *command)
    assert keys_of(plain) == keys_of(alike)


def keys_of(document: Any) -> str:
    """Return a document's text, gres of either naming as one; cores of their own stay."""
    text = json.dumps(without_times(document))
    for plain, name in zip(PLAIN, LIKE, strict=True):
        text = text.replace(f"gres/{name}", "#").replace(plain, "#").replace(name, "#")
    return text


def test_a_plan_is_that_of_plain_names(tmp_path: Path) -> None:
    document = copy.deepcopy(SNAPSHOT)
    for job in document["jobs"]:
        job["time_limit_s"] = 600
    command = ("plan", "{file}", "--format", "json", "-o", "{out}")
    plain, alike = outputs(tmp_path, document, *command)
    assert keys_of(plain) == keys_of(alike)


@pytest.mark.parametrize("policy", ["fcfs", "easy", "backfill-slurm", "backfill-planned", *MODELS])
def test_a_simulation_is_that_of_plain_names(policy: str, tmp_path: Path) -> None:
    command = ("simulate", "{file}", "--policy", policy, "--format", "json", "-o", "{out}")
    plain, alike = outputs(tmp_path, WORKLOAD, *command)
    assert keys_of(plain) == keys_of(alike)


@pytest.mark.parametrize("command", ["check", "compare", "explain", "forecast"])
def test_what_is_counted_is_that_of_plain_names(command: str, tmp_path: Path) -> None:
    plain, alike = outputs(tmp_path, SNAPSHOT, command, "{file}", "--format", "json", "-o", "{out}")
    assert keys_of(plain) == keys_of(alike)
