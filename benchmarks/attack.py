"""Attack the whole system: mutants of every file, command lines, steps, simulations, sockets, kills.

    python benchmarks/attack.py                        every section with its full count: hours
    python benchmarks/attack.py --quick                the first seeds of each: minutes
    python benchmarks/attack.py --only steps --count 500 --seed 1000
    python benchmarks/attack.py --only readers --seconds 30

Every case follows from its seed. A failure is printed with its section, seed, command, rule and
what was wrong, and what it read is kept (``--keep``); the exit code is 1 when there is any. What each
section tries is in benchmarks/notes/reliability.md. A section that was stopped goes on with the
options that it prints.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import attack_lines
import attack_readers
import attack_steps
from attack_cases import Outcome, Section, Tally, attack, progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A part of the attack that is a program of its own: it prints its figures and failures itself.

    Attributes:
        arguments: of the program, from a count and a seed.
    """

    name: str
    count: int
    quick: int
    arguments: Callable[[int, int], list[str]]


def _simulations(count: int, seed: int) -> list[str]:
    return ["attack_simulations.py", "--count", str(count), "--seed", str(seed)]


def _sockets(count: int, seed: int) -> list[str]:
    """Return the program's arguments: a crowd for each 100 sequences, a kill for each 25."""
    counts = {"--sequences": count, "--repeats": max(1, count // 100), "--kills": max(1, count // 25)}
    words = [word for name, value in counts.items() for word in (name, str(value))]
    return ["attack_sockets.py", *words, "--seed", str(seed)]


SECTIONS: tuple[Section | Program, ...] = (
    *attack_readers.sections(),
    attack_lines.section(),
    attack_steps.section(),
    Program(name="simulations", count=300, quick=20, arguments=_simulations),
    Program(name="sockets", count=500, quick=40, arguments=_sockets),
)


def main() -> int:
    """Run the sections and print what came of them."""
    arguments = _arguments()
    # Slurm's own commands, where they are installed, are another program's to attack, and slow.
    os.environ["PATH"] = os.devnull
    failed = 0
    with tempfile.TemporaryDirectory() as place:
        for section in SECTIONS:
            if arguments.only and not {section.name, section.name.partition(":")[0]} & {*arguments.only}:
                continue
            if isinstance(section, Program):
                failed += _run_program(section, arguments)
            else:
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
    parser.add_argument("--quick", action="store_true", help="a few cases of each section")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="at most, for each section of cases"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the first case (0)")
    parser.add_argument("--keep", type=Path, default=Path("attack-failures"), help="folder for failures")
    return parser.parse_args()


def _count(section: Section | Program, arguments: argparse.Namespace) -> int:
    if arguments.count is not None:
        return int(arguments.count)
    return section.quick if arguments.quick else section.count


def _run_program(program: Program, arguments: argparse.Namespace) -> int:
    """Run a program; return 1 when it failed."""
    name, *words = program.arguments(_count(program, arguments), arguments.seed)
    line = [sys.executable, str(Path(__file__).parent / name), *words]
    began = time.perf_counter()
    code = subprocess.run(line, check=False).returncode  # noqa: S603 - our own
    shown = "none failed" if code == 0 else f"FAILED with {code}"
    print(
        f"{program.name}: {' '.join([name, *words])}: {shown}, {time.perf_counter() - began:.0f} s",
        flush=True,
    )
    return 1 if code else 0


def _run(section: Section, arguments: argparse.Namespace, folder: Path) -> int:
    """Run one section; return how many cases failed."""
    folder.mkdir()
    count = _count(section, arguments)

    def tell(tally: Tally, seed: int, outcome: Outcome) -> None:
        if outcome.failures:
            _report(section.name, seed, outcome, arguments.keep)
        progress(tally, count)

    seeds = range(arguments.seed, arguments.seed + count)
    tally = attack(section, seeds, folder, seconds=arguments.seconds, tell=tell)
    _clear_line()
    _print_tally(tally, count)
    return len(tally.failed)


def _clear_line() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")


def _report(name: str, seed: int, outcome: Outcome, keep: Path) -> None:
    """Print a failed case and keep what it read."""
    _clear_line()
    print(f"FAILED {name} seed {seed}: {ascii(outcome.replay)[1:-1]}")
    for failure in outcome.failures:
        print(f"  {failure.rule}: {failure.detail}")
    folder = keep / f"{name.replace(':', '-')}-{seed}"
    for file, content in outcome.files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    if outcome.files:
        print(f"  kept in {folder}")
    sys.stdout.flush()


def _print_tally(tally: Tally, count: int) -> None:
    last = tally.first_seed + tally.cases
    broken = f"{len(tally.failed)} failed" if tally.failed else "none failed"
    seeds = f"seeds {tally.first_seed} to {last - 1}"
    print(f"{tally.section}: {tally.cases} cases, {seeds}, {broken}, {tally.seconds:.0f} s")
    rules = Counter(rule for _, one in tally.failed for rule in {failure.rule for failure in one.failures})
    for what, number in [*sorted(rules.items()), *sorted(tally.counts.items())]:
        print(f"  {what}: {number}")
    for what, value in sorted(tally.largest.items()):
        print(f"  at most {value:.3g} {what}")
    if tally.cases < count:
        print(f"  go on with: --only {tally.section} --seed {last} --count {count - tally.cases}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
