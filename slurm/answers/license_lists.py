"""Licences: their lists as jobs, reservations and slurm.conf write them, and what the cluster has.

A list is items between ``,`` or ``;``: 25.05 and later write ``;`` where users wrote ``,``. An item
is a name with a count (``matlab:2``, ``matlab@server:2``), terms of which one is enough (``a:2|b``),
or nodes with a count (``name(n[1,3]):2``), inside which nothing separates items.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

from ...cluster.checks import plain
from ...cluster.nodes import License
from ...formats.notes import Notes
from .answer_record import KeyedRecord, Record, answer_entries, is_json, read_document
from .answer_text import Paragraph
from .versions import SlurmRelease, release_of

#: A separator, nodes in parentheses, or what stands between: each character is looked at once.
_PIECE = re.compile(r"[,;]|\([^()]*\)?|[^,;()]+|\)")
#: slurm.conf of old has ``name*count`` too.
_COUNTED = re.compile(r"(?P<name>[^:*|()\[\]]+)(?:[:*](?P<count>[0-9]{1,12}))?")
#: What HRES of no limit shows (INFINITE of 32 bits).
_INFINITE = 2**32 - 1
#: From here on a layer may count by node (Mode=3), which JSON does not tell.
_BY_NODE = SlurmRelease(25, 11)
#: scontrol's text and its JSON call them the same.
_MEMBERS = {key: key for key in ("LicenseName", "Total", "Free", "Reserved", "Nodes")}


def license_items(text: str) -> list[tuple[str, str]]:
    """Return the items of a list as written, each behind its separator, the first behind none."""
    items = [("", "")]
    for piece in _PIECE.findall(text):
        if piece in (",", ";"):
            items.append((piece, ""))
        else:
            items[-1] = items[-1][0], items[-1][1] + piece
    return items


def counted_license(item: str) -> tuple[str, int] | None:
    """Return the name and the count that an item asks for, None where it is no plain count."""
    match = _COUNTED.fullmatch(item)
    return None if match is None else (match["name"], int(match["count"] or 1))


def asks_for(text: str, name: str) -> bool:
    """Whether a list asks for a licence by itself, not as one of several that would do."""
    found = (counted_license(item) for _, item in license_items(text))
    return any(one is not None and one[0] == name for one in found)


def without_gate(text: str, gate: str) -> str:
    """Return a list without the licence of the gate; all others keep their words and separators."""
    kept = [(mark, item) for mark, item in license_items(text) if not asks_for(item, gate)]
    return "".join(mark * (index > 0) + item for index, (mark, item) in enumerate(kept))


def with_gate(text: str, gate: str) -> str:
    """Return a list that asks for one of the gate's licence too, behind a separator of its kind."""
    mark = next((mark for mark, _ in reversed(license_items(text)) if mark), ",")
    return f"{text}{mark}{gate}:1" if text else f"{gate}:1"


def plain_licenses(text: str, known: Collection[str]) -> tuple[dict[str, int], str]:
    """Return the counts by name that a list asks for, or none of them and what else it is."""
    counts: dict[str, int] = {}
    for _, item in license_items(text):
        found = counted_license(item)
        if not item:
            continue
        if found is None or found[0] not in known or found[1] < 1:
            return {}, "whose totals are not known" if found else "which are no plain counts"
        counts[found[0]] = counts.get(found[0], 0) + found[1]
    return counts, ""


#: A line of ``scontrol show licenses``: a licence, or one layer of it.
_Row: TypeAlias = Paragraph | KeyedRecord


def read_licenses(content: bytes, notes: Notes) -> dict[str, License]:
    """Return the licences by name, from ``scontrol show licenses`` as text or JSON (23.02 and later).

    Slurm keeps licences of a reservation from all other jobs: they are taken off what is free. Of
    a licence in layers of nodes (HRES) the smallest layer counts: no job gets more than each has.
    One that counts by node is left out: jobs that ask for it are not expressible.

    Raises:
        InputError: the answer is malformed or of an unknown shape.
    """
    rows: dict[str, list[_Row]] = {}
    for row in answer_entries(content, "LicenseName", "licenses", _keys):
        name = row.verbatim("LicenseName")
        plain(name, row.path)
        rows.setdefault(name, []).append(row)
    release = release_of(read_document(content)) if is_json(content) else None
    mode = "1" if release is not None and release < _BY_NODE else ""
    found = ((name, _license(name, layers, mode, notes)) for name, layers in rows.items())
    return {name: entry for name, entry in found if entry is not None}


def _license(name: str, layers: Sequence[_Row], mode: str, notes: Notes) -> License | None:
    """Return a licence; ``mode``: how layers count that do not tell (1 any, 2 all, 3 by node)."""
    totals = [_count(row, "Total") for row in layers]
    reserved = [row.count("Reserved") or 0 for row in layers]
    for total, kept in zip(totals, reserved, strict=True):
        if kept:
            notes.add("licences", f"licence {name}: {kept} of {total} are reserved, so not free")
    if len(layers) > 1 or layers[0].text("Nodes"):
        modes = {row.text("Mode") or mode for row in layers}
        if not modes <= {"1", "2"}:
            why = "it counts by node" if "3" in modes else "how its layers count is not told"
            text = f"licence {name}: {why}: jobs that ask for it are not expressible"
            notes.add("licences", text)
            return None
        text = f"licence {name}: the smallest of its {len(layers)} layers counts for all nodes"
        notes.unread("licences", f"{text}; which nodes have it is not looked at")
    left = [max(0, _count(row, "Free") - kept) for row, kept in zip(layers, reserved, strict=True)]
    # A remote licence's total may shrink below what is in use.
    return License(total=min(totals), free=min(map(min, totals, left)))


def _keys(record: Record) -> Mapping[str, str]:
    record.require("LicenseName", "Total", "Free")
    return _MEMBERS


def _count(entry: _Row, key: str) -> int:
    count = entry.count(key)
    if count is not None:
        return count
    if isinstance(entry, KeyedRecord) and entry.record.members[key] == _INFINITE:
        return _INFINITE
    raise entry.unknown(key, "a count")
