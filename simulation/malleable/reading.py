"""A log as a trace of applications: the request is the ideal size, the run time holds for that size."""

from __future__ import annotations

import numpy as np

from ...formats.swf import Field, SwfLog
from ..requests import Workload
from .run import Trace

_KIB = 1024


def trace_of(workload: Workload, log: SwfLog, *, adapting_costs: bool = False) -> Trace:
    """Return the jobs of a log as applications.

    Args:
        workload: the log's jobs as simulations read them.
        log: its rows.
        adapting_costs: an adaptation takes 1 + 0.00009 · bytes s: the used memory (field 7, KiB a processor)
            of the ideal processors, over those that hold it then; what is not known counts as none.
    """
    requests = workload.requests
    ideal = np.array(requests.size, dtype=np.int64)
    memory = log.column(Field.MEMORY)[list(workload.row)]
    return Trace(
        processors=requests.processors,
        submit=np.array(requests.submit, dtype=np.float64),
        ideal=ideal,
        run=np.array(workload.run, dtype=np.float64),
        data=np.maximum(memory, 0.0) * _KIB * ideal if adapting_costs else None,
    )
