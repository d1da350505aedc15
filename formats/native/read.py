"""Native snapshots (``aucsched-snapshot/1``): read and checked."""

from __future__ import annotations

from pathlib import Path

from ...cluster.errors import OptionError
from ...cluster.keywords import shown
from ...cluster.snapshot import Snapshot
from ..file_kinds import SNAPSHOT
from ..hostlist import one_file
from ..reading import read_document
from .cluster_file import SNAPSHOT_FILE, built, decoded


def load_snapshot(path: str | Path) -> Snapshot:
    """Read and check a snapshot file, plain or gzip; ``-`` reads standard input.

    Raises:
        InputError: the file cannot be read or is not a valid snapshot; names file, path and value.

    Examples:
        >>> import aucsched
        >>> aucsched.save_snapshot(aucsched.Snapshot(nodes=[aucsched.Node(name="n", cores=8)]), "now.json")
        >>> load_snapshot("now.json").nodes[0].total.cores
        8
    """
    return read_document(path, parse_snapshot)


def snapshot_of(given: Snapshot | str | Path) -> Snapshot:
    """Return a snapshot, read where a file is named.

    Raises:
        InputError: the file cannot be read.
        OptionError: it is neither.
    """
    if isinstance(given, Snapshot):
        return given
    if not isinstance(given, (str, Path)):
        raise OptionError(f"snapshot: {shown(given)} is neither a Snapshot nor a file's name")
    return load_snapshot(given)


@one_file()
def parse_snapshot(text: bytes) -> Snapshot:
    """Return the snapshot in a snapshot file's text; errors name the path and the value.

    Raises:
        InputError: it is no valid snapshot.

    Examples:
        >>> text = b'{"format": "aucsched-snapshot/1", "nodes": [{"name": "n[1-2]", "cores": 8}], "jobs": []}'
        >>> [node.name for node in parse_snapshot(text).nodes]
        ['n1', 'n2']
    """
    return built(decoded(text, SNAPSHOT_FILE, SNAPSHOT), SNAPSHOT_FILE)
