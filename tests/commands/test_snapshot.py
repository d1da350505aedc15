"""``aucsched snapshot slurm`` as a user runs it: files, standard input, live commands, and every refusal."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.run import Done, aucsched

from aucsched import load_snapshot

FIXTURES = Path(__file__).parents[1] / "fixtures" / "slurm"
USE = FIXTURES / "use"
FILES = {
    "--jobs": USE / "squeue.json",
    "--nodes": USE / "sinfo.json",
    "--topology": USE / "topology.conf",
    "--job-detail": USE / "job_detail.txt",
}


def run(
    *arguments: str | Path,
    path: str | Path = "/nonexistent",
    text: bytes = b"",
    cwd: Path | None = None,
) -> Done:
    """Run the command with ``path`` as the only place where Slurm could be installed."""
    return aucsched("snapshot", "slurm", *arguments, stdin=text, cwd=cwd, env={"PATH": str(path)})


def files(**replaced: str | Path) -> list[str | Path]:
    given = {**FILES, **{f"--{name.replace('_', '-')}": value for name, value in replaced.items()}}
    return [part for option, value in given.items() for part in (option, value)]


def refused(result: Done) -> str:
    """The one line on stderr of a refusal."""
    lines = result.stderr.splitlines()
    assert result.returncode == 2, result
    assert result.stdout == ""
    assert len(lines) == 1, lines
    return lines[0]


def test_files_make_a_snapshot(tmp_path: Path) -> None:
    output = tmp_path / "made.json"
    result = run(*files(), "-o", output)
    assert result.returncode == 0
    assert result.stdout == ""
    snapshot = load_snapshot(output)
    assert len(snapshot.nodes) == 12
    said = result.stderr.splitlines()
    assert said == [f"note: {note}" for note in snapshot.notes]


def test_without_output_it_is_printed() -> None:
    result = run(*files())
    assert json.loads(result.stdout)["format"] == "aucsched-snapshot/1"


@pytest.mark.parametrize("option", list(FILES))
def test_a_dash_is_standard_input(option: str) -> None:
    given = dict(FILES)
    result = run(*files(**{option[2:].replace("-", "_"): "-"}), text=given[option].read_bytes())
    assert result.stdout == run(*files()).stdout


def test_repeated_notes_are_counted(tmp_path: Path) -> None:
    requests = FIXTURES / "requests"
    output = tmp_path / "made.json"
    result = run(
        *files(
            jobs=requests / "squeue.json",
            nodes=requests / "sinfo.json",
            topology=requests / "topology.txt",
            job_detail=requests / "job_detail.txt",
        ),
        "-o",
        output,
    )
    said = result.stderr.splitlines()
    assert "note: not expressible: 20 more, all in the file's notes" in said
    notes = load_snapshot(output).notes
    assert sum("not expressible" in note for note in notes) == 23
    assert len(said) < len(notes)


def test_held_jobs_and_time() -> None:
    requests = FIXTURES / "requests"
    given = files(jobs=requests / "squeue.json", nodes=requests / "sinfo.json")
    made = json.loads(run(*given, "--held", "schedule", "--time", "2026-11-20T12:00:00").stdout)
    assert made["time"] == "2026-11-20T12:00:00Z"
    assert json.loads(run(*given, "--time", "1795175883").stdout)["time"] == "2026-11-20T11:58:03Z"
    held = next(job for job in made["jobs"] if job["id"] == "66")
    assert "hold" not in held
    assert 0 < held["priority"] < 1


# Live commands: stand-ins that print the fixtures, in a folder that is the whole PATH.


def installed(folder: Path, **answers: str) -> Path:
    """Make commands whose shell text is given; they find nothing but the shell."""
    folder.mkdir(exist_ok=True)
    for name, script in answers.items():
        program = folder / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    return folder


def printing(path: Path) -> str:
    return f"while IFS= read -r line; do printf '%s\\n' \"$line\"; done < '{path}'"


def slurm_installed(folder: Path) -> Path:
    scontrol = f"""
case "$*" in
"show topology") {printing(USE / "topology.conf")} ;;
"-d show job") {printing(USE / "job_detail.txt")} ;;
"-o show licenses") {printing(USE / "licenses.txt")} ;;
*) exit 1 ;;
esac"""
    return installed(
        folder,
        squeue='[ "$SLURM_BITSTR_LEN" = 0 ] || exit 1\n' + printing(USE / "squeue.json"),
        sinfo=printing(USE / "sinfo.json"),
        scontrol=scontrol,
    )


def test_what_is_not_given_is_asked_of_the_cluster(tmp_path: Path) -> None:
    path = slurm_installed(tmp_path / "bin")
    made = json.loads(run(path=path).stdout)
    assert made["licenses"] == {"ansys": {"total": 2, "free": 2}, "matlab": {"total": 4, "free": 1}}
    job = next(job for job in made["jobs"] if job["id"] == "98")
    assert job["licenses"] == {"matlab": 2}
    from_files = json.loads(run(*files()).stdout)
    assert made["nodes"] == from_files["nodes"]
    assert made["running"] == from_files["running"]
    assert made["topology"] == from_files["topology"]
    some = run("--jobs", FILES["--jobs"], "--topology", FILES["--topology"], path=path)
    asked = json.loads(some.stdout)
    assert asked["notes"].pop(0) == "asked of Slurm here, next to a saved queue: nodes, job detail"
    assert asked == from_files


@pytest.mark.parametrize("missing", ["squeue", "sinfo"])
def test_a_missing_command_is_named(tmp_path: Path, missing: str) -> None:
    path = slurm_installed(tmp_path / "bin")
    (path / missing).unlink()
    line = refused(run("-o", tmp_path / "made.json", path=path))
    assert line == f"{missing} --json: the command is not installed here: give a file of its output"
    assert not (tmp_path / "made.json").exists()


def test_a_failing_command_is_named_with_what_it_said(tmp_path: Path) -> None:
    path = slurm_installed(tmp_path / "bin")
    installed(path, sinfo="echo 'trying' >&2; echo 'slurm_load_partitions: no contact' >&2; exit 1")
    line = refused(run(path=path))
    assert line == "sinfo --json: the command failed: slurm_load_partitions: no contact"
    installed(path, sinfo="exit 3")
    assert refused(run(path=path)) == "sinfo --json: the command failed: exit code 3"
    installed(path, sinfo="echo '{\"nodes\": ['")
    assert refused(run(path=path)).startswith("sinfo --json: not JSON: ")


def test_a_controller_that_is_down_is_asked_one_question(tmp_path: Path) -> None:
    """Each further one would wait for as long; 22.05's JSON reports an error without a cause, with exit 0."""
    path = slurm_installed(tmp_path / "bin")
    empty = '{"errors": [{"error_number": -1, "error": "Unspecified error"}], "jobs": []}'
    asked = tmp_path / "asked"
    log = f'echo "${{0##*/}} $*" >> {asked}\n'
    contact = "slurm_load error: Unable to contact slurm controller (connect failure)"
    installed(
        path,
        squeue=f"{log}echo '{empty}'",
        sinfo=f"{log}echo '{contact}' >&2",
        scontrol=f'{log}[ "$1" = ping ] || echo "{contact}" >&2\n[ "$1" = --version ]',
    )
    down = "slurmctld cannot be reached (scontrol ping tells more)"
    assert refused(run(path=path)) == f"squeue --json: {down}"
    assert asked.read_text().splitlines() == ["scontrol --version", "squeue --json", "scontrol ping"]
    # A command that says so itself; no second way to ask for nodes is tried.
    line = refused(run("--jobs", FILES["--jobs"], path=path))
    assert line == f"scontrol show nodes --json: {down}"


def test_a_controller_that_hangs_at_one_question_gives_no_snapshot(tmp_path: Path) -> None:
    """Of a topology that did not come in time 22.05's scontrol prints nothing, with exit 0."""
    path = slurm_installed(tmp_path / "bin")
    hangs = "slurm_load_topo error: Socket timed out on send/recv operation"
    usual = (path / "scontrol").read_text().partition("\n")[2]
    installed(path, scontrol=f'if [ "$*" = "show topology" ]; then echo "{hangs}" >&2; exit 0; fi\n{usual}')
    assert refused(run(path=path)) == (
        "scontrol show topology: slurmctld cannot be reached (scontrol ping tells more)"
    )


def test_jobs_and_nodes_are_enough() -> None:
    result = run("--jobs", FILES["--jobs"], "--nodes", FILES["--nodes"])
    assert result.returncode == 0
    said = result.stderr
    assert "note: scontrol show topology: the command is not installed here" in said
    assert "the topology is taken as linear" in said
    assert "note: scontrol -d show job: the command is not installed here" in said
    made = json.loads(result.stdout)
    assert "topology" not in made
    assert any("switch counts that jobs ask for are not known" in note for note in made["notes"])


#: As 22.05's scontrol -d prints a node's members.
KEYS = {
    "NodeName": "name",
    "CPUAlloc": "alloc_cpus",
    "CPUTot": "cpus",
    "Gres": "gres",
    "GresUsed": "gres_used",
    "ActiveFeatures": "active_features",
    "RealMemory": "real_memory",
    "AllocMem": "alloc_memory",
    "Sockets": "sockets",
    "CoresPerSocket": "cores",
    "ThreadsPerCore": "threads",
}


def node_text(record: dict[str, Any], partition: str = "") -> str:
    words = [f"{key}={record[member] or ('(null)' if key == 'Gres' else 0)}" for key, member in KEYS.items()]
    words.append(f"State={'+'.join([record['state'], *record['state_flags']]).upper()}")
    return "\n   ".join([*words, f"Partitions={partition or ','.join(record['partitions'])}", ""])


def test_nodes_are_read_from_text_too_as_gain_reads_them(tmp_path: Path) -> None:
    records, nodes = json.loads(FILES["--nodes"].read_text())["nodes"], tmp_path / "nodes.txt"
    nodes.write_text("\n".join(node_text(one) for one in records))
    from_text, from_json = run(*files(nodes=nodes)), run(*files())
    assert json.loads(from_text.stdout)["nodes"] == json.loads(from_json.stdout)["nodes"]
    # Nodes of another cluster: no job could start.
    nodes.write_text("\n".join(node_text(one, "other") for one in records))
    line = refused(run(*files(nodes=nodes)))
    assert line.startswith(f"{FILES['--jobs']}: no job is in a partition of the nodes: the jobs name ")
    assert line.endswith(", the nodes other")


# Refusals: one line that names the file and the place, exit code 2, nothing half-written.


def edited(folder: Path, option: str, edit: Callable[[Any], object]) -> Path:
    """Write a fixture's JSON with its records edited."""
    document = json.loads(FILES[option].read_text())
    edit(document)
    path = folder / "edited.json"
    path.write_text(json.dumps(document))
    return path


def waiting(document: Any) -> dict[str, Any]:
    record: dict[str, Any] = document["jobs"][-1]
    assert record["name"] == "waiting"
    return record


BAD_JOBS: dict[str, tuple[Callable[[Any], object], str]] = {
    "no jobs": (lambda d: d.pop("jobs"), "the member 'jobs' is missing"),
    "jobs no list": (lambda d: d.update(jobs={}), "jobs: {} is not a list"),
    "job no object": (lambda d: d["jobs"].insert(0, 7), "jobs[0]: 7 is not an object"),
    "no state": (lambda d: waiting(d).pop("job_state"), "jobs[15]: the member 'job_state' is missing"),
    "state": (
        lambda d: waiting(d).update(job_state="ODD"),
        'jobs[15].job_state: "ODD" is not a job state of Slurm',
    ),
    "no gres": (lambda d: waiting(d).pop("tres_per_node"), "jobs[15]: the member 'tres_per_node' is missing"),
    "gres": (
        lambda d: waiting(d).update(tres_per_node="gres:gpu:a:b:2"),
        "jobs[15].tres_per_node: 'gpu:a:b:2' is not a gres as Slurm writes it",
    ),
    "cpus text": (
        lambda d: waiting(d).update(cpus="8"),
        'jobs[15].cpus: "8" is not a number as Slurm writes it',
    ),
    "cpus true": (
        lambda d: waiting(d).update(cpus=True),
        "jobs[15].cpus: true is not a number as Slurm writes it",
    ),
    "cpus null": (lambda d: waiting(d).update(cpus=None), "jobs[15].cpus: null is not a count"),
    "cpus below 0": (
        lambda d: waiting(d).update(cpus=-1),
        "jobs[15].cpus: -1 is not a number as Slurm writes it",
    ),
    "cpus shape": (
        lambda d: waiting(d).update(cpus={"set": True, "value": 8}),
        'jobs[15].cpus: {"set": true, "value": 8} is not a number as Slurm writes it',
    ),
    "features": (
        lambda d: waiting(d).update(features={"all": "ib"}),
        'jobs[15].features: {"all": "ib"} is not a text',
    ),
    "contiguous": (
        lambda d: waiting(d).update(contiguous="yes"),
        'jobs[15].contiguous: "yes" is not true or false',
    ),
    "submit": (
        lambda d: waiting(d).update(submit_time=10**12),
        "jobs[15].submit_time: 1000000000000 is not a time",
    ),
    "hostlist": (
        lambda d: waiting(d).update(required_nodes="n[1-"),
        "jobs[15].required_nodes: 'n[1-' is not a hostlist",
    ),
    "tasks": (
        lambda d: waiting(d).update(array_task_string="1-x"),
        "jobs[15].array_task_string: '1-x' is not a list of array tasks",
    ),
    "many tasks": (
        lambda d: waiting(d).update(array_task_string="0-999999999"),
        "jobs[15]: more than 1000000 pending jobs and array tasks",
    ),
    "resources": (
        lambda d: d["jobs"][1].update(job_resources={"hosts": 1}),
        'jobs[1].job_resources: {"hosts": 1} is not a job\'s resources as Slurm 21.08 to 26.05 write them',
    ),
    "error": (
        lambda d: d.update(errors=[{"error": "Access denied"}]),
        "errors[0]: Slurm reports an error: Access denied",
    ),
}


@pytest.mark.parametrize("kind", BAD_JOBS)
def test_malformed_jobs(tmp_path: Path, kind: str) -> None:
    edit, expected = BAD_JOBS[kind]
    bad = edited(tmp_path, "--jobs", edit)
    line = refused(run(*files(jobs=bad), "-o", tmp_path / "made.json"))
    assert line == f"{bad}: {expected}"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["edited.json"]


BAD_NODES: dict[str, tuple[Callable[[Any], object], str]] = {
    "no nodes": (lambda d: d.pop("nodes"), "the member 'nodes' is missing"),
    "none": (lambda d: d.update(nodes=[]), "nodes: there are no nodes"),
    "grouped": (
        lambda d: d.update(sinfo=d.pop("nodes")),
        "the member 'nodes' is missing (grouped by sinfo: use scontrol show nodes --json)",
    ),
    "twice": (
        lambda d: d["nodes"].append(d["nodes"][0]),
        "nodes[12].name: 'n01' is listed at nodes[0] already",
    ),
    "name": (
        lambda d: d["nodes"][3].update(name="n[1-2]"),
        'nodes[3].name: "n[1-2]" is not the name of one node',
    ),
    "state": (
        lambda d: d["nodes"][3].update(state="odd"),
        'nodes[3].state: "odd" is not one of idle, mixed, allocated, down, error, future, unknown',
    ),
    "cpus": (lambda d: d["nodes"][3].update(cpus=0), "nodes[3].cpus: 0 is not above 0"),
    "no cpus": (lambda d: d["nodes"][3].pop("cpus"), "nodes[3]: the member 'cpus' is missing"),
    "gres": (
        lambda d: d["nodes"][3].update(gres="gpu:a:b:2"),
        "nodes[3].gres: 'gpu:a:b:2' is not a gres as Slurm writes it",
    ),
}


@pytest.mark.parametrize("kind", BAD_NODES)
def test_malformed_nodes(tmp_path: Path, kind: str) -> None:
    edit, expected = BAD_NODES[kind]
    bad = edited(tmp_path, "--nodes", edit)
    assert refused(run(*files(nodes=bad), "-o", tmp_path / "made.json")) == f"{bad}: {expected}"
    assert not (tmp_path / "made.json").exists()


@pytest.mark.parametrize("option", ["jobs", "nodes"])
@pytest.mark.parametrize("size", [0, 1, 1000, -2])
def test_truncated_json(tmp_path: Path, option: str, size: int) -> None:
    bad = tmp_path / "cut.json"
    bad.write_bytes(FILES[f"--{option}"].read_bytes()[:size])
    assert refused(run(*files(**{option: bad}))).startswith(f"{bad}: not JSON: ")


BAD_TEXTS = {
    "topology": {
        "Nodes=n01\n": "line 1: 'Nodes=n01' is not SwitchName=... Nodes=... or Switches=...",
        "# a\nSwitchName=a Nodes=n[1-\n": (
            "line 2: 'SwitchName=a Nodes=n[1-' has an open bracket; if Slurm cut it off, unset SLURM_TOPO_LEN"
        ),
        "SwitchName=a Switches=b\nSwitchName=b Switches=a\n": (
            "line 1: the switches form a loop: a below b below a"
        ),
        "SwitchName=a Nodes=n01\nSwitchName=b Nodes=n01\n": "line 2: node 'n01' is listed at line 1 already",
        "SwitchName=a Nodes=n01\nSwitchName=a Nodes=n02\n": "line 2: switch 'a' is listed at line 1 already",
        "SwitchName=a Nodes=n01\nSwitchName=b Switches=a\nSwitchName=c Switches=a\n": (
            "line 3: switch 'a' is below 'b' already"
        ),
    },
    "job_detail": {
        "JobId=x JobName=a UserId=b\n": "JobId: 'JobId=x' is not a job id",
        "hello\n": "line 1: 'hello' is not what scontrol -d show job prints",
        "JobId=1   Nodes=n01 CPU_IDs=0-x Mem=0 GRES= \n": "JobId=1 CPU_IDs: '0-x' is not a list of CPUs",
        "JobId=1   Nodes=n[1- CPU_IDs=0 Mem=0 GRES= \n": "JobId=1 Nodes: 'n[1-' is not a hostlist",
    },
}


@pytest.mark.parametrize(
    ("option", "content"), [(option, content) for option, cases in BAD_TEXTS.items() for content in cases]
)
def test_malformed_texts(tmp_path: Path, option: str, content: str) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_text(content)
    assert refused(run(*files(**{option: bad}))) == f"{bad}: {BAD_TEXTS[option][content]}"


def test_a_topology_that_is_not_utf_8(tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    for content in (b"SwitchName=\xff", gzip.compress(b"SwitchName=\xff")):
        bad.write_bytes(content)
        line = refused(run(*files(topology=bad)))
        assert line == f"{bad}: not UTF-8 text: invalid start byte at byte 11"


@pytest.mark.parametrize("option", ["jobs", "nodes", "topology", "job_detail"])
def test_a_missing_file(tmp_path: Path, option: str) -> None:
    missing = tmp_path / "none"
    assert refused(run(*files(**{option: missing}))) == f"{missing}: No such file or directory"
    assert refused(run(*files(**{option: tmp_path}))) == f"{tmp_path}: Is a directory"


@pytest.mark.parametrize("time", ["soon", "", "-5", "9" * 30, "999999999999", "1900-01-01", "2026-13-01"])
def test_a_bad_time(time: str) -> None:
    line = refused(run(*files(), f"--time={time}"))
    assert (
        line
        == f"aucsched: --time: {time!r} is neither an ISO 8601 time of 1970 or later nor seconds since 1970"
    )


def test_bad_usage(tmp_path: Path) -> None:
    line = refused(run(*files(jobs="-", nodes="-"), text=b""))
    assert line == "aucsched: only one of --jobs and --nodes can be standard input"
    assert "--held" in refused(run(*files(), "--held", "maybe"))
    assert "No such option" in refused(run("--pods", "x"))
    unwritable = tmp_path / "none" / "made.json"
    assert refused(run(*files(), "-o", unwritable)) == f"{unwritable}: No such file or directory"


def test_help_loads_no_importer() -> None:
    program = (
        "import sys\nfrom aucsched.cli import run\nrun(['snapshot', 'slurm', '--help'])\nprint(*sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert "--job-detail" in result.stdout
    loaded = result.stdout.split()
    assert not {"msgspec", "ClusterShell", "numpy", "pulp"} & set(loaded)


def test_check_strict_refuses_rules_that_are_not_looked_at(tmp_path: Path) -> None:
    configured = FIXTURES / "newer" / "config.txt"
    plain, ruled = tmp_path / "plain.json", tmp_path / "ruled.json"
    run(*files(), "--conf", configured, "-o", plain)
    run(*files(), "--conf", configured, "--partitions", FIXTURES / "newer" / "partitions.txt", "-o", ruled)
    read = json.loads(plain.read_text())
    threads = read.pop("unread")
    assert (
        refused(aucsched("check", plain, "--strict"))
        == f"{plain}: 1 rule of the site not looked at: {threads[0]}"
    )
    plain.write_text(json.dumps(read))
    assert aucsched("check", plain, "--strict").returncode == 0
    assert aucsched("check", ruled).returncode == 0
    unread = ["partition long: MinNodes=2 is not looked at"]
    assert json.loads(aucsched("check", ruled, "--format", "json").stdout)["unread"] == [*threads, *unread]
    said = refused(aucsched("check", ruled, "--strict"))
    assert said == f"{ruled}: 2 rules of the site not looked at: {threads[0]}; {unread[0]}"


def test_saved_priorities_and_jobs_held_by_hand(tmp_path: Path) -> None:
    requests, saved = FIXTURES / "requests", tmp_path / "sprio.txt"
    saved.write_text("JOBID PARTITION PRIORITY\n66 p 4321\n2 p 9\n")
    given = [*files(jobs=requests / "squeue.json", nodes=requests / "sinfo.json"), "--priorities", saved]
    jobs = {job["id"]: job for job in json.loads(run(*given, "--held", "schedule").stdout)["jobs"]}
    assert (jobs["66"]["priority"], jobs["2"]["priority"]) == (4321, 9)
    assert "hold" not in jobs["66"]
    jobs = {job["id"]: job for job in json.loads(run(*given).stdout)["jobs"]}
    assert jobs["66"]["hold"] == "JobHeldUser"
    saved.write_text("nonsense\n")
    assert "is not a heading with JOBID and PRIORITY" in refused(run(*given))
