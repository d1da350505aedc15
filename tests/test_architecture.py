"""The architecture: one package made of rooms, its public names, what an import costs."""

from __future__ import annotations

import ast
import subprocess
import sys
import zipfile
from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

import aucsched

ROOT = Path(__file__).parent.parent
ROOMS = sorted(
    path.parent.name for path in ROOT.glob("*/__init__.py") if path.parent.name not in {"tests", "src"}
)


def test_every_room_is_linked_into_the_package() -> None:
    assert {"auction", "bidgen", "cluster", "formats", "models", "topology"} <= set(ROOMS)
    for room in ROOMS:
        link = ROOT / "src" / "aucsched" / room
        assert link.is_symlink()
        assert link.resolve() == ROOT / room


def test_public_names_are_what_all_says() -> None:
    for name in aucsched.__all__:
        assert getattr(aucsched, name) is not None
    assert set(aucsched.__all__) == {
        "ActiveJob",
        "ArrivingJob",
        "Auction",
        "AucschedError",
        "Award",
        "AwardError",
        "BidArrays",
        "BidClass",
        "ClusterWorkload",
        "Comparison",
        "DynState",
        "EvolvingClient",
        "Explanation",
        "Forecasts",
        "Gain",
        "InputError",
        "Job",
        "JobKind",
        "JobSet",
        "JobType",
        "License",
        "Limit",
        "MachineView",
        "NobodyError",
        "Node",
        "NodeState",
        "OptionError",
        "Overview",
        "Partition",
        "PartitionState",
        "Plan",
        "Policy",
        "PolicyError",
        "QueuedJob",
        "Reason",
        "Refusal",
        "Request",
        "Reservation",
        "Resources",
        "RunningJob",
        "Schedule",
        "Simulation",
        "Snapshot",
        "SolverError",
        "Span",
        "Status",
        "Sweep",
        "SwfLog",
        "Switch",
        "Winners",
        "__version__",
        "compare",
        "explain",
        "forecast",
        "gain",
        "load_schedule",
        "load_snapshot",
        "load_swf",
        "load_workload",
        "parse_snapshot",
        "parse_swf",
        "parse_workload",
        "plan",
        "save_snapshot",
        "save_workload",
        "schedule",
        "simulate",
        "snapshot_from_slurm",
        "sweep",
        "winners",
        "workload_from_swf",
    }
    with pytest.raises(AttributeError):
        aucsched.no_such_name  # noqa: B018


def _run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_no_module_is_loaded_under_two_names() -> None:
    code = """
import sys, aucsched, collections
[getattr(aucsched, name) for name in aucsched.__all__]
from aucsched import cli
files = collections.Counter(m.__file__ for m in sys.modules.values() if getattr(m, "__file__", None))
import os
rooms = collections.Counter(os.path.realpath(f) for f in files)
# The checkout may be called aucsched, and hold the environment.
ours = [f for f, n in files.items() if n > 1 and "aucsched" in f and not f.startswith(sys.prefix)]
print(ours, [f for f, n in rooms.items() if n > 1])
"""
    assert _run(code).strip() == "[] []"


@pytest.mark.parametrize("is_installed", [True, False])
def test_a_clone_called_aucsched_is_the_package_in_the_folder_above_it(
    tmp_path: Path, *, is_installed: bool
) -> None:
    (tmp_path / "aucsched").symlink_to(ROOT)
    code = """
import sys
ours = sys.argv[1]
if ours:
    sys.path = [one for one in sys.path if one != ours]
import aucsched, os
assert aucsched.schedule and aucsched.simulate and aucsched.Snapshot
from aucsched import cli
from aucsched.cluster.snapshot import Snapshot
assert Snapshot is aucsched.Snapshot
files = [os.path.realpath(m.__file__) for m in sys.modules.values() if getattr(m, "__file__", None)]
ours = [one for one in files if one.startswith(sys.argv[2]) and not one.startswith(sys.prefix)]
print(len(ours) - len(set(ours)), os.path.realpath(aucsched.__file__))
"""
    without = "" if is_installed else str(ROOT / "src")
    done = subprocess.run(
        [sys.executable, "-c", code, without, str(ROOT)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.split() == ["0", str(ROOT / "src" / "aucsched" / "__init__.py")]


#: Modules that cost more than a command's help may (python -X importtime): seconds are for
#: benchmarks/startup.py, which is no test.
HEAVY = {
    *("numpy", "pulp", "highspy", "networkx", "matplotlib", "numba", "pandas", "msgspec", "yaml"),
    *("rich", "ClusterShell", "distributed", "pyarrow", "fractions", "decimal", "multiprocessing", "asyncio"),
}


@pytest.mark.parametrize(
    "arguments",
    [
        *([["--help"], [], ["schedule", "--help"], ["simulate", "--help"], ["sweep", "--help"]]),
        *([["snapshot", "slurm", "--help"], ["workload", "--help"], ["--version"], ["shedule"]]),
    ],
    ids=" ".join,
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    code = f"""
import sys
from aucsched.cli import run
run({arguments!r})
print(sorted({HEAVY!r} & set(sys.modules)))
"""
    assert _run(code).strip().endswith("[]")


def test_importing_the_package_alone_loads_nothing_heavy() -> None:
    light = "click", "dataclasses", "inspect", "json", "argparse"
    code = f"import sys, aucsched; print(sorted({HEAVY | set(light)!r} & set(sys.modules)))"
    assert _run(code).strip() == "[]"


def test_the_wheel_holds_every_room(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    for room in ROOMS:
        held = (path for path in (ROOT / room).rglob("*.*") if path.parent.name != "__pycache__")
        assert {f"aucsched/{path.relative_to(ROOT)}" for path in held} <= set(names)
    top = ("__init__.py", "__main__.py", "cli.py", "py.typed")
    assert {f"aucsched/{name}" for name in top} <= set(names)
    assert not [name for name in names if not name.startswith("aucsched")]


def imported(path: Path) -> set[str]:
    """Return the top-level packages that a file imports by name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.split(".")[0])
    return found


def test_only_one_file_knows_pulp_and_highs() -> None:
    rooms = [room for room in ROOMS if room not in {"tests", "benchmarks"}]
    files = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    knowing = {path.relative_to(ROOT).as_posix() for path in files if imported(path) & {"pulp", "highspy"}}
    assert knowing == {"models/solve/solver.py"}


def test_rooms_import_only_rooms_below_them() -> None:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = grimp.build_graph("aucsched")
    # The package itself has the public names.
    modules = graph.modules - {"aucsched"}
    imports = {one: graph.find_modules_directly_imported_by(one) & modules for one in modules}
    TopologicalSorter(imports).prepare()


def test_a_class_name_stands_once_in_the_package() -> None:
    """Two classes of one name stand for two things; wire types are named as in the published schemas."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")) if room not in {"benchmarks", "examples"} else ():
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(str(file.relative_to(ROOT)))
    several = {name: files for name, files in places.items() if len(files) > 1 and not name.endswith("Wire")}
    assert several == {}


def test_measured_times_are_of_tests_that_there_are() -> None:
    """A test that moved or has another name would lose its mark, and ``make quick`` would take it."""
    lost = []
    for line in (ROOT / "tests" / "times.txt").read_text().splitlines():
        file, name = line.split()[1].split("::")
        path = ROOT / file
        if not path.exists() or f"def {name}(" not in path.read_text():
            lost.append(line)
    assert lost == []
