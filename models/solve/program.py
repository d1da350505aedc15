"""An integer program as arrays, its rows by their entries, and which numbers are safe for HiGHS.

Amounts are integers that a double holds exactly, but HiGHS counts with tolerances, and with
coefficients of 10⁹ beside 1 it was seen to cut the root for ever, deaf to its time limit and to
interrupts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...cluster.resources.capacity import BoolArray, FloatArray, IntArray, ranges


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class IntegerProgram:
    """Maximise ``objective · x``, ``row_lower ≤ A x ≤ row_upper``, bounds on x; A in CSR form.

    Attributes:
        lower, upper, objective, is_integer: of each column, shape (columns,).
        row_lower, row_upper: infinite where a row has no such side, shape (rows,).
        indptr, index, value: row ``r`` holds ``index[indptr[r]:indptr[r + 1]]`` with those values.
    """

    objective: FloatArray
    lower: FloatArray
    upper: FloatArray
    is_integer: BoolArray
    row_lower: FloatArray
    row_upper: FloatArray
    indptr: IntArray
    index: IntArray
    value: FloatArray

    @property
    def columns(self) -> int:
        """Number of columns."""
        return len(self.objective)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.row_lower)

    @property
    def nonzeros(self) -> int:
        """Number of entries of A."""
        return len(self.value)

    @property
    def is_binary(self) -> BoolArray:
        """Which columns are 0 or 1, shape (columns,)."""
        binary: BoolArray = self.is_integer & (self.lower == 0) & (self.upper == 1)
        return binary

    def maximising(self, objective: FloatArray) -> "IntegerProgram":
        """Return the same program with another objective."""
        return replace(self, objective=objective)

    def with_row(self, values: FloatArray, lower: float, upper: float = np.inf) -> "IntegerProgram":
        """Return the program with a further row ``lower ≤ values · x ≤ upper``."""
        index = np.flatnonzero(values)
        return self._with_rows([index], values[index], np.array([lower]), np.array([upper]))

    def with_cliques(self, cliques: Sequence[IntArray]) -> "IntegerProgram":
        """Return the program with a row for each set of columns of which at most one may be 1."""
        if not cliques:
            return self
        count, ones = len(cliques), np.ones(sum(map(len, cliques)))
        return self._with_rows(cliques, ones, np.full(count, -np.inf), np.ones(count))

    def _with_rows(
        self, columns: Sequence[IntArray], value: FloatArray, lower: FloatArray, upper: FloatArray
    ) -> "IntegerProgram":
        return replace(
            self,
            row_lower=np.append(self.row_lower, lower),
            row_upper=np.append(self.row_upper, upper),
            indptr=np.append(self.indptr, self.indptr[-1] + np.cumsum([len(one) for one in columns])),
            index=np.concatenate([self.index, *columns]),
            value=np.append(self.value, value),
        )


def are_one(values: FloatArray) -> BoolArray:
    """Return which columns of 0 and 1 are 1, whatever a solver's tolerance makes of them."""
    ones: BoolArray = values > 0.5  # noqa: PLR2004 - between both
    return ones


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
    def of(cls, program: IntegerProgram) -> "Rows":
        """Return the rows of a program."""
        row = np.repeat(np.arange(program.rows), np.diff(program.indptr))
        rows = cls(row, program.index, program.value, program.row_lower, program.row_upper, program.columns)
        return rows.summed()

    def summed(self) -> "Rows":
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

    def only(self, keep: BoolArray) -> "Rows":
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


#: Columns whose cliques are joined together.
_AT_ONCE = 64


def exclusions(
    indptr: IntArray,
    column: IntArray,
    amount: FloatArray | IntArray,
    upper: FloatArray | IntArray,
    columns: int,
) -> BoolArray:
    """Return which columns exclude each other by a row; shape (columns, columns), diagonal False.

    Row ``r``: Σ amount·x ≤ ``upper[r]`` over entries ``indptr[r]:indptr[r + 1]``, integers above 0.
    """
    rows = np.arange(len(upper))
    row = np.repeat(rows, np.diff(indptr))
    is_clique = np.bincount(row, 2 * amount <= upper[row], len(upper)) == 0
    excludes = in_one_clique(indptr, column, is_clique, columns)
    # Columns that a row does not hold take so little of it that none is excluded.
    of_row = np.full(columns, -np.inf)
    for place in rows[~is_clique].tolist():
        start, end, most = int(indptr[place]), int(indptr[place + 1]), upper[place]
        held = amount[start:end]
        # Who fits beside the largest fits beside all.
        some = np.flatnonzero(held > most - held.max(initial=0))
        one, held = column[start:end][some], held[some]
        of_row[one] = held
        excludes[one] |= of_row > most - held[:, None]
        of_row[one] = -np.inf
    np.fill_diagonal(excludes, val=False)
    return excludes


def in_one_clique(indptr: IntArray, column: IntArray, is_clique: BoolArray, columns: int) -> BoolArray:
    """Return which columns share a row of which one at most may be 1; shape (columns, columns).

    Row ``r`` holds ``column[indptr[r]:indptr[r + 1]]``; only rows that are cliques are looked at.
    """
    lengths = np.diff(indptr)
    cliques = np.flatnonzero(is_clique & (lengths > 1))
    excludes = np.zeros((columns, columns), np.bool_)
    if not len(cliques):
        return excludes
    # A column excludes all that its rows have: rows are sets in bits, joined by column.
    place = np.repeat(np.arange(len(cliques)), lengths[cliques])
    member = column[ranges(indptr[cliques], lengths[cliques])]
    of_row = np.zeros((len(cliques), columns), np.bool_)
    of_row[place, member] = True
    # Neighbours are often asked for together: rows of the same columns are one.
    kinds: dict[bytes, int] = {}
    kind = np.array([kinds.setdefault(one.tobytes(), len(kinds)) for one in np.packbits(of_row, axis=1)])
    of_kind = np.frombuffer(b"".join(kinds), np.uint8).reshape(len(kinds), -1)
    asked = np.zeros((columns, len(kinds)), np.bool_)
    asked[member, kind[place]] = True
    asking = np.flatnonzero(asked.any(axis=1))
    for first in range(0, len(asking), _AT_ONCE):
        some = asking[first : first + _AT_ONCE]
        of, which = np.nonzero(asked[some])
        begins = np.searchsorted(of, np.arange(len(some)))
        joined = np.bitwise_or.reduceat(of_kind[which], begins, axis=0)
        excludes[some] = np.unpackbits(joined, axis=1, count=columns)
    return excludes


#: Largest coefficient of a row that is passed on: a node's 128 TiB of memory counted in MiB.
LARGEST = 2.0**27
#: Rows whose coefficients stay below are left as the model states them.
_LARGE = 2.0**20


def reduced(program: IntegerProgram) -> IntegerProgram:
    """Return the program with rows of large integers divided by their greatest common divisor.

    Only rows over integer columns alone are, and their sides are rounded inwards to the multiples
    that such a row can reach: the solutions stay the same.
    """
    if not program.nonzeros or np.abs(program.value).max() < _LARGE:
        return program
    rows = np.repeat(np.arange(program.rows), np.diff(program.indptr))
    largest = np.zeros(program.rows)
    np.maximum.at(largest, rows, np.abs(program.value))
    whole = np.ones(program.rows, np.bool_)
    np.logical_and.at(whole, rows, program.is_integer[program.index] & (program.value % 1 == 0))
    divisors = np.ones(program.rows)
    for row in np.flatnonzero((largest >= _LARGE) & whole & (largest < 2.0**53)).tolist():
        here = slice(program.indptr[row], program.indptr[row + 1])
        divisors[row] = np.gcd.reduce(program.value[here].astype(np.int64))
    if (divisors == 1).all():
        return program
    divided = divisors > 1
    return replace(
        program,
        value=program.value / divisors[rows],
        row_lower=np.where(divided, np.ceil(program.row_lower / divisors), program.row_lower),
        row_upper=np.where(divided, np.floor(program.row_upper / divisors), program.row_upper),
    )


def is_too_large(program: IntegerProgram) -> bool:
    """Return whether a coefficient is beyond what HiGHS is trusted with."""
    return bool(len(program.value)) and bool(np.abs(program.value).max() > LARGEST)
