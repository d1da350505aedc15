"""Native workloads (``aucsched-workload/1``): read, checked, and written; and failures of their nodes."""

from __future__ import annotations

from pathlib import Path
from types import GenericAlias
from typing import Any

import msgspec

from ...cluster.errors import InputError
from ...cluster.workload import ClusterWorkload, Outage
from ..file_kinds import WORKLOAD
from ..hostlist import one_file
from ..jsontext import decode
from ..reading import read_document
from .cluster_file import WORKLOAD_FILE, built, decoded, document_text
from .file_objects import FileObject, each, file_form
from .write import write_text

FAILURES_FORMAT = "aucsched-failures/1"
_OUTAGE = file_form(Outage)
#: The whole file: outages in any order.
_FAILURES: Any = msgspec.defstruct(
    "Failures",
    [("format", str), ("failures", GenericAlias(list, _OUTAGE.struct))],
    bases=(FileObject,),
    kw_only=True,
)


def load_workload(path: str | Path) -> ClusterWorkload:
    """Read and check a workload file, plain or gzip; ``-`` reads standard input.

    Raises:
        InputError: the file cannot be read or is no valid workload; names file, path and value.

    Examples:
        >>> import aucsched
        >>> made = aucsched.ClusterWorkload(name="tiny", nodes=[aucsched.Node(name="n", cores=8)])
        >>> aucsched.save_workload(made, "tiny.json")
        >>> load_workload("tiny.json") == made
        True
    """
    return read_document(path, parse_workload)


@one_file()
def parse_workload(text: bytes) -> ClusterWorkload:
    """Return the workload in a workload file's text; errors name the path and the value.

    Raises:
        InputError: it is no valid workload.

    Examples:
        >>> nodes = '"nodes": [{"name": "n", "cores": 8}], "jobs": []'
        >>> text = f'{{"format": "aucsched-workload/1", "name": "w", {nodes}}}'
        >>> parse_workload(text.encode()).name
        'w'
    """
    document = decoded(text, WORKLOAD_FILE, WORKLOAD)
    _check_all_free(document)
    return built(document, WORKLOAD_FILE)


def _check_all_free(document: Any) -> None:
    """Refuse a free figure: at a workload's beginning everything is free."""
    message = "given, but a workload begins with everything free"
    for index, entry in enumerate(document.nodes):
        for member in ("free_cores", "free_memory_mib", "free_gres"):
            if getattr(entry, member) is not None:
                raise InputError(message, path=f"nodes[{index}].{member}")
    for name, entry in document.licenses.items():
        if entry.free is not None:
            raise InputError(message, path=f"licenses.{name}.free")


def save_workload(workload: ClusterWorkload, path: str | Path) -> None:
    """Write a workload in the native form (``aucsched-workload/1``); ``-`` is standard output.

    Raises:
        InputError: the file cannot be written; nothing is left behind.

    Examples:
        >>> import aucsched
        >>> made = aucsched.ClusterWorkload(name="tiny", nodes=[aucsched.Node(name="n", cores=8)])
        >>> save_workload(made, "tiny.json")
    """
    write_text(path, workload_to_json(workload))


def workload_to_json(workload: ClusterWorkload) -> str:
    """Return the workload file's text, one line for each job; reading it gives an equal workload."""
    return document_text(workload, {})


def load_failures(path: str | Path) -> tuple[Outage, ...]:
    """Read and check a file of failures, plain or gzip; ``-`` reads standard input.

    Raises:
        InputError: the file cannot be read or is no valid file of failures; names file, path and value.
    """
    return read_document(path, parse_failures)


def parse_failures(text: bytes) -> tuple[Outage, ...]:
    """Return the outages in a file's text; errors name the path and the value."""
    document = decode(text, _FAILURES, FAILURES_FORMAT)
    return each(document.failures, "failures", _OUTAGE.build)
