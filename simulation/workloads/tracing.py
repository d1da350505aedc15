"""The common part of both generators of application traces: streams of random numbers, writing of logs."""

from __future__ import annotations

from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ...formats.swf import WIDTH, SwfField, SwfLog

DAY_S = 86_400.0
#: Times are written to the millisecond, and no run is shorter.
_DIGITS = 3
_SHORTEST_S = 10.0**-_DIGITS
_KIB = 1024


def stream(seed: int, name: str) -> np.random.Generator:
    """Return a stream of random numbers of its own for each name."""
    return np.random.default_rng([seed, crc32(name.encode())])


def arranged(
    submit: NDArray[np.float64],
    ideal: NDArray[np.int64],
    run: NDArray[np.float64],
    *,
    processors: int,
    notes: tuple[str, ...],
    application: NDArray[np.int64] | None = None,
    data: NDArray[np.float64] | None = None,
) -> SwfLog:
    """Return a trace as a log: ideal processors and the run time on them; its first midnight is time 0.

    Args:
        submit: rising, in seconds.
        ideal: processors requested and allocated.
        run: seconds, also the estimate.
        processors: MaxProcs.
        notes: of the header, a line each.
        application: executable numbers.
        data: bytes that an adaptation moves times the processors that hold them: the used memory is their
            share of one of the ideal processors, in KiB.
    """
    table = np.full((len(submit), WIDTH), -1.0)
    seconds = np.maximum(np.round(run, _DIGITS), _SHORTEST_S)
    table[:, SwfField.JOB] = np.arange(1, len(submit) + 1)
    table[:, SwfField.SUBMIT] = np.round(submit, _DIGITS)
    table[:, SwfField.RUN] = table[:, SwfField.REQUESTED_TIME] = seconds
    table[:, SwfField.ALLOCATED_PROCESSORS] = table[:, SwfField.REQUESTED_PROCESSORS] = ideal
    table[:, SwfField.STATUS] = 1
    if application is not None:
        table[:, SwfField.EXECUTABLE] = application
    if data is not None:
        table[:, SwfField.MEMORY] = data / ideal / _KIB
    header = (
        " Version: 2.2",
        " UnixStartTime: 0",
        f" MaxProcs: {processors}",
        *(f" Note: {note}" for note in notes),
    )
    return SwfLog(comments=header, table=table)
