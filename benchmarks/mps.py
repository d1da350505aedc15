"""An exported integer program as arrays, read from its MPS file without any solver.

It shares no line with the auction, so that an answer checked here is checked against the file alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: How far a solver's value may be from an integer or a side of a row: its own tolerance.
TOLERANCE = 1e-6


class WrongAnswerError(Exception):
    """A solver's values are no solution of the program."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Program:
    """Minimise ``objective · x``; ``lower ≤ x ≤ upper``, integers, ``row_lower ≤ A x ≤ row_upper``.

    A is given by its entries: ``value[k]`` in row ``row[k]`` and column ``column[k]``.
    """

    names: tuple[str, ...]
    objective: FloatArray
    lower: FloatArray
    upper: FloatArray
    row_lower: FloatArray
    row_upper: FloatArray
    row: IntArray
    column: IntArray
    value: FloatArray

    def digest(self) -> str:
        """Return what tells this program from others: best known values belong to it."""
        arrays = (self.objective, self.lower, self.upper, self.row_lower, self.row_upper)
        entries = (self.row, self.column, self.value)
        content = b"".join(array.tobytes() for array in (*arrays, *entries))
        return hashlib.sha256(content).hexdigest()[:12]

    def checked(self, given: Mapping[str, float]) -> FloatArray:
        """Return a solution's values, rounded to integers; columns not named are 0.

        Raises:
            WrongAnswerError: a name is unknown, a value no integer or out of its bounds, a row broken.
        """
        place = {name: column for column, name in enumerate(self.names)}
        unknown = next((name for name in given if name not in place), None)
        if unknown is not None:
            raise WrongAnswerError(f"there is no column {unknown}")
        values = np.zeros(len(self.names))
        values[[place[name] for name in given]] = list(given.values())
        rounded = np.round(values)
        if not (np.abs(values - rounded) <= TOLERANCE).all():
            raise WrongAnswerError("a value is not an integer")
        if ((rounded < self.lower) | (rounded > self.upper)).any():
            raise WrongAnswerError("a value is out of its bounds")
        sums = np.bincount(self.row, self.value * rounded[self.column], len(self.row_lower))
        broken = (sums < self.row_lower - TOLERANCE) | (sums > self.row_upper + TOLERANCE)
        if broken.any():
            raise WrongAnswerError(f"{int(broken.sum())} of {len(broken)} rows are broken")
        return rounded

    def worth(self, values: FloatArray) -> float:
        """Return the sum that the file's objective negates."""
        return float(-(self.objective @ values))

    def jobs(self, values: FloatArray) -> int:
        """Return how many jobs a solution starts: columns that are worth something, one for each job."""
        return int((values[self.objective < 0] > 0.5).sum())


@dataclass(slots=True, kw_only=True)
class _Reading:
    """What was read so far; row −1 is the objective."""

    rows: dict[str, int] = field(default_factory=dict)
    sense: list[str] = field(default_factory=list)
    columns: dict[str, int] = field(default_factory=dict)
    entries: list[tuple[int, int, float]] = field(default_factory=list)
    right: dict[int, float] = field(default_factory=dict)
    bounds: list[tuple[str, int, float]] = field(default_factory=list)
    is_integer: bool = False


def read_mps(path: str | Path) -> Program:
    """Read an MPS file whose columns are all integers, as the auction's are.

    Raises:
        ValueError: it holds something that the auction does not write.
    """
    reading = _Reading()
    section = ""
    with Path(path).open(encoding="utf-8") as file:
        for line in file:
            if line.startswith("*"):
                continue
            words = line.split()
            if words and not line[0].isspace():
                section = words[0]
            elif words:
                _read_line(reading, section, words)
    return _program(reading)


def _read_line(reading: _Reading, section: str, words: list[str]) -> None:
    if section == "ROWS":
        sense, name = words
        reading.rows[name] = -1 if sense == "N" else len(reading.sense)
        if sense != "N":
            reading.sense.append(sense)
    elif section == "COLUMNS" and "'MARKER'" in words:
        reading.is_integer = "'INTORG'" in words
    elif section == "COLUMNS":
        if not reading.is_integer:
            raise ValueError(f"the column {words[0]} is not an integer")
        column = reading.columns.setdefault(words[0], len(reading.columns))
        reading.entries += [(row, column, value) for row, value in _pairs(reading, words[1:])]
    elif section == "RHS":
        reading.right.update(_pairs(reading, words[1:]))
    elif section == "BOUNDS":
        value = float(words[3]) if len(words) > 3 else 0.0
        reading.bounds.append((words[0], reading.columns[words[2]], value))
    else:
        raise ValueError(f"the section {section} is not read")


def _pairs(reading: _Reading, words: list[str]) -> Iterator[tuple[int, float]]:
    for name, value in zip(words[::2], words[1::2], strict=True):
        yield reading.rows[name], float(value)


def _program(reading: _Reading) -> Program:
    row, column, value = (np.array(part) for part in zip(*reading.entries, strict=True))
    objective = np.zeros(len(reading.columns))
    objective[column[row < 0]] = value[row < 0]
    right = np.array([reading.right.get(place, 0.0) for place in range(len(reading.sense))])
    sense = np.array(reading.sense)
    lower, upper = _bounds(reading)
    return Program(
        names=tuple(reading.columns),
        objective=objective,
        lower=lower,
        upper=upper,
        row_lower=np.where(sense == "L", -np.inf, right),
        row_upper=np.where(sense == "G", np.inf, right),
        row=row[row >= 0],
        column=column[row >= 0],
        value=value[row >= 0],
    )


def _bounds(reading: _Reading) -> tuple[FloatArray, FloatArray]:
    lower, upper = np.zeros(len(reading.columns)), np.full(len(reading.columns), np.inf)
    for kind, column, value in reading.bounds:
        if kind == "BV":
            lower[column], upper[column] = 0.0, 1.0
        elif kind in {"UP", "UI"}:
            upper[column] = value
        elif kind in {"LO", "LI"}:
            lower[column] = value
        elif kind == "FX":
            lower[column] = upper[column] = value
        elif kind != "PL":
            raise ValueError(f"the bound {kind} is not read")
    return lower, upper
