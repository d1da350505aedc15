"""Rows that say which bids exclude each other, in the place of rows that say so less tightly.

Where a bid takes all of a node that others take a part of, the node's row 12·b + Σ c·b_i ≤ 12 lets a relaxed
solution have much of all of them. Where the others fit there together whoever of them wins, the row says only
that the bid excludes each of them: one row for each job, b + Σ b_i ≤ 1 over its bids, says the same, and more
of relaxed solutions. Such a set, of which any two exclude each other, is extended by all others that each
of it excludes, whatever the row that says so (Atamtürk, Nemhauser, Savelsbergh 2000).
"""

from __future__ import annotations

import numpy as np

from .presolve import without_implied
from .program import BoolArray, FloatArray, IntArray, IntegerProgram
from .rows import Rows

#: Columns and rows of programs that are looked at: the exclusions are a square of the columns.
_MOST_COLUMNS, _MOST_ROWS = 600, 2000


def strengthened(program: IntegerProgram, group: IntArray) -> IntegerProgram:
    """Return a program of binaries with tighter rows and the same solutions; any other as it is.

    Args:
        program: presolved.
        group: columns of one group exclude each other by the rows, shape (columns,).
    """
    binary = program.is_integer & (program.lower == 0) & (program.upper == 1)
    if not 1 < program.columns <= _MOST_COLUMNS or program.rows > _MOST_ROWS or not binary.all():
        return program
    rows = Rows.of(program)
    held = np.zeros((program.rows, program.columns))
    held[rows.row, rows.column] = rows.value
    packs = (held >= 0).all(axis=1) & (program.row_lower <= 0) & (held.max(axis=1) <= program.row_upper)
    mixed = packs & (rows.sums(rows.value != 1) > 0)
    if not mixed.any():
        return program
    excludes = _exclusions(held[packs], program.row_upper[packs])
    settled = np.zeros(program.rows, np.bool_)
    cliques: dict[bytes, BoolArray] = {}
    for row in np.flatnonzero(mixed).tolist():
        found = _cliques_of(held[row], float(program.row_upper[row]), excludes, group)
        if found is not None:
            settled[row] = True
            cliques.update((one.tobytes(), one) for one in found)
    if not settled.any():
        return program
    whole = {one.tobytes(): one for one in (_extended(clique, excludes) for clique in cliques.values())}
    return without_implied(program, rows.only(~settled).with_cliques(np.array([*whole.values()])))


def _exclusions(held: FloatArray, upper: FloatArray) -> BoolArray:
    """Return which columns exclude each other by some row, shape (columns, columns)."""
    excludes = np.zeros((held.shape[1], held.shape[1]), np.bool_)
    for amounts, most in zip(held, upper.tolist(), strict=True):
        column = np.flatnonzero(amounts)
        mine = amounts[column]
        excludes[np.ix_(column, column)] |= mine[:, None] + mine[None, :] > most
    np.fill_diagonal(excludes, val=False)
    return excludes


def _cliques_of(
    amounts: FloatArray, upper: float, excludes: BoolArray, group: IntArray
) -> list[BoolArray] | None:
    """Return the sets of which one column at most may be 1 that say what a row does; None: it says more."""
    column = np.flatnonzero(amounts)
    among = excludes[np.ix_(column, column)]
    # Whoever excludes all others of the row, and those that are left, which may be together.
    is_lord = among.sum(axis=1) == len(column) - 1
    rest = column[~is_lord]
    groups, place = np.unique(group[rest], return_inverse=True)
    most = np.zeros(len(groups))
    np.maximum.at(most, place, amounts[rest])
    if most.sum() > upper or not is_lord.any():
        return None
    found = []
    for number in range(max(len(groups), 1)):
        clique = np.zeros(len(amounts), np.bool_)
        clique[column[is_lord]] = True
        clique[rest[place == number]] = True
        found.append(clique)
    return found


def _extended(clique: BoolArray, excludes: BoolArray) -> BoolArray:
    """Return a set with others that each of its columns excludes, and that exclude each other."""
    whole = clique.copy()
    could = excludes[clique].all(axis=0)
    while could.any():
        one = int(np.argmax(could))
        whole[one] = True
        could &= excludes[one]
    return whole
