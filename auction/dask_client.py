"""A Dask cluster as somebody to give work to: the extra, the connection, its log kept off standard error."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from ..cluster.errors import OptionError

_PATIENCE = "10s"


def check_dask() -> None:
    """Raise OptionError when the extra is not installed."""
    if find_spec("distributed") is None:
        raise OptionError("--dask needs distributed: pip install 'aucsched[dask]'")


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Yield a client of the scheduler at an address.

    Raises:
        OptionError: no scheduler answers there.
    """
    from distributed import Client  # noqa: PLC0415 - the extra may be absent

    _silence()
    try:
        client: Any = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise OptionError(f"--dask {address}: no scheduler answers there") from error
    with client:
        yield client


def _silence() -> None:
    """Keep Dask's log off standard error: what went wrong, the one line of an error says."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
