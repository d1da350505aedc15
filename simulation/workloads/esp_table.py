"""The jobs of the ESP-2 benchmark (Soner, table 7.1): one table for every workload made from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ...cluster.checks import at_least


@dataclass(frozen=True, slots=True, kw_only=True)
class EspType:
    """A job type of the benchmark.

    Attributes:
        name: its letter.
        size: the share of the machine that each job of it takes, exactly as printed.
        count: how many jobs of it a workload has.
        run_time_s: the run time at that size, in seconds.
    """

    name: str
    size: Fraction
    count: int
    run_time_s: int

    def units(self, machine: int) -> int:
        """Return the job's units (nodes or cores) on a machine of this many: nearest, halves up, at least 1.

        Raises:
            InputError: the machine has no unit.
        """
        at_least(machine, 1, "machine")
        return max(1, int(self.size * machine + Fraction(1, 2)))


def _type(name: str, size: str, count: int, run_time_s: int) -> EspType:
    return EspType(name=name, size=Fraction(size), count=count, run_time_s=run_time_s)


#: Table 7.1, in its order. Its shares sum to 11 011 s of the whole machine; in whole units of 32 to 256,
#: powers of two, to the 10 984.25 s that the thesis prints.
ESP_TYPES: tuple[EspType, ...] = (
    _type("A", "0.03125", 75, 257),
    _type("B", "0.06250", 9, 341),
    _type("C", "0.50000", 3, 536),
    _type("D", "0.25000", 3, 601),
    _type("E", "0.50000", 3, 312),
    _type("F", "0.06250", 9, 1846),
    _type("G", "0.12500", 6, 1321),
    _type("H", "0.15820", 6, 1078),
    _type("I", "0.03125", 24, 1438),
    _type("J", "0.06250", 24, 715),
    _type("K", "0.09570", 15, 495),
    _type("L", "0.12500", 36, 369),
    _type("M", "0.25000", 15, 192),
    _type("Z", "1.00000", 2, 100),
)

#: The jobs of the whole machine, which ask for it at a time of their own.
FULL_MACHINE = "Z"


def machine_seconds(types: Sequence[EspType] = ESP_TYPES) -> Fraction:
    """Return how long the whole machine would be busy with every job of these types, exactly, in seconds."""
    return sum((entry.size * entry.count * entry.run_time_s for entry in types), Fraction(0))
