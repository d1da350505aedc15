"""Kernels are compiled as ``make test`` and ``make demo`` do it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from aucsched.cluster.kernels.warm_up import MODULES

ROOT = Path(__file__).parents[3]


def test_the_makefile_s_line_compiles_every_kernel() -> None:
    command = [sys.executable, "-m", "aucsched.cluster.kernels.warm_up"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert " ".join(command[1:]) in (ROOT / "Makefile").read_text()


def test_every_entry_is_loaded_by_it() -> None:
    rooms = ("models", "simulation", "negotiation", "auction", "bidgen")
    files = [file for room in rooms for file in (ROOT / room).rglob("*.py")]
    with_entries = {
        ".".join(("aucsched", *file.relative_to(ROOT).with_suffix("").parts))
        for file in files
        if "= Entry(" in file.read_text() or ": Entry(" in file.read_text()
    }
    code = f"import sys, importlib\nfor one in {MODULES}: importlib.import_module('aucsched.' + one)"
    command = [sys.executable, "-c", f"{code}\nprint(*sys.modules)"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert len(with_entries) > len(MODULES)
    assert with_entries <= set(loaded)
