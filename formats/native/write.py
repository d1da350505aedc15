"""Writing files: snapshots in the native format, and any text, whole or not at all."""

from __future__ import annotations

import sys
from pathlib import Path

from ...cluster.snapshot import Snapshot, held_resources
from ...cluster.text import escaped
from ..binary import write_bytes
from .cluster_file import document_text


def write_text(path: str | Path, text: str) -> None:
    """Write a text as ``write_bytes`` does, in UTF-8 and with its hidden characters as escapes.

    Raises:
        InputError: the file cannot be written; nothing is left behind.
    """
    shown = escaped(text)
    if str(path) == "-":
        sys.stdout.write(shown)
    else:
        write_bytes(path, shown.encode())


def csv_field(text: str) -> str:
    """Return a text as a field of CSV (RFC 4180), in quotes where it needs them."""
    if not any(mark in text for mark in ',"\r\n'):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def save_snapshot(snapshot: Snapshot, path: str | Path) -> None:
    """Write a snapshot in the native form (``aucsched-snapshot/1``); ``-`` is standard output.

    Raises:
        InputError: the file cannot be written; nothing is left behind.

    Examples:
        >>> import aucsched
        >>> save_snapshot(aucsched.Snapshot(nodes=[aucsched.Node(name="n", cores=8)]), "now.json")
    """
    write_text(path, snapshot_to_json(snapshot))


def snapshot_to_json(snapshot: Snapshot) -> str:
    """Return the snapshot file's text; reading it gives an equal snapshot."""
    return document_text(snapshot, held_resources(snapshot.running))
