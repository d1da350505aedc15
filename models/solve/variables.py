"""PuLP's variables, made once: the same names and bounds stand in one program after another.

A step's program has tens of thousands, and making them took a third of stating AUCSCHED1. They carry no
values: programs are read into arrays (solver.py), and no problem is solved by PuLP itself.
"""

from __future__ import annotations

from threading import Lock

from .solver import LpBinary, LpInteger, LpProblem, LpVariable

#: Variables of a kind that are kept; those of larger programs are made anew.
_MOST_KEPT = 50_000

_kept: dict[tuple[str, str], list[LpVariable]] = {}
_lock = Lock()


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
            problem.add_variable(f"{name}{number}", 0, None, category)
            for number in range(len(kept), min(count, _MOST_KEPT))
        ]
        known = kept[:count]
    return known + [
        problem.add_variable(f"{name}{number}", 0, None, category) for number in range(_MOST_KEPT, count)
    ]
