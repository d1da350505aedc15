"""Generic resources and licences as Slurm writes them: of nodes, jobs, requests and slurm.conf.

A list of licences has items between ``,`` or ``;``: 25.05 and later write ``;`` where users wrote
``,``. An item is a name with a count (``matlab:2``, ``matlab@server:2``), alternative terms
(``a:2|b``), or nodes with a count (``name(n[1,3]):2``), inside which nothing separates items.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from ...cluster.checks import LARGEST_COUNT, plain
from ...cluster.errors import InputError
from ...cluster.nodes import License, Node
from ...formats.file_kinds import is_json
from ...formats.notes import Notes
from .answer_record import KeyedRecord, Record, answer_entries, read_document
from .answer_text import Paragraph, count_of
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
            return {}, "whose totals are not known" if found else "which are not plain counts"
        counts[found[0]] = counts.get(found[0], 0) + found[1]
    return counts, ""


def read_licenses(content: bytes, notes: Notes) -> dict[str, License]:
    """Return licences by name, from ``scontrol show licenses`` as text or JSON (23.02 and later).

    Slurm keeps licences of a reservation from all other jobs: they are taken off what is free. Of
    a licence in layers of nodes (HRES) the smallest layer counts: no job gets more than each has.
    One that counts by node is left out: jobs that ask for it are not expressible.

    Raises:
        InputError: the answer is malformed or of an unknown shape.
    """
    # Each a licence, or one layer of it.
    rows: dict[str, list[Paragraph]] = {}
    for row in answer_entries(content, "LicenseName", "licenses", _keys):
        name = row.verbatim("LicenseName")
        plain(name, row.path)
        rows.setdefault(name, []).append(row)
    release = release_of(read_document(content)) if is_json(content) else None
    mode = "1" if release is not None and release < _BY_NODE else ""
    found = ((name, _license(name, layers, mode, notes)) for name, layers in rows.items())
    return {name: entry for name, entry in found if entry is not None}


def _license(name: str, layers: Sequence[Paragraph], mode: str, notes: Notes) -> License | None:
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


def _count(entry: Paragraph, key: str) -> int:
    count = entry.count(key)
    if count is not None:
        return count
    if isinstance(entry, KeyedRecord) and entry.record.members[key] == _INFINITE:
        return _INFINITE
    raise entry.unknown(key, "a count")


_DETAIL = re.compile(r"\([^()]*\)")
_GRES_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_REQUEST = re.compile(r"(?:gres[:/])(?P<what>.+)")
#: What ``sbatch --gres=none`` leaves of a request.
_NO_GRES = re.compile(r"gres[:/]none(?=,|$)", re.IGNORECASE)
#: No type's name is longer; a longer one is a count beyond all bounds.
_LONGEST = 60
#: Parts of one text; the commas of a socket list (``S:0,2``) count too.
_MOST_PARTS = 1000
_NOTHING = {"", "N/A", "null", "none"}


def parse_gres(text: str, path: str, beyond: list[str] | None = None) -> dict[str, int]:
    """Return counts by name/type: ``gpu:a100:4(S:0-1),shard:8`` = ``{"gpu:a100": 4, "shard": 8}``.

    ``beyond`` gets the names of counts that nothing here can hold (``storage:2T``), left out then.

    Raises:
        InputError: a part is no gres as Slurm writes them.
    """
    counts: Counter[str] = Counter()
    _check_number(text, path)
    # A gres without a type is gpu:(null):3(IDX:0-2).
    for item in _DETAIL.sub("", text.replace(":(null)", "")).split(","):
        if item.strip() not in _NOTHING:
            name, count = _item(item.strip(), path)
            counts[name] += count
    if beyond is not None:
        beyond += (name for name, count in counts.items() if count > LARGEST_COUNT)
    return {name: count for name, count in counts.items() if name not in (beyond or ())}


def gres_kinds(nodes: Iterable[Node]) -> frozenset[str]:
    """Return the names, without types, of the gres that nodes have."""
    return frozenset(name.partition(":")[0] for node in nodes for name in node.total.gres)


def wanted_gres(
    counts: Mapping[str, int], option: str, known: Collection[str], unsupported: list[str]
) -> dict[str, int]:
    """Return the counts above 0 that ``option`` asks for; others are not expressible.

    Those are counts that nothing here can hold, and gres that are not among the ``known`` kinds.
    """
    kept: dict[str, int] = {}
    for name, count in counts.items():
        if count > LARGEST_COUNT:
            unsupported.append(f"{option}{name}={count}")
        elif count and name.partition(":")[0] not in known:
            unsupported.append(f"{option}{name}={count}: no node is known to have {name}")
        elif count:
            kept[name] = count
    return kept


def parse_request(text: str, path: str) -> tuple[dict[str, int], list[str]]:
    """Return a request's gres counts (``gres:gpu:2``, ``gres/gpu:a100=1``) and its other parts."""
    counts: dict[str, int] = {}
    others: list[str] = []
    _check_number(text, path)
    for item in filter(None, _NO_GRES.sub("", text).split(",")):
        if match := _REQUEST.fullmatch(item):
            name, count = _item(match["what"].replace("=", ":"), path)
            counts[name] = counts.get(name, 0) + count
        else:
            others.append(item)
    return counts, others


def gres_of_tres(text: str, path: str) -> dict[str, int]:
    """Return the gres counts of a TRES list; what it says by type is not counted twice.

    Examples:
        >>> gres_of_tres("cpu=8,gres/gpu=4,gres/gpu:a100=3", "AllocTRES")
        {'gpu:a100': 3, 'gpu': 1}
    """
    counts, _ = parse_request(text, path)
    for name, count in counts.items():
        kind, colon, _ = name.partition(":")
        if colon and kind in counts:
            counts[kind] -= count
    # Those without a type last: they are of the types that the others leave.
    return {
        name: counts[name] for name in sorted(counts, key=lambda name: ":" not in name) if counts[name] > 0
    }


def _check_number(text: str, path: str) -> None:
    """Refuse more parts than a node has kinds of resources: they are compared with each other."""
    if (parts := text.count(",") + 1) > _MOST_PARTS:
        raise InputError(f"{text[:60]!r} has {parts} parts, more than {_MOST_PARTS}", path=path)


def _item(item: str, path: str) -> tuple[str, int]:
    """Return the name (with its type) and the count, 1 where none is written."""
    parts = [part for part in item.split(":") if part != "no_consume"]
    count = count_of(parts[-1]) if len(parts) > 1 else None
    if count is not None:
        parts.pop()
    too_long = len(parts[-1]) > _LONGEST
    if len(parts) not in (1, 2) or not _GRES_NAME.fullmatch(parts[0]) or not parts[-1] or too_long:
        raise InputError(f"{item[:60]!r} is not a gres as Slurm writes it", path=path)
    return ":".join(parts), 1 if count is None else count


def settle(use: Mapping[str, int], totals: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Return ``use`` under the names of a node's ``totals``, and what of it the node does not have.

    Slurm may name a type on one side only. A use without a type is charged to the node's types of
    that kind, those that ``use`` counts last; a use with a type to the node's untyped count.
    """
    left = dict(totals)
    lost: dict[str, int] = {}
    for name, count in use.items():
        rest = count
        for candidate in sorted(_candidates(name, totals), key=use.__contains__):
            taken = min(rest, left[candidate])
            left[candidate] -= taken
            rest -= taken
        if rest:
            lost[name] = rest
    return {name: totals[name] - free for name, free in left.items() if free < totals[name]}, lost


def _candidates(name: str, totals: Mapping[str, int]) -> list[str]:
    kind, colon, _ = name.partition(":")
    if name in totals:
        return [name]
    if colon:
        return [kind] if kind in totals else []
    return [other for other in totals if other.partition(":")[0] == kind]
