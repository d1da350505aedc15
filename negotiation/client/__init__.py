"""For applications: ask a dynsched process for more cores while you run, and give them back.

::

    from aucsched.negotiation.client import EvolvingClient

    client = EvolvingClient("job 17", "unix:/run/dynsched", journal="job-17.journal")
    answer = client.request(cores=4, timeout_s=60)
    if answer.state is DynState.PENDING:
        answer = client.wait()          # granted, or refused once its time is over
    ...                                 # compute on answer.held
    client.release(answer.nodes)
"""

from __future__ import annotations

from ..messages import DynResponse, DynState
from .evolving import EvolvingClient

__all__ = ["DynResponse", "DynState", "EvolvingClient"]
