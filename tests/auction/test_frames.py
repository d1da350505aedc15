"""How deep the search lies below the public call: frames that only pack arguments make it deeper."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import msgspec
import pytest
from random_snapshots import random_document

from aucsched import schedule
from aucsched.formats.native.cluster_file import parse_snapshot
from aucsched.models.search.operators import ExchangeSearch

#: Functions between ``schedule`` and the moves: the pass, the decision, its award, the attempt, its
#: rounds, the strategy, the winner determination, the search and its operator.
MOST = 9


class _MoveError(BaseException):
    """The first move: nothing is asked of the rest."""


@pytest.mark.parametrize(
    "limit", [{"work_limit": 20}, {"time_limit_s": 60.0, "search_parameters": "branched=0"}]
)
def test_few_calls_lie_between_schedule_and_the_first_move(limit: dict[str, Any]) -> None:
    snapshot = parse_snapshot(msgspec.json.encode(random_document(1, 120, 160)))
    chains: list[list[str]] = []

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code is ExchangeSearch.run.__code__:
            names, at = [], frame
            while at.f_code is not schedule.__code__:
                names.append(at.f_code.co_name)
                assert at.f_back is not None
                at = at.f_back
            chains.append(names[::-1])
            raise _MoveError

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        with pytest.raises(_MoveError):
            schedule(snapshot, objective="priority_cores", **limit)
    finally:
        sys.setprofile(before)
    assert len(chains[0]) <= MOST, chains[0]
