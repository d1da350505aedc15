"""docs/worked.md: its files give what the page says."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from aucsched import Schedule, load_snapshot, load_swf, schedule, simulate

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "thesis"
PAGE = (ROOT / "docs" / "worked.md").read_text()


def rows(title: str) -> dict[str, list[str]]:
    """Return the rows of a section's table by their first cell."""
    part = PAGE.split(f"## {title}")[1].split("\n## ")[0]
    lines = re.findall(r"^\| `.*", part, re.MULTILINE)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0].strip("`"): row[1:] for row in cells}


def nodes_of(result: Schedule) -> dict[str, list[int]]:
    return {award.job: sorted(int(name.lstrip("n")) for name in award.nodes) for award in result.started}


def blocks(places: list[int]) -> int:
    return 1 + sum(after - before != 1 for before, after in pairwise(places))


def listed(text: str) -> list[int]:
    places: list[int] = []
    for part in text.split(", "):
        first, _, last = part.partition("-")
        places += range(int(first), int(last or first) + 1)
    return places


@pytest.mark.parametrize("model", ["ipsched", "aucsched1", "aucsched2", "aucsched3"])
def test_section_1_2_as_the_page_shows_it(model: Any) -> None:
    """Soner: table 1.2 three jobs.

    Soner: figure 1.3 three jobs on four nodes.
    """
    result = schedule(load_snapshot(EXAMPLES / "section-1.2.json"), model=model, reserve=0)
    assert sorted(nodes_of(result)) == ["J1", "J2", "J3"]
    wide = next(award for award in result.started if award.job == "J1")
    cores = [use.cores for use in wide.nodes.values()]
    assert (len(cores), sum(cores)) == (4, 24)
    if model in ("aucsched2", "aucsched3"):
        assert cores == [6] * 4


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_figure_2_2_as_the_page_shows_it(policy: str) -> None:
    """Soner: figure 2.2 FCFS and backfilling."""
    result = simulate(load_swf(EXAMPLES / "figure-2.2.swf"), policy=policy)
    columns = result.columns
    hours = [int(cell) for cell in rows("First come")[policy]]
    assert [start / 3600 for start in columns["start_s"]] == hours[:4]
    assert max(columns["end_s"]) / 3600 == hours[4]


@pytest.mark.parametrize("model", ["ipsched", "aucsched1", "aucsched2", "aucsched3"])
def test_sixteen_nodes_as_the_page_shows_them(model: Any) -> None:
    """Soner: figures 3.3, 4.2, 5.1, 6.2 five jobs on 16 nodes."""
    result = schedule(
        load_snapshot(EXAMPLES / "sixteen-nodes.json"), model=model, preset="paper", time_limit_s=60
    )
    assert (result.status, len(result.started)) == ("optimal", 5)
    *shown, told_blocks, told_levels = rows("Five jobs")[model]
    page = [listed(cell) for cell in shown]
    assert sum(map(blocks, page)) == int(told_blocks)
    assert sum(len({(place - 1) // 4 for place in places}) > 1 for places in page) == int(told_levels)
    if model == "ipsched":
        # Fewest nodes is what it prefers: where they are is left to chance.
        assert sum(map(len, nodes_of(result).values())) == sum(map(len, page))
        return
    if model == "aucsched3":
        assert sum(award.bid.level or 0 for award in result.started) == int(told_levels)
    else:
        assert sum(map(blocks, nodes_of(result).values())) == int(told_blocks)


def test_figure_4_3_as_the_page_shows_it() -> None:
    cluster = load_snapshot(EXAMPLES / "figure-4.3.json")
    cases: tuple[tuple[Any, int], ...] = (("aucsched1", 4), ("aucsched3", 3))
    for model, count in cases:
        assert len(schedule(cluster, model=model, preset="paper", time_limit_s=60).started) == count
