"""A member of a type is one line: the constructor, the file, its schema and its messages follow from it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BEFORE = "    contiguous: bool = member(Boolean(), default=False)\n"
ADDED = "    scratch_mib: OptionalIntLike = member(Integer(1), default=None)\n"
USED = """
import json
from aucsched import InputError, Request
from aucsched.formats.native.json_schema import schema_of
from aucsched.formats.native.cluster_file import parse_snapshot
from aucsched.formats.native.cluster_file import snapshot_to_json

def snapshot(value):
    job = {"id": "1", "priority": 5, "cores": 4, "scratch_mib": value}
    text = {"format": "aucsched-snapshot/1", "nodes": [{"name": "n", "cores": 8}], "jobs": [job]}
    return json.dumps(text).encode()

def refusal(call, *given, **named):
    try:
        call(*given, **named)
    except InputError as error:
        return str(error)

read = parse_snapshot(snapshot(7))
print(json.dumps({
    "read": read.jobs[0].request.scratch_mib,
    "written": json.loads(snapshot_to_json(read))["jobs"][0]["scratch_mib"],
    "same": parse_snapshot(snapshot_to_json(read).encode()) == read,
    "schema": schema_of("snapshot")["$defs"]["Job"]["properties"]["scratch_mib"],
    "python": refusal(Request, cores=4, scratch_mib=0),
    "range": refusal(parse_snapshot, snapshot(0)),
    "type": refusal(parse_snapshot, snapshot("7")),
}))
"""


def test_a_member_of_a_request_is_added_by_one_line(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    jobs = tmp_path / "src" / "aucsched" / "cluster" / "jobs.py"
    text = jobs.read_text()
    assert text.count(BEFORE) == 1
    jobs.write_text(text.replace(BEFORE, BEFORE + ADDED))
    done = subprocess.run(
        [sys.executable, "-c", USED],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "read": 7,
        "written": 7,
        "same": True,
        "schema": {
            "anyOf": [{"type": "integer", "minimum": 1, "maximum": 10**12}, {"type": "null"}],
            "default": None,
        },
        "python": "scratch_mib: 0 is below 1",
        "range": "jobs[0].scratch_mib: 0 is below 1",
        "type": 'jobs[0].scratch_mib: "7" is not an integer',
    }
