"""The auction beside other solvers, each on the same exported program, in one run.

    python benchmarks/compare.py tsubame --seed 0 --seconds 60 --ours 3
    python benchmarks/compare.py --all --update --output table.md

Every solver runs in a process of its own on one thread, and is killed when it is far over its time. Before a
value counts, its solution is checked against the program (mps.py), which no solver has a part in. A gap is
(bound - value) / value; a bound in brackets lies below a checked value, so it is none. Seconds are those of
the solve, of the auction those of the whole step; CPU seconds those of the whole process, reading included:
on a busy machine they tell how much of its time a solver got.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from instances.generate import KINDS
from known import FILE, Known, best_known, update
from mps import Program, read_mps
from peers import installed, read_answer
from rows import Row, holds, judged, table

OURS = "aucsched"
#: Seconds that a process may take beside 1.5 times its solver's: it reads and states the program too.
GRACE_S = 60.0
#: What --all runs.
PUBLISHED = (
    *(("tsubame", seed) for seed in range(5)),
    *(("tsubame-even", seed) for seed in range(5)),
    ("tsubame-150", 0),
    ("tsubame-600", 0),
    ("tsubame-2400", 0),
    ("tree1024", 0),
    ("fragmented", 0),
    ("queue", 0),
    ("full", 0),
    ("frontier", 0),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a comparison runs: seconds of the auction and of each peer, and how many run at once."""

    ours: float
    seconds: float
    strategy: str
    solvers: tuple[str, ...]
    parallel: int = 1


def compare(kind: str, seed: int, settings: Settings) -> tuple[Program, list[Row]]:
    """Run every solver on one instance; return its program and a row for each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        snapshot, exported = folder / "snapshot.json", folder / "program.mps"
        _ours("export", kind, str(seed), str(snapshot), str(exported))
        program = read_mps(exported)
        with ThreadPoolExecutor(settings.parallel) as pool:
            rows = pool.map(lambda one: _row(one, kind, program, folder, settings), settings.solvers)
            return program, list(rows)


def _ours(*arguments: str) -> None:
    subprocess.run([sys.executable, _beside("ours.py"), *arguments], check=True)  # noqa: S603 - ourselves


def _beside(name: str) -> str:
    return str(Path(__file__).with_name(name))


def _row(solver: str, kind: str, program: Program, folder: Path, settings: Settings) -> Row:
    answer = folder / f"{solver}.json"
    snapshot, exported = str(folder / "snapshot.json"), str(folder / "program.mps")
    if solver == OURS:
        seconds = settings.ours
        arguments = ["schedule", kind, snapshot, str(seconds), settings.strategy, str(answer)]
        failure = run_limited([sys.executable, _beside("ours.py"), *arguments], seconds)
    else:
        seconds = settings.seconds
        arguments = [solver, exported, str(seconds), str(answer)]
        failure = run_limited([sys.executable, _beside("peers.py"), *arguments], seconds)
    return Row(solver=solver, note=failure) if failure else judged(solver, program, read_answer(answer))


def run_limited(command: Sequence[str], seconds: float) -> str:
    """Run a process; kill it and all it started when it is far over its seconds. Return what failed."""
    with subprocess.Popen(  # noqa: S603 - ourselves
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            _, errors = process.communicate(timeout=seconds * 1.5 + GRACE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return "killed"
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    lines = errors.strip().splitlines() or [f"exit {process.returncode}"]
    return f"failed: {lines[-1]}" if process.returncode else ""


def found(program: Program, rows: Iterable[Row], settings: Settings) -> Known | None:
    """Return the best value and bound of a run; a bound below a value of the same program does not count."""
    inside = [row for row in rows if row.in_program]
    solved = [row for row in inside if row.value is not None]
    if not solved:
        return None
    best = max(solved, key=lambda row: row.value or 0.0)
    least = best.value or 0.0
    bounds = [(max(row.bound or 0.0, least), row.solver) for row in inside if holds(row.bound, least)]
    bound, by = min(bounds, default=(None, ""))
    limit = settings.ours if best.solver == OURS else settings.seconds
    return Known(
        value=least, by=f"{best.solver} {limit:g} s", bound=bound, bound_by=by, program=program.digest()
    )


def main() -> int:
    """Run what is asked for; print each table as soon as it is there."""
    arguments = _arguments()
    settings = Settings(
        ours=arguments.ours,
        seconds=arguments.seconds,
        strategy=arguments.strategy or "default",
        solvers=tuple(arguments.solvers.split(",")),
        parallel=arguments.parallel,
    )
    chosen = PUBLISHED if arguments.all else [(arguments.kind, seed) for seed in arguments.seed]
    text = _heading()
    print(text)
    for kind, seed in chosen:
        name = f"{kind}/{seed}"
        program, rows = compare(kind, seed, settings)
        text += (part := "\n" + table(name, program, rows, best_known().get(name)))
        print(part, flush=True)
        entry = found(program, rows, settings)
        if arguments.update and entry is not None:
            update({name: entry})
        if arguments.output:
            arguments.output.write_text(text, encoding="utf-8")
    return 0


def _heading() -> str:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],  # noqa: S607 - the reader's git
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    command = shlex.join(["python", "benchmarks/compare.py", *sys.argv[1:]])
    return f"`{command}`, commit {commit or 'unknown'}, {os.cpu_count()} cores\n"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", nargs="?", choices=KINDS)
    parser.add_argument("--seed", type=int, nargs="+", default=[0])
    parser.add_argument("--all", action="store_true", help="the published set instead of one kind")
    parser.add_argument("--ours", type=float, default=3.0, help="seconds of the auction (3)")
    parser.add_argument("--seconds", type=float, default=60.0, help="seconds of each other solver (60)")
    parser.add_argument("--strategy", choices=["exact", "anytime"], help="of the auction; its own default")
    parser.add_argument("--solvers", default=",".join([OURS, *installed()]), help="default: all installed")
    parser.add_argument("--parallel", type=int, default=1, help="solvers at once, a core each (1)")
    parser.add_argument("--update", action="store_true", help=f"write what is better to {FILE.name}")
    parser.add_argument("--output", type=Path, help="file for the tables, beside standard output")
    arguments = parser.parse_args()
    if bool(arguments.kind) == arguments.all:
        parser.error("give a kind, or --all")
    unknown = set(arguments.solvers.split(",")) - {OURS, *installed()}
    if unknown:
        parser.error(f"not installed: {', '.join(sorted(unknown))}")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
