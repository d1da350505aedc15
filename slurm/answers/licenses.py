"""A cluster's licences from ``scontrol show licenses``, as text (22.05) or as JSON (23.02 and later)."""

from __future__ import annotations

from collections.abc import Iterator

from ...cluster.checks import plain
from ...cluster.errors import InputError
from ...cluster.nodes import License
from ...formats.notes import Notes
from .record import Record, is_json, read_document
from .text import paragraphs


def read_licenses(content: bytes, notes: Notes) -> dict[str, License]:
    """Return the licences by name.

    Slurm keeps licences of a reservation from all other jobs: they are taken off what is free.

    Raises:
        InputError: the answer is malformed or of an unknown shape, or a licence stands twice.
    """
    licenses: dict[str, License] = {}
    for name, total, free, reserved, path in _json(content) if is_json(content) else _text(content):
        plain(name, path)
        if name in licenses:
            raise InputError(f"the licence {name!r} stands twice", path=path)
        if reserved:
            notes.add("licences", f"licence {name}: {reserved} of {total} are reserved, so not free")
        # A remote licence's total may shrink below what is in use.
        licenses[name] = License(total=total, free=min(total, max(0, free - reserved)))
    return licenses


def _json(content: bytes) -> Iterator[tuple[str, int, int, int, str]]:
    document = read_document(content)
    if "licenses" not in document.members:
        raise InputError("the member 'licenses' is missing")
    for record in document.children("licenses"):
        record.require("LicenseName")
        if not record.text("LicenseName"):
            raise record.unknown("LicenseName", "a name")
        yield (
            record.text("LicenseName"),
            record.count("Total"),
            record.count("Free"),
            _reserved(record),
            record.path,
        )


def _reserved(record: Record) -> int:
    return record.number("Reserved") or 0


def _text(content: bytes) -> Iterator[tuple[str, int, int, int, str]]:
    for entry in paragraphs(content.decode(errors="replace"), "LicenseName"):
        total, free = entry.count("Total"), entry.count("Free")
        if total is None or free is None:
            raise entry.unknown("Total" if total is None else "Free", "a count")
        yield entry.pairs["LicenseName"], total, free, entry.count("Reserved") or 0, entry.path
