"""Which windows are bid on, against the plain rules that the arrays stand for."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.build import snapshot, tree

from aucsched.bidgen.job_windows import _ranked
from aucsched.bidgen.windows import Windows, _leaves, field_of
from aucsched.topology.tree import linear, topology_of

TREE = tree([f"n{place}" for place in range(4)], 2)


def test_leaf_switches_are_counted_in_scans_that_go_to_and_fro_between_them() -> None:
    topology = topology_of(
        snapshot([{"name": f"n{place}", "cores": 1} for place in range(4)], [], topology=TREE)
    )
    for nodes in ([0, 1, 2, 3], [0, 2, 1, 3]):
        field = field_of(np.array(nodes), np.ones(4, np.int64), (), topology)
        assert _leaves(field, np.array([0, 1]), np.array([4, 2])).tolist() == [2, 2]


@given(st.data())
def test_windows_are_ranked_by_level_and_the_tightest_of_each_first(data: st.DataObject) -> None:
    places = sorted(data.draw(st.sets(st.integers(0, 60), min_size=1, max_size=30)))
    field = field_of(np.array(places), np.ones(len(places), np.int64), (), linear(61))
    start = np.array(data.draw(st.lists(st.integers(0, len(places) - 1), max_size=40)), np.int64)
    length = np.array([data.draw(st.integers(1, len(places) - one)) for one in start.tolist()], np.int64)
    level = np.array([data.draw(st.sampled_from([0, 2, 3])) for _ in start], np.int64)
    none = np.zeros(len(start), np.bool_)
    windows = Windows(start=start, length=length, contiguous=none, aligned=none, level=level)
    ranked = _ranked(field, windows)
    left = [
        int(field.run_last[first + count - 1] - field.run_first[first] + 1 - count)
        for first, count in zip(start.tolist(), length.tolist(), strict=True)
    ]
    of_levels = [
        [at for at, one in enumerate(level.tolist()) if one == here] for here in sorted(set(level.tolist()))
    ]
    assert [members.tolist() for members, _ in ranked] == of_levels
    for members, (_, tight) in zip(of_levels, ranked, strict=True):
        assert tight.tolist() == sorted(range(len(members)), key=lambda place: (left[members[place]], place))
