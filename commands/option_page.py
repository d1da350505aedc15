"""docs/options.md of the table of options: ``python -m aucsched.commands.option_page > docs/options.md``."""

from __future__ import annotations

import sys
from typing import Any

from ..cluster.option_fields import Option
from ..cluster.option_table import NEGOTIATE, OPTIONS, SCHEDULE, SIMULATE, STEP, SWEEP, WINNERS

_HEAD = """\
---
kind: reference
for: everyone
after: each option of an auction, its values and its default
---

# Options of an auction

Made from the fields of cluster/option_table.py by `python -m aucsched.commands.option_page`. An option
means the same in every command that has it. In Python it is the argument of `aucsched.schedule` with
underscores, and in `aucsched sweep` a list of values. `slurm run`, `slurm shadow`, `explain` and `compare`
take the same options and defaults as `schedule`. The column *default* names each exception, with its
reason in brackets.

By default the work limit ends a step, so that answers repeat; 3 seconds are a ceiling for busy machines.

*Each option of an auction, its values and its default.*

| option | values | default | read by |
|---|---|---|---|
"""


def page() -> str:
    """Return the page."""
    return _HEAD + "".join(map(row_of, OPTIONS))


def row_of(option: Option[Any]) -> str:
    """Return an option as a row of the page."""
    cells = [f"`{option.flag}` {_escaped(option.help)}", _values(option), _defaults(option), _readers(option)]
    return f"| {' | '.join(cells)} |\n"


def _values(option: Option[Any]) -> str:
    if option.choices:
        return ", ".join(f"`{choice}`" for choice in option.choices)
    if option.is_switch:
        return f"`{option.flag}`, `--no-{option.flag.removeprefix('--')}`"
    if option.check_text is not None:
        return ", ".join(f"`{word}`" for word in option.unit.split("|"))
    if not option.is_number:
        return f"a {option.unit.lower()}"
    if not option.is_whole:
        return f"{option.unit.lower()} above {option.low:g}"
    return f"{option.low:g} to {option.high:.0f}" if option.high else f"from {option.low:g}"


def _defaults(option: Option[Any]) -> str:
    plain = "" if option.default is None else f"{option.default}"
    others = [f"{reader}: {value}" for reader, value in option.other_defaults.items()]
    return _escaped("; ".join([plain, *others])) or "none"


def _readers(option: Option[Any]) -> str:
    names = [
        reader for reader in (SCHEDULE, STEP, SIMULATE, SWEEP, NEGOTIATE, WINNERS) if reader in option.readers
    ]
    without = (
        " (not ipsched)"
        if option.policies and "ipsched" not in option.policies and SIMULATE in option.readers
        else ""
    )
    return ", ".join(names) + without


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
