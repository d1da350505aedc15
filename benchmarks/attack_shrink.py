"""Shrinks a failing case: removes all that it does not need to fail by the same rule.

    python benchmarks/attack_shrink.py --seed 87 -o small.json

takes a case of the section ``steps`` (attack_steps.py), drops jobs, nodes, members and options, many at once
and one by one, as long as the step breaks the same rule, and prints the command that still shows it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
from attack_cases import Outcome
from attack_steps import command_line, drawn, judge

Document = dict[str, Any]
#: A member, a place in a list, or several places.
Step = str | int | slice
#: What a node, a job or a file cannot do without.
_NEEDED = {"format", "nodes", "name", "cores", "id", "priority", "model"}


def shrunk(document: Document, fails: Callable[[Document], bool], seconds: float) -> Document:
    """Return a document without what can be dropped while ``fails`` holds."""
    until = time.monotonic() + seconds
    again = True
    while again and time.monotonic() < until:
        again = False
        for path in _droppable(document):
            smaller = _without(document, path)
            if smaller is not None and time.monotonic() < until and fails(smaller):
                document, again = smaller, True
    return document


def _droppable(value: Any, path: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
    """Give the paths of entries and members, the last of a list first, so that paths before stay true."""
    if isinstance(value, list):
        size = len(value) // 2
        while size > 1:
            for start in reversed(range(0, len(value), size)):
                yield (*path, slice(start, start + size))
            size //= 2
        for place in reversed(range(len(value))):
            yield (*path, place)
            yield from _droppable(value[place], (*path, place))
    elif isinstance(value, dict):
        for name in list(value):
            if name not in _NEEDED:
                yield (*path, name)
            yield from _droppable(value[name], (*path, name))


def _without(document: Document, path: tuple[Step, ...]) -> Document | None:
    """Return a copy without the entry at a path, None when there is none any more."""
    copy = deepcopy(document)
    place: Any = copy
    try:
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]
    except (KeyError, IndexError, TypeError):
        return None
    return copy


def main() -> int:
    """Shrink the case of a seed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("-o", "--output", type=Path, required=True)
    arguments = parser.parse_args()
    document, options = drawn(arguments.seed)
    case = {"document": document, "options": options}
    rules = _rules(case)
    if not rules:
        print("the case breaks no rule")
        return 2
    case = shrunk(case, lambda smaller: bool(_rules(smaller) & rules), arguments.seconds)
    arguments.output.write_bytes(msgspec.json.encode(case["document"]))
    print(command_line(case["options"], str(arguments.output)))
    for failure in _judged(case).failures:
        print(f"  {failure.rule}: {failure.detail}")
    return 0


def _rules(case: Document) -> set[str]:
    return {failure.rule for failure in _judged(case).failures}


def _judged(case: Document) -> Outcome:
    outcome = Outcome()
    try:
        judge(case["document"], case["options"], outcome)
    except Exception:  # noqa: BLE001 - what was dropped was needed
        outcome.failures.clear()
    return outcome


if __name__ == "__main__":
    sys.exit(main())
