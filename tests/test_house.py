"""The house: one package made of rooms, its public names, what an import costs."""

from __future__ import annotations

import ast
import subprocess
import sys
import zipfile
from pathlib import Path

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
        "ArrivingJob",
        "AucschedError",
        "Award",
        "AwardError",
        "BidClass",
        "ClusterWorkload",
        "InputError",
        "Job",
        "JobKind",
        "JobType",
        "License",
        "Node",
        "NodeState",
        "OptionError",
        "Partition",
        "Reason",
        "Refusal",
        "Request",
        "Reservation",
        "Resources",
        "RunningJob",
        "Schedule",
        "Snapshot",
        "SolverError",
        "Span",
        "Status",
        "Switch",
        "__version__",
        "load_snapshot",
        "load_workload",
        "save_snapshot",
        "save_workload",
        "schedule",
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


def test_help_loads_no_numpy_and_no_solver() -> None:
    code = """
import sys
from aucsched.cli import run
run(["--help"])
print(sorted({"numpy", "pulp", "highspy", "networkx", "matplotlib"} & set(sys.modules)))
"""
    assert _run(code).strip().endswith("[]")


def test_importing_the_package_alone_loads_nothing_heavy() -> None:
    code = "import sys, aucsched; print(sorted({'numpy', 'pulp', 'highspy', 'msgspec'} & set(sys.modules)))"
    assert _run(code).strip() == "[]"


@pytest.mark.slow
def test_the_wheel_holds_every_room(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    for room in ROOMS:
        modules = {f"aucsched/{path.relative_to(ROOT)}" for path in (ROOT / room).rglob("*.py")}
        assert modules <= set(names)
    assert {"aucsched/__init__.py", "aucsched/__main__.py", "aucsched/cli.py", "aucsched/py.typed"} <= set(
        names
    )
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
