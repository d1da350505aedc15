"""On nodes of one core an auction by default starts EASY's jobs, one by one."""

from __future__ import annotations

import pytest
from support.contended import contended

from aucsched.cluster.workload import ClusterWorkload
from aucsched.simulation.nodes.node_policies import NodeOptions, play


def starts(
    workload: ClusterWorkload, policy: str, interval_s: float | None, promise: str | None = None
) -> list[float]:
    options = NodeOptions(policy=policy, interval_s=interval_s, promise=promise)
    return [one.start_s for one in play(workload, options).played]


@pytest.mark.parametrize("interval_s", [None, 7.0])
def test_the_default_starts_easy_s_jobs(interval_s: float | None) -> None:
    differ = 0
    for seed in range(5):
        workload = contended(seed)
        easy = starts(workload, "easy", interval_s)
        assert starts(workload, "aucsched3", interval_s) == easy, seed
        assert starts(workload, "aucsched2", interval_s) == easy, seed
        differ += starts(workload, "aucsched3", interval_s, "none") != easy
    # The greatest sum of priorities is another matter.
    assert differ > 2
