"""The pages: each is of one kind, short, in the navigation, and in plain English."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import prose
import pytest
import yaml
from reference import pages

from aucsched.cli import cli
from aucsched.simulation.nodes.node_policies import NODE_POLICIES
from aucsched.simulation.simulate_options import LOG_POLICIES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: Pages that a reader meets: decisions are the contributors' archive.
PAGES = sorted(page for page in DOCS.rglob("*.md") if page.parent.name != "decisions")
KINDS = {"index", "tutorial", "how-to", "reference", "explanation", "results"}
#: Pages that the code makes: as long as what they list.
MADE = {DOCS / "reference" / name for name in pages(cli)}


def front(page: Path) -> dict[str, str]:
    """Return the front matter of a page."""
    found = re.match(r"---\n(.*?)\n---\n\n# ", page.read_text(), re.DOTALL)
    assert found, page
    members: dict[str, str] = yaml.safe_load(found[1])
    return members


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_page_has_one_kind_a_reader_and_an_end(page: Path) -> None:
    members = front(page)
    assert set(members) == {"kind", "for", "after"}
    assert members["kind"] in KINDS
    assert page in MADE or len(page.read_text().splitlines()) <= 250


def test_pages_stand_in_the_navigation_under_their_kind() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text().replace("!!", ""))
    groups = {"Tutorials": "tutorial", "How-to guides": "how-to", "Reference": "reference"}
    groups |= {"Explanation": "explanation", "Results": "results"}
    listed = {"index.md": "index"}
    kinds = {page.relative_to(DOCS).as_posix(): front(page)["kind"] for page in PAGES}
    for entry in site["nav"][1:]:
        ((name, below),) = entry.items()
        for page in re.findall(r"[\w/-]+\.md", json.dumps(below)):
            assert page not in listed
            if name == "Administrators":
                assert front(DOCS / page)["for"].startswith("administrators")
            listed[page] = kinds[page] if name == "Administrators" else groups[name]
    del listed["decisions/README.md"]
    assert listed == kinds


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_no_page_names_a_decision_or_a_commit(page: Path) -> None:
    text = page.read_text()
    if page.name != "index.md":
        assert not re.search(r"decisions/0|\bdecisions? \[?\d|\bcommit [0-9a-f]{7}", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!http)([^)#\s]*)(#[^)]+)?\)", page.read_text()):
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            heads = re.findall(r"^#+ (.+)$", file.read_text(), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}
            assert anchor[1:] in slugs, (target, anchor)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_table_has_a_caption(page: Path) -> None:
    text = page.read_text()
    for table in re.finditer(r"(?:^\|.*\n)+", text, re.MULTILINE):
        before = text[: table.start()].rstrip().splitlines()[-1]
        assert before.startswith("*") or before.endswith("*"), table[0]


def test_researchers_read_which_policies_run_on_what() -> None:
    text = " ".join((DOCS / "researchers.md").read_text().split())
    on_both = [f"`{name}`" for name in LOG_POLICIES if name in NODE_POLICIES]
    assert f"{', '.join(on_both)} and your policy run on logs and on nodes." in text
    assert {"conservative", "slack"} <= {*LOG_POLICIES} - {*NODE_POLICIES}
    assert "Every other policy, such as `conservative` or `slack`, runs on logs only." in text


def rows(page: str) -> int:
    """Return the length of the longest table of a page."""
    tables = re.findall(r"(?:^\|.*\n)+", (DOCS / page).read_text(), re.MULTILINE)
    return max((table.count("\n") - 2 for table in tables), default=0)


@pytest.mark.parametrize(
    "page",
    [
        page
        for page in PAGES
        if front(page)["kind"] == "results" and page.name not in {"results.md", "forecasts.md"}
    ],
)
def test_a_result_is_a_claim_a_picture_a_short_table_a_command_and_its_limits(page: Path) -> None:
    text = page.read_text()
    assert text.count("**The claim.**") == 1
    assert text.count("\n![") == 1
    assert 0 < rows(page.relative_to(DOCS).as_posix()) <= 10
    assert "Run it again:" in text
    assert "## What this does not show" in text


def found_in(texts: Iterator[tuple[str, str]]) -> dict[str, list[str]]:
    return {place: words for place, text in texts if (words := prose.avoided(text))}


@pytest.mark.parametrize("source", [prose.pages, prose.helps, prose.docstrings, prose.messages])
def test_texts_are_in_plain_english(source: Callable[[], Iterator[tuple[str, str]]]) -> None:
    assert len(list(source())) > 40
    assert found_in(source()) == {}


def test_a_sentence_has_thirty_words_at_most() -> None:
    texts = ((place, text) for place, text in prose.pages() if place not in prose.LISTS)
    assert [(place, *one) for place, text in texts for one in prose.long_sentences(text)] == []


def test_the_words_are_found_where_they_stand() -> None:
    assert prose.avoided("Jobs of which two\nwait") == ["'Jobs of which two wait': write two sentences"]
    assert next(prose.long_sentences("a\n\n" + "word " * 31))[0] == 3
