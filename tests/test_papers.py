"""docs/papers.md: what it names is there."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "papers.md").read_text()
#: A file's path, in backquotes, and perhaps a test of it.
NAMED = re.compile(r"`((?:[a-z_0-9]+/)+(?:[a-z_0-9]+\.(?:py|md))?)(?:::(\w+))?`")


@lru_cache
def named_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("named", "test"), sorted(set(NAMED.findall(PAGE))))
def test_a_file_and_its_test_are_there(named: str, test: str) -> None:
    assert (ROOT / named).exists()
    if test:
        assert named.startswith("tests/")
        assert test in named_in(ROOT / named)


def test_pages_that_it_links_are_there() -> None:
    links = re.findall(r"\]\(([^)#]+)", PAGE)
    assert links
    for link in links:
        assert (ROOT / "docs" / link).exists(), link


def test_every_row_says_where_it_is_or_why_not() -> None:
    rows = [line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| ")]
    items = [[cell.strip() for cell in row] for row in rows if len(row) == 4 and row[0].strip() != "item"]
    assert len(items) > 100
    for item, where, test, why in items:
        assert (where and test) or why, item


#: Chapter of Soner's thesis → its last equation; and its last figure.
EQUATIONS = {3: 7, 4: 12, 5: 7, 6: 13, 7: 3}
FIGURES = {1: 3, 2: 3, 3: 3, 4: 5, 5: 1, 6: 2, 7: 2, 8: 19}


@pytest.mark.parametrize(("heading", "last"), [("Equations", EQUATIONS), ("Figures", FIGURES)])
def test_no_equation_or_figure_of_the_thesis_is_left_out(heading: str, last: dict[int, int]) -> None:
    text = PAGE.split(f"### {heading}")[1].split("\n### ")[0]
    cells = "\n".join(line.split("|")[1] for line in text.splitlines() if line.startswith("| "))
    found = {(int(chapter), int(number)) for chapter, number in re.findall(r"(\d)\.(\d+)", cells)}
    for chapter, first, end in re.findall(r"\(?(\d)\.(\d+)\)?-\(?\d\.(\d+)", cells):
        found |= {(int(chapter), number) for number in range(int(first), int(end) + 1)}
    assert {(chapter, number) for chapter, most in last.items() for number in range(1, most + 1)} <= found
