"""Kernels are compiled as ``make test`` and ``make demo`` do it."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from aucsched.cluster.kernels import harness
from aucsched.cluster.kernels.warm_up import MODULES

ROOT = Path(__file__).parents[3]


@harness.kernel
def _one_more(count: int) -> int:
    return count + 1


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


@pytest.mark.parametrize("kept", [True, False])
def test_what_is_only_slow_to_load_is_not_called_compiling(
    kept: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(harness, "_TOLD", set())
    monkeypatch.setattr(harness, "_ENTRIES", [])
    monkeypatch.setattr(harness, "_TOLD_AFTER_S", 0.0)
    monkeypatch.setattr(harness.Entry, "is_kept", lambda _: kept)
    with harness.Entry(_one_more, "the search")._said():  # noqa: SLF001 - what every load does
        for one in threading.enumerate():
            if isinstance(one, threading.Timer):
                one.join()
    assert caplog.messages == ([] if kept else ["aucsched: compiling the search, once on this machine"])


def test_a_host_where_no_cache_can_be_written_is_said_once_for_all_kernels(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def nowhere(*_: object, **__: object) -> None:
        raise RuntimeError("cannot cache function 'loop_1': no locator available for file 'harness.py'")

    numba = pytest.importorskip("numba")
    monkeypatch.setattr(numba, "njit", nowhere)
    monkeypatch.setattr(harness, "_TOLD", set())
    monkeypatch.setattr(harness, "_ENTRIES", [])
    monkeypatch.delenv(harness.SWITCH, raising=False)
    for what in ("the search", "backfilling"):
        assert harness.Entry(_one_more, what).compiled() is None
    text = "plain Python runs, compiled code cannot be kept: set NUMBA_CACHE_DIR"
    assert caplog.messages == [f"aucsched: {text}"]
