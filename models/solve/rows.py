"""The rows of a program by their entries, as presolving changes them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .program import BoolArray, FloatArray, IntArray, IntegerProgram


def sums(place: IntArray, values: FloatArray | BoolArray, count: int) -> FloatArray:
    """Return the sums of values by place, floats even of nothing."""
    return np.bincount(place, values, count).astype(np.float64)


def bits_of(flags: BoolArray) -> list[int]:
    """Return each row of flags as an integer, its columns from the lowest bit on."""
    packed = np.packbits(flags, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


@dataclass(slots=True, eq=False)
class Rows:
    """Entries of rows, by row and column, each pair once: parallel arrays, and the rows' sides."""

    row: IntArray
    column: IntArray
    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    columns: int

    @classmethod
    def of(cls, program: IntegerProgram) -> Rows:
        """Return the rows of a program."""
        row = np.repeat(np.arange(program.rows), np.diff(program.indptr))
        rows = cls(row, program.index, program.value, program.row_lower, program.row_upper, program.columns)
        return rows.summed()

    def summed(self) -> Rows:
        """Return the rows with the entries of one row and column as one, those of 0 left out."""
        key = self.row * self.columns + self.column
        # Rows stand in order already, of which this sort makes use.
        order = np.argsort(key, kind="stable")
        key = key[order]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        value = np.add.reduceat(self.value[order], first) if len(first) else self.value
        key = key[first]
        key, value = key[value != 0], value[value != 0]
        return replace(self, row=key // self.columns, column=key % self.columns, value=value)

    def sums(self, values: FloatArray | BoolArray) -> FloatArray:
        """Return the sum of values, one for each entry, in each row."""
        return sums(self.row, values, len(self.lower))

    def only(self, keep: BoolArray) -> Rows:
        """Return some of the rows."""
        place = np.cumsum(keep) - 1
        mine = keep[self.row]
        return Rows(
            place[self.row[mine]],
            self.column[mine],
            self.value[mine],
            self.lower[keep],
            self.upper[keep],
            self.columns,
        )

    def with_cliques(self, cliques: BoolArray) -> Rows:
        """Return the rows with one more for each set of columns of which one at most may be 1."""
        row, column = np.nonzero(cliques)
        count = len(cliques)
        return replace(
            self,
            row=np.concatenate([self.row, len(self.lower) + row]),
            column=np.concatenate([self.column, column]),
            value=np.concatenate([self.value, np.ones(len(row))]),
            lower=np.concatenate([self.lower, np.full(count, -np.inf)]),
            upper=np.concatenate([self.upper, np.ones(count)]),
        )
