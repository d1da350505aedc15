"""The search's loops (moves, repairs, swaps, proofs), compiled by numba with the extra ``fast``.

A machine compiles once: at ``make demo`` and ``make test``, or by ``python -m`` and this module's
name. Nothing that numba can do wrong ends a run: the same lines in plain Python take its place, and
under a work limit give the same award.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np

from ...cluster.kernels.harness import Entry
from ...cluster.kernels.warm_up import main
from .moves import Floats, MoveProblem, MoveState, make_moves
from .proofs import Branch, ProofBids, prove
from .repair_kernel import RepairProblem, RepairState, make_repairs
from .swaps import Swaps, make_swaps

#: The time limit from which the loops are loaded: reading numba and its files takes half of it.
_LOADED_WITHIN_S = 2.0

Loop = Callable[[MoveProblem, MoveState, Floats, Floats, int], None]
Repairs = Callable[[RepairProblem, RepairState, Floats, int], None]
Swap = Callable[[MoveProblem, Swaps, Floats, int], None]
Proofs = Callable[[ProofBids, Branch, int, float, float, int], bool]
ColumnsT = TypeVar("ColumnsT", MoveProblem, MoveState, RepairProblem, RepairState, Swaps, ProofBids, Branch)

_MOVES, _REPAIRS = Entry(make_moves, "the search"), Entry(make_repairs, "the search")
_SWAPS, _PROOFS = Entry(make_swaps, "the search"), Entry(prove, "the search")
ENTRIES = (_MOVES, _REPAIRS, _SWAPS, _PROOFS)


def _compiled(entry: Entry) -> Any:
    """Return a loop compiled, None without a numba that works; the first call may take seconds.

    Call it before a clock starts: all loops are loaded together, and a later call costs nothing.
    """
    _load_all()
    return entry.compiled()


#: The loops of moves, repairs and swaps, and branch and bound: each compiled, None without numba.
compiled_loop: Callable[[], Loop | None] = partial(_compiled, _MOVES)
compiled_repairs: Callable[[], Repairs | None] = partial(_compiled, _REPAIRS)
compiled_swaps: Callable[[], Swap | None] = partial(_compiled, _SWAPS)
compiled_proofs: Callable[[], Proofs | None] = partial(_compiled, _PROOFS)


def load_within(seconds: float | None) -> None:
    """Load the compiled loops where that ends well within a time limit; without one (None) always.

    Loading counts towards the limit. Else the search runs in plain Python until somebody has loaded
    them. Compiling takes longer than any step.
    """
    if seconds is None or (seconds >= _LOADED_WITHIN_S and all(entry.is_kept() for entry in ENTRIES)):
        _load_all()


def is_loaded() -> bool:
    """Return whether the compiled loops are at hand without waiting."""
    return _MOVES.is_loaded


def as_lists(columns: ColumnsT) -> ColumnsT:
    """Return columns as lists, which plain Python indexes faster than arrays."""
    parts = {
        name: one.tolist() if isinstance(one, np.ndarray) else one for name, one in columns._asdict().items()
    }
    return columns._replace(**parts)


def _load_all() -> None:
    for entry in ENTRIES:
        entry.compiled()


if __name__ == "__main__":
    raise SystemExit(main())
