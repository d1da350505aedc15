"""Numbers that HiGHS can be trusted with.

Amounts are integers that a double holds exactly, but HiGHS counts with tolerances, and with coefficients of
10⁹ beside 1 it was seen to cut the root for ever, deaf to its time limit and to interrupts.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .program import IntegerProgram

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
