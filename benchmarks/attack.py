"""Attack the whole system: mutants of every file, command lines, snapshots × models × options.

    python benchmarks/attack.py                        every section with its full count
    python benchmarks/attack.py --only steps --count 500 --seed 1000
    python benchmarks/attack.py --seconds 30           at most so long for each section

Every case follows from its seed. A failure is printed with its section, seed, command, rule and what was
wrong, and what it read is kept (``--keep``); the exit code is 1 when there is any. What each section promises
stands in docs/reliability.md. A section that was stopped goes on with the options that it prints.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import attack_lines
import attack_readers
import attack_steps
from attack_cases import Outcome, Section, Tally, attack, progress

SECTIONS: tuple[Section, ...] = (*attack_readers.sections(), attack_lines.section(), attack_steps.section())


def main() -> int:
    """Run the sections and print what came of them."""
    arguments = _arguments()
    failed = 0
    with tempfile.TemporaryDirectory() as place:
        for section in SECTIONS:
            if arguments.only and not {section.name, section.name.partition(":")[0]} & {*arguments.only}:
                continue
            failed += _run(section, arguments, Path(place) / section.name)
    print(f"{failed} failures" if failed else "no failures")
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [section.name for section in SECTIONS]
    groups = sorted({name.partition(":")[0] for name in names if ":" in name})
    chosen = [*groups, *names]
    what = f"a section: {', '.join(chosen)}"
    parser.add_argument("--only", action="append", choices=chosen, metavar="NAME", help=what)
    parser.add_argument("--count", type=int, help="cases of each section (its own count)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most, for each section")
    parser.add_argument("--seed", type=int, default=0, help="of the first case (0)")
    parser.add_argument("--keep", type=Path, default=Path("attack-failures"), help="folder for failures")
    return parser.parse_args()


def _run(section: Section, arguments: argparse.Namespace, folder: Path) -> int:
    """Run one section; return how many cases failed."""
    folder.mkdir()
    count = section.count if arguments.count is None else arguments.count

    def tell(tally: Tally, seed: int, outcome: Outcome) -> None:
        if outcome.failures:
            _report(section.name, seed, outcome, arguments.keep)
        progress(tally, count)

    seeds = range(arguments.seed, arguments.seed + count)
    here = Path.cwd()
    try:
        tally = attack(section, seeds, folder, seconds=arguments.seconds, tell=tell)
    finally:
        os.chdir(here)
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    _print_tally(tally, count)
    return len(tally.failed)


def _report(name: str, seed: int, outcome: Outcome, keep: Path) -> None:
    """Print a failed case and keep what it read."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    print(f"FAILED {name} seed {seed}: {outcome.replay}")
    for failure in outcome.failures:
        print(f"  {failure.rule}: {failure.detail}")
    folder = keep / f"{name}-{seed}"
    for file, content in outcome.files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    if outcome.files:
        print(f"  kept in {folder}")


def _print_tally(tally: Tally, count: int) -> None:
    last = tally.first_seed + tally.cases
    broken = f"{len(tally.failed)} failed" if tally.failed else "none failed"
    seeds = f"seeds {tally.first_seed} to {last - 1}"
    print(f"{tally.section}: {tally.cases} cases, {seeds}, {broken}, {tally.seconds:.0f} s")

    rules: dict[str, int] = {}
    for _, outcome in tally.failed:
        for rule in sorted({failure.rule for failure in outcome.failures}):
            rules[rule] = rules.get(rule, 0) + 1
    for what, number in [*sorted(rules.items()), *sorted(tally.counts.items())]:
        print(f"  {what}: {number}")
    for what, value in sorted(tally.largest.items()):
        print(f"  at most {value:.3g} {what}")
    if tally.cases < count:
        print(f"  go on with: --only {tally.section} --seed {last} --count {count - tally.cases}")


if __name__ == "__main__":
    sys.exit(main())
