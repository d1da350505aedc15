"""A program without the columns that follow others and the rows that others imply.

The papers' programs are stated as printed: AUCSCHED1 has two columns for each node of each bid
(table 4.2), mostly settled by a bid's own equations, and an auction has a row for each node, though
the same bids want nodes side by side. This is left out before HiGHS gets the program:

* *following*: in Σ a·x = c·b, b binary, x from 0 to u, Σ a·u = c or there is one x: x = u·b;
* *fixed*: in Σ a·x = 0 with positive a, every x is 0;
* *cliques*: a row of binaries of which no two fit together says that one at most is 1;
* *implied* rows: no values of the columns break them, or another row says as much.

The solutions are the same ones: each of the smaller program stands for exactly one of the whole.
"""

from dataclasses import dataclass, replace

import numpy as np

from ...cluster.resources.capacity import BoolArray, FloatArray, IntArray, sums_before
from .program import IntegerProgram, Rows, bits_of, sums

#: Entries above which a program is left as it is: HiGHS looks for the same, in C++.
_MOST_ENTRIES = 500_000
#: Times that followers are looked for: u of AUCSCHED1 follow bids, then the r follow the u.
_PASSES = 3
#: Products that comparing cliques with each other may take: some hundredths of a second.
_MOST_PRODUCTS = 2e8


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Presolved:
    """A smaller program, and how its columns are the whole one's.

    Attributes:
        program: what is left to solve.
        kept: which columns of the whole one it has, ascending.
        leader: of each column of the whole one, the column of ``program`` that it follows.
        times: how many times that one it is: 1 for those that are kept, 0 where it is always 0.
        is_amount: columns without an upper bound of their own: what is dealt (decomposition.py).
    """

    program: IntegerProgram
    kept: IntArray
    leader: IntArray
    times: FloatArray
    is_amount: BoolArray

    def lifted(self, values: FloatArray) -> FloatArray:
        """Return values of the whole program's columns."""
        result: FloatArray = values[self.leader] * self.times
        return result

    def folded(self, objective: FloatArray) -> FloatArray:
        """Return the objective over the columns that are left that is worth the same."""
        return sums(self.leader, objective * self.times, len(self.kept))


def presolved(program: IntegerProgram) -> Presolved:
    """Return the program without what follows; a large one, or one not of integers, as it is."""
    everything = np.arange(program.columns)
    none = Presolved(
        program=program,
        kept=everything,
        leader=everything,
        times=np.ones(program.columns),
        is_amount=np.zeros(program.columns, np.bool_),
    )
    if not 0 < program.nonzeros <= _MOST_ENTRIES or (program.value % 1 != 0).any():
        return none
    following = _Following(program)
    for _ in range(_PASSES):
        if not following.find():
            break
    kept = np.flatnonzero(following.stands)
    place = np.zeros(program.columns, np.int64)
    place[kept] = np.arange(len(kept))
    rows = replace(following.rows, column=place[following.rows.column], columns=len(kept))
    left = replace(
        program,
        objective=sums(place[following.leader], program.objective * following.times, len(kept)),
        lower=program.lower[kept],
        upper=following.upper[kept],
        is_integer=program.is_integer[kept],
    )
    return Presolved(
        program=without_implied(left, rows),
        kept=kept,
        leader=place[following.leader],
        times=following.times,
        is_amount=np.isinf(program.upper[kept]),
    )


class _Following:
    """Which columns follow which, found pass by pass."""

    def __init__(self, program: IntegerProgram) -> None:
        self.rows = Rows.of(program)
        self.upper = program.upper.copy()
        self.leader = np.arange(program.columns)
        self.times = np.ones(program.columns)
        self._lower = program.lower
        self._whole = program.is_integer
        self._is_binary = program.is_binary

    def find(self) -> bool:
        """Find columns that follow others, put these in their place; return whether any do."""
        self._bound()
        # Columns that can be 0 only follow any others.
        zero = np.flatnonzero((self.upper == 0) & (self._lower == 0) & self.stands)
        found = self._follow(zero, np.full(len(zero), -1), np.zeros(len(zero)))
        rows = self.rows
        is_below = rows.value < 0
        count, below = rows.sums(np.ones(len(rows.row))), rows.sums(is_below)
        could = (rows.lower == 0) & (rows.upper == 0) & (below <= 1) & (count > below)
        # Each row's leading column, and how often it counts: none where all entries are positive.
        leads = np.full(len(rows.lower), -1)
        leads[rows.row[is_below]] = rows.column[is_below]
        amount = rows.sums(np.where(is_below, -rows.value, 0.0))
        is_led = leads >= 0
        could[is_led] &= self._is_binary[leads[is_led]]
        mine = ~is_below & could[rows.row]
        sound = mine & (self._lower[rows.column] == 0)
        could &= rows.sums(mine & ~sound) == 0
        upper = np.where(mine, self.upper[rows.column], 0.0)
        # An infinite bound is no sum that an amount could be equal to.
        full = rows.sums(np.where(mine, rows.value * upper, 0.0)) == amount
        alone = (count - below == 1) & is_led & ~full
        each = np.where(full[rows.row], upper, np.where(alone[rows.row], amount[rows.row] / rows.value, 0.0))
        settled = could & (full | alone | ~is_led)
        settled &= rows.sums(mine & ((each > upper) | (np.floor(each) < each))) == 0
        entries = np.flatnonzero(mine & settled[rows.row])
        return self._follow(rows.column[entries], leads[rows.row[entries]], each[entries]) or found

    def _bound(self) -> None:
        """Take upper bounds of columns from rows x ≤ c, and x ≤ m·b with b binary."""
        rows = self.rows
        is_below = rows.value < 0
        count, below = rows.sums(np.ones(len(rows.row))), rows.sums(is_below)
        binary = rows.sums(is_below & self._is_binary[rows.column]) == below
        bounding = (count - below == 1) & (below <= 1) & binary & (self.rows.upper >= 0)
        most = rows.upper + rows.sums(np.where(is_below, -rows.value, 0.0))
        mine = bounding[rows.row] & ~is_below & (self._lower[rows.column] >= 0) & self._whole[rows.column]
        bound = np.floor(most[rows.row[mine]] / rows.value[mine])
        np.minimum.at(self.upper, rows.column[mine], bound)

    @property
    def stands(self) -> BoolArray:
        """Which columns follow no other."""
        stands: BoolArray = (self.leader == np.arange(len(self.leader))) & (self.times == 1)
        return stands

    def _follow(self, column: IntArray, leader: IntArray, each: FloatArray) -> bool:
        """Let columns follow leaders (−1: none, they are 0) that stand; return whether any does."""
        column, first = np.unique(column, return_index=True)
        leader, each = leader[first], each[first]
        follows = np.zeros(len(self.leader), np.bool_)
        follows[column] = True
        free = (leader < 0) | ~follows[np.maximum(leader, 0)]
        column, leader, each = column[free], leader[free], each[free]
        # What is always 0 follows no times whoever stands.
        anyone = np.flatnonzero(self.stands & ~follows)
        if not len(column) or not len(anyone):
            return False
        times = np.ones(len(self.leader))
        to = np.arange(len(self.leader))
        to[column] = np.where(leader < 0, anyone[0], leader)
        times[column] = np.where(leader < 0, 0.0, each)
        self.times = self.times * times[self.leader]
        self.leader = to[self.leader]
        rows = self.rows
        self.rows = replace(rows, column=to[rows.column], value=rows.value * times[rows.column]).summed()
        return True


def without_implied(program: IntegerProgram, rows: Rows) -> IntegerProgram:
    """Return the columns with the rows that others do not imply."""
    ends = program.lower[rows.column] * rows.value, program.upper[rows.column] * rows.value
    most, least = rows.sums(np.maximum(*ends)), rows.sums(np.minimum(*ends))
    # Without rows that no values of the columns can break.
    rows = rows.only(~((most <= rows.upper) & (least >= rows.lower)))
    is_clique = _cliques(program, rows)
    rows.value = np.where(is_clique[rows.row], 1.0, rows.value)
    rows.upper = np.where(is_clique, 1.0, rows.upper)
    rows, is_clique = _distinct(rows, is_clique)
    rows = rows.only(~_is_within(rows, is_clique))
    return replace(
        program,
        row_lower=rows.lower,
        row_upper=rows.upper,
        indptr=sums_before(np.bincount(rows.row, minlength=len(rows.lower))),
        index=rows.column,
        value=rows.value,
    )


def _cliques(program: IntegerProgram, rows: Rows) -> BoolArray:
    """Return which rows let one of their binaries be 1 at most, whichever it is."""
    plain = (rows.value > 0) & program.is_binary[rows.column] & (rows.value <= rows.upper[rows.row])
    whole = rows.sums(~plain) == 0
    order = np.lexsort((rows.value, rows.row))
    row, value = rows.row[order], rows.value[order]
    # The two least of a row stand together, at its beginning.
    first = np.flatnonzero(np.diff(row, prepend=-1))
    second = first[np.append(first[1:], len(row)) - first > 1] + 1
    least = np.full(len(rows.lower), np.inf)
    least[row[second]] = value[second] + value[second - 1]
    clique: BoolArray = whole & (rows.lower <= 0) & (least > rows.upper) & np.isfinite(rows.upper)
    return clique


def _distinct(rows: Rows, is_clique: BoolArray) -> tuple[Rows, BoolArray]:
    """Return the rows without those that say the same as another, and which of them are cliques."""
    keys: dict[bytes, int] = {}
    ends = np.cumsum(np.bincount(rows.row, minlength=len(rows.lower)))
    held = np.stack([rows.column.astype(np.float64), rows.value], axis=1).tobytes()
    sides = np.stack([rows.lower, rows.upper], axis=1).tobytes()
    start = 0
    for row, end in enumerate((16 * ends).tolist()):
        keys.setdefault(held[start:end] + sides[16 * row : 16 * row + 16], row)
        start = end
    keep = np.zeros(len(rows.lower), np.bool_)
    keep[list(keys.values())] = True
    return rows.only(keep), is_clique[keep]


def _is_within(rows: Rows, is_clique: BoolArray) -> BoolArray:
    """Return which cliques are parts of others; no two are the same."""
    within = np.zeros(len(rows.lower), np.bool_)
    cliques = np.flatnonzero(is_clique)
    if len(cliques) < 2 or len(cliques) ** 2 * float(rows.columns) > _MOST_PRODUCTS:  # noqa: PLR2004 - a pair
        return within
    place = np.full(len(rows.lower), -1)
    place[cliques] = np.arange(len(cliques))
    mine = place[rows.row] >= 0
    used, column = np.unique(rows.column[mine], return_inverse=True)
    number = place[rows.row[mine]]
    holders = np.zeros((len(used), len(cliques)), np.bool_)
    holders[column, number] = True
    # Who holds all columns of a clique: as soon as it is only the clique itself, nobody else does.
    holding = bits_of(holders)
    held: list[list[int]] = [[] for _ in cliques]
    for one, of in zip(number.tolist(), column.tolist(), strict=True):
        held[one].append(of)
    for one, columns in enumerate(held):
        could, alone = -1, 1 << one
        for of in columns:
            could &= holding[of]
            if could == alone:
                break
        within[cliques[one]] = could != alone
    return within
