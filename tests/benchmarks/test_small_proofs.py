"""Small problems end ``optimal``: those that ended ``feasible`` and some others."""

from __future__ import annotations

import pytest
from random_snapshots import random_snapshot
from small_proofs import proof

import aucsched
from aucsched.auction import options

#: Ended feasible by default: completion added a job, weights of fractions beside 4·10⁹, more than 250 bids,
#: a proof of preference that takes more than half a million looks at bids.
ONCE_OPEN = (18, 40, 64, 94, 108, 120, 135, 196, 800_077, 800_193)


@pytest.fixture(autouse=True)
def _other_work_does_not_end_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "TIME_LIMIT_S", 60.0)


@pytest.mark.parametrize("seed", [*ONCE_OPEN, *range(12)])
def test_a_small_problem_is_proved(seed: int) -> None:
    assert proof(seed).status == "optimal"


@pytest.mark.parametrize("seed", [18, 40, 94, 120])
def test_more_work_is_never_worse(seed: int) -> None:
    worth = [
        aucsched.schedule(random_snapshot(seed), work_limit=work).objective.priority
        for work in (0, 1, 2, 20, 40)
    ]
    assert worth == sorted(worth)
