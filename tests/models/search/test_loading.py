"""When the compiled loops are loaded: a time limit that is asked for is kept by the first call too."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from random_snapshots import random_snapshot

from aucsched import schedule
from aucsched.models.search import compiled_search


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return the list that notes each time that somebody waits for the loops."""
    waited: list[bool] = []

    def noted() -> None:
        waited.append(True)

    monkeypatch.setattr(compiled_search, "_load_all", noted)
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
    for entry in compiled_search.ENTRIES:
        (tmp_path / f"harness.{entry._name}-1.py311.nbi").write_bytes(b"")  # noqa: SLF001 - as numba does
    compiled_search.load_within(60.0)
    assert loads


def test_what_was_compiled_from_another_text_is_not_kept(
    loads: list[bool], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for entry in compiled_search.ENTRIES:
        name = entry._name.rpartition("_")[0]  # noqa: SLF001 - its last part is the text's
        (tmp_path / f"harness.{name}_0123456789ab-1.py311.nbi").write_bytes(b"")
    compiled_search.load_within(60.0)
    assert not loads


def test_the_first_step_under_a_clock_does_not_wait(loads: list[bool]) -> None:
    began = time.process_time()
    schedule(random_snapshot(0), time_limit_s=0.5, window=1000)
    assert not loads
    assert time.process_time() - began < 0.75
