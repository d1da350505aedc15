"""docs/papers.md: what it names is there, and each named test says which item it holds."""

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
def functions_in(path: Path) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(path.read_text())
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("named", sorted({named for named, _ in NAMED.findall(PAGE)}))
def test_a_file_is_there(named: str) -> None:
    assert (ROOT / named).exists()


def rows() -> list[list[str]]:
    """The cells of each item: what, where, test, figure or why not."""
    lines = [line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in lines if len(row) == 4 and row[0].strip() != "item"]


@pytest.mark.parametrize(
    ("item", "named", "test"),
    [(row[0], named, test) for row in rows() for named, test in NAMED.findall(row[2]) if test],
)
def test_a_test_names_the_item_that_it_holds_and_asserts(item: str, named: str, test: str) -> None:
    assert named.startswith("tests/")
    found = functions_in(ROOT / named)[test]
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", item).replace("`", "")
    assert plain in " ".join((ast.get_docstring(found) or "").split())
    asserted = any(isinstance(node, ast.Assert) for node in ast.walk(found))
    assert asserted or "pytest.raises" in ast.unparse(found)


def test_pages_that_it_links_are_there() -> None:
    links = re.findall(r"\]\(([^)#]+)", PAGE)
    assert links
    for link in links:
        assert (ROOT / "docs" / link).exists(), link


def test_every_row_says_where_it_is_or_why_not() -> None:
    assert len(rows()) > 100
    for item, where, test, why in rows():
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


ROMAN = {"I": "1", "II": "2"}
#: The heading of each other paper → the numbers of its algorithms, figures and tables.
NUMBERED = {
    "Nagendra 2016": {
        "algorithm": "1 2 3 4 5",
        "figure": "1.1 3.1 3.2 3.3 3.4 4.1 4.2 4.3 4.4 4.5 5.1 5.2 6.1 6.2 7.1 7.2 7.3",
    },
    "The invasive": {"figure": "1.1 3.1 3.2", "table": "3.1 3.2"},
    "Prabhakaran": {"algorithm": "1 2", "figure": "1 2 3 4 5 6 7 8 9 10 11 12", "table": "1 2"},
    "Weissman": {"figure": " ".join(map(str, range(1, 17))), "table": "1 2 3"},
}


def _numbers(text: str, kind: str) -> set[str]:
    """Return the numbers that stand behind a kind of item: 3; 3, 4 and 5; 8 to 11; 7.1-7.3; II."""
    found: set[str] = set()
    number = r"(?:\d+(?:\.\d+)?|II?\b)"
    for match in re.finditer(rf"{kind}s? ({number}(?:(?:, | and | to |-){number})*)", text, re.IGNORECASE):
        words = re.split(r"(, | and | to |-)", match[1])
        for place, word in enumerate(words[::2]):
            found.add(ROMAN.get(word, word))
            if place and words[2 * place - 1] in {" to ", "-"}:
                chapter, _, first = words[2 * place - 2].rpartition(".")
                numbers = range(int(first), int(word.rpartition(".")[2]) + 1)
                found |= {f"{chapter}.{each}" if chapter else f"{each}" for each in numbers}
    return found


@pytest.mark.parametrize("paper", NUMBERED)
def test_no_numbered_item_of_another_paper_is_left_out(paper: str) -> None:
    (section,) = (part for part in PAGE.split("\n## ") if part.startswith(paper))
    cells = "\n".join(line.split("|")[1] for line in section.splitlines() if line.startswith("| "))
    for kind, numbers in NUMBERED[paper].items():
        assert set(numbers.split()) <= _numbers(cells, kind), kind


def test_no_row_stands_twice() -> None:
    whole = ["|".join(row) for row in rows()]
    assert len(whole) == len(set(whole))
