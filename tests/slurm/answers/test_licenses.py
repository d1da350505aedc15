"""Lists of licences as every version writes them, and licences in layers of nodes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucsched import License
from aucsched.formats.notes import Notes
from aucsched.slurm.answers.consumables import (
    asks_for,
    license_items,
    plain_licenses,
    read_licenses,
    with_gate,
    without_gate,
)

#: Items that 25.05 and later write, and those of old.
ITEMS = st.sampled_from(
    ["matlab:2", "ansys", "lm@flex:3", "a:2|b", "power(n[1-2,4],n9):5", "auctioneer:1", "rack(n1;n2):1"]
)


@st.composite
def lists(draw: st.DrawFn) -> tuple[str, list[str]]:
    items = draw(st.lists(ITEMS, max_size=5))
    marks = [draw(st.sampled_from(",;")) for _ in items]
    pairs = zip(marks, items, strict=True)
    return "".join(mark * (at > 0) + item for at, (mark, item) in enumerate(pairs)), items


@given(st.text(alphabet="ab:,;|()[]@*1 ", max_size=30))
def test_any_text_is_put_together_again(text: str) -> None:
    assert "".join(mark + item for mark, item in license_items(text)) == text
    assert without_gate(text, "gate") == text


@given(lists(), st.data())
def test_behind_the_gate_and_back(made: tuple[str, list[str]], data: st.DataObject) -> None:
    """Wherever the gate's licence is put into a list, taking it off leaves what was there."""
    text, items = made
    assert [item for _, item in license_items(text)] == (items or [""])
    assert without_gate(with_gate(text, "auction"), "auction") == text
    place = data.draw(st.integers(0, len(items)))
    pieces = [mark + item for mark, item in license_items(text)] if items else []
    mark, count = data.draw(st.sampled_from(",;")), data.draw(st.sampled_from(["", ":1", ":7"]))
    if place == 0 and pieces:
        pieces[0] = data.draw(st.sampled_from(",;")) + pieces[0]
    pieces.insert(place, (mark if place else "") + f"auction{count}")
    behind = "".join(pieces)
    assert asks_for(behind, "auction")
    assert without_gate(behind, "auction") == text
    assert not asks_for(text, "auction")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("auction:1;matlab:2", "matlab:2"),
        ("matlab:2;auction:1", "matlab:2"),
        ("a:1,b;auction:1,c", "a:1,b,c"),
        ("auction", ""),
        ("power(n[1,3]):2;auction:1", "power(n[1,3]):2"),
        ("auction:1|matlab:1", "auction:1|matlab:1"),
    ],
)
def test_the_gate_is_taken_off(text: str, left: str) -> None:
    assert without_gate(text, "auction") == left


def test_a_gate_is_put_on_with_the_lists_own_separator() -> None:
    assert with_gate("a;b", "auction") == "a;b;auction:1"
    assert with_gate("a,b", "auction") == "a,b,auction:1"
    assert with_gate("", "auction") == "auction:1"


def test_one_of_several_does_not_wait_behind_the_gate() -> None:
    """Slurm starts such a job with the other licence."""
    assert not asks_for("auction:1|matlab:1", "auction")


@pytest.mark.parametrize(
    ("text", "counts", "why"),
    [
        ("matlab:2;ansys", {"matlab": 2, "ansys": 1}, ""),
        ("lm@flex:3", {"lm@flex": 3}, ""),
        ("matlab:2|ansys", {}, "which are not plain counts"),
        ("matlab(n[1,2]):2", {}, "which are not plain counts"),
        ("matlab;other", {}, "whose totals are not known"),
        ("matlab:0", {}, "whose totals are not known"),
    ],
)
def test_what_is_no_plain_count_is_never_dropped(text: str, counts: dict[str, int], why: str) -> None:
    assert plain_licenses(text, {"matlab", "ansys", "lm@flex"}) == (counts, why)


LAYERS = (
    "LicenseName=flat Total=24 Used=2 Free=22 Reserved=0 Remote=no Nodes=n[1-8] Mode={mode}\n"
    "LicenseName=flat Total=16 Used=1 Free=15 Reserved=3 Remote=no Nodes=n[1-4] Mode={mode}\n"
    "LicenseName=endless Total=4294967295 Used=0 Free=4294967295 Reserved=0 Remote=no\n"
)


def read(content: str) -> tuple[dict[str, License], tuple[str, ...], dict[str, None]]:
    notes = Notes()
    return read_licenses(content.encode(), notes), notes.texts(), notes.policies


@pytest.mark.parametrize("mode", [1, 2])
def test_the_smallest_layer_counts(mode: int) -> None:
    found, said, unread = read(LAYERS.format(mode=mode))
    assert found["flat"] == License(total=16, free=12)
    assert found["endless"].free == 2**32 - 1
    text = "licence flat: the smallest of its 2 layers counts for all nodes; which nodes have it"
    assert said[1] == f"{text} is not looked at"
    assert list(unread) == [said[1]]


def test_a_licence_that_counts_by_node_is_not_known() -> None:
    found, said, _ = read(LAYERS.format(mode=3))
    assert list(found) == ["endless"]
    assert "licence flat: it counts by node: jobs that ask for it are not expressible" in said
    assert plain_licenses("flat:2", found) == ({}, "whose totals are not known")


@pytest.mark.parametrize(("release", "names"), [("25.05.3", ["flat"]), ("25.11.1", [])])
def test_layers_in_json(release: str, names: list[str]) -> None:
    """JSON does not tell how layers count: 25.05 has no mode that counts by node."""
    rows = [
        {"LicenseName": "flat", "Total": total, "Used": 0, "Free": total, "Reserved": 0} for total in (24, 16)
    ]
    document = {"licenses": rows, "meta": {"slurm": {"release": release}}}
    assert list(read(json.dumps(document))[0]) == names
