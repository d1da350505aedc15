"""PuLP's variables and rows of two of them, made once for one program after another.

A step's program has tens of thousands, and making them took most of the time to state AUCSCHED1.
They carry no values: programs are read into arrays (solver.py), and PuLP itself solves none.
"""

from collections.abc import Sequence
from threading import Lock

from .solver import (
    LpAffineExpression,
    LpBinary,
    LpConstraint,
    LpConstraintLE,
    LpInteger,
    LpProblem,
    LpVariable,
    MPSVariable,
    PulpError,
)

#: Variables of a kind that are kept, and rows of a kind; what comes beyond these is made anew.
_MOST_KEPT = 50_000

_kept: dict[tuple[str, str], list[LpVariable]] = {}
#: Rows with their names, by the numbers of their variables and t.
_kept_rows: dict[str, dict[tuple[int, int], tuple[str, LpConstraint]]] = {}
_lock = Lock()


class _Variable(LpVariable):  # type: ignore[misc]
    """PuLP's variable; equal only to itself as there, but its hash is no call of Python's."""

    __hash__ = object.__hash__


class Problem(LpProblem):  # type: ignore[misc]
    """PuLP's problem; rows come without a look at variables, which ``variables()`` has anyway."""

    def add_rows(self, rows: dict[str, LpConstraint]) -> None:
        """Add rows by their names.

        Raises:
            PulpError: a row of that name stands already.
        """
        held = self._constraints
        count = len(held) + len(rows)
        held.update(rows)
        if len(held) != count:
            raise PulpError(f"two rows have one name, of {', '.join(sorted(rows)[:3])}")


def binaries(problem: LpProblem, name: str, count: int) -> list[LpVariable]:
    """Return a problem's variables from 0 to 1, called ``name0`` and so on."""
    return _variables(problem, name, count, LpBinary)


def integers(problem: LpProblem, name: str, count: int) -> list[LpVariable]:
    """Return a problem's integers from 0 on, called ``name0`` and so on."""
    return _variables(problem, name, count, LpInteger)


def _variables(problem: LpProblem, name: str, count: int, category: str) -> list[LpVariable]:
    with _lock:
        kept = _kept.setdefault((name, category), [])
        kept += [
            _made(problem, f"{name}{number}", category) for number in range(len(kept), min(count, _MOST_KEPT))
        ]
        known = kept[:count]
    return known + [_made(problem, f"{name}{number}", category) for number in range(_MOST_KEPT, count)]


def _made(problem: LpProblem, name: str, category: str) -> LpVariable:
    highest = 1 if category == LpBinary else None
    return _Variable.fromDataclass(problem, MPSVariable(name, LpInteger, 0, highest))


def add_multiples(
    problem: Problem,
    name: str,
    variables: tuple[Sequence[LpVariable], Sequence[LpVariable]],
    times: Sequence[tuple[int, int]],
) -> None:
    """Add ``name0``: a0 - t·b0 ≤ 0, and so on.

    Args:
        problem: to which they are added.
        name: of the rows, for these two kinds of variables alone.
        variables: a and b, as binaries() and integers() made them.
        times: numbers of variables, each once, and t of each.
    """
    first, second = variables
    with _lock:
        kept = _kept_rows.setdefault(name, {})
        # In the order of their numbers, whichever of them are kept already.
        rows = list(map(kept.get, times))
        for place in [place for place, row in enumerate(rows) if row is None]:
            number, most = times[place]
            terms = LpAffineExpression({first[number]: 1, second[number]: -most})
            made = f"{name}{number}", LpConstraint(terms, LpConstraintLE, f"{name}{number}", 0)
            rows[place] = made
            if number < _MOST_KEPT and len(kept) < _MOST_KEPT:
                kept[number, most] = made
    problem.add_rows(dict(filter(None, rows)))
