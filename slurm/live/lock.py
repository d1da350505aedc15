"""One loop on a host: a lock on a file, which ends with the process, however that ends."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...cluster.errors import InputError


def default_lock(licence: str) -> Path:
    """Return the lock's file: one for each cluster, by its configuration, and gate."""
    conf = os.environ.get("SLURM_CONF", "")
    name = hashlib.sha256(f"{conf}\0{licence}".encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"aucsched-{os.getuid()}-{name}.lock"


@contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Hold the lock.

    Raises:
        InputError: another process holds it, or the file cannot be made.
    """
    try:
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InputError(f"cannot be locked: {error.strerror}", file=str(path)) from error
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError("another slurm run of this host holds the lock", file=str(path)) from error
        yield
    finally:
        os.close(number)
