"""Delays that are counted so far, in a file that survives a restart: written whole, refused when torn."""

from __future__ import annotations

import os
import zlib
from math import isfinite
from pathlib import Path

import msgspec

from ...cluster.errors import InputError
from ...formats.binary import write_bytes
from ...formats.jsontext import decode
from ...formats.reading import read_document
from .fairness import KINDS, Accounts

FORMAT = "aucsched-delays/1"


class _Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    since_s: float
    targets: dict[str, dict[str, float]]
    singles: dict[str, float]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    checksum: str
    delays: _Body


def save_accounts(accounts: Accounts, path: str | Path) -> None:
    """Write accounts: the file is the old one or the new one, whenever the machine stops.

    Raises:
        InputError: it cannot be written.
    """
    targets: dict[str, dict[str, float]] = {}
    for (kind, name), seconds in sorted(accounts.targets.items()):
        targets.setdefault(kind, {})[name] = seconds
    body = _Body(since_s=accounts.since_s, targets=targets, singles=dict(sorted(accounts.singles.items())))
    file = _File(format=FORMAT, checksum=_checksum(body), delays=body)
    write_bytes(path, msgspec.json.format(msgspec.json.encode(file), indent=2) + b"\n")
    if Path(path).is_file():
        _sync(path)


def load_accounts(path: str | Path) -> Accounts | None:
    """Return a file's accounts, None where there is no such file yet.

    Raises:
        InputError: it is none, or was changed or cut: its checksum does not fit.
    """
    if not Path(path).exists():
        return None
    return read_document(path, _parsed)


def _parsed(content: bytes) -> Accounts:
    file = decode(content, _File)
    if file.format != FORMAT:
        raise InputError(f"{file.format!r} is not {FORMAT!r}", path="format")
    body = file.delays
    if file.checksum != _checksum(body):
        raise InputError(f"{file.checksum!r} does not fit what the file holds", path="checksum")
    for kind, names in body.targets.items():
        if kind not in KINDS:
            raise InputError(f"{kind!r} is not one of {', '.join(KINDS)}", path="delays.targets")
        _times(names, f"delays.targets.{kind}")
    _times(body.singles, "delays.singles")
    _times({"since_s": body.since_s}, "delays")
    targets = {
        (kind, name): seconds for kind, names in body.targets.items() for name, seconds in names.items()
    }
    return Accounts(since_s=body.since_s, targets=targets, singles=body.singles)


def _times(values: dict[str, float], path: str) -> None:
    for name, value in values.items():
        if not (isfinite(value) and value >= 0):
            raise InputError(f"{value:g} is no time from 0 on", path=f"{path}.{name}")


def _checksum(body: _Body) -> str:
    return f"{zlib.crc32(msgspec.json.encode(body)):08x}"


def _sync(path: str | Path) -> None:
    """Bring a file and its name to the disk."""
    for place in (Path(path), Path(path).resolve().parent):
        handle = os.open(place, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
