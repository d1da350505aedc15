"""With no option given every command decides the same (docs/decisions/0112)."""

from __future__ import annotations

import pytest
from defaults import differing, random_case

import aucsched
from aucsched.auction import options


@pytest.fixture(autouse=True)
def _other_work_does_not_end_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work ends a step of these in half a second; on a machine that is ten times too busy the clock would."""
    monkeypatch.setattr(options, "TIME_LIMIT_S", 60.0)


@pytest.mark.parametrize("part", range(8))
def test_every_command_decides_what_schedule_decides(part: int) -> None:
    """``benchmarks/defaults.py`` does it for 300."""
    assert [found for seed in range(part, 64, 8) if (found := differing(seed))] == []


def test_in_these_cases_reservations_and_backfilling_matter() -> None:
    """Else equal defaults would say nothing."""
    waits = alone = 0
    for seed in range(12):
        snapshot, _ = random_case(seed)
        decided = aucsched.schedule(snapshot)
        without = aucsched.schedule(snapshot, promise="none", reserve=0)
        waits += len(decided.pending) > 0
        alone += {one.job for one in decided.started} != {one.job for one in without.started}
    assert waits >= 6
    assert alone >= 2
