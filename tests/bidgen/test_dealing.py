"""Units on the nodes of bids: all of the total, none beyond what a node has, as evenly as they fit."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from aucsched.bidgen.table import even


@st.composite
def bids(draw: st.DrawFn) -> list[tuple[list[int], int, int]]:
    """Draw bids: the units of their nodes, the least on each, and a total that they can hold."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        units = draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
        least = draw(st.integers(0, min(units)))
        found.append((units, least, draw(st.integers(least * len(units), sum(units)))))
    return found


@given(bids())
def test_totals_are_put_as_evenly_as_they_fit(drawn: list[tuple[list[int], int, int]]) -> None:
    indptr = np.cumsum([0, *(len(units) for units, _, _ in drawn)])
    entries = np.array([count for units, _, _ in drawn for count in units])
    dealt = even(
        entries,
        indptr,
        np.array([least for _, least, _ in drawn]),
        np.array([total for _, _, total in drawn]),
    )
    for number, (units, least, total) in enumerate(drawn):
        mine = dealt[indptr[number] : indptr[number + 1]].tolist()
        assert sum(mine) == total
        assert all(least <= one <= most for one, most in zip(mine, units, strict=True))
        # No node with room has two fewer than another that could give one away.
        low = min((one for one, most in zip(mine, units, strict=True) if one < most), default=max(mine))
        assert max((one for one in mine if one > least), default=low) - low <= 1
