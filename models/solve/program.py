"""An integer program as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class IntegerProgram:
    """Maximise ``objective · x`` with ``row_lower ≤ A x ≤ row_upper`` and bounds on x; A in CSR form.

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

    def maximising(self, objective: FloatArray) -> IntegerProgram:
        """Return the same program with another objective."""
        return replace(self, objective=objective)

    def with_row(self, values: FloatArray, lower: float, upper: float = np.inf) -> IntegerProgram:
        """Return the program with a further row ``lower ≤ values · x ≤ upper``."""
        index = np.flatnonzero(values)
        return replace(
            self,
            row_lower=np.append(self.row_lower, lower),
            row_upper=np.append(self.row_upper, upper),
            indptr=np.append(self.indptr, self.indptr[-1] + len(index)),
            index=np.concatenate([self.index, index]),
            value=np.concatenate([self.value, values[index]]),
        )

    def with_cliques(self, cliques: Sequence[IntArray]) -> IntegerProgram:
        """Return the program with a further row for each set of columns of which one at most may be 1."""
        if not cliques:
            return self
        return replace(
            self,
            row_lower=np.append(self.row_lower, np.full(len(cliques), -np.inf)),
            row_upper=np.append(self.row_upper, np.ones(len(cliques))),
            indptr=np.append(self.indptr, self.indptr[-1] + np.cumsum([len(clique) for clique in cliques])),
            index=np.concatenate([self.index, *cliques]),
            value=np.append(self.value, np.ones(sum(map(len, cliques)))),
        )
