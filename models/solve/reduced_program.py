"""A program as HiGHS gets it: presolved (presolve.py), amounts dealt after (decomposition.py).

Rows that say which bids exclude each other take the place of rows that say so less tightly. Where a
bid takes all of a node that others take a part of, the node's row 12·b + Σ c·b_i ≤ 12 lets a
relaxed solution have much of all of them. Where the others fit there together whatever bid of them
wins, the row says only that the bid excludes each of them: one row for each job, b + Σ b_i ≤ 1 over
its bids, says the same, and more of relaxed solutions. Bids whose cores cannot both be dealt
(decomposition.py) exclude each other too. A set in which any two exclude each other is extended by
all others that each of it excludes, whatever the row that says so (Atamtürk, Nemhauser, Savelsbergh
2000).
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ...cluster.resources.capacity import BoolArray, FloatArray, IntArray, sums_before
from .decomposition import dealing_of
from .presolve import presolved, without_implied
from .program import IntegerProgram, Rows, bits_of, exclusions
from .solver import SolveReport, SolverOptions, solve


class ReducedProgram:
    """A smaller program with the same solutions.

    Args:
        program: the whole one.
        group: of columns of one group at most one is 1, by the rows.
        counts: the objectives that it is to be solved for, each of shape (columns,).

    Attributes:
        program: what is left.
        kept: which columns of the whole program it has, ascending.
    """

    def __init__(self, program: IntegerProgram, group: IntArray, counts: Sequence[FloatArray]) -> None:
        found = self._presolved = presolved(program)
        self.program, self.kept = found.program, found.kept
        counted = np.any([found.folded(one) != 0 for one in counts], axis=0)
        self._dealing = dealing_of(found.program, found.is_amount, counted)
        if self._dealing is not None:
            self.program, self.kept = self._dealing.program, found.kept[self._dealing.kept]
        excluding = None if self._dealing is None else self._dealing.excluding
        self.program = strengthened(self.program, group[self.kept], excluding)

    def folded(self, objective: FloatArray) -> FloatArray:
        """Return an objective over the columns that are left."""
        folded = self._presolved.folded(objective)
        return folded if self._dealing is None else folded[self._dealing.kept]

    def folded_exactly(self, weights: Sequence[int]) -> list[int]:
        """Return integer weights over the columns that are left."""
        found, sums = self._presolved, [0] * len(self._presolved.kept)
        for column, weight in enumerate(weights):
            if weight:
                sums[found.leader[column]] += weight * int(found.times[column])
        return sums if self._dealing is None else [sums[column] for column in self._dealing.kept.tolist()]

    def lifted(self, values: FloatArray) -> FloatArray | None:
        """Return the whole program's values; None: their amounts cannot be dealt: a new cut."""
        dealt = values if self._dealing is None else self._dealing.dealt(values)
        return None if dealt is None else self._presolved.lifted(dealt)

    def solve(
        self, program: IntegerProgram, options: Callable[[], SolverOptions], start: FloatArray
    ) -> SolveReport:
        """Solve the rest, with columns and rows that came to it, until its amounts can be dealt.

        Args:
            program: ``self.program`` with further columns and rows behind its own.
            options: of each solve.
            start: a solution, whose amounts can be dealt.
        """
        known = 0
        while True:
            for cut in () if self._dealing is None else self._dealing.cuts[known:]:
                program = program.with_row(cut.values, -np.inf, cut.upper)
                known += 1
            report = solve(program, options(), start)
            if report.values is None or self.lifted(report.values[: len(self.kept)]) is not None:
                return report


def whole_values(smaller: ReducedProgram, values: FloatArray, start: FloatArray) -> FloatArray:
    """Return the whole program's values, the start's own where these are the start's."""
    if np.array_equal(values, start[smaller.kept]):
        return start
    lifted = smaller.lifted(values)
    return start if lifted is None else lifted


#: Columns and rows of programs that are looked at: the exclusions are a square of the columns.
_MOST_COLUMNS, _MOST_ROWS = 600, 2000


def strengthened(
    program: IntegerProgram, group: IntArray, excluding: Callable[[BoolArray], BoolArray] | None = None
) -> IntegerProgram:
    """Return a program of binaries with tighter rows and the same solutions; any other as it is.

    Args:
        program: presolved.
        group: columns of one group exclude each other by the rows, shape (columns,).
        excluding: returns exclusions besides those that it is given, shape (columns, columns).
    """
    is_small = 1 < program.columns <= _MOST_COLUMNS and program.rows <= _MOST_ROWS
    if not (is_small and program.is_binary.all()):
        return program
    rows = Rows.of(program)
    held = np.zeros((program.rows, program.columns))
    held[rows.row, rows.column] = rows.value
    packs = (held >= 0).all(axis=1) & (program.row_lower <= 0) & (held.max(axis=1) <= program.row_upper)
    mixed = packs & (rows.sums(rows.value != 1) > 0)
    if not mixed.any() and excluding is None:
        return program
    packing = rows.only(packs)
    indptr = sums_before(np.bincount(packing.row, minlength=len(packing.upper)))
    excludes = exclusions(indptr, packing.column, packing.value, packing.upper, program.columns)
    fresh = np.zeros_like(excludes)
    if excluding is not None:
        fresh = excluding(excludes)
        excludes |= fresh
    others = bits_of(excludes)
    cliques = _covering(fresh, others)
    settled = np.zeros(program.rows, np.bool_)
    settled[mixed], said = _cliques_of(held[mixed], program.row_upper[mixed], excludes, group)
    # Of each set those that all its columns exclude.
    beside = said.astype(np.float64) @ (~excludes).astype(np.float64) == 0
    found = {*zip(bits_of(said), bits_of(beside), strict=True)}
    cliques.update(_extended(one, could, others) for one, could in found)
    if not cliques:
        return program
    flags = _flags(sorted(cliques), program.columns)
    tightened = program.with_cliques([np.flatnonzero(one) for one in flags])
    kept = np.append(~settled, np.ones(len(cliques), np.bool_))
    return without_implied(program, Rows.of(tightened).only(kept))


def _covering(pairs: BoolArray, others: Sequence[int]) -> set[int]:
    """Return cliques that hold all pairs; columns as bits, ``others`` that each column excludes."""
    left, found = bits_of(pairs), set[int]()
    for one in range(len(left)):
        while wanted := left[one]:
            clique, could = 1 << one, others[one]
            # Those that more of these pairs lead to, then whoever else belongs to them.
            while could:
                new = could & wanted or could
                lowest = new & -new
                clique |= lowest
                could &= others[lowest.bit_length() - 1]
            found.add(clique)
            for column in _columns(clique):
                left[column] &= ~clique
    return found


def _extended(clique: int, could: int, others: Sequence[int]) -> int:
    """Return a set with others from ``could`` that exclude each other and all of its columns."""
    while could:
        lowest = could & -could
        clique |= lowest
        could &= others[lowest.bit_length() - 1]
    return clique


def _columns(bits: int) -> Iterator[int]:
    """Yield which bits are set, the lowest first."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def _flags(sets: Sequence[int], columns: int) -> BoolArray:
    """Return sets of bits as flags, shape (sets, columns)."""
    size = (columns + 7) // 8
    packed = np.frombuffer(b"".join(one.to_bytes(size, "little") for one in sets), np.uint8)
    flags = np.unpackbits(packed.reshape(-1, size), axis=1, count=columns, bitorder="little")
    return flags.astype(np.bool_)


def _cliques_of(
    amounts: FloatArray, upper: FloatArray, excludes: BoolArray, group: IntArray
) -> tuple[BoolArray, BoolArray]:
    """Return which rows say only that of some sets one column at most is 1, and all these sets.

    Args:
        amounts: of each row, shape (rows, columns).
        upper: the rows' sides, shape (rows,).
        excludes: which columns exclude each other, shape (columns, columns).
        group: of each column.

    Returns:
        Shapes (rows,) and (sets, columns).
    """
    row = amounts != 0
    # Whoever excludes all others of the row, and those that are left, which may be together.
    shared = row.astype(np.float64) @ excludes.astype(np.float64)
    lords = row & (shared == row.sum(axis=1, keepdims=True) - 1)
    rest = row & ~lords
    by_group = np.argsort(group, kind="stable")
    begins = np.flatnonzero(np.diff(group[by_group], prepend=-1))
    most = np.maximum.reduceat(np.where(rest, amounts, 0.0)[:, by_group], begins, axis=1)
    says = lords.any(axis=1) & (most.sum(axis=1) <= upper)
    of, place = np.nonzero((most > 0) & says[:, None])
    of_groups = lords[of] | (rest[of] & (group == group[by_group[begins[place]]][:, None]))
    return says, np.concatenate([of_groups, lords[says & ~rest.any(axis=1)]])
