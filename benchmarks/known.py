"""Best known values and bounds of the instance set: benchmarks/instances/best_known.json.

    python benchmarks/known.py            # checks every entry against its program, made anew

A value counts for one program: when bids are made otherwise, its digest differs, and the entry with it. Each
entry names the columns that are 1 in its solution: nobody has to be believed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import msgspec
from mps import Program, WrongAnswerError, read_mps

FILE = Path(__file__).parent / "instances" / "best_known.json"


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The best of an instance: the value, who found it, the least bound, whose it is, of which program.

    ``columns``: places of the columns that are 1, blanks between them.
    """

    value: float
    by: str
    bound: float | None = None
    bound_by: str = ""
    program: str
    columns: str = ""


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
    return msgspec.structs.replace(value, bound=bound.bound, bound_by=bound.bound_by)


def update(found: dict[str, Known], file: Path = FILE) -> None:
    """Write the better of what is known and what was found, in order of instance."""
    entries = best_known(file)
    entries |= {name: better(entries.get(name), entry) for name, entry in found.items()}
    content = msgspec.json.format(msgspec.json.encode(dict(sorted(entries.items()))), indent=2)
    file.write_bytes(content + b"\n")


def verdict(program: Program, entry: Known) -> str:
    """Return what is wrong with an entry; nothing where its solution is one and brings its value."""
    if program.digest() != entry.program:
        return f"its program is {entry.program}, made anew it is {program.digest()}"
    try:
        values = program.checked({program.names[int(place)]: 1.0 for place in entry.columns.split()})
    except (WrongAnswerError, IndexError) as error:
        return str(error)
    worth = program.worth(values)
    if abs(worth - entry.value) > 1e-9 * worth:
        return f"its solution brings {worth:.9g}, not {entry.value:.9g}"
    if entry.bound is not None and entry.bound < worth * (1 - 1e-9):
        return f"its bound {entry.bound:.9g} is below its value"
    return ""


def main() -> int:
    """Check every entry; print a line for each."""
    from ours import write_instance

    wrong = 0
    for name, entry in best_known().items():
        kind, _, seed = name.partition("/")
        with tempfile.TemporaryDirectory() as folder:
            exported = Path(folder) / "program.mps"
            write_instance(kind, int(seed), Path(folder) / "instance", exported, Path(folder) / "start")
            problem = verdict(read_mps(exported), entry)
        wrong += bool(problem)
        print(f"{name}: {problem or 'holds'}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
