"""How many ways a request is read: partitions that offer the same are one."""

from __future__ import annotations

import pytest
from support.build import snapshot

from aucsched.bidgen.families.registry import columns_of
from aucsched.cluster.resources.demand import Demand, DemandReader


@pytest.mark.parametrize(
    ("asked", "count"), [("a", 1), ("a,a,a", 1), ("a,same", 1), ("same,other,a", 2), ("other,a", 2)]
)
def test_partitions_of_the_same_nodes_and_limits_are_one_variant(asked: str, count: int) -> None:
    nodes = [
        {"name": "n1", "cores": 4, "partitions": ["a", "same"]},
        {"name": "n2", "cores": 4, "partitions": ["other"]},
    ]
    cluster = snapshot(nodes, [{"cores": 1, "partition": asked}])
    found = DemandReader(cluster, columns_of(cluster)).read(cluster.jobs[0], 0)
    assert isinstance(found, Demand)
    assert len(found.variants) == count
    # The first that is named comes first.
    assert found.variants[0].eligible.tolist() == (
        [False, True] if asked.startswith("other") else [True, False]
    )
