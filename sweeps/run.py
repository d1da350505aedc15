"""One run of a sweep: from an input and a point of the grid to a row, also when the run fails."""

from __future__ import annotations

import platform
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from .. import __version__
from ..cluster.text import one_line
from .axes import Row
from .plan import KINDS, Run

FAILED = "failed"


def versions() -> Row:
    """Return the columns that say what computed a row."""
    try:
        highspy = version("highspy")
    except PackageNotFoundError:
        highspy = ""
    return {"aucsched": __version__, "highspy": highspy, "python": platform.python_version()}


def run_row(kind: str, loaded: Any, run: Run) -> Row:
    """Run one point of the grid and return its row: its options, its result, and versions.

    An error of any kind becomes the row's ``error``; the columns of the result are then missing.
    """
    began, cpu = time.perf_counter(), time.process_time()
    try:
        result = KINDS[kind].run(loaded, run.options)
    except Exception as error:  # noqa: BLE001 - whatever fails is a row, and the others go on
        result = failure(f"{type(error).__name__}: {error}")
    seconds = {"seconds.run": time.perf_counter() - began, "seconds.cpu": time.process_time() - cpu}
    return {"run": run.number, **run.options, **result, **seconds, **versions()}


def failure(message: str) -> Row:
    """Return the columns of a run that failed."""
    return {"status": FAILED, "error": one_line(message)}


def lost_row(run: Run) -> Row:
    """Return the row of a run whose process died."""
    died = failure("its process died each time it was tried")
    return {"run": run.number, **run.options, **died, **versions()}
