"""The integer program of a winner determination as a file that other solvers read."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...formats.binary import write_bytes
from ..solve.solver import written
from .instance import ProblemInstance

#: Endings of files that are written.
EXPORTS = (".mps", ".lp")


def export_lot(lot: ProblemInstance, names: tuple[str, ...], path: str) -> None:
    """Write the program over all bids to ``path``, .mps or .lp; an optimum of the file is the value.

    MPS readers differ about a maximising section, so an .mps file minimises the negated sum.

    Args:
        lot: the bids.
        names: of the bids, by their places as given: names of the columns.
        path: ends in one of EXPORTS.

    Raises:
        InputError: the file cannot be written.
    """
    ending = Path(path).suffix
    packing = lot.packing
    program = packing.program(np.arange(len(packing)), packing.capacity)
    values = np.array([float(value) for value in lot.values], np.float64)
    is_mps = ending == ".mps"
    remark = "* Minimise: the objective is the negated sum" if is_mps else "\\ Maximise the sum"
    content = written(
        program.maximising(values), [names[place] for place in lot.place.tolist()], ending, minimise=is_mps
    )
    write_bytes(path, f"{remark} of the winning bids' values\n".encode() + content)
