"""Columns as differences between neighbouring capacities: two entries for a contiguous bid, not one a node.

The load of each capacity becomes a column y_r with 0 ≤ y_r ≤ capacity, and each row says how the load differs
from its neighbour's: y_r − y_{r−1} = Σ (a_rb − a_{r−1,b})·x_b. The interior-point method solves that several
times faster; branch and bound does not like it, as the cliques are no longer seen in the rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..solve.solver import IntegerProgram


def as_differences(program: IntegerProgram, first: int) -> IntegerProgram:
    """Return the program with its rows from ``first`` on (capacities, no lower side) as differences.

    The columns of the loads come after the program's own; solutions of those are the same.
    """
    rows, columns = program.rows - first, program.columns
    length = np.diff(program.indptr)
    row = np.repeat(np.arange(program.rows), length) - first
    head = row < 0
    chained, column, value = row[~head], program.index[~head], program.value[~head]
    # Each entry rises at its row and falls at the next; equal neighbours cancel.
    goes_on = chained + 1 < rows
    keys = np.concatenate([chained * columns + column, (chained[goes_on] + 1) * columns + column[goes_on]])
    changes, place = np.unique(keys, return_inverse=True)
    change = np.bincount(place, weights=np.concatenate([value, -value[goes_on]]), minlength=len(changes))
    stays = change != 0
    changes, change = changes[stays], change[stays]
    load = np.arange(rows)
    all_rows = np.concatenate([changes // columns, load, load[1:]]) + first
    all_columns = np.concatenate([changes % columns, columns + load, columns + load[:-1]])
    values = np.concatenate([-change, np.ones(rows), -np.ones(max(rows - 1, 0))])
    order = np.lexsort((all_columns, all_rows))
    counts = np.bincount(all_rows - first, minlength=rows)
    return replace(
        program,
        objective=np.append(program.objective, np.zeros(rows)),
        lower=np.append(program.lower, np.zeros(rows)),
        upper=np.append(program.upper, program.row_upper[first:]),
        is_integer=np.append(program.is_integer, np.zeros(rows, np.bool_)),
        row_lower=np.append(program.row_lower[:first], np.zeros(rows)),
        row_upper=np.append(program.row_upper[:first], np.zeros(rows)),
        indptr=np.append(program.indptr[: first + 1], program.indptr[first] + np.cumsum(counts)),
        index=np.append(program.index[head], all_columns[order]),
        value=np.append(program.value[head], values[order]),
    )
