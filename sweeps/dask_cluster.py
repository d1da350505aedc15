"""Runs on a Dask cluster: the same rows as here, computed by its workers."""

from __future__ import annotations

import threading
import warnings
import zlib
from collections.abc import Generator, Sequence
from functools import lru_cache
from typing import Any
from uuid import uuid4

from ..auction.dask_client import connected
from ..cluster.errors import AucschedError
from .axes import Row
from .plan import KINDS, Run, Subject
from .run import lost_row, run_row

#: A worker may have several threads; runs in one process go one after another all the same.
_ONE_AT_A_TIME = threading.Lock()


def run_on_dask(address: str, subject: Subject, runs: Sequence[Run]) -> Generator[Row, None, None]:
    """Yield the rows of runs as they are done, in no order.

    A run whose worker dies goes to another worker, as often as the scheduler's ``allowed-failures`` says.

    Raises:
        OptionError: no scheduler answers at the address.
        AucschedError: the scheduler went away, or its workers cannot run aucsched.
    """
    if runs:
        with connected(address) as client:
            yield from _rows(client, subject, runs)


def _rows(client: Any, subject: Subject, runs: Sequence[Run]) -> Generator[Row, None, None]:
    from distributed import KilledWorker, as_completed  # noqa: PLC0415 - the extra may be absent

    turn = uuid4().hex
    with warnings.catch_warnings():
        # A large input is sent once, whatever Dask thinks of its size.
        warnings.filterwarnings("ignore", "Sending large graph")
        # A task, not scattered data: when the worker that holds it dies, the scheduler makes it again.
        held = client.submit(bytes, zlib.compress(subject.content), key=f"aucsched-input-{turn}")
        name = f"aucsched-{turn}"
        source = (subject.kind, subject.digest, held)
        futures = {client.submit(_row, *source, run, key=f"{name}-{run.number}"): run for run in runs}
    for future in as_completed(futures, loop=client.loop):
        run = futures.pop(future)
        try:
            row: Row = future.result()
        except KilledWorker:
            row = lost_row(run)
        except Exception as error:
            raise AucschedError(f"the Dask cluster failed: {type(error).__name__}: {error}") from error
        future.release()
        yield row


def _row(kind: str, digest: str, packed: bytes, run: Run) -> Row:
    """Do one run on a worker."""
    with _ONE_AT_A_TIME:
        return run_row(kind, _loaded(kind, digest, packed), run)


@lru_cache(maxsize=1)
def _loaded(kind: str, digest: str, packed: bytes) -> Any:  # noqa: ARG001 - the digest is the cheap part of the key
    return KINDS[kind].load(zlib.decompress(packed))
