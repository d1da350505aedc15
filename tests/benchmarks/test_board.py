"""The board's page is made of its result files; who dominates, and who is on the edge."""

from __future__ import annotations

import json

import board
import pytest

from aucsched.api.simulations import OURS, BoardRow, on_edge


def row(policy: str, slowdown: float, longest: float) -> BoardRow:
    return {"policy": policy, "bounded_slowdown_mean": slowdown, "wait_max_s": longest}


def test_who_is_lower_in_both_dominates() -> None:
    rows = [row("EASY", 9, 10), row(OURS, 5, 12), row("a", 4, 11), row("b", 4, 12), row("c", 3, 20)]
    assert board.dominating(rows) == ["a"]
    # Nobody dominates one with the same figures; b waits longer than a.
    alike = [*rows, row("as c", 3, 20), row("no lower than c", 3, 21), row("as EASY", 9, 10)]
    assert [one["policy"] for one in on_edge(alike)] == ["EASY", "as EASY", "a", "c", "as c"]


@pytest.mark.skipif(not board.FIGURES.exists(), reason="the shared data are not here")
def test_the_page_has_the_tables_of_the_result_files() -> None:
    page = board.PAGE.read_text()
    files = sorted(board.RESULTS.glob("*.json"))
    assert len(files) == len(board.PLAYED) + 2
    for name in (*board.PLAYED, *(f"{name}, ten sequences" for name in ("lublin_256", "lublin_256_new2"))):
        path = board.RESULTS / f"{name.replace(',', '').replace(' ', '-')}.json"
        assert "\n".join(board.table(name, json.loads(path.read_text()))) in page
