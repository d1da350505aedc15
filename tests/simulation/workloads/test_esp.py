"""The ESP table against the sums that the specification prints."""

from __future__ import annotations

from fractions import Fraction

import pytest

from aucsched import InputError
from aucsched.simulation.workloads.esp import ESP_TYPES, FULL_MACHINE, machine_seconds


def test_the_table_has_230_jobs_and_sums_to_11011_seconds() -> None:
    assert sum(entry.count for entry in ESP_TYPES) == 230
    assert round(machine_seconds()) == 11_011
    assert [entry.name for entry in ESP_TYPES] == list("ABCDEFGHIJKLMZ")


@pytest.mark.parametrize("units", [32, 64, 128, 256])
def test_in_whole_units_the_table_sums_to_what_the_thesis_prints(units: int) -> None:
    """10 984 s: no misprint, but the sizes of a machine of a power of two of units."""
    busy = sum(Fraction(entry.units(units), units) * entry.count * entry.run_time_s for entry in ESP_TYPES)
    assert busy == Fraction("10984.25")


@pytest.mark.parametrize(("units", "seconds"), [(512, "11011.38"), (1024, "11011.38"), (1408, "11013.85")])
def test_finer_units_come_near_the_shares(units: int, seconds: str) -> None:
    busy = sum(Fraction(entry.units(units), units) * entry.count * entry.run_time_s for entry in ESP_TYPES)
    assert f"{float(busy):.2f}" == seconds
    assert f"{float(machine_seconds()):.2f}" == "11011.34"


def test_without_z_the_work_on_16_nodes_is_215_minutes() -> None:
    types = [entry for entry in ESP_TYPES if entry.name != FULL_MACHINE]
    assert sum(entry.count for entry in types) == 228
    assert sum(
        entry.units(16) * entry.count * entry.run_time_s for entry in types
    ) / 16 / 60 == pytest.approx(215.0, abs=0.05)


def test_units_are_the_nearest_and_at_least_one() -> None:
    sizes = {entry.name: entry.units(16) for entry in ESP_TYPES}
    assert sizes == dict(zip("ABCDEFGHIJKLMZ", [1, 1, 8, 4, 8, 1, 2, 3, 1, 1, 2, 2, 4, 16], strict=True))
    assert [entry.units(1) for entry in ESP_TYPES] == [1] * 14
    with pytest.raises(InputError, match="machine: 0 is below 1"):
        ESP_TYPES[0].units(0)
