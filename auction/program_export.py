"""The window's integer program as a file that other solvers read."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..formats.binary import write_bytes
from ..models.model import Model
from ..models.solve.solver import written


def export(stated: Model, path: str, *, weighted: bool) -> None:
    """Write the program to ``path``, .mps or .lp, with the objective of the first stage.

    Under lexicographic weights that is the sum of priorities: an optimum of the file is the schedule's
    ``objective.priority``. MPS readers differ about a maximising section, so an .mps file minimises the
    negated sum.

    The options refuse other endings.

    Raises:
        InputError: the file cannot be written.
    """
    ending = Path(path).suffix
    objective = stated.printed() if weighted else np.array([float(weight) for weight in stated.weights])
    program = stated.program.maximising(objective)
    is_mps = ending == ".mps"
    remark = "* Minimise: the objective is the negated sum" if is_mps else "\\ Maximise the sum"
    what = "the printed objective" if weighted else "priorities"
    content = written(program, stated.names, ending, minimise=is_mps)
    write_bytes(path, f"{remark} of {what} over the window's bids\n".encode() + content)
