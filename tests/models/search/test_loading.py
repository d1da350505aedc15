"""When the compiled loops are loaded: a time limit that is asked for is kept by the first call too."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from random_snapshots import random_snapshot

from aucsched import schedule
from aucsched.models.search import compiled_search


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return the list that notes each time that somebody waits for the loops."""
    waited: list[bool] = []

    def noted() -> Any:
        waited.append(True)
        return compiled_search._PLAIN  # noqa: SLF001 - what stands where numba is not

    monkeypatch.setattr(compiled_search, "_loops", noted)
    return waited


def test_a_short_limit_waits_for_nothing(loads: list[bool]) -> None:
    compiled_search.load_within(0.5)
    assert not loads
    compiled_search.load_within(None)
    assert loads


def test_nothing_is_compiled_within_a_limit(
    loads: list[bool], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    compiled_search.load_within(60.0)
    assert not loads
    for name in ("moves.make_moves", "repair_kernel.make_dives", "swaps.make_swaps", "proofs.prove"):
        (tmp_path / f"{name}-1.py311.nbi").write_bytes(b"")
    compiled_search.load_within(60.0)
    assert loads


def test_what_is_older_than_its_source_is_not_kept(
    loads: list[bool], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for name in ("moves.make_moves", "repair_kernel.make_dives", "swaps.make_swaps", "proofs.prove"):
        kept = tmp_path / f"{name}-1.py311.nbi"
        kept.write_bytes(b"")
        os.utime(kept, (1.0, 1.0))
    compiled_search.load_within(60.0)
    assert not loads


def test_the_first_step_under_a_clock_does_not_wait(loads: list[bool]) -> None:
    began = time.process_time()
    schedule(random_snapshot(0), time_limit_s=0.5, window=1000)
    assert not loads
    assert time.process_time() - began < 0.75
