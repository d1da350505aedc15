"""Best known values and bounds of the instance set: benchmarks/instances/best_known.json.

A value counts for one program: when bids are made otherwise, its digest differs, and the entry with it.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

FILE = Path(__file__).parent / "instances" / "best_known.json"


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The best of an instance: the value, who found it, the least bound, whose it is, of which program."""

    value: float
    by: str
    bound: float | None = None
    bound_by: str = ""
    program: str


def best_known(file: Path = FILE) -> dict[str, Known]:
    """Return the entries by instance, ``tsubame/0``; none when there is no file."""
    return msgspec.json.decode(file.read_bytes(), type=dict[str, Known]) if file.exists() else {}


def better(known: Known | None, found: Known) -> Known:
    """Return the better value and the lesser bound of two entries; another program's entry is dropped."""
    if known is None or known.program != found.program:
        return found
    value = found if found.value > known.value else known
    is_less = found.bound is not None and (known.bound is None or found.bound < known.bound)
    bound = found if is_less else known
    return Known(
        value=value.value, by=value.by, bound=bound.bound, bound_by=bound.bound_by, program=known.program
    )


def update(found: dict[str, Known], file: Path = FILE) -> None:
    """Write the better of what is known and what was found, in order of instance."""
    entries = best_known(file)
    entries |= {name: better(entries.get(name), entry) for name, entry in found.items()}
    content = msgspec.json.format(msgspec.json.encode(dict(sorted(entries.items()))), indent=2)
    file.write_bytes(content + b"\n")
