"""Speedup models against their formulas, and what they refuse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucsched.cluster.errors import InputError
from aucsched.negotiation.speedup import curve, model_text, relative_speed


def test_linear_and_amdahl() -> None:
    assert [curve("linear")(n) for n in (1, 2, 16)] == [1, 2, 16]
    amdahl = curve("amdahl:0.25")
    assert amdahl(1) == 1
    assert amdahl(3) == pytest.approx(1 / (0.25 + 0.75 / 3))
    assert curve("amdahl:1")(64) == 1
    assert curve("amdahl:0")(64) == pytest.approx(64)


def test_downey_matches_the_published_curves() -> None:
    """Low variance is linear up to A where sigma is 0; both variances meet at sigma 1 and end at A."""
    assert curve("downey:8:0")(4) == pytest.approx(4)
    assert curve("downey:8:0")(20) == pytest.approx(8)
    assert curve("downey:8:0.5")(8) == pytest.approx(8 * 8 / (8 + 0.25 * 7))
    assert curve("downey:8:0.5")(12) == pytest.approx(8 * 12 / (0.5 * 7.5 + 12 * 0.75))
    assert curve("downey:8:1")(5) == pytest.approx(8 * 5 / (8 + 0.5 * 4))
    assert curve("downey:8:2")(5) == pytest.approx(5 * 8 * 3 / (2 * (5 + 7) + 8))
    assert curve("downey:8:2")(23) == pytest.approx(8)


def test_a_table_is_read_between_its_points_and_is_flat_after_them() -> None:
    table = curve("table:1=1,4=3,8=4")
    assert [table(n) for n in (1, 2, 4, 6, 8, 100)] == pytest.approx([1, 1 + 2 / 3, 3, 3.5, 4, 4])


@given(
    st.sampled_from(["linear", "amdahl:0.1", "downey:6:0.3", "downey:6:1", "downey:6:1.7", "table:1=1,8=5"]),
    st.integers(1, 200),
)
def test_no_model_gets_slower_with_more_nodes(model: str, nodes: int) -> None:
    assert curve(model)(nodes + 1) >= curve(model)(nodes) - 1e-12
    assert relative_speed(model, nodes, nodes) == 1


@pytest.mark.parametrize(
    "model",
    ["", "magic", "linear:1", "amdahl", "amdahl:2", "amdahl:nan", "downey:8", "downey:0.5:1", "downey:8:-1",
     "table:", "table:1", "table:2=1,1=2", "table:1=2,2=1", "table:1=0", "table:1=x", "amdahl:0.2_5",
     "table:1=1,1_0=4"],
)  # fmt: skip
def test_what_is_no_model_is_refused(model: str) -> None:
    with pytest.raises(InputError):
        curve(model)


def test_a_workload_file_may_give_text_or_an_object() -> None:
    assert model_text(None) == "linear"
    assert model_text("amdahl:0.05") == "amdahl:0.05"
    assert model_text({"model": "amdahl", "serial": 0.05}) == "amdahl:0.05"
    assert model_text({"model": "downey", "average": 12, "sigma": 0.5}) == "downey:12.0:0.5"
    assert model_text({"model": "table", "points": {"4": 3.1, "1": 1, "16": 9}}) == "table:1=1.0,4=3.1,16=9.0"
    for wrong in (
        3,
        {"model": "amdahl"},
        {"model": "amdahl", "serial": 0.1, "extra": 1},
        {"model": "amdahl", "serial": "x"},
        {"model": "amdahl", "serial": [1]},
        {"model": "downey", "average": None, "sigma": 1},
        {"model": ["amdahl"], "serial": 0.1},
        {"model": "table", "points": {}},
        {"model": "table", "points": {"1": "x"}},
        {"model": "table", "points": {"1": None}},
    ):
        with pytest.raises(InputError):
            model_text(wrong)
